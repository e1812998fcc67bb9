"""Outputs that appear complete or not at all: written beside their place, then renamed.

`atomic_write` is for single files, `AtomicOutput` for stores and for several outputs at once.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from mmcnb.errors import InputError
from mmcnb.samples._inventory import PathLike, is_store_folder

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # the disk, the user's quota, the process's limit


@contextmanager
def atomic_write(path: PathLike, *, sync: bool = False, part: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` when the ``with`` block ends without an error.

    Parameters
    ----------
    path : str or path-like
        Where the file appears. What is there stays until then, and for good after an error.
    sync : bool, default=False
        Flush the file and its folder to the disk, so that it also survives a loss of power.
    part : Path or None, default=None
        Where to write meanwhile, in the same folder. None is a new hidden name. A fixed name suits files
        that have one writer at a time: a file left by a killed process is overwritten.

    Yields
    ------
    file
        Open for writing bytes.

    Raises
    ------
    OSError
        The file cannot be written; nothing is left of it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.samples.atomic import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/notes.txt") as file:
    ...         _ = file.write(b"complete")
    ...     [entry.read_bytes() for entry in pathlib.Path(folder).iterdir()]
    [b'complete']
    """
    target = Path(path)
    part = part or _beside(target)
    try:
        with part.open("wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        part.replace(target)
        if sync:
            _sync_folder(target.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _beside(target: Path) -> Path:
    """A new hidden name in the same folder, with the ending of the target."""
    return target.with_name(f".part-{secrets.token_hex(4)}-{target.name}")


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system opens folders: Windows does not."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class AtomicOutput:
    """A file or folder that is written at `path` and moved to ``target`` when a ``with`` block ends.

    After an error what was written is removed, and the target is as before.

    Parameters
    ----------
    target : path-like
        Where the output appears.
    overwrite : bool, default=False
        Replace what is there; a folder is replaced only if it is a Zarr store.
    name : str or None, default=None
        For messages; None is the target's path.

    Attributes
    ----------
    target : Path
        Absolute.
    path : Path
        Where to write, in the same folder.
    name : str

    Raises
    ------
    InputError
        The target exists, its folder does not, or, at the end of the ``with`` block, the output could not
        be written.
    """

    def __init__(self, target: PathLike, overwrite: bool = False, name: str | None = None) -> None:
        self.target = Path(target).absolute()
        self.name = name or str(self.target)
        self.overwrite = overwrite
        self._check()
        self.path = _beside(self.target)

    def _check(self) -> None:
        if not self.target.parent.is_dir():
            raise InputError(f"{self.name}: the folder {self.target.parent} does not exist: make it first.")
        if not os.path.lexists(self.target):
            return
        if not self.overwrite:
            raise InputError(
                f"{self.name} exists already: choose another path, or replace it with --overwrite."
            )
        if self.target.is_dir() and not is_store_folder(self.target) and any(self.target.iterdir()):
            raise InputError(
                f"{self.name} is a folder and no Zarr store, so it is not replaced: choose another path."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit, or discard after an error."""
        with self.discarding():
            if error is not None:
                raise error
            self.commit()

    @contextmanager
    def discarding(self) -> Iterator[None]:
        """Discard what was written where the ``with`` block fails; a full disk becomes one sentence."""
        try:
            yield
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                raise write_error(self.name, error) from error
            raise

    def commit(self) -> None:
        """Move what was written to the target."""
        self._check()
        if not self.target.is_dir() and not self.path.is_dir():
            self.path.replace(self.target)
            return
        if not os.path.lexists(self.target):
            self.path.rename(self.target)
            return
        # A folder cannot be replaced in one step.
        old = self.path.with_name(self.path.name.replace(".part-", ".old-", 1))
        self.target.rename(old)
        try:
            self.path.rename(self.target)
        except BaseException:
            old.rename(self.target)
            raise
        remove(old)

    def discard(self) -> None:
        """Remove what was written so far."""
        remove(self.path)


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_error(target: str, error: OSError) -> InputError:
    """One sentence about a place that could not be written."""
    if error.errno in DISK_FULL:
        return InputError(
            f"{target} could not be written, as the disk is full ({error.strerror}): "
            "free some space or choose a path on another disk; nothing was left behind."
        )
    return InputError(
        f"{target} could not be written ({error.strerror or error}): "
        "choose a path that can be written; nothing was left behind."
    )
