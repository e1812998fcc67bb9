"""The same float32 table gives the same bits as any object or file, and what is no table is refused."""

import pickle
import sys
import warnings

import anndata
import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import open_samples
from mmcnb.samples._base import open_again
from mmcnb.stores import convert, open_class_labels
from mmcnb.tables.columns import NUMBERS_ALONE

NAMES = ["height", "weight", "age", "größe", "no. 5", "x", "y"]


@pytest.fixture
def files(X, tmp_path):
    """Files of the dense rows, and of sparse ones in a layer."""
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
        file.create_dataset("group/chunked", data=X, chunks=(777, 2), compression="gzip")
        file.create_dataset("big endian", data=X.astype(">f4"))
        file["y"] = np.arange(len(X))
    data = anndata.AnnData(X.copy(), var=pd.DataFrame(index=NAMES))
    data.layers["counts"] = scipy.sparse.csr_matrix(np.maximum(X, 0))
    data.layers["by columns"] = scipy.sparse.csc_matrix(np.maximum(X, 0))
    data.obsm["X_pca"] = X[:, :2].copy()
    data.obsm["frame"] = pd.DataFrame(X, columns=NAMES[::-1], index=data.obs_names)
    data.raw = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what anndata will write in its next version
        data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path, data


def frame_of(X):
    return pd.DataFrame(X, columns=NAMES)


def columns_of(X):
    return {name: X[:, column].copy() for column, name in enumerate(NAMES)}


FRAMES = {
    "pandas": frame_of,
    "pandas by columns": lambda X: pd.DataFrame(columns_of(X)),
    "pandas nullable": lambda X: frame_of(X).astype("Float32"),
    "pandas on Arrow": lambda X: frame_of(X).convert_dtypes(dtype_backend="pyarrow"),
    "pandas sliced": lambda X: frame_of(np.repeat(X, 2, axis=0)).iloc[::2],
    "polars": lambda X: pl.DataFrame(columns_of(X)),
    "Arrow": lambda X: pa.table(columns_of(X)),
    "Arrow batch": lambda X: pa.record_batch(columns_of(X)),
    "Dask": lambda X: dask.dataframe.from_pandas(frame_of(X), npartitions=3),
}
FILES = {
    "npy": lambda folder, data: folder / "c.npy",
    "npy by columns": lambda folder, data: str(folder / "f.npy"),
    "memory map": lambda folder, data: np.load(folder / "c.npy", mmap_mode="r"),
    "memory map by columns": lambda folder, data: np.load(folder / "f.npy", mmap_mode="r"),
    "memory map to write": lambda folder, data: np.load(folder / "c.npy", mmap_mode="r+"),
    "part of a memory map": lambda folder, data: np.load(folder / "c.npy", mmap_mode="r")[:],
    "HDF5": lambda folder, data: folder / "rows.h5",
    "HDF5 file": lambda folder, data: h5py.File(folder / "rows.h5"),
    "HDF5 dataset": lambda folder, data: h5py.File(folder / "rows.h5")["group/chunked"],
    "h5ad": lambda folder, data: folder / "cells.h5ad",
    "AnnData": lambda folder, data: data,
    "view of AnnData": lambda folder, data: data[:],
    "backed AnnData": lambda folder, data: anndata.read_h5ad(folder / "cells.h5ad", backed="r"),
    "AnnData to write": lambda folder, data: anndata.read_h5ad(folder / "cells.h5ad", backed="r+"),
}


def assert_same_rows(samples, X):
    rows = np.array([0, 3, 4, 4097, 8999])
    assert samples.dtype == np.float32
    assert samples.block(4000, 4200).tobytes() == X[4000:4200].tobytes()
    assert samples.gather(rows).tobytes() == X[rows].tobytes()
    assert samples.gather(rows[:0]).shape == (0, 7)
    assert samples.digest == open_samples(X).digest


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_their_numbers_and_names(X, kind):
    samples = open_samples(FRAMES[kind](X))
    assert_same_rows(samples, X)
    assert samples.feature_names == NAMES


