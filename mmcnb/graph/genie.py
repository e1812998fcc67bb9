"""Clusters of nodes by the Genie linkage on the minimum spanning tree of a graph."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

# Relative sizes are rounded to multiples of GRAIN, so that sums are exact in any order.
GRAIN = 2.0**-20


def spanning_tree(graph: csr_array) -> np.ndarray:
    """Return the edges of the minimum spanning tree, sorted by length, then by nodes.

    SciPy receives ranks instead of lengths, so that the tree is unique even if lengths
    are equal, and an edge of length 0 remains an edge.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Lengths of the edges, each stored in one direction or in both. If the graph is
        not connected, the result is a forest with one tree per component.

    Returns
    -------
    ndarray of shape (p - 1, 2), int64
        The two nodes of each edge, with the smaller index first.

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
    # Ranks start at 1, because SciPy ignores entries of 0.
    ranks = np.argsort(by_length) + 1.0
    ranked = csr_array((ranks, graph.indices, graph.indptr), graph.shape)
    tree = minimum_spanning_tree(ranked, overwrite=True)
    tree_ranks = np.sort(tree.data).astype(np.int64)
    return ends[by_length[tree_ranks - 1]]


def genie_at(
    tree: np.ndarray, sizes: np.ndarray, n_clusters: int, threshold: float
) -> np.ndarray | None:
    """Find clusters by the Genie linkage.

    Parameters
    ----------
    tree : ndarray of shape (n_edges, 2), int64
        The edges of a spanning tree, shortest edge first.
    sizes : ndarray of shape (p,), above 0
        Weights of the nodes, in any unit.
    n_clusters : int
        Number of clusters.
    threshold : float
        Threshold in (0, 1] for the Gini index of the cluster sizes. While the index is
        above it, each merge joins a smallest cluster to another cluster.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Cluster of each node, or None if the tree cannot be divided into this number of
        clusters. Clusters are numbered in the order of their first nodes.

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
