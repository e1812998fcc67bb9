"""Nearest-neighbour graph of the nodes, connected by bridges."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from mmcnb.graph.axes import LEADING_AXES, leading_axes
from mmcnb.graph.inverted_file import (
    SEARCHED_NODES,
    InvertedFileIndex,
    build_index,
    exact_index,
    nearest_of_all,
    without_own,
)
from mmcnb.graph.nodes import Each, Matrix, distinct_rows, of_row_blocks
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import CSRBlock, equal_rows_error, range_error

N_NEIGHBORS = 10  # neighbours per node, for scores of partitions and for votes
N_LISTED = 25  # number of nearest nodes that are listed for each node
N_NODES = 20_000  # default number of rows in the sample
BRIDGE_WEIGHT = 0.5  # largest weight of an edge that joins two components
# The weight of a bridge uses the distance of a node to this neighbour as the node's
# length scale.
SCALE_NEIGHBOUR = 7
LEAST_DISTANCE = 1e-12
# With more components, searching all other components for the shortest edge would take
# most of the time.
MANY_COMPONENTS = 30
MOST_AXES = 128  # maximum number of axes on which rows are projected
# Nodes are merged into one node if they are closer than this fraction of the 0.9
# quantile of the distances to the last listed neighbour.
NEAR_EQUAL = 1e-6
# Rows are directions if the length of each row, except for rows of zeros, differs from
# 1 by at most this value.
UNIT_NORM = 0.01


class RowMap(Protocol):
    """Protocol of objects that map rows to points, which are compared with nodes."""

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""

    def __call__(self, rows: Matrix | CSRBlock) -> Matrix:
        """Map rows to points."""

    def beyond(self, rows: Matrix | CSRBlock, points: Matrix) -> np.ndarray:
        """Return the distance from each row to the subspace of the points."""


class NodeSearch(Protocol):
    """Protocol for objects that find the nodes nearest to given points."""

    @property
    def nodes(self) -> Any:
        """The nodes, or None if only their distances are known."""

    def nearest(self, rows: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return indices and distances of each point's nearest nodes, nearest first."""

    def lengths(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the distances between pairs of nodes."""


class RisingDistances(NamedTuple):
    """The distances from all nodes to their listed neighbours, in ascending order.

    Attributes
    ----------
    distances : ndarray of shape (p r,)
        The distances, all above 0.
    weights : ndarray of shape (p r,)
        Weight of the node from which each distance is measured.
    starts, ends : ndarray of shape (p r,), int64
        The two nodes between which each distance is measured.
    """

    distances: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True)
class NodeGraph:
    """The distinct rows of a sample, their weights and their nearest neighbours.

    Parameters
    ----------
    axes : Axes, AllColumns or Precomputed
        Maps rows to points, which are compared with the nodes.
    search : InvertedFileIndex, SparseSearch or Precomputed
        Finds the nearest of the p nodes.
    sizes : ndarray of shape (p,), float64
        Total weight of the rows of each node, relative to the heaviest node.
    node_of : ndarray of shape (m,), int64
        For each row of the sample, the index of its node.
    numbers, distances : ndarray of shape (p, r)
        Indices of the nearest other nodes of each node, nearest first, and the
        distances to these nodes. r is the smaller of 25 and p - 1.
    is_unit : bool
        Whether the rows are directions, that is, have length 1 or 0.
    """

    axes: RowMap
    search: NodeSearch
    sizes: np.ndarray
    node_of: np.ndarray
    numbers: np.ndarray
    distances: np.ndarray
    is_unit: bool
    _edges: dict[int, tuple[csr_array, np.ndarray]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _bridges: "Bridges" = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, p."""
        return self.sizes.size

    @cached_property
    def counts(self) -> np.ndarray:
        """Weight of each node in units of the smallest weight, limited to 2**31."""
        unit = max(self.sizes.min(), self.sizes.max() / 2**31)
        return np.rint(self.sizes / unit).clip(1)

    def edges(self, n_neighbors: int = N_NEIGHBORS) -> tuple[csr_array, np.ndarray]:
        """Return the weights of the edges, and the weight of each node with itself.

        A node represents all rows that are equal to it. The weight of an edge between
        two nodes is multiplied by the weight of the lighter node. The rest of the
        heavier node's weight links its own rows to each other (a loop), so that the
        volume of each node is its degree times its weight.

        Parameters
        ----------
        n_neighbors : int, default=10
            Number of nearest neighbours to which each node has an edge.

        Returns
        -------
        weights : csr_array of shape (p, p)
            Symmetric positive weights, without a diagonal.
        loops : ndarray of shape (p,)
            The diagonal: weight of each node with itself.
        """
        count = min(n_neighbors, self.numbers.shape[1])
        if count not in self._edges:
            nearest = self.numbers, self.distances
            graph = connected_graph(self.search.nodes, count, nearest, self._bridges)
            self._edges[count] = weighted(graph, self.sizes)
        return self._edges[count]

    @cached_property
    def by_distance(self) -> RisingDistances:
        """Distances from all nodes to their listed neighbours, in increasing order."""
        places = np.argsort(self.distances, axis=None, kind="stable")
        distances = np.maximum(self.distances.ravel()[places], LEAST_DISTANCE)
        starts = places // self.distances.shape[1]
        ends = self.numbers.ravel()[places]
        return RisingDistances(distances, self.sizes[starts], starts, ends)

    def lengths(self) -> csr_array:
        """Return the edge lengths in a matrix with the sparsity pattern of `edges`."""
        lengths = self.edges()[0].copy()
        entries = lengths.tocoo()
        lengths.data = self.search.lengths(entries.row, entries.col)
        return lengths

    def of_nodes(self, labels: np.ndarray) -> np.ndarray:
        """Convert values of the rows of the sample to values of the nodes.

        Each node takes the value of its first row.
        """
        return labels[np.unique(self.node_of, return_index=True)[1]]

    def beyond(self, sample: Matrix, each: Each = map) -> np.ndarray:
        """Return the distance from each node to the subspace of the axes."""
        parts = of_row_blocks(
            sample, lambda rows: self.axes.beyond(rows, self.axes(rows)), each
        )
        return self.of_nodes(np.concatenate(list(parts)))


def node_graph(
    sample: Matrix,
    weights: np.ndarray | None,
    random_state: np.random.RandomState,
    each: Each = map,
    n_axes: int = LEADING_AXES,
    axes: RowMap | None = None,
) -> NodeGraph:
    """Build the neighbour graph of a sample.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        Rows of the sample.
    weights : ndarray of shape (m,) or None
        Positive weights of the rows. If None, all are 1.
    random_state : RandomState
        Random number generator.
    each : callable, default=map
        Maps a function over items, possibly in several threads.
    n_axes : int, default=50
        Number of leading principal axes on which rows with more columns are compared.
        Directions are compared on all columns.
    axes : Axes, AllColumns or None, default=None
        Axes along which rows are compared. If None, they are computed from the rows.

    Returns
    -------
    NodeGraph
        The nodes and their nearest neighbours.

    Raises
    ------
    InputError
        If all rows are equal, or if values overflow or underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> node_graph(rows, None, np.random.RandomState(0)).sizes
    array([0.5, 1. , 0.5])
    """
    is_unit = are_unit(sample)
    rows, node_of = distinct_rows(sample, each)
    nodes = rows
    if axes is None:
        # Directions are compared on all columns. Otherwise the axes are computed from
        # the distinct rows, so that a weight has the same effect as repeating the row.
        if is_unit:
            axes = AllColumns(rows.shape[1], hasattr(rows, "indptr"))
        else:
            axes = leading_axes(rows, random_state, each, n_axes)
        nodes, node_of = _along(axes, rows, node_of, each)
    while True:
        p = nodes.shape[0]
        count = min(N_LISTED, p - 1)
        search: InvertedFileIndex | SparseSearch
        if hasattr(nodes, "indptr"):
            search = SparseSearch(nodes)
        else:
            search, order = build_index(nodes, random_state, count, each)
            node_of = np.argsort(order)[node_of]
        numbers, distances = nearest_of_all(search, count + 1, each)
        # Nodes are distinct, so a distance of 0 means that squares underflow.
        if distances.max() ** 2 < np.finfo(float).tiny:
            raise range_error("the squares of the values underflow", nodes, "multiply")
        n_groups, group = _near_equal(numbers, distances)
        if n_groups in (1, p):
            break
        nodes = search.nodes[np.unique(group, return_index=True)[1]]
        node_of = group[node_of]
    sizes = np.bincount(node_of, weights, minlength=p).astype(np.float64)
    # Rows with known labels may have weight 0, but remain nodes.
    sizes = np.maximum(sizes / sizes.max(), np.finfo(float).eps)
    numbers, distances = without_own(numbers, distances)
    return NodeGraph(
        axes=axes,
        search=search,
        sizes=sizes,
        node_of=node_of,
        numbers=numbers,
        distances=distances,
        is_unit=is_unit,
    )


def _along(
    axes: RowMap, rows: Matrix, node_of: np.ndarray, each: Each
) -> tuple[Matrix, np.ndarray]:
    """Map rows to points; return the distinct points, and the node of each sample row.

    The distinct points are the nodes.
    """
    if isinstance(axes, AllColumns) and axes.is_sparse:
        nodes = axes(rows)
    else:
        points = np.concatenate(list(of_row_blocks(rows, axes, each)))
        nodes, number = np.unique(points, axis=0, return_inverse=True)
        node_of = number.ravel()[node_of]
    if nodes.shape[0] < 2:
        raise equal_rows_error(rows)
    return nodes, node_of


def _near_equal(numbers: np.ndarray, distances: np.ndarray) -> tuple[int, np.ndarray]:
    """Group nodes so close to each other that they may differ only by rounding.

    Return the number of groups, and the group of each node.
    """
    p = numbers.shape[0]
    is_near = distances <= NEAR_EQUAL * np.quantile(distances[:, -1], 0.9)
    starts = np.append(0, is_near.sum(axis=1).cumsum())
    entries = is_near[is_near], numbers[is_near], starts
    return connected_components(csr_array(entries, shape=(p, p)), directed=False)


def are_unit(sample: Matrix) -> bool:
    """Return whether all rows have length 1 or 0, as directions and embeddings do.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.neighbours import are_unit
    >>> are_unit(np.array([[0.6, 0.8], [0.0, 1.0]])), are_unit(np.array([[1.0], [2.0]]))
    (True, False)
    """
    from sklearn.utils.extmath import row_norms

    if sample.shape[1] == 1:
        return False
    with np.errstate(over="ignore"):
        norms = row_norms(sample)
    is_unit = np.abs(norms - 1) <= UNIT_NORM
    return bool(is_unit.any() and (is_unit | (norms == 0)).all())


def axes_of(n_clusters: int) -> int:
    """Return the number of leading axes on which rows are compared.

    The number is 50 for up to 25 clusters, and otherwise twice the number of clusters,
    but at most 128.

    Examples
    --------
    >>> from mmcnb.graph.neighbours import axes_of
    >>> axes_of(2), axes_of(40), axes_of(100)
    (50, 80, 128)
    """
    return min(MOST_AXES, max(LEADING_AXES, 2 * n_clusters))


def weighted(graph: csr_array, sizes: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """Return the edges and loops of a graph, scaled by the weights of its nodes.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights of the edges between rows.
    sizes : ndarray of shape (p,)
        Weight of each node.

    Returns
    -------
    weights : csr_array of shape (p, p)
        ``min(s_i, s_j) w_ij``.
    loops : ndarray of shape (p,)
        ``s_i d_i - sum_j min(s_i, s_j) w_ij``, with d_i the sum of w_ij.
    """
    scaled = graph.copy()
    entries = graph.tocoo()
    scaled.data = graph.data * np.minimum(sizes[entries.row], sizes[entries.col])
    return scaled, np.maximum(sizes * graph.sum(axis=1) - scaled.sum(axis=1), 0.0)


# -- one component ---------------------------------------------------------------------


Edges = dict[tuple[int, int], float]
"""Lengths of edges; keys are pairs of nodes with the smaller index first."""

Bridges = dict[bytes, Edges]
"""The shortest edges between components; keys encode the component of each node."""


def connected_graph(
    nodes: Matrix | None,
    n_neighbors: int,
    nearest: tuple[np.ndarray, np.ndarray],
    bridges: Bridges | None = None,
) -> csr_array:
    """Return the symmetric weights of the neighbour graph, after joining components.

    An edge with weights a and b in its two directions has the weight a + b - ab.

    Parameters
    ----------
    nodes : ndarray or csr_array of shape (p, c), or None
        Distinct rows; None if only their distances are known.
    n_neighbors : int
        Number of neighbours of each node, below p.
    nearest : pair of ndarray of shape (p, r)
        Indices and distances of at least ``n_neighbors`` nearest other nodes of each
        node, nearest first.
    bridges : dict or None, default=None
        Cache of the shortest edges between components. Calls with the same nodes but
        different numbers of neighbours may share the cache.

    Returns
    -------
    graph : csr_array of shape (p, p)
        Weights in (0, 1].
    """
    numbers = nearest[0][:, :n_neighbors]
    distances = np.ascontiguousarray(nearest[1][:, :n_neighbors])
    p = numbers.shape[0]
    weights = kernels.calibrated_weights(distances)
    starts = np.arange(0, p * n_neighbors + 1, n_neighbors)
    entries = weights.ravel(), numbers.ravel(), starts
    directed = csr_array(entries, shape=(p, p))
    reverse = directed.T.tocsr()
    graph = (directed + reverse - directed * reverse).tocsr()
    scale_neighbor = min(SCALE_NEIGHBOUR, n_neighbors)
    scales = distances[:, scale_neighbor - 1]
    if bridges is None:
        bridges = {}
    return _join_components(graph, nodes, scales, nearest, bridges)


def _join_components(
    graph: csr_array,
    nodes: Matrix | None,
    scales: np.ndarray,
    nearest: tuple[np.ndarray, np.ndarray],
    bridges: Bridges,
) -> csr_array:
    """Join each component, except the largest, to the nearest node outside it.

    This is repeated until there is one component. The weight of a bridge depends on its
    length and on the length scales of its two ends.
    """
    count, component = connected_components(graph, directed=False)
    are_many = (
        nodes is not None
        and count > MANY_COMPONENTS
        and nodes.shape[0] > SEARCHED_NODES
    )
    while count > 1:
        key = component.tobytes() + bytes([are_many])
        if key not in bridges:
            bridges[key] = _shortest_edges(nodes, component, nearest, are_many)
        edges = bridges[key]
        a, b = np.array(list(edges)).T
        lengths = np.array(list(edges.values()))
        weights = _bridge_weights(lengths, scales[a], scales[b])
        joins = coo_array((weights, (a, b)), shape=graph.shape).tocsr()
        graph = (graph + joins + joins.T).tocsr()
        count, component = connected_components(graph, directed=False)
    return graph


def _bridge_weights(
    lengths: np.ndarray, scales_a: np.ndarray, scales_b: np.ndarray
) -> np.ndarray:
    """Return the weights 1/2 / (1 + d² / (s_a s_b)) of bridges of length d.

    The weights are at least the machine epsilon, so that no edge vanishes.
    """
    limits = np.finfo(float)
    with np.errstate(over="ignore"):
        scales = np.maximum(scales_a * scales_b, limits.tiny)
        squares = lengths**2 / scales
    return np.maximum(BRIDGE_WEIGHT / (1 + squares), limits.eps)


class _Edge(NamedTuple):
    start: int
    end: int
    length: float


def _shortest_edges(
    nodes: Matrix | None,
    component: np.ndarray,
    nearest: tuple[np.ndarray, np.ndarray],
    are_many: bool,
) -> Edges:
    """Return the shortest edge from each component except the largest to any other.

    The edge leads to a listed neighbour, unless a node without a listed neighbour
    outside the component could be nearer to another component. In this case, an
    exhaustive search finds the shortest edge, and ties go to the first node. If there
    are many components, this search is limited to the component with the nearest mean.
    """
    listed, least = _listed_edges(component, nearest)
    if nodes is None:
        least[:] = np.inf
    nearest_mean = _nearest_means(nodes, component) if are_many else None
    by_size = np.argsort(-np.bincount(component), kind="stable")
    edges: Edges = {}
    for number in by_size[1:]:
        edge = listed[number]
        if edge.length >= least[number]:
            is_target = component != number
            if nearest_mean is not None:
                is_target = component == nearest_mean[number]
            inside = np.flatnonzero(component == number)
            edge = _shortest_edge(nodes, inside, np.flatnonzero(is_target))
        # Two components may choose the same edge.
        ends = min(edge.start, edge.end), max(edge.start, edge.end)
        edges.setdefault(ends, edge.length)
    return edges


def _listed_edges(
    component: np.ndarray, nearest: tuple[np.ndarray, np.ndarray]
) -> tuple[list[_Edge], np.ndarray]:
    """Return each component's shortest edge to a node outside the component.

    Only edges to nodes in the neighbour lists are considered. Also return, for each
    component, a lower bound on the distances to outside nodes that are not listed.
    """
    numbers, distances = nearest
    is_outside = component[numbers] != component[:, None]
    every = np.arange(component.size)
    place = is_outside.argmax(axis=1)  # place of the nearest outside node
    reaches = is_outside[every, place]
    ends = numbers[every, place]
    gaps = np.where(reaches, distances[every, place], np.inf)
    by_gap = np.lexsort((gaps, component))
    _, first = np.unique(component[by_gap], return_index=True)
    starts = by_gap[first]  # the node of each component with the smallest gap
    least = np.full(starts.size, np.inf)
    np.minimum.at(least, component[~reaches], distances[~reaches, -1])
    return list(map(_Edge, starts, ends[starts], gaps[starts])), least


def _nearest_means(nodes: Matrix, component: np.ndarray) -> np.ndarray:
    """Return, for each component, the other component with the nearest mean."""
    from sklearn.metrics import euclidean_distances

    shares = 1 / np.bincount(component)[component]
    of_node = csr_array((shares, component, np.arange(component.size + 1)))
    distances = euclidean_distances(of_node.T @ nodes)
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)


def _shortest_edge(
    nodes: Matrix | None, inside: np.ndarray, outside: np.ndarray
) -> _Edge:
    """Return the shortest edge from a node in ``inside`` to a node in ``outside``."""
    if nodes is None:
        return _Edge(inside[0], outside[0], np.inf)
    search = SparseSearch if hasattr(nodes, "indptr") else exact_index
    numbers, distances = search(nodes[outside]).nearest(nodes[inside], 1)
    place = distances[:, 0].argmin()
    return _Edge(inside[place], outside[numbers[place, 0]], distances[place, 0])
