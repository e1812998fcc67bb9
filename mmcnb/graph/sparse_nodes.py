"""Nodes that are sparse rows, compared on all columns: texts and other directions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack

from mmcnb.errors import InputError
from mmcnb.graph.nodes import check_fits
from mmcnb.samples.matrix import WORK_NUMBERS, as_matrix, to_dense

CSR = "data", "indices", "indptr", "shape"  # names of the arrays of a matrix


@dataclass(frozen=True)
class AllColumns:
    """Rows as they are; rows of zeros get a value in a column of their own.

    Otherwise a row of zeros would be nearer to each direction than directions without a
    common column are.
    """

    n_features: int
    is_sparse: bool

    @property
    def n_axes(self) -> int:
        """Number of columns of the nodes."""
        return self.n_features + 1

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing: the nodes have the number of columns."""
        return {}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "AllColumns":
        """The columns of the nodes of a model."""
        shape = (
            arrays["shape"] if "shape" in arrays else np.array(arrays["nodes"].shape)
        )
        check_fits("shape", shape.shape == (2,))
        return cls(int(shape[1]) - 1, "shape" in arrays)

    def __call__(self, rows: Any) -> Any:
        """Dense or CSR rows with one more column: dense, of their dtype, or a csr_array of float64."""
        given = as_matrix(rows)
        if not self.is_sparse:
            given = to_dense(given)
            return np.column_stack([given, ~given.any(axis=1)]).astype(
                given.dtype, copy=False
            )
        given = csr_array(given, dtype=np.float64, copy=True)
        given.eliminate_zeros()
        return hstack(
            [given, csr_array((np.diff(given.indptr) == 0)[:, None])], format="csr"
        )

    def beyond(self, rows: Any, points: Any) -> np.ndarray:
        """Zeros: no column is left out."""
        return np.zeros(points.shape[0])


@dataclass(frozen=True)
class SparseSearch:
    """The search for the nearest of some sparse nodes, among all of them.

    Parameters
    ----------
    nodes : csr_array of shape (p, d), float64
        The nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.sparse_nodes import SparseSearch
    >>> SparseSearch(csr_array(np.eye(3))).nearest(csr_array([[0.0, 1.0, 0.0]]), 2)[0]
    array([[1, 0]])
    """

    nodes: csr_array
    is_exact: ClassVar[bool] = True  # rows look at all nodes

    @cached_property
    def _columns(self) -> tuple[csr_array, np.ndarray]:
        """The nodes as columns, and their squared lengths."""
        return self.nodes.T.tocsr(), _squares(self.nodes)

    def nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, ...]:
        """Nearest nodes of rows, by rising distance; of equal distances the first node comes first."""
        step = max(
            1, WORK_NUMBERS // 8 // self.nodes.shape[0]
        )  # a product has few zeros, and is copied
        parts = [
            self._nearest(rows[start : start + step], count)
            for start in range(0, rows.shape[0], step)
        ]
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        columns, squares = self._columns
        distances = _squares(rows)[:, None] + squares - 2 * (rows @ columns).toarray()
        last = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
        # directions without a common column are ties
        is_near = distances < last
        is_last = distances == last
        is_near |= is_last & (
            np.cumsum(is_last, axis=1) <= count - is_near.sum(axis=1, keepdims=True)
        )
        near = np.nonzero(is_near)[1].reshape(-1, count)
        order = np.argsort(
            np.take_along_axis(distances, near, axis=1), axis=1, kind="stable"
        )
        near = np.take_along_axis(near, order, axis=1)
        return near, np.sqrt(
            np.maximum(np.take_along_axis(distances, near, axis=1), 0.0)
        )

    def lengths(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distances of pairs of nodes."""
        squares = self._columns[1]
        found = np.empty(one.size)
        step = max(1, WORK_NUMBERS * self.nodes.shape[0] // max(self.nodes.nnz, 1))
        for start in range(0, one.size, step):
            a = one[start : start + step]
            b = other[start : start + step]
            products = self.nodes[a].multiply(self.nodes[b]).sum(axis=1)
            found[start : start + step] = np.sqrt(
                np.maximum(squares[a] + squares[b] - 2 * products, 0.0)
            )
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the nodes, by name."""
        return csr_parts(self.nodes)

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], n_axes: int) -> "SparseSearch":
        """The search of its `arrays`, of nodes of some columns."""
        nodes = csr_of(
            arrays, "graph_indptr does not fit the other arrays of the graph"
        )
        check_fits("shape", nodes.shape[1] == n_axes)
        return cls(nodes.astype(np.float64, copy=False))


def csr_parts(matrix: csr_array, prefix: str = "") -> dict[str, np.ndarray]:
    """The arrays of a CSR matrix, by name."""
    arrays = matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape)
    return {f"{prefix}{name}": array for name, array in zip(CSR, arrays, strict=True)}


def csr_of(arrays: Mapping[str, np.ndarray], fault: str, prefix: str = "") -> csr_array:
    """The CSR matrix of its `csr_parts`, which may be damaged.

    Raises
    ------
    InputError
        They are no matrix: the fault, in words.
    """
    *parts, shape = (arrays[f"{prefix}{name}"] for name in CSR)
    try:
        matrix = csr_array(tuple(parts), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(fault) from error
    return matrix


def _squares(rows: csr_array) -> np.ndarray:
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
