"""A Zarr array whose reads raise where plain Zarr would hand out wrong numbers."""

import itertools

import numpy as np
import zarr

from mmcnb._errors import DamagedStoreError
from mmcnb.samples._inventory import REMEDY, Inventory, damaged_chunks, has_key, join

GATHER_BYTES = 16 * 2**20  # decoded at once while single rows are gathered


class StoredArray:
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
    """

    def __init__(self, array: zarr.Array, inventory: Inventory | None, name: str) -> None:
        self._array, self._name = array, name
        self._recorded = inventory is not None and inventory.hashes(array.path) is not None
        self.length = int(array.shape[0])
        self.chunk_length = int(array.chunks[0])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Values at ``start <= position < stop``."""
        try:
            values = np.asarray(self._array[start:stop])
        except MemoryError:
            raise
        except Exception as error:  # each codec and each store has its own exceptions
            raise self._damage(start, stop, error) from error
        if self._recorded:
            self._check_present(values, start)
        return values

    def chunk_key(self, *coordinates: int) -> str:
        """Key of a chunk below the root of the store."""
        return join(self._array.path, self._array.metadata.encode_chunk_key(coordinates))

    def _check_present(self, values: np.ndarray, start: int) -> None:
        # A missing chunk reads as the fill value, so only chunks that begin with it are looked up.
        fill = self._array.fill_value
        stop = start + len(values)
        for chunk in range(start // self.chunk_length, -(-stop // self.chunk_length)):
            first = values[max(chunk * self.chunk_length, start) - start].reshape(-1)[0]
            if first == fill or (first != first and fill != fill):
                key = self.chunk_key(chunk, *[0] * (values.ndim - 1))
                if not has_key(self._array.store, key):
                    raise damaged_chunks(self._name, [key], "missing")

    def _damage(self, start: int, stop: int, error: Exception) -> DamagedStoreError:
        grid = (self._array.shards or self._array.chunks)[0]
        columns = [
            range(-(-n // c)) for n, c in zip(self._array.shape[1:], self._array.chunks[1:], strict=True)
        ]
        for chunk in range(start // grid, -(-min(stop, self.length) // grid)):
            for others in itertools.product(*columns):
                part = [slice(chunk * grid, (chunk + 1) * grid)]
                part += [
                    slice(i * c, (i + 1) * c) for i, c in zip(others, self._array.chunks[1:], strict=True)
                ]
                try:
                    self._array[tuple(part)]
                except Exception:
                    key = self.chunk_key(chunk, *others)
                    return damaged_chunks(self._name, [key], f"damaged ({_short(error)})")
        return DamagedStoreError(f"{self._name} could not be read ({_short(error)}): {REMEDY}.")

    def gather(self, positions: np.ndarray) -> np.ndarray:
        """Values at strictly increasing positions; each chunk is read at most once."""
        out = np.empty((len(positions), *self._array.shape[1:]), dtype=self._array.dtype.newbyteorder("="))
        if not len(positions):
            return out
        chunks = positions // self.chunk_length
        row_bytes = max(1, int(np.prod(self._array.shape[1:])) * self._array.dtype.itemsize)
        most = max(1, GATHER_BYTES // (row_bytes * self.chunk_length))
        begin = 0
        while begin < len(positions):
            end = self._run_end(chunks, begin, most)
            first, last = int(positions[begin]), int(positions[end - 1])
            out[begin:end] = self.read(first, last + 1)[positions[begin:end] - first]
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
