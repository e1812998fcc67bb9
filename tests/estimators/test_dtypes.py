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
from mmcnb.stores import convert
from tests.estimators.conftest import bits

FLOAT32 = ["?", "i1", "u1", "<i2", ">i2", "<u2", ">u2", "<f2", ">f2", "<f4", ">f4"]
FLOAT64 = ["<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "<f8", ">f8", "g"]


def numbers_of(dtype):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 3)) * 9 + 40
    numbers[:150, 0] += 60
    return (numbers > 40).astype(dtype) if dtype == "?" else numbers.astype(dtype)


def dense_sources(X, folder):
    """The same dense rows in all kinds of storage, by name."""
    np.save(folder / "rows.npy", X)
    convert(X, folder / "converted.zarr", progress=False)
    sources = {
        "array": X,
        "by columns": np.asfortranarray(X),
        "npy": folder / "rows.npy",
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "Dask": dask.array.from_array(X, chunks=(77, 2)),
        "converted": folder / "converted.zarr",
    }
    if X.dtype != np.longdouble:  # neither HDF5 as we read it nor Zarr has it
        for version in (2, 3):
            sources[f"Zarr {version}"] = folder / f"{version}.zarr"
            zarr.create_array(
                folder / f"{version}.zarr", data=X, chunks=(77, 2), zarr_format=version
            )
        with h5py.File(folder / "rows.h5", "w") as file:
            file["X"] = X
        sources["HDF5"] = folder / "rows.h5"
        if X.dtype.isnative:
            sources["frame"] = pd.DataFrame(X, columns=list("abc"))
            sources["Dask frame"] = dask.dataframe.from_pandas(
                sources["frame"], npartitions=2
            )
    return sources


def sparse_sources(X, folder):
    csr = scipy.sparse.csr_array(
        np.where(numbers_of("f8") > 40, X, 0).astype(np.float64)
    )
    csr.data = csr.data.astype(X.dtype)
    convert(csr, folder / "csr.zarr", layout="csr", progress=False)
    return {"array": csr, "Zarr": folder / "csr.zarr"}


def assert_same_bits(sources, dtype):
    """Fits of all sources have the bits of a fit to floats of the type that blocks have."""
    float_type = "f4" if dtype in FLOAT32 else "f8"
    floats = sources["array"].astype(float_type)
    expected = bits(mmcnb.CPMMC(C=1.5, n_init=1, random_state=0).fit(floats), floats)
    for name, source in sources.items():
        model = mmcnb.CPMMC(C=1.5, n_init=1, random_state=0).fit(source)
        assert bits(model, source) == expected, name
        assert open_samples(source).dtype == float_type, name


FEW = ("u1", "<i4", ">f4", "<f8")


@pytest.mark.filterwarnings(
    "ignore:.*(int|float|bool)[^ ]* does not have a Zarr V3 specification"
)
@pytest.mark.parametrize(
    "dtype",
    [
        name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
        for name in FLOAT32 + FLOAT64
    ],
)
@pytest.mark.parametrize("sources", [dense_sources, sparse_sources])
def test_numbers_of_each_type_give_the_same_bits_from_all_storage(
    sources, dtype, tmp_path
):
    assert_same_bits(sources(numbers_of(dtype), tmp_path), dtype)


def test_types_of_several_columns_follow_the_same_rule():
    columns = {
        "a": np.array([1, 2], "u2"),
        "b": np.array([-1, 3], "i2"),
        "c": np.array([True, False]),
    }
    frame = pd.DataFrame(columns)
    for source in (frame, dask.dataframe.from_pandas(frame, npartitions=1)):
        assert open_samples(source).dtype == "f4"
        assert open_samples(source).block(0, 2).tolist() == [[1, -1, 1], [2, 3, 0]]
    assert open_samples(frame.astype({"a": "f4", "b": "i4"})).dtype == "f8"
