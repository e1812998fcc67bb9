"""The Nyström map: landmarks, the normalization of their kernel matrix, and principal axes of features."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mmcnb.errors import InputError
from mmcnb.features.kernel import FEATURE_DTYPE, Kernel
from mmcnb.features.rules import Scores
from mmcnb.graph.nodes import distinct_rows, finite
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.derived import Scaling, scaled_matrix
from mmcnb.samples.matrix import (
    WIDE_COLUMNS,
    as_matrix,
    row_shares,
    to_dense,
    with_fixed_signs,
)


def normalization_of(
    gram: np.ndarray, tolerance: float = 1e-6, dtype: Any = np.float64
) -> np.ndarray:
    """M with M M' the pseudo-inverse of a kernel matrix; tiny eigenvalues are dropped.

    Raises
    ------
    InputError
        The values lie at the ends of the range of a type, in which those of the rows
        are computed.
    """
    held = np.finfo(dtype)
    largest = np.abs(gram).max()
    if largest and not held.tiny < largest < held.max * held.eps:
        raise InputError(
            "kernel values overflow or underflow; scale the columns, as scale='standard' does."
        )
    values, vectors = np.linalg.eigh(gram)
    keep = values > tolerance * values[-1]
    return np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))


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
        """Mean z of each cluster, from the sums of its features; 0 for an empty cluster."""
        filled = np.maximum(sizes, np.finfo(float).tiny)
        return np.where(
            sizes[:, None] > 0,
            row_sums / filled[:, None] @ self.matrix - self.centre,
            0.0,
        )

    def scores(self, means: np.ndarray, shares: np.ndarray | None = None) -> Scores:
        """Scores of clusters: the nearest mean, or z·S_h where shares are given, for size constraints.

        Parameters
        ----------
        means : ndarray of shape (k, r)
            C_h.
        shares : ndarray of shape (k,) or None, default=None
            Proportions of the clusters, n_h/n.

        Returns
        -------
        Scores
            The scores, without multipliers of size constraints.
        """
        if shares is None:
            return Scores(
                self.matrix @ means.T, means @ self.centre + (means**2).sum(axis=1) / 2
            )
        scaled = means * shares[:, None]
        return Scores(self.matrix @ scaled.T, scaled @ self.centre)


def landmark_values(
    sample: Any, kernel: Kernel, basis: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values of rows against landmarks, and their normalization M (see `normalization_of`)."""
    values = kernel(sample, basis, FEATURE_DTYPE).astype(np.float64)
    basis = basis.astype(np.float64)
    # Smaller eigenvalues, relative to the largest, are rounding of float32.
    return values, normalization_of(kernel(basis, basis), 1e-7, FEATURE_DTYPE)


PROJECTED_COLUMNS = 64  # k-means++ projects more columns to so many at random


def choose_landmarks(
    X: Any,
    n_landmarks: int,
    random_state: np.random.RandomState,
    weights: np.ndarray | None = None,
    may_be_sparse: bool = False,
) -> Any:
    """Basis vectors by k-means++ on a sample.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        The sample.
    n_landmarks : int
        Number of basis vectors; fewer where there are fewer distinct rows.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    may_be_sparse : bool, default=False
        Whether vectors of very many columns stay sparse where the rows are.

    Returns
    -------
    ndarray or csr_array of shape (p, d)
        Distinct rows of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import choose_landmarks
    >>> choose_landmarks(np.array([[0.0], [9.0], [0.0]]), 3, np.random.RandomState(0)).ravel().tolist()
    [0.0, 9.0]
    """
    from sklearn.cluster import kmeans_plusplus

    if n_landmarks < X.shape[0]:
        points = _few_columns(X, random_state)
        _, rows = kmeans_plusplus(
            points, n_landmarks, sample_weight=weights, random_state=random_state
        )
    else:
        rows = np.arange(X.shape[0])
    chosen = X[np.sort(rows)]
    if may_be_sparse and issparse(chosen) and X.shape[1] > WIDE_COLUMNS:
        chosen.eliminate_zeros()
    else:
        chosen = to_dense(chosen)
    return distinct_rows(chosen)[0]


@finite
def _few_columns(X: Any, random_state: np.random.RandomState) -> np.ndarray:
    """The rows as dense float64 with few columns, which nearly preserve their distances."""
    from sklearn.random_projection import SparseRandomProjection

    if X.shape[1] > PROJECTED_COLUMNS:
        projection = SparseRandomProjection(
            PROJECTED_COLUMNS, dense_output=True, random_state=random_state
        )
        X = projection.fit_transform(X)
    # One layout: by the layout of its factors, a product rounds equal rows differently.
    return to_dense(X, np.float64)


def check_landmarks(landmarks: Any) -> np.ndarray:
    """Landmarks that a user gives, as an array of finite numbers."""
    rows = plain_values(landmarks, "landmarks").astype(np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2:
        raise InputError(
            f"landmarks have shape {rows.shape}; give at least two rows, (p, n_features)."
        )
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"landmarks hold {rows[row, column]} in row {row}, column {column}; leave it out."
        )
    return rows


