"""Laws of least squares clusters: exact where the sample is all rows, passes, weights, odd input."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.least_squares.all_rows import label_all_rows
from mmcnb.least_squares.objective import floor_bounds, mean_objective, size_bounds, smoother, target_shares
from mmcnb.least_squares.partition import (
    PartitionConfig,
    canonical_labels,
    local_search,
    partition_sample,
    random_labels,
)
from mmcnb.least_squares.search import landmark_sample
from mmcnb.samples import open_samples
from tests import reference


def groups(n, shares, seed=0, total_variance=1.0):
    """Round groups of some shares, and which row is in which."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(shares), n, p=shares)
    return rng.uniform(-4, 4, (len(shares), 4))[y] + total_variance * rng.standard_normal((n, 4)), y


def noise(n, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def whole(X, k, **parameters):
    """A fit whose sample is all rows, each of them a landmark."""
    settings = {"sample_size": len(X), "n_landmarks": len(X), "n_init": 3, "random_state": 0} | parameters
    return mmcnb.UnsupervisedRLS(k, **settings).fit(X)


def smoother_of(X, model):
    return smoother(kernel_matrix(X, Kernel("rbf", model.gamma_)), model.alpha * len(X))


# -- the exact method ------------------------------------------------------------------------------

EXACT = {
    "free": (2, {}),
    "two shares": (2, {"cluster_sizes": [0.7, 0.3]}),
    "equal": (3, {}),
    "exactly equal": (4, {"size_tolerance": 0.0}),
    "three shares": (3, {"cluster_sizes": [0.5, 0.3, 0.2]}),
}


@pytest.mark.parametrize("case", EXACT)
@pytest.mark.parametrize("seed", range(2))
def test_where_the_sample_is_all_rows_the_labels_are_those_of_the_exact_search(case, seed):
    """Single moves end where no step by means changes a label, so the passes leave the search's labels, and
    the search is that on the smoother of the whole kernel matrix, from the starts that the seed draws.
    """
    (k, parameters), X = EXACT[case], noise(120, seed=seed)
    model = whole(X, k, random_state=seed, **parameters)
    K, R = kernel_matrix(X, Kernel("rbf", model.gamma_)), smoother_of(X, model)
    random_state = np.random.RandomState(seed)
    sample = landmark_sample(X, None, Kernel("rbf", model.gamma_), len(X), k, random_state)
    wanted = PartitionConfig(k, 1e-3, "shaking", "mixed", 3, *held(**parameters), 0.5)
    with ThreadEngine(1) as engine:
        given = wanted.smoother(K, overwrite=True), sample.features, wanted, random_state
        found = partition_sample(engine, *given)
    np.testing.assert_array_equal(model.labels_, canonical_labels(found[0].labels))
    objective = mean_objective(R, model.labels_.astype(int), k)
    assert objective == pytest.approx(found[0].objective, rel=1e-12)
    assert model.report_["sample_objective"] == found[0].objective
    assert model.objective_ == pytest.approx(objective, rel=1e-5)  # kernel values of the model are float32
    assert model.history_["changed"].iloc[-1] == 0
    alone = local_search(R, PartitionConfig(k, n_init=3, **parameters), np.random.RandomState(seed))
    assert objective > 0.97 * alone[0].objective


def held(cluster_sizes="auto", size_tolerance=0.1):
    return cluster_sizes, size_tolerance


def test_objectives_are_those_of_the_papers_from_scratch():
    X = noise(100)
    model = whole(X, 3, schedule="paper")
    R = smoother_of(X, model)
    within = [R[np.ix_(h, h)].sum() for h in (model.labels_ == c for c in range(3))]
    assert model.report_["one_against_all_objective"] == pytest.approx(300 - 4 * sum(within), rel=1e-5)
    assert model.objective_ == pytest.approx((within / model.cluster_sizes_).sum(), rel=1e-5)
    two = whole(X, 2)
    y = np.where(two.labels_ == 0, 1.0, -1.0)
    F = 1 - y @ smoother_of(X, two) @ y / 100
    assert two.report_["one_against_all_objective"] == pytest.approx(200 * F, rel=1e-5)


@pytest.mark.parametrize(("n", "k"), [(10, 2), (9, 3), (10, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_a_few_rows_reach_the_best_of_all_labelings(n, k, seed):
    X = noise(n, seed=seed)
    model = whole(X, k, n_init=12, alpha=0.01, random_state=seed)
    R = smoother_of(X, model)
    low, high = floor_bounds(n, 2, 0.5) if k == 2 else size_bounds(n, np.full(k, 1 / k), 0.1)
    every = np.array([(0, *rest) for rest in itertools.product(range(k), repeat=n - 1)])
    indicators = every[:, :, None] == np.arange(k)
    sizes = indicators.sum(axis=1)
    within = ((low <= sizes) & (sizes <= high)).all(axis=1)
    E, sizes = indicators[within].astype(float), sizes[within]
    best = (np.einsum("lih,ij,ljh->lh", E, R, E, optimize=True) / sizes).sum(axis=1).max()
    assert mean_objective(R, model.labels_.astype(int), k) == pytest.approx(best, rel=1e-6)


# -- passes ----------------------------------------------------------------------------------------


def passes_over(X, order, labels, basis, wanted, n_passes=4):
    """The rule, the objectives and the sizes of passes over rows in some order, from given labels."""
    sample = landmark_sample(X[order], None, Kernel("rbf", 0.1), len(basis), 2, np.random.RandomState(0))
    sample = landmark_sample_on(sample, X[order], basis)
    records = []
    with ThreadEngine(1) as engine:
        session = SimpleNamespace(engine=engine, weights=None, record=records.append, scaling=None)
        model = sample.model(session, wanted.alpha)
        rows = model.features(open_samples(X[order]))
        fit = label_all_rows(session, wanted, sample, rows, labels[order], n_passes)
    scores = sample.values @ fit.rule.coef - fit.rule.offset
    return scores.argmax(axis=1), [record["objective"] for record in records], fit.sizes


def landmark_sample_on(sample, X, basis):
    """The same with given landmarks."""
    from dataclasses import replace

    from mmcnb.features.nystroem import normalization_of, principal_features

    values = sample.kernel(X, basis)
    normalization = normalization_of(sample.kernel(basis, basis), 1e-7)
    features = principal_features(values @ normalization)
    return replace(sample, basis=basis, values=values, normalization=normalization, features=features)


def partition(k, cluster_sizes="auto", alpha=1e-3, tolerance=0.1):
    return PartitionConfig(k, alpha, "shaking", "mixed", 1, cluster_sizes, tolerance, 0.2)


WANTED = {
    "free": partition(2),
    "equal": partition(4),
    "shares": partition(3, [0.5, 0.3, 0.2]),
}


@pytest.mark.parametrize("case", WANTED)
@pytest.mark.parametrize("seed", range(3))
def test_given_landmarks_and_start_rows_that_change_places_take_their_labels_along(case, seed):
    wanted, rng = WANTED[case], np.random.default_rng(seed)
    X, _ = groups(600, [0.4, 0.3, 0.2, 0.1], seed, total_variance=2.0)
    labels = random_labels(600, wanted.shares, np.random.RandomState(seed))
    basis, order = X[rng.permutation(600)[:50]], rng.permutation(600)
    straight, objectives, sizes = passes_over(X, np.arange(600), labels, basis, wanted)
    turned, others, turned_sizes = passes_over(X, order, labels, basis, wanted)
    # Clusters are numbered by their first rows, which are others now.
    np.testing.assert_array_equal(canonical_labels(turned), canonical_labels(straight[order]))
    np.testing.assert_array_equal(np.sort(turned_sizes), np.sort(sizes))
    assert others == pytest.approx(objectives, rel=1e-9)


@pytest.mark.parametrize("case", ["free", "shares"])
@pytest.mark.parametrize("seed", range(3))
def test_no_pass_lowers_the_objective_from_labels_within_their_bounds(case, seed):
    wanted = WANTED[case]
    X, _ = groups(900, [0.5, 0.3, 0.2], seed, total_variance=2.5)
    labels = random_labels(900, wanted.shares, np.random.RandomState(seed))
    _, objectives, sizes = passes_over(X, np.arange(900), labels, X[:60], wanted, 12)
    assert len(objectives) > 2
    assert (np.diff(objectives) >= -1e-6).all()  # the rows' features are float32, the sample's are not
    low, high = wanted.bounds_by_size(sizes)
    assert (low - 1 <= sizes).all()
    assert (sizes <= high + 1).all()


# -- shares and weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_those_of_the_clusters_in_whatever_order_they_are_given(seed):
    shares = np.array([0.6, 0.3, 0.1])
    X, y = groups(900, shares, seed, total_variance=0.6)
    settings = {"n_init": 4, "sample_size": 400, "n_landmarks": 60, "random_state": 0}
    models = [
        mmcnb.UnsupervisedRLS(3, cluster_sizes=given, **settings).fit(X)
        for given in itertools.permutations(shares)
    ]
    for model in models:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
    np.testing.assert_allclose(np.sort(models[0].cluster_sizes_) / 900, [0.1, 0.3, 0.6], rtol=0.25)
    assert adjusted_rand_score(y, models[0].labels_) > 0.9


@pytest.mark.parametrize("scale", [2.0**-10, 0.25, 1024.0])
@pytest.mark.parametrize("cluster_sizes", ["equal", [0.5, 0.3, 0.2]])
def test_only_the_relative_weights_count(scale, cluster_sizes):
    X, _ = groups(300, [0.4, 0.3, 0.3])
    weights = np.random.default_rng(1).uniform(0.5, 2, 300)
    settings = {"cluster_sizes": cluster_sizes, "n_init": 2, "n_landmarks": 60, "random_state": 0}
    one, other = (
        mmcnb.UnsupervisedRLS(3, **settings).fit(X, sample_weight=factor * weights) for factor in (1.0, scale)
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-12)
    np.testing.assert_allclose(other.cluster_sizes_, scale * one.cluster_sizes_, rtol=1e-12)


def test_equal_weights_are_no_weights():
    X, _ = groups(300, [0.4, 0.3, 0.3], total_variance=2.0)
    plain = mmcnb.UnsupervisedRLS(3, n_init=2, random_state=0).fit(X)
    for weight, given in ((1.0, 1.0), (0.001, np.full(300, 0.001)), (64.0, 64.0), (64.0, np.full(300, 64.0))):
        model = mmcnb.UnsupervisedRLS(3, n_init=2, random_state=0).fit(X, sample_weight=given)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.cluster_sizes_, weight * plain.cluster_sizes_)


def test_objectives_of_weighted_rows_are_those_of_rows_repeated():
    X, _ = groups(200, [0.4, 0.3, 0.3], total_variance=2.0)
    weights = np.random.default_rng(0).integers(1, 4, 200)
    model = mmcnb.UnsupervisedRLS(3, n_landmarks=40, random_state=0).fit(X, sample_weight=weights)
    z, n = model.transform(np.repeat(X, weights, axis=0)), weights.sum()
    labels = np.repeat(model.labels_, weights)
    S, sizes = reference.cluster_row_sums(z, labels, 3, np.ones(n))
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    assert model.objective_ == pytest.approx(((S**2).sum(axis=1) / sizes).sum() / n, rel=1e-6)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-6)


# -- odd input, and input that cannot be used ------------------------------------------------------

FAR = noise(200) + 5 * (np.arange(200) % 2)[:, None]
ODD = {
    "a constant column": (np.c_[FAR, np.full(200, 7.0)], 2),
    "one column": (FAR[:, :1], 3),
    "as many rows as clusters": (FAR[:8], 8),
    "two rows": (FAR[:2], 2),
    "one row more than clusters": (FAR[:8], 7),
    "each row four times": (np.repeat(FAR[:50], 4, axis=0), 3),
    "three kinds of rows": (np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], [80, 10, 10], axis=0), 3),
    "two kinds, one of a single row": (np.repeat([[0.0], [5.0]], [99, 1], axis=0), 2),
    "a huge outlier": (np.r_[FAR, [[1e6] * 3]], 2),
    "an outlier at the end of float32": (np.r_[FAR, [[1e30] * 3]].astype("f4"), 2),
    "many clusters of four rows": (FAR, 50),
    "twenty clusters of twenty kinds": (np.repeat(FAR[:20], 4, axis=0), 20),
    "whole numbers": ((10 * FAR).astype(np.int64), 2),
    "bytes": ((10 * FAR).astype(np.int8), 2),
    "bits": (FAR > 2, 2),
    "half precision": (FAR.astype(np.float16), 2),
    "tiny values": (1e-8 * FAR, 2),
    "huge values": (1e18 * FAR.astype("f4"), 2),
}


