"""IterativeSVR: a machine trained on its own labels."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

import mmcnb
from mmcnb.features.rules import balanced_threshold
from mmcnb.stores import create_dense_store


def make(**parameters):
    return mmcnb.baselines.IterativeSVR(**{"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def X():
    return make_blobs(120, centers=2, cluster_std=2.0, random_state=3)[0]


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "hinge"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_labels_are_a_fixpoint_of_the_machine(X, loss, kernel):
    """Trained on the labels that it ended with, scikit-learn's machine gives them back."""
    model = make(loss=loss, kernel=kernel, gamma=0.1).fit(X)
    assert model.converged_
    y = 2 * model.labels_ - 1
    shared = {"kernel": kernel, "gamma": 0.1, "coef0": 1.0}
    machine = SVC(**shared) if loss == "hinge" else SVR(epsilon=0.0, **shared)
    machine.fit(X, y)
    f = machine.decision_function(X) if loss == "hinge" else machine.predict(X)
    threshold = balanced_threshold(f, np.full(len(X), 1 / len(X)), 0.4)
    np.testing.assert_allclose(model.decision_function(X), f - threshold, atol=1e-6 + 1e-3 * np.ptp(f))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.labels_[0] == 0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "hinge"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_the_model(X, loss, weighted):
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    model = make(loss=loss, C=0.5, epsilon=0.1).fit(X, sample_weight=weights)
    plane, basis = model.model_.rule, model.model_.basis
    norm2 = plane.coef @ model.model_.kernel(basis, basis) @ plane.coef
    margin = 1 - np.abs(model.decision_function(X))
    losses = np.maximum(0, margin) if loss == "hinge" else np.maximum(0, np.abs(margin) - 0.1)
    total = losses.sum() if weights is None else weights @ losses
    assert model.objective_ == pytest.approx(0.5 * norm2 + 0.5 * total, rel=1e-6)


@pytest.mark.parametrize("balance", [0.0, 0.2, 0.8])
def test_both_clusters_hold_their_least_share(balance):
    X = np.random.default_rng(1).standard_normal((101, 3)) ** 3
    for init in ("k-means", "random"):
        model = make(balance=balance, init=init).fit(X)
        assert np.bincount(model.labels_, minlength=2).min() >= (1 - balance) / 2 * 101 - 1


def test_a_threshold_lies_between_values_and_zero_is_kept_where_it_serves():
    shares = np.full(5, 0.2)
    assert balanced_threshold(np.array([-2.0, -1, 1, 2, 3]), shares, 0.4) == 0.0
    assert balanced_threshold(np.array([1.0, 2, 3, 4, 5]), shares, 0.4) == 2.5
    assert balanced_threshold(-np.array([1.0, 2, 3, 4, 5]), shares, 0.4) == -2.5
    assert balanced_threshold(np.ones(5), shares, 0.4) == 0.0
    assert balanced_threshold(np.array([1.0, 1, 1, 1, 3]), shares, 0.0) == 2.0  # as far as equal values allow


def test_storages_threads_and_forms_agree(X, tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", X.shape[1], dtype="float64", chunk_rows=17) as writer:
        writer.append(X)
    expected = make(n_jobs=1).fit(X)
    stored = make(n_jobs=2).fit(tmp_path / "rows.zarr")
    np.testing.assert_array_equal(stored.decision_function(X), expected.decision_function(X))
    sparse = make().fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.decision_function(X), expected.decision_function(X), atol=1e-3)


def test_a_sample_labels_the_rest_and_the_model_is_kept_in_a_file(tmp_path):
    X, y = make_blobs(3000, centers=2, cluster_std=0.5, random_state=0)
    model = make(sample_size=200).fit(X)
    assert (model.labels_ == (y != y[0])).all()
    assert model.model_.basis.shape[0] <= 200
    model.save(tmp_path / "svr.model")
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "svr.model").predict(X), model.labels_)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": 0}, "C=0 is out of range"),
        ({"epsilon": 1.0}, "epsilon=1.0 is out of range"),
        ({"balance": 1.0}, "balance=1.0 is out of range"),
        ({"loss": "square"}, "loss='square'"),
        ({"init": "near"}, "init='near'"),
        ({"max_rounds": 0}, "max_rounds=0 is out of range"),
    ],
)
def test_bad_parameters_are_one_sentence(X, changes, sentence):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
        make(**changes).fit(X)
    assert sentence in str(refused.value)


def test_rows_that_stop_too_early_are_said(X):
    with pytest.warns(ConvergenceWarning, match=r"after max_rounds=1 rounds; raise it\.$"):
        model = make(init="random", max_rounds=1).fit(X)
    assert not model.converged_
