"""Two clusters in the hinge form: labels, objective, sizes and balance are those of the model."""

import numpy as np
import pytest

from mmcnb import SparseKernelMMC
from mmcnb.errors import ClusterWarning
from mmcnb.metrics import balanced_clustering_error
from tests import reference
from tests.estimators.conftest import (
    ESTIMATORS,
    make,
    make_blobs,
    make_rings,
    make_sparse,
)

KERNEL_ONES = ("SparseKernelMMC", "KernelCPMMC")
DATA = {
    "blobs": make_blobs(150),
    "overlapping": make_blobs(151, gap=1.5),
    "rings": make_rings(150),
    "sparse": make_sparse(150),
}
SETTINGS = {
    "default": {},
    "fixed": {"threshold": "fixed"},
    "fixed, C = 100": {"threshold": "fixed", "C": 100.0},
    "C = 2.5": {"C": 2.5},
    "no continuation": {"continuation": False, "C": 1.5},
    "scaled": {"scale": "standard"},
    "balance .02": {"balance": 0.02},
    "balance .2": {"balance": 0.2},
    "equal halves": {"min_share": 1.0},
    "loose": {"eta": 0.1, "max_rounds": 2},
}


def check(model, X, weights=None):
    f = model.decision_function(X)
    shares = np.full(len(f), 1 / len(f)) if weights is None else weights / weights.sum()
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, f >= 0)
    assert model.labels_[0] == 0
    assert model.labels_.dtype == np.int32
    assert set(model.labels_.tolist()) == {0, 1}
    norm2 = model.report_["w_norm"] ** 2
    y = np.where(f >= 0, 1, -1)
    # lower than C where the labels could not be separated there
    reached = model.report_["C"]
    again = reference.hinge_objective(
        f, y, norm2, model.rho_, reached, shares, model.threshold
    )
    assert model.objective_ == pytest.approx(again, rel=1e-9, abs=1e-12)
    total = len(f) if weights is None else weights.sum()
    sizes = (
        total * (shares @ (model.labels_ == 0)),
        total * (shares @ (model.labels_ == 1)),
    )
    np.testing.assert_allclose(model.report_["sizes"], sizes, atol=1e-5)


