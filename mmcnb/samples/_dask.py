"""Rows of Dask arrays and data frames, computed in the thread that first needs them."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.errors import InputError, worded
from mmcnb.samples.arrays import plain_array
from mmcnb.samples.base import ChunkedSamples, edge_bytes
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.matrix import CSRBlock, Matrix, block_dtype, check_index_dtypes


class DaskSamples(ChunkedSamples):
    """Rows of a Dask array whose chunks are NumPy arrays or SciPy sparse matrices.

    Parameters
    ----------
    array : dask.array.Array
        The array, whose chunk sizes must be known. It is rechunked so that each chunk
        contains whole rows. For sparse chunks, ``row_bytes`` is estimated from the
        first chunk.
    name : str, default="dask array"
        Name used for the rows in messages.
    feature_names : list of str or None, default=None
        Names of the columns; None if they have no names.
    """

    is_reopenable = True

    def __init__(
        self,
        array: Any,
        name: str = "dask array",
        feature_names: list[str] | None = None,
    ) -> None:
        if array.ndim == 2 and np.isnan(np.concatenate(array.chunks)).any():
            raise InputError(
                f"{name} has chunks of unknown sizes: "
                "call its compute_chunk_sizes() first."
            )
        self._describe(name, array.shape, array.dtype)
        self.feature_names = feature_names
        if len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        self._array = array
        self.is_sparse = scipy.sparse.issparse(array._meta)
        chunk_lengths = array.chunks[0]
        rows = GroupedRows(chunk_lengths, self._compute)
        self._set_rows(rows, max(chunk_lengths))
        if self.is_sparse:
            first_chunk: Any = rows.load(*rows.chunk_at(0))
            row_values = first_chunk.nnz / first_chunk.shape[0]
            self.row_bytes = self._sparse_row_bytes(row_values)
            chunk_bytes = int(self.chunk_rows * self.row_bytes)
            all_bytes = int(self.n_samples * self.row_bytes)
            self.edge_bytes = edge_bytes([chunk_bytes], all_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._array, self.name, self.feature_names)

    def _compute(self, chunk: int) -> Matrix:
        # `dask.get` computes in this thread; the default scheduler may be a cluster.
        from dask import get
        from dask.optimization import cull

        # The user's functions in the graph may raise any exception.
        with worded(
            f"{self.name}: chunk {chunk} could not be computed",
            "check that compute() works",
        ):
            graph, keys = self._graph
            key = keys[chunk]
            block = get(cull(graph, [key])[0], key)
        if isinstance(block, np.ma.MaskedArray):
            block = plain_array(block, f"chunk {chunk} of {self.name}")
        if not scipy.sparse.issparse(block):
            block = np.asarray(block)
        dtype = self._array.dtype
        shape = self._array.chunks[0][chunk], self.n_features
        if block.shape != shape or block.dtype != dtype:
            raise InputError(
                f"{self.name}: chunk {chunk} is {block.dtype} of shape {block.shape}, "
                f"but the array declares {dtype} of shape {shape}: "
                "correct the function that creates it."
            )
        return block

    @cached_property
    def _graph(self) -> tuple[dict[Any, Any], list[Any]]:
        """The optimized Dask task graph, and the key of each chunk in the graph.

        The graph is optimized only once, because the time that this takes is
        proportional to the number of chunks in the array.
        """
        import dask

        (array,) = dask.optimize(self._array)
        return dict(array.__dask_graph__()), [keys[0] for keys in array.__dask_keys__()]

    def _checked(self, values: Any, rows: int | np.ndarray) -> np.ndarray | CSRBlock:
        if self.is_sparse:
            check_index_dtypes(self.name, indices=values.indices)
            indptr = values.indptr.astype(np.int64)
            used = slice(int(indptr[0]), int(indptr[-1]))
            values = values.data[used], values.indices[used], indptr - indptr[0]
        return super()._checked(values, rows)


def open_dask(source: Any) -> DaskSamples:
    """Open the rows of a Dask array or data frame."""
    module = type(source).__module__
    if module.startswith("dask.array"):
        return DaskSamples(source)
    if not module.startswith("dask.dataframe"):
        kind = type(source).__name__
        raise InputError(
            f"X is a Dask {kind}, which has no rows: pass a Dask array or frame."
        )
    from mmcnb.samples.frames import column_names

    if source.ndim != 2:
        raise InputError(
            "X is one column of a Dask frame: pass a frame, for example X.to_frame()."
        )
    for name, dtype in source.dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf" or not isinstance(dtype, np.dtype):
            raise InputError(
                f"column {name!r} of the Dask frame has dtype {dtype}, which "
                "is not numeric: convert it with X.astype('float64'), or drop it."
            )
    rows = source.astype(block_dtype(*source.dtypes)).to_dask_array(lengths=True)
    return DaskSamples(rows, "the Dask frame", column_names(source))
