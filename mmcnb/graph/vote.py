"""The vote of the nearest nodes, which labels any row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.graph.neighbours import N_NEIGHBORS, NodeGraph
from mmcnb.graph.nodes import Axes, NodeSearch, check_fits
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.kernels import unchecked as kernels

OWN = 1e-3  # of the distance to the second node: a row so near to the first one is of it


@dataclass(frozen=True)
class Vote:
    """Maps rows to the share of each cluster among their nearest nodes, block by block.

    Parameters
    ----------
    axes : Axes or AllColumns
        Centres the rows, and reduces many columns.
    search : NodeSearch or SparseSearch
        The nodes.
    shares : ndarray of shape (p, k), float64
        1 in the column of the cluster of each node, and 0 elsewhere.
    sizes : ndarray of shape (p,), float64
        Weights of the nodes.
    n_neighbors : int
        Nearest nodes that vote on a row; a node votes on its own rows too.
    """

    axes: Axes | AllColumns
    search: NodeSearch | SparseSearch
    shares: np.ndarray
    sizes: np.ndarray
    n_neighbors: int

    @property
    def n_features(self) -> int:
        """Number of clusters."""
        return int(self.shares.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows."""
        return self.axes.n_features

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Shares of dense or CSR rows, of shape (rows, k)."""
        numbers, distances = self.search.nearest(self.axes(rows), self.n_neighbors)
        weights, out = self._weights(numbers, distances), np.empty((numbers.shape[0], self.n_features), dtype)
        kernels.node_averages_into(numbers, weights, self.shares, out)
        return out

    def _weights(self, numbers: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Weights of the votes: a row of a heavy node counts lighter nodes less, and its own node more.

        These are the weights of the graph of the nodes, with what ties equal rows together. A node has more
        than half of the vote on its own rows, so that they have its label, and no cluster is left empty.
        """
        weights = kernels.calibrated_weights(distances)
        if numbers.shape[1] == 1:
            return weights
        own = np.flatnonzero(distances[:, 0] <= OWN * distances[:, 1])
        sizes = self.sizes[numbers[own]]
        lighter = weights[own] * np.minimum(sizes / sizes[:, :1], 1.0)
        lighter[:, 0] += (weights[own] - lighter).sum(axis=1)
        lighter[:, 0] = np.maximum(lighter[:, 0], 1.0 + lighter[:, 1:].sum(axis=1))
        weights[own] = lighter
        return weights

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the vote, by name."""
        arrays = {
            **self.axes.arrays(),
            **self.search.arrays(),
            "labels": self.shares.argmax(axis=1),
            "sizes": self.sizes,
            "search": np.array([getattr(self.search, "n_probes", 1), self.n_neighbors, self.n_features]),
        }
        return {f"graph_{name}": array for name, array in arrays.items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Vote":
        """The vote of its `arrays`; the numbers in them may not lead a search out of the nodes."""
        if "graph_coordinates" in arrays:
            raise InputError("graph_coordinates are those of mmcnb 0.2, which labels by them; fit again")
        given = {name.removeprefix("graph_"): array for name, array in arrays.items()}
        check_fits("search", given["search"].shape == (3,))
        axes = (Axes if "mean" in given else AllColumns).restore(given)
        search = (SparseSearch if "indptr" in given else NodeSearch).restore(given, axes.n_axes)
        labels, sizes, found = (given[name] for name in ("labels", "sizes", "search"))
        p = search.nodes.shape[0]
        check_fits("search", bool((found >= 1).all() and (found[1:] <= p).all()))
        check_fits("sizes", sizes.shape == (p,) and bool((sizes > 0).all()))
        check_fits("labels", labels.shape == (p,) and bool(((labels >= 0) & (labels < found[2])).all()))
        return cls(axes, search, _indicators(labels, int(found[2])), sizes, int(found[1]))


def vote(graph: NodeGraph, labels: np.ndarray, n_clusters: int) -> Vote:
    """The vote of the nodes of a graph, by their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.neighbours import node_graph
    >>> from mmcnb.graph.vote import vote
    >>> rows = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> shares = vote(graph, (graph.search.nodes[:, 0] > 0).astype(int), 2).block(rows, np.float64)
    >>> shares.argmax(axis=1)
    array([0, 0, 1, 1])
    """
    count = min(N_NEIGHBORS, graph.n_nodes)
    return Vote(graph.axes, graph.search, _indicators(labels, n_clusters), graph.sizes, count)


def _indicators(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    return np.eye(n_clusters)[labels]
