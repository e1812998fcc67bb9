"""The plan of a fit: its bytes, reads and seconds, estimated before any work from what its method states."""

import math
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

import numpy as np

from mmcnb import _numba, kernels
from mmcnb._config import LIBRARIES, format_bytes, n_threads, resolve_memory_limit
from mmcnb.engine.run import READ_AHEAD, TASK_BYTES, task_rows
from mmcnb.errors import MemoryLimitError
from mmcnb.samples import BLOCK_ROWS, Samples

# Kernel columns up to this size are cached, and swept as often as the fit needs. A
# further thread has a heap of its own, which keeps so much between blocks: 2 to 14 MiB,
# measured with 2 to 8 threads.
CACHED_BYTES = 2**30
HEAP_BYTES = 14 * 2**20
# Rough rates of one core, in bytes a second: they rank plans, no more. `python -m
# benchmarks engine` measures reads (435 MB a second of Zstandard chunks).
READ_RATE = 400e6
SWEEP_RATE = 8e9
SCRATCH_RATE = 0.9e9
# Of a process that compiles, beyond one with its routines in the cache: 106 to 126 MiB,
# measured.
COMPILER_BYTES = 104 * 2**20
COMPILED_BYTES_A_SECOND = 1.5 * 2**20


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
        Whether rows come from storage (rows in the caller's memory are not counted),
        and are in CSR form.
    chunk_bytes, edge_bytes : float, default=0.0
        Decoded bytes of one storage chunk, and of chunks that stay in memory as a task
        needs parts of them.
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
            object.__setattr__(
                self, "row_bytes", float(self.n_features * self.itemsize)
            )

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, samples: Samples, n_jobs: int | None = None) -> Self:
        """The shape of samples as the threads of ``n_jobs`` read them."""
        rows = task_rows(samples, n_threads(n_jobs))
        cut = samples.is_sparse or (
            rows < samples.n_samples and rows % samples.chunk_rows
        )
        shape = (
            samples.n_samples,
            samples.n_features,
            samples.dtype.name,
            samples.row_bytes,
        )
        chunk = min(samples.chunk_rows, samples.n_samples) * samples.row_bytes
        known: Any = {
            "is_reopenable": samples.is_reopenable,
            "is_sparse": samples.is_sparse,
        }
        return cls(
            *shape,
            chunk_bytes=chunk,
            edge_bytes=samples.edge_bytes if cut else 0,
            **known,
        )


