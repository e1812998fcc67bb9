"""Kernel k-means on the graph of near rows: Yuan et al., section 4.2."""

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
        Cluster of each row, numbered by first row.
    association : float
        Σ_h links(h, h) / n_h, the ratio association: eq. (5).
    converged : bool
        Whether the labels no longer changed.
    """

    labels: np.ndarray
    association: float
    converged: bool


def ball_graph(X: Any, gamma: float, least: float = 0.1) -> csr_array:
    """Values of at least ``least`` of the Gaussian kernel between rows; smaller ones are no edges.

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
    graph = csr_array(
        radius_neighbors_graph(X, radius, mode="distance", include_self=True)
    )
    graph.data = np.exp(-gamma * graph.data**2)
    return graph


def graph_kernel_kmeans(
    K: Any, start: np.ndarray, max_iter: int = 100
) -> GraphClusters:
    """Kernel k-means with a sparse kernel matrix, from given labels: it maximises the ratio association.

    A sparse matrix need not be positive semidefinite. A negative least eigenvalue is
    subtracted from the diagonal (Dhillon, Guan and Kulis, 2007), so that the
    association never falls and the rounds end.

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
    labels, (sums, sizes, links) = start, _links(K, start, k)
    for _ in range(max_iter):
        filled = np.maximum(sizes, 1)
        sums[rows, labels] += shift
        scores = 2 * sums / filled - np.where(
            sizes > 0, (links + shift * sizes) / filled**2, np.inf
        )
        best = scores.argmax(axis=1)
        renewed = np.where(
            scores[rows, best] > scores[rows, labels], best, labels
        )  # of equal ones its own
        converged = bool((renewed == labels).all())
        labels = renewed
        if converged:
            break
        sums, sizes, links = _links(K, labels, k)
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    association = float((links[sizes > 0] / sizes[sizes > 0]).sum())
    return GraphClusters(
        np.argsort(np.argsort(first))[numbers].astype(np.int32), association, converged
    )


def _links(
    K: Any, labels: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ_j K_ij over each cluster, of shape (n, k); its rows; and the sum of the values inside it."""
    n = len(labels)
    sums = (
        K @ csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    ).toarray()
    return (
        sums,
        np.bincount(labels, minlength=k),
        np.bincount(labels, sums[np.arange(n), labels], k),
    )


def least_eigenvalue(K: Any) -> float:
    """The least eigenvalue of a symmetric matrix of at least three rows, less its possible error."""
    bound = abs(K).sum(axis=1).max()
    moved = K - bound * eye_array(
        K.shape[0]
    )  # all are negative: the precision is that of the largest
    value, vector = eigsh(
        moved, k=1, which="LM", v0=1.0 + np.arange(K.shape[0]) % 2, tol=1e-4
    )
    residual = np.linalg.norm(moved @ vector[:, 0] - value[0] * vector[:, 0])
    return float(value[0] + bound - residual)
