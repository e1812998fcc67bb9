"""Clusters too small to be sampled: dense groups among outlying rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.inner_splits import real_merges
from mmcnb.choice.judge import judge
from mmcnb.choice.no_structure import dimension
from mmcnb.choice.number import ChosenNumber
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.merge_tree import by_first
from mmcnb.graph.neighbours import SCALE_NEIGHBOUR, NodeGraph, node_graph
from mmcnb.graph.vote import log_distances, noise_threshold
from mmcnb.samples.matrix import Matrix

USUAL_DEVIATIONS = 6.0  # robust deviations up to which a distance is usual


def small_clusters(
    sample: Matrix, graph: NodeGraph, seed: int, each: Callable = map
) -> np.ndarray:
    """Find small clusters in a sample that was drawn twice.

    They are groups of at least 8 nodes, at least half of which are far rows. A group is
    what remains of the merge tree without its real merges. Rows of noise, whose seventh
    neighbour is much farther than usual, would tie groups together, so they are left
    out.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows of the graph, and then the rows far from its nodes.
    graph : NodeGraph
        The graph of the first rows.
    seed : int
        Seed of the search for neighbours.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    ndarray of shape (m,), int64
        Small cluster of each row, from 1 on; 0 for all other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import small_clusters
    >>> from mmcnb.graph.neighbours import node_graph
    >>> random = np.random.RandomState(0)
    >>> near, far = random.normal(size=(500, 3)), random.normal(20, size=(12, 3))
    >>> graph = node_graph(near, None, random)
    >>> np.bincount(small_clusters(np.vstack([near, far]), graph, seed=0))
    array([500,  12])
    """

    def graph_of(rows: Matrix) -> NodeGraph:
        return node_graph(rows, None, np.random.RandomState(seed), each)

    m = sample.shape[0]
    whole = graph_of(sample)
    most = noise_threshold(
        _log_scales(graph), graph.sizes, "auto", deviations=USUAL_DEVIATIONS
    )
    is_dense = _log_scales(whole) <= most
    dense = np.flatnonzero(is_dense[whole.node_of])
    inner = graph_of(sample[dense]) if dense.size < m else whole
    weights, loops = inner.edges()
    tree = merge_tree(weights, loops)
    is_real = real_merges(inner, tree, dimension(inner))
    groups = tree.without(is_real)[inner.node_of]
    small = np.zeros(m, np.int64)
    small[dense] = far_groups(groups, dense >= graph.node_of.size)
    return small


def _log_scales(graph: NodeGraph) -> np.ndarray:
    """Return the logarithm of the distance of each node to its seventh neighbour."""
    return log_distances(graph.distances[:, :SCALE_NEIGHBOUR], 0.0)


def far_groups(groups: np.ndarray, is_far: np.ndarray) -> np.ndarray:
    """Number the groups of which at least half are far rows, from 1 on; others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import far_groups
    >>> far_groups(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 1]))
    array([0, 0, 0, 1, 1, 2])
    """
    is_far_group = np.bincount(groups, is_far) >= np.bincount(groups) / 2
    return np.where(is_far_group, is_far_group.cumsum(), 0)[groups]


def set_apart(graph: NodeGraph, candidate: Candidate, small: np.ndarray) -> Candidate:
    """Make each small cluster a cluster of its own.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    candidate : Candidate
        Its other nodes keep their clusters, except that the rest of a cluster that was
        mostly a small cluster joins it.
    small : ndarray of shape (p,), int64
        Small cluster of each node, from 1 on; 0 for all other nodes.

    Returns
    -------
    Candidate
        Without a model, if its labels changed: then the vote of the nodes labels rows.
    """
    labels = candidate.labels.copy()
    is_small = small > 0
    n_clusters = candidate.n_clusters
    labels[is_small] = n_clusters - 1 + small[is_small]
    for cluster in np.unique(candidate.labels[is_small]):
        inside = candidate.labels == cluster
        rest = inside & ~is_small
        if 2 * np.count_nonzero(rest) < np.count_nonzero(inside):
            largest = np.bincount(small[inside & is_small]).argmax()
            labels[rest] = n_clusters - 1 + largest
    labels = by_first(labels)
    if np.array_equal(labels, candidate.labels):
        return candidate
    return replace(candidate, labels=labels, score=judge(graph, labels), model=None)


def with_small(
    number: ChosenNumber, n_clusters: int, small: np.ndarray
) -> ChosenNumber:
    """Return the number of clusters with small ones, which its reason names."""
    reason = (
        f"{n_clusters} clusters, {small.max()} of them small and far from the others; "
        f"without a look for these, {number.reason}"
    )
    return replace(number, n_clusters=n_clusters, reason=reason)


def with_own(rows: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Return how many rows each node stands for; nodes of small clusters stand for one.

    Small clusters are in the sample whole; the other nodes stand for all other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import with_own
    >>> with_own(np.array([4.0, 4.0, 4.0]), np.array([0, 0, 1]))
    array([5.5, 5.5, 1. ])
    """
    is_small = small > 0
    n_others = rows.sum() - np.count_nonzero(is_small)
    scaled = rows * (n_others / rows[~is_small].sum())
    return np.asarray(np.where(is_small, 1.0, scaled))
