"""Find Louvain communities for a given resolution or number, and build merge trees."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mmcnb.graph.merge_tree import MergeTree, by_first, merged

# To find k communities, Louvain must first find at least PIECES pieces per community,
# which are then joined. At most one piece per NODES_A_PIECE nodes is required, but at
# least k pieces are.
PIECES = 8
NODES_A_PIECE = 8
# Maximum numbers of steps in the search for a resolution.
MOST_DOUBLINGS = 40
MOST_BISECTIONS = 40


class Graph(NamedTuple):
    """A symmetric graph, as arrays of fixed dtypes, so that routines are compiled once.

    Attributes
    ----------
    indptr : ndarray of shape (p + 1,), int64
        Start of each node's entries in ``indices``, followed by the number of entries.
    indices : ndarray of shape (stored,), int64
        Neighbours of each node, excluding the node itself.
    weights : ndarray of shape (stored,), float64, above 0
        Weights of the edges, each stored in both directions.
    loops : ndarray of shape (p,), float64, at least 0
        Weight of each node with itself.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    loops: np.ndarray


def graph_of(weights: csr_array, loops: np.ndarray) -> Graph:
    """Return the graph with given edge weights and given weights of loops.

    ``weights`` is a symmetric matrix whose diagonal is not stored.
    """
    return Graph(
        indptr=weights.indptr.astype(np.int64),
        indices=weights.indices.astype(np.int64),
        weights=weights.data.astype(np.float64),
        loops=loops.astype(np.float64),
    )


def communities_at(
    graph: csr_array, loops: np.ndarray, n_clusters: int, seed: int
) -> np.ndarray | None:
    """Find exactly ``n_clusters`` communities of a graph.

    Louvain at a high resolution splits the graph into small pieces, and at a lower
    resolution it joins the pieces into communities. The lower resolution is bisected
    until the number of communities is the requested number. Finally, single nodes move
    between the communities.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights above 0, without a diagonal. The graph may have several
        components.
    loops : ndarray of shape (p,)
        The diagonal: weight of each node with itself, at least 0.
    n_clusters : int
        Number of communities.
    seed : int
        Random seed of the order in which nodes are first visited.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Community of each node, or None if Louvain finds fewer pieces than
        ``n_clusters``. Communities are numbered in the order of their first nodes.

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

    p = loops.size
    nodes = graph_of(graph, loops)
    order = np.random.RandomState(seed).permutation(p)
    wanted = min(PIECES * n_clusters, max(n_clusters, p // NODES_A_PIECE))
    pieces, finest = _pieces(nodes, wanted, order)
    n_pieces = pieces.max() + 1
    if n_pieces < n_clusters:
        return None
    joined, resolution = _join_pieces(
        kernels.aggregate(nodes, pieces, n_pieces), n_clusters, finest
    )
    labels = kernels.move_nodes(nodes, joined[pieces], n_clusters, resolution, order)
    return by_first(labels)


def communities_by(
    graph: csr_array, loops: np.ndarray, resolution: float
) -> np.ndarray:
    """Find communities by the Louvain method at a given resolution.

    Communities are numbered in the order of their first nodes. The result is
    deterministic.
    """
    from mmcnb.graph import _louvain as kernels

    nodes = graph_of(graph, loops)
    return kernels.louvain(nodes, resolution, np.arange(loops.size))


def merge_tree(
    weights: csr_array, loops: np.ndarray, n_clusters: int | None = None
) -> MergeTree:
    """Build the merge tree of a graph: pieces by Louvain, then merges by largest link.

    The result is deterministic.

    Parameters
    ----------
    weights : csr_array of shape (p, p)
        Symmetric weights above 0, without a diagonal.
    loops : ndarray of shape (p,)
        The diagonal, at least 0.
    n_clusters : int or None, default=None
        Number of clusters that will be requested from the tree. If given, the tree has
        at least three pieces per cluster, if possible.

    Returns
    -------
    MergeTree
        A tree of about 900 pieces. It has fewer pieces if they would have fewer than 12
        nodes on average, and more if ``n_clusters`` requires it.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.communities import merge_tree
    >>> blocks = np.kron(np.eye(2), np.ones((30, 30))) + 0.01
    >>> np.fill_diagonal(blocks, 0)
    >>> merge_tree(csr_array(blocks), np.zeros(60)).labels(2).sum()
    np.int64(30)
    """
    from mmcnb.graph import _louvain as kernels  # loads numba

    p = loops.size
    usual = min(p // 12, 900)
    needed = 3 * (n_clusters or 0)
    wanted = min(p, max(1, usual, needed))
    graph = graph_of(weights, loops)
    order = np.arange(p)
    first_resolution = max(1.0, wanted / 64)
    pieces, resolution = _pieces(graph, wanted, order, first_resolution)
    # Doubling may overshoot, so also try the resolution divided by sqrt(2).
    fewer = kernels.louvain(graph, resolution / 2**0.5, order)
    if fewer.max() + 1 >= wanted:
        pieces = fewer
    return _merged_pieces(graph, pieces)


def _pieces(
    graph: Graph, wanted: int, order: np.ndarray, start: float = 1.0
) -> tuple[np.ndarray, float]:
    """Run the Louvain method at doubled resolutions until it finds enough pieces.

    The first resolution is ``start``, and ``wanted`` pieces are enough. Return the
    piece of each node, and the last resolution.
    """
    from mmcnb.graph import _louvain as kernels

    resolution = start
    pieces = kernels.louvain(graph, resolution, order)
    for _ in range(MOST_DOUBLINGS):
        if pieces.max() + 1 >= wanted:
            break
        resolution *= 2
        pieces = kernels.louvain(graph, resolution, order)
    return pieces, resolution


def _join_pieces(pieces: Graph, k: int, finest: float) -> tuple[np.ndarray, float]:
    """Join pieces into k communities; return each piece's community and a resolution.

    The resolution is bisected, from ``finest``, at which all pieces are separate. If no
    resolution gives exactly k communities, the partition with the fewest communities
    above k is selected, and its merge tree is cut at k communities. The returned
    resolution is the resolution of the selected partition.
    """
    from mmcnb.graph import _louvain as kernels

    order = np.arange(pieces.loops.size)
    nearest = order
    resolution = finest
    low = 0.0
    high = finest
    for _ in range(MOST_BISECTIONS):
        if nearest.max() + 1 == k:
            break
        middle = float(np.sqrt(low * high)) if low else high / 2
        labels = kernels.louvain(pieces, middle, order)
        count = labels.max() + 1
        if count < k:
            low = middle
            continue
        high = middle
        if count <= nearest.max():
            nearest = labels
            resolution = middle
    return _merged_pieces(pieces, nearest).labels(k), resolution


def _merged_pieces(graph: Graph, pieces: np.ndarray) -> MergeTree:
    """Return the merge tree of the pieces of a graph."""
    from mmcnb.graph import _louvain as kernels

    between = kernels.aggregate(graph, pieces, pieces.max() + 1)
    return merged(pieces, _dense(between))


def _dense(graph: Graph) -> np.ndarray:
    """Return the dense weight matrix of a graph, with the loops on its diagonal."""
    k = graph.loops.size
    entries = graph.weights, graph.indices, graph.indptr
    matrix: np.ndarray = csr_array(entries, shape=(k, k)).toarray()
    # Copy the upper triangle to the lower triangle, where sums were added in another
    # order and differ by rounding.
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, graph.loops)
    return matrix
