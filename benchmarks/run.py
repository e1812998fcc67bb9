"""Runs of a study, the options that decide them, and their computation."""

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
        Fewer rows if a study is long.
    seeds : int or None, default=None
        Repeats; None is the study's own number.
    rows : int or None, default=None
        At most so many rows of each data set; None for all.
    parts : sequence of str, default=()
        Sections of a study that has several; none are all.
    smoke : bool, default=False
        Tiny sizes of the same code; comes with `quick`, one seed and few rows.
    jobs : int, default=1
        Processes that compute runs beside each other.
    retry : bool, default=False
        Compute failed runs again.
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
        """Options that belong to the scale."""
        return smoke if self.smoke else quick if self.quick else full

    def repeats(self, full: int, quick: int = 1) -> range:
        """Seeds: as many as asked for, or as the scale has."""
        return range(self.seeds or self.pick(full, quick, quick))

    def rows_of(self, dataset: str, most: int | None = None) -> int | None:
        """How many rows of a data set to draw; None for all."""
        return rows_within(dataset, self.rows, most)

    def sized(self, full: int, quick: int) -> int:
        """Rows of a made data set."""
        rows = self.pick(full, quick, quick)
        return min(rows, self.rows or rows)

    def sizes_within(self, sizes: Sequence[int]) -> list[int]:
        """Numbers of rows up to `rows`, or that alone if all are above.

        Examples
        --------
        >>> from pathlib import Path
        >>> from benchmarks.run import Options
        >>> [Options(Path("out"), rows=rows).sizes_within((100, 200)) for rows in (None, 150, 50)]
        [[100, 200], [100], [50]]
        """
        return [n for n in sizes if n <= (self.rows or n)] or [self.rows or sizes[0]]


class Run(NamedTuple):
    """One computation that is recorded.

    Parameters
    ----------
    dataset, method : str
        Names for the tables.
    seed : int
        Seed of the repeat.
    parameters : mapping, default={}
        Plain values of JSON; columns of the results.
    protocol : {"label-free", "paper"}, default="label-free"
        The user's way, or the paper's, which may choose by the known classes.
    part : str, default=""
        Section of the study; filled in if a study has several.
    settings : mapping, default={}
        All else that decides the run, such as rows and fixed parameters; a recorded run
        must agree with it.
    folder : str, default=""
        Folder for stores of the run; filled in, and removed at the end of the study.

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
        """Values that identify the run in its study, in the order of `KEYS`."""
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
        """The data set in memory: settings ``rows`` and, if the tables call it otherwise, ``name``."""
        return load_once(
            self.settings.get("name", self.dataset), self.settings.get("rows")
        )


Runs = Iterator[Run]
Compute = Callable[[Run], Mapping[str, Any]]


class Section(NamedTuple):
    """A section of a study; a study of one section has these functions under the same names.

    Parameters
    ----------
    grid : callable
        From options to a frame of runs.
    compute : callable
        From a `Run` to a flat mapping: ``seconds``, ``compile_seconds``, ``peak_mib``,
        ``n``, ``d`` and ``digest`` if it knows them, and metrics (numbers; texts stay
        out of the tidy frame). A function of a module, so that it can go to another
        process.
    tables : callable
        From the frame of results to a `benchmarks.tables.Result`.
    follow : tuple of callable, default=()
        From the results so far and options to a frame of more runs.
    """

    grid: Callable[[Options], pd.DataFrame]
    compute: Compute
    tables: Callable[[pd.DataFrame], Any]
    follow: tuple[Callable[[pd.DataFrame, Options], pd.DataFrame], ...] = ()


def frame_of_runs(runs: Callable[..., Iterable[Run]]) -> Callable[..., pd.DataFrame]:
    """Decorator of a function that yields runs: it returns their frame."""

    @wraps(runs)
    def grid(*given: Any, **named: Any) -> pd.DataFrame:
        return pd.DataFrame(list(runs(*given, **named)), columns=Run._fields)

    return grid


def measured(compute: Compute, run: Run) -> dict[str, Any]:
    """Compute a run, and say how it went.

    Returns
    -------
    dict
        ``status`` ("ok", "failed", or "no data"), ``reason`` (one line), and ``found``:
        the computed values, with ``seconds`` of the whole and the peak of resident
        memory if they were not given.

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
    """Compute runs, and yield each with the outcome of `measured` as soon as it is done.

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
    """Plain values as JSON text, which does not depend on their order unless that is kept."""
    return json.dumps(dict(values), sort_keys=sort_keys, default=_plain)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _fault(run: Run, found: Mapping[str, Any]) -> str:
    """Why the findings cannot be recorded; "" if it can."""
    reserved = {*KEYS, "status", "reason", "versions", *run.parameters}
    for name, value in sorted(found.items()):
        if name in reserved:
            return f"the name {name!r} is taken"
        if not isinstance(value, str | int | float | None):
            return f"{name!r} is no number or text"
    return ""


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C: a compiled kernel that is interrupted raises SystemError because of it."""
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


def _told(error: Exception) -> str:
    """One line: the sentence of bad input, or type, message and place of an unexpected error."""
    if isinstance(error, mmcnb.InputError):
        return _one_line(str(error))
    steps = traceback.extract_tb(error.__traceback__)
    place = [step for step in steps if "site-packages" not in step.filename][-1]
    return _one_line(
        f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
