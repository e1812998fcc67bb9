"""Nodes that are sparse rows: their neighbours are those of the same dense rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from mmcnb.errors import InputError
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import node_graph
from mmcnb.graph.nodes import distinct_rows
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch
from mmcnb.graph.vote import vote
from mmcnb.graph.vote_file import restore_vote, vote_arrays


def directions(n, d, density=0.1, seed=0):
    X = random_array((n, d), density=density, format="csr", random_state=seed)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return csr_array(X.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]))


def dense(X):
    """With the column of rows without values."""
    X = X.toarray()
    return np.c_[X, ~X.any(axis=1)]


@pytest.mark.parametrize(("n_rows", "count"), [(25, 300), (700, 26)])
def test_neighbours_and_lengths_are_those_of_dense_rows(n_rows, count):
    """The second number of rows takes more than one block."""
    nodes = directions(300, 40)
    rows = directions(n_rows, 40, seed=1)
    axes = AllColumns(40, True)
    search = SparseSearch(axes(nodes))
    numbers, distances = search.nearest(axes(rows), count)
    D = np.linalg.norm(dense(rows)[:, None] - dense(nodes), axis=2)
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :count], atol=1e-7)
    np.testing.assert_allclose(
        np.take_along_axis(D, numbers, axis=1), distances, atol=1e-7
    )
    assert all(len(set(row)) == count for row in numbers.tolist())
    one = np.repeat(np.arange(300), 300)
    other = np.tile(np.arange(300), 300)
    apart = np.linalg.norm(dense(nodes)[:, None] - dense(nodes), axis=2)
    np.testing.assert_allclose(search.lengths(one, other), apart.ravel(), atol=1e-7)


def test_of_equal_distances_the_first_node_comes_first():
    search = SparseSearch(csr_array(np.eye(200)))
    for count in (1, 60):
        numbers, _ = search.nearest(search.nodes[[150, 3, 199]], count)
        for own, found in zip((150, 3, 199), numbers.tolist(), strict=True):
            assert found == [own, *(i for i in range(200) if i != own)][:count]


def test_equal_rows_are_one_node_whatever_their_stored_zeros():
    X = csr_array(
        directions(50, 30)[
            np.random.default_rng(0).permutation(np.repeat(np.arange(50), 3))
        ]
    )
    X.data[:: X.data.size - 1] = 0  # two rows lose a value, and store a zero
    nodes, node_of = distinct_rows(X)
    np.testing.assert_array_equal(nodes.toarray()[node_of], X.toarray())
    assert nodes.shape[0] == np.unique(X.toarray(), axis=0).shape[0]


def test_rows_of_stored_zeros_are_rows_without_values_in_a_column_of_their_own():
    stored = csr_array(
        (np.array([0.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 3)
    )
    for is_sparse in (True, False):
        found = AllColumns(3, is_sparse)(stored)
        found = found.toarray() if is_sparse else found
        np.testing.assert_array_equal(found, [[0, 0, 0, 1], [2, 0, 0, 0]])


def vote_on(X):
    graph = node_graph(X, None, np.random.RandomState(0))
    labels = np.arange(graph.n_nodes) % 2
    return vote(graph, labels, 2, merge_tree(*graph.edges()), np.zeros(graph.n_nodes))


def test_a_vote_on_sparse_nodes_is_restored_and_takes_dense_rows():
    X = directions(40, 30, 0.2)
    found = vote_on(X)
    again = restore_vote(vote_arrays(found))
    assert again.axes.n_features == 30
    for rows in (X, X.toarray()):
        assert (
            again.block(rows, np.float64).tobytes()
            == found.block(X, np.float64).tobytes()
        )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda a: np.where(a == a.max(), 31, a)),
        ("indices", lambda a: np.where(a == a[0], -1, a)),
        ("data", lambda a: a[:-1]),
        ("indptr", lambda a: np.r_[a[:-1], a[-1] + 1]),
        ("indptr", lambda a: np.r_[a[0], a[2], a[1], a[3:]]),
        ("shape", lambda a: a - [1, 0]),
        ("shape", lambda a: -a),
        ("shape", lambda a: a[:1]),
        ("mean", lambda a: np.zeros(7)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, change):
    arrays = vote_arrays(vote_on(directions(40, 30, 0.2)))
    arrays[f"graph_{name}"] = change(arrays.get(f"graph_{name}"))
    with pytest.raises(InputError, match="does not fit the other arrays of the graph"):
        restore_vote(arrays)
