"""The Nyström map: landmarks, kernel values against them, and coordinates with their inner products."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.features.kernel import FEATURE_DTYPE, Kernel, KernelSamples
from mmcnb.features.rules import Scores
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix


def normalization_of(gram: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """M with M M' the pseudo-inverse of a kernel matrix; tiny eigenvalues are dropped."""
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
        """Mean z of each cluster, from sums of features; that of an empty cluster is 0."""
        filled = np.maximum(sizes, np.finfo(float).tiny)
        return np.where(sizes[:, None] > 0, row_sums / filled[:, None] @ self.matrix - self.centre, 0.0)

    def scores(self, means: np.ndarray, shares: np.ndarray | None = None) -> Scores:
        """Scores of clusters: the nearest mean; with shares given z·S_h, for size constraints.

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


def check_places(n_places: int, n_clusters: int) -> None:
    """Refuse more clusters than rows that differ."""
    if n_places < n_clusters:
        raise InputError(
            f"the sample has {n_places} rows that differ, fewer than n_clusters={n_clusters}; "
            "give fewer clusters, or a larger sample_size."
        )


SMALLEST_EIGENVALUE = 1e-7  # of the landmarks' kernel matrix, as a share of the largest: rounding of float32


def kernel_values(sample: Any, kernel: Kernel, basis: np.ndarray, dtype: Any = FEATURE_DTYPE) -> np.ndarray:
    """Kernel values of rows in memory, dense or CSR, against basis vectors."""
    rows = KernelSamples(open_samples(sample), kernel.against(basis), dtype)
    return np.asarray(rows.block(0, rows.n_samples))


def landmark_values(sample: Any, kernel: Kernel, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values of rows against landmarks, and M with MM' the inverse of those between landmarks."""
    values, basis = kernel_values(sample, kernel, basis).astype(np.float64), basis.astype(np.float64)
    return values, normalization_of(kernel(basis, basis), SMALLEST_EIGENVALUE)


PROJECTED_COLUMNS = 64  # k-means++ sees the distances of more columns through so many random ones


def choose_landmarks(
    X: Any, n_landmarks: int, random_state: np.random.RandomState, weights: np.ndarray | None = None
) -> np.ndarray:
    """Basis vectors by k-means++ on a sample.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        The sample.
    n_landmarks : int
        Basis vectors wanted; fewer are returned where fewer rows differ.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.

    Returns
    -------
    ndarray of shape (p, d)
        Rows of the sample, all different.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import choose_landmarks
    >>> choose_landmarks(np.array([[0.0], [9.0], [0.0]]), 3, np.random.RandomState(0)).ravel().tolist()
    [0.0, 9.0]
    """
    import scipy.sparse as sp
    from sklearn.cluster import kmeans_plusplus

    if n_landmarks < X.shape[0]:
        weights = np.ones(X.shape[0]) if weights is None else weights
        points = _few_columns(X, random_state)
        _, rows = kmeans_plusplus(points, n_landmarks, sample_weight=weights, random_state=random_state)
    else:
        rows = np.arange(X.shape[0])
    chosen = X[np.sort(rows)]
    dense = chosen.toarray() if sp.issparse(chosen) else np.asarray(chosen)
    _, first = np.unique(dense, axis=0, return_index=True)
    return np.ascontiguousarray(dense[np.sort(first)])


def _few_columns(X: Any, random_state: np.random.RandomState) -> np.ndarray:
    """The rows with their distances nearly kept, as dense float64, for which many distances cost least."""
    from sklearn.random_projection import SparseRandomProjection

    if X.shape[1] > PROJECTED_COLUMNS:
        projection = SparseRandomProjection(PROJECTED_COLUMNS, dense_output=True, random_state=random_state)
        X = projection.fit_transform(X)
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
