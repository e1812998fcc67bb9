"""A given graph: its neighbours, lengths, components, and errors."""

import re

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph

from mmcnb.errors import InputError
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.neighbours import node_graph
from mmcnb.graph.precomputed import Precomputed, given_graph
from mmcnb.graph.vote import vote
from mmcnb.graph.vote_file import restore_vote, vote_arrays
from tests import reference_graph


def rows(n=200, gap=0.0, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) + gap * np.arange(n)[
        :, None
    ] // (n // 2)


def distances(X, count=12, **given):
    return csr_array(kneighbors_graph(X, count, mode="distance", **given))


@pytest.mark.parametrize(("least", "most"), [(9, 30), (28, 40)])
def test_neighbours_are_the_nearest_of_those_given(least, most):
    """Rows may have more neighbours than others, ties, and a distance to themselves."""
    random = np.random.default_rng(1)
    counts = random.integers(least, most, 60)
    entries = [
        (i, j) for i in range(60) for j in random.choice(60, counts[i], replace=False)
    ]
    row, column = np.array(entries).T
    D = csr_array(
        (random.integers(1, 4, row.size).astype(float), (row, column)), shape=(60, 60)
    )
    graph = given_graph(D)
    fewest = min(
        len(set(D.indices[D.indptr[i] : D.indptr[i + 1]]) - {i}) for i in range(60)
    )
    numbers, apart = reference_graph.given_neighbours(D, min(25, fewest))
    np.testing.assert_array_equal(graph.numbers, numbers)
    np.testing.assert_array_equal(graph.distances, apart)


def test_the_graph_of_all_neighbours_of_rows_is_that_of_the_rows():
    X = rows(300)
    weights = np.random.default_rng(0).uniform(1, 3, 300)
    given = given_graph(distances(X, 30), weights)
    own = node_graph(X, weights, np.random.RandomState(0))
    order = own.node_of
    np.testing.assert_allclose(given.sizes, own.sizes[order], rtol=1e-12)
    np.testing.assert_allclose(given.distances, own.distances[order], rtol=1e-6)
    for part, expected in (
        (given.edges()[0], own.edges()[0]),
        (given.lengths(), own.lengths()),
    ):
        np.testing.assert_allclose(
            part.toarray(), expected.toarray()[order][:, order], atol=1e-5
        )


@pytest.mark.parametrize("n_parts", [2, 40])
def test_parts_without_edges_between_them_become_one(n_parts):
    part = np.arange(400) % n_parts
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[:, 0] += 1000.0 * part
    D = distances(X, 9)
    assert connected_components(D)[0] == n_parts
    graph = given_graph(D)
    W, _ = graph.edges()
    assert connected_components(W)[0] == 1
    across = part[:, None] != part
    bridges = W.toarray()[across]
    assert np.count_nonzero(bridges) == 2 * (n_parts - 1)
    assert bridges.max() <= np.finfo(float).eps
    assert graph.lengths().toarray()[across].max() == 2 * D.max()


def test_equal_rows_are_at_the_least_distance():
    X = np.repeat(rows(100), 2, axis=0)
    graph = given_graph(distances(X))
    assert (graph.distances[:, 0] == 1e-12).all()
    assert np.isfinite(graph.edges()[0].data).all()
    assert np.isfinite(graph.lengths().data).all()


def test_a_vote_is_of_the_distances_to_nodes_and_survives_its_file():
    X = rows(200, gap=40.0)
    graph = given_graph(distances(X))
    labels = (np.arange(200) >= 100).astype(int)
    made = vote(graph, labels, 2, merge_tree(*graph.edges()), np.zeros(200))
    again = restore_vote(vote_arrays(made))
    new = csr_array(np.linalg.norm(rows(50, seed=1)[:, None] - X, axis=2))
    for one in (made, again):
        assert not one.block(new, np.float64).argmax(axis=1).any()
        assert (
            one.block(new[:, np.arange(199, -1, -1)], np.float64).argmax(axis=1).all()
        )
    np.testing.assert_array_equal(
        made.block(new, np.float64), again.block(new, np.float64)
    )
    assert again.search.distances is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda D: D.toarray(),
            "X of shape (50, 50) is dense, but metric='precomputed' expects",
        ),
        (lambda D: D[:40], "X of shape (40, 50) is not a sparse"),
        (
            lambda D: csr_array((50, 50)),
            "row 0 has 0 distances to other rows, but 7 are needed",
        ),
        (
            lambda D: (
                D - coo_array(([9.0], ([4], [D[[4]].tocoo().col[0]])), shape=(50, 50))
            ),
            "row 4, column",
        ),
    ],
)
def test_what_is_no_graph_is_refused(change, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        given_graph(change(distances(rows(50))))
    assert "kneighbors_graph" in str(caught.value)


@pytest.mark.parametrize("factor", [0.0, 1e-120, 1e-8])
def test_distances_that_are_nearly_equal_are_refused_with_a_remedy_that_works(
    factor,
):
    D = distances(rows(50))
    with pytest.raises(InputError, match="the largest distance is"):
        given_graph(D * factor)
    assert given_graph(D * 1e-5).n_nodes == 50


def test_more_than_a_million_rows_are_refused():
    with pytest.raises(
        InputError,
        match="X has 1,000,001 rows, but a precomputed graph has at most 1,000,000; give",
    ):
        given_graph(csr_array((1_000_001, 1_000_001)))


def test_new_rows_need_distances_to_enough_nodes():
    for row in ([1.0, 0, 0, 0], [3.0, 1, -1, 2]):
        with pytest.raises(
            InputError, match="rows need 3 distances to rows of the fit, none of them"
        ):
            Precomputed(4).nearest(csr_array([row]), 3)
    assert Precomputed(4).nearest(csr_array((0, 4)), 3)[0].shape == (0, 3)


def test_a_damaged_number_of_nodes_is_refused():
    graph = given_graph(distances(rows(50)))
    tree = merge_tree(*graph.edges())
    arrays = vote_arrays(vote(graph, np.arange(50) % 2, 2, tree, np.zeros(50)))
    for shape in ([49], [50, 50], [-1]):
        with pytest.raises(
            InputError, match="does not fit the other arrays of the graph"
        ):
            restore_vote(arrays | {"graph_shape": np.array(shape)})
