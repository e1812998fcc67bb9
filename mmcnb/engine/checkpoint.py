"""Checkpoints: a journal of what the passes of a fit gave.

All that a fit learns from the rows are the totals of its passes, and what it makes of them is
deterministic. So a fit goes on where it was by running again over the totals that are recorded: it ends
with the same bits, and reads no row for any of them.
"""

import json
import logging
import os
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mmcnb.engine.journal import PART, DamagedEntryError, fingerprint, read_entry, whole_file, write_entry
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine, Found, Pass, Total
from mmcnb.errors import InputError, is_interrupt
from mmcnb.samples import Samples

logger = logging.getLogger("mmcnb")
FORMAT = 1
LITTLE = 32 * 2**20  # bytes of rows in memory that are quicker swept again than recorded
RUN, LOCK, PASSES = "run.json", "lock", "passes"
OURS = {RUN, RUN + PART, LOCK, PASSES}
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "piqp")
REMEDY = "give checkpoint another folder, or delete this one"


class Checkpoint:
    """A folder that keeps how far a fit has come, for one fit at a time.

    Parameters
    ----------
    folder : path
        Made where it is not there yet; its parent must be.
    identity : mapping of str to str, float, int, bool, None or dict
        What the answer depends on, by the names used in messages; what is ``{"digest": ...}`` is said
        to differ, without its value.

    Attributes
    ----------
    seed : int
        Drawn when the folder was made, for fits that are given no seed.

    Raises
    ------
    InputError
        On entering: the folder holds another fit or other things, is in use, or cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self.folder, self.name = Path(folder).absolute(), os.fspath(folder)
        self.identity = json.loads(json.dumps(identity, default=_plain))
        self.seed = secrets.randbelow(2**31 - 1)

    def __enter__(self) -> Self:
        check_folder(self.folder)
        try:
            self.folder.mkdir(exist_ok=True)
            self._lock = _lock(self.folder / LOCK)
        except OSError as error:
            raise self._write_error(error) from error
        if self._lock is None:
            raise InputError(f"checkpoint {self.name} is in use by another fit; wait for it, or {REMEDY}.")
        try:
            self._open()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._write_run(finished=True)
        finally:
            assert self._lock is not None
            os.close(self._lock)
        if error is not None and is_interrupt(error):
            error.add_note(
                f"The fit was stopped; what it had found is kept: fit again with checkpoint={self.name!r} "
                "to go on from there."
            )

    # -- the folder --------------------------------------------------------------------------

    def _open(self) -> None:
        """Take up the run that is there, or begin one."""
        run = _read_run(self.folder)
        if run is None:
            self._write_run(finished=False)
            return
        differing = list(differences(run["identity"], self.identity))
        if differing:
            raise InputError(f"checkpoint {self.name} is of another fit: {', '.join(differing)}; {REMEDY}.")
        self.seed = run["seed"]
        for part in (self.folder / PASSES).glob(f"*{PART}"):
            part.unlink()
        logger.info("going on from %s, where %d passes are kept.", self.name, len(self))

    def _write_run(self, finished: bool) -> None:
        run = {"format": FORMAT, "identity": self.identity, "seed": self.seed, "finished": finished}
        try:
            (self.folder / PASSES).mkdir(exist_ok=True)
            with whole_file(self.folder / RUN) as file:
                file.write(json.dumps(run, indent=2).encode() + b"\n")
        except OSError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: OSError) -> InputError:
        return InputError(
            f"checkpoint {self.name} could not be written ({error.strerror or error}); free some space or "
            "mend its permissions and fit again to go on, or give checkpoint another folder."
        )

    # -- the journal -------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of passes that are kept."""
        return sum(path.suffix != PART for path in (self.folder / PASSES).iterdir())

    def path_of(self, number: int) -> Path:
        """The file of a pass."""
        return self.folder / PASSES / f"{number:06d}"

    def recall(self, number: int, mark: str) -> tuple[Any] | None:
        """The total of a pass in a tuple of one; None where it is not kept, or damaged.

        Raises
        ------
        InputError
            If another pass is kept there.
        """
        try:
            kept, total = read_entry(self.path_of(number))
        except FileNotFoundError:
            return None
        except DamagedEntryError:
            logger.warning("checkpoint %s: pass %d is damaged and is run again.", self.name, number)
            return None
        if kept != mark:
            raise InputError(
                f"checkpoint {self.name}: pass {number} of this fit is not the one kept there, so code or a "
                f"library has changed; {REMEDY}."
            )
        return (total,)

    def keep(self, number: int, mark: str, total: Any) -> None:
        """Record the total of a pass."""
        try:
            write_entry(self.path_of(number), mark, total)
        except OSError as error:
            raise self._write_error(error) from error


