"""Plan of a fit: its memory, passes over the data and time, estimated in advance."""

import math
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

import numpy as np

from mmcnb._config import LIBRARIES, format_bytes, n_threads, resolve_memory_limit
from mmcnb.engine.compilation import (
    can_compile_apart,
    compile_seconds,
    compiler_bytes,
)
from mmcnb.engine.compile_apart import APART_BYTES, compile_apart
from mmcnb.engine.run import READ_AHEAD, TASK_BYTES, task_rows
from mmcnb.errors import MemoryLimitError
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, Samples

# Kernel columns of up to this many bytes are cached if the memory limit or the disk
# allows it, even if the plan estimates that computing them again is faster.
CACHED_BYTES = 2**30
# Each thread after the first has its own heap. Between blocks, such a heap retains up
# to this many bytes: 2 to 14 MiB by measurement, with 2 to 8 threads.
HEAP_BYTES = 14 * 2**20
# Rough throughput of one core in bytes per second, used to rank plans. `python -m
# benchmarks engine` measures the rate of reads (435 MB/s for Zstandard chunks).
READ_RATE = 400e6
SWEEP_RATE = 8e9
SCRATCH_RATE = 0.9e9


@dataclass(frozen=True)
class RowShape:
    """Number, size and storage of the rows of a fit; the rows need not exist yet.

    Parameters
    ----------
    n_samples, n_features : int
        Number of rows and number of columns.
    dtype : str, default="float32"
        Data type of the values in a block.
    row_bytes : float, default=0.0
        Decoded bytes of a row. 0 means that rows are dense, with values of type
        ``dtype``.
    is_reopenable : bool, default=True
        Whether rows are read from storage or made block by block. The plan does not
        include the memory of an array that the caller passes.
    is_sparse : bool, default=False
        Whether rows are in CSR form.
    chunk_bytes : float, default=0.0
        Decoded bytes of one storage chunk.
    edge_bytes : float, default=0.0
        Decoded bytes of the chunks that are cached because a task needs only parts of
        them.
    held_bytes : float, default=0.0
        Bytes of rows that have been read from a table and stay in memory.
    """

    n_samples: int
    n_features: int
    dtype: str = "float32"
    row_bytes: float = 0.0
    is_reopenable: bool = True
    is_sparse: bool = False
    chunk_bytes: float = 0.0
    edge_bytes: float = 0.0
    held_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not self.row_bytes:
            object.__setattr__(
                self, "row_bytes", float(self.n_features * self.itemsize)
            )

    @property
    def itemsize(self) -> int:
        """Bytes per value of type ``dtype``."""
        return np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, samples: Samples, n_jobs: int | None = None) -> Self:
        """Return the `RowShape` of ``samples`` that ``n_jobs`` threads will read."""
        rows = task_rows(samples, n_threads(n_jobs))
        # If a task ends inside a chunk, the decoded chunk stays in memory.
        cuts_chunks = samples.is_sparse or (
            rows < samples.n_samples and rows % samples.chunk_rows
        )
        return cls(
            n_samples=samples.n_samples,
            n_features=samples.n_features,
            dtype=samples.dtype.name,
            row_bytes=samples.row_bytes,
            is_reopenable=samples.is_reopenable or samples.makes_blocks,
            is_sparse=samples.is_sparse,
            chunk_bytes=min(samples.chunk_rows, samples.n_samples) * samples.row_bytes,
            edge_bytes=samples.edge_bytes if cuts_chunks else 0,
            held_bytes=samples.held_bytes,
        )


