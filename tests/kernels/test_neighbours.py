"""Nearest nodes, calibrated weights and shares equal plain loops for any rows."""

import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
from tests import reference_graph
from tests.kernels.arguments import DTYPES, rows_and_basis

# Rows, columns, nodes, cells, cells that a row looks into, and nodes asked for: around
# the routine's tiles.
SHAPES = [
    (0, 3, 5, 1, 1, 3),
    (1, 1, 1, 1, 1, 3),
    (40, 3, 60, 1, 1, 60),
    (257, 2, 30, 1, 1, 1),
    (5, 60, 519, 1, 1, 3),
    (276, 3, 90, 7, 2, 3),
    (276, 3, 90, 30, 4, 12),
]
ROWS = {
    "random": lambda rng, shape: rng.standard_normal(shape),
    "a grid": lambda rng, shape: rng.integers(0, 3, shape),
    "two places": lambda rng, shape: np.repeat(
        rng.integers(0, 2, (shape[0], 1)), shape[1], axis=1
    ),
    "far from the origin": lambda rng, shape: 100 + rng.random(shape),
    "groups far apart": lambda rng, shape: (
        rng.integers(-9, 9, shape) + 2.0**16 * rng.integers(0, 2, shape)
    ),
    "huge": lambda rng, shape: 1e17 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-17 * rng.standard_normal(shape),
    "of squares beyond float32": lambda rng, shape: 1e25 * rng.standard_normal(shape),
    "of squares below float32": lambda rng, shape: 1e-25 * rng.standard_normal(shape),
}


def nearest(X, nodes, count, starts=None, probes=None):
    """What the compiled routine finds, into arrays full of rubbish."""
    starts = np.array([0, len(nodes)]) if starts is None else starts
    probes = np.zeros((len(X), 1), np.int64) if probes is None else probes
    numbers = np.full((len(X), count), 99)
    distances = np.full((len(X), count), np.nan)
    halves = (nodes.astype(float) ** 2).sum(axis=1) / 2
    kernels.nearest_nodes_into(X, nodes, halves, starts, probes, numbers, distances)
    return numbers, distances


def three_nearest(X, nodes, starts=None, probes=None):
    starts = np.array([0, len(nodes)]) if starts is None else starts
    probes = np.zeros((len(X), 1), np.int64) if probes is None else probes
    numbers = np.full((len(X), 3), 99)
    halves = (nodes.astype(float) ** 2).sum(axis=1) / 2
    kernels.three_nearest_into(X, nodes, halves, starts, probes, numbers)
    return numbers


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nearest_nodes_equal_the_plain_loop(dtype, kind):
    rng = np.random.default_rng(0)
    for rows, d, p, cells, n_probes, count in SHAPES:
        X, nodes = (ROWS[kind](rng, (size, d)).astype(dtype) for size in (rows, p))
        starts = np.r_[0, np.sort(rng.permutation(np.arange(1, p))[: cells - 1]), p]
        probes = rng.permuted(np.tile(np.arange(cells), (rows, 1)), axis=1)[
            :, :n_probes
        ].copy()
        probes[3::9] = -1  # no cell
        numbers, distances = nearest(X, nodes, count, starts, probes)
        expected = reference_graph.nearest_nodes(X, nodes, starts, probes, count)
        np.testing.assert_array_equal(numbers, expected[0])
        np.testing.assert_allclose(distances, expected[1], rtol=1e-14)
        np.testing.assert_array_equal(
            three_nearest(X, nodes, starts, probes),
            reference_graph.nearest_nodes(X, nodes, starts, probes, 3)[0],
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_or_node_that_is_not_finite_or_too_far_harms_no_other(dtype, value):
    X, nodes = rows_and_basis(20, 3, 60, dtype)
    numbers, distances = nearest(X, nodes, 4)
    three = three_nearest(X, nodes)
    odd = X.copy()
    others = np.arange(20) != 7
    odd[7, 1] = value
    found = nearest(odd, nodes, 4)
    np.testing.assert_array_equal(found[0][others], numbers[others])
    np.testing.assert_array_equal(found[1][others], distances[others])
    assert not np.isfinite(found[1][7]).any()
    assert ((found[0][7] >= -1) & (found[0][7] < 60)).all()
    found = three_nearest(odd, nodes)
    np.testing.assert_array_equal(found[others], three[others])
    assert ((found[7] >= -1) & (found[7] < 60)).all()
    kept = np.delete(np.arange(60), [3, 40])
    for far in (value, 1e30):
        nodes[[3, 40], 1] = far
        np.testing.assert_array_equal(
            nearest(X, nodes, 4)[0], kept[nearest(X, nodes[kept], 4)[0]]
        )
        np.testing.assert_array_equal(
            three_nearest(X, nodes), kept[three_nearest(X, nodes[kept])]
        )


def test_rows_find_the_same_nodes_however_they_are_cut():
    X, nodes = rows_and_basis(542, 40, 1536, "float32")
    whole = *nearest(X, nodes, 10), three_nearest(X, nodes)
    for first, last in ((0, 1), (5, 263), (255, 542)):
        part = *nearest(X[first:last], nodes, 10), three_nearest(X[first:last], nodes)
        for one, other in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, other[first:last])


