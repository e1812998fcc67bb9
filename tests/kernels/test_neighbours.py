"""Nearest nodes, calibrated weights and shares: equal to plain loops, whatever the rows."""

import subprocess
import sys

import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
from mmcnb.kernels.neighbours import TILE_NODES, TILE_ROWS
from tests import reference_graph
from tests.kernels.inputs import DTYPES, rows_and_basis

SHAPES = [(0, 3, 5), (1, 1, 1), (1, 4, 9), (40, 3, 60), (TILE_ROWS + 1, 2, 30), (5, 60, TILE_NODES + 7)]
ROWS = {
    "random": lambda rng, shape: rng.standard_normal(shape),
    "a grid": lambda rng, shape: rng.integers(0, 3, shape),
    "two places": lambda rng, shape: np.repeat(rng.integers(0, 2, (shape[0], 1)), shape[1], axis=1),
    "groups far apart": lambda rng, shape: rng.integers(-9, 9, shape) + 2.0**16 * rng.integers(0, 2, shape),
    "huge": lambda rng, shape: 1e17 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-17 * rng.standard_normal(shape),
    "of squares beyond float32": lambda rng, shape: 1e25 * rng.standard_normal(shape),
    "of squares below float32": lambda rng, shape: 1e-25 * rng.standard_normal(shape),
}


def nearest(X, nodes, count, starts=None, probes=None):
    """What the compiled routine finds, into arrays full of rubbish."""
    halves = (nodes.astype(np.float64) ** 2).sum(axis=1) / 2
    starts = np.array([0, len(nodes)]) if starts is None else starts
    probes = np.zeros((len(X), 1), np.int64) if probes is None else probes
    numbers, distances = np.full((len(X), count), 99), np.full((len(X), count), np.nan)
    kernels.nearest_nodes_into(X, nodes, halves, starts, probes, numbers, distances)
    return numbers, distances


def random_cells(rng, p, cells):
    """Starts of cells of random sizes, some of them of one node."""
    return np.r_[0, np.sort(rng.permutation(np.arange(1, p))[: cells - 1]), p]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_nodes_equal_the_plain_loop(dtype, kind):
    rng = np.random.default_rng(0)
    for rows, d, p in SHAPES:
        X, nodes = (ROWS[kind](rng, (size, d)).astype(dtype) for size in (rows, p))
        for count in {1, min(3, p), p}:
            numbers, distances = nearest(X, nodes, count)
            probes = np.zeros((rows, 1), int)
            expected = reference_graph.nearest_nodes(X, nodes, [0, p], probes, count)
            np.testing.assert_array_equal(numbers, expected[0])
            np.testing.assert_allclose(distances, expected[1], rtol=1e-14)


