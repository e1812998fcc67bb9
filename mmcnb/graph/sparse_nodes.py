"""Nodes that are sparse rows, compared on all columns: texts and other directions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack

from mmcnb.errors import InputError
from mmcnb.graph.nodes import Matrix
from mmcnb.samples.matrix import WORK_NUMBERS, CSRBlock, as_matrix, to_dense

CSR = "data", "indices", "indptr", "shape"  # names of the arrays of a matrix


@dataclass(frozen=True)
class AllColumns:
    """Keep all columns, and add one in which rows of zeros have a value.

    Otherwise a row of zeros would be nearer to each direction than directions without a
    common column are.

    Parameters
    ----------
    n_features : int
        Number of columns of the rows.
    is_sparse : bool
        Whether the nodes are sparse.
    """

    n_features: int
    is_sparse: bool

    def __call__(self, rows: Matrix | CSRBlock) -> Matrix:
        """Return rows with one more column.

        They are dense, of their dtype, or a csr_array of float64.
        """
        matrix = as_matrix(rows)
        if not self.is_sparse:
            dense = to_dense(matrix)
            points = np.column_stack([dense, ~dense.any(axis=1)])
            return points.astype(dense.dtype, copy=False)
        values = csr_array(matrix, dtype=np.float64, copy=True)
        values.eliminate_zeros()
        is_zero = csr_array((np.diff(values.indptr) == 0)[:, None])
        return hstack([values, is_zero], format="csr")

    def beyond(self, rows: Matrix | CSRBlock, points: Matrix) -> np.ndarray:
        """Return zeros: no column is left out."""
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

    @cached_property
    def _columns(self) -> csr_array:
        return self.nodes.T.tocsr()

    @cached_property
    def _squares(self) -> np.ndarray:
        return _squares(self.nodes)

    def nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest nodes of rows, by rising distance.

        Of equal distances the first node comes first.
        """
        # A product has few zeros, and is copied several times.
        step = max(1, WORK_NUMBERS // 8 // self.nodes.shape[0])
        numbers = []
        distances = []
        for start in range(0, rows.shape[0], step):
            squares = self._squared_distances(rows[start : start + step])
            nearest = _smallest(squares, count)
            smallest = np.take_along_axis(squares, nearest, axis=1)
            numbers.append(nearest)
            distances.append(np.sqrt(np.maximum(smallest, 0.0)))
        return np.concatenate(numbers), np.concatenate(distances)

    def _squared_distances(self, rows: csr_array) -> np.ndarray:
        # |x - y|² = |x|² + |y|² - 2 x·y
        products = (rows @ self._columns).toarray()
        return _squares(rows)[:, None] + self._squares - 2 * products

    def lengths(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the distances of pairs of nodes."""
        squares = self._squares
        lengths = np.empty(one.size)
        step = max(1, WORK_NUMBERS * self.nodes.shape[0] // max(self.nodes.nnz, 1))
        for start in range(0, one.size, step):
            pairs = slice(start, start + step)
            a = one[pairs]
            b = other[pairs]
            products = self.nodes[a].multiply(self.nodes[b]).sum(axis=1)
            differences = squares[a] + squares[b] - 2 * products
            lengths[pairs] = np.sqrt(np.maximum(differences, 0.0))
        return lengths


def _squares(rows: csr_array) -> np.ndarray:
    """Return the squared length of each row."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the smallest values of each row, in rising order.

    Of equal values the first ones are taken: directions without a common column are
    all ties.
    """
    last = np.partition(values, count - 1, axis=1)[:, count - 1 : count]
    is_smaller = values < last
    is_last = values == last
    needed = count - is_smaller.sum(axis=1, keepdims=True)
    is_first = np.cumsum(is_last, axis=1) <= needed
    is_taken = is_smaller | (is_last & is_first)
    places = np.nonzero(is_taken)[1].reshape(-1, count)
    taken = np.take_along_axis(values, places, axis=1)
    order = np.argsort(taken, axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


# -- arrays of a model -----------------------------------------------------------------


def csr_parts(matrix: csr_array, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a CSR matrix, by name."""
    arrays = matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape)
    return {f"{prefix}{name}": array for name, array in zip(CSR, arrays, strict=True)}


def csr_of(arrays: Mapping[str, np.ndarray], fault: str, prefix: str = "") -> csr_array:
    """Return the CSR matrix of its `csr_parts`, which may be damaged.

    Raises
    ------
    InputError
        If they are no matrix; the message is ``fault``.
    """
    data, indices, indptr, shape = (arrays[f"{prefix}{name}"] for name in CSR)
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(fault) from error
    return matrix
