"""The vote of the nearest nodes: a share for each cluster, and arrays that a model keeps."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from mmcnb.errors import InputError
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import N_NEIGHBORS, node_graph
from mmcnb.graph.vote import OWN, Vote, is_own, log_distances, outlier_offsets, vote
from tests import reference_graph


def rows_of(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 3 * rng.integers(0, 3, (n, 1))


def graph_of(X, seed=0):
    return node_graph(X, None, np.random.RandomState(seed))


def vote_of(graph, labels, k):
    return vote(
        graph,
        labels,
        k,
        merge_tree(*graph.edges()),
        outlier_offsets(log_distances(graph.distances, 0.0), labels),
    )


def voting(X, k=3, seed=0):
    graph = graph_of(X, seed)
    labels = np.random.default_rng(seed).integers(0, k, graph.n_nodes)
    labels[:k] = np.arange(k)
    return graph, labels, vote_of(graph, labels, k)


@pytest.mark.parametrize("n", [3, 9, 60])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shares_are_those_of_a_plain_count_and_sum_to_one(n, dtype):
    X, new = rows_of(n), rows_of(30, seed=1)
    graph, labels, found = voting(X)
    count = min(N_NEIGHBORS, n)
    numbers, distances = reference_graph.nearest_nodes(
        graph.axes(new), graph.search.nodes, [0, n], np.zeros((30, 1), int), count
    )
    weights = reference_graph.calibrated_weights(distances)
    expected = reference_graph.node_averages(numbers, weights, np.eye(3)[labels])
    shares = found.block(new, dtype)
    assert (shares.dtype, shares.shape, found.n_features) == (dtype, (30, 3), 3)
    np.testing.assert_allclose(shares, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_row_of_a_heavy_node_counts_lighter_nodes_less_and_its_own_more(form):
    X, sizes = rows_of(60), np.random.default_rng(0).lognormal(0, 2, 60)
    graph = node_graph(X, sizes, np.random.RandomState(0))
    labels = np.random.default_rng(1).integers(0, 3, 60)
    shares = vote_of(graph, labels, 3).block(form(np.r_[X, X + 0.05]), np.float64)
    numbers, distances = reference_graph.nearest_nodes(
        graph.axes(X), graph.search.nodes, [0, 60], np.zeros((60, 1), int), N_NEIGHBORS
    )
    weights, expected = reference_graph.calibrated_weights(distances), np.zeros((60, 3))
    for i, near in enumerate(numbers):
        own, others = 1.0, 0.0
        for j, weight in zip(near[1:], weights[i, 1:], strict=True):
            kept = min(graph.sizes[j] / graph.sizes[near[0]], 1.0)
            expected[i, labels[j]] += weight * kept
            own, others = own + weight * (1 - kept), others + weight * kept
        expected[i, labels[near[0]]] += max(own, 1 + others)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares[:60], expected, rtol=1e-9)
    plain = vote_of(graph_of(X), labels, 3).block(X + 0.05, np.float64)
    np.testing.assert_allclose(shares[60:], plain, rtol=1e-6)  # these are rows of no node
    assert np.abs(shares[:60] - vote_of(graph_of(X), labels, 3).block(X, np.float64)).max() > 0.1


def test_all_rows_of_a_node_have_its_label():
    X = np.r_[rows_of(200), rows_of(200)]
    for rows in (X, np.c_[X, np.random.default_rng(0).standard_normal((400, 60))], scipy.sparse.csr_array(X)):
        graph, labels, found = voting(rows, k=30)
        np.testing.assert_array_equal(found.block(rows, np.float64).argmax(axis=1), labels[graph.node_of])


def test_a_row_is_of_a_node_that_is_far_nearer_than_the_second_one():
    graph = node_graph(np.array([[0.0], [1.0], [9.0]]), np.array([9.0, 1.0, 1.0]), np.random.RandomState(0))
    found = vote_of(graph, np.arange(3), 3)
    at, just, beyond = found.block(np.array([[0.0], [OWN / 2], [OWN * 2]]), np.float64)
    assert at[0] == pytest.approx(just[0], abs=1e-3)
    assert just[0] > beyond[0] + 0.1
    alone = node_graph(np.array([[0.0], [1.0]]), None, np.random.RandomState(0))
    one = replace(vote_of(alone, np.arange(2), 2), n_neighbors=1)
    assert one.block(np.array([[0.0], [1.0]]), np.float64).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_node_votes_on_its_own_rows():
    X = np.r_[rows_of(40), rows_of(40)]
    graph, labels, found = voting(X)
    own = labels[graph.node_of]
    shares = found.block(X, np.float64)[np.arange(80), own]
    assert (shares >= 1 / N_NEIGHBORS).all()  # its weight is the largest
    alone = vote_of(graph, np.arange(40), 40).block(X, np.float64)
    np.testing.assert_array_equal(alone.argmax(axis=1), graph.node_of)


def groups_of(n, d, seed, spread):
    """Rows of six clusters, and their clusters."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 6, n)
    return spread * np.random.default_rng(0).standard_normal((6, d))[y] + random.standard_normal((n, d)), y


