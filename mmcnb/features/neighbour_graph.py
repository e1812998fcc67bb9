"""The neighbour graph of some nodes, its spectrum, and the filter of its eigenvalues."""

from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.nodes import SHARED_ROWS, nearest_of_all, search_all, without_own
from mmcnb.kernels import unchecked as kernels

# From trials on MNIST, optdigits and shapes; `python -m benchmarks graph` measures the result.
BRIDGE_WEIGHT = 0.5  # greatest weight of an edge that joins two components
SCALE_NEIGHBOUR = 7  # its distance is the scale of a node where components are joined
LISTED = 64  # nearest nodes that are kept where components are joined
DENSE_NODES = 800  # up to which all eigenvalues cost less than iterations for some
EIGENVALUE_TOLERANCE = 1e-7
# A residual may be this share of the distance to the eigenvalues that are cut off, between two bounds:
# float32 allows little less than the lower one.
GAP_SHARE, RESIDUALS = 1e-2, (2e-6, 1e-5)
# Sums over thousands of edges at one node leave larger residuals: up to the first they are taken, where a
# filter leaves more than the second share of them.
ROUGH_RESIDUAL, STALLED = 1e-4, 0.8
DEPENDENT = 1e-9  # added to squared norms of 1: vectors that depend on others but for rounding come last
SPARE, SPARE_SHARE = 8, 4  # vectors beside those asked for: at least so many, and one for each four
BLOCK_COLUMNS = 40  # vectors that a thread filters at once
FIRST_CUT, FIRST_DEGREE = 0.5, 8
GROWTH = 10.0  # logarithm of how much one filter raises the eigenvalue 1 above the cut
MOST_DEGREE, MOST_FILTERS = 400, 60
DEFLATION = 3.0  # takes the eigenvalue 1 below all others, which are at least -1
FILTERS = ("root", "cut-off", "resolvent")


