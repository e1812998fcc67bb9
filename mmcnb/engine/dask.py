"""Passes on a Dask cluster: one task a group of rows, with the blocks and their order as in threads.

Rows are not sent. A task gets where they are, its pass and its first row. What tasks share is sent once
and held by the workers, the samples for a fit and the pass for a sweep. Dask makes it again where a worker
is lost.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import Any, Self
from uuid import uuid4

import numpy as np

from mmcnb.engine.dask_client import connection
from mmcnb.engine.dask_worker import Opened, differs, group_total, pickle_pass, pickle_samples, same
from mmcnb.engine.run import Engine, Pass, Result, ThreadEngine, Total
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.derived import CachedSamples

GROUPS_AHEAD = 8  # groups sent at once for each thread of the cluster; as many wait behind them
GRAPH_BYTES = 4 * 2**20  # more than this is scattered: Dask keeps what a task holds at the scheduler
TRIES = 5  # times that the same groups are sent
POLL_SECONDS, PATIENCE_SECONDS = 1.0, 60.0  # the second for workers to come back
Tasks = dict[int, tuple[str, Any]]  # the worker and the future of each group, by its first row


class DaskEngine(Engine):
    """The workers of a Dask cluster, for rows that they can open themselves; threads here for the others.

    Parameters
    ----------
    engine : str or dask.distributed.Client
        A client, or an address as in `open_engine`.
    n_jobs : int or None, default=None
        Threads of this process, for rows that are in its memory.
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.
    """

    def __init__(self, engine: Any, n_jobs: int | None = None, show_progress: bool | None = False) -> None:
        super().__init__(show_progress)
        self.engine = engine
        self._threads = ThreadEngine(n_jobs)
        self._assigned: dict[int, str] = {}  # the worker of each group, by its first row
        # By the id of an object, which is held too so that the id stays its own.
        self._names: dict[int, tuple[Samples, str]] = {}
        self._held: dict[tuple[str, int, Any], tuple[Any, Any]] = {}  # with the future of what workers hold

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.client = stack.enter_context(connection(self.engine))
            stack.enter_context(self._threads)
            stack.callback(self._forget)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def each(self, function: Callable[[Any], Result], items: Sequence[Any]) -> list[Result]:
        """The results for all items, in order, from threads of this process."""
        return self._threads.each(function, items)

    def cache(self, features: Samples, store: str, capacity: float = math.inf) -> Samples:
        """Cache features in the workers that compute them, each up to a capacity."""
        if not features.is_reopenable:
            return super().cache(features, store)
        return CachedSamples(features, capacity=capacity)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """The totals of all groups, in order; each is computed by one worker, the same in every pass."""
        if not samples.is_reopenable:
            yield from self._threads.groups(pass_, samples)
            return
        all_cached = True
        for total, is_cached in _Sweep(self, pass_, samples).totals():
            all_cached &= is_cached
            yield total
        if isinstance(samples, CachedSamples):
            samples.cached_elsewhere = all_cached

    # -- what the workers hold ---------------------------------------------------------------

    def send(self, data: bytes, name: str) -> Any:
        """A future of some bytes."""
        if len(data) > GRAPH_BYTES:
            return self.client.scatter(data, broadcast=True, hash=False)
        return self.client.submit(same, data, key=f"mmcnb-{name}-{uuid4().hex}", pure=False)

    def samples_data(self, samples: Samples) -> Any:
        """The samples, pickled."""
        return self._hold("samples", samples, None, lambda: self.send(pickle_samples(samples), "samples"))

    def samples_opened(self, samples: Samples, worker: str) -> Any:
        """The samples as one worker opens them."""
        options = {"workers": [worker], "allow_other_workers": True, "pure": False}
        name = self._names.setdefault(id(samples), (samples, uuid4().hex))[1]
        key = f"mmcnb-opened-{uuid4().hex}"
        submit = self.client.submit
        return self._hold("opened", samples, worker, lambda: submit(Opened, name, key=key, **options))

    def values(self, values: np.ndarray, start: int, worker: str) -> Any:
        """What one group needs of an array with a value a row."""
        part = values[start : start + GROUP_ROWS]
        return self._hold(
            "values", values, start, lambda: self.client.scatter(part, workers=[worker], hash=False)
        )

    def _hold(self, kind: str, value: Any, place: Any, send: Callable[[], Any]) -> Any:
        key = kind, id(value), place
        if key not in self._held:
            self._held[key] = value, send()
        return self._held[key][1]

    def _forget(self) -> None:
        """Release all by hand: frames of Dask's own errors may hold futures for long."""
        for _object, future in self._held.values():
            future.release()
        self._held.clear()
        self._names.clear()

    def forget_lost(self) -> None:
        """Forget what was lost with a worker, so that it is sent again; what others hold stays."""
        workers = self._workers()
        self._held = {
            (kind, number, place): (value, future)
            for (kind, number, place), (value, future) in self._held.items()
            if is_there(future) and (kind != "opened" or place in workers)
        }

    # -- the workers -------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the scheduler is, for messages."""
        scheduler = self.client.scheduler
        return "an unknown address" if scheduler is None else str(scheduler.address)

    def assign(self, starts: range) -> int:
        """Give each group a worker; the number of threads of the cluster."""
        waited = 0.0
        while not (threads := self._workers()):
            if waited > PATIENCE_SECONDS:
                raise InputError(
                    f"the Dask cluster at {self.address} has had no worker for {PATIENCE_SECONDS:.0f} s; "
                    "start workers and fit again."
                )
            time.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        assign(starts, threads, self._assigned)
        return sum(threads.values())

    def by_worker(self, starts: Sequence[int]) -> dict[str, list[int]]:
        """Some groups by the workers they were assigned to, in a fixed order."""
        workers = sorted({self._assigned[start] for start in starts})
        return {worker: [start for start in starts if self._assigned[start] == worker] for worker in workers}

    def _workers(self) -> dict[str, int]:
        """Threads of each worker, by address."""
        try:
            if self.client.status != "running":
                raise OSError
            return dict(self.client.nthreads())
        except OSError as error:
            raise InputError(
                f"the connection to the Dask scheduler at {self.address} was lost; "
                "connect anew and fit again."
            ) from error

    def results(self, tasks: Tasks) -> list[Any]:
        """The results of tasks; raises what they raised, or `LostError` where some have to be sent again."""
        from distributed import CancelledError, KilledWorker

        # Asynchronously: a gather does not return where a worker is lost with results while it runs.
        gather = self.client.gather([future for _, future in tasks.values()], asynchronous=True)
        gathered = asyncio.run_coroutine_threadsafe(gather, self.client.loop.asyncio_loop)
        try:
            return self._wait(gathered, tasks)
        except (CancelledError, KilledWorker) as error:
            raise LostError from error
        except (ImportError, AttributeError) as error:
            raise differs(error, self.address) from error
        finally:
            gathered.cancel()

    def _wait(self, gathered: Future[list[Any]], tasks: Tasks) -> list[Any]:
        """The results of tasks once they are gathered; raises where workers were lost meanwhile."""
        alone_since: float | None = None
        while True:
            with suppress(TimeoutError):
                return gathered.result(POLL_SECONDS)
            if gathered.done():  # a task may raise this error too
                return gathered.result()
            threads = self._workers()
            pending = {worker for worker, future in tasks.values() if future.status == "pending"}
            if threads and pending - set(threads):
                # Dask may wait for ever for a worker that left, whatever others it was allowed.
                raise LostError
            alone_since = None if threads else alone_since or time.monotonic()
            if alone_since is not None and time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise InputError(
                    f"all workers of the Dask cluster at {self.address} were lost and none came back "
                    f"within {PATIENCE_SECONDS:.0f} s; start workers and fit again."
                )


