"""Regularised least squares clustering in memory: smoother, objectives, size bounds.

All objectives are functions of the smoother R = K (K + λI)^-1 = ZZ' and of the sums
S_h = Σ_{i in h} z_i over the clusters h. With n rows and k clusters, the objectives are

- Q = kn - 4 Σ|S_h|² + (4 - k)|Σ_h S_h|² (Pahikkala et al.),
- F = 1 - y'Ry/n for two clusters (Gieseke et al.), and
- J = Σ|S_h|²/n_h.

If the kernel is centred, J is in [0, k - 1] and can be used to compare partitions with
different cluster sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from mmcnb.errors import InputError, shown
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.arrays import plain_values

ClusterSizes = Literal["auto", "equal"] | Sequence[float] | np.ndarray | None
Bounds = tuple[np.ndarray, np.ndarray]  # smallest and largest size of each cluster


@dataclass(frozen=True)
class Partition:
    """A partition of rows into clusters.

    Parameters
    ----------
    labels : ndarray of shape (m,), int64
        Cluster of each row, from 0.
    objective : float
        J of the partition.
    start : int
        Zero-based index of the start that found the partition.
    """

    labels: np.ndarray
    objective: float
    start: int = 0


def smoother(
    K: np.ndarray, ridge: float, centre: bool = True, overwrite: bool = False
) -> np.ndarray:
    """Return the matrix that maps labels to fitted values of kernel ridge regression.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix, symmetric.
    ridge : float
        The ridge λ, which is alpha times m.
    centre : bool, default=True
        Whether to centre the kernel, that is, to replace K by HKH. The papers do not
        centre it.
    overwrite : bool, default=False
        Whether K may be overwritten, which saves a copy.

    Returns
    -------
    ndarray of shape (m, m), float64
        R = K (K + λI)^-1, exactly symmetric and C-ordered.

    Raises
    ------
    InputError
        If λ is not positive, or K + λI is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import smoother
    >>> smoother(2 * np.eye(2), 1.0, centre=False).round(6).tolist()
    [[0.666667, 0.0], [0.0, 0.666667]]
    """
    if not ridge > 0:
        raise InputError(f"The ridge must be positive, not {ridge}.")
    if overwrite:
        A = np.asarray(K.T, np.float64, order="F")
    else:
        A = np.array(K, np.float64, order="F")
    if centre:
        means = A.mean(axis=0)
        A -= means
        A -= (means - means.mean())[:, None]
    A.flat[:: A.shape[0] + 1] += ridge
    A, failed = dpotrf(A, lower=True, clean=False, overwrite_a=True)
    if not failed:
        A, failed = dpotri(A, lower=True, overwrite_c=True)
    if failed or not np.isfinite(A.diagonal()).all():
        raise InputError(
            "The kernel matrix is not positive definite: scale the columns, or take "
            "a larger alpha."
        )
    R = A.T  # now C-ordered, with the inverse in the upper triangle
    R *= -ridge
    R.flat[:: R.shape[0] + 1] += 1.0
    for i in range(1, R.shape[0]):
        R[i, :i] = R[:i, i]
    return R


def mean_objective(R: np.ndarray, labels: np.ndarray, n_clusters: int) -> float:
    """Return J = Σ|S_h|²/n_h of a partition; empty clusters contribute 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import mean_objective
    >>> R = np.kron(np.eye(2), np.full((2, 2), 0.5))
    >>> mean_objective(R, np.array([0, 0, 1, 1]), 2)
    2.0
    """
    row_sums, counts = kernels.cluster_row_sums(
        R, labels, n_clusters, np.ones(R.shape[0])
    )
    sums = np.array([row_sums[h, labels == h].sum() for h in range(n_clusters)])
    return float((sums / np.maximum(counts, 1)).sum())


def target_shares(cluster_sizes: ClusterSizes, n_clusters: int) -> np.ndarray:
    """Return the target proportions of the clusters.

    The proportions are equal for None, "auto" and "equal".

    Examples
    --------
    >>> from mmcnb.least_squares.objective import target_shares
    >>> target_shares("equal", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if cluster_sizes is None or isinstance(cluster_sizes, str):
        if cluster_sizes not in (None, "auto", "equal"):
            raise InputError(
                f"cluster_sizes={shown(cluster_sizes)} is unknown; "
                'give "auto", "equal", None or shares.'
            )
        return np.full(n_clusters, 1 / n_clusters)
    shares = plain_values(cluster_sizes, "cluster_sizes").astype(np.float64)
    if shares.shape != (n_clusters,):
        raise InputError(
            f"cluster_sizes must have one share for each of the {n_clusters} clusters, "
            f"not {shares.size}."
        )
    if not (shares > 0).all():
        raise InputError(
            f"cluster_sizes must be positive, and {shares.min():g} is not; "
            "give shares above 0."
        )
    if not abs(shares.sum() - 1) <= 1e-6:
        raise InputError(
            f"cluster_sizes must sum to 1, not to {shares.sum():g}; "
            "divide them by their sum."
        )
    return shares / shares.sum()


def size_bounds(total: float, shares: np.ndarray, tolerance: float) -> Bounds:
    """Return the smallest and largest allowed size of each cluster, as integers.

    These are the target sizes ``total * shares``, decreased and increased by the
    fraction ``tolerance`` and rounded outwards. The smallest size is at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import size_bounds
    >>> [bound.tolist() for bound in size_bounds(100, np.array([0.5, 0.5]), 0.1)]
    [[45, 45], [55, 55]]
    """
    slack = 1e-9 * total  # rounding errors: 55.000000000000007 is rounded down to 55
    least = np.floor(total * shares * (1 - tolerance) + slack)
    most = np.ceil(total * shares * (1 + tolerance) - slack)
    low = np.maximum(1, least).astype(np.int64)
    high = np.maximum(low, most).astype(np.int64)
    if low.sum() > total + slack:
        raise InputError(
            f"{low.size} clusters of these sizes need more than {total:g} rows; "
            "give other cluster_sizes, fewer clusters, or more rows."
        )
    return low, high


def floor_bounds(total: float, n_clusters: int, min_share: float) -> Bounds:
    """Return size bounds for clusters of at least ``min_share / k`` of the rows.

    Examples
    --------
    >>> from mmcnb.least_squares.objective import floor_bounds
    >>> [bound.tolist() for bound in floor_bounds(100, 2, 0.5)]
    [[25, 25], [75, 75]]
    """
    whole = int(total * (1 + 1e-9))
    least = max(1, int(min_share * total / n_clusters))
    if least * n_clusters > whole:
        raise InputError(
            f"{n_clusters} clusters of {least} rows need more than {total:g} rows; "
            "give fewer clusters."
        )
    most = whole - least * (n_clusters - 1)
    return np.full(n_clusters, least), np.full(n_clusters, most)
