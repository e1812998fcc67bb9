"""Leading axes, distinct rows, and the inverted-file index."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA

from mmcnb.graph.axes import LEADING_AXES, leading_axes
from mmcnb.graph.inverted_file import (
    CHECKED_ROWS,
    LEAST_RECALL,
    SEARCHED_NODES,
    InvertedFileIndex,
    build_index,
    exact_index,
)
from mmcnb.graph.nodes import distinct_rows


def rows_of(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def lumps(n, d, seed=0):
    """Groups of many sizes and densities."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((40, d))
    return centres[rng.geometric(0.1, n) % 40] + rng.gamma(
        1.0, 0.3, (n, 1)
    ) * rng.standard_normal((n, d))


def recall(found, exact):
    """Share of the nearest nodes that a search found."""
    return float((found[:, :, None] == exact[:, None, :]).any(axis=2).mean())


# -- axes ------------------------------------------------------------------------------


def test_few_columns_or_rows_are_centred_and_no_more():
    X = rows_of(80, LEADING_AXES) + 5
    axes = leading_axes(X, np.random.RandomState(0))
    assert axes.n_axes == LEADING_AXES
    np.testing.assert_allclose(axes(X), X - X.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(axes(scipy.sparse.csr_array(X)), axes(X), atol=1e-14)
    few = scipy.sparse.random_array(
        (LEADING_AXES, 400), density=0.05, format="csr", random_state=0
    )
    assert leading_axes(few, np.random.RandomState(0)).n_axes == 400


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_columns_have_the_scores_of_principal_components(dtype):
    X = ((rows_of(300, 90) * np.linspace(3, 0.1, 90)) + 2).astype(dtype)
    axes = leading_axes(X, np.random.RandomState(0))
    scores = PCA(LEADING_AXES, svd_solver="full").fit_transform(X.astype(np.float64))
    assert axes(X).dtype == dtype
    assert axes.n_axes == LEADING_AXES
    # A few of the last axes may turn among themselves.
    np.testing.assert_allclose(
        np.abs(axes(X))[:, :20], np.abs(scores)[:, :20], rtol=0, atol=0.05
    )
    np.testing.assert_allclose(axes(X).mean(axis=0, dtype=np.float64), 0, atol=1e-6)
    np.testing.assert_allclose(axes(X), (X - axes.mean) @ axes.axes, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("d", "form"),
    [(90, np.asarray), (1010, np.asarray), (1010, scipy.sparse.csr_array)],
)
def test_axes_hold_nearly_all_the_variance_that_any_could(d, form):
    """Above a thousand columns they are found by iteration."""
    X = rows_of(120, 70) @ (np.linspace(4, 0.5, 70)[:, None] * rows_of(70, d, 1)) + 3
    axes = leading_axes(form(X), np.random.RandomState(0))
    np.testing.assert_allclose(
        axes.axes.T @ axes.axes, np.eye(LEADING_AXES), atol=1e-10
    )
    most = PCA(LEADING_AXES, svd_solver="full").fit(X).explained_variance_.sum() * 119
    assert 0.999 * most < (axes(X) ** 2).sum() < 1.000001 * most


@pytest.mark.parametrize(
    ("form", "dtype", "d"),
    [
        (np.asarray, "float32", 3),
        (np.asarray, "float64", 700),
        (scipy.sparse.csr_array, "float32", 60),
    ],
)
def test_equal_rows_are_one_node_whatever_their_place_and_the_sign_of_zeros(
    form, dtype, d
):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((100, d)), 0).astype(dtype)
    X = X[np.argsort(X.sum(axis=1))]
    row = rng.permutation(np.repeat(np.arange(100), 7))
    repeated = X[row]
    repeated[::2] = np.where(repeated[::2] == 0, -0.0, repeated[::2])
    nodes, node_of = distinct_rows(form(repeated))
    nodes = nodes if form is np.asarray else nodes.toarray()
    assert len(nodes) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(nodes[node_of], repeated)
    assert (
        np.diff(np.unique(node_of, return_index=True)[1]) > 0
    ).all()  # in the order of their first rows


