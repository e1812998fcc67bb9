"""Detect values far from all others, such as -999, that may mark missing data."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# A marker occurs in at least LEAST_MARKED rows, and its distance from the other values
# exceeds the width of their range. A value in less than 1 % of the rows, or in fewer
# than five rows, must be more than three widths away, because a few large integers may
# be equal by chance.
LEAST_MARKED = 2
USUAL_SHARE = 0.01
USUAL_MARKED = 5
RARE_WIDTHS = 3.0
MOST_ZEROS = 0.1  # zeros in a larger fraction of the rows are counts, not markers
MOST_SEARCHED = 100  # tables with more columns are not searched
LEAST_VALUES = 6  # columns with fewer distinct values have no meaningful range


class FarValue(NamedTuple):
    """A value far from the other values of a column.

    The fields are the value, the number of its occurrences, and the smallest and the
    largest of the other values.
    """

    value: float
    n_equal: int
    low: float
    high: float

    def may_be_mark(self, n_rows: int) -> bool:
        """Return whether the value is far and frequent enough to mark missing data.

        ``n_rows`` is the number of rows. Zeros in more than 10 % of the rows are
        counts, not markers.
        """
        share = self.n_equal / n_rows
        if self.value == 0 and share > MOST_ZEROS:
            return False
        widths = RARE_WIDTHS
        if share >= USUAL_SHARE and self.n_equal >= USUAL_MARKED:
            widths = 1.0
        # If the marker is the largest float64, the subtraction overflows.
        with np.errstate(over="ignore"):
            width = self.high - self.low
            gap = max(self.low - self.value, self.value - self.high)
            is_far = gap > widths * width > 0
        return bool(is_far and self.n_equal >= LEAST_MARKED)


def far_values(
    distinct: np.ndarray, counts: np.ndarray, n_rows: int
) -> Iterator[FarValue]:
    """Yield possible markers at both ends, then at the ends of the remaining values.

    Parameters
    ----------
    distinct : ndarray of shape (n_values,)
        Distinct values, sorted.
    counts : ndarray of shape (n_values,)
        Number of rows with each value.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.far_values import far_values
    >>> age = np.array([-999.0, 20, 31, 42, 51, 60])
    >>> [far.value for far in far_values(age, np.array([6, 9, 8, 9, 5, 3]), 40)]
    [-999.0]
    """
    while distinct.size > 2:
        ends = [end for end in (0, -1) if _is_far(distinct, counts, end, n_rows)]
        if not ends:
            return
        others = np.delete(distinct, ends)
        for end in ends:
            yield FarValue(
                value=float(distinct[end]),
                n_equal=int(counts[end]),
                low=float(others[0]),
                high=float(others[-1]),
            )
        counts = np.delete(counts, ends)
        distinct = others


def _is_far(distinct: np.ndarray, counts: np.ndarray, end: int, n_rows: int) -> bool:
    """Return whether the value at index ``end``, 0 or -1, may be a marker.

    The value at the opposite end is excluded from the range if it is frequent enough to
    be a marker itself: -9999 and 9999 may mark two kinds of missing data.
    """
    opposite = -1 - end
    others = np.delete(distinct, end)
    if counts[opposite] >= LEAST_MARKED and others.size > 2:
        others = np.delete(others, opposite)
    far = FarValue(distinct[end], counts[end], others[0], others[-1])
    return far.may_be_mark(n_rows)
