"""Nodes that are sparse rows: their neighbours are those of the same dense rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from mmcnb.errors import InputError
from mmcnb.graph import sparse_nodes
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import node_graph
from mmcnb.graph.nodes import distinct_rows
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.graph.vote import Vote, log_distances, outlier_offsets, vote


def directions(n, d, density=0.1, seed=0):
    X = random_array((n, d), density=density, format="csr", random_state=seed)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return csr_array(X.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]))


def dense(X):
    """With the column of rows without values."""
    X = X.toarray()
    return np.c_[X, ~X.any(axis=1)]


@pytest.mark.parametrize("count", [1, 26, 300])
@pytest.mark.parametrize("work", [10, 1000, 10**6])
def test_neighbours_are_those_of_dense_rows_in_any_blocks(monkeypatch, count, work):
    monkeypatch.setattr(sparse_nodes, "WORK_NUMBERS", work)
    nodes, rows = directions(300, 40), directions(25, 40, seed=1)
    axes = AllColumns(40, True)
    numbers, distances = SparseSearch(axes(nodes)).nearest(axes(rows), count)
    D = np.linalg.norm(dense(rows)[:, None] - dense(nodes), axis=2)
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :count], atol=1e-7)
    np.testing.assert_allclose(np.take_along_axis(D, numbers, axis=1), distances, atol=1e-7)
    assert all(len(set(row)) == count for row in numbers.tolist())


@pytest.mark.parametrize("count", [1, 5, 60])
def test_of_equal_distances_the_first_node_comes_first(count):
    nodes, rows = csr_array(np.eye(200)), csr_array(np.eye(200)[[150, 3, 199]])
    numbers, _ = SparseSearch(nodes).nearest(rows, count)
    for own, found in zip((150, 3, 199), numbers.tolist(), strict=True):
        assert found == [own, *(i for i in range(200) if i != own)][:count]


def test_lengths_are_distances_of_pairs():
    X = directions(30, 20)
    one, other = np.repeat(np.arange(30), 30), np.tile(np.arange(30), 30)
    D = np.linalg.norm(dense(X)[:, None] - dense(X), axis=2)
    found = SparseSearch(AllColumns(20, True)(X)).lengths(one, other)
    np.testing.assert_allclose(found, D.ravel(), atol=1e-7)


def test_equal_rows_are_one_node_whatever_their_place_and_stored_zeros():
    X = directions(50, 30)
    row = np.random.default_rng(0).permutation(np.repeat(np.arange(50), 3))
    given = csr_array(X[row])
    given.data[:: given.data.size - 1] = 0  # two rows lose a value, and store a zero
    nodes, node_of = distinct_rows(given)
    np.testing.assert_array_equal(nodes.toarray()[node_of], given.toarray())
    assert nodes.shape[0] == np.unique(given.toarray(), axis=0).shape[0]
    assert (np.diff(np.unique(node_of, return_index=True)[1]) > 0).all()  # in the order of their first rows


def test_rows_without_values_are_one_node_far_from_directions():
    X = csr_array(np.eye(4)[[0, 1, 3, 3]] * np.array([[1.0], [1.0], [0.0], [0.0]]))
    graph = node_graph(X, None, np.random.RandomState(0))
    assert graph.node_of.tolist() == [0, 1, 2, 2]
    np.testing.assert_allclose(graph.distances, np.sqrt(2))


def test_rows_of_stored_zeros_are_rows_without_values():
    stored = csr_array((np.array([0.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 3))
    found = AllColumns(3, is_sparse=True)(stored).toarray()
    np.testing.assert_array_equal(found, [[0, 0, 0, 1], [2, 0, 0, 0]])
    np.testing.assert_array_equal(AllColumns(3, is_sparse=False)(stored), found)


def vote_of(graph, labels, k):
    return vote(
        graph,
        labels,
        k,
        merge_tree(*graph.edges()),
        outlier_offsets(log_distances(graph.distances, 0.0), labels),
    )


def arrays_of(n=40):
    graph = node_graph(directions(n, 30, 0.2), None, np.random.RandomState(0))
    return vote_of(graph, np.arange(graph.n_nodes) % 2, 2).arrays()


def test_a_vote_on_sparse_nodes_is_restored_and_takes_dense_rows():
    X = directions(40, 30, 0.2)
    graph = node_graph(X, None, np.random.RandomState(0))
    found = vote_of(graph, np.arange(graph.n_nodes) % 2, 2)
    again = Vote.restore(found.arrays())
    assert again.axes.n_features == 30
    for rows in (X, X.toarray()):
        shares = again.block(rows, np.float64)
        assert shares.tobytes() == found.block(X, np.float64).tobytes()
        np.testing.assert_allclose(shares.sum(axis=1), 1)


WRONG = {
    "an index beyond the columns": ("indices", lambda a: np.where(a == a.max(), 31, a)),
    "a negative index": ("indices", lambda a: np.where(a == a[0], -1, a)),
    "a value less": ("data", lambda a: a[:-1]),
    "starts that end beyond the values": ("indptr", lambda a: np.r_[a[:-1], a[-1] + 1]),
    "starts that fall": ("indptr", lambda a: np.r_[a[0], a[2], a[1], a[3:]]),
    "a node less": ("shape", lambda a: a - [1, 0]),
    "a negative number of columns": ("shape", lambda a: -a),
    "one size": ("shape", lambda a: a[:1]),
    "no numbers of the search": ("search", lambda a: a[:0]),
    "more neighbours than nodes": ("search", lambda a: np.array([a[0], 41, a[2]])),
    "a label less": ("labels", lambda a: a[:-1]),
}


def test_axes_of_other_columns_than_those_of_sparse_nodes_are_refused():
    arrays = arrays_of() | {"graph_mean": np.zeros(7)}
    with pytest.raises(InputError, match=r"^graph_shape does not fit the other arrays of the graph"):
        Vote.restore(arrays)


@pytest.mark.parametrize("case", WRONG)
def test_arrays_that_do_not_fit_are_refused(case):
    name, change = WRONG[case]
    arrays = arrays_of()
    arrays[f"graph_{name}"] = change(arrays[f"graph_{name}"])
    with pytest.raises(InputError, match="does not fit the other arrays of the graph"):
        Vote.restore(arrays)
