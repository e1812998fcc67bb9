"""Clusters of nodes by the Genie linkage on the minimum spanning tree of a graph."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

# Sizes are multiples of it, times the smallest, so that sums are exact in any order.
GRAIN = 2.0**-20


def spanning_tree(graph: csr_array) -> np.ndarray:
    """Return the edges of the minimum spanning tree, by length, then by their ends.

    SciPy gets ranks instead of lengths: then equal lengths leave no choice to it, and a
    length of 0 stays an edge.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Lengths of the edges, each stored in one direction or in both. Without a path
        between all nodes there is a tree for each component.

    Returns
    -------
    ndarray of shape (p - 1, 2), int64
        The two nodes of each edge, the smaller number first.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.genie import spanning_tree
    >>> triangle = [[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    >>> spanning_tree(csr_array(triangle)).tolist()
    [[1, 2], [0, 1]]
    """
    edges = graph.tocoo()
    nodes = np.column_stack([edges.row, edges.col])
    ends = np.sort(nodes, axis=1).astype(np.int64)
    smaller, larger = ends.T
    by_length = np.lexsort((larger, smaller, edges.data))
    # From 1: an entry of 0 would be no edge.
    ranks = np.argsort(by_length) + 1.0
    ranked = csr_array((ranks, graph.indices, graph.indptr), graph.shape)
    tree = minimum_spanning_tree(ranked, overwrite=True)
    tree_ranks = np.sort(tree.data).astype(np.int64)
    return ends[by_length[tree_ranks - 1]]


def genie_at(
    tree: np.ndarray, sizes: np.ndarray, n_clusters: int, threshold: float
) -> np.ndarray | None:
    """Find clusters by the Genie linkage; return None if there are not so many.

    Parameters
    ----------
    tree : ndarray of shape (n_edges, 2), int64
        The edges of a spanning tree, shortest first.
    sizes : ndarray of shape (p,), above 0
        Weights of the nodes; their unit makes no difference.
    n_clusters : int
        Number of clusters.
    threshold : float
        The Gini index of the cluster sizes above which a smallest cluster merges first,
        in (0, 1].

    Returns
    -------
    ndarray of shape (p,), int64, or None
        The cluster of each node, numbered by first nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.genie import genie_at
    >>> chain = np.array([[0, 1], [1, 2], [2, 3]])
    >>> genie_at(chain, np.ones(4), 2, 0.5)
    array([0, 0, 0, 1])
    >>> genie_at(chain, np.array([0.1, 0.2, 0.3, 0.1]), 2, 0.1)
    array([0, 0, 1, 1])
    """
    from mmcnb.graph import _genie  # loads numba

    relative = np.asarray(sizes, np.float64) / np.min(sizes)
    weights = np.rint(relative / GRAIN) * GRAIN
    sizes_once = np.unique(weights, return_counts=True)
    first = _genie.genie(tree, weights, *sizes_once, float(threshold), int(n_clusters))
    nodes, labels = np.unique(first, return_inverse=True)
    return labels if nodes.size == n_clusters else None
