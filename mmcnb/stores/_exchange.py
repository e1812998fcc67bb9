"""Moves that lose nothing: to a place that is free, and in exchange for what is there."""

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

NOREPLACE, EXCHANGE = 1, 2  # flags of Linux' renameat2
AT_FDCWD = -100  # paths are relative to the working folder
UNKNOWN = {errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP}  # to the file system
OCCUPIED = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR}


def move_to_free(source: Path, target: Path) -> None:
    """Move a file or folder to a place where nothing stands.

    Raises
    ------
    FileExistsError
        Something stands there, maybe since a moment ago.
    """
    if _renamed(source, target, NOREPLACE):
        return
    try:
        if source.is_dir() or os.name == "nt":
            source.rename(target)
        else:
            _link_to_free(source, target)
    except OSError as error:
        if error.errno in OCCUPIED:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        raise


def _link_to_free(source: Path, target: Path) -> None:
    """A file is renamed onto another without a word, but linked only where there is none."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # this file system has no links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.rename(target)
    else:
        source.unlink()


def exchange(source: Path, target: Path, aside: Path) -> None:
    """Let two files or folders change places; in several steps ``aside`` keeps what is replaced.

    Raises
    ------
    FileNotFoundError, FileExistsError
        Another process has changed the target meanwhile; the new one is still at the source.
    """
    if _renamed(source, target, EXCHANGE):
        return
    try:
        if source.is_dir() or target.is_dir():
            target.rename(aside)
            move_to_free(source, target)
        else:
            _keep_file(target, aside)
            source.replace(target)
    except BaseException:
        put_back(aside, target)
        raise
    aside.rename(source)


def _keep_file(target: Path, aside: Path) -> None:
    """Give a file that is replaced a second name, or where the file system knows no links, another one."""
    try:
        if target.is_symlink():  # a link to it may be one to what it stands for
            target.rename(aside)
        else:
            os.link(target, aside)
    except FileNotFoundError:
        raise
    except OSError:
        target.rename(aside)


def put_back(aside: Path, target: Path) -> bool:
    """Move what an exchange keeps back, where the target is missing; otherwise remove it.

    Returns
    -------
    bool
        Whether it was put back.
    """
    if not os.path.lexists(aside):
        return False
    if not os.path.lexists(target):
        aside.rename(target)
        return True
    remove(aside)
    return False


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _renamed(source: Path, target: Path, flag: int) -> bool:
    """Whether the system has renamed with a flag; False where it does not know how."""
    rename = renameat2()
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


@cache
def renameat2() -> Callable[..., Any] | None:
    """Linux' system call that renames without replacing, or exchanges, in one step."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
