"""One rule of types for all storage: the same numbers of any type give the same bits, wherever they are."""

import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import block_dtype
from mmcnb.stores import convert

FLOAT32 = ["?", "i1", "u1", "<i2", ">i2", "<u2", ">u2", "<f2", ">f2", "<f4", ">f4"]
FLOAT64 = ["<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "<f8", ">f8", "g"]
N = 300


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 3)) * 9 + 40
    rows[: N // 2, 0] += 60
    return rows


def of_type(numbers, dtype):
    return (numbers > 40).astype(dtype) if dtype == "?" else numbers.astype(dtype)


def dense_storages(X, folder):
    """The same dense rows in all kinds of storage, by name."""
    np.save(folder / "rows.npy", X)
    found = {
        "array": X,
        "by columns": np.asfortranarray(X),
        "npy": folder / "rows.npy",
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "Dask": dask.array.from_array(X, chunks=(77, 2)),
    }
    for name in list(found)[::2]:
        convert(found[name], folder / f"{name}.zarr", progress=False)
        found[f"{name}, converted"] = folder / f"{name}.zarr"
    if X.dtype != np.longdouble:  # neither HDF5 as we read it nor Zarr has it
        zarr.create_array(folder / "2.zarr", data=X, chunks=(77, 2), zarr_format=2)
        zarr.create_array(folder / "3.zarr", data=X, chunks=(77, 2))
        with h5py.File(folder / "rows.h5", "w") as file:
            file["X"] = X
        found |= {"Zarr 2": folder / "2.zarr", "Zarr 3": folder / "3.zarr", "HDF5": folder / "rows.h5"}
    if X.dtype.isnative and X.dtype != np.longdouble:
        frame = pd.DataFrame({name: X[:, k] for k, name in enumerate("abc")})
        found |= {"frame": frame, "Dask frame": dask.dataframe.from_pandas(frame, npartitions=2)}
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*(int|float|bool)[^ ]* does not have a Zarr V3 specification")
@pytest.mark.parametrize("dtype", FLOAT32 + FLOAT64)
def test_dense_rows_of_each_type_give_the_same_bits_from_all_storage(numbers, dtype, tmp_path):
    found = {}
    for name, source in dense_storages(of_type(numbers, dtype), tmp_path).items():
        model = mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(source)
        found[name] = model.labels_.tobytes(), model.objective_, model.decision_function(source).tobytes()
        assert open_samples(source).dtype == ("f4" if dtype in FLOAT32 else "f8"), name
    assert [name for name, bits in found.items() if bits != found["array"]] == []


@pytest.mark.parametrize("dtype", FLOAT32 + FLOAT64)
def test_sparse_rows_of_each_type_give_the_same_bits_from_all_storage(numbers, dtype, tmp_path):
    csr = scipy.sparse.csr_array(numbers * (numbers > 40))
    csr.data = csr.data.astype(dtype)
    convert(csr, tmp_path / "rows.zarr", layout="csr", progress=False)
    found = {}
    for name, source in {"array": csr, "Zarr": tmp_path / "rows.zarr"}.items():
        model = mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(source)
        found[name] = model.labels_.tobytes(), model.objective_, open_samples(source).digest
        assert open_samples(source).dtype == ("f4" if dtype in FLOAT32 else "f8"), name
    assert found["Zarr"] == found["array"]


@pytest.mark.parametrize("kind", ["MaximumMarginClustering", "UnsupervisedRLS", "SparseKernelMMC"])
@pytest.mark.parametrize("dtype", ["?", "u1", ">i4", "<f2", ">f4"])
def test_methods_with_a_kernel_have_the_same_rule(numbers, kind, dtype, tmp_path):
    X = of_type(numbers, dtype)
    np.save(tmp_path / "rows.npy", X)
    found = []
    for source in (X, tmp_path / "rows.npy"):
        parameters = {"gamma": 0.01} if kind == "SparseKernelMMC" else {}
        model = getattr(mmcnb, kind)(n_jobs=1, random_state=0, **parameters).fit(source)
        found.append((model.labels_.tobytes(), model.objective_))
    assert found[0] == found[1]


def test_types_of_several_columns_follow_the_same_rule():
    assert block_dtype("u2", "i2", "?", "f2") == "f4"
    assert block_dtype("f4", "i4") == block_dtype("f4", "f8") == "f8"
    columns = {"a": np.array([1, 2], "u2"), "b": np.array([-1, 3], "i2"), "c": np.array([True, False])}
    frame = pd.DataFrame(columns)
    for source in (frame, dask.dataframe.from_pandas(frame, npartitions=1)):
        assert open_samples(source).dtype == "f4"
        assert open_samples(source).block(0, 2).tolist() == [[1, -1, 1], [2, 3, 0]]
