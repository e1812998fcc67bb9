"""One table, one answer: every object and file of the same float32 rows gives the same labels, to the bit."""

import warnings

import anndata
import h5py
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone

import mmcnb
from mmcnb.errors import InputError
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay
from mmcnb.samples import open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.estimators.conftest import make, make_blobs, make_sparse

N = 9000  # more than two blocks
NAMES = ["a", "b", "c"]
# Names come with some storages and not with others, which predict tells apart.
pytestmark = pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning")


def annotated(rows, names=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what anndata will write in its next version
        return anndata.AnnData(rows, var=None if names is None else pd.DataFrame(index=names))


@pytest.fixture(scope="module")
def X():
    return make_blobs(N, gap=3.0, dtype=np.float32)


@pytest.fixture(scope="module")
def dense(X, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    np.save(folder / "rows.npy", X)
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(777, 2), compression="gzip")
    data = annotated(X.copy(), NAMES)
    data.obsm["X_other"] = -X
    data.write_h5ad(folder / "cells.h5ad")
    with create_dense_store(folder / "rows.zarr", 3) as writer:
        writer.append(X)
        writer.feature_names = NAMES
    columns = {name: X[:, k].copy() for k, name in enumerate(NAMES)}
    return {
        "array": X,
        "by columns": np.asfortranarray(X),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "Arrow": pa.table(columns),
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "npy": folder / "rows.npy",
        "HDF5": folder / "rows.h5",
        "h5ad": folder / "cells.h5ad",
        "AnnData": data,
        "backed AnnData": anndata.read_h5ad(folder / "cells.h5ad", backed="r"),
        "Zarr": folder / "rows.zarr",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("SparseKernelMMC", {"n_landmarks": 30, "scale": "standard"}),
        ("MaximumMarginClustering", {}),
        pytest.param(
            "MaximumMarginClustering", {"n_clusters": 3, "metric": "cosine"}, marks=pytest.mark.nightly
        ),
    ],
)
def test_all_dense_storages_give_the_same_bits(dense, name, parameters):
    small = {"sample_size": 300, "n_init": 2, "C": 3.5, "gamma": 0.5} if name == "SparseKernelMMC" else {}
    found = {}
    for storage, source in dense.items():
        model = getattr(mmcnb, name)(random_state=0, n_jobs=2, **small | parameters).fit(source)
        found[storage] = model.labels_.tobytes(), model.objective_
        assert model.predict(source).tobytes() == found[storage][0]
    assert [storage for storage, bits in found.items() if bits != found["array"]] == []


def test_all_sparse_storages_give_the_same_bits(tmp_path):
    X = make_sparse(N, dtype=np.float32)
    data = annotated(scipy.sparse.csr_matrix(X))
    data.write_h5ad(tmp_path / "cells.h5ad")
    with create_csr_store(tmp_path / "rows.zarr", X.shape[1]) as writer:
        writer.append(X)
    storages = {
        "CSR": X,
        "pandas": pd.DataFrame.sparse.from_spmatrix(X),
        "AnnData": data,
        "backed AnnData": anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"),
        "h5ad": tmp_path / "cells.h5ad",
        "Zarr": tmp_path / "rows.zarr",
    }
    found = {}
    for storage, source in storages.items():
        model = make("CPMMC", n_jobs=2, sample_size=300, n_init=2, C=3.5).fit(source)
        found[storage] = model.labels_.tobytes(), model.objective_
        assert model.predict(source).tobytes() == found[storage][0]
    assert [storage for storage, bits in found.items() if bits != found["CSR"]] == []


def test_a_cluster_reads_files_again(dense, dask_client):
    expected = make("CPMMC", n_init=1, C=1.3).fit(dense["array"]).labels_.tobytes()
    for storage in ("npy", "HDF5", "backed AnnData"):
        model = make("CPMMC", n_init=1, C=1.3, engine=dask_client(2)).fit(dense[storage])
        assert model.labels_.tobytes() == expected, storage


@pytest.mark.parametrize("storage", ["AnnData", "backed AnnData", "h5ad"])
def test_every_method_takes_an_element(dense, X, storage):
    source = dense[storage]
    model = make("CPMMC", n_init=1, C=1.3).fit(source, element="obsm/X_other")
    plain = make("CPMMC", n_init=1, C=1.3).fit(-X)
    assert model.labels_.tobytes() == plain.labels_.tobytes()
    assert not hasattr(model, "feature_names_in_")
    asked = {"element": "obsm/X_other"}
    assert model.predict(source, **asked).tobytes() == plain.labels_.tobytes()
    assert model.decision_function(source, **asked).tobytes() == plain.decision_function(-X).tobytes()
    assert model.fit_predict(source, **asked).tobytes() == plain.labels_.tobytes()
    assert model.fit_model(source, **asked).objective_ == plain.objective_
    assert model.to_frame(source, **asked)["cluster"].tolist() == plain.labels_.tolist()
    assert model.plan(source, **asked).to_dict().keys() == plain.plan(-X).to_dict().keys()
    with pytest.raises(InputError, match=r"no element 'obsm/nothing'; it has: .*obsm/X_other"):
        model.predict(source, element="obsm/nothing")


