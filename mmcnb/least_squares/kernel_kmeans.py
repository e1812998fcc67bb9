"""Kernel k-means: the passes of Lloyd's algorithm in landmark coordinates.

In the coordinates z(x) = κ(x) M - c of landmark features, each row is an explicit
vector, so ordinary k-means runs on these vectors. The nearest mean m_h has the largest
score z·m_h - |m_h|²/2. A pass returns k (p + 1) numbers, and no array of size n.
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
    """Pass that labels rows by the nearest mean, and sums the features per cluster.

    Parameters
    ----------
    total_variance_of : RidgeMap or None, default=None
        Map to z. If given, the pass also sums |z|² over all rows. This sum is the same
        in every pass, so only the first pass computes it.
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
    """The state of k-means after a pass.

    Parameters
    ----------
    rule : Scores
        Rule that labelled the rows in this pass, by the previous means.
    means : ndarray of shape (k, r)
        Updated means: mean z of each cluster of this pass.
    sizes : ndarray of shape (k,)
        Weight of each cluster.
    inertia : float
        Σ|z - m|² over the rows, where m is the updated mean of the row's cluster.
    n_iter : int
        Number of passes so far.
    converged : bool
        Whether the means did not change, or the inertia decreased by less than the
        tolerance.
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
    """Run passes of k-means, and yield the state after each pass.

    Clusters are numbered by their first rows. A cluster that loses all its rows keeps
    its mean.

    Parameters
    ----------
    run : callable
        Runs a pass over the rows and returns its total.
    mapped : RidgeMap
        Map from features to z.
    means : ndarray of shape (k, r)
        Initial means, in the coordinates z.
    weights : ndarray of shape (n,) or None
        Sample weights. If None, all weights are equal.
    max_iter : int
        Maximum number of passes.
    tol : float
        The passes end when the inertia decreases by less than this fraction. If ``tol``
        is 0, they end when the means no longer change.

    Yields
    ------
    Means
        State after each pass.
    """
    total_variance = 0.0
    before = np.inf
    for number in range(max_iter):
        # Σ|z|² does not change, so it is computed only in the first pass.
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
    """Distances of rows to the means in feature space.

    Parameters
    ----------
    rule : Scores
        The scores z·m - |m|²/2 of the means m.
    mapped : RidgeMap
        Map from features to z.
    """

    rule: Scores
    mapped: RidgeMap

    def decide(self, rows: Block) -> np.ndarray:
        """Return the distances of a block of features, of shape (rows, k)."""
        norms = (self.mapped.decide(rows) ** 2).sum(axis=1)
        return np.sqrt(np.maximum(0.0, norms[:, None] - 2 * self.rule.decide(rows)))
