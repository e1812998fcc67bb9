"""Arrays in chunks, read by slices that begin and end anywhere, and checked against their inventory.

Chunks of numbers that one codec encodes are decoded straight into place. Zarr decodes
into a buffer and copies, by way of an event loop and a second pool of threads: a third
of the throughput of a local disk.
"""

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import damage, damaged_chunks
from mmcnb.samples import matrix
from mmcnb.samples._limits import check_chunk_bytes, limited
from mmcnb.samples._shards import chunks_in_shards, has_plain_shards
from mmcnb.samples.base import EDGE_BYTES
from mmcnb.samples.codecs import chunk_codec, most_bytes
from mmcnb.samples.files import check_chunk_file
from mmcnb.samples.inventory import Inventory
from mmcnb.samples.paths import read_keys

GATHER_BYTES = 16 * 2**20  # decoded at once while single rows are gathered


class EdgeChunks:
    """Decoded chunks of which a read needed only a part, cached for the neighbouring reads.

    The first reader of a chunk decodes it and others wait for the result. The least
    recently used chunks are dropped if more than ``EDGE_BYTES`` are cached. So a pass
    in row order decodes each chunk once, whatever its tasks and threads.

    Parameters
    ----------
    n_arrays : int
        Arrays that share it; two chunks of each are always cached.
    """

    def __init__(self, n_arrays: int = 1) -> None:
        self._lock = threading.Lock()
        self._chunks: OrderedDict[Hashable, Future[Any]] = (
            OrderedDict()
        )  # the least recently used one first
        self._least = 2 * n_arrays
        self._cached_bytes = 0

    def take(self, key: Hashable, load: Callable[[], Any]) -> Any:
        """The chunk of a key, loaded unless it is cached."""
        place = (
            os.getpid(),
            key,
        )  # a forked child never waits for a thread it does not have
        with self._lock:
            is_first = place not in self._chunks
            chunk = self._chunks.setdefault(place, Future())
            self._chunks.move_to_end(place)
        if is_first:
            try:
                loaded = load()
            except BaseException as error:
                with self._lock:
                    del self._chunks[place]
                chunk.set_exception(error)
                raise
            with self._lock:
                chunk.set_result(loaded)
                self._cached_bytes += matrix.n_bytes_of(loaded)
                while (
                    self._cached_bytes > EDGE_BYTES and len(self._chunks) > self._least
                ):
                    at, oldest = self._chunks.popitem(last=False)
                    if oldest.done():
                        self._cached_bytes -= matrix.n_bytes_of(oldest.result())
                    else:  # another thread loads it
                        self._chunks[at] = oldest
        return chunk.result()


class ChunkedRows(ABC):
    """Rows in chunks along the first axis; safe to read from several threads.

    Parameters
    ----------
    name : str
        Tells the chunks of arrays apart that share ``edges``.
    length : int
        Number of rows.
    edges : EdgeChunks
        Caches chunks that are needed in part.
    lookahead : int, default=0
        Rows that each read gets beyond those asked for, 0 or 1; row pointers need one.
    """

    def __init__(
        self, name: str, length: int, edges: EdgeChunks, lookahead: int = 0
    ) -> None:
        self._key = name
        self.length = length
        self._edges = edges
        self._lookahead = lookahead

    @abstractmethod
    def chunk_at(self, row: int) -> tuple[int, int]:
        """First row of the chunk that contains a row, and the one after its last."""

    @abstractmethod
    def load(self, start: int, stop: int) -> Any:
        """Decode whole chunks."""

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Any]]:
        """Ranges of rows with their values, or with None for whole chunks that are to be loaded."""
        end = min(stop + self._lookahead, self.length)
        stop = end if end == self.length else stop
        position = start
        while position < end:
            begin = position
            while position < end and self._is_whole(
                self.chunk_at(position), start, stop
            ):
                position = self.chunk_at(position)[1]
            if position > begin:
                yield begin, position, None
            else:
                first, last = self.chunk_at(begin)
                position = min(last, end)
                chunk = self._edges.take(
                    (self._key, first), partial(self.load, first, last)
                )
                yield begin, position, chunk[begin - first : position - first]

    def _is_whole(self, chunk: tuple[int, int], start: int, stop: int) -> bool:
        """Whether no other read of a pass needs a chunk; the one before may look ahead to its first row."""
        return start <= max(0, chunk[0] - self._lookahead) and chunk[1] <= stop


