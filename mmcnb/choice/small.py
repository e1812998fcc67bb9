"""Clusters too small to be sampled: dense groups among outlying rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.inner_splits import LEAST_GROUP, real_merges
from mmcnb.choice.judge import judge
from mmcnb.choice.no_structure import dimension
from mmcnb.choice.number import ChosenNumber
from mmcnb.choice.valleys import groups_with_valleys
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.merge_tree import by_first
from mmcnb.graph.neighbours import SCALE_NEIGHBOUR, NodeGraph, RowMap, node_graph
from mmcnb.graph.tubes import Tube, tube_between
from mmcnb.graph.vote import log_distances, noise_threshold
from mmcnb.samples.matrix import Matrix

USUAL_DEVIATIONS = 6.0  # rows beyond this number of robust deviations are noise
# A tube from a group to a cluster ends at the mean of those nodes of the cluster that
# are nearest to the group: a share of TARGET_SHARE of its nodes, but at least
# LEAST_TARGETS nodes, because a few of them may belong to the group itself.
LEAST_TARGETS = 30
TARGET_SHARE = 0.1
MOST_TUBES = 3  # number of nearest clusters to which tubes from a group lead


class _Target(NamedTuple):
    """End of a tube from a group of far rows to a larger cluster.

    ``distance`` is the distance from the mean of the group to this end.
    """

    distance: float
    point: np.ndarray


class FarGroups(NamedTuple):
    """Groups of far rows in a sample that was extended by rows far from its nodes.

    Attributes
    ----------
    small : ndarray of shape (m,), int64
        Number of the group of each row, from 1; 0 for rows outside all groups.
    axes : Axes or AllColumns
        Axes on which the rows were projected to find the groups.
    """

    small: np.ndarray
    axes: RowMap


def far_row_groups(
    sample: Matrix, graph: NodeGraph, seed: int, each: Callable = map
) -> FarGroups:
    """Return the groups of far rows in a sample to which far rows were added.

    Far rows are the added rows, which are far from the nodes of ``graph``. Undoing the
    merges found by `real_merges` yields groups. A group is returned if it has at least
    8 rows, and at least half of them are far rows. Noise is left out, because it would
    link groups to each other. Here, a row is noise if the log distance to its seventh
    neighbour is more than six robust deviations above the median over the nodes of
    ``graph``.

    Because far rows are drawn at a higher rate than other rows, the tails of clusters
    are denser in the sample than in the data, and may be returned as groups.
    `with_valleys` drops these groups.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows of ``graph``, followed by the rows far from its nodes.
    graph : NodeGraph
        Neighbour graph of the first rows of ``sample``.
    seed : int
        Random seed of the search for neighbours.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.

    Returns
    -------
    FarGroups

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import far_row_groups
    >>> from mmcnb.graph.neighbours import node_graph
    >>> random = np.random.RandomState(0)
    >>> near, far = random.normal(size=(500, 3)), random.normal(20, size=(12, 3))
    >>> graph = node_graph(near, None, random)
    >>> sample = np.vstack([near, far])
    >>> np.bincount(far_row_groups(sample, graph, seed=0).small)
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
    # Each side of a real merge has at least LEAST_GROUP rows, but undoing further
    # merges inside a side may leave a smaller group.
    small[dense] = far_groups(groups, dense >= graph.node_of.size, LEAST_GROUP)
    return FarGroups(small, whole.axes)


def _log_scales(graph: NodeGraph) -> np.ndarray:
    """Return the logarithm of the distance of each node to its seventh neighbour."""
    return log_distances(graph.distances[:, :SCALE_NEIGHBOUR], 0.0)


def far_groups(groups: np.ndarray, is_far: np.ndarray, least: int = 1) -> np.ndarray:
    """Number the groups of far rows from 1; rows outside these groups have number 0.

    A group of far rows has at least ``least`` rows, and at least half of them are far.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.small import far_groups
    >>> far_groups(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 1]))
    array([0, 0, 0, 1, 1, 2])
    """
    sizes = np.bincount(groups)
    is_far_group = (np.bincount(groups, is_far) >= sizes / 2) & (sizes >= least)
    return np.where(is_far_group, is_far_group.cumsum(), 0)[groups]


