"""UnsupervisedRLS on the graph kernel: model and labels agree, its laws hold, and bad input is told."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb._config import parse_bytes
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.synthetic import make_shape
from tests.estimators.graph_fits import blobs, graph_rls, nodes
from tests.estimators.test_rls_laws import ODD


@pytest.fixture(scope="module")
def X():
    return blobs(500, d=60)[0]


@pytest.fixture(scope="module")
def fitted(X):
    return graph_rls(kernel=nodes(300, n_neighbors=7)).fit(X)


# -- model and labels --------------------------------------------------------------------------

FITS = {
    "all rows": {},
    "nodes": {"kernel": nodes(300)},
    "nodes, few neighbours": {"kernel": nodes(250, n_neighbors=3, filter="resolvent")},
    "cut-off": {"kernel": nodes(300, filter="cut-off"), "n_clusters": 2},
    "equal": {"cluster_sizes": "equal"},
    "proportions": {"kernel": nodes(300), "cluster_sizes": [0.5, 0.3, 0.2]},
    "scaled": {"kernel": nodes(300), "scale": "standard"},
    "a cluster of all": {"n_clusters": 1},
}


@pytest.mark.parametrize("case", FITS)
@pytest.mark.parametrize("d", [3, 60])
def test_labels_sizes_and_objective_are_those_of_the_model(case, d):
    X, _ = blobs(d=d)
    model = graph_rls(**FITS[case]).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, model.decision_function(X).argmax(axis=1))
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    z = model.transform(X)
    means = np.array([z[model.labels_ == h].mean(axis=0) for h in range(model.n_clusters)])
    J = (sizes @ (means**2).sum(axis=1)) / len(X)
    assert model.objective_ == pytest.approx(J, rel=1e-4, abs=1e-6)
    assert model.gamma_ is None
    told = model.report_["graph"]
    assert told["n_nodes"] == (model.kernel.n_nodes if isinstance(model.kernel, mmcnb.GraphKernel) else 600)
    assert len(told["eigenvalues"]) == 6 * model.n_clusters


def test_where_all_rows_are_nodes_z_without_size_constraints_is_nearest_to_its_mean():
    X, _ = blobs()
    model = graph_rls(min_share=0.0).fit(X)
    z = model.transform(X)
    means = np.array([z[model.labels_ == h].mean(axis=0) for h in range(3)])
    nearest = ((z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == model.labels_) > 0.99


@pytest.mark.parametrize("kernel", ["graph", nodes(300)])
def test_rings_are_clusters_and_new_rows_belong_to_them(kernel):
    X, y = make_shape("two-rings", 900, random_state=0)
    new, classes = make_shape("two-rings", 400, random_state=1)
    model = graph_rls(2, kernel).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert adjusted_rand_score(classes, model.predict(new)) > 0.98


def test_a_fit_without_labels_has_the_same_model(tmp_path):
    X, _ = blobs()
    whole, bare = graph_rls(kernel=nodes(300)).fit(X), graph_rls(kernel=nodes(300)).fit_model(X)
    assert not hasattr(bare, "labels_")
    np.testing.assert_array_equal(bare.predict(X), whole.labels_)
    assert bare.predict(X, out=tmp_path / "labels.zarr") is None
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], whole.labels_)


def test_rows_one_by_one_have_the_labels_of_all():
    X, _ = blobs(300)
    model = graph_rls().fit(X)
    np.testing.assert_array_equal(
        np.concatenate([model.predict(X[i : i + 1]) for i in range(60)]), model.labels_[:60]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_rows_agree(dtype):
    rng = np.random.default_rng(0)
    topic = np.arange(400) % 2 == 0
    likely = np.where((np.arange(70) < 35)[None, :] == topic[:, None], 0.4, 0.02)
    X = ((rng.random((400, 70)) < likely) * (0.5 + rng.random((400, 70)))).astype(dtype)
    for rows in (X, X[:, ::2]):
        one, other = graph_rls(2).fit(rows), graph_rls(2).fit(scipy.sparse.csr_array(rows))
        assert adjusted_rand_score(one.labels_, other.labels_) > 0.98


def test_precision_hardly_matters():
    X, _ = blobs(gap=6.0)
    one, other = graph_rls().fit(X), graph_rls().fit(X.astype(np.float32))
    assert np.mean(one.labels_ == other.labels_) > 0.99


@pytest.mark.parametrize("copied", [clone, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_have_the_same_settings(copied, X, fitted):
    again = copied(fitted)
    assert again.get_params() == fitted.get_params()
    assert again.kernel == fitted.kernel
    again = again.fit(X) if copied is clone else again
    np.testing.assert_array_equal(again.predict(X), fitted.labels_)
    again.set_params(kernel="graph")
    assert fitted.kernel == nodes(300, n_neighbors=7)


def test_a_fit_of_another_kernel_forgets_the_graph(X):
    model = graph_rls().fit(X)
    model.set_params(kernel="linear").fit(X)
    assert model.model_.graph is None
    assert "graph" not in model.report_


def test_a_plan_names_the_coordinates_and_fits_the_limit():
    X, _ = blobs()
    plan = graph_rls(kernel=nodes(300)).plan(X)
    assert (plan.needs.n_landmarks, plan.needs.sweeps) == (18, 1)
    assert graph_rls(max_passes=4).plan(X).needs.sweeps == 4
    large = graph_rls(memory_limit="1GiB").plan(mmcnb.engine.plan.RowShape(10**7, 32))
    assert large.peak <= 2**30
    assert large.needs.n_landmarks == 18


# -- laws --------------------------------------------------------------------------------------


def test_rows_of_no_weight_change_nothing():
    X, _ = blobs(300)
    weights = np.r_[np.ones(300), np.zeros(80)]
    more = np.r_[X, blobs(80, seed=9)[0]]
    plain, weighted = graph_rls().fit(X), graph_rls().fit(more, sample_weight=weights)
    np.testing.assert_array_equal(weighted.labels_[:300], plain.labels_)
    np.testing.assert_allclose(weighted.cluster_sizes_, plain.cluster_sizes_)
    assert weighted.report_["graph"]["n_nodes"] == 300


def test_equal_weights_are_no_weights():
    X, _ = blobs(300)
    plain, weighted = graph_rls().fit(X), graph_rls().fit(X, sample_weight=np.full(300, 0.25))
    np.testing.assert_array_equal(weighted.labels_, plain.labels_)
    np.testing.assert_allclose(weighted.cluster_sizes_, plain.cluster_sizes_ / 4)


def test_whole_weights_count_as_rows():
    X, y = blobs(300, gap=7.0)
    counts = np.random.default_rng(0).integers(1, 4, 300)
    weighted = graph_rls().fit(X, sample_weight=counts)
    repeated = graph_rls().fit(np.repeat(X, counts, axis=0))
    assert weighted.cluster_sizes_.sum() == counts.sum()
    np.testing.assert_array_equal(weighted.cluster_sizes_, np.bincount(weighted.labels_, counts))
    # The starts are drawn by row, so only what is plain is the same.
    assert adjusted_rand_score(np.repeat(weighted.labels_, counts), repeated.labels_) > 0.9
    assert adjusted_rand_score(y, weighted.labels_) > 0.95


@pytest.mark.parametrize("gap", [3.0, 8.0])
def test_rows_that_change_places_have_the_same_graph_and_plain_clusters_follow(gap):
    """Starts are drawn by row: where clusters are not plain, another order may end in another partition."""
    X, _ = blobs(400, gap=gap)
    order = np.random.default_rng(3).permutation(400)
    one, other = graph_rls(n_init=6).fit(X), graph_rls(n_init=6).fit(X[order])
    facts = [model.report_["graph"] for model in (one, other)]
    assert facts[0]["n_components"] == facts[1]["n_components"]
    np.testing.assert_allclose(facts[0]["eigenvalues"], facts[1]["eigenvalues"], atol=1e-9)
    search = [model.model_.graph.search.nodes for model in (one, other)]
    np.testing.assert_allclose(search[0], search[1], atol=1e-12)
    if gap > 5:
        assert adjusted_rand_score(one.labels_[order], other.labels_) == 1
        assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)


@pytest.mark.parametrize("change", [lambda X: X + 100, lambda X: 4 * X, lambda X: -X, lambda X: X[:, ::-1]])
def test_shifts_factors_and_the_order_of_columns_do_not_matter(change):
    X, _ = blobs(400, gap=6.0)
    one, other = graph_rls(n_init=6).fit(X), graph_rls(n_init=6).fit(change(X))
    assert adjusted_rand_score(one.labels_, other.labels_) > 0.98


def test_components_are_told():
    X = np.random.default_rng(0).standard_normal((400, 2)) + 1e3 * (np.arange(400) % 4)[:, None]
    assert graph_rls().fit(X).report_["graph"]["n_components"] == 4
    codes = np.random.default_rng(0).integers(0, 9, (500, 6))
    rows = (codes[:, :, None] == np.arange(9)).reshape(500, 54).astype(float)
    model = graph_rls(kernel=nodes(500, n_neighbors=1)).fit(rows)
    assert model.report_["graph"]["n_components"] > 20
    np.testing.assert_array_equal(model.labels_, model.predict(rows))


# -- odd input, and input that cannot be used --------------------------------------------------


@pytest.mark.parametrize("case", ODD)
def test_odd_rows_are_clustered(case):
    X, k = ODD[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = graph_rls(k).fit(X)
    assert {warning.category for warning in caught} <= {ClusterWarning}
    assert [str(warning.message) for warning in caught] == model.report_["warnings"]
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    sizes = np.bincount(model.labels_, minlength=k)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    assert sizes.min() > 0
    assert np.isfinite(model.objective_)
    assert 0 <= model.objective_ <= k - 1 + 1e-6


@pytest.mark.parametrize("d", [2, 60])
def test_duplicates_by_the_thousand_are_one_node_each(d):
    given = np.random.default_rng(0).standard_normal((40, d))
    X = np.r_[np.repeat(given[:4], 1000, axis=0), given[4:]]
    model = graph_rls(2).fit(X)
    assert model.report_["graph"]["n_nodes"] == 40
    assert np.isfinite(model.transform(X)).all()
    assert all(len(set(model.labels_[1000 * i : 1000 * (i + 1)].tolist())) == 1 for i in range(4))


def test_sparse_rows_of_which_some_are_empty_are_clustered():
    X = scipy.sparse.random_array((300, 200), density=0.03, format="lil", rng=np.random.default_rng(0))
    X[::7] = 0
    X = scipy.sparse.csr_array(X)
    model = graph_rls(2).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert len(set(model.labels_[::7].tolist())) == 1


BAD = {
    "more clusters than distinct rows": (
        {"n_clusters": 7},
        np.repeat(np.eye(5), 20, axis=0),
        r"^the sample has 5 rows that differ, fewer than n_clusters=7; give fewer clusters",
    ),
    "more clusters than rows": (
        {"n_clusters": 41},
        None,
        r"^n_clusters=41 is more than the 40 rows there are",
    ),
    "more clusters than nodes": (
        {"n_clusters": 9, "kernel": nodes(5)},
        None,
        r"^n_nodes=5 is smaller than n_clusters=9; give more rows",
    ),
    "neighbours as many as rows": (
        {"kernel": mmcnb.GraphKernel(n_neighbors=40)},
        None,
        r"^n_neighbors=40 is not below the 40 distinct rows of the graph; give fewer neighbors",
    ),
    "neighbours as many as nodes": (
        {"kernel": nodes(20, n_neighbors=20)},
        None,
        r"^n_neighbors=20 is not below the 20 distinct rows",
    ),
    "equal rows": ({}, np.full((30, 3), 0.1), r"^all rows are equal, or differ by less than rounding; "),
    "equal rows of many columns": ({}, np.full((90, 60), 0.1), r"^all rows are equal, or differ by less"),
    "empty sparse rows": ({}, scipy.sparse.csr_array((30, 70)), r"^all rows are equal, or differ by less"),
    "squares that overflow": (
        {},
        1e200 * blobs(40)[0],
        r"^the squares of the values overflow; divide the columns by a constant",
    ),
    "NaN": ({}, np.where(np.eye(40, 3) > 0, np.nan, 1.0), r"NaN"),
    "another name": ({"kernel": "knn"}, None, r"^kernel='knn' is unknown; choose one of [^\n]*'graph'"),
    "a class for its object": (
        {"kernel": mmcnb.GraphKernel},
        None,
        r"^kernel=[^\n]* is unknown; choose one of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_by_one_sentence(case):
    parameters, rows, sentence = BAD[case]
    rows = blobs(40)[0] if rows is None else rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=sentence) as error:
            graph_rls(**parameters).fit(rows)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_other_columns_are_refused_on_predicting(fitted):
    with pytest.raises(ValueError, match="60"):
        fitted.predict(np.zeros((3, 5)))


def test_a_limit_that_the_nodes_do_not_fit_names_what_works():
    X, _ = blobs(6000, dtype=np.float32)
    with pytest.raises(MemoryLimitError, match=r"the least that works is [\d.]+ [MG]iB\.$") as error:
        graph_rls(10, memory_limit="300MiB").fit(X)
    least = str(error.value).split("is ")[-1].rstrip(".")
    assert graph_rls(10, memory_limit=least).plan(X).peak <= parse_bytes(least)


def test_a_column_that_holds_nearly_all_variance_is_told_until_columns_are_scaled():
    X, _ = blobs(200)
    X[:, 1] *= 1000
    with pytest.warns(ClusterWarning, match=r"^column 1 has more than 99% [^\n]*scale='standard'[^\n]*\.$"):
        model = graph_rls().fit(X)
    assert len(model.report_["warnings"]) == 1
    assert graph_rls(scale="standard").fit(X).report_["warnings"] == []
    with pytest.warns(ClusterWarning, match=r"^column 1 has more than 99%"):
        graph_rls(kernel="rbf").fit(X)
    assert graph_rls().fit(X[:, :2]).report_["warnings"] == []