DISTANCES = {
    "random": lambda rng, r: np.sort(rng.random((30, r)) + 0.1, axis=1),
    "a node at its own place": lambda rng, r: np.sort(
        np.c_[np.zeros(9), rng.random((9, r - 1))], axis=1
    ),
    "equal distances": lambda rng, r: np.repeat(rng.random((9, 1)) + 1, r, axis=1),
    "duplicates": lambda rng, r: np.zeros((3, r)),
    "one far": lambda rng, r: np.c_[np.ones((3, r - 1)), np.full(3, 1e9)],
    "one near": lambda rng, r: np.c_[np.full(3, 1e-9), np.ones((3, r - 1))],
}


@pytest.mark.parametrize("kind", DISTANCES)
def test_weights_equal_the_plain_bisection_and_keep_their_bounds(kind):
    for r in (1, 2, 3, 10, 50):
        for scale in (1.0, 1e-150, 1e150):
            distances = scale * DISTANCES[kind](np.random.default_rng(r), r)
            weights = kernels.calibrated_weights(distances)
            assert ((weights >= 2.0**-20) & (weights <= 1)).all()
            assert (weights[:, 0] == 1).all()
            assert (np.diff(weights, axis=1) <= 0).all()  # the nearer weighs more
            np.testing.assert_allclose(
                weights, reference_graph.calibrated_weights(distances), atol=2.0**-19
            )
    if kind == "random":
        np.testing.assert_allclose(weights.sum(axis=1), np.log2(50), rtol=1e-4)


def test_weights_of_distances_at_the_ends_of_float64_and_of_none_keep_their_bounds():
    for value in (5e-324, 1e-310, 1e308):
        distances = np.array(
            [[value, value, value], [0.0, 0.0, value], [0.0, value / 2, value]]
        )
        weights = kernels.calibrated_weights(distances)
        assert ((weights >= 2.0**-20) & (weights <= 1)).all()
    for value in (np.nan, np.inf):
        for first in range(4):
            distances = np.arange(4.0)[None]
            distances[:, first:] = value
            weights = kernels.calibrated_weights(distances)
            assert not ((weights < 2.0**-20) | (weights > 1)).any()
    assert np.isnan(kernels.calibrated_weights(np.full((2, 4), np.inf))).all()


def test_rows_of_one_cluster_are_wholly_of_it_and_shares_of_no_weight_are_nan():
    numbers = np.array([[0, 2], [1, 3], [0, 1]])
    weights = np.full((3, 2), 0.3)
    out = np.empty((3, 2))
    weights[2] = 0
    kernels.node_shares_into(numbers, weights, np.arange(4) % 2, out)
    np.testing.assert_array_equal(out, [[1, 0], [0, 1], [np.nan, np.nan]])
