"""metric="precomputed": clusters of a neighbour graph that is given, and its rows in any storage."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from tests.estimators.front_door import front_door

N = 600


@pytest.fixture(scope="module")
def rings():
    return make_shape("three-rings", N, random_state=0)


@pytest.fixture(scope="module")
def graph(rings):
    return csr_array(kneighbors_graph(rings[0], 15, mode="distance"))


def on_graph(n_clusters=None, **parameters):
    return front_door(n_clusters, metric="precomputed", **parameters)


@pytest.fixture(scope="module")
def fitted(graph):
    return on_graph().fit(graph)


def cells_of(X, **obsp):
    """An AnnData object of rows with graphs."""
    with warnings.catch_warnings():
        # of what anndata will write in its next version
        warnings.simplefilter("ignore")
        return anndata.AnnData(X.astype(np.float32), obsp=obsp)


def test_clusters_are_found_without_rows_and_kept_in_a_file(
    rings, graph, fitted, tmp_path
):
    assert adjusted_rand_score(rings[1], fitted.labels_) == 1.0
    assert (fitted.n_clusters_, fitted.kernel_) == (3, "graph")
    assert fitted.report_["scaling"] == "Columns were not scaled: the rows are sparse."
    fitted.save(tmp_path / "model")
    for model in (fitted, mmcnb.load(tmp_path / "model")):
        np.testing.assert_array_equal(model.predict(graph), fitted.labels_)
    assert (tmp_path / "model").stat().st_size < 200_000


def test_clusters_are_those_of_the_rows(rings):
    rows, _ = rings
    expected = front_door(3, kernel="graph", scale=None).fit(rows)
    model = on_graph(3).fit(kneighbors_graph(rows, 25, mode="distance"))
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)


def test_units_and_the_order_of_rows_do_not_count(graph, fitted):
    for factor in (2.0**-14, 1e-3, 1e120):
        np.testing.assert_array_equal(
            on_graph().fit(graph * factor).labels_, fitted.labels_
        )
    order = np.random.default_rng(0).permutation(N)
    again = on_graph().fit(graph[order][:, order])
    assert adjusted_rand_score(again.labels_, fitted.labels_[order]) == 1.0


def test_new_rows_are_labelled_by_their_distances_also_in_a_pipeline(rings):
    X, y = rings
    nearest = KNeighborsTransformer(mode="distance", n_neighbors=15)
    model = make_pipeline(nearest, on_graph(3)).fit(X[::2])
    assert adjusted_rand_score(y[1::2], model.predict(X[1::2])) == 1.0
    shares = model[-1].predict_proba(model[0].transform(X[1::2]))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X[1::2]))


def test_noise_layers_and_known_labels_work(rings, graph):
    X = np.r_[rings[0], [[9.0, 9.0]]]
    noisy = on_graph(3, noise=0.005).fit(
        csr_array(kneighbors_graph(X, 15, mode="distance"))
    )
    assert noisy.labels_[-1] == -1
    known = on_graph().fit(
        graph, partial_labels={row: int(rings[1][row]) for row in range(0, N, 50)}
    )
    assert known.report_["candidates"][0]["broken"] == 0
    assert np.unique(known.labels_at(graph, 2)).size == 2


def test_more_nodes_than_asked_for_are_all_rows(graph):
    assert on_graph(3, n_nodes=50).fit(graph).piece_of_node_.size == N


def test_weights_count_and_rows_of_no_weight_are_refused(graph, fitted):
    weights = np.where(fitted.labels_ == 0, 2.0, 1.0)
    assert (
        on_graph(3).fit(graph, sample_weight=weights).report_["sizes"][0]
        == 2 * fitted.report_["sizes"][0]
    )
    with pytest.raises(
        InputError, match=r"X of shape \(599, 600\) is not a sparse matrix of distances"
    ):
        on_graph().fit(graph, sample_weight=np.r_[0.0, np.ones(N - 1)])


@pytest.mark.parametrize("n", [12, 300])
@pytest.mark.parametrize("form", ["array", "float32", "frame", "npy"])
def test_dense_distances_as_rows_are_told_how_they_are_clustered(
    rings, n, form, tmp_path
):
    X: object = pairwise_distances(rings[0][:n])
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "frame":
        X = pd.DataFrame(X)
    np.save(tmp_path / "X.npy", X)
    rows = tmp_path / "X.npy" if form == "npy" else X
    with pytest.warns(mmcnb.ClusterWarning, match="zeros on its diagonal") as warned:
        front_door().fit(rows)
    sentences = [str(one.message) for one in warned]
    [sentence] = [one for one in sentences if "zeros on its diagonal" in one]
    call = sentence.partition("by distances with ")[2].removesuffix(".")
    model = eval(call, {"mmcnb": mmcnb, "sklearn": sklearn, "X": X})
    assert model.metric == "precomputed"
    assert model.labels_.size == n


def test_rows_that_are_no_distances_are_not_taken_for_some():
    random = np.random.default_rng(0)
    square = random.normal(size=(40, 40))
    adjacent = np.triu(random.random((40, 40)) < 0.1, 1)
    for rows in (
        square,
        abs(square),
        np.eye(40),
        adjacent + adjacent.T,
        square.T @ square,
    ):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            front_door().fit(rows.astype(float))
        assert not any("diagonal" in str(one.message) for one in warned)


def test_dense_distances_and_new_rows_of_other_kinds_are_told_what_is_wanted(
    rings, fitted
):
    X, _ = rings
    with pytest.raises(InputError, match="is dense") as refusal:
        on_graph().fit(pairwise_distances(X))
    call = str(refusal.value).partition("; give ")[2].removesuffix(".")
    distances = eval(call, {"sklearn": sklearn, "X": pairwise_distances(X)})
    assert on_graph(3).fit(distances).n_clusters_ == 3
    for rows in (X, pairwise_distances(X)[:, :5]):
        with pytest.raises(InputError, match="of the 600 rows of the fit") as refusal:
            fitted.predict(rows)
    call = str(refusal.value).partition("; pass ")[2].removesuffix(".")
    new = eval(call, {"sklearn": sklearn, "X": X[:9], "rows_of_the_fit": X})
    np.testing.assert_array_equal(fitted.predict(new), fitted.labels_[:9])


def test_it_is_pairwise_for_scikit_learn():
    assert clone(on_graph()).__sklearn_tags__().input_tags.pairwise
    assert not front_door().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "rbf"},
        {"kernel": "linear"},
        {"scale": "standard"},
        {"scale": {0: "log"}},
    ],
)
def test_what_needs_columns_is_refused(graph, parameters):
    with pytest.raises(
        InputError,
        match=r"metric='precomputed' cannot be combined with kernel=.*pass kernel='graph' and scale=None",
    ):
        on_graph(2, **parameters).fit(graph)


def test_the_remedies_work(rings, graph):
    assert on_graph(2, kernel="graph", scale=None).fit(graph).n_clusters_ == 2
    distances = np.linalg.norm(rings[0][:, None] - rings[0], axis=2)
    with pytest.raises(
        InputError, match="is dense, but metric='precomputed' expects a sparse"
    ):
        on_graph().fit(distances)


def test_distances_are_not_explained_nor_updated(rings, graph, fitted):
    with pytest.raises(
        InputError,
        match="a model of distances has no columns to explain; fit an estimator to the rows",
    ):
        fitted.explain(graph)
    explanation = front_door(3).fit(rings[0]).explain(rings[0], fitted.labels_)
    assert len(explanation.clusters) == 3
    with pytest.raises(
        InputError, match="update is not possible with a precomputed metric"
    ):
        clone(fitted).fit(graph).update(graph)


def test_annotate_takes_the_distances_of_scanpy(rings, graph, fitted, tmp_path):
    cells = cells_of(rings[0], distances=graph)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    mmcnb.annotate(cells, element="obsp/distances", random_state=0)
    assert cells.obs["mmcnb"].cat.codes.tolist() == fitted.labels_.tolist()
    assert cells.uns["mmcnb"]["params"]["metric"] == "precomputed"
    stored = on_graph().fit(tmp_path / "cells.h5ad", element="obsp/distances")
    np.testing.assert_array_equal(stored.labels_, fitted.labels_)
    assert (
        stored.to_frame(
            mmcnb.open_samples(tmp_path / "cells.h5ad", "obsp/distances")
        ).index[0]
        == "0"
    )


def test_annotate_takes_connectivities_for_a_known_number(rings, graph):
    near = graph.copy()
    near.data = np.exp(-graph.data / graph.data.max())
    near = near.maximum(near.T)
    cells = cells_of(rings[0], connectivities=near.copy())
    mmcnb.annotate(
        cells, 3, element="obsp/connectivities", probabilities=True, random_state=0
    )
    assert adjusted_rand_score(rings[1], cells.obs["mmcnb"]) == 1.0
    assert (cells.obsp["connectivities"] != near).nnz == 0
    shares = cells.obsm["mmcnb_probabilities"]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), cells.obs["mmcnb"].astype(int))


def test_connectivities_that_cannot_be_are_refused_and_nothing_is_written(rings, graph):
    cells = cells_of(rings[0], connectivities=graph.copy())
    with pytest.raises(
        InputError,
        match=r"^the number of clusters cannot be chosen from connectivities; pass n_clus",
    ):
        mmcnb.annotate(cells, element="obsp/connectivities")
    cells.obsp["connectivities"].data[7] = -0.5
    with pytest.raises(
        InputError,
        match=r"^row 0, column \d+: the value -0\.5 is negative; give a sparse",
    ):
        mmcnb.annotate(cells, 3, element="obsp/connectivities")
    assert cells.obs.columns.tolist() == []


def recorded(cells, key, **params):
    """Record graphs in ``uns`` as scanpy does."""
    prefix = "" if key == "neighbors" else f"{key}_"
    cells.uns[key] = {
        "connectivities_key": f"{prefix}connectivities",
        "distances_key": f"{prefix}distances",
        "params": {"n_neighbors": 5, "method": "umap", "metric": "euclidean"} | params,
    }


def too_few(rows):
    """A graph with too few neighbours, as scanpy stores it."""
    return csr_array(kneighbors_graph(rows, 5, mode="distance"))


def refusal_of(cells, element, **parameters):
    """The message of a call that is refused, which leaves the object as it is."""
    before = (cells.obs.columns.tolist(), list(cells.uns), list(cells.obsp))
    with pytest.raises(InputError, match="has 5 neighbours, but 7 are") as refusal:
        mmcnb.annotate(cells, element=element, **parameters)
    assert (cells.obs.columns.tolist(), list(cells.uns), list(cells.obsp)) == before
    return str(refusal.value)


@pytest.mark.parametrize(
    ("key", "params", "call"),
    [
        ("neighbors", {}, "n_neighbors=25"),
        ("neighbors", {"use_rep": "X_pca"}, "n_neighbors=25, use_rep='X_pca'"),
        (
            "near",
            {"n_pcs": np.int64(2), "metric": "cosine"},
            "n_neighbors=25, n_pcs=2, metric='cosine', key_added='near'",
        ),
    ],
)
@pytest.mark.parametrize("is_fit", [False, True])
def test_a_graph_with_too_few_neighbours_is_refused_with_the_call_for_a_better_one(
    rings, key, params, call, is_fit
):
    prefix = "" if key == "neighbors" else f"{key}_"
    cells = cells_of(rings[0], **{f"{prefix}distances": too_few(rings[0])})
    recorded(cells, key, **params)
    element = f"obsp/{prefix}distances"
    if is_fit:
        with pytest.raises(InputError) as refusal:
            on_graph().fit(cells, element=element)
        message = str(refusal.value)
    else:
        message = refusal_of(cells, element)
    assert message.endswith(f"call sc.pp.neighbors(adata, {call}).")


def test_a_graph_of_another_origin_is_refused_with_a_line_that_works(rings):
    cells = cells_of(rings[0], near=too_few(rings[0]))
    message = refusal_of(cells, "obsp/near")
    line = message.partition("; call ")[2].removesuffix(".")
    exec(line, {"adata": cells, "sklearn": sklearn})
    mmcnb.annotate(cells, element="obsp/near", random_state=0)
    assert adjusted_rand_score(rings[1], cells.obs["mmcnb"]) == 1.0


@pytest.mark.parametrize("key", ["neighbors", "near"])
@pytest.mark.parametrize("kind", ["distances", "connectivities"])
def test_the_call_of_scanpy_in_the_message_works(rings, key, kind):
    sc = pytest.importorskip("scanpy", reason="scanpy is installed by its users")
    cells = cells_of(rings[0])
    cells.obsm["X_pca"] = rings[0].astype(np.float32)
    prefix = "" if key == "neighbors" else f"{key}_"
    with warnings.catch_warnings():  # of scanpy and what it imports
        warnings.simplefilter("ignore")
        sc.pp.neighbors(
            cells, 6, use_rep="X_pca", key_added=None if key == "neighbors" else key
        )
        method = {"element": f"obsp/{prefix}distances", "n_clusters": 3}
        line = refusal_of(cells, **method).partition("; call ")[2].removesuffix(".")
        exec(line, {"adata": cells, "sc": sc})
        mmcnb.annotate(
            cells, 3, element=f"obsp/{prefix}{kind}", random_state=0, key_added=key[:4]
        )
    assert adjusted_rand_score(rings[1], cells.obs[key[:4]]) == 1.0


@pytest.mark.parametrize("name", ["near_connectivities", "spatial"])
def test_connectivities_of_another_name_are_not_taken_for_distances(rings, graph, name):
    strengths = graph.copy()
    strengths.data = np.exp(-graph.data / graph.data.max())
    cells = cells_of(rings[0], **{name: strengths})
    cells.uns["of the user"] = {
        "connectivities_key": name,
        "distances_key": "lengths",
    }
    with pytest.raises(InputError, match="pass n_clusters, or element='obsp/lengths'"):
        mmcnb.annotate(cells, element=f"obsp/{name}")
    mmcnb.annotate(cells, 3, element=f"obsp/{name}", random_state=0)
    assert adjusted_rand_score(rings[1], cells.obs["mmcnb"]) == 1.0
