"""Passes on a Dask cluster: one task a group of rows, with the blocks and their order as in threads.

Rows are not sent. A task gets where they are, its pass and its first row. What tasks
share is sent once and stays with the workers, the samples for a fit and the pass for a
sweep. Dask makes it again if a worker is lost.
"""

import asyncio
import io
import logging
import math
import pickle
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from threading import Lock, RLock
from typing import Any, ClassVar, Self
from uuid import uuid4

import numpy as np

from mmcnb._config import LOCAL, check_engine
from mmcnb._machine import keep_freed_memory
from mmcnb.engine.checkpoint import differences, versions
from mmcnb.engine.run import (
    SINGLE_THREADED_BLAS,
    Engine,
    Pass,
    Result,
    ThreadEngine,
    Total,
    total_of_group,
)
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.derived import CachedSamples

GROUPS_AHEAD = (
    8  # groups sent at once for each thread of the cluster; as many wait behind them
)
GRAPH_BYTES = (
    4 * 2**20
)  # more than this is scattered: Dask keeps the arguments of a task at the scheduler
TRIES = 5  # times that the same groups are sent
# the second for workers to come back
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
CONNECT_SECONDS = 5.0
Tasks = dict[
    int, tuple[str, Any]
]  # the worker and the future of each group, by its first row


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

    def __init__(
        self, engine: Any, n_jobs: int | None = None, show_progress: bool | None = False
    ) -> None:
        super().__init__(show_progress)
        self.engine = engine
        self._threads = ThreadEngine(n_jobs)
        self.assigned: dict[int, str] = {}  # the worker of each group, by its first row
        # By the id of an object, which stays here too so that the id remains its own;
        # with its future.
        self._sent: dict[tuple[str, int, Any], tuple[Any, Any]] = {}

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
        self, function: Callable[[Any], Result], items: Sequence[Any]
    ) -> Iterator[Result]:
        """The results for all items, in order, from threads of this process."""
        return self._threads.map(function, items)

    def cache(
        self, features: Samples, store: str, capacity: float = math.inf
    ) -> Samples:
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

    # -- what the workers have ---------------------------------------------------------

    def send(self, data: bytes, name: str) -> Any:
        """A future of some bytes: those of a task that Dask can run again, unless they are many."""
        if len(data) > GRAPH_BYTES:
            return self._scatter(data)
        return self.client.submit(
            bytes, data, key=f"mmcnb-{name}-{uuid4().hex}", pure=False
        )

    def samples_data(self, samples: Samples) -> Any:
        """The samples, pickled."""
        return self._once(
            "samples",
            samples,
            None,
            lambda: self.send(pickle_samples(samples), "samples"),
        )

    def samples_opened(self, samples: Samples, worker: str) -> Any:
        """The samples as one worker opens them."""
        name = self.samples_data(samples).key
        options = on_worker(worker, f"mmcnb-opened-{uuid4().hex}")
        return self._once(
            "opened",
            samples,
            worker,
            lambda: self.client.submit(Opened, name, **options),
        )

    def values(self, values: np.ndarray, start: int, worker: str) -> Any:
        """What one group needs of an array with a value a row."""
        part = values[start : start + GROUP_ROWS]
        return self._once(
            "values", values, start, lambda: self._scatter(part, [worker])
        )

    def _scatter(self, data: Any, workers: list[str] | None = None) -> Any:
        """A future of data that a worker has at once; raises `LostError` if that worker leaves meanwhile.

        Not broadcast, which may never return if a worker leaves: the others fetch what
        their tasks need.
        """
        try:
            return self.client.scatter(data, workers=workers, hash=False)
        except (
            OSError,
            KeyError,
        ) as error:  # Dask has a KeyError for a worker that is gone
            raise LostError from error

    def _once(self, kind: str, value: Any, place: Any, send: Callable[[], Any]) -> Any:
        key = kind, id(value), place
        if key not in self._sent:
            self._sent[key] = value, send()
        return self._sent[key][1]

    def _forget(self) -> None:
        """Release all by hand: frames of Dask's own errors may keep futures for long."""
        for _object, future in self._sent.values():
            future.release()
        self._sent.clear()

    def forget_lost(self) -> None:
        """Forget what was lost with a worker, so that it is sent again; what others have stays."""
        workers = self._workers()
        for (kind, number, place), (_, future) in list(self._sent.items()):
            if not is_there(future) or (kind == "opened" and place not in workers):
                del self._sent[kind, number, place]

    # -- the workers -------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the scheduler is, for messages."""
        scheduler = self.client.scheduler
        return "an unknown address" if scheduler is None else str(scheduler.address)

    def assign(self, starts: range) -> int:
        """Give each group a worker, by turns of their threads; the number of threads of the cluster."""
        waited = 0.0
        while not (threads := self._workers()):
            if waited > PATIENCE_SECONDS:
                fault = f"the Dask cluster at {self.address} has had no worker for {PATIENCE_SECONDS:.0f} s"
                raise InputError(f"{fault}; start workers and fit again.")
            time.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        places = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        self.assigned = dict(zip(starts, cycle(places), strict=False))
        return len(places)

    def _workers(self) -> dict[str, int]:
        """Threads of each worker, by address."""
        try:
            if self.client.status != "running":
                raise OSError
            return dict(self.client.nthreads())
        except OSError as error:
            fault = f"the connection to the Dask scheduler at {self.address} was lost"
            raise InputError(f"{fault}; connect anew and fit again.") from error

    def results(self, tasks: Tasks) -> list[Any]:
        """The results of tasks; raises what they raised, or `LostError` where some have to be sent again."""
        from distributed import CancelledError, KilledWorker

        # Asynchronously: a gather does not return where a worker is lost with results
        # while it runs.
        gather = self.client.gather(
            [future for _, future in tasks.values()], asynchronous=True
        )
        gathered = asyncio.run_coroutine_threadsafe(
            gather, self.client.loop.asyncio_loop
        )
        try:
            while not gathered.done():
                with suppress(TimeoutError):
                    return gathered.result(POLL_SECONDS)
                # A result that was ready when its worker left is "lost", and may not be
                # "pending" again.
                late = {
                    worker
                    for worker, future in tasks.values()
                    if future.status in ("pending", "lost")
                }
                if late - set(self._workers()):
                    # Dask may wait for ever for a worker that left, whatever others it
                    # has
                    raise LostError
            return gathered.result()  # a task may raise TimeoutError too
        except (CancelledError, KilledWorker) as error:
            raise LostError from error
        except (ImportError, AttributeError) as error:
            if "mmcnb" not in str(error):
                raise
            fault = f"a worker of the Dask cluster at {self.address} cannot run this version of mmcnb"
            raise InputError(
                f"{fault} ({error}); install the same version there."
            ) from error
        finally:
            gathered.cancel()