@pytest.mark.parametrize("kind", ["random", "a grid"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("cells", "n_probes", "count"), [(1, 1, 4), (7, 2, 3), (7, 7, 5), (30, 4, 12)])
def test_cells_equal_the_plain_loop_over_the_nodes_in_them(dtype, kind, cells, n_probes, count):
    rng = np.random.default_rng(cells)
    X, nodes = (ROWS[kind](rng, (size, 3)).astype(dtype) for size in (TILE_ROWS + 20, 90))
    starts = random_cells(rng, 90, cells)
    probes = np.array([rng.permutation(cells)[:n_probes] for _ in X])
    numbers, distances = nearest(X, nodes, count, starts, probes)
    expected = reference_graph.nearest_nodes(X, nodes, starts, probes, count)
    np.testing.assert_array_equal(numbers, expected[0])
    np.testing.assert_allclose(distances, expected[1], rtol=1e-14)
    assert (cells < 30) or (numbers < 0).any()


def nearest_centres(X, centres):
    numbers = np.full(len(X), 99)
    kernels.nearest_centres_into(X, centres, (centres.astype(np.float64) ** 2).sum(axis=1) / 2, numbers)
    return numbers


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_centre_equals_the_plain_loop(dtype, kind):
    rng = np.random.default_rng(0)
    for rows, d, p in SHAPES:
        X, centres = (ROWS[kind](rng, (size, d)).astype(dtype) for size in (rows, p))
        numbers = nearest_centres(X, centres)
        np.testing.assert_array_equal(numbers, reference_graph.nearest_centres(X, centres))
        blocks = [nearest_centres(X[start : start + 7], centres) for start in range(0, rows, 7)]
        np.testing.assert_array_equal(numbers, np.concatenate([np.empty(0, int), *blocks]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nearest_centre_that_float32_cannot_tell_is_found_in_float64(dtype):
    centres = np.array([[1e4, 1.0], [1e4, 0.0], [-1e4, 0.0]]).astype(dtype)
    X = np.array([[1e4, 0.5 + step * 2.0**-10] for step in (-2, -1, 0, 1, 2)]).astype(dtype)
    assert nearest_centres(X, centres).tolist() == [1, 1, 0, 0, 0]  # of equal distances the first


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_not_finite_has_some_centre_and_harms_no_other(value):
    X, centres = rows_and_basis(20, 3, 9, np.float32)
    whole = nearest_centres(X, centres)
    X[7, 1] = value
    numbers = nearest_centres(X, centres)
    np.testing.assert_array_equal(np.delete(numbers, 7), np.delete(whole, 7))
    assert 0 <= numbers[7] < 9


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_many_equal_distances_the_smallest_numbers_come_first(dtype):
    nodes = np.r_[np.eye(30), -np.eye(30)].astype(
        dtype
    )  # all at distance 1 of the middle, more than are spare
    starts, probes = np.array([0, 25, 60]), np.array([[1, 0], [0, 1], [1, -1]])
    numbers, distances = nearest(np.zeros((3, 30), dtype), nodes, 6, starts, probes)
    assert numbers.tolist() == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [25, 26, 27, 28, 29, 30]]
    assert (distances == 1).all()


def test_fewer_nodes_than_asked_for_leave_no_number():
    X, nodes = rows_and_basis(6, 2, 3)
    numbers, distances = nearest(X, nodes, 5)
    np.testing.assert_array_equal(np.sort(numbers[:, :3]), np.tile(np.arange(3), (6, 1)))
    assert (numbers[:, 3:] == -1).all()
    assert np.isposinf(distances[:, 3:]).all()


def test_a_row_that_looks_nowhere_finds_nothing():
    X, nodes = rows_and_basis(3, 2, 8)
    probes = np.array([[0, 1], [-1, -1], [1, -1]])
    numbers, distances = nearest(X, nodes, 2, np.array([0, 4, 8]), probes)
    assert (numbers[1] == -1).all()
    assert np.isposinf(distances[1]).all()
    assert (numbers[2] >= 4).all()
    assert (numbers[0] >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_finds_nothing_and_harms_no_other(dtype, value):
    X, nodes = rows_and_basis(20, 3, 40, dtype)
    whole = nearest(X, nodes, 4)
    X[7, 1] = value
    numbers, distances = nearest(X, nodes, 4)
    others = np.arange(20) != 7
    np.testing.assert_array_equal(numbers[others], whole[0][others])
    np.testing.assert_array_equal(distances[others], whole[1][others])
    assert not np.isfinite(distances[7]).any()
    assert ((numbers[7] >= -1) & (numbers[7] < 40)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_node_that_is_not_finite_or_too_far_hides_no_other(dtype, value):
    X, nodes = rows_and_basis(20, 3, 60, dtype)
    nodes[[3, 40], 1] = value
    numbers, _ = nearest(X, nodes, 4)
    kept = np.delete(np.arange(60), [3, 40])
    np.testing.assert_array_equal(numbers, kept[nearest(X, nodes[kept], 4)[0]])


def test_rows_find_the_same_nodes_however_they_are_cut():
    X, nodes = rows_and_basis(2 * TILE_ROWS + 30, 40, 3 * TILE_NODES, "float32")
    whole = nearest(X, nodes, 10)
    for first, last in ((0, 1), (5, TILE_ROWS + 7), (TILE_ROWS - 1, len(X))):
        for part, expected in zip(nearest(X[first:last], nodes, 10), whole, strict=True):
            np.testing.assert_array_equal(part, expected[first:last])


def test_order_is_that_of_exact_distances_where_scores_in_float32_differ():
    rng = np.random.default_rng(0)
    X = (100 + rng.random((5, 3))).astype("float32")  # scores are of size 10,000, distances below 1
    nodes = (100 + rng.random((12, 3))).astype("float32")
    numbers, distances = nearest(X, nodes, 6)
    exact = np.linalg.norm(X[:, None].astype(float) - nodes, axis=2)
    np.testing.assert_array_equal(numbers, exact.argsort(axis=1)[:, :6])
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :6], rtol=1e-12)


# -- weights -----------------------------------------------------------------------------------

DISTANCES = {
    "random": lambda rng, r: np.sort(rng.random((30, r)) + 0.1, axis=1),
    "a node at its own place": lambda rng, r: np.sort(np.c_[np.zeros(9), rng.random((9, r - 1))], axis=1),
    "equal distances": lambda rng, r: np.repeat(rng.random((9, 1)) + 1, r, axis=1),
    "duplicates": lambda rng, r: np.zeros((3, r)),
    "one far": lambda rng, r: np.c_[np.ones((3, r - 1)), np.full(3, 1e9)],
    "one near": lambda rng, r: np.c_[np.full(3, 1e-9), np.ones((3, r - 1))],
}


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 2.0**-40])
@pytest.mark.parametrize("r", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("kind", DISTANCES)
def test_weights_equal_the_plain_bisection_and_keep_their_bounds(kind, r, scale):
    distances = scale * DISTANCES[kind](np.random.default_rng(r), r)
    weights = kernels.calibrated_weights(distances)
    assert ((weights >= 2.0**-20) & (weights <= 1)).all()
    assert (weights[:, 0] == 1).all()
    assert (np.diff(weights, axis=1) <= 0).all()  # the nearer weighs more
    np.testing.assert_allclose(weights, reference_graph.calibrated_weights(distances), atol=2.0**-19)


@pytest.mark.parametrize("r", [3, 5, 10, 50])
def test_weights_sum_to_the_logarithm_where_the_distances_allow_it(r):
    distances = np.sort(np.random.default_rng(r).random((200, r)), axis=1)
    np.testing.assert_allclose(kernels.calibrated_weights(distances).sum(axis=1), np.log2(r), rtol=1e-4)


def test_weights_do_not_know_the_unit_of_the_distances():
    distances = np.sort(np.random.default_rng(0).random((50, 10)), axis=1)
    for unit in (2.0**-400, 0.5, 2.0**400):
        weights = kernels.calibrated_weights(unit * distances)
        np.testing.assert_allclose(weights, kernels.calibrated_weights(distances), atol=2.0**-20)


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e308])
def test_weights_at_the_ends_of_float64_are_numbers(value):
    distances = np.array([[value, value, value], [0.0, 0.0, value], [0.0, value / 2, value]])
    weights = kernels.calibrated_weights(distances)
    assert ((weights >= 2.0**-20) & (weights <= 1)).all()


