"""Run a pass over the rows of some samples.

A pass maps a compiled routine over fixed blocks of rows and combines the small
totals: blocks in order within a group, groups in order. So the result has the
same bits for any storage chunks, number of threads or engine.
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
# Decoded bytes of the rows that a thread takes at once. `python -m benchmarks engine`
# compares passes with a bare scan of the same store.
TASK_BYTES = 8 * 2**20
READ_AHEAD = 1  # tasks that wait in addition to the running ones


class Pass(Protocol[Total]):
    """A pass over the rows: a total for each block, and how totals are combined."""

    def block(self, rows: np.ndarray | CSRBlock, start: int, stop: int) -> Total:
        """Return the total of one block; pure, called from any thread or process."""

    def combine(self, total: Total, other: Total) -> Total:
        """Return the total of two neighbouring ranges of rows, in row order."""


def total_of_blocks(pass_: Pass[Total], blocks: Iterable[Total], start: int) -> Total:
    """Return the total of a group of blocks.

    If a pass has a method ``group``, it completes the total of each group.
    """
    total = reduce(pass_.combine, blocks)
    finish: Callable[[Total, int], Total] | None = getattr(pass_, "group", None)
    return total if finish is None else finish(total, start)


@dataclass
class Traffic:
    """Reads of the watched rows so far.

    Parameters
    ----------
    watched : Samples or None, default=None
        The rows; passes over others are not counted.
    reads : int, default=0
        Passes that read the rows from storage.
    sweeps : int, default=0
        Passes served from cached kernel columns.
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
        """Return the state of the files; checksums protect our own stores."""
        rows = self.watched
        return None if rows is None or rows.checksummed else rows.root.state()

    def check_unchanged(self, samples: Samples) -> None:
        """Refuse rows whose files are no longer those of the first pass.

        Raises
        ------
        InputError
            Another program has written them.
        """
        if self._file_state() != self._state:
            raise InputError(
                f"{samples.name} was changed by another program while it was read: "
                "run this again once nothing writes there."
            )

    def watches(self, samples: Samples) -> bool:
        """Return whether samples are the watched rows, or are computed from them."""
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
        """Describe the last pass: its rows, their source, its bytes and seconds."""
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
    """Runs passes; engines differ in who computes the totals of groups.

    Parameters
    ----------
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.
    """

    fit_progress: Progress | None = None  # of the fit that runs here, where it is shown

    def __init__(self, show_progress: bool | None = False) -> None:
        self.show_progress = show_progress
        self.traffic = Traffic()

    @abstractmethod
    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in order."""

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Cache features from their first sweep on; the search is over by then.

        Parameters
        ----------
        features : Samples
            What to cache.
        store : {"memory", "scratch", "recompute"}
            Where, in this process.
        capacity : float, default=inf
            Bytes for them in all memory of any other process.
        """
        return_freed_memory()
        return cache_features(features, store)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return the results of a function for all items, and keep progress alive."""
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
        """Map a pass over all blocks and combine the totals in order.

        Parameters
        ----------
        pass_ : Pass
            What to compute on each block.
        samples : Samples
            The rows.
        description : str, default=""
            Names the pass on the progress bar; empty shows none.

        Returns
        -------
        object
            The total of the pass.
        """
        return reduce(pass_.combine, self.stream(pass_, samples, description))

    def stream(
        self, pass_: Pass[Total], samples: Samples, description: str = ""
    ) -> Iterator[Total]:
        """Yield the totals of all groups of rows, counted and shown as `run` does."""
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
        """Return the bar that the pass advances: that of the fit, or one of its own."""
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
    """Return the rows that a thread takes at once.

    They are whole fixed blocks, and whole storage chunks if these are small.
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
    """Yield the totals of the blocks of a range of rows, which are read once."""
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
    """Limit BLAS and OpenMP, or one of them, to one thread, for a ``with`` block.

    Finding their thread pools takes milliseconds. They are searched again only if
    modules were imported since.
    """
    return _pools(len(sys.modules)).limit(limits=1, user_api=user_api)


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class SingleThreadedBLAS:
    """BLAS at one thread while any engine of this process runs.

    Blocks run in parallel, so BLAS must not: its result would depend on the number of
    threads. The limit is global to the process, so engines that overlap in time share
    it, and the last to leave lifts it.
    """

    def __init__(self) -> None:
        self._limits: Any = None
        self.begin()

    def begin(self) -> None:
        """Forget all engines, as in a forked child, where none runs.

        The first engine of the child lifts the parent's limit at its end.
        """
        self.lock = threading.Lock()
        self.users = 0

    def __enter__(self) -> None:
        # Compiled kernels call the BLAS of SciPy, which would escape the limit if it
        # were loaded later.
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
    """Runs passes in threads of this process.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads; None is the setting of `mmcnb.config`, -1 is all cores.
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.

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
        # A compiled kernel raises SystemError for Ctrl-C.
        if isinstance(error, SystemError) and is_interrupt(error):
            raise KeyboardInterrupt from None

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the results for all items; each item runs its passes in one thread."""
        if self._is_serial:
            return super().map(function, items)
        return self._pool.map(function, items)

    @property
    def _is_serial(self) -> bool:
        """Whether work stays in this thread; the pool would wait for itself."""
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
