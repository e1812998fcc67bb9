"""Find numbers that conventionally mark missing values, such as -999."""

from collections.abc import Sequence

import numpy as np

from mmcnb.samples.far_values import LEAST_VALUES, MOST_SEARCHED, FarValue

# fmt: off
NINES = (9, 99, 999, 9999, 99999, 999999, 9999999)
# Codes for "unknown" and "refused" in surveys, in addition to nines.
OF_SURVEYS = (97, 98, 997, 998, 9997, 9998)
# Codes of weather stations, which write one decimal place.
OF_WEATHER = (99.9, 999.9, 9999.9)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
# Fill values of ocean and climate models, rasters and simulations. The default fill
# value of netCDF and the largest float32 also occur with fewer digits.
HUGE = (
    1e15, 1e20, 1e30, 1e34, 1e35, 1e36, 9.96921e36, 9.969209968386869e36,
    3.4028235e38, LARGEST_SINGLE, float(np.finfo(np.float64).max),
)
# Limits of 16-, 32- and 64-bit integers.
ENDS = (
    -(2**15), 1 - 2**15, 2**15 - 1, 2**16 - 1,
    -(2**31), 1 - 2**31, 2**31 - 1, 2**32 - 1,
    -(2**63), 2**63,
)
# The last two occur in well logs (LAS format).
NEGATIVE_ALONE = (-1, -8, -88, -888, -8888, -999.25, -9999.25)
# fmt: on
# A positive 9 is too common to be a marker.
POSITIVE = (*NINES[1:], *OF_SURVEYS, *OF_WEATHER, *HUGE)
NEGATIVE = tuple(-mark for mark in (*NINES, *OF_SURVEYS, *OF_WEATHER, *HUGE))


def _by_number() -> dict[float, float]:
    """Return a dict that maps each marker, and its value in float32, to the marker."""
    marks: dict[float, float] = {}
    for mark in map(float, (*POSITIVE, *NEGATIVE, *NEGATIVE_ALONE, *ENDS)):
        if abs(mark) <= LARGEST_SINGLE:
            marks.setdefault(float(np.float32(mark)), mark)
        marks[mark] = mark
    return marks


MARKS = _by_number()
# Infinite extremes are removed in the same way as markers, because the next extreme may
# be a marker.
NOT_OTHERS = {*MARKS, -np.inf, np.inf}
_NOT_OTHERS = np.array([*NOT_OTHERS])


class KnownMarks:
    """Counts of known markers of missing values at the extremes of columns.

    A known marker counts as missing if it is far outside the range of all other values
    of its column and occurs repeatedly. For example, -999 among ages counts as missing,
    but 99 among numbers up to 150 does not. In a column with fewer than six distinct
    values, only a negative marker counts as missing, and only if all other values are
    at least 0.

    Parameters
    ----------
    n_columns : int
        Number of columns. Tables with more than 100 columns are not searched for
        markers.
    columns : sequence of int
        Zero-based indices of the columns of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.sentinels import KnownMarks
    >>> ages = np.array([20.0, 31, -999, 42, 60, 58, -999])
    >>> marks = KnownMarks(1, [0])
    >>> marks.add(ages[:, None])
    >>> marks.find(0, n_values=6)
    {-999.0: 2}
    """

    def __init__(self, n_columns: int, columns: Sequence[int]) -> None:
        self.columns = columns if n_columns <= MOST_SEARCHED else ()
        self._counts: dict[int, dict[float, int]] = {k: {} for k in self.columns}
        # Range of the values of each column, except markers at its extremes.
        self._low = np.full(n_columns, np.inf)
        self._high = np.full(n_columns, -np.inf)
        self._n_rows = 0

    def add(self, block: np.ndarray) -> None:
        """Add the next rows."""
        if not self.columns:
            return
        self._n_rows += len(block)
        low = np.fmin.reduce(block, axis=0).astype(np.float64)
        high = np.fmax.reduce(block, axis=0).astype(np.float64)
        # The range can only grow, so a marker that is not far from the range now will
        # never be far from it.
        with np.errstate(invalid="ignore", over="ignore"):
            width = self._high - self._low
            has_marks = np.isin(low, _NOT_OTHERS) & (self._low - low > width)
            has_marks |= np.isin(high, _NOT_OTHERS) & (high - self._high > width)
        for k in self.columns:
            if has_marks[k]:
                low[k], high[k] = self._count(k, block[:, k])
        self._low = np.fmin(self._low, low)
        self._high = np.fmax(self._high, high)

    def _count(self, k: int, values: np.ndarray) -> tuple[float, float]:
        """Count markers at the extremes, and return the range of the other values."""
        values = values[~np.isnan(values)]
        counts = self._counts[k]
        while values.size:
            low = float(values.min())
            high = float(values.max())
            is_end = np.zeros(values.size, bool)
            for end in {low, high} & NOT_OTHERS:
                is_equal = values == end
                counts[end] = counts.get(end, 0) + int(is_equal.sum())
                is_end |= is_equal
            if not is_end.any():
                return low, high
            values = values[~is_end]
        return np.nan, np.nan

    def find(self, k: int, n_values: int) -> dict[float, int]:
        """Return the numbers in a column that mark missing values.

        Parameters
        ----------
        k : int
            Zero-based index of the column.
        n_values : int
            Number of distinct values in the column; counting may stop at six.

        Returns
        -------
        dict of {float: int}
            For each marker, the number of rows that contain it.
        """
        low = self._low[k]
        high = self._high[k]
        found: dict[float, int] = {}
        if not low < high:
            return found
        # The nearest marker is first: if it is not far, it is an ordinary value and
        # extends the range for the other markers.
        by_distance = sorted(
            self._counts[k].items(), key=lambda pair: max(low - pair[0], pair[0] - high)
        )
        for value, n_equal in by_distance:
            is_sign = value < 0 <= low
            far = FarValue(value, n_equal, low, high)
            if not np.isfinite(value) or low <= value <= high:
                continue
            if far.may_be_mark(self._n_rows) and (is_sign or n_values >= LEAST_VALUES):
                mark = MARKS[value]
                found[mark] = found.get(mark, 0) + n_equal
            else:
                low = min(low, value)
                high = max(high, value)
        return dict(sorted(found.items()))
