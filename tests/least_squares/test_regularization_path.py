import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcnb.features.nystroem import normalization_of, principal_features
from mmcnb.least_squares.objective import mean_objective, size_bounds, smoother
from mmcnb.least_squares.partition import (
    REGULARIZATION_PATH,
    random_labels,
    regularization_path,
    size_constrained_step,
)
from tests import reference


def rows_of(m, k=3, seed=0):
    X = np.random.default_rng(seed).standard_normal((m, 4))
    X[:, 0] += 4 * (np.arange(m) % k)
    return X


def make_features(m, seed=0, weights=None):
    """Landmark features where every row is a landmark, and the kernel matrix."""
    X = rows_of(m, seed=seed)
    K = reference.rbf_kernel_block(X, X, 0.05)
    return principal_features(K @ normalization_of(K, 1e-14), weights), K


def make_labels(m, k=3, seed=0):
    return random_labels(m, np.full(k, 1 / k), np.random.RandomState(seed))


def test_features_are_centred_and_uncorrelated():
    features, K = make_features(50)
    z = features.z
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / 50, np.diag(features.variances), atol=1e-12)
    assert (np.diff(features.variances) <= 0).all()
    np.testing.assert_allclose(z @ z.T, reference.centred(K), atol=1e-9)


def test_new_rows_go_through_mean_and_axes():
    X = rows_of(30)
    features = principal_features(X)
    np.testing.assert_allclose((X - features.mean) @ features.axes, features.z, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
def test_objective_in_landmark_features_is_the_one_of_the_matrix(alpha):
    features, K = make_features(40)
    R = smoother(K, alpha * 40)
    z = features.z * np.sqrt(features.scales(alpha))
    np.testing.assert_allclose(z @ z.T, R, atol=1e-8)
    for seed in range(3):
        labels = make_labels(40, seed=seed)
        expected = mean_objective(R, labels, 3)
        assert features.objective(labels, 3, alpha) == pytest.approx(expected, rel=1e-8)


def test_weights_equal_repetition():
    X, weights = rows_of(30), np.random.default_rng(1).integers(1, 4, 30)
    weighted = principal_features(X, weights)
    repeated = principal_features(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-12)
    np.testing.assert_allclose(np.repeat(weighted.z, weights, axis=0), repeated.z, atol=1e-12)
    labels = make_labels(30)
    again = np.repeat(labels, weights)
    assert weighted.objective(labels, 3, 0.1) == pytest.approx(repeated.objective(again, 3, 0.1), rel=1e-12)
    wide = np.ones(3, int), np.full(3, weights.sum() - 2)
    step, _ = size_constrained_step(weighted, labels, 0.1, wide, np.zeros(3))
    same, _ = size_constrained_step(repeated, again, 0.1, wide, np.zeros(3))
    np.testing.assert_array_equal(np.repeat(step, weights), same)


@given(st.integers(0, 10**6), st.sampled_from([np.inf, 1.0, 0.01, 1e-3]), st.sampled_from([0.0, 0.1, 0.3]))
def test_a_held_step_never_lowers_scores_less_multipliers_nor_the_squared_sums(seed, alpha, tolerance):
    features, _ = make_features(30, seed % 3)
    low, high = size_bounds(30, np.full(3, 1 / 3), tolerance)
    labels, scales = make_labels(30, seed=seed % 2**31), features.scales(alpha)
    every = np.arange(30)
    for _ in range(5):
        S, _ = features.sums(labels, 3)
        new, multipliers = size_constrained_step(features, labels, alpha, (low, high), np.zeros(3))
        sizes = np.bincount(new, minlength=3)
        assert ((low <= sizes) & (sizes <= high)).all()
        scores = features.z @ (S * scales).T
        small = 1e-9 * np.abs(scores).sum()
        adjusted = scores - multipliers
        assert adjusted[every, new].sum() >= adjusted[every, labels].sum() - small
        assert scores[every, new].sum() >= scores[every, labels].sum() - small
        T, _ = features.sums(new, 3)
        assert (T**2 @ scales).sum() >= (S**2 @ scales).sum() - small
        labels = new


def test_warm_multipliers_lead_to_the_same_partition():
    features, _ = make_features(60)
    bounds = size_bounds(60, np.full(3, 1 / 3), 0.0)
    labels = make_labels(60)
    cold, multipliers = size_constrained_step(features, labels, 0.1, bounds, np.zeros(3))
    warm, _ = size_constrained_step(features, labels, 0.1, bounds, multipliers + 0.1)
    np.testing.assert_array_equal(cold, warm)


def test_wide_bounds_ask_for_no_multipliers():
    features, _ = make_features(30)
    wide = np.ones(3, int), np.full(3, 28)
    _, multipliers = size_constrained_step(features, np.arange(30) % 3, 0.1, wide, np.zeros(3))
    assert (multipliers == 0).all()


def test_the_path_leads_from_a_coin_flip_to_the_groups():
    features, _ = make_features(90)
    bounds = size_bounds(90, np.full(3, 1 / 3), 0.1)
    found = [regularization_path(features, make_labels(90, seed=seed), bounds) for seed in range(8)]
    objectives = [features.objective(labels, 3, REGULARIZATION_PATH[-1]) for labels in found]
    best = found[int(np.argmax(objectives))]
    groups = [set(best[g::3].tolist()) for g in range(3)]
    assert sum(map(len, groups)) <= 6
    truth = features.objective(np.arange(90) % 3, 3, REGULARIZATION_PATH[-1])
    assert max(objectives) >= truth - 1e-9


def test_rows_that_change_places_take_their_labels_along():
    X = rows_of(60)
    order = np.random.default_rng(0).permutation(60)
    bounds = size_bounds(60, np.full(3, 1 / 3), 0.1)
    labels = make_labels(60)
    straight = regularization_path(principal_features(X), labels, bounds)
    turned = regularization_path(principal_features(X[order]), labels[order], bounds)
    np.testing.assert_array_equal(turned, straight[order])