@pytest.mark.parametrize("kind", FILES)
def test_files_and_annotated_rows_are_their_numbers(X, files, kind):
    samples = open_samples(FILES[kind](*files))
    assert_same_rows(samples, X)
    annotated = "AnnData" in kind or kind == "h5ad"
    assert samples.feature_names == (NAMES if annotated else None)
    assert open_class_labels(samples) is None
    if samples.is_reopenable:
        sent = pickle.dumps(samples)
        open_again.cache_clear()
        assert len(sent) < 2000
        assert pickle.loads(sent).digest == samples.digest
    elif kind != "AnnData" and "view" not in kind:
        with pytest.raises(InputError, match=r"cannot be sent to another process: [^\n]*\.$"):
            pickle.dumps(samples)


@pytest.mark.parametrize("element", ["group/chunked", "big endian"])
def test_elements_of_hdf5(X, files, element):
    assert_same_rows(open_samples(files[0] / "rows.h5", element), X)


def test_elements_of_anndata_in_memory_backed_and_in_files_are_the_same(X, files):
    folder, data = files
    counts = open_samples(scipy.sparse.csr_array(np.maximum(X, 0)))
    for source in (data, anndata.read_h5ad(folder / "cells.h5ad", backed="r"), folder / "cells.h5ad"):
        sparse = open_samples(source, "layers/counts")
        assert (sparse.digest, sparse.feature_names) == (counts.digest, NAMES)
        for got, expected in zip(
            sparse.gather(np.array([1, 5000])), counts.gather(np.array([1, 5000])), strict=True
        ):
            assert np.array_equal(got, expected)
        assert_same_rows(open_samples(source, "raw/X"), X)
        assert open_samples(source, "raw/X").feature_names == NAMES
        assert open_samples(source, "obsm/X_pca").feature_names is None
    assert open_samples(data, "obsm/frame").feature_names == NAMES[::-1]


def test_backed_sparse_rows(X, files):
    folder, data = files
    data.X = data.layers["counts"]
    data.write_h5ad(folder / "sparse.h5ad")
    backed = anndata.read_h5ad(folder / "sparse.h5ad", backed="r")
    digest = open_samples(data).digest
    assert {open_samples(one).digest for one in (backed, backed.X, backed[:])} == {digest}


def test_a_frame_that_is_one_array_is_not_copied(X):
    assert np.shares_memory(open_samples(pd.DataFrame(X, columns=NAMES, copy=False)).block(0, 9), X)


def test_a_sparse_frame_stays_sparse(X):
    sparse = scipy.sparse.csr_array(np.maximum(X, 0))
    samples = open_samples(pd.DataFrame.sparse.from_spmatrix(sparse, columns=NAMES))
    assert samples.is_sparse
    assert (samples.digest, samples.feature_names) == (open_samples(sparse).digest, NAMES)


def test_whole_numbers_truth_values_and_decimals_of_frames_are_numbers():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.Series([1, 2.5], dtype=object)})
    assert open_samples(frame).block(0, 2).tolist() == [[1, 1, 1], [2, 0, 2.5]]
    decimals = pl.DataFrame({"a": ["1.5", "2"]}).select(pl.col("a").cast(pl.Decimal(10, 2)))
    assert open_samples(decimals).block(0, 2).tolist() == [[1.5], [2]]
    assert open_samples(pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int8})).dtype == np.float32


def test_files_are_converted_with_their_names(X, files, tmp_path):
    folder, data = files
    for number, source in enumerate((folder / "cells.h5ad", data, frame_of(X))):
        convert(source, tmp_path / f"{number}.zarr", progress=False)
        assert_same_rows(open_samples(tmp_path / f"{number}.zarr"), X)
        assert open_samples(tmp_path / f"{number}.zarr").feature_names == NAMES


def first(**columns):
    return pd.DataFrame({"fine": np.arange(0, 3, 1.0) * 2, **columns})


MASKED = np.ma.masked_array(np.arange(4.0).reshape(2, 2), [[False, False], [False, True]])


def objects(value):
    rows = np.array([[1, 0], [2, 3]], dtype=object)
    rows[0, 1] = value
    return rows


def with_data(data):
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.data = data
    return matrix


def with_indices(form, index):
    matrix = scipy.sparse.csr_array(np.eye(3)).asformat(form)
    matrix.indices[1] = index
    return matrix


def with_places(place):
    matrix = scipy.sparse.coo_array(np.eye(3))
    matrix.row[1] = place
    return matrix


class Failing:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no memory left")


