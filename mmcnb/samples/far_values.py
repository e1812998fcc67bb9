"""Values far outside all others of a column, which may mark missing values."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# Fewest rows that have such a value. It is farther from all others than these are from
# each other, and three times as far if less than 1 % of the rows or fewer than five
# have it: the largest of whole numbers may be far and equal by chance.
LEAST_MARKED = 2
USUAL_SHARE = 0.01
USUAL_MARKED = 5
RARE_WIDTHS = 3.0
MOST_ZEROS = 0.1
MOST_SEARCHED = 100  # columns of a table; those of more are not searched
LEAST_VALUES = 6  # fewer have no range that one of them lies outside of


class FarValue(NamedTuple):
    """A value far outside the range of all others, the rows with it, and that range."""

    value: float
    n_equal: int
    low: float
    high: float

    def may_be_mark(self, n_rows: int) -> bool:
        """Return whether it is far and frequent enough in so many rows.

        Zeros in many rows are counts.
        """
        share = self.n_equal / n_rows
        if self.value == 0 and share > MOST_ZEROS:
            return False
        widths = RARE_WIDTHS
        if share >= USUAL_SHARE and self.n_equal >= USUAL_MARKED:
            widths = 1.0
        # The largest numbers mark missing values, too.
        with np.errstate(over="ignore"):
            width = self.high - self.low
            gap = max(self.low - self.value, self.value - self.high)
            is_far = gap > widths * width > 0
        return bool(is_far and self.n_equal >= LEAST_MARKED)


def far_values(
    distinct: np.ndarray, counts: np.ndarray, n_rows: int
) -> Iterator[FarValue]:
    """Yield far values at both ends, then those at the ends of the other values.

    Parameters
    ----------
    distinct : ndarray
        Different values, sorted.
    counts : ndarray
        Rows that have each of them.
    n_rows : int

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
    """Return whether the value at an end, the first or the last, may be a mark.

    The value at the other end does not count as one of the others if it may be a mark
    itself: -9999 and 9999 mark two kinds of gaps.
    """
    opposite = -1 - end
    others = np.delete(distinct, end)
    if counts[opposite] >= LEAST_MARKED and others.size > 2:
        others = np.delete(others, opposite)
    far = FarValue(distinct[end], counts[end], others[0], others[-1])
    return far.may_be_mark(n_rows)
