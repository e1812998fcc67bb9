"""Arrays in chunks, read by slices that begin and end anywhere, and checked against their inventory.

Chunks of zstd frames, as we write them, are decoded straight into place. Zarr decodes into a buffer and
copies, by way of an event loop and a second pool of threads: a third of the throughput of a local disk.
"""

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._inventory import (
    REMEDY,
    Inventory,
    check_codecs,
    damaged_chunks,
    decode_frame,
    has_plain_chunks,
    join,
    read_keys,
    short,
)
from mmcnb.samples._limits import ALWAYS_BYTES, check_chunk_bytes, limited
from mmcnb.samples._shards import chunks_in_shards, has_plain_shards

EDGE_BYTES = 64 * 2**20  # decoded chunks cached for neighbouring reads; at least two chunks of each array
GATHER_BYTES = 16 * 2**20  # decoded at once while single rows are gathered
FETCHED = 8  # chunks fetched side by side where they are no local files


class _Entry:
    """A chunk, perhaps still being decoded, and the pieces of it that were handed out."""

    def __init__(self) -> None:
        self.chunk: Future[Any] = Future()
        self.n_bytes = 0
        self._pieces: list[tuple[int, int]] = []

    def hand_out(self, start: int, stop: int) -> int:
        """Note one more piece; the number of rows handed out so far."""
        before = self._covered()
        self._pieces.append((start, stop))
        covered = self._covered()
        if covered == before and start < stop:  # rows seen before: another pass has begun
            self._pieces = [(start, stop)]
            return stop - start
        return covered

    def _covered(self) -> int:
        total, end = 0, 0
        for start, stop in sorted(self._pieces):
            total += max(0, stop - max(start, end))
            end = max(end, stop)
        return total


class EdgeChunks:
    """Decoded chunks of which a read needed only a part, cached for the neighbouring reads.

    The first reader of a chunk decodes it and others wait for the result. A chunk is dropped when all
    its rows were handed out, and the least recently used one where more than ``EDGE_BYTES`` are cached. So a
    pass in row order decodes each chunk once, whatever its tasks and threads.

    Parameters
    ----------
    n_arrays : int
        Arrays that share it; two chunks of each are always cached.
    """

    def __init__(self, n_arrays: int = 1) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Hashable, _Entry] = {}
        self._least = 2 * n_arrays

    def take(self, key: Hashable, load: Callable[[], Any], length: int, start: int, stop: int) -> Any:
        """The chunk; of the ``length`` rows to hand out, ``start <= row < stop`` now are."""
        place = (os.getpid(), key)  # a forked child never waits for a thread it does not have
        with self._lock:
            entry = self._entries.pop(place, None)
            is_first = entry is None
            entry = self._entries[place] = entry or _Entry()
        if is_first:
            self._fill(place, entry, load)
        chunk = entry.chunk.result()
        with self._lock:
            if entry.hand_out(start, stop) >= length and self._entries.get(place) is entry:
                del self._entries[place]
            self._shrink()
        return chunk

    def _fill(self, place: Hashable, entry: _Entry, load: Callable[[], Any]) -> None:
        try:
            chunk = load()
        except BaseException as error:
            with self._lock:
                self._entries.pop(place, None)
            entry.chunk.set_exception(error)
            raise
        parts = (chunk,) if isinstance(chunk, np.ndarray) else (chunk.data, chunk.indices, chunk.indptr)
        entry.n_bytes = sum(part.nbytes for part in parts)
        entry.chunk.set_result(chunk)

    def _shrink(self) -> None:
        cached = sum(entry.n_bytes for entry in self._entries.values())
        for place in list(self._entries):  # the least recently used one comes first
            entry = self._entries[place]
            if cached <= EDGE_BYTES or len(self._entries) <= self._least:
                return
            if entry.chunk.done():
                cached -= entry.n_bytes
                del self._entries[place]


