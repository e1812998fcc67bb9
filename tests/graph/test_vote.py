"""The vote of the nearest nodes: the shares of clusters, and the arrays of a model."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from mmcnb.errors import InputError
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import N_NEIGHBORS, node_graph
from mmcnb.graph.vote import OWN, is_own, log_distances, vote
from mmcnb.graph.vote_file import restore_vote, vote_arrays
from tests import reference_graph


def rows_of(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 3 * rng.integers(0, 3, (n, 1))


def graph_of(X, weights=None):
    return node_graph(X, weights, np.random.RandomState(0))


def vote_of(graph, labels, k):
    offsets = np.random.default_rng(0).normal(size=graph.n_nodes)
    return vote(graph, labels, k, merge_tree(*graph.edges()), offsets)


def voting(X, k=3):
    """A graph, random labels of its nodes, and their vote."""
    graph = graph_of(X)
    labels = np.random.default_rng(0).integers(0, k, graph.n_nodes)
    labels[:k] = np.arange(k)
    return graph, labels, vote_of(graph, labels, k)


def nearest_by_loops(graph, X, count):
    numbers, distances = reference_graph.nearest_nodes(
        graph.axes(X),
        graph.search.nodes,
        [0, graph.n_nodes],
        np.zeros((len(X), 1), int),
        count,
    )
    return numbers, reference_graph.calibrated_weights(distances)


# -- shares ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "dtype"), [(3, "float32"), (60, "float64")])
def test_shares_are_those_of_a_plain_count_and_sum_to_one(n, dtype):
    X = rows_of(n)
    new = rows_of(30, seed=1)
    graph, labels, found = voting(X)
    numbers, weights = nearest_by_loops(graph, new, min(N_NEIGHBORS, n))
    shares = found.block(new, dtype)
    assert (shares.dtype, shares.shape, found.n_features) == (dtype, (30, 3), 3)
    expected = reference_graph.node_averages(numbers, weights, np.eye(3)[labels])
    np.testing.assert_allclose(shares, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_row_of_a_heavy_node_counts_lighter_nodes_less_and_its_own_more(form):
    X = rows_of(60)
    sizes = np.random.default_rng(0).lognormal(0, 2, 60)
    graph = graph_of(X, sizes)
    labels = np.random.default_rng(1).integers(0, 3, 60)
    shares = vote_of(graph, labels, 3).block(form(np.r_[X, X + 0.05]), np.float64)
    numbers, weights = nearest_by_loops(graph, X, N_NEIGHBORS)
    expected = np.zeros((60, 3))
    for i, near in enumerate(numbers):
        own = 1.0
        others = 0.0
        for j, weight in zip(near[1:], weights[i, 1:], strict=True):
            kept = weight * min(graph.sizes[j] / graph.sizes[near[0]], 1.0)
            expected[i, labels[j]] += kept
            own += weight - kept
            others += kept
        expected[i, labels[near[0]]] += max(own, 1 + others)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares[:60], expected, rtol=1e-9)
    plain = vote_of(graph_of(X), labels, 3).block(X + 0.05, np.float64)
    # these are rows of no node
    np.testing.assert_allclose(shares[60:], plain, rtol=1e-6)


def test_all_rows_of_a_node_have_its_label():
    X = np.r_[rows_of(200), rows_of(200)]
    for rows in (
        X,
        np.c_[X, np.random.default_rng(0).standard_normal((400, 60))],
        scipy.sparse.csr_array(X),
    ):
        graph, labels, found = voting(rows, k=30)
        np.testing.assert_array_equal(
            found.block(rows, np.float64).argmax(axis=1), labels[graph.node_of]
        )


def test_a_row_is_of_a_node_that_is_far_nearer_than_the_second_one():
    graph = graph_of(np.array([[0.0], [1.0], [9.0]]), np.array([9.0, 1.0, 1.0]))
    found = vote_of(graph, np.arange(3), 3)
    at, just, beyond = found.block(np.array([[0.0], [OWN / 2], [OWN * 2]]), np.float64)
    assert at[0] == pytest.approx(just[0], abs=1e-3)
    assert just[0] > beyond[0] + 0.1


def test_dense_and_sparse_rows_have_the_same_shares():
    X = np.where(rows_of(90, 70) > 3, rows_of(90, 70), 0)
    _, _, found = voting(X)
    sparse = found.block(scipy.sparse.csr_array(X), np.float64)
    np.testing.assert_allclose(sparse, found.block(X, np.float64), rtol=1e-6, atol=1e-7)


# -- rows that need no vote ------------------------------------------------------------


def groups_of(n, d, seed, spread):
    """Rows of six clusters, and their clusters."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 6, n)
    return spread * np.random.default_rng(0).standard_normal((6, d))[
        y
    ] + random.standard_normal((n, d)), y


