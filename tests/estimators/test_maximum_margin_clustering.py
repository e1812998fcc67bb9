"""The front door: what it takes, that model, labels and J agree, its laws, and what it refuses."""

import pickle
import warnings

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, homogeneity_score

import mmcnb
from mmcnb.choice.candidates import GINI_THRESHOLDS, MARGIN, NEIGHBOURS, TREE
from mmcnb.choice.pick import REPAIRED
from mmcnb.datasets import make_shape
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from mmcnb.stores import create_csr_store, create_dense_store

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
OF_GRAPH = {
    TREE,
    *(f"communities {count}" for count in NEIGHBOURS),
    *(f"linkage {g}" for g in GINI_THRESHOLDS),
}
WAYS = {
    "all candidates": {},
    "graph": {"kernel": "graph"},
    "Gaussian margin": {"kernel": "rbf"},
    "linear margin": {"kernel": "linear"},
    "directions": {"metric": "cosine"},
    "fewer nodes": {"n_nodes": 150},
}


def front_door(n_clusters=2, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


def blobs(n=300, k=3, d=4, spread=1.0, seed=0):
    """Round groups, ten apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 10.0 * np.eye(k, d)[y] + spread * rng.standard_normal((n, d)), y


def touching(n=400, seed=0):
    """Groups that overlap, so that where a row belongs is not plain."""
    return blobs(n, d=3, spread=3.5, seed=seed)[0]


def topics(n=400, seed=0, dtype=np.float64):
    """Sparse rows of three topics."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    likely = np.where(np.arange(90) // 30 == y[:, None], 0.5, 0.03)
    return scipy.sparse.csr_array(
        ((rng.random((n, 90)) < likely) * (0.5 + rng.random((n, 90)))).astype(dtype)
    ), y


def of_length_one(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def told(model):
    """The report, without what differs between equal fits."""
    bare = {name: value for name, value in model.report_.items() if not name.endswith("seconds")}
    bare["candidates"] = [{**one, "seconds": None} for one in model.report_["candidates"]]
    return bare


def facts(model, probe):
    """What must be the same to the bit."""
    arrays = {name: array.tobytes() for name, array in model.model_.arrays().items()}
    values = model.decision_function(probe).tobytes(), model.predict_proba(probe).tobytes()
    return model.labels_.tobytes(), arrays, values, model.objective_, model.candidate_, told(model)


# -- what is taken -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-rings", "three-rings", "four-moons", "nine-blobs"])
def test_shapes_are_found_and_trusted(name):
    X, y = make_shape(name, random_state=0)
    model = front_door(int(y.max()) + 1).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.report_["trust"]["level"] == "high"
    new, classes = make_shape(name, 300, random_state=1)
    assert adjusted_rand_score(classes, model.predict(new)) > 0.98


def test_of_two_level_partitions_the_widest_margin_is_taken_at_two_clusters():
    X, _ = make_shape("two-rings", random_state=0)
    model = front_door().fit(X)
    assert len({one["J"] for one in model.report_["candidates"]}) == 1
    assert (model.candidate_, model.kernel_) == (MARGIN, "rbf")
    assert front_door(kernel="graph").fit(X).kernel_ == "graph"


@pytest.mark.parametrize(
    ("parameters", "names", "kernel"),
    [
        ({}, OF_GRAPH | {MARGIN}, None),
        ({"n_clusters": 3}, OF_GRAPH, "graph"),
        ({"kernel": "graph"}, OF_GRAPH, "graph"),
        ({"kernel": "rbf"}, {MARGIN}, "rbf"),
        ({"n_clusters": 3, "kernel": "rbf"}, {MARGIN}, "rbf"),
        ({"kernel": "linear"}, {MARGIN}, "linear"),
        ({"kernel": "graph", "metric": "cosine"}, OF_GRAPH | {"layout"}, "graph"),
    ],
)
def test_kernel_and_metric_say_which_candidates_there_are(parameters, names, kernel):
    model = front_door(**parameters).fit(touching())
    found = {one["candidate"].removesuffix(REPAIRED) for one in model.report_["candidates"]}
    assert found | set(model.report_["left_out"]) == names
    assert model.kernel_ in ([kernel] if kernel else ["graph", "rbf"])
    assert model.candidate_ in [one["candidate"] for one in model.report_["candidates"]]


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf", "linear"])
def test_without_structure_the_only_candidate_is_one_cluster(kernel):
    X = np.random.default_rng(0).standard_normal((600, 5))
    with pytest.warns(
        ClusterWarning, match=r"^the clusters may be none: one cluster: no partition differs [^\n]*\.$"
    ):
        model = front_door(None, kernel=kernel).fit(X)
    assert model.labels_.tolist() == [0] * 600
    assert (model.n_clusters_, model.candidate_, model.kernel_) == (1, "one cluster", "graph")
    assert [one["candidate"] for one in model.report_["candidates"]] == ["one cluster"]
    assert model.report_["number"]["reason"].startswith("one cluster: no partition differs from rows without")
    assert model.report_["trust"]["level"] == "low"
    assert model.layers_["n_clusters"].tolist() == [1]


def test_candidates_are_told_by_falling_j():
    X = touching()
    model = front_door(4).fit(X)
    candidates = model.report_["candidates"]
    scores = [one["J"] for one in candidates]
    assert scores == sorted(scores, reverse=True)
    assert model.objective_ == scores[0]
    for one in candidates:
        assert one["J"] == pytest.approx(4 * one["information"] + one["gap"])
        assert (len(one["shares"]), sum(one["shares"])) == (4, pytest.approx(1))
        assert one["broken"] is None


def test_rows_all_of_one_kind_are_not_trusted():
    told = "^the clusters may be none: the clusters are no clearer than those of rows without structure"
    with pytest.warns(ClusterWarning, match=told):
        model = front_door(5).fit(np.random.default_rng(0).standard_normal((600, 5)))
    trust = model.report_["trust"]
    assert (trust["level"], trust["reason"].count(". ")) == ("low", 0)
    assert 0 <= trust["agreement"] < 0.8


# -- the number of clusters --------------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, "auto"])
@pytest.mark.parametrize("name", ["two-moons", "scattered-blobs", "seven-blobs"])
def test_the_number_of_clusters_is_found_and_told(name, asked):
    X, y = make_shape(name, random_state=0)
    model = front_door(asked).fit(X)
    assert model.n_clusters_ == y.max() + 1 == np.unique(model.labels_).size
    number = model.report_["number"]
    assert list(number) == ["n_clusters", "reason", "next_best", "agreement"]
    assert number["n_clusters"] == model.n_clusters_ != number["next_best"]
    assert number["reason"].startswith(
        f"{model.n_clusters_} clusters: their expected agreement with the right"
    )
    assert 0 < number["agreement"] <= 1
    assert adjusted_rand_score(front_door(model.n_clusters_).fit(X).labels_, model.labels_) > 0.98


def test_a_number_that_is_given_needs_no_reason():
    X, _ = make_shape("seven-blobs", random_state=0)
    assert front_door(3).fit(X).report_["number"] is None


@pytest.mark.parametrize("range_", [(2, 4), [3, 3], (9, 12), (2, 40), np.array([4, 6]).tolist()])
def test_the_number_lies_in_its_range(range_):
    for X in (make_shape("seven-blobs", random_state=0)[0], touching()):
        model = front_door(range_).fit(X)
        assert range_[0] <= model.n_clusters_ <= range_[1]
        assert np.unique(model.labels_).size == model.n_clusters_ == model.report_["number"]["n_clusters"]


@pytest.mark.parametrize("range_", [(12, 30), (25, 60), (59, 61), (60, 60)])
def test_the_number_lies_in_a_range_of_nearly_as_many_as_rows(range_):
    X = touching(60)
    model = front_door(range_).fit(X)
    assert range_[0] <= model.n_clusters_ <= range_[1]
    assert np.unique(model.labels_).size == model.n_clusters_
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("range_", [(2, 9), (4, 9), (5, 5)])
def test_a_range_of_few_rows_is_held(range_):
    model = front_door(range_).fit(np.arange(5.0)[:, None] ** 2)
    assert range_[0] <= model.n_clusters_ <= 5
    with pytest.raises(InputError, match=r"n_clusters=4 is more than the 3 rows"):
        front_door((4, 9)).fit([[0.0], [1.0], [5.0]])


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf", "linear"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_equal_rows_are_one_cluster_or_an_error(tmp_path, kernel, metric, form):
    X = form(np.full((30, 3), 0.1))
    for asked in (None, "auto"):
        model = front_door(asked, kernel=kernel, metric=metric).fit(X)
        assert model.labels_.tolist() == model.predict(X).tolist() == [0] * 30
        reason = "one cluster: all rows are equal, or differ by less than rounding."
        assert model.report_["number"]["reason"] == model.report_["trust"]["reason"] == reason
        assert (model.report_["sizes"], model.report_["candidates"], model.n_clusters_) == ([30], [], 1)
        assert len(model.layers_) == 0
        assert model.history_["stage"].tolist() == ["labels"]
        model.save(tmp_path / "a.model")
        assert mmcnb.load(tmp_path / "a.model").predict(X).tolist() == [0] * 30
        (tmp_path / "a.model").unlink()
        with pytest.raises(InputError, match=r"^this model has no merge tree: its rows are equal; [^\n]*\.$"):
            model.linkage_
    for asked in (2, (2, 5)):
        with pytest.raises(
            InputError, match=r"^all rows are equal, or differ by less than rounding \(column 0 has the "
        ):
            front_door(asked, kernel=kernel, metric=metric).fit(X)


# -- small clusters ----------------------------------------------------------------------------


def with_a_small_group(count=20):
    """Three groups of 100 rows and one of a few."""
    X, y = blobs(300, k=3, spread=0.5)
    small = 60 * np.eye(4)[3] + np.random.default_rng(1).standard_normal((count, 4))
    return np.r_[X, small], np.r_[y, [3] * count]


@pytest.mark.parametrize("kernel", ["auto", "graph"])
def test_clusters_have_the_fewest_rows_asked_for_as_a_count_or_a_share(kernel):
    X, y = with_a_small_group()
    free = front_door(None, kernel=kernel, scale=None).fit(X)
    assert adjusted_rand_score(y, free.labels_) == 1
    counted = front_door(None, kernel=kernel, scale=None, min_cluster_size=40).fit(X)
    assert counted.n_clusters_ == 3
    assert min(counted.report_["sizes"]) >= 40
    share = front_door(None, kernel=kernel, scale=None, min_cluster_size=40 / 320).fit(X)
    np.testing.assert_array_equal(share.labels_, counted.labels_)
    few = front_door(None, kernel=kernel, scale=None, min_cluster_size=15).fit(X)
    np.testing.assert_array_equal(few.labels_, free.labels_)
    assert front_door(None, kernel=kernel, min_cluster_size=320).fit(X).n_clusters_ == 1


def test_the_fewest_rows_are_counted_by_their_weights():
    X, _ = with_a_small_group()
    settings = {"scale": None, "min_cluster_size": 0.15}
    light = front_door(None, **settings).fit(X)
    heavy = front_door(None, **settings).fit(X, sample_weight=np.repeat([1.0, 10.0], [300, 20]))
    assert (light.n_clusters_, heavy.n_clusters_) == (3, 4)


# -- model, labels and J -----------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [None, 2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_labels_are_those_of_the_model_of_its_probabilities_and_of_its_file(tmp_path, way, n_clusters):
    X = touching()
    model = front_door(n_clusters, **WAYS[way]).fit(X)
    n_clusters = model.n_clusters_
    values, shares = model.decision_function(X), model.predict_proba(X)
    assert values.shape == shares.shape == (len(X), n_clusters)
    for found in (model.predict(X), values.argmax(axis=1), shares.argmax(axis=1)):
        np.testing.assert_array_equal(found, model.labels_)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert (shares >= 0).all()
    assert model.report_["sizes"] == np.bincount(model.labels_, minlength=n_clusters).tolist()
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    model.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    np.testing.assert_array_equal(read.predict(X), model.labels_)
    assert read.predict_proba(X).tobytes() == shares.tobytes()
    for name in ("objective_", "n_clusters_", "candidate_", "kernel_", "report_"):
        assert getattr(read, name) == getattr(model, name)
    assert read.get_params() == model.get_params()
    assert read.history_.equals(model.history_)


@pytest.mark.parametrize("way", ["graph", "Gaussian margin"])
def test_probabilities_are_streamed_to_a_store_or_refused_above_the_limit(tmp_path, way):
    X = np.repeat(touching(), 50, axis=0)
    model = front_door(**WAYS[way]).fit(X[::50])
    whole = model.predict_proba(X)
    assert model.predict_proba(X, tmp_path / "shares.zarr") is None
    kept = mmcnb.open_samples(tmp_path / "shares.zarr")
    assert kept.block(0, kept.n_samples).tobytes() == whole.tobytes()
    with pytest.raises(MemoryLimitError, match="give out, a path"):
        model.set_params(memory_limit=16 * len(X) - 1).predict_proba(X)
    model.set_params(memory_limit="1GiB").predict_proba(X, tmp_path / "others.zarr")
    with pytest.raises(InputError, match="exists"):
        model.predict_proba(X, tmp_path / "others.zarr")


@pytest.mark.parametrize("way", ["all candidates", "graph", "Gaussian margin", "directions"])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_the_objective_is_the_score_of_the_labels(way, n_clusters):
    X = touching()
    model = front_door(n_clusters, **WAYS[way]).fit(X)
    score = mmcnb.partition_score(X, model.labels_, metric=model.metric)
    assert model.objective_ == pytest.approx(score.J, rel=1e-9)
    taken = next(one for one in model.report_["candidates"] if one["candidate"] == model.candidate_)
    assert (taken["information"], taken["gap"]) == pytest.approx((score.information, score.gap), rel=1e-9)


def test_no_cluster_is_empty():
    X, _ = blobs(100)
    for rows in (np.r_[X, np.full((1, 4), 60.0)], np.repeat(np.eye(5), 20, axis=0), X):
        for k in (2, 4, 5):
            assert min(front_door(k, kernel="graph").fit(rows).report_["sizes"]) > 0
    assert np.bincount(front_door(100).fit(X).labels_).tolist() == [1] * 100


@pytest.mark.parametrize("copied", [clone, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_have_the_same_settings(copied):
    X = touching()
    model = front_door(3, kernel="graph", metric="cosine", n_nodes=200).fit(X)
    again = copied(model)
    assert again.get_params() == model.get_params()
    again = again.fit(X) if copied is clone else again
    np.testing.assert_array_equal(again.predict(X), model.labels_)


def test_rows_one_by_one_have_the_labels_of_all():
    X = touching(300)
    for way in ("graph", "Gaussian margin", "directions"):
        model = front_door(3, **WAYS[way]).fit(X)
        alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(60)])
        np.testing.assert_array_equal(alone, model.labels_[:60])


def test_a_fit_without_labels_has_the_same_model(tmp_path):
    X = touching()
    whole, bare = front_door(3, n_nodes=200).fit(X), front_door(3, n_nodes=200).fit_model(X)
    assert not hasattr(bare, "labels_")
    np.testing.assert_array_equal(bare.predict(X), whole.labels_)
    assert bare.predict(X, out=tmp_path / "labels.zarr") is None
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], whole.labels_)