@dataclass(frozen=True)
class FitNeeds:
    """Memory and work that a fit needs, as estimated by its method.

    Parameters
    ----------
    n_landmarks : int, default=0
        Number of kernel columns, which are the features of a row. 0 means a linear
        kernel, for which the features are the rows themselves.
    sample_size : int, default=2000
        Number of rows of the sample that the first pass draws.
    sample_bytes : float, default=0.0
        Bytes of the sample and of the arrays computed from the sample that stay in
        memory until the end of the fit.
    work_bytes : float, default=0.0
        Additional bytes that the search on the sample needs. They are freed before the
        first sweep over all rows.
    search_thread_bytes : float, default=0.0
        Additional bytes that the search on the sample needs for each thread after the
        first.
    larger_bytes : float, default=0.0
        Bytes of a second, larger sample during the sweeps over all rows; 0 if the fit
        does not draw a second sample.
    larger_rows : int, default=65536
        Maximum number of rows of the second sample.
    block_bytes : float, default=0.0
        Bytes of the total of a block until the total is added to the others. 0 means
        that they are negligible.
    thread_bytes : float, default=0.0
        Additional bytes that each thread needs during the sweeps.
    sweeps : int, default=1
        Maximum number of sweeps over the features after the first sweep.
    likely_sweeps : int, default=1
        Expected number of sweeps after the first sweep, used to estimate the time.
    reads : int, default=2
        Number of passes that read all rows, in addition to sweeps over the features.
        For example, one pass draws the sample, and one pass computes the features.
    row_seconds : float, default=0.0
        Seconds that one core needs to compute the features of a row.
    search_seconds : float, default=0.0
        Seconds that one core needs for all work on the sample.
    routines : dict of str to float, default={}
        CPU seconds to compile each routine that the fit calls, including the routines
        used with it. The keys are names in `mmcnb.kernels`.
    remedy : str, default=""
        How to reduce the memory. The message about too small a limit ends with it.
    """

    n_landmarks: int = 0
    sample_size: int = 2000
    sample_bytes: float = 0.0
    work_bytes: float = 0.0
    search_thread_bytes: float = 0.0
    larger_bytes: float = 0.0
    larger_rows: int = GROUP_ROWS
    block_bytes: float = 0.0
    thread_bytes: float = 0.0
    sweeps: int = 1
    likely_sweeps: int = 1
    reads: int = 2
    row_seconds: float = 0.0
    search_seconds: float = 0.0
    routines: dict[str, float] = field(default_factory=dict)
    remedy: str = ""