# -- the search in all nodes -----------------------------------------------------------


def test_lengths_of_very_many_pairs_are_distances():
    nodes = rows_of(70, 3)
    one, other = np.random.default_rng(0).integers(0, 70, (2, 10**6))
    apart = np.linalg.norm(nodes[:, None] - nodes, axis=2)
    np.testing.assert_allclose(
        exact_index(nodes).lengths(one, other), apart[one, other], rtol=1e-12
    )


# -- the search in cells ---------------------------------------------------------------


@pytest.fixture(scope="module")
def in_cells():
    """Nodes, the search in their cells, and their order there."""
    nodes = lumps(SEARCHED_NODES + 100, 4)
    return nodes, *build_index(nodes, np.random.RandomState(0))


def test_cells_are_the_nodes_nearest_to_their_means(in_cells):
    nodes, search, order = in_cells
    np.testing.assert_array_equal(search.nodes, nodes[order])
    np.testing.assert_array_equal(np.sort(order), np.arange(len(nodes)))
    sizes = np.diff(search.starts)
    assert (search.starts[0], search.starts[-1]) == (0, len(nodes))
    assert sizes.min() > 0
    assert 1 <= search.n_probes < len(search.centres) == len(sizes)
    cell = np.repeat(np.arange(len(sizes)), sizes)
    for number in (0, len(sizes) // 2, len(sizes) - 1):
        np.testing.assert_allclose(
            search.centres[number], search.nodes[cell == number].mean(axis=0)
        )
    again, order_again = build_index(nodes, np.random.RandomState(0))
    np.testing.assert_array_equal(order_again, order)
    assert (again.centres.tobytes(), again.n_probes) == (
        search.centres.tobytes(),
        search.n_probes,
    )


@pytest.mark.parametrize("n_neighbors", [10, 40])
def test_rows_look_into_as_few_cells_as_find_enough_neighbours(in_cells, n_neighbors):
    nodes, _, _ = in_cells
    search, _ = build_index(nodes, np.random.RandomState(0), n_neighbors)
    checked = search.nodes[:: -(-len(nodes) // CHECKED_ROWS)]
    exact, _ = exact_index(search.nodes).nearest(checked, n_neighbors)
    assert recall(search.nearest(checked, n_neighbors)[0], exact) >= LEAST_RECALL
    fewer = replace(search, n_probes=search.n_probes - 1)
    assert recall(fewer.nearest(checked, n_neighbors)[0], exact) < LEAST_RECALL


def test_cells_find_nearly_all_neighbours_of_new_rows(in_cells):
    nodes, search, _ = in_cells
    rows = nodes[:600] + 0.05 * rows_of(600, 4, 2)
    exact = exact_index(search.nodes).nearest(rows, 10)
    numbers, distances = search.nearest(rows, 10)
    assert recall(numbers, exact[0]) >= 0.99
    assert (distances >= exact[1] - 1e-12).all()
    assert (np.diff(distances, axis=1) >= 0).all()
    everywhere = replace(search, n_probes=len(search.centres))
    for found, expected in zip(everywhere.nearest(rows, 10), exact, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_every_row_finds_all_its_nodes_even_where_cells_are_tiny():
    nodes = np.sort(rows_of(60, 1), axis=0)
    centres = nodes.reshape(30, 2).mean(axis=1)[:, None]
    rows = np.r_[rows_of(40, 1, 1), [[1e6], [-1e6]]]
    for count, n_probes in ((1, 1), (5, 1), (5, 3), (30, 29), (60, 3)):
        numbers, distances = InvertedFileIndex(
            nodes, np.arange(0, 61, 2), centres, n_probes
        ).nearest(rows, count)
        assert ((numbers >= 0) & (numbers < 60)).all()
        assert all(len(set(found)) == count for found in numbers.tolist())
        assert np.isfinite(distances).all()
        np.testing.assert_allclose(
            distances, np.abs(nodes[numbers, 0] - rows), rtol=1e-12
        )
