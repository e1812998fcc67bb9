"""The graph kernel in every storage, by any threads or workers, from files and from checkpoints."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.model import read_model, write_model
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from mmcnb.stores import create_csr_store, create_dense_store
from tests.estimators.graph_fits import blobs, facts, graph_rls, nodes
from tests.estimators.test_checkpoint import told


@pytest.fixture(scope="module")
def X():
    return blobs(500, d=60)[0]


@pytest.fixture(scope="module")
def fitted(X):
    return graph_rls(kernel=nodes(300, n_neighbors=7)).fit(X)


N = GROUP_ROWS + 3001
MANY = {"kernel": nodes(300), "n_init": 1}


@pytest.fixture(scope="module")
def dense():
    return blobs(N, dtype=np.float32)[0]


@pytest.fixture(scope="module")
def stores(dense, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    zarr.create_array(folder / "30,000.zarr", data=dense, chunks=(30_000, 2))
    with create_dense_store(folder / "ours.zarr", 3, chunk_rows=3 * BLOCK_ROWS) as writer:
        writer.append(dense)
    with create_csr_store(folder / "csr.zarr", 3) as writer:
        writer.append(scipy.sparse.csr_array(np.where(dense > 0, dense, 0)))
    return [folder / name for name in ("30,000.zarr", "ours.zarr", "csr.zarr")]


def test_dense_storages_threads_and_workers_give_the_same_bits(dense, stores, dask_client):
    expected = facts(graph_rls(**MANY, n_jobs=1).fit(dense), dense[:5000])
    lazy = dask.array.from_array(dense, chunks=(30_000, 3))
    ways = [(dense, {"n_jobs": 2}), (stores[0], {"n_jobs": 1}), (stores[1], {"n_jobs": 2})]
    ways += [(lazy, {"n_jobs": 2}), (stores[1], {"engine": dask_client(2)})]
    for number, (storage, manner) in enumerate(ways):
        model = graph_rls(**MANY, **manner).fit(storage)
        assert facts(model, dense[:5000]) == expected, number


def test_csr_storages_and_threads_give_the_same_bits(dense, stores):
    X = scipy.sparse.csr_array(np.where(dense > 0, dense, 0))
    expected = facts(graph_rls(**MANY, n_jobs=1).fit(X), X[:5000])
    for storage, n_jobs in ((X, 2), (stores[2], 1), (scipy.sparse.csr_matrix(X), 2)):
        assert facts(graph_rls(**MANY, n_jobs=n_jobs).fit(storage), X[:5000]) == expected
    plain = graph_rls(**MANY).fit(X.toarray())
    assert np.mean(plain.labels_ == graph_rls(**MANY).fit(X).labels_) > 0.999


def test_a_large_fit_reads_its_rows_twice(stores):
    last = graph_rls(**MANY, max_passes=5).fit(stores[1]).history_.iloc[-1]
    assert last["reads"] + last["sweeps"] == 2


# -- files, checkpoints, copies ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["graph", nodes(4500)])
def test_a_saved_model_labels_alike(tmp_path, kernel):
    X, _ = blobs(5000)
    model = graph_rls(kernel=kernel).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert not model.model_.graph.search.is_exact
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert again.transform(X).tobytes() == model.transform(X).tobytes()
    assert again.get_params() == model.get_params()
    assert again.report_["graph"] == model.report_["graph"]
    assert again.gamma_ is None
    np.testing.assert_array_equal(again.fit(X).labels_, model.labels_)


def replaced(name, change):
    """A change of one array of a file."""
    return lambda arrays: arrays.update({name: change(arrays[name])})


def dropped(name):
    return lambda arrays: arrays.pop(name)


TAMPERED = {
    "starts before the nodes": replaced("graph_starts", lambda a: a - 1),
    "starts beyond the nodes": replaced("graph_starts", lambda a: a + np.r_[0, 10**6]),
    "starts that fall": replaced("graph_starts", lambda a: np.array([0, 400, 300])),
    "no starts": replaced("graph_starts", lambda a: a[:0]),
    "starts in a table": replaced("graph_starts", lambda a: a[None]),
    "starts of another type": replaced("graph_starts", lambda a: a.astype(np.int32)),
    "starts with fractions": replaced("graph_starts", lambda a: a + 0.5),
    "neighbours as many as nodes": replaced("graph_search", lambda a: np.array([a[0], 300])),
    "no neighbours": replaced("graph_search", lambda a: np.array([a[0], 0])),
    "no probes": replaced("graph_search", lambda a: np.array([0, a[1]])),
    "three numbers": replaced("graph_search", lambda a: np.r_[a, 1]),
    "one number": replaced("graph_search", lambda a: a[:1]),
    "numbers with fractions": replaced("graph_search", lambda a: a + 0.5),
    "fewer nodes": replaced("graph_nodes", lambda a: a[:-1]),
    "nodes of fewer columns": replaced("graph_nodes", lambda a: a[:, :-1]),
    "nodes in a line": replaced("graph_nodes", lambda a: a.ravel()),
    "nodes of another type": replaced("graph_nodes", lambda a: a.astype(np.float16)),
    "nodes in words": replaced("graph_nodes", lambda a: a.astype(str)),
    "centres of more cells": replaced("graph_centres", lambda a: np.r_[a, a]),
    "centres of fewer columns": replaced("graph_centres", lambda a: a[:, 1:]),
    "a centre of no dimension": replaced("graph_centres", lambda a: a[0, 0]),
    "fewer coordinates": replaced("graph_coordinates", lambda a: a[1:]),
    "fewer columns of coordinates": replaced("graph_coordinates", lambda a: a[:, 1:]),
    "coordinates of another type": replaced("graph_coordinates", lambda a: a.astype(np.float32)),
    "axes of fewer columns": replaced("graph_axes", lambda a: a[1:]),
    "axes in a line": replaced("graph_axes", lambda a: a.ravel()),
    "one axis": replaced("graph_axes", lambda a: a[:, 0]),
    "a number for axes": replaced("graph_axes", lambda a: a[0, 0]),
    "axes in words": replaced("graph_axes", lambda a: a.astype(str)),
    "fewer axes": replaced("graph_axes", lambda a: a[:, 1:]),
    "a mean of fewer columns": replaced("graph_mean", lambda a: a[1:]),
    "a mean in a table": replaced("graph_mean", lambda a: a[None]),
    "no axes": dropped("graph_axes"),
    "no mean": dropped("graph_mean"),
    "no starts at all": dropped("graph_starts"),
    "no coordinates": dropped("graph_coordinates"),
    "no nodes": dropped("graph_nodes"),
    "a rule of fewer coordinates": replaced("coef", lambda a: a[1:]),
    "a rule of more clusters": replaced("offset", lambda a: np.r_[a, 0.0]),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_file_that_was_tampered_with_is_refused_in_one_sentence(tmp_path, fitted, case):
    fitted.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    TAMPERED[case](arrays)
    header.pop("arrays")
    write_model(tmp_path / "odd", header, arrays)
    why = r"odd (is no whole model of mmcnb|holds a model that cannot be: (graph_|coef|offset))"
    with pytest.raises(InputError, match=rf"^[^\n]*{why}[^\n]*\.$"):
        mmcnb.load(tmp_path / "odd")


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        ({"name": "graph", "n_neighbors": 0}, "holds a parameter that cannot be: n_neighbors=0 is out of"),
        ({"name": "graph", "n_nodes": "many"}, "holds a parameter that cannot be: n_nodes='many' is out of"),
        ({"name": "graph", "filter": "low"}, "holds a parameter that cannot be: filter='low' is unknown"),
        ({"name": "graph", "colour": "red"}, "is no whole model of mmcnb"),
        ({"name": "rbf"}, "holds a parameter that cannot be: kernel="),
        (["graph"], "holds a parameter that cannot be: kernel="),
    ],
)
def test_settings_in_a_file_are_those_that_can_be(tmp_path, fitted, kernel, sentence):
    fitted.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    header["parameters"]["kernel"] = kernel
    header.pop("arrays")
    write_model(tmp_path / "odd", header, arrays)
    with pytest.raises(InputError, match=rf"^[^\n]*odd {sentence}[^\n]*\.$"):
        mmcnb.load(tmp_path / "odd")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["graph", nodes(300, filter="cut-off")])
def test_a_checkpoint_of_some_passes_leads_to_the_same_end(tmp_path, kernel):
    X, _ = blobs(5000, dtype=np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    expected = graph_rls(kernel=kernel).fit(tmp_path / "rows.zarr")
    whole = graph_rls(kernel=kernel, checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
    assert facts(whole, X[:500]) == facts(expected, X[:500])
    passes = sorted((tmp_path / "run" / "passes").iterdir())
    for entry in reversed(passes):
        entry.unlink()
        again = graph_rls(kernel=kernel, checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
        assert facts(again, X[:500]) == facts(expected, X[:500])
        assert told(again).equals(told(expected))
    finished = graph_rls(kernel=kernel, checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")
    assert finished.history_["reads"].max() == 0
    with pytest.raises(InputError, match=r"^[^\n]*kernel is [^\n]* there and [^\n]* here[^\n]*\.$"):
        graph_rls(kernel=nodes(299), checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")


def test_settings_of_numpy_are_kept_in_files_and_checkpoints(tmp_path, X):
    kernel = mmcnb.GraphKernel(np.int64(7), np.int32(300))
    model = graph_rls(kernel=kernel, checkpoint=tmp_path / "run").fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.kernel == mmcnb.GraphKernel(7, 300)
    np.testing.assert_array_equal(again.predict(X), model.labels_)
