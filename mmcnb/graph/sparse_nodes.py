"""Nodes that are sparse rows, compared on all columns: texts and other directions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.errors import InputError
from mmcnb.graph.nodes import check_fits
from mmcnb.samples.matrix import WORK_NUMBERS, as_matrix


@dataclass(frozen=True)
class AllColumns:
    """Sparse rows as they are; rows without a value get one in a column of their own.

    Otherwise a row of zeros would be nearer to each direction than directions without a common column are.
    """

    n_features: int

    def arrays(self) -> dict[str, np.ndarray]:
        """Nothing: the nodes have the number of columns."""
        return {}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "AllColumns":
        """The columns of the nodes of a model."""
        check_fits("shape", arrays["shape"].shape == (2,))
        return cls(int(arrays["shape"][1]) - 1)

    def __call__(self, rows: Any) -> Any:
        """CSR rows of any form as a csr_array of float64, with one more column."""
        given = csr_array(as_matrix(rows), dtype=np.float64)
        if not given.data.all():
            given = given.copy()
            given.eliminate_zeros()
        n, d = given.shape
        places = np.int32 if max(given.nnz, d + 1) < 2**31 else np.int64
        parts = given.data, given.indices.astype(places, copy=False), given.indptr.astype(places, copy=False)
        wider = csr_array(parts, shape=(n, d + 1))
        empty = np.flatnonzero(np.diff(given.indptr) == 0)
        if empty.size:
            wider = wider + csr_array(
                (np.ones(empty.size), (empty, np.full(empty.size, d))), shape=(n, d + 1)
            )
        return wider


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

    @cached_property
    def _columns(self) -> tuple[csr_array, np.ndarray]:
        """The nodes as columns, and their squared lengths."""
        return self.nodes.T.tocsr(), _squares(self.nodes)

    def nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Nearest nodes of rows, by rising distance; of equal distances the first node comes first."""
        step = max(1, WORK_NUMBERS // 8 // self.nodes.shape[0])  # a product has few zeros, and is copied
        parts = [self._nearest(rows[start : start + step], count) for start in range(0, rows.shape[0], step)]
        numbers, distances = map(np.concatenate, zip(*parts, strict=True))
        return numbers, distances

    def _nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        columns, squares = self._columns
        distances = _squares(rows)[:, None] + squares - 2 * (rows @ columns).toarray()
        last = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
        is_near, is_last = distances < last, distances == last  # directions without a common column are ties
        is_near |= is_last & (np.cumsum(is_last, axis=1) <= count - is_near.sum(axis=1, keepdims=True))
        near = np.nonzero(is_near)[1].reshape(-1, count)
        values = np.take_along_axis(distances, near, axis=1)
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        return np.take_along_axis(near, order, axis=1), np.sqrt(np.maximum(values, 0.0))

    def lengths(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distances of pairs of nodes."""
        squares, found = self._columns[1], np.empty(one.size)
        step = max(1, WORK_NUMBERS * self.nodes.shape[0] // max(self.nodes.nnz, 1))
        for start in range(0, one.size, step):
            a, b = one[start : start + step], other[start : start + step]
            products = np.asarray(self.nodes[a].multiply(self.nodes[b]).sum(axis=1)).ravel()
            found[start : start + step] = np.sqrt(np.maximum(squares[a] + squares[b] - 2 * products, 0.0))
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the nodes, by name."""
        nodes = self.nodes
        parts = {"data": nodes.data, "indices": nodes.indices, "indptr": nodes.indptr}
        return parts | {"shape": np.array(nodes.shape)}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> "SparseSearch":
        """The search of its `arrays`, of one column more than the rows have."""
        try:
            parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
            nodes = csr_array(parts, shape=tuple(arrays["shape"]), dtype=np.float64)
            nodes.check_format(full_check=True)
        except (ValueError, OverflowError, IndexError) as error:
            raise InputError("graph_indptr does not fit the other arrays of the graph") from error
        return cls(nodes)


def _squares(rows: csr_array) -> np.ndarray:
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def distinct_sparse_rows(rows: csr_array) -> tuple[csr_array, np.ndarray]:
    """Distinct CSR rows, in the order of their first ones.

    Parameters
    ----------
    rows : csr_array of shape (m, d), float64
        The rows, with rising columns and without zeros.

    Returns
    -------
    nodes : csr_array of shape (p, d), float64
        The rows that differ.
    node_of : ndarray of shape (m,), int64
        Node of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.sparse_nodes import distinct_sparse_rows
    >>> distinct_sparse_rows(csr_array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))[1]
    array([0, 1, 0])
    """
    digests = [
        blake2b(rows.indices[a:b].tobytes() + rows.data[a:b].tobytes(), digest_size=16).digest()
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]
    _, first, number = np.unique(np.array(digests, "V16"), return_index=True, return_inverse=True)
    order = np.argsort(first)
    nodes = rows if first.size == rows.shape[0] else rows[first[order]]
    return nodes, np.argsort(order)[number.ravel()]