class SlicedRows(ChunkedRows):
    """Slices along the first axis of an array in chunks of one length.

    Parameters
    ----------
    name : str
        Tells the chunks of arrays apart that share ``edges``.
    array : object
        It has a shape, a dtype, and ``read(start, stop)``, if no subclass loads its
        chunks.
    chunk_length : int
        Rows of a chunk.
    edges : EdgeChunks or None, default=None
        Caches chunks that are needed in part; None is a cache for this array alone.
    lookahead : int, default=0
        Values that each read gets beyond those asked for.
    """

    def __init__(
        self,
        name: str,
        array: Any,
        chunk_length: int,
        edges: EdgeChunks | None = None,
        lookahead: int = 0,
    ) -> None:
        super().__init__(name, int(array.shape[0]), edges or EdgeChunks(), lookahead)
        self._array, self.chunk_length = array, int(chunk_length)
        self.row_bytes = int(np.prod(array.shape[1:])) * array.dtype.itemsize
        self.chunk_bytes = self.row_bytes * min(self.chunk_length, self.length)

    def chunk_at(self, row: int) -> tuple[int, int]:
        """First position of the chunk that contains a position, and the one after its last."""
        first = row // self.chunk_length * self.chunk_length
        return first, min(first + self.chunk_length, self.length)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Decode whole chunks."""
        return self._array.read(start, stop)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Values at ``start <= position < stop``; a pass in row order decodes each chunk once."""
        stop = min(stop, self.length)
        parts = list(self.pieces(start, stop))
        if len(parts) == 1:
            begin, end, values = parts[0]
            return self.load(begin, end) if values is None else values
        out = self._empty(sum(end - begin for begin, end, _ in parts))
        for begin, end, values in parts:
            place = out[begin - start : end - start]
            if values is None:
                self.load_into(place, begin, end)
            else:
                place[...] = values
        return out

    def _empty(self, length: int) -> np.ndarray:
        dtype = self._array.dtype
        shape = (length, *self._array.shape[1:])
        return np.empty(shape, dtype if dtype.kind == "T" else dtype.newbyteorder("="))

    def load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        """Read whole chunks into place."""
        out[...] = self.load(start, stop)

    def gather(self, positions: np.ndarray) -> np.ndarray:
        """Values at strictly increasing positions; each chunk is read at most once."""
        out = self._empty(len(positions))
        chunks = positions // self.chunk_length
        most = max(1, GATHER_BYTES // max(1, self.row_bytes * self.chunk_length))
        # Neighbouring chunks are loaded together, up to ``most`` of them.
        is_cut = (np.diff(chunks) > 1) | (np.diff(chunks // most) > 0)
        ends = (
            [0, *(np.flatnonzero(is_cut) + 1).tolist(), len(positions)]
            if len(positions)
            else []
        )
        for begin, end in itertools.pairwise(ends):
            first = self.chunk_at(int(positions[begin]))[0]
            last = self.chunk_at(int(positions[end - 1]))[1]
            out[begin:end] = self.load(first, last)[positions[begin:end] - first]
        return out


class StoredArray(SlicedRows):
    """Slices along the first axis of a Zarr array; safe to read from several threads.

    Zarr's own settings stay as the user has them: they are global to the process, so
    that changing them around a read would reach other threads.

    Parameters
    ----------
    array : zarr.Array
    inventory : Inventory or None
        If the store has one, each chunk is compared with it as it is decoded.
    name : str
        For messages.
    *cached
        ``edges`` and ``lookahead``, as in `SlicedRows`.
    """

    def __init__(
        self, array: zarr.Array, inventory: Inventory | None, name: str, *cached: Any
    ) -> None:
        super().__init__(array.path, array, array.chunks[0], *cached)
        self._name = name
        self._inventory = (
            None
            if inventory is None or inventory.hashes(array.path) is None
            else inventory
        )
        is_local = isinstance(array.store, LocalStore)
        is_own = not array.shards or (is_local and has_plain_shards(array))
        self._codec = chunk_codec(array) if is_own else None
        if (
            chunk_bytes := self.row_bytes * self.chunk_length
        ) > 2**30:  # so many on any machine
            check_chunk_bytes(chunk_bytes, name)
        if self._codec is None or not is_local:
            self._array = limited(array, name)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Decode whole chunks, each time anew."""
        out = self._empty(stop - start)
        self.load_into(out, start, stop)
        return out

    def load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        """Decode whole chunks into place."""
        if self._codec is None:
            out[...] = self._zarr_values(start, stop)
            return
        for (first, *columns), key, frame in self._frames(start, stop):
            place = zip((first - start, *columns), self._array.chunks, strict=True)
            chunk = out[tuple(slice(begin, begin + length) for begin, length in place)]
            if frame is None:
                chunk[...] = self._array.fill_value or 0
                continue
            self._codec.decode(frame, chunk, f"{self._name}: chunk {key}")
            if self._inventory is not None:  # it may be sound and belong elsewhere
                self._inventory.check_chunk(
                    self._array.path, first // self.chunk_length, key, frame, chunk
                )

    def _frames(
        self, start: int, stop: int
    ) -> Iterator[tuple[tuple[int, ...], str, Any]]:
        """Places, keys and stored bytes of chunks; None if one is missing that need not be there."""
        shape = self._array.shape
        chunks = self._array.chunks
        axes = (
            range(start, stop, chunks[0]),
            *map(range, itertools.repeat(0), shape[1:], chunks[1:]),
        )
        places = list(itertools.product(*axes))
        in_shards = self._codec is not None and self._array.shards
        found = (
            chunks_in_shards(self._array, self._name, axes[0])
            if in_shards
            else self._in_files(places)
        )
        for place, (key, frame) in zip(places, found, strict=True):
            if isinstance(frame, Exception):
                with damage(f"{self._name}: chunk {key} is damaged"):
                    raise frame  # as it is, if the store could not be reached
            if frame is None and self._inventory is not None:
                raise damaged_chunks(self._name, [key], "missing")
            yield place, key, frame

    def _in_files(self, places: list[tuple[int, ...]]) -> Iterator[tuple[str, Any]]:
        """Keys and stored bytes of chunks with files of their own, with the errors of those not readable."""
        store = self._array.store
        chunks = self._array.chunks
        step = 1 if isinstance(store, LocalStore) else 8  # fetched side by side
        most = most_bytes(self._array)
        for begin in range(0, len(places), step):
            numbers = np.floor_divide(places[begin : begin + step], chunks).tolist()
            keys = [self.chunk_key(*place) for place in numbers]
            files = [Path(store.root, key) for key in keys] if step == 1 else []
            found = [read_chunk_file(file, most) for file in files] or read_keys(
                store, keys
            )
            yield from zip(keys, found, strict=True)

    def _zarr_values(self, start: int, stop: int) -> np.ndarray:
        # Each codec and each store has its own exceptions.
        with damage(f"{self._name}: {start} to {stop} cannot be read"):
            values = np.asarray(self._array[start:stop])
        if self._inventory is not None:
            for (first, *_), key, frame in self._frames(start, stop):
                part = values[first - start : first - start + self.chunk_length]
                self._inventory.check_chunk(
                    self._array.path, first // self.chunk_length, key, frame, part
                )
        return values

    def chunk_key(self, *coordinates: int) -> str:
        """Key of a chunk below the root of the store."""
        return (
            self._array.store_path / self._array.metadata.encode_chunk_key(coordinates)
        ).path


def read_chunk_file(path: Path, most: int) -> bytes | OSError | None:
    """Bytes of a chunk of at most so many; None if it is missing, and the error if it cannot be read."""
    try:
        check_chunk_file(path, most)
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
