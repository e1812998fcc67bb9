"""Score a partition of a graph by mutual information and the gap between clusters."""

import math
from typing import NamedTuple

import numpy as np

from mmcnb.graph.neighbours import NodeGraph

# These constants were chosen on shapes, tables and texts that are not part of the study
# `python -m benchmarks choice`, which measures how well the score selects partitions.
INFORMATION_WEIGHT = 4.0
ACROSS_QUANTILE = 0.05
WITHIN_QUANTILE = 0.75
# Clusters touch if at least this many pairs of neighbours are in different clusters.
FEWEST_ACROSS = 5
# Scores that agree to this number of decimals are ties, because further decimals are
# rounding errors, which differ between processors.
ROUNDING_DIGITS = 9
NO_DISTANCE_WITHIN = -9.0  # value of the gap if no node has a neighbour in its cluster


class Score(NamedTuple):
    """The score of a partition, and its two terms.

    Attributes
    ----------
    J : float
        ``4 MI / log(k) + gap``, where k is the number of clusters. Larger is better.
    information : float
        MI / log(k), where MI is the mutual information, in nats, of the labels at the
        two ends of an edge; at most 1.
    gap : float
        Logarithm of the ratio of a short to a long distance: the 5 % quantile of the
        distances between neighbours in different clusters, divided by the 75 % quantile
        of the distances between neighbours in the same cluster.
    """

    J: float
    information: float
    gap: float


def judge(graph: NodeGraph, labels: np.ndarray, n_classes: int | None = None) -> Score:
    """Score a partition of the nodes of a graph.

    Parameters
    ----------
    graph : NodeGraph
        The p nodes and their neighbours.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    n_classes : int or None, default=None
        Number of clusters k in ``4 MI / log(k)``. If None, it is the number of clusters
        of the partition.

    Returns
    -------
    Score
        J and its two terms. Partitions with a larger J are better.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.judge import judge
    >>> from mmcnb.graph.neighbours import node_graph
    >>> noise = np.random.RandomState(0).normal(size=(200, 2))
    >>> rows = noise + np.repeat([0, 9], 100)[:, None]
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> apart = judge(graph, graph.search.nodes[:, 0] > 0)
    >>> apart.J > judge(graph, np.arange(200) % 2).J
    True
    """
    labels = np.unique(labels, return_inverse=True)[1].ravel()
    k = int(labels.max()) + 1
    scale = math.log(n_classes or k) or 1.0  # one cluster has no information
    information = mutual_information(cluster_weights(graph, labels, k)) / scale
    gap = gap_between(graph, labels)
    return Score(INFORMATION_WEIGHT * information + gap, information, gap)


def cluster_weights(
    graph: NodeGraph, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return the total edge weight between each pair of clusters, of shape (k, k)."""
    weights, loops = graph.edges()
    start = np.repeat(labels, np.diff(weights.indptr))
    end = labels[weights.indices]
    pair = start * n_clusters + end
    sums = np.bincount(pair, weights.data, n_clusters**2)
    directed = sums.reshape(n_clusters, n_clusters)
    table = (directed + directed.T) / 2
    table[np.diag_indices(n_clusters)] += np.bincount(labels, loops, n_clusters)
    return np.asarray(table)


def mutual_information(table: np.ndarray) -> float:
    """Return the mutual information, in nats, of the clusters of the ends of an edge.

    ``table`` contains the total edge weight between each pair of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.judge import mutual_information
    >>> round(mutual_information(np.eye(2)), 6), mutual_information(np.ones((2, 2)))
    (0.693147, 0.0)
    """
    joint = table / table.sum()
    marginal = joint.sum(axis=1)
    independent = np.multiply.outer(marginal, marginal)
    is_linked = joint > 0
    joint = joint[is_linked]
    return float((joint * np.log(joint / independent[is_linked])).sum())


def gap_between(graph: NodeGraph, labels: np.ndarray) -> float:
    """Return the width of the gap between the clusters of a partition.

    `Score` defines this width.
    """
    distances, weights, starts, ends = graph.by_distance
    is_across = labels.take(starts) != labels.take(ends)
    across = np.flatnonzero(is_across)
    inside = np.flatnonzero(~is_across)
    if inside.size == 0:
        return NO_DISTANCE_WITHIN
    if across.size < FEWEST_ACROSS:
        # The clusters do not touch. Too few distances are left for a quantile, so twice
        # the longest distance within clusters is used.
        between = 2.0 * distances[inside[-1]]
    else:
        place = quantile_place(weights[across], ACROSS_QUANTILE)
        between = distances[across[place]]
    within = distances[inside[quantile_place(weights[inside], WITHIN_QUANTILE)]]
    return math.log(between / within)


def quantile_place(weights: np.ndarray, share: float) -> int:
    """Return the first index at which the cumulative weight reaches a given share.

    ``share`` is a fraction of the total weight.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.judge import quantile_place
    >>> quantile_place(np.array([2.0, 1.0, 1.0]), 0.5)
    0
    """
    sums = np.cumsum(weights)
    return int(np.searchsorted(sums, share * sums[-1]))


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return the weighted quantile of values, which must be in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.judge import weighted_quantile
    >>> weighted_quantile(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 1.0]), 0.5)
    1.0
    """
    return float(values[quantile_place(weights, share)])
