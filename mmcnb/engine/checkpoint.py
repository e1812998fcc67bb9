"""Checkpoints: the recorded totals of the passes of a fit.

A fit depends on the rows only through the totals of its passes, and is deterministic
otherwise. A resumed fit runs again from the start, but uses recorded totals instead of
running their passes. Its result has the same bits, and it reads no rows for recorded
passes.
"""

import json
import logging
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

from mmcnb._machine import processor
from mmcnb.engine.entries import PART, fingerprint, read_entry, write_entry
from mmcnb.engine.run import Engine, Item, Pass, Result, Total
from mmcnb.errors import InputError, is_interrupt, shown
from mmcnb.samples import Samples
from mmcnb.samples.files import read_document
from mmcnb.samples.paths import output_path
from mmcnb.stores.archive import DamagedArchiveError
from mmcnb.stores.atomic import atomic_write

logger = logging.getLogger("mmcnb")
FORMAT = 3
RUN = "run.json"
LOCK = "lock"
PASSES = "passes"
OURS = {RUN, RUN + PART, LOCK, PASSES}
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")
REMEDY = "give checkpoint another folder, or delete this one"


class Checkpoint:
    """A folder that records the progress of one fit.

    Parameters
    ----------
    folder : path
        The folder. It is created if it does not exist; its parent must exist.
    identity : mapping of str to str, float, int, bool, None or dict
        Everything the result depends on, by the names used in messages. For values of
        the form ``{"digest": ...}``, a message states only that they differ.

    Attributes
    ----------
    seed : int
        Random seed that was drawn when the folder was created, for fits without a seed.

    Raises
    ------
    InputError
        When the ``with`` block begins, if the folder belongs to another fit, contains
        other files, is in use, or is not writable.
    """

    def __init__(
        self, folder: str | os.PathLike[str], identity: Mapping[str, Any]
    ) -> None:
        self.folder = output_path(folder)
        self.name = os.fspath(folder)
        self.identity = json.loads(json.dumps(identity, default=_described))
        self.seed = secrets.randbelow(2**31 - 1)

    def __enter__(self) -> Self:
        check_folder(self.folder)
        with ExitStack() as stack:
            with self._writing():
                self.folder.mkdir(exist_ok=True)
                # The system releases the lock of a process that is killed.
                lock = FileLock(self.folder / LOCK)
                stack.enter_context(lock.acquire(blocking=False))
            self._open()
            self._locked = stack.pop_all()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        with self._locked:
            if error is None:
                self._write_run(finished=True)
        if error is not None and is_interrupt(error):
            error.add_note(
                "The fit was stopped, and its progress is recorded: "
                f"fit again with checkpoint={self.name!r} to resume."
            )

    @property
    def mark(self) -> str:
        """Text that distinguishes the fit from other fits that have equal passes."""
        return json.dumps([self.identity, self.seed], sort_keys=True)

    def recall(self, number: int, mark: str) -> tuple[Any] | None:
        """Return the recorded total of a pass in a tuple of length one.

        The result is None if the entry is missing or damaged.

        Raises
        ------
        InputError
            If another pass is recorded under this number.
        """
        path = self._entry(number)
        if not path.exists():
            return None
        try:
            recorded_mark, total = read_entry(path)
        except DamagedArchiveError:
            logger.warning(
                "checkpoint %s: pass %d is damaged and is run again.", self.name, number
            )
            return None
        if recorded_mark != mark:
            raise InputError(
                f"checkpoint {self.name}: pass {number} of this fit is not the "
                "recorded one, so code, a library or that file has changed; "
                f"{REMEDY}."
            )
        return (total,)

    def record(self, number: int, mark: str, total: Any) -> None:
        """Record the total of a pass."""
        with self._writing():
            write_entry(self._entry(number), mark, total)

    def _entry(self, number: int) -> Path:
        return self.folder / PASSES / f"{number:06d}"

    def _open(self) -> None:
        """Resume the run that is recorded in the folder, or begin a new one."""
        (self.folder / (RUN + PART)).unlink(missing_ok=True)
        for part in (self.folder / PASSES).glob(f"*{PART}"):
            part.unlink(missing_ok=True)
        run = _read_run(self.folder)
        if run is None:
            self._write_run(finished=False)
            return
        differing = ", ".join(differences(run["identity"], self.identity))
        if differing:
            raise InputError(
                f"checkpoint {self.name} belongs to another fit: {differing}; {REMEDY}."
            )
        # Keep the recorded identity: 3 equals 3.0, but their text in `mark` differs.
        self.identity = run["identity"]
        self.seed = run["seed"]
        passes = recorded_passes(self.folder)
        logger.info(
            "resuming from %s, where %d passes are recorded.", self.name, passes
        )

    def _write_run(self, finished: bool) -> None:
        run = {
            "format": FORMAT,
            "identity": self.identity,
            "seed": self.seed,
            "finished": finished,
        }
        with self._writing():
            (self.folder / PASSES).mkdir(exist_ok=True)
            part = self.folder / (RUN + PART)
            with atomic_write(self.folder / RUN, part=part) as file:
                file.write(json.dumps(run, indent=2).encode() + b"\n")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise InputError with a sentence in place of an error of the disk."""
        try:
            yield
        except Timeout:
            raise InputError(
                f"checkpoint {self.name} is in use by another fit; "
                f"wait for it, or {REMEDY}."
            ) from None
        except OSError as error:
            raise InputError(
                f"checkpoint {self.name} could not be written "
                f"({error.strerror or error}); free some space or fix its "
                "permissions and fit again to resume, "
                "or give checkpoint another folder."
            ) from error


class CheckpointEngine(Engine):
    """An engine that uses the recorded totals of a checkpoint, and records new totals.

    Parameters
    ----------
    engine : Engine
        Engine that runs passes that are not recorded.
    checkpoint : Checkpoint
        The checkpoint, inside its ``with`` block.
    least_bytes : int, default=32 MiB
        Passes over rows in memory are recorded only if the rows have at least this many
        bytes, because it takes less time to repeat a pass over fewer bytes. The
        threshold determines how passes are numbered, so it may depend only on the fit.
    """

    def __init__(
        self, engine: Engine, checkpoint: Checkpoint, least_bytes: int = 32 * 2**20
    ) -> None:
        super().__init__(engine.show_progress)
        self.engine = engine
        self.checkpoint = checkpoint
        self.least_bytes = least_bytes
        self.traffic = engine.traffic
        self.passes = 0
        self._unordered = False

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, computed by the engine."""
        return self.engine.groups(pass_, samples)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Let the engine cache features."""
        return self.engine.cache(features, store, capacity)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return the results for all items, without recording the passes of items.

        Items may run in any order, so their passes cannot be numbered.
        """
        was_unordered = self._unordered
        self._unordered = True
        try:
            return self.engine.each(function, items)
        finally:
            self._unordered = was_unordered

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """Return the recorded total of a pass, or run and record it."""
        is_small = (
            not samples.is_reopenable and _bytes_in_memory(samples) < self.least_bytes
        )
        if is_small or self._unordered:
            return self.engine.run(pass_, samples, description)
        number = self.passes
        self.passes += 1
        mark = fingerprint(
            self.checkpoint.mark,
            pass_,
            samples.n_samples,
            samples.n_features,
            samples.dtype.str,
            samples.is_sparse,
        )
        recorded = self.checkpoint.recall(number, mark)
        if recorded is not None:
            self.traffic.resumed = True
            if self.engine.fit_progress is not None and self.traffic.watches(samples):
                self.engine.fit_progress.update(samples.n_samples)
            return recorded[0]
        total = self.engine.run(pass_, samples, description)
        self.checkpoint.record(number, mark, total)
        return total


