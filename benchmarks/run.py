"""Runs of a study, the options that determine them, and their computation."""

import json
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import (
    LABEL_FREE,
    Data,
    NoData,
    load_once,
    peak_mib,
    reset_peak,
    rows_within,
)

OK = "ok"
FAILED = "failed"
NO_DATA = "no data"
KEYS = ("part", "dataset", "protocol", "method", "parameters", "seed")
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Options:
    """Options of the command line for a study.

    Parameters
    ----------
    out : Path
        Folder for journals, frames and tables and, while a study runs, its stores.
    quick : bool, default=False
        Whether long studies use fewer rows.
    seeds : int or None, default=None
        Number of seeds; None for the study's own number.
    rows : int or None, default=None
        Largest number of rows of each data set; None for no limit.
    parts : sequence of str, default=()
        Names of the sections to run; if empty, all sections run.
    smoke : bool, default=False
        Whether the data sets are tiny; implies `quick`, one seed and few rows.
    jobs : int, default=1
        Number of processes that compute runs.
    retry : bool, default=False
        Whether failed runs are computed again.
    """

    out: Path
    quick: bool = False
    seeds: int | None = None
    rows: int | None = None
    parts: Sequence[str] = ()
    smoke: bool = False
    jobs: int = 1
    retry: bool = False

    @property
    def scale(self) -> str:
        """``"full"``, ``"quick"`` or ``"smoke"``."""
        return self.pick("full", "quick", "smoke")

    def pick(self, full: Choice, quick: Choice, smoke: Choice) -> Choice:
        """Return the option for the scale."""
        return smoke if self.smoke else quick if self.quick else full

    def repeats(self, full: int, quick: int = 1) -> range:
        """Return the seeds: the requested number, or the number of the scale."""
        return range(self.seeds or self.pick(full, quick, quick))

    def rows_of(self, dataset: str, most: int | None = None) -> int | None:
        """Return the number of rows to draw from a data set; None for all rows."""
        return rows_within(dataset, self.rows, most)

    def sized(self, full: int, quick: int) -> int:
        """Return the number of rows of a synthetic data set."""
        rows = self.pick(full, quick, quick)
        return min(rows, self.rows or rows)

    def sizes_within(self, sizes: Sequence[int]) -> list[int]:
        """Return the numbers of rows up to `rows`; only `rows` if all are larger.

        Examples
        --------
        >>> from pathlib import Path
        >>> from benchmarks.run import Options
        >>> [Options(Path("out"), rows=rows).sizes_within((100, 200)) for rows in (None, 150, 50)]
        [[100, 200], [100], [50]]
        """
        return [n for n in sizes if n <= (self.rows or n)] or [self.rows or sizes[0]]


class Run(NamedTuple):
    """A computation whose result is recorded.

    Parameters
    ----------
    dataset, method : str
        Names for the tables.
    seed : int
        Seed of the run.
    parameters : mapping, default={}
        Values that JSON can represent; they become columns of the results.
    protocol : {"label-free", "paper"}, default="label-free"
        Whether parameters are selected without classes, or as in the paper, which may
        use the known classes.
    part : str, default=""
        Section of the study; set by the journal if a study has several sections.
    settings : mapping, default={}
        Everything else that determines the run, such as rows and fixed parameters; a
        recorded run is used only if its settings are equal.
    folder : str, default=""
        Folder for stores of the run, which the journal sets, and removes at the end of
        the study.

    Examples
    --------
    >>> from benchmarks.run import Run
    >>> Run("heart", "k-means", 0, {"n_init": 10}).identity
    ('', 'heart', 'label-free', 'k-means', '{"n_init": 10}', 0)
    """

    dataset: str
    method: str
    seed: int
    parameters: Mapping[str, Any] = {}
    protocol: str = LABEL_FREE
    part: str = ""
    settings: Mapping[str, Any] = {}
    folder: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str, str, int]:
        """Values that identify the run within its study, in the order of `KEYS`."""
        return (
            self.part,
            self.dataset,
            self.protocol,
            self.method,
            as_json(self.parameters),
            int(self.seed),
        )

    @property
    def data(self) -> Data:
        """The data set in memory, with the settings ``rows`` and, if the tables use another name, ``name``."""
        return load_once(
            self.settings.get("name", self.dataset), self.settings.get("rows")
        )


Runs = Iterator[Run]
Compute = Callable[[Run], Mapping[str, Any]]


