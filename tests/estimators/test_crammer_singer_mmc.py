"""Laws of more than two clusters in the hinge form: model, labels and objective agree."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import ClusterWarning


def blobs(n=900, k=3, seed=0, total_variance=0.6):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-4, 4, (k, 4))
    labels = np.arange(n) % k
    return (centres[labels] + total_variance * rng.standard_normal((n, 4))).astype(
        np.float32
    ), labels


def hinge(n_clusters=3, **parameters):
    settings = {
        "n_init": 1,
        "sample_size": 200,
        "n_landmarks": 40,
        "random_state": 0,
    } | parameters
    return mmcnb.CrammerSingerMMC(n_clusters, **settings)


def norm2_of(model):
    """|W|² from the coefficients of the model."""
    coef = model.model_.rule.coef
    basis = model.model_.basis.astype(float)
    return float(np.trace(coef.T @ model.model_.kernel(basis, basis) @ coef))


def objective_of(model, X, weights=None):
    f = model.decision_function(X)
    ranked = np.sort(f, axis=1)
    hinges = np.maximum(0, model.rho_ - (ranked[:, -1] - ranked[:, -2]))
    C = model.report_["C"]
    return norm2_of(model) / 2 - model.rho_ + C * np.average(hinges, weights=weights)


@pytest.mark.parametrize("k", [3, 6])
def test_clusters_are_found_and_numbered_by_their_first_row(k):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(900) % k)
    X = np.eye(6)[y] + 0.1 * rng.standard_normal((900, 6))
    model = hinge(k, sample_size=900).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    assert model.labels_.dtype == np.int32
    assert model.converged_
    assert model.report_["clusters_found"]
    assert model.report_["w_norm"] > model.report_["w_norm_random"]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sample_size": 900},
        {"spread": 2.0},
        {"kernel": "poly", "degree": 2},
        {"scale": "standard"},
        {"C": 1.5},
        {"C": 3.0, "continuation": False},
        {"cluster_sizes": [0.5, 0.3, 0.2]},
        {"gamma": 0.3, "eta": 0.1, "max_rounds": 1},
    ],
)
def test_labels_sizes_and_objective_are_those_of_the_model(parameters):
    X, _ = blobs(total_variance=parameters.pop("spread", 0.6))
    model = hinge(**parameters).fit(X)
    f = model.decision_function(X)
    assert f.shape == (900, 3)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, f.argmax(axis=1))
    np.testing.assert_array_equal(
        model.report_["sizes"], np.bincount(model.labels_, minlength=3)
    )
    assert model.report_["w_norm"] ** 2 == pytest.approx(norm2_of(model), rel=1e-4)
    # Kernel values in float32: rho and the mean slack nearly cancel.
    assert model.objective_ == pytest.approx(
        objective_of(model, X), rel=1e-3, abs=1e-5 * model.rho_
    )


def test_the_gap_at_the_end_is_at_most_eta():
    X, _ = blobs(total_variance=1.5)
    for eta in (0.1, 0.01):
        model = hinge(eta=eta).fit(X)
        assert model.report_["gap"] <= eta * (1 + 1e-6)


def test_labels_are_near_those_of_least_squares():
    X, y = blobs(1500, 5, total_variance=1.2)
    settings = {"sample_size": 1000, "n_landmarks": 100, "random_state": 0}
    hinge_labels = mmcnb.CrammerSingerMMC(5, **settings).fit(X).labels_
    least_squares_labels = mmcnb.UnsupervisedRLS(5, **settings).fit(X).labels_
    assert adjusted_rand_score(hinge_labels, least_squares_labels) > 0.9
    assert (
        adjusted_rand_score(y, hinge_labels)
        > adjusted_rand_score(y, least_squares_labels) - 0.02
    )


@pytest.mark.parametrize("shares", ["equal", [0.5, 0.3, 0.2]])
def test_sizes_are_held(shares):
    X, _ = blobs(2000, total_variance=1.5)
    sizes = hinge(cluster_sizes=shares, sample_size=1000).fit(X).report_["sizes"]
    wanted = [1 / 3] * 3 if shares == "equal" else shares
    assert np.sort(np.array(sizes) / 2000) == pytest.approx(np.sort(wanted), rel=0.2)


def test_the_best_of_the_partitions_is_told():
    X, _ = blobs(total_variance=2.0)
    model = hinge(sample_size=900, max_rounds=5).fit(X)
    partitions = model.history_[model.history_["stage"] == "least squares"]
    assert model.report_["sample_objective"] == partitions["J"].max()
    assert partitions["start"].nunique() > 1


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_dense_and_csr_rows_agree(kernel):
    X, _ = blobs()
    X = np.where(X > 0, X, 0)
    dense = hinge(kernel=kernel).fit(X)
    sparse = hinge(kernel=kernel).fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(
        dense.objective_, rel=1e-3, abs=1e-5 * dense.rho_
    )
    assert np.mean(sparse.labels_ == dense.labels_) > 0.99


@pytest.mark.parametrize("n", [3000, pytest.param(140_000, marks=pytest.mark.slow)])
def test_the_objective_of_weighted_rows_and_of_a_larger_sample(n):
    X, y = blobs(n, total_variance=1.0)
    weights = np.random.default_rng(0).integers(0, 4, n).astype(float)
    model = hinge().fit(X, sample_weight=weights)
    sizes = np.bincount(model.labels_, weights, 3)
    np.testing.assert_allclose(model.report_["sizes"], sizes)
    expected = objective_of(model, X, weights)
    assert model.objective_ == pytest.approx(expected, rel=1e-3, abs=1e-5 * model.rho_)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert ("larger sample" in set(model.history_["stage"])) == (n == 140_000)


def test_one_cluster_holds_all_rows():
    with pytest.warns(ClusterWarning, match="no clusters found"):
        model = hinge(1).fit(blobs(100)[0])
    assert not model.labels_.any()
    assert model.objective_ == pytest.approx(0, abs=1e-6)


def test_labels_without_a_margin_end_at_a_lower_C():
    X = np.random.default_rng(0).standard_normal((400, 1))
    model = hinge(3, C=1000.0, kernel="linear", sample_size=400).fit(X)
    assert model.report_["C"] < 1000
    assert model.objective_ == pytest.approx(
        objective_of(model, X), rel=1e-3, abs=1e-5 * model.rho_
    )
