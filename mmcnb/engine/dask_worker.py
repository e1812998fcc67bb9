"""What a Dask worker does with a group of rows, and how a pass comes to it."""

import io
import pickle
import weakref
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from mmcnb._machine import keep_freed_memory
from mmcnb.engine.checkpoint import differences, environment
from mmcnb.engine.run import Pass, SingleThreadedBLAS, finish_group, map_blocks, task_rows
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.derived import CachedSamples

CACHE_SHARE = 0.4  # of a worker's memory for cached features; at 0.8 in use Dask pauses it


class _PassPickler(pickle.Pickler):
    """Leaves out arrays with a value for each row (weights, labels): a group needs its part alone."""

    def __init__(self, file: io.BytesIO, n_samples: int) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.n_samples = n_samples
        self.values: list[np.ndarray] = []

    def persistent_id(self, obj: Any) -> int | None:
        """The number of an array that is left out."""
        # Row numbers (int64) are no values of rows, however many there are.
        if not isinstance(obj, np.ndarray) or obj.shape != (self.n_samples,) or obj.dtype.char not in "db":
            return None
        if not any(values is obj for values in self.values):
            self.values.append(obj)
        return next(number for number, values in enumerate(self.values) if values is obj)


class _PassUnpickler(pickle.Unpickler):
    """Puts the values of one group where the arrays were."""

    def __init__(self, data: bytes, values: list[np.ndarray], start: int) -> None:
        super().__init__(io.BytesIO(data))
        self.values, self.first = values, start

    def persistent_load(self, pid: int) -> Any:
        """The values of the group, to be sliced by row number."""
        return GroupValues(self.values[pid], self.first)


class GroupValues:
    """The part of an array that belongs to one group, sliced by the numbers of its rows."""

    def __init__(self, values: np.ndarray, start: int) -> None:
        self.values, self.start = values, start

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[rows.start - self.start : rows.stop - self.start]


def pickle_pass(pass_: Pass, n_samples: int) -> tuple[bytes, list[np.ndarray]]:
    """A pass as bytes, and the arrays with a value for each row that it needs beside them."""
    file = io.BytesIO()
    pickler = _PassPickler(file, n_samples if n_samples > GROUP_ROWS else -1)
    pickler.dump(pass_)
    return file.getvalue(), pickler.values


def unpickle_pass(data: bytes, values: list[np.ndarray], start: int) -> Any:
    """The pass as the group from row ``start`` needs it."""
    return _PassUnpickler(data, values, start).load()


def versions() -> dict[str, str]:
    """What the bits of a total depend on and workers must share with their client, by name."""
    return {name: number for name, number in environment().items() if name != "the processor"}


def pickle_samples(samples: Samples) -> bytes:
    """Samples as bytes, with the versions of this process."""
    from distributed.protocol.pickle import dumps

    return pickle.dumps((versions(), dumps(samples)))


def _unpickle_samples(data: bytes) -> Samples:
    """The samples, where this worker has the versions of the client; otherwise bits might differ."""
    from distributed import get_worker

    of_client, rows = pickle.loads(data)
    found = ", ".join(differences(of_client, versions()))
    if found:
        raise InputError(
            f"a Dask worker differs from its client: {found} (the worker at {get_worker().address}); "
            "install the same versions on both."
        )
    samples: Samples = pickle.loads(rows)
    return samples


def differs(error: Exception, address: str) -> Exception:
    """One sentence for what comes of a worker that has no mmcnb, or quite another one."""
    if "mmcnb" not in str(error):
        return error
    return InputError(
        f"a worker of the Dask cluster at {address} cannot run this version of mmcnb ({error}); "
        "install the same version there."
    )


class Opened:
    """Samples as one worker process has opened them, with the features that it caches.

    The worker holds it as the result of a task, so that all is freed when the fit or its client is gone.
    """

    _lock = Lock()
    _all: ClassVar["weakref.WeakValueDictionary[str, Samples]"] = weakref.WeakValueDictionary()

    def __init__(self, key: str) -> None:
        self.key = key
        self._samples: Samples | None = None

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.key,)

    def open(self, data: bytes) -> Samples:
        """The samples, the same object for all tasks of this process."""
        with Opened._lock:
            if self._samples is None:
                samples = Opened._all.get(self.key) or self._load(data)
                blas = SingleThreadedBLAS()
                blas.__enter__()
                weakref.finalize(self, blas.__exit__).atexit = False
                self._samples = Opened._all[self.key] = samples
            return self._samples

    @staticmethod
    def _load(data: bytes) -> Samples:
        from distributed import get_worker

        keep_freed_memory()
        samples = _unpickle_samples(data)
        limit = get_worker().memory_manager.memory_limit
        if isinstance(samples, CachedSamples) and limit:
            others = [held for held in Opened._all.values() if isinstance(held, CachedSamples)]
            capacity = CACHE_SHARE * limit - sum(held.cached_bytes for held in others)
            samples.capacity = min(samples.capacity, capacity)
        return samples


def group_total(
    start: int, values: list[np.ndarray], opened: Opened, samples: bytes, pass_: bytes
) -> tuple[Any, bool]:
    """The total of one group, and whether its rows are cached for the next pass."""
    rows = opened.open(samples)
    sweep = unpickle_pass(pass_, values, start)
    stop = min(start + GROUP_ROWS, rows.n_samples)
    step = task_rows(rows, 1)
    total = sweep.start()
    for first in range(start, stop, step):
        for block in map_blocks(sweep, rows, first, min(first + step, stop)):
            total = sweep.combine(total, block)
    is_cached = isinstance(rows, CachedSamples) and rows.has_cached(start, stop)
    return finish_group(sweep, total, start), is_cached


def same(data: bytes) -> bytes:
    """The bytes, as the result of a task that Dask can run again."""
    return data
