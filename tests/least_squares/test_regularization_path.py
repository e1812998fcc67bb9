"""Principal features, label steps under size constraints, and ridge paths."""

import numpy as np
import pytest
from hypothesis import given, settings
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

THIRDS = np.full(3, 1 / 3)


def rows_of(m, seed=0):
    X = np.random.default_rng(seed).standard_normal((m, 4))
    X[:, 0] += 4 * (np.arange(m) % 3)
    return X


def make_features(m, seed=0):
    """Landmark features where every row is a landmark, and the kernel matrix."""
    X = rows_of(m, seed)
    K = reference.rbf_kernel_block(X, X, 0.05)
    return principal_features(K @ normalization_of(K, 1e-14)), K


def make_labels(m, seed=0):
    return random_labels(m, THIRDS, np.random.RandomState(seed))


def test_features_are_centred_and_uncorrelated_and_new_rows_go_through_mean_and_axes():
    features, K = make_features(50)
    z = features.z
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / 50, np.diag(features.variances), atol=1e-12)
    assert (np.diff(features.variances) <= 0).all()
    np.testing.assert_allclose(z @ z.T, reference.centred(K), atol=1e-9)
    X = rows_of(30)
    features = principal_features(X)
    np.testing.assert_allclose(
        (X - features.mean) @ features.axes, features.z, atol=1e-12
    )


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_objective_in_landmark_features_is_the_one_of_the_matrix(alpha):
    features, K = make_features(40)
    R = smoother(K, alpha * 40)
    labels = make_labels(40)
    z = features.z * np.sqrt(features.scales(alpha))
    np.testing.assert_allclose(z @ z.T, R, atol=1e-8)
    assert features.objective(labels, 3, alpha) == pytest.approx(
        mean_objective(R, labels, 3), rel=1e-8
    )


def test_weights_equal_repetition():
    X = rows_of(30)
    weights = np.random.default_rng(1).integers(1, 4, 30)
    weighted = principal_features(X, weights)
    repeated = principal_features(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-12)
    np.testing.assert_allclose(
        np.repeat(weighted.z, weights, axis=0), repeated.z, atol=1e-12
    )
    labels = make_labels(30)
    again = np.repeat(labels, weights)
    assert weighted.objective(labels, 3, 0.1) == pytest.approx(
        repeated.objective(again, 3, 0.1), rel=1e-12
    )
    wide = np.ones(3, int), np.full(3, weights.sum() - 2)
    step, multipliers = size_constrained_step(weighted, labels, 0.1, wide, np.zeros(3))
    same, _ = size_constrained_step(repeated, again, 0.1, wide, np.zeros(3))
    np.testing.assert_array_equal(np.repeat(step, weights), same)
    assert (multipliers == 0).all()  # wide bounds ask for none


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([np.inf, 1.0, 0.01, 1e-3]),
    st.sampled_from([0.0, 0.1, 0.3]),
)
def test_a_held_step_never_lowers_scores_less_multipliers_nor_the_squared_sums(
    seed, alpha, tolerance
):
    features, _ = make_features(30, seed % 3)
    low, high = size_bounds(30, THIRDS, tolerance)
    labels = make_labels(30, seed)
    scales = features.scales(alpha)
    every = np.arange(30)
    for _ in range(5):
        S, _ = features.sums(labels, 3)
        new, multipliers = size_constrained_step(
            features, labels, alpha, (low, high), np.zeros(3)
        )
        sizes = np.bincount(new, minlength=3)
        assert ((low <= sizes) & (sizes <= high)).all()
        scores = features.z @ (S * scales).T
        small = 1e-9 * np.abs(scores).sum()
        for gains in (scores, scores - multipliers):
            assert gains[every, new].sum() >= gains[every, labels].sum() - small
        T, _ = features.sums(new, 3)
        assert (T**2 @ scales).sum() >= (S**2 @ scales).sum() - small
        warm, _ = size_constrained_step(
            features, labels, alpha, (low, high), multipliers + 0.1
        )
        assert scores[every, warm].sum() == pytest.approx(
            scores[every, new].sum(), abs=small
        )
        labels = new


def test_the_path_leads_from_a_coin_flip_to_the_groups():
    features, _ = make_features(90)
    bounds = size_bounds(90, THIRDS, 0.1)
    ends = [
        regularization_path(features, make_labels(90, seed), bounds)
        for seed in range(4)
    ]
    objectives = [
        features.objective(labels, 3, REGULARIZATION_PATH[-1]) for labels in ends
    ]
    best = ends[int(np.argmax(objectives))]
    assert sum(len(set(best[g::3].tolist())) for g in range(3)) <= 6
    assert (
        max(objectives)
        >= features.objective(np.arange(90) % 3, 3, REGULARIZATION_PATH[-1]) - 1e-9
    )