REFUSED = {
    "lists": (
        lambda: pl.DataFrame({"a": [[1], [2]]}),
        r"row 0, column 0 \('a'\): \[1\] is of type .*list.*: leave the column out, or",
    ),
    "mixed": (
        lambda: first(a=[1, "x", 2]),
        r"row 1, column 'a': 'x' is of another type .*\(int and str\): .*X\['a'\]\.astype\(str\)",
    ),
    "two of a name": (lambda: pd.DataFrame(np.eye(2), columns=["a", "a"]), "has two columns 'a'"),
    "some names": (lambda: pd.DataFrame(np.eye(2), columns=["a", 1]), "the data frame has a column 1"),
    "a query": (lambda: pl.LazyFrame({"a": [1]}), "is lazy; give the path of its sink_parquet"),
    "sparse ones": (lambda: pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 2], fill_value=1)}), "to_dense"),
    "Dask text": (
        lambda: dask.dataframe.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1),
        "column 'a' of the Dask frame is string",
    ),
    "matrix": (lambda: np.matrix(np.eye(2)), r"is an np\.matrix, which is not supported"),
    "masked": (lambda: np.ma.masked_equal(np.eye(2), 1), "2 masked values, the first at row 0, column 0"),
    "records": (lambda: np.zeros(3, dtype=[("a", "f4"), ("b", "f4")]), "contains records"),
    "dates in an array": (lambda: np.array([["2020-01-01"]], dtype="M8[D]"), "contains dates"),
    "digits": (lambda: np.array([["1", "2"], ["2", "3"]]), "contains text .* such as by X.astype"),
    "digits in a list": (lambda: [["1", "2"], ["2", "3"]], "contains text"),
    "digits among objects": (
        lambda: np.array([[1, "2"]], dtype=object),
        "contains text, '2' at row 0, column 1",
    ),
    "unequal rows": (lambda: [[1, 2], [3]], "has rows of different lengths"),
    "rows with masks": (lambda: list(MASKED), "row 1 of X is a masked array with 1 masked values"),
    "a mask in a list": (lambda: [[1.0, 2.0], [np.ma.masked, 3.0]], "X is no array of numbers"),
    "masked objects": (lambda: MASKED.astype(object), "X is a masked array"),
    "masked CSR": (
        lambda: with_data(np.ma.masked_equal([1.0, 2, 3], 2)),
        "array data of X is a masked array",
    ),
    "masked Dask": (
        lambda: dask.array.ma.masked_greater(dask.array.from_array(np.eye(4), chunks=(2, 4)), 0),
        "chunk 0 of dask array is a masked array",
    ),
    "durations": (lambda: np.array([[1], [2]], "m8[s]"), "X contains durations"),
    "duration among objects": (
        lambda: objects(np.timedelta64(3, "s")),
        "contains np.timedelta64.* row 0, column 1",
    ),
    "date among objects": (
        lambda: objects(np.datetime64("2020")),
        "np.datetime64.* row 0, column 1",
    ),
    "timestamp among objects": (
        lambda: objects(pd.Timestamp("2020")),
        "Timestamp.* row 0, column 1",
    ),
    "None among objects": (lambda: objects(None), "contains None .* row 0, column 1: fill in or drop"),
    "NA among objects": (lambda: objects(pd.NA), "contains <NA> .* row 0, column 1: fill in or drop"),
    "complex among objects": (lambda: objects(2j), "contains 2j .* row 0, column 1"),
    "list among objects": (lambda: objects([2]), r"contains \[2\] .* row 0, column 1"),
    "bytes among objects": (lambda: objects(bytearray(b"2")), "contains bytearray.* row 0, column 1"),
    "huge whole number": (lambda: objects(10**400), "above the largest float64"),
    "complex": (lambda: np.eye(2) * 1j, "X contains complex"),
    "bytes of digits": (lambda: np.array([[b"1"], [b"2"]]), "X contains text"),
    "fields of rows": (lambda: np.zeros((3, 2), dtype=[("a", "f4")]), "X contains records"),
    "bare bytes": (lambda: np.zeros((3, 2), "V8"), "X contains records"),
    "no dimension": (lambda: np.array(3.0), "X is a 0-D array"),
    "one dimension": (lambda: np.arange(4.0), r"X is a 1-D array of shape \(4,\)"),
    "three dimensions": (lambda: np.zeros((2, 2, 2)), "X is a 3-D array"),
    "rows deep": (lambda: [[1, [2]], [3, 4]], "different lengths|no array of numbers"),
    "list of sparse rows": (lambda: [scipy.sparse.csr_array([[1.0]])] * 2, "list of sparse matrices"),
    "sparse of one dimension": (lambda: scipy.sparse.coo_array(np.arange(4.0)), "X is a 1-D array"),
    "sparse of three dimensions": (lambda: scipy.sparse.coo_array(np.ones((2, 2, 2))), "X is a 3-D array"),
    "sparse of complex numbers": (
        lambda: scipy.sparse.coo_array(np.eye(2) * 1j),
        "X contains complex",
    ),
    "sparse of text": (lambda: with_data(np.array(["1", "2", "3"])), "X contains text"),
    "column out of bounds": (lambda: with_indices("csr", 7), "column index 7 in row 1 is outside 0..2"),
    "row out of bounds": (lambda: with_indices("csc", 7), "the CSC matrix is damaged .indices must be < 3"),
    "block out of bounds": (lambda: with_indices("bsr", 7), "the BSR matrix is damaged"),
    "negative column": (lambda: with_indices("csc", -1), "the CSC matrix is damaged"),
    "place out of bounds": (lambda: with_places(7), "the COO matrix is damaged .*exceeds"),
    "negative place": (lambda: with_places(-1), "the COO matrix is damaged"),
    "duration in a frame": (
        lambda: pd.DataFrame({"a": [1, np.timedelta64(1, "D")]}, dtype=object),
        r"row 1, column 'a': .* is of another type .*\(int and timedelta64\)",
    ),
    "integers of 128 bits": (
        lambda: pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}),
        "the data frame cannot be read .*: cast its columns to numbers|column 'a' .* not numbers",
    ),
    "a promise": (lambda: dask.delayed(np.eye)(2), "X is a Dask Delayed.*, which has no rows"),
    "a class": (lambda: np.ndarray, "X is a type, which cannot be read"),
    "a failing object": (lambda: Failing(), r"X is no array of numbers \(no memory left\)"),
    "no path": (lambda: "", "X is empty: name a file"),
    "a null character": (lambda: "a\0b.zarr", "cannot be used .(lstat: )?embedded null"),
    "a long name": (lambda: "a" * 5000, "cannot be used .file name too long"),
    "mapping": (lambda: {"a": [1]}, "X is a dict, which cannot be read"),
    "nothing": (lambda: None, "X is a NoneType, which cannot be read"),
}


