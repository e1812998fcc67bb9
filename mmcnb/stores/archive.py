"""Arrays and a JSON header in one file, which is written atomically.

It is NumPy's .npz: a zip without compression, with a checksum of each member. Like all
input, it is checked when it is read.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from mmcnb.samples.files import open_file
from mmcnb.samples.npy import read_member
from mmcnb.samples.paths import PathLike
from mmcnb.stores.atomic import atomic_write


class DamagedArchiveError(Exception):
    """A file that is not what was written."""


def write_archive(
    path: PathLike,
    header: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    part: Path | None = None,
) -> None:
    """Write an archive.

    Parameters
    ----------
    path : path
        The file; one that is there is replaced.
    header : mapping
        What JSON can express.
    arrays : mapping of str to ndarray
        The arrays, of numbers, by name.
    part : Path or None, default=None
        As in `atomic_write`.

    Raises
    ------
    OSError
        It cannot be written; what was there stays.
    """
    text = json.dumps({"arrays": sorted(arrays)} | dict(header)).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with atomic_write(path, part=part) as file:
        np.savez(file, **members)


def read_archive(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of an archive; at most as many bytes as the file has.

    Raises
    ------
    InputError
        There is no regular file, or it may not be read.
    DamagedArchiveError
        It is no archive, or is damaged.
    """
    file = open_file(path)
    try:
        with file, ZipFile(file) as members:
            _check_members(members, Path(path).stat().st_size)
            arrays = {}
            for name in members.namelist():
                arrays[name.removesuffix(".npy")] = read_member(members, name)
        header = dict(json.loads(arrays.pop("header").tobytes()))
        if sorted(arrays) != header.get("arrays", sorted(arrays)):
            raise BadZipFile("an array is missing")
    except (
        BadZipFile,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
    ) as error:
        raise DamagedArchiveError from error
    return header, arrays


def _check_members(members: ZipFile, n_bytes: int) -> None:
    """Raise BadZipFile if an archive claims more bytes than its file has."""
    entries = members.infolist()
    if any(entry.compress_type != ZIP_STORED for entry in entries):
        raise BadZipFile("a member is compressed")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > n_bytes or len(set(members.namelist())) != len(entries):
        raise BadZipFile("members lie in one another")
