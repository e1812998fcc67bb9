"""Kinds of columns in a sample: numbers, few values, texts, lists; and sentinels.

A column of the table is one column of the sample, or several if it is a text or a list.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmcnb.samples.far_values import (
    LEAST_MARKED,
    LEAST_VALUES,
    MOST_SEARCHED,
    FarValue,
    far_values,
)

FEW = 5  # a column of at most so many values has steps and is not a number
MOST_COUNTED = 10  # a column of more values has many
MOST_MIXED = 100  # columns; of more, few-valued ones are small counts, not another kind
ColumnName = str | int


@dataclass(frozen=True)
class SampleColumns:
    """The columns of a dense sample, grouped by the columns of the table.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        The sample, not scaled.
    weights : ndarray of shape (m,)
        Weights of its rows.
    sources : sequence of d str or None
        Name of the table's column behind each column. A text has one column of 0 and 1
        for each category, and a list of numbers one for each element.
    orders : collection of str
        Names of the table's columns whose numbers are the places of ordered texts.
    """

    rows: np.ndarray
    weights: np.ndarray
    sources: Sequence[str] | None = None
    orders: Collection[str] = ()

    @cached_property
    def first(self) -> np.ndarray:
        """First column of the sample for each column of the table."""
        if self.sources is None:
            return np.arange(self.rows.shape[1])
        sources = np.array(self.sources, object)
        return np.flatnonzero(np.r_[True, sources[1:] != sources[:-1]])

    @cached_property
    def widths(self) -> np.ndarray:
        """Number of columns of the sample for each column of the table."""
        return np.diff(self.first, append=self.rows.shape[1])

    @cached_property
    def names(self) -> list[ColumnName]:
        """Name of each column of the table; its number if it has none."""
        if self.sources is None:
            return self.first.tolist()
        return [self.sources[k] for k in self.first]

    @cached_property
    def is_text(self) -> np.ndarray:
        """Which columns of the table are texts of two or more categories."""
        is_text = self.widths > 1
        for k in np.flatnonzero(is_text).tolist():
            is_text[k] = _are_categories(self.columns_of(k))
        return is_text

    @cached_property
    def is_list(self) -> np.ndarray:
        """Which columns of the table are lists of two or more numbers."""
        return (self.widths > 1) & ~self.is_text

    def is_circle(self, k: int) -> bool:
        """Return whether a list is of two numbers on a circle, as times of day are."""
        values = self.columns_of(k)
        if values.shape[1] != 2:
            return False
        return bool(np.allclose((values**2).sum(axis=1), 1.0, atol=1e-4))

    def columns_of(self, k: int) -> np.ndarray:
        """Return the columns of the sample of a column of the table."""
        first = self.first[k]
        return self.rows[:, first : first + self.widths[k]]

    @cached_property
    def n_values(self) -> np.ndarray:
        """Number of values of each, counted up to 11; of a text, its categories.

        A list counts as many values.
        """
        head = np.sort(self.rows[:200], axis=0)
        counts = 1 + np.count_nonzero(head[1:] != head[:-1], axis=0)
        # A few rows mostly show that a column has many values.
        for n_rows in (2000, len(self.rows)):
            for column in np.flatnonzero(counts <= MOST_COUNTED):
                counts[column] = np.unique(self.rows[:n_rows, column]).size
        of_numbers = np.minimum(counts[self.first], MOST_COUNTED + 1)
        of_numbers[self.is_list] = MOST_COUNTED + 1
        return np.where(self.is_text, self.widths, of_numbers)

    @cached_property
    def ends(self) -> np.ndarray:
        """Minimum and maximum of each column of the sample, of shape (2, d)."""
        return np.array([self.rows.min(axis=0), self.rows.max(axis=0)], np.float64)

    @cached_property
    def moments(self) -> np.ndarray:
        """Weighted mean and deviation of each column of the sample, of shape (2, d)."""
        moments = np.empty((2, self.rows.shape[1]))
        for k, values in enumerate(self.rows.T):
            moments[:, k] = weighted_moments(values.astype(np.float64), self.weights)
        return moments

    def numbers(self, which: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield number and float64 values of the columns that are one number each."""
        for k in np.flatnonzero(which & (self.widths == 1)).tolist():
            yield k, self.rows[:, self.first[k]].astype(np.float64)

    def codes(self, k: int) -> np.ndarray:
        """Return whole numbers from 0 for the values of a column of the table."""
        values = self.columns_of(k)
        if self.is_text[k]:
            return np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0)
        return np.unique(values[:, 0], return_inverse=True)[1]


