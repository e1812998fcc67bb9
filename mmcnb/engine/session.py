"""State of one fit: its engine, history, result and starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from mmcnb._compiling import times
from mmcnb._config import configured, is_client
from mmcnb._progress import progress
from mmcnb.choice.known import KnownRows
from mmcnb.columns.treatment import Treatment
from mmcnb.engine.dask import DaskEngine, connection
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine, Result, ThreadEngine
from mmcnb.samples import Samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.donors import Donors

if TYPE_CHECKING:
    from distributed import Client

Row = dict[str, Any]  # a row of ``history_``: the figures of one sweep, by name
Record = Callable[[Row], None]
Start = TypeVar("Start")

# Figures of a fit that are sums of sample weights or proportional to the weights.
WEIGHTED_FIGURES = (
    "sizes",
    "noise",
    "changed",
    "n_changed",
    "inertia",
    "sample_inertia",
    "one_against_all_objective",
)


def open_engine(
    engine: "str | Client | None" = None,
    n_jobs: int | None = None,
    show_progress: bool | None = False,
) -> AbstractContextManager[Engine]:
    """Return the requested engine, for use in a ``with`` statement.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        A client, or the address of a scheduler, selects a Dask cluster. ``"local:4"``
        starts a cluster of four worker processes on this computer. The cluster is
        closed at the end of the ``with`` block. None means the setting of
        `mmcnb.config` or, if it is not set, threads of this process.
    n_jobs : int or None, default=None
        Number of threads of this process. None means the setting of `mmcnb.config` or,
        if it is not set, all cores.
    show_progress : bool or None, default=False
        Whether to show a progress bar. None shows it if standard error is a terminal.

    Returns
    -------
    context manager of Engine
        Context manager that starts and stops the engine.

    Raises
    ------
    InputError
        If ``engine`` is invalid, Dask is not installed, or no scheduler answers. The
        last two are detected when the ``with`` block is entered.
    """
    cluster = configured("engine", engine)
    if cluster is None:
        return ThreadEngine(n_jobs, show_progress)
    return DaskEngine(cluster, n_jobs, show_progress)


def connected(
    engine: "str | Client | None" = None,
) -> "AbstractContextManager[Client | None]":
    """Connect to a cluster with a client that engines in the ``with`` block share.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        See `open_engine`.

    Returns
    -------
    context manager of dask.distributed.Client or None
        Context manager that yields the client, or None if the engine runs threads of
        this process.
    """
    cluster = configured("engine", engine)
    return nullcontext() if cluster is None else connection(cluster)


@contextmanager
def show_progress(engine: Engine, plan: FitPlan) -> Iterator[Callable[[str], None]]:
    """Show the progress of a fit if its engine shows progress.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes of the fit.
    plan : FitPlan
        Plan of the fit, from which the number of passes is estimated.

    Yields
    ------
    callable
        Function to call with the name of each stage when the stage begins.
    """
    if engine.show_progress is False:
        yield lambda stage: None
        return
    # The reads include the passes that draw the sample and label the rows.
    n_rows = plan.rows.n_samples * (plan.needs.reads + plan.needs.likely_sweeps)
    bar = progress(n_rows, "sample", enabled=engine.show_progress, lines=True)
    with bar as engine.fit_progress:
        yield engine.fit_progress.enter


def picklable(engine: Any) -> Any:
    """Replace a client by the address of its scheduler, which can be pickled.

    Other values of the parameter ``engine`` are returned unchanged.
    """
    if is_client(engine) and engine.scheduler is not None:
        return engine.scheduler.address
    return engine


class History:
    """History of a fit: one row per sweep, with the passes and seconds so far.

    The column ``seconds`` excludes compilation. The column ``compile_seconds`` is the
    time that this process has spent compiling since the fit began.

    Parameters
    ----------
    engine : Engine
        Engine that counts the passes.
    record : callable
        Function that is called with each completed row.
    weight_unit : float, default=1.0
        The user's weight that corresponds to a rescaled weight of 1; see
        `scaled_weights`.
    """

    def __init__(
        self, engine: Engine, record: Record, weight_unit: float = 1.0
    ) -> None:
        self.engine = engine
        self.weight_unit = weight_unit
        self.rows: list[Row] = []
        self._record_row = record
        self._started = times()

    def record(self, row: Row) -> None:
        """Add the counts of passes and the seconds to a row, and record the row.

        An optional entry ``clock`` contains the result of `times` for this row; without
        it, the current times are used.
        """
        seconds, compile_seconds = row.pop("clock", None) or times()
        completed = rescaled(row, self.weight_unit) | self.engine.traffic.to_dict()
        completed["seconds"] = seconds - self._started[0]
        completed["compile_seconds"] = compile_seconds - self._started[1]
        self.rows.append(completed)
        self._record_row(completed)

    @property
    def compile_seconds(self) -> float:
        """Seconds that this process has spent compiling since the fit began."""
        return times()[1] - self._started[1]


@dataclass(frozen=True)
class FitSession:
    """State that the stages of one fit share.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes.
    samples : Samples
        All rows.
    weights : ndarray of shape (n,) or None
        Rescaled sample weights. If None, all rows have weight 1.
    plan : FitPlan
        Plan that determines where features are cached and how many sweeps are allowed.
    record : callable
        Function that is called with a dict for each sweep, which becomes a row of
        ``history_``.
    random_state : RandomState
        Random number generator of the fit.
    known : KnownRows or None, default=None
        Known labels of rows of the sample. None means that no labels are known.
    weight_unit : float, default=1.0
        The user's weight that corresponds to a rescaled weight of 1; see
        `scaled_weights`.
    drawn_seed : int or None, default=None
        Seed of ``random_state`` that was drawn because the user has not set one. None
        means that the user has set a seed.
    kept_labels : KeptLabels or None, default=None
        Object in which a pass may store the labels that it computes for all rows.
    sample : ndarray or csr_array of shape (m, d)
        Rows drawn at random, with scaled and reordered columns. None before the sample
        is drawn.
    sample_weights : ndarray of shape (m,) or None, default=None
        Weights of the rows of the sample. If None, all rows have weight 1.
    scaling : Scaling or None, default=None
        Scaling of the columns. None means that they are not scaled.
    column_order : ndarray of shape (d,) or None, default=None
        For each column of ``sample``, its index in ``samples``. None means that the
        order is the same.
    treatment : Treatment
        Treatment of the columns and its reason. It is set when the sample is drawn.
    donors : Donors or None, default=None
        Rows of the sample from which missing values of arrays are filled. For a table,
        the donors are stored in the encoding of ``samples`` instead.
    """

    engine: Engine
    samples: Samples
    weights: np.ndarray | None
    plan: FitPlan
    record: Record
    random_state: np.random.RandomState
    known: KnownRows | None = None
    weight_unit: float = 1.0
    drawn_seed: int | None = None
    kept_labels: Any = None  # its class is defined in a layer above this one
    sample: np.ndarray | csr_array = None
    sample_weights: np.ndarray | None = None
    scaling: Scaling | None = None
    column_order: np.ndarray | None = None
    treatment: Treatment = field(default_factory=Treatment)
    donors: Donors | None = None

    @property
    def has_more_rows(self) -> bool:
        """Whether there are rows outside the sample."""
        return bool(self.sample.shape[0] < self.samples.n_samples)

    def cached(self, features: Samples) -> Samples:
        """Return features of all rows, cached in the store that the plan has chosen."""
        return self.engine.cache(features, self.plan.store, self.plan.capacity)

    def seed(self) -> int:
        """Draw a seed from ``random_state``."""
        return int(self.random_state.randint(2**31 - 1))

    def of_rows(self, rows: np.ndarray) -> "FitSession":
        """Return a session whose sample has only some rows of this sample.

        The new session has no known labels.

        Parameters
        ----------
        rows : ndarray of int
            Increasing indices of the rows in the sample.
        """
        if rows.size == self.sample.shape[0]:
            return replace(self, known=None)
        weights = None if self.sample_weights is None else self.sample_weights[rows]
        return replace(
            self, sample=self.sample[rows], sample_weights=weights, known=None
        )

    def of_size(self, size: int) -> "FitSession":
        """Return a session whose sample has at most ``size`` rows.

        If this sample is larger, the rows are drawn from it at random.
        """
        n_rows = self.sample.shape[0]
        if n_rows <= size:
            return self
        return self.of_rows(np.sort(self.random_state.permutation(n_rows)[:size]))


@dataclass(frozen=True)
class FitResult:
    """Result of a fit, before clusters are numbered and attributes are set.

    Parameters
    ----------
    model : Model
        Model with the decision rule. Its clusters may be in any order.
    features : Samples
        Features of all rows, on which the decision rule operates. They are cached if
        possible.
    attributes : dict
        Fitted attributes by name, without the trailing underscore.
    report : dict
        Entries of ``report_``.
    per_cluster : dict of str to sequence, default={}
        Figures with one value per cluster, in the order of the clusters in ``model``.
        They are the first entries of ``report_``.
    first_rows : ndarray of shape (k,) or None, default=None
        Number of the first row of each cluster. Clusters are numbered in the order of
        their first rows. None means that the clusters of ``model`` already have this
        order.
    warnings : sequence of str, default=()
        Warnings of one sentence each, for ``report_["warnings"]``.
    quiet : sequence of str, default=()
        Warnings that are logged but not issued.
    kept_labels : list or None, default=None
        Labels that the decision rule assigns to all rows. None means that no pass has
        stored them.
    """

    model: Any  # its class is defined in a layer above this one
    features: Samples
    attributes: dict[str, Any]
    report: dict[str, Any]
    per_cluster: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    first_rows: np.ndarray | None = None
    warnings: Sequence[str] = ()
    quiet: Sequence[str] = ()
    kept_labels: list[Any] | None = None


def whole_numbers(sizes: Sequence[float]) -> list[float]:
    """Return cluster sizes, with integers below 2**53 converted from float to int.

    Larger floats need not be exact.
    """
    return [
        int(size) if float(size).is_integer() and size < 2**53 else float(size)
        for size in sizes
    ]


def rescaled(figures: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """Convert sums of rescaled weights to the unit of the user's sample weights.

    Other figures are returned unchanged.

    Examples
    --------
    >>> from mmcnb.engine.session import rescaled
    >>> rescaled({"sizes": [3, 5], "gamma": 0.5}, 2.0)
    {'sizes': [6, 10], 'gamma': 0.5}
    """
    scaled = dict(figures)
    if unit == 1:
        return scaled
    for name in WEIGHTED_FIGURES:
        if figures.get(name) is not None:
            value = np.asarray(figures[name]) * unit
            if value.ndim > 0:
                scaled[name] = whole_numbers(value.tolist())
            elif isinstance(figures[name], int):
                scaled[name] = whole_numbers([float(value)])[0]
            else:
                scaled[name] = float(value)
    return scaled


def ignore(row: Row) -> None:
    """Do nothing with a row of ``history_``."""


def tag(record: Record, **columns: Any) -> Record:
    """Return a function that calls ``record`` with a row extended by ``columns``."""
    return lambda row: record(row | columns)


def run_starts(
    engine: Engine,
    run_start: Callable[[Start, Record], Result],
    starts: Sequence[Start],
    record: Record = ignore,
    in_threads: bool = True,
) -> list[Result]:
    """Run a search from several starts, and record their sweeps in the order of starts.

    Parameters
    ----------
    engine : Engine
        Engine whose threads run the starts.
    run_start : callable
        Function ``run_start(start, record)`` that returns the result of a start.
    starts : sequence
        Starting points, such as initial labels or random seeds.
    record : callable, default=ignore
        Function that is called with each row of the history.
    in_threads : bool, default=True
        Whether starts run in parallel. If False, they run one after another, which
        needs less memory.

    Returns
    -------
    list
        Result of each start, in the order of ``starts``.

    Examples
    --------
    >>> from mmcnb.engine.run import ThreadEngine
    >>> from mmcnb.engine.session import run_starts
    >>> with ThreadEngine(1) as engine:
    ...     run_starts(engine, lambda start, record: start**2, [1, 2, 3])
    [1, 4, 9]
    """

    def run(start: Start) -> tuple[Result, list[Row]]:
        rows: list[Row] = []

        def record_with_clock(row: Row) -> None:
            rows.append({"clock": times()} | row)

        return run_start(start, record_with_clock), rows

    runs = engine.each(run, starts) if in_threads else list(map(run, starts))
    for _, rows in runs:
        for row in rows:
            record(row)
    return [result for result, _ in runs]
