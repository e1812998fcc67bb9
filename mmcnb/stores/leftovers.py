"""Find and remove unfinished outputs that killed processes have left behind.

`mmcnb.stores.atomic` writes an output to a folder ``.part-NAME`` beside its
destination. A lock file in this folder ensures that an output has only one writer at a
time. The operating system releases the lock of a killed process, so the writer no
longer exists if the lock is free.
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
    """List the unfinished outputs of running and killed processes in a folder.

    Parameters
    ----------
    folder : path
        Folder to search, without its subfolders.
    clean : bool, default=False
        Whether to remove the unfinished outputs of processes that no longer exist. If a
        process was killed while it replaced an old output and the destination does not
        exist, the old output is moved back.

    Returns
    -------
    list of dict
        A dict for each unfinished output, with the following entries: ``path`` of its
        hidden folder; ``of``, the name of the output; ``owner``, the state of its
        process ("works", "is gone" or "is unknown"); and ``done`` ("put back",
        "removed", "could not be removed", or None if nothing was done).
    """
    entries = []
    for path in sorted(Path(folder).iterdir()):
        # Do not follow symbolic links, which may lead outside the folder.
        if path.name.startswith((PART, ".old-")) and not path.is_symlink():
            entry = inspect(path, clean)
            if entry is not None:
                entries.append(entry)
    return entries


def inspect(path: Path, clean: bool = True) -> dict[str, Any] | None:
    """Return the entry of `leftovers` for one hidden folder.

    The result is None if the folder does not exist.
    """
    lock = FileLock(path / LOCK)
    owner = UNKNOWN
    done = None
    # The folder may belong to another user, or to version 0.2, which did not use locks.
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
    """Remove the contents of a locked hidden folder, except its lock file.

    If the folder contains an old output and the destination does not exist, the old
    output is moved back. Return whether this was done.
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
    """Release the lock of a hidden folder, and remove the folder.

    The lock file is removed before the lock is released, so that a waiting process
    does not acquire a lock on a removed file.
    """
    file = folder / LOCK
    is_open = False
    try:
        file.unlink(missing_ok=True)
    except OSError:  # Windows cannot remove an open file
        is_open = True
    lock.release()
    # Removing the folder fails if another process has started to write to it.
    with suppress(OSError):
        if is_open:
            file.unlink(missing_ok=True)
        folder.rmdir()
