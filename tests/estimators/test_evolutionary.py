"""Laws of two clusters by evolution: objective, balance, model and labels agree, wherever the rows live."""

import itertools
import re

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.datasets import make_circles

import mmcnb
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.estimators.evolutionary_mmc import EvolutionaryMMC
from mmcnb.least_squares.evolution import FeatureFitness, MatrixFitness
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


def facts(model):
    rule = model.model_.rule
    return model.labels_.tobytes(), rule.coef.tobytes(), rule.offset, model.objective_


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("gap", [2.0, 5.0])
def test_the_objective_and_the_model_are_those_of_ridge_regression(alpha, gap):
    X = make_blobs(90, gap=gap)
    model = evolutionary(alpha=alpha, balance=0.5).fit(X)
    assert model.report_["agreement"] == 1.0  # so that the labels are the evolved ones
    F, f = naive_loss(centred_kernel(X, 0.2), signs_of(model.labels_), alpha)
    assert model.objective_ == pytest.approx(F, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_forms_of_the_fitness_are_the_minimum_for_any_labels(weighted, centre):
    X, rng = make_blobs(40, gap=1.0), np.random.default_rng(1)
    weights = rng.uniform(0.2, 3, 40) if weighted else None
    y = np.where(rng.random(40) < 0.4, 1.0, -1.0)
    shares = None if weights is None else weights / weights.sum()
    F, f = naive_loss(centred_kernel(X, 0.2, shares, centre), y, 0.01, weights)
    K = reference.rbf_kernel_block(X, X, 0.2)
    values, vectors = np.linalg.eigh(K)
    exact = MatrixFitness(K.copy(), 0.01, weights, centre)
    features = FeatureFitness(K, vectors / np.sqrt(np.maximum(values, 1e-12)), 0.01, weights, centre)
    for fitness in (exact, features):
        assert fitness.value(y) == pytest.approx(F, abs=1e-6)
        np.testing.assert_allclose(fitness.decide(y), f, atol=1e-5)
        plane = fitness.hyperplane(y)
        np.testing.assert_allclose(K @ plane.coef + plane.offset, f, atol=1e-5)


def test_landmarks_of_all_rows_are_the_exact_form():
    X = make_blobs(80)
    exact, landmarks = evolutionary().fit(X), evolutionary(n_landmarks=80).fit(X)
    assert same_clusters(exact.labels_, landmarks.labels_)
    assert landmarks.objective_ == pytest.approx(exact.objective_, rel=1e-4)


def test_weights_in_the_fitness_are_rows_repeated():
    X = make_blobs(30)
    weights = np.random.default_rng(0).integers(1, 4, 30)
    y = signs_of(X[:, 0] > 0)
    K = reference.rbf_kernel_block(X, X, 0.2)
    again = np.repeat(np.arange(30), weights)
    one = MatrixFitness(K.copy(), 0.01, weights.astype(float))
    other = MatrixFitness(K[np.ix_(again, again)].copy(), 0.01)
    assert one.value(y) == pytest.approx(other.value(y[again]), abs=1e-12)
    np.testing.assert_allclose(one.decide(y)[again], other.decide(y[again]), atol=1e-9)


@forms
def test_labels_are_the_models(form):
    X = make_blobs(300)
    model = evolutionary(balance=0.5, n_init=20, **form).fit(X)
    f = model.decision_function(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, f >= 0)
    assert f.shape == (300,)
    assert model.labels_.dtype == np.int32
    assert model.labels_[0] == 0
    assert set(model.labels_.tolist()) == {0, 1}
    agreed = np.mean(model.labels_ == (X[:, 0] > 0))
    assert max(agreed, 1 - agreed) > 0.9


def test_curved_clusters_are_found():
    X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    assert same_clusters(EvolutionaryMMC(gamma="mean", random_state=0).fit(X).labels_, y)


@forms
@pytest.mark.parametrize("balance", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("n", [60, 61])
def test_evolved_labels_keep_the_balance(form, balance, n):
    X = make_blobs(n, gap=8.0)  # 60 : 40
    report = evolutionary(alpha=0.1, balance=balance, **form).fit(X).report_
    small, large = sorted(report["evolved_sizes"])
    assert small + large == n
    assert large - small <= max(int(balance * n), n % 2)
    # The model follows the clusters, not the bound, and the report says so.
    assert (report["agreement"] == 1.0) == (balance == 0.5)
    assert any("raise balance" in sentence for sentence in report["warnings"]) == (balance != 0.5)


@forms
def test_the_best_of_a_start_never_rises_and_the_lowest_wins(form):
    model = evolutionary(**form).fit(make_blobs(120, gap=1.0))
    history = model.history_
    assert {"stage", "start", "generation", "objective", "reads", "seconds"} <= set(history.columns)
    starts = [part for _, part in history.groupby("start")]
    assert len(starts) == 4
    for part in starts:
        assert (np.diff(part["generation"]) > 0).all()
        assert (np.diff(part["objective"]) <= 0).all()
    assert model.objective_ == pytest.approx(history["objective"].min(), abs=1e-9)
    assert model.report_["evolutions_at_best"] >= 1


@pytest.mark.parametrize("n", [7, 8, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_few_rows_reach_the_lowest_of_all_labelings(n, seed):
    X, alpha = np.random.default_rng(seed).standard_normal((n, 2)), 0.05
    K = centred_kernel(X, 0.5)
    limit = max(int(0.3 * n), n % 2)
    every = (np.array([1.0, *rest]) for rest in itertools.product((-1, 1), repeat=n - 1))
    lowest = min(naive_loss(K, y, alpha)[0] for y in every if abs(y.sum()) <= limit)
    model = evolutionary(gamma=0.5, alpha=alpha, balance=0.3, n_init=20).fit(X)
    assert model.objective_ == pytest.approx(lowest, abs=1e-9)


@forms
def test_same_seed_same_bits_and_threads_do_not_matter(form):
    X = make_blobs(200, gap=1.0)
    first = facts(evolutionary(**form).fit(X))
    assert facts(evolutionary(**form).fit(X)) == first
    assert facts(evolutionary(n_jobs=2, **form).fit(X)) == first
    assert facts(evolutionary(random_state=np.random.RandomState(0), **form).fit(X)) == first
    model = evolutionary(**form).fit(make_blobs(50, d=5))
    assert facts(model.fit(X)) == first


@forms
def test_same_bits_in_every_dense_storage(dense_storages, form):
    X = make_blobs(9000, gap=3.0, dtype=np.float32)
    found = [evolutionary(sample_size=150, **form).fit(storage) for storage in dense_storages(X).values()]
    assert [facts(one) == facts(found[0]) for one in found] == [True] * len(found)
    assert sum(found[0].report_["sample_sizes"]) == 150
    assert found[0].labels_.shape == (9000,)


@forms
def test_csr_storages_agree_with_dense_rows(csr_storages, form):
    csr = make_sparse(5000)
    parameters = {"gamma": "median", "sample_size": 150} | form
    storages = [evolutionary(**parameters).fit(storage) for storage in csr_storages(csr).values()]
    assert [facts(one) == facts(storages[0]) for one in storages] == [True] * len(storages)
    dense = evolutionary(**parameters).fit(csr.toarray())
    assert storages[0].objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert np.mean(storages[0].labels_ == dense.labels_) > 0.999


def test_a_stored_fit_reads_its_rows_twice(tmp_path):
    X = make_blobs(9000)
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(4096, 3))
    model = evolutionary(sample_size=100).fit_model(tmp_path / "rows.zarr")
    assert model.history_["reads"].max() == 1  # the sample; labels are the other
    assert not hasattr(model, "labels_")
    assert model.predict(tmp_path / "rows.zarr", out=tmp_path / "labels.zarr") is None
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr")[:], model.predict(X))


def test_a_checkpoint_answers_for_the_passes(tmp_path):
    zarr.create_array(tmp_path / "rows.zarr", data=make_blobs(9000), chunks=(4096, 3))
    one, other = (
        evolutionary(sample_size=100, checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
        for _ in range(2)
    )
    assert facts(one) == facts(other)
    assert other.history_["reads"].max() == 0


@forms
@pytest.mark.parametrize("scale", [None, "standard"])
def test_a_saved_model_is_the_same(tmp_path, form, scale):
    X = make_blobs(150) * [1, 100, 0.01]
    model = evolutionary(scale=scale, gamma="median", **form).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert type(again) is EvolutionaryMMC
    assert again.get_params() == model.get_params() | {"n_jobs": None}  # how a fit is done is in no file
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    for attribute in ("objective_", "gamma_", "converged_", "report_", "n_features_in_"):
        assert getattr(again, attribute) == getattr(model, attribute)
    assert again.history_.equals(model.history_)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@forms
def test_other_kernels_divide_plain_blobs(form, kernel):
    X = make_blobs(100, gap=8.0)
    model = evolutionary(kernel=kernel, gamma="auto", degree=1, balance=0.5, **form).fit(X)
    assert same_clusters(model.labels_, X[:, 0] > 0)


def test_automatic_width_is_a_share_of_the_mean_distance():
    X = make_blobs(60)
    squared = ((X[:, None] - X) ** 2).sum(axis=2).mean()
    assert evolutionary(gamma="auto").fit(X).gamma_ == pytest.approx(1 / (2 * 0.55**2 * squared))


def test_too_few_generations_are_said():
    model = evolutionary(max_generations=3).fit(make_blobs(60))
    assert not model.converged_
    assert any("max_generations=3" in sentence for sentence in model.report_["warnings"])
    assert evolutionary().fit(make_blobs(60)).converged_


CHANGED = {
    "gamma": 1.5,
    "alpha": 0.1,
    "kernel": "linear",
    "n_landmarks": 7,
    "n_init": 1,
    "sample_size": 60,
    "balance": 0.0,
    "centre": False,
    "n_parents": 2,
    "n_offspring": 2,
    "max_generations": 5,
    "patience": 3,
    "scale": "standard",
    "degree": 2,
    "coef0": 0.2,
    "random_state": 5,
}
ELSEWHERE = {"memory_limit", "n_jobs", "verbose", "checkpoint", "engine"}


def test_every_parameter_is_covered_here_and_has_the_siblings_default():
    mine, theirs = clone(evolutionary()).get_params(), mmcnb.SparseKernelMMC().get_params()
    assert set(mine) == set(CHANGED) | ELSEWHERE
    other = {"n_init", "balance"}  # of evolutions; of labels
    bare = EvolutionaryMMC().get_params()
    assert all(bare[name] == theirs[name] for name in set(bare) & set(theirs) - other)


@pytest.mark.parametrize("name", CHANGED)
def test_changing_a_parameter_changes_the_fit(name):
    X = make_blobs(100, gap=2.0) * [1.0, 2.0, 0.5]
    base = {"kernel": "poly"} if name in ("degree", "coef0") else {}
    one, other = (evolutionary(**base | changed).fit(X) for changed in ({}, {name: CHANGED[name]}))
    columns = ["start", "generation", "objective"]
    assert not one.history_[columns].equals(other.history_[columns])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("gamma", 0.0),
        ("gamma", "wide"),
        ("alpha", 0.0),
        ("alpha", -1.0),
        ("alpha", np.nan),
        ("kernel", "cosine"),
        ("n_landmarks", 0),
        ("n_init", 0),
        ("sample_size", 1),
        ("balance", -0.1),
        ("balance", 1.0),
        ("centre", "no"),
        ("n_parents", 0),
        ("n_offspring", 1.5),
        ("max_generations", 0),
        ("patience", 0),
        ("scale", "minmax"),
        ("degree", 0),
        ("coef0", np.nan),
        ("memory_limit", "much"),
    ],
)
def test_parameters_out_of_range_are_named_with_their_value(parameter, value):
    with pytest.raises(InputError, match=rf"^{parameter}={re.escape(repr(value))} is [^\n]*\.$"):
        evolutionary(**{parameter: value}).fit(make_blobs(20))


def test_rows_that_are_all_equal_are_refused():
    for X in (np.ones((20, 3)), scipy.sparse.csr_array((20, 3))):
        with pytest.raises(InputError, match=r"^all rows are equal[^\n]*\.$"):
            evolutionary().fit(X)


def test_two_rows_are_two_clusters():
    assert evolutionary().fit(np.array([[0.0, 0.0], [3.0, 1.0]])).labels_.tolist() == [0, 1]


def test_a_ridge_too_small_for_the_kernel_is_refused():
    X = np.repeat(make_blobs(10), 20, axis=0)
    with pytest.raises(InputError, match=r"^[^\n]*take a larger alpha\.$"):
        evolutionary(alpha=1e-22).fit(X)


def test_a_matrix_that_does_not_fit_is_refused_with_a_remedy_that_works():
    X, limit = make_blobs(6000, d=2, dtype=np.float32), "512MiB"
    sentence = (
        r"^[^\n]*6,000 rows [^\n]* n_landmarks=(\d+) needs no matrix, and a smaller sample_size [^\n]*\.$"
    )
    with pytest.raises(MemoryLimitError, match=sentence) as error:
        evolutionary(sample_size=6000, memory_limit=limit).fit(X)
    landmarks, quick = int(re.search(sentence, str(error.value))[1]), {"max_generations": 9}
    remedies = {"sample_size": 1000, **quick}, {"sample_size": 6000, "n_landmarks": landmarks, **quick}
    for remedy in remedies:
        model = evolutionary(memory_limit=limit, n_init=1, **remedy).fit(X)
        assert set(model.labels_.tolist()) == {0, 1}
