"""The graph kernel: coordinates of rows on the neighbour graph of some nodes.

The leading eigenvectors of the graph, weighted by a filter of their eigenvalues, are coordinates in which
clusters follow the data: a ring is one cluster, and so is a dense group beside a sparse one. A row has the
weighted mean of the coordinates of its nearest nodes, whether it is a node or not.
"""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.errors import InputError
from mmcnb.features.bandwidth import mean_squared_distance
from mmcnb.features.nodes import Axes, NodeSearch, distinct_rows, leading_axes, search_all, search_in_cells
from mmcnb.features.nystroem import check_places

# Measured by `python -m benchmarks graph` on the tuning half.
N_NEIGHBORS, N_NODES = 10, 20_000
EIGENVECTORS = 6  # a cluster
BRIDGE_WEIGHT = 0.5  # greatest weight of an edge that joins two components
SCALE_NEIGHBOUR = 7  # its distance is the scale of a node where components are joined
DENSE_NODES = 2100  # up to which all eigenvalues cost less than iterations for some
EIGENVALUE_TOLERANCE = 1e-7
DEFLATION = 3.0  # takes the eigenvalue 1 below all others, which are at least -1
FILTERS = ("root", "cut-off", "resolvent")


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
        1 - mu at twice the number of clusters, and "root" by the square root of that.

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
        for name, least in (("n_neighbors", 1), ("n_nodes", 2)):
            value = getattr(self, name)
            if value is None and name == "n_neighbors":
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
                raise InputError(
                    f"{name}={value!r} is out of range; give a whole number of at least {least}."
                )
        if self.filter not in FILTERS:
            shown = ", ".join(map(repr, FILTERS))
            raise InputError(f"filter={self.filter!r} is unknown; choose one of {shown}.")

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


def graph_kernel(kernel: Any) -> GraphKernel | None:
    """The settings that a parameter ``kernel`` asks for; None where it names a kernel function."""
    if isinstance(kernel, str) and kernel == "graph":
        return GraphKernel()
    return kernel if isinstance(kernel, GraphKernel) else None


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
        numbers, distances = self.search.nearest(self.axes(rows), self.n_neighbors)
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
        mean, nodes, starts, centres, coordinates, found = given = [arrays[f"graph_{name}"] for name in names]
        kinds = [f"{one.ndim}{one.dtype.kind}" for one in (*given, arrays.get("graph_axes", nodes))]
        if kinds != ["1f", "2f", "1i", "2f", "2f", "1i", "2f"] or found.shape != (2,):
            raise KeyError("graph")
        axes, p, cells = Axes(mean, arrays.get("graph_axes")), nodes.shape[0], centres.shape[0]
        fits = (
            (axes.axes is None or axes.axes.shape[:1] == mean.shape)
            and (starts.dtype.name, starts.shape) == ("int64", (cells + 1,))
            and (starts[0], starts[-1]) == (0, p)
            and (np.diff(starts) > 0).all()
            and nodes.shape[1] == centres.shape[1] == axes.n_features
            and nodes.dtype == centres.dtype
            and (coordinates.dtype.name, coordinates.shape[0]) == ("float64", p)
            and found[0] >= 1
            and 1 <= found[1] < p
        )
        if not fits:
            raise KeyError("graph")
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
    eigenvalues : ndarray of shape (q,)
        Eigenvalues of the normalised graph after the trivial one, falling.
    n_components : int
        Components of the neighbour graph, before they were joined.
    """

    map: GraphMap
    weights: Any
    node_of: np.ndarray
    eigenvalues: np.ndarray
    n_components: int

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
    sample: Any, kernel: GraphKernel, n_clusters: int, random_state: np.random.RandomState
) -> NodeGraph:
    """Build the graph of a sample, and the map of rows to its coordinates.

    Parameters
    ----------
    sample : ndarray or CSR of shape (m, d)
        The rows.
    kernel : GraphKernel
        Settings.
    n_clusters : int
        Number of clusters, k: there are 6k coordinates, or as many as there are nodes but one.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    NodeGraph
        The graph.

    Raises
    ------
    InputError
        If fewer rows differ than there are clusters, or no more than there are neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.graph import GraphKernel, node_graph
    >>> rows = np.random.RandomState(0).normal(size=(30, 2))
    >>> graph = node_graph(rows, GraphKernel(n_neighbors=4), 2, np.random.RandomState(0))
    >>> graph.map.block(rows[:5], np.float64).shape
    (5, 12)
    """
    mean_squared_distance(sample)  # refuses equal rows, and values whose squares overflow
    axes = leading_axes(sample, random_state)
    nodes, node_of = distinct_rows(sample, axes)
    check_places(nodes.shape[0], max(2, n_clusters), "n_nodes")
    search, order = search_in_cells(nodes, random_state)
    count = kernel.neighbours_of(nodes.shape[0])
    weights, n_components = connected_graph(search.nodes, count)
    eigenvalues, vectors = spectrum(weights, EIGENVECTORS * n_clusters)
    filtered = vectors * np.sqrt(filter_weights(eigenvalues, kernel.filter, n_clusters))
    mapped = GraphMap(axes, search, filtered, count)
    return NodeGraph(mapped, weights, np.argsort(order)[node_of], eigenvalues, n_components)


def filter_weights(eigenvalues: np.ndarray, name: str, n_clusters: int) -> np.ndarray:
    """Weight of each eigenvector.

    Parameters
    ----------
    eigenvalues : ndarray of shape (q,)
        Falling, in [0, 1].
    name : {"cut-off", "resolvent", "root"}
        The filter; see `GraphKernel`.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    ndarray of shape (q,)
        Weights in (0, 1] up to the eigenvector 2k, and less beyond it.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.graph import filter_weights
    >>> filter_weights(np.array([0.9, 0.8, 0.5]), "resolvent", 1)
    array([2. , 1. , 0.4])
    """
    if name == "cut-off":
        return eigenvalues
    beyond = np.maximum(1 - eigenvalues, EIGENVALUE_TOLERANCE)  # less is rounding
    weights = beyond[min(2 * n_clusters, beyond.shape[0]) - 1] / beyond
    return weights if name == "resolvent" else np.sqrt(weights)


# -- the graph of the nodes --------------------------------------------------------------------


def connected_graph(nodes: np.ndarray, n_neighbors: int) -> tuple[Any, int]:
    """Symmetric weights of the neighbour graph of distinct nodes, in one component.

    Weights a and b of the two directions give a + b - ab.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        Distinct rows.
    n_neighbors : int
        Neighbours of each node, below p.

    Returns
    -------
    graph : csr_array of shape (p, p)
        Weights in (0, 1].
    n_components : int
        Components before they were joined.
    """
    from scipy.sparse import csr_array

    p = nodes.shape[0]
    numbers, distances = search_all(nodes).nearest(nodes, n_neighbors + 1)
    # A node is its own nearest one: distinct rows have positive distances, but for underflow.
    others = numbers != np.arange(p)[:, None]
    others[others.all(axis=1), -1] = False
    numbers, distances = (part[others].reshape(p, n_neighbors) for part in (numbers, distances))
    weights, ends = kernels.calibrated_weights(distances), np.arange(0, p * n_neighbors + 1, n_neighbors)
    directed = csr_array((weights.ravel(), numbers.ravel(), ends), shape=(p, p))
    reverse = directed.T.tocsr()
    graph = (directed + reverse - directed * reverse).tocsr()
    scales = distances[:, min(SCALE_NEIGHBOUR, n_neighbors) - 1]
    return _joined(graph, nodes, scales)


def _joined(graph: Any, nodes: np.ndarray, scales: np.ndarray) -> tuple[Any, int]:
    """Join components: each but the largest gets an edge to its nearest node of another one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, component = connected_components(graph, directed=False)
    n_components = int(count)
    while count > 1:
        ends = []
        for one in np.argsort(-np.bincount(component), kind="stable")[1:]:
            inside, outside = np.flatnonzero(component == one), np.flatnonzero(component != one)
            numbers, distances = search_all(nodes[outside]).nearest(nodes[inside], 1)
            nearest = distances[:, 0].argmin()
            ends.append((inside[nearest], outside[numbers[nearest, 0]], distances[nearest, 0]))
        _, once = np.unique(np.sort([end[:2] for end in ends], axis=1), axis=0, return_index=True)
        a, b, gaps = (
            np.array(part)[once] for part in zip(*ends, strict=True)
        )  # two may choose the same edge
        edges = coo_array((_bridge_weights(gaps, scales[a], scales[b]), (a, b)), shape=graph.shape).tocsr()
        graph = (graph + edges + edges.T).tocsr()
        count, component = connected_components(graph, directed=False)
    return graph, n_components


