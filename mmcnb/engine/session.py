"""One fit: its engine, what its stages share, its result, and its starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mmcnb._compiling import times
from mmcnb._config import configured, is_client
from mmcnb._progress import progress
from mmcnb.engine.dask import DaskEngine, connection
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine, Result, ThreadEngine
from mmcnb.samples import Samples
from mmcnb.samples.derived import Scaling

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an earlier scikit-learn than 1.9 has no callbacks
    CallbackSupportMixin = object

    def with_callbacks(method: Callable) -> Callable:
        """Return a method unchanged."""
        return method


Record = Callable[[dict[str, Any]], None]

# Figures of a fit that count weight: proportional to the weights that were given.
WEIGHED = ("sizes", "changed", "inertia", "sample_inertia", "one_against_all_objective")


def open_engine(
    engine: Any = None, n_jobs: int | None = None, show_progress: bool | None = False
) -> AbstractContextManager[Engine]:
    """The requested engine, for a ``with`` block.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        None is the setting of `mmcnb.config`, or threads of this process. A client, or
        the address of its scheduler, is a Dask cluster. ``"local:4"`` is a cluster of
        four worker processes on this computer, which ends with the block.
    n_jobs : int or None, default=None
        Number of threads of this process.
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.

    Returns
    -------
    context manager of Engine
        Starts and stops the engine.

    Raises
    ------
    InputError
        If ``engine`` is none of these, Dask is not installed, or no scheduler answers.
    """
    engine = configured("engine", engine)
    how = n_jobs, show_progress
    return ThreadEngine(*how) if engine is None else DaskEngine(engine, *how)


def connected(engine: Any = None) -> AbstractContextManager[Any]:
    """Stay connected to the cluster of an engine; ``with`` blocks inside this one share its client.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        As in `open_engine`.

    Returns
    -------
    context manager of dask.distributed.Client or None
        None where the engine is threads.
    """
    engine = configured("engine", engine)
    return nullcontext() if engine is None else connection(engine)


@contextmanager
def show_progress(engine: Engine, plan: FitPlan) -> Iterator[Callable[[str], None]]:
    """Show how far a fit has come, where its engine shows progress.

    Parameters
    ----------
    engine : Engine
        Runs the passes of the fit.
    plan : FitPlan
        How many passes are likely.

    Yields
    ------
    callable
        To be told the name of each stage as it begins.
    """
    if engine.show_progress is False:
        yield lambda stage: None
        return
    # The first one draws the sample, the last one labels the rows.
    n_rows = plan.rows.n_samples * (plan.needs.reads + plan.needs.likely_sweeps)
    with progress(
        n_rows, "sample", enabled=engine.show_progress, lines=True
    ) as engine.fit_progress:
        yield engine.fit_progress.enter


@contextmanager
def callbacks_told(estimator: Any, samples: Samples) -> Iterator[Record]:
    """Tell the callbacks of an estimator that its fit begins, and that it ends.

    Parameters
    ----------
    estimator : estimator
        The one that fits.
    samples : Samples
        The rows, which callbacks may ask for.

    Yields
    ------
    callable
        Takes each row of the history: a task of the fit, named by its stage, with the
        row as its metadata.
    """
    if not any(
        hasattr(estimator, name) for name in ("_skl_callbacks", "_parent_callback_ctx")
    ):
        yield ignore
        return
    given = {"estimator": estimator, "X": samples}
    fit = estimator._init_callback_context(max_subtasks=None).call_on_fit_task_begin(
        **given
    )

    def tell(row: dict[str, Any]) -> None:
        task = fit.subcontext(row["stage"]).call_on_fit_task_begin(**given)
        task.call_on_fit_task_end(**given, metadata=row)

    yield tell
    fit.call_on_fit_task_end(**given, reconstruction_attributes={})


def picklable(engine: Any) -> Any:
    """An engine in a form for other processes: a client becomes the address of its scheduler."""
    return (
        engine.scheduler.address
        if is_client(engine) and engine.scheduler is not None
        else engine
    )


class History:
    """The history of a fit: a row for each sweep, with the reads and the seconds so far.

    ``seconds`` are those without compilation, and ``compile_seconds`` those of
    compilation in this process.

    Parameters
    ----------
    engine : Engine
        Counts the reads.
    tell : callable
        Is told each row.
    weight_unit : float, default=1.0
        What a sample weight of 1 was given as.
    """

    def __init__(self, engine: Engine, tell: Record, weight_unit: float = 1.0) -> None:
        self.engine, self.tell, self.weight_unit, self.started = (
            engine,
            tell,
            weight_unit,
            times(),
        )
        self.rows: list[dict[str, Any]] = []

    def record(self, row: dict[str, Any]) -> None:
        """Add a row; a row recorded in a thread has its own ``clock``."""
        names = ("seconds", "compile_seconds")
        clock = row.pop("clock", None) or times()
        seconds = {
            name: now - start
            for name, now, start in zip(names, clock, self.started, strict=True)
        }
        self.rows.append(
            rescaled(row, self.weight_unit) | self.engine.traffic.to_dict() | seconds
        )
        self.tell(self.rows[-1])

    @property
    def compile_seconds(self) -> float:
        """Seconds that this process has compiled since the fit began."""
        return times()[1] - self.started[1]


@dataclass(frozen=True)
class FitSession:
    """State that the stages of one fit share.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        All rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    plan : FitPlan
        Where features are cached, and how many sweeps are allowed.
    record : callable
        Takes one dict per sweep, for ``history_``.
    random_state : RandomState
        Source of all random choices of the fit.
    known : KnownRows or None, default=None
        Known labels of rows of the sample.
    weight_unit : float, default=1.0
        What a sample weight of 1 was given as.
    kept_labels : KeptLabels or None, default=None
        Where a pass may keep the labels of all rows that it finds.
    sample : ndarray or csr_array of shape (m, d)
        Rows drawn at random, with their columns scaled; None until they are drawn, as
        are all that follow.
    sample_weights : ndarray of shape (m,) or None
        Weights of the sample.
    scaling : Scaling or None
        The scaling of the columns; None if they are as they were.
    treatment : Treatment
        The treatment of the columns, and its reason.
    """

    engine: Engine
    samples: Samples
    weights: np.ndarray | None
    plan: FitPlan
    record: Record
    random_state: Any
    known: Any = None
    weight_unit: float = 1.0
    kept_labels: Any = None
    sample: Any = None
    sample_weights: np.ndarray | None = None
    scaling: Scaling | None = None
    treatment: Any = None

    @property
    def has_more_rows(self) -> bool:
        """Whether there are rows outside the sample."""
        return bool(self.sample.shape[0] < self.samples.n_samples)

    def cached(self, features: Samples) -> Samples:
        """Features of all rows, cached as the plan says."""
        return self.engine.cache(features, self.plan.store, self.plan.capacity)

    def seed(self) -> int:
        """Draw a seed."""
        return int(self.random_state.randint(2**31 - 1))

    def of_rows(self, rows: np.ndarray) -> "FitSession":
        """The same session with some rows of its sample, in rising order, and nothing known of them."""
        if rows.size == self.sample.shape[0]:
            return replace(self, known=None)
        weights = None if self.sample_weights is None else self.sample_weights[rows]
        return replace(
            self, sample=self.sample[rows], sample_weights=weights, known=None
        )

    def of_size(self, size: int) -> "FitSession":
        """The same session with so many rows of its sample, at random."""
        if self.sample.shape[0] <= size:
            return self
        return self.of_rows(
            np.sort(self.random_state.permutation(self.sample.shape[0])[:size])
        )


@dataclass(frozen=True)
class FitResult:
    """The result of a fit; the base class numbers the clusters and sets the attributes.

    Parameters
    ----------
    model : Model
        The model with its rule, its clusters in any order.
    features : Samples
        All rows in the features of the rule, cached where possible.
    attributes : dict
        Fitted attributes by name, without the trailing underscore.
    report : dict
        Entries of ``report_``.
    per_cluster : dict of str to sequence, default={}
        Figures with one entry per cluster, in the order of the rule; they come first in
        ``report_``.
    first_rows : ndarray of shape (k,) or None, default=None
        First row of each cluster, by which they are numbered; None where the rule has
        that order.
    warnings : sequence of str, default=()
        Warnings of one sentence each, for ``report_["warnings"]``.
    quiet : sequence of str, default=()
        The warnings that are logged but not issued.
    kept_labels : list or None, default=None
        What was kept of the labels of all rows, by this rule.
    """

    model: Any
    features: Samples
    attributes: dict[str, Any]
    report: dict[str, Any]
    per_cluster: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    first_rows: np.ndarray | None = None
    warnings: Sequence[str] = ()
    quiet: Sequence[str] = ()
    kept_labels: list[Any] | None = None


class Report(dict[str, Any]):
    """The report of a fit: a dict that prints one entry a line.

    Examples
    --------
    >>> from mmcnb.engine.session import Report
    >>> Report(sizes=[3, 4], warnings=[])
    sizes     [3, 4]
    warnings  []
    """

    def __repr__(self) -> str:
        """One line an entry."""
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.items())


def whole_numbers(sizes: Sequence[float]) -> list[float]:
    """Sizes, with whole numbers as integers as far as floats count them."""
    return [
        int(size) if float(size).is_integer() and size < 2**53 else float(size)
        for size in sizes
    ]


def rescaled(figures: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """Figures by name, those that count weight in the unit in which the weights were given.

    Examples
    --------
    >>> from mmcnb.engine.session import rescaled
    >>> rescaled({"sizes": [3, 5], "gamma": 0.5}, 2.0)
    {'sizes': [6, 10], 'gamma': 0.5}
    """

    given = dict(figures)
    for name in WEIGHED if unit != 1 else ():
        if name in given:
            value = np.asarray(given[name]) * unit
            given[name] = whole_numbers(value.tolist()) if value.ndim else float(value)
    return given


def ignore(row: dict[str, Any]) -> None:
    """Record nothing."""


def tag(record: Record, **columns: Any) -> Record:
    """A record that adds columns to each row."""
    return lambda row: record(row | columns)


def run_starts(
    engine: Engine,
    run_start: Callable[[Any, Record], Result],
    starts: Sequence[Any],
    record: Record = ignore,
    in_threads: bool = True,
) -> list[Result]:
    """Run some starts, and record their sweeps in the order of the starts.

    Parameters
    ----------
    engine : Engine
        Its threads run the starts.
    run_start : callable
        ``run_start(start, record)`` returns the result of a start.
    starts : sequence
        Starts, such as labels or seeds.
    record : callable, default=ignore
        Takes the rows of the history.
    in_threads : bool, default=True
        False runs one start after the other, which needs less memory.

    Returns
    -------
    list
        Results, in the order of the starts.

    Examples
    --------
    >>> from mmcnb.engine.run import ThreadEngine
    >>> from mmcnb.engine.session import run_starts
    >>> with ThreadEngine(1) as engine:
    ...     run_starts(engine, lambda start, record: start**2, [1, 2, 3])
    [1, 4, 9]
    """

    def attempt(start: Any) -> tuple[Result, list[dict[str, Any]]]:
        rows: list[dict[str, Any]] = []
        return run_start(start, lambda row: rows.append({"clock": times()} | row)), rows

    attempts = (
        engine.each(attempt, starts)
        if in_threads
        else [attempt(start) for start in starts]
    )
    for _, rows in attempts:
        for row in rows:
            record(row)
    return [result for result, _ in attempts]
