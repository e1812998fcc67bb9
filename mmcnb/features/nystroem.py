"""The Nyström map: landmarks, normalization, and principal axes of the features."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike
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
    Block,
    Matrix,
    Weights,
    as_matrix,
    row_shares,
    to_dense,
    with_fixed_signs,
)

PROJECTED_COLUMNS = 64  # k-means++ runs on a random projection to this many columns
SMALLEST_VARIANCE = 1e-12  # axes below this fraction of the largest variance are noise
# With more columns, an iterative solver computes the principal components.
MANY_COLUMNS = 1000


def normalization_of(
    gram: np.ndarray, tolerance: float = 1e-6, dtype: DTypeLike = np.float64
) -> np.ndarray:
    """Return M such that M M' is the pseudo-inverse of a kernel matrix.

    Eigenvalues below ``tolerance``, relative to the largest eigenvalue, are dropped.

    Raises
    ------
    InputError
        If the kernel values overflow or underflow in ``dtype``, in which the kernel is
        evaluated for the rows.
    """
    precision = np.finfo(dtype)
    largest = np.abs(gram).max()
    if largest and not precision.tiny < largest < precision.max * precision.eps:
        raise InputError(
            "kernel values overflow or underflow; "
            "scale the columns, as scale='standard' does."
        )
    # Run the routine as plain Python, because nearly all its time is spent in NumPy's
    # eigh, which needs no compilation. With NUMBA_DISABLE_JIT, the routine has no
    # py_func.
    plain = getattr(kernels.nystroem_map, "py_func", kernels.nystroem_map)
    return plain(gram, tolerance)


@dataclass(frozen=True)
class RidgeMap:
    """Map z = F M - c from landmark features F to coordinates z.

    In the coordinates z, the ridge matrix is the identity.

    Parameters
    ----------
    matrix : ndarray of shape (p, r)
        The matrix M.
    centre : ndarray of shape (r,)
        The mean c of F M over all rows.
    """

    matrix: np.ndarray
    centre: np.ndarray

    def decide(self, rows: Block) -> np.ndarray:
        """Return the coordinates z of a block of features."""
        return np.asarray(as_matrix(rows) @ self.matrix) - self.centre

    def means(self, row_sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the mean of z in each cluster, given the clusters' sums of features.

        The mean of an empty cluster is 0.
        """
        filled = np.maximum(sizes, np.finfo(float).tiny)
        means = row_sums / filled[:, None] @ self.matrix - self.centre
        return np.where(sizes[:, None] > 0, means, 0.0)

    def scores(self, means: np.ndarray, shares: np.ndarray | None = None) -> Scores:
        """Return the rule that assigns rows to the cluster with the nearest mean.

        With size constraints, the score of cluster h is z·C_h n_h/n instead.

        Parameters
        ----------
        means : ndarray of shape (k, r)
            Means C_h of the clusters.
        shares : ndarray of shape (k,) or None, default=None
            Proportions n_h/n of the clusters, for size constraints. If None, the
            cluster with the nearest mean has the largest score.

        Returns
        -------
        Scores
            The scores, without multipliers of size constraints.
        """
        if shares is None:
            norms = (means**2).sum(axis=1)
            return Scores(self.matrix @ means.T, means @ self.centre + norms / 2)
        scaled = means * shares[:, None]
        return Scores(self.matrix @ scaled.T, scaled @ self.centre)


def landmark_values(
    sample: Matrix, kernel: Kernel, basis: Matrix
) -> tuple[np.ndarray, np.ndarray]:
    """Return kernel values of rows against landmarks, and the normalization matrix."""
    values = kernel(sample, basis, FEATURE_DTYPE).astype(np.float64)
    basis = basis.astype(np.float64)
    # Eigenvalues below 1e-7 of the largest eigenvalue are float32 rounding errors.
    return values, normalization_of(kernel(basis, basis), 1e-7, FEATURE_DTYPE)