def test_nothing_found_weighs_nan():
    assert np.isnan(kernels.calibrated_weights(np.full((2, 4), np.inf))).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_distances_that_are_no_numbers_give_no_weight_beyond_its_bounds(value, first):
    distances = np.arange(4.0)[None]
    distances[:, first:] = value
    weights = kernels.calibrated_weights(distances)
    assert not ((weights < 2.0**-20) | (weights > 1)).any()


# -- shares ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "r", "k"), [(0, 3, 2), (1, 1, 1), (30, 4, 7), (20, 10, 3), (9, 13, 20)])
def test_shares_equal_the_plain_loop(dtype, rows, r, k):
    rng = np.random.default_rng(0)
    numbers, weights, labels = rng.integers(0, 12, (rows, r)), rng.random((rows, r)), rng.integers(0, k, 12)
    out = np.full((rows, k), np.nan, dtype)
    kernels.node_shares_into(numbers, weights, labels, out)
    expected = reference_graph.node_shares(numbers, weights, labels, k)
    np.testing.assert_allclose(out, expected, rtol=1e-6 if dtype == "float32" else 1e-13)


def test_shares_lie_between_0_and_1_and_sum_to_1():
    rng = np.random.default_rng(1)
    numbers, weights = rng.integers(0, 12, (50, 5)), rng.random((50, 5)) + 1e-6
    labels, out = np.arange(12) % 4, np.empty((50, 5))
    kernels.node_shares_into(numbers, weights, labels, out)
    assert ((out >= 0) & (out <= 1)).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-14)
    assert (out[:, 4] == 0).all()  # no node is of this cluster
    for row, near in zip(out, labels[numbers], strict=True):
        assert set(np.flatnonzero(row)) == set(near)


def test_rows_whose_nodes_are_all_of_one_cluster_are_wholly_of_it():
    numbers, out = np.array([[0, 2, 4], [1, 3, 5]]), np.empty((2, 2))
    kernels.node_shares_into(numbers, np.full((2, 3), 0.3), np.arange(6) % 2, out)
    np.testing.assert_array_equal(out, np.eye(2))


def test_the_routines_are_importable_alone():
    code = (
        "import sys, mmcnb.kernels.neighbours as n; n.nearest_nodes_into; "
        "allowed = ('kernels', '_numba', '_compiling', 'errors'); "
        "names = [name for name in sys.modules if name.startswith('mmcnb.')]; "
        "sys.exit(any(name.split('.')[1] not in allowed for name in names))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_shares_of_weights_that_add_up_to_0_are_nan():
    out = np.empty((2, 2))
    kernels.node_shares_into(np.zeros((2, 1), int), np.array([[0.0], [3.0]]), np.array([1]), out)
    np.testing.assert_array_equal(out, [[np.nan, np.nan], [0.0, 1.0]])
