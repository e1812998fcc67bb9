"""Leading axes, distinct rows, and the search for the nearest nodes: exact, or nearly so and told."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from mmcnb.engine.run import ThreadEngine
from mmcnb.graph import nodes as nodes_module
from mmcnb.graph.nodes import (
    CHECKED_ROWS,
    LEADING_AXES,
    LEAST_RECALL,
    SEARCHED_NODES,
    SHARED_ROWS,
    Axes,
    NodeSearch,
    distinct_rows,
    leading_axes,
    nearest_of_all,
    search_all,
    search_in_cells,
    without_own,
)
from tests import reference_graph


def rows_of(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def lumps(n, d, seed=0):
    """Groups of many sizes and densities."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((40, d))[rng.geometric(0.1, n) % 40] * 4 + rng.gamma(
        1.0, 0.3, (n, 1)
    ) * rng.standard_normal((n, d))


def recall(found, exact):
    """Share of the nearest nodes that a search found."""
    return float((found[:, :, None] == exact[:, None, :]).any(axis=2).mean())


def true_neighbours(nodes, rows, count):
    return NearestNeighbors(n_neighbors=count, algorithm="brute").fit(nodes).kneighbors(rows)


# -- axes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, LEADING_AXES])
def test_few_columns_are_centred_and_no_more(d):
    X = rows_of(80, d) + 5
    axes = leading_axes(X, np.random.RandomState(0))
    assert axes.n_axes == d
    np.testing.assert_allclose(axes(X), X - X.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(axes(scipy.sparse.csr_array(X)), axes(X), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_columns_have_the_scores_of_principal_components(dtype):
    X = ((rows_of(300, 90) * np.linspace(3, 0.1, 90)) + 2).astype(dtype)
    axes = leading_axes(X, np.random.RandomState(0))
    scores = PCA(LEADING_AXES, svd_solver="full").fit_transform(X.astype(np.float64))
    assert axes(X).dtype == dtype
    assert axes.n_axes == LEADING_AXES
    # A few of the last axes may turn among themselves.
    np.testing.assert_allclose(np.abs(axes(X))[:, :20], np.abs(scores)[:, :20], rtol=0, atol=0.05)
    np.testing.assert_allclose(axes(X).mean(axis=0, dtype=np.float64), 0, atol=1e-6)
    np.testing.assert_allclose(axes(X), (X - axes.mean) @ axes.axes, rtol=0, atol=1e-5)


def test_columns_are_as_precise_beside_any_others():
    X = rows_of(200, 60).astype(np.float32) * np.logspace(0, -15, 60, dtype=np.float32)
    X[:, 7] = 3  # a column of one value has no scale
    mean = X.mean(axis=0, dtype=np.float64)
    centred = X.astype(np.float64) - mean.astype(np.float32)
    expected = centred.T @ centred
    deviations = np.sqrt(np.diag(expected))
    deviations[7] = 1
    unit = np.outer(deviations, deviations)
    np.testing.assert_allclose(nodes_module._scatter(X, mean) / unit, expected / unit, rtol=0, atol=1e-5)


@pytest.mark.parametrize("d", [90, 1100])
@pytest.mark.parametrize("sparse", [False, True])
def test_axes_hold_nearly_all_the_variance_that_any_could(d, sparse):
    """Above a thousand columns they are found by iteration."""
    X = rows_of(400, 70) @ (np.linspace(4, 0.5, 70)[:, None] * rows_of(70, d, 1)) + 3
    axes = leading_axes(scipy.sparse.csr_array(X) if sparse else X, np.random.RandomState(0))
    np.testing.assert_allclose(axes.axes.T @ axes.axes, np.eye(LEADING_AXES), atol=1e-10)
    most = PCA(LEADING_AXES, svd_solver="full").fit(X).explained_variance_.sum() * 399
    assert 0.999 * most < (axes(X) ** 2).sum() < 1.000001 * most


def test_dense_and_sparse_rows_have_the_same_scores():
    X = np.where(rows_of(300, 90) > 0.8, rows_of(300, 90) + 1, 0) * np.linspace(3, 0.3, 90)
    sparse = scipy.sparse.csr_array(X)
    one, other = (leading_axes(rows, np.random.RandomState(0)) for rows in (X, sparse))
    np.testing.assert_allclose(one(X), one(sparse), atol=1e-12)
    gram, other_gram = one(X)[:, :20] @ one(X)[:, :20].T, other(sparse)[:, :20] @ other(sparse)[:, :20].T
    assert np.linalg.norm(gram - other_gram) < 0.02 * np.linalg.norm(gram)


def test_many_columns_of_few_rows_are_kept():
    X = scipy.sparse.random_array((LEADING_AXES, 400), density=0.05, format="csr", random_state=0)
    assert leading_axes(X, np.random.RandomState(0)).n_axes == 400


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 60, 700])
@pytest.mark.parametrize("sparse", [False, True])
def test_equal_rows_are_one_node_whatever_their_place(dtype, d, sparse):
    rng = np.random.default_rng(0)
    given = rng.standard_normal((100, d)).astype(dtype)
    row = rng.permutation(np.repeat(np.arange(100), 7))
    X = scipy.sparse.csr_array(given[row]) if sparse else given[row]
    nodes, node_of = distinct_rows(X)
    assert nodes.shape[0] == 100
    assert len(set(zip(row.tolist(), node_of.tolist(), strict=True))) == 100


