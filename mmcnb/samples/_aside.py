"""Outputs that appear whole or not at all: written beside their place, then renamed."""

import errno
import os
import secrets
import shutil
from pathlib import Path

from mmcnb.errors import InputError

ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Aside:
    """A place beside ``target`` to write to; ``commit`` moves it there, ``discard`` removes it.

    Parameters
    ----------
    target : path-like
        Where the output shall stand.
    overwrite : bool, default=False
        Replace what stands there; a folder is replaced only if it is a Zarr store.
    name : str or None, default=None
        For messages; None is the target's path.

    Raises
    ------
    InputError
        The target exists, or its folder does not.
    """

    def __init__(
        self, target: str | os.PathLike[str], overwrite: bool = False, name: str | None = None
    ) -> None:
        self.target = Path(target).absolute()
        self.name = name or str(self.target)
        self._overwrite = overwrite
        self._check()
        self.path = self.target.with_name(f".{self.target.name}.part-{secrets.token_hex(4)}")

    def _check(self) -> None:
        if not self.target.parent.is_dir():
            raise InputError(f"{self.name}: the folder {self.target.parent} does not exist: make it first.")
        if not os.path.lexists(self.target):
            return
        if not self._overwrite:
            raise InputError(
                f"{self.name} exists already: choose another path, or replace it with --overwrite."
            )
        if self.target.is_dir() and not is_store_folder(self.target) and any(self.target.iterdir()):
            raise InputError(
                f"{self.name} is a folder and no Zarr store, so it is not replaced: choose another path."
            )

    def commit(self) -> None:
        """Move what was written to the target."""
        self._check()
        if not os.path.lexists(self.target):
            self.path.rename(self.target)
            return
        old = self.path.with_name(self.path.name.replace(".part-", ".old-"))
        self.target.rename(old)
        self.path.rename(self.target)
        remove(old)

    def discard(self) -> None:
        """Remove what was written so far."""
        remove(self.path)

    def finish(self, error: BaseException | None) -> None:
        """Commit, or discard after an error; a full disk becomes one sentence."""
        if error is None:
            try:
                self.commit()
            except OSError as failure:
                error = failure
        if error is None:
            return
        self.discard()
        if isinstance(error, OSError):
            raise write_error(self.name, error) from error


def is_store_folder(path: Path) -> bool:
    """Whether a folder is the root of a Zarr array or group."""
    return any((path / mark).is_file() for mark in ZARR_MARKS)


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_error(target: str, error: OSError) -> InputError:
    """One sentence about a place that could not be written."""
    if error.errno in _FULL:
        return InputError(
            f"{target} could not be written, as the disk is full ({error.strerror}): "
            "free some space or choose a path on another disk; nothing was left behind."
        )
    return InputError(
        f"{target} could not be written ({error.strerror or error}): "
        "choose a path that can be written; nothing was left behind."
    )
