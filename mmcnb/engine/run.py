"""Run passes over the rows of samples.

A pass applies a compiled routine to blocks of BLOCK_ROWS rows. Totals of blocks are
combined in row order to the total of a group, and totals of groups are combined in row
order to the total of the pass. The result is therefore bitwise identical for any chunk
size of the storage, any number of threads and any engine.
"""

import logging
import math
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, islice
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from mmcnb._config import format_bytes, n_threads
from mmcnb._fit_warnings import warnings_of_threads
from mmcnb._machine import return_freed_memory
from mmcnb._progress import Progress, progress
from mmcnb.errors import InputError, is_interrupt
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import CSRBlock

logger = logging.getLogger("mmcnb")
Total = TypeVar("Total")
Item = TypeVar("Item")
Result = TypeVar("Result")
# Target for the decoded bytes of the rows in a task of a thread. `python -m benchmarks
# engine` compares passes with a plain scan of the same store.
TASK_BYTES = 8 * 2**20
READ_AHEAD = 1  # number of tasks that are submitted in addition to one per thread


class Pass(Protocol[Total]):
    """Protocol of a pass, which computes block totals and combines them."""

    def block(self, rows: np.ndarray | CSRBlock, start: int, stop: int) -> Total:
        """Return the total of one block, which has the rows ``start <= row < stop``.

        The method must not have side effects, because any thread or process may call
        it.
        """

    def combine(self, total: Total, other: Total) -> Total:
        """Combine the totals of two adjacent ranges of rows.

        The rows of ``total`` precede the rows of ``other``.
        """


def total_of_blocks(pass_: Pass[Total], blocks: Iterable[Total], start: int) -> Total:
    """Combine the block totals of the group that begins with row ``start``.

    If the pass has a method ``group(total, start)``, the result is its return value for
    the combined total.
    """
    total = reduce(pass_.combine, blocks)
    finish: Callable[[Total, int], Total] | None = getattr(pass_, "group", None)
    return total if finish is None else finish(total, start)


@dataclass
class Traffic:
    """Counts of the passes over the rows of a fit.

    Parameters
    ----------
    watched : Samples or None, default=None
        The rows of the fit. Only passes over these rows, or over features computed from
        them, are counted. If None, no passes are counted.
    reads : int, default=0
        Number of passes over rows that are not cached.
    sweeps : int, default=0
        Number of passes over cached kernel columns.
    bytes : int, default=0
        Decoded bytes of the rows that were read.
    resumed : bool, default=False
        Whether the total of the last pass was taken from a checkpoint.
    """

    watched: Samples | None = None
    reads: int = 0
    sweeps: int = 0
    bytes: int = 0
    resumed: bool = False

    def __post_init__(self) -> None:
        self._state = self._file_state()

    def _file_state(self) -> object:
        """Return the state of the watched rows' files, or None if it is not needed.

        It is needed if rows are watched and their checksums are not verified.
        """
        rows = self.watched
        return None if rows is None or rows.checksummed else rows.root.state()

    def check_unchanged(self, samples: Samples) -> None:
        """Raise InputError if the files of the rows have changed since the fit began.

        Parameters
        ----------
        samples : Samples
            The rows, whose name is used in the message.
        """
        if self._file_state() != self._state:
            raise InputError(
                f"{samples.name} was changed by another program while it was read: "
                "run this again when no program writes to it."
            )

    def watches(self, samples: Samples) -> bool:
        """Return whether ``samples`` are the watched rows or are computed from them."""
        return self.watched is not None and samples.root is self.watched.root

    def count(self, samples: Samples) -> None:
        """Count one pass over ``samples``."""
        self.resumed = False
        if self.watched is None or not self.watches(samples):
            return
        if samples.cached:
            self.sweeps += 1
        else:
            self.reads += 1
            self.bytes += int(samples.n_samples * self.watched.row_bytes)

    def sentence(self, samples: Samples, seconds: float) -> str:
        """Return a sentence about a pass, with its rows, source, bytes and seconds."""
        n = samples.n_samples
        if samples.cached or self.watched is None:
            return f"swept {n:,} rows, with kernel values cached, in {seconds:.2f} s."
        size = n * self.watched.row_bytes
        rate = format_bytes(size / max(seconds, 1e-9))
        return (
            f"read {n:,} rows of {samples.name}, {format_bytes(size)}, "
            f"in {seconds:.2f} s ({rate}/s)."
        )

    def to_dict(self) -> dict[str, int]:
        """Return the counts as a dict, for a row of ``history_``."""
        return {
            "reads": self.reads,
            "sweeps": self.sweeps,
            "bytes": self.bytes,
            "resumed": self.resumed,
        }


