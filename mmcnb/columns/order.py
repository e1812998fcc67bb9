"""A canonical order of columns, which depends only on their values.

The rounding of sums over columns depends on the order of the columns, and even rounding
differences can lead to different clusters. The canonical order, and therefore the
rounding, does not depend on the order or the names of the columns in the table.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from mmcnb.samples.matrix import WORK_NUMBERS, Matrix

# Most columns already differ within these first rows, so that later rows are compared
# for only a few columns.
FIRST_ROWS = 64
FIRST_SPARSE_ROWS = 2000
COMPARED_NUMBERS = 4 * WORK_NUMBERS


def order_of_columns(sample: Matrix) -> np.ndarray | None:
    """Return the canonical order of the columns of a sample.

    Columns are compared first by the directions in which their values change from row
    to row, and then by the values themselves. The first row in which two columns differ
    decides each comparison. Repeating rows, changing units and taking logarithms
    therefore do not change the order of columns that differ in a direction. Equal
    columns stay in their given order, which does not matter because they are
    interchangeable.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows. Column indices of CSR rows must be sorted.

    Returns
    -------
    ndarray of shape (d,), int64, or None
        Indices of the columns in canonical order; None if they are in this order
        already.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.order import order_of_columns
    >>> rows = np.array([[0.0, 9.0, 1.0], [3.0, 2.0, 1.0]])
    >>> for columns in ([0, 1, 2], [2, 0, 1]):
    ...     arranged = rows[:, columns]
    ...     print(arranged[:, order_of_columns(arranged)].tolist())
    [[9.0, 1.0, 0.0], [2.0, 1.0, 3.0]]
    [[9.0, 1.0, 0.0], [2.0, 1.0, 3.0]]
    """
    order = _order_of_sparse(sample) if issparse(sample) else _order_of_dense(sample)
    if (order[1:] > order[:-1]).all():
        return None
    return order


def _order_of_dense(sample: np.ndarray) -> np.ndarray:
    ranks = np.zeros(sample.shape[1], np.int64)
    ranks = _refined(ranks, sample, _directions)
    ranks = _refined(ranks, sample, _sortable)
    return np.argsort(ranks, kind="stable")


def _refined(
    ranks: np.ndarray, sample: np.ndarray, keys_of: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Refine the ranks of columns until no columns are tied or all rows are compared.

    Tied columns are compared by the sort keys of their values, one block of rows at a
    time.
    """
    start = 0
    n_rows = FIRST_ROWS
    while start < sample.shape[0]:
        tied = _tied(ranks)
        if not tied.size:
            break
        # The direction in a row depends on the row before, so each block begins with
        # the last row of the previous block.
        first = max(start - 1, 0)
        keys = keys_of(sample[first : start + n_rows, tied])
        ranks = _ranked(ranks, tied, _places(np.ascontiguousarray(keys.T)))
        start += n_rows
        n_rows = min(2 * n_rows, max(FIRST_ROWS, COMPARED_NUMBERS // tied.size))
    return ranks


def _tied(ranks: np.ndarray) -> np.ndarray:
    """Return the indices of the columns whose rank is also that of another column."""
    return np.flatnonzero(np.bincount(ranks)[ranks] > 1)


def _ranked(ranks: np.ndarray, tied: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return new ranks, in which ``places`` break the ties between columns.

    ``tied`` holds the indices of the columns with ties, and ``places`` the ranks of
    these columns among each other.
    """
    finer = ranks * ranks.size
    finer[tied] += places
    return np.unique(finer, return_inverse=True)[1].ravel()


def _places(keys: np.ndarray) -> np.ndarray:
    """Return, for each row of ``keys``, its rank among the distinct rows.

    Rows are compared as bytes.
    """
    whole = keys.view(f"V{keys.itemsize * keys.shape[1]}").ravel()
    return np.unique(whole, return_inverse=True)[1].ravel()


def _directions(values: np.ndarray) -> np.ndarray:
    """Return the change of each value from the row before: 0 down, 1 none, 2 up.

    All values of the first row get 1.
    """
    keys = np.ones(values.shape, np.uint8)
    keys[1:] += values[1:] > values[:-1]
    keys[1:] -= values[1:] < values[:-1]
    return keys


def _sortable(values: np.ndarray) -> np.ndarray:
    """Return big-endian integers whose bytes have the same order as the values."""
    # Adding 0 turns -0 into 0, because their bytes differ although they are equal.
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    sign = np.uint64(2**63)
    return np.where(bits & sign, ~bits, bits | sign).astype(">u8")


# -- sparse columns --------------------------------------------------------------------
#
# Sparse columns get the same order as the equivalent dense columns. Their sort keys
# list only the few positions at which the direction is not 1 or the value is not 0.


class _Places(NamedTuple):
    """Positions with a direction other than 1, or with a value other than 0.

    Attributes
    ----------
    rows, columns : ndarray of shape (q,)
        Row index and column index of each position, sorted by column and row.
    is_more : ndarray of shape (q,), bool
        True if the direction is 2 or the value is positive. False if the direction is 0
        or the value is negative.
    """

    rows: np.ndarray
    columns: np.ndarray
    is_more: np.ndarray

    def codes(self, n_rows: int) -> np.ndarray:
        """Return an integer code for each position, to compare columns.

        If two columns first differ at a position, the larger column has the larger
        code. The code ``n_rows`` marks the end of a column, after its last position.
        """
        codes = np.where(self.is_more, 2 * n_rows - self.rows, self.rows)
        return codes.astype(">u8")

    def keys(self, numbers: np.ndarray, shape: tuple[int, int]) -> list[bytes]:
        """Return a sort key for each column: the bytes of its numbers and an end mark.

        Parameters
        ----------
        numbers : ndarray
            One or more numbers for each position.
        shape : tuple of int
            Number of rows and number of columns.
        """
        end = np.array(shape[0], ">u8").tobytes()
        counts = np.bincount(self.columns, minlength=shape[1])
        starts = np.append(0, np.cumsum(counts)).tolist()
        return [numbers[start:stop].tobytes() + end for start, stop in pairwise(starts)]


def _order_of_sparse(sample: csr_array) -> np.ndarray:
    m, d = sample.shape
    ranks = np.zeros(d, np.int64)
    for n_rows in (min(m, FIRST_SPARSE_ROWS), m):
        tied = _tied(ranks)
        columns = sample[:n_rows].tocsc()[:, tied]
        columns.eliminate_zeros()
        ranks = _ranked(ranks, tied, _places_of_sparse(columns, n_rows == m))
    return np.argsort(ranks, kind="stable")


def _places_of_sparse(columns: csc_array, has_values: bool) -> np.ndarray:
    """Return the rank of each column among the distinct columns.

    Columns are compared by the directions of change and, if ``has_values``, then by
    values.
    """
    m = columns.shape[0]
    is_used = np.diff(columns.indptr) > 0
    columns = columns[:, is_used]
    changes = _changes(columns)
    keys = changes.keys(changes.codes(m), columns.shape)
    end = np.array(m, ">u8").tobytes()  # key of a column without stored values
    empty = end
    if has_values:
        stored = _Places(columns.indices, _columns_of(columns), columns.data > 0)
        numbers = np.column_stack([stored.codes(m), _sortable(columns.data)])
        values = stored.keys(numbers.astype(">u8", copy=False), columns.shape)
        keys = list(map(bytes.__add__, keys, values))
        empty = end + end
    place_of = {key: place for place, key in enumerate(sorted({empty, *keys}))}
    places = np.full(is_used.size, place_of[empty])
    places[is_used] = [place_of[key] for key in keys]
    return places


def _columns_of(columns: csc_array) -> np.ndarray:
    """Return, for each stored value of a sparse array, the index of its column."""
    return np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))


def _changes(columns: csc_array) -> _Places:
    """Return the positions at which a value differs from the one in the row before."""
    rows = columns.indices
    numbers = _columns_of(columns)
    values = columns.data
    # A stored value is a change from the stored value in the row before, or from 0. A
    # change back to 0 follows unless the next row has a stored value.
    follows = (np.diff(rows) == 1) & (np.diff(numbers) == 0)
    before = np.zeros_like(values)
    before[1:] = np.where(follows, values[:-1], 0)
    is_last = np.append(~follows, True)[: rows.size] & (rows + 1 < columns.shape[0])
    steps = np.zeros((rows.size, 2), np.int8)
    steps[:, 0] += values > before
    steps[:, 0] -= values < before
    steps[rows == 0, 0] = 0  # the first row has no row before it
    steps[is_last, 1] = np.where(values[is_last] > 0, -1, 1)
    is_change = steps != 0
    changed_rows = np.column_stack([rows, rows + 1])[is_change]
    columns_of_changes = np.repeat(numbers, is_change.sum(axis=1))
    return _Places(changed_rows, columns_of_changes, steps[is_change] > 0)
