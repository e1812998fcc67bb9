"""What sets clusters apart: the figures by brute force, one answer wherever rows are, and plain sentences."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances, roc_auc_score
from zarr.storage import LocalStore

import mmcnb
from mmcnb._config import parse_bytes
from mmcnb.engine.plan import RowShape
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.explanation.groups import drawn_rows, grouped, plan_explanation, sizes_of_samples
from mmcnb.samples import GROUP_ROWS, open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.samples.test_reads import RecordingStore

N_CLUSTERS = 3


def planted(n=240, d=6, seed=0, dtype=np.float64):
    """Three clusters, the k-th of which is high in column k; and the clusters."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    X = rng.normal(50, 5, (n, d))
    X[np.arange(n), y] += 60
    return X.astype(dtype), y


def fitted(X, **parameters):
    return mmcnb.UnsupervisedRLS(N_CLUSTERS, kernel="linear", n_init=2, random_state=0, **parameters).fit(X)


@pytest.fixture(scope="module")
def small():
    X, _ = planted()
    return X, fitted(X)


def tables(explanation):
    return explanation.clusters, explanation.columns, explanation.rows


def assert_same(one, other):
    for a, b in zip(tables(one), tables(other), strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)


# -- the figures ----------------------------------------------------------------------------------


def by_hand(X, inside):
    """The figures of each column, by NumPy and scikit-learn."""
    own, others = X[inside], X[~inside]
    near = -np.abs(X - np.median(own, axis=0))
    return pd.DataFrame(
        {
            "effect": (own.mean(axis=0) - others.mean(axis=0)) / X.std(axis=0),
            "auc": [roc_auc_score(inside, column) for column in X.T],
            "near": [roc_auc_score(inside, column) for column in near.T],
            "mean": own.mean(axis=0),
            "others_mean": others.mean(axis=0),
            "median": np.median(own, axis=0),
            "others_median": np.median(others, axis=0),
            "spread": np.median(-near[inside], axis=0),
            "others_spread": np.median(-near[~inside], axis=0),
        }
    )


@pytest.mark.parametrize("labels", ["of the fit", "at random, with noise"])
def test_figures_of_few_rows_are_those_by_hand(labels):
    X = np.round(planted()[0])  # with ties
    model = fitted(X)
    given = model.labels_ if labels == "of the fit" else np.random.default_rng(1).integers(-1, 4, len(X))
    columns = model.explain(X, given).columns
    assert set(columns["cluster"]) == set(given[given >= 0].tolist())
    for cluster, found in columns.groupby("cluster"):
        expected = by_hand(X, given == cluster)
        found = found.set_index("column").sort_index()
        pd.testing.assert_frame_equal(found[expected.columns], expected, check_names=False, rtol=1e-9)


def test_columns_that_tell_most_come_first(small):
    X, model = small
    columns = model.explain(X).columns
    strength = np.maximum((columns["auc"] - 0.5).abs(), columns["near"] - 0.5)
    for _, own in strength.groupby(columns["cluster"]):
        assert (own.diff().dropna() <= 1e-9).all()


def test_clusters_are_counted_and_the_nearest_has_the_least_margin(small):
    X, model = small
    clusters, f = model.explain(X).clusters, model.decision_function(X)
    np.testing.assert_array_equal(clusters["rows"], np.bincount(model.labels_))
    assert clusters["share"].sum() == pytest.approx(1)
    for row in clusters.itertuples():
        means = f[model.labels_ == row.cluster].mean(axis=0)
        margins = means[row.cluster] - np.delete(means, row.cluster)
        assert row.margin == pytest.approx(margins.min())
        assert means[row.nearest] == np.delete(means, row.cluster).max()


def test_typical_rows_have_the_least_squared_distance_and_rows_at_the_edge_the_least_margin(small):
    X, model = small
    rows, margins = model.explain(X).rows, model.to_frame(X)["margin"].to_numpy()
    squared = pairwise_distances(X) ** 2
    for k in range(N_CLUSTERS):
        own, found = np.flatnonzero(model.labels_ == k), rows[rows["cluster"] == k]
        typical = own[np.argsort(squared[np.ix_(own, own)].sum(axis=1))[:3]]
        assert found["row"][found["kind"] == "typical"].tolist() == typical.tolist()
        edge = found[found["kind"] == "edge"]
        assert edge["row"].tolist() == own[np.argsort(margins[own])[:3]].tolist()
        np.testing.assert_allclose(edge["score"], np.sort(margins[own])[:3])
    assert set(rows["kind"]) == {"typical", "edge"}


