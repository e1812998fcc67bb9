"""Kernel k-means on a sparse graph of near rows, for rows that fit in memory: Yuan et al., section 4.2.

With the edge weights of a graph as kernel values, kernel k-means maximises the ratio association of the
graph (their Theorem 1), and a round costs what its edges do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse

from mmcnb._constraints import Interval
from mmcnb.errors import InputError, shown
from mmcnb.least_squares.kernel_kmeans import largest_by_cluster
from mmcnb.least_squares.local_search import canonical_labels
from mmcnb.samples import BLOCK_ROWS
from mmcnb.samples._arrays import plain_values


@dataclass(frozen=True)
class GraphClusters:
    """Clusters of the nodes of a graph.

    Parameters
    ----------
    labels : ndarray of shape (n,), int32
        Cluster of each row, numbered by first row.
    sizes : ndarray of shape (k,)
        Weight of each cluster.
    association : float
        Σ_h links(h, h) / n_h, the ratio association: eq. (5).
    pseudo_centres : ndarray of shape (k,), int64
        Row of each cluster with the largest Σ_j K_ij over its cluster, of equal ones the first; -1 where a
        cluster is empty: eq. (10).
    n_iter : int
        Rounds.
    converged : bool
        Whether the labels stand still.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.baselines import ball_graph, graph_kernel_kmeans
    >>> graph = ball_graph(np.array([[0.0], [0.1], [5.0]]), gamma=1.0)
    >>> graph_kernel_kmeans(graph, np.array([0, 0, 1])).sizes
    array([2., 1.])
    """

    labels: np.ndarray
    sizes: np.ndarray
    association: float
    pseudo_centres: np.ndarray
    n_iter: int
    converged: bool


def ball_graph(X: Any, gamma: float, least: float = 0.1) -> Any:
    """Values of the Gaussian kernel between rows where they are at least so large.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        The rows.
    gamma : float
        Gamma of the kernel.
    least : float, default=0.1
        Smallest value that is an edge, in (0, 1): rows within sqrt(-ln(least) / gamma) of each other.

    Returns
    -------
    csr_array of shape (n, n), float64
        Symmetric, with ones on the diagonal.

    Raises
    ------
    InputError
        If ``gamma`` is not positive, or ``least`` not between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.graph_kmeans import ball_graph
    >>> ball_graph(np.array([[0.0], [1.0], [5.0]]), gamma=1.0).toarray().round(2)
    array([[1.  , 0.37, 0.  ],
           [0.37, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    from sklearn.neighbors import radius_neighbors_graph

    Interval(0, open_low=True).check("gamma", gamma)
    if not isinstance(least, float | np.floating) or not 0 < least < 1:
        raise InputError(f"least={shown(least)} is out of range; give a number above 0 and below 1.")
    radius = np.sqrt(-np.log(least) / gamma)
    graph = csr_array(radius_neighbors_graph(X, radius, mode="distance", include_self=True))
    graph.data = np.exp(-gamma * graph.data**2)
    return graph


def graph_kernel_kmeans(
    K: Any, start: np.ndarray, weights: np.ndarray | None = None, max_iter: int = 100
) -> GraphClusters:
    """Kernel k-means with a sparse kernel matrix, from given labels.

    A row goes to the cluster of the nearest mean, by sums of kernel values alone. A sparse matrix need not be
    positive semidefinite; its diagonal is raised by its least eigenvalue where that is negative (Dhillon,
    Guan and Kulis, 2007), so that the association never falls and the rounds end.

    Parameters
    ----------
    K : csr_array of shape (n, n)
        Symmetric kernel matrix, such as `ball_graph` makes.
    start : ndarray of shape (n,), int
        Labels to start from, from 0; those of `KernelKMeans` are a good start.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights. Rows of weight 0 count for nothing and are labelled all the same.
    max_iter : int, default=100
        Most rounds.

    Returns
    -------
    GraphClusters
        A cluster that loses all its rows stays empty; empty ones come last.

    Raises
    ------
    InputError
        If the matrix is not sparse and square, labels or weights are not one a row, or one is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.graph_kmeans import ball_graph, graph_kernel_kmeans
    >>> K = ball_graph(np.array([[0.0], [0.5], [5.0], [5.5]]), gamma=1.0)
    >>> graph_kernel_kmeans(K, np.array([0, 1, 1, 1])).labels
    array([0, 0, 1, 1], dtype=int32)
    """
    start, weights = _checked(K, start, weights)
    Interval(1, integer=True).check("max_iter", max_iter)
    k = int(start.max()) + 1
    root = diags_array(np.sqrt(weights))
    shift = max(0.0, -least_eigenvalue(root @ K @ root))  # K + shift W^-1 is semidefinite
    labels, settled, number = start.astype(np.int32), False, 0
    while number < max_iter and not settled:
        number += 1
        renewed = _nearest(K, labels, weights, k, shift)
        settled = bool((renewed == labels).all())
        labels = renewed
    labels = canonical_labels(labels).astype(np.int32)
    own = _own_sums(_sums(K, labels, weights, k), labels)
    sizes = np.bincount(labels, weights, k)
    links = np.bincount(labels, weights * own, k)
    association = float((links[sizes > 0] / sizes[sizes > 0]).sum())
    _, centres = largest_by_cluster(own, labels, k, weights)
    return GraphClusters(labels, sizes, association, centres, number, settled)


def _checked(K: Any, start: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels and weights, one of each for each row of the matrix."""
    if not issparse(K) or K.shape[0] != K.shape[1]:
        raise InputError(f"K is a {type(K).__name__}; give a sparse square matrix, as ball_graph makes it.")
    n, labels = K.shape[0], plain_values(start, "start")
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or not (labels >= 0).all():
        raise InputError(f"start={shown(start)} are no labels of {n} rows; give one from 0 for each row.")
    given = np.ones(n) if weights is None else plain_values(weights, "weights")
    if (
        given.shape != (n,)
        or given.dtype.kind not in "iuf"
        or not np.isfinite(given).all()
        or given.min() < 0
    ):
        raise InputError(f"weights={shown(weights)} do not fit; give one of at least 0 for each of {n} rows.")
    return labels, given.astype(np.float64)


def least_eigenvalue(K: Any) -> float:
    """The least eigenvalue of a symmetric matrix, less what it may be off."""
    from scipy.sparse.linalg import eigsh

    n = K.shape[0]
    if n < 3:
        return float(np.linalg.eigvalsh(K.toarray())[0])
    bound = abs(K).sum(axis=1).max()
    moved = K - bound * eye_array(n)  # all eigenvalues are negative, so that precision is that of the largest
    value, vector = eigsh(moved, k=1, which="LM", v0=1.0 + np.arange(n) % 2, tol=1e-4)
    residual = np.linalg.norm(moved @ vector[:, 0] - value[0] * vector[:, 0])
    return float(value[0] + bound - residual)


def _sums(K: Any, labels: np.ndarray, weights: np.ndarray, k: int) -> Any:
    """Σ_j w_j K_ij over each cluster, a sparse (n, k) matrix."""
    n = labels.shape[0]
    return csr_array(K @ csr_array((weights, labels, np.arange(n + 1)), shape=(n, k)))


def _own_sums(sums: Any, labels: np.ndarray) -> np.ndarray:
    """Σ_j w_j K_ij over the cluster of i."""
    sums = sums.tocoo()
    own = sums.col == labels[sums.row]
    return np.bincount(sums.row[own], sums.data[own], labels.shape[0])


def _nearest(K: Any, labels: np.ndarray, weights: np.ndarray, k: int, shift: float) -> np.ndarray:
    """The cluster of the nearest mean for each row, of equal ones its own; blocks of rows are dense."""
    n, sizes = labels.shape[0], np.bincount(labels, weights, k)
    filled = np.where(sizes > 0, sizes, 1.0)
    sums = _sums(K, labels, weights, k)
    links = np.bincount(labels, weights * _own_sums(sums, labels), k)
    norms = np.where(sizes > 0, (links + shift * sizes) / filled**2, np.inf)
    renewed = np.empty_like(labels)
    for start in range(0, n, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n)
        here, own = np.arange(stop - start), labels[start:stop]
        totals = sums[start:stop].toarray()
        totals[here, own] += shift * (weights[start:stop] > 0)
        scores = 2 * totals / filled - norms
        best = scores.argmax(axis=1)
        renewed[start:stop] = np.where(scores[here, best] > scores[here, own], best, own)
    return renewed
