"""Kernel k-means: Lloyd's passes in landmark coordinates, and pseudo-centres.

In the coordinates z(x) = κ(x) M - c of landmark features k-means is exact, as each z is an explicit vector,
and a nearest mean is a largest score: z·m_h - |m_h|²/2. A pass keeps k (p + 1) numbers, nothing of size n.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.passes import WeightedPass
from mmcnb.features.nystroem import RidgeMap
from mmcnb.features.rules import Scores
from mmcnb.least_squares.all_rows import LabelSumsPass


@dataclass(frozen=True)
class MeanSumsPass(LabelSumsPass):
    """Label rows by the nearest mean and sum their features by cluster, in the first pass also Σ|z|².

    Parameters
    ----------
    total_variance_of : RidgeMap or None, default=None
        Gives z; None leaves Σ|z|² out, as it is the same in every pass.
    """

    total_variance_of: RidgeMap | None = None

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        sums, sizes, _, *rest = super().block(rows, start, stop)
        total_variance = 0.0
        if self.total_variance_of is not None:
            norms = (self.total_variance_of.decide(rows) ** 2).sum(axis=1)
            total_variance = float(norms.sum() if self.weights is None else self.weights[start:stop] @ norms)
        return [sums, sizes, total_variance, *rest]


@dataclass(frozen=True)
class Means:
    """Means, and the clusters of rows nearest to those before them.

    Parameters
    ----------
    rule : Scores
        Labels the rows.
    means : ndarray of shape (k, r)
        Mean z of each cluster under the rule.
    sizes : ndarray of shape (k,)
        Weight of each.
    row_sums : ndarray of shape (k, p)
        Sum of the features of each.
    inertia : float
        Σ|z - m|² over the rows, m the mean of their cluster.
    n_iter : int
        Passes.
    converged : bool
        Whether the means stand still, or the inertia nearly so.
    """

    rule: Scores
    means: np.ndarray
    sizes: np.ndarray
    row_sums: np.ndarray
    inertia: float
    n_iter: int
    converged: bool


def lloyd(
    run: Callable[[LabelSumsPass], list[Any]],
    mapped: RidgeMap,
    means: np.ndarray,
    weights: np.ndarray | None,
    max_iter: int,
    tol: float,
) -> Iterator[Means]:
    """Passes of k-means, after each of which the means are renewed.

    Clusters are numbered by their first rows. One that loses all its rows keeps its mean.

    Parameters
    ----------
    run : callable
        Runs a pass over the rows and returns its total.
    mapped : RidgeMap
        From features to z.
    means : ndarray of shape (k, r)
        The means to start from.
    weights : ndarray of shape (n,) or None
        Sample weights.
    max_iter : int
        Most passes.
    tol : float
        The last pass is the one in which the inertia falls by no more than this share; at 0 only means
        that stand still end the passes.

    Yields
    ------
    Means
        After each pass; the last one belongs to the labels of its rule.
    """
    total_variance, before = 0.0, np.inf
    for number in range(max_iter):
        sweep = MeanSumsPass(weights, mapped.scores(means), None, None if number else mapped)
        row_sums, sizes, found, first, _ = run(sweep)
        order = np.argsort(first, kind="stable")
        rule, row_sums, sizes, means = sweep.rule.ordered(order), row_sums[order], sizes[order], means[order]
        renewed = np.where(sizes[:, None] > 0, mapped.means(row_sums, sizes), means)
        total_variance += found
        inertia = max(0.0, total_variance - float(sizes @ (renewed**2).sum(axis=1)))
        still = bool((renewed == means).all()) or before - inertia < tol * inertia
        yield Means(rule, renewed, sizes, row_sums, inertia, number + 1, still)
        if still:
            return
        means, before = renewed, inertia


@dataclass(frozen=True)
class Distances:
    """Distances to means in feature space.

    Parameters
    ----------
    rule : Scores
        Of the means: z·m - |m|²/2.
    mapped : RidgeMap
        From features to z.
    """

    rule: Scores
    mapped: RidgeMap

    def decide(self, rows: Any) -> np.ndarray:
        """Distances of a block of features, of shape (rows, k)."""
        norms = (self.mapped.decide(rows) ** 2).sum(axis=1)
        return np.sqrt(np.maximum(0.0, norms[:, None] - 2 * self.rule.decide(rows)))


@dataclass(frozen=True)
class PseudoCentrePass(WeightedPass):
    """The row of each cluster that is nearest to its mean in feature space: Yuan et al., eq. (10).

    Parameters
    ----------
    rule : Scores
        Labels the rows.
    coef : ndarray of shape (k, p)
        What the features of a row of a cluster are multiplied with.
    mapped : RidgeMap or None, default=None
        Gives z, of which |z|²/2 is taken off; None where K(x, x) is the same for all rows.
    """

    rule: Scores
    coef: np.ndarray
    mapped: RidgeMap | None = None

    def start(self) -> list[Any]:
        """Nothing yet: largest value of each cluster, and its row, -1 where there is none."""
        k = self.coef.shape[0]
        return [np.full(k, -np.inf), np.full(k, -1)]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """The rows of one block, of equal ones the first; rows of weight 0 are left out."""
        labels, (best, row) = self.rule.label(rows), self.start()
        values = np.einsum("ij,ij->i", rows, self.coef[labels])
        if self.mapped is not None:
            values -= (self.mapped.decide(rows) ** 2).sum(axis=1) / 2
        candidates = np.flatnonzero(self.weights_of(start, stop) > 0)
        ranked = candidates[np.lexsort((candidates, -values[candidates], labels[candidates]))]
        clusters, first = np.unique(labels[ranked], return_index=True)
        best[clusters], row[clusters] = values[ranked[first]], start + ranked[first]
        return [best, row]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """The rows of both; of equal ones the first."""
        larger = other[0] > total[0]
        return [np.where(larger, new, old) for new, old in zip(other, total, strict=True)]


def pseudo_centre_pass(
    found: Means, mapped: RidgeMap, weights: np.ndarray | None, same_norms: bool = True
) -> PseudoCentrePass:
    """The pass that finds the pseudo-centres of clusters.

    Parameters
    ----------
    found : Means
        The clusters.
    mapped : RidgeMap
        From features to z.
    weights : ndarray of shape (n,) or None
        Sample weights; rows of weight 0 are no candidates.
    same_norms : bool, default=True
        Whether K(x, x) is the same for all rows, so that the largest Σ_j K(x_i, x_j) is the nearest row;
        otherwise the distances to the means are compared.

    Returns
    -------
    PseudoCentrePass
        Its total is the value and the row number of each cluster; the value is Σ_j K(x_i, x_j) in
        landmark features where norms are the same.
    """
    z = found.row_sums @ mapped.matrix if same_norms else found.means
    coef = np.ascontiguousarray(z @ mapped.matrix.T)
    return PseudoCentrePass(weights, found.rule, coef, None if same_norms else mapped)