class Engine(ABC):
    """Base class of the engines, which run passes in threads or on a cluster.

    Parameters
    ----------
    show_progress : bool or None, default=False
        Whether to show a progress bar. None shows it if standard error is a terminal.
    """

    fit_progress: Progress | None = None  # progress bar of the fit, or None if hidden

    def __init__(self, show_progress: bool | None = False) -> None:
        self.show_progress = show_progress
        self.traffic = Traffic()

    @abstractmethod
    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in row order."""

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Return features that are cached during the first pass over them.

        Memory that the search on the sample has freed is first returned to the
        operating system.

        Parameters
        ----------
        features : Samples
            Features to cache.
        store : {"memory", "scratch", "recompute"}
            Where to cache features in this process. "recompute" means that they are not
            cached.
        capacity : float, default=inf
            Maximum number of bytes that each worker process of a cluster may cache.
        """
        return_freed_memory()
        return cache_features(features, store)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return the results of a function for all items.

        The progress bar of the fit is refreshed after each item.
        """
        results = []
        for result in self.map(function, items):
            results.append(result)
            if self.fit_progress is not None:
                self.fit_progress.update(0)
        return results

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the results of a function for all items, in order."""
        return map(function, items)

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """Run a pass over all blocks, and combine the totals in row order.

        Parameters
        ----------
        pass_ : Pass
            Pass that computes the totals of blocks and combines totals.
        samples : Samples
            The rows.
        description : str, default=""
            Label of the progress bar of the pass. If "", the pass has no progress bar
            of its own.

        Returns
        -------
        object
            The total of the pass.
        """
        return reduce(pass_.combine, self.stream(pass_, samples, description))

    def stream(
        self, pass_: Pass[Total], samples: Samples, description: str = ""
    ) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in row order.

        Also count the pass, advance the progress bar, and log a sentence about a pass
        over the watched rows.
        """
        self.traffic.count(samples)
        started = time.perf_counter()
        with self._progress_of_pass(samples, description) as bar:
            for number, group in enumerate(self.groups(pass_, samples)):
                yield group
                if bar is not None:
                    bar.update(min(GROUP_ROWS, samples.n_samples - number * GROUP_ROWS))
        if self.traffic.watches(samples):
            self.traffic.check_unchanged(samples)
            logger.info(self.traffic.sentence(samples, time.perf_counter() - started))

    def _progress_of_pass(
        self, samples: Samples, description: str
    ) -> AbstractContextManager[Progress | None]:
        """Return the progress bar to advance during a pass, or None.

        The result is a context manager. The bar of the fit advances only during passes
        over the watched rows.
        """
        fit = self.fit_progress
        is_counted = self.traffic.watches(samples)
        if fit is not None:
            fit.enter("passes" if is_counted and fit.stage != "sample" else fit.stage)
        elif description and self.show_progress is not False:
            return progress(
                samples.n_samples, description, enabled=self.show_progress, lines=True
            )
        return nullcontext(fit if is_counted else None)


def task_rows(samples: Samples, threads: int) -> int:
    """Return the number of rows that a thread processes in one task.

    The number is a multiple of BLOCK_ROWS. It is also a multiple of the number of rows
    of a storage chunk if such a task has at most TASK_BYTES bytes.
    """
    blocks = max(1, int(TASK_BYTES / max(samples.row_bytes, 1.0) / BLOCK_ROWS))
    share = math.ceil(samples.n_samples / BLOCK_ROWS / (4 * threads))
    rows = BLOCK_ROWS * max(1, min(blocks, share))
    aligned = math.lcm(BLOCK_ROWS, samples.chunk_rows)
    if aligned * samples.row_bytes <= TASK_BYTES:
        rows = aligned * max(1, rows // aligned)
    return rows


def map_blocks(
    pass_: Pass[Total], samples: Samples, start: int, stop: int
) -> Iterator[Total]:
    """Yield the totals of the blocks of the rows ``start <= row < stop``."""
    starts = range(start, stop, BLOCK_ROWS)
    for first, rows in zip(starts, samples.blocks(start, stop), strict=True):
        yield pass_.block(rows, first, min(first + BLOCK_ROWS, stop))


def total_of_group(pass_: Pass[Total], samples: Samples, start: int) -> Total:
    """Return the total of the group that begins with row ``start``, in one thread."""
    stop = min(start + GROUP_ROWS, samples.n_samples)
    step = task_rows(samples, 1)

    def blocks() -> Iterator[Total]:
        for first in range(start, stop, step):
            yield from map_blocks(pass_, samples, first, min(first + step, stop))

    return total_of_blocks(pass_, blocks(), start)


def single_threaded(user_api: str | None = None) -> Any:
    """Return a context manager that limits BLAS and OpenMP to one thread.

    If ``user_api`` is "blas" or "openmp", only this library is limited. Finding the
    thread pools of the libraries takes milliseconds, so the search is repeated only if
    the number of imported modules has changed since the last search.
    """
    return _pools(len(sys.modules)).limit(limits=1, user_api=user_api)


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class SingleThreadedBLAS:
    """A context manager that limits BLAS to one thread while engines run.

    The last bits of BLAS results depend on the number of BLAS threads. BLAS therefore
    uses one thread, and blocks are processed in parallel instead. The limit applies to
    the whole process. Concurrent engines share it, and the last engine to end lifts it.
    """

    def __init__(self) -> None:
        self._limits: Any = None
        self.begin()

    def begin(self) -> None:
        """Set the number of running engines to 0, and create a new lock.

        A forked child calls this method, because no engine runs in the child. The last
        running engine of the child lifts the limit inherited from the parent.
        """
        self.lock = threading.Lock()
        self.users = 0

    def __enter__(self) -> None:
        # Compiled kernels call SciPy's BLAS. If this library were loaded later, the
        # limit would not apply to it.
        import scipy.linalg  # noqa: F401

        with self.lock:
            if self._limits is None:
                self._limits = single_threaded("blas")
            self.users += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self._limits.restore_original_limits()
                self._limits = None


SINGLE_THREADED_BLAS = SingleThreadedBLAS()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SINGLE_THREADED_BLAS.begin)


class ThreadEngine(Engine):
    """An engine that runs passes in threads of this process.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads. -1 means all cores. None means the setting of `mmcnb.config`
        or, if it is not set, all cores.
    show_progress : bool or None, default=False
        Whether to show a progress bar. None shows it if standard error is a terminal.

    Examples
    --------
    >>> from mmcnb.engine.run import ThreadEngine
    >>> with ThreadEngine(n_jobs=1) as engine:
    ...     engine.threads
    1
    """

    def __init__(
        self, n_jobs: int | None = None, show_progress: bool | None = False
    ) -> None:
        super().__init__(show_progress)
        self.threads = n_threads(n_jobs)
        self._of_thread = threading.local()

    def __enter__(self) -> Self:
        SINGLE_THREADED_BLAS.__enter__()
        self._warnings = warnings_of_threads()
        collect_warnings = self._warnings.__enter__()

        def begin() -> None:
            collect_warnings()
            self._of_thread.is_ours = True

        self._pool = ThreadPoolExecutor(self.threads, "mmcnb", begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        SINGLE_THREADED_BLAS.__exit__()
        self._warnings.__exit__(kind, error, traceback)
        # Python raises SystemError if Ctrl-C interrupts a compiled kernel.
        if isinstance(error, SystemError) and is_interrupt(error):
            raise KeyboardInterrupt from None

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the results of a function for all items, in order.

        Items run in parallel, and each pass that an item runs stays in its thread.
        """
        if self._is_serial:
            return super().map(function, items)
        return self._pool.map(function, items)

    @property
    def _is_serial(self) -> bool:
        """Whether to run work in the calling thread instead of the thread pool.

        This is the case if the engine has only one thread, or if the calling thread
        belongs to the pool.
        """
        return self.threads == 1 or getattr(self._of_thread, "is_ours", False)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in row order.

        The threads of the pool compute the totals of blocks.
        """
        blocks = self._blocks(pass_, samples)
        for start in range(0, samples.n_samples, GROUP_ROWS):
            group = islice(blocks, GROUP_ROWS // BLOCK_ROWS)
            yield total_of_blocks(pass_, group, start)

    def _blocks(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all blocks, in row order.

        At most ``threads + READ_AHEAD + 1`` tasks are submitted and not yet consumed.
        """
        rows = task_rows(samples, self.threads)
        starts = range(0, samples.n_samples, rows)

        def task(start: int) -> list[Total]:
            stop = min(start + rows, samples.n_samples)
            return list(map_blocks(pass_, samples, start, stop))

        if self._is_serial or len(starts) == 1:
            yield from chain.from_iterable(map(task, starts))
            return
        waiting: deque[Future[list[Total]]] = deque()
        try:
            for start in starts:
                waiting.append(self._pool.submit(task, start))
                if len(waiting) > self.threads + READ_AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
