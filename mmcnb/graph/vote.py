"""The vote of the nearest nodes, which labels any row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmcnb.graph.communities import MergeTree
from mmcnb.graph.neighbours import LEAST_DISTANCE, N_NEIGHBORS, NodeGraph
from mmcnb.graph.nodes import Axes, NodeSearch, check_fits
from mmcnb.graph.precomputed import Precomputed
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.kernels import unchecked as kernels

TREE = "pieces", "merges", "links"  # names of its arrays
SCORES = "threshold", "bound"  # names of outlier scores
OWN = (
    1e-3  # of the distance to the second node: a row so near to the first one is of it
)


@dataclass(frozen=True)
class Vote:
    """Maps rows to the share of each cluster among their nearest nodes, block by block.

    Parameters
    ----------
    axes : Axes, AllColumns or Precomputed
        Centres the rows, and reduces many columns.
    search : NodeSearch, SparseSearch or Precomputed
        The nodes.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    n_features : int
        Number of clusters, k: a feature is the share of one.
    sizes : ndarray of shape (p,), float64
        Weights of the nodes.
    n_neighbors : int
        Nearest nodes that vote on a row; a node votes on its own rows too.
    tree : MergeTree
        Nested clusters of the nodes.
    offsets : ndarray of shape (p,)
        What outlier scores subtract near each node.
    threshold : float, default=inf
        The outlier score above which rows are noise.
    bound : float, default=inf
        The outlier score that one in a hundred rows of the fit exceeds.
    is_deep : ndarray of shape (p,), int64, or None, default=None
        1 for a node whose ten nearest neighbours are of its cluster, otherwise 0. A row
        among such nodes of one cluster belongs to it without a vote. None has all rows
        vote.
    """

    axes: Any
    search: Any
    labels: np.ndarray
    n_features: int
    sizes: np.ndarray
    n_neighbors: int
    tree: MergeTree
    offsets: np.ndarray
    threshold: float = np.inf
    bound: float = np.inf
    is_deep: np.ndarray | None = None

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Shares of dense or CSR rows, of shape (rows, k)."""
        return self.shares(self.axes(rows), dtype)

    def shares(
        self, points: Any, dtype: Any, nearest: tuple[np.ndarray, ...] | None = None
    ) -> np.ndarray:
        """Shares of rows along the axes, perhaps with their nearest nodes and the distances to these."""
        clusters = self.settled(points)
        open_rows = np.flatnonzero(clusters < 0)
        if nearest is None:
            numbers, distances = self.search.nearest(
                points[open_rows], self.n_neighbors
            )
        else:
            numbers, distances = (part[open_rows] for part in nearest)
        voted = np.empty((open_rows.size, self.n_features), dtype)
        kernels.node_shares_into(
            numbers, self._weights(numbers, distances), self.labels, voted
        )
        shares = np.zeros((clusters.size, self.n_features), dtype)
        shares[np.arange(clusters.size), clusters] = 1
        shares[open_rows] = voted
        return shares

    def settled(self, points: Any) -> np.ndarray:
        """Clusters of rows along the axes that belong to one without a vote, int64; -1 of all others.

        All nodes in the nearest cell of such a row are deep in its cluster, or the
        three nearest nodes in its two nearest cells.
        """
        if self.is_deep is None or self.search.is_exact:
            return np.full(points.shape[0], -1)
        clusters = self._cluster_of_cell[self.search.nearest_cells(points)]
        others = np.flatnonzero(clusters < 0)
        near = self._deep_clusters[self.search.in_cells(points[others], 3, 2)[0]]
        clusters[others] = np.where((near == near[:, :1]).all(axis=1), near[:, 0], -1)
        return clusters

    @cached_property
    def _deep_clusters(self) -> np.ndarray:
        """Cluster of each deep node; -1 of each other one, and of none, number -1."""
        return np.append(np.where(self.is_deep == 1, self.labels, -1), -1)

    @cached_property
    def _cluster_of_cell(self) -> np.ndarray:
        """Cluster of each cell around which all nodes are deep in it, otherwise -1."""
        n_cells = self.search.starts.size - 1
        # The cells come of means before the last ones: a node may be nearer to another
        # cell.
        cells = np.repeat(np.arange(n_cells), np.diff(self.search.starts))
        cells = np.concatenate([cells, self.search.nearest_cells(self.search.nodes)])
        clusters = np.tile(self._deep_clusters[:-1], 2)
        least = np.full(n_cells, self.n_features)
        most = np.full(n_cells, -1)
        np.minimum.at(least, cells, clusters)
        np.maximum.at(most, cells, clusters)
        return np.where(least == most, least, -1)

    def pieces(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Piece of the tree of rows with these nearest nodes: the one with the largest share."""
        weights = self._weights(numbers, distances)
        pieces = self.tree.piece_of_node[numbers]
        votes = np.stack(
            [(weights * (pieces == one[:, None])).sum(axis=1) for one in pieces.T],
            axis=1,
        )
        return pieces[np.arange(len(pieces)), votes.argmax(axis=1)]

    def outlier_scores(
        self, numbers: np.ndarray, distances: np.ndarray, beyond: np.ndarray
    ) -> np.ndarray:
        """Outlier scores of rows so far beyond the axes with these nearest nodes, one more than vote.

        A row among ten equal ones is no outlier.
        """
        own = is_own(distances)
        scores = log_distances(distances, beyond, own) - self.offsets[numbers[:, 0]]
        many = own & (self.sizes[numbers[:, 0]] >= self.n_neighbors * self.sizes.min())
        return np.where(many, np.minimum(scores, 0.0), scores)

    def _weights(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Weights of the votes: a row of a heavy node counts lighter nodes less, and its own node more.

        These are the weights of the graph of the nodes, with what ties equal rows
        together. A node has more than half of the vote on its own rows, so that they
        have its label, and no cluster is left empty.
        """
        weights = kernels.calibrated_weights(distances)
        own = np.flatnonzero(is_own(distances))
        sizes = self.sizes[numbers[own]]
        lighter = weights[own] * (np.minimum(sizes, sizes[:, :1]) / sizes[:, :1])
        lighter[:, 0] += (weights[own] - lighter).sum(axis=1)
        lighter[:, 0] = np.maximum(lighter[:, 0], 1.0 + lighter[:, 1:].sum(axis=1))
        weights[own] = lighter
        return weights

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the vote, by name."""
        parts = self.tree.piece_of_node, self.tree.merges, self.tree.links
        arrays: Any = {
            **self.axes.arrays(),
            **self.search.arrays(),
            **dict(zip(TREE, parts, strict=True)),
        }
        arrays |= {"labels": self.labels, "sizes": self.sizes, "offsets": self.offsets}
        arrays["search"] = np.array(
            [getattr(self.search, "n_probes", 1), self.n_neighbors, self.n_features]
        )
        arrays |= {
            name: np.array(getattr(self, name))
            for name in SCORES
            if getattr(self, name) < np.inf
        }
        arrays |= {} if self.is_deep is None else {"is_deep": self.is_deep}
        return {f"graph_{name}": array for name, array in arrays.items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Vote":
        """The vote of its `arrays`; the numbers in them may not lead a search out of the nodes."""
        given = {name.removeprefix("graph_"): array for name, array in arrays.items()}
        check_fits("search", given["search"].shape == (3,))
        has_rows = "nodes" in given or "indptr" in given
        axes: Any = (
            Precomputed if not has_rows else Axes if "mean" in given else AllColumns
        ).restore(given)
        kind: Any = SparseSearch if "indptr" in given else NodeSearch
        search = kind.restore(given, axes.n_axes) if has_rows else axes
        labels, sizes, offsets, found = (
            given[name] for name in ("labels", "sizes", "offsets", "search")
        )
        p = search.nodes.shape[0] if has_rows else axes.n_features
        check_fits("search", bool((found >= 1).all() and found[1] <= p))
        check_fits("sizes", sizes.shape == (p,) and bool((sizes > 0).all()))
        check_fits(
            "labels",
            labels.shape == (p,) and bool(((labels >= 0) & (labels < found[2])).all()),
        )
        check_fits("offsets", offsets.shape == (p,))
        is_deep = given.get("is_deep")
        check_fits(
            "is_deep",
            is_deep is None
            or (is_deep.shape == (p,) and bool((is_deep >> 1 == 0).all())),
        )
        for name in ("offsets", *SCORES):  # outlier scores are float32
            check_fits(
                name, np.max(np.abs(given.get(name, 0.0))) < np.finfo(np.float32).max
            )
        tree = MergeTree.restore([given[name] for name in TREE], p)
        threshold, bound = (float(given.get(name, np.inf)) for name in SCORES)
        nodes = axes, search, labels, int(found[2]), sizes, int(found[1]), tree, offsets
        return cls(*nodes, threshold, bound, is_deep)


def is_own(distances: np.ndarray) -> np.ndarray:
    """Which rows are of their nearest node, by the distances to the nearest ones."""
    return np.asarray(
        distances[:, 0] <= OWN * distances[:, min(1, distances.shape[1] - 1)]
    )


def vote(
    graph: NodeGraph,
    labels: np.ndarray,
    n_clusters: int,
    tree: MergeTree,
    offsets: np.ndarray,
) -> Vote:
    """The vote of the nodes of a graph, by their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.communities import merge_tree
    >>> from mmcnb.graph.neighbours import node_graph
    >>> from mmcnb.graph.vote import vote
    >>> rows = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> labels, tree = (graph.search.nodes[:, 0] > 0).astype(int), merge_tree(*graph.edges())
    >>> shares = vote(graph, labels, 2, tree, np.zeros(4)).block(rows, np.float64)
    >>> shares.argmax(axis=1)
    array([0, 0, 1, 1])
    """
    nodes = graph.axes, graph.search, labels.astype(np.int64), n_clusters, graph.sizes
    is_deep = (
        (labels[graph.numbers[:, :N_NEIGHBORS]] == labels[:, None])
        .all(axis=1)
        .astype(np.int64)
    )
    return Vote(
        *nodes, min(N_NEIGHBORS, graph.sizes.size), tree, offsets, is_deep=is_deep
    )


# -- outliers --------------------------------------------------------------------------


def outlier_offsets(
    logs: np.ndarray, labels: np.ndarray, is_sure: Any = False
) -> np.ndarray:
    """What is subtracted from the logarithm of the distance to the tenth node, for each nearest node.

    Parameters
    ----------
    logs : ndarray of shape (p,)
        `log_distances` of the nodes.
    labels : ndarray of shape (p,), int64
        Their clusters.
    is_sure : bool or ndarray of shape (p,), default=False
        Nodes that belong to a cluster, however small it is: its own median counts
        alone.

    Returns
    -------
    ndarray of shape (p,)
        A mean of the medians in the cluster of the node and of all nodes; they weigh
        the same if the cluster has a tenth of the nodes. In one of fewer than 1 % it is
        less by 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.vote import outlier_offsets
    >>> outlier_offsets(np.repeat([1.0, 3.0], [90, 10]), np.repeat([0, 1], [90, 10]))[[0, -1]]
    array([1., 2.])
    """
    middle = np.median(logs)
    offsets = np.empty(labels.size)
    is_sure = np.broadcast_to(is_sure, labels.shape)
    for cluster in range(int(labels.max()) + 1):
        inside = labels == cluster
        share = np.count_nonzero(inside) / labels.size
        own = np.median(logs[inside])
        others = middle + (own - middle) * share / (share + 0.1) - 2.0 * (share < 0.01)
        offsets[inside] = np.where(is_sure[inside], own, others)
    return offsets


def log_distances(
    distances: np.ndarray, beyond: Any, is_own: Any = False
) -> np.ndarray:
    """Logarithm of the distance to the tenth node in all columns, but for the node that a row belongs to."""
    place = np.minimum(N_NEIGHBORS - 1 + np.asarray(is_own), distances.shape[1] - 1)
    tenth = np.hypot(distances[np.arange(len(distances)), place], beyond)
    return np.asarray(np.log(np.maximum(tenth, LEAST_DISTANCE)))


def noise_threshold(
    scores: np.ndarray, sizes: np.ndarray, noise: Any, deviations: float = 2.5
) -> float:
    """The outlier score above which a row is noise.

    Parameters
    ----------
    scores, sizes : ndarray of shape (p,)
        Outlier scores of the nodes, and how much each node weighs.
    noise : "auto" or float
        "auto" is so many robust deviations above the median; a share leaves about so
        much of the rows out.
    deviations : float, default=2.5
        Robust deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.vote import noise_threshold
    >>> noise_threshold(np.arange(10.0), np.ones(10), 0.2)
    7.0
    """
    if noise == "auto":
        median = np.median(scores)
        return float(median + deviations * 1.4826 * np.median(np.abs(scores - median)))
    order = np.argsort(-scores, kind="stable")
    beyond = np.cumsum(sizes[order]) <= noise * sizes.sum()
    return float(scores[order[min(int(beyond.sum()), order.size - 1)]])
