"""The neighbour graph of a sample: equal to a plain twin, in one component, with nodes that have weights."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph

from mmcnb.errors import InputError
from mmcnb.graph import neighbours
from mmcnb.graph import nodes as nodes_module
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import N_LISTED, N_NEIGHBORS, are_unit, node_graph, weighted
from mmcnb.graph.nodes import nearest_of_all, search_all, without_own
from mmcnb.graph.vote import log_distances, outlier_offsets, vote
from tests import reference_graph


def blobs(n, k=3, gap=6.0, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + gap * rng.standard_normal((k, d))[np.arange(n) % k]


def categories(n=300, seed=0):
    """Rows of a table of categories, as zeros and ones: hundreds of rows lie equally far from each other."""
    codes = np.random.default_rng(seed).integers(0, 3, (n, 8))
    return np.unique(np.concatenate([codes == value for value in range(3)], axis=1).astype(float), axis=0)


def rng_of(n, d=3):
    return np.random.default_rng(0).standard_normal((n, d))


def pairs(n=120):
    """Pairs of near rows, each far from all others."""
    return np.repeat(np.arange(n) ** 1.5, 2)[:, None] + np.tile([0.0, 0.01], n)[:, None]


def connected_graph(nodes, count, listed=N_LISTED):
    listed = min(max(count, listed), len(nodes) - 1)
    nearest = without_own(*nearest_of_all(search_all(nodes), listed + 1))
    return neighbours.connected_graph(nodes, count, nearest)


def n_components_of(nodes, count):
    """Components of the neighbour graph before they are joined."""
    A = kneighbors_graph(nodes, count)
    return connected_components(A, directed=False)[0]


def graph_of(X, weights=None, each=map, seed=0):
    return node_graph(X, weights, np.random.RandomState(seed), each)


def of_rows(graph):
    """Weights between the rows of the sample, each with those of its node."""
    return graph.edges()[0].toarray()[np.ix_(graph.node_of, graph.node_of)]


NODES = {
    "noise": (lambda: blobs(90, 1), 5),
    "three groups": (lambda: blobs(90), 5),
    "three groups far apart": (lambda: blobs(90, gap=1e4), 6),
    "pairs, one neighbour": (lambda: pairs(30), 1),
    "two nodes": (lambda: np.array([[0.0], [1.0]]), 1),
    "as many neighbours as there are": (lambda: blobs(12), 11),
}


# -- edges between distinct nodes --------------------------------------------------------------


@pytest.mark.parametrize("kind", NODES)
def test_the_graph_equals_the_plain_one(kind):
    make, count = NODES[kind]
    nodes = make()
    graph = connected_graph(nodes, count)
    expected, expected_components = reference_graph.connected_graph(nodes, count)
    assert n_components_of(nodes, count) == expected_components
    np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("nodes", "count", "least"),
    [
        (blobs(300, gap=1e4), 5, 3),
        (blobs(300, gap=1e8), 5, 3),
        (pairs(), 1, 120),
        (categories(), 3, 1),
        (np.arange(2.0)[:, None], 1, 1),
        (blobs(40, 1).astype(np.float32), 39, 1),
    ],
)
def test_a_graph_is_symmetric_and_connected_with_weights_up_to_one(nodes, count, least):
    n_components = n_components_of(nodes, count)
    assert n_components >= least
    if least == 3:
        assert n_components == 3
    graph = connected_graph(np.unique(nodes, axis=0), count)
    assert abs(graph - graph.T).max() == 0
    assert graph.diagonal().max() == 0
    assert graph.data.min() > 0
    assert graph.data.max() <= 1
    assert connected_components(graph, directed=False)[0] == 1


def test_gaps_between_components_are_searched_once_for_all_numbers_of_neighbours(monkeypatch):
    searched, search = [], neighbours._shortest_edges
    rows = np.random.default_rng(0).normal(size=(300, 2)) + 50 * (np.arange(300) % 4)[:, None]
    graph = node_graph(rows, None, np.random.RandomState(0))
    monkeypatch.setattr(neighbours, "_shortest_edges", lambda *given: searched.append(1) or search(*given))
    edges = [graph.edges(count)[0] for count in (10, 20, 25)]
    assert len(searched) == 2  # four components, and two pairs
    for count, found in zip((10, 20, 25), edges, strict=True):
        alone = neighbours.connected_graph(graph.search.nodes, count, (graph.numbers, graph.distances))
        np.testing.assert_array_equal(found.toarray(), alone.toarray())


def test_groups_that_lie_as_numbers_near_zero_are_joined():
    """The square of a gap over such scales overflows; its weight may not vanish."""
    nodes = np.r_[1e-200 * np.arange(1.0, 20), [0.9, 0.95, 1.0, 1.1, 1.3]][:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = connected_graph(nodes, 3)
    assert connected_components(graph, directed=False)[0] == 1


def test_components_are_joined_by_few_bridges():
    assert n_components_of(pairs(50), 1) == 50
    graph = connected_graph(pairs(50), 1)
    near = np.array([graph[2 * i, 2 * i + 1] for i in range(50)])
    assert (near == 1).all()
    assert graph.nnz // 2 < 50 + 50  # one bridge a component and round, none twice


@pytest.mark.parametrize("listed", [1, 2, 4, 64])
@pytest.mark.parametrize("kind", ["pairs", "pairs on a grid", "far apart"])
def test_components_are_joined_alike_however_many_nearest_nodes_are_listed(listed, kind):
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((40, 3)) * 10.0 ** rng.integers(0, 4, (40, 1)), 6, axis=0)
    grid = np.stack(np.meshgrid(np.arange(2.0), 10.0 * np.arange(11), 20.0 * np.arange(8)), axis=-1)
    kinds = {"pairs": pairs(), "pairs on a grid": grid.reshape(-1, 3)}
    nodes = kinds.get(kind, centres + 0.1 * rng.standard_normal((240, 3)))
    expected, n_components = reference_graph.connected_graph(nodes, 1)
    graph = connected_graph(nodes, 1, listed)
    assert n_components_of(nodes, 1) == n_components > 1
    np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-14)


def test_thousands_of_components_take_few_searches(monkeypatch):
    nodes = np.repeat(rng_of(1500), 2, axis=0) + 1e-4 * np.tile([[0.0], [1.0]], (1500, 1))
    calls = []
    whole = neighbours.search_all
    monkeypatch.setattr(neighbours, "search_all", lambda rows: calls.append(0) or whole(rows))
    assert n_components_of(nodes, 1) > 1000
    graph = connected_graph(nodes, 1)
    assert connected_components(graph, directed=False)[0] == 1
    assert len(calls) < 100


# -- nodes with weights ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [np.ones(60), np.full(60, 0.3), np.random.default_rng(0).lognormal(size=60)]
)
def test_the_volume_of_a_node_is_its_degree_times_its_weight(sizes):
    graph = connected_graph(blobs(60), 6)
    weights, loops = weighted(graph, sizes)
    degrees, W = graph.sum(axis=1), weights.toarray()
    np.testing.assert_allclose(W.sum(axis=1) + loops, sizes * degrees, rtol=1e-12)
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_array_equal(W, graph.toarray() * np.minimum.outer(sizes, sizes))
    assert loops.min() >= 0


@pytest.mark.parametrize("n_neighbors", [5, N_NEIGHBORS, N_LISTED, 100])
def test_edges_are_those_of_so_many_neighbours(n_neighbors):
    graph = graph_of(blobs(80))
    weights, loops = graph.edges(n_neighbors)
    expected, _ = reference_graph.connected_graph(graph.search.nodes, min(n_neighbors, N_LISTED))
    np.testing.assert_allclose(weights.toarray(), expected, rtol=1e-9, atol=1e-14)
    assert not loops.any()
    assert graph.edges(n_neighbors)[0] is weights


@pytest.mark.parametrize("p", [2, 3, 12, N_LISTED + 1, 60])
def test_neighbours_are_all_of_few_nodes_and_otherwise_the_nearest(p):
    graph = graph_of(blobs(p))
    D = np.linalg.norm(graph.search.nodes[:, None] - graph.search.nodes, axis=2)
    assert graph.n_nodes == p
    assert graph.numbers.shape == (p, min(N_LISTED, p - 1))
    assert (graph.numbers != np.arange(p)[:, None]).all()
    nearest = np.sort(D, axis=1)[:, 1 : graph.numbers.shape[1] + 1]
    np.testing.assert_allclose(graph.distances, nearest, rtol=1e-12)


def test_lengths_are_distances_at_the_places_of_the_edges(monkeypatch):
    monkeypatch.setattr(nodes_module, "WORK_NUMBERS", 50)  # so that there are many blocks of pairs
    graph = graph_of(blobs(70, gap=1e3))
    weights, lengths = graph.edges()[0], graph.lengths()
    np.testing.assert_array_equal(lengths.indices, weights.indices)
    np.testing.assert_array_equal(lengths.indptr, weights.indptr)
    D = np.linalg.norm(graph.search.nodes[:, None] - graph.search.nodes, axis=2)
    np.testing.assert_allclose(lengths.toarray(), np.where(weights.toarray() > 0, D, 0), rtol=1e-12)
    assert weights.data.max() <= 1  # they are as they were


def facts(graph):
    return graph.sizes, graph.distances, *(part for part in (graph.edges()[0].toarray(), graph.edges()[1]))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("d", [2, 40, 90])
def test_a_weight_is_a_repetition(form, d):
    """Of more than 50 columns, too: the axes are those of the distinct rows."""
    X, times = blobs(80, d=d), np.arange(80) % 4 + 1
    one = graph_of(form(X), 1.0 * times)
    other = graph_of(form(np.repeat(X, times, axis=0)))
    np.testing.assert_array_equal(other.node_of, np.repeat(one.node_of, times))
    np.testing.assert_array_equal(one.numbers, other.numbers)
    for a, b in zip(facts(one), facts(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert one.edges()[1].any()


def test_all_rows_three_times_are_the_same_graph():
    X = blobs(50)
    one, other, heavy = graph_of(X), graph_of(np.repeat(X, 3, axis=0)), graph_of(X, np.full(50, 3.0))
    for again in (other, heavy):
        np.testing.assert_array_equal(again.sizes, np.ones(50))
        for a, b in zip(facts(one), facts(again), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [90, 300])
def test_the_order_of_the_rows_does_not_matter(n):
    X = blobs(n)
    order = np.random.default_rng(0).permutation(n)
    straight, turned = of_rows(graph_of(X)), of_rows(graph_of(X[order]))
    np.testing.assert_allclose(turned, straight[np.ix_(order, order)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("jitter", [1e-15, 1e-9])
@pytest.mark.parametrize("times", [2, 100])
def test_rows_that_nearly_coincide_are_one_node(jitter, times):
    rng, heap = np.random.default_rng(1), np.arange(300) >= 300 - times
    X = blobs(300)
    X[heap] = X[-1]
    near = X + jitter * rng.standard_normal(X.shape)
    one, other = graph_of(X), graph_of(near)
    assert other.n_nodes == one.n_nodes == 301 - times
    np.testing.assert_array_equal(other.sizes[other.node_of], one.sizes[one.node_of])
    np.testing.assert_allclose(of_rows(other), of_rows(one), atol=1e-5)


def test_two_far_groups_keep_their_nodes():
    """The reach of rounding is that of the neighbours, not of the largest distance."""
    X = blobs(300, k=2, gap=1e8)
    assert graph_of(X).n_nodes == 300


def test_labels_of_a_node_are_those_of_its_first_row():
    X = np.repeat(blobs(20), 2, axis=0)
    graph = graph_of(X)
    labels = np.arange(40)
    np.testing.assert_array_equal(graph.of_nodes(labels)[graph.node_of], labels - labels % 2)


def test_nodes_in_cells_keep_the_number_of_their_rows():
    X = blobs(4500, d=3)
    graph = graph_of(X)
    assert graph.search.n_probes < len(graph.search.centres)
    np.testing.assert_array_equal(graph.search.nodes[graph.node_of], graph.axes(X))


@pytest.mark.parametrize("n", [300, 4500])
def test_threads_change_no_bit(n):
    X = blobs(n, d=60)
    alone = graph_of(X)
    with ThreadPoolExecutor(2) as pool:
        shared = graph_of(X, each=pool.map)
    for name in ("sizes", "node_of", "numbers", "distances"):
        assert getattr(alone, name).tobytes() == getattr(shared, name).tobytes()
    assert alone.search.nodes.tobytes() == shared.search.nodes.tobytes()
    assert alone.edges()[0].data.tobytes() == shared.edges()[0].data.tobytes()


# -- any rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [8, 90])
def test_dense_and_sparse_rows_have_the_same_graph(d):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((250, d)) < 0.3, 1 + rng.random((250, d)), 0) * np.linspace(3, 0.5, d)
    X[:5] = 0
    one, other = graph_of(X), graph_of(scipy.sparse.csr_array(X))
    assert np.bincount(one.node_of).max() == np.count_nonzero(~X.any(axis=1))
    W, other_W = of_rows(one), of_rows(other)
    if d <= 50:
        np.testing.assert_allclose(other_W, W, rtol=1e-9)
        np.testing.assert_allclose(other.distances, one.distances, rtol=1e-9)
    else:  # the axes of dense and of sparse rows differ by rounding
        assert np.abs(other_W - W).mean() < 0.05 * W.mean()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_directions_if_all_have_length_one(form, dtype):
    X = rng_of(50, 4)
    unit = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    assert are_unit(form(unit)) is True
    for i, factor, expected in ((0, 1.009, True), (20, 0.0, True), (0, 1.02, False), (49, 0.98, False)):
        other = unit.copy()
        other[i] *= factor
        assert are_unit(form(other)) is expected
    for other in (1e30 * unit, 0 * unit, np.sign(unit[:, :1])):  # one column has no directions
        assert are_unit(form(other)) is False


def test_directions_are_compared_on_all_columns_and_others_on_the_leading_axes():
    X = rng_of(200, 90)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for rows, is_unit, columns in ((X, False, 50), (unit, True, 91)):
        graph = graph_of(rows)
        assert (graph.is_unit, graph.search.nodes.shape[1]) == (is_unit, columns)
    few = node_graph(X, None, np.random.RandomState(0), n_axes=60)
    assert few.search.nodes.shape[1] == 60


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_rows_of_zeros_are_one_node_that_no_direction_is_near_to(form):
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((120, 40)))
    X[:60, 20:], X[60:, :20] = 0, 0
    X[::10] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    graph = graph_of(form(X))
    (zero,) = np.unique(graph.node_of[::10])
    assert not (np.delete(graph.numbers, zero, axis=0) == zero).any()
    np.testing.assert_allclose(graph.distances[zero], np.sqrt(2))
    assert graph.sizes[zero] == 1
    labels = np.zeros(graph.n_nodes, int)
    one = vote(
        graph,
        labels,
        1,
        merge_tree(*graph.edges()),
        outlier_offsets(log_distances(graph.distances, 0.0), labels),
    )
    assert one.block(form(X), np.float64).shape == (120, 1)


def test_sparse_directions_have_the_graph_of_dense_ones():
    X = np.where(rng_of(200, 90) > 1, rng_of(200, 90), 0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = np.repeat(X, np.arange(200) % 3 + 1, axis=0)
    one, other = graph_of(X), graph_of(scipy.sparse.csr_array(X))
    assert one.is_unit
    assert other.is_unit
    np.testing.assert_array_equal(other.sizes[other.node_of], one.sizes[one.node_of])
    np.testing.assert_allclose(other.distances[other.node_of], one.distances[one.node_of], atol=1e-7)
    np.testing.assert_allclose(of_rows(other), of_rows(one), atol=1e-6)
    places = np.ix_(one.node_of, one.node_of), np.ix_(other.node_of, other.node_of)
    lengths = [graph.lengths().toarray()[at] for graph, at in zip((one, other), places, strict=True)]
    np.testing.assert_allclose(lengths[1], lengths[0], atol=1e-7)


@pytest.mark.parametrize("X", [np.ones((9, 2)), scipy.sparse.csr_array((9, 2)), rng_of(1)])
def test_equal_rows_are_refused_in_one_sentence(X):
    with pytest.raises(InputError, match=r"^all rows are equal, .*; give rows that differ, .*\.$") as error:
        graph_of(X)
    assert str(error.value).count(".") == 1


@pytest.mark.parametrize("largest", [1e160, 1.7e308])
@pytest.mark.parametrize("columns", [1, 60])
def test_values_whose_squares_overflow_are_refused(largest, columns):
    X = largest * np.random.default_rng(0).uniform(-1, 1, (90, columns))
    with pytest.raises(InputError, match=r"overflow \(column \d+ has the largest values\); divide "):
        graph_of(X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("least", "expected"), [(1.0, [1, 2, 4]), (1e-30, [1, 2**30, 2**31]), (1e-310, None)]
)
def test_counts_of_nodes_are_multiples_of_the_lightest_that_an_integer_has(least, expected):
    rows, weights = np.array([[0.0], [1.0], [9.0]]), np.array([least, 2.0, 4.0])
    counts = node_graph(rows, weights, np.random.RandomState(0)).counts
    assert counts.max() <= 2**31
    assert expected is None or counts.tolist() == expected


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_the_nearest_mean_of_each_component_is_found(form):
    random = np.random.default_rng(0)
    component = np.repeat(np.arange(4), [3, 9, 1, 30])
    nodes = random.normal(size=(43, 3)) + 3 * component[:, None] ** 2
    means = np.array([nodes[component == one].mean(axis=0) for one in range(4)])
    apart = np.linalg.norm(means[:, None] - means, axis=2) + np.diag(np.full(4, np.inf))
    found = neighbours._nearest_means(form(nodes), component)
    assert found.tolist() == apart.argmin(axis=1).tolist() == [1, 0, 1, 2]
