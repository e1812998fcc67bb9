"""Chunked arrays that are read by slices and checked against their inventory.

Numeric chunks with a single codec are decoded directly into the result. Zarr itself
decodes into a buffer, copies the buffer, and uses an event loop and a second thread
pool, so that it reaches only a third of the throughput of a local disk.
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
from typing import Any, NamedTuple

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

GATHER_BYTES = 16 * 2**20  # bytes that are decoded at a time to gather single rows
FETCHED_CHUNKS = 8  # chunks that are fetched from a server concurrently


class EdgeChunks:
    """A cache of decoded chunks that consecutive reads share.

    The first reader of a chunk decodes it, and other readers wait for the result. If
    more than ``EDGE_BYTES`` bytes are cached, the least recently used chunks are
    dropped. A pass in row order therefore decodes each chunk once, for any number of
    threads.

    Parameters
    ----------
    n_arrays : int
        Number of arrays that share the cache. The cache has room for at least two
        chunks per array.
    """

    def __init__(self, n_arrays: int = 1) -> None:
        self._lock = threading.Lock()
        # The least recently used chunk is first.
        self._chunks: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._least = 2 * n_arrays
        self._cached_bytes = 0

    def take(self, key: Hashable, load: Callable[[], Any]) -> Any:
        """Return the chunk that is cached under a key, or else load and cache it.

        The function ``load`` returns the chunk.
        """
        # The process is part of the key, so that a forked child does not wait for a
        # thread that exists only in its parent.
        process_key = (os.getpid(), key)
        with self._lock:
            is_first = process_key not in self._chunks
            chunk = self._chunks.setdefault(process_key, Future())
            self._chunks.move_to_end(process_key)
        if not is_first:
            return chunk.result()
        try:
            loaded = load()
        except BaseException as error:
            with self._lock:
                del self._chunks[process_key]
            chunk.set_exception(error)
            raise
        with self._lock:
            chunk.set_result(loaded)
            self._cached_bytes += matrix.n_bytes_of(loaded)
            self._drop_oldest()
        return loaded

    def _drop_oldest(self) -> None:
        """Drop the least recently used chunks until the cache is within its limit.

        The caller must hold the lock.
        """
        while self._cached_bytes > EDGE_BYTES and len(self._chunks) > self._least:
            key, chunk = self._chunks.popitem(last=False)
            if chunk.done():
                self._cached_bytes -= matrix.n_bytes_of(chunk.result())
            else:  # another thread is loading it
                self._chunks[key] = chunk


class ChunkedRows(ABC):
    """Rows in chunks along the first axis; safe to read from several threads.

    Parameters
    ----------
    name : str
        Name that distinguishes the chunks of arrays that share ``edges``.
    length : int
        Number of rows.
    edges : EdgeChunks
        Cache for chunks that a read needs only in part.
    lookahead : int, default=0
        Number of additional rows that each read returns at its end: 1 for row pointers,
        otherwise 0.
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
        """Return the range (start, stop) of the chunk that contains a row."""

    @abstractmethod
    def load(self, start: int, stop: int) -> Any:
        """Decode the rows ``start <= row < stop``, which are whole chunks."""

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Any]]:
        """Yield consecutive ranges of rows as tuples (start, stop, values).

        The values are None for ranges of whole chunks, which the caller loads.
        """
        end = min(stop + self._lookahead, self.length)
        whole_stop = end if end == self.length else stop
        position = start
        while position < end:
            begin = position
            first, last = self.chunk_at(begin)
            while position < end and self._is_whole(position, start, whole_stop):
                position = self.chunk_at(position)[1]
            if position > begin:
                yield begin, position, None
            else:
                position = min(last, end)
                load = partial(self.load, first, last)
                chunk = self._edges.take((self._key, first), load)
                yield begin, position, chunk[begin - first : position - first]

    def _is_whole(self, position: int, start: int, stop: int) -> bool:
        """Return whether no other read of a pass needs the chunk at ``position``.

        This read ranges from ``start`` to ``stop``. The preceding read may also need
        the first row of the chunk, as its lookahead.
        """
        first, last = self.chunk_at(position)
        return start <= max(0, first - self._lookahead) and last <= stop


