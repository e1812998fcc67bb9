"""Pseudo-centres of kernel k-means: kernel matrices, ties, clusters without weight, storages, bad input."""

from dataclasses import replace

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
from benchmarks.support_cluster_machine.pseudo_centres import pseudo_centres
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.features.rules import Scores
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import create_csr_store, create_dense_store

KERNELS = [Kernel("rbf", 0.3), Kernel("linear"), Kernel("poly", 0.1, 2, 1.0)]


def groups(n, k=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (k, d))[rng.integers(k, size=n)] + rng.standard_normal((n, d))


def fitted(X, kernel=KERNELS[0], weights=None, n_clusters=5, **parameters):
    settings = {"kernel": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    settings |= {"n_init": 1, "tol": 0, "random_state": 0, "n_jobs": 1} | parameters
    return mmcnb.KernelKMeans(n_clusters, **settings).fit(X, sample_weight=weights)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_they_are_those_of_the_kernel_matrix(kernel, weighted, seed):
    X = groups(200, seed=seed)
    weights = np.random.default_rng(1).integers(0, 3, 200) * 0.7 if weighted else None
    omega = np.ones(200) if weights is None else weights
    model, K = fitted(X, kernel, weights, n_landmarks=200), kernel(X, X)
    centres = pseudo_centres(model, X, weights)
    assert centres.dtype == np.int64
    for h in range(5):
        own = np.where(model.labels_ == h, omega, 0.0)
        distances = np.diag(K) - 2 * K @ own / own.sum()
        assert centres[h] == np.where(own > 0, distances, np.inf).argmin()


def test_of_rows_that_are_clusters_each_is_its_own():
    X = groups(30)
    model = fitted(X, n_clusters=30, n_landmarks=30)
    np.testing.assert_array_equal(pseudo_centres(model, X), np.arange(30))


def test_of_equal_rows_the_first_with_a_weight_is_taken_and_without_a_weight_none():
    X = np.zeros((10_000, 1))
    X[5000:] = 9.0
    weights = np.ones(10_000)
    weights[5000:5003] = 0
    model = fitted(X, weights=weights, n_clusters=2)
    rule = model.model_.rule
    never = Scores(np.c_[rule.coef, np.zeros(len(rule.coef))], np.r_[rule.offset, 1e9])
    model.model_ = replace(model.model_, rule=never)
    assert pseudo_centres(model, X, weights).tolist() == [0, 5003, -1]
    assert pseudo_centres(model, X).tolist() == [0, 5000, -1]
    weights[5000:] = 0
    assert pseudo_centres(model, X, weights).tolist() == [0, -1, -1]


def test_with_a_linear_kernel_they_are_the_rows_nearest_to_means_of_many_blocks():
    X = groups(GROUP_ROWS + 5001)
    model = fitted(X, KERNELS[1], sample_size=500)
    for h, row in enumerate(pseudo_centres(model, X)):
        distances = np.linalg.norm(X - X[model.labels_ == h].mean(axis=0), axis=1)
        assert distances[row] == pytest.approx(distances[model.labels_ == h].min(), abs=1e-3)


@pytest.mark.parametrize("parameters", [{}, {"scale": "standard"}, {"kernel": KERNELS[1]}])
def test_storages_threads_and_clusters_give_the_same_rows(tmp_path, dask_client, parameters):
    X = groups(GROUP_ROWS + 5001).astype(np.float32) * np.float32([1, 2, 3])
    model = fitted(X, n_landmarks=12, sample_size=300, max_iter=2, **parameters)
    expected = pseudo_centres(model, X)
    np.testing.assert_array_equal(model.labels_[expected], np.arange(5))
    with create_dense_store(tmp_path / "ours.zarr", 3, chunk_rows=777) as writer:
        writer.append(X)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(30_000, 2))
    lazy = dask.array.from_array(X, chunks=(30_000, 3))
    client = dask_client(2) if not parameters else None
    ways = [(X, 2, None), (tmp_path / "ours.zarr", 2, client), (tmp_path / "bare.zarr", 2, None)]
    for rows, n_jobs, engine in [*ways, (lazy, 1, None)]:
        model.set_params(n_jobs=n_jobs, engine=engine)
        np.testing.assert_array_equal(pseudo_centres(model, rows), expected)


def test_sparse_rows_in_a_store_and_a_fit_without_labels_give_the_same_rows(tmp_path):
    X = groups(9000)
    csr = scipy.sparse.csr_array(np.where(X > 0.5, X, 0.0))
    with create_csr_store(tmp_path / "csr.zarr", 3, dtype="float64") as writer:
        writer.append(csr)
    model = fitted(csr)
    expected = pseudo_centres(model, csr)
    np.testing.assert_array_equal(pseudo_centres(model, tmp_path / "csr.zarr"), expected)
    np.testing.assert_array_equal(pseudo_centres(model.fit_model(csr), csr), expected)


def test_other_rows_and_weights_than_those_of_the_fit_are_one_sentence():
    X = groups(100)
    model = fitted(X)
    for rows, weights, sentence in (
        (X[:, :2], None, "2 features"),
        (X, np.ones(99), "sample_weight has 99 entries for 100 rows"),
    ):
        with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$"):
            pseudo_centres(model, rows, weights)
