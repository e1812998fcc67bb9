"""Passes on a Dask cluster, where each task computes a few adjacent groups of rows.

Workers open the samples themselves, so no rows are sent to them. A task receives the
samples, the pass and a range of rows. Data that tasks share is sent once and stays on
the workers: the samples until the end of the fit, and the pass until the end of the
sweep. If the data is lost because a worker leaves, it is sent or computed again. The
results equal those of threads, because blocks and groups do not depend on the engine.
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

# Number of groups per thread of the cluster that are sent together. The next batch is
# sent before the current batch is finished.
GROUPS_AHEAD = 8
# The scheduler needs about a millisecond per task, and a pass over one group may take
# only some tens of milliseconds. With more threads than this and one group per task,
# threads would wait for the scheduler, so a task then has several groups.
THREADS_SERVED = 64
# Minimum number of tasks per thread in a pass, so that all threads end at about the
# same time.
LEAST_TASKS = 4
# The scheduler stores the arguments of tasks, so data of more bytes than this is sent
# to the workers with `Client.scatter` instead.
GRAPH_BYTES = 4 * 2**20
TRIES = 5  # maximum number of attempts to send the same groups if workers leave
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 60.0  # how long to wait for a worker if the cluster has none
CONNECT_SECONDS = 5.0  # timeout for connecting to a scheduler


class Task(NamedTuple):
    """A worker and the future of the totals that it computes for adjacent groups."""

    worker: str  # its address
    future: "Future"


Tasks = dict[int, Task]  # by the number of the first row of each task
Place = str | range | None  # a worker, a range of rows, or None for all workers


class DaskEngine(Engine):
    """An engine that runs passes on the workers of a Dask cluster.

    Workers cannot open rows in the memory of this process, such as arrays. Passes over
    these rows run in threads of this process.

    Parameters
    ----------
    engine : str or dask.distributed.Client
        A client, or an address as in `open_engine`.
    n_jobs : int or None, default=None
        Number of threads for passes over rows in the memory of this process.
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
        # Worker of each task, by the number of the first row of the task.
        self.assigned: dict[int, str] = {}
        # Objects that were sent and their futures, by kind, id, and worker or rows. The
        # reference to the object is needed because an id is unique only while its
        # object is alive.
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
        """Yield the results of a function for all items, in the order of the items.

        The function runs in threads of this process.
        """
        return self._threads.map(function, items)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
        """Return features that workers cache, in up to ``capacity`` bytes per worker.

        Features that workers cannot open are cached in this process, in ``store``.
        """
        if not features.is_reopenable:
            return super().cache(features, store)
        return CachedSamples(features, capacity=capacity)

    def groups(self, pass_: Pass[Total], samples: Samples) -> Iterator[Total]:
        """Yield the totals of all groups of rows, in row order.

        Each worker gets the same groups in every pass unless workers join or leave, so
        that it can use its cached features.
        """
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
        """Send bytes to the cluster, and return their future.

        Up to `GRAPH_BYTES` bytes are sent as the argument of a task, so that Dask can
        run the task again if the worker with the data leaves. More bytes are scattered.
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
        """Return a future of the `Opened` samples on ``worker``."""
        name = self.samples_data(samples).key

        def send() -> "Future":
            options = on_worker(worker, f"mmcnb-opened-{uuid4().hex}")
            return self.client.submit(Opened, name, **options)

        return self._once("opened", samples, worker, send)

    def values(self, values: np.ndarray, rows: range, worker: str) -> "Future":
        """Return a future of the values for the rows ``rows``, which a task needs."""
        part = values[rows.start : rows.stop]
        return self._once("values", values, rows, lambda: self._scatter(part, [worker]))

    def _scatter(
        self, data: bytes | np.ndarray, workers: list[str] | None = None
    ) -> "Future":
        """Send data to one of ``workers``, or to any worker if ``workers`` is None.

        The data is not broadcast to all workers, because a broadcast might never return
        if one of the workers leaves. Other workers fetch the data when a task needs it.

        Raises
        ------
        LostError
            If the worker has left or leaves while the data is sent.
        """
        try:
            return self.client.scatter(data, workers=workers, hash=False)
        # Dask raises KeyError for a worker that has left.
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
        """Release the futures of all data that was sent to the cluster.

        They are released explicitly, because a traceback may keep them alive.
        """
        for _, future in self._sent.values():
            future.release()
        self._sent.clear()

    def forget_lost(self) -> None:
        """Forget data that was lost when a worker left, so that it is sent again."""
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
        """Assign tasks to the threads of the cluster in turn.

        Parameters
        ----------
        starts : range
            Number of the first row of each task.
        """
        self.assigned = dict(zip(starts, cycle(self.threads()), strict=False))

    def threads(self) -> list[str]:
        """Return, for each thread of the cluster, the address of its worker.

        If the cluster has no workers, wait for one, for about `PATIENCE_SECONDS`.
        """
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
        """Return the number of threads of each worker, by the address of the worker."""
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

        Raises
        ------
        LostError
            If a worker has left, so that some of the tasks must be sent again.
        """
        from distributed import CancelledError, KilledWorker

        # A synchronous gather would never return if a worker that has results leaves
        # during the call.
        futures = [task.future for task in tasks.values()]
        gather = self.client.gather(futures, asynchronous=True)
        gathered = asyncio.run_coroutine_threadsafe(
            gather, self.client.loop.asyncio_loop
        )
        try:
            while not gathered.done():
                with suppress(TimeoutError):
                    return gathered.result(POLL_SECONDS)
                # The status of a finished task becomes "lost" if its worker leaves, and
                # Dask may never change the status back to "pending".
                late = {
                    task.worker
                    for task in tasks.values()
                    if task.future.status in ("pending", "lost")
                }
                # Dask may wait forever for a worker that has left, even if other
                # workers remain.
                if late - set(self._workers()):
                    raise LostError
            # A TimeoutError raised here comes from a task and must not be suppressed.
            return gathered.result()
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
    """Error raised if tasks or their data were lost because a worker left."""


