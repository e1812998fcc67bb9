"""Passes on a Dask cluster: one task a group of rows, with the blocks and their order as in threads.

Rows never travel. A task gets where they are, its pass and its first row. What tasks share is sent once
and held by the workers, the samples for a fit and the pass for a sweep; Dask makes it again where a worker
is lost.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import uuid4

import numpy as np

from mmcnb.engine.dask_worker import Opened, group_total, pickle_pass, same
from mmcnb.engine.run import Engine, Found, Pass, ThreadEngine, Total
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.derived import CachedSamples

if TYPE_CHECKING:
    from mmcnb.engine.plan import FitPlan


GROUPS_AHEAD = 8  # groups sent at once for each thread of the cluster; as many wait behind them
GRAPH_BYTES = 4 * 2**20  # more than this is scattered: Dask keeps what a task holds at the scheduler
TRIES = 5  # times that the same groups are sent
POLL_SECONDS, PATIENCE_SECONDS = 1.0, 60.0


class DaskEngine(Engine):
    """The workers of a Dask cluster, for rows that they can open themselves; threads here for the others.

    Parameters
    ----------
    client : dask.distributed.Client
        A connected client; it stays open.
    n_jobs : int or None, default=None
        Threads of this process, for rows that are in its memory.
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.
    """

    def __init__(self, client: Any, n_jobs: int | None = None, show_progress: bool | None = False) -> None:
        super().__init__(show_progress)
        self.client = client
        self._threads = ThreadEngine(n_jobs)
        self._homes: dict[int, str] = {}  # the worker of each group, by its first row
        self._samples: dict[int, _Sent] = {}
        self._slices: dict[tuple[int, int], tuple[np.ndarray, Any]] = {}

    def __enter__(self) -> Self:
        self._threads.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._forget()
        self._threads.__exit__()

    def each(self, function: Callable[[Any], Found], items: Sequence[Any]) -> list[Found]:
        """What a function finds for each item, in order, in threads of this process."""
        return self._threads.each(function, items)

    def cache(self, features: Samples, plan: "FitPlan") -> Samples:
        """Hold features where they are computed; a worker without room for them computes them anew."""
        if not features.is_reopenable:
            return super().cache(features, plan)
        return CachedSamples(features, capacity=plan.memory_limit - plan.libraries - plan.in_flight)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """The totals of all groups, in order; each is computed by one worker, the same in every pass."""
        if not samples.is_reopenable:
            yield from self._threads.groups(pass_, samples)
            return
        sweep = _Sweep(self, pass_, samples)
        kept = True
        for total, group_is_kept in sweep.totals():
            kept &= group_is_kept
            yield total
        if isinstance(samples, CachedSamples):
            samples.cached_elsewhere = kept

    # -- what the workers hold ---------------------------------------------------------------

    def _forget(self) -> None:
        """Let the workers go of all; by hand, as frames of Dask's own errors may hold futures for long."""
        for sent in self._samples.values():
            for future in (sent.data, *sent.opened.values()):
                future.release()
        for _, future in self._slices.values():
            future.release()
        self._samples.clear()
        self._slices.clear()

    def _forget_lost(self) -> None:
        """Forget what died with a worker, so that it is sent again; what others keep stays."""
        there = self._workers()
        self._slices = {place: sent for place, sent in self._slices.items() if _is_there(sent[1])}
        self._samples = {place: sent for place, sent in self._samples.items() if _is_there(sent.data)}
        for sent in self._samples.values():
            sent.opened = {
                worker: opened
                for worker, opened in sent.opened.items()
                if worker in there and _is_there(opened)
            }

    def _send(self, data: bytes, name: str) -> Any:
        """A future of some bytes."""
        if len(data) > GRAPH_BYTES:
            return self.client.scatter(data, broadcast=True, hash=False)
        return self.client.submit(same, data, key=f"mmcnb-{name}-{uuid4().hex}", pure=False)

    def _sent(self, samples: Samples) -> "_Sent":
        if id(samples) not in self._samples:
            from distributed.protocol.pickle import dumps

            self._samples[id(samples)] = _Sent(samples, self._send(dumps(samples), "samples"))
        return self._samples[id(samples)]

    def _opened(self, sent: "_Sent", worker: str) -> Any:
        if worker not in sent.opened:
            sent.opened[worker] = self.client.submit(
                Opened,
                sent.key,
                key=f"mmcnb-opened-{uuid4().hex}",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
        return sent.opened[worker]

    def _slice(self, values: np.ndarray, start: int, worker: str) -> Any:
        """What one group needs of an array with a value a row."""
        place = id(values), start
        if place not in self._slices:
            part = values[start : start + GROUP_ROWS]
            self._slices[place] = values, self.client.scatter(part, workers=[worker], hash=False)
        return self._slices[place][1]

    # -- the workers -------------------------------------------------------------------------

    def _assign(self, starts: range) -> int:
        """Give each group a worker; the number of threads there are."""
        waited = 0.0
        while not (threads := self._workers()):
            if waited > PATIENCE_SECONDS:
                raise InputError(
                    f"the Dask cluster at {self._address()} has had no worker for {PATIENCE_SECONDS:.0f} s; "
                    "start workers and fit again."
                )
            time.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        assign(starts, threads, self._homes)
        return sum(threads.values())

    def _workers(self) -> dict[str, int]:
        """Threads of each worker, by address."""
        if self.client.status != "running":
            raise self._gone()
        try:
            return dict(self.client.nthreads())
        except OSError as error:
            raise self._gone() from error

    def _gone(self) -> InputError:
        return InputError(
            f"the connection to the Dask scheduler at {self._address()} was lost; connect anew and fit again."
        )

    def _address(self) -> str:
        scheduler = self.client.scheduler
        return "an unknown address" if scheduler is None else str(scheduler.address)

    def _results(self, tasks: list["_Task"]) -> list[Any]:
        """The results of tasks; raises what they raised, or `_LostError` where some have to be sent again."""
        from distributed import CancelledError, KilledWorker, wait

        futures = [task.future for task in tasks]
        alone_since: float | None = None
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=POLL_SECONDS)
                return self.client.gather(futures)
            except (CancelledError, KilledWorker) as error:
                raise _LostError from error
            except TimeoutError:
                threads = self._workers()
                left = {task.worker for task in tasks if task.future.status == "pending"} - set(threads)
                if threads and left:
                    # Dask may wait for ever for a worker that left, whatever others it was allowed.
                    raise _LostError from None
                alone_since = None if threads else alone_since or time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since > PATIENCE_SECONDS:
                    raise InputError(
                        f"all workers of the Dask cluster at {self._address()} were lost and none came back "
                        f"within {PATIENCE_SECONDS:.0f} s; start workers and fit again."
                    ) from None