class Section(NamedTuple):
    """A section of a study; a study with one section has these functions at module level.

    Parameters
    ----------
    grid : callable
        Function of the options that returns a frame of runs.
    compute : callable
        Function of a `Run` that returns a flat mapping with metrics and, if known,
        ``seconds``, ``compile_seconds``, ``peak_mib``, ``n``, ``d`` and ``digest``.
        Metrics are numbers; texts are not in the tidy frame. The function must be at
        module level, so that it can be sent to another process.
    tables : callable
        Function of the frame of results that returns a `benchmarks.tables.Result`.
    follow : tuple of callable, default=()
        Functions of the results so far and the options, each of which returns a frame
        of further runs.
    """

    grid: Callable[[Options], pd.DataFrame]
    compute: Compute
    tables: Callable[[pd.DataFrame], Any]
    follow: tuple[Callable[[pd.DataFrame, Options], pd.DataFrame], ...] = ()


def frame_of_runs(runs: Callable[..., Iterable[Run]]) -> Callable[..., pd.DataFrame]:
    """Decorate a function that yields runs, so that it returns a frame of these runs."""

    @wraps(runs)
    def grid(*given: Any, **named: Any) -> pd.DataFrame:
        return pd.DataFrame(list(runs(*given, **named)), columns=Run._fields)

    return grid


def measured(compute: Compute, run: Run) -> dict[str, Any]:
    """Compute a run, and return its outcome.

    Returns
    -------
    dict
        ``status`` ("ok", "failed", or "no data"), ``reason`` (one line), and ``found``:
        the computed values. ``seconds`` of the whole run and the peak of resident
        memory are added if they are missing.

    Examples
    --------
    >>> from benchmarks.run import Run, measured
    >>> measured(lambda run: {"error": run.seed / 4}, Run("heart", "guess", 1))["found"]["error"]
    0.25
    """
    reset_peak()
    started = time.perf_counter()
    try:
        found = dict(compute(run))
    except NoData as error:
        return {"status": NO_DATA, "reason": _one_line(str(error)), "found": {}}
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        return {"status": FAILED, "reason": _told(error), "found": {}}
    found.setdefault("seconds", time.perf_counter() - started)
    found.setdefault("peak_mib", peak_mib())
    found = {name: _plain(value) for name, value in found.items()}
    fault = _fault(run, found)
    return {
        "status": FAILED if fault else OK,
        "reason": fault,
        "found": {} if fault else found,
    }


def computed(
    compute: Compute, runs: Iterable[Run], jobs: int = 1
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Compute runs, and yield each with the outcome of `measured` as soon as it is available.

    Raises
    ------
    InputError
        If one of several processes was killed.
    """
    if jobs == 1:
        yield from (_with_run(compute, run) for run in runs)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=jobs, backend="loky", batch_size=1, return_as="generator_unordered"
    )
    try:
        yield from parallel(delayed(_with_run)(compute, run) for run in runs)
    except BrokenExecutor as error:
        raise mmcnb.InputError(
            "a process was killed while it computed a run, perhaps for its memory; use fewer --jobs."
        ) from error


def _with_run(compute: Compute, run: Run) -> tuple[Run, dict[str, Any]]:
    return run, measured(compute, run)


def as_json(values: Mapping[str, Any], sort_keys: bool = True) -> str:
    """Return plain values as JSON text; keys are sorted unless their order is kept."""
    return json.dumps(dict(values), sort_keys=sort_keys, default=_plain)


def _plain(value: Any) -> Any:
    """Convert NumPy's numbers to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _fault(run: Run, found: Mapping[str, Any]) -> str:
    """Return why measures cannot be recorded; "" if they can."""
    reserved = {*KEYS, "status", "reason", "versions", *run.parameters}
    for name, value in sorted(found.items()):
        if name in reserved:
            return f"the name {name!r} is taken"
        if not isinstance(value, str | int | float | None):
            return f"{name!r} is neither a number nor a text"
    return ""


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is Ctrl-C, which a compiled kernel raises as SystemError."""
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


def _told(error: Exception) -> str:
    """Return one line: the sentence of an InputError, or type, message and place of another error."""
    if isinstance(error, mmcnb.InputError):
        return _one_line(str(error))
    steps = traceback.extract_tb(error.__traceback__)
    place = [step for step in steps if "site-packages" not in step.filename][-1]
    return _one_line(
        f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
