"""Rows of a CSR matrix whose three parts are stored as arrays in chunks."""

import numpy as np

from mmcnb.samples import matrix
from mmcnb.samples._base import BLOCK_ROWS, ChunkedSamples
from mmcnb.samples._stored import SlicedRows, edge_bytes


class StoredCSRSamples(ChunkedSamples):
    """Rows of stored data, indices and row pointers, read by contiguous slices."""

    is_sparse = True

    def _set_parts(self, data: SlicedRows, indices: SlicedRows, indptr: SlicedRows) -> None:
        """Take the parts; ``indptr`` looks one value ahead."""
        self._data, self._indices, self._indptr = data, indices, indptr
        matrix.check_indptr_length(indptr.length, self.n_samples, data.length, indices.length, self.name)
        ends = indptr.gather(np.array([0, self.n_samples])).astype(np.int64)
        matrix.check_indptr_ends(int(ends[0]), int(ends[1]), data.length, self.name)
        stored = data, indices, indptr
        n_bytes = sum(part.length * part.row_bytes for part in stored)
        self.edge_bytes = edge_bytes([part.chunk_bytes for part in stored], n_bytes)
        row_values = max(data.length / self.n_samples, 1e-9)
        self.row_bytes = row_values * (self.dtype.itemsize + 4) + 8
        rows = min(data.chunk_length / row_values, self.n_samples)
        self.chunk_rows = BLOCK_ROWS * max(1, int(rows // BLOCK_ROWS))

    def _read(self, start: int, stop: int) -> matrix.CSRParts:
        indptr = self._indptr.read(start, stop).astype(np.int64, copy=False)
        matrix.check_indptr_rises(indptr[:-1], indptr[1:], self._data.length, self.name, start)
        first, last = int(indptr[0]), int(indptr[-1])
        return self._data.read(first, last), self._indices.read(first, last), indptr - first

    def _gather(self, rows: np.ndarray) -> matrix.CSRParts:
        around = np.union1d(rows, rows + 1)
        pointers = self._indptr.gather(around).astype(np.int64)
        starts, stops = (pointers[np.searchsorted(around, place)] for place in (rows, rows + 1))
        matrix.check_indptr_rises(starts, stops, self._data.length, self.name, rows)
        matrix.check_indptr_rises(stops[:-1], starts[1:], self._data.length, self.name, rows)
        positions, indptr = matrix.row_positions(starts, stops)
        return self._data.gather(positions), self._indices.gather(positions), indptr