class LostError(Exception):
    """Tasks, or what they need, were lost with a worker."""


class _Sweep:
    """One pass over the groups of some samples."""

    def __init__(self, engine: DaskEngine, pass_: Pass, samples: Samples) -> None:
        self.engine, self.samples = engine, samples
        self.starts = range(0, samples.n_samples, GROUP_ROWS)
        self.pickled, self.values = pickle_pass(pass_, samples.n_samples)
        self.pass_: Any = None
        self._send()

    def _send(self) -> None:
        """Send what is not there yet, or not any more."""
        self.threads = self.engine.assign(self.starts)
        self.data = self.engine.samples_data(self.samples)
        if self.pass_ is None or not is_there(self.pass_):
            self.pass_ = self.engine.send(self.pickled, "pass")

    def totals(self) -> Iterator[tuple[Any, bool]]:
        """Total of each group and whether its rows are cached, in order, with some groups sent ahead."""
        size = GROUPS_AHEAD * self.threads
        waiting: deque[Tasks] = deque()
        try:
            for first in range(0, len(self.starts) + size, size):  # one turn more than there are batches
                if first < len(self.starts):
                    waiting.append(self._submit(self.starts[first : first + size]))
                if first > 0:
                    yield from self._results(waiting[0])
                    for _, future in waiting.popleft().values():
                        future.release()
        finally:
            left = [future for tasks in waiting for _, future in tasks.values()]
            if left and self.engine.client.status == "running":
                self.engine.client.cancel(left)
            self.pass_.release()

    def _submit(self, starts: Sequence[int]) -> Tasks:
        """Tasks of some groups, in order, by their first row; again where a worker leaves meanwhile."""
        for _ in range(TRIES):
            try:
                return self._tasks(starts)
            except OSError:  # while values were sent to a worker
                self.engine.forget_lost()
                self._send()
        raise self._dying(starts)

    def _tasks(self, starts: Sequence[int]) -> Tasks:
        tasks: Tasks = {}
        for worker, own in self.engine.by_worker(starts).items():
            futures = self.engine.client.map(
                group_total,
                own,
                [[self.engine.values(values, start, worker) for values in self.values] for start in own],
                opened=self.engine.samples_opened(self.samples, worker),
                samples=self.data,
                pass_=self.pass_,
                key="mmcnb-group",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            tasks |= {start: (worker, future) for start, future in zip(own, futures, strict=True)}
        return {start: tasks[start] for start in starts}

    def _results(self, tasks: Tasks) -> list[Any]:
        """The results of some tasks; what was lost with a worker is sent again."""
        for _ in range(TRIES):
            try:
                return self.engine.results(tasks)
            except LostError:
                self.engine.forget_lost()
                self._send()
                lost = [start for start, (_, future) in tasks.items() if future.status != "finished"]
                tasks |= self._submit(lost)
        raise self._dying(tasks)

    def _dying(self, starts: Collection[int]) -> InputError:
        stop = min(max(starts) + GROUP_ROWS, self.samples.n_samples)
        return InputError(
            f"workers of the Dask cluster at {self.engine.address} died again and again at rows "
            f"{min(starts)} to {stop}, most often for want of memory; give them more memory, or look at "
            "their logs."
        )


def is_there(future: Any) -> bool:
    """Whether a future is computed or will be."""
    return future.status in ("pending", "finished")


def assign(starts: range, threads: Mapping[str, int], assigned: dict[int, str]) -> None:
    """Spread groups over workers by their threads.

    A group moves only from a worker that left or has too many.

    Parameters
    ----------
    starts : range
        First rows of the groups.
    threads : mapping of str to int
        Threads of each worker, by address.
    assigned : dict of int to str
        The worker of each group so far, which is brought up to date.
    """
    all_threads = sum(threads.values())
    most = {worker: math.ceil(len(starts) * n / all_threads) for worker, n in threads.items()}
    load = dict.fromkeys(sorted(threads), 0)
    for start in starts:
        worker = assigned.get(start)
        if worker in load and load[worker] < most[worker]:
            load[worker] += 1
        else:
            assigned.pop(start, None)
    for start in starts:
        if start not in assigned:
            assigned[start] = min(load, key=lambda worker: (load[worker] + 1) / threads[worker])
            load[assigned[start]] += 1
