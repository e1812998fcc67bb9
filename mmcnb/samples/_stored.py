"""Arrays in chunks, read by slices that begin and end anywhere, and checked against their inventory.

Where an array is as we write it, chunks are read from their files straight into place. Zarr's pipeline
decodes into a buffer of its own and copies, by way of an event loop and a second pool of threads. For zstd on
a local disk that costs a third of the throughput.
"""

import itertools
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs.zstd import Zstd
from zarr.codecs import BytesCodec, ZstdCodec
from zarr.storage import LocalStore

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._inventory import REMEDY, Inventory, damaged_chunks, join, read_key

EDGE_BYTES = 64 * 2**20  # decoded chunks cached for neighbouring reads; at least two chunks of each array
GATHER_BYTES = 16 * 2**20  # decoded at once while single rows are gathered

_ZSTD = Zstd()
_MAGIC = b"\x28\xb5\x2f\xfd"
_SIZE_BYTES = (0, 2, 4, 8)
_DICTIONARY_BYTES = (0, 1, 2, 4)


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
        Where the store has one, a missing chunk raises instead of reading as the fill value.
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
        self._name = name
        self._recorded = inventory is not None and inventory.hashes(array.path) is not None
        self._plain = has_plain_files(array)

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
        for first in range(start, stop, self.chunk_length):
            self._load_file(out[first - start : first - start + self.chunk_length], first)

    def _load_file(self, out: np.ndarray, first: int) -> None:
        """Decode the chunk that begins with a position; the last one holds more than the array does."""
        key = self.chunk_key(first // self.chunk_length, *[0] * (self._array.ndim - 1))
        store: Any = self._array.store
        try:
            chunk = out if len(out) == self.chunk_length else self._empty(self.chunk_length)
            read_chunk_file(Path(store.root) / key, chunk)
            if chunk is not out:
                out[...] = chunk[: len(out)]
        except MemoryError:
            raise
        except FileNotFoundError as error:
            if self._recorded:
                raise damaged_chunks(self._name, [key], "missing") from error
            out[...] = self._array.fill_value
        except Exception as error:
            raise damaged_chunks(self._name, [key], f"damaged ({_short(error)})") from error

    def _zarr_values(self, start: int, stop: int) -> np.ndarray:
        try:
            values = np.asarray(self._array[start:stop])
        except (MemoryError, InputError):  # the latter from a store that could not be reached
            raise
        except Exception as error:  # each codec and each store has its own exceptions
            raise self._fault(start, stop, error) from error
        if self._recorded:
            self._check_present(values, start)
        return values

    def chunk_key(self, *coordinates: int) -> str:
        """Key of a chunk below the root of the store."""
        return join(self._array.path, self._array.metadata.encode_chunk_key(coordinates))

    def _check_present(self, values: np.ndarray, start: int) -> None:
        # A missing chunk reads as the fill value, so only chunks that begin with it are looked up.
        fill = self._array.fill_value
        for first in range(start, start + len(values), self.chunk_length):
            value = values[first - start : first - start + 1].reshape(-1)[0]
            if value == fill or (value != value and fill != fill):
                key = self.chunk_key(first // self.chunk_length, *[0] * (values.ndim - 1))
                if read_key(self._array.store, key) is None:
                    raise damaged_chunks(self._name, [key], "missing")

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
                return damaged_chunks(self._name, [self.chunk_key(*place)], f"damaged ({_short(error)})")
        return DamagedStoreError(f"{self._name} could not be read ({_short(error)}): {REMEDY}.")


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def has_plain_files(array: zarr.Array) -> bool:
    """Whether each chunk of an array is a local file of whole rows: zstd around little-endian numbers."""
    if type(array.store) is not LocalStore or array.metadata.zarr_format != 3 or sys.byteorder != "little":
        return False
    codecs: Any = array.metadata.codecs
    return (
        [type(codec) for codec in codecs] == [BytesCodec, ZstdCodec]
        and array.dtype.kind in "biuf"
        and array.dtype.isnative
        and array.chunks[1:] == array.shape[1:]
        and getattr(codecs[0].endian, "value", "little") == "little"
    )


def read_chunk_file(path: Path, out: np.ndarray) -> None:
    """Decode one chunk into ``out``, C-ordered and of exactly its size.

    Raises
    ------
    FileNotFoundError
        The chunk is missing.
    RuntimeError, ValueError
        Its bytes are no zstd frame of this size, or their checksum is another.
    """
    frame = path.read_bytes()
    if content_size(frame) != out.nbytes:
        raise ValueError(f"the chunk does not hold {out.nbytes} bytes")
    _ZSTD.decode(frame, out)


def content_size(frame: bytes) -> int | None:
    """Decoded bytes of a zstd frame by its header (RFC 8878, 3.1.1.1); None where it does not say."""
    if frame[:4] != _MAGIC or len(frame) < 5:
        return None
    descriptor = frame[4]
    single_segment = descriptor >> 5 & 1
    n_bytes = _SIZE_BYTES[descriptor >> 6] or single_segment
    begin = 6 - single_segment + _DICTIONARY_BYTES[descriptor & 3]
    size = int.from_bytes(frame[begin : begin + n_bytes], "little")
    return size + 256 * (n_bytes == 2) if n_bytes else None