def in_turn(names, settings):
    """Each setting with every second data set, and each estimator in turn."""
    return [
        (names[(i + j) % len(names)], data, setting)
        for i, data in enumerate(DATA)
        for j, setting in enumerate(settings)
        if (i + j + j // 2) % 2 == 0
    ]


@pytest.mark.parametrize(("name", "data", "setting"), in_turn(ESTIMATORS, SETTINGS))
def test_labels_and_objective_are_those_of_the_model(name, data, setting):
    check(make(name, **SETTINGS[setting]).fit(DATA[data]), DATA[data])


@pytest.mark.parametrize(
    ("name", "data", "setting"),
    in_turn(
        ["SparseKernelMMC", "CPMMC"],
        ["default", "fixed", "equal halves", "balance .02"],
    ),
)
def test_the_same_where_the_last_steps_run_on_all_rows(name, data, setting):
    model = make(name, sample_size=100, **SETTINGS[setting]).fit(DATA[data])
    assert "all rows" in set(model.history_["stage"])
    check(model, DATA[data])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("SparseKernelMMC", {"kernel": "poly", "gamma": "auto", "degree": 2}),
        ("KernelCPMMC", {"kernel": "linear"}),
        ("SparseKernelMMC", {"basis": "paper", "C": 3.0, "eta": 0.1}),
    ],
)
def test_the_same_for_other_kernels_and_a_growing_basis(name, parameters):
    X = make_blobs(60)
    check(make(name, **parameters).fit(X), X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_with_weights(name):
    X = make_blobs(200, gap=2.0)
    weights = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    check(make(name).fit(X, sample_weight=weights), X, weights)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_on_more_rows_than_a_reduction_block(name):
    X = make_blobs(5000)
    if name == "KernelCPMMC":
        X = X[:1200]  # more than the rows it searches on exactly
    check(make(name).fit(X), X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_true_clusters_are_found(name):
    X = make_blobs(400, gap=8.0)
    model = make(name).fit(X)
    # Not each row: without a balance the mean decision value is 0, though one group is
    # larger.
    assert balanced_clustering_error(X[:, 0] > 0, model.labels_) < 0.05
    assert model.report_["clusters_found"]
    assert model.report_["w_norm"] > model.report_["w_norm_random"]
    assert model.converged_


@pytest.mark.parametrize("name", ESTIMATORS)
def test_smaller_cluster_holds_its_least_share(name):
    X = np.r_[make_blobs(290, gap=0.0), make_blobs(10, gap=0.0) + 15]
    for min_share in (0.1, 0.8):
        model = make(name, min_share=min_share, C=5.0).fit(X)
        assert min(np.bincount(model.labels_)) >= min_share / 2 * 300 - 1


@pytest.mark.parametrize("name", ESTIMATORS)
def test_mean_decision_value_is_within_the_balance(name):
    X = make_blobs(300)
    for balance in (0.0, 0.02):
        model = make(name, balance=balance, C=5.0).fit(X)
        if model.report_["quantile_steps"] == 0:
            assert abs(model.decision_function(X).mean()) <= balance * model.rho_ + 1e-6


@pytest.mark.parametrize("name", ESTIMATORS)
def test_history_never_rises_from_round_to_round(name):
    history = make(name).fit(make_blobs(300, gap=2.0)).history_
    assert {
        "stage",
        "C",
        "round",
        "objective",
        "primal",
        "norm",
        "rho",
        "seconds",
    } <= set(history.columns)
    assert (history["objective"] <= history["primal"] + 1e-9).all()
    for _, rows in history.groupby(["stage", "start", "C"], dropna=False):
        ends = rows.groupby("round").last()
        before = ends["primal"].to_numpy()[:-1]
        after = ends["objective"].to_numpy()[1:]
        assert (after <= before + 1e-7).all()


@pytest.mark.parametrize("name", KERNEL_ONES)
def test_a_partition_of_noise_is_said_to_be_unclean(name):
    X = np.random.default_rng(0).standard_normal((200, 20))
    model = make(name, gamma="auto", C=1.5).fit(X)
    check(model, X)
    assert model.report_["score"] > 0.06
    assert any("not clean" in sentence for sentence in model.report_["warnings"])


def test_rows_without_clusters_are_warned_of():
    # So narrow that all rows are as far from each other as can be: any labels do as
    # well.
    X = np.random.default_rng(0).standard_normal((60, 20))
    with pytest.warns(ClusterWarning, match="^no clusters found: "):
        model = make("KernelCPMMC", gamma=1e3, C=1.5).fit(X)
    assert not model.report_["clusters_found"]


def test_two_values_far_from_balance_stay_two_clusters_on_all_rows():
    X = np.repeat([[0.0], [1.0]], [2990, 10], axis=0)
    labels = SparseKernelMMC(random_state=0).fit(X).labels_
    assert np.array_equal(labels, X[:, 0])


def test_judges_that_disagree_are_heard(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 5))

    def only_the_narrowest_is_clean(labelings, *others):
        return np.r_[0.0, np.ones(len(labelings) - 1)]

    # Internal: rows on which the criteria select different values are rare.
    monkeypatch.setattr(
        "mmcnb.hinge.sample_search.leave_one_out_scores", only_the_narrowest_is_clean
    )
    with pytest.warns(
        ClusterWarning,
        match=r"^the criteria select different values of gamma: \|w\|² prefers [^\n]*\.$",
    ):
        model = SparseKernelMMC(random_state=0).fit(X)
    assert any(
        sentence.startswith("the criteria") for sentence in model.report_["warnings"]
    )