class LostError(Exception):
    """Tasks, or what they need, were lost with a worker."""


class _Sweep:
    """One pass over the groups of some samples."""

    def __init__(self, engine: DaskEngine, pass_: Pass, samples: Samples) -> None:
        self.engine = engine
        self.samples = samples
        self.starts = range(0, samples.n_samples, GROUP_ROWS)
        self.pickled, self.values = pickle_pass(pass_, samples.n_samples)
        self.pass_: Any = None

    def _send(self) -> None:
        """Send what is not there yet, or not any more."""
        self.engine.assign(self.starts)
        self.engine.forget_lost()
        if self.pass_ is None or not is_there(self.pass_):
            self.pass_ = self.engine.send(self.pickled, "pass")

    def totals(self) -> Iterator[tuple[Any, bool]]:
        """Total of each group and whether its rows are cached, in order, with some groups sent ahead."""
        size = GROUPS_AHEAD * self.engine.assign(self.starts)
        waiting = deque([self._submit(self.starts[:size])])
        try:
            for first in range(
                size, len(self.starts) + size, size
            ):  # the last turn sends no more
                if first < len(self.starts):
                    waiting.append(self._submit(self.starts[first : first + size]))
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
        for again in range(TRIES):
            with suppress(LostError):
                if again or self.pass_ is None:
                    self._send()
                return self._tasks(starts)
        raise self._dying(starts)

    def _tasks(self, starts: Sequence[int]) -> Tasks:
        tasks: Tasks = {}
        workers = {start: self.engine.assigned[start] for start in starts}
        for worker in sorted(set(workers.values())):
            own = [start for start in starts if workers[start] == worker]
            parts = [
                [self.engine.values(values, start, worker) for values in self.values]
                for start in own
            ]
            opened = self.engine.samples_opened(self.samples, worker)
            shared = {
                "opened": opened,
                "samples": self.engine.samples_data(self.samples),
            }
            options = on_worker(worker, "mmcnb-group")
            futures = self.engine.client.map(
                group_total, own, parts, pass_=self.pass_, **shared, **options
            )
            tasks |= {
                start: (worker, future)
                for start, future in zip(own, futures, strict=True)
            }
        return {start: tasks[start] for start in starts}

    def _results(self, tasks: Tasks) -> list[Any]:
        """The results of some tasks; what was lost with a worker is sent again."""
        for again in range(TRIES):
            with suppress(LostError):
                if again:
                    self._send()
                    tasks |= self._submit(
                        [
                            start
                            for start in tasks
                            if tasks[start][1].status != "finished"
                        ]
                    )
                return self.engine.results(tasks)
        raise self._dying(tasks)

    def _dying(self, starts: Collection[int]) -> InputError:
        stop = min(max(starts) + GROUP_ROWS, self.samples.n_samples)
        fault = (
            f"workers of the Dask cluster at {self.engine.address} died again and again"
        )
        fault = (
            f"{fault} at rows {min(starts)} to {stop}, most often for want of memory"
        )
        return InputError(f"{fault}; give them more memory, or look at their logs.")


