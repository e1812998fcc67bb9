"""Least squares clustering in landmark features: sizes held by multipliers, and a falling ridge.

Features are centred and rotated to their principal axes, of variances e_j, where the ridge is diagonal:
z'_j = z_j / sqrt(n (e_j + lt)) for the ridge λ = lt n, and R = Z'Z''. At an infinite ridge the labels climb
Σ|S_h|² over plain features, one smooth hill reached from a coin flip; as the ridge falls they follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmcnb import kernels
from mmcnb.solvers.rls import Partition

RIDGE_PATH = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3)  # λ/n
ROUNDS = 12  # label steps at one ridge
SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True)
class PrincipalFeatures:
    """Rows in centred features along principal axes.

    Parameters
    ----------
    z : ndarray of shape (m, r), float64
        The rows.
    variances : ndarray of shape (r,), float64
        Mean square of each column, falling.
    mean : ndarray of shape (p,)
        Mean of the given features.
    axes : ndarray of shape (p, r)
        ``z = (features - mean) @ axes``.
    weights : ndarray of shape (m,), float64
        Weights of the rows.
    """

    z: np.ndarray
    variances: np.ndarray
    mean: np.ndarray
    axes: np.ndarray
    weights: np.ndarray

    @property
    def total(self) -> float:
        """Sum of the weights: n."""
        return float(self.weights.sum())

    def scales(self, alpha: float) -> np.ndarray:
        """Squares of what turns z into the ridge's features z': 1/(n (e_j + alpha)), or 1 for alpha = ∞."""
        return (
            np.ones_like(self.variances) if np.isinf(alpha) else 1 / (self.total * (self.variances + alpha))
        )

    def sums(self, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """Weighted sums of the rows z of each cluster, of shape (k, r), and its weight."""
        return kernels.cluster_row_sums(self.z, labels, n_clusters, self.weights)

    def objective(self, labels: np.ndarray, n_clusters: int, alpha: float) -> float:
        """J of a division at a ridge; clusters without rows count for nothing."""
        S, sizes = self.sums(labels, n_clusters)
        filled = sizes > 0
        return float(((S[filled] ** 2 @ self.scales(alpha)) / sizes[filled]).sum())


def principal_features(features: np.ndarray, weights: np.ndarray | None = None) -> PrincipalFeatures:
    """Centre features and rotate them to their principal axes.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Rows in coordinates in which the kernel is an inner product.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights.

    Returns
    -------
    PrincipalFeatures
        Axes without variance are dropped; the largest entry of each axis is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import principal_features
    >>> principal_features(np.array([[1.0, 5.0], [3.0, 5.0]])).z.tolist()
    [[-1.0], [1.0]]
    """
    features = np.asarray(features, np.float64)
    weights = np.ones(features.shape[0]) if weights is None else np.asarray(weights, np.float64)
    shares = weights / weights.sum()
    mean = shares @ features
    centred = features - mean
    variances, axes = np.linalg.eigh((centred * shares[:, None]).T @ centred)
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = variances > SMALLEST_VARIANCE * max(variances[0], np.finfo(float).tiny)
    axes = axes[:, kept]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    z = np.ascontiguousarray(centred @ axes)
    return PrincipalFeatures(z, shares @ z**2, mean, axes, weights)


def held_step(
    features: PrincipalFeatures,
    labels: np.ndarray,
    alpha: float,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One label step with sizes held: argmax over h of z'·S'_h - b_h, and the multipliers b.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import held_step, principal_features
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
    >>> held_step(rows, np.array([0, 1, 1, 1]), 0.1, two, two)[0].tolist()
    [0, 0, 1, 1]
    """
    S, _ = features.sums(labels, low.shape[0])
    scores = features.z @ (S * features.scales(alpha)).T
    start = np.zeros(low.shape[0]) if start is None else start
    multipliers = kernels.size_multipliers(scores, low, high, features.weights, start)
    return (scores - multipliers).argmax(axis=1), multipliers


def free_step(features: PrincipalFeatures, labels: np.ndarray, n_clusters: int, alpha: float) -> np.ndarray:
    """One Lloyd step: each row to the nearest mean in z'; clusters without rows stay so.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import free_step, principal_features
    >>> rows = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> free_step(rows, np.array([0, 1, 1, 1]), 2, 0.1).tolist()
    [0, 0, 1, 1]
    """
    S, sizes = features.sums(labels, n_clusters)
    scales = features.scales(alpha)
    means = S / np.maximum(sizes, np.finfo(float).tiny)[:, None]
    offsets = np.where(sizes > 0, means**2 @ scales / 2, np.inf)
    return (features.z @ (means * scales).T - offsets).argmax(axis=1)


def ridge_path(
    features: PrincipalFeatures,
    labels: np.ndarray,
    n_clusters: int,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    path: Sequence[float] = RIDGE_PATH,
    rounds: int = ROUNDS,
) -> Partition:
    """Labels followed from a large ridge to a small one.

    Parameters
    ----------
    features : PrincipalFeatures
        The rows.
    labels : ndarray of shape (m,), int
        Where to start: a coin flip will do.
    n_clusters : int
        Number of clusters, k.
    bounds : pair of ndarray of shape (k,), or None, default=None
        Least and most rows (or weight) of each cluster; None leaves sizes free, by Lloyd steps.
    path : sequence of float, default=RIDGE_PATH
        Falling ridges per row, λ/n, from infinity.
    rounds : int, default=12
        Most label steps at each.

    Returns
    -------
    Partition
        The labels at the end of the path, with J at its last ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import principal_features, ridge_path
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
    >>> ridge_path(rows, np.array([0, 1, 1, 1]), 2, (two, two)).labels.tolist()
    [0, 0, 1, 1]
    """
    for alpha in path:
        multipliers = None
        for _ in range(rounds):
            if bounds is None:
                new = free_step(features, labels, n_clusters, alpha)
            else:
                new, multipliers = held_step(features, labels, alpha, *bounds, multipliers)
            settled = np.array_equal(new, labels)
            labels = new
            if settled:
                break
    return Partition(labels, features.objective(labels, n_clusters, path[-1]))
