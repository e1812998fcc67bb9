"""Outputs that appear complete or not at all: written beside their place, then moved there.

`atomic_write` is for single files, `AtomicOutput` for stores and tables, `together` for
several of these. An output is written in a folder ``.part-NAME`` beside it. A lock in
that folder gives each output one writer at a time, and goes with its process. A lock
that is free tells that its writer was killed.
"""

import atexit
import ctypes
import errno
import os
import secrets
import shutil
import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from filelock import FileLock

from mmcnb.errors import InputError, one_line
from mmcnb.samples.paths import PathLike, is_store_folder

DISK_FULL = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
}  # the disk, the user's quota, the process's limit
PART = ".part-"
NEW = "new"
OLD = "old"
LOCK = "lock"
PROBE = ".filelock-"  # how names of files begin by which filelock tests a disk
ALIVE = "works"
GONE = "is gone"
UNKNOWN = "is unknown"


@contextmanager
def atomic_write(path: PathLike, *, part: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` when the ``with`` block ends without an error.

    The file and its name are flushed to the disk, so they also survive a loss of power.

    Parameters
    ----------
    path : str or path-like
        The file. One that is there stays until then, and for good after an error.
    part : Path or None, default=None
        The file to write meanwhile, in the same folder. None is a file in a hidden
        folder. A fixed name suits files that have one writer at a time: a file left by
        a killed process is overwritten.

    Yields
    ------
    file
        Open for writing bytes.

    Raises
    ------
    InputError
        The folder does not exist, or another process writes the same file.
    OSError
        The file cannot be written; nothing is left of it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.stores.atomic import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/notes.txt") as file:
    ...         _ = file.write(b"complete")
    ...     [entry.read_bytes() for entry in pathlib.Path(folder).iterdir()]
    [b'complete']
    """
    target = Path(path).absolute()
    with ExitStack() as stack:
        part = (
            part
            or stack.enter_context(AtomicOutput(target, overwrite=True).begun()).path
        )
        stack.callback(part.unlink, missing_ok=True)
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        if hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
            folder = os.open(target.parent, os.O_RDONLY)
            stack.callback(os.close, folder)
            os.fsync(folder)


class AtomicOutput:
    """A file or folder that is written at `path` and moved to ``target`` when a ``with`` block ends.

    After an error, everything written is removed and the target is as before. Writers
    of one kind of output derive from this, and complete it in their ``finish``. On
    Linux, the new output and the one that it replaces change places in one step.
    Elsewhere a killed process may leave the old one beside its place, to which the next
    writer or `mmcnb doctor --clean` returns it.

    Parameters
    ----------
    target : path-like
        The output.
    overwrite : bool, default=False
        Replace what is there; a folder is replaced only if it is a Zarr store.

    Attributes
    ----------
    target : Path
        Absolute.
    path : Path
        The file or folder to write, on the same disk.
    name : str
        The target's path, for messages.

    Raises
    ------
    InputError
        The target exists, its folder does not, another process writes it, or, at the
        end of the ``with`` block, the output could not be written.
    """

    def __init__(self, target: PathLike, overwrite: bool = False) -> None:
        self.target = Path(target).absolute()
        self._overwrite = overwrite
        self._folder = self.target.with_name(PART + self.target.name)
        self.path = self._folder / NEW / self.target.name
        self.name = name_of(self.target)
        self._check()
        self._lock = FileLock(self._folder / LOCK, timeout=10, thread_local=False)
        # What was written so far, or what it has replaced, is removed by this, or when
        # the process ends.
        self._discard = weakref.finalize(
            self, _remove, os.getpid(), self._folder, self._lock
        )

    def _check(self) -> None:
        if not self.target.parent.is_dir():
            raise InputError(
                f"{self.name}: the folder {self.target.parent} does not exist: make it first."
            )
        if not os.path.lexists(self.target):
            return
        if not self._overwrite:
            raise self._exists()
        if (
            self.target.is_dir()
            and not is_store_folder(self.target)
            and any(self.target.iterdir())
        ):
            fault = f"{self.name} is a folder and no Zarr store, so it is not replaced"
            raise InputError(f"{fault}: choose another path.")

    def _exists(self) -> InputError:
        return InputError(
            f"{self.name} exists already: choose another path, or replace it with --overwrite."
        )

    def __enter__(self) -> Self:
        """Lock the folder of `path`, and clear away what a killed process has left there."""
        with ExitStack() as stack:
            stack.callback(self._discard)
            stack.enter_context(writing(self.name))
            for _ in range(
                100
            ):  # times that its last writer may remove the folder in the same moment
                with suppress(FileNotFoundError):
                    self._lock.acquire()
                    break
            _clear(self._folder)
            self.path.parent.mkdir()
            self._check()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        """Complete and commit, or discard after an error."""
        with writing(self.name), ExitStack() as stack:
            stack.callback(self._discard)
            self._close()
            if error is not None:
                raise error
            self.finish()
            commit([self])

    def _close(self) -> None:
        """Close what is open, after an error too; nothing by itself."""

    def finish(self) -> None:
        """Complete what was written; nothing by itself."""

    @contextmanager
    def begun(self) -> Iterator[Self]:
        """Begin; at the end of the ``with`` block, remove what was not moved to its place."""
        with ExitStack() as stack:
            stack.callback(self._discard)
            yield self.__enter__()

    def _place(self) -> None:
        """Move what was written to the target; what is replaced goes to its place."""
        self._check()
        with writing(self.name):
            try:
                self._move(
                    self.path,
                    self.target,
                    os.path.lexists(self.target) and self._overwrite,
                )
            except FileExistsError:  # since a moment ago
                raise self._exists() from None

    def _move(self, source: Path, target: Path, is_exchange: bool) -> None:
        if _renamed(source, target, is_exchange):
            return
        if not is_exchange:
            source.rename(target)
            return
        aside = self._folder / OLD
        target.rename(aside)
        try:
            source.rename(target)
        finally:
            aside.rename(source if os.path.lexists(target) else target)


@contextmanager
def together(outputs: Sequence[AtomicOutput]) -> Iterator[None]:
    """Begin some outputs; at the end of the ``with`` block all of them appear, or none.

    Parameters
    ----------
    outputs : sequence of AtomicOutput

    Raises
    ------
    InputError
        One of them cannot be written.
    """
    with ExitStack() as stack:
        # In one order, so that no two processes wait for each other.
        for output in sorted(outputs, key=lambda output: output.target):
            stack.enter_context(output.begun())
        yield
        commit(outputs)


def commit(outputs: Sequence[AtomicOutput]) -> None:
    """Move what was written to its places; if one cannot be taken, all are as before.

    Parameters
    ----------
    outputs : sequence of AtomicOutput
        Begun and written.

    Raises
    ------
    InputError
        A place was taken meanwhile, or cannot be written.
    """
    written = [output.path.lstat() for output in outputs]
    try:
        for output in outputs:
            output._place()
    except BaseException:
        for output, status in zip(outputs, written, strict=True):
            if os.path.lexists(output.target) and os.path.samestat(
                output.target.lstat(), status
            ):
                output._move(output.target, output.path, os.path.lexists(output.path))
        raise


@contextmanager
def scratch_folder(parent: PathLike, name: str) -> Iterator[Path]:
    """A folder that goes at the end of the ``with`` block, and that `mmcnb doctor` knows after a kill.

    Parameters
    ----------
    parent : path
        The folder to make it in.
    name : str
        Its purpose; a part of its name.

    Yields
    ------
    Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.stores.atomic import scratch_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with scratch_folder(folder, "work") as scratch:
    ...         _ = (scratch / "notes.txt").write_text("for a while")
    ...     list(pathlib.Path(folder).iterdir())
    []
    """
    with AtomicOutput(Path(parent, f"{name}-{secrets.token_hex(4)}")).begun() as output:
        yield output.path.parent


def name_of(target: PathLike) -> str:
    """The path of an output for messages, also of one that is a part of another."""
    path = Path(target).absolute()
    return str(path).replace(f"{PART}{path.name}{os.sep}{NEW}{os.sep}", "")


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn an error of the disk, or of a lock, into a sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, TimeoutError) and error.errno is None:  # of the lock
            remedy = "wait for it, or choose another path"
            raise InputError(
                f"{name} is being written by another process: {remedy}."
            ) from error
        why = f" ({error.strerror or error})"
        remedy = "choose a path that can be written"
        if error.errno in DISK_FULL:
            why = f", as the disk is full{why}"
            remedy = "free some space or choose a path on another disk"
        raise InputError(
            f"{name} could not be written{why}: {remedy}; nothing was left behind."
        ) from error


def _renamed(source: Path, target: Path, is_exchange: bool) -> bool:
    """Whether Linux has renamed without replacing, or exchanged, in one step; some disks cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    # the working folder; RENAME_EXCHANGE or RENAME_NOREPLACE
    here = -100
    flag = 2 if is_exchange else 1
    done = rename(here, os.fsencode(source), here, os.fsencode(target), flag) == 0
    if not done and ctypes.get_errno() == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    return done


# -- folders of outputs being written, and what killed processes leave -----------------


def leftovers(folder: PathLike, clean: bool = False) -> list[dict[str, Any]]:
    """Outputs that processes write in a folder, and what killed ones have left there.

    Parameters
    ----------
    folder : path
        The folder; folders in it are not searched.
    clean : bool, default=False
        Remove those whose process is gone. An old output whose place is empty returns
        to it.

    Returns
    -------
    list of dict
        ``path``; the output that it is ``of``; ``owner``: its process works, is gone or
        is unknown; and ``done``: what became of it, or None.
    """
    marked = (
        path for path in Path(folder).iterdir() if path.name.startswith((PART, ".old-"))
    )
    paths = sorted(
        path for path in marked if not path.is_symlink()
    )  # a link may lead anywhere
    return [found for path in paths if (found := _looked_at(path, clean))]


def _looked_at(path: Path, clean: bool = True) -> dict[str, Any] | None:
    lock = FileLock(path / LOCK)
    owner = UNKNOWN
    done = None
    with suppress(OSError):  # of another user, or of version 0.2, which had no locks
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
                    done = "put back" if _clear(path) else "removed"
                    _unlock(path, lock)
                lock.release()
    if done is None and not os.path.lexists(path):
        return None
    done = "could not be removed" if done and path.exists() else done
    return {
        "path": str(path),
        "of": path.name.split("-", 1)[1],
        "owner": owner,
        "done": done,
    }


def _remove(process: int, folder: Path, lock: Any) -> None:
    """Remove a folder that this process has locked, unless this is a fork of it."""
    if os.getpid() != process:
        return
    if not lock.is_locked:
        with suppress(
            OSError
        ):  # a writer that is stopped before it has the lock may have made the folder
            folder.rmdir()
        return
    if (
        sys.exc_info()[0] is not None
    ):  # threads of Zarr, which end later, may still write there
        atexit.register(_looked_at, folder)
    try:
        with ExitStack() as stack:
            stack.callback(_unlock, folder, lock)
            stack.callback(_clear, folder)  # again, if the first time was interrupted
            _clear(folder)
    except (
        OSError
    ) as error:  # what became of the output is told by its own error, or by none
        remedy = f"mmcnb doctor --clean {folder.parent} removes it"
        warnings.warn(
            f"{folder} could not be removed ({one_line(error)}); {remedy}.",
            stacklevel=2,
        )


def _clear(folder: Path) -> bool:
    """Remove what a folder contains, but for its lock; whether an old output was put back to its place."""
    old = folder / OLD
    target = folder.with_name(folder.name.removeprefix(PART))
    is_back = os.path.lexists(old) and not os.path.lexists(target)
    if is_back:
        old.rename(target)
    for path in (folder / NEW, old, *folder.glob(f"{PROBE}*")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return is_back


def _unlock(folder: Path, lock: Any) -> None:
    """Release a lock; its file goes first, so that nobody who has waited for that one takes it."""
    file = folder / LOCK
    is_open = False
    try:
        file.unlink(missing_ok=True)
    except OSError:  # Windows removes no open file
        is_open = True
    lock.release()
    with suppress(OSError):  # another process may have begun there
        if is_open:
            file.unlink(missing_ok=True)
        folder.rmdir()