NO_NUMBERS = {
    "text": (
        lambda: first(city=list("xyz")),
        [[0, 1, 0, 0], [2, 0, 1, 0], [4, 0, 0, 1]],
        r"row 0, column 1 \('city'\): 'x' is not a number",
    ),
    "polars text": (lambda: pl.DataFrame({"city": ["x", "y"]}), [[1, 0], [0, 1]], r"row 0, .*'city'\): 'x'"),
    "categories": (
        lambda: first(c=pd.Categorical([1, 2, 1])),
        [[0, 1, 0], [2, 0, 1], [4, 1, 0]],
        r"row 0, column 1 \('c'\): '1' is not a number",
    ),
    "one column of categories": (
        lambda: pd.DataFrame({"c": pd.Categorical([1, 2, 1])}),
        [[1, 0], [0, 1], [1, 0]],
        r"row 0, column 0 \('c'\): '1' is not a number",
    ),
    "dates": (
        lambda: first(day=pd.to_datetime(["1970-01-02"] * 3)),
        [[0, 86400], [2, 86400], [4, 86400]],
        r"row 0, column 1 \('day'\): '1970-01-02 .* is a date or time",
    ),
    "durations": (
        lambda: first(a=np.array([1, 2, 3], "m8[s]")),
        [[0, 1], [2, 2], [4, 3]],
        r"row 0, column 1 \('a'\): .* is a date or time",
    ),
    "missing": (
        lambda: first(a=[3, None, 2]),
        [[0, 3], [2, 2], [4, 2]],
        r"row 1, column 1 \('a'\): the cell has no value: correct it, leave such rows out, or take",
    ),
    "missing whole number": (
        lambda: first(a=pd.array([5, 2, None], "Int64")),
        [[0, 5], [2, 2], [4, 2]],
        r"row 2, column 1 \('a'\): the cell has no value",
    ),
    "missing in all": (
        lambda: pd.DataFrame({"a": pd.array([1.5, None], "Float64")}),
        [[1.5], [1.5]],
        r"row 1, column 0 \('a'\): the cell has no value",
    ),
    "polars missing": (
        lambda: pl.DataFrame({"a": [1, None]}),
        [[1], [1]],
        r"row 1, column 0 \('a'\): the cell has no value",
    ),
    "polars NaN": (
        lambda: pl.DataFrame({"a": [1.0, np.nan]}),
        [[1], [1]],
        r"row 1, column 0 \('a'\): the cell is NaN",
    ),
    "NaN in one array": (
        lambda: pd.DataFrame([[1, 2], [3, np.nan]], columns=["a", "b"]),
        [[1, 2], [3, 2]],
        r"row 1, column 1 \('b'\): the cell has no value",
    ),
}
"""Frames of more than numbers, the rows that they become, and the sentence if numbers alone are wanted."""


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_frames_of_more_than_numbers_are_taken_like_tables_or_refused(kind):
    make, rows, match = NO_NUMBERS[kind]
    samples = open_samples(make())
    assert samples.block(0, samples.n_samples).tolist() == rows
    with pytest.raises(InputError, match=match) as error:
        open_samples(make(), options=NUMBERS_ALONE)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)