def edge_bytes(chunk_bytes: list[int], n_bytes: int) -> int:
    """Most bytes that `EdgeChunks` caches of arrays with chunks of these sizes and ``n_bytes`` in all."""
    return min(n_bytes, max(EDGE_BYTES, 2 * len(chunk_bytes) * max(chunk_bytes)))


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

    def __init__(self, name: str, length: int, edges: EdgeChunks, lookahead: int = 0) -> None:
        self._key, self.length, self._edges, self._lookahead = name, length, edges, lookahead

    @abstractmethod
    def chunk_at(self, row: int) -> tuple[int, int]:
        """First row of the chunk that holds a row, and the one after its last."""

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
            while position < end and self._is_whole(self.chunk_at(position), start, stop):
                position = self.chunk_at(position)[1]
            if position > begin:
                yield begin, position, None
            else:
                position, values = self._edge(begin, end, start, stop)
                yield begin, position, values

    def _is_whole(self, chunk: tuple[int, int], start: int, stop: int) -> bool:
        return start <= max(0, chunk[0] - self._lookahead) and chunk[1] <= stop

    def _edge(self, begin: int, end: int, start: int, stop: int) -> tuple[int, Any]:
        """Rows from ``begin`` on of one chunk, as far as it or the read goes, and where that is."""
        first, last = self.chunk_at(begin)
        # A chunk's first row goes to two reads where one ends before it; that one counts as row -1.
        beyond = self._lookahead if first else 0
        handed = max(start, first - beyond) - first + beyond, min(last, stop) - first + beyond
        key, length = (self._key, first), last - first + beyond
        chunk = self._edges.take(key, lambda: self.load(first, last), length, *handed)
        upto = min(last, end)
        return upto, chunk[begin - first : upto - first]


