"""Principal axes of features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.features.nystroem import RidgeMap
from mmcnb.samples.matrix import row_shares

SMALLEST_VARIANCE = 1e-12  # of an axis, as a share of the largest: below is rounding


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
        """J of a partition at a ridge; clusters without rows count for nothing."""
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
    >>> from mmcnb.features.principal import principal_features
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


def ridge_map(features: PrincipalFeatures, normalization: np.ndarray, alpha: float) -> RidgeMap:
    """The map of landmark features whose principal axes are known.

    Parameters
    ----------
    features : PrincipalFeatures
        Principal axes of the rows of a sample, in the coordinates ``κ(x) @ normalization``.
    normalization : ndarray of shape (p, r)
        W with WW' the inverse of the kernel matrix of the landmarks.
    alpha : float
        Ridge a row.

    Returns
    -------
    RidgeMap
        M and c.
    """
    axes = features.axes / np.sqrt(features.variances + alpha)
    return RidgeMap(np.ascontiguousarray(normalization @ axes), features.mean @ axes)


def total_variance_of(z: Any, weights: np.ndarray | None) -> float:
    """Mean squared distance of the rows from their mean in feature space, trace(K̃)/n."""
    shares = row_shares(z.shape[0], weights)
    squares = z.multiply(z) if hasattr(z, "multiply") else z * z
    centre = np.asarray(shares @ z).ravel()
    return float(np.asarray(shares @ squares).sum() - centre @ centre)


MANY_COLUMNS = 1000  # beyond, the leading components come from products alone


def principal_directions(z: Any, count: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Scores of the rows on the leading principal components of their features, dense or CSR.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.principal import principal_directions
    >>> principal_directions(np.array([[0.0, 0.0], [2.0, 0.0]]), 1).shape
    (2, 1)
    """
    from scipy.linalg import eigh
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import LinearOperator, eigsh

    shares = row_shares(z.shape[0], weights)
    mean, size = np.asarray(shares @ z).ravel(), z.shape[1]
    count = min(count, size)
    if size <= MANY_COLUMNS:
        weighted = diags_array(shares) @ z
        covariance = np.asarray((weighted.T @ z).todense() if hasattr(z, "todense") else weighted.T @ z)
        _, vectors = eigh(covariance - np.outer(mean, mean), subset_by_index=[size - count, size - 1])
    else:
        covariance = LinearOperator(
            (size, size), lambda v: z.T @ (shares * (z @ v.ravel())) - mean * (mean @ v)
        )
        _, vectors = eigsh(covariance, count, v0=np.ones(size))
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(count)])
    return np.asarray(z @ vectors) - mean @ vectors
