"""What a fit will read, hold and write, worked out before any work."""

from dataclasses import asdict, dataclass
from typing import Any

from mmcnb._errors import MemoryLimitError
from mmcnb.engine._memory import LIBRARIES, MIB, format_bytes, resolve_memory_limit
from mmcnb.engine._run import TASK_BYTES, n_threads
from mmcnb.samples import BLOCK_ROWS

# Rough rates of one core: they rank plans, no more.
READ_BYTES = 400e6
PRODUCT_FLOPS = 40e9
EXP_SECONDS = 0.8e-9
SWEEP_BYTES = 8e9
SCRATCH_BYTES = 0.9e9
LIKELY_SWEEPS = 20
CANDIDATE_WIDTHS = 7
SAMPLE_SECONDS = 1.0  # starts and widths on the sample, whatever the number of rows
ROW_SWEEPS, LEAST_SWEEPS, MOST_SWEEPS = 2 * 10**8, 12, 300
STORES = ("memory", "scratch", "recompute")


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit: what is read, held and written.

    Parameters
    ----------
    n_samples, n_features, n_landmarks : int
        Size of the work.
    threads : int
        Threads used.
    memory_limit : int
        Resident bytes allowed.
    libraries, in_flight, sample, row_state, cache : int
        Bytes held for libraries, blocks being read, the sample, labels, kernel columns.
    store : {"memory", "scratch", "recompute"}
        Where kernel columns are kept.
    scratch : int
        Bytes written to a scratch file.
    sweeps : int
        Sweeps over the kernel columns that are expected at most.
    reads : int
        Expected reads of the rows at most.
    seconds : float
        Estimated seconds.

    Examples
    --------
    >>> from mmcnb.engine import plan_fit
    >>> plan_fit(10**6, 32, memory_limit="512MiB").store
    'recompute'
    """

    n_samples: int
    n_features: int
    n_landmarks: int
    threads: int
    memory_limit: int
    libraries: int
    in_flight: int
    sample: int
    row_state: int
    cache: int
    store: str
    scratch: int
    sweeps: int
    reads: int
    seconds: float

    @property
    def peak(self) -> int:
        """Expected peak of resident memory, in bytes."""
        return self.libraries + self.in_flight + self.sample + self.row_state + self.cache

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain numbers and strings."""
        return asdict(self) | {"peak": self.peak}

    def lines(self) -> list[str]:
        """The plan for people, one fact a line."""
        where = {
            "memory": f"in memory, {format_bytes(self.cache)}",
            "scratch": f"in a scratch file, {format_bytes(self.scratch)}",
            "recompute": "recomputed at each sweep, nothing kept",
        }[self.store]
        return [
            f"rows             {self.n_samples:,} x {self.n_features:,}, {self.n_landmarks} basis vectors",
            f"kernel columns   {where}",
            f"reads of rows    at most {self.reads}, sweeps at most {self.sweeps}",
            f"peak memory      about {format_bytes(self.peak)} of {format_bytes(self.memory_limit)} allowed "
            f"(libraries {format_bytes(self.libraries)}, blocks in flight {format_bytes(self.in_flight)}, "
            f"sample {format_bytes(self.sample)}, labels {format_bytes(self.row_state)})",
            f"time             about {self.seconds:.3g} s on {self.threads} threads",
        ]


