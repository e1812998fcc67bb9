"""The width of the Gaussian kernel: rules of thumb, candidates, and a criterion without labels."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC

from mmcnb.errors import InputError
from mmcnb.features.bandwidth import (
    candidate_gammas,
    default_gamma,
    leave_one_out_scores,
    mean_squared_distance,
)
from tests import reference


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 4)) * [1, 2, 0.1, 5] + [0, 3, 1, -2]


def repeated(X, weights):
    return np.repeat(X, weights, axis=0)


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).integers(0, 4, 60)


def test_mean_squared_distance_is_that_of_all_pairs(X, weights):
    assert mean_squared_distance(X) == pytest.approx(
        euclidean_distances(X, squared=True).mean()
    )
    pairs = euclidean_distances(repeated(X, weights), squared=True)
    assert mean_squared_distance(X, weights) == pytest.approx(pairs.mean())
    assert mean_squared_distance(scipy.sparse.csr_array(X)) == pytest.approx(
        mean_squared_distance(X)
    )


@pytest.mark.parametrize(
    ("form", "unit"),
    [(np.asarray, 1e155), (np.asarray, 1e-155), (scipy.sparse.csr_array, 1e-158)],
)
def test_values_whose_squares_leave_the_range_are_refused(X, form, unit):
    with pytest.raises(
        InputError,
        match=r"^the squares of the values are out of range \(column \d has ",
    ):
        mean_squared_distance(form(unit * X))


@pytest.mark.parametrize(
    ("form", "unit"), [(np.asarray, 1e-30), (scipy.sparse.csr_array, 1e30)]
)
def test_squares_of_float32_are_summed_in_the_range_of_float64(X, form, unit):
    found = mean_squared_distance(form((unit * X).astype(np.float32)))
    assert found / unit**2 == pytest.approx(mean_squared_distance(X), rel=1e-6)


def test_named_gammas_are_those_of_the_formulas(X):
    distances = euclidean_distances(X, squared=True)
    assert default_gamma("mean", "rbf", X) == pytest.approx(1 / (2 * distances.mean()))
    pairs = distances[np.triu_indices(len(X), 1)]
    assert default_gamma("median", "rbf", X) == pytest.approx(
        1 / (2 * np.median(pairs))
    )
    assert default_gamma("scale", "rbf", X) == pytest.approx(
        SVC(gamma="scale").fit(X, X[:, 0] > 0)._gamma
    )


@pytest.mark.parametrize("name", ["mean", "median", "scale"])
def test_named_gammas_of_csr_scaled_and_repeated_rows(X, weights, name):
    gamma = default_gamma(name, "rbf", X)
    assert default_gamma(name, "rbf", scipy.sparse.csr_array(X)) == pytest.approx(gamma)
    assert default_gamma(name, "rbf", 3 * X) == pytest.approx(gamma / 9)
    if name != "median":
        of_repeated = default_gamma(name, "rbf", repeated(X, weights))
        assert default_gamma(name, "rbf", X, weights) == pytest.approx(of_repeated)


def test_median_of_mostly_equal_rows_falls_back_to_the_mean():
    X = np.r_[np.zeros((20, 2)), np.ones((2, 2))]
    assert default_gamma("median", "rbf", X) == default_gamma("mean", "rbf", X)


def test_candidates_are_seven_steps_of_two_around_the_mean(X, weights):
    gammas = np.array(candidate_gammas(X))
    assert len(gammas) == 7
    np.testing.assert_allclose(gammas[:-1] / gammas[1:], 2)
    sigmas = 1 / np.sqrt(2 * gammas * mean_squared_distance(X))
    assert sigmas[0] == pytest.approx(0.25)
    assert sigmas[-1] == pytest.approx(2.0)
    np.testing.assert_allclose(
        candidate_gammas(X, weights), candidate_gammas(repeated(X, weights))
    )


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_equal_rows_are_refused_in_one_sentence(value):
    with pytest.raises(ValueError, match=r"^all rows are equal, [^\n]*\.$"):
        mean_squared_distance(np.full((50, 3), value))


def test_rows_that_differ_by_less_than_rounding_are_to_be_centred():
    rows = np.full((50, 3), 1e9)
    rows[::2, 1] += 1e-6
    with pytest.raises(ValueError, match=r"\(column 1 .*subtract the mean of the col"):
        mean_squared_distance(rows)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_refits_without_each_row(weighted):
    rng = np.random.default_rng(0)
    n = 25
    labelings = np.where(rng.random((3, n)) < 0.4, -1, 1)
    embeddings = [
        rng.standard_normal((n, 3)) + 0.5 * labelings[0][:, None],
        rng.standard_normal((n, 6)),
    ]
    weights = rng.random(n) + 0.5 if weighted else np.ones(n)
    shares = weights / weights.sum()
    naive = []
    for y in labelings:
        variance = shares @ (y - shares @ y) ** 2
        naive.append(
            min(
                shares
                @ reference.leave_one_out_residuals(y, z, ridge, weights) ** 2
                / variance
                for z in embeddings
                for ridge in (1e-3, 1e-2)
            )
        )
    found = leave_one_out_scores(labelings, embeddings, weights if weighted else None)
    np.testing.assert_allclose(found, naive, rtol=1e-8)