def filter_weights(eigenvalues: np.ndarray, name: str, n_components: int) -> np.ndarray:
    """Weight of each eigenvector.

    Parameters
    ----------
    eigenvalues : ndarray of shape (q,)
        Falling, in [0, 1].
    name : {"root", "cut-off", "resolvent"}
        The filter; see `mmcnb.GraphKernel`.
    n_components : int
        Number of coordinates asked for; a third of the way the resolvent weighs 1.

    Returns
    -------
    ndarray of shape (q,)
        Falling weights, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.neighbour_graph import filter_weights
    >>> filter_weights(np.array([0.9, 0.8, 0.5]), "resolvent", 6)
    array([2. , 1. , 0.4])
    """
    if name == "cut-off":
        return eigenvalues
    beyond = np.maximum(1 - eigenvalues, EIGENVALUE_TOLERANCE)  # less is rounding
    weights = beyond[min(max(1, n_components // 3), beyond.shape[0]) - 1] / beyond
    return weights if name == "resolvent" else np.sqrt(weights)


def connected_graph(
    nodes: np.ndarray, n_neighbors: int, nearest: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[Any, int]:
    """Symmetric weights of the neighbour graph of distinct nodes, in one component.

    Weights a and b of the two directions give a + b - ab.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        Distinct rows.
    n_neighbors : int
        Neighbours of each node, below p.
    nearest : pair of ndarray of shape (p, n_neighbors + 1) or None, default=None
        What `nearest_of_all` gave; None finds all neighbours.

    Returns
    -------
    graph : csr_array of shape (p, p)
        Weights in (0, 1].
    n_components : int
        Components before they were joined.
    """
    from scipy.sparse import csr_array

    p = nodes.shape[0]
    nearest = nearest or nearest_of_all(search_all(nodes), n_neighbors + 1)
    numbers, distances = without_own(*nearest)
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
    if count > 1:
        listed = np.flatnonzero(component != np.bincount(component).argmax())
        lists = search_all(nodes).nearest(nodes[listed], min(LISTED, nodes.shape[0]))
    while count > 1:
        ends, gaps = _shortest_edges(nodes, component, listed, lists)
        _, once = np.unique(np.sort(ends, axis=1), axis=0, return_index=True)  # two may choose the same edge
        (a, b), gaps = ends[once].T, gaps[once]
        edges = coo_array((_bridge_weights(gaps, scales[a], scales[b]), (a, b)), shape=graph.shape).tocsr()
        graph = (graph + edges + edges.T).tocsr()
        count, component = connected_components(graph, directed=False)
    return graph, n_components


def _shortest_edges(
    nodes: np.ndarray, component: np.ndarray, listed: np.ndarray, lists: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest edge of each component but the largest to any other: its two ends, and its length.

    The lists hold the nearest nodes of most nodes. A component has a search of its own where they do not
    reach beyond it, or not all its nodes have one; of equally near nodes the first counts.
    """
    (numbers, distances), of_row = lists, component[listed]
    outside = component[numbers] != of_row[:, None]
    each, place = np.arange(listed.size), outside.argmax(axis=1)
    reached = outside[each, place]
    gaps = np.where(reached, distances[each, place], np.inf)
    order = np.lexsort((listed, gaps, of_row))
    first = order[np.unique(of_row[order], return_index=True)[1]]
    sizes = np.bincount(component)
    beyond = np.full(sizes.size, np.inf)  # nodes that are not on a list are at least so far
    np.minimum.at(beyond, of_row[~reached], distances[~reached, -1])
    beyond[np.bincount(of_row, minlength=sizes.size) < sizes] = -np.inf
    known = {
        of_row[i]: (listed[i], numbers[i, place[i]], gaps[i]) for i in first if gaps[i] < beyond[of_row[i]]
    }
    edges = [
        known[one] if one in known else _shortest_edge(nodes, component == one)
        for one in np.argsort(-sizes, kind="stable")[1:]
    ]
    a, b, lengths = zip(*edges, strict=True)
    return np.array([a, b]).T, np.array(lengths)


def _shortest_edge(nodes: np.ndarray, is_inside: np.ndarray) -> tuple[int, int, float]:
    """The shortest edge between some nodes and all others: its two ends, and its length."""
    inside, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    numbers, distances = search_all(nodes[outside]).nearest(nodes[inside], 1)
    nearest = distances[:, 0].argmin()
    return inside[nearest], outside[numbers[nearest, 0]], distances[nearest, 0]


def _bridge_weights(gaps: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Weights of edges between components, by their lengths and the scales of their two ends."""
    with np.errstate(over="ignore"):
        squares = gaps**2 / np.maximum(one * other, np.finfo(float).tiny)
    return np.maximum(BRIDGE_WEIGHT / (1 + squares), np.finfo(float).eps)  # 0 would be no edge


def spectrum(graph: Any, count: int, engine: Engine | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvectors of the normalised graph S = D^-½ W D^-½, without the trivial one.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights W of one component.
    count : int
        How many eigenvectors; p - 1 where there are fewer.
    engine : Engine or None, default=None
        Its threads share the vectors.

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
    >>> from mmcnb.features.neighbour_graph import spectrum
    >>> spectrum(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 1)[1].round(6)
    array([[ 1.],
           [-1.]])
    """
    from scipy.linalg import eigh
    from scipy.sparse import diags_array

    p = graph.shape[0]
    roots = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scaling, trivial = diags_array(1 / roots), roots / np.linalg.norm(roots)
    S, count = (scaling @ graph @ scaling).tocsr(), min(count, p - 1)
    # Where groups hardly touch, others have the trivial eigenvalue but for rounding: the first may be any.
    if p <= DENSE_NODES or 2 * count >= p:
        deflated = S.toarray() - DEFLATION * np.outer(trivial, trivial)
        values, vectors = eigh(deflated, subset_by_index=[p - count, p - 1])
    else:
        values, vectors = _leading(S, trivial, count, engine)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order] / roots[:, None]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    return np.clip(values, 0.0, 1.0), vectors / np.sqrt((vectors**2).mean(axis=0))


def _leading(S: Any, trivial: np.ndarray, count: int, engine: Engine | None) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of a normalised graph and their vectors, without the trivial one.

    Chebyshev filters in float32 find the space of the vectors, a few more at once: so none of several equal
    eigenvalues is missed, which groups that hardly touch have. Values and vectors in this space are float64.

    References
    ----------
    Y. Zhou, Y. Saad, M. Tiago and J. Chelikowsky, Self-consistent-field calculations using Chebyshev-filtered
    subspace iteration, Alg. 4.1.
    """
    rough, each, high, degree = S.astype(np.float32), engine.each if engine else map, FIRST_CUT, FIRST_DEGREE
    matrix, known = (rough.data, rough.indices, rough.indptr), trivial.astype(np.float32)
    n_blocks, width = _blocks_of(count)
    generator = np.random.default_rng(0)
    blocks = [generator.standard_normal((S.shape[0], width), np.float32) for _ in range(n_blocks)]

    def filtered(block: np.ndarray) -> np.ndarray:
        block = kernels.chebyshev_filter(*matrix, block, -1.0, high, degree)
        block -= np.outer(known, known @ block)
        return block / np.sqrt(np.square(block).sum(axis=0, dtype=np.float64)).astype(np.float32)

    excess = np.inf
    for _ in range(MOST_FILTERS):
        blocks = list(each(filtered, blocks))
        values, residuals = _rotate(blocks, list(each(lambda one: _product(matrix, one), blocks)), each)
        cut, residuals, before = float(values[-1]), residuals[:count], excess
        excess = (residuals / np.clip(GAP_SHARE * (values[:count] - cut), *RESIDUALS)).max()
        stalled = residuals.max() <= ROUGH_RESIDUAL and excess > STALLED * before
        if excess <= 1 or stalled:
            return _of_space(S, np.concatenate(blocks, axis=1)[:, :count].astype(np.float64))
        high = float(np.clip(cut, -0.9, 1 - EIGENVALUE_TOLERANCE))
        degree = int(np.clip(GROWTH / np.arccosh((3 - high) / (1 + high)), 1, MOST_DEGREE))
    raise InputError(
        f"The graph of {S.shape[0]:,} rows falls into so many groups that its eigenvectors were not found, "
        'perhaps because many rows nearly repeat: raise n_neighbors of GraphKernel, or take kernel="rbf".'
    )


def _blocks_of(count: int) -> tuple[int, int]:
    """How many blocks of vectors are filtered for some eigenvectors, and how many vectors are in each.

    Two at least, for two threads; never by the number of threads, which would change bits.
    """
    vectors = count + max(SPARE, count // SPARE_SHARE)
    n_blocks = max(2, -(-vectors // BLOCK_COLUMNS))
    return n_blocks, 8 * -(-vectors // (8 * n_blocks))


def _product(matrix: tuple[np.ndarray, ...], block: np.ndarray) -> np.ndarray:
    """A matrix times a block of vectors: the filter of degree 1 on an interval around 0."""
    return np.asarray(kernels.chebyshev_filter(*matrix, block, -0.5, 0.5, 1))


def _rotate(blocks: list[np.ndarray], products: list[np.ndarray], each: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rotate vectors of norm 1 to the eigenvectors in their space (Rayleigh and Ritz), in place.

    Returns
    -------
    values, residuals : ndarray of shape (c,)
        Eigenvalues, falling, and the norms of S v - value v.
    """
    from scipy.linalg import eigh

    p, width = blocks[0].shape
    parts = [slice(start, start + 4 * SHARED_ROWS) for start in range(0, p, 4 * SHARED_ROWS)]

    def rows_of(arrays: list[np.ndarray], part: slice, dtype: Any) -> np.ndarray:
        return np.concatenate([array[part] for array in arrays], axis=1, dtype=dtype)

    def inner_products(part: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = rows_of(blocks, part, np.float64)
        return rows.T @ rows, rows.T @ rows_of(products, part, np.float64)

    grams, images = (np.sum(one, axis=0) for one in zip(*each(inner_products, parts), strict=True))
    grams[np.diag_indices_from(grams)] += DEPENDENT
    values, turned = eigh((images + images.T) / 2, grams)
    values, turned = values[::-1], turned[:, ::-1].astype(np.float32)

    def turn(part: slice) -> np.ndarray:
        rows = rows_of(blocks, part, np.float32) @ turned
        rest = rows_of(products, part, np.float32) @ turned - rows * values.astype(np.float32)
        for number, block in enumerate(blocks):
            block[part] = rows[:, number * width : (number + 1) * width]
        return np.asarray(np.square(rest).sum(axis=0, dtype=np.float64))

    return values, np.sqrt(np.sum(list(each(turn, parts)), axis=0))


def _of_space(S: Any, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a matrix in a space, rising, and their orthonormal vectors."""
    from scipy.linalg import eigh

    images = basis.T @ (S @ basis)
    values, turned = eigh((images + images.T) / 2, basis.T @ basis)
    return values, basis @ turned
