"""Clusters on the graph kernel: samples of the nodes are clustered, and the cut of the graph judges."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.features.graph import GraphKernel, NodeGraph, needs_of_nodes, node_graph
from mmcnb.features.model import Model
from mmcnb.features.nystroem import PrincipalFeatures, RidgeMap, check_places, principal_features, ridge_map
from mmcnb.features.rules import Scores
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.all_rows import MappedSample, constrained_scores, rows_of_sample
from mmcnb.least_squares.normalized_cut import cut_score
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import (
    PARTITION_ROUTINES,
    PartitionConfig,
    partition_sample,
    partition_seconds,
)

# Chosen on optdigits, MNIST and shapes of the tuning half; `python -m benchmarks graph` measures the result.
COORDINATES = 6  # a cluster
DRAWS = 8  # samples of the nodes, each clustered by itself
SEARCHED_DRAWS = 4  # of them by local search too
DRAW_ROWS, DRAW_ROWS_A_CLUSTER = 1000, 150  # of each, at least; no more than of a sample under other kernels
SMALL_DRAW = 2000  # rows up to which all are searched at once: each search holds a matrix
DRAW_STARTS = 4  # most starts of the local search on each; regularisation paths come on top
LINKED_ROWS = 4000  # most that linkage takes: its time grows with their square
LINKED_COORDINATES = (2, 3, 6)  # a cluster, of those that linkage sees
SETTLED = 16  # starts that take more than one label step on all nodes: those that cut least after the first
NODE_STEPS = 6
# Up to so many rows, agreement of the searches counts as much as the score; of n times as many, 1/n of it:
# the score of few rows owes much to chance. Chosen on problems of the tuning half of the study of choices.
AGREEING_ROWS = 2000
COMPARED_ROWS = 3000  # by which partitions are compared
# Of n/k, of a cluster where sizes are free; the larger one while it is fewer nodes than are enough. A group
# hardly larger than the neighbourhoods of its nodes is no cluster.
LEAST_SHARES, ENOUGH_NODES = (0.1, 0.2), 30
# The same for the starts: low ones find small clusters that lie apart, high ones cut off no odd rows.
START_SHARES = (0.1, 0.5)


@dataclass(frozen=True)
class GraphSample:
    """A sample in the coordinates of a graph.

    Parameters
    ----------
    graph : NodeGraph
        The graph of its distinct rows.
    values : ndarray of shape (m, q), float64
        Coordinates of the rows.
    features : PrincipalFeatures
        The rows along the principal axes of these, with their weights.
    """

    graph: NodeGraph
    values: np.ndarray
    features: PrincipalFeatures

    @property
    def normalization(self) -> np.ndarray:
        """The identity: the kernel is the inner product of the coordinates."""
        return np.eye(self.values.shape[1])

    def ridge_map(self, alpha: float) -> RidgeMap:
        """The coordinates in which a ridge is the identity."""
        return ridge_map(self.features, self.normalization, alpha)

    def model(self, session: FitSession, alpha: float) -> Model:
        """The model of this graph, still without a rule."""
        empty, moments = Scores(np.empty((0, 0)), np.empty(0)), (session.mean, session.deviation)
        return Model(empty, None, None, *moments, ridge=self.ridge_map(alpha), graph=self.graph.map)


def graph_sample(
    sample: Any,
    weights: np.ndarray | None,
    kernel: GraphKernel,
    n_clusters: int,
    random_state: np.random.RandomState,
    engine: Engine | None = None,
) -> GraphSample:
    """Build the graph of a sample, and give all its rows the coordinates that any other row would have."""
    graph = node_graph(sample, kernel, COORDINATES * n_clusters, random_state, engine)
    check_places(graph.weights.shape[0], n_clusters, "n_nodes")
    values = graph.node_values()[graph.node_of]
    return GraphSample(graph, values, principal_features(values, weights))


def rows_of_draw(n_clusters: int) -> int:
    """Rows of each sample of the nodes.

    Examples
    --------
    >>> from mmcnb.least_squares.graph_partition import rows_of_draw
    >>> rows_of_draw(2), rows_of_draw(10), rows_of_draw(100)
    (1000, 1500, 10000)
    """
    return max(DRAW_ROWS, min(DRAW_ROWS_A_CLUSTER * n_clusters, rows_of_sample(n_clusters)))


def graph_needs(
    kernel: GraphKernel, n_clusters: int, rows: RowShape, draw_rows: int = 0, sweeps: int = 1
) -> FitNeeds:
    """Bytes and work of a fit on a graph by least squares.

    Parameters
    ----------
    kernel : GraphKernel
        Settings.
    n_clusters : int
        Clusters.
    rows : RowShape
        The rows.
    draw_rows : int, default=0
        Rows of each sample of the nodes that is clustered.
    sweeps : int, default=1
        Sweeps over the coordinates if all rows are nodes.

    Returns
    -------
    FitNeeds
        The needs.
    """
    p = min(kernel.n_nodes, rows.n_samples)
    q = min(COORDINATES * n_clusters, p)
    needs, sweeps = needs_of_nodes(kernel, q, rows), 1 if p < rows.n_samples else sweeps
    searches = len(LINKED_COORDINATES) + SEARCHED_DRAWS if _at_once(p, draw_rows) else 1
    search = searches * 8.0 * draw_rows * (draw_rows + 4 * q)  # a matrix each, which is overwritten
    seconds = needs.search_seconds * (1 + 0.05 * (n_clusters - 2))
    return replace(
        needs,
        work_bytes=max(needs.work_bytes, search),
        sweeps=sweeps,
        likely_sweeps=sweeps - 1,
        search_seconds=seconds + partition_seconds(min(draw_rows, p), n_clusters),
        routines={**needs.routines, **PARTITION_ROUTINES},
    )


def graph_least_share(n_clusters: int, n_nodes: int) -> float:
    """Default of `min_share` on a graph: 0.1, and up to 0.2 while that is fewer than 30 nodes.

    Examples
    --------
    >>> from mmcnb.least_squares.graph_partition import graph_least_share
    >>> [round(graph_least_share(10, n_nodes), 3) for n_nodes in (1000, 2000, 20_000)]
    [0.2, 0.15, 0.1]
    """
    return float(np.clip(ENOUGH_NODES * n_clusters / n_nodes, *LEAST_SHARES))


def mean_agreement(found: list[Partition]) -> float:
    """Mean adjusted Rand index between the best partition and the others; 1 where there is no other."""
    best, *others = found
    return float(np.mean([_agreement(best, one) for one in others] or [1.0]))


def _agreement(one: Partition, other: Partition) -> float:
    """The adjusted Rand index of two partitions."""
    shape = 1 + int(one.labels.max()), 1 + int(other.labels.max())
    pairs = one.labels.astype(np.int64) * shape[1] + other.labels
    return adjusted_rand_index(np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape))


def agreed_first(found: list[Partition]) -> list[Partition]:
    """The partition comes first whose score, and whose agreement with the other searches, are largest in sum.

    Where several partitions cut much the same, the lowest cut is often that of a single search, while others
    end in another partition again and again.

    Parameters
    ----------
    found : list of Partition
        Partitions of a sample, the best first.

    Returns
    -------
    list of Partition
        The same; the others keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.graph_partition import agreed_first
    >>> from mmcnb.least_squares.objective import Partition
    >>> odd, even = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    >>> found = [Partition(odd, 1.0, 0), Partition(even, 0.99, 1), Partition(even, 0.98, 2)]
    >>> [one.start for one in agreed_first(found)]
    [1, 0, 2]
    """
    rows, rivals = found[0].labels.size, found[:SETTLED]
    fewer = [replace(one, labels=one.labels[:: -(-rows // COMPARED_ROWS)]) for one in rivals]
    agreement = np.eye(len(fewer))
    for i, j in combinations(range(len(fewer)), 2):
        agreement[i, j] = agreement[j, i] = _agreement(fewer[i], fewer[j])
    weight = min(1.0, AGREEING_ROWS / rows)
    sums = [one.objective + weight * mean for one, mean in zip(fewer, agreement.mean(axis=1), strict=True)]
    first = int(np.argmax(sums))
    return [found[first], *found[:first], *found[first + 1 :]]


def partition_graph(
    engine: Engine,
    sample: GraphSample,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    draw_rows: int,
) -> list[Partition]:
    """Cluster a sample on its graph; the partition with the best cut comes first.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    sample : GraphSample
        The sample.
    config : PartitionConfig
        Number of clusters, ridge, search and sizes.
    random_state : RandomState
        Source of randomness.
    draw_rows : int
        Rows of each sample of the nodes.

    Returns
    -------
    list of Partition
        Partitions of the whole sample, their objective `cut_score`.
    """
    ridge = sample.ridge_map(config.alpha)
    draws = _draws(sample.values.shape[0], draw_rows, config, random_state)
    of_draws, widths = [draw.rows for draw in draws], _linked_widths(sample, config.n_clusters)
    linkages = [partial(_linked, sample, of_draws, config.n_clusters, width) for width in widths]
    searches = [partial(_searched, engine, sample, draw) for draw in draws if draw.configs]
    run = engine.each if _at_once(sample.values.shape[0], draw_rows) else map
    starts = [start for part in run(lambda search: search(), [*linkages, *searches]) for start in part]

    def judged(number: int, steps: int) -> Partition:
        rows, labels = starts[number]
        labels = settled_labels(sample, ridge, config, rows, labels, steps)
        nodes = sample.graph.node_labels(labels)
        return Partition(labels, cut_score(sample.graph.weights, nodes, config.n_clusters), number)

    first = sorted(engine.each(lambda start: judged(start, 1), range(len(starts))), key=_rank)
    best = engine.each(lambda one: judged(one.start, NODE_STEPS), first[:SETTLED])
    return sorted([*best, *first[SETTLED:]], key=_rank)


def _at_once(n_samples: int, size: int) -> bool:
    """Whether there are several draws, small enough to be searched at once."""
    return n_samples > 2 * size and size <= SMALL_DRAW


def _rank(partition: Partition) -> float:
    """The largest score comes first; of equal ones the first in order."""
    return -partition.objective


@dataclass(frozen=True)
class _Draw:
    """Rows of a sample, and how they are searched."""

    rows: np.ndarray
    configs: list[PartitionConfig]
    random_state: np.random.RandomState


def _draws(
    n_samples: int, size: int, config: PartitionConfig, random_state: np.random.RandomState
) -> list[_Draw]:
    """Draws of the rows; of few rows one, evenly spread."""
    floors = {max(config.least_share, share) for share in START_SHARES} if config.sizes_are_free else {0.0}
    n_init = min(config.n_init, DRAW_STARTS)
    configs = [replace(config, min_share=floor, n_init=n_init) for floor in sorted(floors)]
    if n_samples <= 2 * size:
        few = min(size, n_samples)
        return [_Draw(np.arange(few) * n_samples // few, configs, random_state)]
    states = [np.random.RandomState(random_state.randint(2**31 - 1)) for _ in range(DRAWS)]
    rows = [np.sort(one.permutation(n_samples)[:size]) for one in states]
    searched = [[configs[i % len(configs)]] if i < SEARCHED_DRAWS else [] for i in range(DRAWS)]
    return [_Draw(*one) for one in zip(rows, searched, states, strict=True)]


def _searched(engine: Engine, sample: GraphSample, draw: _Draw) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows of a draw, and their labels by the search of least squares."""
    rows, configs = draw.rows, draw.configs
    weights, parts = sample.features.weights, list[Partition]()
    features, unweighted = principal_features(sample.values[rows], weights[rows]), np.ptp(weights) == 0
    R = features.smoother(configs[0].search_alpha(rows.size)) if unweighted else None
    for config in configs:
        parts += partition_sample(engine, R, features, config, draw.random_state)
    return [(rows, one.labels) for one in parts]


