"""Sparse nodes, such as texts and other directions, compared on all columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack

from mmcnb.errors import InputError
from mmcnb.graph.nodes import Matrix
from mmcnb.samples.matrix import WORK_NUMBERS, CSRBlock, as_matrix, to_dense

CSR = "data", "indices", "indptr", "shape"  # names of the arrays of a CSR matrix


@dataclass(frozen=True)
class AllColumns:
    """Map that keeps all columns, and adds a column that is 1 for rows of zeros.

    Without the added column, a row of zeros would be nearer to any direction than two
    directions without a common column are to each other.

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
        """Return rows with the additional column.

        Dense rows keep their dtype. If the nodes are sparse, the result is a csr_array
        of float64.
        """
        matrix = as_matrix(rows)
        if not self.is_sparse:
            dense = to_dense(matrix)
            is_zero = ~dense.any(axis=1)
            points = np.column_stack([dense, is_zero])
            return points.astype(dense.dtype, copy=False)
        values = csr_array(matrix, dtype=np.float64, copy=True)
        values.eliminate_zeros()
        n_stored = np.diff(values.indptr)
        is_zero = n_stored == 0
        return hstack([values, csr_array(is_zero[:, None])], format="csr")

    def beyond(self, rows: Matrix | CSRBlock, points: Matrix) -> np.ndarray:
        """Return 0 for each row, because points keep all columns of the rows."""
        return np.zeros(points.shape[0])


@dataclass(frozen=True)
class SparseSearch:
    """Exhaustive search for the nearest nodes among sparse nodes.

    Parameters
    ----------
    nodes : csr_array of shape (p, d), float64
        The nodes, one per row.

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
        """Return indices and distances of each row's nearest nodes, nearest first.

        Ties go to the node with the lower index.
        """
        # The factor 8 accounts for products that are nearly dense and copied several
        # times.
        step = max(1, WORK_NUMBERS // 8 // self.nodes.shape[0])
        numbers = []
        distances = []
        for start in range(0, rows.shape[0], step):
            block = rows[start : start + step]
            squares = self._squared_distances(block)
            nearest = _smallest(squares, count)
            numbers.append(nearest)
            distances.append(_roots(np.take_along_axis(squares, nearest, axis=1)))
        return np.concatenate(numbers), np.concatenate(distances)

    def _squared_distances(self, rows: csr_array) -> np.ndarray:
        # |x - y|² = |x|² + |y|² - 2 x·y
        products = (rows @ self._columns).toarray()
        return _squares(rows)[:, None] + self._squares - 2 * products

    def lengths(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the distances between pairs of nodes."""
        nodes = self.nodes
        norms = self._squares
        lengths = np.empty(starts.size)
        step = max(1, WORK_NUMBERS * nodes.shape[0] // max(nodes.nnz, 1))
        for first in range(0, starts.size, step):
            pairs = slice(first, first + step)
            a = starts[pairs]
            b = ends[pairs]
            products = nodes[a].multiply(nodes[b]).sum(axis=1)
            squares = norms[a] + norms[b] - 2 * products
            lengths[pairs] = _roots(squares)
        return lengths


def _squares(rows: csr_array) -> np.ndarray:
    """Return the squared length of each row."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def _roots(squares: np.ndarray) -> np.ndarray:
    """Return square roots, treating squares that rounding made negative as 0."""
    return np.sqrt(np.maximum(squares, 0.0))


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the column indices of each row's smallest values, smallest first.

    Ties go to the lowest column index. Ties are frequent, because all directions
    without a common column have the same distance.
    """
    is_taken = _are_smallest(values, count)
    places = np.nonzero(is_taken)[1].reshape(-1, count)
    taken = np.take_along_axis(values, places, axis=1)
    order = np.argsort(taken, axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def _are_smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return a boolean mask that is True for the ``count`` smallest values of each row.

    If values are equal, columns with smaller indices come first.
    """
    last = count - 1
    limit = np.partition(values, last, axis=1)[:, last:count]
    is_below = values < limit
    is_tied = values == limit
    n_below = is_below.sum(axis=1, keepdims=True)
    n_tied = np.cumsum(is_tied, axis=1)  # number of ties up to each column
    return is_below | (is_tied & (n_tied <= count - n_below))


# -- arrays of a model -----------------------------------------------------------------


def csr_parts(matrix: csr_array, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a CSR matrix in a dict, with prefixed names as keys."""
    arrays = matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape)
    return {f"{prefix}{name}": array for name, array in zip(CSR, arrays, strict=True)}


def csr_of(arrays: Mapping[str, np.ndarray], fault: str, prefix: str = "") -> csr_array:
    """Restore a CSR matrix from the result of `csr_parts`, which may be damaged.

    Raises
    ------
    InputError
        If the arrays do not form a valid matrix. The message is ``fault``.
    """
    data, indices, indptr, shape = (arrays[f"{prefix}{name}"] for name in CSR)
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(fault) from error
    return matrix
