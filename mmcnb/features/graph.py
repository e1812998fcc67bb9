"""The graph kernel: coordinates of rows on the neighbour graph of some nodes.

The leading eigenvectors of the graph, weighted by a filter of their eigenvalues, are coordinates in which
clusters follow the data: a ring is one cluster, and so is a dense group beside a sparse one. A row has the
weighted mean of the coordinates of its nearest nodes, whether it is a node or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb._constraints import Choice, Interval
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.bandwidth import mean_squared_distance
from mmcnb.features.needs import PRODUCT_RATE, bytes_of_rows, kernel_seconds
from mmcnb.features.neighbour_graph import FILTERS, connected_graph, filter_weights, spectrum
from mmcnb.features.nodes import (
    AXES_BYTES,
    LEADING_AXES,
    Axes,
    NodeSearch,
    distinct_rows,
    leading_axes,
    nearest_of_all,
    search_flops,
    search_in_cells,
)
from mmcnb.features.nystroem import check_places
from mmcnb.kernels import unchecked as kernels

# From trials on MNIST, optdigits and shapes; `python -m benchmarks graph` measures the result.
N_NEIGHBORS, N_NODES = 10, 20_000
NODE_LIBRARIES = 48 * 2**20  # compiled routines of the graph, of its cells, and of the search on it

NODE_SECONDS = 2.2e-4  # of one core, for the graph and its coordinates


@dataclass(frozen=True)
class GraphKernel:
    """Settings of the graph kernel.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Nearest nodes of each row; None is 10, or fewer where there are fewer nodes.
    n_nodes : int, default=20000
        Most nodes of the graph: rows drawn at random, or all of fewer rows.
    filter : {"root", "cut-off", "resolvent"}, default="root"
        How eigenvalues mu weigh their eigenvectors: "cut-off" by mu, "resolvent" by b/(1 - mu), with b the
        1 - mu at a third of them (twice as many as clusters), and "root" by the square root of that.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.synthetic import make_shape
    >>> X, y = make_shape("two-rings", 400, random_state=0)
    >>> kernel = mmcnb.GraphKernel(n_neighbors=8)
    >>> model = mmcnb.UnsupervisedRLS(n_clusters=2, kernel=kernel, random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    n_neighbors: int | None = None
    n_nodes: int = N_NODES
    filter: str = "root"

    def check(self) -> None:
        """Raise InputError where a setting is invalid."""
        Interval(1, integer=True, optional=True).check("n_neighbors", self.n_neighbors)
        Interval(2, integer=True).check("n_nodes", self.n_nodes)
        Choice(tuple(FILTERS)).check("filter", self.filter)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        count = None if self.n_neighbors is None else int(self.n_neighbors)
        return {"name": "graph", "n_neighbors": count, "n_nodes": int(self.n_nodes), "filter": self.filter}

    def neighbours_of(self, n_nodes: int) -> int:
        """Nearest nodes of each row on a graph of some nodes."""
        if self.n_neighbors is None:
            return min(N_NEIGHBORS, n_nodes - 1)
        if self.n_neighbors >= n_nodes:
            raise InputError(
                f"n_neighbors={self.n_neighbors} is not below the {n_nodes:,} distinct rows of the graph; "
                "give fewer neighbors or more rows."
            )
        return int(self.n_neighbors)


@dataclass(frozen=True)
class GraphMap:
    """Maps rows to their coordinates on a graph, block by block.

    Parameters
    ----------
    axes : Axes
        Centres the rows, and reduces many columns.
    search : NodeSearch
        The nodes.
    coordinates : ndarray of shape (p, q), float64
        Coordinates of the nodes.
    n_neighbors : int
        Nearest nodes of each row.
    """

    axes: Axes
    search: NodeSearch
    coordinates: np.ndarray
    n_neighbors: int

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return int(self.coordinates.shape[1])

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Coordinates of dense or CSR rows, of shape (rows, q)."""
        return self.averages(*self.search.nearest(self.axes(rows), self.n_neighbors), dtype)

    def averages(self, numbers: np.ndarray, distances: np.ndarray, dtype: Any) -> np.ndarray:
        """Coordinates of rows by their nearest nodes, of shape (rows, q)."""
        out = np.empty((numbers.shape[0], self.n_features), dtype)
        kernels.node_averages_into(numbers, kernels.calibrated_weights(distances), self.coordinates, out)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the map, by name."""
        arrays = {
            "graph_mean": self.axes.mean,
            "graph_axes": self.axes.axes,
            "graph_nodes": self.search.nodes,
            "graph_starts": self.search.starts,
            "graph_centres": self.search.centres,
            "graph_coordinates": self.coordinates,
            "graph_search": np.array([self.search.n_probes, self.n_neighbors]),
        }
        return {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "GraphMap":
        """The map of its `arrays`; the numbers in them may not lead a search out of the nodes."""
        names = ("mean", "nodes", "starts", "centres", "coordinates", "search")
        mean, nodes, starts, centres, coordinates, found = (arrays[f"graph_{name}"] for name in names)
        axes, p, cells = Axes(mean, arrays.get("graph_axes")), nodes.shape[0], centres.shape[0]
        fits = {
            "axes": axes.axes is None or axes.axes.shape[:1] == mean.shape,
            "starts": (starts.dtype.name, starts.shape) == ("int64", (cells + 1,))
            and (starts[0], starts[-1]) == (0, p)
            and (np.diff(starts) > 0).all(),
            "centres": nodes.shape[1] == centres.shape[1] == axes.n_features and nodes.dtype == centres.dtype,
            "coordinates": (coordinates.dtype.name, coordinates.shape[0]) == ("float64", p),
            "search": found.shape == (2,) and found[0] >= 1 and 1 <= found[1] < p,
        }
        for name, does in fits.items():
            if not does:
                raise InputError(f"graph_{name} does not fit the other arrays of the graph")
        return cls(axes, NodeSearch(nodes, starts, centres, int(found[0])), coordinates, int(found[1]))


@dataclass(frozen=True)
class NodeGraph:
    """The graph of the distinct rows of a sample.

    Parameters
    ----------
    map : GraphMap
        Maps any row to its coordinates.
    weights : csr_array of shape (p, p)
        Symmetric weights of the edges, in one component.
    node_of : ndarray of shape (m,), int64
        Node of each row of the sample.
    nearest : pair of ndarray of shape (p, n_neighbors + 1)
        Numbers and distances of the nearest nodes of each node, which comes first itself.
    eigenvalues : ndarray of shape (q,)
        Eigenvalues of the normalised graph after the trivial one, falling.
    n_components : int
        Components of the neighbour graph, before they were joined.
    """

    map: GraphMap
    weights: Any
    node_of: np.ndarray
    nearest: tuple[np.ndarray, np.ndarray]
    eigenvalues: np.ndarray
    n_components: int

    def node_values(self) -> np.ndarray:
        """What the map gives rows that are equal to the nodes, of shape (p, q)."""
        count = self.map.n_neighbors
        numbers, distances = (np.ascontiguousarray(part[:, :count]) for part in self.nearest)
        return self.map.averages(numbers, distances, np.float64)

    def node_labels(self, labels: np.ndarray) -> np.ndarray:
        """Labels of the nodes from those of the rows, of shape (p,), int64."""
        of_nodes = np.empty(self.weights.shape[0], np.int64)
        of_nodes[self.node_of] = labels
        return of_nodes

    def to_dict(self) -> dict[str, Any]:
        """What a report says of the graph."""
        search = self.map.search
        return {
            "n_nodes": search.nodes.shape[0],
            "n_neighbors": self.map.n_neighbors,
            "n_components": self.n_components,
            "cells": search.centres.shape[0],
            "probed_cells": min(search.n_probes, search.centres.shape[0]),
            "eigenvalues": self.eigenvalues.tolist(),
        }


def node_graph(
    sample: Any,
    kernel: GraphKernel,
    n_components: int,
    random_state: np.random.RandomState,
    engine: Engine | None = None,
) -> NodeGraph:
    """Build the graph of a sample, and the map of rows to its coordinates.

    Parameters
    ----------
    sample : ndarray or CSR of shape (m, d)
        The rows.
    kernel : GraphKernel
        Settings.
    n_components : int
        Number of coordinates; as many as there are nodes but one, where that is fewer.
    random_state : RandomState
        Source of randomness.
    engine : Engine or None, default=None
        Its threads share the search for neighbours.

    Returns
    -------
    NodeGraph
        The graph.

    Raises
    ------
    InputError
        If all rows are equal, or no more differ than there are neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.graph import GraphKernel, node_graph
    >>> rows = np.random.RandomState(0).normal(size=(30, 2))
    >>> graph = node_graph(rows, GraphKernel(n_neighbors=4), 12, np.random.RandomState(0))
    >>> graph.map.block(rows[:5], np.float64).shape
    (5, 12)
    """
    mean_squared_distance(sample)  # refuses equal rows, and values whose squares overflow
    axes = leading_axes(sample, random_state, engine)
    nodes, node_of = distinct_rows(sample, axes, engine)
    check_places(nodes.shape[0], 2, "n_nodes")
    count = kernel.neighbours_of(nodes.shape[0])
    search, order = search_in_cells(nodes, random_state, count, engine)
    nearest = nearest_of_all(search, count + 1, engine)
    weights, n_parts = connected_graph(search.nodes, count, nearest)
    eigenvalues, vectors = spectrum(weights, n_components, engine)
    filtered = vectors * np.sqrt(filter_weights(eigenvalues, kernel.filter, n_components))
    mapped = GraphMap(axes, search, filtered, count)
    return NodeGraph(mapped, weights, np.argsort(order)[node_of], nearest, eigenvalues, n_parts)


def needs_of_nodes(kernel: GraphKernel, n_components: int, rows: RowShape) -> FitNeeds:
    """Bytes and work of the graph of a sample, of its construction, and of the coordinates of all rows."""
    p = min(kernel.n_nodes, rows.n_samples)
    # Three arrays of coordinates; the nodes; and the neighbours of a node on their way to edges.
    node = 24.0 * n_components + 8 * LEADING_AXES + 75 * min(kernel.n_neighbors or N_NEIGHBORS, p)
    # Principal axes, while they are sought, and a model's basis of as many columns.
    axes = min(2 * LEADING_AXES, p) * rows.n_features * (rows.itemsize + 8)
    basis = 16.0 * n_components**2 + 24 * n_components * rows.n_features
    vectors = 8.0 * n_components + 160  # of filtered vectors, beyond those that take their place
    return FitNeeds(
        *(n_components, p),
        sample_bytes=p * node + axes + basis + bytes_of_rows(rows, p) + NODE_LIBRARIES,
        work_bytes=max(p * vectors, AXES_BYTES),
        row_seconds=kernel_seconds(rows, n_components) + search_flops(p) / PRODUCT_RATE,
        search_seconds=NODE_SECONDS * p,
        routines={"nearest_nodes_into": 5.5},
    )
