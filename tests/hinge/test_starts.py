import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

import mmcnb
from mmcnb.features.nystroem import MANY_COLUMNS, choose_landmarks, principal_directions
from mmcnb.hinge.sample_search import INITS, least_squares_labels, starting_labels


def test_landmarks_are_different_rows_of_the_sample():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 2)).astype(float)  # 9 different rows at most
    for n_landmarks in (3, 9, 50, 200, 500):
        landmarks = choose_landmarks(X, n_landmarks, np.random.RandomState(0))
        assert len(landmarks) <= n_landmarks
        assert len(np.unique(landmarks, axis=0)) == len(landmarks)
        assert {tuple(row) for row in landmarks} <= {tuple(row) for row in X}
    assert len(choose_landmarks(X, 500, np.random.RandomState(0))) == 9


def test_landmarks_of_csr_are_those_of_the_dense_rows():
    rng = np.random.default_rng(1)
    X = rng.random((100, 6)) * (rng.random((100, 6)) < 0.5)
    dense = choose_landmarks(X, 20, np.random.RandomState(3))
    np.testing.assert_array_equal(
        choose_landmarks(scipy.sparse.csr_array(X), 20, np.random.RandomState(3)), dense
    )


def test_rows_without_weight_are_no_landmarks():
    X = np.arange(40.0)[:, None]
    weights = (np.arange(40) < 20).astype(float)
    for seed in range(5):
        assert (choose_landmarks(X, 15, np.random.RandomState(seed), weights) < 20).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("columns", [5, MANY_COLUMNS + 1])
def test_principal_directions_are_pca(sparse, columns):
    rng = np.random.default_rng(2)
    z = rng.standard_normal((60, columns)) * (1 / np.arange(1, columns + 1)) + 3
    z[:, 4:] *= rng.random((60, columns - 4)) < 0.3
    found = principal_directions(scipy.sparse.csr_array(z) if sparse else z, 3)
    expected = PCA(3, svd_solver="full").fit_transform(z)
    for one, other in zip(found.T, expected.T, strict=True):
        assert abs(one @ other) == pytest.approx(other @ other, rel=1e-6)
        np.testing.assert_allclose(abs(one), abs(other), atol=1e-5)


def test_weights_of_principal_directions_are_repetitions():
    rng = np.random.default_rng(3)
    z, weights = rng.standard_normal((50, 4)) * [4, 3, 2, 1], rng.integers(0, 4, 50)
    found = principal_directions(z, 3, weights.astype(float))
    repeated = principal_directions(np.repeat(z, weights, axis=0), 3)
    np.testing.assert_allclose(np.repeat(found, weights, axis=0), repeated, atol=1e-10)


def test_fewer_columns_give_fewer_directions():
    assert principal_directions(np.arange(8.0)[:, None], 3).shape == (8, 1)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("n_init", [1, 4, 8])
def test_starts_are_as_many_as_asked_and_hold_both_labels(init, n_init):
    z = np.random.default_rng(4).standard_normal((30, 4))
    starts = [labels.y for labels, _ in starting_labels(init, n_init, z, np.random.RandomState(0))]
    assert len(starts) == n_init
    for y in starts:
        assert y.dtype == np.int8
        assert set(y.tolist()) == {-1, 1}
    again = [labels.y for labels, _ in starting_labels(init, n_init, z, np.random.RandomState(0))]
    np.testing.assert_array_equal(starts, again)


def test_mixed_starts_hold_the_signs_of_principal_components_and_the_partitions_given():
    z = np.random.default_rng(5).standard_normal((30, 4))
    partitions = least_squares_labels(z, np.random.RandomState(0))
    starts = list(starting_labels("mixed", 8, z, np.random.RandomState(0), partitions=partitions))
    assert [warm for _, warm in starts] == [False, False, True, True, False, False, False, False]
    signs = np.array([starts[number][0].y for number in (1, 4, 5)]) > 0
    np.testing.assert_array_equal(signs, principal_directions(z, 3).T >= 0)


@pytest.mark.parametrize("form", ["dense", "csr", "weighted", "wide"])
def test_least_squares_divides_what_is_apart(form):
    rng = np.random.default_rng(7)
    classes = rng.random(300) < 0.3
    z = rng.standard_normal((300, MANY_COLUMNS + 1 if form == "wide" else 5)) + 6 * classes[:, None]
    weights = rng.integers(1, 4, 300).astype(float) if form == "weighted" else None
    points = scipy.sparse.csr_array(z) if form == "csr" else z
    for labels in least_squares_labels(points, np.random.RandomState(0), weights):
        agreement = np.mean((labels.y > 0) == classes)
        assert max(agreement, 1 - agreement) == 1.0


def test_rows_that_are_all_equal_still_have_both_labels():
    for labels in least_squares_labels(np.ones((20, 3)), np.random.RandomState(0)):
        assert set(labels.y.tolist()) == {-1, 1}


def test_starts_do_not_depend_on_how_many_follow():
    z = np.random.default_rng(6).standard_normal((30, 4))
    few, many = (
        [labels.y for labels, _ in starting_labels("mixed", n_init, z, np.random.RandomState(0))]
        for n_init in (3, 7)
    )
    np.testing.assert_array_equal(few, many[:3])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [mmcnb.CPMMC, mmcnb.SparseKernelMMC])
def test_k_means_starts_sparse_rows_as_it_starts_dense_ones(estimator):
    X, _ = make_blobs(200, centers=[[0, 0, 3], [6, 6, 0]], random_state=0)
    dense, sparse = (
        estimator(init="k-means", random_state=0).fit(rows) for rows in (X, scipy.sparse.csr_matrix(X))
    )
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