def test_a_zero_and_its_negative_are_one_node():
    X = np.where(rows_of(200, 60) > 0, 1.0, 0.0)
    X = np.r_[X, np.where(X == 0, -0.0, X)]
    nodes, node_of = distinct_rows(X)
    assert nodes.shape[0] == 200
    np.testing.assert_array_equal(node_of[:200], node_of[200:])


# -- the search --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 4, 50])
def test_the_search_in_all_nodes_is_that_of_scikit_learn(dtype, d):
    nodes, rows = rows_of(500, d, 0, dtype), rows_of(90, d, 1, dtype)
    numbers, distances = search_all(nodes).nearest(rows, 12)
    expected, order = true_neighbours(nodes.astype(float), rows.astype(float), 12)
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_allclose(distances, expected, atol=1e-7)  # scikit-learn's are rounded


@pytest.mark.parametrize("gap", [1e2, 1e4, 1e6])
def test_float32_groups_far_apart_keep_their_neighbours(gap):
    X = rows_of(300, 5) + gap * np.repeat(np.eye(3, 5), 100, axis=0)
    X = X.astype(np.float32)
    numbers, _ = search_all(X).nearest(X[::5], 8)
    expected, _ = reference_graph.nearest_nodes(X[::5], X, [0, 300], np.zeros((60, 1), int), 8)
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("kind", [rows_of, lumps])
def test_cells_find_nearly_all_neighbours_of_new_rows(kind):
    nodes, rows = kind(SEARCHED_NODES + 900, 8, 0), kind(1500, 8, 0)[::-1] + 0.05 * rows_of(1500, 8, 2)
    search, order = search_in_cells(nodes, np.random.RandomState(0))
    assert search.n_probes < len(search.centres)
    np.testing.assert_array_equal(search.nodes, nodes[order])
    np.testing.assert_array_equal(np.sort(order), np.arange(len(nodes)))
    exact = search_all(search.nodes).nearest(rows, 10)
    found = search.nearest(rows, 10)
    assert recall(found[0], exact[0]) >= 0.99
    assert (found[1] >= exact[1] - 1e-12).all()
    assert (np.diff(found[1], axis=1) >= 0).all()


