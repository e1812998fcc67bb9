"""Kernel k-means: k-means itself, the inertia of the kernel matrix, weights, extremes."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import ClusterWarning
from mmcnb.features.kernel import Kernel
from mmcnb.graph.merge_tree import by_first


def groups(n, k=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.uniform(-4, 4, (k, d))[y] + rng.standard_normal((n, d)), y


def whole(X, n_clusters, **parameters):
    """A fit whose sample is all rows, each of them a landmark."""
    settings = {
        "sample_size": len(X),
        "n_landmarks": len(X),
        "tol": 0,
        "random_state": 0,
    } | parameters
    return mmcnb.KernelKMeans(n_clusters, **settings).fit(X)


@pytest.mark.parametrize("seed", range(2))
def test_a_linear_kernel_ends_where_k_means_stands_still(seed):
    X, _ = groups(2000, seed=seed)
    model = mmcnb.KernelKMeans(
        5, kernel="linear", tol=0, sample_size=500, random_state=seed
    ).fit(X)
    means = np.array([X[model.labels_ == h].mean(axis=0) for h in range(5)])
    plain = KMeans(5, init=means, n_init=1, tol=0, algorithm="lloyd").fit(X)
    assert model.converged_
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-5)
    np.testing.assert_array_equal(model.labels_, by_first(plain.labels_))
    np.testing.assert_allclose(
        model.transform(X)[:, plain.predict(means)], plain.transform(X), rtol=1e-3
    )
    np.testing.assert_array_equal(
        model.labels_[model.transform(X).argmin(axis=0)], np.arange(5)
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_at_every_row_a_landmark_the_inertia_is_that_of_the_kernel_matrix(weighted):
    X, _ = groups(200)
    omega = (
        np.random.default_rng(0).integers(1, 4, 200).astype(float)
        if weighted
        else np.ones(200)
    )
    model = mmcnb.KernelKMeans(6, n_landmarks=200, tol=0, random_state=0).fit(
        X, sample_weight=omega
    )
    K = Kernel("rbf", model.gamma_)(X, X)
    inertia = 0.0
    for h in range(6):
        own = np.where(model.labels_ == h, omega, 0.0)
        assert model.cluster_sizes_[h] == own.sum()
        inertia += own @ np.diag(K) - own @ K @ own / own.sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-4)
    assert model.objective_ == model.inertia_


@pytest.mark.parametrize(
    "parameters",
    [{}, {"scale": "standard", "kernel": "poly", "degree": 2, "gamma": 0.1}],
)
def test_labels_are_predictions_numbered_by_first_row_and_the_inertia_falls(parameters):
    X, _ = groups(6000)
    settings = {
        "n_init": 2,
        "sample_size": 300,
        "n_landmarks": 12,
        "tol": 0,
        "random_state": 0,
    }
    model = mmcnb.KernelKMeans(4, **settings, **parameters).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, by_first(model.labels_))
    np.testing.assert_array_equal(
        model.labels_, model.decision_function(X).argmax(axis=1)
    )
    np.testing.assert_array_equal(np.bincount(model.labels_), model.cluster_sizes_)
    passes = model.history_[model.history_["stage"] == "all rows"]
    assert len(passes) == model.n_iter_ > 1
    assert (np.diff(passes["inertia"]) <= 0).all()
    assert passes["inertia"].iloc[-1] == model.inertia_
    if model.converged_:
        assert (model.transform(X).min(axis=1) ** 2).sum() == pytest.approx(
            model.inertia_, rel=1e-5
        )
    starts = model.history_[model.history_["stage"] == "sample"]
    assert model.report_["sample_inertia"] == starts["inertia"].min()
    assert len(starts) == 2


def test_a_ring_around_a_group_is_told_from_it_where_k_means_cuts_both():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 600)
    y = rng.integers(2, size=600)
    X = np.c_[np.cos(angle), np.sin(angle)] * np.where(y == 1, 3.0, 0.3)[:, None]
    X += 0.1 * rng.standard_normal((600, 2))
    model = mmcnb.KernelKMeans(2, gamma=0.5, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert (
        adjusted_rand_score(y, KMeans(2, n_init=4, random_state=0).fit(X).labels_) < 0.5
    )


def test_one_cluster_and_as_many_as_rows():
    X, _ = groups(30)
    one = whole(X, 1)
    assert one.cluster_sizes_.tolist() == [30]
    assert one.inertia_ == pytest.approx(
        30 - Kernel("rbf", one.gamma_)(X, X).mean() * 30, rel=1e-4
    )
    every = whole(X, 30)
    assert every.inertia_ == pytest.approx(0, abs=1e-4)
    np.testing.assert_array_equal(every.labels_, np.arange(30))


def test_a_cluster_that_ends_empty_is_told(monkeypatch):
    X, _ = groups(300)

    def far(z, k, **_):
        return np.r_[z[:2], np.full((1, z.shape[1]), 99.0)], None

    # Internal: starts are rows, so that hardly any data end with an empty cluster.
    monkeypatch.setattr("sklearn.cluster.kmeans_plusplus", far)
    with pytest.warns(
        ClusterWarning, match="1 of the 3 clusters contain no row"
    ) as caught:
        model = mmcnb.KernelKMeans(3, n_landmarks=300, random_state=0).fit(X)
    assert caught[0].filename == __file__
    assert model.cluster_sizes_[2] == 0


def test_dense_and_csr_rows_agree():
    X = groups(2000, 4)[0].astype(np.float32)
    sparse = scipy.sparse.csr_array(np.where(X > 0.5, X, 0))
    settings = {
        "n_init": 2,
        "sample_size": 300,
        "n_landmarks": 12,
        "max_iter": 4,
        "random_state": 0,
    }
    one, other = (
        mmcnb.KernelKMeans(4, **settings).fit(rows)
        for rows in (sparse, sparse.toarray())
    )
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-5)
    assert np.mean(one.labels_ == other.labels_) > 0.999
