"""Folders of unfinished outputs, and what killed processes leave in them.

`mmcnb.stores.atomic` writes an output to a folder ``.part-NAME`` beside its
destination. A lock file in that folder ensures that an output has one writer at a time.
The system releases the lock of a killed process, so a free lock shows that the writer
is gone.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock

from mmcnb.samples.paths import PathLike

PART = ".part-"
NEW = "new"
OLD = "old"
LOCK = "lock"
PROBE = ".filelock-"  # prefix of files with which filelock tests a file system
ALIVE = "works"
GONE = "is gone"
UNKNOWN = "is unknown"


def leftovers(folder: PathLike, clean: bool = False) -> list[dict[str, Any]]:
    """List the unfinished outputs in a folder, of running and of killed processes.

    Parameters
    ----------
    folder : path
        The folder; its subfolders are not searched.
    clean : bool, default=False
        Whether to remove the outputs of processes that are gone. A replaced output is
        moved back if nothing has taken its place.

    Returns
    -------
    list of dict
        For each unfinished output: ``path``; ``of``, the name of the output; ``owner``,
        the state of its process ("works", "is gone" or "is unknown"); and ``done``,
        what was done with the output, or None.
    """
    entries = []
    for path in sorted(Path(folder).iterdir()):
        # Do not follow links, which may lead anywhere.
        if path.name.startswith((PART, ".old-")) and not path.is_symlink():
            entry = inspect(path, clean)
            if entry is not None:
                entries.append(entry)
    return entries


def inspect(path: Path, clean: bool = True) -> dict[str, Any] | None:
    """Describe one unfinished output, like `leftovers`; return None if it is gone."""
    lock = FileLock(path / LOCK)
    owner = UNKNOWN
    done = None
    # The folder may belong to another user, or to version 0.2, which had no locks.
    with suppress(OSError):
        names = {
            entry.name for entry in path.iterdir() if not entry.name.startswith(PROBE)
        }
        if names <= {NEW, OLD, LOCK}:
            try:
                lock.acquire(blocking=False)
            except TimeoutError:
                owner = ALIVE
            else:
                owner = GONE
                if clean:
                    done = "put back" if clear(path) else "removed"
                    unlock(path, lock)
                lock.release()
    if done is None and not os.path.lexists(path):
        return None
    if done is not None and path.exists():
        done = "could not be removed"
    return {
        "path": str(path),
        "of": path.name.split("-", 1)[1],
        "owner": owner,
        "done": done,
    }


def clear(folder: Path) -> bool:
    """Remove the contents of a locked folder, except its lock.

    Return whether a replaced output was moved back. It is moved back if nothing has
    taken its place.
    """
    old = folder / OLD
    target = folder.with_name(folder.name.removeprefix(PART))
    returns = os.path.lexists(old) and not os.path.lexists(target)
    if returns:
        old.rename(target)
    for path in (folder / NEW, old, *folder.glob(f"{PROBE}*")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return returns


def unlock(folder: Path, lock: BaseFileLock) -> None:
    """Release a lock, and remove its folder.

    The lock file is removed before the lock is released, so that a waiting process
    cannot acquire the removed file.
    """
    file = folder / LOCK
    is_open = False
    try:
        file.unlink(missing_ok=True)
    except OSError:  # Windows cannot remove an open file
        is_open = True
    lock.release()
    # Another process may have started to write in the folder.
    with suppress(OSError):
        if is_open:
            file.unlink(missing_ok=True)
        folder.rmdir()