class CheckpointEngine(Engine):
    """An engine that asks a checkpoint before it runs a pass, and tells it what the pass gave.

    Passes over little data in memory are run without: they are done again sooner than recorded.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    checkpoint : Checkpoint
        An entered one.
    little : int, default=32 MiB
        Bytes of rows in memory from which a pass is recorded. It decides how passes are numbered, so it
        may depend on nothing but the fit.
    """

    def __init__(self, engine: Engine, checkpoint: Checkpoint, little: int = LITTLE) -> None:
        super().__init__(engine.show_progress)
        self.engine, self.checkpoint, self.little = engine, checkpoint, little
        self.traffic = engine.traffic
        self.passes = 0
        self._unordered = False

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """The totals of all groups of rows, in order, as the engine gives them."""
        return self.engine.groups(pass_, samples)

    def cache(self, features: Samples, plan: FitPlan) -> Samples:
        """Hold features as the engine does."""
        return self.engine.cache(features, plan)

    def each(self, function: Callable[[Any], Found], items: Sequence[Any]) -> list[Found]:
        """What a function finds for each item; its passes are short, and in no order to be recorded in."""
        already, self._unordered = self._unordered, True
        try:
            return self.engine.each(function, items)
        finally:
            self._unordered = already

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """The total of a pass: recalled where the checkpoint has it, otherwise run and recorded."""
        if self._unordered or (not samples.is_reopenable and _held_bytes(samples) < self.little):
            return self.engine.run(pass_, samples, description)
        number, self.passes = self.passes, self.passes + 1
        mark = fingerprint(pass_, samples.n_samples, samples.n_features, samples.dtype.str, samples.is_sparse)
        kept = self.checkpoint.recall(number, mark)
        if kept is not None:
            self.traffic.resumed = True
            return kept[0]
        total = self.engine.run(pass_, samples, description)
        self.checkpoint.keep(number, mark, total)
        return total


def _plain(value: Any) -> Any:
    """A number or an array of NumPy's as JSON holds it."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _held_bytes(samples: Samples) -> float:
    if samples.is_sparse:
        return samples.n_samples * samples.row_bytes
    return samples.n_samples * samples.n_features * samples.dtype.itemsize


def environment() -> dict[str, str]:
    """What the last bits of an answer depend on beside the fit: versions and the processor.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import environment
    >>> sorted(environment())[0]
    'the processor'
    """
    from mmcnb import __version__

    versions = {"mmcnb": __version__} | {name: version(name) for name in LIBRARIES}
    return {f"the version of {name}": number for name, number in versions.items()} | {
        "the processor": _processor()
    }


def _processor() -> str:
    try:
        facts = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in facts.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Word what differs between two identities.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import differences
    >>> list(differences({"C": 3, "the rows": {"digest": "a"}}, {"C": 10, "the rows": {"digest": "b"}}))
    ['C is 3 there and 10 here', 'the rows differ']
    """
    for name in {**there, **here}:
        old, new = there.get(name), here.get(name)
        if old == new:
            continue
        if isinstance(old, dict) or isinstance(new, dict):
            yield f"{name} differ"
        else:
            yield f"{name} is {old!r} there and {new!r} here"


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse what can be no folder of a checkpoint.

    Raises
    ------
    InputError
        If it is a file, holds other things, or lies in a folder that is not there.
    """
    path = Path(folder).absolute()
    if not path.parent.is_dir():
        raise InputError(f"checkpoint {folder}: the folder {path.parent} does not exist; make it first.")
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"checkpoint {folder} is a file; give checkpoint a folder.")
    names = {entry.name for entry in path.iterdir()}
    if RUN not in names and not names <= OURS:
        raise InputError(
            f"checkpoint {folder} is a folder that holds other things; give checkpoint a folder of its own."
        )


def is_finished(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is the checkpoint of a fit that came to its end.

    Examples
    --------
    >>> import tempfile
    >>> from mmcnb.engine.checkpoint import is_finished
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_finished(folder)
    False
    """
    path = Path(folder)
    run = _read_run(path) if path.is_dir() else None
    return run is not None and run["finished"]


def _read_run(folder: Path) -> dict[str, Any] | None:
    """What a folder says of its fit; None where it says nothing."""
    path = folder / RUN
    try:
        run = json.loads(path.read_bytes())
        whole = run["format"] == FORMAT and isinstance(run["finished"], bool)
        whole = whole and isinstance(run["identity"], dict) and isinstance(run["seed"], int)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} could not be read ({error.strerror}); {REMEDY}.") from error
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise InputError(f"{path} is no checkpoint that this version of mmcnb can read; {REMEDY}.")
    return run


def _lock(path: Path) -> int | None:
    """A lock that goes when its process does, as a file descriptor; None where another holds it."""
    import fcntl

    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    except BaseException:
        os.close(number)
        raise
    return number
