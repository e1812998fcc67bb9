"""Checkpoints: a journal of the totals of the passes of a fit.

All that a fit learns from the rows are the totals of its passes, and what it makes of
them is deterministic. So a fit resumes by running again over the recorded totals: it
ends with the same bits, and reads no row for any of them. An entry is an archive of the
arrays of a total; its header has the fingerprint of the pass and the form of the total.
"""

import hashlib
import json
import logging
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout
from scipy.sparse import csr_array

from mmcnb._machine import processor
from mmcnb.engine.run import Engine, Pass, Result, Total
from mmcnb.errors import InputError, is_interrupt, shown
from mmcnb.samples import Samples
from mmcnb.samples.files import read_document
from mmcnb.stores.archive import DamagedArchiveError, read_archive, write_archive
from mmcnb.stores.atomic import atomic_write

logger = logging.getLogger("mmcnb")
FORMAT = 3
RUN = "run.json"
LOCK = "lock"
PASSES = "passes"
# of files being written: one writer at a time, so that one name serves and is written
# over
PART = ".part"
OURS = {RUN, RUN + PART, LOCK, PASSES}
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")
REMEDY = "give checkpoint another folder, or delete this one"


class Checkpoint:
    """A folder that records how far a fit has come, for one fit at a time.

    Parameters
    ----------
    folder : path
        Made where it does not exist; its parent must.
    identity : mapping of str to str, float, int, bool, None or dict
        What the answer depends on, by the names used in messages. A value ``{"digest":
        ...}`` is only said to differ.

    Attributes
    ----------
    seed : int
        Drawn when the folder was made, for fits that are given no seed.

    Raises
    ------
    InputError
        On entering: the folder holds another fit or other things, is in use, or cannot
        be written.
    """

    def __init__(
        self, folder: str | os.PathLike[str], identity: Mapping[str, Any]
    ) -> None:
        self.folder, self.name = Path(folder).absolute(), os.fspath(folder)
        self.identity = json.loads(json.dumps(identity, default=_described))
        self.seed = secrets.randbelow(2**31 - 1)

    def __enter__(self) -> Self:
        check_folder(self.folder)
        with ExitStack() as stack:
            with self._writing():
                self.folder.mkdir(exist_ok=True)
                # The lock goes when its process does.
                stack.enter_context(
                    FileLock(self.folder / LOCK).acquire(blocking=False)
                )
            self._open()
            self._locked = stack.pop_all()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._locked:
            if error is None:
                self._write_run(finished=True)
        if error is not None and is_interrupt(error):
            remedy = f"fit again with checkpoint={self.name!r} to go on from there"
            error.add_note(f"The fit was stopped; what it had found is kept: {remedy}.")

    @property
    def mark(self) -> str:
        """Which fit this is, of which rows and from which seed: passes of others may look the same."""
        return json.dumps([self.identity, self.seed], sort_keys=True)

    def recall(self, number: int, mark: str) -> tuple[Any] | None:
        """The total of a pass in a tuple of one; None where it is not recorded, or damaged.

        Raises
        ------
        InputError
            If another pass is recorded there.
        """
        if not (entry := self._entry(number)).exists():
            return None
        try:
            recorded, total = read_entry(entry)
        except DamagedArchiveError:
            logger.warning(
                "checkpoint %s: pass %d is damaged and is run again.", self.name, number
            )
            return None
        if recorded != mark:
            fault = f"checkpoint {self.name}: pass {number} of this fit is not the one kept there"
            raise InputError(
                f"{fault}, so code, a library or that file has changed; {REMEDY}."
            )
        return (total,)

    def record(self, number: int, mark: str, total: Any) -> None:
        """Record the total of a pass."""
        with self._writing():
            write_entry(self._entry(number), mark, total)

    def _entry(self, number: int) -> Path:
        return self.folder / PASSES / f"{number:06d}"

    def _open(self) -> None:
        """Take up the run that is there, or begin one."""
        for part in (
            self.folder / (RUN + PART),
            *(self.folder / PASSES).glob(f"*{PART}"),
        ):
            part.unlink(missing_ok=True)
        run = _read_run(self.folder)
        if run is None:
            self._write_run(finished=False)
            return
        if differing := ", ".join(differences(run["identity"], self.identity)):
            raise InputError(
                f"checkpoint {self.name} is of another fit: {differing}; {REMEDY}."
            )
        # 3 as it was written, where 3.0 is given
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
            with atomic_write(
                self.folder / RUN, part=self.folder / (RUN + PART)
            ) as file:
                file.write(json.dumps(run, indent=2).encode() + b"\n")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an error of the disk into a sentence."""
        try:
            yield
        except Timeout:
            fault = f"checkpoint {self.name} is in use by another fit"
            raise InputError(f"{fault}; wait for it, or {REMEDY}.") from None
        except OSError as error:
            fault = f"checkpoint {self.name} could not be written ({error.strerror or error})"
            remedy = "free some space or mend its permissions and fit again to go on"
            raise InputError(
                f"{fault}; {remedy}, or give checkpoint another folder."
            ) from error


class CheckpointEngine(Engine):
    """An engine that looks a pass up in a checkpoint before it runs it, and records what it gave.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    checkpoint : Checkpoint
        An entered one.
    least_bytes : int, default=32 MiB
        Bytes of rows in memory from which a pass is recorded: over fewer it is run
        again in less time. It decides how passes are numbered, so it may depend on
        nothing but the fit.
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
        """The totals of all groups of rows, in order, as the engine gives them."""
        return self.engine.groups(pass_, samples)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Cache features as the engine does."""
        return self.engine.cache(features, store, capacity)

    def each(
        self, function: Callable[[Any], Result], items: Sequence[Any]
    ) -> list[Result]:
        """The results for all items; their passes are short, and in no order to be recorded in."""
        already = self._unordered
        self._unordered = True
        try:
            return self.engine.each(function, items)
        finally:
            self._unordered = already

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """The total of a pass: recalled where the checkpoint has it, otherwise run and recorded."""
        if self._unordered or (
            not samples.is_reopenable and _bytes_in_memory(samples) < self.least_bytes
        ):
            return self.engine.run(pass_, samples, description)
        number = self.passes
        self.passes = self.passes + 1
        shape = (
            samples.n_samples,
            samples.n_features,
            samples.dtype.str,
            samples.is_sparse,
        )
        mark = fingerprint(self.checkpoint.mark, pass_, *shape)
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
    """A parameter that JSON does not know; a large array as a digest of its numbers."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return {"digest": fingerprint(value)}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _bytes_in_memory(samples: Samples) -> float:
    """Bytes of rows in memory; of derived dense rows, ``row_bytes`` tells what they are computed from."""
    dense = samples.n_features * samples.dtype.itemsize
    return samples.n_samples * (samples.row_bytes if samples.is_sparse else dense)