class _LostError(Exception):
    """Tasks, or what they need, were lost with a worker."""


class _Sent:
    """Samples that the workers hold."""

    def __init__(self, samples: Samples, data: Any) -> None:
        self.samples, self.data, self.key = samples, data, uuid4().hex  # samples: their id stays theirs
        self.opened: dict[str, Any] = {}


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
        self.threads = self.engine._assign(self.starts)
        self.sent = self.engine._sent(self.samples)
        if self.pass_ is None or not _is_there(self.pass_):
            self.pass_ = self.engine._send(self.pickled, "pass")

    def totals(self) -> Iterator[tuple[Any, bool]]:
        """Total of each group and whether its rows are kept, in order, with some groups sent ahead."""
        size = GROUPS_AHEAD * self.threads
        waiting: deque[dict[int, _Task]] = deque()
        try:
            for first in range(0, len(self.starts), size):
                waiting.append(self._submit(self.starts[first : first + size]))
                if len(waiting) > 1:
                    yield from self._results(waiting[0])
                    _release(waiting.popleft())
            while waiting:
                yield from self._results(waiting[0])
                _release(waiting.popleft())
        finally:
            left = [task.future for batch in waiting for task in batch.values()]
            if left and self.engine.client.status == "running":
                self.engine.client.cancel(left)
            self.pass_.release()

    def _submit(self, starts: Sequence[int]) -> dict[int, "_Task"]:
        """Tasks of some groups, in order, by their first row; again where a worker leaves meanwhile."""
        for _ in range(TRIES):
            try:
                return self._tasks(starts)
            except OSError:  # while values were sent to a worker
                self.engine._forget_lost()
                self._send()
        raise self._dying(starts)

    def _tasks(self, starts: Sequence[int]) -> dict[int, "_Task"]:
        engine = self.engine
        tasks: dict[int, _Task] = {}
        homes = {start: engine._homes[start] for start in starts}
        for worker in sorted(set(homes.values())):
            of_worker = [start for start in starts if homes[start] == worker]
            futures = engine.client.map(
                group_total,
                of_worker,
                [[engine._slice(values, start, worker) for values in self.values] for start in of_worker],
                opened=engine._opened(self.sent, worker),
                samples=self.sent.data,
                pass_=self.pass_,
                key="mmcnb-group",
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            tasks |= {start: _Task(worker, future) for start, future in zip(of_worker, futures, strict=True)}
        return {start: tasks[start] for start in starts}

    def _results(self, batch: dict[int, "_Task"]) -> list[Any]:
        """The results of a batch; what was lost with a worker is sent again."""
        engine = self.engine
        for _ in range(TRIES):
            try:
                return engine._results(list(batch.values()))
            except _LostError:
                engine._forget_lost()
                self._send()
                lost = [start for start, task in batch.items() if task.future.status != "finished"]
                batch |= self._submit(lost)
        raise self._dying(batch)

    def _dying(self, starts: Collection[int]) -> InputError:
        address = self.engine._address()
        return InputError(
            f"workers of the Dask cluster at {address} died again and again at rows {min(starts)} to "
            f"{min(max(starts) + GROUP_ROWS, self.samples.n_samples)}, most often for want of memory; "
            "give them more memory, or look at their logs."
        )


class _Task(NamedTuple):
    """A group at work, and the worker it was sent to."""

    worker: str
    future: Any


def _release(batch: dict[int, _Task]) -> None:
    for task in batch.values():
        task.future.release()


def _is_there(future: Any) -> bool:
    return future.status in ("pending", "finished")


def assign(starts: range, threads: Mapping[str, int], homes: dict[int, str]) -> None:
    """Spread groups over workers by their threads.

    A group moves only from a worker that left or has too many.

    Parameters
    ----------
    starts : range
        First rows of the groups.
    threads : mapping of str to int
        Threads of each worker, by address.
    homes : dict of int to str
        The worker of each group so far, which is brought up to date.
    """
    all_threads = sum(threads.values())
    most = {worker: math.ceil(len(starts) * n / all_threads) for worker, n in threads.items()}
    load = dict.fromkeys(sorted(threads), 0)
    for start in starts:
        worker = homes.get(start)
        if worker in load and load[worker] < most[worker]:
            load[worker] += 1
        else:
            homes.pop(start, None)
    for start in starts:
        if start not in homes:
            homes[start] = min(load, key=lambda worker: (load[worker] + 1) / threads[worker])
            load[homes[start]] += 1
