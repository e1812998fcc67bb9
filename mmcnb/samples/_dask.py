"""Rows of a Dask array or frame: each chunk is computed in the thread that needs it first."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.errors import InputError, worded
from mmcnb.samples.arrays import plain_array
from mmcnb.samples.base import ChunkedSamples, edge_bytes
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.matrix import block_dtype, check_index_dtypes


class DaskSamples(ChunkedSamples):
    """Rows of a Dask array of NumPy arrays or of SciPy sparse matrices.

    Parameters
    ----------
    array : dask.array.Array
        Several chunks of columns are joined. Of sparse rows ``row_bytes`` is that of
        the first chunk.
    name : str, default="dask array"
        For messages.
    feature_names : list of str or None, default=None
    """

    is_reopenable = True

    def __init__(
        self,
        array: Any,
        name: str = "dask array",
        feature_names: list[str] | None = None,
    ) -> None:
        if array.ndim == 2 and any(
            np.isnan(size) for size in (*array.chunks[0], *array.chunks[1])
        ):
            raise InputError(
                f"{name} has chunks of unknown sizes: call its compute_chunk_sizes() first."
            )
        self._describe(name, array.shape, array.dtype)
        self.feature_names = feature_names
        self._array = array.rechunk({1: -1}) if len(array.chunks[1]) > 1 else array
        self.is_sparse = scipy.sparse.issparse(array._meta)
        chunks = self._array.chunks[0]
        self._set_rows(GroupedRows(chunks, self._compute), max(chunks))
        if self.is_sparse:
            first = self._rows.load(*self._rows.chunk_at(0))
            self.row_bytes = first.nnz / first.shape[0] * (self.dtype.itemsize + 4) + 8
            chunk = int(self.chunk_rows * self.row_bytes)
            self.edge_bytes = edge_bytes([chunk], int(self.n_samples * self.row_bytes))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._array, self.name, self.feature_names)

    def _compute(self, chunk: int) -> Any:
        from dask import (
            get,
        )  # runs in this thread: the client of a cluster is left alone
        from dask.optimization import cull

        shape = self._array.chunks[0][chunk], self.n_features
        # The graph's own functions may raise whatever they want.
        with worded(
            f"{self.name}: chunk {chunk} could not be computed",
            "see that compute() works",
        ):
            graph, keys = self._graph
            block = get(cull(graph, [keys[chunk]])[0], keys[chunk])
        if isinstance(block, np.ma.MaskedArray):
            block = plain_array(block, f"chunk {chunk} of {self.name}")
        block = block if scipy.sparse.issparse(block) else np.asarray(block)
        if block.shape != shape or block.dtype != self._array.dtype:
            found = f"chunk {chunk} is {block.dtype} of shape {block.shape}"
            said = f"the array says {self._array.dtype} of shape {shape}"
            raise InputError(
                f"{self.name}: {found}, but {said}: correct the function that makes it."
            )
        return block

    @cached_property
    def _graph(self) -> tuple[dict[Any, Any], list[Any]]:
        """Tasks and the keys of chunks; prepared once, as that takes time in proportion to all chunks."""
        import dask

        (array,) = dask.optimize(self._array)
        return dict(array.__dask_graph__()), [keys[0] for keys in array.__dask_keys__()]

    def _checked(self, values: Any, rows: int | np.ndarray) -> Any:
        if self.is_sparse:
            check_index_dtypes(self.name, indices=values.indices)
            indptr = values.indptr.astype(np.int64)
            first = int(indptr[0])
            last = int(indptr[-1])
            values = values.data[first:last], values.indices[first:last], indptr - first
        return super()._checked(values, rows)


def open_dask(source: Any) -> DaskSamples:
    """Open the rows of a Dask array or frame."""
    module = type(source).__module__
    if module.startswith("dask.array"):
        return DaskSamples(source)
    if not module.startswith("dask.dataframe"):
        kind = type(source).__name__
        raise InputError(
            f"X is a Dask {kind}, which has no rows: give a Dask array or frame."
        )
    from mmcnb.samples.frames import column_names

    if source.ndim != 2:
        raise InputError(
            "X is one column of a Dask frame: give a frame, such as by X.to_frame()."
        )
    for name, dtype in source.dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf" or not isinstance(dtype, np.dtype):
            fault = f"column {name!r} of the Dask frame is {dtype}, no plain numbers"
            raise InputError(f"{fault}: convert it by X.astype('float64'), or drop it.")
    rows = source.astype(block_dtype(*source.dtypes)).to_dask_array(lengths=True)
    return DaskSamples(rows, "the Dask frame", column_names(source))