def _linked_widths(sample: GraphSample, n_clusters: int) -> list[int]:
    """How many coordinates linkage sees, each number in turn."""
    return sorted({min(one * n_clusters, sample.values.shape[1]) for one in LINKED_COORDINATES})


def _linked(
    sample: GraphSample, draws: list[np.ndarray], n_clusters: int, width: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Some rows of each draw, and their labels by linkage of their first coordinates."""
    fewer = [rows[:: -(-rows.size // max(LINKED_ROWS, 2 * n_clusters))] for rows in draws]
    return [(rows, linked_directions(sample.values[rows, :width], n_clusters)) for rows in fewer]


def linked_directions(values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels of rows by average linkage of the directions of their coordinates, brought to one scale.

    A cluster of a graph is a direction: its rows differ in length more than in angle. Linkage draws no sizes,
    so it finds clusters of uneven ones.

    Parameters
    ----------
    values : ndarray of shape (m, q)
        Coordinates of the rows.
    n_clusters : int
        Number of clusters, k, at most m.

    Returns
    -------
    ndarray of shape (m,), int64
        Labels.

    References
    ----------
    A. Y. Ng, M. I. Jordan and Y. Weiss, On spectral clustering: analysis and an algorithm, step 4.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.graph_partition import linked_directions
    >>> rows = np.array([[1.0, 0.1], [3.0, 0.1], [0.1, 1.0], [0.1, 9.0]])
    >>> linked_directions(rows, 2).tolist()
    [0, 0, 1, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    m, least = values.shape[0], np.finfo(float).tiny
    values = values / np.maximum(np.sqrt((values**2).mean(axis=0)), least)
    directions = (values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), least)).astype(
        np.float32
    )
    distances = directions @ directions.T  # cosines; distances are wanted up to a factor
    np.subtract(1, distances, out=distances)
    np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
    merges, heights = kernels.average_linkage(distances)
    lowest = merges[np.argsort(heights, kind="stable")[: m - n_clusters]]
    tree = coo_array((np.ones(len(lowest), np.int8), (lowest[:, 0], lowest[:, 1])), (m, m))
    return connected_components(tree, directed=False)[1].astype(np.int64)


def settled_labels(
    sample: MappedSample,
    ridge: RidgeMap,
    config: PartitionConfig,
    rows: np.ndarray,
    labels: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Labels of all rows of a sample after a few label steps, from labels of some of them."""
    k, weights, multipliers = config.n_clusters, sample.features.weights, None
    sums, sizes = kernels.cluster_row_sums(sample.values[rows], labels, k, weights[rows])
    low, high = config.bounds_by_size(sizes * (weights.sum() / sizes.sum()))
    labels = np.empty(0, np.int64)
    for _ in range(steps):
        means = ridge.means(sums, sizes)
        given = sample, ridge, config, means, sizes, (low, high), multipliers
        rule, multipliers = constrained_scores(*given)
        new = rule.label(sample.values).astype(np.int64)
        if np.array_equal(new, labels):
            break
        labels = new
        sums, sizes = kernels.cluster_row_sums(sample.values, labels, k, weights)
    return labels