def _described(value: Any) -> Any:
    """Return a parameter as JSON; a large array becomes a digest of its numbers."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return {"digest": fingerprint(value)}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _bytes_in_memory(samples: Samples) -> float:
    """Return how many bytes of memory rows occupy."""
    if samples.is_sparse:
        return samples.n_samples * samples.row_bytes
    # ``row_bytes`` of derived rows describes the rows from which they are computed.
    return samples.n_samples * samples.n_features * samples.dtype.itemsize


def environment() -> dict[str, str]:
    """Return the library versions and the processor, which affect the last bits.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import environment
    >>> sorted(environment())[0]
    'the processor'
    """
    return versions() | {"the processor": processor()}


def versions() -> dict[str, str]:
    """Return the versions that must be equal on workers and client, by name."""
    from mmcnb import __version__

    numbers = {"mmcnb": __version__} | {name: version(name) for name in LIBRARIES}
    return {f"the version of {name}": number for name, number in numbers.items()}


def differences(
    recorded: Mapping[str, Any], current: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a clause about each difference between two identities.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import differences
    >>> recorded = {"C": 3, "the rows": {"digest": "a"}}
    >>> list(differences(recorded, {"C": 10, "the rows": {"digest": "b"}}))
    ['C is 3 there and 10 here', 'the rows differ']
    """
    for name in {**recorded, **current}:
        old = recorded.get(name)
        new = current.get(name)
        if old == new:
            continue
        text = " ".join(name.split())[:120]
        if _is_digest(old) or _is_digest(new):
            yield f"{text} differ"
        else:
            yield f"{text} is {shown(old)} there and {shown(new)} here"


