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

USUAL_DEVIATIONS = 6.0  # robust deviations up to which a distance is usual
# A tube ends in the middle of the nodes of a cluster that are nearest to a group: so
# many, and such a share of its nodes. A few of these may be rows of the group itself.
LEAST_TARGETS = 30
TARGET_SHARE = 0.1
MOST_TUBES = 3  # from a group, to the clusters nearest to it


class _Target(NamedTuple):
    """Where a tube ends, and how far it is from the group."""

    distance: float
    point: np.ndarray


class FarGroups(NamedTuple):
    """Groups of far rows of a sample that was drawn twice.

    Attributes
    ----------
    small : ndarray of shape (m,), int64
        Group of each row, from 1 on; 0 for all other rows.
    axes : Axes or AllColumns
        The axes along which they were found.
    """

    small: np.ndarray
    axes: RowMap


def far_row_groups(
    sample: Matrix, graph: NodeGraph, seed: int, each: Callable = map
) -> FarGroups:
    """Find groups of far rows in a sample that was drawn twice.

    They have at least 8 nodes, at least half of which are far rows. A group is what
    remains of the merge tree without its real merges. Rows of noise, whose seventh
    neighbour is much farther than usual, would tie groups together, so they are left
    out.

    Far rows are drawn at a higher rate than nodes, so that nodes are denser from some
    distance on, and tails look like groups. `with_valleys` drops these.

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
    # What remains beside real merges may be smaller than the sides of these.
    small[dense] = far_groups(groups, dense >= graph.node_of.size, LEAST_GROUP)
    return FarGroups(small, whole.axes)


def _log_scales(graph: NodeGraph) -> np.ndarray:
    """Return the logarithm of the distance of each node to its seventh neighbour."""
    return log_distances(graph.distances[:, :SCALE_NEIGHBOUR], 0.0)


def far_groups(groups: np.ndarray, is_far: np.ndarray, least: int = 1) -> np.ndarray:
    """Number the groups of which at least half are far rows, from 1 on; others are 0.

    Groups of fewer rows than ``least`` are 0 as well.

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
        Rows of the sample, along the axes.
    small : ndarray of shape (m,), int64
        Group of each row, from 1 on; 0 for all other rows.
    labels : ndarray of shape (p,), int64
        Clusters of the first rows, which were found without the far rows.

    Returns
    -------
    list of Tube
        At most three for each group.
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
    """Yield the side of each larger cluster that faces a group.

    A cluster that mostly consists of the group is no larger one.
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
    """Keep the groups from which the density falls on all ways to larger clusters.

    Parameters
    ----------
    small : ndarray of shape (m,), int64
        Group of each row, from 1 on; 0 for all other rows.
    tubes : sequence of Tube
        Those of `tubes_inwards`.
    profiles : ndarray of shape (number of tubes, 64)
        Rows in the slabs of each tube.

    Returns
    -------
    ndarray of shape (m,), int64
        Small cluster of each row, from 1 on; 0 for all other rows.
    """
    groups = np.array([tube.group for tube in tubes], np.int64)
    n_slabs = np.array([tube.n_slabs for tube in tubes], np.int64)
    kept = groups_with_valleys(groups, profiles, n_slabs)
    number = np.zeros(int(small.max()) + 1, np.int64)
    number[kept] = np.arange(1, kept.size + 1)
    return number[small]


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
