import numpy as np
import pytest

from mmcnb import kernels
from tests import reference
from tests.kernels.inputs import DTYPES, rows_and_basis


def problem(rows, k, grain=None):
    rng = np.random.default_rng(rows + k)
    scores = rng.standard_normal((rows, k))
    if grain:
        scores = np.round(scores / grain) * grain  # ties between clusters
    return scores, rng.integers(0, k, rows), rng.integers(0, 4, rows) / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "p", "k"), [(1, 1, 1), (7, 3, 2), (300, 7, 5), (5, 200, 3)])
def test_cluster_scores_equal_the_plain_loop(rows, p, k, dtype):
    F, _ = rows_and_basis(rows, p, 0, dtype)
    rng = np.random.default_rng(k)
    coef, offset = rng.standard_normal((k, p)), rng.standard_normal(k)
    found = kernels.cluster_scores(F, coef, offset)
    expected = reference.cluster_scores(F.astype(float), coef, offset)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_scores_keep_a_value_that_is_no_number():
    F = np.array([[1.0, np.nan], [1.0, 2.0]])
    found = kernels.cluster_scores(F, np.eye(2), np.zeros(2))
    assert np.isnan(found[0]).any()
    assert found[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("grain", [None, 0.5])
@pytest.mark.parametrize(
    ("rows", "p", "k"), [(0, 3, 3), (1, 1, 2), (1, 4, 5), (300, 7, 2), (301, 9, 6), (20, 3, 1)]
)
def test_most_violated_runner_ups_equal_the_plain_loop(rows, p, k, grain, dtype):
    F, _ = rows_and_basis(rows, p, 0, dtype)
    scores, labels, weights = problem(rows, k, grain)
    for rho in (-0.3, 0.0, 0.5, 10.0):
        found = kernels.most_violated_runner_ups(F, scores, labels, weights, rho)
        expected = reference.most_violated_runner_ups(F.astype(float), scores, labels, weights, rho)
        for value, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-12)


def test_an_infinite_threshold_takes_every_row():
    scores, labels, _ = problem(200, 4)
    F, weights = np.ones((200, 1)), np.random.default_rng(0).random(200) + 0.5
    row_sums, shares, sums = kernels.most_violated_runner_ups(F, scores, labels, weights, np.inf)
    others = np.where(labels[:, None] == np.arange(4), -np.inf, scores).argmax(axis=1)
    given, taken = (np.bincount(of, weights, 4) for of in (labels, others))
    np.testing.assert_allclose(shares, given - taken, atol=1e-12)
    np.testing.assert_allclose(row_sums[:, 0], shares, atol=1e-12)
    assert sums[0] == pytest.approx(weights.sum())


def test_what_a_row_gives_its_cluster_it_takes_from_its_runner_up():
    scores, labels, weights = problem(200, 4)
    F = np.random.default_rng(0).standard_normal((200, 3))
    row_sums, shares, _ = kernels.most_violated_runner_ups(F, scores, labels, weights, 1.0)
    np.testing.assert_allclose(row_sums.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(shares.sum(), 0, atol=1e-12)


def test_scores_that_are_no_numbers_are_in_no_constraint_and_stay_out_of_the_sums():
    scores = np.full((3, 3), np.nan)
    row_sums, shares, sums = kernels.most_violated_runner_ups(
        np.ones((3, 2)), scores, np.array([0, 1, 2]), np.ones(3), 1.0
    )
    assert not row_sums.any()
    assert not shares.any()
    assert not sums.any()
