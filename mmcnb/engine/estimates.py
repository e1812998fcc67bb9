"""What a fit will hold, and how long it will take."""

import math
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mmcnb._config import LIBRARIES, format_bytes
from mmcnb.engine.run import READ_AHEAD, TASK_BYTES
from mmcnb.errors import MemoryLimitError
from mmcnb.samples import BLOCK_ROWS
from mmcnb.samples.matrix import FREED_BYTES

if TYPE_CHECKING:
    from mmcnb.engine.plan import FitNeeds, RowShape

# CPU seconds to compile what fits use; `python -m benchmarks startup` prints those of whole first fits.
COMPILE_SECONDS = {
    "size_multipliers": 5.0,
    "refine": 3.5,  # with the other routines of the search for a partition
    "nearest_nodes_into": 5.5,  # with those of a graph and its spectrum
    "rbf_kernel_block_into": 3.5,
    "most_violated_constraint": 4.0,  # with those of the cutting planes
    "cccp_rounds": 6.5,
}
OF_GRAPH = ("nearest_nodes_into",)
OF_KERNEL = ("rbf_kernel_block_into",)
OF_PARTITION = ("size_multipliers", "refine")
OF_MARGIN = ("most_violated_constraint",)
OF_ROUNDS = ("cccp_rounds",)
DEFAULT = OF_GRAPH + OF_KERNEL + OF_PARTITION + OF_MARGIN


# Rough rates of one core: they rank plans, no more. `python -m benchmarks engine` measures reads and products
# (435 MB a second of Zstandard chunks, 56 to 86 GFLOP a second for blocks of 4,096 rows).
READ_BYTES = 400e6
PRODUCT_FLOPS = 40e9
EXP_SECONDS = 0.8e-9
SWEEP_BYTES = 8e9
SCRATCH_BYTES = 0.9e9
# Seconds of one core, from CPU seconds of fits to 1,500 x 30 and 20,000 x 50 rows with 2 and 10 clusters.
MARGIN_SECONDS, PARTITION_SECONDS = 0.35, 0.5  # on a sample of 2,000 rows
NODE_SECONDS = 2.2e-4  # of the graph and its coordinates, a node
NUMBERS = 3.0  # how much longer the search takes that chooses the number of clusters
WIDE_COLUMNS = 10_000  # beyond it basis vectors of sparse rows stay sparse: dense ones would fill the memory
LINEAR_PLANES = 80  # cutting planes of a linear method that are held at once, each with what generated it
SUMMED_PLANES = 40  # of them, for whose sums a block of rows waits
SPARSE_WORK = 2**26  # bytes of copies of CSR rows, measured on 2,000 rows of 1,000 to 300,000 columns
# Of a process that compiles, beyond one with its routines in the cache: 106 to 126 MiB, measured.
COMPILER, COMPILED_A_SECOND = 104 * 2**20, 3 * 2**19
ROW_STATE = 2**20  # labels of the rows on their way, in bytes
STORES = ("memory", "scratch", "recompute")
AXES = 60  # principal axes of the sample, while they are sought


def read_seconds(rows: "RowShape") -> float:
    """Seconds of one core to read all rows, from storage or from memory."""
    return rows.n_samples * rows.row_bytes / READ_BYTES * (1.0 if rows.is_reopenable else 0.1)


def sweep_seconds(
    store: str, threads: int, sweeps: int, flops: float, values: float, size: float, read: float
) -> float:
    """Seconds of two reads and some sweeps over kernel columns, by where these are.

    Parameters
    ----------
    store : {"memory", "scratch", "recompute"}
        Where the columns are.
    threads, sweeps : int
        Threads, and sweeps after the first.
    flops, values : float
        Operations that give the columns, and the number of their values.
    size : float
        Bytes of the columns.
    read : float
        Seconds of one read of the rows.

    Returns
    -------
    float
    """
    columns, sweep = flops / PRODUCT_FLOPS + values * EXP_SECONDS, size / SWEEP_BYTES
    if store == "recompute":
        return (2 * read + sweeps * (columns + read + sweep)) / threads
    scratch = size / SCRATCH_BYTES if store == "scratch" else 0.0
    return (2 * read + columns + sweeps * sweep) / threads + (1 + sweeps) * scratch


def margin_seconds(rows: int, n_features: int = 0, n_clusters: int = 2) -> float:
    """Seconds of the starts of the hinge methods on a sample."""
    return MARGIN_SECONDS * rows / 2000 * (1 + n_features / 500) * (n_clusters - 1)


def partition_seconds(rows: int, n_clusters: int) -> float:
    """Seconds of the search for a partition of a sample by least squares."""
    return PARTITION_SECONDS * (rows / 2000) ** 2 * (1 + 0.1 * (n_clusters - 2))


def graph_seconds(nodes: int, n_clusters: int) -> float:
    """Seconds of the graph of some nodes and of its clusters, without the search on a sample of the nodes."""
    return NODE_SECONDS * nodes * (1 + 0.05 * (n_clusters - 2))


