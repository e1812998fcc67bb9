"""Starting labels and landmarks, from a sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mmcnb.solvers import GivenLabels, coin_flip, row_shares

INITS = ("mixed", "random", "k-means")
PROJECTED_COLUMNS = 64  # k-means++ sees the distances of more columns through so many random ones
MANY_COLUMNS = 1000  # beyond, the leading components come from products alone


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
    >>> from mmcnb.selection import choose_landmarks
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


def principal_directions(z: Any, count: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Scores of the rows on the leading principal components of their features, dense or CSR.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.selection import principal_directions
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


def starting_labels(
    init: str,
    n_init: int,
    z: Any,
    random_state: np.random.RandomState,
    weights: np.ndarray | None = None,
) -> Iterator[GivenLabels]:
    """Starting labels of a sample.

    Parameters
    ----------
    init : {"mixed", "random", "k-means"}
        "mixed" is a coin flip and the signs of the first three kernel principal components, then
        further coin flips with a k-means among them.
    n_init : int
        How many.
    z : ndarray of shape (n, r)
        The sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.

    Yields
    ------
    GivenLabels
        Labels -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.selection import starting_labels
    >>> len(list(starting_labels("mixed", 2, np.arange(8.0)[:, None], np.random.RandomState(0))))
    2
    """
    directions = principal_directions(z, 3, weights) if init == "mixed" else np.empty((z.shape[0], 0))
    for number in range(n_init):
        if 1 <= number <= directions.shape[1]:
            score = directions[:, number - 1]
            yield GivenLabels(np.where(score >= 0, 1, -1).astype(np.int8))
        elif init == "k-means" or (init == "mixed" and number == 5):
            yield _kmeans_labels(z, random_state, weights)
        else:
            yield coin_flip(z.shape[0], random_state)


def _kmeans_labels(z: Any, random_state: np.random.RandomState, weights: np.ndarray | None) -> GivenLabels:
    from sklearn.cluster import KMeans

    model = KMeans(2, n_init=1, random_state=random_state.randint(2**31 - 1)).fit(z, sample_weight=weights)
    return GivenLabels(np.where(model.labels_ == 1, 1, -1).astype(np.int8))