@pytest.mark.parametrize("spread", [1.0, 2.5, 9.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_among_deep_nodes_of_one_cluster_belong_to_it_and_others_vote(dtype, spread):
    X, y = groups_of(5000, 4, 1, spread)
    graph = graph_of(X.astype(dtype))
    found = vote_of(graph, graph.of_nodes(y), 6)
    search, rows = found.search, groups_of(400, 4, 2, spread)[0].astype(dtype)
    assert not search.is_exact
    deep = [
        (found.labels[near] == own).all()
        for own, near in zip(found.labels, graph.numbers[:, :10], strict=True)
    ]
    np.testing.assert_array_equal(found.is_deep, deep)
    points = found.axes(rows)
    cells = search.nodes, search.starts, search.centres
    expected = reference_graph.settled(points, *cells, found.labels, found.is_deep)
    np.testing.assert_array_equal(found.settled(points), expected)
    shares, all_vote = (one.block(rows, np.float64) for one in (found, replace(found, is_deep=None)))
    assert (shares[expected >= 0].max(axis=1) == 1).all()
    np.testing.assert_array_equal(shares.argmax(axis=1)[expected >= 0], expected[expected >= 0])
    np.testing.assert_array_equal(shares[expected < 0], all_vote[expected < 0])
    assert np.mean(shares.argmax(axis=1) != all_vote.argmax(axis=1)) < 0.01
    assert (np.mean(expected >= 0) > 0.99) == (spread == 9.0)
    nearest = search.nearest(points, found.n_neighbors)
    np.testing.assert_array_equal(found.shares(points, np.float64, nearest), shares)


def test_all_rows_of_a_node_have_its_label_without_a_vote_too():
    X, y = groups_of(5000, 3, 1, 3.0)
    y[:40] = np.arange(40) + 6  # clusters of one row, wherever it lies
    graph = graph_of(X)
    found = vote_of(graph, graph.of_nodes(y), 46)
    assert not found.search.is_exact
    np.testing.assert_array_equal(found.block(X, np.float64).argmax(axis=1), y)


def test_few_nodes_and_sparse_ones_vote_on_all_rows():
    for rows in (rows_of(200), scipy.sparse.csr_array(np.eye(60, 70))):
        _, _, found = voting(rows)
        assert (found.settled(found.axes(rows)) == -1).all()


def test_a_cluster_far_from_a_row_has_no_share():
    X = np.r_[rows_of(30), rows_of(30) + 1e6]
    graph = graph_of(X)
    far = graph.of_nodes(np.arange(60) // 30)
    shares = vote_of(graph, far, 2).block(X, np.float64)
    np.testing.assert_allclose(shares, np.eye(2)[np.arange(60) // 30], rtol=1e-12)


def test_dense_and_sparse_rows_have_the_same_shares():
    X = np.where(rows_of(90, 70) > 3, rows_of(90, 70), 0)
    _, _, found = voting(X)
    sparse = found.block(scipy.sparse.csr_array(X), np.float64)
    np.testing.assert_allclose(sparse, found.block(X, np.float64), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("n", "d"), [(60, 3), (80, 60), (4500, 3)])
def test_a_vote_is_restored_from_its_arrays(n, d):
    X = rows_of(n, d)
    _, _, found = voting(X)
    arrays = found.arrays()
    assert ("graph_axes" in arrays) == (d > 50)
    again = Vote.restore(arrays)
    assert (again.search.n_probes < len(again.search.centres)) == (n >= 4500)
    assert again.block(X, np.float64).tobytes() == found.block(X, np.float64).tobytes()
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


WRONG = {
    "a column less in the axes": ("axes", lambda a: a[:-1]),
    "an axis less": ("axes", lambda a: a[:, :-1], "centres"),
    "a mean of fewer columns": ("mean", lambda a: a[:-1], "axes"),
    "a node less": ("nodes", lambda a: a[:-1], "starts"),
    "a column less in the nodes": ("nodes", lambda a: a[:, :-1], "centres"),
    "nodes of another type": ("nodes", lambda a: a.astype(np.float32), "centres"),
    "a column less in the centres": ("centres", lambda a: a[:, :-1]),
    "a centre more": ("centres", lambda a: np.r_[a, a], "starts"),
    "starts of another type": ("starts", lambda a: a.astype(np.int32)),
    "starts that do not begin at 0": ("starts", lambda a: a + 1),
    "starts that end beyond the nodes": ("starts", lambda a: changed(a, -1, a[-1] + 1)),
    "a start less": ("starts", lambda a: a[:-1]),
    "no cells": ("search", lambda a: changed(a, 0, 0)),
    "no neighbours": ("search", lambda a: changed(a, 1, 0)),
    "more neighbours than nodes": ("search", lambda a: changed(a, 1, 81)),
    "no clusters": ("search", lambda a: changed(a, 2, 0)),
    "two numbers of the search": ("search", lambda a: a[:2]),
    "no numbers of the search": ("search", lambda a: a[:0]),
    "a size less": ("sizes", lambda a: a[:-1]),
    "a node that weighs nothing": ("sizes", lambda a: changed(a, 3, 0.0)),
    "a label less": ("labels", lambda a: a[:-1]),
    "a node less that is deep or not": ("is_deep", lambda a: a[:-1]),
    "a node that is deep twice": ("is_deep", lambda a: changed(a, 5, 2)),
    "a node that is less than not deep": ("is_deep", lambda a: changed(a, 5, -1)),
    "a negative label": ("labels", lambda a: changed(a, 5, -1)),
    "a label beyond the clusters": ("labels", lambda a: changed(a, 5, 3)),
}


@pytest.mark.parametrize("case", WRONG)
def test_arrays_that_do_not_fit_are_refused(case):
    name, change, *told = WRONG[case]
    arrays = voting(rows_of(80, 60))[2].arrays()
    arrays[f"graph_{name}"] = change(arrays[f"graph_{name}"])
    with pytest.raises(InputError, match=f"^graph_{(told or [name])[0]} does not fit the other arrays"):
        Vote.restore(arrays)


def test_starts_that_do_not_rise_are_refused():
    arrays = voting(rows_of(4500, 3))[2].arrays()
    arrays["graph_starts"] = changed(arrays["graph_starts"], 1, 0)
    with pytest.raises(InputError, match=r"^graph_starts does not fit"):
        Vote.restore(arrays)


def test_no_nodes_are_refused():
    arrays = voting(rows_of(80))[2].arrays()
    for name in ("nodes", "centres", "labels"):
        arrays[f"graph_{name}"] = arrays[f"graph_{name}"][:0]
    arrays["graph_starts"] = np.zeros(1, np.int64)
    with pytest.raises(InputError, match="does not fit the other arrays"):
        Vote.restore(arrays)


def test_rows_have_the_piece_with_the_largest_share_and_the_outlier_score_of_its_formula():
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(120, 2)), random.choice([1, 1, 12], 120), axis=0)
    graph = node_graph(X, None, np.random.RandomState(0))
    labels = np.arange(graph.n_nodes) % 3
    made = vote(graph, labels, 3, merge_tree(*graph.edges()), random.normal(size=graph.n_nodes))
    rows = np.vstack([random.normal(size=(200, 2)), made.search.nodes[:40] + made.axes.mean])
    numbers, distances = made.search.nearest(made.axes(rows), made.n_neighbors + 1)
    beyond = random.random(len(rows))
    found = made.outlier_scores(numbers, distances, beyond)
    near, lengths = numbers[:, :-1], distances[:, :-1]
    pieces, weights = made.pieces(near, lengths), made._weights(near, lengths)
    logs, own = log_distances(distances, beyond, is_own(distances)), is_own(distances)
    assert own.sum() >= 40
    for row in range(len(rows)):
        of_near = made.tree.piece_of_node[near[row]]
        shares = [weights[row, of_near == piece].sum() for piece in of_near]
        assert pieces[row] == of_near[int(np.argmax(shares))]
        expected = logs[row] - made.offsets[numbers[row, 0]]
        if own[row] and made.sizes[numbers[row, 0]] >= made.n_neighbors * made.sizes.min():
            expected = min(expected, 0.0)
        assert found[row] == expected
    assert (found[own] == 0).any()
