"""LabelGenerationMMC: two clusters by a mixture of generated labellings."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb.estimators import label_generation_mmc
from mmcnb.relaxations.sdp import solve_svm
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import same_clusters


@pytest.fixture(scope="module")
def X():
    return make_blobs(60, centers=2, cluster_std=2.0, random_state=3)[0]


def gram_of(model, weights=None):
    """The centred kernel matrix of the rows of the fit."""
    basis = model.model_.basis
    K = model.model_.kernel(basis, basis)
    n = len(basis)
    H = np.eye(n) - (np.full(n, 1 / n) if weights is None else weights / weights.sum())
    return H @ K @ H.T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_objective_is_that_of_the_model(X, kernel, weighted):
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    model = mmcnb.baselines.LabelGenerationMMC(kernel=kernel, C=0.5, gamma=0.05).fit(X, sample_weight=weights)
    assert model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.labels_[0] == 0
    f, coef = model.decision_function(X), model.model_.rule.coef
    norm2 = coef @ gram_of(model, weights) @ coef
    loss = np.maximum(0, 1 - np.abs(f)) @ (np.ones(len(X)) if weights is None else weights)
    assert model.objective_ == pytest.approx(0.5 * norm2 + 0.5 * loss, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_mixture_bounds_what_labels_reach(X, C):
    model = mmcnb.baselines.LabelGenerationMMC(C=C).fit(X)
    report, bounds = model.report_, np.full(len(X), C)
    assert report["threshold_moved"] == 0
    assert report["bound"] <= report["relaxed"] * (1 + 1e-4)
    assert report["relaxed"] <= model.objective_ <= report["rounded"] * (1 + 1e-9)
    assert report["rounded"] <= report["of_mixture"]
    assert (report["labels_of"] == "mixture") == (report["rounded"] == report["of_mixture"])
    gram, rng = gram_of(model), np.random.default_rng(0)
    k_means = mmcnb.baselines.IterativeSVR(C=C, loss="hinge", random_state=0).fit(X).labels_
    for labels in (model.labels_, k_means, rng.permutation(np.arange(len(X)) % 2)):
        assert report["bound"] <= solve_svm(gram, 2 * labels - 1, bounds)[1]


def test_its_bound_is_closer_than_the_semidefinite_one(X):
    one, other = mmcnb.baselines.LabelGenerationMMC(tol=1e-4).fit(X), mmcnb.baselines.SDPMMC().fit(X)
    assert one.report_["relaxed"] >= other.report_["relaxed"] * (1 - 1e-6)


@pytest.mark.parametrize(
    ("rows", "gamma"),
    [(make_circles(120, factor=0.4, noise=0.05, random_state=0), "auto"),
     (make_moons(120, noise=0.05, random_state=0), 8.0)],
)  # fmt: skip
def test_curved_groups_are_found(rows, gamma):
    X, y = rows
    model = mmcnb.baselines.LabelGenerationMMC(gamma=gamma).fit(X)
    np.testing.assert_array_equal(model.labels_, y != y[0])


def test_tight_groups_are_found_exactly():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [22, 18]))
    X = 9.0 * y[:, None] + 0.01 * rng.standard_normal((40, 3))
    model = mmcnb.baselines.LabelGenerationMMC().fit(X)
    assert same_clusters(model.labels_, y)
    assert model.objective_ == pytest.approx(model.report_["relaxed"], rel=1e-2)


@pytest.mark.parametrize("balance", [0.0, 0.2, 0.8])
def test_both_clusters_hold_their_least_share(balance):
    X = np.random.default_rng(1).standard_normal((41, 3)) ** 3
    model = mmcnb.baselines.LabelGenerationMMC(balance=balance).fit(X)
    assert np.bincount(model.labels_, minlength=2).min() >= (1 - balance) / 2 * 41 - 1


def test_the_order_of_the_rows_does_not_matter():
    X, _ = make_circles(60, factor=0.4, noise=0.05, random_state=1)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (
        mmcnb.baselines.LabelGenerationMMC().fit(X),
        mmcnb.baselines.LabelGenerationMMC().fit(X[order]),
    )
    assert same_clusters(one.labels_[order], other.labels_)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-5)
    assert other.report_["relaxed"] == pytest.approx(one.report_["relaxed"], rel=1e-2)


def test_the_history_falls_to_the_bound(X):
    model = mmcnb.baselines.LabelGenerationMMC(tol=1e-3).fit(X)
    history, report = model.history_, model.report_
    assert (history["objective"].diff().dropna() <= 1e-5 * report["relaxed"]).all()
    assert (history["bound"] <= history["objective"] * (1 + 1e-5)).all()
    assert model.n_iter_ == len(history) > 1
    last = history.iloc[-1]
    assert (last["objective"], last["bound"]) == (report["relaxed"], report["bound"])
    assert last["labellings"] == report["labellings"] >= report["weighted_labellings"] > 1
    assert last["objective"] - last["bound"] <= 1e-3 * last["objective"]


def test_storages_threads_and_forms_agree(X, tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", X.shape[1], dtype="float64", chunk_rows=17) as writer:
        writer.append(X)
    expected = mmcnb.baselines.LabelGenerationMMC(n_jobs=1).fit(X)
    stored = mmcnb.baselines.LabelGenerationMMC(n_jobs=2).fit(tmp_path / "rows.zarr")
    np.testing.assert_array_equal(stored.decision_function(X), expected.decision_function(X))
    sparse = mmcnb.baselines.LabelGenerationMMC().fit(scipy.sparse.csr_array(X))
    np.testing.assert_array_equal(sparse.labels_, expected.labels_)


def test_scaled_columns_and_a_file(X, tmp_path):
    model = mmcnb.baselines.LabelGenerationMMC(scale="standard").fit(X * [1.0, 1e6])
    again = mmcnb.baselines.LabelGenerationMMC(scale="standard").fit(X)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    model.save(tmp_path / "labels.model")
    loaded = mmcnb.load(tmp_path / "labels.model")
    np.testing.assert_array_equal(loaded.predict(X * [1.0, 1e6]), model.labels_)
    assert (loaded.report_, loaded.n_iter_) == (model.report_, model.n_iter_)


def test_more_rows_than_the_bound_are_refused():
    X = np.zeros((label_generation_mmc.MOST_ROWS + 1, 2))
    sentence = r"^there are 1,001 rows.*cube of that; give at most 1,000, or use SparseKernelMMC\.$"
    with pytest.raises(ValueError, match=sentence):
        mmcnb.baselines.LabelGenerationMMC().fit(X)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": 0}, "C=0 is out of range"),
        ({"balance": 1.0}, "balance=1.0 is out of range"),
        ({"kernel": "sigmoid"}, "kernel='sigmoid'"),
        ({"gamma": -1.0}, "gamma=-1.0 is out of range"),
        ({"degree": 0}, "degree=0 is out of range"),
        ({"tol": 0.0}, "tol=0.0 is out of range"),
        ({"max_iter": 0}, "max_iter=0 is out of range"),
    ],
)
def test_bad_parameters_are_one_sentence(X, changes, sentence):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
        mmcnb.baselines.LabelGenerationMMC(**changes).fit(X)
    assert sentence in str(refused.value)


def test_a_mixture_that_stops_early_is_said(X, monkeypatch):
    monkeypatch.setattr("mmcnb.relaxations.label_generation.MOST_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"^rounding errors ended the label generation"):
        model = mmcnb.baselines.LabelGenerationMMC(max_iter=500).fit(X)
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_rounds_that_end_early_are_said(X):
    with pytest.warns(ConvergenceWarning, match=r"after max_iter=1; raise it\.$"):
        model = mmcnb.baselines.LabelGenerationMMC(max_iter=1).fit(X)
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