def test_far_rows_have_the_largest_outlier_scores():
    X, _ = planted()
    X[7] += 300
    model = mmcnb.MaximumMarginClustering(N_CLUSTERS, random_state=0).fit(X)
    rows, scores = model.explain(X).rows, model.score_outliers(X)
    for k in range(N_CLUSTERS):
        own = np.flatnonzero(model.labels_ == k)
        far = rows[(rows["cluster"] == k) & (rows["kind"] == "far")]
        assert far["row"].tolist() == own[np.argsort(-scores[own], kind="stable")[:3]].tolist()
    assert 7 in set(rows["row"][rows["kind"] == "far"])


def test_a_sample_of_each_cluster_stands_for_all_of_its_rows():
    X, y = planted(60_000, 3)
    y = np.where(np.arange(len(y)) < 100, 3, y)  # a small cluster, of which all rows are taken
    columns = fitted(X[:300]).explain(X, y).columns
    for cluster, found in columns.groupby("cluster"):
        expected = by_hand(X, y == cluster)
        found = found.set_index("column").sort_index()
        exact = ["effect", "mean", "others_mean"]
        pd.testing.assert_frame_equal(found[exact], expected[exact], check_names=False, rtol=1e-9)
        np.testing.assert_allclose(found["auc"], expected["auc"], atol=0.01)
        if cluster < N_CLUSTERS:  # in its own column the others are one group, in which a median is sure
            assert found["others_median"][cluster] == pytest.approx(
                expected["others_median"][cluster], abs=0.3
            )
            assert found["median"][cluster] == pytest.approx(expected["median"][cluster], abs=0.3)


def test_rows_are_drawn_by_cluster():
    labels = np.repeat([5, -1, 2], [2 * GROUP_ROWS, 30, 9000])
    groups = grouped(labels)
    sizes = sizes_of_samples(groups.counts, 1000)
    rows = drawn_rows(groups, sizes)
    assert groups.clusters.tolist() == [-1, 2, 5]
    assert sizes.tolist() == [30, 485, 485]
    assert (np.diff(rows) > 0).all()
    assert [np.count_nonzero(labels[rows] == k) for k in groups.clusters] == sizes.tolist()
    assert rows[labels[rows] == 5].max() > GROUP_ROWS  # of the whole cluster, not of its beginning


# -- one answer -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Float32 rows of several groups, their model, and the same rows in a store."""
    X, _ = planted(GROUP_ROWS + 9000, 4, dtype=np.float32)
    path = tmp_path_factory.mktemp("explained") / "rows.zarr"
    with create_dense_store(path, 4, "float32", chunk_rows=5000) as writer:
        writer.append(X)
    return X, fitted(X), path