def _bridge_weights(gaps: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Weights of edges between components, by their lengths and the scales of their two ends."""
    with np.errstate(over="ignore"):
        squares = gaps**2 / np.maximum(one * other, np.finfo(float).tiny)
    return np.maximum(BRIDGE_WEIGHT / (1 + squares), np.finfo(float).eps)  # 0 would be no edge


def spectrum(graph: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvectors of the normalised graph S = D^-½ W D^-½, without the trivial one.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights W of one component.
    count : int
        How many eigenvectors; p - 1 where there are fewer.

    Returns
    -------
    eigenvalues : ndarray of shape (q,)
        Falling; negative ones are clipped to 0.
    vectors : ndarray of shape (p, q)
        D^-½ V, with mean square 1; the largest entry of each is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.features.graph import spectrum
    >>> spectrum(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 1)[1].round(6)
    array([[ 1.],
           [-1.]])
    """
    from scipy.linalg import eigh
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import LinearOperator, eigsh

    p = graph.shape[0]
    roots = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scaling, trivial, count = diags_array(1 / roots), roots / np.linalg.norm(roots), min(count, p - 1)
    S = (scaling @ graph @ scaling).tocsr()
    # Where groups hardly touch, others have the trivial eigenvalue but for rounding: the first may be any.
    if p <= DENSE_NODES or 2 * count >= p:
        deflated = S.toarray() - DEFLATION * np.outer(trivial, trivial)
        values, vectors = eigh(deflated, subset_by_index=[p - count, p - 1])
    else:
        by_trivial = DEFLATION * trivial  # summed without BLAS, whose threads would wake at each step
        rest = LinearOperator((p, p), lambda v: S @ v - (by_trivial * v).sum() * trivial, dtype=np.float64)
        values, vectors = eigsh(rest, count, which="LA", v0=np.cos(np.arange(p)), tol=EIGENVALUE_TOLERANCE)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order] / roots[:, None]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    return np.clip(values, 0.0, 1.0), vectors / np.sqrt((vectors**2).mean(axis=0))
