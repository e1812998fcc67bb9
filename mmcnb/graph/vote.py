"""Label rows by the vote of their nearest nodes, and compute outlier scores."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike

from mmcnb.graph.inverted_file import InvertedFileIndex
from mmcnb.graph.merge_tree import MergeTree
from mmcnb.graph.neighbours import (
    LEAST_DISTANCE,
    N_NEIGHBORS,
    NodeGraph,
    NodeSearch,
    RowMap,
)
from mmcnb.graph.nodes import Matrix
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import CSRBlock

# A row belongs to its nearest node if its distance to this node is at most this
# fraction of its distance to the second nearest node.
OWN = 1e-3
# A threshold that the outlier score of every row exceeds.
EVERY_ROW = -1e9


@dataclass(frozen=True)
class Vote:
    """Map from rows to each cluster's share of the vote of the nearest nodes.

    Parameters
    ----------
    axes : Axes, AllColumns or Precomputed
        Maps rows to points, which are compared with the nodes.
    search : InvertedFileIndex, SparseSearch or Precomputed
        Finds the nearest nodes.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    n_features : int
        Number of clusters, k. The features of a row are the shares of the k clusters.
    sizes : ndarray of shape (p,), float64
        Weight of each node, relative to the heaviest node.
    n_neighbors : int
        Number of nearest nodes that vote on a row. A node also votes on rows that
        belong to it.
    tree : MergeTree
        Nested clusters of the nodes.
    offsets : ndarray of shape (p,)
        Offset that outlier scores subtract from log d₁₀, for rows nearest to each node.
    thresholds : ndarray of shape (p,), or None, default=None
        Outlier score above which rows nearest to each node are noise. If None, no rows
        are noise.
    bound : float, default=inf
        Outlier score that one in a hundred rows of the fit exceeds.
    is_deep : ndarray of shape (p,), int64, or None, default=None
        1 for a node whose ten nearest neighbours belong to its own cluster, otherwise
        0. A row that is surrounded by such nodes of one cluster is assigned to this
        cluster without a vote, which saves time. If None, all rows are labelled by a
        vote.
    """

    axes: RowMap
    search: NodeSearch
    labels: np.ndarray
    n_features: int
    sizes: np.ndarray
    n_neighbors: int
    tree: MergeTree
    offsets: np.ndarray
    thresholds: np.ndarray | None = None
    bound: float = np.inf
    is_deep: np.ndarray | None = None

    def block(self, rows: Matrix | CSRBlock, dtype: DTypeLike) -> np.ndarray:
        """Return each cluster's share of the vote on each row, of shape (rows, k)."""
        return self.shares(self.axes(rows), dtype)

    def shares(
        self,
        points: Matrix,
        dtype: DTypeLike,
        nearest: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return each cluster's share of the vote on each point.

        ``nearest`` contains the indices and distances of the nearest nodes of each
        point, if these nodes are already known.
        """
        clusters = self.clusters_without_vote(points)
        voting = np.flatnonzero(clusters < 0)
        if nearest is None:
            numbers, distances = self.search.nearest(points[voting], self.n_neighbors)
        else:
            numbers = nearest[0][voting]
            distances = nearest[1][voting]
        weights = self._weights(numbers, distances)
        votes = np.empty((voting.size, self.n_features), dtype)
        kernels.node_shares_into(numbers, weights, self.labels, votes)
        shares = np.zeros((clusters.size, self.n_features), dtype)
        shares[np.arange(clusters.size), clusters] = 1
        shares[voting] = votes
        return shares

    def clusters_without_vote(self, points: Matrix) -> np.ndarray:
        """Return the cluster of each point, or -1 if the point needs a vote.

        A point needs no vote if all nodes in its nearest cell, or the three nearest
        nodes in its two nearest cells, are deep in the same cluster.
        """
        index = self.search
        if (
            self.is_deep is None
            or not isinstance(index, InvertedFileIndex)
            or index.is_exact
        ):
            return np.full(points.shape[0], -1)
        cells = index.two_nearest_cells(points)
        clusters = self._cluster_of_cell[cells[:, 0]]
        mixed = np.flatnonzero(clusters < 0)
        numbers = index.three_nearest(points[mixed], cells[mixed])
        near = self._deep_clusters[numbers]
        is_one = (near == near[:, :1]).all(axis=1)
        clusters[mixed] = np.where(is_one, near[:, 0], -1)
        return clusters

    @cached_property
    def _deep_clusters(self) -> np.ndarray:
        """Cluster of each deep node, and -1 for other nodes.

        An additional last entry of -1 is the value for the missing node -1.
        """
        return np.append(np.where(self.is_deep == 1, self.labels, -1), -1)

    @cached_property
    def _cluster_of_cell(self) -> np.ndarray:
        """Cluster of each cell, or -1.

        A cell has a cluster if all nodes in the cell, and all nodes that are nearest to
        the mean of the cell, are deep in the same cluster.
        """
        index = self.search
        assert isinstance(index, InvertedFileIndex)
        sizes = np.diff(index.starts)
        n_cells = sizes.size
        clusters = self._deep_clusters[:-1]
        least = np.full(n_cells, self.n_features)
        most = np.full(n_cells, -1)
        # The cells were assigned before the last update of the means in k-means, so a
        # node may be nearer to the mean of another cell. Such a node counts in both
        # cells.
        own_cells = np.repeat(np.arange(n_cells), sizes)
        for cells in (own_cells, index.two_nearest_cells(index.nodes)[:, 0]):
            np.minimum.at(least, cells, clusters)
            np.maximum.at(most, cells, clusters)
        return np.where(least == most, least, -1)

    def pieces(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the piece with the largest share of the vote on each row."""
        weights = self._weights(numbers, distances)
        pieces = self.tree.piece_of_node[numbers]
        agrees = pieces[:, :, None] == pieces[:, None, :]  # pairs of nearest nodes
        votes = (weights[:, None, :] * agrees).sum(axis=2)
        return pieces[np.arange(len(pieces)), votes.argmax(axis=1)]

    def outlier_scores(
        self, numbers: np.ndarray, distances: np.ndarray, beyond: np.ndarray
    ) -> np.ndarray:
        """Return the outlier scores of rows, computed from their nearest nodes.

        ``numbers`` and ``distances`` have one column more than a vote uses. ``beyond``
        is the distance of each row from the subspace of the axes. Rows that belong to a
        node of at least ten equal rows have a score of at most 0.
        """
        logs = log_distances(distances, beyond, is_own(distances))
        scores = logs - self.offsets[numbers[:, 0]]
        is_among_equal = self._is_among_equal(numbers, distances)
        return np.where(is_among_equal, np.minimum(scores, 0.0), scores)

    def excess(
        self, numbers: np.ndarray, distances: np.ndarray, scores: np.ndarray
    ) -> np.ndarray:
        """Return each row's outlier score minus the threshold of its nearest node.

        Rows that belong to a node of at least ten equal rows have an excess of at most
        0, unless the threshold makes all rows near this node noise.
        """
        if self.thresholds is None:
            return np.full(scores.size, -1.0)
        thresholds = self.thresholds[numbers[:, 0]]
        excess = scores - thresholds
        is_kept = self._is_among_equal(numbers, distances) & (thresholds > EVERY_ROW)
        return np.where(is_kept, np.minimum(excess, 0.0), excess)

    def _is_among_equal(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        is_heavy = self.sizes[numbers[:, 0]] >= self.n_neighbors * self.sizes.min()
        return is_own(distances) & is_heavy

    def _weights(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the weights of the votes.

        Votes are weighted like the edges of the graph. If a row belongs to a heavy
        node, the weights of lighter nodes are reduced, and the heavy node receives the
        difference. A node has more than half of the votes on rows that belong to it.
        These rows therefore get the label of the node, and no cluster is left empty.
        """
        weights = kernels.calibrated_weights(distances)
        rows = np.flatnonzero(is_own(distances))
        full = weights[rows]
        sizes = self.sizes[numbers[rows]]
        own_size = sizes[:, :1]
        shares = np.minimum(sizes, own_size) / own_size
        reduced = full * shares
        rest = (full - reduced).sum(axis=1)
        of_neighbors = reduced[:, 1:].sum(axis=1)
        reduced[:, 0] = np.maximum(reduced[:, 0] + rest, 1.0 + of_neighbors)
        weights[rows] = reduced
        return weights


def is_own(distances: np.ndarray) -> np.ndarray:
    """Return a boolean mask that is True for each row that belongs to its nearest node.

    A row belongs to its nearest node if the distance is at most ``OWN`` times the
    distance to the second nearest node. ``distances`` holds the distances from each row
    to its nearest nodes, in increasing order.
    """
    second = distances[:, min(1, distances.shape[1] - 1)]
    return distances[:, 0] <= OWN * second


def vote(
    graph: NodeGraph,
    labels: np.ndarray,
    n_clusters: int,
    tree: MergeTree,
    offsets: np.ndarray,
) -> Vote:
    """Return the vote of the nodes of a graph, given the labels of the nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.communities import merge_tree
    >>> from mmcnb.graph.neighbours import node_graph
    >>> from mmcnb.graph.vote import vote
    >>> rows = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> labels = (graph.search.nodes[:, 0] > 0).astype(int)
    >>> tree = merge_tree(*graph.edges())
    >>> shares = vote(graph, labels, 2, tree, np.zeros(4)).block(rows, np.float64)
    >>> shares.argmax(axis=1)
    array([0, 0, 1, 1])
    """
    of_neighbors = labels[graph.numbers[:, :N_NEIGHBORS]]
    is_deep = (of_neighbors == labels[:, None]).all(axis=1)
    return Vote(
        axes=graph.axes,
        search=graph.search,
        labels=labels.astype(np.int64),
        n_features=n_clusters,
        sizes=graph.sizes,
        n_neighbors=min(N_NEIGHBORS, graph.n_nodes),
        tree=tree,
        offsets=offsets,
        is_deep=is_deep.astype(np.int64),
    )


# -- outliers --------------------------------------------------------------------------


def outlier_offsets(
    logs: np.ndarray, labels: np.ndarray, is_sure: np.ndarray | bool = False
) -> np.ndarray:
    """Return the offset of log d₁₀ for rows nearest to each node.

    Parameters
    ----------
    logs : ndarray of shape (p,)
        `log_distances` of the nodes.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    is_sure : bool or ndarray of shape (p,), default=False
        Whether a node certainly belongs to its cluster, however small the cluster is.
        The offset of such a node is the median of ``logs`` in its cluster.

    Returns
    -------
    ndarray of shape (p,)
        A weighted mean of two medians of ``logs``, over the cluster of the node and
        over all nodes. The two weights are equal if the cluster contains a tenth of the
        nodes. If the cluster contains less than 1 % of the nodes, the offset is reduced
        by 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.vote import outlier_offsets
    >>> logs, labels = np.repeat([[1.0, 3.0], [0, 1]], [90, 10], axis=1)
    >>> outlier_offsets(logs, labels.astype(int))[[0, -1]]
    array([1., 2.])
    """
    of_all = np.median(logs)
    offsets = np.empty(labels.size)
    is_sure = np.broadcast_to(is_sure, labels.shape)
    for cluster in range(int(labels.max()) + 1):
        inside = labels == cluster
        share = np.count_nonzero(inside) / labels.size
        of_cluster = np.median(logs[inside])
        mean = of_all + (of_cluster - of_all) * share / (share + 0.1)
        if share < 0.01:
            mean -= 2.0
        offsets[inside] = np.where(is_sure[inside], of_cluster, mean)
    return offsets


def log_distances(
    distances: np.ndarray,
    beyond: np.ndarray | float,
    is_own: np.ndarray | bool = False,
) -> np.ndarray:
    """Return log d₁₀ of rows, the log distance to the tenth nearest node.

    To obtain distances in all columns, ``distances`` are combined with ``beyond``, the
    distance of each row from the subspace of the axes. If a row belongs to a node
    (``is_own``), this node is not counted.
    """
    place = np.minimum(N_NEIGHBORS - 1 + np.asarray(is_own), distances.shape[1] - 1)
    tenth = np.hypot(distances[np.arange(len(distances)), place], beyond)
    return np.log(np.maximum(tenth, LEAST_DISTANCE))


def noise_threshold(
    scores: np.ndarray,
    sizes: np.ndarray,
    noise: float | str,
    deviations: float = 2.5,
) -> float:
    """Return the outlier score above which a row is noise.

    Parameters
    ----------
    scores, sizes : ndarray of shape (p,)
        Outlier scores and weights of the nodes.
    noise : "auto" or float
        If "auto", the threshold is ``deviations`` robust deviations above the median.
        If a number, about this fraction of the rows is noise.
    deviations : float, default=2.5
        Distance of the threshold from the median, in robust standard deviations.

    Returns
    -------
    float
        Threshold on the outlier score.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.vote import noise_threshold
    >>> noise_threshold(np.arange(10.0), np.ones(10), 0.2)
    7.0
    """
    if isinstance(noise, str):
        median = np.median(scores)
        # For normally distributed scores, 1.4826 MAD is the standard deviation.
        return float(median + deviations * 1.4826 * np.median(np.abs(scores - median)))
    order = np.argsort(-scores, kind="stable")
    n_noise = np.count_nonzero(np.cumsum(sizes[order]) <= noise * sizes.sum())
    return float(scores[order[min(int(n_noise), order.size - 1)]])
