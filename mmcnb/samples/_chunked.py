"""Rows that are decoded by whole chunks, read in pieces that begin and end anywhere."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np

EDGE_BYTES = 64 * 2**20  # decoded chunks kept for neighbouring reads; at least two chunks of each array


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
    """Decoded chunks of which a read needed only a part, kept for the reads beside it.

    The first reader of a chunk decodes it and others wait for the result. A chunk is dropped when all
    its rows were handed out, and the one used longest ago where more than ``EDGE_BYTES`` are kept, so
    a pass in row order decodes each chunk once, whatever its tasks and threads.

    Parameters
    ----------
    n_arrays : int
        Arrays that share it; two chunks of each are always kept.
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
        entry.n_bytes = _n_bytes(chunk)
        entry.chunk.set_result(chunk)

    def _shrink(self) -> None:
        kept = sum(entry.n_bytes for entry in self._entries.values())
        for place in list(self._entries):  # the one used longest ago comes first
            entry = self._entries[place]
            if kept <= EDGE_BYTES or len(self._entries) <= self._least:
                return
            if entry.chunk.done():
                kept -= entry.n_bytes
                del self._entries[place]


def edge_bytes(chunk_bytes: list[int], n_bytes: int) -> int:
    """Most bytes that `EdgeChunks` keeps of arrays with chunks of these sizes and ``n_bytes`` in all."""
    return min(n_bytes, max(EDGE_BYTES, 2 * len(chunk_bytes) * max(chunk_bytes)))


def _n_bytes(chunk: Any) -> int:
    """Bytes of an array or of a SciPy CSR matrix."""
    if isinstance(chunk, np.ndarray):
        return chunk.nbytes
    return sum(part.nbytes for part in (chunk.data, chunk.indices, chunk.indptr))


class ChunkedRows(ABC):
    """Rows in chunks along the first axis; safe to read from several threads.

    Parameters
    ----------
    name : str
        Tells the chunks of arrays apart that share ``edges``.
    length : int
        Number of rows.
    edges : EdgeChunks
        Keeps chunks that are needed in part.
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

        def load() -> Any:
            return self.load(first, last)

        chunk = self._edges.take((self._key, first), load, last - first + beyond, *handed)
        upto = min(last, end)
        return upto, chunk[begin - first : upto - first]
