"""As many communities of a graph as are asked for, by Louvain."""

from typing import Any

import numpy as np

PIECES, NODES_A_PIECE = 8, 8  # so many a cluster are moved as wholes, but no more than one for so many nodes
MOST_DOUBLINGS, MOST_BISECTIONS = 40, 40  # of the resolution

Graph = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # CSR arrays, and the diagonal


def communities_at(graph: Any, loops: np.ndarray, n_clusters: int, seed: int) -> np.ndarray | None:
    """Communities of a graph, exactly as many as are asked for.

    Louvain at a high resolution gives pieces. At a lower one it joins them to communities: the resolution is
    bisected until their number is right. Then single nodes move among the communities.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights above 0, without a diagonal. It may have several components.
    loops : ndarray of shape (p,)
        The diagonal: weight of each node with itself, at least 0.
    n_clusters : int
        Number of communities.
    seed : int
        Gives the order in which nodes look first.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Community of each node, numbered by first node; None if the graph does not fall into so many.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.communities import communities_at
    >>> pairs = np.array([[0.0, 5.0], [5.0, 0.0]])
    >>> weights = np.block([[pairs, np.eye(2)], [np.eye(2), pairs]])
    >>> communities_at(csr_array(weights), np.zeros(4), 2, seed=0)
    array([0, 0, 1, 1])
    """
    from mmcnb.graph import _louvain as kernels  # loads numba

    p = loops.shape[0]
    arrays = (
        graph.indptr.astype(np.int64),  # one type, so one compiled version
        graph.indices.astype(np.int64),
        graph.data.astype(np.float64),
        loops.astype(np.float64),
    )
    order = np.random.RandomState(seed).permutation(p)
    wanted = min(PIECES * n_clusters, max(n_clusters, p // NODES_A_PIECE))
    for resolution in 2.0 ** np.arange(MOST_DOUBLINGS + 1):
        pieces = kernels.louvain(*arrays, resolution, order)
        if (count := pieces.max() + 1) >= wanted:
            break
    if count < n_clusters:
        return None
    joined, resolution = _joined(kernels.aggregate(*arrays, pieces, count), n_clusters, resolution)
    labels = kernels.move_nodes(*arrays, joined[pieces], n_clusters, resolution, order)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return first.argsort().argsort()[labels]


def _joined(pieces: Graph, k: int, resolution: float) -> tuple[np.ndarray, float]:
    """Communities of at least k pieces, k of them, and their resolution; at the one given no pieces join."""
    from mmcnb.graph import _louvain as kernels

    count = pieces[3].shape[0]
    order = nearest = np.arange(count)
    low, high, nearest_at = 0.0, resolution, resolution
    for _ in range(MOST_BISECTIONS if count > k else 0):
        middle = float(np.sqrt(low * high)) if low else high / 2
        labels = kernels.louvain(*pieces, middle, order)
        found = labels.max() + 1
        if k <= found <= nearest.max():
            nearest, nearest_at = labels, middle
        if found == k:
            break
        low, high = (low, middle) if found > k else (middle, high)
    return _merged(pieces, nearest, k), nearest_at


def _merged(graph: Graph, labels: np.ndarray, k: int) -> np.ndarray:
    """Merge the two communities with the largest mean weight between units of volume, until k are left."""
    from mmcnb.graph import _louvain as kernels

    graph = kernels.aggregate(*graph, labels, labels.max() + 1)
    while (count := graph[3].shape[0]) > k:
        indptr, ends, weights, loops = graph
        starts = np.repeat(np.arange(count), np.diff(indptr))
        volumes = loops + np.bincount(starts, weights, count)
        if weights.shape[0]:
            edge = (weights / (volumes[starts] * volumes[ends])).argmax()
            one, other = sorted((starts[edge], ends[edge]))
        else:  # components: any two are as far
            one, other = np.sort(volumes.argsort(kind="stable")[:2])
        merged = np.arange(count)
        merged[other] = one
        merged[other + 1 :] -= 1
        labels, graph = merged[labels], kernels.aggregate(*graph, merged, count - 1)
    return labels
