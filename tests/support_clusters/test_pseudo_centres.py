"""Pseudo-centres of kernel k-means: the row of each cluster that is nearest to its mean in feature space."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.metrics.pairwise import pairwise_kernels

import mmcnb
from mmcnb import InputError
from mmcnb.stores import create_csr_store, create_dense_store
from mmcnb.support_clusters.pseudo_centres import pseudo_centres

pytestmark = pytest.mark.slow
GAUSSIAN = {"kernel": "rbf", "gamma": 0.3}
POLYNOMIAL = {"kernel": "poly", "gamma": 0.1, "degree": 2, "coef0": 1.0}


def groups(n):
    rng = np.random.default_rng(0)
    return rng.uniform(-3, 3, (5, 3))[rng.integers(5, size=n)] + rng.standard_normal(
        (n, 3)
    )


def fitted(X, weights=None, n_clusters=5, **parameters):
    settings = {"n_init": 1, "random_state": 0, **GAUSSIAN, **parameters}
    return mmcnb.KernelKMeans(n_clusters, **settings).fit(X, sample_weight=weights)


@pytest.mark.parametrize(
    ("kernel", "weighted"),
    [(GAUSSIAN, True), ({"kernel": "linear"}, False), (POLYNOMIAL, True)],
)
def test_they_are_those_of_the_kernel_matrix(kernel, weighted):
    X = groups(200)
    weights = (
        np.random.default_rng(1).integers(0, 3, 200) * 0.7 if weighted else np.ones(200)
    )
    model = fitted(X, weights, n_landmarks=200, **kernel)
    given = {name: value for name, value in kernel.items() if name != "kernel"}
    K = pairwise_kernels(X, metric=kernel["kernel"], **given)
    for h, row in enumerate(pseudo_centres(model, X, weights)):
        inside = np.where(model.labels_ == h, weights, 0.0)
        distances = np.diag(K) - 2 * K @ inside / inside.sum()
        assert row == np.where(inside > 0, distances, np.inf).argmin()


def test_of_equal_rows_the_first_with_a_weight_is_taken_and_without_a_weight_none():
    X = np.repeat([[0.0], [9.0]], 5000, axis=0)
    weights = np.ones(10_000)
    weights[5000:5003] = 0
    model = fitted(X, weights, n_clusters=2)
    assert sorted(pseudo_centres(model, X, weights)) == [0, 5003]
    assert sorted(pseudo_centres(model, X)) == [0, 5000]
    weights[5000:] = 0
    assert sorted(pseudo_centres(model, X, weights)) == [-1, 0]


def test_storages_and_threads_give_the_same_rows(tmp_path):
    X = np.where(groups(66_000) > 0.5, groups(66_000), 0.0)
    csr = scipy.sparse.csr_array(X)
    model = fitted(X, n_landmarks=12, sample_size=300, max_iter=2, scale="standard")
    expected = pseudo_centres(model, X)
    np.testing.assert_array_equal(model.labels_[expected], np.arange(5))
    with create_dense_store(
        tmp_path / "ours.zarr", 3, dtype="float64", chunk_rows=7777
    ) as writer:
        writer.append(X)
    bare = zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(30_000, 2))
    model.set_params(n_jobs=2)
    for rows in (
        X,
        tmp_path / "ours.zarr",
        bare,
        dask.array.from_array(X, chunks=(30_000, 3)),
    ):
        np.testing.assert_array_equal(pseudo_centres(model, rows), expected)
    with create_csr_store(tmp_path / "csr.zarr", 3, dtype="float64") as writer:
        writer.append(csr)
    model = fitted(csr)
    np.testing.assert_array_equal(
        pseudo_centres(model, tmp_path / "csr.zarr"), pseudo_centres(model, csr)
    )


def test_other_rows_and_weights_than_those_of_the_fit_are_one_sentence():
    X = groups(100)
    model = fitted(X)
    for rows, weights, sentence in (
        (X[:, :2], None, "2 features"),
        (X, np.ones(99), "sample_weight has 99 entries for 100 rows"),
    ):
        with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$"):
            pseudo_centres(model, rows, weights)