def test_cells_are_the_nodes_nearest_to_their_means():
    nodes = lumps(SEARCHED_NODES + 1, 3)
    search, _ = search_in_cells(nodes, np.random.RandomState(0))
    sizes = np.diff(search.starts)
    assert (search.starts[0], search.starts[-1]) == (0, len(nodes))
    assert sizes.min() > 0
    cell = np.repeat(np.arange(len(sizes)), sizes)
    for number in (0, len(sizes) // 2, len(sizes) - 1):
        np.testing.assert_allclose(search.centres[number], search.nodes[cell == number].mean(axis=0))


def test_as_many_probes_as_cells_search_everywhere():
    search, _ = search_in_cells(rows_of(SEARCHED_NODES + 1, 3), np.random.RandomState(0))
    everywhere = NodeSearch(search.nodes, search.starts, search.centres, len(search.centres))
    rows = rows_of(50, 3, 1)
    exact = search_all(search.nodes).nearest(rows, 10)
    for found, expected in zip(everywhere.nearest(rows, 10), exact, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("count", [1, 5, 30, 60])
def test_every_row_finds_all_its_nodes_even_where_cells_are_tiny(count):
    nodes = np.sort(rows_of(60, 1), axis=0)
    starts = np.arange(0, 61, 2)
    centres = nodes.reshape(30, 2).mean(axis=1)[:, None]
    rows = np.r_[rows_of(40, 1, 1), [[1e6], [-1e6]]]
    for n_probes in (1, 3, 29):
        numbers, distances = NodeSearch(nodes, starts, centres, n_probes).nearest(rows, count)
        assert ((numbers >= 0) & (numbers < 60)).all()
        assert all(len(set(found)) == count for found in numbers.tolist())
        assert np.isfinite(distances).all()
        np.testing.assert_allclose(distances, np.abs(nodes[numbers, 0] - rows), rtol=1e-12)


def test_a_row_that_is_not_finite_is_searched_in_cells_without_harm():
    search, _ = search_in_cells(rows_of(SEARCHED_NODES + 1, 3), np.random.RandomState(0))
    rows = rows_of(40, 3, 1)
    expected = search.nearest(rows, 10)[0]
    for value in (np.nan, np.inf, 1e300):
        rows[5, 0] = value
        numbers, distances = search.nearest(rows, 10)
        np.testing.assert_array_equal(np.delete(numbers, 5, axis=0), np.delete(expected, 5, axis=0))
        assert not np.isfinite(distances[5]).any()


def test_few_nodes_are_all_searched_and_draw_as_much(monkeypatch):
    """What is drawn afterwards does not depend on the number of nodes."""
    states = np.random.RandomState(3), np.random.RandomState(3)
    search, order = search_in_cells(rows_of(50, 2), states[0])
    monkeypatch.setattr(nodes_module, "SEARCHED_NODES", 40)
    search_in_cells(rows_of(50, 2), states[1])
    assert search.n_probes == len(search.centres)
    np.testing.assert_array_equal(order, np.arange(50))
    assert states[0].randint(10**9) == states[1].randint(10**9)


def test_the_same_seed_gives_the_same_cells():
    nodes = lumps(SEARCHED_NODES + 1, 4)
    one, other = (search_in_cells(nodes, np.random.RandomState(5)) for _ in range(2))
    np.testing.assert_array_equal(one[1], other[1])
    assert one[0].centres.tobytes() == other[0].centres.tobytes()
    assert one[0].n_probes == other[0].n_probes


def test_rows_have_the_axes_of_their_own_precision():
    axes = Axes(np.array([1.0, 2.0]))
    assert axes(rows_of(3, 2, dtype=np.float32)).dtype == np.float32
    search = search_all(rows_of(9, 2))
    numbers, _ = search.nearest(rows_of(9, 2).astype(np.float32), 1)
    np.testing.assert_array_equal(numbers[:, 0], np.arange(9))


@pytest.mark.parametrize("n_neighbors", [10, 40])
def test_rows_look_into_as_few_cells_as_find_enough_neighbours(n_neighbors):
    nodes = lumps(SEARCHED_NODES + 900, 8)
    search, _ = search_in_cells(nodes, np.random.RandomState(0), n_neighbors)
    checked = search.nodes[:: -(-len(nodes) // CHECKED_ROWS)]
    exact, _ = search_all(search.nodes).nearest(checked, n_neighbors)
    assert recall(search.nearest(checked, n_neighbors)[0], exact) >= LEAST_RECALL
    fewer = replace(search, n_probes=search.n_probes - 1)
    assert recall(fewer.nearest(checked, n_neighbors)[0], exact) < LEAST_RECALL


def test_the_cells_find_as_many_neighbours_as_are_asked_for():
    nodes = rows_of(SEARCHED_NODES + 1, 10)
    few, _ = search_in_cells(nodes, np.random.RandomState(0))
    many, _ = search_in_cells(nodes, np.random.RandomState(0), 100)
    assert many.n_probes >= few.n_probes
    exact, _ = search_all(many.nodes).nearest(many.nodes[::7], 100)
    assert recall(many.nearest(many.nodes[::7], 100)[0], exact) >= 0.99


@pytest.mark.parametrize("columns", [3, 40])
def test_threads_share_the_nodes_and_change_no_bit(columns):
    nodes = rows_of(2 * SHARED_ROWS + 100, columns)
    alone = search_all(nodes).nearest(nodes, 8)
    assert (alone[0][:, 0] == np.arange(nodes.shape[0])).all()
    with ThreadEngine(2) as engine:
        shared = without_own(*nearest_of_all(search_all(nodes), 8, engine.each))
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one[:, 1:], other)
