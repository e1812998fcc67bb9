"""What a fit will read, hold and write, worked out before any work."""

import shutil
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

from mmcnb.engine.memory import LIBRARIES, MIB, format_bytes, resolve_memory_limit
from mmcnb.engine.run import READ_AHEAD, TASK_BYTES, n_threads, task_rows
from mmcnb.errors import MemoryLimitError
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, Samples

# Rough rates of one core: they rank plans, no more.
READ_BYTES = 400e6
PRODUCT_FLOPS = 40e9
EXP_SECONDS = 0.8e-9
SWEEP_BYTES = 8e9
SCRATCH_BYTES = 0.9e9
LIKELY_SWEEPS = 20
CANDIDATE_WIDTHS = 7
SAMPLE_SECONDS = 1.0  # starts and widths on the sample, whatever the number of rows
LARGER_SAMPLE = GROUP_ROWS  # rows of the second sample, where there are more than twice as many
KEPT_BYTES = 2**30  # kernel columns up to this size are kept, and swept as often as the path needs
MANY_SWEEPS, FEW_SWEEPS = 300, 5
STORES = ("memory", "scratch", "recompute")


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit: what is read, held and written.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the work.
    row_bytes : float
        Decoded bytes of a row.
    n_landmarks : int
        Basis vectors.
    threads : int
        Threads used.
    memory_limit : int
        Resident bytes allowed.
    libraries, in_flight, sample, row_state, cache : int
        Bytes held for libraries, blocks being read, the sample, labels, kernel columns.
    store : {"memory", "scratch", "recompute"}
        Where kernel columns are kept.
    costs : dict of str to float
        Estimated seconds for each place that could hold them within the limit.
    scratch : int
        Bytes written to a scratch file.
    sweeps : int
        Sweeps over the kernel columns that are expected at most.
    reads : int
        Expected reads of the rows at most.
    bytes : int
        Decoded bytes of all those reads.
    seconds : float
        Estimated seconds.

    Examples
    --------
    >>> from mmcnb.engine.plan import plan_fit
    >>> plan_fit(10**7, 32, memory_limit="512MiB").store
    'recompute'
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
    row_state: int
    cache: int
    store: str
    costs: dict[str, float]
    scratch: int
    sweeps: int
    reads: int
    bytes: int
    seconds: float

    @property
    def few(self) -> bool:
        """Whether the sweeps over all rows are counted out."""
        return self.sweeps <= FEW_SWEEPS

    @property
    def peak(self) -> int:
        """Expected peak of resident memory, in bytes."""
        return self.libraries + self.in_flight + self.sample + self.row_state + self.cache

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain numbers and strings."""
        return asdict(self) | {"peak": self.peak}

    def _where(self) -> str:
        """Where kernel columns are kept, and what each place would cost."""
        size = format_bytes(self.n_samples * (self.n_landmarks * 4 or self.row_bytes))
        words = {
            "memory": f"in memory ({size})",
            "scratch": f"in a scratch file ({size})",
            "recompute": "computed anew at each sweep",
        }
        chosen = f"{words[self.store]}: {self.costs[self.store]:.3g} s"
        others = [f"{words[place]} {self.costs[place]:.3g} s" for place in self.costs if place != self.store]
        return "; ".join([chosen, *others])

    def lines(self) -> list[str]:
        """The plan for people, one fact a line."""
        return [
            f"rows             {self.n_samples:,} x {self.n_features:,}, {self.n_landmarks} basis vectors",
            f"kernel columns   {self._where()}",
            f"reads of rows    at most {self.reads} ({format_bytes(self.bytes)}), "
            f"sweeps over kernel columns at most {self.sweeps}",
            f"peak memory      about {format_bytes(self.peak)} of {format_bytes(self.memory_limit)} allowed "
            f"(libraries {format_bytes(self.libraries)}, blocks in flight {format_bytes(self.in_flight)}, "
            f"sample {format_bytes(self.sample)}, labels {format_bytes(self.row_state)})",
            f"time             about {self.seconds:.3g} s on {self.threads} threads",
        ]


@dataclass(frozen=True)
class FitNeeds:
    """What a method will hold and do.

    Parameters
    ----------
    n_landmarks : int, default=0
        Basis vectors; 0 where the columns are the features.
    sample_size : int, default=2000
        Rows of the sample.
    sample_copies : int, default=7
        How many times kernel columns of the sample are held.
    sample_bytes : float, default=0.0
        What work on the sample holds beside its columns.
    larger_rows : int, default=0
        Rows of a second sample.
    sweeps : int or None, default=None
        Most sweeps after the first, where that is known.
    max_threads : int or None, default=None
        Most threads, where each holds much.
    """

    n_landmarks: int = 0
    sample_size: int = 2000
    sample_copies: int = 7
    sample_bytes: float = 0.0
    larger_rows: int = 0
    sweeps: int | None = None
    max_threads: int | None = None


def most_sweeps(n_samples: int, feature_bytes: float) -> int:
    """Sweeps over all rows that a fit may make; the size of the work alone decides, or the answer would
    depend on the machine.

    Examples
    --------
    >>> from mmcnb.engine.plan import most_sweeps
    >>> most_sweeps(10**6, 800), most_sweeps(10**7, 800)
    (300, 5)
    """
    return MANY_SWEEPS if n_samples * feature_bytes <= KEPT_BYTES else FEW_SWEEPS


def larger_sample(n_samples: int) -> int:
    """Rows of the second sample; 0 where all rows are hardly more.

    Examples
    --------
    >>> from mmcnb.engine.plan import larger_sample
    >>> larger_sample(10**5), larger_sample(10**6)
    (0, 65536)
    """
    return LARGER_SAMPLE if n_samples > 2 * LARGER_SAMPLE else 0


def size_of(samples: Samples, n_jobs: int | None = None) -> dict[str, Any]:
    """What `plan_fit` wants to know of some rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.engine.plan import size_of
    >>> from mmcnb.samples import open_samples
    >>> size_of(open_samples(np.eye(3)))["row_bytes"]
    24.0
    """
    rows = task_rows(samples, n_threads(n_jobs))
    cut = samples.is_sparse or (rows < samples.n_samples and rows % samples.chunk_rows)
    return {
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        "row_bytes": samples.row_bytes,
        "dtype": samples.dtype.name,
        "stored": samples.is_reopenable,
        "is_sparse": samples.is_sparse,
        "chunk_bytes": min(samples.chunk_rows, samples.n_samples) * samples.row_bytes,
        "edge_bytes": samples.edge_bytes if cut else 0,
    }


def square_rows(bytes_allowed: int, matrices: int) -> int:
    """Rows of a sample of which so many square matrices, float64, leave half of the memory to other things.

    Examples
    --------
    >>> from mmcnb.engine.plan import square_rows
    >>> square_rows(2**30, 3)
    3976
    """
    return int((max(bytes_allowed - LIBRARIES, 0) / 2 / matrices / 8) ** 0.5)


def plan_fit(
    n_samples: int,
    n_features: int,
    *,
    row_bytes: float | None = None,
    dtype: str = "float32",
    n_landmarks: int = 200,
    sample_size: int = 2000,
    sample_bytes: float = 0.0,
    larger_rows: int | None = None,
    sweeps: int | None = None,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
    stored: bool = True,
    chunk_bytes: float = 0.0,
    edge_bytes: float = 0.0,
    is_sparse: bool = False,
) -> FitPlan:
    """Plan a fit: what is read, held and written, before any work.

    Kernel columns of up to 1 GiB are kept, in memory or in a scratch file, and swept until the fit
    converges. Larger ones go where a few sweeps cost least: memory where they fit, a scratch file, or
    nowhere, which computes them anew.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    row_bytes : float or None, default=None
        Decoded bytes a row; None means dense rows of ``dtype``.
    dtype : str, default="float32"
        Type of dense rows.
    n_landmarks : int, default=200
        Basis vectors; 0 for a linear kernel, which sweeps the rows themselves.
    sample_size : int, default=2000
        Rows of the sample on which starts and widths are tried.
    sample_bytes : float, default=0.0
        Bytes that work on the sample holds beside its rows and their kernel columns.
    larger_rows : int or None, default=None
        Rows of a second sample; None is as many as `larger_sample` says, 0 for a fit that draws none.
    sweeps : int or None, default=None
        Most sweeps over the kernel columns after the first; None is as many as `most_sweeps` says.
    memory_limit : str, int or None, default=None
        Resident memory allowed; None is half of what is free.
    n_jobs : int or None, default=None
        Threads.
    stored : bool, default=True
        Whether the rows come from storage; rows the caller holds in memory are not counted.
    chunk_bytes : float, default=0.0
        Decoded bytes of one storage chunk: what has to be held to read any row of it.
    edge_bytes : float, default=0.0
        Decoded bytes of chunks that are held because a task needs parts of them.
    is_sparse : bool, default=False
        Whether the rows are in CSR form.

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
    >>> from mmcnb.engine.plan import plan_fit
    >>> plan = plan_fit(32_561, 123, n_landmarks=200, memory_limit="1GiB")
    >>> plan.store
    'memory'
    """
    import numpy as np

    limit, threads = resolve_memory_limit(memory_limit), n_threads(n_jobs)
    row_bytes = row_bytes or n_features * np.dtype(dtype).itemsize
    kernel_bytes = n_landmarks * 4
    feature_bytes = kernel_bytes or row_bytes
    # Every candidate width holds float32 kernel columns and as many float64 coordinates of the sample.
    sample: float = min(sample_size, n_samples) * (2 * n_features * 8 + CANDIDATE_WIDTHS * 3 * kernel_bytes)
    sample += n_landmarks * (2 * n_landmarks + 3 * n_features) * 8  # the basis and its kernel matrix
    larger_rows = larger_sample(n_samples) if larger_rows is None else larger_rows
    sample += 2 * larger_rows * feature_bytes + sample_bytes
    row_state = 0 if not stored else 4 * 2**18
    cache = n_samples * feature_bytes
    # A thread holds decoded rows, a second copy inside the decoder, and one block's features.
    task = max(min(TASK_BYTES, n_samples * row_bytes), BLOCK_ROWS * row_bytes, chunk_bytes) if stored else 0
    held = 2 * task + min(BLOCK_ROWS, n_samples) * kernel_bytes

    def room(workers: int) -> float:
        return limit - LIBRARIES - sample - row_state - edge_bytes - (workers + READ_AHEAD) * held

    if room(1) < 0:
        least_mib = -(-(limit - room(1)) // MIB)
        raise MemoryLimitError(
            f"memory_limit={format_bytes(limit)} is too small for {n_samples:,} rows of {n_features:,} "
            f"columns; the least that works is {least_mib:.0f}MiB."
        )
    likely = sweeps or (FEW_SWEEPS if larger_rows else LIKELY_SWEEPS)
    sweeps = most_sweeps(n_samples, feature_bytes) if sweeps is None else sweeps
    flops = 2.0 * n_samples * row_bytes / np.dtype(dtype).itemsize * n_landmarks
    map_seconds = flops / PRODUCT_FLOPS + n_samples * n_landmarks * EXP_SECONDS
    read = n_samples * row_bytes / READ_BYTES * (1.0 if stored else 0.1)
    sweep = n_samples * max(feature_bytes, 8) / SWEEP_BYTES

    def seconds_of(workers: int, store: str) -> float:
        if store == "recompute":
            return (2 * read + likely * (map_seconds + read + sweep)) / workers
        scratch = cache / SCRATCH_BYTES if store == "scratch" else 0.0
        return (2 * read + map_seconds + likely * sweep) / workers + (1 + likely) * scratch

    fits = {
        "memory": [workers for workers in range(1, threads + 1) if cache <= room(workers)],
        "scratch": [workers for workers in range(1, threads + 1) if room(workers) >= 0],
        "recompute": [workers for workers in range(1, threads + 1) if room(workers) >= 0],
    }
    if cache > shutil.disk_usage(tempfile.gettempdir()).free or (is_sparse and n_landmarks == 0):
        fits["scratch"] = []
    if n_landmarks == 0 and not stored:  # the rows are their own features, and in memory
        fits["memory"] = fits["scratch"] = []
    ways = {(store, workers): seconds_of(workers, store) for store in STORES for workers in fits[store]}
    costs = {
        store: min(seconds for (place, _), seconds in ways.items() if place == store)
        for store in STORES
        if fits[store]
    }
    if cache <= KEPT_BYTES and len(costs) > 1:
        ways = {way: seconds for way, seconds in ways.items() if way[0] != "recompute"}
    store, threads = min(ways, key=lambda way: ways[way])
    reads = 2 + (sweeps if store == "recompute" else 0)
    return FitPlan(
        n_samples=n_samples,
        n_features=n_features,
        row_bytes=row_bytes,
        n_landmarks=n_landmarks,
        threads=threads,
        memory_limit=limit,
        libraries=LIBRARIES,
        in_flight=int((threads + READ_AHEAD) * held + edge_bytes),
        sample=int(sample),
        row_state=row_state,
        cache=int(cache) if store == "memory" else 0,
        store=store,
        costs=costs,
        scratch=int(cache) if store == "scratch" else 0,
        sweeps=sweeps,
        reads=reads,
        bytes=int(reads * n_samples * row_bytes),
        seconds=SAMPLE_SECONDS + costs[store],
    )
