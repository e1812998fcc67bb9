"""Split clusters by undoing merges of the merge tree that join separate groups."""

import numpy as np

from mmcnb.choice.no_structure import LOG_LINK, link_terms, weighted_sum
from mmcnb.graph.merge_tree import LEAST_LINK, MergeTree, by_first
from mmcnb.graph.neighbours import LEAST_DISTANCE, NodeGraph

LEAST_GROUP = 8  # least number of rows of the sample in a group
LEAST_DIMENSION = 1.35  # the formula for links was not fitted to lower dimensions
DENSITY_NEIGHBOUR = 9  # index of the tenth neighbour, which measures the local density
CLEAR = 2.0  # log evidence above which a merge is taken to join two groups
# Limits of the depth of a valley: the mean log density within the two sides of a merge,
# minus the mean log density between them.
SHALLOWEST_VALLEY = -1.0
DEEPEST_VALLEY = 1.5


def real_merges(
    graph: NodeGraph, tree: MergeTree, d: float, clear: float = CLEAR
) -> np.ndarray:
    """Return a mask of the merges that join two groups of at least 8 rows each.

    The link of such a merge is much weaker than expected for data without structure. A
    valley in the density between its two sides is further evidence.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    tree : MergeTree
        Merge tree of the graph.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    clear : float, default=2.0
        A merge is taken to join two groups if the evidence for this exceeds ``clear``.
        The evidence is the logarithm of the ratio of the expected link to the observed
        link, plus half of the depth of the valley between the two sides.

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
    density between the sides, clipped to [-1, 1.5]. The density at a node is estimated
    up to a constant by r^(-d), where r is the distance to its tenth neighbour. If no
    edge connects the sides, the depth is 1.5.
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
        Group of each node, obtained by undoing the merges found by `real_merges`.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    counts : ndarray of shape (p,)
        Number of rows that each node represents.

    Returns
    -------
    ndarray of shape (p,), int64
        Cluster of each node; clusters are numbered in the order of their first nodes. A
        node is a group of its own if it represents at least 8 equal rows, and at least
        half of the mean number of rows per cluster. Groups that are too small to become
        a cluster stay together with the largest group of their cluster.

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
        # A group is split off if it has at least half of the mean cluster size or, in
        # a cluster smaller than the mean, at least half of the rows of this cluster.
        least = max(LEAST_GROUP, min(2 * half_a_cluster, sizes.sum()) / 2)
        is_large = sizes >= least
        is_large[sizes.argmax()] = False
        for group in np.flatnonzero(is_large):
            result[inside[groups[inside] == group]] = result.max() + 1
    return by_first(result)
