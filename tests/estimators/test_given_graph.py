"""metric="precomputed": clusters of a neighbour graph that is given, and its rows in any storage."""

import warnings

import anndata
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from mmcnb.stores import create_csr_store

N = 600


@pytest.fixture(scope="module")
def rings():
    return make_shape("three-rings", N, random_state=0)


@pytest.fixture(scope="module")
def graph(rings):
    return csr_array(kneighbors_graph(rings[0], 15, mode="distance"))


def given(n_clusters=None, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, metric="precomputed", random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted(graph):
    return given().fit(graph)


def test_clusters_are_found_without_rows(rings, graph, fitted):
    assert adjusted_rand_score(rings[1], fitted.labels_) == 1.0
    assert fitted.n_clusters_ == 3
    assert fitted.kernel_ == "graph"
    assert fitted.report_["scaling"] == "Columns were taken as they are: sparse."
    np.testing.assert_array_equal(fitted.predict(graph), fitted.labels_)


def test_clusters_are_those_of_the_rows(rings):
    graph = kneighbors_graph(rings[0], 25, mode="distance")
    own = mmcnb.MaximumMarginClustering(3, kernel="graph", scale=None, random_state=0).fit(rings[0])
    found = given(3).fit(graph)
    np.testing.assert_array_equal(found.labels_, own.labels_)
    assert found.objective_ == pytest.approx(own.objective_, rel=1e-5)


def test_another_order_of_the_rows_gives_the_same_clusters(graph, fitted):
    order = np.random.default_rng(0).permutation(N)
    again = given().fit(graph[order][:, order])
    assert adjusted_rand_score(again.labels_, fitted.labels_[order]) == 1.0


@pytest.mark.parametrize("factor", [2.0**-14, 1e-3, 1e120])
def test_units_do_not_count(graph, fitted, factor):
    np.testing.assert_array_equal(given().fit(graph * factor).labels_, fitted.labels_)


def test_storages_and_threads_give_the_same_bits(graph, fitted, tmp_path):
    with create_csr_store(tmp_path / "graph.zarr", N, dtype="float64") as writer:
        writer.append(graph)
    for source, n_jobs in ((graph, 1), (graph, 3), (tmp_path / "graph.zarr", 2)):
        model = given(n_jobs=n_jobs).fit(source)
        assert model.labels_.tobytes() == fitted.labels_.tobytes()
        assert model.objective_ == fitted.objective_


def test_a_cluster_gives_the_same_bits(graph, fitted, tmp_path, dask_client):
    with create_csr_store(tmp_path / "graph.zarr", N, dtype="float64") as writer:
        writer.append(graph)
    model = given(engine=dask_client(2)).fit(tmp_path / "graph.zarr")
    assert model.labels_.tobytes() == fitted.labels_.tobytes()


def test_new_rows_are_labelled_by_their_distances_also_in_a_pipeline(rings):
    X, y = rings
    nearest = KNeighborsTransformer(mode="distance", n_neighbors=15)
    model = make_pipeline(nearest, given(3)).fit(X[::2])
    assert adjusted_rand_score(y[1::2], model.predict(X[1::2])) == 1.0
    shares = model[-1].predict_proba(model[0].transform(X[1::2]))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X[1::2]))


def test_a_file_keeps_the_model(graph, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(graph), fitted.labels_)
    assert (tmp_path / "model").stat().st_size < 200_000


def test_noise_layers_and_known_labels_work(rings, graph):
    X = np.r_[rings[0], [[9.0, 9.0]]]
    far = csr_array(kneighbors_graph(X, 15, mode="distance"))
    noisy = given(3, noise=0.005).fit(far)
    assert noisy.labels_[-1] == -1
    known = given().fit(graph, partial_labels={int(i): int(rings[1][i]) for i in range(0, N, 50)})
    assert known.report_["candidates"][0]["broken"] == 0
    layer = known.labels_at(graph, 2)
    assert np.unique(layer).size == 2


def test_more_nodes_than_asked_for_are_all_rows(graph):
    assert given(3, n_nodes=50).fit(graph).piece_of_node_.size == N


