"""Clusters of nodes by the Genie linkage on the shortest spanning tree of their graph."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

GRAIN = (
    2.0**-20
)  # sizes are multiples of it, times the smallest: then sums have no rounding in any order


def spanning_tree(graph: csr_array) -> np.ndarray:
    """The edges of the shortest spanning tree, by rising length, then by their ends.

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
    >>> spanning_tree(csr_array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])).tolist()
    [[1, 2], [0, 1]]
    """
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    ends = np.sort(np.column_stack([rows, graph.indices]).astype(np.int64), axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0], graph.data))
    ranks = np.argsort(order) + 1.0
    tree = minimum_spanning_tree(
        csr_array((ranks, graph.indices, graph.indptr), graph.shape), overwrite=True
    )
    return ends[order[np.sort(tree.data).astype(np.int64) - 1]]


def genie_at(
    tree: np.ndarray, sizes: np.ndarray, n_clusters: int, threshold: float
) -> np.ndarray | None:
    """Clusters by the Genie linkage; None if there are not so many.

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
    first = _genie.genie(
        tree, np.rint(relative / GRAIN) * GRAIN, float(threshold), int(n_clusters)
    )
    labels = np.unique(first, return_inverse=True)[1]
    return labels if labels.max() + 1 == n_clusters else None