def on_worker(worker: str, key: str) -> dict[str, Any]:
    """Options of tasks for one worker, which others run if it is gone."""
    return {"key": key, "workers": [worker], "allow_other_workers": True, "pure": False}


def is_there(future: Any) -> bool:
    """Whether a future is computed or will be."""
    return future.status in ("pending", "finished")


# -- the client ------------------------------------------------------------------------


_clients: dict[str, Any] = {}  # our own, by address
_users: Counter[Any] = Counter()  # how many ``with`` blocks use each of them
_sharing = RLock()


@contextmanager
def connection(engine: Any) -> Iterator[Any]:
    """The client of a cluster: ``engine`` itself, or one for its address.

    The ``with`` blocks that are open for one address in this process share a client;
    the last to end closes it, and the cluster where it was started here.
    """
    check_engine(engine)
    if not isinstance(engine, str):
        yield engine
        return
    with _sharing:
        client: Any = _clients.get(engine)
        if client is None or client.status != "running":
            client = _clients[engine] = _connect(engine)
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


def _connect(address: str) -> Any:
    """A client; its ``cluster`` is None unless it is started here."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        fault = f"engine={address!r} needs Dask"
        raise InputError(
            f"{fault}; install it with `pip install 'mmcnb[dask]'`."
        ) from error
    if local := LOCAL.fullmatch(address):
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        # What a worker has to say is raised here.
        cluster = LocalCluster(
            n_workers=int(local[1]), silence_logs=logging.CRITICAL, **options
        )
        return Client(cluster, set_as_default=False)
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        fault = f"no Dask scheduler answers at {address} ({reason})"
        raise InputError(
            f"{fault}; check the address and that it runs (`dask scheduler`)."
        ) from error


# -- on a worker -----------------------------------------------------------------------


class _PassPickler(pickle.Pickler):
    """Leaves out arrays with a value for each row (weights, labels): a group needs its part alone."""

    def __init__(self, file: io.BytesIO, n_samples: int) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.n_samples = n_samples
        self.values: dict[int, np.ndarray] = {}  # by id

    def persistent_id(self, obj: Any) -> int | None:
        """The number of an array that is left out."""
        # Row numbers (int64) are no values of rows, however many there are.
        if (
            not isinstance(obj, np.ndarray)
            or obj.shape != (self.n_samples,)
            or obj.dtype.char not in "db"
        ):
            return None
        self.values[id(obj)] = obj
        return list(self.values).index(id(obj))


class PassUnpickler(pickle.Unpickler):
    """Loads a pass as one group needs it, with the values of its rows where the arrays were."""

    def __init__(self, data: bytes, values: list[np.ndarray], start: int) -> None:
        super().__init__(io.BytesIO(data))
        self.values = values
        self.first = start

    def persistent_load(self, pid: int) -> Any:
        """The values of the group, to be sliced by row number."""
        return GroupValues(self.values[pid], self.first)


class GroupValues:
    """The part of an array that belongs to one group, sliced by the numbers of its rows."""

    def __init__(self, values: np.ndarray, start: int) -> None:
        self.values = values
        self.start = start

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[rows.start - self.start : rows.stop - self.start]


def pickle_pass(pass_: Pass, n_samples: int) -> tuple[bytes, list[np.ndarray]]:
    """A pass as bytes, and the arrays with a value for each row that it needs beside them."""
    file = io.BytesIO()
    pickler = _PassPickler(file, n_samples if n_samples > GROUP_ROWS else -1)
    pickler.dump(pass_)
    return file.getvalue(), list(pickler.values.values())


def pickle_samples(samples: Samples) -> bytes:
    """Samples as bytes, with the versions of this process."""
    from distributed.protocol.pickle import dumps

    return pickle.dumps((versions(), dumps(samples)))


def _unpickle_samples(data: bytes) -> Samples:
    """The samples, if this worker has the versions of the client; otherwise bits might differ."""
    from distributed import get_worker

    worker, (of_client, rows) = get_worker(), pickle.loads(data)
    if found := ", ".join(differences(of_client, versions())):
        fault = f"a Dask worker differs from its client: {found} (the worker at {worker.address})"
        raise InputError(f"{fault}; install the same versions on both.")
    keep_freed_memory()
    samples: Samples = pickle.loads(rows)
    if isinstance(samples, CachedSamples) and (
        limit := worker.memory_manager.memory_limit
    ):
        cached = sum(
            one.cached_bytes
            for one in Opened._all.values()
            if isinstance(one, CachedSamples)
        )
        samples.capacity = min(
            samples.capacity, 0.4 * limit - cached
        )  # at 0.8 in use Dask pauses a worker
    return samples


class Opened:
    """Samples as one worker process has opened them, with the features that it caches.

    The worker keeps it as the result of a task, so that all is freed when the fit or
    its client is gone.
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
        """The samples, the same object for all tasks of this process."""
        with Opened._lock:
            if self._samples is None:
                self._samples = Opened._all.get(self.key) or _unpickle_samples(data)
                Opened._all[self.key] = self._samples
            return self._samples


def group_total(
    start: int, values: list[np.ndarray], opened: Opened, samples: bytes, pass_: bytes
) -> tuple[Any, bool]:
    """The total of one group, and whether its rows are cached for the next pass."""
    rows = opened.open(samples)
    with SINGLE_THREADED_BLAS:
        total = total_of_group(PassUnpickler(pass_, values, start).load(), rows, start)
    stop = min(start + GROUP_ROWS, rows.n_samples)
    return total, isinstance(rows, CachedSamples) and rows.has_cached(start, stop)
