"""CrammerSingerMMC on the graph kernel: model and labels agree wherever rows live, and bad input is told."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.stores import create_dense_store
from mmcnb.synthetic import make_shape
from tests.estimators.graph_fits import QUICK, blobs, graph_rls, nodes

pytestmark = pytest.mark.slow


def graph_hinge(n_clusters=3, kernel="graph", **parameters):
    return mmcnb.CrammerSingerMMC(n_clusters, kernel=kernel, **QUICK | {"n_init": 1} | parameters)


def facts(model, probe):
    """What must be the same to the bit."""
    rows = model.history_[["stage", "start", "round", "objective", "J", "changed"]].to_numpy(dtype=str)
    arrays = {name: array.tobytes() for name, array in model.model_.arrays().items()}
    values = model.decision_function(probe).tobytes(), model.objective_, model.rho_
    return model.labels_.tobytes(), arrays, values, model.report_, rows.tolist()


# -- model and labels --------------------------------------------------------------------------

FITS = {
    "all rows": {},
    "nodes": {"kernel": nodes(300)},
    "nodes, few neighbours": {"kernel": nodes(250, n_neighbors=3, filter="resolvent")},
    "equal": {"cluster_sizes": "equal"},
    "proportions": {"kernel": nodes(300), "cluster_sizes": [0.5, 0.3, 0.2]},
    "a minimum": {"min_share": 0.6},
    "scaled": {"kernel": nodes(300), "scale": "standard"},
    "two": {"n_clusters": 2},
    "a large C": {"C": 50.0, "continuation": False},
}


@pytest.mark.parametrize("case", FITS)
@pytest.mark.parametrize("d", [3, 60])
def test_labels_sizes_and_objective_are_those_of_the_model(case, d):
    X, _ = blobs(d=d)
    model = graph_hinge(**FITS[case]).fit(X)
    f = model.decision_function(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, f.argmax(axis=1))
    np.testing.assert_array_equal(
        model.report_["sizes"], np.bincount(model.labels_, minlength=model.n_clusters)
    )
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    ranked = np.sort(f, axis=1)
    hinge = np.maximum(0, model.rho_ - (ranked[:, -1] - ranked[:, -2])).mean()
    norm2 = (model.model_.rule.coef**2).sum()  # coordinates of a graph have the identity for a kernel
    expected = norm2 / 2 - model.rho_ + model.report_["C"] * hinge
    assert model.objective_ == pytest.approx(expected, rel=1e-3, abs=1e-5 * model.rho_)
    assert model.report_["w_norm"] ** 2 == pytest.approx(norm2, rel=1e-4)
    assert model.gamma_ is None
    assert len(model.report_["graph"]["eigenvalues"]) == 6 * model.n_clusters


@pytest.mark.parametrize("kernel", ["graph", nodes(700)])
def test_rings_are_clusters_and_new_rows_belong_to_them(kernel):
    X, y = make_shape("three-rings", 900, random_state=0)
    new, classes = make_shape("three-rings", 400, random_state=1)
    model = graph_hinge(3, kernel).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert adjusted_rand_score(classes, model.predict(new)) > 0.98
    assert model.converged_
    assert model.report_["clusters_found"]


def test_the_best_cut_is_no_worse_than_that_of_least_squares_and_in_the_history():
    X, _ = blobs(gap=1.5, k=4)
    ours, theirs = graph_hinge(4).fit(X), graph_rls(4, n_init=3).fit(X)
    assert ours.report_["sample_objective"] >= theirs.report_["sample_objective"]
    history = ours.history_
    partitions = history[(history["stage"] == "least squares") & history["start"].notna()]
    assert partitions["J"].max() == ours.report_["sample_objective"]
    assert history.loc[history["stage"] == "sample", "start"].dropna().nunique() == 2


def test_sizes_are_free_above_a_minimum_or_held():
    X, y = blobs(800, gap=8.0)
    few = np.flatnonzero((y > 0) | (np.arange(800) % 8 == 0))
    shares = np.sort(np.bincount(y[few]) / few.size)
    assert adjusted_rand_score(y[few], graph_hinge().fit(X[few]).labels_) > 0.95
    for sizes, wanted in (("equal", np.full(3, 1 / 3)), (shares.tolist(), shares)):
        held = graph_hinge(cluster_sizes=sizes, sample_size=600).fit(X[few])
        assert np.sort(held.report_["sizes"]) / few.size == pytest.approx(wanted, rel=0.2)


def test_rows_of_no_weight_change_nothing():
    X, _ = blobs(300)
    weights = np.r_[np.ones(300), np.zeros(80)]
    more = np.r_[X, blobs(80, seed=9)[0]]
    plain, weighted = graph_hinge().fit(X), graph_hinge().fit(more, sample_weight=weights)
    np.testing.assert_array_equal(weighted.labels_[:300], plain.labels_)
    np.testing.assert_allclose(weighted.report_["sizes"], plain.report_["sizes"])


def test_a_plan_names_the_coordinates_and_fits_the_limit():
    assert graph_hinge(kernel=nodes(300)).plan(blobs()[0]).needs.n_landmarks == 18
    large = graph_hinge(memory_limit="1GiB").plan(RowShape(10**7, 32))
    assert large.peak <= 2**30
    assert large.needs.n_landmarks == 18


# -- storages, files and checkpoints -----------------------------------------------------------


@pytest.mark.slow
def test_storages_chunks_threads_and_workers_give_the_same_bits(tmp_path, dask_client):
    X, _ = blobs(9000, dtype=np.float32)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(777, 2))
    with create_dense_store(tmp_path / "ours.zarr", 3) as writer:
        writer.append(X)
    settings = {"kernel": nodes(4500)}  # more than a block
    expected = facts(graph_hinge(**settings, n_jobs=1).fit(X), X[:500])
    lazy = dask.array.from_array(X, chunks=(2000, 3))
    ways = [(X, {"n_jobs": 2}), (tmp_path / "bare.zarr", {"n_jobs": 1}), (lazy, {"n_jobs": 2})]
    ways += [(tmp_path / "ours.zarr", {"n_jobs": 2}), (tmp_path / "ours.zarr", {"engine": dask_client(2)})]
    for number, (storage, manner) in enumerate(ways):
        assert facts(graph_hinge(**settings, **manner).fit(storage), X[:500]) == expected, number


def test_sparse_rows_have_the_labels_of_dense_ones_whatever_the_threads():
    X, _ = blobs(1200, gap=6.0)
    X = np.where(X > 0, X, 0)
    sparse = scipy.sparse.csr_array(X)
    one, other = graph_hinge(n_jobs=1).fit(sparse), graph_hinge(n_jobs=2).fit(sparse)
    assert facts(one, sparse[:200]) == facts(other, sparse[:200])
    assert np.mean(one.labels_ == graph_hinge().fit(X).labels_) > 0.99


@pytest.mark.parametrize("kernel", ["graph", nodes(300, filter="cut-off")])
def test_a_saved_model_labels_alike(tmp_path, kernel):
    X, _ = blobs(2000)
    model = graph_hinge(kernel=kernel, min_share=0.2).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.report_ == model.report_
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.fit(X).labels_, model.labels_)


def test_a_checkpoint_leads_to_the_same_end(tmp_path):
    X, _ = blobs(5000, dtype=np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    expected = graph_hinge(kernel=nodes(400)).fit(tmp_path / "rows.zarr")
    kept = graph_hinge(kernel=nodes(400), checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
    assert facts(kept, X[:500]) == facts(expected, X[:500])
    for entry in sorted((tmp_path / "run" / "passes").iterdir())[-2:]:
        entry.unlink()
    again = graph_hinge(kernel=nodes(400), checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
    assert again.history_["resumed"].any()
    assert facts(again, X[:500]) == facts(expected, X[:500])


# -- input that cannot be used -----------------------------------------------------------------

BAD = {
    "rows": ({"n_clusters": 41}, r"^n_clusters=41 is more than the 40 rows there are"),
    "nodes": ({"n_clusters": 9, "kernel": nodes(5)}, r"^n_nodes=5 is smaller than n_clusters=9"),
    "neighbours": ({"kernel": nodes(20, n_neighbors=20)}, r"^n_neighbors=20 is not below the 20 distinct"),
    "settings": ({"kernel": nodes(0)}, r"^n_nodes=0 is out of range"),
    "name": ({"kernel": "knn"}, r"^kernel='knn' is unknown; choose one of [^\n]*'graph'"),
    "sizes": ({"cluster_sizes": [0.5, 0.5]}, r"^cluster_sizes must hold one share for each of the 3"),
    "minimum": ({"min_share": 1.5}, r"^min_share=1.5 is out of range"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_by_one_sentence(case):
    parameters, sentence = BAD[case]
    with pytest.raises(InputError, match=sentence) as error:
        graph_hinge(**parameters).fit(blobs(40)[0])
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_a_limit_that_the_nodes_do_not_fit_names_what_works():
    X, _ = blobs(6000, dtype=np.float32)
    with pytest.raises(MemoryLimitError, match=r"the least that works is [\d.]+ [MG]iB\.$"):
        graph_hinge(10, memory_limit="300MiB").fit(X)


def test_a_column_that_holds_nearly_all_variance_is_told():
    X, _ = blobs(200)
    X[:, 1] *= 1000
    with pytest.warns(ClusterWarning, match=r"^column 1 has more than 99% [^\n]*scale='standard'[^\n]*\.$"):
        graph_hinge().fit(X)
    assert graph_hinge(scale="standard").fit(X).report_["warnings"] == []
