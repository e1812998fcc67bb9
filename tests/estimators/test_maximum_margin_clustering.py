"""The front door: what it finds and says of it, that model, labels and J agree, and what it refuses."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from tests.estimators.front_door import WAYS, front_door

OF_GRAPH = {"merge", "communities", "linkage"}


def blobs(n=300, k=3, d=4, spread=1.0, seed=0):
    """Round groups, ten apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 10.0 * np.eye(k, d)[y] + spread * rng.standard_normal((n, d)), y


def touching(n=200):
    """Groups that overlap, so that where a row belongs is not plain."""
    return blobs(n, d=3, spread=3.5)[0]


def topics(n=400):
    """Sparse rows of three topics."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    likely = np.where(np.arange(90) // 30 == y[:, None], 0.5, 0.03)
    return scipy.sparse.csr_array(
        (rng.random((n, 90)) < likely) * (0.5 + rng.random((n, 90)))
    ), y


@pytest.fixture(scope="module", params=WAYS)
def fitted(request):
    """A model of rows that overlap, and the rows."""
    n_clusters, parameters = WAYS[request.param]
    X = touching()
    return front_door(n_clusters, **parameters).fit(X), X


# -- what is found ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-rings", "four-moons", "seven-blobs"])
def test_shapes_are_found_with_their_number_and_trusted(name):
    X, y = make_shape(name, random_state=0)
    model = front_door().fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.report_["trust"]["level"] == "high"
    number = model.report_["number"]
    assert list(number) == ["n_clusters", "reason", "next_best", "agreement"]
    assert (
        number["n_clusters"] == model.n_clusters_ == y.max() + 1 != number["next_best"]
    )
    assert number["reason"].startswith(
        f"{model.n_clusters_} clusters: their expected agreement with the true"
    )
    assert 0 < number["agreement"] <= 1
    new, classes = make_shape(name, 300, random_state=1)
    assert adjusted_rand_score(classes, model.predict(new)) > 0.98
    asked = front_door(model.n_clusters_).fit(X)
    assert adjusted_rand_score(asked.labels_, model.labels_) == 1
    assert asked.report_["number"] is None


def test_of_two_level_partitions_the_widest_margin_is_taken_at_two_clusters():
    X, _ = make_shape("two-rings", random_state=0)
    model = front_door(2).fit(X)
    assert len({one["J"] for one in model.report_["candidates"]}) == 1
    assert (model.candidate_, model.kernel_) == ("margin", "rbf")
    assert front_door(2, kernel="graph").fit(X).kernel_ == "graph"


@pytest.mark.parametrize(
    ("n_clusters", "parameters", "kinds"),
    [
        (2, {}, OF_GRAPH | {"margin"}),
        (3, {}, OF_GRAPH),
        (2, {"kernel": "rbf"}, {"margin"}),
        (3, {"kernel": "linear"}, {"margin"}),
        (2, {"kernel": "graph", "metric": "cosine"}, OF_GRAPH | {"layout"}),
    ],
)
def test_kernel_and_metric_say_which_candidates_there_are(
    n_clusters, parameters, kinds
):
    model = front_door(n_clusters, **parameters).fit(touching())
    candidates = [one["candidate"] for one in model.report_["candidates"]]
    assert {
        re.match(r"\w+", name)[0] for name in [*candidates, *model.report_["left_out"]]
    } == kinds
    assert model.candidate_ in candidates
    kernel = (
        "graph" if model.candidate_ != "margin" else parameters.get("kernel", "rbf")
    )
    assert model.kernel_ == kernel


def test_candidates_are_told_by_falling_j():
    model = front_door(4).fit(touching())
    candidates = model.report_["candidates"]
    scores = [one["J"] for one in candidates]
    assert scores == sorted(scores, reverse=True)
    assert model.objective_ == scores[0]
    for one in candidates:
        assert one["J"] == pytest.approx(4 * one["information"] + one["gap"])
        assert (len(one["shares"]), sum(one["shares"])) == (4, pytest.approx(1))
        assert one["broken"] is None


@pytest.mark.parametrize("kernel", ["auto", "linear"])
def test_without_structure_the_only_candidate_is_one_cluster(kernel):
    X = np.random.default_rng(0).standard_normal((300, 5))
    with pytest.warns(
        ClusterWarning,
        match=r"^the data may have no clusters: no partition is clearer than [^\n]*\.$",
    ):
        model = front_door(kernel=kernel).fit(X)
    assert model.labels_.tolist() == [0] * 300
    assert (model.n_clusters_, model.candidate_, model.kernel_) == (
        1,
        "one cluster",
        "graph",
    )
    assert [one["candidate"] for one in model.report_["candidates"]] == ["one cluster"]
    assert model.report_["number"]["reason"].startswith(
        "one cluster: no partition is clearer than in"
    )
    assert model.report_["trust"]["level"] == "low"
    assert model.layers_["n_clusters"].tolist() == [1]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_clusters", [2, 5, (3, 6)])
def test_clusters_of_rows_without_structure_are_not_trusted(n_clusters, seed):
    X = np.random.default_rng(seed).standard_normal((300, 4))
    reason = "^the data may have no clusters: the clusters are no clearer than in rows without structure"
    with pytest.warns(ClusterWarning, match=reason):
        model = front_door(n_clusters).fit(X)
    trust = model.report_["trust"]
    assert (trust["level"], trust["reason"].count(". ")) == ("low", 0)
    assert 0 <= trust["agreement"] < 0.8


@pytest.mark.parametrize(
    ("n", "range_"),
    [
        (400, (2, 4)),
        (400, [3, 3]),
        (400, (9, 12)),
        (60, (12, 30)),
        (60, (59, 61)),
        (60, (60, 60)),
        (5, (4, 9)),
        (5, (5, 5)),
    ],
)
def test_the_number_lies_in_its_range(n, range_):
    X = touching(n)
    model = front_door(range_).fit(X)
    assert range_[0] <= model.n_clusters_ <= min(range_[1], n)
    assert (
        np.unique(model.labels_).size
        == model.n_clusters_
        == model.report_["number"]["n_clusters"]
    )
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    ("kernel", "metric", "form"),
    [
        ("auto", "euclidean", np.asarray),
        ("graph", "cosine", scipy.sparse.csr_array),
        ("rbf", "euclidean", scipy.sparse.csr_array),
        ("linear", "cosine", np.asarray),
    ],
)
def test_equal_rows_are_one_cluster_or_an_error(tmp_path, kernel, metric, form):
    X = form(np.full((30, 3), 0.1))
    model = front_door("auto", kernel=kernel, metric=metric).fit(X)
    assert model.labels_.tolist() == model.predict(X).tolist() == [0] * 30
    reason = "one cluster: all rows are equal, or differ by less than rounding."
    assert (
        model.report_["number"]["reason"] == model.report_["trust"]["reason"] == reason
    )
    assert (model.report_["sizes"], model.report_["candidates"], model.n_clusters_) == (
        [30],
        [],
        1,
    )
    assert model.history_["stage"].tolist() == ["labels"]
    model.save(tmp_path / "a.model")
    assert mmcnb.load(tmp_path / "a.model").predict(X).tolist() == [0] * 30
    for n_clusters in (2, (2, 5)):
        with pytest.raises(
            InputError,
            match=r"^all rows are equal, so they cannot [a-z ]*; pass rows that differ\.$",
        ):
            front_door(n_clusters, kernel=kernel, metric=metric).fit(X)


# -- small clusters --------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_a_small_group():
    """Three groups of 100 rows and one of 20."""
    X, y = blobs(300, spread=0.5)
    small = 60 * np.eye(4)[3] + np.random.default_rng(1).standard_normal((20, 4))
    return np.r_[X, small], np.r_[y, [3] * 20]


def test_clusters_have_the_fewest_rows_asked_for_as_a_count_or_a_share(
    with_a_small_group,
):
    X, y = with_a_small_group

    def fit(min_cluster_size):
        return front_door(scale=None, min_cluster_size=min_cluster_size).fit(X)

    counted = fit(40)
    assert counted.n_clusters_ == 3
    assert min(counted.report_["sizes"]) >= 40
    np.testing.assert_array_equal(fit(40 / 320).labels_, counted.labels_)
    for few in (None, 15):
        assert adjusted_rand_score(y, fit(few).labels_) == 1
    assert fit(320).n_clusters_ == 1


def test_clusters_that_a_least_size_has_joined_are_said(with_a_small_group):
    X = with_a_small_group[0]
    model = front_door(scale=None, min_cluster_size=40).fit(X)
    assert model.report_["number"]["reason"].startswith(
        "3 clusters: 4 were found, and clusters smaller than min_cluster_size=40 were"
    )
    with pytest.warns(mmcnb.ClusterWarning, match="so they were joined") as warned:
        model = front_door(scale=None, min_cluster_size=200).fit(X)
    (sentence,) = [str(one.message) for one in warned]
    assert "min_cluster_size=200 is larger than each of the 4 clusters" in sentence
    assert "the largest has about 100 rows" in sentence
    assert model.report_["trust"]["level"] == "low"
    # as large as the largest cluster, which the others join
    found = front_door(scale=None, min_cluster_size=95).fit(X)
    assert found.n_clusters_ == 1 or "joined" in found.report_["number"]["reason"]


def test_more_clusters_than_different_rows_are_refused_with_a_number_that_works():
    X = np.repeat(np.eye(5), 30, axis=0)
    for method in (
        mmcnb.MaximumMarginClustering,
        mmcnb.CrammerSingerMMC,
        mmcnb.UnsupervisedRLS,
        mmcnb.KernelKMeans,
    ):
        with pytest.raises(
            InputError, match=r"5 rows that differ, .* give n_clusters=5 or fewer"
        ):
            method(8, random_state=0).fit(X)
        assert np.unique(method(5, random_state=0).fit(X).labels_).size == 5


def test_the_fewest_rows_are_counted_by_their_weights(with_a_small_group):
    model = front_door(scale=None, min_cluster_size=0.15)
    for weight, n_clusters in ((1.0, 3), (10.0, 4)):
        weights = np.repeat([1.0, weight], [300, 20])
        assert (
            model.fit(with_a_small_group[0], sample_weight=weights).n_clusters_
            == n_clusters
        )


# -- model, labels and J ---------------------------------------------------------------


def test_labels_are_those_of_the_model_of_its_probabilities_and_of_its_file(
    tmp_path, fitted
):
    model, X = fitted
    n_clusters = model.n_clusters_
    scores = model.decision_function(X)
    shares = model.predict_proba(X)
    assert scores.shape == shares.shape == (len(X), n_clusters)
    alone = np.concatenate([model.predict(X[row : row + 1]) for row in range(len(X))])
    np.testing.assert_array_equal(model.transform(X), shares)
    for labels in (
        model.predict(X),
        alone,
        scores.argmax(axis=1),
        shares.argmax(axis=1),
    ):
        np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert (shares >= 0).all()
    assert (
        model.report_["sizes"]
        == np.bincount(model.labels_, minlength=n_clusters).tolist()
    )
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    stages = model.history_["stage"].drop_duplicates(keep="last")
    assert stages[stages.isin(["graph", "choice", "labels"])].tolist() == [
        "graph",
        "choice",
        "labels",
    ]
    assert stages.iloc[-1] == "labels"
    model.save(tmp_path / "a.model")
    loaded = mmcnb.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    assert loaded.predict_proba(X).tobytes() == shares.tobytes()
    for name in ("objective_", "n_clusters_", "candidate_", "kernel_", "report_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.get_params() == model.get_params()
    assert loaded.history_.equals(model.history_)


def test_the_objective_is_the_score_of_the_labels(fitted):
    model, X = fitted
    score = mmcnb.partition_score(X, model.labels_, metric=model.metric)
    assert model.objective_ == pytest.approx(score.J, rel=1e-9)
    taken = next(
        one
        for one in model.report_["candidates"]
        if one["candidate"] == model.candidate_
    )
    assert (taken["information"], taken["gap"]) == pytest.approx(
        (score.information, score.gap), rel=1e-9
    )


@pytest.mark.parametrize(
    ("method", "n_clusters", "kernel"),
    [
        ("predict_proba", 3, "graph"),
        ("predict_proba", 2, "rbf"),
        ("score_outliers", 3, "graph"),
    ],
)
def test_values_of_rows_are_streamed_to_a_store_or_refused_above_the_limit(
    tmp_path, method, n_clusters, kernel
):
    X = np.repeat(touching(), 25, axis=0)  # more than one block
    model = front_door(n_clusters, kernel=kernel).fit(X[::25])
    ask = getattr(model, method)
    values = ask(X)
    assert ask(X, tmp_path / "values.zarr") is None
    stored = mmcnb.open_samples(tmp_path / "values.zarr")
    assert stored.n_samples == len(X)
    assert stored.block(0, len(X)).tobytes() == values.tobytes()
    with pytest.raises(InputError, match="exists"):
        ask(X, tmp_path / "values.zarr")
    model.set_params(memory_limit=values.nbytes - 1)
    with pytest.raises(MemoryLimitError, match="pass a path as out"):
        ask(X)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_are_clustered_as_dense_ones(metric):
    X, y = topics()
    if metric == "cosine":
        X = X.multiply(np.random.default_rng(0).lognormal(0, 2, 400)[:, None]).tocsr()
    for step in (2, 1):  # 45 and 90 columns, below and above the number of axes
        rows = X[:, ::step]
        labels = front_door(3, metric=metric).fit(rows).labels_
        dense = front_door(3, metric=metric).fit(rows.toarray()).labels_
        assert adjusted_rand_score(labels, dense) > 0.95
    assert adjusted_rand_score(y, labels) > 0.95


# -- laws ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_clusters", "kernel"), [(2, "auto"), (None, "auto"), (3, "graph")]
)
def test_weights_are_repetitions(n_clusters, kernel):
    X = touching(250)
    counts = np.r_[np.random.default_rng(1).integers(1, 5, 200), np.zeros(50, int)]
    weighted = front_door(n_clusters, kernel=kernel).fit(X, sample_weight=counts)
    repeated = front_door(n_clusters, kernel=kernel).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert repeated.objective_ == pytest.approx(weighted.objective_, rel=1e-9)
    assert repeated.report_["sizes"] == weighted.report_["sizes"]
    layers = [model.layers_.drop(columns="smallest") for model in (weighted, repeated)]
    pd.testing.assert_frame_equal(*layers)


def test_a_second_search_of_the_margin_takes_weights_as_repetitions():
    X = scale(load_breast_cancer().data)[:300]
    counts = np.random.default_rng(2).integers(1, 3, 300)
    weighted = front_door(2, random_state=2).fit(X, sample_weight=counts)
    repeated = front_door(2, random_state=2).fit(np.repeat(X, counts, axis=0))
    for model in (weighted, repeated):
        assert model.candidate_ == "margin"
        gammas = model.history_["gamma"].dropna()
        searched = gammas[gammas.diff() != 0].tolist()
        # Four bandwidths, and one of them again from other rows.
        assert len(set(searched)) == 4
        assert len(searched) == 5
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    again = front_door(2, random_state=2).fit(X, sample_weight=counts)
    np.testing.assert_array_equal(again.labels_, weighted.labels_)


def test_a_margin_lies_between_few_distinct_rows_of_uneven_weights():
    X = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    weights = np.where(np.arange(16) < 4, 100.0, 1.0)
    model = front_door(2, kernel="rbf").fit(X, sample_weight=weights)
    assert model.candidate_ == "margin"
    assert sorted(np.unique(model.labels_)) == [0, 1]


@pytest.mark.parametrize("n_clusters", [2, None])
def test_unit_origin_and_order_of_columns_do_not_matter(n_clusters):
    X = touching()
    labels = front_door(n_clusters).fit(X).labels_
    for changed in (1e6 * X, 1e-6 * X, X + 1e4, -X, X[:, ::-1]):
        assert (
            adjusted_rand_score(labels, front_door(n_clusters).fit(changed).labels_)
            > 0.99
        )


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ([40.0, 0, 0, 0], 5),  # apart
        ([5.0, 5.0, 0, 0], 20),  # between
        ([13.5, 0, 0, 0], 50),  # beside
        ([0.0] * 4, 100),
    ],
)
def test_equal_rows_are_a_cluster(place, count):
    X, y = blobs(250)
    rows = np.r_[X, np.tile(place, (count, 1))]
    classes = np.r_[y, [3] * count]
    model = front_door(4, scale=None).fit(rows)
    assert adjusted_rand_score(classes, model.labels_) == 1
    # Equal values far from all others may mark missing ones.
    level = "medium" if place[0] == 40 else "high"
    assert model.report_["trust"]["level"] == level


def test_rows_that_are_nearly_all_equal_are_clustered():
    X = np.zeros((6000, 2))
    X[:4] = [[1, 0], [0, 1], [5, 5], [5, 6]]
    model = front_door(2).fit(X)
    assert adjusted_rand_score(np.arange(6000) < 4, model.labels_) > 0.4
    assert len(set(model.labels_[4:].tolist())) == 1


@pytest.mark.parametrize(
    ("kernel", "form"),
    [
        ("auto", scipy.sparse.csr_array),
        ("graph", np.asarray),
        ("rbf", scipy.sparse.csr_array),
        ("linear", np.asarray),
    ],
)
def test_directions_are_rows_divided_by_their_lengths(kernel, form):
    X = topics(150)[0].toarray() + 1e-3
    X *= np.random.default_rng(0).lognormal(0, 2, len(X))[:, None]
    model = front_door(2, kernel=kernel, metric="cosine").fit(form(X))
    plain = front_door(2, kernel=kernel).fit(
        form(X / np.linalg.norm(X, axis=1, keepdims=True))
    )
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(form(7 * X)), model.labels_)


def test_sparse_directions_of_which_some_are_empty_are_clustered():
    X = topics(300)[0].tolil()
    X[::7] = 0
    X = scipy.sparse.csr_array(X)
    model = front_door(4, metric="cosine").fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert len(set(model.labels_[::7].tolist())) == 1


def test_directions_need_two_columns():
    with pytest.raises(
        InputError,
        match=r"^metric='cosine' needs at least 2 columns, but n_features=1; pass metric='eucl",
    ):
        front_door(metric="cosine").fit(touching()[:, :1])


def test_rows_deep_in_a_cluster_vote_on_their_probabilities_if_asked():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 6000)
    X = 3 * rng.normal(size=(4, 3))[y] + rng.normal(size=(6000, 3))
    model = front_door(4, kernel="graph", n_nodes=5000).fit(X)
    shares = model.predict_proba(X)
    exact = model.predict_proba(X, exact=True)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.labels_)
    is_sure = shares.max(axis=1) == 1
    np.testing.assert_array_equal(shares[~is_sure], exact[~is_sure])
    assert 0.5 < is_sure.mean() < 1
    assert (exact.max(axis=1) < 1)[is_sure].any()
    assert np.mean(shares.argmax(axis=1) != exact.argmax(axis=1)) < 0.01
    # the model still labels as it did
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    ("dtype", "settings"), [("f4", {"scale": "standard"}), ("f8", {"metric": "cosine"})]
)
def test_rows_of_the_caller_are_left_as_they_are(dtype, settings):
    X = (touching() * 3 + 1).astype(dtype)
    before = X.copy()
    front_door(3, **settings).fit(X)
    np.testing.assert_array_equal(X, before)


# -- what cannot be --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_nodes": 1}, r"n_nodes=1 is out of range"),
        (
            {"n_clusters": (5, 3)},
            r"n_clusters=\(5, 3\) has its limits in the wrong order; pass \(3, 5\)",
        ),
        (
            {"n_clusters": (2, 3, 4)},
            r"n_clusters=\(2, 3, 4\) is not a range; pass the smallest and",
        ),
        (
            {"n_clusters": (61, 70)},
            r"n_clusters=61 is more than the 60 rows; pass n_clusters=60 or fewer",
        ),
        (
            {"n_clusters": (9, 20), "n_nodes": 5},
            r"n_nodes=5 is smaller than n_clusters=9",
        ),
        ({"n_clusters": (2, 3.5)}, r"n_clusters=3.5 is not an integer"),
        (
            {"n_clusters": "many"},
            r"n_clusters='many' is not a number; pass a number such as 5, a range",
        ),
        ({"min_cluster_size": 0}, r"min_cluster_size=0 is out of range"),
        (
            {"n_clusters": 2, "min_cluster_size": 5},
            r"min_cluster_size=5 applies only if the number of clusters is chosen, but n_clusters=2; drop one",
        ),
        ({"noise": 1.0}, r"noise=1.0 is out of range"),
        ({"noise": "some"}, r"noise='some' is unknown; give a [^\n]*'auto'"),
    ],
)
def test_parameters_that_cannot_be_are_refused_in_one_sentence(parameters, sentence):
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as caught:
        front_door(**parameters).fit(touching(60))
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    ("kernel", "rows", "sentence"),
    [
        (
            "auto",
            np.repeat(np.eye(5), 20, axis=0),
            "the sample has 5 rows that differ, fewer than n_clus",
        ),
        (
            "linear",
            scipy.sparse.csr_array((30, 70)),
            "all rows are equal, so they cannot be split into clusters",
        ),
        (
            "auto",
            1e200 * touching(40),
            "differences or sums of the values overflow .column . has the larg",
        ),
        (
            "linear",
            1e200 * touching(40),
            "differences or sums of the values overflow .column . has the larg",
        ),
    ],
)
def test_rows_that_cannot_be_clustered_are_refused_in_one_sentence(
    kernel, rows, sentence
):
    with pytest.raises(InputError, match=f"^{sentence}") as error:
        front_door(7, kernel=kernel, scale=None).fit(rows)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")
