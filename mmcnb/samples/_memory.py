"""Rows that are in memory already: NumPy arrays and SciPy sparse matrices."""

from typing import Any

import numpy as np

from mmcnb.samples._base import (
    BLOCK_ROWS,
    CSRBlock,
    Samples,
    as_block,
    check_dtype,
    check_finite,
    check_rows,
    check_shape,
)
from mmcnb.samples._csr import check_index_dtype, check_indptr, csr_block


class ArraySamples(Samples):
    """Rows of a NumPy array; blocks of a C-ordered float array are views."""

    is_sparse = False
    checksummed = True
    chunk_rows = BLOCK_ROWS

    def __init__(self, array: np.ndarray, name: str = "array") -> None:
        self._array = np.asarray(array)
        self.name = name
        self.n_samples, self.n_features = check_shape(self._array.shape, name)
        self.stored_dtype = self._array.dtype
        check_dtype(self.stored_dtype, name)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        if self.stored_dtype.kind == "f":
            for start in range(0, self.n_samples, BLOCK_ROWS):
                check_finite(self.block(start, start + BLOCK_ROWS), name, start)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Read the rows ``start <= row < stop``."""
        return as_block(self._array[start:stop])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by number."""
        return as_block(self._array[check_rows(rows, self.n_samples)])


class CSRSamples(Samples):
    """Rows of a SciPy sparse matrix or array, with any integer type of index."""

    is_sparse = True
    checksummed = True
    chunk_rows = BLOCK_ROWS

    def __init__(self, matrix: Any, name: str = "array") -> None:
        csr = matrix.tocsr()
        self.name = name
        self.n_samples, self.n_features = check_shape(csr.shape, name)
        self.stored_dtype = csr.dtype
        check_dtype(self.stored_dtype, name)
        check_index_dtype(csr.indices.dtype, "indices", name)
        check_index_dtype(csr.indptr.dtype, "indptr", name)
        self._indptr = csr.indptr.astype(np.int64, copy=False)
        # SciPy allows room behind the last value; where both arrays have it, it holds no data.
        end = max(int(self._indptr[-1]), 0) if len(self._indptr) else 0
        spare = end < len(csr.data) and len(csr.data) == len(csr.indices)
        self._data = csr.data[:end] if spare else csr.data
        self._indices = csr.indices[:end] if spare else csr.indices
        check_indptr(self._indptr, self.n_samples, len(self._data), len(self._indices), name)
        self.row_bytes = len(self._data) / self.n_samples * (self.dtype.itemsize + 4) + 8
        for start in range(0, self.n_samples, BLOCK_ROWS):
            check_finite(self.block(start, start + BLOCK_ROWS), name, start)

    def block(self, start: int, stop: int) -> CSRBlock:
        """Read the rows ``start <= row < stop``."""
        indptr = self._indptr[start : stop + 1]
        part = slice(indptr[0], indptr[-1])
        return csr_block(
            self._data[part], self._indices[part], indptr - indptr[0], self.n_features, self.name, start
        )

    def gather(self, rows: np.ndarray) -> CSRBlock:
        """Read rows by number."""
        rows = check_rows(rows, self.n_samples)
        positions, indptr = row_positions(self._indptr[rows], self._indptr[rows + 1])
        return csr_block(
            self._data[positions], self._indices[positions], indptr, self.n_features, self.name, rows
        )


def row_positions(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of rows' values in ``data`` and ``indices``, and the row pointers of what they give.

    ``starts`` and ``stops`` are the row pointers around each row.
    """
    counts = stops - starts
    gathered = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    shift = np.repeat(starts - gathered[:-1], counts)
    return np.arange(gathered[-1], dtype=np.int64) + shift, gathered