def test_weights_count_and_rows_of_no_weight_are_refused(graph, fitted):
    weights = np.where(fitted.labels_ == 0, 2.0, 1.0)
    assert given(3).fit(graph, sample_weight=weights).report_["sizes"][0] == 2 * fitted.report_["sizes"][0]
    with pytest.raises(InputError, match=r"X of shape \(599, 600\) is no sparse matrix of rows by rows"):
        given().fit(graph, sample_weight=np.r_[0.0, np.ones(N - 1)])


def test_it_is_pairwise_for_scikit_learn():
    assert clone(given()).__sklearn_tags__().input_tags.pairwise
    assert not mmcnb.MaximumMarginClustering().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize(
    "parameters", [{"kernel": "rbf"}, {"kernel": "linear"}, {"scale": "standard"}, {"scale": {0: "log"}}]
)
def test_what_needs_columns_is_refused(graph, parameters):
    with pytest.raises(InputError, match="metric='precomputed' is at odds with kernel=") as caught:
        given(2, **parameters).fit(graph)
    remedy = {"kernel": "graph"} if "kernel" in parameters else {"scale": None}
    assert "give 'graph' and None" in str(caught.value)
    assert given(2, **remedy).fit(graph).n_clusters_ == 2


def test_dense_distances_are_refused_with_a_remedy_that_works(rings):
    D = np.linalg.norm(rings[0][:, None] - rings[0], axis=2)
    with pytest.raises(InputError, match="is no sparse matrix of rows by rows; give a sparse matrix as"):
        given().fit(D)
    assert given(3).fit(kneighbors_graph(rings[0], 25, mode="distance")).n_clusters_ == 3


def test_distances_are_not_explained_nor_updated(graph, fitted):
    with pytest.raises(
        InputError, match="distances have no columns; fit the rows, and explain them with these labels"
    ):
        fitted.explain(graph)
    with pytest.raises(InputError, match="an update needs nodes that are rows"):
        clone(fitted).fit(graph).update(graph)


def test_rows_are_explained_with_the_labels_of_the_graph(rings, fitted):
    told = mmcnb.MaximumMarginClustering(3, random_state=0).fit(rings[0]).explain(rings[0], fitted.labels_)
    assert len(told.clusters) == 3


def test_annotate_takes_the_distances_of_scanpy(rings, graph, fitted, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what anndata will write in its next version
        cells = anndata.AnnData(rings[0].astype(np.float32))
        cells.obsp["distances"] = graph
        cells.write_h5ad(tmp_path / "cells.h5ad")
    mmcnb.annotate(cells, element="obsp/distances", random_state=0)
    assert cells.obs["mmcnb"].cat.codes.tolist() == fitted.labels_.tolist()
    assert cells.uns["mmcnb"]["params"]["metric"] == "precomputed"
    stored = given().fit(tmp_path / "cells.h5ad", element="obsp/distances")
    np.testing.assert_array_equal(stored.labels_, fitted.labels_)
    assert stored.to_frame(mmcnb.open_samples(tmp_path / "cells.h5ad", "obsp/distances")).index[0] == "0"


def test_annotate_takes_connectivities_for_a_known_number(rings, graph):
    near = csr_array(kneighbors_graph(rings[0], 15, mode="connectivity"))
    near.data = np.exp(-graph.data / graph.data.max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(rings[0].astype(np.float32), obsp={"connectivities": near.maximum(near.T)})
    before = cells.obsp["connectivities"].copy()
    with pytest.raises(InputError, match=r"^connectivities do not tell the number of clusters; give n_clus"):
        mmcnb.annotate(cells, element="obsp/connectivities")
    assert cells.obs.columns.tolist() == []
    cells.obsp["connectivities"].data[7] = -0.5
    with pytest.raises(InputError, match=r"^row 0, column \d+ is -0\.5; give a sparse matrix"):
        mmcnb.annotate(cells, 3, element="obsp/connectivities")
    cells.obsp["connectivities"] = before.copy()
    mmcnb.annotate(cells, 3, element="obsp/connectivities", probabilities=True, random_state=0)
    assert adjusted_rand_score(rings[1], cells.obs["mmcnb"]) == 1.0
    assert (cells.obsp["connectivities"] != before).nnz == 0
    shares = cells.obsm["mmcnb_probabilities"]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), cells.obs["mmcnb"].astype(int))