def test_an_index_in_a_frame_names_its_rows():
    samples = open_samples(pd.DataFrame({"Unnamed: 0": [0, 1], "b": [1, 3]}))
    assert samples.block(0, 2).tolist() == [[1], [3]]
    assert samples.feature_names == ["b"]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_in_one_sentence(kind):
    make, match = REFUSED[kind]
    with pytest.raises(InputError, match=match) as error:
        open_samples(make()).block(0, 2)
    assert "\n" not in str(error.value)


def test_a_mask_that_hides_nothing_is_no_mask(X):
    assert open_samples(np.ma.masked_array(X)).digest == open_samples(X).digest


@pytest.mark.parametrize(
    ("name", "element", "match"),
    [
        ("rows.h5", "nothing", "no element 'nothing'; it has: X, big endian, group/chunked"),
        ("rows.h5", "y", "1-D array"),
        ("rows.h5", "group", "group is encoded as a plain group, which has no reader"),
        ("cells.h5ad", "layers/by columns", r"stored by columns \(CSC\).*tocsr"),
        ("c.npy", "X", "has no element 'X': leave element out"),
        ("missing.h5", None, "missing.h5 does not exist"),
        ("missing.npy", None, "missing.npy does not exist"),
    ],
)
def test_files_and_elements_that_are_not_there(files, name, element, match):
    with pytest.raises(InputError, match=match) as error:
        open_samples(files[0] / name, element)
    assert "\n" not in str(error.value)


def test_elements_are_for_what_has_them(X, files):
    with pytest.raises(
        InputError, match=r"no element 'layers/z'; it has: X, raw/X, layers/counts, .*obsm/X_pca"
    ):
        open_samples(files[1], "layers/z")
    for source in (X, frame_of(X), scipy.sparse.csr_array(X), X.tolist(), FRAMES["Dask"](X)):
        with pytest.raises(InputError, match="leave element out"):
            open_samples(source, "obsm/X_pca")


def test_an_object_without_elements_says_so():
    with pytest.raises(InputError, match="no element 'X'; it has: none"):
        open_samples(anndata.AnnData(shape=(3, 2)))


@pytest.mark.parametrize("name", ["c.npy", "f.npy", "rows.h5", "cells.h5ad"])
def test_damaged_files_end_in_one_sentence(files, name):
    path = files[0] / name
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"no such format" * 100):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=name) as error:
            open_samples(path).digest
        assert "\n" not in str(error.value)


def test_a_damaged_chunk_is_named(files):
    path = files[0] / "rows.h5"
    with h5py.File(path) as file:
        chunk = file["group/chunked"].id.get_chunk_info(3)
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\0" * chunk.size)
    with pytest.raises(DamagedStoreError, match=r"rows\.h5/group/chunked: .* cannot be read"):
        open_samples(path, "group/chunked").digest


@pytest.mark.parametrize("name", ["c.npy", "rows.h5"])
def test_a_file_put_in_its_place_is_noticed(X, files, name):
    sent = pickle.dumps(open_samples(files[0] / name))
    if name == "c.npy":
        np.save(files[0] / name, X[:-1])
    else:
        with h5py.File(files[0] / name, "w") as file:
            file["X"] = X[:-1]
    open_again.cache_clear()
    with pytest.raises(InputError, match=f"{name} was replaced|{name} is shorter"):
        pickle.loads(sent)


