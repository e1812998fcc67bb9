"""Kernel k-means on the graph of nearby rows: Yuan et al., section 4.2."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import radius_neighbors_graph


class GraphClusters(NamedTuple):
    """Clusters of the nodes of a graph.

    Parameters
    ----------
    labels : ndarray of shape (n,), int32
        Cluster of each row, numbered in the order of their first rows.
    association : float
        Σ_h links(h, h) / n_h, the ratio association: eq. (5).
    converged : bool
        Whether the labels no longer changed.
    """

    labels: np.ndarray
    association: float
    converged: bool


def ball_graph(X: Any, gamma: float, least: float = 0.1) -> csr_array:
    """Return the Gaussian kernel between rows, in which values below ``least`` are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines import ball_graph
    >>> ball_graph(np.array([[0.0], [1.0], [5.0]]), gamma=1.0).toarray().round(2)
    array([[1.  , 0.37, 0.  ],
           [0.37, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    radius = np.sqrt(-np.log(least) / gamma)
    distances = radius_neighbors_graph(X, radius, mode="distance", include_self=True)
    graph = csr_array(distances)
    graph.data = np.exp(-gamma * graph.data**2)
    return graph


def graph_kernel_kmeans(
    K: Any, start: np.ndarray, max_iter: int = 100
) -> GraphClusters:
    """Maximise the ratio association by kernel k-means with a sparse kernel matrix.

    The rounds start from given labels. A sparse kernel matrix need not be positive
    semidefinite. If its smallest eigenvalue is negative, this eigenvalue is subtracted
    from the diagonal (Dhillon, Guan and Kulis, 2007), so that the association never
    decreases and the rounds end.

    Notes
    -----
    Differs from the paper: SCM-5; see docs/differences.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines import ball_graph, graph_kernel_kmeans
    >>> K = ball_graph(np.array([[0.0], [0.5], [5.0], [5.5]]), gamma=1.0)
    >>> graph_kernel_kmeans(K, np.array([0, 1, 1, 1])).labels
    array([0, 0, 1, 1], dtype=int32)
    """
    rows = np.arange(len(start))
    k = start.max() + 1
    shift = max(0.0, -least_eigenvalue(K))
    converged = False
    labels = start
    sums, sizes, links = _links(K, labels, k)
    for _ in range(max_iter):
        divisors = np.maximum(sizes, 1)
        sums[rows, labels] += shift
        norms = (links + shift * sizes) / divisors**2
        scores = 2 * sums / divisors - np.where(sizes > 0, norms, np.inf)
        best = scores.argmax(axis=1)
        # In a tie, a row stays in its cluster.
        is_better = scores[rows, best] > scores[rows, labels]
        renewed = np.where(is_better, best, labels)
        converged = bool((renewed == labels).all())
        labels = renewed
        if converged:
            break
        sums, sizes, links = _links(K, labels, k)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first))
    filled = sizes > 0
    return GraphClusters(
        labels=numbers[codes].astype(np.int32),
        association=float((links[filled] / sizes[filled]).sum()),
        converged=converged,
    )


class _Links(NamedTuple):
    """Sums of the kernel matrix over clusters.

    Parameters
    ----------
    sums : ndarray of shape (n, k)
        Σ_j K_ij over the rows j of each cluster.
    sizes : ndarray of shape (k,)
        Number of rows of each cluster.
    links : ndarray of shape (k,)
        Sum of the values inside each cluster.
    """

    sums: np.ndarray
    sizes: np.ndarray
    links: np.ndarray


def _links(K: Any, labels: np.ndarray, k: int) -> _Links:
    """Sum the kernel matrix over clusters."""
    n = len(labels)
    members = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    sums = (K @ members).toarray()
    return _Links(
        sums=sums,
        sizes=np.bincount(labels, minlength=k),
        links=np.bincount(labels, sums[np.arange(n), labels], k),
    )


def least_eigenvalue(K: Any) -> float:
    """Return a lower bound of the smallest eigenvalue of a symmetric matrix.

    The matrix has at least three rows.
    """
    n = K.shape[0]
    bound = abs(K).sum(axis=1).max()
    # All eigenvalues are negative: the precision is that of the largest one.
    moved = K - bound * eye_array(n)
    start = 1.0 + np.arange(n) % 2
    values, vectors = eigsh(moved, k=1, which="LM", v0=start, tol=1e-4)
    value = values[0]
    vector = vectors[:, 0]
    residual = np.linalg.norm(moved @ vector - value * vector)
    return float(value + bound - residual)
