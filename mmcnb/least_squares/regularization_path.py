"""Least squares clustering in landmark features along a regularisation path, under size constraints.

Features are centred and rotated to their principal axes, of variances e_j, where the ridge is diagonal:
z'_j = z_j / sqrt(n (e_j + lt)) for the ridge λ = lt n, and R = Z'Z''. At an infinite ridge the labels climb
Σ|S_h|² over plain features, one smooth hill reached from a coin flip; as the ridge falls they follow it.
"""

from collections.abc import Sequence

import numpy as np

from mmcnb.features.nystroem import PrincipalFeatures
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.objective import Partition

# λ/n, measured by `python -m benchmarks rls`, section "defaults"
REGULARIZATION_PATH = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3)


def size_constrained_step(
    features: PrincipalFeatures,
    labels: np.ndarray,
    alpha: float,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One label step under size constraints: argmax over h of z'·S'_h - b_h, and the multipliers b.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.regularization_path import size_constrained_step
    >>> from mmcnb.features.nystroem import principal_features
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
    >>> size_constrained_step(rows, np.array([0, 1, 1, 1]), 0.1, two, two)[0].tolist()
    [0, 0, 1, 1]
    """
    S, _ = features.sums(labels, low.shape[0])
    scores = features.z @ (S * features.scales(alpha)).T
    start = np.zeros(low.shape[0]) if start is None else start
    multipliers = kernels.size_multipliers(scores, low, high, features.weights, start)
    return (scores - multipliers).argmax(axis=1), multipliers


def regularization_path(
    features: PrincipalFeatures,
    labels: np.ndarray,
    n_clusters: int,
    bounds: tuple[np.ndarray, np.ndarray],
    path: Sequence[float] = REGULARIZATION_PATH,
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
    bounds : pair of ndarray of shape (k,)
        Least and most rows (or weight) of each cluster.
    path : sequence of float, default=REGULARIZATION_PATH
        Falling ridges per row, λ/n, from infinity.

    Returns
    -------
    Partition
        The labels at the end of the path, with J at its last ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_features
    >>> from mmcnb.least_squares.regularization_path import regularization_path
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
    >>> regularization_path(rows, np.array([0, 1, 1, 1]), 2, (two, two)).labels.tolist()
    [0, 0, 1, 1]
    """
    for alpha in path:
        multipliers = None
        # Most labels settle in five steps.
        for _ in range(12):
            new, multipliers = size_constrained_step(features, labels, alpha, *bounds, multipliers)
            settled = np.array_equal(new, labels)
            labels = new
            if settled:
                break
    return Partition(labels, features.objective(labels, n_clusters, path[-1]))
