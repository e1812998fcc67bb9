"""Least squares clustering of all rows: label steps that keep k (p + 1) numbers a pass, nothing of size n.

Landmark features are brought to coordinates z(x) = κ(x) M - c in which the ridge is the identity, so that
R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of the clusters. A step labels each row by its largest
score and sums the features of each cluster; the means, and with them the next scores, follow from the sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine import as_matrix
from mmcnb.solvers.hyperplane import Scores
from mmcnb.solvers.passes import first_rows
from mmcnb.solvers.rls_path import PrincipalFeatures


@dataclass(frozen=True)
class RidgeMap:
    """From landmark features to coordinates in which the ridge is the identity.

    Parameters
    ----------
    matrix : ndarray of shape (p, r)
        M.
    centre : ndarray of shape (r,)
        c, the mean of the rows times M.
    """

    matrix: np.ndarray
    centre: np.ndarray

    def decide(self, rows: Any) -> np.ndarray:
        """z of a block of features."""
        return np.asarray(as_matrix(rows) @ self.matrix) - self.centre

    def means(self, row_sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Mean z of each cluster, from sums of features; that of an empty cluster is 0."""
        filled = np.maximum(sizes, np.finfo(float).tiny)
        return np.where(sizes[:, None] > 0, row_sums / filled[:, None] @ self.matrix - self.centre, 0.0)

    def scores(self, means: np.ndarray, shares: np.ndarray | None = None) -> Scores:
        """Scores of clusters: the nearest mean; with shares given z·S_h, for sizes that are held.

        Parameters
        ----------
        means : ndarray of shape (k, r)
            C_h.
        shares : ndarray of shape (k,) or None, default=None
            n_h/n.

        Returns
        -------
        Scores
            Without multipliers.
        """
        if shares is None:
            return Scores(self.matrix @ means.T, means @ self.centre + (means**2).sum(axis=1) / 2)
        sums = means * shares[:, None]
        return Scores(self.matrix @ sums.T, sums @ self.centre)


def ridge_map(features: PrincipalFeatures, metric: np.ndarray, alpha: float) -> RidgeMap:
    """The map of landmark features whose principal axes are known.

    Parameters
    ----------
    features : PrincipalFeatures
        Principal axes of the rows of a sample, in the coordinates ``κ(x) @ metric``.
    metric : ndarray of shape (p, r)
        W with WW' the inverse of the kernel matrix of the landmarks.
    alpha : float
        Ridge a row.

    Returns
    -------
    RidgeMap
        M and c.
    """
    axes = features.axes / np.sqrt(features.variances + alpha)
    return RidgeMap(np.ascontiguousarray(metric @ axes), features.mean @ axes)


def mean_objective_of(means: np.ndarray, sizes: np.ndarray) -> float:
    """J of clusters by their means and sizes."""
    return float(sizes @ (means**2).sum(axis=1) / sizes.sum())


def one_against_all_objective_of(means: np.ndarray, sizes: np.ndarray) -> float:
    """Q of clusters by their means and sizes: Pahikkala et al., eq. (10), with a centred kernel."""
    k, n = sizes.shape[0], sizes.sum()
    sums = means * sizes[:, None]
    return float(k * n - (4 * (sums**2).sum() - (4 - k) * (sums.sum(axis=0) ** 2).sum()) / n)


@dataclass(frozen=True)
class LabelSumsPass:
    """Label the rows and sum their features by cluster.

    Parameters
    ----------
    rule : Scores
        Labels the rows.
    before : Scores or None
        The rule of the pass before.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    rule: Scores
    before: Scores | None
    weights: np.ndarray | None

    def start(self) -> list[Any]:
        """Nothing yet: sums of features, sizes, weight of changed labels, first row of each cluster."""
        return [0.0, 0.0, 0.0, first_rows(np.empty(0, np.int64), self.rule.offset.shape[0])]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        labels = self.rule.label(rows)
        k = self.rule.offset.shape[0]
        weights = np.ones(stop - start) if self.weights is None else self.weights[start:stop]
        sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
        changed = weights if self.before is None else weights[self.before.label(rows) != labels]
        return [sums, sizes, float(changed.sum()), first_rows(labels, k, start)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        added = [a + b for a, b in zip(total[:3], other[:3], strict=True)]
        return [*added, np.minimum(total[3], other[3])]
