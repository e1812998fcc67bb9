"""Local searches on a smoother: equal to plain forms, however many moves they take."""

import numpy as np
import pytest

from mmcnb import kernels
from tests import reference

# by mean, or as published
OBJECTIVES = {
    True: reference.mean_objective,
    False: reference.sum_objective,
}


def make_smoother(m, seed=0):
    """K (K + λI)^-1 of a centred Gaussian kernel."""
    X = np.random.default_rng(seed).standard_normal((m, 3))
    X[:, 0] += 3 * (np.arange(m) % 3)
    K = reference.centred(reference.rbf_kernel_block(X, X, 0.2))
    R = np.linalg.solve(K + m / 20 * np.eye(m), K)
    return np.ascontiguousarray((R + R.T) / 2)


def make_labels(m, seed=1):
    return np.r_[0, 1, 2, np.random.default_rng(seed).integers(3, size=m - 3)]


@pytest.mark.parametrize("schedule", [(1.0, 0.5, 5), (0.25, 0.8, 8)])
@pytest.mark.parametrize("shares", [[1 / 3] * 3, [0.5, 0.3, 0.2], [0.5, 0.5]])
def test_shaking_equals_the_plain_form_and_empties_no_cluster(schedule, shares):
    for seed in range(3):
        R = make_smoother(14, seed)
        labels = make_labels(14, seed) % len(shares)
        found, moves = kernels.shake(R, labels, np.array(shares), *schedule)
        expected, expected_moves = reference.shake(R, labels, shares, *schedule)
        np.testing.assert_array_equal(found, expected)
        assert moves == expected_moves
        assert np.bincount(found, minlength=len(shares)).min() >= 1


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
def test_steepest_and_stochastic_moves_equal_the_plain_form(bounds):
    low, high = map(np.array, bounds)
    labels = np.repeat([0, 1, 2], [4, 4, 6])
    for seed in range(3):
        R = make_smoother(14, seed)
        order = np.random.default_rng(seed).permutation(14)
        for by_mean, objective in OBJECTIVES.items():
            found, moves = kernels.steepest_moves(R, labels, low, high, 50, by_mean)
            expected, expected_moves = reference.steepest(
                R, labels, low, high, 50, objective
            )
            np.testing.assert_array_equal(found, expected)
            assert moves == expected_moves > 0
        found, moves = kernels.stochastic_moves(R, labels, low, high, order, 50)
        expected, expected_moves = reference.stochastic_moves(
            R, labels, low, high, order, 50
        )
        np.testing.assert_array_equal(found, expected)
        assert moves == expected_moves


# around the rows that are compared at once
@pytest.mark.parametrize("m", [64, 65, 200])
def test_of_equal_gains_the_first_row_moves(m):
    R = np.kron(np.eye(m // 4 + 1), np.full((4, 4), 0.2))[:m, :m].copy()
    labels = np.arange(m) % 2
    for by_mean in OBJECTIVES:
        found, moves = kernels.steepest_moves(
            R, labels, np.ones(2, int), np.full(2, m), 1, by_mean
        )
        assert moves == 1
        assert np.flatnonzero(found != labels)[0] == 0


@pytest.mark.parametrize("by_mean", OBJECTIVES)
def test_steps_of_one_move_raise_the_objective_and_end_where_all_at_once_do(by_mean):
    """Sums kept through many moves lead where fresh ones lead."""
    R = make_smoother(120)
    step = make_labels(120)
    bounds = (np.ones(3, int), np.full(3, 1000))
    at_once, moves = kernels.steepest_moves(R, step, *bounds, 10_000, by_mean)
    values = [OBJECTIVES[by_mean](R, step, 3)]
    for _ in range(moves):
        step, moved = kernels.steepest_moves(R, step, *bounds, 1, by_mean)
        assert moved == 1
        values.append(OBJECTIVES[by_mean](R, step, 3))
    np.testing.assert_array_equal(step, at_once)
    assert (np.diff(values) > 0).all()
    assert kernels.steepest_moves(R, step, *bounds, 1, by_mean)[1] == 0


def test_thousands_of_moves_lead_where_fresh_sums_lead_in_each_round():
    R = make_smoother(300)
    labels = make_labels(300)
    shares = np.full(3, 1 / 3)
    at_once, moves = kernels.shake(R, labels, shares, 1.0, 0.8, 30)
    total = 0
    for i in range(30):
        labels, moved = kernels.shake(R, labels, shares, 1.0 * 0.8**i, 0.8, 1)
        total += moved
    np.testing.assert_array_equal(labels, at_once)
    assert total == moves > 1000
