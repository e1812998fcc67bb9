"""Folders of outputs being written, which tell by a lock whether the process that writes them is alive.

A folder ``.part-XXXXXXXX-NAME`` stands beside NAME while it is written. It holds what is written, a lock that
goes when its process does, and the name of the machine. Who finds the lock free knows that the process was
killed.
"""

import atexit
import json
import os
import platform
import random
import re
import secrets
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mmcnb.samples._inventory import PathLike
from mmcnb.stores._exchange import put_back, remove

NEW, OLD, LOCK, OWNER, MOVING = "new", "old", "lock", "owner.json", "moving"
OURS = {NEW, OLD, LOCK, OWNER, MOVING}
NAMED = re.compile(r"\.(part|old)-[0-9a-f]{8}-(.+)", re.DOTALL)
TRIES = 100  # to make a folder that another process takes for one left over in its first moment
SECONDS = 10.0  # to wait for one who looks at it, or who moves an output to the same place
PAUSE = 0.02  # seconds, at most

ALIVE, GONE = "works", "is gone"
ELSEWHERE, UNKNOWN = "is on another machine", "is unknown"


class OwnedFolder:
    """A new folder of this process; whoever finds it later can tell whether the process is alive.

    Parameters
    ----------
    beside : Path
        What is written; the folder has a hidden name beside it.

    Attributes
    ----------
    path : Path
        The folder.
    new, old : Path
        A folder in it to write to, and where something may be kept that moves back after a kill.
    """

    def __init__(self, beside: Path) -> None:
        self.path = beside.with_name(f".part-{secrets.token_hex(4)}-{beside.name}")
        self.new, self.old = self.path / NEW, self.path / OLD
        self._remove: Any = None

    @property
    def is_made(self) -> bool:
        """Whether the folder was made."""
        return self._remove is not None

    def make(self) -> None:
        """Make the folder and lock it; it goes with this object or this process, if not before.

        Raises
        ------
        OSError
            It cannot be made.
        """
        from filelock import FileLock

        lock = FileLock(self.path / LOCK, thread_local=False)
        self._remove = weakref.finalize(self, _remove_own, os.getpid(), self.path, lock)
        owner = {"machine": platform.node(), "process": os.getpid()}
        for _ in range(TRIES):
            self.path.mkdir(exist_ok=True)
            try:
                _lock(lock)
                (self.path / OWNER).write_text(json.dumps(owner), encoding="utf-8")
                self.new.mkdir()
                return
            except FileNotFoundError:  # removed before it was locked
                lock.release()
        raise TimeoutError(f"{self.path} is removed by others again and again")

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the place of the output, for a moment: no other process moves one there meanwhile.

        Who says that it moves and then sees nobody else who does is alone: of two the later to look sees the
        other.

        Raises
        ------
        TimeoutError
            Others do not end.
        """
        mark, until = self.path / MOVING, time.monotonic() + SECONDS
        while True:
            mark.touch()
            if not (others := self._moving()):
                break
            mark.unlink()
            if time.monotonic() > until:
                raise TimeoutError(f"{others[0]} says that another process is about to")
            time.sleep(random.uniform(0, PAUSE))
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    def _moving(self) -> list[Path]:
        """The folders of other processes that move an output to the same place."""
        target = target_of(self.path)
        assert target is not None
        beside = leftovers(target.parent, target.name)
        return [
            one.path
            for one in beside
            if one.owner != GONE and one.path != self.path and (one.path / MOVING).exists()
        ]

    def remove(self) -> None:
        """Remove the folder and all it holds."""
        if self._remove is not None:
            self._remove()


def _lock(lock: Any) -> None:
    """Lock where the file system has locks; without, nobody takes the folder for one left over."""
    try:
        lock.acquire(timeout=SECONDS)
    except (FileNotFoundError, TimeoutError):
        raise
    except (NotImplementedError, OSError):
        return


def _remove_own(process: int, folder: Path, lock: Any) -> None:
    """Remove a folder, unless this is a fork of its process."""
    if os.getpid() != process:
        return
    with ExitStack() as stack:
        if sys.exc_info()[0] is not None:  # threads of Zarr, which end later, may still write there
            atexit.register(remove, folder)
        stack.callback(remove, folder)
        stack.callback(lock.release)  # before the file goes, for systems that keep what is open
        stack.callback(_clear, folder)  # again, where the first time was interrupted
        _clear(folder)


def _clear(folder: Path) -> bool:
    """Remove what a folder holds, but for its lock; whether an old output was put back to its place."""
    target = target_of(folder)
    is_back = target is not None and put_back(folder / OLD, target)
    for name in (NEW, MOVING, OWNER):
        remove(folder / name)
    return is_back


@dataclass(frozen=True)
class Leftover:
    """A file or folder beside an output, of a process that may be gone.

    Parameters
    ----------
    path, target : Path
        It, and the output.
    owner : str
        Whether the process works, is gone, is on another machine, or is unknown.
    done : str or None
        What became of it.
    """

    path: Path
    target: Path
    owner: str
    done: str | None = None


def target_of(path: Path) -> Path | None:
    """The output that a hidden name stands beside; None of another name."""
    named = NAMED.fullmatch(path.name)
    return None if named is None else path.with_name(named[2])


def leftovers(folder: PathLike, name: str | None = None, clean: bool = False) -> list[Leftover]:
    """What processes that write or wrote outputs in a folder have there.

    Parameters
    ----------
    folder : path
        Where to look; not in its folders.
    name : str or None, default=None
        Look beside this output alone.
    clean : bool, default=False
        Remove those whose process is gone, and put an old output back whose place is empty.

    Returns
    -------
    list of Leftover
        In order of their names.
    """
    with os.scandir(folder) as entries:
        paths = sorted(Path(entry.path) for entry in entries if NAMED.fullmatch(entry.name))
    found = []
    for path in paths:
        target = target_of(path)
        if target is not None and name in (None, target.name):
            found += list(_looked_at(path, target, clean))
    return found


def _looked_at(path: Path, target: Path, clean: bool) -> Iterator[Leftover]:
    if path.name.startswith(".old-"):  # of version 0.2 and before, which had no locks
        missing = clean and not os.path.lexists(target)
        yield Leftover(path, target, UNKNOWN, "put back" if missing and put_back(path, target) else None)
        return
    with _owner(path) as owner:
        if owner is None:
            return
        found = Leftover(path, target, owner)
        if owner == GONE and clean:
            found = replace(found, done="put back" if _clear(path) else "removed")
    if found.done is not None:
        remove(path)
        if path.exists():
            found = replace(found, done="could not be removed")
    yield found


@contextmanager
def _owner(folder: Path) -> Iterator[str | None]:
    """What is known of the process of a folder, which is held meanwhile; None where there is nothing."""
    from filelock import FileLock

    lock = FileLock(folder / LOCK, thread_local=False)
    try:
        if not _names(folder) <= OURS:  # of version 0.2 and before
            owner: str | None = UNKNOWN
        elif _machine(folder) not in (None, platform.node()):
            owner = ELSEWHERE
        else:
            lock.acquire(blocking=False)
            owner = GONE
            if _names(folder) == {LOCK}:  # nothing was written yet, or all was removed just now
                remove(folder)
                owner = None
    except FileNotFoundError:
        owner = None
    except TimeoutError:
        owner = ALIVE
    except (NotImplementedError, OSError):  # no locks here, or of another user
        owner = UNKNOWN
    try:
        yield owner
    finally:
        lock.release()


def _names(folder: Path) -> set[str]:
    """What a folder holds; of a file its own name."""
    try:
        return {entry.name for entry in folder.iterdir()}
    except NotADirectoryError:
        return {folder.name}


def _machine(folder: Path) -> str | None:
    """The machine of the process of a folder; None where it was killed before it said so."""
    try:
        return str(json.loads((folder / OWNER).read_bytes())["machine"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
