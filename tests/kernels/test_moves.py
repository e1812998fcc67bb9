from functools import partial

import numpy as np
import pytest

from mmcnb import kernels
from tests import reference

OBJECTIVES = {True: reference.mean_objective, False: reference.sum_objective}  # by mean, or as published
FREE = {"low": np.ones(3, np.int64), "high": np.full(3, 1000)}


def make_smoother(m, seed=0, rank=3, ridge=0.05):
    """K (K + λI)^-1 of a centred Gaussian kernel."""
    X = np.random.default_rng(seed).standard_normal((m, rank))
    X[:, 0] += 3 * (np.arange(m) % 3)
    K = reference.centred(reference.rbf_kernel_block(X, X, 0.2))
    R = np.linalg.solve(K + ridge * m * np.eye(m), K)
    return np.ascontiguousarray((R + R.T) / 2)


def make_labels(m, k=3, seed=1):
    labels = np.random.default_rng(seed).integers(k, size=m)
    labels[:k] = np.arange(k)
    return labels


def sizes(labels, k=3):
    return np.bincount(labels, minlength=k)


@pytest.mark.parametrize(("m", "p"), [(3, 1), (20, 7)])
def test_cluster_row_sums_equal_the_plain_loop(m, p):
    rng = np.random.default_rng(0)
    F, labels, weights = rng.standard_normal((m, p)), make_labels(m), rng.uniform(size=m)
    for found, expected in zip(
        kernels.cluster_row_sums(F, labels, 3, weights),
        reference.cluster_row_sums(F, labels, 3, weights),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("schedule", [(1.0, 0.5, 5), (0.25, 0.8, 8)])
@pytest.mark.parametrize("shares", [[1 / 3] * 3, [0.5, 0.3, 0.2]])
def test_shaking_equals_the_plain_form(seed, schedule, shares):
    R, labels = make_smoother(14, seed), make_labels(14, seed=seed)
    found, moves = kernels.shake(R, labels, np.array(shares), *schedule)
    expected, expected_moves = reference.shake(R, labels, shares, *schedule)
    np.testing.assert_array_equal(found, expected)
    assert moves == expected_moves


@pytest.mark.parametrize("m", [64, 65, 200])  # around the rows that are compared at once
def test_of_equal_gains_the_first_row_moves(m):
    R, labels = np.kron(np.eye(m // 4 + 1), np.full((4, 4), 0.2))[:m, :m].copy(), np.arange(m) % 2
    bounds = np.ones(2, np.int64), np.full(2, m)
    for by_mean in (True, False):
        found, moves = kernels.steepest_moves(R, labels, *bounds, 1, by_mean)
        assert moves == 1
        assert np.flatnonzero(found != labels)[0] == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "bounds",
    [
        ([1, 1, 1], [14, 14, 14]),
        ([2, 3, 4], [7, 5, 9]),
        ([6, 4, 2], [14, 14, 14]),  # one cluster is too small, and one holds the least
        ([1, 1, 2], [2, 4, 14]),  # one is too large, and one is full
        ([5, 1, 1], [14, 4, 5]),  # one is too small, one is full and one too large
    ],
)
@pytest.mark.parametrize("by_mean", [True, False])
def test_steepest_moves_equal_the_plain_form(seed, bounds, by_mean):
    low, high = map(np.array, bounds)
    R, labels = make_smoother(14, seed), np.repeat([0, 1, 2], [4, 4, 6])
    found, moves = kernels.steepest_moves(R, labels, low, high, 50, by_mean)
    expected, expected_moves = reference.steepest(R, labels, low, high, 50, OBJECTIVES[by_mean])
    np.testing.assert_array_equal(found, expected)
    assert moves == expected_moves > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bounds", [([1, 1, 1], [14, 14, 14]), ([2, 3, 4], [7, 5, 9])])
def test_stochastic_moves_equal_the_plain_form(seed, bounds):
    low, high = map(np.array, bounds)
    R, labels = make_smoother(14, seed), np.repeat([0, 1, 2], [4, 4, 6])
    order = np.random.default_rng(seed).permutation(14)
    found, moves = kernels.stochastic_moves(R, labels, low, high, order, 50)
    expected, expected_moves = reference.stochastic_moves(R, labels, low, high, order, 50)
    np.testing.assert_array_equal(found, expected)
    assert moves == expected_moves > 0


def test_labels_given_are_left_alone():
    R, labels = make_smoother(20), make_labels(20)
    before = labels.copy()
    kernels.shake(R, labels, np.full(3, 1 / 3), 1.0, 0.5, 5)
    kernels.steepest_moves(R, labels, **FREE, most=9, by_mean=True)
    kernels.stochastic_moves(R, labels, **FREE, order=np.arange(20), sweeps=9)
    np.testing.assert_array_equal(labels, before)


def test_steps_of_one_move_raise_the_objective_and_end_where_all_at_once_do():
    """Sums kept through many moves lead where fresh ones lead."""
    R, labels = make_smoother(120), make_labels(120)
    for by_mean, objective in OBJECTIVES.items():
        search = partial(kernels.steepest_moves, by_mean=by_mean, **FREE)
        at_once, moves = search(R, labels, most=10_000)
        step, values = labels, [objective(R, labels, 3)]
        for _ in range(moves):
            step, moved = search(R, step, most=1)
            assert moved == 1
            values.append(objective(R, step, 3))
        np.testing.assert_array_equal(step, at_once)
        assert (np.diff(values) > 0).all()
        assert search(R, step, most=1)[1] == 0


def test_gain_of_a_move_is_the_difference_of_objectives():
    R, labels = make_smoother(30), make_labels(30)
    T, _ = kernels.cluster_row_sums(R, labels, 3, np.ones(30))
    for i in range(30):
        for d in {0, 1, 2} - {labels[i]}:
            moved = labels.copy()
            moved[i] = d
            gain = 2 * (T[d, i] - T[labels[i], i] + R[i, i])
            change = reference.sum_objective(R, moved, 3) - reference.sum_objective(R, labels, 3)
            assert gain == pytest.approx(change, abs=1e-12)
            q = reference.one_against_all_loss(R, moved, 3) - reference.one_against_all_loss(R, labels, 3)
            assert q == pytest.approx(-4 * gain, abs=1e-11)


@pytest.mark.parametrize("by_mean", [True, False])
@pytest.mark.parametrize("bounds", [([20, 20, 20], [20, 20, 20]), ([5, 25, 10], [10, 40, 15])])
def test_sizes_come_into_their_bounds_and_stay(by_mean, bounds):
    low, high = map(np.array, bounds)
    start = np.repeat([0, 1, 2], [50, 5, 5])
    labels, _ = kernels.steepest_moves(make_smoother(60), start, low, high, 1000, by_mean)
    assert (low <= sizes(labels)).all()
    assert (sizes(labels) <= high).all()


def test_no_cluster_is_emptied():
    R = make_smoother(12)
    for amplitude in (1.0, 5.0):
        labels, moves = kernels.shake(R, make_labels(12), np.full(3, 1 / 3), amplitude, 0.5, 6)
        assert sizes(labels).min() >= 1
        assert moves > 0


def test_rows_that_change_places_take_their_labels_along():
    R, labels = make_smoother(60), make_labels(60)
    order = np.random.default_rng(2).permutation(60)
    turned = np.ascontiguousarray(R[np.ix_(order, order)])
    shares = np.full(3, 1 / 3)
    straight = kernels.shake(R, labels, shares, 1.0, 0.5, 21)[0]
    np.testing.assert_array_equal(
        kernels.shake(turned, labels[order], shares, 1.0, 0.5, 21)[0], straight[order]
    )
    search = partial(kernels.steepest_moves, by_mean=True, most=500, **FREE)
    np.testing.assert_array_equal(search(turned, labels[order])[0], search(R, labels)[0][order])


def test_published_shaking_forgets_a_start_of_two_clusters():
    """The first wave moves all rows but one into the first cluster."""
    R = make_smoother(40)
    labels = kernels.shake(R, make_labels(40, 2), np.full(2, 0.5), 1.0, 0.5, 21)[0]
    other = kernels.shake(R, make_labels(40, 2, seed=5), np.full(2, 0.5), 1.0, 0.5, 21)[0]
    assert (labels == other).all() or (labels != other).all()


def test_thousands_of_moves_lead_where_fresh_sums_lead_in_each_round():
    R, start, shares = make_smoother(400), make_labels(400), np.full(3, 1 / 3)
    at_once, moves = kernels.shake(R, start, shares, 1.0, 0.8, 30)
    labels, total = start, 0
    for i in range(30):
        labels, moved = kernels.shake(R, labels, shares, 1.0 * 0.8**i, 0.8, 1)
        total += moved
    np.testing.assert_array_equal(labels, at_once)
    assert total == moves > 2000
