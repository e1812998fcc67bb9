"""What sets clusters apart: the figures by brute force, one answer wherever rows are, and plain sentences."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.metrics import pairwise_distances, roc_auc_score
from zarr.storage import LocalStore

import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.explanation.groups import (
    draw_rows,
    grouped,
    plan_explanation,
    sizes_of_samples,
)
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
    return mmcnb.UnsupervisedRLS(
        N_CLUSTERS, kernel="linear", n_init=2, random_state=0, **parameters
    ).fit(X)


@pytest.fixture(scope="module")
def small():
    X, _ = planted()
    return X, fitted(X)


def assert_same(one, other):
    pd.testing.assert_frame_equal(one.clusters, other.clusters, check_exact=True)
    pd.testing.assert_frame_equal(one.columns, other.columns, check_exact=True)
    pd.testing.assert_frame_equal(one.rows, other.rows, check_exact=True)
    pd.testing.assert_frame_equal(one.rules, other.rules, check_exact=True)


# -- the figures -----------------------------------------------------------------------


def by_hand(X, inside):
    """The figures of each column, by NumPy and scikit-learn."""
    own = X[inside]
    others = X[~inside]
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


def figures_of_clusters(explanation):
    """The figures of each cluster, in the order of the columns of the rows."""
    for cluster, columns in explanation.columns.groupby("cluster"):
        yield cluster, columns.set_index("column").sort_index()


@pytest.mark.parametrize("kind", ["of the fit", "at random, with noise"])
def test_figures_of_few_rows_are_those_by_hand(kind):
    X = np.round(planted()[0])  # with ties
    model = fitted(X)
    labels = (
        model.labels_
        if kind == "of the fit"
        else np.random.default_rng(1).integers(-1, 4, len(X))
    )
    explanation = model.explain(X, labels)
    assert set(explanation.columns["cluster"]) == set(labels[labels >= 0].tolist())
    for cluster, figures in figures_of_clusters(explanation):
        expected = by_hand(X, labels == cluster)
        pd.testing.assert_frame_equal(
            figures[expected.columns], expected, check_names=False, rtol=1e-9
        )
    tells = np.maximum(
        (explanation.columns["auc"] - 0.5).abs(), explanation.columns["near"] - 0.5
    )
    for _, of_cluster in tells.groupby(explanation.columns["cluster"]):
        assert (of_cluster.diff().dropna() <= 1e-9).all()


def test_clusters_are_counted_and_the_nearest_has_the_least_margin(small):
    X, model = small
    clusters = model.explain(X).clusters
    scores = model.decision_function(X)
    np.testing.assert_array_equal(clusters["rows"], np.bincount(model.labels_))
    assert clusters["share"].sum() == pytest.approx(1)
    for row in clusters.itertuples():
        means = scores[model.labels_ == row.cluster].mean(axis=0)
        of_others = np.delete(means, row.cluster)
        assert row.margin == pytest.approx(means[row.cluster] - of_others.max())
        assert means[row.nearest] == of_others.max()


def test_examples_are_central_or_at_the_edge_or_far_out():
    X, _ = planted()
    X[7] += 300
    model = mmcnb.MaximumMarginClustering(N_CLUSTERS, random_state=0).fit(X)
    examples = model.explain(X).rows
    assert 7 in set(examples["row"][examples["kind"] == "far"])
    squared = pairwise_distances(X) ** 2
    margins = model.to_frame(X)["margin"].to_numpy()
    outliers = model.score_outliers(X)
    for k in range(N_CLUSTERS):
        own = np.flatnonzero(model.labels_ == k)
        badness = {
            "typical": squared[np.ix_(own, own)].sum(axis=1),
            "edge": margins[own],
            "far": -outliers[own],
        }
        for kind, values in badness.items():
            rows = examples[(examples["cluster"] == k) & (examples["kind"] == kind)]
            order = np.argsort(values, kind="stable")
            if kind == "edge":  # a row whose margin is the largest is at no edge
                order = order[values[order] < values.max()]
            assert rows["row"].tolist() == own[order[:3]].tolist()
            if kind != "typical":
                np.testing.assert_allclose(
                    rows["score"].abs(), np.abs(values[order[:3]])
                )


def test_a_sample_of_each_cluster_stands_for_all_of_its_rows():
    X, y = planted(30_000, 3)
    # a small cluster, of which all rows are taken
    y = np.where(np.arange(len(y)) < 100, 3, y)
    for cluster, figures in figures_of_clusters(fitted(X[:300]).explain(X, y)):
        expected = by_hand(X, y == cluster)
        exact = ["mean", "others_mean"]
        pd.testing.assert_frame_equal(
            figures[exact], expected[exact], check_names=False, rtol=1e-9
        )
        np.testing.assert_allclose(figures["auc"], expected["auc"], atol=0.01)
        np.testing.assert_allclose(figures["effect"], expected["effect"], atol=0.02)
        # in its own column the others are one group, in which a median is sure
        if cluster < N_CLUSTERS:
            for name in ("median", "others_median"):
                assert figures[name][cluster] == pytest.approx(
                    expected[name][cluster], abs=0.3
                )


@pytest.mark.parametrize("n_columns", [4, 60])
def test_a_few_extreme_rows_hide_no_column(n_columns):
    X = np.random.default_rng(0).standard_normal((600, n_columns))
    X[300:, 0] += 5
    y = np.repeat([0, 1], 300)
    model = fitted(X)
    plain = model.explain(X, y).columns.set_index("column").loc[0]
    X[7, 0] = 1e9
    X[400:402, 0] = -1e7
    found = model.explain(X, y).columns
    assert found["column"].iloc[0] == 0
    found = found.set_index("column").loc[0]
    assert (found["effect"] / plain["effect"] > 0.75).all()


def test_rows_are_drawn_from_the_whole_of_each_cluster():
    labels = np.repeat([5, -1, 2], [2 * GROUP_ROWS, 30, 9000])
    groups = grouped(labels)
    sizes = sizes_of_samples(groups.counts, 1000)
    rows = draw_rows(groups, sizes)
    assert groups.clusters.tolist() == [-1, 2, 5]
    assert sizes.tolist() == [30, 485, 485]
    assert (np.diff(rows) > 0).all()
    assert [
        np.count_nonzero(labels[rows] == k) for k in groups.clusters
    ] == sizes.tolist()
    assert rows[labels[rows] == 5].max() > GROUP_ROWS


# -- one answer ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Float32 rows of two groups, their model, and the same rows in a store."""
    X, _ = planted(GROUP_ROWS + 9000, 4, dtype=np.float32)
    path = tmp_path_factory.mktemp("explained") / "rows.zarr"
    with create_dense_store(path, 4, "float32", chunk_rows=5000) as writer:
        writer.append(X)
    return X, fitted(X), path


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_rows_in_memory_and_in_a_store_have_the_same_bits_for_any_threads(
    n_jobs, stored
):
    X, model, path = stored
    expected = model.explain(X)
    with mmcnb.config(n_jobs=n_jobs):
        assert_same(expected, model.explain(path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_dask_cluster_has_the_same_bits(stored, dask_client):
    X, model, path = stored
    with mmcnb.config(engine=dask_client(2)):
        assert_same(model.explain(X), model.explain(path, model.labels_))


def test_sparse_rows_have_the_figures_of_dense_ones(tmp_path):
    X, _ = planted()
    X[X < 50] = 0
    rows = sp.csr_array(X)
    model = fitted(X)
    with create_csr_store(tmp_path / "rows.zarr", X.shape[1], "float64") as writer:
        writer.append(rows)
    dense = model.explain(X, model.labels_)
    sparse = model.explain(rows, model.labels_)
    assert_same(sparse, model.explain(tmp_path / "rows.zarr", model.labels_))
    pd.testing.assert_frame_equal(sparse.columns, dense.columns, rtol=1e-9, atol=1e-12)
    assert sparse.clusters["sentence"].tolist() == dense.clusters["sentence"].tolist()


def test_labels_may_come_from_memory_a_file_or_the_model(small, tmp_path):
    X, model = small
    expected = model.explain(X)
    model.save(tmp_path / "model")
    for name in ("labels.zarr", "labels.csv"):
        model.predict(X, out=tmp_path / name)
        assert_same(expected, model.explain(X, tmp_path / name))
    assert_same(
        expected, model.explain(X, zarr.open_array(tmp_path / "labels.zarr", mode="r"))
    )
    assert_same(expected, mmcnb.load(tmp_path / "model").explain(X))
    assert_same(model.explain(X[::-1]), model.explain(X[::-1], model.labels_[::-1]))


@pytest.mark.parametrize(("has_labels", "reads"), [(True, 2), (False, 3)])
def test_rows_are_read_twice_beside_predict(has_labels, reads, stored, tmp_path):
    _, model, path = stored
    model.save(tmp_path / "model")
    store = RecordingStore(LocalStore(path))
    samples = open_samples(zarr.open_group(store, mode="r"))
    store.gets.clear()
    mmcnb.load(tmp_path / "model").explain(
        samples, model.labels_ if has_labels else None
    )
    assert max(store.gets.values()) == reads


# -- sentences -------------------------------------------------------------------------


def customers(n=300, seed=0):
    """A table of each kind of column, and the three segments in it."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    cities = np.array(["Bonn", "Berlin", "Ulm"])
    table = {
        "income": np.exp(rng.normal(10 + 1.5 * y, 0.2)).round(),
        "city": cities[np.where(rng.random(n) < 0.9, y, rng.integers(0, 3, n))],
        "active": rng.random(n) < np.array([0.05, 0.5, 0.95])[y],
        "joined": pd.Timestamp("2020-01-01")
        + pd.to_timedelta(400 * y + rng.integers(0, 99, n), "D"),
        "nothing": rng.normal(size=n),
    }
    return pd.DataFrame(table), y


@pytest.mark.parametrize("scale", [None, "auto"])
def test_each_kind_of_column_has_its_words_and_units_whatever_the_scale(scale):
    table, y = customers()
    model = mmcnb.MaximumMarginClustering(N_CLUSTERS, scale=scale, random_state=0)
    model.fit(table, keep="joined")
    explanation = model.explain(table, y)
    low, middle, high = explanation.clusters["sentence"]
    assert low.startswith("Cluster 0 (33 %): ")
    median = table["income"][y == 0].median()
    assert re.search(
        rf"income low \(median {float(f'{median:.3g}'):,.12g}, others [\d,]+\)", low
    )
    assert re.search(
        r"joined late \(median 2022-0\d-\d\d, others 2020-\d\d-\d\d\)", high
    )
    assert re.search(
        r"joined near 2021-0\d-\d\d \(half within \d+\.?\d* days, others within \d+\)",
        middle,
    )
    assert "nothing" not in str(explanation)
    columns = explanation.columns
    kinds = dict(zip(columns["column"], columns["kind"], strict=True))
    expected = {
        "income": "number",
        "nothing": "number",
        "city": "text",
        "active": "flag",
        "joined": "date",
    }
    assert kinds == expected
    city = columns[(columns["cluster"] == 1) & (columns["category"] == "Berlin")].iloc[
        0
    ]
    assert city["mean"] == pytest.approx((table["city"][y == 1] == "Berlin").mean())
    assert city["others_mean"] == pytest.approx(
        (table["city"][y != 1] == "Berlin").mean()
    )


def test_flags_and_texts_are_told_as_shares():
    table, y = customers()
    part = table[["city", "active"]]
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(part)
    sentences = str(model.explain(part, y))
    assert re.search(r"city mostly Bonn \(\d\d %, others \d %\)", sentences)
    assert re.search(r"active rarely \(\d+ %, others \d\d %\)", sentences)
    assert re.search(r"active often \(\d\d %, others \d\d %\)", sentences)


def test_names_cannot_break_out():
    X, y = planted(d=4)
    table = pd.DataFrame(
        X, columns=["<script>alert(1)</script>", "a\x1b[31m\nb", "c" * 500, "plain"]
    )
    explanation = fitted(table).explain(table, np.array(["<b>", "two", "three"])[y])
    sentences = str(explanation)
    assert len(sentences.splitlines()) == N_CLUSTERS
    assert "\x1b" not in sentences
    assert "a\\x1b[31m\\nb" in sentences
    assert f"{'c' * 39}…" in sentences
    assert repr(explanation) == sentences
    page = explanation._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def sparse_table(counts, names):
    return pd.DataFrame.sparse.from_spmatrix(
        sp.csr_array(counts.astype(float)), columns=names
    )


def test_words_mark_the_topics_of_sparse_counts():
    rng = np.random.default_rng(0)
    y = np.arange(90) % N_CLUSTERS
    counts = rng.poisson(0.3, (90, 30))
    counts[:, 0] = 9  # in every text
    for k in range(N_CLUSTERS):
        counts[y == k, 3 * k + 1 : 3 * k + 4] += 4
    names = [f"word{column}" for column in range(30)]
    table = sparse_table(counts, names)
    model = mmcnb.UnsupervisedRLS(N_CLUSTERS, kernel="linear", random_state=0).fit(
        table
    )
    explanation = model.explain(table, y)
    frequency = np.array([counts[y == k].sum(axis=0) for k in range(N_CLUSTERS)], float)
    total = frequency.sum(axis=0)
    scores = (
        frequency
        / frequency.sum(axis=1, keepdims=True)
        * np.log1p(total.sum() / 3 / total)
    )
    for k, words in explanation.words.groupby("cluster"):
        best = np.argsort(-scores[k], kind="stable")[:10]
        assert words["word"].tolist() == [names[column] for column in best]
        np.testing.assert_allclose(words["score"], scores[k][best])
    assert model.explain(table * -1, y).words is None
    # Three words that all rows of a cluster have are columns of a table; where each row
    # has few of them, it is a text.
    assert re.search(
        r"word\d high \(median 4, others 0\)", explanation.clusters["sentence"][0]
    )
    thinned = sparse_table(counts * (rng.random(counts.shape) < 0.2), names)
    sentence = model.explain(thinned, y).clusters["sentence"][0]
    assert re.fullmatch(
        r"Cluster 0 \(33 %\): marked by (word\d+, ){4}word\d+\.", sentence
    )
    one_cluster = model.explain(table, np.ones(90, int))
    assert (
        str(one_cluster)
        == "Cluster 1 (100 %): there is no other cluster to set it apart from."
    )
    assert len(one_cluster.words) == 10


# -- rows that have little to explain, and bad input -----------------------------------


def test_one_cluster_noise_and_constant_columns_are_answered(small):
    X, model = small
    alone = model.explain(X, np.where(np.arange(len(X)) % 4, 5, -1))
    assert alone.clusters["sentence"].tolist() == [
        "Noise (25 %): rows of no cluster.",
        "Cluster 5 (75 %): there is no other cluster to set it apart from.",
    ]
    assert alone.columns.empty
    assert alone.clusters["nearest"].isna().all()
    assert (
        json.loads(json.dumps(alone.to_dict(), allow_nan=False))["clusters"][0][
            "nearest"
        ]
        is None
    )
    assert (
        str(model.explain(X, np.full(len(X), -1)))
        == "Noise (100 %): rows of no cluster."
    )
    constant = model.explain(np.full_like(X, 0.1), np.arange(len(X)) % 2)
    assert (constant.columns["effect"] == 0).all()
    assert (
        constant.clusters["sentence"]
        .str.endswith(": no single column sets it apart.")
        .all()
    )


def test_it_is_plain_json_with_the_names_of_rows(small):
    X, _ = small
    table = pd.DataFrame(
        X, columns=list("abcdef"), index=[f"row {k}" for k in range(len(X))]
    )
    explanation = fitted(table).explain(table)
    report = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    tables = {"clusters", "columns", "rows", "rules", "words"}
    assert report.keys() == tables | {"tree"}
    assert report["words"] is None
    assert [one["sentence"] for one in report["clusters"]] == str(
        explanation
    ).splitlines()
    assert all(one["name"] == f"row {one['row']}" for one in report["rows"])
    assert explanation.to_frame() is explanation.clusters


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.zeros(5, int),
            "labels has 5 values and X has 240 rows; give one label for each row",
        ),
        (
            np.zeros((240, 2), int),
            "labels has 240 x 2 values and X has 240 rows; give one label for each row",
        ),
        (
            np.full(240, 0.5),
            "labels has numbers such as 0.5; give whole numbers or names",
        ),
        (np.full(240, np.nan), "labels contains NaN"),
        (np.array([0, "a"] * 120, object), "labels has numbers and names"),
        (np.full(240, 1j), "labels contains complex numbers"),
        (np.full(240, np.datetime64("2020-01-01")), "labels contains dates"),
        (3, "labels is a int: pass an array"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_labels_that_are_none_are_refused(small, labels, message):
    X, model = small
    with pytest.raises(InputError, match=message):
        model.explain(X, labels)


def test_another_table_is_refused(small):
    X, model = small
    table = pd.DataFrame(X, columns=list("abcdef"))
    of_table = fitted(table)
    for message, other in {
        "same order": table[list("fedcba")],
        "missing:\n- f": table[list("abcde")],
        "unseen at fit time:\n- g": table.rename(columns={"f": "g"}),
        "'x' is not a number": table.assign(f="x"),
    }.items():
        with pytest.raises(InputError, match=message):
            of_table.explain(other, model.labels_)
    with pytest.raises(InputError, match="5 features"):
        model.explain(X[:, :5])


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
    assert flags.clusters["cluster"].tolist() == [0, 1]
    assert_same(flags, model.explain(X, np.array(labels == 9, object)))
    assert_same(
        model.explain(X, labels), model.explain(X, pd.Series(labels, dtype="category"))
    )


# -- memory ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "d"),
    [("UnsupervisedRLS", 6), ("CPMMC", 3000), ("MaximumMarginClustering", 3000)],
)
def test_the_least_limit_that_a_refusal_names_works(name, d):
    X = (
        np.random.default_rng(0).normal(size=(300, d))
        + 9 * (np.arange(300) % 2)[:, None]
    )
    model = getattr(mmcnb, name)(random_state=0).fit_model(X)
    expected = model.explain(X).clusters
    with pytest.raises(
        MemoryLimitError, match=rf"too small for 300 rows of {d:,} columns"
    ) as refused:
        model.set_params(memory_limit="100MiB").explain(X)
    least = re.search(r"the least that works is ([\d.]+ \w+)", str(refused.value))[1]
    clusters = model.set_params(memory_limit=least).explain(X).clusters
    pd.testing.assert_frame_equal(
        clusters[["cluster", "rows"]], expected[["cluster", "rows"]]
    )


@pytest.mark.parametrize("n_clusters", [3, 3000])
def test_more_memory_means_more_rows_and_threads_from_the_least_limit_on(n_clusters):
    shape = RowShape(10**6, 2000)
    with pytest.raises(MemoryLimitError) as refused:
        plan_explanation(shape, n_clusters, "1MiB")
    least = re.search(r"works is (.*)\.$", str(refused.value))[1]
    plans = [
        plan_explanation(shape, n_clusters, limit, n_jobs=64)
        for limit in (least, "6GiB", "100GiB")
    ]
    rows, threads = zip(*plans, strict=True)
    assert n_clusters <= rows[0] < rows[1] <= rows[2] == 20_000
    assert threads[0] == 1 <= threads[1] <= threads[2] == 64


def test_the_sample_depends_on_neither_chunks_nor_threads():
    expected, _ = plan_explanation(RowShape(10**6, 2000), 3, "2GiB", 2)
    assert expected < 20_000
    for n_jobs, chunk_bytes in ((1, 0), (64, 0), (64, 2e8)):
        shape = RowShape(10**6, 2000, chunk_bytes=chunk_bytes)
        assert plan_explanation(shape, 3, "2GiB", n_jobs)[0] == expected