def environment() -> dict[str, str]:
    """What the last bits of an answer depend on beside the fit: versions and the processor.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import environment
    >>> sorted(environment())[0]
    'the processor'
    """
    return versions() | {"the processor": processor()}


def versions() -> dict[str, str]:
    """What the bits of a total depend on and workers must share with their client, by name."""
    from mmcnb import __version__

    numbers = {"mmcnb": __version__} | {name: version(name) for name in LIBRARIES}
    return {f"the version of {name}": number for name, number in numbers.items()}


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Say what differs between two identities.

    Examples
    --------
    >>> from mmcnb.engine.checkpoint import differences
    >>> list(differences({"C": 3, "the rows": {"digest": "a"}}, {"C": 10, "the rows": {"digest": "b"}}))
    ['C is 3 there and 10 here', 'the rows differ']
    """
    for name in {**there, **here}:
        old = there.get(name)
        new = here.get(name)
        if old != new:
            is_digest = any(
                isinstance(one, dict) and "digest" in one for one in (old, new)
            )
            values = f"is {shown(old)} there and {shown(new)} here"
            yield f"{' '.join(name.split())[:120]} {'differ' if is_digest else values}"


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse what can be no folder of a checkpoint.

    Raises
    ------
    InputError
        If it is a file, holds other things, or its parent does not exist.
    """
    path = Path(folder).absolute()
    if not path.parent.is_dir():
        raise InputError(
            f"checkpoint {folder}: the folder {path.parent} does not exist; make it first."
        )
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"checkpoint {folder} is a file; give checkpoint a folder.")
    if linked := [entry.name for entry in path.iterdir() if entry.is_symlink()]:
        fault = f"checkpoint {folder} has a link, {linked[0]!r}, by which a fit would write elsewhere"
        raise InputError(f"{fault}; {REMEDY}.")
    names = {entry.name for entry in path.iterdir()}
    if RUN not in names and not names <= OURS:
        fault = f"checkpoint {folder} is a folder that holds other things"
        raise InputError(f"{fault}; give checkpoint a folder of its own.")