def test_the_history_ends_with_the_labels():
    X = touching()
    for kernel in ("graph", "rbf"):
        history = front_door(kernel=kernel).fit(X).history_
        assert history["stage"].iloc[-1] == "labels"
        named = history["stage"].drop_duplicates(keep="last").tolist()
        assert [one for one in named if one in ("graph", "choice", "labels")] == ["graph", "choice", "labels"]


# -- storages, threads, workers and checkpoints ------------------------------------------------


@pytest.mark.parametrize("way", ["all candidates", "graph", "Gaussian margin", "directions"])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_threads_and_storages_of_dense_rows_give_the_same_bits(tmp_path, way, n_clusters):
    X = touching(6000).astype(np.float32)
    settings = WAYS[way] | {"n_nodes": 500, "scale": "standard"}
    for chunks in ((777, 2), (5000, 1)):
        zarr.create_array(tmp_path / f"{chunks[0]}.zarr", data=X, chunks=chunks)
    expected = facts(front_door(n_clusters, n_jobs=1, **settings).fit(X), X[:500])
    lazy = dask.array.from_array(X, chunks=(1234, 3))
    for rows in (X, tmp_path / "777.zarr", tmp_path / "5000.zarr", lazy):
        assert facts(front_door(n_clusters, n_jobs=3, **settings).fit(rows), X[:500]) == expected


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_threads_and_storages_of_sparse_rows_give_the_same_bits(tmp_path, metric):
    X, y = topics(6000, dtype=np.float32)
    settings = {"n_nodes": 500, "metric": metric}
    with create_csr_store(tmp_path / "csr.zarr", X.shape[1]) as writer:
        writer.append(X)
    model = front_door(3, n_jobs=1, **settings).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    for rows in (X, tmp_path / "csr.zarr", scipy.sparse.csr_matrix(X)):
        again = front_door(3, n_jobs=3, **settings).fit(rows)
        assert facts(again, X[:500]) == facts(model, X[:500])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["all candidates", "graph", "directions"])
