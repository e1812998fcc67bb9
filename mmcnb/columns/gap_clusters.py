"""Gaps by cluster, and gaps that make the clusters."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import entropy, rankdata
from sklearn.metrics import mutual_info_score

from mmcnb.columns.kinds import label_of
from mmcnb.columns.single import ALONE, OTHERS
from mmcnb.samples.donors import Donors


class GapsOfClusters(NamedTuple):
    """What gaps tell about clusters.

    Attributes
    ----------
    rows : list of dict
        For each column with gaps its "column", the "share" of its gaps, and "clusters",
        the share in each cluster; estimated by some rows of the fit.
    names : list of str
        One or two columns whose gaps make the clusters; empty if there are none.
    told : float
        Share of the entropy of the labels that the gaps of these columns tell.
    """

    rows: list[dict[str, Any]]
    names: Sequence[str] = ()
    told: float = 0.0

    @property
    def sentence(self) -> str:
        """The columns whose gaps make the clusters, and the remedy."""
        names = " and ".join(map(label_of, self.names))
        pronoun = "these" if len(self.names) > 1 else "it"
        return (
            f"the clusters are where {names} has gaps ({self.told:.0%} of their "
            f"information), and no other column tells them apart; leave {pronoun} out "
            "to see others"
        )


def gaps_of_clusters(
    donors: Donors, names: Sequence[str], labels: np.ndarray
) -> GapsOfClusters:
    """Compare the gaps of rows with their clusters.

    Parameters
    ----------
    donors : Donors
        Some rows of the fit, with their gaps.
    names : sequence of str
        Names of the columns.
    labels : ndarray of shape (m,), int
        Clusters of these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.gap_clusters import gaps_of_clusters
    >>> from mmcnb.columns.gaps import make_donors
    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> rows[:200, 0] = np.nan
    >>> donors = make_donors(rows, [None, None])
    >>> found = gaps_of_clusters(donors, ["a", "b"], np.arange(400) // 200)
    >>> found.rows, found.names
    ([{'column': 'a', 'share': 0.5, 'clusters': [1.0, 0.0]}], ['a'])
    """
    is_gap = np.isnan(donors.rows)
    with_gaps = np.flatnonzero(is_gap.any(axis=0)).tolist()
    sizes = np.bincount(labels, minlength=labels.max() + 1)
    rows = []
    for k in with_gaps:
        n_gaps = np.bincount(labels, is_gap[:, k], sizes.size)
        of_clusters = n_gaps / np.maximum(sizes, 1)
        rows.append(
            {
                "column": names[k],
                "share": round(float(is_gap[:, k].mean()), 3),
                "clusters": of_clusters.round(3).tolist(),
            }
        )
    total = entropy(sizes)
    if total == 0:
        return GapsOfClusters(rows)
    told = {}
    for k in with_gaps:
        told[k] = mutual_info_score(labels, is_gap[:, k]) / total
    leading = sorted(told, key=lambda k: -told[k])[:2]
    for size in range(1, len(leading) + 1):
        for chosen in combinations(leading, size):
            codes = is_gap[:, list(chosen)] @ (1 << np.arange(size))
            share = float(mutual_info_score(labels, codes) / total)
            if share > ALONE and _others_tell(donors, labels, chosen) < OTHERS:
                return GapsOfClusters(rows, [names[k] for k in chosen], share)
    return GapsOfClusters(rows)


def _others_tell(donors: Donors, labels: np.ndarray, chosen: Sequence[int]) -> float:
    """Return the largest share of the labels that the values of other columns tell."""
    shares = [0.0]
    for k, values in enumerate(donors.rows.T):
        is_known = ~np.isnan(values)
        known = values[is_known]
        clusters = labels[is_known]
        if k in chosen or np.unique(clusters).size < 2:
            continue
        if donors.steps[k] > 0:
            shares.append(
                mutual_info_score(clusters, known) / entropy(np.bincount(clusters))
            )
            continue
        ranks = rankdata(known)
        means = np.bincount(clusters, ranks) / np.maximum(np.bincount(clusters), 1)
        variance = ranks.var()
        if variance > 0:
            shares.append(float(means[clusters].var() / variance))
    return max(shares)
