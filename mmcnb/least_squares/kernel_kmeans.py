"""Kernel k-means: Lloyd's passes in landmark coordinates.

In the coordinates z(x) = κ(x) M - c of landmark features k-means is exact, as each z is
an explicit vector, and a nearest mean is a largest score: z·m_h - |m_h|²/2. A pass
keeps k (p + 1) numbers, nothing of size n.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mmcnb.engine.passes import Block, Sums
from mmcnb.features.nystroem import RidgeMap
from mmcnb.features.rules import Scores
from mmcnb.least_squares.all_rows import LabelSumsPass


@dataclass(frozen=True)
class MeanSumsPass(LabelSumsPass):
    """Label rows by the nearest mean, and sum their features by cluster, and Σ|z|².

    Parameters
    ----------
    total_variance_of : RidgeMap or None, default=None
        Gives z; None leaves Σ|z|² out, as it is the same in every pass.
    """

    total_variance_of: RidgeMap | None = None

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the sums of one block."""
        sums, sizes, _, *rest = super().block(rows, start, stop)
        total_variance = 0.0
        if self.total_variance_of is not None:
            norms = (self.total_variance_of.decide(rows) ** 2).sum(axis=1)
            if self.weights is None:
                total_variance = float(norms.sum())
            else:
                total_variance = float(self.weights[start:stop] @ norms)
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
    inertia: float
    n_iter: int
    converged: bool


def lloyd(
    run: Callable[[LabelSumsPass], Sums],
    mapped: RidgeMap,
    means: np.ndarray,
    weights: np.ndarray | None,
    max_iter: int,
    tol: float,
) -> Iterator[Means]:
    """Run passes of k-means, after each of which the means are renewed.

    Clusters are numbered by their first rows. One that loses all its rows keeps its
    mean.

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
        The last pass is the one in which the inertia falls by no more than this share;
        at 0 only means that stand still end the passes.

    Yields
    ------
    Means
        After each pass; the last one belongs to the labels of its rule.
    """
    total_variance = 0.0
    before = np.inf
    for number in range(max_iter):
        # Σ|z|² is the same in every pass.
        total_variance_of = mapped if number == 0 else None
        sweep = MeanSumsPass(
            weights, mapped.scores(means), total_variance_of=total_variance_of
        )
        row_sums, sizes, squares, first, _ = run(sweep)
        order = np.argsort(first, kind="stable")
        rule = sweep.rule.ordered(order)
        row_sums = row_sums[order]
        sizes = sizes[order]
        means = means[order]
        renewed = np.where(sizes[:, None] > 0, mapped.means(row_sums, sizes), means)
        total_variance += squares
        inertia = max(0.0, total_variance - float(sizes @ (renewed**2).sum(axis=1)))
        still = bool((renewed == means).all()) or before - inertia < tol * inertia
        yield Means(
            rule=rule,
            means=renewed,
            sizes=sizes,
            inertia=inertia,
            n_iter=number + 1,
            converged=still,
        )
        if still:
            return
        means = renewed
        before = inertia


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

    def decide(self, rows: Block) -> np.ndarray:
        """Return distances of a block of features, of shape (rows, k)."""
        norms = (self.mapped.decide(rows) ** 2).sum(axis=1)
        return np.sqrt(np.maximum(0.0, norms[:, None] - 2 * self.rule.decide(rows)))