class SlicedRows(ChunkedRows):
    """Slices along the first axis of an array in chunks of one length.

    Parameters
    ----------
    name : str
        Tells the chunks of arrays apart that share ``edges``.
    array : object
        It has a shape, a dtype, and gives its values by slices.
    chunk_length : int
        Rows of a chunk.
    edges : EdgeChunks or None, default=None
        Caches chunks that are needed in part; None is a cache for this array alone.
    lookahead : int, default=0
        Values that each read gets beyond those asked for.
    """

    def __init__(
        self, name: str, array: Any, chunk_length: int, edges: EdgeChunks | None = None, lookahead: int = 0
    ) -> None:
        super().__init__(name, int(array.shape[0]), edges or EdgeChunks(), lookahead)
        self._array, self.chunk_length = array, int(chunk_length)
        self.row_bytes = int(np.prod(array.shape[1:])) * array.dtype.itemsize
        self.chunk_bytes = self.row_bytes * min(self.chunk_length, self.length)

    def chunk_at(self, row: int) -> tuple[int, int]:
        """First position of the chunk that holds a position, and the one after its last."""
        first = row // self.chunk_length * self.chunk_length
        return first, min(first + self.chunk_length, self.length)

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
                self._load_into(place, begin, end)
            else:
                place[...] = values
        return out

    def _empty(self, length: int) -> np.ndarray:
        return np.empty((length, *self._array.shape[1:]), dtype=self._array.dtype.newbyteorder("="))

    def _load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        out[...] = self.load(start, stop)

    def gather(self, positions: np.ndarray) -> np.ndarray:
        """Values at strictly increasing positions; each chunk is read at most once."""
        out = self._empty(len(positions))
        chunks = positions // self.chunk_length
        most = max(1, GATHER_BYTES // max(1, self.row_bytes * self.chunk_length))
        begin = 0
        while begin < len(positions):
            end = self._run_end(chunks, begin, most)
            first, last = self.chunk_at(int(positions[begin]))[0], self.chunk_at(int(positions[end - 1]))[1]
            out[begin:end] = self.load(first, last)[positions[begin:end] - first]
            begin = end
        return out

    @staticmethod
    def _run_end(chunks: np.ndarray, begin: int, most: int) -> int:
        """End of the longest run of neighbouring chunks, at most ``most`` of them."""
        limit = int(np.searchsorted(chunks, chunks[begin] + most))
        gaps = np.flatnonzero(np.diff(chunks[begin:limit]) > 1)
        return begin + int(gaps[0]) + 1 if len(gaps) else limit


class StoredArray(SlicedRows):
    """Slices along the first axis of a Zarr array; safe to read from several threads.

    Zarr's own settings stay as the user has them: they are global to the process, so that changing
    them around a read would reach other threads.

    Parameters
    ----------
    array : zarr.Array
    inventory : Inventory or None
        Where the store has one, each chunk is compared with it as it is decoded.
    name : str
        For messages.
    edges, lookahead
        As in `SlicedRows`.
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
        check_codecs(array, name)
        self._name = name
        self._inventory = None if inventory is None or inventory.hashes(array.path) is None else inventory
        is_local = type(array.store) is LocalStore
        self._plain = has_plain_chunks(array) or (is_local and has_plain_shards(array))
        if (chunk_bytes := self.row_bytes * self.chunk_length) > ALWAYS_BYTES:
            check_chunk_bytes(chunk_bytes, name)
        if not self._plain or not is_local:
            self._array = limited(array, name)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Decode whole chunks, each time anew."""
        if not self._plain:
            return self._zarr_values(start, stop)
        out = self._empty(stop - start)
        self._load_into(out, start, stop)
        return out

    def _load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        if not self._plain:
            out[...] = self._zarr_values(start, stop)
            return
        for first, key, frame in self._frames(start, stop):
            chunk = out[first - start : first - start + self.chunk_length]
            if frame is None:
                chunk[...] = self._array.fill_value
            else:
                self._decode(chunk, key, frame)
                self._check(first, key, frame, chunk)

    def _decode(self, out: np.ndarray, key: str, frame: bytes) -> None:
        """Decode one chunk; the last one holds more than the array does."""
        chunk = out if len(out) == self.chunk_length else self._empty(self.chunk_length)
        try:
            decode_frame(frame, chunk)
        except MemoryError:
            raise
        except Exception as error:
            raise damaged_chunks(self._name, [key], f"damaged ({short(error)})") from error
        if chunk is not out:
            out[...] = chunk[: len(out)]

    def _frames(self, start: int, stop: int) -> Iterator[tuple[int, str, bytes | None]]:
        """First rows, keys and stored bytes of chunks; None where one is missing that need not be there."""
        firsts = range(start, stop, self.chunk_length)
        in_shards = self._plain and self._array.shards
        found = chunks_in_shards(self._array, self._name, firsts) if in_shards else self._in_files(firsts)
        for first, key, frame in found:
            if isinstance(frame, InputError):  # of a store that could not be reached
                raise frame
            if isinstance(frame, Exception):
                raise damaged_chunks(self._name, [key], f"damaged ({short(frame)})") from frame
            if frame is None and self._inventory is not None:
                raise damaged_chunks(self._name, [key], "missing")
            yield first, key, frame

    def _in_files(self, firsts: range) -> Iterator[tuple[int, str, Any]]:
        """The same of chunks with files of their own, with the errors of those that cannot be read."""
        store = self._array.store
        columns, fetched = [0] * (self._array.ndim - 1), 1 if type(store) is LocalStore else FETCHED
        for begin in range(0, len(firsts), fetched):
            some = firsts[begin : begin + fetched]
            keys = [self.chunk_key(first // self.chunk_length, *columns) for first in some]
            yield from zip(some, keys, _read_frames(store, keys), strict=True)

    def _check(self, first: int, key: str, frame: bytes, values: np.ndarray) -> None:
        """Compare a decoded chunk with the inventory: it may be sound and belong elsewhere."""
        if self._inventory is not None:
            self._inventory.check_chunk(self._array.path, first // self.chunk_length, key, frame, values)

    def _zarr_values(self, start: int, stop: int) -> np.ndarray:
        try:
            values = np.asarray(self._array[start:stop])
        except (MemoryError, InputError):  # the latter from a store that could not be reached
            raise
        except Exception as error:  # each codec and each store has its own exceptions
            raise self._fault(start, stop, error) from error
        if self._inventory is not None:
            for first, key, frame in self._frames(start, stop):
                part = values[first - start : first - start + self.chunk_length]
                self._check(first, key, frame or b"", part)
        return values

    def chunk_key(self, *coordinates: int) -> str:
        """Key of a chunk below the root of the store."""
        return join(self._array.path, self._array.metadata.encode_chunk_key(coordinates))

    def _fault(self, start: int, stop: int, error: Exception) -> DamagedStoreError:
        """What is wrong with whole chunks that could not be read."""
        grid = self._array.shards or self._array.chunks
        columns = [range(-(-n // c)) for n, c in zip(self._array.shape[1:], grid[1:], strict=True)]
        rows = range(start // grid[0], -(-stop // grid[0]))
        for place in itertools.product(rows, *columns):
            part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, grid, strict=True))
            try:
                self._array[part]
            except InputError:
                raise
            except Exception:
                return damaged_chunks(self._name, [self.chunk_key(*place)], f"damaged ({short(error)})")
        return DamagedStoreError(f"{self._name} could not be read ({short(error)}): {REMEDY}.")


def _read_frames(store: Any, keys: list[str]) -> list[Any]:
    """Stored bytes of chunks: None where one is missing, and the error where it cannot be read."""
    if type(store) is not LocalStore:
        return read_keys(store, keys)
    return [read_chunk_file(Path(store.root) / key) for key in keys]


def read_chunk_file(path: Path) -> bytes | OSError | None:
    """Bytes of a chunk; None where it is missing, and the error where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