# What a scale of the columns can make odd, or mend.
SCALED = (
    "a constant column",
    "one column",
    "two rows",
    "three kinds of rows",
    "two kinds, one of a single row",
    "a huge outlier",
    "an outlier at the end of float32",
    "bits",
    "half precision",
    "tiny values",
    "huge values",
)


@pytest.mark.parametrize(
    ("case", "scale"), [(case, None) for case in ODD] + [(case, "standard") for case in SCALED]
)
def test_odd_rows_are_divided_or_it_is_said_that_clusters_are_empty(case, scale):
    X, k = ODD[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mmcnb.UnsupervisedRLS(k, scale=scale, n_init=2, random_state=0).fit(X)
    assert {warning.category for warning in caught} <= {ClusterWarning, ConvergenceWarning}
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    sizes = np.bincount(model.labels_, minlength=k)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    np.testing.assert_array_equal(canonical_labels(model.labels_), model.labels_)
    assert 0 <= model.objective_ <= k - 1
    empty = (sizes == 0).sum()
    sentences = [str(warning.message) for warning in caught]
    assert sentences == model.report_["warnings"]
    sentences = [sentence for sentence in sentences if "did not converge" not in sentence]
    assert (
        sentences == [] if empty == 0 else sentences[0].startswith(f"{empty} of the {k} clusters contain no")
    )


@pytest.mark.parametrize("case", [case for case, (_, k) in ODD.items() if k == 2])
@pytest.mark.parametrize("form", [{}, {"n_landmarks": 20}], ids=["exact", "landmarks"])
def test_odd_rows_evolve(case, form):
    X, _ = ODD[case]
    model = mmcnb.EvolutionaryMMC(n_init=2, random_state=0, **form).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert set(model.labels_.tolist()) == {0, 1}
    assert -1e-9 <= model.objective_ <= 1
    small = np.bincount(model.labels_).min() < 0.3 * len(X)
    assert small == (model.report_["agreement"] < 0.99)  # the bound of the sizes is not the clusters'


def test_an_evolution_that_finds_one_cluster_says_so():
    with pytest.warns(ClusterWarning, match=r"one cluster alone on the sample; [^\n]*\.$"):
        model = mmcnb.EvolutionaryMMC(gamma=1e-100, n_init=1, random_state=0).fit(FAR)
    assert model.report_["warnings"]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_precision_of_the_rows_hardly_matters(kind):
    X, y = groups(500, [0.5, 0.3, 0.2], total_variance=0.5)
    model = mmcnb.UnsupervisedRLS(3, cluster_sizes=[0.5, 0.3, 0.2], random_state=0).fit(X.astype(kind))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.labels_.dtype == np.int32


BAD = {
    "NaN ridge": ({"alpha": np.nan}, r"^alpha=nan is out of range; give a number above 0\.$"),
    "no ridge": ({"alpha": -1.0}, r"^alpha=-1\.0 is out of range; give a number above 0\.$"),
    "ridge below rounding": (
        {"alpha": 1e-30},
        r"^[^\n]*; ?[^\n]*take a larger alpha\.$|take a larger alpha\.$",
    ),
    "more clusters than rows": (
        {"n_clusters": 101},
        r"^n_clusters=101 is more than the 100 rows; give fewer",
    ),
    "a sample below the clusters": (
        {"n_clusters": 9, "sample_size": 5},
        r"^sample_size=5 is smaller than n_clusters=9; [^\n]*\.$",
    ),
    "landmarks below the clusters": (
        {"n_clusters": 9, "n_landmarks": 5},
        r"^n_landmarks=5 is smaller than n_clusters=9; [^\n]*\.$",
    ),
    "half a cluster": ({"n_clusters": 2.5}, r"^n_clusters=2\.5 is out of range; give a whole number"),
    "shares of more": (
        {"cluster_sizes": [0.7, 0.7]},
        r"^cluster_sizes must sum to 1, not to 1\.4; [^\n]*\.$",
    ),
    "negative shares": (
        {"cluster_sizes": [1.5, -0.5]},
        r"^cluster_sizes must be positive, and -0\.5 is not; ",
    ),
    "NaN shares": ({"cluster_sizes": [np.nan, 1.0]}, r"^cluster_sizes must be positive, and nan is not; "),
    "shares in words": (
        {"cluster_sizes": ["a", "b"]},
        r"^cluster_sizes contains text [^\n]*\.$",
    ),
    "a share too many": ({"cluster_sizes": [0.4, 0.3, 0.3]}, r"each of the 2 clusters, not 3\.$"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_by_one_sentence(case):
    parameters, sentence = BAD[case]
    X = np.repeat(noise(50), 2, axis=0)
    with pytest.raises(InputError, match=sentence) as error:
        mmcnb.UnsupervisedRLS(**{"n_clusters": 2, "n_init": 1} | parameters).fit(X)
    assert "\n" not in str(error.value)


def test_shares_that_ask_for_more_rows_than_there_are_are_refused():
    with pytest.raises(InputError, match=r"^3 clusters of these sizes need more than 3 rows; give [^\n]*\.$"):
        mmcnb.UnsupervisedRLS(3, cluster_sizes=[0.9, 0.05, 0.05]).fit(noise(3))
    assert target_shares([0.9, 0.05, 0.05], 3).sum() == pytest.approx(1)


@pytest.mark.parametrize("X", [np.full((20, 3), 0.1), 1e200 * noise(50)])
def test_rows_whose_distances_are_rounding_are_refused(X):
    for model in (mmcnb.UnsupervisedRLS(2, kernel="linear"), mmcnb.EvolutionaryMMC()):
        with pytest.raises(
            InputError, match=r"^(all rows are equal|the squares of the values)[^\n]*; [^\n]*\.$"
        ):
            model.fit(X)


def test_a_smaller_sample_is_named_for_a_matrix_that_does_not_fit():
    X = noise(6000, 2).astype("f4")
    settings = {
        "n_init": 1,
        "search": "steepest",
        "max_passes": 1,
        "memory_limit": "450MiB",
        "random_state": 0,
    }
    sentence = r"^[^\n]*the least that works is \d+ MiB; a smaller sample_size needs less\.$"
    with pytest.raises(MemoryLimitError, match=sentence):
        mmcnb.UnsupervisedRLS(2, sample_size=6000, **settings).fit(X)
    model = mmcnb.UnsupervisedRLS(2, sample_size=1000, **settings).fit(X)
    assert set(model.labels_.tolist()) == {0, 1}


def test_a_limit_below_the_libraries_names_the_least_that_works():
    with pytest.raises(MemoryLimitError, match=r"the least that works is [\d.]+ [MG]iB;"):
        mmcnb.UnsupervisedRLS(2, memory_limit="100MiB", sample_size=3000).fit(noise(3000))


def test_many_rows_need_no_room_for_a_second_sample():
    """1e6 rows of 300 landmarks under a limit that a larger sample of 65,536 rows would break."""
    rows = RowShape(10**6, 4, chunk_bytes=4096 * 16.0)
    settings = {"n_landmarks": 300, "sample_size": 1000, "memory_limit": "450MiB", "n_jobs": 1}
    plan = mmcnb.UnsupervisedRLS(2, **settings)._plan(rows)
    assert (plan.needs.sweeps, plan.reads <= 5) == (3, True)
    with pytest.raises(MemoryLimitError):
        mmcnb.SparseKernelMMC(**settings)._plan(rows)