@dataclass(frozen=True, repr=False)
class FitPlan:
    """Plan of a fit: its memory, number of passes and time.

    Parameters
    ----------
    rows : RowShape
        Number, size and storage of the rows.
    needs : FitNeeds
        Memory and work that the method needs.
    memory_limit : int
        Limit on the resident memory, in bytes.
    compile_seconds : float, default=0.0
        Estimated seconds to compile the routines that are not compiled yet.
    threads : int, default=1
        Number of threads.
    store : {"memory", "scratch", "recompute"}, default="recompute"
        Where kernel columns are cached. "recompute" means that they are not cached, so
        each sweep computes them again.
    costs : dict of str to float, default={}
        Estimated seconds of all passes, by store. Only stores that respect the memory
        limit are included.
    compiles_apart : bool, default=False
        Whether other processes compile the routines before the fit begins, because
        the memory limit is too small to compile in the process of the fit.
    """

    rows: RowShape
    needs: FitNeeds
    memory_limit: int
    compile_seconds: float = 0.0
    threads: int = 1
    store: str = "recompute"
    costs: dict[str, float] = field(default_factory=dict)
    compiles_apart: bool = False

    # -- bytes -------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of memory needed for each purpose.

        The entry "scratch" has bytes on disk instead.
        """
        needs = self.needs
        columns = int(self._feature_bytes)
        work = needs.work_bytes + (self.threads - 1) * needs.search_thread_bytes
        compiler = compiler_bytes(self.compile_seconds)
        return {
            "libraries": LIBRARIES + (0 if self.compiles_apart else compiler),
            "rows": int(self.rows.held_bytes),
            "in_flight": int(self._in_flight),
            "sample": int(needs.sample_bytes),
            "work": int(work),
            "larger": int(needs.larger_bytes),
            # buffer for labels that are written to a file
            "row_state": 2**20 if self.rows.is_reopenable else 0,
            "cache": columns if self.store == "memory" else 0,
            "scratch": columns if self.store == "scratch" else 0,
        }

    @property
    def peak(self) -> int:
        """Expected peak of resident memory, in bytes.

        The peak occurs during the search on the sample, during the sweeps over all
        rows, or while other processes compile.
        """
        sizes = self.sizes
        sweeps = (
            sizes["larger"] + sizes["in_flight"] + sizes["row_state"] + sizes["cache"]
        )
        always = sizes["libraries"] + sizes["rows"] + sizes["sample"]
        before = 0
        if self.compiles_apart:
            before = APART_BYTES + sizes["rows"]
        return max(before, always + max(sizes["work"], sweeps))

    @property
    def capacity(self) -> int:
        """Bytes that a process may use to cache features during the sweeps."""
        sizes = self.sizes
        always = sizes["libraries"] + sizes["rows"]
        return self.memory_limit - always - sizes["in_flight"]

    @property
    def _feature_bytes(self) -> float:
        """Bytes of the features of all rows."""
        return self.rows.n_samples * (self.needs.n_landmarks * 4 or self.rows.row_bytes)

    @property
    def _in_flight(self) -> float:
        """Bytes of running tasks, pending totals, shared chunks, and thread heaps."""
        rows = self.rows
        needs = self.needs
        tasks = self.threads + READ_AHEAD
        read = max(
            min(TASK_BYTES, rows.n_samples * rows.row_bytes),
            BLOCK_ROWS * rows.row_bytes,
            rows.chunk_bytes,
        )
        # A task needs memory for its decoded rows, for a second copy in the decoder,
        # and for the features of one block.
        decoded = 2 * read if rows.is_reopenable else 0
        features = 4 * min(BLOCK_ROWS, rows.n_samples) * needs.n_landmarks
        task_blocks = max(1, int(TASK_BYTES / BLOCK_ROWS / rows.row_bytes))
        other_blocks = math.ceil(rows.n_samples / BLOCK_ROWS) - 1
        totals = min(tasks * task_blocks + 3, other_blocks) * needs.block_bytes
        heaps = (self.threads - 1) * HEAP_BYTES + self.threads * needs.thread_bytes
        return tasks * (decoded + features) + totals + rows.edge_bytes + heaps

    # -- passes and seconds ------------------------------------------------------------

    @property
    def reads(self) -> int:
        """Maximum number of passes that read the rows.

        If features are not cached, each sweep also reads the rows.
        """
        if self.store == "recompute":
            return self.needs.reads + self.needs.sweeps
        return self.needs.reads

    @property
    def bytes(self) -> int:
        """Maximum number of decoded bytes that the passes counted by `reads` read."""
        return int(self.reads * self.rows.n_samples * self.rows.row_bytes)

    @property
    def seconds(self) -> float:
        """Estimated seconds of the whole fit, including compilation."""
        return self.compile_seconds + self.needs.search_seconds + self.pass_seconds

    @property
    def pass_seconds(self) -> float:
        """Estimated seconds of all passes over the rows or over cached features."""
        n = self.rows.n_samples
        sweeps = self.needs.likely_sweeps
        read = n * self.rows.row_bytes / READ_RATE
        if not self.rows.is_reopenable:
            read *= 0.1  # assume that rows in memory are read ten times as fast
        reads = self.needs.reads * read
        features = n * self.needs.row_seconds
        size = max(self._feature_bytes, n * 8.0)
        sweep = size / SWEEP_RATE
        if self.store == "recompute":
            sweep += features + read
        seconds = (reads + features + sweeps * sweep) / self.threads
        if self.store == "scratch":
            # All threads share the disk. The features are written once, and each sweep
            # reads them.
            seconds += (1 + sweeps) * (size / SCRATCH_RATE)
        return seconds

    def compile_ahead(self) -> None:
        """Compile the routines of the fit in other processes, if the plan says so."""
        if self.compiles_apart:
            compile_apart(self.needs.routines, self.rows.is_sparse)

    # -- the plan in words -------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dict of numbers and strings, and a dict of costs."""
        return {
            "n_samples": self.rows.n_samples,
            "n_features": self.rows.n_features,
            "row_bytes": self.rows.row_bytes,
            "n_landmarks": self.needs.n_landmarks,
            "sweeps": self.needs.sweeps,
            "threads": self.threads,
            "memory_limit": self.memory_limit,
            "store": self.store,
            "costs": self.costs,
            "reads": self.reads,
            "bytes": self.bytes,
            "compile_seconds": self.compile_seconds,
            "peak": self.peak,
            "seconds": self.seconds,
            **self.sizes,
        }

    def _places(self) -> str:
        """Return a text that names the chosen store, and the seconds for each store."""
        size = format_bytes(self._feature_bytes)
        places = {
            "memory": f"in memory ({size})",
            "scratch": f"in a scratch file ({size})",
            "recompute": "computed anew at each sweep",
        }
        costs = [f"{places[self.store]}: {self.costs[self.store]:.3g} s"]
        for store, seconds in self.costs.items():
            if store != self.store:
                costs.append(f"{places[store]} {seconds:.3g} s")
        return "; ".join(costs)

    def lines(self) -> list[str]:
        """Return the plan as lines of text, with one fact per line."""
        rows = self.rows
        needs = self.needs
        purposes = {
            "libraries": "libraries",
            "rows": "rows of the table",
            "in_flight": "blocks in flight",
            "sample": "sample",
            "row_state": "labels",
            "larger": "larger sample",
            "work": "or work on the sample",
        }
        sizes = self.sizes
        parts = [
            f"{purpose} {format_bytes(sizes[name])}"
            for name, purpose in purposes.items()
            if sizes[name]
        ]
        facts = {
            "rows": f"{rows.n_samples:,} x {rows.n_features:,}, "
            f"{needs.n_landmarks} basis vectors",
            "kernel columns": self._places(),
            "reads of rows": f"at most {self.reads} ({format_bytes(self.bytes)}), "
            f"sweeps over kernel columns at most {needs.sweeps}",
            "peak memory": f"about {format_bytes(self.peak)} of "
            f"{format_bytes(self.memory_limit)} allowed ({', '.join(parts)})",
            "time": f"about {self.seconds:.3g} s on {self.threads} threads here, "
            f"{self.compile_seconds:.2g} s of it to compile (once"
            f"{', in other processes' if self.compiles_apart else ''})",
        }
        return [f"{name:<17}{text}" for name, text in facts.items()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


def plan_fit(
    rows: RowShape,
    needs: FitNeeds,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
) -> FitPlan:
    """Plan a fit before it begins.

    The plan selects the store of the kernel columns and the number of threads for which
    ``likely_sweeps`` sweeps take the least time within the memory limit. Kernel columns
    can be cached in memory, cached in a scratch file, or computed again in each sweep.
    Kernel columns of up to 1 GiB are always cached if the memory limit and the free
    disk space allow it.

    Parameters
    ----------
    rows : RowShape
        Number, size and storage of the rows.
    needs : FitNeeds
        Memory and work that the method needs.
    memory_limit : str, int or None, default=None
        Limit on the resident memory. None means the setting of `mmcnb.config` or, if it
        is not set, half of the free memory.
    n_jobs : int or None, default=None
        Maximum number of threads. None means the setting of `mmcnb.config` or, if it is
        not set, all cores.

    Returns
    -------
    FitPlan
        The plan.

    Raises
    ------
    MemoryLimitError
        If the limit is too small; the message names the smallest limit that works.

    Examples
    --------
    >>> from mmcnb.engine.plan import FitNeeds, RowShape, plan_fit
    >>> needs = FitNeeds(n_landmarks=200, sweeps=5, likely_sweeps=5, row_seconds=1e-6)
    >>> plan_fit(RowShape(32_561, 123), needs, memory_limit="1GiB").store
    'memory'
    >>> plan_fit(RowShape(10**7, 32), needs, memory_limit="512MiB").peak <= 512 * 2**20
    True
    """
    limit = resolve_memory_limit(memory_limit)
    least = _least_plan(rows, needs, limit)
    plans = []
    costs: dict[str, float] = {}
    for store, threads in product(_stores(least), range(1, n_threads(n_jobs) + 1)):
        plan = replace(least, store=store, threads=threads)
        if plan.peak <= limit:
            plans.append(plan)
            costs[store] = min(plan.pass_seconds, costs.get(store, math.inf))
    cached = [plan for plan in plans if plan.store != "recompute"]
    is_small = least._feature_bytes <= CACHED_BYTES
    candidates = cached if cached and is_small else plans
    return replace(min(candidates, key=lambda plan: plan.pass_seconds), costs=costs)


def plan_passes(
    rows: RowShape,
    needs: FitNeeds,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
) -> FitPlan:
    """Plan passes over the rows that do not cache features.

    Parameters
    ----------
    rows, needs, memory_limit, n_jobs
        See `plan_fit`.

    Returns
    -------
    FitPlan
        The plan with as many of the ``n_jobs`` threads as the memory limit allows.

    Raises
    ------
    MemoryLimitError
        If the limit is too small for one thread; the message names the smallest limit
        that works.

    Examples
    --------
    >>> from mmcnb.engine.plan import FitNeeds, RowShape, plan_passes
    >>> rows, needs = RowShape(10**7, 250, chunk_bytes=2**25), FitNeeds(n_landmarks=200)
    >>> plan_passes(rows, needs, memory_limit="600MiB", n_jobs=16).threads
    2
    """
    least = _least_plan(rows, needs, resolve_memory_limit(memory_limit))
    threads = n_threads(n_jobs)
    while replace(least, threads=threads).peak > least.memory_limit:
        threads -= 1
    plan = replace(least, threads=threads)
    return replace(plan, costs={plan.store: plan.pass_seconds})


def _least_plan(rows: RowShape, needs: FitNeeds, memory_limit: int) -> FitPlan:
    """Return the plan with the least memory: one thread and no cached features.

    If the memory limit is too small to compile in the process of the fit, the plan
    compiles in other processes.

    Raises
    ------
    MemoryLimitError
        If the limit is too small for this plan.
    """
    seconds = compile_seconds(needs.routines)
    least = FitPlan(rows, needs, memory_limit, seconds)
    if least.peak <= memory_limit:
        return least
    apart = replace(least, compiles_apart=True)
    if seconds > 0 and can_compile_apart(needs.routines):
        if apart.peak <= memory_limit:
            return apart
        least = min(least, apart, key=lambda plan: plan.peak)
    message = (
        f"memory_limit={format_bytes(memory_limit)} is too small for "
        f"{rows.n_samples:,} rows of {rows.n_features:,} columns"
    )
    if seconds and not least.compiles_apart:
        size = format_bytes(compiler_bytes(seconds))
        message += f" and {size} for compilation, which mmcnb.warmup() does in advance"
    message += f"; the least that works is {format_bytes(least.peak, up=True)}"
    if needs.remedy:
        message += f"; {needs.remedy}"
    raise MemoryLimitError(f"{message}.")


def _stores(plan: FitPlan) -> list[str]:
    """Return the stores where features could be cached if memory were unlimited."""
    is_linear = plan.needs.n_landmarks == 0
    if is_linear and not plan.rows.is_reopenable:
        return ["recompute"]  # the rows are the features, and are already in memory
    is_too_large = plan._feature_bytes > shutil.disk_usage(tempfile.gettempdir()).free
    if is_too_large or (is_linear and plan.rows.is_sparse):
        return ["memory", "recompute"]
    return ["memory", "scratch", "recompute"]