def tubes_inwards(
    points: np.ndarray, small: np.ndarray, labels: np.ndarray
) -> list[Tube]:
    """Return tubes from each group of far rows to the larger clusters nearest to it.

    Parameters
    ----------
    points : ndarray of shape (m, c)
        Rows of the sample, projected on the axes.
    small : ndarray of shape (m,), int64
        Number of the group of each row, from 1; 0 for rows outside all groups.
    labels : ndarray of shape (p,), int64
        Clusters of the first p rows, which were found without the far rows.

    Returns
    -------
    list of Tube
        At most three tubes for each group, which lead to the nearest clusters.
    """
    points = points.astype(np.float64)
    tubes = []
    for group in range(1, int(small.max()) + 1):
        members = points[small == group]
        targets = list(_targets(points, members.mean(axis=0), group, small, labels))
        targets.sort(key=_distance)
        for target in targets[:MOST_TUBES]:
            tube = tube_between(group, members, target.point)
            if tube is not None:
                tubes.append(tube)
    return tubes


def _distance(target: _Target) -> float:
    return target.distance


def _targets(
    points: np.ndarray,
    mean: np.ndarray,
    group: int,
    small: np.ndarray,
    labels: np.ndarray,
) -> Iterator[_Target]:
    """Yield, for each larger cluster, the end of a tube from the group to it.

    The end is the mean of the nodes of the cluster that are nearest to the group.
    Clusters without nodes outside all groups, or with more nodes in this group than
    outside all groups, are skipped.
    """
    group_of_node = small[: labels.size]
    distances = np.linalg.norm(points[: labels.size] - mean, axis=1)
    for cluster in range(int(labels.max()) + 1):
        inside = labels == cluster
        others = np.flatnonzero(inside & (group_of_node == 0))
        n_own = int(np.count_nonzero(inside & (group_of_node == group)))
        if others.size < max(1, n_own):
            continue
        count = max(LEAST_TARGETS, int(TARGET_SHARE * others.size))
        nearest = others[np.argsort(distances[others], kind="stable")[:count]]
        point = points[nearest].mean(axis=0)
        yield _Target(float(np.linalg.norm(point - mean)), point)


def with_valleys(
    small: np.ndarray, tubes: Sequence[Tube], profiles: np.ndarray
) -> np.ndarray:
    """Keep the groups for which the density falls along all tubes to larger clusters.

    Parameters
    ----------
    small : ndarray of shape (m,), int64
        Number of the group of each row, from 1; 0 for rows outside all groups.
    tubes : sequence of Tube
        Tubes from the groups, as returned by `tubes_inwards`.
    profiles : ndarray of shape (number of tubes, 64)
        Number of rows in each slab of each tube.

    Returns
    -------
    ndarray of shape (m,), int64
        Number of the small cluster of each row, from 1; 0 for rows outside small
        clusters.
    """
    groups = np.array([tube.group for tube in tubes], np.int64)
    n_slabs = np.array([tube.n_slabs for tube in tubes], np.int64)
    kept = groups_with_valleys(groups, profiles, n_slabs)
    number = np.zeros(int(small.max()) + 1, np.int64)
    number[kept] = np.arange(1, kept.size + 1)
    return number[small]


def set_apart(graph: NodeGraph, candidate: Candidate, small: np.ndarray) -> Candidate:
    """Make each small cluster a separate cluster of a candidate.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    candidate : Candidate
        The candidate. Nodes outside small clusters stay in their clusters, with one
        exception: if most nodes of a cluster are in small clusters, its other nodes
        join the largest of these small clusters.
    small : ndarray of shape (p,), int64
        Number of the small cluster of each node, from 1; 0 for nodes outside small
        clusters.

    Returns
    -------
    Candidate
        The given candidate if no label changes. Otherwise, a candidate without a model,
        so that rows are labelled by a vote of their nearest nodes.
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
    """Return the number of clusters and its reason, updated for small clusters."""
    reason = (
        f"{n_clusters} clusters, {small.max()} of them small and far from the others; "
        f"without these, {number.reason}"
    )
    return replace(number, n_clusters=n_clusters, reason=reason)


def with_own(rows: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Correct the number of rows of each node: it is 1 for nodes of small clusters.

    All rows of small clusters are in the sample. The numbers of rows of the other nodes
    are scaled so that these nodes together represent all other rows.

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
