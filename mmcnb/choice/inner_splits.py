"""Split clusters at merges of the merge tree that join two groups."""

import numpy as np

from mmcnb.choice.no_structure import LOG_LINK, link_terms, weighted_sum
from mmcnb.graph.merge_tree import LEAST_LINK, MergeTree, by_first
from mmcnb.graph.neighbours import LEAST_DISTANCE, NodeGraph

LEAST_GROUP = 8  # rows of the sample
LEAST_DIMENSION = 1.35  # the formula for links was not fitted to lower dimensions
DENSITY_NEIGHBOUR = 9  # index of the tenth neighbour, which measures the local density
CLEAR = 2.0  # evidence, as a logarithm, above which a merge joins two groups
# Limits of the depth of a valley: the log density within two sides, minus the log
# density between them.
SHALLOWEST_VALLEY = -1.0
DEEPEST_VALLEY = 1.5


def real_merges(
    graph: NodeGraph, tree: MergeTree, d: float, clear: float = CLEAR
) -> np.ndarray:
    """Return which merges of a tree join two groups of 8 rows or more.

    The link of such a merge is far weaker than in data without structure, and the rows
    between its two sides are sparser than the rows within the sides.

    Parameters
    ----------
    graph : NodeGraph
        Graph of the nodes.
    tree : MergeTree
        The merge tree of the graph.
    d : float
        Intrinsic dimension of the nodes, by `dimension`.
    clear : float, default=2.0
        Evidence above which a merge joins two groups. The evidence is the logarithm of
        the ratio of the expected link to the observed link, plus half of the depth of
        the valley between the two sides.

    Returns
    -------
    ndarray of shape (c - 1,), bool
        True for merges that join two groups.
    """
    d = max(d, LEAST_DIMENSION)
    n_rows = tree.sums(graph.counts)
    smaller, larger = np.sort(n_rows[tree.merges], axis=1).T
    terms = link_terms(smaller, larger, graph.counts.sum(), d)
    links = np.maximum(tree.links, LEAST_LINK)
    evidence = weighted_sum(terms, LOG_LINK) - np.log(links)
    evidence += _valleys(graph, tree, d) / 2
    is_clear = evidence > clear
    return np.asarray(is_clear & (smaller >= LEAST_GROUP))


def log_radius(graph: NodeGraph) -> np.ndarray:
    """Return the logarithm of the distance from each node to its tenth neighbour."""
    last = min(DENSITY_NEIGHBOUR, graph.distances.shape[1] - 1)
    return np.log(np.maximum(graph.distances[:, last], LEAST_DISTANCE))


def _valleys(graph: NodeGraph, tree: MergeTree, d: float) -> np.ndarray:
    """Return the depth of the valley between the two sides of each merge.

    The depth is the logarithm of the ratio of the density within the sides to the
    density between the sides, clipped to [-1, 1.5]. With the distance r to the tenth
    neighbour, the density is proportional to r^(-d).
    """
    sparsity = log_radius(graph)
    means = tree.sums(sparsity) / tree.sums(np.ones_like(sparsity))
    within = means[tree.merges].mean(axis=1)
    edges = graph.edges()[0].tocoo()
    start = tree.piece_of_node[edges.row]
    end = tree.piece_of_node[edges.col]
    crosses = start != end
    merge = tree.merge_of_pieces(start[crosses], end[crosses])
    sparsity_of_edge = (sparsity[edges.row] + sparsity[edges.col]) / 2
    n_edges = np.bincount(merge, minlength=within.size)
    sums = np.bincount(merge, sparsity_of_edge[crosses], within.size)
    between = sums / np.maximum(n_edges, 1)
    depth = np.clip(d * (between - within), SHALLOWEST_VALLEY, DEEPEST_VALLEY)
    return np.where(n_edges > 0, depth, DEEPEST_VALLEY)


def split(groups: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Split each cluster that consists of two or more groups.

    Parameters
    ----------
    groups : ndarray of shape (p,), int64
        Group of each node, after the real merges of the merge tree are undone.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    counts : ndarray of shape (p,)
        Number of rows of each node.

    Returns
    -------
    ndarray of shape (p,), int64
        Cluster of each node; clusters are numbered in the order of their first nodes. A
        node that represents many equal rows is a group of its own. Nodes in small
        groups stay in the largest group of their cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.inner_splits import split
    >>> split(np.repeat([0, 1], 10), np.zeros(20, int), np.ones(20)).sum()
    np.int64(10)
    """
    k = int(labels.max()) + 1
    half_a_cluster = counts.sum() / k / 2
    groups = groups.copy()
    duplicates = np.flatnonzero(counts >= max(LEAST_GROUP, half_a_cluster))
    groups[duplicates] = groups.max() + 1 + np.arange(duplicates.size)
    result = labels.copy()
    for cluster in range(k):
        inside = np.flatnonzero(labels == cluster)
        sizes = np.bincount(groups[inside], counts[inside])
        # A separate group has at least half of the mean size of a cluster, or half of
        # the size of its own cluster if its cluster is smaller than the mean.
        least = max(LEAST_GROUP, min(2 * half_a_cluster, sizes.sum()) / 2)
        is_large = sizes >= least
        is_large[sizes.argmax()] = False
        for group in np.flatnonzero(is_large):
            result[inside[groups[inside] == group]] = result.max() + 1
    return by_first(result)