def _are_categories(values: np.ndarray) -> bool:
    """Return whether each row has one 1 at most among zeros."""
    for rows in (values[:200], values):  # a few rows mostly show that it has not
        if not ((rows == 0) | (rows == 1)).all() or (rows.sum(axis=1) > 1).any():
            return False
    return True


def weighted_moments(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean and deviation of numbers of any size.

    Squares are computed in units of the largest number, so that they do not overflow.
    """
    unit = np.abs(values).max() or 1.0
    shares = weights / weights.sum()
    mean = shares @ (values / unit)
    return unit * np.array([mean, np.sqrt(shares @ (values / unit - mean) ** 2)])


def label_of(name: ColumnName) -> str:
    """Return the name of a column as messages show it.

    Examples
    --------
    >>> from mmcnb.columns.kinds import label_of
    >>> label_of("plan"), label_of(3)
    ("'plan'", 'column 3')
    """
    if isinstance(name, str):
        return repr(name)
    return f"column {name}"


def listed(names: Sequence[ColumnName]) -> str:
    """Name up to five columns, and count the others."""
    text = ", ".join(map(label_of, names[:5]))
    if len(names) > 5:
        text += f" and {len(names) - 5} more"
    return text


class Sentinel(NamedTuple):
    """A value far outside the range of all others, which may mark missing values."""

    name: ColumnName
    n_rows: int
    far: FarValue

    @property
    def doubt(self) -> str:
        """The value, and how many rows have it."""
        return (
            f"{label_of(self.name)} has the value {self.far.value:g} in "
            f"{self.far.n_equal:,} of {self.n_rows:,} rows looked at"
        )

    def sentence(self) -> str:
        """Return the value, the range of the others, and the remedy."""
        mark = _shortest(self.far.value)
        # With "=", as an argument such as -1e+30 would be taken for an option.
        return (
            f"{self.doubt}, and {self.far.low:g} to {self.far.high:g} in all others; "
            "if it marks missing values, make it a gap with "
            f"--na-values={mark} or mmcnb.read_table(X, na_values=[{mark}])."
        )


def _shortest(value: float) -> str:
    """Return the shortest text of a number that may be of float32."""
    single = np.float32(value)
    number = single if single == value else np.float64(value)
    return str(number).removesuffix(".0")


def sentinels(columns: SampleColumns) -> list[str]:
    """Describe constant columns, and values that may mark missing ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns, sentinels
    >>> age = np.r_[np.arange(20.0, 60.0), -999, -999]
    >>> sentinels(SampleColumns(age[:, None], np.ones(42)))[0][:45]
    'column 0 has the value -999 in 2 of 42 rows l'
    """
    if len(columns.names) > MOST_SEARCHED:
        return []
    sentences: list[str] = []
    constant = [columns.names[k] for k in np.flatnonzero(columns.n_values == 1)]
    is_of_table = columns.sources is not None
    if constant and is_of_table and len(columns.rows) > 1:
        sentences.append(
            f"{listed(constant)} has one value, so it tells no rows apart; "
            "leave it out."
        )
    return sentences + [mark.sentence() for mark in missing_marks(columns)]


def missing_marks(columns: SampleColumns) -> list[Sentinel]:
    """Find values that may mark missing ones.

    They are at an end of a column and far from its other values. Two rows of the sample
    must have such a value, so it is found with a probability of 96 % if five rows of
    the sample have it on average (0.025 % of all rows, with 20,000 in the sample).

    Parameters
    ----------
    columns : SampleColumns
        Those of the sample. In more than 100, marks are not sought.

    Returns
    -------
    list of Sentinel
    """
    if len(columns.names) > MOST_SEARCHED:
        return []
    rows = columns.rows
    low, high = columns.ends
    n_low = np.count_nonzero(rows == low, axis=0)
    n_high = np.count_nonzero(rows == high, axis=0)
    may_have = (n_low >= LEAST_MARKED) | (n_high >= LEAST_MARKED)
    is_sought = (columns.n_values >= LEAST_VALUES) & may_have[columns.first]
    return [
        Sentinel(columns.names[k], len(values), far)
        for k, values in columns.numbers(is_sought)
        for far in far_values(*np.unique(values, return_counts=True), len(values))
    ]
