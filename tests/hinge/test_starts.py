"""Landmarks, principal directions and starting labels of a sample."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

import mmcnb
from mmcnb.features.nystroem import MANY_COLUMNS, choose_landmarks, principal_directions
from mmcnb.hinge.starts import INITS, least_squares_labels, starting_labels


def seeded(seed=0):
    return np.random.RandomState(seed)


def test_landmarks_are_different_rows_of_the_sample_with_some_weight():
    # 9 different rows at most
    X = np.random.default_rng(0).integers(0, 3, (200, 2)).astype(float)
    for n_landmarks in (3, 9, 500):
        landmarks = choose_landmarks(X, n_landmarks, seeded())
        assert len(landmarks) == min(n_landmarks, 9)
        assert len(np.unique(landmarks, axis=0)) == len(landmarks)
        assert {tuple(row) for row in landmarks} <= {tuple(row) for row in X}
        sparse = choose_landmarks(scipy.sparse.csr_array(X), n_landmarks, seeded())
        np.testing.assert_array_equal(sparse, landmarks)
    X = np.arange(40.0)[:, None]
    weights = (np.arange(40) < 20).astype(float)
    for seed in range(5):
        assert (choose_landmarks(X, 15, seeded(seed), weights) < 20).all()


@pytest.mark.parametrize(
    ("sparse", "columns"), [(False, 5), (True, 5), (False, MANY_COLUMNS + 1)]
)
def test_principal_directions_are_pca_and_weights_repetitions(sparse, columns):
    rng = np.random.default_rng(2)
    z = rng.standard_normal((60, columns)) * (1 / np.arange(1, columns + 1)) + 3
    z[:, 4:] *= rng.random((60, columns - 4)) < 0.3
    weights = rng.integers(0, 4, 60)
    often = np.repeat(np.arange(60), weights)
    rows = scipy.sparse.csr_array(z) if sparse else z
    for given, counts, places in (
        (rows, None, np.arange(60)),
        (rows, weights.astype(float), often),
    ):
        directions = principal_directions(given, 3, counts)[places]
        expected = PCA(3, svd_solver="full").fit_transform(z[places])
        np.testing.assert_allclose(abs(directions), abs(expected), atol=1e-5)
        assert np.allclose(
            abs((directions * expected).sum(axis=0)),
            (expected**2).sum(axis=0),
            rtol=1e-6,
        )
    assert principal_directions(np.arange(8.0)[:, None], 3).shape == (8, 1)


@pytest.mark.parametrize("init", INITS)
def test_starts_are_as_many_as_asked_hold_both_labels_and_do_not_depend_on_how_many_follow(
    init,
):
    z = np.random.default_rng(4).standard_normal((30, 4))
    previous = np.empty((0, 30))
    for n_init in (1, 4, 8):
        starts = np.array(
            [start.labels.y for start in starting_labels(init, n_init, z, seeded())]
        )
        assert starts.shape == (n_init, 30)
        assert starts.dtype == np.int8
        assert all(set(y.tolist()) == {-1, 1} for y in starts)
        np.testing.assert_array_equal(starts[: len(previous)], previous)
        previous = starts


def test_mixed_starts_hold_the_signs_of_principal_components_and_the_partitions_given():
    z = np.random.default_rng(5).standard_normal((30, 4))
    partitions = least_squares_labels(z, seeded())
    starts = list(starting_labels("mixed", 8, z, seeded(), partitions=partitions))
    assert [start.is_warm for start in starts] == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    signs = np.array([starts[number][0].y for number in (1, 4, 5)]) > 0
    np.testing.assert_array_equal(signs, principal_directions(z, 3).T >= 0)
    assert [starts[number][0] for number in (2, 3)] == list(partitions)


@pytest.mark.parametrize("form", ["dense", "csr", "weighted", "wide"])
def test_least_squares_divides_what_is_apart(form):
    rng = np.random.default_rng(7)
    classes = rng.random(200) < 0.3
    z = (
        rng.standard_normal((200, MANY_COLUMNS + 1 if form == "wide" else 5))
        + 6 * classes[:, None]
    )
    weights = rng.integers(1, 4, 200).astype(float) if form == "weighted" else None
    points = scipy.sparse.csr_array(z) if form == "csr" else z
    for labels in least_squares_labels(points, seeded(), weights):
        assert np.mean((labels.y > 0) == classes) in (0.0, 1.0)


def test_rows_that_are_all_equal_still_have_both_labels():
    for labels in least_squares_labels(np.ones((20, 3)), seeded()):
        assert set(labels.y.tolist()) == {-1, 1}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [mmcnb.CPMMC, mmcnb.SparseKernelMMC])
def test_k_means_starts_sparse_rows_as_it_starts_dense_ones(estimator):
    X, _ = make_blobs(200, centers=[[0, 0, 3], [6, 6, 0]], random_state=0)
    dense, sparse = (
        estimator(init="k-means", random_state=0).fit(rows)
        for rows in (X, scipy.sparse.csr_matrix(X))
    )
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