def _is_digest(value: object) -> bool:
    return isinstance(value, dict) and "digest" in value


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise InputError if a path cannot be the folder of a checkpoint.

    Raises
    ------
    InputError
        If the path is a file, if the folder contains a link or other files, or if its
        parent does not exist.
    """
    path = output_path(folder)
    if not path.parent.is_dir():
        raise InputError(
            f"checkpoint {folder}: the folder {path.parent} does not exist; "
            "create it first."
        )
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"checkpoint {folder} is a file; give checkpoint a folder.")
    names = set()
    for entry in path.iterdir():
        if entry.is_symlink():
            raise InputError(
                f"checkpoint {folder} has a link, {entry.name!r}, "
                f"through which a fit would write elsewhere; {REMEDY}."
            )
        names.add(entry.name)
    if RUN not in names and not names <= OURS:
        raise InputError(
            f"checkpoint {folder} is a folder that contains other files; "
            "give checkpoint a folder of its own."
        )


def recorded_passes(folder: str | os.PathLike[str]) -> int:
    """Return the number of recorded passes; 0 if the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from mmcnb.engine.checkpoint import recorded_passes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recorded_passes(folder)
    0
    """
    return sum(path.suffix != PART for path in (Path(folder) / PASSES).glob("*"))


def is_finished(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is the checkpoint of a fit that has finished.

    Examples
    --------
    >>> import tempfile
    >>> from mmcnb.engine.checkpoint import is_finished
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_finished(folder)
    False
    """
    run = _read_run(Path(folder))
    return run is not None and run["finished"]


def _read_run(folder: Path) -> dict[str, Any] | None:
    """Return the record of the fit in a folder, or None if the folder has no record."""
    path = folder / RUN
    if not path.exists():
        return None
    text = read_document(path)
    types = {"format": int, "identity": dict, "seed": int, "finished": bool}
    try:
        run = json.loads(text)
        is_run = all(type(run[name]) is type_ for name, type_ in types.items())
        is_run = is_run and 0 <= run["seed"] < 2**31
    except (ValueError, KeyError, TypeError, RecursionError):
        is_run = False
    if not is_run:
        raise InputError(
            f"{path} is not a checkpoint that this version of mmcnb can read; {REMEDY}."
        )
    if run["format"] != FORMAT:
        raise InputError(
            f"{path} is a checkpoint of format {run['format']}, but this version of "
            f"mmcnb only resumes from format {FORMAT}; {REMEDY}."
        )
    return run
