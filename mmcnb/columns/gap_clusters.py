"""Share of missing values by cluster, and clusters that only reflect missing values."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mmcnb.columns.kinds import label_of
from mmcnb.columns.single import (
    ALONE,
    OTHERS,
    entropy_of,
    information,
    joint_codes,
    middle_ranks,
    share_between,
)


class GapsOfClusters(NamedTuple):
    """Relation between missing values and clusters.

    Attributes
    ----------
    entries : list of dict
        One dictionary for each column with missing values: "column" is its name,
        "share" is the fraction of its values that are missing, and "clusters" lists
        this fraction for each cluster. The fractions are estimated from a sample of the
        rows.
    names : list of str
        One or two columns whose missing values determine the clusters; empty if there
        are no such columns.
    told : float
        Mutual information of the labels and the positions of missing values in the
        columns ``names``, as a fraction of the entropy of the labels; 0 if ``names`` is
        empty.
    """

    entries: list[dict[str, Any]]
    names: Sequence[str] = ()
    told: float = 0.0

    @property
    def sentence(self) -> str:
        """Message that the missing values of the columns determine the clusters."""
        names = " and ".join(map(label_of, self.names))
        verb = "have" if len(self.names) > 1 else "has"
        pronoun = "these" if len(self.names) > 1 else "it"
        return (
            f"the clusters only show the rows in which {names} {verb} missing values "
            f"({self.told:.0%} of their information), and no other column separates "
            f"them; leave {pronoun} out to find other clusters"
        )


def gaps_of_clusters(
    rows: np.ndarray, is_text: np.ndarray, names: Sequence[str], labels: np.ndarray
) -> GapsOfClusters:
    """Determine how missing values are related to clusters.

    Parameters
    ----------
    rows : ndarray of shape (m, c)
        A sample of the rows of a fit. Texts are represented by category codes, and
        missing values by NaN.
    is_text : ndarray of shape (c,), bool
        Mask of the columns that are texts.
    names : sequence of str
        For each column, the name of the table column from which it is derived. Elements
        of a list have the name of the list.
    labels : ndarray of shape (m,), int
        Cluster of each row.

    Returns
    -------
    GapsOfClusters

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.gap_clusters import gaps_of_clusters
    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> rows[:200, 0] = np.nan
    >>> labels = np.arange(400) // 200
    >>> found = gaps_of_clusters(rows, np.zeros(2, bool), ["a", "b"], labels)
    >>> found.entries, found.names
    ([{'column': 'a', 'share': 0.5, 'clusters': [1.0, 0.0]}], ['a'])
    """
    is_gap = np.isnan(rows)
    by_name: dict[str, np.ndarray] = {}
    for name, gaps in zip(names, is_gap.T, strict=True):
        if gaps.any():
            by_name.setdefault(name, gaps)
    sizes = np.bincount(labels)
    entries = [_entry(name, gaps, labels, sizes) for name, gaps in by_name.items()]
    weights = np.ones(labels.size)
    total = entropy_of(labels, weights)
    if total == 0:
        return GapsOfClusters(entries)

    def share_of(chosen: Sequence[str]) -> float:
        codes = joint_codes([by_name[name].astype(np.int64) for name in chosen])
        return information(codes, labels, weights) / total

    leading = sorted(by_name, key=lambda name: -share_of([name]))[:2]
    for size in range(1, len(leading) + 1):
        chosen = leading[:size]
        share = share_of(chosen)
        is_other = np.array([name not in chosen for name in names])
        if share <= ALONE:
            continue
        if _values_tell(rows[:, is_other], is_text[is_other], labels) < OTHERS:
            return GapsOfClusters(entries, chosen, share)
    return GapsOfClusters(entries)


def _entry(
    name: str, gaps: np.ndarray, labels: np.ndarray, sizes: np.ndarray
) -> dict[str, Any]:
    """Return an entry with the share of missing values of a column.

    The share is given for all rows and for each cluster. ``gaps`` marks the rows in
    which the value is missing.
    """
    of_clusters = np.bincount(labels, gaps, sizes.size) / np.maximum(sizes, 1)
    return {
        "column": name,
        "share": round(float(gaps.mean()), 3),
        "clusters": of_clusters.round(3).tolist(),
    }


def _values_tell(rows: np.ndarray, is_text: np.ndarray, labels: np.ndarray) -> float:
    """Return how well the labels are explained by the values of the best column.

    For a column of texts, this is the mutual information as a fraction of the entropy
    of the labels. For a column of numbers, it is the share of the variance of the ranks
    that lies between clusters.
    """
    shares = [0.0]
    for column, has_categories in zip(rows.T, is_text, strict=True):
        is_known = ~np.isnan(column)
        values = column[is_known]
        clusters = labels[is_known]
        weights = np.ones(values.size)
        total = entropy_of(clusters, weights) if values.size else 0.0
        if total == 0:
            continue
        if has_categories:
            codes = values.astype(np.int64)
            shares.append(information(codes, clusters, weights) / total)
        else:
            ranks = middle_ranks(values, weights)
            shares.append(share_between(ranks, clusters, weights))
    return max(shares)