class SlicedRows(ChunkedRows):
    """An array with chunks of equal length, read by slices along its first axis.

    Parameters
    ----------
    name : str
        Name that distinguishes the chunks of arrays that share ``edges``.
    array : object
        Object with a shape and a dtype and, unless a subclass overrides ``load``, a
        method ``read(start, stop)``.
    chunk_length : int
        Number of rows of a chunk.
    edges : EdgeChunks or None, default=None
        Cache for chunks that a read needs only in part; None creates a cache for this
        array.
    lookahead : int, default=0
        Number of additional values that each read returns at its end.
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
        self._array = array
        self.chunk_length = int(chunk_length)
        self.row_bytes = int(np.prod(array.shape[1:])) * array.dtype.itemsize
        self.chunk_bytes = self.row_bytes * min(self.chunk_length, self.length)

    def chunk_at(self, row: int) -> tuple[int, int]:
        """Return the range (start, stop) of the chunk that contains a row."""
        first = row // self.chunk_length * self.chunk_length
        return first, min(first + self.chunk_length, self.length)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Decode the rows ``start <= row < stop``, which are whole chunks."""
        return self._array.read(start, stop)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the values at ``start <= position < stop``.

        A pass in row order decodes each chunk once.
        """
        parts = list(self.pieces(start, min(stop, self.length)))
        if len(parts) == 1:
            begin, end, values = parts[0]
            return self.load(begin, end) if values is None else values
        out = self._empty(sum(end - begin for begin, end, _ in parts))
        for begin, end, values in parts:
            part = out[begin - start : end - start]
            if values is None:
                self.load_into(part, begin, end)
            else:
                part[...] = values
        return out

    def _empty(self, length: int) -> np.ndarray:
        dtype = self._array.dtype
        shape = (length, *self._array.shape[1:])
        return np.empty(shape, dtype if dtype.kind == "T" else dtype.newbyteorder("="))

    def load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        """Decode whole chunks, with the rows ``start <= row < stop``, into ``out``."""
        out[...] = self.load(start, stop)

    def gather(self, positions: np.ndarray) -> np.ndarray:
        """Return the values at the given positions, which must increase strictly.

        Each chunk is read at most once.
        """
        out = self._empty(len(positions))
        if not len(positions):
            return out
        # Up to ``most`` adjacent chunks are loaded together.
        most = max(1, GATHER_BYTES // max(1, self.row_bytes * self.chunk_length))
        chunks = positions // self.chunk_length
        has_gap = np.diff(chunks) > 1
        is_next_load = np.diff(chunks // most) > 0
        cuts = np.flatnonzero(has_gap | is_next_load) + 1
        for begin, end in itertools.pairwise([0, *cuts.tolist(), len(positions)]):
            wanted = positions[begin:end]
            first, _ = self.chunk_at(int(wanted[0]))
            _, last = self.chunk_at(int(wanted[-1]))
            values = self.load(first, last)
            out[begin:end] = values[wanted - first]
        return out


class StoredChunk(NamedTuple):
    """The stored bytes of a chunk.

    Attributes
    ----------
    place : tuple of int
        Index of the chunk's first element in the array.
    key : str
        Key of the chunk, or of the shard that contains it.
    frame : bytes or None
        The stored bytes; None for a missing chunk, whose values are all the fill value.
    """

    place: tuple[int, ...]
    key: str
    frame: bytes | None


class StoredArray(SlicedRows):
    """A Zarr array that several threads can read by slices along its first axis.

    Zarr's configuration is not changed, because it is global to the process, and a
    change would affect other threads.

    Parameters
    ----------
    array : zarr.Array
        The array.
    inventory : Inventory or None
        Inventory against which chunks are checked; None if the store has no inventory.
    name : str
        Name used for the array in messages.
    edges, lookahead
        See `SlicedRows`.
    """

    def __init__(
        self,
        array: zarr.Array,
        inventory: Inventory | None,
        name: str,
        edges: EdgeChunks | None = None,
        lookahead: int = 0,
    ) -> None:
        super().__init__(array.path, array, array.chunks[0], edges, lookahead)
        self._name = name
        is_recorded = inventory is not None and inventory.hashes(array.path) is not None
        self._inventory = inventory if is_recorded else None
        is_local = isinstance(array.store, LocalStore)
        can_find_chunks = not array.shards or (is_local and has_plain_shards(array))
        self._codec = chunk_codec(array) if can_find_chunks else None
        chunk_bytes = self.row_bytes * self.chunk_length
        if chunk_bytes > 2**30:  # smaller chunks fit into any machine's memory
            check_chunk_bytes(chunk_bytes, name)
        if self._codec is None or not is_local:
            self._array = limited(array, name)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Decode the rows ``start <= row < stop``, which are whole chunks."""
        out = self._empty(stop - start)
        self.load_into(out, start, stop)
        return out

    def load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        """Decode whole chunks, with the rows ``start <= row < stop``, into ``out``."""
        if self._codec is None:
            out[...] = self._zarr_values(start, stop)
            return
        for chunk in self._frames(start, stop):
            first, *columns = chunk.place
            begins = np.array([first - start, *columns])
            values = out[tuple(map(slice, begins, begins + self._array.chunks))]
            if chunk.frame is None:
                values[...] = self._array.fill_value or 0
                continue
            place = f"{self._name}: chunk {chunk.key}"
            self._codec.decode(chunk.frame, values, place)
            self._check_chunk(chunk, values)

    def _check_chunk(self, chunk: StoredChunk, values: np.ndarray) -> None:
        """Compare a chunk with the store's inventory, if there is one.

        The codec does not detect an undamaged chunk that is stored under the wrong key.
        """
        if self._inventory is not None and chunk.frame is not None:
            number = chunk.place[0] // self.chunk_length
            self._inventory.check_chunk(
                self._array.path, number, chunk.key, chunk.frame, values
            )

    def _frames(self, start: int, stop: int) -> Iterator[StoredChunk]:
        """Yield the stored chunks of the rows ``start <= row < stop``.

        A missing chunk raises DamagedStoreError if the inventory lists it or the fill
        value is NaN; otherwise its bytes are None.
        """
        shape = self._array.shape
        rows = range(start, stop, self.chunk_length)
        axes = [rows]
        axes += map(range, itertools.repeat(0), shape[1:], self._array.chunks[1:])
        places = list(itertools.product(*axes))
        chunks: Iterator[tuple[str, bytes | BaseException | None]]
        if self._codec is not None and self._array.shards:
            chunks = chunks_in_shards(self._array, self._name, rows)
        else:
            chunks = self._in_files(places)
        for place, (key, frame) in zip(places, chunks, strict=True):
            if isinstance(frame, BaseException):
                with damage(f"{self._name}: chunk {key} is damaged"):
                    raise frame  # `damage` leaves InputError (no connection) unchanged
            if frame is None and (self._inventory is not None or self._fills_nan):
                raise damaged_chunks(self._name, [key], "missing")
            yield StoredChunk(place, key, frame)

    @property
    def _fills_nan(self) -> bool:
        """Whether the fill value is NaN, so a lost chunk looks like missing values."""
        fill = self._array.fill_value
        return isinstance(fill, np.floating | float) and bool(np.isnan(fill))

    def _in_files(
        self, places: list[tuple[int, ...]]
    ) -> Iterator[tuple[str, bytes | BaseException | None]]:
        """Yield the keys and stored bytes of chunks that are not in shards.

        For a chunk that cannot be read, the error is yielded in place of the bytes.
        """
        store = self._array.store
        keys = []
        for place in places:
            numbers = np.floor_divide(place, self._array.chunks)
            keys.append(self.chunk_key(*numbers.tolist()))
        if isinstance(store, LocalStore):
            most = most_bytes(self._array)
            for key in keys:
                yield key, read_chunk_file(Path(store.root, key), most)
            return
        for begin in range(0, len(keys), FETCHED_CHUNKS):
            fetched = keys[begin : begin + FETCHED_CHUNKS]
            yield from zip(fetched, read_keys(store, fetched), strict=True)

    def _zarr_values(self, start: int, stop: int) -> np.ndarray:
        # Each codec and each store has its own exceptions.
        with damage(f"{self._name}: {start} to {stop} cannot be read"):
            values = np.asarray(self._array[start:stop])
        if self._inventory is not None or self._fills_nan:
            for chunk in self._frames(start, stop):
                begin = chunk.place[0] - start
                self._check_chunk(chunk, values[begin : begin + self.chunk_length])
        return values

    def chunk_key(self, *coordinates: int) -> str:
        """Return the key of a chunk, relative to the root of the store."""
        key = self._array.metadata.encode_chunk_key(coordinates)
        return (self._array.store_path / key).path


def read_chunk_file(path: Path, most: int) -> bytes | OSError | None:
    """Return the bytes of a chunk file, or None if the file is missing.

    The file may have at most ``most`` bytes. If the file is larger or cannot be read,
    return the OSError instead of raising it.
    """
    try:
        check_chunk_file(path, most)
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
