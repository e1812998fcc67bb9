"""Rows kept in Zarr, version 2 or 3: dense arrays, and CSR groups in AnnData's encoding."""

from hashlib import blake2b
from typing import Any

import numpy as np
import zarr

from mmcnb.errors import InputError
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
from mmcnb.samples._chunked import EdgeChunks, edge_bytes
from mmcnb.samples._csr import (
    check_index_dtype,
    check_indptr_ends,
    check_indptr_length,
    check_indptr_rises,
    csr_block,
)
from mmcnb.samples._inventory import Inventory
from mmcnb.samples._memory import row_positions
from mmcnb.samples._stored import StoredArray


class _ZarrSamples(Samples):
    """What both layouts share: the inventory and the recorded digest."""

    inventory: Inventory | None
    arrays: list[zarr.Array]

    def _set_arrays(self, arrays: list[zarr.Array], inventory: Inventory | None) -> None:
        self.arrays, self.inventory = arrays, inventory
        self.checksummed = inventory is not None and all(inventory.hashes(a.path) is not None for a in arrays)
        if inventory is not None and self.checksummed:
            # The cached property finds the recorded digest in its place.
            self.__dict__["digest"] = inventory.record["digest"]

    def identity(self) -> str:
        """A hash of what the store says of its arrays, which covers the digests of chunks it records."""
        if self.inventory is not None and self.checksummed:
            return self.inventory.record["metadata"]
        documents = [array.metadata.to_dict() for array in self.arrays]
        return blake2b(repr((self.n_features, documents)).encode(), digest_size=16).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        from mmcnb.samples._open import open_again  # which imports this module

        if self.path is None:
            raise InputError(f"{self.name} cannot be sent to another process: open it by its path instead.")
        return open_again, (self.path, self.element, self.identity())


class ZarrArraySamples(_ZarrSamples):
    """Rows of a Zarr array."""

    is_sparse = False

    def __init__(self, array: zarr.Array, name: str, inventory: Inventory | None) -> None:
        self.name = name
        self.n_samples, self.n_features = check_shape(array.shape, name)
        self.stored_dtype = np.dtype(array.dtype)
        check_dtype(self.stored_dtype, name)
        self._set_arrays([array], inventory)
        self._rows = StoredArray(array, inventory, name)
        self.chunk_rows = self._rows.chunk_length
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.edge_bytes = edge_bytes([self._rows.chunk_bytes], self._rows.length * self._rows.row_bytes)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Read the rows ``start <= row < stop``."""
        block = as_block(self._rows.read(start, min(stop, self.n_samples)))
        check_finite(block, self.name, start)
        return block

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Read rows by number."""
        rows = check_rows(rows, self.n_samples)
        block = as_block(self._rows.gather(rows))
        check_finite(block, self.name, rows)
        return block


class ZarrCSRSamples(_ZarrSamples):
    """Rows of a group in AnnData's ``csr_matrix`` encoding, read by contiguous slices."""

    is_sparse = True

    def __init__(self, group: zarr.Group, name: str, inventory: Inventory | None) -> None:
        self.name = name
        parts = {part: _part(group, part, name) for part in ("data", "indices", "indptr")}
        self.n_samples, self.n_features = check_shape(_shape(group, name), name)
        self.stored_dtype = np.dtype(parts["data"].dtype)
        check_dtype(self.stored_dtype, name)
        check_index_dtype(parts["indices"].dtype, "indices", name)
        check_index_dtype(parts["indptr"].dtype, "indptr", name)
        self._set_arrays(list(parts.values()), inventory)
        edges = EdgeChunks(3)
        self._data = StoredArray(parts["data"], inventory, name, edges)
        self._indices = StoredArray(parts["indices"], inventory, name, edges)
        self._indptr = StoredArray(parts["indptr"], inventory, name, edges, lookahead=1)
        n_data = self._data.length
        check_indptr_length(self._indptr.length, self.n_samples, n_data, self._indices.length, name)
        ends = self._indptr.gather(np.array([0, self.n_samples])).astype(np.int64)
        check_indptr_ends(int(ends[0]), int(ends[1]), n_data, name)
        stored = [self._data, self._indices, self._indptr]
        self.edge_bytes = edge_bytes(
            [part.chunk_bytes for part in stored], sum(part.length * part.row_bytes for part in stored)
        )
        row_values = max(self._data.length / self.n_samples, 1e-9)
        self.row_bytes = row_values * (self.dtype.itemsize + 4) + 8
        rows = min(self._data.chunk_length / row_values, self.n_samples)
        self.chunk_rows = BLOCK_ROWS * max(1, int(rows // BLOCK_ROWS))

    def block(self, start: int, stop: int) -> CSRBlock:
        """Read the rows ``start <= row < stop``."""
        indptr = self._indptr.read(start, min(stop, self.n_samples)).astype(np.int64, copy=False)
        check_indptr_rises(indptr[:-1], indptr[1:], self._data.length, self.name, start)
        first, last = int(indptr[0]), int(indptr[-1])
        data, indices = self._data.read(first, last), self._indices.read(first, last)
        return self._block(data, indices, indptr - first, start)

    def gather(self, rows: np.ndarray) -> CSRBlock:
        """Read rows by number."""
        rows = check_rows(rows, self.n_samples)
        around = np.union1d(rows, rows + 1)
        pointers = self._indptr.gather(around).astype(np.int64)
        starts, stops = (pointers[np.searchsorted(around, place)] for place in (rows, rows + 1))
        check_indptr_rises(starts, stops, self._data.length, self.name, rows)
        check_indptr_rises(stops[:-1], starts[1:], self._data.length, self.name, rows)
        positions, indptr = row_positions(starts, stops)
        return self._block(self._data.gather(positions), self._indices.gather(positions), indptr, rows)

    def _block(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: Any) -> CSRBlock:
        block = csr_block(data, indices, indptr, self.n_features, self.name, rows)
        check_finite(block, self.name, rows)
        return block


def _part(group: zarr.Group, part: str, name: str) -> zarr.Array:
    array = group.get(part)
    if not isinstance(array, zarr.Array) or array.ndim != 1:
        raise InputError(f"{name}: a CSR group needs a 1-D array named {part}: write the matrix again.")
    return array


def _shape(group: zarr.Group, name: str) -> tuple[int, ...]:
    shape = group.attrs.get("shape")
    if not isinstance(shape, list | tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError(
            f"{name}: the CSR group has no attribute shape of the form [rows, columns]: "
            "write the matrix again, for example with anndata."
        )
    return tuple(shape)
