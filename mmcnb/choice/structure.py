"""Partition a sample at many resolutions, and weigh the evidence for each partition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import blake2b

import numpy as np

from mmcnb._agreement import adjusted_rand_index
from mmcnb.choice.inner_splits import real_merges
from mmcnb.choice.judge import (
    INFORMATION_WEIGHT,
    cluster_weights,
    gap_between,
    mutual_information,
)
from mmcnb.choice.no_structure import dimension, significance
from mmcnb.graph.communities import communities_by, merge_tree
from mmcnb.graph.merge_tree import MergeTree
from mmcnb.graph.neighbours import NodeGraph

# If the finest cut of a tree has more than MANY clusters, finer cuts are added until
# one has more than MOST_CLUSTERS or consists of all pieces.
MANY = 30
MOST_CLUSTERS = 300
LEAST_MEAN_SIZE = 6  # least mean number of nodes per cluster
SAME_PARTITION = 0.95  # adjusted Rand index above which partitions count as equal


@dataclass(frozen=True)
class ScoredPartition:
    """A partition of the nodes, and the evidence for it.

    Parameters
    ----------
    labels : ndarray of shape (p,), int64
        Cluster of each node; clusters are numbered in the order of their first nodes.
    n_clusters : int
        Number of clusters.
    entropy, loss : float
        Entropy of the volumes of the clusters, in nats, and the conditional entropy of
        the labels as a fraction of this entropy.
    J : float
        The score J for a given number of clusters, defined in `judge.Score`.
    z : float
        Evidence for the partition, as returned by `significance`.
    score : float
        Score that is comparable between numbers of clusters. Larger is better.
    persistence : int
        Number of tree cuts and resolutions at which the partition was found.
    """

    labels: np.ndarray
    n_clusters: int
    entropy: float
    loss: float
    J: float
    z: float
    score: float
    persistence: int


@dataclass(frozen=True)
class Structure:
    """Partitions of the nodes of a graph at many resolutions.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    tree : MergeTree
        Merge tree of the graph.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.
    partitions : sequence of ScoredPartition
        Distinct partitions, with the evidence for each.
    """

    graph: NodeGraph
    tree: MergeTree
    d: float
    partitions: Sequence[ScoredPartition]
    _pair_agreements: dict[tuple[int, int], float] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def groups(self) -> np.ndarray:
        """Group of each node, obtained by undoing the merges found by `real_merges`."""
        return self.tree.without(real_merges(self.graph, self.tree, self.d))

    def probabilities(self, sharpness: float) -> np.ndarray:
        """Return the probability of each partition, from its score and its persistence.

        The probability is proportional to ``exp(sharpness * score) * persistence``.
        """
        scores = np.array([partition.score for partition in self.partitions])
        persistence = [partition.persistence for partition in self.partitions]
        likelihoods = np.exp(sharpness * (scores - scores.max())) * persistence
        return np.asarray(likelihoods / likelihoods.sum())

    def agreements(self, labels: np.ndarray) -> np.ndarray:
        """Return the adjusted Rand index of labels and each partition, clipped at 0."""
        counts = self.graph.counts
        values = [agreement(labels, other.labels, counts) for other in self.partitions]
        return np.maximum(np.array(values), 0.0)

    def pair_agreement(self, first: int, second: int) -> float:
        """Return the adjusted Rand index of the partitions with two given indices."""
        pair = min(first, second), max(first, second)
        if pair not in self._pair_agreements:
            a, b = (self.partitions[place].labels for place in pair)
            self._pair_agreements[pair] = agreement(a, b, self.graph.counts)
        return self._pair_agreements[pair]

    def agreements_of_partition(self, place: int) -> np.ndarray:
        """Return the `agreements` of the partition with index ``place``.

        The agreements of pairs of partitions are cached.
        """
        places = range(len(self.partitions))
        values = [self.pair_agreement(place, other) for other in places]
        return np.maximum(np.array(values), 0.0)

    def scored(self, labels: np.ndarray) -> ScoredPartition:
        """Score a partition.

        Its persistence is the total persistence of all nearly equal partitions.
        """
        is_same = self.agreements(labels) >= SAME_PARTITION
        persistence = [partition.persistence for partition in self.partitions]
        return score_partition(
            self.graph, self.d, labels, int(np.dot(is_same, persistence))
        )


def find_structure(
    graph: NodeGraph, n_clusters: int | None = None, each: Callable = map
) -> Structure:
    """Partition a graph at many resolutions.

    Partitions have at least two clusters, and at least six nodes per cluster on
    average.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    n_clusters : int or None, default=None
        The requested number of clusters. If given, the merge tree has at least this
        number of pieces, and the only partitions are its cuts.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.

    Returns
    -------
    Structure

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.structure import find_structure
    >>> from mmcnb.graph.neighbours import node_graph
    >>> noise = np.random.RandomState(0).normal(size=(200, 2))
    >>> rows = noise + np.repeat([0, 9], 100)[:, None]
    >>> found = find_structure(node_graph(rows, None, np.random.RandomState(0)))
    >>> max(found.partitions, key=lambda partition: partition.score).n_clusters
    2
    """
    neighbours = [10]
    if n_clusters is None and graph.n_nodes >= 300:
        neighbours.append(25)
    edges = [graph.edges(count) for count in neighbours]
    trees = list(each(lambda pair: merge_tree(pair[0], pair[1], n_clusters), edges))
    labelings = [labels for tree in trees for labels in _cuts(tree)]
    if n_clusters is None:
        resolutions = np.geomspace(3.14, 0.02, 13)
        for weights, loops in edges:
            labelings += each(partial(communities_by, weights, loops), resolutions)
    distinct: dict[bytes, np.ndarray] = {}
    persistence: dict[bytes, int] = {}
    for labels in labelings:
        if 2 <= labels.max() + 1 <= graph.n_nodes / LEAST_MEAN_SIZE:
            key = blake2b(labels.tobytes(), digest_size=16).digest()
            distinct[key] = labels
            persistence[key] = persistence.get(key, 0) + 1
    d = dimension(graph)
    partitions = each(
        lambda key: score_partition(graph, d, distinct[key], persistence[key]),
        distinct,
    )
    return Structure(graph, trees[0], d, list(partitions))


def _cuts(tree: MergeTree) -> list[np.ndarray]:
    """Return the cuts of a tree at link strengths in geometric progression."""
    links = np.geomspace(0.01, 4.0, 22)
    numbers = [tree.n_at(link) for link in links]
    link = links[-1]
    ratio = links[1] / links[0]
    most = min(MOST_CLUSTERS, tree.n_pieces - 1)
    while MANY < numbers[-1] <= most:
        link *= ratio
        numbers.append(tree.n_at(link))
    labels_at = cache(tree.labels)
    return [labels_at(k) for k in numbers]


def score_partition(
    graph: NodeGraph, d: float, labels: np.ndarray, persistence: int = 1
) -> ScoredPartition:
    """Score a partition and weigh the evidence for it.

    The score is 4 MI / log(k + 1) + gap - 0.06 log(n / 100) log k + 1.4 / d log(1 + z),
    where n is the number of nodes, k the number of clusters, MI the mutual information
    in nats, and d the intrinsic dimension. Negative values of log(n / 100) and of z are
    replaced by 0.
    """
    n = graph.n_nodes
    k = int(labels.max()) + 1
    table = cluster_weights(graph, labels, k)
    volumes = table.sum(axis=1) / table.sum()
    information = mutual_information(table)
    gap = gap_between(graph, labels)
    entropy = float(-(volumes * np.log(volumes)).sum())
    loss = float(np.clip(1 - information / max(entropy, 1e-9), 1e-4, 1.0))
    z = float(significance(n, k, loss, entropy, d))
    penalty = 0.06 * max(0.0, np.log(n / 100)) * np.log(k)
    bonus = 1.4 / d * np.log1p(max(z, 0.0))
    rest = gap - penalty + bonus
    score = INFORMATION_WEIGHT * information / np.log(k + 1) + rest
    J = INFORMATION_WEIGHT * information / (np.log(k) or 1.0) + gap
    return ScoredPartition(
        labels=labels,
        n_clusters=k,
        entropy=entropy,
        loss=loss,
        J=float(J),
        z=z,
        score=float(score),
        persistence=persistence,
    )


def agreement(
    first: np.ndarray, second: np.ndarray, counts: np.ndarray | None = None
) -> float:
    """Return the adjusted Rand index of two labelings of nodes.

    Parameters
    ----------
    first, second : ndarray of shape (p,), int64
        Cluster of each node, from 0, in the two labelings.
    counts : ndarray of shape (p,) or None, default=None
        Number of rows that each node represents. If None, each node counts once.
    """
    shape = int(first.max()) + 1, int(second.max()) + 1
    pairs = np.bincount(first * shape[1] + second, counts, shape[0] * shape[1])
    return adjusted_rand_index(pairs.astype(np.int64).reshape(shape))
