"""Scores of k clusters and their most violated constraint equal plain loops."""

import numpy as np
import pytest

from mmcnb import kernels
from tests import reference
from tests.kernels.arguments import DTYPES, rows_and_basis


def problem(rows, k, grain=None):
    rng = np.random.default_rng(rows + k)
    scores = rng.standard_normal((rows, k))
    if grain:
        scores = np.round(scores / grain) * grain  # ties between clusters
    return scores, rng.integers(0, k, rows), rng.integers(1, 4, rows) / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "p", "k"),
    [(0, 3, 3), (1, 1, 2), (1, 4, 5), (300, 7, 2), (301, 9, 6), (20, 200, 1)],
)
def test_scores_and_the_most_violated_constraint_equal_the_plain_loop(
    rows, p, k, dtype
):
    F, coef = rows_and_basis(rows, p, k, dtype)
    exact = F.astype(float)
    coef = coef.astype(float)
    offset = np.arange(k) / 3
    expected = reference.cluster_scores(exact, coef, offset).reshape(rows, k)
    np.testing.assert_allclose(
        kernels.cluster_scores(F, coef, offset), expected, rtol=1e-11, atol=1e-12
    )
    for grain in (None, 0.5):
        scores, labels, weights = problem(rows, k, grain)
        for rho in (-0.3, 0.0, 0.5, 10.0, np.inf):
            found = kernels.most_violated_runner_ups(F, scores, labels, weights, rho)
            expected = reference.most_violated_runner_ups(
                exact, scores, labels, weights, rho
            )
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-12)


def test_a_score_that_is_no_number_stays_and_is_in_no_constraint():
    found = kernels.cluster_scores(
        np.array([[1.0, np.nan], [1.0, 2.0]]), np.eye(2), np.zeros(2)
    )
    assert np.isnan(found[0]).any()
    assert found[1].tolist() == [1.0, 2.0]
    scores = np.full((3, 3), np.nan)
    labels = np.array([0, 1, 2])
    for sums in kernels.most_violated_runner_ups(
        np.ones((3, 2)), scores, labels, np.ones(3), 1.0
    ):
        assert not sums.any()
