"""Laws of k clusters by least squares: model, labels and objective agree, and few rows reach the best."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.graph.merge_tree import by_first
from mmcnb.least_squares.objective import (
    floor_bounds,
    mean_objective,
    size_bounds,
    smoother,
)
from mmcnb.least_squares.partition import (
    PartitionConfig,
    local_search,
)
from mmcnb.stores import create_dense_store


def blobs(n=900, k=3, total_variance=0.6):
    rng = np.random.default_rng(0)
    centres = rng.uniform(-4, 4, (k, 4))
    labels = np.arange(n) % k
    return (centres[labels] + total_variance * rng.standard_normal((n, 4))).astype(
        np.float32
    ), labels


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3))


def rls(n_clusters=3, **parameters):
    settings = {
        "n_init": 2,
        "sample_size": 200,
        "n_landmarks": 40,
        "random_state": 0,
    } | parameters
    return mmcnb.UnsupervisedRLS(n_clusters, **settings)


def whole(X, n_clusters, **parameters):
    """A fit whose sample is all rows, each of them a landmark."""
    return rls(
        n_clusters, **{"sample_size": len(X), "n_landmarks": len(X)} | parameters
    ).fit(X)


def smoother_of(X, model):
    return smoother(kernel_matrix(X, Kernel("rbf", model.gamma_)), model.alpha * len(X))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_clusters_are_found_and_numbered_by_their_first_row(k):
    X, y = blobs(k=k)
    labels = rls(k).fit(X).labels_
    assert adjusted_rand_score(y, labels) > 0.95
    np.testing.assert_array_equal(labels, by_first(labels))


@pytest.mark.parametrize(
    "parameters",
    [
        {"sample_size": 200},
        {"cluster_sizes": None},
        {"n_clusters": 2},
        {"kernel": "linear", "max_passes": 1},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_sizes_and_objectives_are_those_of_the_model(parameters, weighted):
    X, _ = blobs(total_variance=1.5)
    weights = np.random.default_rng(0).integers(1, 4, 900) if weighted else np.ones(900)
    model = rls(**{"sample_size": 900} | parameters).fit(X, sample_weight=weights)
    labels = model.labels_
    k = model.n_clusters
    n = weights.sum()
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_array_equal(labels, model.decision_function(X).argmax(axis=1))
    z = model.transform(X)
    if model.sample_size == 900:
        np.testing.assert_allclose(weights @ z / n, 0, atol=1e-6)
        assert 0 < model.objective_ <= k - 1
    S = np.array([weights[labels == h] @ z[labels == h] for h in range(k)])
    sizes = np.bincount(labels, weights)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    J = ((S**2).sum(axis=1) / n / sizes).sum()
    Q = k * n - 4 * (S**2).sum() / n + (4 - k) * (S.sum(axis=0) ** 2).sum() / n
    assert model.objective_ == pytest.approx(J, rel=1e-6)
    assert model.report_["one_against_all_objective"] == pytest.approx(Q, rel=1e-6)
    if parameters == {"cluster_sizes": None} and model.converged_:
        means = S / sizes[:, None]
        nearest = ((z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        assert np.mean(labels == nearest) > 0.999


@pytest.mark.parametrize("cluster_sizes", [None, "equal", [0.5, 0.3, 0.2]])
def test_no_pass_lowers_the_objective_and_the_last_changes_few_labels(cluster_sizes):
    X = make_moons(1500, noise=0.1, random_state=0)[0]
    settings = {"max_passes": 8, "sample_size": 60, "n_landmarks": 30, "alpha": 1e-4}
    model = rls(3, cluster_sizes=cluster_sizes, **settings).fit(X)
    passes = model.history_[model.history_["stage"] == "all rows"]
    few = passes["changed"] <= 0.01 * len(X)
    assert len(passes) > 1
    assert not few.iloc[:-1].any()
    assert few.iloc[-1] == model.converged_
    # Labels that break the bounds of the sizes may be better than those that keep them.
    assert (
        np.diff(passes["objective"]) >= (-1e-9 if cluster_sizes is None else -0.02)
    ).all()


@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
def test_sizes_are_held_in_whatever_order_they_are_given(shares):
    X, _ = blobs(2000)
    one, other = (
        rls(cluster_sizes=sizes, sample_size=1000).fit(X)
        for sizes in (shares, shares[::-1])
    )
    assert np.sort(one.cluster_sizes_ / 2000) == pytest.approx(np.sort(shares), rel=0.2)
    np.testing.assert_array_equal(one.labels_, other.labels_)


# -- a sample of all rows --------------------------------------------------------------

SIZES = {
    "free": (2, {}),
    "two shares": (2, {"cluster_sizes": [0.7, 0.3]}),
    "equal": (3, {}),
    "exactly equal": (4, {"size_tolerance": 0.0}),
    "three shares": (3, {"cluster_sizes": [0.5, 0.3, 0.2]}),
}


@pytest.mark.parametrize("case", SIZES)
def test_where_the_sample_is_all_rows_the_labels_are_those_of_the_search(case):
    """Single moves end where no step by means changes a label, so that passes leave the labels alone."""
    (k, parameters), X = SIZES[case], noise(120)
    model = whole(X, k, n_init=3, **parameters)
    R = smoother_of(X, model)
    objective = mean_objective(R, model.labels_.astype(int), k)
    assert model.report_["sample_objective"] == pytest.approx(objective, rel=1e-12)
    # kernel values of the model are float32
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.history_["changed"].iloc[-1] == 0
    searched = local_search(
        R, PartitionConfig(k, n_init=3, **parameters), np.random.RandomState(0)
    )
    assert objective > 0.97 * searched[0].objective


@pytest.mark.parametrize(("n", "k"), [(10, 2), (9, 3)])
@pytest.mark.parametrize("seed", range(2))
def test_a_few_rows_reach_the_best_of_all_labelings(n, k, seed):
    X = noise(n, seed)
    model = whole(X, k, n_init=12, alpha=0.01, random_state=seed)
    R = smoother_of(X, model)
    low, high = (
        floor_bounds(n, 2, 0.5) if k == 2 else size_bounds(n, np.full(k, 1 / k), 0.1)
    )
    best = 0.0
    for rest in itertools.product(range(k), repeat=n - 1):
        labels = np.array([0, *rest])
        sizes = np.bincount(labels, minlength=k)
        if ((low <= sizes) & (sizes <= high)).all():
            best = max(best, mean_objective(R, labels, k))
    assert mean_objective(R, model.labels_.astype(int), k) == pytest.approx(
        best, rel=1e-6
    )


# -- storages and files ----------------------------------------------------------------


def test_dense_and_csr_rows_agree():
    X, _ = blobs()
    X = np.where(X > 0, X, 0)
    dense = rls().fit(X)
    sparse = rls().fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.999


def test_few_reads_and_none_of_a_fit_that_its_checkpoint_has_seen(tmp_path):
    X, _ = blobs(9000)
    with create_dense_store(tmp_path / "rows.zarr", 4) as writer:
        writer.append(X)
    settings = {
        "cluster_sizes": np.array([0.4, 0.3, 0.3]),
        "checkpoint": tmp_path / "run",
    }
    first, second = (rls(**settings).fit(tmp_path / "rows.zarr") for _ in range(2))
    last = first.history_.iloc[-1]
    assert last["reads"] + last["sweeps"] <= 4  # the sample, and a pass each
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert second.history_["reads"].max() == 0
    with pytest.raises(
        InputError, match=r"cluster_sizes is \[0.4, 0.3, 0.3\] there and 'auto' here"
    ):
        rls(checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