def all_numbers(methods: list["FitNeeds"]) -> list["FitNeeds"]:
    """The needs of methods that try every number of clusters, up to that of which these are the needs."""
    return [replace(one, search_seconds=NUMBERS * (one.search_seconds or 0.0)) for one in methods]


def both_searches(one: "FitNeeds", other: "FitNeeds") -> list["FitNeeds"]:
    """The needs of two methods that are both tried, each with the search and the compilation of both."""
    seconds = [needs.search_seconds for needs in (one, other) if needs.search_seconds is not None]
    routines = tuple(dict.fromkeys(one.routines + other.routines))
    return [replace(needs, search_seconds=sum(seconds), routines=routines) for needs in (one, other)]


def stage_seconds(rows: "RowShape", needs: "FitNeeds", threads: int, passes: float) -> dict[str, float]:
    """Seconds of each stage of a fit.

    Parameters
    ----------
    rows : RowShape
        The rows.
    needs : FitNeeds
        What the method does.
    threads : int
        Threads that read.
    passes : float
        Seconds of all reads and sweeps over all rows, with that which draws the sample.

    Returns
    -------
    dict of str to float
    """
    sample, search = read_seconds(rows) / threads, needs.search_seconds
    if search is None:
        search = margin_seconds(min(needs.sample_size, rows.n_samples), rows.n_features)
    compiling = compile_estimate(needs.routines)
    return {"compiling": compiling, "sample": sample, "search": search, "passes": passes - sample}


def compile_estimate(routines: Iterable[str]) -> float:
    """Seconds to compile those routines of which neither this process nor the cache has machine code.

    Parameters
    ----------
    routines : iterable of str
        Names out of `COMPILE_SECONDS`; each stands for those that are used with it.

    Returns
    -------
    float
        0 where all are compiled.

    Examples
    --------
    >>> from mmcnb.engine.estimates import compile_estimate
    >>> compile_estimate([])
    0.0
    """
    from mmcnb import kernels
    from mmcnb._numba import is_compiled

    cold = (name for name in routines if not is_compiled(getattr(kernels.unchecked, name)))
    return sum((COMPILE_SECONDS[name] for name in cold), 0.0)


def compiler_bytes(routines: Iterable[str]) -> int:
    """Bytes that compilation will take, and keep; 0 where all routines are compiled."""
    seconds = compile_estimate(routines)
    return COMPILER + int(seconds * COMPILED_A_SECOND) if seconds else 0


def sample_bytes(rows: Any, needs: Any) -> float:
    """Bytes of a sample, of its kernel columns for one candidate, and of its basis.

    Parameters
    ----------
    rows : RowShape
        The shape of the rows.
    needs : FitNeeds
        What the method holds.

    Returns
    -------
    float
        Bytes.
    """
    size = min(needs.sample_size, rows.n_samples)
    if rows.is_sparse and needs.stays_sparse:
        # As it is read, put together, in float64, and while it is copied.
        held = SPARSE_WORK + 4 * size * rows.row_bytes
    else:
        dense_rows = size if needs.dense_rows is None else min(needs.dense_rows, size)
        held = dense_rows * rows.n_features * (rows.itemsize + 8)
    # CSR rows are held once more while they are put together.
    drawn = needs.rows_to_draw(rows.n_features)
    apart = max(needs.held_rows, drawn if drawn > needs.sample_size else 0)
    parts = min(apart, rows.n_samples) * rows.row_bytes * (1 + rows.is_sparse)
    columns = min(needs.sample_copies, 1) * _columns_bytes(rows, needs)
    return float(held + columns + parts + _basis_bytes(rows, needs) + needs.sample_bytes)


def search_bytes(rows: Any, needs: Any) -> float:
    """Bytes that work on the sample gives back: of the method, and of other candidates."""
    return float(needs.work_bytes + max(needs.sample_copies - 1, 0) * _columns_bytes(rows, needs))


def larger_bytes(rows: Any, needs: Any) -> float:
    """Bytes of the larger sample, while it is put together."""
    a_row = needs.n_landmarks * 4 or rows.row_bytes
    # Dense parts go as they are copied; CSR ones are held until all are.
    twice = rows.is_sparse and not needs.n_landmarks
    return float(needs.larger_rows * a_row * (1 + twice) + (FREED_BYTES if needs.larger_rows else 0))


def _columns_bytes(rows: Any, needs: Any) -> float:
    """Bytes of a sample's kernel columns: float32 values, and as many float64 coordinates."""
    return min(needs.sample_size, rows.n_samples) * 3.0 * 4 * needs.n_landmarks


