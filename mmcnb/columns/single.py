"""Single columns that make the clusters alone, so that others do not count."""

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from mmcnb.columns.kinds import MOST_COUNTED, ColumnName, SampleColumns, label_of

# Shares of the entropy of the labels: columns that make the clusters tell more than the
# first, and each other column less than the second.
ALONE = 0.6
OTHERS = 0.2


class SingleColumns(NamedTuple):
    """Columns that make the clusters.

    Attributes
    ----------
    names : list
        One or two.
    share : float
        Share of the entropy of the labels that they tell.
    largest_other : float
        The largest share of any other column.
    """

    names: list[ColumnName]
    share: float
    largest_other: float

    @property
    def sentence(self) -> str:
        """The columns, and the remedy."""
        pronoun = "these" if len(self.names) > 1 else "it"
        return (
            f"the clusters are the values of {' and '.join(map(label_of, self.names))} "
            f"({self.share:.0%} of their information); no other column tells them "
            f"apart (at most {self.largest_other:.0%}); leave {pronoun} out to see "
            "others"
        )


def single_columns(columns: SampleColumns, labels: np.ndarray) -> SingleColumns | None:
    """Find one or two columns of few values that are the clusters, if no other agrees.

    Parameters
    ----------
    columns : SampleColumns
        Those of the sample.
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
    entropy = _entropy(labels, weights)
    if n_columns < 2 or entropy == 0:
        return None
    most = np.where(columns.is_text, 30, MOST_COUNTED)
    is_varying = columns.n_values > 1
    is_few = is_varying & (columns.n_values <= most)

    codes = {}
    shares = np.zeros(n_columns)
    for k in np.flatnonzero(is_few).tolist():
        codes[k] = columns.codes(k)
        shares[k] = _information(codes[k], labels, weights) / entropy
    leading = sorted(codes, key=lambda k: -shares[k])[:2]
    for size in range(1, len(leading) + 1):
        chosen = leading[:size]
        joint = _joint_codes([codes[k] for k in chosen])
        share = _information(joint, labels, weights) / entropy
        largest_other = float(np.delete(shares, chosen).max(initial=0.0))
        if share <= ALONE or largest_other >= OTHERS:
            continue
        for _, values in columns.numbers(is_varying & ~is_few):
            share_of_ranks = _share_of_ranks(values, labels, weights)
            largest_other = max(largest_other, share_of_ranks)
        if largest_other < OTHERS:
            names = [columns.names[k] for k in chosen]
            return SingleColumns(names, share, largest_other)
    return None


def _joint_codes(codes: list[np.ndarray]) -> np.ndarray:
    """Return whole numbers for the joint values of several columns of codes."""
    return np.ravel_multi_index(codes, [1 + column.max() for column in codes])


def _information(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the mutual information of codes and labels, H(c) + H(y) - H(c, y)."""
    return (
        _entropy(codes, weights)
        + _entropy(labels, weights)
        - _entropy(_joint_codes([codes, labels]), weights)
    )


def _entropy(codes: np.ndarray, weights: np.ndarray) -> float:
    """Return the entropy of whole numbers from 0, in natural units."""
    return float(entr(np.bincount(codes, weights) / weights.sum()).sum())


def _share_of_ranks(
    values: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> float:
    """Return the share of the variance of ranks that lies between clusters.

    A row of weight w has w ranks.
    """
    codes = np.unique(values, return_inverse=True)[1]
    n_equal = np.bincount(codes, weights)
    middle_ranks = np.cumsum(n_equal) - n_equal / 2
    ranks = middle_ranks[codes]
    mean_rank = weights @ ranks / weights.sum()
    deviations = ranks - mean_rank
    sizes = np.bincount(labels, weights)
    sums = np.bincount(labels, weights * deviations)
    is_used = sizes > 0
    between = (sums[is_used] ** 2 / sizes[is_used]).sum()
    total = weights @ deviations**2
    return float(between / total)
