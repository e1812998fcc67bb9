"""Rows of a Dask array: each of its chunks is computed in the thread that needs it first."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.errors import InputError
from mmcnb.samples._arrays import plain_array
from mmcnb.samples._base import ChunkedSamples
from mmcnb.samples._stored import ChunkedRows, EdgeChunks, edge_bytes
from mmcnb.samples.matrix import check_index_dtypes, stack


class _DaskRows(ChunkedRows):
    """Rows of a Dask array whose chunks hold all columns."""

    def __init__(self, array: Any, name: str) -> None:
        self._array, self._name = array, name
        self._offsets = np.concatenate(([0], np.cumsum(array.chunks[0])))
        super().__init__("", int(self._offsets[-1]), EdgeChunks())

    def chunk_number(self, row: int) -> int:
        """Number of the chunk that holds a row; chunks may be empty."""
        return int(np.searchsorted(self._offsets, row, side="right")) - 1

    def chunk_at(self, row: int) -> tuple[int, int]:
        """First row of the chunk that holds a row, and the one after its last."""
        chunk = self.chunk_number(row)
        return int(self._offsets[chunk]), int(self._offsets[chunk + 1])

    def load(self, start: int, stop: int) -> Any:
        """Compute whole chunks."""
        firsts = self._offsets[(self._offsets >= start) & (self._offsets < stop)].tolist()
        numbers = dict.fromkeys(self.chunk_number(row) for row in firsts)
        return _joined([self._compute(chunk) for chunk in numbers])

    def _compute(self, chunk: int) -> Any:
        shape = (self._array.chunks[0][chunk], self._array.shape[1])
        try:
            block = self._get(chunk)
        except MemoryError:
            raise
        except Exception as error:  # whatever the graph's own functions raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            raise InputError(
                f"{self._name}: chunk {chunk} could not be computed ({reason}): "
                "see that the array's compute() works."
            ) from error
        if not scipy.sparse.issparse(block):
            if isinstance(block, np.ma.MaskedArray):
                block = plain_array(block, f"chunk {chunk} of {self._name}")
            block = np.asarray(block)
        if block.shape != shape or block.dtype != self._array.dtype:
            raise InputError(
                f"{self._name}: chunk {chunk} is {block.dtype} of shape {block.shape} where the array says "
                f"{self._array.dtype} of shape {shape}: correct the function that makes it."
            )
        return block

    @cached_property
    def _graph(self) -> tuple[dict[Any, Any], list[Any]]:
        """Tasks and the keys of chunks; prepared once, as that takes time in proportion to all chunks."""
        import dask

        (array,) = dask.optimize(self._array)
        return dict(array.__dask_graph__()), [keys[0] for keys in array.__dask_keys__()]

    def _get(self, chunk: int) -> Any:
        from dask import get  # runs in this thread: the client of a cluster is left alone
        from dask.optimization import cull

        graph, keys = self._graph
        return get(cull(graph, [keys[chunk]])[0], keys[chunk])

    def read(self, start: int, stop: int) -> Any:
        """The rows ``start <= row < stop``; a pass in row order computes each chunk once."""
        parts = self.pieces(start, min(stop, self.length))
        return _joined([self.load(begin, end) if rows is None else rows for begin, end, rows in parts])

    def gather(self, rows: np.ndarray) -> Any:
        """Single rows; each chunk is computed at most once."""
        if not len(rows):
            shape = 0, self._array.shape[1]
            is_sparse = scipy.sparse.issparse(self._array._meta)
            return (scipy.sparse.csr_array if is_sparse else np.empty)(shape, dtype=self._array.dtype)
        numbers = np.searchsorted(self._offsets, rows, side="right") - 1
        chunks = [(number, rows[numbers == number]) for number in np.unique(numbers)]
        return _joined([self._compute(number)[mine - self._offsets[number]] for number, mine in chunks])


def _joined(parts: list[Any]) -> Any:
    """Rows of several chunks as one array or CSR matrix."""
    if len(parts) > 1:
        return stack(parts)
    return parts[0].tocsr() if scipy.sparse.issparse(parts[0]) else parts[0]


class DaskSamples(ChunkedSamples):
    """Rows of a Dask array of NumPy arrays or of SciPy sparse matrices.

    Parameters
    ----------
    array : dask.array.Array
        Several chunks of columns are joined. Where rows are sparse, ``row_bytes`` is that of its first chunk.
    """

    is_reopenable = True
    checksummed = False

    def __init__(self, array: Any) -> None:
        name = "dask array"
        if array.ndim == 2 and any(np.isnan(size) for size in (*array.chunks[0], *array.chunks[1])):
            raise InputError(f"{name} has chunks of unknown sizes: call its compute_chunk_sizes() first.")
        self._describe(name, array.shape, array.dtype)
        self.is_sparse = scipy.sparse.issparse(array._meta)
        self._array = array.rechunk({1: -1}) if len(array.chunks[1]) > 1 else array
        self._rows = _DaskRows(self._array, name)
        self.chunk_rows = max(self._array.chunks[0])
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        if self.is_sparse:
            first = self._rows.load(*self._rows.chunk_at(0))
            self.row_bytes = first.nnz / first.shape[0] * (self.dtype.itemsize + 4) + 8
        chunk = int(self.chunk_rows * self.row_bytes)
        self.edge_bytes = edge_bytes([chunk], int(self.n_samples * self.row_bytes))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._array,)

    def _read(self, start: int, stop: int) -> Any:
        return self._parts(self._rows.read(start, stop))

    def _gather(self, rows: np.ndarray) -> Any:
        return self._parts(self._rows.gather(rows))

    def _parts(self, rows: Any) -> Any:
        """Dense rows as they are; of sparse ones data, indices and row pointers from 0."""
        if not self.is_sparse:
            return rows
        check_index_dtypes(self.name, indices=rows.indices)
        indptr = rows.indptr.astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        return rows.data[first:last], rows.indices[first:last], indptr - first