def scaled_landmarks(
    landmarks: Any, sample: Any, scaling: Scaling | None
) -> np.ndarray:
    """Landmarks that a user gives, scaled as the sample is, in its type; repeated ones count once.

    Raises
    ------
    InputError
        If they have other columns than the sample.
    """
    rows = check_landmarks(landmarks)
    if rows.shape[1] != sample.shape[1]:
        fault = f"landmarks have {rows.shape[1]} columns where the rows have {sample.shape[1]}"
        raise InputError(f"{fault}; give landmarks with the columns of the rows.")
    if hasattr(sample, "indptr") and scaling is not None:
        scaling = replace(
            scaling, mean=np.zeros_like(scaling.mean)
        )  # sparse columns are not centred
    return distinct_rows(scaled_matrix(rows.astype(sample.dtype, order="C"), scaling))[
        0
    ]


SMALLEST_VARIANCE = 1e-12  # of an axis, as a share of the largest; less is rounding


@dataclass(frozen=True)
class PrincipalFeatures:
    """Rows in centred features along principal axes.

    Parameters
    ----------
    z : ndarray of shape (m, r), float64
        The rows.
    variances : ndarray of shape (r,), float64
        Mean square of each column, in falling order.
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
        """Squared factors from z to the features of the ridge: 1/(n (e_j + alpha)), or 1 for alpha = ∞."""
        if np.isinf(alpha):
            return np.ones_like(self.variances)
        return 1 / (self.total * (self.variances + alpha))

    def smoother(self, alpha: float) -> np.ndarray:
        """The matrix that maps labels to fitted values, of the rows without their weights.

        Parameters
        ----------
        alpha : float
            Ridge per row.

        Returns
        -------
        ndarray of shape (m, m)
            That of `mmcnb.least_squares.objective.smoother` for the centred inner
            products, by a product with few columns in place of an inverse.
        """
        scaled = self.z * np.sqrt(self.scales(alpha))
        return np.asarray(scaled @ scaled.T)

    def sums(
        self, labels: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted sum of the rows z of each cluster, of shape (k, r), and the weight of each cluster."""
        return kernels.cluster_row_sums(self.z, labels, n_clusters, self.weights)

    def objective(self, labels: np.ndarray, n_clusters: int, alpha: float) -> float:
        """J of a partition at a ridge; empty clusters add nothing."""
        S, sizes = self.sums(labels, n_clusters)
        filled = sizes > 0
        return float(((S[filled] ** 2 @ self.scales(alpha)) / sizes[filled]).sum())


def principal_features(
    features: np.ndarray, weights: np.ndarray | None = None
) -> PrincipalFeatures:
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
        Rows along the axes. Axes without variance are dropped; the largest entry of
        each axis is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_features
    >>> principal_features(np.array([[1.0, 5.0], [3.0, 5.0]])).z.tolist()
    [[-1.0], [1.0]]
    """
    features = np.asarray(features, np.float64)
    weights = (
        np.ones(features.shape[0])
        if weights is None
        else np.asarray(weights, np.float64)
    )
    shares = weights / weights.sum()
    mean = shares @ features
    centred = features - mean
    variances, axes = np.linalg.eigh((centred * shares[:, None]).T @ centred)
    variances = variances[::-1]
    axes = axes[:, ::-1]
    nonzero = variances > SMALLEST_VARIANCE * max(variances[0], np.finfo(float).tiny)
    axes = with_fixed_signs(axes[:, nonzero])
    z = np.ascontiguousarray(centred @ axes)
    return PrincipalFeatures(z, shares @ z**2, mean, axes, weights)


def total_variance_of(z: Any, weights: np.ndarray | None) -> float:
    """Mean squared distance of the rows from their mean in feature space, trace(K̃)/n."""
    shares = row_shares(z.shape[0], weights)
    centre = shares @ z
    return float((shares @ (z * z)).sum() - centre @ centre)


MANY_COLUMNS = 1000  # beyond it an iterative solver finds the leading components


def principal_directions(
    z: Any, count: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Scores of the rows on the leading principal components of their features, dense or CSR.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_directions
    >>> principal_directions(np.array([[0.0, 0.0], [2.0, 0.0]]), 1).shape
    (2, 1)
    """
    if z.shape[1] > MANY_COLUMNS:
        return _scores_by_rows(z, row_shares(z.shape[0], weights), min(count, *z.shape))
    return principal_features(to_dense(z), weights).z[:, :count]


def _scores_by_rows(z: Any, shares: np.ndarray, count: int) -> np.ndarray:
    """The same from the inner products of the rows: no more than a few vectors of the columns are held."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    m = z.shape[0]
    roots = np.sqrt(shares)
    mean = shares @ z

    def axis_of(u: np.ndarray) -> np.ndarray:
        return np.asarray(z.T @ (roots * u) - mean * (roots @ u))

    def product(u: np.ndarray) -> np.ndarray:
        axis = axis_of(u.ravel())
        return np.asarray(roots * (z @ axis - mean @ axis))

    gram = LinearOperator((m, m), product, dtype=np.float64)
    few = m <= 2 * count + 1
    values, vectors = (
        np.linalg.eigh(gram @ np.eye(m))
        if few
        else eigsh(gram, count, v0=np.arange(1.0, m + 1))
    )
    scores = np.zeros((m, count))
    for k in range(count):
        if values[-1 - k] > 1e-14 * values[-1]:  # less is rounding
            axis = axis_of(vectors[:, -1 - k])
            axis = with_fixed_signs(axis[:, None] / np.linalg.norm(axis))[:, 0]
            scores[:, k] = z @ axis - mean @ axis
    return scores
