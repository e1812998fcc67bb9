"""Laws of two clusters by evolution: objective, balance, model and labels agree."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import make_circles

from mmcnb import EvolutionaryMMC
from mmcnb.errors import ClusterWarning
from tests import reference
from tests.estimators.conftest import make_blobs, make_sparse, same_clusters

FORMS = {"exact": {}, "landmarks": {"n_landmarks": 25}}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def evolutionary(**parameters):
    settings = {"gamma": 0.2, "n_init": 4, "random_state": 0, "n_jobs": 1}
    return EvolutionaryMMC(**settings | parameters)


def centred_kernel(X, gamma, shares=None, centre=True):
    K = reference.rbf_kernel_block(X, X, gamma)
    if not centre:
        return K
    H = np.eye(len(X)) - (np.full(len(X), 1 / len(X)) if shares is None else shares)
    return H @ K @ H.T


def naive_loss(K, y, alpha, weights=None):
    """The minimum that F is by definition, solved anew; the model's values on the rows."""
    w = np.ones(len(y)) if weights is None else weights * len(y) / weights.sum()
    duals = np.linalg.solve(w[:, None] * K + alpha * len(y) * np.eye(len(y)), w * y)
    f = K @ duals
    return (w @ (y - f) ** 2 + alpha * len(y) * duals @ f) / len(y), f


def signs_of(labels):
    return np.where(labels == 1, 1.0, -1.0)


@pytest.mark.parametrize(
    ("parameters", "weighted"),
    [
        ({"alpha": 1e-3}, False),
        ({"alpha": 0.1, "centre": False}, False),
        ({"alpha": 0.1}, True),
        ({"alpha": 0.1, "n_landmarks": 90}, False),
        ({"alpha": 0.1, "n_landmarks": 90}, True),
        ({"alpha": 0.1, "n_landmarks": 90, "centre": False}, True),
    ],
)
def test_the_objective_and_the_model_are_those_of_ridge_regression(
    parameters, weighted
):
    X = make_blobs(90, gap=5.0)
    weights = np.random.default_rng(1).integers(1, 4, 90) if weighted else None
    model = evolutionary(balance=0.5, **parameters).fit(X, sample_weight=weights)
    assert model.report_["agreement"] == 1.0  # so that the labels are the evolved ones
    shares = None if weights is None else weights / weights.sum()
    K = centred_kernel(X, 0.2, shares, parameters.get("centre", True))
    F, f = naive_loss(K, signs_of(model.labels_), parameters["alpha"], weights)
    tolerance = 1e-4 if "n_landmarks" in parameters else 1e-9
    assert model.objective_ == pytest.approx(F, abs=tolerance)
    np.testing.assert_allclose(model.decision_function(X), f, atol=tolerance)
    np.testing.assert_array_equal(model.labels_, f >= 0)
    assert model.labels_[0] == 0


def test_curved_clusters_are_found():
    X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    assert same_clusters(
        EvolutionaryMMC(gamma="mean", random_state=0).fit(X).labels_, y
    )


@pytest.mark.parametrize(
    ("form", "balance", "n"),
    [
        ("exact", 0.0, 60),
        ("landmarks", 0.0, 61),
        ("exact", 0.05, 61),
        ("landmarks", 0.5, 60),
    ],
)
def test_evolved_labels_keep_the_balance(form, balance, n):
    X = make_blobs(n, gap=8.0)  # 60 : 40
    report = evolutionary(alpha=0.1, balance=balance, **FORMS[form]).fit(X).report_
    small, large = sorted(report["evolved_sizes"])
    assert small + large == n
    assert large - small <= max(int(balance * n), n % 2)
    # The model follows the clusters, not the bound, and the report says so.
    assert (report["agreement"] == 1.0) == (balance == 0.5)
    assert any("raise balance" in sentence for sentence in report["warnings"]) == (
        balance != 0.5
    )


@forms
def test_the_best_of_a_start_never_rises_and_the_lowest_wins(form):
    model = evolutionary(**form).fit(make_blobs(120, gap=1.0))
    history = model.history_
    assert {"stage", "start", "generation", "objective", "reads", "seconds"} <= set(
        history.columns
    )
    starts = [part for _, part in history.groupby("start")]
    assert len(starts) == 4
    for part in starts:
        assert (np.diff(part["generation"]) > 0).all()
        assert (np.diff(part["objective"]) <= 0).all()
    assert model.objective_ == pytest.approx(history["objective"].min(), abs=1e-9)
    assert model.report_["evolutions_at_best"] >= 1


@pytest.mark.parametrize(("n", "seed"), [(7, 0), (8, 1), (10, 0)])
def test_a_few_rows_reach_the_lowest_of_all_labelings(n, seed):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    alpha = 0.05
    K = centred_kernel(X, 0.5)
    limit = max(int(0.3 * n), n % 2)
    every = (
        np.array([1.0, *rest]) for rest in itertools.product((-1, 1), repeat=n - 1)
    )
    lowest = min(naive_loss(K, y, alpha)[0] for y in every if abs(y.sum()) <= limit)
    model = evolutionary(gamma=0.5, alpha=alpha, balance=0.3, n_init=20).fit(X)
    assert model.objective_ == pytest.approx(lowest, abs=1e-9)


@forms
def test_dense_and_csr_rows_agree(form):
    csr = make_sparse(800)
    parameters = {"gamma": "median", "sample_size": 150} | form
    sparse = evolutionary(**parameters).fit(csr)
    dense = evolutionary(**parameters).fit(csr.toarray())
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.998


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@forms
def test_other_kernels_divide_plain_blobs(form, kernel):
    X = make_blobs(100, gap=8.0)
    model = evolutionary(
        kernel=kernel, gamma="auto", degree=1, balance=0.5, **form
    ).fit(X)
    assert same_clusters(model.labels_, X[:, 0] > 0)


def test_automatic_width_is_a_share_of_the_mean_distance():
    X = make_blobs(60)
    squared = ((X[:, None] - X) ** 2).sum(axis=2).mean()
    assert evolutionary(gamma="auto").fit(X).gamma_ == pytest.approx(
        1 / (2 * 0.55**2 * squared)
    )


def test_too_few_generations_are_said():
    model = evolutionary(max_generations=3).fit(make_blobs(60))
    assert not model.converged_
    assert any(
        "max_generations=3" in sentence for sentence in model.report_["warnings"]
    )
    assert evolutionary().fit(make_blobs(60)).converged_


def test_an_evolution_that_finds_one_cluster_says_so():
    with pytest.warns(
        ClusterWarning, match=r"puts all rows of the sample into one cluster; [^\n]*\.$"
    ):
        model = EvolutionaryMMC(gamma=1e-100, n_init=1, random_state=0).fit(
            make_blobs(100)
        )
    assert model.report_["warnings"]
