"""Passes on a Dask cluster, where a task computes one or a few adjacent groups of rows.

Rows are not sent: workers open the samples themselves. A task gets the samples, the
pass and its range of rows. Data that tasks share is sent once and stays on the workers:
the samples during a fit, and the pass during a sweep. If the data is lost with a
worker, Dask computes it again. Results are the same as with threads, because blocks and
groups are the same.
"""

import asyncio
import io
import logging
import math
import pickle
import time
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, cycle
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from uuid import uuid4

import numpy as np

from mmcnb._config import LOCAL, check_engine
from mmcnb._machine import keep_freed_memory
from mmcnb.engine.checkpoint import differences, versions
from mmcnb.engine.run import (
    SINGLE_THREADED_BLAS,
    Engine,
    Item,
    Pass,
    Result,
    ThreadEngine,
    Total,
    total_of_group,
)
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.derived import CachedSamples

if TYPE_CHECKING:
    from distributed import Client, Future

# Number of groups that are sent together, per thread of the cluster. The next groups
# are sent before these are finished.
GROUPS_AHEAD = 8
# A scheduler needs about a millisecond for a task, and the pass over a group may take
# some tens of milliseconds. More threads than this would wait for tasks of one group,
# so a task then has several groups.
THREADS_SERVED = 64
# Minimum number of tasks per thread in a pass, so that all threads end at about the
# same time.
LEAST_TASKS = 4
# Dask keeps the arguments of tasks at the scheduler, so larger arguments are scattered.
GRAPH_BYTES = 4 * 2**20
TRIES = 5  # number of attempts to send the same groups if workers are lost
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 60.0  # how long to wait if the cluster has no workers
CONNECT_SECONDS = 5.0  # timeout for connecting to a scheduler


class Task(NamedTuple):
    """A task, which computes the totals of groups of rows on a worker."""

    worker: str
    future: "Future"


Tasks = dict[int, Task]  # by the first row of the task
Place = str | range | None  # a worker, a range of rows, or None for all workers