@pytest.mark.parametrize(("dtype", "spread"), [(np.float32, 9.0), (np.float64, 2.5)])
def test_rows_among_deep_nodes_of_one_cluster_belong_to_it_and_others_vote(
    dtype, spread
):
    X, y = groups_of(4300, 4, 1, spread)
    graph = graph_of(X.astype(dtype))
    found = vote_of(graph, graph.of_nodes(y), 6)
    search = found.search
    rows = groups_of(150, 4, 2, spread)[0].astype(dtype)
    assert not search.is_exact
    is_deep = (found.labels[graph.numbers[:, :10]] == found.labels[:, None]).all(axis=1)
    np.testing.assert_array_equal(found.is_deep, is_deep)
    points = found.axes(rows)
    cells = search.nodes, search.starts, search.centres
    expected = reference_graph.settled(points, *cells, found.labels, found.is_deep)
    np.testing.assert_array_equal(found.clusters_without_vote(points), expected)
    shares, all_vote = (
        one.block(rows, np.float64) for one in (found, replace(found, is_deep=None))
    )
    assert (shares[expected >= 0] == np.eye(6)[expected[expected >= 0]]).all()
    np.testing.assert_array_equal(shares[expected < 0], all_vote[expected < 0])
    assert np.mean(shares.argmax(axis=1) != all_vote.argmax(axis=1)) < 0.01
    assert (np.mean(expected >= 0) > 0.99) == (spread == 9.0)
    nearest = search.nearest(points, found.n_neighbors)
    np.testing.assert_array_equal(found.shares(points, np.float64, nearest), shares)


def test_all_rows_of_a_node_have_its_label_without_a_vote_too():
    X, y = groups_of(4300, 3, 1, 3.0)
    y[:40] = np.arange(40) + 6  # clusters of one row, wherever it lies
    graph = graph_of(X)
    found = vote_of(graph, graph.of_nodes(y), 46)
    np.testing.assert_array_equal(found.block(X, np.float64).argmax(axis=1), y)


# -- pieces and outliers ---------------------------------------------------------------


def test_rows_have_the_piece_with_the_largest_share_and_a_score_by_their_tenth_node():
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(120, 2)), random.choice([1, 1, 12], 120), axis=0)
    _, _, made = voting(X)
    rows = np.vstack(
        [random.normal(size=(200, 2)), made.search.nodes[:40] + made.axes.mean]
    )
    numbers, distances = made.search.nearest(made.axes(rows), made.n_neighbors + 1)
    of_node = made.tree.piece_of_node
    shares = replace(made, labels=of_node, n_features=made.tree.n_pieces).block(
        rows, np.float64
    )
    pieces = made.pieces(numbers[:, :-1], distances[:, :-1])
    for row, piece in enumerate(pieces):
        of_near = of_node[numbers[row, :-1]]
        assert piece == of_near[int(np.argmax(shares[row, of_near].round(12)))]
    beyond = random.random(240)
    own = is_own(distances)
    assert own[200:].all()
    expected = log_distances(distances, beyond, own) - made.offsets[numbers[:, 0]]
    are_many = own & (made.sizes[numbers[:, 0]] >= 10 * made.sizes.min())
    expected[are_many] = np.minimum(expected[are_many], 0.0)  # no outlier
    found = made.outlier_scores(numbers, distances, beyond)
    np.testing.assert_array_equal(found, expected)
    assert (found[own] == 0).any()


# -- arrays of a model -----------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(80, 60), (4200, 3)])
def test_a_vote_is_restored_from_its_arrays(n, d):
    X = rows_of(n, d)
    arrays = vote_arrays(voting(X)[2])
    assert ("graph_axes" in arrays) == (d > 50)
    again = restore_vote(arrays)
    assert (again.search.n_probes < len(again.search.centres)) == (n == 4200)
    assert (
        again.block(X, np.float64).tobytes()
        == voting(X)[2].block(X, np.float64).tobytes()
    )
    for name, array in vote_arrays(again).items():
        np.testing.assert_array_equal(array, arrays[name])
    if n == 4200:
        arrays["graph_starts"] = changed(arrays["graph_starts"], 1, 0)
        with pytest.raises(InputError, match=r"^graph_starts does not fit"):
            restore_vote(arrays)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("axes", lambda a: a[:-1], "axes"),
        ("nodes", lambda a: a[:-1], "starts"),
        ("nodes", lambda a: a.astype(np.float32), "centres"),
        ("centres", lambda a: a[:, :-1], "centres"),
        ("starts", lambda a: a + 1, "starts"),
        ("search", lambda a: changed(a, 0, 0), "search"),  # no cells
        ("search", lambda a: changed(a, 1, 81), "search"),  # more neighbours than nodes
        ("sizes", lambda a: changed(a, 3, 0.0), "sizes"),
        ("labels", lambda a: a[:-1], "labels"),
        ("labels", lambda a: changed(a, 5, -1), "labels"),
        ("labels", lambda a: changed(a, 5, 3), "labels"),
        ("offsets", lambda a: changed(a, 5, np.inf), "offsets"),
        ("is_deep", lambda a: changed(a, 5, 2), "is_deep"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, change, named):
    arrays = vote_arrays(voting(rows_of(80, 60))[2])
    arrays[f"graph_{name}"] = change(arrays[f"graph_{name}"])
    with pytest.raises(
        InputError, match=f"^graph_{named} does not fit the other arrays"
    ):
        restore_vote(arrays)
