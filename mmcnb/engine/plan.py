"""The plan of a fit: what is read, held and written, worked out before any work."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Self

import numpy as np

from mmcnb._config import format_bytes, n_threads, resolve_memory_limit
from mmcnb.engine.estimates import OF_MARGIN, Costs, stage_seconds
from mmcnb.engine.run import task_rows
from mmcnb.samples import GROUP_ROWS, Samples

CACHED_BYTES = 2**30  # kernel columns up to this size are cached, and swept as often as the fit needs


@dataclass(frozen=True)
class RowShape:
    """The shape of rows that a plan is made for, whether they are there yet or not.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    dtype : str, default="float32"
        Type of the numbers in a block.
    row_bytes : float, default=0.0
        Decoded bytes of a row; 0 means dense rows of ``dtype``.
    is_reopenable, is_sparse : bool
        Whether rows come from storage (those that the caller holds are not counted), and are in CSR form.
    chunk_bytes, edge_bytes : float, default=0.0
        Decoded bytes of one storage chunk, and of chunks that are held because a task needs parts of them.
    """

    n_samples: int
    n_features: int
    dtype: str = "float32"
    row_bytes: float = 0.0
    is_reopenable: bool = True
    is_sparse: bool = False
    chunk_bytes: float = 0.0
    edge_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not self.row_bytes:
            object.__setattr__(self, "row_bytes", float(self.n_features * self.itemsize))

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, samples: Samples, threads: int) -> Self:
        """The shape of samples as some threads read them."""
        rows = task_rows(samples, threads)
        cut = samples.is_sparse or (rows < samples.n_samples and rows % samples.chunk_rows)
        return cls(
            *(samples.n_samples, samples.n_features, samples.dtype.name, samples.row_bytes),
            is_reopenable=samples.is_reopenable,
            is_sparse=samples.is_sparse,
            chunk_bytes=min(samples.chunk_rows, samples.n_samples) * samples.row_bytes,
            edge_bytes=samples.edge_bytes if cut else 0,
        )


DRAWN_NUMBERS = 2**23  # in the rows that are drawn together with a sample


@dataclass(frozen=True)
class FitNeeds:
    """What a method will hold and do.

    Parameters
    ----------
    n_landmarks : int, default=0
        Basis vectors; 0 for a linear kernel, which sweeps the rows themselves.
    sample_size : int, default=2000
        Rows of the sample on which starts and bandwidths are tried.
    drawn_rows : int, default=0
        Rows that are drawn together with this sample, which is then some of them; fewer where they are wide.
    sample_copies : int, default=7
        How many times kernel columns of the sample are held: the candidate bandwidths of the hinge methods.
    sample_bytes : float, default=0.0
        Bytes that are held beside the rows of the sample and their kernel columns.
    dense_rows : int or None, default=None
        Rows of the sample that are held dense, as they are and as float64; None is all of them.
    held_rows : int, default=0
        Rows that are held in their own type and form, such as those of a sample that is not made dense.
    stays_sparse : bool, default=False
        Whether a sample of sparse rows, and sparse basis vectors of very many columns, are not made dense.
    work_bytes : float, default=0.0
        Bytes that work on the sample holds before any sweep over all rows, and gives back.
    libraries : int, default=0
        Bytes of compiled routines beyond those of every fit.
    larger_rows : int, default=0
        Rows of a second sample; 0 for a fit that draws none.
    sweeps : int or None, default=None
        Most sweeps over the kernel columns after the first; None is as many as `most_sweeps` says.
    likely_sweeps : int or None, default=None
        Sweeps for which the stores are compared; None is ``sweeps``, and where that is None, a usual number.
    max_threads : int or None, default=None
        Most threads for which the method has memory; None is any number.
    row_flops : float, default=0.0
        Operations that the features of a row take beyond those of kernel values.
    search_seconds : float or None, default=None
        Seconds of one core for all work on the sample; None is that of the hinge methods.
    routines : tuple of str
        Compiled routines that the fit calls, out of those that `compile_estimate` knows.
    basis_rows : int, default=0
        Basis vectors that are held where the kernel columns of more than ``n_landmarks`` are counted apart.
    """

    n_landmarks: int = 0
    sample_size: int = 2000
    drawn_rows: int = 0
    sample_copies: int = 7
    sample_bytes: float = 0.0
    dense_rows: int | None = None
    held_rows: int = 0
    stays_sparse: bool = False
    work_bytes: float = 0.0
    libraries: int = 0
    larger_rows: int = 0
    sweeps: int | None = None
    likely_sweeps: int | None = None
    max_threads: int | None = None
    row_flops: float = 0.0
    search_seconds: float | None = None
    routines: tuple[str, ...] = OF_MARGIN
    basis_rows: int = 0

    def rows_to_draw(self, n_features: int) -> int:
        """Rows of the sample, or ``drawn_rows`` as far as their numbers are not too many.

        Only the columns decide, or the rows would depend on where they are stored.

        Examples
        --------
        >>> from mmcnb.engine.plan import FitNeeds
        >>> needs = FitNeeds(sample_size=2000, drawn_rows=65_536)
        >>> [needs.rows_to_draw(n_features) for n_features in (50, 784, 10_000)]
        [65536, 10699, 2000]
        """
        return max(self.sample_size, min(self.drawn_rows, DRAWN_NUMBERS // max(n_features, 1)))


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit: what is read, held and written.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    row_bytes : float
        Decoded bytes of a row.
    n_landmarks, threads, memory_limit : int
        Basis vectors, threads used, and resident bytes allowed.
    libraries, in_flight, sample, work, larger, row_state, cache : int
        Bytes held for libraries, blocks being read, the sample, work on it alone, a larger sample, labels,
        and kernel columns.
    store : {"memory", "scratch", "recompute"}
        Where kernel columns are cached.
    costs : dict of str to float
        Estimated seconds for each place that could hold them within the limit.
    scratch : int
        Bytes written to a scratch file.
    sweeps, reads, bytes : int
        Most sweeps over the kernel columns, most reads of the rows, and decoded bytes of all those reads.
    stages : dict of str to float
        Estimated seconds of compilation, of drawing the sample, of the search on it, and of the passes.
    place : str, default="this process"
        Where the passes run.
    """

    n_samples: int
    n_features: int
    row_bytes: float
    n_landmarks: int
    threads: int
    memory_limit: int
    libraries: int
    in_flight: int
    sample: int
    work: int
    larger: int
    row_state: int
    cache: int
    store: str
    costs: dict[str, float]
    scratch: int
    sweeps: int
    reads: int
    bytes: int
    stages: dict[str, float]
    place: str = "this process"

    @property
    def seconds(self) -> float:
        """Estimated seconds of all stages."""
        return sum(self.stages.values())

    @property
    def few(self) -> bool:
        """Whether the sweeps over all rows are counted out."""
        return self.sweeps <= FEW_SWEEPS

    @property
    def peak(self) -> int:
        """Expected peak of resident memory, in bytes: of the work on the sample, or of the sweeps."""
        sweeps = self.larger + self.in_flight + self.row_state + self.cache
        return self.libraries + self.sample + max(self.work, sweeps)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain numbers and strings."""
        return asdict(self) | {"peak": self.peak, "seconds": self.seconds}

    def _columns(self) -> str:
        """Where kernel columns are cached, and what each place would cost."""
        size = format_bytes(self.n_samples * (self.n_landmarks * 4 or self.row_bytes))
        places = {
            "memory": f"in memory ({size})",
            "scratch": f"in a scratch file ({size})",
            "recompute": "computed anew at each sweep",
        }
        chosen = f"{places[self.store]}: {self.costs[self.store]:.3g} s"
        others = [f"{places[place]} {self.costs[place]:.3g} s" for place in self.costs if place != self.store]
        return "; ".join([chosen, *others])

    def _words(self) -> dict[str, str]:
        sizes = {"libraries": self.libraries, "blocks in flight": self.in_flight}
        sizes |= {"sample": self.sample, "labels": self.row_state}
        sizes |= {"larger sample": self.larger} if self.larger else {}
        sizes |= {"or work on the sample": self.work} if self.work else {}
        parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in sizes.items())
        return {
            "rows": f"{self.n_samples:,} x {self.n_features:,}, {self.n_landmarks} basis vectors",
            "kernel columns": self._columns(),
            "reads of rows": f"at most {self.reads} ({format_bytes(self.bytes)}), "
            f"sweeps over kernel columns at most {self.sweeps}",
            "peak memory": f"about {format_bytes(self.peak)} of {format_bytes(self.memory_limit)} allowed "
            f"({parts})",
            "time": f"about {self.seconds:.3g} s on {self.threads} threads of {self.place} "
            f"({', '.join(f'{name} {seconds:.2g} s' for name, seconds in self.stages.items() if seconds)})",
        }

    def lines(self) -> list[str]:
        """The plan for people, one fact a line."""
        return [f"{name:<17}{text}" for name, text in self._words().items()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        words = self._words().items()
        rows = [f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in words]
        return f"<table>{''.join(rows)}</table>"


def plan_fit(
    samples: Samples | RowShape,
    needs: FitNeeds,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
) -> FitPlan:
    """Plan a fit: what is read, held and written, before any work.

    Kernel columns of up to 1 GiB are cached, in memory or in a scratch file, and swept until the fit
    converges. Larger ones go where a few sweeps cost least: memory where they fit, a scratch file, or
    nowhere, which computes them anew.

    Parameters
    ----------
    samples : Samples or RowShape
        The rows, or the shape of rows that are not there yet.
    needs : FitNeeds
        What the method will hold and do.
    memory_limit : str, int or None, default=None
        Resident memory allowed; None is what `mmcnb.config` says, and otherwise half of what is free.
    n_jobs : int or None, default=None
        Threads; None is what `mmcnb.config` says, and otherwise all cores.

    Returns
    -------
    FitPlan
        The plan.

    Raises
    ------
    MemoryLimitError
        If the limit is too small; the message names the least that works.

    Examples
    --------
    >>> from mmcnb.engine.plan import FitNeeds, RowShape, plan_fit
    >>> plan_fit(RowShape(32_561, 123), FitNeeds(n_landmarks=200), memory_limit="1GiB").store
    'memory'
    >>> plan_fit(RowShape(10**7, 32), FitNeeds(n_landmarks=200), memory_limit="512MiB").store
    'recompute'
    """
    threads = n_threads(n_jobs)
    rows = samples if isinstance(samples, RowShape) else RowShape.of(samples, threads)
    work = Costs(rows, needs, resolve_memory_limit(memory_limit))
    work.check()
    sweeps, likely = expected_sweeps(rows.n_samples, work.feature_bytes, needs)
    ways = work.ways(min(threads, needs.max_threads or threads), likely)
    costs: dict[str, float] = {}
    for (store, _), seconds in ways.items():
        costs[store] = min(seconds, costs.get(store, seconds))
    cached = {way: seconds for way, seconds in ways.items() if way[0] != "recompute"}
    if cached and work.cache <= CACHED_BYTES:
        ways = cached
    store, threads = min(ways, key=lambda way: ways[way])
    reads = 2 + (sweeps if store == "recompute" else 0)
    return FitPlan(
        n_samples=rows.n_samples,
        n_features=rows.n_features,
        row_bytes=rows.row_bytes,
        n_landmarks=needs.n_landmarks,
        threads=threads,
        memory_limit=work.limit,
        libraries=work.libraries,
        in_flight=int(work.in_flight(threads)),
        sample=int(work.sample),
        work=int(work.work),
        larger=int(work.larger),
        row_state=work.row_state,
        cache=int(work.cache) if store == "memory" else 0,
        store=store,
        costs=costs,
        scratch=int(work.cache) if store == "scratch" else 0,
        sweeps=sweeps,
        reads=reads,
        bytes=int(reads * rows.n_samples * rows.row_bytes),
        stages=stage_seconds(rows, needs, threads, costs[store]),
    )


# -- how often the hinge methods sweep over all rows, and their second sample ------------------------

LARGER_SAMPLE = GROUP_ROWS  # rows of the second sample, where there are more than twice as many
HELD_ROWS = 2**14  # up to which the rounds of compiled methods run on all rows in memory
MANY_SWEEPS, FEW_SWEEPS, LIKELY_SWEEPS = 300, 5, 20  # `python -m benchmarks engine`


def most_sweeps(n_samples: int, feature_bytes: float) -> int:
    """Sweeps over all rows that a fit may make.

    The size of the work alone decides, or the answer would depend on the machine.
    """
    return MANY_SWEEPS if n_samples * feature_bytes <= CACHED_BYTES else FEW_SWEEPS


def expected_sweeps(n_samples: int, feature_bytes: float, needs: FitNeeds) -> tuple[int, int]:
    """Most and likely sweeps: those of the method, or where it names none, those of the hinge methods."""
    most = most_sweeps(n_samples, feature_bytes) if needs.sweeps is None else needs.sweeps
    usual = FEW_SWEEPS if needs.larger_rows else LIKELY_SWEEPS
    return most, needs.likely_sweeps or needs.sweeps or usual


def larger_sample(n_samples: int, compiled: bool = False) -> int:
    """Rows of the second sample; 0 where all rows are hardly more.

    ``compiled`` says that rounds over labels are compiled on rows in memory: then a few rows are held whole.
    """
    if compiled and n_samples <= HELD_ROWS:
        return n_samples
    return LARGER_SAMPLE if n_samples > 2 * LARGER_SAMPLE else 0
