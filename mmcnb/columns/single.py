"""Detect clusters that are determined by one or two columns alone."""

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from mmcnb.columns.kinds import (
    MOST_COUNTED,
    MOST_MIXED,
    ColumnName,
    SampleColumns,
    label_of,
)

# Fractions of the entropy of the labels. Columns that alone determine the clusters
# explain more than ALONE, and each other column explains less than OTHERS.
ALONE = 0.6
OTHERS = 0.2
N_RANGES = 20  # number of quantile ranges into which a numeric column is cut


class SingleColumns(NamedTuple):
    """Columns that alone determine the clusters.

    Attributes
    ----------
    names : list of str or int
        Names of one or two columns.
    share : float
        Mutual information of the columns and the labels, as a fraction of the entropy
        of the labels.
    largest_other : float
        The largest fraction that any other column explains. For numbers, this is the
        share of the variance of their ranks that lies between clusters.
    is_number : bool
        Whether the clusters are determined by a single column with many values.
    """

    names: list[ColumnName]
    share: float
    largest_other: float
    is_number: bool = False

    @property
    def pronoun(self) -> str:
        """Pronoun with which messages refer to the columns."""
        return "these" if len(self.names) > 1 else "it"

    @property
    def sentence(self) -> str:
        """Message that names the columns and suggests leaving them out."""
        kind = "ranges" if self.is_number else "the values"
        return (
            f"the clusters are {kind} of {' and '.join(map(label_of, self.names))} "
            f"({self.share:.0%} of their information); no other column separates "
            f"them (at most {self.largest_other:.0%}); leave {self.pronoun} out to "
            "find other clusters"
        )


def single_columns(columns: SampleColumns, labels: np.ndarray) -> SingleColumns | None:
    """Return one or two columns that alone determine the clusters, or None.

    Candidates are texts with at most 30 categories, and columns with at most 10
    distinct values. A numeric column with more values is a candidate only if the table
    also has such columns, and has at most 100 columns in total.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample.
    labels : ndarray of shape (m,), int
        Cluster of each row of the sample.

    Returns
    -------
    SingleColumns or None

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns
    >>> from mmcnb.columns.single import single_columns
    >>> flag, other = np.arange(40) % 2, np.random.default_rng(0).normal(size=40)
    >>> columns = SampleColumns(np.c_[other, flag], np.ones(40), ["size", "plan"])
    >>> single = single_columns(columns, flag)
    >>> single.names, round(single.share, 2)
    (['plan'], 1.0)
    """
    weights = columns.weights
    n_columns = len(columns.names)
    entropy = entropy_of(labels, weights)
    if n_columns < 2 or entropy == 0:
        return None
    most = np.where(columns.is_text, 30, MOST_COUNTED)
    is_varying = columns.n_values > 1
    is_few = is_varying & (columns.n_values <= most)

    codes = {}
    shares = np.zeros(n_columns)
    for k in np.flatnonzero(is_few).tolist():
        codes[k] = columns.codes(k)
        shares[k] = information(codes[k], labels, weights) / entropy
    leading = sorted(codes, key=lambda k: -shares[k])[:2]
    for size in range(1, len(leading) + 1):
        chosen = leading[:size]
        joint = joint_codes([codes[k] for k in chosen])
        share = information(joint, labels, weights) / entropy
        largest_other = float(np.delete(shares, chosen).max(initial=0.0))
        if share <= ALONE or largest_other >= OTHERS:
            continue
        of_others = _shares_of_numbers(columns, is_varying & ~is_few, labels)
        largest_other = max(largest_other, of_others.max())
        if largest_other < OTHERS:
            names = [columns.names[k] for k in chosen]
            return SingleColumns(names, share, largest_other)
    may_be_number = is_few.any() and n_columns <= MOST_MIXED
    if may_be_number and shares.max() < OTHERS:
        return _single_number(columns, labels, is_varying & ~is_few, shares.max())
    return None


def _single_number(
    columns: SampleColumns, labels: np.ndarray, is_number: np.ndarray, of_few: float
) -> SingleColumns | None:
    """Return the column with many values whose ranges are the clusters, or None.

    An example is an unscaled income in dollars in a table that otherwise has texts: two
    rows are close to each other if and only if their incomes are similar.
    """
    weights = columns.weights
    entropy = entropy_of(labels, weights)
    told = np.zeros(len(columns.names))
    for k, values in columns.numbers(is_number):
        ranges = (N_RANGES * middle_ranks(values, weights) / weights.sum()).astype(int)
        told[k] = information(ranges, labels, weights) / entropy
    leading = int(told.argmax())
    if told[leading] <= ALONE:
        return None
    is_other = is_number & (np.arange(told.size) != leading)
    of_others = _shares_of_numbers(columns, is_other, labels)
    largest_other = max(of_few, float(of_others.max()))
    if largest_other >= OTHERS:
        return None
    name = columns.names[leading]
    return SingleColumns([name], float(told[leading]), largest_other, is_number=True)


def _shares_of_numbers(
    columns: SampleColumns, which: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return, for each column, the share of its variance that lies between clusters.

    Columns other than the numbers and lists that ``which`` selects have the share 0.
    Numbers are replaced by their ranks. The share of a list is the largest share of its
    elements.
    """
    shares = np.zeros(len(columns.names))
    weights = columns.weights
    for k, values in columns.numbers(which):
        shares[k] = share_between(middle_ranks(values, weights), labels, weights)
    for k in np.flatnonzero(which & columns.is_list).tolist():
        elements = columns.columns_of(k).T.astype(np.float64)
        shares[k] = max(share_between(x, labels, weights) for x in elements)
    return shares


def joint_codes(codes: list[np.ndarray]) -> np.ndarray:
    """Return integers that encode the joint values of several columns of codes."""
    return np.ravel_multi_index(codes, [1 + column.max() for column in codes])


def information(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the mutual information of codes and labels, H(c) + H(y) - H(c, y)."""
    return (
        entropy_of(codes, weights)
        + entropy_of(labels, weights)
        - entropy_of(joint_codes([codes, labels]), weights)
    )


def entropy_of(codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the entropy of codes (integers from 0), in nats."""
    return float(entr(np.bincount(codes, weights) / weights.sum()).sum())


def middle_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the rank of each value, where tied values get the middle of their ranks.

    A row of weight w counts as w rows.
    """
    codes = np.unique(values, return_inverse=True)[1]
    n_equal = np.bincount(codes, weights)
    middle_ranks = np.cumsum(n_equal) - n_equal / 2
    return middle_ranks[codes]


def share_between(values: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of the variance of values that lies between clusters."""
    deviations = values - weights @ values / weights.sum()
    sizes = np.bincount(labels, weights)
    sums = np.bincount(labels, weights * deviations)
    is_used = sizes > 0
    between = (sums[is_used] ** 2 / sizes[is_used]).sum()
    total = weights @ deviations**2
    return float(between / total) if total > 0 else 0.0