def choose_landmarks(
    X: Matrix,
    n_landmarks: int,
    random_state: np.random.RandomState,
    weights: Weights = None,
    may_be_sparse: bool = False,
) -> Matrix:
    """Choose landmarks from the rows of a sample by k-means++.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        The sample from which landmarks are chosen.
    n_landmarks : int
        Number of landmarks. Duplicates are removed, so there may be fewer.
    random_state : RandomState
        Random number generator.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights. If None, all weights are equal.
    may_be_sparse : bool, default=False
        Whether landmarks stay sparse if the rows are sparse and have more than
        `WIDE_COLUMNS` columns.

    Returns
    -------
    ndarray or csr_array of shape (p, d)
        Distinct rows of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import choose_landmarks
    >>> rows = np.array([[0.0], [9.0], [0.0]])
    >>> choose_landmarks(rows, 3, np.random.RandomState(0)).ravel().tolist()
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
def _few_columns(X: Matrix, random_state: np.random.RandomState) -> np.ndarray:
    """Reduce rows to at most 64 columns by a random projection."""
    from sklearn.random_projection import SparseRandomProjection

    if X.shape[1] > PROJECTED_COLUMNS:
        projection = SparseRandomProjection(
            PROJECTED_COLUMNS, dense_output=True, random_state=random_state
        )
        X = projection.fit_transform(X)
    # Always use the same memory layout. It affects the rounding of products, and equal
    # rows must stay equal.
    return to_dense(X, np.float64)


def check_landmarks(landmarks: object) -> np.ndarray:
    """Check the landmarks that a user passes, and return them as a float64 array."""
    rows = plain_values(landmarks, "landmarks").astype(np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2:
        raise InputError(
            f"landmarks have shape {rows.shape}; "
            "pass at least two rows, as an array of shape (p, n_features)."
        )
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"landmarks have {rows[row, column]} in row {row}, column {column}; "
            "leave this row out."
        )
    return rows


def scaled_landmarks(
    landmarks: object, sample: Matrix, scaling: Scaling | None
) -> np.ndarray:
    """Scale the landmarks that a user passes like the sample, and remove duplicates.

    Raises
    ------
    InputError
        If the landmarks and the sample do not have the same number of columns.
    """
    rows = check_landmarks(landmarks)
    if rows.shape[1] != sample.shape[1]:
        raise InputError(
            f"landmarks have {rows.shape[1]} columns, but the rows have "
            f"{sample.shape[1]}; pass landmarks with the same columns as the rows."
        )
    if issparse(sample) and scaling is not None:
        # Sparse columns are not centred.
        scaling = replace(scaling, mean=np.zeros_like(scaling.mean))
    scaled = scaled_matrix(rows.astype(sample.dtype, order="C"), scaling)
    return distinct_rows(scaled)[0]


@dataclass(frozen=True)
class PrincipalFeatures:
    """Rows in the coordinates of the principal axes of their features.

    Parameters
    ----------
    z : ndarray of shape (m, r), float64
        Coordinates of the rows, ``(features - mean) @ axes``.
    variances : ndarray of shape (r,), float64
        Mean square of each column of ``z``, in decreasing order.
    mean : ndarray of shape (p,)
        Mean of the features.
    axes : ndarray of shape (p, r)
        Principal axes, one per column.
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
        """Sum of the weights, n."""
        return float(self.weights.sum())

    def scales(self, alpha: float) -> np.ndarray:
        """Return the squared factors that scale z for a ridge: 1/(n (e_j + alpha)).

        Here e_j is the variance of column j of ``z``. For alpha = ∞, all factors are 1.
        """
        if np.isinf(alpha):
            return np.ones_like(self.variances)
        return 1 / (self.total * (self.variances + alpha))

    def smoother(self, alpha: float) -> np.ndarray:
        """Return the matrix that maps labels of unweighted rows to fitted values.

        Parameters
        ----------
        alpha : float
            Ridge parameter per row.

        Returns
        -------
        ndarray of shape (m, m)
            The matrix of `mmcnb.least_squares.objective.smoother` for the centred inner
            products, computed as a product with few columns instead of an inverse.
        """
        scaled = self.z * np.sqrt(self.scales(alpha))
        return np.asarray(scaled @ scaled.T)

    def sums(
        self, labels: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted sum of z and the total weight of each cluster.

        The sums have shape (k, r).
        """
        return kernels.cluster_row_sums(self.z, labels, n_clusters, self.weights)

    def objective(self, labels: np.ndarray, n_clusters: int, alpha: float) -> float:
        """Return the objective J of a partition; empty clusters contribute 0."""
        S, sizes = self.sums(labels, n_clusters)
        filled = sizes > 0
        norms = S[filled] ** 2 @ self.scales(alpha)
        return float((norms / sizes[filled]).sum())


def principal_features(
    features: np.ndarray, weights: Weights = None
) -> PrincipalFeatures:
    """Centre features and rotate them to their principal axes.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Rows in coordinates in which the kernel is the inner product.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights. If None, all weights are equal.

    Returns
    -------
    PrincipalFeatures
        Rows in the coordinates of the axes. Axes whose variance is 0 up to rounding are
        dropped. The entry of each axis with the largest absolute value is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_features
    >>> principal_features(np.array([[1.0, 5.0], [3.0, 5.0]])).z.tolist()
    [[-1.0], [1.0]]
    """
    features = np.asarray(features, np.float64)
    if weights is None:
        weights = np.ones(features.shape[0])
    weights = np.asarray(weights, np.float64)
    shares = weights / weights.sum()
    mean = shares @ features
    centred = features - mean
    covariance = (centred * shares[:, None]).T @ centred
    variances, axes = np.linalg.eigh(covariance)
    largest = max(variances[-1], np.finfo(float).tiny)
    is_kept = variances > SMALLEST_VARIANCE * largest
    axes = with_fixed_signs(axes[:, ::-1][:, is_kept[::-1]])
    z = np.ascontiguousarray(centred @ axes)
    return PrincipalFeatures(
        z=z, variances=shares @ z**2, mean=mean, axes=axes, weights=weights
    )


def total_variance_of(z: Matrix, weights: Weights) -> float:
    """Return trace(K̃)/n, the mean squared distance of the rows from their mean."""
    shares = row_shares(z.shape[0], weights)
    centre = shares @ z
    return float((shares @ (z * z)).sum() - centre @ centre)


def principal_directions(z: Matrix, count: int, weights: Weights = None) -> np.ndarray:
    """Return scores of dense or CSR rows on their leading principal components.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_directions
    >>> principal_directions(np.array([[0.0, 0.0], [2.0, 0.0]]), 1).shape
    (2, 1)
    """
    if z.shape[1] > MANY_COLUMNS:
        shares = row_shares(z.shape[0], weights)
        return _scores_by_rows(z, shares, min(count, *z.shape))
    return principal_features(to_dense(z), weights).z[:, :count]


def _scores_by_rows(z: Matrix, shares: np.ndarray, count: int) -> np.ndarray:
    """Return principal component scores without computing a covariance matrix.

    The scores are computed from inner products of rows, which needs only a few vectors
    with one entry per column in memory.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    m = z.shape[0]
    roots = np.sqrt(shares)
    mean = shares @ z

    def axis_of(u: np.ndarray) -> np.ndarray:
        """Return A'u, where A = √shares (z - mean) has one row per row of z."""
        return np.asarray(z.T @ (roots * u) - mean * (roots @ u))

    def scores_on(axis: np.ndarray) -> np.ndarray:
        return np.asarray(z @ axis - mean @ axis)

    def product(u: np.ndarray) -> np.ndarray:
        """Return A A'u."""
        return roots * scores_on(axis_of(u.ravel()))

    gram = LinearOperator((m, m), product, dtype=np.float64)
    if m <= 2 * count + 1:
        values, vectors = np.linalg.eigh(gram @ np.eye(m))
    else:
        values, vectors = eigsh(gram, count, v0=np.arange(1.0, m + 1))
    scores = np.zeros((m, count))
    rounding = 1e-14 * values[-1]
    for k in range(count):
        if values[-1 - k] <= rounding:
            continue
        axis = axis_of(vectors[:, -1 - k])
        unit = axis / np.linalg.norm(axis)
        signed = with_fixed_signs(unit[:, None])
        scores[:, k] = scores_on(signed[:, 0])
    return scores