def test_workers_of_a_cluster_give_the_same_bits_as_threads(tmp_path, way, dask_client):
    X = touching(GROUP_ROWS + 3001).astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3, chunk_rows=3 * BLOCK_ROWS) as writer:
        writer.append(X)
    settings = WAYS[way] | {"n_nodes": 400}
    expected = facts(front_door(n_jobs=2, **settings).fit(X), X[:500])
    model = front_door(engine=dask_client(2), **settings).fit(tmp_path / "rows.zarr")
    assert facts(model, X[:500]) == expected


@pytest.mark.parametrize(("n_clusters", "way"), [(2, "all candidates"), (3, "graph"), (3, "Gaussian margin")])
def test_a_checkpoint_of_some_passes_leads_to_the_same_end(tmp_path, n_clusters, way):
    X = touching(9000).astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3, chunk_rows=BLOCK_ROWS) as writer:
        writer.append(X)
    settings = WAYS[way] | {"n_nodes": 400}
    expected = facts(front_door(n_clusters, **settings).fit(tmp_path / "rows.zarr"), X[:500])
    model = front_door(n_clusters, checkpoint=tmp_path / "run", **settings)
    assert facts(model.fit(tmp_path / "rows.zarr"), X[:500]) == expected
    assert not model.history_["resumed"].any()
    for entry in sorted((tmp_path / "run" / "passes").iterdir(), reverse=True):
        entry.unlink()
        assert facts(model.fit(tmp_path / "rows.zarr"), X[:500]) == expected
    assert facts(model.fit(tmp_path / "rows.zarr"), X[:500]) == expected
    assert model.history_["resumed"].iloc[-1]
    with pytest.raises(InputError, match=r"^[^\n]*n_nodes is 400 there and 401 here[^\n]*\.$"):
        model.set_params(n_nodes=401).fit(tmp_path / "rows.zarr")


