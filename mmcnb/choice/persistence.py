"""Persistence of a boundary: how far the density falls on the best path across it.

The density falls between two groups, but not between two slices of a long curve. The
density is estimated from the distances of nodes to their tenth neighbours. Because such
distances concentrate in many dimensions, these functions are only for nodes of a low
intrinsic dimension.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mmcnb.choice.inner_splits import (
    DEEPEST_VALLEY,
    DENSITY_NEIGHBOUR,
    LEAST_DIMENSION,
    SHALLOWEST_VALLEY,
    log_radius,
)
from mmcnb.choice.judge import ROUNDING_DIGITS
from mmcnb.choice.no_structure import LOG_LINK, link_terms, weighted_sum
from mmcnb.graph.communities import communities_by
from mmcnb.graph.merge_tree import LEAST_LINK, by_first
from mmcnb.graph.neighbours import NodeGraph

# The density along boundaries is reliable if the intrinsic dimension is below
# LOW_DIMENSION, and if there are at least FEWEST_NODES nodes.
LOW_DIMENSION = 3.2
FEWEST_NODES = 500
STEPS = 3  # number of times that the density is smoothed over the graph
# Quantiles of the densities that define the peak of a region, and the height of the
# pass across a boundary.
PEAK_QUANTILE = 0.9
BOUNDARY_QUANTILE = 0.75
# The persistence of a boundary with few edges is noisy. Therefore,
# EDGE_NOISE / sqrt(number of edges) is subtracted from it before clusters are split or
# joined.
EDGE_NOISE = 1.2
# The thresholds below were chosen on curves, shapes, maps and blobs.
# `python -m benchmarks number --part families` prints the numbers of clusters found.
SPLIT_PERSISTENCE = 0.7
SPLIT_EVIDENCE = 0.0  # if positive, the link is weaker than without structure
FINE_RESOLUTION = 3.14  # resolution of the communities into which clusters are cut
LEAST_PIECE = 15  # least number of rows in a piece
JOIN_PERSISTENCE = 0.35
# Boundaries between communities follow places where nodes are sparse by chance. With
# more nodes, there are more such places, so the threshold of the persistence for
# joining grows with the logarithm of the number of nodes.
PERSISTENCE_GROWTH = 0.05
FEW_NODES = 1000
JOIN_VALLEY = 0.5  # clusters with a deeper valley between them are not joined
JOIN_EVIDENCE = 3.5  # with at least this evidence of a gap, clusters are not joined
LEAST_JOINED = 50  # clusters with fewer rows are not joined
LEAST_EDGES = 4  # fewer edges only bridge a gap, so clusters are not joined


def log_density(graph: NodeGraph, d: float, steps: int = STEPS) -> np.ndarray:
    """Return the logarithm of the density at each node, smoothed over the graph.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the p nodes.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    steps : int, default=3
        Number of smoothing steps. Each step replaces the value of a node by the mean
        over the node and its neighbours.

    Returns
    -------
    ndarray of shape (p,)
        Natural logarithm of the density, up to a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.persistence import log_density
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).normal(size=(500, 2))
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> h = log_density(graph, 2.0)[graph.node_of]
    >>> bool(h[np.abs(rows).max(axis=1) < 0.5].mean() > h.mean())
    True
    """
    counts = graph.counts
    near = graph.numbers[:, : DENSITY_NEIGHBOUR + 1]
    rows_near = (counts + counts[near].sum(axis=1)) / (1 + near.shape[1])
    h = np.log(rows_near) - d * log_radius(graph)
    weights, _ = graph.edges()
    n_neighbors = np.diff(weights.indptr)
    neighbors = weights.copy()
    neighbors.data = np.ones_like(weights.data)
    for _ in range(steps):
        h = (h + neighbors @ h) / (1 + n_neighbors)
    return np.asarray(h)


@dataclass
class Region:
    """A set of nodes, with statistics that are updated when regions are merged.

    Parameters
    ----------
    nodes : ndarray of int64
        Indices of the nodes.
    n_rows : float
        Number of rows of the sample that the nodes represent.
    volume : float
        Sum over the nodes of the total weight of their edges, including loops.
    log_radius : float
        Sum over the nodes of the log distance to the tenth neighbour.
    peak : float, default=0.0
        The 90 % quantile of the log densities at the nodes.
    """

    nodes: np.ndarray
    n_rows: float
    volume: float
    log_radius: float
    peak: float = 0.0


@dataclass
class Boundary:
    """The edges between two regions.

    Parameters
    ----------
    densities : ndarray
        For each edge, the logarithm of the density at its sparser end.
    weight : float
        Sum of the weights of the edges.
    log_radius : float
        Sum over the edges of the log distance to the tenth neighbour, averaged over the
        two ends of each edge.
    persistence : float, default=0.0
        How far the log density falls on the best path across the boundary: the lower of
        the peaks of the two regions, minus the 75 % quantile of ``densities``.
    gap : Gap or None, default=None
        Evidence that a gap separates the two regions; None until it is computed.
    """

    densities: np.ndarray
    weight: float
    log_radius: float
    persistence: float = 0.0
    gap: "Gap | None" = None

    @property
    def noise(self) -> float:
        """Part of the persistence that may be due to noise; larger for fewer edges."""
        return EDGE_NOISE / self.densities.size**0.5

    @property
    def excess(self) -> float:
        """Persistence minus `noise`, rounded for reproducible comparisons."""
        return round(self.persistence - self.noise, ROUNDING_DIGITS)


class Gap(NamedTuple):
    """Evidence that a gap separates two regions.

    Attributes
    ----------
    evidence : float
        Logarithm of the ratio of the link expected without structure to the observed
        link, plus half of ``valley``.
    valley : float
        Logarithm of the ratio of the density inside the regions to the density on the
        boundary, clipped to [-1, 1.5].
    """

    evidence: float
    valley: float


Pair = tuple[int, int]


class Regions:
    """A partition whose regions can be merged, one pair at a time.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    labels : ndarray of shape (p,), int64
        Region of each node, from 0.
    """

    def __init__(self, graph: NodeGraph, d: float, labels: np.ndarray) -> None:
        self.d = d
        self.n_nodes = graph.n_nodes
        self.n_rows = float(graph.counts.sum())
        self.h = log_density(graph, d)
        radius = log_radius(graph)
        weights, loops = graph.edges()
        volumes = np.asarray(weights.sum(axis=1)).ravel() + loops
        self.volume = float(volumes.sum())
        self.regions: dict[int, Region] = {}
        for number, nodes in enumerate(_members(labels)):
            self.regions[number] = Region(
                nodes=nodes,
                n_rows=float(graph.counts[nodes].sum()),
                volume=float(volumes[nodes].sum()),
                log_radius=float(radius[nodes].sum()),
                peak=float(np.quantile(self.h[nodes], PEAK_QUANTILE)),
            )
        self.boundaries: dict[Pair, Boundary] = {}
        edges = weights.tocoo()
        is_across = (edges.row < edges.col) & (labels[edges.row] != labels[edges.col])
        start = edges.row[is_across]
        end = edges.col[is_across]
        pairs = np.sort(np.column_stack([labels[start], labels[end]]), axis=1)
        densities = np.minimum(self.h[start], self.h[end])
        radii = (radius[start] + radius[end]) / 2
        numbers = pairs[:, 0] * (int(labels.max()) + 1) + pairs[:, 1]
        _, pair_of_edge = np.unique(numbers, return_inverse=True)
        for inside in _members(pair_of_edge.ravel()):
            pair = int(pairs[inside[0], 0]), int(pairs[inside[0], 1])
            self.boundaries[pair] = Boundary(
                densities=densities[inside],
                weight=float(edges.data[is_across][inside].sum()),
                log_radius=float(radii[inside].sum()),
            )
            self._measure(pair)

    def __len__(self) -> int:
        return len(self.regions)

    @property
    def labels(self) -> np.ndarray:
        """Region of each node.

        Regions are numbered in the order of their first nodes.
        """
        labels = np.empty(self.n_nodes, np.int64)
        for number, region in self.regions.items():
            labels[region.nodes] = number
        return by_first(labels)

    def smaller(self, pair: Pair) -> float:
        """Return the number of rows of the smaller region of a pair."""
        return min(self.regions[number].n_rows for number in pair)

    def gap(self, pair: Pair) -> Gap:
        """Return the evidence that a gap separates the two regions of a pair."""
        boundary = self.boundaries[pair]
        if boundary.gap is None:
            boundary.gap = self._gap(pair, boundary)
        return boundary.gap

    def merge(self, pair: Pair) -> None:
        """Merge the second region of a pair into the first.

        The boundaries of both regions become boundaries of the merged region.
        """
        first, second = pair
        into = self.regions[first]
        merged = self.regions.pop(second)
        into.nodes = np.concatenate([into.nodes, merged.nodes])
        into.n_rows += merged.n_rows
        into.volume += merged.volume
        into.log_radius += merged.log_radius
        into.peak = float(np.quantile(self.h[into.nodes], PEAK_QUANTILE))
        del self.boundaries[pair]
        for other_pair in [pair for pair in self.boundaries if second in pair]:
            boundary = self.boundaries.pop(other_pair)
            other = sum(other_pair) - second
            self._add(_in_order(first, other), boundary)
        for other_pair in self.boundaries:
            if first in other_pair:
                self._measure(other_pair)

    def _add(self, pair: Pair, boundary: Boundary) -> None:
        """Add the edges of ``boundary`` to the boundary between a pair of regions."""
        known = self.boundaries.get(pair)
        if known is None:
            self.boundaries[pair] = boundary
            return
        known.densities = np.concatenate([known.densities, boundary.densities])
        known.weight += boundary.weight
        known.log_radius += boundary.log_radius

    def _measure(self, pair: Pair) -> None:
        """Compute the persistence of the boundary of a pair, and discard its gap.

        The gap is outdated after a merge; `gap` computes it again.
        """
        boundary = self.boundaries[pair]
        peak = min(self.regions[number].peak for number in pair)
        pass_height = np.quantile(boundary.densities, BOUNDARY_QUANTILE)
        boundary.persistence = round(float(peak - pass_height), ROUNDING_DIGITS)
        boundary.gap = None

    def _gap(self, pair: Pair, boundary: Boundary) -> Gap:
        d = max(self.d, LEAST_DIMENSION)
        sides = [self.regions[number] for number in pair]
        smaller, larger = sorted(side.n_rows for side in sides)
        terms = link_terms(np.array(smaller), np.array(larger), self.n_rows, d)
        link = boundary.weight * self.volume / (sides[0].volume * sides[1].volume)
        within = np.mean([side.log_radius / side.nodes.size for side in sides])
        depth = d * (boundary.log_radius / boundary.densities.size - within)
        valley = float(np.clip(depth, SHALLOWEST_VALLEY, DEEPEST_VALLEY))
        expected = float(weighted_sum(terms, LOG_LINK))
        return Gap(expected - np.log(max(link, LEAST_LINK)) + valley / 2, valley)


def _members(labels: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, for each label from 0, the indices of the elements with this label."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    for start, end in pairwise(np.append(0, ends)):
        yield order[start:end]


def _in_order(a: int, b: int) -> Pair:
    if a < b:
        return a, b
    return b, a


# -- splits and joins ------------------------------------------------------------------


def split_at_valleys(graph: NodeGraph, d: float, labels: np.ndarray) -> np.ndarray:
    """Split clusters in which the density falls and rises again.

    Each cluster is cut into fine communities. Neighbouring communities of a cluster are
    merged, starting with the least persistent boundary. Merging stops when the density
    falls at each remaining boundary inside a cluster, and the link across each of these
    boundaries is weaker than expected without structure.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the p nodes.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    labels : ndarray of shape (p,), int64
        Cluster of each node, from 0.

    Returns
    -------
    ndarray of shape (p,), int64
        Cluster of each node; clusters are numbered in the order of their first nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.persistence import split_at_valleys
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).normal(size=(2000, 2))
    >>> rows[::2, 0] += 9
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> labels = split_at_valleys(graph, 2.0, np.zeros(2000, int))
    >>> np.bincount(labels)
    array([1000, 1000])
    """
    fine = communities_by(*graph.edges(), FINE_RESOLUTION)
    pieces = by_first(labels * (int(fine.max()) + 1) + fine)
    regions = Regions(graph, d, pieces)
    cluster = {
        number: int(labels[region.nodes[0]])
        for number, region in regions.regions.items()
    }

    def is_merged(pair: Pair) -> bool:
        if cluster[pair[0]] != cluster[pair[1]]:
            return False
        is_shallow = regions.boundaries[pair].excess < SPLIT_PERSISTENCE
        if is_shallow or regions.smaller(pair) < LEAST_PIECE:
            return True
        return regions.gap(pair).evidence < SPLIT_EVIDENCE

    while True:
        merged = [pair for pair in regions.boundaries if is_merged(pair)]
        if not merged:
            break
        regions.merge(_shallowest(regions, merged))
    return _without_crumbs(regions, cluster)


def _shallowest(regions: Regions, pairs: list[Pair]) -> Pair:
    """Return the pair of regions whose boundary has the least excess persistence.

    Ties go to the first pair.
    """
    return min(pairs, key=lambda pair: (regions.boundaries[pair].excess, pair))


def _without_crumbs(regions: Regions, cluster: dict[int, int]) -> np.ndarray:
    """Return labels in which tiny regions join the largest region of their cluster.

    A region is tiny if it has fewer than 15 rows.
    """
    labels = np.empty(regions.n_nodes, np.int64)
    largest: dict[int, int] = {}
    for number, region in regions.regions.items():
        known = largest.setdefault(cluster[number], number)
        if region.n_rows > regions.regions[known].n_rows:
            largest[cluster[number]] = number
    for number, region in regions.regions.items():
        is_crumb = region.n_rows < LEAST_PIECE
        labels[region.nodes] = largest[cluster[number]] if is_crumb else number
    return by_first(labels)


def joined_persistence(n_nodes: int) -> float:
    """Return the threshold of `Boundary.excess` below which clusters are joined.

    Examples
    --------
    >>> from mmcnb.choice.persistence import joined_persistence
    >>> joined_persistence(800), round(joined_persistence(20_000), 2)
    (0.35, 0.5)
    """
    growth = max(0.0, float(np.log(n_nodes / FEW_NODES)))
    return JOIN_PERSISTENCE + PERSISTENCE_GROWTH * growth


def joined_without_valley(
    graph: NodeGraph, d: float, labels: np.ndarray, least: int = 2
) -> np.ndarray:
    """Join neighbouring clusters if the density does not fall between them.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the p nodes.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    labels : ndarray of shape (p,), int64
        Cluster of each node, from 0.
    least : int, default=2
        Least number of clusters that must remain.

    Returns
    -------
    ndarray of shape (p,), int64
        Cluster of each node; clusters are numbered in the order of their first nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.persistence import joined_without_valley
    >>> from mmcnb.graph.neighbours import node_graph
    >>> along = np.random.RandomState(0).uniform(size=2000)
    >>> rows = np.column_stack([20 * along, np.random.RandomState(1).normal(size=2000)])
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> slices = (5 * graph.search.nodes[:, 0] / 20 + 2.5).clip(0, 4.9).astype(int)
    >>> joined_without_valley(graph, 2.0, slices, least=1).max()
    np.int64(0)
    """
    regions = Regions(graph, d, labels)
    shallow = joined_persistence(graph.n_nodes)

    def is_joined(pair: Pair) -> bool:
        boundary = regions.boundaries[pair]
        is_deep = boundary.excess >= shallow
        is_bridge = boundary.densities.size < LEAST_EDGES
        if is_deep or is_bridge or regions.smaller(pair) < LEAST_JOINED:
            return False
        gap = regions.gap(pair)
        is_shallow = gap.valley < JOIN_VALLEY + boundary.noise
        return is_shallow and gap.evidence < JOIN_EVIDENCE

    while len(regions) > least:
        joined = [pair for pair in regions.boundaries if is_joined(pair)]
        if not joined:
            break
        regions.merge(_shallowest(regions, joined))
    return regions.labels


def least_of_any_cut(graph: NodeGraph, d: float, labels: np.ndarray) -> float:
    """Return the threshold of `Boundary.excess` that joins all clusters into one.

    Clusters are joined in ascending order of the excess. The threshold is infinite if a
    gap separates clusters, because such clusters are never joined.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the p nodes.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    labels : ndarray of shape (p,), int64
        Cluster of each node, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.persistence import least_of_any_cut
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).normal(size=(1000, 2))
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> least_of_any_cut(graph, 2.0, (graph.search.nodes[:, 0] > 0).astype(int)) < 0.3
    True
    """
    regions = Regions(graph, d, labels)
    reached = -np.inf
    while len(regions) > 1:
        near = [
            pair
            for pair in regions.boundaries
            if regions.gap(pair).evidence < JOIN_EVIDENCE
        ]
        if not near:
            return np.inf
        pair = _shallowest(regions, near)
        reached = max(reached, regions.boundaries[pair].excess)
        regions.merge(pair)
    return reached
