"""Several kernels: one answer, to the bit, wherever the rows live, whoever reads them, stopped or not."""

import pickle

import dask.array
import numpy as np
import pytest
from sklearn.base import clone

import mmcnb
from mmcnb.engine.checkpoint import CheckpointEngine
from mmcnb.errors import InputError
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import make_blobs, make_sparse, same_clusters
from tests.estimators.several_kernels import KERNELS, everything, fitted, groups, one_time, two_and_three

pytestmark = pytest.mark.slow

STREAMED = {"sample_size": 200, "n_landmarks": 20, "C": 2.0}


@pytest.mark.slow
@two_and_three
def test_dense_storages_and_threads_give_the_same_bits(dense_storages, k):
    X = groups(k, 9000, dtype=np.float32)
    found = {}
    for storage, source in dense_storages(X).items():
        for n_jobs in (1, 2, 4) if storage == "array" else (2,):
            model = fitted(source, k, n_jobs=n_jobs, **STREAMED)
            assert "all rows" in set(model.history_["stage"])
            assert model.predict(source).tobytes() == model.labels_.tobytes()
            found[storage, n_jobs] = everything(model, source)
    first = found["array", 1]
    assert [key for key, value in found.items() if value != first] == []


@pytest.mark.slow
@two_and_three
def test_csr_storages_give_the_same_bits_and_agree_with_dense_rows(csr_storages, k):
    X = make_sparse(5000, dtype=np.float32)
    views = {"columns": [None, slice(15), slice(10, None)], **STREAMED}
    found = {
        storage: everything(fitted(source, k, n_jobs=1 + n, **views), source)
        for n, (storage, source) in enumerate(csr_storages(X).items())
    }
    assert [storage for storage, value in found.items() if value != found["csr"]] == []
    sparse, dense = (fitted(storage, k, eta=1e-4, **views) for storage in (X, X.toarray()))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-2)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.99


@pytest.mark.slow
@two_and_three
@pytest.mark.parametrize("store", ["scratch", "recompute"])
def test_kernel_columns_elsewhere_or_nowhere_give_the_same_bits(dense_storages, keep_columns_in, k, store):
    X = groups(k, 9000, dtype=np.float32)
    expected = everything(fitted(X, k, **STREAMED), X)
    keep_columns_in(store)
    assert everything(fitted(dense_storages(X)["zarr, 777 x 2"], k, n_jobs=2, **STREAMED), X) == expected


@pytest.mark.slow
@two_and_three
def test_a_cluster_of_machines_gives_the_bits_of_threads(dask_client, tmp_path, k):
    X = groups(k, 2 * GROUP_ROWS + 5000, dtype=np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3, dtype="float32", chunk_rows=10_000) as writer:
        writer.append(X)
    quick = STREAMED | {"n_landmarks": 6, "max_rounds": 2}
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    here = fitted(tmp_path / "rows.zarr", k, weights, **quick)
    assert {"larger sample", "all rows"} <= set(here.history_["stage"])
    expected = everything(here, X[:9000])
    there = fitted(tmp_path / "rows.zarr", k, weights, engine=dask_client(2), **quick)
    assert everything(there, X[:9000]) == expected
    lazy = dask.array.from_array(X, chunks=(30_000, 3))
    assert everything(fitted(lazy, k, weights, **quick), X[:9000]) == expected


class Stop(Exception):
    """Stands for a kill."""


@pytest.mark.slow
@two_and_three
def test_a_fit_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, monkeypatch, k):
    X, path, folder = groups(k, 6000), tmp_path / "rows.zarr", tmp_path / "run"
    with create_dense_store(path, 3, dtype="float64", chunk_rows=4096) as writer:
        writer.append(X)
    undisturbed, run = everything(fitted(path, k, **STREAMED), X), CheckpointEngine.run

    def limited(self, *args):
        if self.passes >= 4:
            raise Stop
        return run(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointEngine, "run", limited)
        with pytest.raises(Stop):
            fitted(path, k, checkpoint=folder, **STREAMED)
    for kept in (4, None):
        resumed = fitted(path, k, checkpoint=folder, **STREAMED)
        assert everything(resumed, X) == undisturbed
        assert resumed.history_["resumed"].any()
        passes = len(list((folder / "passes").iterdir()))
        assert passes > 4 if kept else passes
    with pytest.raises(ValueError, match="another fit: kernels is "):
        fitted(path, k, checkpoint=folder, **STREAMED | {"kernels": KERNELS[:2]})


def test_weights_are_repetitions():
    # One hill, so coin flips, one a row, cannot lead to different partitions; every row is a landmark.
    X = make_blobs(100, gap=4.0)
    weights = np.random.default_rng(0).integers(0, 4, 100)
    smooth = {"C": 1.3, "eta": 1e-6, "n_landmarks": 1000}
    one = fitted(X, sample_weight=weights, **smooth)
    other = fitted(np.repeat(X, weights, axis=0), **smooth)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
    np.testing.assert_allclose(one.kernel_weights_, other.kernel_weights_, atol=1e-4)
    assert same_clusters(np.repeat(one.labels_, weights), other.labels_)
    assert sum(one.report_["sizes"]) == sum(other.report_["sizes"]) == weights.sum()


@pytest.mark.slow
@two_and_three
@pytest.mark.parametrize("sample_size", [None, 80])
def test_the_unit_of_the_weights_does_not_matter(k, sample_size):
    X, weights = groups(k, 200, seed=2), np.random.default_rng(0).integers(0, 4, 200).astype(float)
    one, other = (fitted(X, k, weights * unit, sample_size=sample_size) for unit in (1.0, 1e-3))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_allclose(
        np.array(other.report_["sizes"]), np.array(one.report_["sizes"]) / 1000, atol=1e-5
    )


def test_standard_scale_is_a_standard_scaler_before():
    X = make_blobs(200) * [1, 100, 0.01] + 3
    before = (X - X.mean(axis=0)) / X.std(axis=0)
    one, other = fitted(X, scale="standard"), fitted(before)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-4)


# -- model file, pickle, clone ---------------------------------------------------------------


@two_and_three
def test_a_saved_model_predicts_the_same_and_knows_its_kernels(tmp_path, k):
    X = groups(k, 120)
    model = fitted(X, k, columns=[[0, 1], None, None])
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict(X).tobytes() == model.labels_.tobytes()
    assert again.kernel_weights_.tobytes() == model.kernel_weights_.tobytes()
    assert again.kernel_names_ == model.kernel_names_
    assert again.columns == model.columns
    assert (again.objective_, again.rho_, again.report_) == (model.objective_, model.rho_, model.report_)
    refit = clone(again).fit(X)  # pairs come back as lists, which are kernels too
    assert everything(refit, X) == everything(model, X)


def test_a_function_pickles_and_is_refused_by_a_model_file(tmp_path):
    X = make_blobs(100)
    model = fitted(X, kernels=[one_time, "linear"])
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tobytes() == model.labels_.tobytes()
    assert again.kernel_weights_.tobytes() == model.kernel_weights_.tobytes()
    with pytest.raises(InputError, match=r"^kernel one_time is a function[^\n]*\.$"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