def test_rows_in_memory_and_in_a_store_have_the_same_bits_for_any_threads(stored):
    X, model, path = stored
    here = model.explain(X)
    for threads in (1, 3):
        with mmcnb.config(n_jobs=threads):
            assert_same(here, model.explain(path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_dask_cluster_has_the_same_bits(stored, dask_client):
    X, model, path = stored
    with mmcnb.config(engine=dask_client(2)):
        assert_same(model.explain(X), model.explain(path, model.labels_))


def test_sparse_rows_have_the_figures_of_dense_ones(tmp_path):
    X, _ = planted()
    X[X < 50] = 0
    sparse, model = sp.csr_array(X), fitted(X)
    with create_csr_store(tmp_path / "rows.zarr", X.shape[1], "float64") as writer:
        writer.append(sparse)
    dense, one = model.explain(X, model.labels_), model.explain(sparse, model.labels_)
    assert_same(one, model.explain(tmp_path / "rows.zarr", model.labels_))
    assert dense.columns["column"].tolist() == one.columns["column"].tolist()
    for name in one.columns.columns[4:]:
        np.testing.assert_allclose(one.columns[name], dense.columns[name], rtol=1e-9, atol=1e-12)
    assert dense.clusters["sentence"].tolist() == one.clusters["sentence"].tolist()


def test_labels_may_come_from_memory_a_file_or_the_model(stored, tmp_path):
    X, model, path = stored
    here = model.explain(X)
    model.save(tmp_path / "model")
    for name in ("labels.zarr", "labels.csv"):
        model.predict(path, out=tmp_path / name)
        assert_same(here, model.explain(X, tmp_path / name))
    assert_same(here, model.explain(X, zarr.open_array(tmp_path / "labels.zarr", mode="r")))
    assert_same(here, mmcnb.load(tmp_path / "model").explain(path))


def test_other_rows_than_those_of_the_fit_are_labelled_by_the_model(small):
    X, model = small
    assert_same(model.explain(X[::-1]), model.explain(X[::-1], model.predict(X[::-1])))


@pytest.mark.parametrize(("given", "reads"), [(True, 1), (False, 2)])
def test_rows_are_read_once_beside_predict(stored, given, reads, tmp_path):
    _, model, path = stored
    model.save(tmp_path / "model")
    store = RecordingStore(LocalStore(path))
    samples = open_samples(zarr.open_group(store, mode="r"))
    store.gets.clear()
    mmcnb.load(tmp_path / "model").explain(samples, model.labels_ if given else None)
    assert max(store.gets.values()) == reads


# -- sentences ------------------------------------------------------------------------------------


def customers(n=300, seed=0):
    """A table of each kind of column, and the three segments in it."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    cities = np.array(["Bonn", "Berlin", "Ulm"])
    frame = {
        "income": np.exp(rng.normal(10 + 1.5 * y, 0.2)).round(),
        "city": cities[np.where(rng.random(n) < 0.9, y, rng.integers(0, 3, n))],
        "active": rng.random(n) < np.array([0.05, 0.5, 0.95])[y],
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(400 * y + rng.integers(0, 99, n), "D"),
        "nothing": rng.normal(size=n),
    }
    return pd.DataFrame(frame), y


@pytest.mark.parametrize("scale", [None, "standard", "auto"])
def test_each_kind_of_column_has_its_words_and_units_whatever_the_scale(scale):
    frame, y = customers()
    model = mmcnb.MaximumMarginClustering(N_CLUSTERS, scale=scale, random_state=0).fit(frame)
    explanation = model.explain(frame, y)
    low, middle, high = explanation.clusters["sentence"]
    assert low.startswith("Cluster 0 (33 %): ")
    median = frame["income"][y == 0].median()
    assert re.search(rf"income low \(median {float(f'{median:.3g}'):,.12g}, others [\d,]+\)", low)
    assert re.search(r"joined late \(median 2022-0\d-\d\d, others 2020-\d\d-\d\d\)", high)
    assert re.search(r"joined near 2021-0\d-\d\d \(half within \d+\.?\d* days, others within \d+\)", middle)
    assert "nothing" not in str(explanation)
    columns = explanation.columns
    by_kind = columns.groupby("kind")["column"].unique().map(list).to_dict()
    expected = {"number": ["income", "nothing"], "text": ["city"], "flag": ["active"], "date": ["joined"]}
    assert {kind: sorted(names) for kind, names in by_kind.items()} == expected
    city = columns[(columns["cluster"] == 1) & (columns["category"] == "Berlin")].iloc[0]
    assert city["mean"] == pytest.approx((frame["city"][y == 1] == "Berlin").mean())
    assert city["others_mean"] == pytest.approx((frame["city"][y != 1] == "Berlin").mean())


def test_flags_and_texts_are_told_as_shares():
    frame, y = customers()
    part = frame[["city", "active"]]
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(part)
    said = str(model.explain(part, y))
    assert re.search(r"city mostly Bonn \(\d\d %, others \d %\)", said)
    assert re.search(r"active rarely \(\d+ %, others \d\d %\)", said)
    assert re.search(r"active often \(\d\d %, others \d\d %\)", said)


def test_names_cannot_break_out():
    X, y = planted(d=4)
    names = ["<script>alert(1)</script>", "a\x1b[31m\nb", "c" * 500, "plain"]
    frame = pd.DataFrame(X, columns=names)
    explanation = fitted(frame).explain(frame, np.array(["<b>", "two", "three"])[y])
    assert len(str(explanation).splitlines()) == N_CLUSTERS
    assert "\x1b" not in str(explanation)
    assert "a\\x1b[31m\\nb" in str(explanation)
    assert f"{'c' * 39}…" in str(explanation)
    assert repr(explanation) == str(explanation)
    page = explanation._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def sparse_frame(counts, names):
    return pd.DataFrame.sparse.from_spmatrix(sp.csr_array(counts.astype(float)), columns=names)


def test_words_mark_the_topics_of_sparse_counts():
    rng = np.random.default_rng(0)
    y = np.arange(90) % N_CLUSTERS
    counts = rng.poisson(0.3, (90, 30))
    counts[:, 0] = 9  # in every text
    for k in range(N_CLUSTERS):
        counts[y == k, 3 * k + 1 : 3 * k + 4] += 4
    names = [f"word{column}" for column in range(30)]
    frame = sparse_frame(counts, names)
    model = mmcnb.UnsupervisedRLS(N_CLUSTERS, kernel="linear", random_state=0).fit(frame)
    explanation = model.explain(frame, y)
    words = explanation.words
    frequency = np.array([counts[y == k].sum(axis=0) for k in range(N_CLUSTERS)], float)
    total = frequency.sum(axis=0)
    scores = frequency / frequency.sum(axis=1, keepdims=True) * np.log1p(total.sum() / 3 / total)
    for k, own in words.groupby("cluster"):
        best = np.argsort(-scores[k], kind="stable")[:10]
        assert own["word"].tolist() == [names[column] for column in best]
        np.testing.assert_allclose(own["score"], scores[k][best])
    assert model.explain(frame * -1, y).words is None
    # Three words that all rows of a cluster have are columns of a table; where each row has few of them, it
    # is a text.
    assert re.search(r"word\d high \(median 4, others 0\)", explanation.clusters["sentence"][0])
    thinned = sparse_frame(counts * (rng.random(counts.shape) < 0.2), names)
    said = model.explain(thinned, y).clusters["sentence"]
    assert re.fullmatch(r"Cluster 0 \(33 %\): marked by (word\d+, ){4}word\d+\.", said[0])


# -- rows that have little to explain, and bad input ----------------------------------------------


def test_one_cluster_noise_and_constant_columns_are_answered(small):
    X, model = small
    alone = model.explain(X, np.where(np.arange(len(X)) % 4, 5, -1))
    said = alone.clusters["sentence"].tolist()
    assert said == [
        "Noise (25 %): rows of no cluster.",
        "Cluster 5 (75 %): there is no other cluster to set it apart from.",
    ]
    assert alone.columns.empty
    assert alone.clusters["nearest"].isna().all()
    assert str(model.explain(X, np.full(len(X), -1))) == "Noise (100 %): rows of no cluster."
    flat = np.full_like(X, 0.1)
    found = model.explain(flat, np.arange(len(X)) % 2)
    assert (found.columns["effect"] == 0).all()
    assert found.clusters["sentence"].str.endswith(": no single column sets it apart.").all()


def test_it_is_plain_json(small):
    X, model = small
    frame = pd.DataFrame(X, columns=list("abcdef"), index=[f"row {k}" for k in range(len(X))])
    explanation = fitted(frame).explain(frame)
    report = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert report.keys() == {"clusters", "columns", "rows", "words"}
    assert report["words"] is None
    assert [one["sentence"] for one in report["clusters"]] == str(explanation).splitlines()
    assert all(one["name"] == f"row {one['row']}" for one in report["rows"])
    assert explanation.to_frame() is explanation.clusters
    alone = model.explain(X, np.zeros(len(X), int)).to_dict()
    assert json.loads(json.dumps(alone, allow_nan=False))["clusters"][0]["nearest"] is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(5, int), "labels has 5 values and X has 240 rows; give one label a row"),
        (np.full(240, 0.5), "labels has numbers such as 0.5; give whole numbers or names"),
        (np.full(240, np.nan), "labels contains NaN"),
        (np.zeros((240, 2), int), "labels has 240 x 2 values and X has 240 rows; give one label a row"),
        (np.array([0, "a"] * 120, object), "labels has numbers and names"),
        (np.full(240, 1j), "labels contains complex numbers"),
        (np.full(240, np.datetime64("2020-01-01")), "labels contains dates"),
        (3, "labels is a int: give an array"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_labels_that_are_none_are_refused(small, labels, message):
    X, model = small
    with pytest.raises(InputError, match=message):
        model.explain(X, labels)


def test_another_table_is_refused():
    X, y = planted()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fitted(frame)
    others = {
        "same order": frame[list("fedcba")],
        "missing:\n- f": frame[list("abcde")],
        "unseen at fit time:\n- g": frame.rename(columns={"f": "g"}),
        "'x' is not a number": frame.assign(f="x"),
    }
    for message, other in others.items():
        with pytest.raises(InputError, match=message):
            model.explain(other, y)
    with pytest.raises(InputError, match="5 features"):
        fitted(X).explain(X[:, :5])


def test_a_model_that_is_not_fitted_says_so(small):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mmcnb.MaximumMarginClustering(2).explain(small[0])


def test_labels_may_go_beyond_those_of_the_model(small):
    """A few rows in a cluster of their own, and labels of other types."""
    X, model = small
    labels = model.labels_.astype(float)
    labels[:4] = 9
    clusters = model.explain(X, labels).clusters
    assert clusters["cluster"].tolist() == [0, 1, 2, 9]
    assert clusters["rows"][3] == 4
    assert clusters["nearest"].isin([0, 1, 2, 9]).all()
    flags = model.explain(X, labels == 9)
    assert_same(flags, model.explain(X, np.array(labels == 9, object)))
    assert flags.clusters["cluster"].tolist() == [0, 1]
    assert_same(model.explain(X, labels), model.explain(X, pd.Series(labels, dtype="category")))


def test_one_cluster_of_sparse_counts_has_words_and_no_columns(small):
    counts = sparse_frame(np.eye(6), [f"word{k}" for k in range(6)])
    explanation = fitted(counts).explain(counts, np.ones(6, int))
    assert str(explanation) == "Cluster 1 (100 %): there is no other cluster to set it apart from."
    assert len(explanation.words) == 6


def test_a_limit_that_is_too_small_names_the_least_that_works(small):
    X, _ = small
    model = fitted(X).set_params(memory_limit="100MiB")
    with pytest.raises(MemoryLimitError, match=r"too small for \d+ rows of 6 columns") as refused:
        model.explain(X)
    least = re.search(r"the least that works is ([\d.]+ \w+)\.$", str(refused.value))[1]
    assert_same(model.set_params(memory_limit=least).explain(X), fitted(X).explain(X))


@pytest.mark.parametrize("d", [4, 3000])
@pytest.mark.parametrize("name", ["CPMMC", "SparseKernelMMC", "UnsupervisedRLS", "MaximumMarginClustering"])
def test_the_least_limit_works_too_if_the_rows_are_labelled_first(name, d):
    X = np.random.default_rng(0).normal(size=(300, d)) + 9 * (np.arange(300) % 2)[:, None]
    model = getattr(mmcnb, name)(random_state=0).fit_model(X).set_params(memory_limit="100MiB")
    with pytest.raises(MemoryLimitError) as refused:
        model.explain(X)
    least = re.search(r"the least that works is ([\d.]+ \w+)", str(refused.value))[1]
    assert len(model.set_params(memory_limit=least).explain(X).clusters) == 2


@pytest.mark.parametrize("n_clusters", [1, 30, 3000])
def test_more_memory_means_more_rows_from_the_least_limit_on(n_clusters):
    rows = RowShape(10**6, 2000)
    with pytest.raises(MemoryLimitError) as refused:
        plan_explanation(rows, n_clusters, "1MiB")
    least = parse_bytes(re.search(r"works is (.*)\.$", str(refused.value))[1])
    limits = [least + more * 2**20 for more in (0, 50, 500, 10**5)]
    plans = [plan_explanation(rows, n_clusters, limit, n_jobs=64) for limit in limits]
    found, threads = map(list, zip(*plans, strict=True))
    assert (found, threads) == (sorted(found), sorted(threads))
    assert n_clusters <= found[0] < found[1]
    assert found[-1] == 20_000
    assert (threads[0], threads[-1]) == (1, 64)


@pytest.mark.parametrize("n_jobs", [1, 64])
def test_the_sample_depends_on_neither_chunks_nor_threads(n_jobs):
    plans = [
        plan_explanation(RowShape(10**6, 2000, chunk_bytes=size), 3, "2GiB", n_jobs) for size in (0, 2e8)
    ]
    assert plans[0][0] == plans[1][0] == plan_explanation(RowShape(10**6, 2000), 3, "2GiB", 2)[0] < 20_000
