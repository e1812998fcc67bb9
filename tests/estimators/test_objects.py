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

import mmcnb
from mmcnb.errors import InputError
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay
from mmcnb.samples import open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.estimators.conftest import make, make_blobs, make_sparse
from tests.estimators.front_door import front_door

N = 9000  # more than two blocks
NAMES = ["a", "b", "c"]
# Names come with some storages and not with others, which predict tells apart.
pytestmark = pytest.mark.filterwarnings(
    "ignore:X (does not have valid|has) feature names:UserWarning"
)


def annotated(rows, names=None):
    with warnings.catch_warnings():
        # of what anndata will write in its next version
        warnings.simplefilter("ignore")
        return anndata.AnnData(
            rows, var=None if names is None else pd.DataFrame(index=names)
        )


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


def differing(storages, model):
    """The storages of which a fit has other labels or another objective than that of the first."""
    answers = {}
    for storage, source in storages.items():
        model.fit(source)
        answers[storage] = model.labels_.tobytes(), model.objective_
        assert model.predict(source).tobytes() == model.labels_.tobytes()
    first = next(iter(answers.values()))
    return [storage for storage, answer in answers.items() if answer != first]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        make(
            "SparseKernelMMC",
            n_landmarks=30,
            scale="standard",
            sample_size=300,
            n_init=2,
            n_jobs=2,
        ),
        front_door(n_nodes=1000, n_jobs=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_all_dense_storages_give_the_same_bits(dense, model):
    assert differing(dense, model) == []


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
    assert (
        differing(storages, make("CPMMC", n_jobs=2, sample_size=300, n_init=2, C=3.5))
        == []
    )


@pytest.mark.slow
def test_a_cluster_reads_files_again(dense, dask_client):
    expected = make("CPMMC", n_init=1, C=1.3).fit(dense["array"]).labels_.tobytes()
    for storage in ("npy", "HDF5", "backed AnnData"):
        model = make("CPMMC", n_init=1, C=1.3, engine=dask_client(2)).fit(
            dense[storage]
        )
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
    assert (
        model.decision_function(source, **asked).tobytes()
        == plain.decision_function(-X).tobytes()
    )
    assert model.fit_model(source, **asked).objective_ == plain.objective_
    assert model.to_frame(source, **asked)["cluster"].tolist() == plain.labels_.tolist()
    assert (
        model.plan(source, **asked).to_dict().keys() == plain.plan(-X).to_dict().keys()
    )
    with pytest.raises(
        InputError, match=r"no element 'obsm/nothing'; it has: .*obsm/X_other"
    ):
        model.predict(source, element="obsm/nothing")


@pytest.mark.parametrize("name", ["UnsupervisedRLS", "KernelKMeans"])
def test_transformers_take_an_element(dense, X, name):
    model = getattr(mmcnb, name)(random_state=0)
    expected = model.fit_transform(-X[:200])
    columns = model.fit_transform(dense["AnnData"][:200], element="obsm/X_other")
    assert columns.tobytes() == expected.tobytes()


def test_an_element_of_an_array_is_refused(X):
    with pytest.raises(
        InputError,
        match="X is of type ndarray and has no element 'X': leave element out",
    ):
        make("CPMMC").fit(X, element="X")


@pytest.mark.filterwarnings("error:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("storage", ["polars", "AnnData", "h5ad", "Zarr"])
def test_displays_draw_what_a_fit_takes_and_keep_its_names(dense, storage):
    model = make("CPMMC", n_init=1, C=1.3).fit(dense["pandas"])
    for display in (ClusterDisplay, ClusterMapDisplay):
        expected = display.from_estimator(model, dense["pandas"])
        shown = display.from_estimator(model, dense[storage])
        np.testing.assert_array_equal(shown.points, expected.points)
        np.testing.assert_array_equal(shown.labels, expected.labels)
    plt.close("all")


def test_opened_rows_are_rows(dense):
    storages = {"array": dense["array"]}
    storages |= {
        name: open_samples(dense[name]) for name in ("polars", "HDF5", "AnnData")
    }
    assert differing(storages, make("CPMMC", n_init=1, C=1.3)) == []