@pytest.mark.parametrize("name", ["UnsupervisedRLS", "KernelKMeans"])
def test_transformers_take_an_element(dense, X, name):
    def transformer():
        return getattr(mmcnb, name)(random_state=0)

    small, rows = dense["AnnData"][:200], -X[:200]
    expected = transformer().fit_transform(rows)
    assert transformer().fit_transform(small, element="obsm/X_other").tobytes() == expected.tobytes()


def test_an_element_of_an_array_is_refused(X):
    with pytest.raises(InputError, match="X is of type ndarray and has no element 'X': leave element out"):
        make("CPMMC").fit(X, element="X")


@pytest.mark.parametrize("display", [ClusterDisplay, ClusterMapDisplay])
@pytest.mark.parametrize("storage", ["polars", "npy", "h5ad", "Zarr"])
def test_displays_draw_what_a_fit_takes(dense, X, display, storage):
    model = make("CPMMC", n_init=1, C=1.3).fit(X)
    expected = display.from_estimator(model, X)
    shown = display.from_estimator(model, dense[storage])
    assert np.array_equal(shown.points, expected.points)
    assert np.array_equal(shown.labels, expected.labels)
    plt.close("all")


@pytest.mark.filterwarnings("error:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("storage", ["pandas", "AnnData"])
def test_displays_keep_the_names_of_columns(dense, storage):
    model = make("CPMMC", n_init=1, C=1.3).fit(dense[storage])
    for display in (ClusterDisplay, ClusterMapDisplay):
        shown = display.from_estimator(model, dense[storage], sample_size=50)
        assert len(shown.points) == 50
    plt.close("all")


def test_numbers_of_clusters_are_found_on_frames(X):
    model = mmcnb.MaximumMarginClustering(random_state=0, noise="auto", scale=None)
    frame = pl.DataFrame({n: X[:, k] for k, n in enumerate("abc")})
    expected, given = clone(model).fit(X), clone(model).fit(frame)
    assert given.report_["number"] == expected.report_["number"]
    assert given.layers_.equals(expected.layers_)
    for asked in ({}, {"layer": 0}):
        np.testing.assert_array_equal(given.predict(frame, **asked), expected.predict(X, **asked))
    np.testing.assert_array_equal(given.labels_at(frame, 3), expected.labels_at(X, 3))
    np.testing.assert_array_equal(given.score_outliers(frame), expected.score_outliers(X))


def test_opened_rows_are_rows(dense, X):
    expected = make("CPMMC", n_init=1, C=1.3).fit(X).labels_.tobytes()
    for storage in ("polars", "HDF5", "AnnData"):
        assert make("CPMMC", n_init=1, C=1.3).fit(open_samples(dense[storage])).labels_.tobytes() == expected


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (np.ma.masked_array(np.eye(4), mask=np.eye(4, dtype=bool)), "4 masked values, the first at row 0"),
        (np.zeros(3, dtype=[("a", "f4")]), "X contains records"),
        (np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"), "X contains dates"),
        (np.array([["1", "2"], ["3", "4"]]), "X contains text"),
        ([["1", "2"], ["3", "4"]], "X contains text"),
        (np.array([[1, "2"], [3, 4]], dtype=object), "X contains text, '2' at row 0, column 1"),
        ([[1, 2], [3]], "rows of different lengths"),
        (
            pd.DataFrame({"a": [1, 2], "city": [["x"], ["y"]]}),
            r"column 1 \('city'\): \['x'\] is of type list",
        ),
        (pl.DataFrame({"a": [None, None]}), r"no column is left .* column 0 \('a'\): it is empty"),
        (pl.LazyFrame({"a": [1, 2]}), "is lazy; give the path of its sink_parquet"),
        ({"a": [1, 2]}, "X is a dict, which cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(rows, match):
    for ask in (make("CPMMC").fit, make("CPMMC").plan):
        with pytest.raises(InputError, match=match) as error:
            ask(rows)
        assert "\n" not in str(error.value)
