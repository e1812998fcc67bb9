"""The neighbour graph equals a plain twin, in one component, with weighted nodes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from mmcnb.errors import InputError
from mmcnb.graph.inverted_file import exact_index, nearest_of_all, without_own
from mmcnb.graph.neighbours import (
    N_LISTED,
    are_unit,
    connected_graph,
    node_graph,
    weighted,
)
from tests import reference_graph

FORMS = [np.asarray, scipy.sparse.csr_array]


def rows_of(n, d=2, k=3, gap=6.0, seed=0):
    """Rows of k groups in turn."""
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((n, d))
        + gap * rng.standard_normal((k, d))[np.arange(n) % k]
    )


def directions(n=200, d=90):
    """Rows of length 1 with many zeros, some of them equal."""
    X = np.where(rows_of(n, d, gap=0) > 1, rows_of(n, d, gap=0), 0)
    return np.repeat(
        X / np.linalg.norm(X, axis=1, keepdims=True), np.arange(n) % 3 + 1, axis=0
    )


def categories(n, seed=0):
    """Return one-hot rows of categories: many lie equally far from each other."""
    codes = np.random.default_rng(seed).integers(0, 3, (n, 5))
    return np.unique(
        np.concatenate([codes == value for value in range(3)], axis=1).astype(float),
        axis=0,
    )


def nearest_others(nodes, count):
    return without_own(
        *nearest_of_all(exact_index(nodes), min(count, len(nodes) - 1) + 1)
    )


def graph_of(X, weights=None, each=map, seed=0):
    return node_graph(X, weights, np.random.RandomState(seed), each)


def of_rows(graph, part=None):
    """Weights between the rows of the sample, each with those of its node."""
    matrix = graph.edges()[0] if part is None else part
    return matrix.toarray()[np.ix_(graph.node_of, graph.node_of)]


def distances_of(nodes):
    return np.linalg.norm(nodes[:, None] - nodes, axis=2)


def groups_at_all_distances(count, size):
    """Return groups whose distances from each other differ by factors of thousands."""
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(0, 4, (count, 1))
    centres = np.repeat(rng.standard_normal((count, 3)) * scales, size, axis=0)
    return centres + 0.1 * rng.standard_normal((count * size, 3))


# -- edges between distinct nodes ------------------------------------------------------

GRID = np.stack(
    np.meshgrid(np.arange(2.0), 10.0 * np.arange(7), 20.0 * np.arange(5)), axis=-1
)
NODES = {
    "noise": (rows_of(60, k=1), 5),
    "three groups far apart": (rows_of(90, gap=1e4), 6),
    "pairs": (
        np.repeat(np.arange(30) ** 1.5, 2)[:, None] + np.tile([0.0, 0.01], 30)[:, None],
        1,
    ),
    "pairs on a grid": (GRID.reshape(-1, 3), 1),
    "groups at all distances": (groups_at_all_distances(40, 6), 1),
    "categories": (categories(90), 3),
    "two nodes": (np.array([[0.0], [1.0]]), 1),
    "as many neighbours as there are": (rows_of(12), 11),
}


@pytest.mark.parametrize("kind", NODES)
def test_the_graph_equals_the_plain_one_however_many_nearest_nodes_are_listed(kind):
    nodes, count = NODES[kind]
    expected, _ = reference_graph.connected_graph(nodes, count)
    for listed in (count, 2 * count, 4 * count, 64):
        graph = connected_graph(nodes, count, nearest_others(nodes, listed))
        np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-14)
        assert abs(graph - graph.T).max() == 0
        assert 0 < graph.data.min() <= graph.data.max() <= 1
        assert connected_components(graph, directed=False)[0] == 1


def test_edges_are_those_of_so_many_neighbours():
    graph = graph_of(rows_of(80, k=4, gap=50.0))
    for count in (20, 5, 10, N_LISTED, 100):
        weights, loops = graph.edges(count)
        expected, _ = reference_graph.connected_graph(
            graph.search.nodes, min(count, N_LISTED)
        )
        np.testing.assert_allclose(weights.toarray(), expected, rtol=1e-9, atol=1e-14)
        assert not loops.any()
        assert graph.edges(count)[0] is weights


def test_groups_that_lie_as_numbers_near_zero_are_joined():
    """The square of a gap over such scales overflows; its weight may not vanish."""
    nodes = np.r_[1e-200 * np.arange(1.0, 20), [0.9, 0.95, 1.0, 1.1, 1.3]][:, None]
    graph = connected_graph(nodes, 3, nearest_others(nodes, N_LISTED))
    assert connected_components(graph, directed=False)[0] == 1


@pytest.mark.parametrize("form", FORMS)
def test_each_of_many_components_is_joined_to_the_one_with_the_nearest_mean(form):
    """Groups on a line lie ever farther apart: each is joined to the one before."""
    n_groups = 40
    size = 110
    group = np.repeat(np.arange(n_groups), size)
    nodes = 10.0 * group[:, None] ** 1.5 + np.random.default_rng(0).random(
        (n_groups * size, 1)
    )
    graph = connected_graph(form(nodes), 8, nearest_others(nodes, 8)).tocoo()
    ends = np.stack([graph.row, graph.col], axis=1)[group[graph.row] < group[graph.col]]
    pairs = sorted(map(tuple, group[ends].tolist()))
    assert pairs == [(one, one + 1) for one in range(n_groups - 1)]
    for a, b in ends:  # at their nearest nodes
        assert nodes[a] == nodes[group == group[a]].max()
        assert nodes[b] == nodes[group == group[b]].min()


# -- nodes with weights ----------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [np.full(60, 0.3), np.random.default_rng(0).lognormal(size=60)]
)
def test_the_volume_of_a_node_is_its_degree_times_its_weight(sizes):
    graph = graph_of(rows_of(60)).edges(6)[0]
    weights, loops = weighted(graph, sizes)
    W = weights.toarray()
    np.testing.assert_allclose(
        W.sum(axis=1) + loops, sizes * graph.sum(axis=1), rtol=1e-12
    )
    np.testing.assert_array_equal(W, graph.toarray() * np.minimum.outer(sizes, sizes))
    assert loops.min() >= 0


@pytest.mark.parametrize("p", [2, N_LISTED + 1, 60])
def test_neighbours_are_all_of_few_nodes_and_otherwise_the_nearest(p):
    graph = graph_of(rows_of(p))
    assert graph.n_nodes == p
    assert graph.numbers.shape == (p, min(N_LISTED, p - 1))
    assert (graph.numbers != np.arange(p)[:, None]).all()
    nearest = np.sort(distances_of(graph.search.nodes), axis=1)[:, 1 : N_LISTED + 1]
    np.testing.assert_allclose(graph.distances, nearest, rtol=1e-12)


@pytest.mark.parametrize("times", [np.arange(80) % 4 + 1, np.full(80, 3)])
@pytest.mark.parametrize(
    ("form", "d"), [(np.asarray, 2), (np.asarray, 90), (scipy.sparse.csr_array, 90)]
)
def test_a_weight_is_a_repetition(form, d, times):
    """Of more than 50 columns, too: the axes are those of the distinct rows."""
    X = rows_of(80, d=d)
    one = graph_of(form(X), 0.5 * times)
    other = graph_of(form(np.repeat(X, times, axis=0)))
    np.testing.assert_array_equal(other.node_of, np.repeat(one.node_of, times))
    np.testing.assert_array_equal(one.numbers, other.numbers)
    for name in ("sizes", "distances"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12
        )
    (weights, loops), (again, other_loops) = one.edges(), other.edges()
    np.testing.assert_allclose(
        again.toarray(), weights.toarray(), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(other_loops, loops, rtol=1e-9, atol=1e-12)
    assert loops.any() == (np.ptp(times) > 0)


@pytest.mark.parametrize(("jitter", "times"), [(1e-15, 2), (1e-9, 100)])
def test_rows_that_nearly_coincide_are_one_node(jitter, times):
    X = rows_of(300)
    X[300 - times :] = X[-1]
    one = graph_of(X)
    other = graph_of(X + jitter * np.random.default_rng(1).standard_normal(X.shape))
    assert other.n_nodes == one.n_nodes == 301 - times
    np.testing.assert_array_equal(other.sizes[other.node_of], one.sizes[one.node_of])
    np.testing.assert_allclose(of_rows(other), of_rows(one), atol=1e-5)


def test_two_far_groups_keep_their_nodes():
    """The reach of rounding is that of the neighbours, not of the largest distance."""
    assert graph_of(rows_of(300, k=2, gap=1e8)).n_nodes == 300


@pytest.mark.parametrize(("n", "d"), [(300, 60), (4500, 3)])
def test_threads_change_no_bit_and_nodes_keep_the_number_of_their_rows(n, d):
    X = rows_of(n, d=d)
    alone = graph_of(X)
    assert (alone.search.n_probes < len(alone.search.centres)) == (n == 4500)
    np.testing.assert_array_equal(alone.search.nodes[alone.node_of], alone.axes(X))
    with ThreadPoolExecutor(2) as pool:
        shared = graph_of(X, each=pool.map)
    for name in ("sizes", "node_of", "numbers", "distances"):
        assert getattr(alone, name).tobytes() == getattr(shared, name).tobytes()
    assert alone.search.nodes.tobytes() == shared.search.nodes.tobytes()
    assert alone.edges()[0].data.tobytes() == shared.edges()[0].data.tobytes()


# -- any rows --------------------------------------------------------------------------


@pytest.mark.parametrize("is_unit", [True, False])
def test_dense_and_sparse_rows_have_the_same_graph(is_unit):
    X = directions() if is_unit else np.maximum(rows_of(250, 8, gap=0.0) - 0.5, 0)
    one = graph_of(X)
    other = graph_of(scipy.sparse.csr_array(X))
    assert one.is_unit == other.is_unit == is_unit
    np.testing.assert_array_equal(other.sizes[other.node_of], one.sizes[one.node_of])
    np.testing.assert_allclose(
        other.distances[other.node_of], one.distances[one.node_of], atol=1e-7
    )
    np.testing.assert_allclose(of_rows(other), of_rows(one), atol=1e-6)
    lengths = [of_rows(graph, graph.lengths()) for graph in (one, other)]
    np.testing.assert_allclose(lengths[1], lengths[0], atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_directions_if_all_have_length_one(form, dtype):
    X = rows_of(50, 4, gap=0.0)
    unit = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    assert are_unit(form(unit)) is True
    for i, factor, expected in (
        (0, 1.009, True),
        (20, 0.0, True),
        (0, 1.02, False),
        (49, 0.98, False),
    ):
        other = unit.copy()
        other[i] *= factor
        assert are_unit(form(other)) is expected
    # one column has no directions
    for other in (
        1e30 * unit,
        0 * unit,
        np.sign(unit[:, :1]),
    ):
        assert are_unit(form(other)) is False


def test_directions_are_compared_on_all_columns_and_others_on_the_leading_axes():
    for rows, is_unit, columns in (
        (rows_of(200, 90), False, 50),
        (directions(), True, 91),
    ):
        graph = graph_of(rows)
        assert (graph.is_unit, graph.search.nodes.shape[1]) == (is_unit, columns)
    few = node_graph(rows_of(200, 90), None, np.random.RandomState(0), n_axes=60)
    assert few.search.nodes.shape[1] == 60


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_zeros_are_one_node_that_no_direction_is_near_to(form):
    X = np.abs(np.random.default_rng(0).standard_normal((120, 40)))
    X[:60, 20:] = 0
    X[60:, :20] = 0
    X[::10] = 0
    graph = graph_of(
        form(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300))
    )
    (zero,) = np.unique(graph.node_of[::10])
    assert not (np.delete(graph.numbers, zero, axis=0) == zero).any()
    np.testing.assert_allclose(graph.distances[zero], np.sqrt(2))
    assert graph.sizes[zero] == 1


@pytest.mark.parametrize(
    "X", [np.ones((9, 2)), scipy.sparse.csr_array((9, 2)), rows_of(1)]
)
def test_equal_rows_are_refused_in_one_sentence(X):
    with pytest.raises(
        InputError, match=r"^all rows are equal, .*; pass rows that differ\.$"
    ) as error:
        graph_of(X)
    assert str(error.value).count(".") == 1


@pytest.mark.parametrize(("largest", "columns"), [(1e160, 60), (1.7e308, 1)])
def test_values_whose_squares_overflow_are_refused(largest, columns):
    X = largest * np.random.default_rng(0).uniform(-1, 1, (90, columns))
    with pytest.raises(
        InputError, match=r"overflow \(column \d+ has the largest values\); divide "
    ):
        graph_of(X)


@pytest.mark.parametrize(
    ("least", "expected"),
    [(1.0, [1, 2, 4]), (1e-30, [1, 2**30, 2**31]), (1e-310, None)],
)
def test_counts_of_nodes_are_multiples_of_the_lightest_that_an_integer_has(
    least, expected
):
    counts = graph_of(
        np.array([[0.0], [1.0], [9.0]]), np.array([least, 2.0, 4.0])
    ).counts
    assert counts.max() <= 2**31
    assert expected is None or counts.tolist() == expected