@dataclass(frozen=True)
class FitNeeds:
    """Bytes and work of a fit, as its method states them.

    Parameters
    ----------
    n_landmarks : int, default=0
        Columns of the features of a row; 0 for a linear kernel, which sweeps the rows
        themselves.
    sample_size : int, default=2000
        Rows that the first pass draws.
    sample_bytes : float, default=0.0
        Bytes of the sample and of what is computed from it, which stay until the end of
        the fit.
    work_bytes : float, default=0.0
        Further bytes that the search on the sample takes and gives back before any
        sweep over all rows.
    larger_bytes : float, default=0.0
        Bytes of a second, larger sample during these sweeps; 0 for a fit that draws
        none.
    block_bytes : float, default=0.0
        Bytes of the total of a block of rows, as far as they count while it waits to be
        added.
    sweeps, likely_sweeps : int, default=1
        Sweeps over the features after the first: at most, and those by which the stores
        are compared.
    reads : int, default=2
        Reads of all rows beside those of sweeps: of the sample, of the features, and
        perhaps more.
    row_seconds : float, default=0.0
        Seconds of one core for the features of a row.
    search_seconds : float, default=0.0
        Seconds of one core for all work on the sample.
    routines : dict of str to float, default={}
        Compiled routines that the fit calls, by their names in `mmcnb.kernels`, with
        the seconds of CPU to compile each and those that are used with it.
    remedy : str, default=""
        What needs less memory, for the message that refuses a limit.
    """

    n_landmarks: int = 0
    sample_size: int = 2000
    sample_bytes: float = 0.0
    work_bytes: float = 0.0
    larger_bytes: float = 0.0
    block_bytes: float = 0.0
    sweeps: int = 1
    likely_sweeps: int = 1
    reads: int = 2
    row_seconds: float = 0.0
    search_seconds: float = 0.0
    routines: dict[str, float] = field(default_factory=dict)
    remedy: str = ""


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit, with its bytes, reads and seconds as properties.

    Parameters
    ----------
    rows : RowShape
        The rows.
    needs : FitNeeds
        Bytes and work of the method.
    memory_limit : int
        Resident bytes allowed.
    compile_seconds : float, default=0.0
        Seconds to compile those routines that are not compiled yet.
    threads : int, default=1
        Threads used.
    store : {"memory", "scratch", "recompute"}, default="recompute"
        Where kernel columns are cached.
    costs : dict of str to float, default={}
        Estimated seconds of all passes for each store that is possible within the
        limit.
    """

    rows: RowShape
    needs: FitNeeds
    memory_limit: int
    compile_seconds: float = 0.0
    threads: int = 1
    store: str = "recompute"
    costs: dict[str, float] = field(default_factory=dict)

    # -- bytes -------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of libraries, of blocks in flight, of the sample and others, in memory but for "scratch"."""
        needs = self.needs
        columns = int(self._features)
        return {
            "libraries": LIBRARIES + self._compiler,
            "in_flight": int(self._in_flight),
            "sample": int(needs.sample_bytes),
            "work": int(needs.work_bytes),
            "larger": int(needs.larger_bytes),
            "row_state": 2**20
            if self.rows.is_reopenable
            else 0,  # labels on their way to a file
            "cache": columns if self.store == "memory" else 0,
            "scratch": columns if self.store == "scratch" else 0,
        }

    @property
    def peak(self) -> int:
        """Expected peak of resident memory, in bytes: of the work on the sample, or of the sweeps."""
        sizes = self.sizes
        sweeps = (
            sizes["larger"] + sizes["in_flight"] + sizes["row_state"] + sizes["cache"]
        )
        return sizes["libraries"] + sizes["sample"] + max(sizes["work"], sweeps)

    @property
    def capacity(self) -> int:
        """Bytes that the limit leaves to a process that does nothing but sweep."""
        return self.memory_limit - self.sizes["libraries"] - self.sizes["in_flight"]

    @property
    def _compiler(self) -> int:
        """Bytes that compilation takes, and keeps."""
        seconds = self.compile_seconds
        return int(COMPILER_BYTES + seconds * COMPILED_BYTES_A_SECOND) if seconds else 0

    @property
    def _features(self) -> float:
        """Bytes of the features of all rows."""
        return self.rows.n_samples * (self.needs.n_landmarks * 4 or self.rows.row_bytes)

    @property
    def _in_flight(self) -> float:
        """Bytes of blocks that threads work on, of totals that wait, and of chunks that threads share."""
        rows = self.rows
        tasks = self.threads + READ_AHEAD
        read = min(TASK_BYTES, rows.n_samples * rows.row_bytes)
        read = max(read, BLOCK_ROWS * rows.row_bytes, rows.chunk_bytes)
        # A thread has decoded rows, a second copy inside the decoder, and the features
        # of one block.
        task = (
            2 * read * rows.is_reopenable
            + 4 * min(BLOCK_ROWS, rows.n_samples) * self.needs.n_landmarks
        )
        waiting = tasks * max(1, int(TASK_BYTES / BLOCK_ROWS / rows.row_bytes)) + 3
        totals = (
            min(waiting, math.ceil(rows.n_samples / BLOCK_ROWS) - 1)
            * self.needs.block_bytes
        )
        return tasks * task + totals + rows.edge_bytes + (self.threads - 1) * HEAP_BYTES

    # -- reads and seconds -------------------------------------------------------------

    @property
    def reads(self) -> int:
        """Most reads of the rows: for the sample, for the features, and for sweeps that compute them anew."""
        return self.needs.reads + (
            self.needs.sweeps if self.store == "recompute" else 0
        )

    @property
    def bytes(self) -> int:
        """Decoded bytes of all reads."""
        return int(self.reads * self.rows.n_samples * self.rows.row_bytes)

    @property
    def seconds(self) -> float:
        """Estimated seconds of compilation, of the search on the sample, and of all reads and sweeps."""
        return self.compile_seconds + self.needs.search_seconds + self.pass_seconds

    @property
    def pass_seconds(self) -> float:
        """Estimated seconds of all reads and sweeps, with the read that draws the sample."""
        n = self.rows.n_samples
        sweeps = self.needs.likely_sweeps
        # Rows in memory are there ten times as fast.
        read = (
            n
            * self.rows.row_bytes
            / READ_RATE
            * (1 if self.rows.is_reopenable else 0.1)
        )
        reads = self.needs.reads * read
        features = n * self.needs.row_seconds
        size = max(self._features, n * 8.0)
        sweep = size / SWEEP_RATE
        if self.store == "recompute":
            return (
                reads + features + sweeps * (features + read + sweep)
            ) / self.threads
        scratch = size / SCRATCH_RATE if self.store == "scratch" else 0.0
        return (reads + features + sweeps * sweep) / self.threads + (
            1 + sweeps
        ) * scratch

    # -- the plan in words -------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain numbers and strings."""
        ours = (
            "threads",
            "memory_limit",
            "store",
            "costs",
            "reads",
            "bytes",
            "compile_seconds",
            "peak",
        )
        return {
            **{
                name: getattr(self.rows, name)
                for name in ("n_samples", "n_features", "row_bytes")
            },
            **{name: getattr(self.needs, name) for name in ("n_landmarks", "sweeps")},
            **{name: getattr(self, name) for name in (*ours, "seconds")},
            **self.sizes,
        }

    def _columns(self) -> str:
        """Where kernel columns are cached, and the cost of each place."""
        size = format_bytes(self._features)
        places = {
            "memory": f"in memory ({size})",
            "scratch": f"in a scratch file ({size})",
            "recompute": "computed anew at each sweep",
        }
        chosen = f"{places[self.store]}: {self.costs[self.store]:.3g} s"
        others = [
            f"{places[place]} {self.costs[place]:.3g} s"
            for place in self.costs
            if place != self.store
        ]
        return "; ".join([chosen, *others])

    def lines(self) -> list[str]:
        """The plan for people, one fact a line."""
        rows = self.rows
        sizes = self.sizes
        names = {
            "libraries": "libraries",
            "in_flight": "blocks in flight",
            "sample": "sample",
        }
        names |= {
            "row_state": "labels",
            "larger": "larger sample",
            "work": "or work on the sample",
        }
        parts = [
            f"{words} {format_bytes(sizes[name])}"
            for name, words in names.items()
            if sizes[name]
        ]
        facts = {
            "rows": f"{rows.n_samples:,} x {rows.n_features:,}, {self.needs.n_landmarks} basis vectors",
            "kernel columns": self._columns(),
            "reads of rows": f"at most {self.reads} ({format_bytes(self.bytes)}), "
            f"sweeps over kernel columns at most {self.needs.sweeps}",
            "peak memory": f"about {format_bytes(self.peak)} of {format_bytes(self.memory_limit)} allowed "
            f"({', '.join(parts)})",
            "time": f"about {self.seconds:.3g} s on {self.threads} threads here, "
            f"{self.compile_seconds:.2g} s of it to compile (once)",
        }
        return [f"{name:<17}{text}" for name, text in facts.items()]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def plan_fit(
    rows: RowShape,
    needs: FitNeeds,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
) -> FitPlan:
    """Plan a fit before any work.

    Kernel columns of up to 1 GiB are cached, in memory or in a scratch file, and swept
    until the fit converges. Larger ones go where a few sweeps cost least: into memory
    if they fit, into a scratch file, or nowhere, so that each sweep computes them anew.

    Parameters
    ----------
    rows : RowShape
        The shape of the rows.
    needs : FitNeeds
        Bytes and work of the method.
    memory_limit : str, int or None, default=None
        Resident memory allowed; None is the setting of `mmcnb.config`, or else half of
        the free memory.
    n_jobs : int or None, default=None
        Threads; None is the setting of `mmcnb.config`, or else all cores.

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
    >>> needs = FitNeeds(n_landmarks=200, sweeps=5, likely_sweeps=5, row_seconds=1e-6)
    >>> plan_fit(RowShape(32_561, 123), needs, memory_limit="1GiB").store
    'memory'
    >>> plan_fit(RowShape(10**7, 32), needs, memory_limit="512MiB").peak <= 512 * 2**20
    True
    """
    threads = n_threads(n_jobs)
    limit = resolve_memory_limit(memory_limit)
    least = _least_plan(rows, needs, limit)
    each = product(_stores(least), range(1, threads + 1))
    ways = [replace(least, store=store, threads=count) for store, count in each]
    ways = [way for way in ways if way.peak <= limit]
    costs: dict[str, float] = {}
    for way in ways:
        costs[way.store] = min(way.pass_seconds, costs.get(way.store, math.inf))
    cached = [way for way in ways if way.store != "recompute"]
    if least._features <= CACHED_BYTES:
        ways = cached or ways
    return replace(min(ways, key=lambda way: way.pass_seconds), costs=costs)


