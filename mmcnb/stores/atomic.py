"""Outputs that appear complete or not at all: written beside their place, then moved there.

`atomic_write` is for single files, `AtomicOutput` for stores and tables, `together` for several of these.
Each is written in a folder ``.part-…-NAME``, which tells whether its process is alive.
"""

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Self

from mmcnb.errors import InputError
from mmcnb.samples._inventory import PathLike, is_store_folder
from mmcnb.stores._exchange import exchange, move_to_free
from mmcnb.stores._leftovers import GONE, NEW, OwnedFolder, leftovers, target_of

logger = logging.getLogger("mmcnb")
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
        Where to write meanwhile, in the same folder. None is a new hidden folder. A fixed name suits files
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
    >>> from mmcnb.stores.atomic import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/notes.txt") as file:
    ...         _ = file.write(b"complete")
    ...     [entry.read_bytes() for entry in pathlib.Path(folder).iterdir()]
    [b'complete']
    """
    target = Path(path).absolute()
    aside = OwnedFolder(target)
    try:
        if part is None:
            _tell_leftovers(target, str(path))
            aside.make()
            part = aside.new / target.name
        with part.open("wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        part.replace(target)
        if sync:
            _sync_folder(target.parent)
    except BaseException:
        if part is not None:
            part.unlink(missing_ok=True)
        raise
    finally:
        aside.remove()


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

    After an error what was written is removed, and the target is as before. What is replaced changes places
    with the new in one step, where the system can.

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
        Where to write, on the same disk.
    name : str

    Raises
    ------
    InputError
        The target exists, its folder does not, or, at the end of the ``with`` block, the output could not
        be written.
    """

    def __init__(self, target: PathLike, overwrite: bool = False, name: str | None = None) -> None:
        self.target = Path(target).absolute()
        self.name = name or str(_seen(self.target))
        self.overwrite = overwrite
        self._check()
        self._folder = OwnedFolder(self.target)
        self.path = self._folder.new / self.target.name

    def _check(self) -> None:
        if not self.target.parent.is_dir():
            raise InputError(f"{self.name}: the folder {self.target.parent} does not exist: make it first.")
        if not os.path.lexists(self.target):
            return
        if not self.overwrite:
            raise self._exists()
        if self.target.is_dir() and not is_store_folder(self.target) and any(self.target.iterdir()):
            raise InputError(
                f"{self.name} is a folder and no Zarr store, so it is not replaced: choose another path."
            )

    def _exists(self) -> InputError:
        return InputError(f"{self.name} exists already: choose another path, or replace it with --overwrite.")

    def begin(self) -> None:
        """Make the folder of `path`, and say what killed commands have left beside the target."""
        if self._folder.is_made:
            return
        with self._worded():
            _tell_leftovers(self.target, self.name)
            self._folder.make()

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit, or discard after an error."""
        with self.discarding():
            if error is not None:
                raise error
            commit([self])

    @contextmanager
    def discarding(self) -> Iterator[None]:
        """Discard what was written where the ``with`` block fails; a full disk becomes one sentence."""
        try:
            with self._worded():
                yield
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove what was written so far, or what it has replaced."""
        self._folder.remove()

    def _place(self) -> None:
        """Let what was written and what is at the target change places."""
        self._check()
        try:
            if self.overwrite and os.path.lexists(self.target):
                exchange(self.path, self.target, self._folder.old)
            else:
                move_to_free(self.path, self.target)
        except FileExistsError:  # since a moment ago
            raise self._exists() from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with ExitStack() as stack:
            with self._worded():
                stack.enter_context(self._folder.turn())
            yield

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """Turn an error of the disk into a sentence."""
        try:
            yield
        except OSError as error:
            raise write_error(self.name, error) from error

    def _take_back(self) -> None:
        if os.path.lexists(self.path):
            exchange(self.path, self.target, self._folder.old)
        else:
            move_to_free(self.target, self.path)


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
    try:
        for output in outputs:
            output.begin()
        yield
        commit(outputs)
    finally:
        for output in outputs:
            output.discard()


def commit(outputs: Sequence[AtomicOutput]) -> None:
    """Move what was written to its places; where one cannot be taken, all are as before.

    Parameters
    ----------
    outputs : sequence of AtomicOutput
        Begun and written.

    Raises
    ------
    InputError
        A place was taken meanwhile, or cannot be written.
    """
    with ExitStack() as stack:
        for output in sorted(outputs, key=lambda output: output.target):  # in one order: no ring waits
            stack.enter_context(output._turn())
        _place_all(outputs)
    for output in outputs:
        output.discard()


def _place_all(outputs: Sequence[AtomicOutput]) -> None:
    for output in outputs:
        output._check()
    written = [os.lstat(output.path) for output in outputs]
    try:
        for output in outputs:
            with output._worded():
                output._place()
    except BaseException:
        for output, status in zip(outputs, written, strict=True):
            if os.path.lexists(output.target) and os.path.samestat(os.lstat(output.target), status):
                output._take_back()
        raise


def _seen(target: Path) -> Path:
    """The place of an output for messages: one that is written beside another output is a part of that."""
    aside = target.parent.parent
    whole = target_of(aside) if target.parent.name == NEW else None
    return target if whole is None else whole


def _tell_leftovers(target: Path, name: str) -> None:
    gone = [one.path.name for one in leftovers(target.parent, target.name) if one.owner == GONE]
    if gone:
        logger.warning(
            "%s: a killed command left %s beside it; `mmcnb doctor --clean %s` removes it.",
            *(name, ", ".join(gone), target.parent),
        )


@contextmanager
def scratch_folder(parent: PathLike, name: str) -> Iterator[Path]:
    """A folder that goes at the end of the ``with`` block, and that `mmcnb doctor` knows after a kill.

    Parameters
    ----------
    parent : path
        Where it is made.
    name : str
        What it is for; a part of its name.

    Yields
    ------
    Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.stores import scratch_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with scratch_folder(folder, "work") as scratch:
    ...         _ = (scratch / "notes.txt").write_text("for a while")
    ...     list(pathlib.Path(folder).iterdir())
    []
    """
    folder = OwnedFolder(Path(parent).absolute() / name)
    folder.make()
    try:
        yield folder.new
    finally:
        folder.remove()


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
