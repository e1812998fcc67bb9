"""The graph of the nearest neighbours of some nodes, with calibrated weights, in one component."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mmcnb.errors import EqualRowsError
from mmcnb.graph.nodes import (
    LEADING_AXES,
    SEARCHED_NODES,
    Axes,
    Each,
    NodeSearch,
    distinct_rows,
    leading_axes,
    nearest_of_all,
    of_row_blocks,
    search_all,
    search_in_cells,
    without_own,
)
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import largest_column, range_error

# of the graph that judges and votes; and nearest nodes of the gap
N_NEIGHBORS = 10
N_LISTED = 25
N_NODES = 20_000
BRIDGE_WEIGHT = 0.5  # greatest weight of an edge that joins two components
SCALE_NEIGHBOUR = 7  # its distance is the scale of a node if components are joined
LEAST_DISTANCE = 1e-12
MANY_COMPONENTS = 30  # from which on a search in all others would take most of the time
MOST_AXES = 128  # of more columns
# of the distance to the last listed node of most nodes: nodes so near become one
NEAR_EQUAL = 1e-6
UNIT_NORM = 0.01  # from 1: rows of a sample that are all so near to it are directions


@dataclass(frozen=True)
class NodeGraph:
    """The distinct rows of a sample, their weights and their nearest neighbours.

    Parameters
    ----------
    axes : Axes, AllColumns or Precomputed
        Centres the rows, and reduces many columns.
    search : NodeSearch, SparseSearch or Precomputed
        The p nodes.
    sizes : ndarray of shape (p,), float64
        Weight of the rows of each node, relative to the heaviest.
    node_of : ndarray of shape (m,), int64
        Node of each row of the sample.
    numbers, distances : ndarray of shape (p, r)
        Nearest other nodes by rising distance: 25, or all of fewer.
    is_unit : bool
        Whether the rows are directions, of length 1.
    """

    axes: Any
    search: Any
    sizes: np.ndarray
    node_of: np.ndarray
    numbers: np.ndarray
    distances: np.ndarray
    is_unit: bool
    _edges: dict[int, tuple[Any, np.ndarray]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _gaps: dict[bytes, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, p."""
        return int(self.sizes.shape[0])

    @cached_property
    def counts(self) -> np.ndarray:
        """How many rows each node stands for, if the lightest stands for one; at most 2**31."""
        return np.rint(
            self.sizes / max(self.sizes.min(), self.sizes.max() / 2**31)
        ).clip(1)

    def edges(self, n_neighbors: int = N_NEIGHBORS) -> tuple[Any, np.ndarray]:
        """Weights of the edges to some nearest neighbours, and each node's weight with itself.

        A node stands for all its equal rows: an edge weighs as much as the lighter of
        its ends. The rest of the heavier one ties its own rows together, so that its
        volume is its degree times its weight.

        Returns
        -------
        weights : csr_array of shape (p, p)
            Symmetric, positive, without a diagonal.
        loops : ndarray of shape (p,)
            The diagonal.
        """
        count = min(n_neighbors, self.numbers.shape[1])
        if count not in self._edges:
            nearest = self.numbers, self.distances
            graph = connected_graph(
                getattr(self.search, "nodes", None), count, nearest, self._gaps
            )
            self._edges[count] = weighted(graph, self.sizes)
        return self._edges[count]

    @cached_property
    def by_distance(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All distances to nearest nodes, rising; weights of the nodes that look; places in ``numbers``."""
        order = np.argsort(self.distances, axis=None, kind="stable")
        weights = self.sizes[order // self.distances.shape[1]]
        return np.maximum(self.distances.ravel()[order], LEAST_DISTANCE), weights, order

    def lengths(self) -> Any:
        """Lengths of the edges of `edges`, as a csr_array of shape (p, p) of the same places."""
        weights = self.edges()[0]
        ends = np.repeat(np.arange(self.n_nodes), np.diff(weights.indptr))
        lengths = weights.copy()
        lengths.data = self.search.lengths(ends, weights.indices.astype(np.int64))
        return lengths

    def of_nodes(self, labels: np.ndarray) -> np.ndarray:
        """Labels or figures of the nodes from those of the rows of the sample; a node's first row counts."""
        return labels[np.unique(self.node_of, return_index=True)[1]]

    def beyond(self, sample: Any, each: Each = map) -> np.ndarray:
        """How far the nodes, those of a dense or CSR sample, are from the space of the axes."""
        parts = of_row_blocks(
            sample, lambda rows: self.axes.beyond(rows, self.axes(rows)), each
        )
        return self.of_nodes(np.concatenate(list(parts)))


def node_graph(
    sample: Any,
    weights: np.ndarray | None,
    random_state: np.random.RandomState,
    each: Each = map,
    n_axes: int = LEADING_AXES,
    axes: Axes | AllColumns | None = None,
) -> NodeGraph:
    """The neighbour graph of a sample.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows.
    weights : ndarray of shape (m,) or None
        Their weights, positive; None is 1 each.
    random_state : RandomState
        Source of randomness.
    each : callable, default=map
        Maps a function over items, perhaps in threads.
    n_axes : int, default=50
        Leading principal axes on which rows of more columns are compared, unless they
        are directions.
    axes : Axes, AllColumns or None, default=None
        Axes along which the rows lie already; None computes those of the rows.

    Returns
    -------
    NodeGraph
        The graph.

    Raises
    ------
    InputError
        If all rows are equal, or values overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> node_graph(rows, None, np.random.RandomState(0)).sizes
    array([0.5, 1. , 0.5])
    """
    is_unit = are_unit(sample)
    axes, nodes, node_of = _nodes_of(sample, is_unit, random_state, each, n_axes, axes)
    while True:
        p = nodes.shape[0]
        if hasattr(nodes, "indptr"):
            search: NodeSearch | SparseSearch = SparseSearch(nodes)
        else:
            search, order = search_in_cells(
                nodes, random_state, min(N_LISTED, p - 1), each
            )
            node_of = np.argsort(order)[node_of]
        numbers, distances = nearest_of_all(search, min(N_LISTED, p - 1) + 1, each)
        if distances.max() ** 2 < np.finfo(float).tiny:  # of rows that differ
            raise range_error("the squares of the values underflow", nodes, "multiply")
        n_apart, group = _near_equal(numbers, distances)
        if n_apart in (1, p):
            break
        nodes = search.nodes[np.unique(group, return_index=True)[1]]
        node_of = group[node_of]
    sizes = np.bincount(node_of, weights, minlength=p).astype(np.float64)
    # Known rows may weigh nothing, and stay nodes.
    sizes = np.maximum(sizes / sizes.max(), np.finfo(float).eps)
    return NodeGraph(
        axes, search, sizes, node_of, *without_own(numbers, distances), is_unit
    )


def _nodes_of(
    sample: Any,
    is_unit: bool,
    random_state: np.random.RandomState,
    each: Each,
    n_axes: int,
    given: Any,
) -> tuple[Axes | AllColumns, Any, np.ndarray]:
    """The distinct rows of a sample: what maps rows to them, the nodes, and the node of each row.

    Directions are compared on all columns. The axes are those of the distinct rows, so
    that a weight is the same as a repetition.
    """
    rows, node_of = distinct_rows(sample, each)
    if given is not None:
        return given, rows, node_of
    is_sparse = hasattr(rows, "indptr")
    axes: Axes | AllColumns = (
        AllColumns(sample.shape[1], is_sparse)
        if is_unit
        else leading_axes(rows, random_state, each, n_axes)
    )
    if is_unit and is_sparse:
        nodes = axes(rows)
    else:
        points = np.concatenate(list(of_row_blocks(rows, axes, each)))
        nodes, number = np.unique(points, axis=0, return_inverse=True)
        node_of = number.ravel()[node_of]
    if nodes.shape[0] < 2:
        raise EqualRowsError(largest_column(rows))
    return axes, nodes, node_of


def _near_equal(numbers: np.ndarray, distances: np.ndarray) -> tuple[int, np.ndarray]:
    """Groups of nodes that lie so near to each other that rounding could be the reason."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    near = distances <= NEAR_EQUAL * np.quantile(distances[:, -1], 0.9)
    ends = np.append(0, near.sum(axis=1).cumsum())
    shape = (numbers.shape[0],) * 2
    return connected_components(
        csr_array((near[near], numbers[near], ends), shape=shape), directed=False
    )


def are_unit(sample: Any) -> bool:
    """Whether all rows of a dense or CSR sample have length 1, or 0, as directions and embeddings do.

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
    """Leading principal axes on which rows are compared: more than 50 from 26 clusters on, at most 128.

    Examples
    --------
    >>> from mmcnb.graph.neighbours import axes_of
    >>> axes_of(2), axes_of(40), axes_of(100)
    (50, 80, 128)
    """
    return min(MOST_AXES, max(LEADING_AXES, 2 * n_clusters))


def weighted(graph: Any, sizes: np.ndarray) -> tuple[Any, np.ndarray]:
    """The edges of a graph of nodes with weights, and the weight of each node with itself.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights of the edges between rows.
    sizes : ndarray of shape (p,)
        How much each node weighs.

    Returns
    -------
    weights : csr_array of shape (p, p)
        ``min(s_i, s_j) w_ij``.
    loops : ndarray of shape (p,)
        ``s_i d_i - sum_j min(s_i, s_j) w_ij``, with d_i the sum of w_ij.
    """
    scaled = graph.copy()
    ends = np.repeat(np.arange(sizes.shape[0]), np.diff(graph.indptr))
    scaled.data = graph.data * np.minimum(sizes[ends], sizes[graph.indices])
    return scaled, np.maximum(sizes * graph.sum(axis=1) - scaled.sum(axis=1), 0.0)


def connected_graph(
    nodes: Any,
    n_neighbors: int,
    nearest: tuple[np.ndarray, np.ndarray],
    gaps: dict[bytes, Any] | None = None,
) -> Any:
    """Symmetric weights of the neighbour graph of distinct nodes, in one component.

    Weights a and b of the two directions give a + b - ab.

    Parameters
    ----------
    nodes : ndarray or csr_array of shape (p, c), or None
        Distinct rows; None if nothing but their distances is known.
    n_neighbors : int
        Neighbours of each node, below p.
    nearest : pair of ndarray of shape (p, r)
        Numbers and distances of at least so many nearest other nodes, by rising
        distance.
    gaps : dict or None, default=None
        Keeps the shortest edges between components, for another number of neighbours of
        the same nodes.

    Returns
    -------
    graph : csr_array of shape (p, p)
        Weights in (0, 1].
    """
    from scipy.sparse import csr_array

    numbers, distances = (part[:, :n_neighbors] for part in nearest)
    p = numbers.shape[0]
    weights = kernels.calibrated_weights(distances)
    ends = np.arange(0, p * n_neighbors + 1, n_neighbors)
    directed = csr_array((weights.ravel(), numbers.ravel(), ends), shape=(p, p))
    reverse = directed.T.tocsr()
    graph = (directed + reverse - directed * reverse).tocsr()
    scales = distances[:, min(SCALE_NEIGHBOUR, n_neighbors) - 1]
    return _joined(graph, nodes, scales, nearest, {} if gaps is None else gaps)


def _joined(
    graph: Any,
    nodes: Any,
    scales: np.ndarray,
    nearest: tuple[np.ndarray, np.ndarray],
    known: dict[bytes, Any],
) -> Any:
    """Join components: each but the largest gets an edge to its nearest node of another one.

    The weights of these edges go by their lengths and by the scales of their two ends.
    Edges that are known are not searched again.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, component = connected_components(graph, directed=False)
    are_many = (
        nodes is not None
        and count > MANY_COMPONENTS
        and nodes.shape[0] > SEARCHED_NODES
    )
    while count > 1:
        key = component.tobytes() + bytes([are_many])
        if key not in known:
            known[key] = _shortest_edges(nodes, component, *nearest, are_many)
        ends, gaps = known[key]
        _, once = np.unique(
            np.sort(ends, axis=1), axis=0, return_index=True
        )  # two may choose the same edge
        (a, b), gaps = ends[once].T, gaps[once]
        with np.errstate(over="ignore"):
            squares = gaps**2 / np.maximum(scales[a] * scales[b], np.finfo(float).tiny)
        weights = np.maximum(
            BRIDGE_WEIGHT / (1 + squares), np.finfo(float).eps
        )  # 0 would be no edge
        edges = coo_array((weights, (a, b)), shape=graph.shape).tocsr()
        graph = (graph + edges + edges.T).tocsr()
        count, component = connected_components(graph, directed=False)
    return graph


def _shortest_edges(
    nodes: Any,
    component: np.ndarray,
    numbers: np.ndarray,
    distances: np.ndarray,
    are_many: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest edge of each component but the largest to any other: its two ends, and its length.

    A component has a search of its own if the nearest nodes of some of its nodes do not
    reach beyond it; of equally near nodes the first counts. One of many is searched for
    in the component with the nearest mean.
    """
    outside = component[numbers] != component[:, None]
    each = np.arange(component.size)
    place = outside.argmax(axis=1)
    reached = outside[each, place]
    gaps = np.where(reached, distances[each, place], np.inf)
    first = np.lexsort((gaps, component))
    first = first[
        np.unique(component[first], return_index=True)[1]
    ]  # of each component
    beyond = np.full(first.size, np.inf)  # other nodes are at least so far
    if nodes is not None:
        np.minimum.at(beyond, component[~reached], distances[~reached, -1])
    near = _nearest_means(nodes, component) if are_many else None
    edges = [
        (first[one], numbers[first[one], place[first[one]]], gaps[first[one]])
        if gaps[first[one]] < beyond[one]
        else _shortest_edge(
            nodes,
            component == one,
            component != one if near is None else component == near[one],
        )
        for one in np.argsort(-np.bincount(component), kind="stable")[1:]
    ]
    a, b, lengths = zip(*edges, strict=True)
    return np.array([a, b]).T, np.array(lengths)


def _nearest_means(nodes: Any, component: np.ndarray) -> np.ndarray:
    """The component whose mean is nearest to that of each."""
    from scipy.sparse import csr_array
    from sklearn.metrics import euclidean_distances

    of_node = csr_array(
        (
            1 / np.bincount(component)[component],
            component,
            np.arange(component.size + 1),
        )
    )
    apart = euclidean_distances(of_node.T @ nodes)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.argmin(axis=1))


def _shortest_edge(
    nodes: Any, is_inside: np.ndarray, is_outside: np.ndarray
) -> tuple[int, int, float]:
    """The shortest edge between some nodes and others: its two ends, and its length."""
    inside = np.flatnonzero(is_inside)
    outside = np.flatnonzero(is_outside)
    if nodes is None:
        return inside[0], outside[0], np.inf
    search = SparseSearch if hasattr(nodes, "indptr") else search_all
    numbers, distances = search(nodes[outside]).nearest(nodes[inside], 1)
    nearest = distances[:, 0].argmin()
    return inside[nearest], outside[numbers[nearest, 0]], distances[nearest, 0]
