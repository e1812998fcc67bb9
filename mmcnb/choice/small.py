"""Small clusters: groups among rows that are far from all nodes."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.judge import judge
from mmcnb.choice.number import Number, dimension, real_merges
from mmcnb.graph.communities import by_first, merge_tree
from mmcnb.graph.neighbours import SCALE_NEIGHBOUR, NodeGraph, node_graph
from mmcnb.graph.vote import log_distances, noise_threshold


def small_clusters(
    sample: Any, graph: NodeGraph, seed: int, each: Any = map
) -> np.ndarray:
    """Small clusters in a sample that was drawn twice: groups of 8 nodes or more, half of them far rows.

    A group is what remains of the merge tree without its real merges. Rows of noise,
    whose seventh neighbour is much farther than usual, would tie groups together; so
    they are left out.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows of the graph, and then those far from its nodes.
    graph : NodeGraph
        The graph of the first rows.
    seed : int
        Seed of the search for neighbours.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    ndarray of shape (m,), int64
        Small cluster of each row, from 1 on; 0 for rows of none.

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
    is_far = np.arange(sample.shape[0]) >= graph.node_of.size
    whole = node_graph(sample, None, np.random.RandomState(seed), each)
    usual = log_distances(graph.distances[:, :SCALE_NEIGHBOUR], 0.0)
    most = noise_threshold(
        usual, graph.sizes, "auto", deviations=6.0
    )  # such a distance is still usual
    scales = log_distances(whole.distances[:, :SCALE_NEIGHBOUR], 0.0)
    dense = np.flatnonzero((scales <= most)[whole.node_of])
    inner = whole
    if dense.size < sample.shape[0]:
        inner = node_graph(sample[dense], None, np.random.RandomState(seed), each)
    tree = merge_tree(*inner.edges())
    groups = tree.without(real_merges(inner, tree, dimension(inner)))[inner.node_of]
    found = np.zeros(sample.shape[0], np.int64)
    found[dense] = far_groups(groups, is_far[dense])
    return found


def far_groups(groups: np.ndarray, is_far: np.ndarray) -> np.ndarray:
    """The groups of which at least half are far rows, numbered from 1 on, by rows; 0 for rows of others.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import far_groups
    >>> far_groups(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 1]))
    array([0, 0, 0, 1, 1, 2])
    """
    is_own = np.bincount(groups, is_far) >= np.bincount(groups) / 2
    return np.where(is_own, is_own.cumsum(), 0)[groups]


def set_apart(graph: NodeGraph, one: Candidate, small: np.ndarray) -> Candidate:
    """A candidate in which each small cluster is a cluster of its own.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    one : Candidate
        Its other nodes keep their clusters, but those of a cluster that was mostly a
        small one join that.
    small : ndarray of shape (p,), int64
        Small cluster of each node, from 1 on; 0 for nodes of none.

    Returns
    -------
    Candidate
        The vote labels rows by it, if that changed its labels.
    """
    labels = one.labels.copy()
    is_small = small > 0
    labels[is_small] = labels.max() + small[is_small]
    for cluster in np.unique(one.labels[is_small]):
        inside = one.labels == cluster
        if 2 * np.count_nonzero(rest := inside & ~is_small) < np.count_nonzero(inside):
            labels[rest] = (
                one.labels.max() + np.bincount(small[inside & is_small]).argmax()
            )
    labels = by_first(labels)
    if np.array_equal(labels, one.labels):
        return one
    return replace(one, labels=labels, score=judge(graph, labels), model=None)


def with_small(number: Number, labels: np.ndarray, small: np.ndarray) -> Number:
    """The number of labels in which small clusters were set apart; its reason tells of them."""
    k = int(labels.max()) + 1
    reason = f"{k} clusters, {small.max()} of them small and far from the others; without a look for these, "
    return replace(number, n_clusters=k, reason=f"{reason}{number.reason}")


def with_own(rows: np.ndarray, small: np.ndarray) -> np.ndarray:
    """How many rows each node stands for, of as many in all: one in small clusters, which are there whole.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import with_own
    >>> with_own(np.array([4.0, 4.0, 4.0]), np.array([0, 0, 1]))
    array([5.5, 5.5, 1. ])
    """
    is_small = small > 0
    others = rows.sum() - np.count_nonzero(is_small)
    return np.asarray(np.where(is_small, 1.0, rows * (others / rows[~is_small].sum())))
