"""Run passes over the rows of samples.

A pass applies a compiled routine to blocks of BLOCK_ROWS rows, and combines the small
totals in order: the blocks of a group, and then the groups. The result therefore has
the same bits for any storage chunks, number of threads and engine.
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
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from mmcnb._config import format_bytes, n_threads
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
# Decoded bytes of the rows in the task of a thread. `python -m benchmarks engine`
# compares passes with a plain scan of the same store.
TASK_BYTES = 8 * 2**20
READ_AHEAD = 1  # number of submitted tasks in addition to one per thread


class Pass(Protocol[Total]):
    """A pass over the rows: a total for each block, and how totals are combined."""

    def block(self, rows: np.ndarray | CSRBlock, start: int, stop: int) -> Total:
        """Return the total of one block, which has the rows ``start <= row < stop``.

        The method must be a pure function, because any thread or process may call it.
        """

    def combine(self, total: Total, other: Total) -> Total:
        """Return the total of two adjacent ranges of rows, in row order."""


def total_of_blocks(pass_: Pass[Total], blocks: Iterable[Total], start: int) -> Total:
    """Return the total of the blocks of the group that begins with row ``start``.

    If the pass has a method ``group(total, start)``, this method completes the total.
    """
    total = reduce(pass_.combine, blocks)
    finish: Callable[[Total, int], Total] | None = getattr(pass_, "group", None)
    return total if finish is None else finish(total, start)


@dataclass
class Traffic:
    """Counts of the passes over the watched rows.

    Parameters
    ----------
    watched : Samples or None, default=None
        The rows of the fit. Passes over other rows are not counted.
    reads : int, default=0
        Number of passes that read the rows from storage.
    sweeps : int, default=0
        Number of passes over cached kernel columns.
    bytes : int, default=0
        Decoded bytes of the rows read.
    resumed : bool, default=False
        Whether the last pass came from a checkpoint.
    """

    watched: Samples | None = None
    reads: int = 0
    sweeps: int = 0
    bytes: int = 0
    resumed: bool = False

    def __post_init__(self) -> None:
        self._state = self._file_state()

    def _file_state(self) -> object:
        """Return the state of the files; None for stores with checksums."""
        rows = self.watched
        return None if rows is None or rows.checksummed else rows.root.state()

    def check_unchanged(self, samples: Samples) -> None:
        """Check that the files of the rows have not changed since the first pass.

        Raises
        ------
        InputError
            If another program has changed them.
        """
        if self._file_state() != self._state:
            raise InputError(
                f"{samples.name} was changed by another program while it was read: "
                "run this again when no program writes to it."
            )

    def watches(self, samples: Samples) -> bool:
        """Return whether samples are the watched rows or are computed from them."""
        return self.watched is not None and samples.root is self.watched.root

    def count(self, samples: Samples) -> None:
        """Count one pass."""
        self.resumed = False
        if self.watched is None or not self.watches(samples):
            return
        if samples.cached:
            self.sweeps += 1
        else:
            self.reads += 1
            self.bytes += int(samples.n_samples * self.watched.row_bytes)

    def sentence(self, samples: Samples, seconds: float) -> str:
        """Describe the last pass: rows, source, bytes and seconds."""
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
        """Return the counts as columns of a history."""
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

    fit_progress: Progress | None = None  # the bar of the running fit, if it is shown

    def __init__(self, show_progress: bool | None = False) -> None:
        self.show_progress = show_progress
        self.traffic = Traffic()

    @abstractmethod
    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in order."""

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Cache features during their first sweep.

        Memory that the search on the sample has freed is returned to the system first.

        Parameters
        ----------
        features : Samples
            Features to cache.
        store : {"memory", "scratch", "recompute"}
            Where this process caches them.
        capacity : float, default=inf
            Bytes that each process of a cluster may cache.
        """
        return_freed_memory()
        return cache_features(features, store)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return the results of a function for all items; refresh the progress bar."""
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
        """Run a pass over all blocks, and combine the totals in order.

        Parameters
        ----------
        pass_ : Pass
            The computation for each block, and the combination of totals.
        samples : Samples
            The rows.
        description : str, default=""
            Name of the pass on its progress bar; "" shows no bar.

        Returns
        -------
        object
            The total of the pass.
        """
        return reduce(pass_.combine, self.stream(pass_, samples, description))

    def stream(
        self, pass_: Pass[Total], samples: Samples, description: str = ""
    ) -> Iterator[Total]:
        """Yield the totals of all groups of rows, and count and show the pass."""
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
        """Return the bar that the pass advances: the bar of the fit, or a new bar."""
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
    """Return the number of rows in the task of a thread.

    The result is a multiple of BLOCK_ROWS and, if storage chunks are small, of the
    number of rows of a chunk.
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
    """Yield the totals of the blocks in a range of rows, which is read once."""
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
    """Limit BLAS and OpenMP, or one of them, to one thread in a ``with`` block.

    Finding the thread pools of these libraries takes milliseconds. This search is
    repeated only if modules have been imported since the last search.
    """
    return _pools(len(sys.modules)).limit(limits=1, user_api=user_api)


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class SingleThreadedBLAS:
    """A context manager that limits BLAS to one thread while engines run.

    Results of BLAS depend on its number of threads, so blocks run in parallel instead.
    The limit is global to the process. Engines that run at the same time share it, and
    the last engine to end lifts it.
    """

    def __init__(self) -> None:
        self._limits: Any = None
        self.begin()

    def begin(self) -> None:
        """Reset the number of engines, as in a forked child, where no engine runs.

        The first engine of the child lifts the parent's limit when it ends.
        """
        self.lock = threading.Lock()
        self.users = 0

    def __enter__(self) -> None:
        # Compiled kernels call SciPy's BLAS. If it were loaded later, the limit would
        # not apply to it.
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
        Number of threads. None means the setting of `mmcnb.config`, and -1 means all
        cores.
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
        self._pool = ThreadPoolExecutor(
            self.threads, "mmcnb", setattr, (self._of_thread, "is_ours", True)
        )
        return self

    def __exit__(
        self, _: object = None, error: BaseException | None = None, __: object = None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        SINGLE_THREADED_BLAS.__exit__()
        # If Ctrl-C interrupts a compiled kernel, Python raises SystemError.
        if isinstance(error, SystemError) and is_interrupt(error):
            raise KeyboardInterrupt from None

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the results for all items; the passes of an item run in one thread."""
        if self._is_serial:
            return super().map(function, items)
        return self._pool.map(function, items)

    @property
    def _is_serial(self) -> bool:
        """Whether work stays in this thread: the only one, or a thread of the pool."""
        return self.threads == 1 or getattr(self._of_thread, "is_ours", False)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups; threads compute the totals of blocks."""
        blocks = self._blocks(pass_, samples)
        for start in range(0, samples.n_samples, GROUP_ROWS):
            group = islice(blocks, GROUP_ROWS // BLOCK_ROWS)
            yield total_of_blocks(pass_, group, start)

    def _blocks(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all blocks, with a bounded number of tasks ahead."""
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