def test_a_bad_number_is_named_by_row_column_and_name(X, files):
    folder, data = files
    data.X[4100, 2] = np.nan
    data.write_h5ad(folder / "bad.h5ad")
    for source in (data, folder / "bad.h5ad"):
        with pytest.raises(InputError, match=r"NaN at row 4100, column 2 \('age'\) of "):
            open_samples(source).digest


def test_a_missing_extra_is_named(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for name in ("rows.h5", "cells.h5ad"):
        with pytest.raises(InputError, match=rf'{name} needs h5py \(.*\): pip install "mmcnb\[hdf5\]"\.$'):
            open_samples(files[0] / name)


def test_a_data_array_is_what_it_holds(X):
    def labelled(data):
        kind = type(
            "DataArray", (), {"__module__": "xarray.core.dataarray", "data": data, "dims": ("a", "b")}
        )
        return kind()

    for data in (X, dask.array.from_array(X, chunks=(1000, 7))):
        assert_same_rows(open_samples(labelled(data)), X)
    with pytest.raises(InputError, match="has no element 'X': leave element out"):
        open_samples(labelled(X), "X")


def test_opening_reads_no_numbers(tmp_path):
    np.lib.format.open_memmap(tmp_path / "large.npy", "w+", "f4", (2**18, 2**9)).flush()  # 512 MiB of holes
    for source in (tmp_path / "large.npy", np.load(tmp_path / "large.npy", mmap_mode="r")):
        samples = open_samples(source)
        assert samples.block(2**18 - 2, 2**18).shape == (2, 2**9)


FRAMES_OF_CELLS = {
    "AnnData": lambda folder, data: data,
    "h5ad": lambda folder, data: folder / "cells.h5ad",
    "zarr": lambda folder, data: folder / "cells.zarr",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES_OF_CELLS)
def test_a_frame_among_the_coordinates_of_cells_is_its_numbers_and_names(X, files, kind):
    folder, data = files
    del data.raw
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.write_zarr(folder / "cells.zarr")
    samples = open_samples(FRAMES_OF_CELLS[kind](folder, data), "obsm/frame")
    assert_same_rows(samples, X)
    assert samples.feature_names == NAMES[::-1]
    if samples.is_reopenable:
        assert pickle.loads(pickle.dumps(samples)).digest == open_samples(X).digest


def test_a_frame_in_a_file_has_one_type_for_all_columns(tmp_path):
    table = pd.DataFrame({"a": np.arange(6, dtype="i2"), "b": [True, False] * 3, "c": np.arange(6) * 2**40})
    table.index = [f"cell{row}" for row in range(6)]
    data = anndata.AnnData(np.zeros((6, 1)), obs=pd.DataFrame(index=table.index), obsm={"t": table})
    data.write_h5ad(tmp_path / "cells.h5ad")
    in_file, in_memory = open_samples(tmp_path / "cells.h5ad", "obsm/t"), open_samples(data, "obsm/t")
    assert in_file.digest == in_memory.digest
    assert in_file.dtype == in_memory.dtype == np.float64


def test_a_column_of_text_in_a_file_is_named_and_left_out_as_told(tmp_path):
    table = pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", "b"]}, index=["p", "q"])
    data = anndata.AnnData(np.zeros((2, 1)), obs=pd.DataFrame(index=["p", "q"]), obsm={"t": table})
    data.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(InputError, match=r"column 'kind' of .*cells\.h5ad/obsm/t.*convert or drop it"):
        open_samples(tmp_path / "cells.h5ad", "obsm/t")
    data.obsm["t"] = table.drop(columns="kind")
    data.write_h5ad(tmp_path / "cells.h5ad")
    assert open_samples(tmp_path / "cells.h5ad", "obsm/t").block(0, 2).tolist() == [[1.0], [2.0]]


def test_a_matrix_by_columns_is_read_when_written_by_rows_as_told(X, files):
    folder, data = files
    with pytest.raises(InputError, match=r"stored by columns \(CSC\).*write X\.tocsr\(\) in its place"):
        open_samples(folder / "cells.h5ad", "layers/by columns")
    data.layers["by columns"] = data.layers["by columns"].tocsr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.write_h5ad(folder / "again.h5ad")
    again = open_samples(folder / "again.h5ad", "layers/by columns")
    assert again.digest == open_samples(scipy.sparse.csr_matrix(np.maximum(X, 0))).digest
