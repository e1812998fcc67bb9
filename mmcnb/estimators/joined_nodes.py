"""Join the nodes of a model and new rows in one graph, for an update."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mmcnb.choice.noise import noise_thresholds
from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.features.model import Model
from mmcnb.features.rules import Shares
from mmcnb.graph.merge_tree import MergeTree
from mmcnb.graph.neighbours import NodeGraph, node_graph
from mmcnb.graph.nodes import Each
from mmcnb.graph.vote import EVERY_ROW, Vote, log_distances, vote
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Matrix, stack

if TYPE_CHECKING:
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

# Even a few new rows become a tenth of the nodes (with smaller weights), so that groups
# among them can be found. At least half of the nodes are earlier nodes, because these
# represent the earlier rows, which are not read again.
LEAST_NEW_SHARE = 0.1
MOST_NEW_SHARE = 0.5


class NewRows(NamedTuple):
    """New rows that may become nodes.

    Attributes
    ----------
    rows : ndarray of shape (s,), int64
        Indices of the rows in the new samples, in increasing order.
    sample : ndarray or csr_array of shape (s, d)
        The rows, with scaled columns.
    points : ndarray or csr_array of shape (s, c)
        Coordinates of the rows along the axes of the nodes.
    """

    rows: np.ndarray
    sample: Matrix
    points: Matrix


def nodes_of(model: Model) -> Vote:
    """Return the nodes of a model, which must be a model with nodes."""
    assert model.graph is not None
    return model.graph


def draw_new(
    estimator: MaximumMarginClustering,
    engine: Engine,
    samples: Samples,
    n: float,
    random_state: np.random.RandomState,
) -> NewRows:
    """Draw new rows that may become nodes, in one pass.

    The number of drawn rows is ``n_nodes`` times the share of new rows among all n
    rows, where a share below 10 % or above 50 % is replaced by this limit. More rows
    are drawn if the model has so few nodes that more rows fit into ``n_nodes``. If the
    drawn rows and the nodes of the model together exceed ``n_nodes``, `join_nodes`
    leaves out earlier nodes.
    """
    model = estimator.model_
    nodes = nodes_of(model)
    m = samples.n_samples
    share = np.clip(m / n, LEAST_NEW_SHARE, MOST_NEW_SHARE)
    n_by_share = int(np.ceil(estimator.n_nodes * share))
    n_free = estimator.n_nodes - nodes.sizes.size
    rows = sample_rows(m, max(n_by_share, n_free), None, random_state)
    sample = draw_sample(engine, model.scaled(samples), rows)[0]
    points = nodes.axes(sample)
    return NewRows(rows, sample, points.astype(nodes.search.nodes.dtype))


@dataclass(frozen=True)
class JoinedNodes:
    """A graph of earlier nodes and new rows.

    Parameters
    ----------
    graph : NodeGraph
        The graph.
    earlier : ndarray of shape (p,), int64
        Cluster of each node in the model before the update.
    weights : ndarray of shape (p,)
        Weight of the earlier rows that each node represents; 0 for a new row.
    is_far : ndarray of shape (p,), bool
        Whether the node is a new row far from the earlier nodes.
    is_scattered : ndarray of shape (p,), bool
        Whether the node is an earlier node of a cluster that was dropped as noise.
    log_distances : ndarray of shape (p,)
        Logarithm of the distance from each node to its tenth neighbour.
    """

    graph: NodeGraph
    earlier: np.ndarray
    weights: np.ndarray
    is_far: np.ndarray
    is_scattered: np.ndarray
    log_distances: np.ndarray

    @property
    def is_new(self) -> np.ndarray:
        """Boolean mask that is True for nodes that are new rows."""
        return self.weights == 0

    def with_groups(self, groups: np.ndarray, count: int = 0) -> np.ndarray:
        """Return the earlier clusters of the nodes, with groups as additional clusters.

        Parameters
        ----------
        groups : ndarray of shape (p,), int64
            Number of the group of each node, starting from 1; 0 for nodes that remain
            in their earlier cluster.
        count : int, default=0
            Smallest cluster number that the first group may have.
        """
        count = max(count, int(self.earlier.max()) + 1)
        return np.where(groups > 0, count - 1 + groups, self.earlier)

    def with_nearest(self, groups: np.ndarray) -> np.ndarray:
        """Return the earlier cluster of each node, with one cluster for each group.

        All nodes of a group get the earlier cluster that is most frequent among them.
        """
        labels = self.earlier.copy()
        for group in range(1, int(groups.max()) + 1):
            inside = groups == group
            labels[inside] = np.bincount(self.earlier[inside]).argmax()
        return labels

    def common_weight(self, labels: np.ndarray, n_earlier: int) -> np.ndarray:
        """Return the weighted contingency table of the earlier and other clusters.

        Parameters
        ----------
        labels : ndarray of shape (p,), int64
            Cluster of each node in the other partition.
        n_earlier : int
            Number of earlier clusters, including empty clusters. The table has this
            number of rows.

        Returns
        -------
        ndarray of shape (n_earlier, n_clusters)
            Total weight of the nodes in each pair of clusters.
        """
        n_clusters = int(labels.max()) + 1
        pairs = self.earlier * n_clusters + labels
        sums = np.bincount(pairs, self.weights, n_earlier * n_clusters)
        return sums.reshape(n_earlier, n_clusters)

    def model(
        self,
        earlier: Model,
        labels: np.ndarray,
        n_clusters: int,
        tree: MergeTree,
        noise: float | str | None,
    ) -> Model:
        """Return a model in which these nodes vote.

        Parameters
        ----------
        earlier : Model
            The model of the earlier nodes.
        labels : ndarray of shape (p,), int64
            Cluster of each node, with the numbers of the new model.
        n_clusters : int
            Number of clusters, including empty clusters.
        tree : MergeTree
            The merge tree of the nodes.
        noise : None, "auto" or float
            Which rows get the label -1; see `MaximumMarginClustering`.
        """
        nodes = nodes_of(earlier)
        numbers = np.argsort(earlier.rule.coef)[nodes.labels]
        limits = _outlier_limits(nodes, numbers, self, labels, n_clusters, noise)
        graph = vote(self.graph, labels, n_clusters, tree, limits.offsets)
        graph = replace(graph, thresholds=limits.thresholds, bound=nodes.bound)
        rule = Shares(np.arange(float(n_clusters)), np.zeros(n_clusters))
        return replace(earlier, rule=rule, graph=graph)


class _OutlierLimits(NamedTuple):
    """The offset of the outlier scores and the noise threshold of each node.

    A row is noise if its outlier score exceeds the threshold of its nearest node.
    ``thresholds`` is None if the fit does not mark noise.
    """

    offsets: np.ndarray
    thresholds: np.ndarray | None


def _outlier_limits(
    earlier: Vote,
    number_of_node: np.ndarray,
    joined: JoinedNodes,
    labels: np.ndarray,
    n_clusters: int,
    noise: float | str | None,
) -> _OutlierLimits:
    """Return the offset of the outlier scores and the noise threshold of each node.

    Both are computed for new clusters only; earlier clusters keep their values. Rows
    near nodes of a cluster that was dropped as noise remain noise, unless they are in a
    new cluster.
    """
    logs = joined.log_distances
    n_before = earlier.n_features
    offsets = np.zeros(n_clusters)
    thresholds = np.zeros(n_clusters)
    is_cluster = ~_is_scattered(earlier)
    offsets[number_of_node[is_cluster]] = earlier.offsets[is_cluster]
    if earlier.thresholds is not None:
        thresholds[number_of_node[is_cluster]] = earlier.thresholds[is_cluster]
    for number in range(n_before, n_clusters):
        inside = labels == number
        counts = joined.graph.counts[inside]
        same_cluster = np.zeros(counts.size, np.int64)
        offsets[number] = np.median(logs[inside])
        limits = noise_thresholds(logs[inside], same_cluster, counts, noise or "auto")
        thresholds[number] = limits[0] - offsets[number]
    if earlier.thresholds is None:
        return _OutlierLimits(offsets[labels], None)
    remains = joined.is_scattered & (labels < n_before)
    of_nodes = np.where(remains, EVERY_ROW, thresholds[labels])
    return _OutlierLimits(offsets[labels], of_nodes)


def _is_scattered(nodes: Vote) -> np.ndarray:
    """Return a boolean mask that is True for nodes of clusters dropped as noise."""
    if nodes.thresholds is None:
        return np.zeros(nodes.sizes.size, bool)
    return nodes.thresholds <= EVERY_ROW


def join_nodes(
    estimator: MaximumMarginClustering,
    new: NewRows,
    is_far: np.ndarray,
    n: float,
    random_state: np.random.RandomState,
    each: Each,
) -> JoinedNodes:
    """Join the nodes of a model and new rows in one graph that represents n rows.

    If there would be more than ``n_nodes`` nodes, earlier nodes are left out at random.
    ``is_far`` is a mask of all new rows, not only of the drawn rows. It is True for
    rows far from the earlier nodes.
    """
    model = estimator.model_
    nodes = nodes_of(model)
    m = is_far.size
    n_new = new.rows.size
    number_of_node = np.argsort(model.rule.coef)[nodes.labels]
    n_old = max(1, estimator.n_nodes - n_new)
    old = sample_rows(number_of_node.size, n_old, None, random_state)
    earlier_weights = nodes.sizes[old]
    new_weight = earlier_weights.sum() * m / ((n - m) * n_new)
    weights = np.append(earlier_weights, np.full(n_new, new_weight))
    points = stack([nodes.search.nodes[old], new.points])
    graph = node_graph(points, weights, random_state, each, axes=nodes.axes)
    first = graph.of_nodes(np.arange(weights.size))
    is_old = first < old.size
    new_numbers = model.rule.label(nodes.block(new.sample, np.float64))
    numbers = np.append(number_of_node[old], new_numbers)
    distances_beyond = nodes.axes.beyond(new.sample, new.points)
    usual = np.full(old.size, np.median(distances_beyond))
    distances_beyond = np.append(usual, distances_beyond)[first]
    is_scattered = np.append(_is_scattered(nodes)[old], np.zeros(n_new, bool))
    return JoinedNodes(
        graph=graph,
        earlier=numbers[first],
        weights=np.where(is_old, weights[first], 0.0),
        is_far=np.append(np.zeros(old.size, bool), is_far[new.rows])[first],
        is_scattered=is_scattered[first],
        log_distances=log_distances(graph.distances, distances_beyond),
    )