def _basis_bytes(rows: Any, needs: Any) -> float:
    """Bytes of the basis vectors and their kernel matrix, or of the cutting planes of a linear method."""
    p, d = max(needs.n_landmarks, needs.basis_rows), rows.n_features
    if p == 0:
        return 3.0 * 8 * LINEAR_PLANES * d
    gram = 16.0 * needs.n_landmarks**2
    if not (rows.is_sparse and needs.stays_sparse):
        return gram + 24.0 * p * d
    a_row = max(rows.row_bytes - 8, 0) / (rows.itemsize + 4)  # values
    wide = d > WIDE_COLUMNS
    held, axes = (min(d, p * a_row), 8 * AXES * d) if wide else (d, 0)
    # Each candidate has the vectors once as they are and once transposed, in float64.
    return float(gram + axes + 24 * p * held + needs.sample_copies * (16 * p * held + 4 * d * wide))


class Costs:
    """Bytes and seconds of a fit, by its threads and by the store of its kernel columns.

    Parameters
    ----------
    rows : RowShape
        The rows.
    needs : FitNeeds
        What the method will hold and do.
    limit : int
        Resident bytes allowed.
    """

    def __init__(self, rows: "RowShape", needs: "FitNeeds", limit: int) -> None:
        self.rows, self.limit = rows, limit
        self.n_landmarks, self.row_flops = needs.n_landmarks, needs.row_flops
        kernel_bytes = needs.n_landmarks * 4
        self.feature_bytes = kernel_bytes or rows.row_bytes
        self.cache = rows.n_samples * self.feature_bytes
        self.compiler = compiler_bytes(needs.routines)
        self.libraries = LIBRARIES + needs.libraries + self.compiler
        self.row_state = ROW_STATE if rows.is_reopenable else 0
        self.sample, self.work = sample_bytes(rows, needs), search_bytes(rows, needs)
        self.larger = larger_bytes(rows, needs)
        # A thread holds decoded rows, a second copy inside the decoder, and one block's features.
        task = max(
            min(TASK_BYTES, rows.n_samples * rows.row_bytes), BLOCK_ROWS * rows.row_bytes, rows.chunk_bytes
        )
        self.task = 2 * task * rows.is_reopenable + min(BLOCK_ROWS, rows.n_samples) * kernel_bytes
        # Each block of a linear method has sums of all columns for each plane; they wait for their turn.
        self.block_sums = 0.0 if kernel_bytes else 8.0 * SUMMED_PLANES * rows.n_features
        self.task_blocks = max(1, int(TASK_BYTES / BLOCK_ROWS / rows.row_bytes))

    def in_flight(self, threads: int) -> float:
        """Bytes of the blocks that threads hold, and of the chunks that they share."""
        tasks, others = threads + READ_AHEAD, math.ceil(self.rows.n_samples / BLOCK_ROWS) - 1
        sums = min(tasks * self.task_blocks + 3, others) * self.block_sums
        return tasks * self.task + sums + self.rows.edge_bytes

    def capacity(self, threads: int) -> float:
        """Bytes of the limit that are left for kernel columns."""
        others = self.libraries + self.sample + self.larger + self.row_state
        return self.limit - others - self.in_flight(threads)

    def check(self) -> None:
        """Refuse a limit that is too small for one thread."""
        least = max(self.limit - self.capacity(1), self.libraries + self.sample + self.work)
        if least > self.limit:
            compiler = format_bytes(self.compiler)
            cold = f", {compiler} of them for compilation, which mmcnb.warmup() does ahead"
            raise MemoryLimitError(
                f"memory_limit={format_bytes(self.limit)} is too small for {self.rows.n_samples:,} rows of "
                f"{self.rows.n_features:,} columns{cold if self.compiler else ''}; "
                f"the least that works is {format_bytes(least, up=True)}."
            )

    def stores(self) -> list[str]:
        """Where kernel columns may be, as far as memory allows."""
        linear = self.n_landmarks == 0
        if linear and not self.rows.is_reopenable:  # the rows are their own features, and in memory
            return ["recompute"]
        too_large = self.cache > shutil.disk_usage(tempfile.gettempdir()).free
        no_scratch = too_large or (linear and self.rows.is_sparse)
        return [store for store in STORES if store != "scratch" or not no_scratch]

    def ways(self, threads: int, sweeps: int) -> dict[tuple[str, int], float]:
        """Seconds of every store and number of threads within the limit."""
        return {
            (store, count): self._seconds(store, count, sweeps)
            for store in self.stores()
            for count in range(1, threads + 1)
            if self.capacity(count) >= (self.cache if store == "memory" else 0)
        }

    def _seconds(self, store: str, threads: int, sweeps: int) -> float:
        rows, p = self.rows, self.n_landmarks
        flops = rows.n_samples * (2.0 * rows.row_bytes / rows.itemsize * p + self.row_flops)
        columns, size = (flops, rows.n_samples * p), max(self.cache, rows.n_samples * 8.0)
        return sweep_seconds(store, threads, sweeps, *columns, size, read_seconds(rows))