def recorded_passes(folder: str | os.PathLike[str]) -> int:
    """Number of passes that a folder holds; 0 of a folder that is not there.

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
    """Whether a folder is the checkpoint of a fit that has finished.

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
    """What a folder says of its fit; None where it says nothing."""
    path = folder / RUN
    kinds = {"format": int, "identity": dict, "seed": int, "finished": bool}
    if not path.exists():
        return None
    text = read_document(path)
    try:
        run = json.loads(text)
        is_run = (
            all(type(run[name]) is kind for name, kind in kinds.items())
            and 0 <= run["seed"] < 2**31
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        is_run = False
    if not is_run:
        raise InputError(
            f"{path} is no checkpoint that this version of mmcnb can read; {REMEDY}."
        )
    if run["format"] != FORMAT:
        fault = f"{path} is a checkpoint of format {run['format']}"
        raise InputError(
            f"{fault}, and this version of mmcnb resumes from format {FORMAT} alone; {REMEDY}."
        )
    return run


# -- entries ---------------------------------------------------------------------------


def fingerprint(*values: Any) -> str:
    """blake2b of passes, their parameters and whatever else says what is computed.

    Parameters
    ----------
    *values : None, bool, int, float, str, ndarray, list, tuple, or dataclass of these
        Fields of a dataclass that are not compared are left out.

    Returns
    -------
    str
        The same in any process for the same types and bits.
    """
    arrays: list[np.ndarray] = []
    form = json.dumps(_encode(_by_names(values), arrays))
    digest = hashlib.blake2b(form.encode(), digest_size=16)
    for array in arrays:
        digest.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _by_names(value: Any) -> Any:
    """A value with tuples of its names and values in place of each dataclass."""
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.compare]
        return type(value).__qualname__, [
            (name, _by_names(getattr(value, name))) for name in names
        ]
    return type(value)(map(_by_names, value)) if type(value) in (list, tuple) else value


def write_entry(path: Path, mark: str, total: Any) -> None:
    """Write the total of a pass to a file, which appears complete or not at all.

    Parameters
    ----------
    path : Path
        The file; one that is there is replaced.
    mark : str
        Fingerprint of the pass.
    total : None, bool, int, float, str, ndarray, NumPy number, CSR array, or list or tuple of these
        What the pass gave.

    Raises
    ------
    OSError
        If it cannot be written; what stood there still stands.
    """
    arrays: list[np.ndarray] = []
    header = {"pass": mark, "total": _encode(total, arrays)}
    _check_numbers(arrays)
    write_archive(
        path,
        header,
        {str(k): array for k, array in enumerate(arrays)},
        Path(f"{path}{PART}"),
    )


def read_entry(path: Path) -> tuple[str, Any]:
    """Read what `write_entry` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    mark : str
        Fingerprint of the pass.
    total : object
        What the pass gave, with the same types and bits.

    Raises
    ------
    InputError
        If there is none, or it cannot be read.
    DamagedArchiveError
        If it is not what was written.
    """
    header, arrays = read_archive(path)
    try:
        _check_numbers(arrays.values())
        return str(header["pass"]), _decode(header["total"], arrays)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise DamagedArchiveError from error  # whole, and no entry


def _check_numbers(arrays: Iterable[np.ndarray]) -> None:
    if any(array.dtype.kind not in "biuf" for array in arrays):
        raise ValueError("an array of a total contains numbers alone")


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """A value as JSON; its arrays are appended to a list, and stand in the JSON by their numbers."""
    if isinstance(value, np.ndarray | np.generic):  # before float: a float64 is one
        arrays.append(np.asarray(value))
        return {
            "array" if isinstance(value, np.ndarray) else "number": str(len(arrays) - 1)
        }
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_encode(part, arrays) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(part, arrays) for part in value]}
    if getattr(value, "format", None) == "csr":
        return {
            "csr": _encode([value.data, value.indices, value.indptr], arrays),
            "shape": value.shape,
        }
    raise TypeError(
        f"a value of type {type(value).__qualname__} cannot be kept in a journal"
    )


def _decode(form: Any, arrays: dict[str, np.ndarray]) -> Any:
    match form:
        case list():
            return [_decode(part, arrays) for part in form]
        case {"number": number}:
            return arrays[number][()]
        case {"array": number}:
            return arrays[number]
        case {"tuple": parts}:
            return tuple(_decode(parts, arrays))
        case {"csr": parts, "shape": shape}:
            matrix = csr_array(tuple(_decode(parts, arrays)), shape=tuple(shape))
            matrix.check_format(full_check=True)
            return matrix
        case dict():
            raise ValueError("no total that a pass gives")
    return form
