"""Checkpoints, which record the total of each pass of a fit.

A fit depends on the rows only through the totals of its passes; all other steps are
deterministic. A resumed fit runs again from the start, but takes the totals of recorded
passes from the checkpoint instead of reading the rows. Its result is bitwise identical
to the result of an uninterrupted fit.
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
        Path of the folder. The folder is created if it does not exist; its parent must
        exist.
    identity : mapping of str to str, float, int, bool, None or dict
        All values that the result of the fit depends on. The keys are the names of the
        values in messages. If two values of the form ``{"digest": ...}`` differ, the
        message does not show them.

    Attributes
    ----------
    seed : int
        Random seed that is used if the user has not set one. It is drawn when the
        folder is created.

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
        """Text that identifies the fit; it is part of the fingerprint of each pass."""
        return json.dumps([self.identity, self.seed], sort_keys=True)

    def recall(self, number: int, mark: str) -> tuple[Any] | None:
        """Return a tuple with the recorded total of pass ``number`` as its only item.

        The result is None if the pass is not recorded or its entry is damaged.

        Raises
        ------
        InputError
            If the pass recorded under ``number`` does not have the fingerprint
            ``mark``.
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
        """Record the total of pass ``number``, which has the fingerprint ``mark``."""
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
        # Use the recorded identity: 3 and 3.0 are equal, but differ as text in `mark`.
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
        """Convert a lock timeout or an OSError to an InputError."""
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
    """An engine that takes totals from a checkpoint, and records new totals in it.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes that are not recorded yet.
    checkpoint : Checkpoint
        A checkpoint whose ``with`` block has been entered.
    least_bytes : int, default=32 MiB
        Passes over rows in memory are recorded only if the rows occupy at least this
        many bytes, because passes over smaller arrays are faster to repeat. Only
        recorded passes are numbered, so the interrupted fit and the resumed fit must
        use the same threshold.
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
        """Yield the totals of all groups of rows, without recording them."""
        return self.engine.groups(pass_, samples)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Return features that the wrapped engine caches."""
        return self.engine.cache(features, store, capacity)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return the results of a function for all items.

        The items may run in any order, so the passes that they run cannot be numbered
        and are not recorded.
        """
        was_unordered = self._unordered
        self._unordered = True
        try:
            return self.engine.each(function, items)
        finally:
            self._unordered = was_unordered

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """Return the recorded total of a pass, or run the pass and record its total."""
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
    """Return a JSON value that identifies the value of a parameter.

    An array with two or more axes is replaced by its digest.
    """
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return {"digest": fingerprint(value)}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _bytes_in_memory(samples: Samples) -> float:
    """Return the number of bytes that the rows ``samples`` occupy in memory."""
    if samples.is_sparse:
        return samples.n_samples * samples.row_bytes
    # For derived samples, ``row_bytes`` is the size of the row from which a derived row
    # is computed.
    return samples.n_samples * samples.n_features * samples.dtype.itemsize


def environment() -> dict[str, str]:
    """Return the library versions and the processor.

    The last bits of results depend on them.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import environment
    >>> sorted(environment())[0]
    'the processor'
    """
    return versions() | {"the processor": processor()}


def versions() -> dict[str, str]:
    """Return the versions of mmcnb and of the libraries that affect results.

    The workers and their client must have the same versions.
    """
    from mmcnb import __version__

    numbers = {"mmcnb": __version__} | {name: version(name) for name in LIBRARIES}
    return {f"the version of {name}": number for name, number in numbers.items()}


def differences(
    recorded: Mapping[str, Any], current: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a clause for messages about each difference between two identities.

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
        If the path is a file, the folder contains a symbolic link, the folder contains
        other files but no checkpoint, or the parent of the folder does not exist.
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
    """Return the number of passes recorded in a checkpoint folder.

    The result is 0 if the folder does not exist.

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
    """Return the parsed ``run.json`` of a checkpoint folder, or None if it has none."""
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
