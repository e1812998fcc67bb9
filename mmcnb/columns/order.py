"""An order of the columns that follows from their values alone.

Sums over columns are rounded by the order of the columns, and small differences grow
into other clusters. Columns in this order give the same sums, however they are arranged
in a table, and whatever their names and units are.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from mmcnb.samples.matrix import WORK_NUMBERS, Matrix

# Most columns differ in their first rows, so that few are compared in further rows.
FIRST_ROWS = 64
FIRST_SPARSE_ROWS = 2000
COMPARED_NUMBERS = 4 * WORK_NUMBERS


def order_of_columns(sample: Matrix) -> np.ndarray | None:
    """Return the order of the columns of a sample; None if they have it already.

    Two columns are compared in the first row in which they differ: first by whether
    they rise or fall from the row before, then by their values. So repeated rows, other
    units and logarithms change nothing. Equal columns keep their order, and can be
    interchanged.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows; CSR rows have rising columns.

    Returns
    -------
    ndarray of shape (d,), int64, or None
        The number of each column in the sample.

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
    """Order columns of one rank by keys of their values, of some rows after others."""
    start = 0
    n_rows = FIRST_ROWS
    while start < sample.shape[0]:
        tied = _tied(ranks)
        if not tied.size:
            break
        # The row before is the last of the earlier ones.
        first = max(start - 1, 0)
        keys = keys_of(sample[first : start + n_rows, tied])
        ranks = _ranked(ranks, tied, _places(np.ascontiguousarray(keys.T)))
        start += n_rows
        n_rows = min(2 * n_rows, max(FIRST_ROWS, COMPARED_NUMBERS // tied.size))
    return ranks


def _tied(ranks: np.ndarray) -> np.ndarray:
    """Return the columns that share their rank with others."""
    return np.flatnonzero(np.bincount(ranks)[ranks] > 1)


def _ranked(ranks: np.ndarray, tied: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return ranks in which tied columns of one rank are ordered by their places."""
    finer = ranks * ranks.size
    finer[tied] += places
    return np.unique(finer, return_inverse=True)[1].ravel()


def _places(keys: np.ndarray) -> np.ndarray:
    """Return the place of each row of keys among the distinct ones, by their bytes."""
    whole = keys.view(f"V{keys.itemsize * keys.shape[1]}").ravel()
    return np.unique(whole, return_inverse=True)[1].ravel()


def _directions(values: np.ndarray) -> np.ndarray:
    """Return 0 where values fall from the row before, 2 where they rise, otherwise 1.

    The first row has 1.
    """
    keys = np.ones(values.shape, np.uint8)
    keys[1:] += values[1:] > values[:-1]
    keys[1:] -= values[1:] < values[:-1]
    return keys


def _sortable(values: np.ndarray) -> np.ndarray:
    """Return big-endian integers whose bytes have the order of the values."""
    # The sum with 0 turns -0 into 0, which has other bytes.
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    sign = np.uint64(2**63)
    return np.where(bits & sign, ~bits, bits | sign).astype(">u8")


# -- sparse columns --------------------------------------------------------------------
#
# Their order is that of the same dense columns, by keys of the few places at which
# these have unusual numbers: other directions than 1, or other values than 0.


class _Places(NamedTuple):
    """Places at which columns have unusual numbers, column by column, in rising rows.

    Attributes
    ----------
    rows, columns : ndarray of shape (q,)
        The places.
    is_more : ndarray of shape (q,), bool
        Whether the number is larger than the usual one, otherwise it is smaller.
    """

    rows: np.ndarray
    columns: np.ndarray
    is_more: np.ndarray

    def codes(self, n_rows: int) -> np.ndarray:
        """Return a number for each place, larger in the larger column.

        A column without a further place has `n_rows` there.
        """
        codes = np.where(self.is_more, 2 * n_rows - self.rows, self.rows)
        return codes.astype(">u8")

    def keys(self, numbers: np.ndarray, shape: tuple[int, int]) -> list[bytes]:
        """Return the bytes of numbers of the places of each column, and of its end."""
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
    """Return the place of each column among the distinct ones.

    Without values it is the place by directions alone.
    """
    m = columns.shape[0]
    is_used = np.diff(columns.indptr) > 0
    columns = columns[:, is_used]
    changes = _changes(columns)
    keys = changes.keys(changes.codes(m), columns.shape)
    end = np.array(m, ">u8").tobytes()  # a column without values has no more
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
    """Return the column of each value."""
    return np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))


def _changes(columns: csc_array) -> _Places:
    """Return where values rise or fall from the row before."""
    rows = columns.indices
    numbers = _columns_of(columns)
    values = columns.data
    # A value changes from the one before it, or from 0, and to 0 unless one follows.
    follows = (np.diff(rows) == 1) & (np.diff(numbers) == 0)
    before = np.zeros_like(values)
    before[1:] = np.where(follows, values[:-1], 0)
    is_last = np.append(~follows, True)[: rows.size] & (rows + 1 < columns.shape[0])
    steps = np.zeros((rows.size, 2), np.int8)
    steps[:, 0] += values > before
    steps[:, 0] -= values < before
    steps[rows == 0, 0] = 0  # no row is before
    steps[is_last, 1] = np.where(values[is_last] > 0, -1, 1)
    is_change = steps != 0
    changed_rows = np.column_stack([rows, rows + 1])[is_change]
    columns_of_changes = np.repeat(numbers, is_change.sum(axis=1))
    return _Places(changed_rows, columns_of_changes, steps[is_change] > 0)
