"""Paths of files and stores, and keys inside a store."""

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype
from zarr.core.sync import sync

from mmcnb.errors import InputError, one_line, shown

PathLike = str | os.PathLike[str]

ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray")


def expanded(path: PathLike) -> str:
    """Return a path with ``~/`` replaced by the home folder, as shells do.

    Examples
    --------
    >>> from mmcnb.samples.paths import expanded
    >>> expanded("rows.csv"), expanded("~/rows.csv").startswith("~")
    ('rows.csv', False)
    """
    text = os.fspath(path)
    if text.startswith(("~/", f"~{os.sep}")):
        return os.path.expanduser(text)  # noqa: PTH111
    return text


def checked_path(path: object, what: str = "the path") -> Path:
    """Return a path after checking that the system accepts it; it may not exist.

    Parameters
    ----------
    path : str or path-like
        The path; ``~/`` is expanded.
    what : str, default="the path"
        Name used for the path in messages.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    InputError
        If ``path`` is not a path, is empty or too long, or contains a null character.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(
            f"{what} is {shown(path)}, which is not a path: pass a str or a "
            "pathlib.Path."
        )
    text = expanded(path)
    if not text:
        raise InputError(f"{what} is empty: name a file or a folder.")
    try:
        os.lstat(text)
    except (OSError, ValueError) as error:
        # A path that does not exist or is not readable is accepted here, because only
        # the caller knows whether it should exist.
        number = getattr(error, "errno", errno.ENAMETOOLONG)
        if number in (errno.ENAMETOOLONG, errno.ELOOP):
            why = one_line(error).lower()
            raise InputError(
                f"{what} {text[:100]!r} cannot be used ({why}): choose another."
            ) from error
    return Path(text)


def output_path(path: PathLike) -> Path:
    """Return the absolute path of an output, which must be on a disk of this machine.

    Raises
    ------
    InputError
        If the path is an address, such as ``"s3://bucket/rows.zarr"``.

    Examples
    --------
    >>> from mmcnb.samples.paths import output_path
    >>> output_path("file:///tmp/rows.zarr").as_posix()
    '/tmp/rows.zarr'
    """
    text = expanded(path).removeprefix("file://")
    scheme, separator, rest = text.partition("://")
    if separator and len(scheme) > 1:  # one letter is a drive of Windows
        name = rest.rstrip("/").rpartition("/")[2] or "rows.zarr"
        raise InputError(
            f"{text} is an address, but outputs can only be written to disks of this "
            f"machine: write {name} and copy it, for example with "
            f"fsspec.filesystem({scheme!r}).put({name!r}, {text!r}, recursive=True)."
        )
    return Path(text).absolute()


def is_store_folder(path: Path) -> bool:
    """Return whether a folder is the root of a Zarr array or group."""
    return any((path / mark).is_file() for mark in ZARR_MARKS)


def join(*parts: str) -> str:
    """Join the non-empty parts of a key with slashes."""
    return "/".join(filter(None, parts))


def read_key(store: Store, key: str) -> bytes | None:
    """Return the bytes stored under a key of a Zarr store, or None if it is missing."""
    value = sync(store.get(key, prototype=default_buffer_prototype()))
    return None if value is None else value.to_bytes()


def read_keys(store: Store, keys: Sequence[str]) -> list[bytes | BaseException | None]:
    """Return the bytes stored under each of several keys, which are read concurrently.

    The result contains None for a missing key, and the exception for a key that cannot
    be read.
    """

    async def read(key: str) -> bytes | None:
        value = await store.get(key, prototype=default_buffer_prototype())
        return None if value is None else value.to_bytes()

    async def read_all() -> list[bytes | BaseException | None]:
        return await asyncio.gather(*map(read, keys), return_exceptions=True)

    return sync(read_all())