class DaskEngine(Engine):
    """An engine that runs passes on the workers of a Dask cluster.

    Passes over rows that workers cannot open, such as arrays in memory, run in threads
    of this process.

    Parameters
    ----------
    engine : str or dask.distributed.Client
        A client, or an address as in `open_engine`.
    n_jobs : int or None, default=None
        Number of threads of this process, for rows in its memory.
    show_progress : bool or None, default=False
        Whether to show a progress bar. None shows it if standard error is a terminal.
    """

    def __init__(
        self,
        engine: "str | Client",
        n_jobs: int | None = None,
        show_progress: bool | None = False,
    ) -> None:
        super().__init__(show_progress)
        self.engine = engine
        self._threads = ThreadEngine(n_jobs)
        self.assigned: dict[int, str] = {}  # worker of each task, by its first row
        # Objects and their futures, by kind, id, and worker or rows. The object is
        # kept, because its id is unique only while it is alive.
        self._sent: dict[tuple[str, int, Place], tuple[object, Future]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.client = stack.enter_context(connection(self.engine))
            stack.enter_context(self._threads)
            stack.callback(self._forget)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the results for all items, computed in threads of this process."""
        return self._threads.map(function, items)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Cache features on the workers that compute them, each up to a capacity."""
        if not features.is_reopenable:
            return super().cache(features, store)
        return CachedSamples(features, capacity=capacity)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups; each group stays with the same worker."""
        if not samples.is_reopenable:
            yield from self._threads.groups(pass_, samples)
            return
        all_cached = True
        for total, is_cached in _Sweep(self, pass_, samples).totals():
            all_cached &= is_cached
            yield total
        if isinstance(samples, CachedSamples):
            samples.cached_elsewhere = all_cached

    # -- data at the workers -----------------------------------------------------------

    def send(self, data: bytes, name: str) -> "Future":
        """Send bytes to the cluster.

        Up to `GRAPH_BYTES` bytes are sent as the argument of a task, which Dask can run
        again if the data is lost.
        """
        if len(data) > GRAPH_BYTES:
            return self._scatter(data)
        return self.client.submit(
            bytes, data, key=f"mmcnb-{name}-{uuid4().hex}", pure=False
        )

    def samples_data(self, samples: Samples) -> "Future":
        """Return a future of the pickled samples on the cluster."""

        def send() -> "Future":
            return self.send(pickle_samples(samples), "samples")

        return self._once("samples", samples, None, send)

    def samples_opened(self, samples: Samples, worker: str) -> "Future":
        """Return a future of the samples that one worker has opened."""
        name = self.samples_data(samples).key

        def send() -> "Future":
            options = on_worker(worker, f"mmcnb-opened-{uuid4().hex}")
            return self.client.submit(Opened, name, **options)

        return self._once("opened", samples, worker, send)

    def values(self, values: np.ndarray, rows: range, worker: str) -> "Future":
        """Return a future of the values, one per row, that a task needs."""
        part = values[rows.start : rows.stop]
        return self._once("values", values, rows, lambda: self._scatter(part, [worker]))

    def _scatter(
        self, data: bytes | np.ndarray, workers: list[str] | None = None
    ) -> "Future":
        """Send data to one worker or any worker; raise `LostError` if it leaves.

        A broadcast to all workers might never return if one of them leaves. Instead,
        the other workers fetch the data when their tasks need it.
        """
        try:
            return self.client.scatter(data, workers=workers, hash=False)
        # Dask raises KeyError for a worker that is gone.
        except (OSError, KeyError) as error:
            raise LostError from error

    def _once(
        self,
        kind: str,
        value: Samples | np.ndarray,
        place: Place,
        send: Callable[[], "Future"],
    ) -> "Future":
        key = kind, id(value), place
        if key not in self._sent:
            self._sent[key] = value, send()
        return self._sent[key][1]

    def _forget(self) -> None:
        """Release all futures now, because tracebacks may keep them alive."""
        for _, future in self._sent.values():
            future.release()
        self._sent.clear()

    def forget_lost(self) -> None:
        """Forget the data that were lost with a worker, so that they are sent again."""
        workers = self._workers()
        for key, (_, future) in list(self._sent.items()):
            kind, _, place = key
            if not is_available(future) or (kind == "opened" and place not in workers):
                del self._sent[key]

    # -- the workers -------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Address of the scheduler, for messages."""
        scheduler = self.client.scheduler
        return "an unknown address" if scheduler is None else str(scheduler.address)

    def assign(self, starts: range) -> None:
        """Assign tasks to workers in turn, so that all threads have equal work."""
        self.assigned = dict(zip(starts, cycle(self.threads()), strict=False))

    def threads(self) -> list[str]:
        """Return the worker of each thread of the cluster; wait for a worker."""
        waited = 0.0
        workers = self._workers()
        while not workers:
            if waited > PATIENCE_SECONDS:
                raise InputError(
                    f"the Dask cluster at {self.address} has had no worker for "
                    f"{PATIENCE_SECONDS:.0f} s; start workers and fit again."
                )
            time.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            workers = self._workers()
        threads: list[str] = []
        for worker in sorted(workers):
            threads += [worker] * workers[worker]
        return threads

    def _workers(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address."""
        try:
            if self.client.status != "running":
                raise OSError
            return dict(self.client.nthreads())
        except OSError as error:
            raise InputError(
                f"the connection to the Dask scheduler at {self.address} was lost; "
                "reconnect and fit again."
            ) from error

    def results(self, tasks: Tasks) -> list[Any]:
        """Return the results of tasks, or raise the error that a task raised.

        `LostError` means that some tasks must be sent again.
        """
        from distributed import CancelledError, KilledWorker

        # A synchronous gather would never return if a worker with results is lost while
        # it waits.
        futures = [task.future for task in tasks.values()]
        gather = self.client.gather(futures, asynchronous=True)
        gathered = asyncio.run_coroutine_threadsafe(
            gather, self.client.loop.asyncio_loop
        )
        try:
            while not gathered.done():
                with suppress(TimeoutError):
                    return gathered.result(POLL_SECONDS)
                # The result of a finished task is "lost" if its worker leaves, and it
                # may never become "pending" again.
                late = {
                    task.worker
                    for task in tasks.values()
                    if task.future.status in ("pending", "lost")
                }
                # Dask may wait forever for a worker that left, even if others remain.
                if late - set(self._workers()):
                    raise LostError
            return gathered.result()  # not suppressed: a task may raise TimeoutError
        except (CancelledError, KilledWorker) as error:
            raise LostError from error
        except (ImportError, AttributeError) as error:
            if "mmcnb" not in str(error):
                raise
            raise InputError(
                f"a worker of the Dask cluster at {self.address} cannot run this "
                f"version of mmcnb ({error}); install the same version there."
            ) from error
        finally:
            gathered.cancel()


class LostError(Exception):
    """Tasks or their data were lost with a worker."""


class _Sweep:
    """One pass over all groups of samples."""

    def __init__(self, engine: DaskEngine, pass_: Pass, samples: Samples) -> None:
        self.engine = engine
        self.samples = samples
        self.n_threads = len(engine.threads())
        n_groups = math.ceil(samples.n_samples / GROUP_ROWS)
        # The tasks of a pass stay the same, even if workers join or leave.
        self.groups = groups_of_task(n_groups, self.n_threads)
        self.starts = range(0, samples.n_samples, self.groups * GROUP_ROWS)
        self.pickled, self.values = pickle_pass(pass_, samples.n_samples)
        self.pass_: Future = None  # until it is sent

    def _send(self) -> None:
        """Send data that the workers do not have yet, or have lost."""
        self.engine.assign(self.starts)
        self.engine.forget_lost()
        if self.pass_ is None or not is_available(self.pass_):
            self.pass_ = self.engine.send(self.pickled, "pass")

    def totals(self) -> Iterator[tuple[Any, bool]]:
        """Yield the total of each group, and whether its rows are cached.

        The next groups are sent before the results of the current groups arrive.
        """
        self.engine.assign(self.starts)
        size = max(1, GROUPS_AHEAD // self.groups) * self.n_threads
        waiting = deque([self._submit(self.starts[:size])])
        try:
            # The last iteration only collects results.
            for first in range(size, len(self.starts) + size, size):
                if first < len(self.starts):
                    waiting.append(self._submit(self.starts[first : first + size]))
                yield from chain.from_iterable(self._results(waiting[0]))
                for task in waiting.popleft().values():
                    task.future.release()
        finally:
            unused = [task.future for tasks in waiting for task in tasks.values()]
            if unused and self.engine.client.status == "running":
                self.engine.client.cancel(unused)
            self.pass_.release()

    def _submit(self, starts: Sequence[int]) -> Tasks:
        """Send some tasks, and retry if a worker leaves."""
        for attempt in range(TRIES):
            with suppress(LostError):
                if attempt or self.pass_ is None:
                    self._send()
                return self._tasks(starts)
        raise self._workers_died(starts)

    def _tasks(self, starts: Sequence[int]) -> Tasks:
        rows_of_worker: dict[str, list[range]] = defaultdict(list)
        for start in starts:
            rows_of_worker[self.engine.assigned[start]].append(self._rows(start))
        tasks: Tasks = {}
        for worker, rows in sorted(rows_of_worker.items()):
            futures = self.engine.client.map(
                group_totals,
                rows,
                [self._values(part, worker) for part in rows],
                opened=self.engine.samples_opened(self.samples, worker),
                samples=self.engine.samples_data(self.samples),
                pass_=self.pass_,
                **on_worker(worker, "mmcnb-group"),
            )
            for part, future in zip(rows, futures, strict=True):
                tasks[part.start] = Task(worker, future)
        return {start: tasks[start] for start in starts}

    def _rows(self, start: int) -> range:
        """Return the rows of the task that begins with a row."""
        return range(start, min(start + self.starts.step, self.samples.n_samples))

    def _values(self, rows: range, worker: str) -> "list[Future]":
        return [self.engine.values(values, rows, worker) for values in self.values]

    def _results(self, tasks: Tasks) -> list[Any]:
        """Return the results of tasks; lost tasks are sent again."""
        for attempt in range(TRIES):
            with suppress(LostError):
                if attempt:
                    self._send()
                    unfinished = [
                        start
                        for start, task in tasks.items()
                        if task.future.status != "finished"
                    ]
                    tasks |= self._submit(unfinished)
                return self.engine.results(tasks)
        raise self._workers_died(tasks)

    def _workers_died(self, starts: Collection[int]) -> InputError:
        stop = self._rows(max(starts)).stop
        return InputError(
            f"workers of the Dask cluster at {self.engine.address} died repeatedly "
            f"at rows {min(starts)} to {stop}, most often because they ran out of "
            "memory; give them more memory, or look at their logs."
        )


def groups_of_task(n_groups: int, n_threads: int) -> int:
    """Return the number of groups in a task.

    Each group has its own total, so the bits of a result do not depend on this number.

    Examples
    --------
    >>> from mmcnb.engine.dask import groups_of_task
    >>> [groups_of_task(15_259, n_threads) for n_threads in (1, 64, 100, 1000)]
    [1, 1, 2, 3]
    """
    least = math.ceil(n_threads / THREADS_SERVED)
    most = n_groups // (LEAST_TASKS * n_threads)
    return max(1, min(least, most, GROUPS_AHEAD))


def on_worker(worker: str, key: str) -> dict[str, Any]:
    """Return options of tasks for one worker; if it is gone, other workers run them."""
    return {"key": key, "workers": [worker], "allow_other_workers": True, "pure": False}


def is_available(future: "Future") -> bool:
    """Return whether a future has a result, or will have one."""
    return future.status in ("pending", "finished")


# -- the client ------------------------------------------------------------------------


_clients: "dict[str, Client]" = {}  # clients that this module has opened, by address
_users: "Counter[Client]" = Counter()  # number of ``with`` blocks that use each client
_sharing = RLock()


@contextmanager
def connection(engine: "str | Client") -> "Iterator[Client]":
    """Yield the client ``engine``, or a client that is connected to this address.

    Nested and parallel ``with`` blocks with the same address share a client. The last
    block to end closes the client, and also the cluster if this process started it.
    """
    check_engine(engine)
    if not isinstance(engine, str):
        yield engine
        return
    with _sharing:
        client: Client = _clients.get(engine)
        if client is None or client.status != "running":
            client = _connect(engine)
            _clients[engine] = client
        _users[client] += 1
    try:
        yield client
    finally:
        with _sharing:
            _users[client] -= 1
            if _users[client] == 0:
                del _users[client]
                if _clients.get(engine) is client:
                    del _clients[engine]
                client.close()
                if client.cluster is not None:
                    client.cluster.close()


def _connect(address: str) -> "Client":
    """Connect to an address.

    The attribute ``cluster`` of the client is the cluster that this process has
    started, or None.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            f"engine={address!r} needs Dask; "
            "install it with `pip install 'mmcnb[dask]'`."
        ) from error
    local = LOCAL.fullmatch(address)
    if local:
        # Errors of workers are raised in this process, so they need not be logged.
        cluster = LocalCluster(
            n_workers=int(local[1]),
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        return Client(cluster, set_as_default=False)
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"no Dask scheduler answers at {address} ({reason}); "
            "check the address and that it runs (`dask scheduler`)."
        ) from error


# -- on a worker -----------------------------------------------------------------------


class _PassPickler(pickle.Pickler):
    """A pickler that leaves out arrays with one value per row: weights and labels.

    A task needs only a part of these arrays.
    """

    def __init__(self, file: io.BytesIO, n_samples: int) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.n_samples = n_samples
        self.values: dict[int, np.ndarray] = {}  # by id

    def persistent_id(self, obj: Any) -> int | None:
        """Return the number of an array that is left out, or None for other objects."""
        # An array of row numbers (int64) is not an array of values per row, even if it
        # has the same length. Values are float64 ("d") or int8 ("b").
        if (
            not isinstance(obj, np.ndarray)
            or obj.shape != (self.n_samples,)
            or obj.dtype.char not in "db"
        ):
            return None
        self.values[id(obj)] = obj
        return list(self.values).index(id(obj))


class PassUnpickler(pickle.Unpickler):
    """An unpickler that loads a pass for one task, with the values of its rows."""

    def __init__(self, data: bytes, values: list[np.ndarray], start: int) -> None:
        super().__init__(io.BytesIO(data))
        self.values = values
        self.first = start

    def persistent_load(self, pid: int) -> Any:
        """Return the values of the task in place of an array for all rows."""
        return TaskValues(self.values[pid], self.first)


class TaskValues:
    """The part of an array that belongs to one task, sliced by row numbers."""

    def __init__(self, values: np.ndarray, start: int) -> None:
        self.values = values
        self.start = start

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[rows.start - self.start : rows.stop - self.start]


def pickle_pass(pass_: Pass, n_samples: int) -> tuple[bytes, list[np.ndarray]]:
    """Return a pickled pass, and separately its arrays with one value per row."""
    file = io.BytesIO()
    pickler = _PassPickler(file, n_samples if n_samples > GROUP_ROWS else -1)
    pickler.dump(pass_)
    return file.getvalue(), list(pickler.values.values())


def pickle_samples(samples: Samples) -> bytes:
    """Return pickled samples, with the library versions of this process."""
    from distributed.protocol.pickle import dumps

    return pickle.dumps((versions(), dumps(samples)))


def _unpickle_samples(data: bytes) -> Samples:
    """Return the samples; raise InputError if this worker has other versions.

    With other versions, the last bits of results might differ.
    """
    from distributed import get_worker

    worker = get_worker()
    versions_of_client, pickled_samples = pickle.loads(data)
    differing = ", ".join(differences(versions_of_client, versions()))
    if differing:
        raise InputError(
            f"a Dask worker differs from its client: {differing} "
            f"(the worker at {worker.address}); install the same versions on both."
        )
    keep_freed_memory()
    samples: Samples = pickle.loads(pickled_samples)
    limit = worker.memory_manager.memory_limit
    if isinstance(samples, CachedSamples) and limit:
        cached = sum(
            opened.cached_bytes
            for opened in Opened._all.values()
            if isinstance(opened, CachedSamples)
        )
        # Dask pauses workers that use 80 % of their memory limit, so all caches of a
        # worker together take at most half of that.
        samples.capacity = min(samples.capacity, 0.4 * limit - cached)
    return samples


class Opened:
    """Samples that a worker process has opened, with the features that it caches.

    The object is the result of a task, so it is freed when the fit or its client ends.
    """

    _lock = Lock()
    _all: ClassVar["weakref.WeakValueDictionary[str, Samples]"] = (
        weakref.WeakValueDictionary()
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self._samples: Samples | None = None

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.key,)

    def open(self, data: bytes) -> Samples:
        """Return the samples; all tasks of this process share them."""
        with Opened._lock:
            if self._samples is None:
                self._samples = Opened._all.get(self.key) or _unpickle_samples(data)
                Opened._all[self.key] = self._samples
            return self._samples


def group_totals(
    rows: range,
    values: list[np.ndarray],
    opened: Opened,
    samples: bytes,
    pass_: bytes,
) -> list[tuple[Any, bool]]:
    """Return the total of each group of a task, and whether its rows are cached."""
    features = opened.open(samples)
    loaded = PassUnpickler(pass_, values, rows.start).load()
    totals = []
    for start in rows[::GROUP_ROWS]:
        with SINGLE_THREADED_BLAS:
            total = total_of_group(loaded, features, start)
        stop = min(start + GROUP_ROWS, features.n_samples)
        is_cached = isinstance(features, CachedSamples) and features.has_cached(
            start, stop
        )
        totals.append((total, is_cached))
    return totals