class _Sweep:
    """One pass over all groups of rows on the cluster."""

    def __init__(self, engine: DaskEngine, pass_: Pass, samples: Samples) -> None:
        self.engine = engine
        self.samples = samples
        self.n_threads = len(engine.threads())
        n_groups = math.ceil(samples.n_samples / GROUP_ROWS)
        # The tasks of a pass do not change, even if workers join or leave.
        self.groups = groups_of_task(n_groups, self.n_threads)
        self.starts = range(0, samples.n_samples, self.groups * GROUP_ROWS)
        self.pickled, self.values = pickle_pass(pass_, samples.n_samples)
        self.pass_: Future = None  # set when the pass is sent

    def _send(self) -> None:
        """Assign the tasks to the present workers, and send the pass if necessary."""
        self.engine.assign(self.starts)
        self.engine.forget_lost()
        if self.pass_ is None or not is_available(self.pass_):
            self.pass_ = self.engine.send(self.pickled, "pass")

    def totals(self) -> Iterator[tuple[Any, bool]]:
        """Yield the total of each group, and whether the group's features are cached.

        The next batch of tasks is sent before the results of the current batch arrive.
        """
        self.engine.assign(self.starts)
        size = max(1, GROUPS_AHEAD // self.groups) * self.n_threads
        waiting = deque([self._submit(self.starts[:size])])
        try:
            # The last iteration sends no tasks and collects the last results.
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
        """Send the tasks whose first rows are ``starts``.

        If a worker leaves, try again.
        """
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
        """Return the range of rows of the task that begins with row ``start``."""
        return range(start, min(start + self.starts.step, self.samples.n_samples))

    def _values(self, rows: range, worker: str) -> "list[Future]":
        return [self.engine.values(values, rows, worker) for values in self.values]

    def _results(self, tasks: Tasks) -> list[Any]:
        """Return the results of tasks, after sending tasks that were lost again."""
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
    """Return the number of groups in each task of a pass.

    A task returns one total per group, so the results do not depend on this number.

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
    """Return options to run tasks on a worker or, if it has left, on other workers."""
    return {"key": key, "workers": [worker], "allow_other_workers": True, "pure": False}


def is_available(future: "Future") -> bool:
    """Return whether a future is pending or has finished without an error."""
    return future.status in ("pending", "finished")


# -- the client ------------------------------------------------------------------------


_clients: "dict[str, Client]" = {}  # clients that this module has opened, by address
_users: "Counter[Client]" = Counter()  # number of ``with`` blocks that use each client
_sharing = RLock()


@contextmanager
def connection(engine: "str | Client") -> "Iterator[Client]":
    """Yield a client: ``engine`` itself, or a client connected to this address.

    Nested and concurrent ``with`` blocks with the same address share one client. The
    last of these blocks closes the client when it ends, and also closes the cluster if
    this process started it. A client passed as ``engine`` stays open.
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
    """Return a client connected to an address.

    The attribute ``cluster`` of the client is the cluster that this process has
    started, or None if the scheduler was already running.
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
        # Errors in tasks are raised in this process, so workers need not log them.
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
    """A pickler that leaves out arrays with one value per row, such as weights.

    Each task receives only its slice of these arrays.
    """

    def __init__(self, file: io.BytesIO, n_samples: int) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.n_samples = n_samples
        self.values: dict[int, np.ndarray] = {}  # arrays that are left out, by id

    def persistent_id(self, obj: Any) -> int | None:
        """Return the index of an array that is left out, or None for other objects."""
        # Weights and labels are float64 ("d") or int8 ("b"). An int64 array contains
        # row numbers, so it is pickled even if its length is the number of rows.
        if (
            not isinstance(obj, np.ndarray)
            or obj.shape != (self.n_samples,)
            or obj.dtype.char not in "db"
        ):
            return None
        self.values[id(obj)] = obj
        return list(self.values).index(id(obj))


class PassUnpickler(pickle.Unpickler):
    """An unpickler that loads a pass with values for the rows of one task."""

    def __init__(self, data: bytes, values: list[np.ndarray], start: int) -> None:
        super().__init__(io.BytesIO(data))
        self.values = values
        self.first = start

    def persistent_load(self, pid: int) -> Any:
        """Return the task's values of the array that was left out as number ``pid``."""
        return TaskValues(self.values[pid], self.first)


class TaskValues:
    """Values of the rows of one task, from an array with one value per row.

    Slices are given by row numbers in the whole array.
    """

    def __init__(self, values: np.ndarray, start: int) -> None:
        self.values = values
        self.start = start

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[rows.start - self.start : rows.stop - self.start]


def pickle_pass(pass_: Pass, n_samples: int) -> tuple[bytes, list[np.ndarray]]:
    """Return a pickled pass, and a list of its arrays with one value per row."""
    file = io.BytesIO()
    pickler = _PassPickler(file, n_samples if n_samples > GROUP_ROWS else -1)
    pickler.dump(pass_)
    return file.getvalue(), list(pickler.values.values())


def pickle_samples(samples: Samples) -> bytes:
    """Return pickled samples together with the library versions of this process."""
    from distributed.protocol.pickle import dumps

    return pickle.dumps((versions(), dumps(samples)))


def _unpickle_samples(data: bytes) -> Samples:
    """Return the unpickled samples.

    Raises
    ------
    InputError
        If the library versions of this worker differ from the client's. Different
        versions might change the last bits of the results.
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
        # Dask pauses a worker that uses 80 % of its memory limit, so the caches of a
        # worker may use at most 40 % of the limit in total.
        samples.capacity = min(samples.capacity, 0.4 * limit - cached)
    return samples


class Opened:
    """Samples that a worker process has opened, including the features it has cached.

    An instance is the result of a task, so Dask frees it when the fit ends or its
    client is closed.
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
        """Return the samples, which all tasks of this process share."""
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
    """Return the total of each group in a task's rows, and whether it is cached.

    A group is cached if this worker process has cached its features.
    """
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
