"""Run a pass over the rows of some samples.

A pass maps a compiled routine over fixed blocks of rows and adds the small
partial results in block order, so the result has the same bits whatever the
storage chunks and the number of threads. `ThreadEngine` is one engine; another
only has to offer the same `run`.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, Self, TypeVar

from mmcnb._errors import InputError
from mmcnb._progress import progress
from mmcnb.samples import BLOCK_ROWS, Samples

Total = TypeVar("Total")
TASK_BYTES = 8 * 2**20  # rows handed to a thread at once, as decoded bytes


class Pass(Protocol[Total]):
    """What a pass over the rows has to say."""

    def start(self) -> Total:
        """The total before the first block."""

    def block(self, rows: Any, start: int, stop: int) -> Any:
        """The partial result of one block: pure, called from any thread."""

    def combine(self, total: Total, partial: Any) -> Total:
        """The total with one more partial result; called in block order."""


class Engine(Protocol):
    """What solvers ask of an engine."""

    def run(self, pass_: "Pass[Total]", samples: Samples, description: str = "") -> Total:
        """Map the pass over all blocks and combine in block order."""


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``, in scikit-learn's meaning: None is all cores, -1 too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise InputError("n_jobs=0 asks for no thread; give a positive number, or -1 for all cores.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def task_rows(samples: Samples, threads: int) -> int:
    """Rows a thread takes at once: whole fixed blocks, and whole storage chunks where those are small."""
    blocks = max(1, int(TASK_BYTES / max(samples.row_bytes, 1.0) / BLOCK_ROWS))
    share = math.ceil(samples.n_samples / BLOCK_ROWS / (4 * threads))
    rows = BLOCK_ROWS * max(1, min(blocks, share))
    aligned = math.lcm(BLOCK_ROWS, samples.chunk_rows)
    if aligned * samples.row_bytes <= TASK_BYTES:
        rows = aligned * max(1, rows // aligned)
    return rows


class ThreadEngine:
    """Threads on this machine.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None and -1 take all cores.
    show_progress : bool or None, default=None
        None shows a bar where standard error is a terminal.

    Examples
    --------
    >>> from mmcnb.engine import ThreadEngine
    >>> with ThreadEngine(n_jobs=1) as engine:
    ...     engine.threads
    1
    """

    def __init__(self, n_jobs: int | None = None, show_progress: bool | None = False) -> None:
        self.threads = n_threads(n_jobs)
        self.show_progress = show_progress

    def __enter__(self) -> Self:
        from threadpoolctl import threadpool_limits

        # Blocks run in parallel, so BLAS must not: its result would depend on the number of threads.
        self._blas = threadpool_limits(1, user_api="blas")
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="mmcnb")
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._blas.restore_original_limits()

    def run(self, pass_: Pass[Total], samples: Samples, description: str = "") -> Total:
        """Map a pass over all blocks and combine the partial results in block order.

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
        rows = task_rows(samples, self.threads)
        starts = range(0, samples.n_samples, rows)

        def task(start: int) -> list[Any]:
            return list(_map_blocks(pass_, samples, start, min(start + rows, samples.n_samples)))

        total = pass_.start()
        shown = self.show_progress if description else False
        with progress(samples.n_samples, description, enabled=shown) as bar:
            for partials in self._in_order(task, starts):
                for partial in partials:
                    total = pass_.combine(total, partial)
                bar.update(rows)
        return total

    def _in_order(self, task: Callable[[int], list[Any]], starts: range) -> Iterator[list[Any]]:
        """Results in order of the rows, with a bounded number of tasks read ahead."""
        if self.threads == 1 or len(starts) == 1:
            yield from map(task, starts)
            return
        waiting: deque[Future[list[Any]]] = deque()
        try:
            for start in starts:
                waiting.append(self._pool.submit(task, start))
                if len(waiting) > self.threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _map_blocks(pass_: Pass, samples: Samples, start: int, stop: int) -> Iterator[Any]:
    for first, rows in zip(range(start, stop, BLOCK_ROWS), samples.blocks(start, stop), strict=True):
        yield pass_.block(rows, first, min(first + BLOCK_ROWS, stop))


def run(pass_: Pass[Total], samples: Samples, n_jobs: int | None = None) -> Total:
    """Run one pass over some samples with threads.

    Parameters
    ----------
    pass_ : Pass
        What to compute on each block.
    samples : Samples
        The rows.
    n_jobs : int or None, default=None
        Threads; None and -1 take all cores.

    Returns
    -------
    object
        The total of the pass, with the same bits for any ``n_jobs`` and any chunking.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.engine import run
    >>> from mmcnb.samples import open_samples
    >>> class Count:
    ...     def start(self):
    ...         return 0
    ...     def block(self, rows, start, stop):
    ...         return stop - start
    ...     def combine(self, total, partial):
    ...         return total + partial
    >>> run(Count(), open_samples(np.zeros((10_000, 2))))
    10000
    """
    with ThreadEngine(n_jobs) as engine:
        return engine.run(pass_, samples)