def threads_of_pass(
    rows: RowShape,
    needs: FitNeeds,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
) -> int:
    """Threads of a pass over rows: as many as a memory limit leaves room for.

    Parameters
    ----------
    rows, needs, memory_limit, n_jobs
        As of `plan_fit`.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    MemoryLimitError
        If the limit is too small for one thread; the message names the least that
        works.

    Examples
    --------
    >>> from mmcnb.engine.plan import FitNeeds, RowShape, threads_of_pass
    >>> rows, needs = RowShape(10**7, 250, chunk_bytes=2**25), FitNeeds(n_landmarks=200)
    >>> threads_of_pass(rows, needs, memory_limit="600MiB", n_jobs=16)
    2
    """
    least = _least_plan(rows, needs, resolve_memory_limit(memory_limit))
    ways = (replace(least, threads=count) for count in range(n_threads(n_jobs), 0, -1))
    return next(way.threads for way in ways if way.peak <= way.memory_limit)


def _least_plan(rows: RowShape, needs: FitNeeds, memory_limit: int) -> FitPlan:
    """The plan that takes the least memory: one thread, and nothing cached."""
    least = FitPlan(rows, needs, memory_limit, compile_seconds(needs.routines))
    if least.peak > memory_limit:
        limit = format_bytes(memory_limit)
        shape = f"{rows.n_samples:,} rows of {rows.n_features:,} columns"
        cold = f", {format_bytes(least._compiler)} of them for compilation, which mmcnb.warmup() does ahead"
        fault = f"memory_limit={limit} is too small for {shape}{cold if least.compile_seconds else ''}"
        remedy = "; ".join(
            filter(None, [format_bytes(least.peak, up=True), needs.remedy])
        )
        raise MemoryLimitError(f"{fault}; the least that works is {remedy}.")
    return least


def compile_seconds(routines: Mapping[str, float]) -> float:
    """Seconds to compile those routines for which neither this process nor the cache has machine code.

    Parameters
    ----------
    routines : mapping of str to float
        Seconds of each, as in `FitNeeds`.

    Returns
    -------
    float
        0 if all are compiled.

    Examples
    --------
    >>> from mmcnb.engine.plan import compile_seconds
    >>> compile_seconds({})
    0.0
    """
    cold = (
        name
        for name in routines
        if not _numba.is_compiled(getattr(kernels.unchecked, name))
    )
    return sum((routines[name] for name in cold), 0.0)


def _stores(plan: FitPlan) -> list[str]:
    """Stores of the features that are possible, however much memory they take."""
    linear = plan.needs.n_landmarks == 0
    if (
        linear and not plan.rows.is_reopenable
    ):  # the rows are their own features, and in memory
        return ["recompute"]
    too_large = plan._features > shutil.disk_usage(tempfile.gettempdir()).free
    scratch = [] if too_large or (linear and plan.rows.is_sparse) else ["scratch"]
    return ["memory", *scratch, "recompute"]
