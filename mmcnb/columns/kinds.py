"""Kinds of columns in a sample (number, few values, text, list), and sentinel values.

A table column of texts or lists corresponds to several columns of the sample. Any other
table column corresponds to a single column of the sample.
"""

import shlex
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

FEW = 5  # a column with at most this many distinct values is not treated as a number
MOST_COUNTED = 10  # distinct values are counted up to this number plus one
# In tables with more columns than this, columns of few values are treated as small
# counts, such as word counts, and not as a kind of their own.
MOST_MIXED = 100
# The usual range of a column excludes a share of UNUSUAL_SHARE of the values at each
# end. Values are unusual if they lie outside this range by more than UNUSUAL_WIDTHS
# times its width.
UNUSUAL_SHARE = 0.025
UNUSUAL_WIDTHS = 1.0
ColumnName = str | int


@dataclass(frozen=True)
class SampleColumns:
    """The columns of a dense sample, grouped by the columns of the table.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        The unscaled rows of the sample.
    weights : ndarray of shape (m,)
        Weights of the rows.
    sources : sequence of d str or None, default=None
        For each column of the sample, the name of the table column from which it is
        derived. A text has a 0/1 column for each category, and a list of numbers has a
        column for each element. If None, each column of the sample is a table column.
    orders : collection of str, default=()
        Names of the table columns of ordered texts. In the sample, these texts are
        represented by their ranks.
    """

    rows: np.ndarray
    weights: np.ndarray
    sources: Sequence[str] | None = None
    orders: Collection[str] = ()

    @cached_property
    def first(self) -> np.ndarray:
        """Index of the first sample column that represents each table column."""
        if self.sources is None:
            return np.arange(self.rows.shape[1])
        sources = np.array(self.sources, object)
        return np.flatnonzero(np.r_[True, sources[1:] != sources[:-1]])

    @cached_property
    def widths(self) -> np.ndarray:
        """Number of sample columns that represent each table column."""
        return np.diff(self.first, append=self.rows.shape[1])

    @cached_property
    def names(self) -> list[ColumnName]:
        """Name of each table column, or its index if columns have no names."""
        if self.sources is None:
            return self.first.tolist()
        return [self.sources[k] for k in self.first]

    @cached_property
    def is_text(self) -> np.ndarray:
        """Mask of the table columns that are texts with two or more categories."""
        is_text = self.widths > 1
        for k in np.flatnonzero(is_text).tolist():
            is_text[k] = _are_categories(self.columns_of(k))
        return is_text

    @cached_property
    def is_list(self) -> np.ndarray:
        """Mask of the table columns that are lists of two or more numbers."""
        return (self.widths > 1) & ~self.is_text

    def is_circle(self, k: int) -> bool:
        """Return whether the lists of a column are points on the unit circle.

        Times of day are represented in this way.
        """
        values = self.columns_of(k)
        if values.shape[1] != 2:
            return False
        return bool(np.allclose((values**2).sum(axis=1), 1.0, atol=1e-4))

    def columns_of(self, k: int) -> np.ndarray:
        """Return the sample columns that are derived from a table column."""
        first = self.first[k]
        return self.rows[:, first : first + self.widths[k]]

    @cached_property
    def n_values(self) -> np.ndarray:
        """Number of distinct values of each table column, counted up to 11.

        For a text, this is the number of categories, without a limit. For a list, it is
        11.
        """
        head = np.sort(self.rows[:200], axis=0)
        counts = 1 + np.count_nonzero(head[1:] != head[:-1], axis=0)
        # A few rows usually suffice to see that a column has many values.
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
        """Weighted mean and standard deviation of each sample column, shape (2, d)."""
        moments = np.empty((2, self.rows.shape[1]))
        for k, values in enumerate(self.rows.T):
            moments[:, k] = weighted_moments(values.astype(np.float64), self.weights)
        return moments

    def numbers(self, which: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the index and the float64 values of each numeric table column.

        Parameters
        ----------
        which : ndarray of bool
            Mask of the table columns to include. Texts and lists are skipped.
        """
        for k in np.flatnonzero(which & (self.widths == 1)).tolist():
            yield k, self.rows[:, self.first[k]].astype(np.float64)

    def codes(self, k: int) -> np.ndarray:
        """Return the values of a table column, encoded as integers from 0."""
        values = self.columns_of(k)
        if self.is_text[k]:
            return np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0)
        return np.unique(values[:, 0], return_inverse=True)[1]


def _are_categories(values: np.ndarray) -> bool:
    """Return whether each row has only zeros and at most one 1, as one-hot codes do."""
    for rows in (values[:200], values):  # the first rows usually suffice to refute it
        if not ((rows == 0) | (rows == 1)).all() or (rows.sum(axis=1) > 1).any():
            return False
    return True


def weighted_moments(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean and standard deviation of numbers.

    Numbers are divided by the largest magnitude, so that their squares do not overflow.
    """
    unit = np.abs(values).max() or 1.0
    shares = weights / weights.sum()
    mean = shares @ (values / unit)
    return unit * np.array([mean, np.sqrt(shares @ (values / unit - mean) ** 2)])


def are_usual(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mark the values that are not far outside the central 95 % of a column.

    Unusual values are ignored when the scaling of a column is decided. Otherwise, a few
    wrong values or a row of totals would make a column appear skewed, or inflate its
    standard deviation so much that texts outweigh the column.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import are_usual
    >>> ages = np.r_[np.arange(18.0, 78.0), 2850.0]
    >>> are_usual(ages, np.ones(61))[[0, 59, 60]]
    array([ True,  True, False])
    """
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    # The factor absorbs rounding errors, so that weights and repeated rows give the
    # same quantiles.
    shares = np.array([UNUSUAL_SHARE, 1 - UNUSUAL_SHARE]) * (1 - 1e-12)
    low, high = values[order][np.searchsorted(sums, shares * sums[-1])]
    with np.errstate(over="ignore"):
        most = UNUSUAL_WIDTHS * (high - low)
        is_usual = (values >= low - most) & (values <= high + most)
    return is_usual | (most == 0)


def label_of(name: ColumnName) -> str:
    """Return the phrase by which messages refer to a column.

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
    """Return a phrase that names up to five columns and counts the other columns."""
    text = ", ".join(map(label_of, names[:5]))
    if len(names) > 5:
        text += f" and {len(names) - 5} more"
    return text


class Sentinel(NamedTuple):
    """A value far from all other values of a column, which may mark missing values."""

    name: ColumnName
    n_rows: int
    far: FarValue

    @property
    def doubt(self) -> str:
        """Clause that states the value and the number of rows that have it."""
        return (
            f"{label_of(self.name)} has the value {self.far.value:g} in "
            f"{self.far.n_equal:,} of {self.n_rows:,} rows looked at"
        )

    def sentence(self) -> str:
        """Return a message with the value, the range of other values, and a remedy."""
        mark = _shortest(self.far.value)
        # The "=" is needed, because a separate -1e+30 would be parsed as an option.
        return (
            f"{self.doubt}, and {self.far.low:g} to {self.far.high:g} in all others; "
            "if it marks missing values, treat it as missing with "
            f"--na-values={mark} or mmcnb.read_table(X, na_values=[{mark}])."
        )


def _shortest(value: float) -> str:
    """Return the shortest decimal text of a number.

    A number that float32 represents exactly gets the shortest text of the float32.
    """
    single = np.float32(value)
    number = single if single == value else np.float64(value)
    return str(number).removesuffix(".0")


def sentinels(columns: SampleColumns) -> list[str]:
    """Return messages about constant and equal columns, and about possible markers.

    The markers are values that may mark missing values.

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
            f"{listed(constant)} has only one value, so it cannot tell rows apart; "
            "leave it out."
            if len(constant) == 1
            else f"{listed(constant)} have only one value each, so they cannot tell "
            "rows apart; leave them out."
        )
    if is_of_table:
        sentences += _sentences_on_copies(columns)
    return sentences + [mark.sentence() for mark in missing_marks(columns)]


def _sentences_on_copies(columns: SampleColumns) -> Iterator[str]:
    """Yield a sentence about each group of number columns with the same values."""
    groups: dict[bytes, list[ColumnName]] = {}
    for k in np.flatnonzero((columns.n_values > 1) & ~columns.is_text).tolist():
        if columns.names[k] not in columns.orders:
            values = columns.columns_of(k) + 0.0  # turns -0.0 into 0.0
            groups.setdefault(values.tobytes(), []).append(columns.names[k])
    for first, *copies in groups.values():
        if not copies:
            continue
        verb = "has" if len(copies) == 1 else "have"
        times = "twice" if len(copies) == 1 else f"{len(copies) + 1} times"
        it = "it" if len(copies) == 1 else "them"
        options = " ".join(f"--drop {shlex.quote(str(name))}" for name in copies[:5])
        yield (
            f"{listed(copies)} {verb} the same values as {label_of(first)} in all "
            f"{len(columns.rows):,} rows looked at, so they count {times}; leave {it} "
            f"out when the table is read, with {options} or "
            f"mmcnb.read_table(X, drop={copies[:5]})."
        )


def missing_marks(columns: SampleColumns) -> list[Sentinel]:
    """Return the values that may mark missing values.

    Such a value is the minimum or maximum of its column, is far from all other values,
    and occurs in at least two rows of the sample. If a marker is in 0.025 % of all
    rows, five rows of a sample of 20,000 are expected to have it, and it is found with
    a probability of 96 %.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample. Tables with more than 100 columns are not searched.

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