def most_sweeps(n_samples: int) -> int:
    """Sweeps over all rows that a fit may make; it depends on nothing but n, or the answer would depend on
    the machine.

    Examples
    --------
    >>> from mmcnb.engine import most_sweeps
    >>> most_sweeps(10**6), most_sweeps(10**7), most_sweeps(10**8)
    (200, 20, 12)
    """
    return int(min(MOST_SWEEPS, max(LEAST_SWEEPS, ROW_SWEEPS // max(n_samples, 1))))


def plan_fit(
    n_samples: int,
    n_features: int,
    *,
    row_bytes: float | None = None,
    dtype: str = "float32",
    n_landmarks: int = 200,
    sample_size: int = 2000,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
    stored: bool = True,
    chunk_bytes: float = 0.0,
) -> FitPlan:
    """Plan a fit: what is read, held and written, before any work.

    Kernel columns stay in memory when they fit. When they do not, they go to a
    scratch file or are recomputed, whichever costs less time in all sweeps.

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
    memory_limit : str, int or None, default=None
        Resident memory allowed; None is half of what is free.
    n_jobs : int or None, default=None
        Threads.
    stored : bool, default=True
        Whether the rows come from storage; rows the caller holds in memory are not counted.
    chunk_bytes : float, default=0.0
        Decoded bytes of one storage chunk: what has to be held to read any row of it.

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
    >>> from mmcnb.engine import plan_fit
    >>> plan = plan_fit(32_561, 123, n_landmarks=200, memory_limit="1GiB")
    >>> plan.store
    'memory'
    """
    import numpy as np

    limit, threads = resolve_memory_limit(memory_limit), n_threads(n_jobs)
    row_bytes = row_bytes or n_features * np.dtype(dtype).itemsize
    feature_bytes = n_landmarks * 4
    # Every candidate width holds float32 kernel columns and as many float64 coordinates of the sample.
    sample = min(sample_size, n_samples) * (2 * n_features * 8 + CANDIDATE_WIDTHS * 3 * feature_bytes)
    sample += n_landmarks * (2 * n_landmarks + 3 * n_features) * 8  # the basis and its kernel matrix
    row_state = 0 if not stored else 4 * 2**18
    cache = n_samples * feature_bytes
    # A thread holds decoded rows, a second copy inside the decoder, and one block's features.
    task = max(min(TASK_BYTES, n_samples * row_bytes), BLOCK_ROWS * row_bytes, chunk_bytes) if stored else 0
    held = 2 * task + min(BLOCK_ROWS, n_samples) * feature_bytes

    def room(workers: int) -> float:
        return limit - LIBRARIES - sample - row_state - (workers + 1) * held

    if room(1) < 0:
        least_mib = -(-(limit - room(1)) // MIB)
        raise MemoryLimitError(
            f"memory_limit={format_bytes(limit)} is too small for {n_samples:,} rows of {n_features:,} "
            f"columns; the least that works is {least_mib:.0f}MiB."
        )
    sweeps = most_sweeps(n_samples)
    likely = min(LIKELY_SWEEPS, sweeps)
    flops = 2.0 * n_samples * row_bytes / np.dtype(dtype).itemsize * n_landmarks
    map_seconds = flops / PRODUCT_FLOPS + n_samples * n_landmarks * EXP_SECONDS
    read = n_samples * row_bytes / READ_BYTES * (1.0 if stored else 0.1)
    sweep = n_samples * max(feature_bytes, 8) / SWEEP_BYTES

    def seconds_of(way: tuple[int, str]) -> float:
        workers, store = way
        if store == "recompute":
            return (2 * read + likely * (map_seconds + read + sweep)) / workers
        scratch = cache / SCRATCH_BYTES if store == "scratch" else 0.0
        return (3 * read + map_seconds + likely * sweep) / workers + likely * scratch

    ways = [(workers, store) for workers in range(1, threads + 1) for store in STORES if room(workers) >= 0]
    ways = [way for way in ways if way[1] != "memory" or cache <= room(way[0])]
    if n_landmarks == 0:
        ways = [way for way in ways if way[1] == "recompute"]
    threads, store = min(ways, key=seconds_of)
    return FitPlan(
        n_samples=n_samples,
        n_features=n_features,
        n_landmarks=n_landmarks,
        threads=threads,
        memory_limit=limit,
        libraries=LIBRARIES,
        in_flight=int((threads + 1) * held),
        sample=int(sample),
        row_state=row_state,
        cache=cache if store == "memory" else 0,
        store=store,
        scratch=cache if store == "scratch" else 0,
        sweeps=sweeps,
        reads=2 + (sweeps if store == "recompute" else 1),
        seconds=SAMPLE_SECONDS + seconds_of((threads, store)),
    )
