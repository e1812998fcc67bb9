"""Atomic outputs, which appear at their destination complete or not at all.

An output is written to a hidden folder beside its destination, and then renamed.
`atomic_write` writes a single file, `AtomicOutput` writes a store or table, and
`together` commits several outputs at once. `mmcnb.stores.leftovers` describes the
hidden folders.
"""

import atexit
import ctypes
import errno
import os
import secrets
import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from filelock import BaseFileLock, FileLock

from mmcnb.errors import InputError, OptionError, one_line
from mmcnb.samples.paths import PathLike, is_store_folder, output_path
from mmcnb.stores.leftovers import LOCK, NEW, OLD, PART, clear, inspect, unlock

# The disk is full, the user's quota is exhausted, or the file exceeds a limit on its
# size.
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_write(path: PathLike, *, part: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` when the ``with`` block ends without an error.

    The file and its directory entry are flushed to disk, so they survive a power
    failure.

    Parameters
    ----------
    path : str or path-like
        Path of the file. An existing file is replaced at the end of the block, and is
        left unchanged if the block raises an exception.
    part : Path or None, default=None
        Path of the temporary file, in the same folder. None creates it in a hidden
        folder. A fixed name can be used if the file has only one writer at a time; a
        temporary file that a killed process left behind is then overwritten.

    Yields
    ------
    file
        Binary file to write to.

    Raises
    ------
    InputError
        If the folder does not exist or another process is writing the same file.
    OSError
        If the file cannot be written. The temporary file is then removed.

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
    target = output_path(path)
    with ExitStack() as stack:
        written = part
        if written is None:
            output = AtomicOutput(target, overwrite=True)
            written = stack.enter_context(output.begun()).path
        stack.callback(written.unlink, missing_ok=True)
        with written.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        written.replace(target)
        if hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
            folder = os.open(target.parent, os.O_RDONLY)
            stack.callback(os.close, folder)
            os.fsync(folder)


class AtomicOutput:
    """A file or folder that is written to `path` and then moved to ``target``.

    The output is moved when the ``with`` block ends. After an error, all written files
    are removed, and the target is left unchanged. Writers of specific outputs are
    subclasses that complete the output in ``finish``. On Linux, the new output and the
    old output are exchanged atomically if the file system supports it. Otherwise, a
    process that is killed during the move may leave the old output in the hidden
    folder. The next writer or `mmcnb doctor --clean` then moves it back.

    Parameters
    ----------
    target : path-like
        Destination of the output.
    overwrite : bool or None, default=None
        Whether to replace an existing output. A folder is replaced only if it is empty
        or a Zarr store. None is like False, but messages do not suggest
        ``overwrite=True``.

    Attributes
    ----------
    target : Path
        Absolute path of the destination.
    path : Path
        Path of the file or folder to write, in a hidden folder beside the target.
    name : str
        Path of the target for messages.

    Raises
    ------
    InputError
        If the target exists and may not be replaced, its parent folder does not exist,
        another process is writing the target, or the output cannot be written.
    """

    def __init__(self, target: PathLike, overwrite: bool | None = None) -> None:
        self.target = output_path(target)
        self._overwrite = overwrite
        folder = self.target.with_name(PART + self.target.name)
        self._folder = folder
        self.path = folder / NEW / self.target.name
        self.name = name_of(self.target)
        self._check()
        self._lock = FileLock(folder / LOCK, timeout=10, thread_local=False)
        # This finalizer removes the hidden folder with its contents (an unfinished or a
        # replaced output) when the block ends or, at the latest, when the process ends.
        process = os.getpid()
        self._discard = weakref.finalize(self, _remove, process, folder, self._lock)

    def _check(self) -> None:
        if not self.target.parent.is_dir():
            raise InputError(
                f"{self.name}: the folder {self.target.parent} does not exist: "
                "create it first."
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
            raise InputError(
                f"{self.name} is a folder, not a Zarr store, so it is not replaced: "
                "choose another path."
            )

    def _exists(self) -> InputError:
        start = f"{self.name} exists already: choose another path, or"
        remedy = "remove it first"
        if self._overwrite is not None:
            remedy = "replace it with overwrite=True"
        return OptionError(
            f"{start} {remedy}.", command=f"{start} replace it with --overwrite."
        )

    def __enter__(self) -> Self:
        """Lock the hidden folder, and remove files that a killed process left in it."""
        with ExitStack() as stack:
            stack.callback(self._discard)
            stack.enter_context(writing(self.name))
            # Another writer that has just finished may remove the folder before it is
            # locked, so try again.
            for _ in range(100):
                with suppress(FileNotFoundError):
                    self._lock.acquire()
                    break
            clear(self._folder)
            self.path.parent.mkdir()
            self._check()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        """Complete and commit the output, or discard it after an error."""
        with writing(self.name), ExitStack() as stack:
            stack.callback(self._discard)
            self._close()
            if error is not None:
                raise error
            self.finish()
            commit([self])

    def _close(self) -> None:
        """Close the files of the output, after success or an error.

        The base class has no files.
        """

    def finish(self) -> None:
        """Complete the output before it is moved to the target.

        The base class does nothing.
        """

    @contextmanager
    def begun(self) -> Iterator[Self]:
        """Begin the output, and discard it at the end of the ``with`` block.

        An output that has been moved to the target by `commit` is not discarded.
        """
        with ExitStack() as stack:
            stack.callback(self._discard)
            yield self.__enter__()

    def _place(self) -> None:
        """Move the output to the target, and the old output, if any, to `path`."""
        self._check()
        is_exchange = bool(self._overwrite) and os.path.lexists(self.target)
        with writing(self.name):
            try:
                self._move(self.path, self.target, is_exchange)
            except FileExistsError:  # the target appeared after the check
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
    """Begin several outputs, and move all or none of them when the block ends.

    Parameters
    ----------
    outputs : sequence of AtomicOutput
        Outputs, each of which must be written to its ``path`` in the ``with`` block.

    Raises
    ------
    InputError
        If an output cannot be written.
    """
    with ExitStack() as stack:
        # All processes acquire the locks in the same order, so they cannot deadlock.
        for output in sorted(outputs, key=lambda output: output.target):
            stack.enter_context(output.begun())
        yield
        commit(outputs)


def commit(outputs: Sequence[AtomicOutput]) -> None:
    """Move outputs to their targets; if one cannot be moved, undo all moves.

    Parameters
    ----------
    outputs : sequence of AtomicOutput
        Outputs that have been begun and written.

    Raises
    ------
    InputError
        If a target has appeared in the meantime or cannot be written.
    """
    written = [output.path.lstat() for output in outputs]
    try:
        for output in outputs:
            output._place()
    except BaseException:
        for output, status in zip(outputs, written, strict=True):
            target = output.target
            if os.path.lexists(target) and os.path.samestat(target.lstat(), status):
                output._move(target, output.path, os.path.lexists(output.path))
        raise


@contextmanager
def scratch_folder(parent: PathLike, name: str) -> Iterator[Path]:
    """Create a temporary folder, which is removed when the ``with`` block ends.

    If the process is killed, the folder is left behind, but `mmcnb doctor` finds it.

    Parameters
    ----------
    parent : path
        Folder in which to create the temporary folder.
    name : str
        Prefix of the name of the temporary folder.

    Yields
    ------
    Path
        Path of a writable folder inside the temporary folder.

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
    """Return the path of an output for messages, without the hidden folder."""
    path = Path(target).absolute()
    return str(path).replace(f"{PART}{path.name}{os.sep}{NEW}{os.sep}", "")


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Convert OSError and lock timeouts to an InputError with a full sentence."""
    try:
        yield
    except OSError as error:
        # The timeout of a lock has no errno, whereas the timeout of a network disk has
        # one.
        if isinstance(error, TimeoutError) and error.errno is None:
            raise InputError(
                f"{name} is being written by another process: "
                "wait for it, or choose another path."
            ) from error
        reason = f" ({error.strerror or error})"
        remedy = "choose a writable path"
        if error.errno in DISK_FULL:
            reason = f", because the disk is full{reason}"
            remedy = "free some space or choose a path on another disk"
        raise InputError(
            f"{name} could not be written{reason}: {remedy}; nothing was left behind."
        ) from error


def _renamed(source: Path, target: Path, is_exchange: bool) -> bool:
    """Try to rename ``source`` to ``target``, or to exchange them, atomically.

    An existing target is not replaced. Return whether the operation succeeded. Only
    Linux supports it, and only on some file systems.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    folder = -100  # AT_FDCWD: relative paths are relative to the working directory
    flag = 2 if is_exchange else 1  # RENAME_EXCHANGE or RENAME_NOREPLACE
    status = rename(folder, os.fsencode(source), folder, os.fsencode(target), flag)
    if status != 0 and ctypes.get_errno() == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    return bool(status == 0)


def _remove(process: int, folder: Path, lock: BaseFileLock) -> None:
    """Remove the hidden folder of an output, and release its lock.

    A forked child does nothing, because the folder belongs to its parent.
    """
    if os.getpid() != process:
        return
    if not lock.is_locked:
        # A writer that was stopped before it acquired the lock may have created the
        # folder.
        with suppress(OSError):
            folder.rmdir()
        return
    # After an error, Zarr's threads may still be writing files, so clean up again when
    # the process exits.
    if sys.exc_info()[0] is not None:
        atexit.register(inspect, folder)
    try:
        with ExitStack() as stack:
            stack.callback(unlock, folder, lock)
            stack.callback(clear, folder)  # again, if the first call is interrupted
            clear(folder)
    # An exception here would hide the exception of the ``with`` block, so only warn.
    except OSError as error:
        warnings.warn(
            f"{folder} could not be removed ({one_line(error)}); "
            f"mmcnb doctor --clean {folder.parent} removes it.",
            stacklevel=2,
        )