def test_a_large_fit_reads_its_rows_twice(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=touching(9000), chunks=(1000, 3))
    history = front_door(n_nodes=300).fit(tmp_path / "a.zarr").history_
    assert history["reads"].iloc[-1] == 2


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_are_clustered_as_dense_ones(metric):
    X, y = topics()
    for columns in (90, 40):  # above and below the number of axes
        sparse, dense = (
            front_door(3, metric=metric).fit(rows) for rows in (X[:, :columns], X[:, :columns].toarray())
        )
        assert adjusted_rand_score(sparse.labels_, dense.labels_) > 0.95
    assert adjusted_rand_score(y, front_door(3, metric=metric).fit(X).labels_) > 0.95


# -- laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 3, None])
@pytest.mark.parametrize("kernel", ["auto", "graph"])
def test_weights_are_repetitions(kernel, n_clusters):
    X, counts = touching(200), np.random.default_rng(1).integers(1, 5, 200)
    model = front_door(n_clusters, kernel=kernel)
    weighted = clone(model).fit(X, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert repeated.objective_ == pytest.approx(weighted.objective_, rel=1e-9)
    assert repeated.report_["sizes"] == weighted.report_["sizes"]


@pytest.mark.parametrize("n_clusters", [2, 3, None])
@pytest.mark.parametrize("times", [np.repeat, np.tile])
def test_all_rows_three_times_are_the_same_partition(times, n_clusters):
    X = touching(200)
    thrice = np.repeat(X, 3, axis=0) if times is np.repeat else np.tile(X, (3, 1))
    once, many = front_door(n_clusters).fit(X), front_door(n_clusters).fit(thrice)
    assert adjusted_rand_score(times(once.labels_, 3), many.labels_) == 1
    assert many.objective_ == pytest.approx(once.objective_, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_margin_lies_between_few_distinct_rows_of_uneven_weights(kernel):
    X = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    weights = np.where(np.arange(16) < 4, 100.0, 1.0)
    model = front_door(2, kernel=kernel).fit(X, sample_weight=weights)
    assert model.candidate_ == "margin"
    assert sorted(np.unique(model.labels_)) == [0, 1]


def test_rows_of_no_weight_change_nothing():
    X = touching(300)
    weights = np.r_[np.ones(300), np.zeros(80)]
    plain = front_door(3).fit(X)
    weighted = front_door(3).fit(np.r_[X, touching(80, seed=9)], sample_weight=weights)
    np.testing.assert_array_equal(weighted.labels_[:300], plain.labels_)
    assert (weighted.objective_, weighted.report_["sizes"]) == (plain.objective_, plain.report_["sizes"])


@pytest.mark.parametrize("n_clusters", [2, 3, None])
@pytest.mark.parametrize(
    "change",
    [lambda X: 1e6 * X, lambda X: 1e-6 * X, lambda X: X + 1e4, lambda X: -X, lambda X: X[:, ::-1]],
    ids=["times a million", "by a million", "shifted", "mirrored", "columns in another order"],
)
def test_unit_origin_and_order_of_columns_do_not_matter(change, n_clusters):
    X = touching()
    one, other = front_door(n_clusters).fit(X), front_door(n_clusters).fit(change(X))
    assert adjusted_rand_score(one.labels_, other.labels_) > 0.99


@pytest.mark.parametrize("n_clusters", [3, None])
def test_rows_that_change_places_have_the_same_clusters(n_clusters):
    X, y = blobs()
    order = np.random.default_rng(3).permutation(len(X))
    one, other = front_door(n_clusters).fit(X), front_door(n_clusters).fit(X[order])
    assert adjusted_rand_score(one.labels_[order], other.labels_) == adjusted_rand_score(y, one.labels_) == 1
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)


PLACES = {
    "apart": [40.0, 0, 0, 0],
    "between": [5.0, 5.0, 0, 0],
    "beside": [13.5, 0, 0, 0],
    "at the origin": [0.0] * 4,
}


@pytest.mark.parametrize("count", [5, 20, 50, 100])
@pytest.mark.parametrize("place", PLACES)
def test_equal_rows_are_a_cluster(place, count):
    X, y = blobs(250)
    rows, classes = np.r_[X, np.tile(PLACES[place], (count, 1))], np.r_[y, [3] * count]
    model = front_door(4, scale=None).fit(rows)
    assert adjusted_rand_score(classes, model.labels_) == 1
    assert model.report_["trust"]["level"] == "high"
    weighted = front_door(4, scale=None).fit(rows[:251], sample_weight=np.r_[np.ones(250), count])
    assert adjusted_rand_score(classes[:251], weighted.labels_) == 1


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_rows_without_a_value_are_a_cluster(form):
    X, y = blobs(300, spread=0.5)
    rows = np.r_[np.where(np.abs(X) > 2, X, 0), np.zeros((100, 4))]
    model = front_door(4).fit(form(rows))
    assert adjusted_rand_score(np.r_[y, [3] * 100], model.labels_) > 0.95


def test_rows_that_are_nearly_all_equal_are_clustered():
    X = np.zeros((6000, 2))
    X[:4] = [[1, 0], [0, 1], [5, 5], [5, 6]]
    model = front_door().fit(X)
    assert adjusted_rand_score(np.arange(6000) < 4, model.labels_) > 0.4
    assert len(set(model.labels_[4:].tolist())) == 1


# -- directions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf", "linear"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_directions_are_rows_divided_by_their_lengths(tmp_path, kernel, form):
    X = topics()[0].toarray() + 1e-3
    X *= np.random.default_rng(0).lognormal(0, 2, len(X))[:, None]
    model = front_door(kernel=kernel, metric="cosine").fit(form(X))
    plain = front_door(kernel=kernel).fit(form(of_length_one(X)))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    model.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    assert read.metric == "cosine"
    np.testing.assert_array_equal(read.predict(form(7 * X)), model.labels_)
    assert read.predict_proba(form(X)).tobytes() == model.predict_proba(form(X)).tobytes()


def test_texts_of_unlike_lengths_are_found_by_their_directions():
    X, y = topics(600)
    longer = X.multiply(np.random.default_rng(0).lognormal(0, 2, 600)[:, None]).tocsr()
    assert adjusted_rand_score(y, front_door(3, metric="cosine").fit(longer).labels_) > 0.95


def test_sparse_directions_of_which_some_are_empty_are_clustered():
    X = topics(300)[0].tolil()
    X[::7] = 0
    X = scipy.sparse.csr_array(X)
    model = front_door(4, metric="cosine").fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert len(set(model.labels_[::7].tolist())) == 1


# -- odd input, and input that cannot be used --------------------------------------------------


SENTENCES = {
    "unknown kernel": ({"kernel": "poly"}, r"kernel='poly' is unknown; choose one of 'auto', 'graph', 'rbf'"),
    "unknown metric": ({"metric": "manhattan"}, r"metric='manhattan' is unknown"),
    "no nodes": ({"n_nodes": 1}, r"n_nodes=1 is out of range"),
    "no cluster": ({"n_clusters": 0}, r"n_clusters=0 is out of range"),
    "a range upside down": ({"n_clusters": (5, 3)}, r"n_clusters=\(5, 3\) is upside down; give \(3, 5\)"),
    "a range of three": (
        {"n_clusters": (2, 3, 4)},
        r"n_clusters=\(2, 3, 4\) is no range; give the least and",
    ),
    "a range beyond the rows": ({"n_clusters": (61, 70)}, r"n_clusters=61 is more than the 60 rows"),
    "a range beyond the nodes": (
        {"n_clusters": (9, 20), "n_nodes": 5},
        r"n_nodes=5 is smaller than n_clusters=9",
    ),
    "a range of halves": ({"n_clusters": (2, 3.5)}, r"n_clusters=3.5 is out of range"),
    "no rows in a cluster": (
        {"n_clusters": None, "min_cluster_size": 0},
        r"min_cluster_size=0 is out of range",
    ),
    "rows of a given number": (
        {"min_cluster_size": 5},
        r"min_cluster_size=5 needs a number to find, not n_clusters=2; drop one\.$",
    ),
    "all is noise": ({"noise": 1.0}, r"noise=1.0 is out of range"),
    "noise by a name": ({"noise": "some"}, r"noise='some' is unknown; give a [^\n]*'auto'"),
    "a name": (
        {"n_clusters": "many"},
        r"n_clusters='many' is unknown; give a positive number or one of 'auto'",
    ),
    "half a cluster": ({"n_clusters": 2.5}, r"n_clusters=2.5 is out of range"),
    "more clusters than rows": ({"n_clusters": 61}, r"n_clusters=61 is more than the 60 rows; give fewer"),
    "more clusters than nodes": (
        {"n_clusters": 9, "n_nodes": 5},
        r"n_nodes=5 is smaller than n_clusters=9",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_cannot_be_is_refused_in_one_sentence(case):
    parameters, sentence = SENTENCES[case]
    X, _ = make_shape("two-moons", 60, random_state=0)
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*$") as caught:
        front_door(**parameters).fit(X)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")


ROWS = {
    "more clusters than rows that differ": (
        np.repeat(np.eye(5), 20, axis=0),
        r"^the sample has 5 rows that differ, fewer than n_clusters=7; give fewer clusters",
    ),
    "equal": (
        np.full((30, 3), 0.1),
        r"^all rows are equal, or differ by less than rounding \(column 0 has the ",
    ),
    "equal in many columns": (np.full((90, 60), 0.1), r"^all rows are equal, or differ by less"),
    "empty and sparse": (scipy.sparse.csr_array((30, 70)), r"^all rows are equal, or differ by less"),
    "of squares that overflow": (
        1e200 * blobs(40)[0],
        r"^differences or sums of the values overflow \(column \d has the largest values\); divide",
    ),
    "not a number": (np.where(np.eye(40, 3) > 0, np.nan, 1.0), r"NaN"),
}


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf", "linear"])
@pytest.mark.parametrize("case", ROWS)
def test_rows_that_cannot_be_clustered_are_refused_in_one_sentence(case, kernel):
    rows, sentence = ROWS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=sentence) as error:
            front_door(7, kernel=kernel, scale=None).fit(rows)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("way", WAYS)
def test_two_rows_are_two_clusters(way):
    model = front_door(**WAYS[way]).fit([[0.0, 1.0], [3.0, 1.0]])
    assert model.labels_.tolist() == [0, 1]


@pytest.mark.parametrize("way", ["all candidates", "graph", "Gaussian margin", "directions"])
@pytest.mark.parametrize("factor", [1e-150, 1e-100, 1e-12, 1e12, 1e100, 1e150])
def test_rows_in_any_unit_have_the_same_clusters(way, factor):
    X, y = blobs(90, k=2)
    assert adjusted_rand_score(y, front_door(**WAYS[way]).fit(factor * X).labels_) == 1
    X[:, 2] *= factor
    scaled = {"scale": "standard"} if factor > 1 else {}  # else the column is all that counts
    assert adjusted_rand_score(y, front_door(**WAYS[way] | scaled).fit(X).labels_) == 1


@pytest.mark.parametrize("n_clusters", [3, None])
def test_weights_of_all_magnitudes_are_taken(n_clusters):
    X, y = blobs()
    for weights in (np.where(y == 1, 1e-12, 1e12), 10.0 ** np.random.default_rng(0).uniform(-12, 12, 300)):
        model = front_door(n_clusters).fit(X, sample_weight=weights)
        assert np.isfinite(model.objective_)
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        assert model.report_["sizes"] == pytest.approx(np.bincount(model.labels_, weights), rel=1e-9)
        assert homogeneity_score(y, model.labels_) == pytest.approx(1)  # few heavy rows may part
    assert n_clusters is None or adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_a_candidate_that_fails_is_left_out_with_its_reason(monkeypatch, n_clusters):
    def fails(*_):
        raise InputError("there is nothing to find.")

    monkeypatch.setattr("mmcnb.estimators.maximum_margin_clustering.margin_on_sample", fails)
    monkeypatch.setattr("mmcnb.choice.candidates.genie_at", lambda *_: None)
    model = front_door(n_clusters).fit(touching())
    left_out = {f"linkage {g}": f"it finds no {n_clusters} clusters." for g in GINI_THRESHOLDS}
    left_out |= {MARGIN: "there is nothing to find."} if n_clusters == 2 else {}
    assert model.report_["left_out"] == left_out
    assert model.candidate_.startswith(("communities", TREE))


def test_other_columns_are_refused_on_predicting():
    model = front_door(kernel="graph").fit(touching())
    with pytest.raises(ValueError, match="5"):
        model.predict(np.zeros((3, 5)))


def test_a_small_memory_limit_is_refused_and_the_one_it_names_works():
    X = np.zeros((40_000, 50), np.float32)
    with pytest.raises(MemoryLimitError, match=r"the least that works is [\d.]+ [MG]iB\.$") as error:
        front_door(memory_limit="200MiB").fit(X)
    least = str(error.value).split("is ")[-1].rstrip(".")
    assert front_door(memory_limit=least.replace(" ", "")).plan(X).peak <= mmcnb._config.parse_bytes(least)


def test_a_column_with_nearly_all_of_the_variance_is_told_until_columns_are_scaled():
    X = touching()
    X[:, 1] *= 1000
    with pytest.warns(ClusterWarning, match=r"^column 1 has more than 99% [^\n]*scale='standard'[^\n]*\.$"):
        model = front_door(kernel="graph", scale=None).fit(X)
    assert any("column 1" in sentence for sentence in model.report_["warnings"])
    for scale in ("standard", "auto"):
        scaled = front_door(kernel="graph", scale=scale).fit(X)
        assert not any("column 1" in sentence for sentence in scaled.report_["warnings"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", [{"scale": "standard"}, {"metric": "cosine"}])
@pytest.mark.parametrize("n", [200, 3000])
def test_rows_of_the_caller_are_left_as_they_are(n, settings, dtype):
    X = (touching(n) * 3 + 1).astype(dtype)
    before = X.copy()
    front_door(3, **settings).fit(X)
    np.testing.assert_array_equal(X, before)


def test_rows_deep_in_a_cluster_vote_on_their_probabilities_if_asked():
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 6000)
    X = 3 * random.normal(size=(4, 3))[y] + random.normal(size=(6000, 3))
    model = mmcnb.MaximumMarginClustering(4, kernel="graph", n_nodes=5000, random_state=0).fit(X)
    found, exact = model.predict_proba(X), model.predict_proba(X, exact=True)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    is_sure = found.max(axis=1) == 1
    np.testing.assert_array_equal(found[~is_sure], exact[~is_sure])
    assert 0.5 < is_sure.mean() < 1
    assert (exact.max(axis=1) < 1)[is_sure].any()
    assert np.mean(found.argmax(axis=1) != exact.argmax(axis=1)) < 0.01
    np.testing.assert_array_equal(model.predict(X), model.labels_)  # the model still labels as it did
