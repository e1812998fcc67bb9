"""A Zarr array whose reads raise where plain Zarr would hand out wrong numbers."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._chunk_files import has_plain_files, read_chunk_file
from mmcnb.samples._chunked import ChunkedRows, EdgeChunks
from mmcnb.samples._inventory import REMEDY, Inventory, damaged_chunks, join, read_key

GATHER_BYTES = 16 * 2**20  # decoded at once while single rows are gathered


class StoredArray(ChunkedRows):
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
    edges : EdgeChunks or None, default=None
        Keeps chunks that are needed in part; None keeps them for this array alone.
    lookahead : int, default=0
        Values that each read gets beyond those asked for.
    """

    def __init__(
        self,
        array: zarr.Array,
        inventory: Inventory | None,
        name: str,
        edges: EdgeChunks | None = None,
        lookahead: int = 0,
    ) -> None:
        super().__init__(array.path, int(array.shape[0]), edges or EdgeChunks(), lookahead)
        self._array, self._name = array, name
        self._recorded = inventory is not None and inventory.hashes(array.path) is not None
        self._plain = has_plain_files(array)
        self.chunk_length = int(array.chunks[0])
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
            if len(out) == self.chunk_length:
                read_chunk_file(Path(store.root) / key, out)
            else:
                padded = self._empty(self.chunk_length)
                read_chunk_file(Path(store.root) / key, padded)
                out[...] = padded[: len(out)]
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
            value = values[first - start].reshape(-1)[0]
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


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]
