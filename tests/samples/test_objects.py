"""The same float32 rows give the same bits as any object or file, and what is no table is refused."""

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
import sklearn.feature_extraction.text

import mmcnb
from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import convert, open_class_labels
from tests.samples.common import assert_same, one_sentence, rows_of

NAMES = ["height", "weight", "age", "größe", "no. 5", "x", "y"]


@pytest.fixture
def files(X, tmp_path):
    """A folder with files of the dense rows, and of sparse ones in a layer; and the AnnData object."""
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
        file.create_dataset(
            "group/chunked", data=X, chunks=(777, 2), compression="gzip"
        )
        file.create_dataset("big endian", data=X.astype(">f4"))
        file["y"] = np.arange(len(X))
    data = anndata.AnnData(X.copy(), var=pd.DataFrame(index=NAMES))
    data.layers["counts"] = scipy.sparse.csr_matrix(np.maximum(X, 0))
    data.layers["by columns"] = scipy.sparse.csc_matrix(np.maximum(X, 0))
    data.obsm["X_pca"] = X[:, :2].copy()
    data.obsm["frame"] = pd.DataFrame(X, columns=NAMES[::-1], index=data.obs_names)
    data.raw = data
    with warnings.catch_warnings():
        # of what anndata will write in its next version
        warnings.simplefilter("ignore")
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
    "Polars": lambda X: pl.DataFrame(columns_of(X)),
    "Arrow": lambda X: pa.table(columns_of(X)),
    "Arrow batch": lambda X: pa.record_batch(columns_of(X)),
    "Dask": lambda X: dask.dataframe.from_pandas(frame_of(X), npartitions=3),
}
FILES = {
    "npy": lambda folder, data: folder / "c.npy",
    "npy by columns": lambda folder, data: str(folder / "f.npy"),
    "memory map": lambda folder, data: np.load(folder / "c.npy", mmap_mode="r"),
    "memory map by columns": lambda folder, data: np.load(
        folder / "f.npy", mmap_mode="r"
    ),
    "part of a memory map": lambda folder, data: np.load(
        folder / "c.npy", mmap_mode="r+"
    )[:],
    "HDF5": lambda folder, data: folder / "rows.h5",
    "HDF5 file": lambda folder, data: h5py.File(folder / "rows.h5"),
    "HDF5 dataset": lambda folder, data: h5py.File(folder / "rows.h5")["group/chunked"],
    "HDF5 big endian": lambda folder, data: h5py.File(folder / "rows.h5")["big endian"],
    "h5ad": lambda folder, data: folder / "cells.h5ad",
    "AnnData": lambda folder, data: data,
    "view of AnnData": lambda folder, data: data[:],
    "backed AnnData": lambda folder, data: anndata.read_h5ad(
        folder / "cells.h5ad", backed="r"
    ),
    "AnnData to write": lambda folder, data: anndata.read_h5ad(
        folder / "cells.h5ad", backed="r+"
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_their_numbers_and_names(X, kind):
    samples = open_samples(FRAMES[kind](X))
    assert_same(samples, open_samples(X))
    assert samples.feature_names == NAMES


@pytest.mark.parametrize("kind", FILES)
def test_files_and_annotated_rows_are_their_numbers(X, files, kind):
    samples = open_samples(FILES[kind](*files))
    assert_same(samples, open_samples(X))
    annotated = "AnnData" in kind or kind == "h5ad"
    assert samples.feature_names == (NAMES if annotated else None)
    assert open_class_labels(samples) is None
    if samples.is_reopenable:
        sent = pickle.dumps(samples)
        assert len(sent) < 2000
        assert pickle.loads(sent).digest == samples.digest
    elif kind not in ("AnnData", "view of AnnData"):
        with one_sentence(r"cannot be sent to another process: .*\.$"):
            pickle.dumps(samples)


@pytest.mark.parametrize("kind", ["AnnData", "backed AnnData", "h5ad", "zarr"])
def test_elements_of_anndata_are_the_same_wherever_it_is(X, files, kind):
    folder, data = files
    if kind == "zarr":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data.write_zarr(folder / "cells.zarr")
        source = folder / "cells.zarr"
    else:
        source = FILES[kind](folder, data)
    sparse = open_samples(source, "layers/counts")
    assert_same(sparse, open_samples(scipy.sparse.csr_array(np.maximum(X, 0))))
    assert sparse.feature_names == NAMES
    raw = open_samples(source, "raw/X")
    assert_same(raw, open_samples(X))
    assert raw.feature_names == NAMES
    assert open_samples(source, "obsm/X_pca").feature_names is None
    if kind != "backed AnnData":
        frame = open_samples(source, "obsm/frame")
        assert_same(frame, open_samples(X))
        assert frame.feature_names == NAMES[::-1]


def test_backed_sparse_rows(files):
    folder, data = files
    data.X = data.layers["counts"]
    data.write_h5ad(folder / "sparse.h5ad")
    backed = anndata.read_h5ad(folder / "sparse.h5ad", backed="r")
    digest = open_samples(data).digest
    assert {open_samples(one).digest for one in (backed, backed.X, backed[:])} == {
        digest
    }


def test_a_frame_of_sparse_columns_stays_sparse(X):
    sparse = scipy.sparse.csr_array(np.maximum(X, 0))
    samples = open_samples(pd.DataFrame.sparse.from_spmatrix(sparse, columns=NAMES))
    assert samples.is_sparse
    assert (samples.digest, samples.feature_names) == (
        open_samples(sparse).digest,
        NAMES,
    )


@pytest.mark.parametrize("kind", ["h5ad", "AnnData", "pandas"])
def test_files_and_frames_are_converted_with_their_names(X, files, tmp_path, kind):
    convert(FILES[kind](*files) if kind in FILES else frame_of(X), tmp_path / "a.zarr")
    assert_same(open_samples(tmp_path / "a.zarr"), open_samples(X))
    assert open_samples(tmp_path / "a.zarr").feature_names == NAMES


# --- what is refused ------------------------------------------------------------------


def objects(value):
    """An array of objects with an odd one at row 0, column 1."""
    rows = np.array([[1, 0], [2, 3]], dtype=object)
    rows[0, 1] = value
    return rows


def sparse(form="csr", **parts):
    """A sparse matrix of three rows, some of whose arrays have another value at 1 or are others."""
    matrix = scipy.sparse.csr_array(np.eye(3)).asformat(form)
    for name, value in parts.items():
        if isinstance(value, int):
            getattr(matrix, name)[1] = value
        else:
            setattr(matrix, name, value)
    return matrix


class Failing:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no memory left")


MASKED = np.ma.masked_array(
    np.arange(4.0).reshape(2, 2), [[False, False], [False, True]]
)
OBJECTS = {
    "text": ("2", "contains text, '2'"),
    "date": (np.datetime64("2020"), "contains np.datetime64.*"),
    "None": (None, "contains None .*fill in or drop|contains None"),
    "NA": (pd.NA, "contains <NA>"),
    "list": ([2], r"contains \[2\]"),
}
REFUSED = {
    "Dask text": (
        dask.dataframe.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1),
        "column 'a' of the Dask frame has dtype string",
    ),
    "masked": (
        np.ma.masked_equal(np.eye(2), 1),
        "2 masked values, the first at row 0, column 0",
    ),
    "rows with masks": (
        list(MASKED),
        "row 1 of X is a masked array with 1 masked values",
    ),
    "masked CSR": (
        sparse(data=np.ma.masked_equal([1.0, 2, 3], 2)),
        "array data of X is a masked array",
    ),
    "masked Dask": (
        dask.array.ma.masked_greater(
            dask.array.from_array(np.eye(4), chunks=(2, 4)), 0
        ),
        "chunk 0 of dask array is a masked array",
    ),
    "records": (np.zeros(3, dtype=[("a", "f4"), ("b", "f4")]), "contains records"),
    "dates": (np.array([["2020-01-01"]], dtype="M8[D]"), "contains dates"),
    "digits": (
        np.array([["1", "2"], ["2", "3"]]),
        r"contains text .* numpy\.asarray\(X, dtype=float\)",
    ),
    "complex": (np.eye(2) * 1j, "X contains complex"),
    "a huge whole number": (objects(10**400), "above the largest float64"),
    "unequal rows": ([[1, 2], [3]], "has rows of different lengths"),
    "no dimension": (np.array(3.0), "X is a 0-D array"),
    "one dimension": (np.arange(4.0), r"X is a 1-D array of shape \(4,\)"),
    "no rows": (np.zeros((0, 3)), r"0 sample\(s\)"),
    "no columns": (np.zeros((3, 0)), r"0 feature\(s\)"),
    "list of sparse rows": (
        [scipy.sparse.csr_array([[1.0]])] * 2,
        "list of sparse matrices",
    ),
    "sparse of complex numbers": (
        scipy.sparse.coo_array(np.eye(2) * 1j),
        "X contains complex",
    ),
    "row out of bounds": (
        sparse("csc", indices=7),
        "the CSC matrix is damaged .indices must be < 3",
    ),
    "place out of bounds": (
        sparse("coo", row=7),
        "the COO matrix is damaged .*exceeds",
    ),
    "integers of 128 bits": (
        pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}),
        "the data frame cannot be read .*: cast its columns to numbers|column 'a' .* not numbers",
    ),
    "a promise": (dask.delayed(np.eye)(2), "X is a Dask Delayed.*, which has no rows"),
    "a failing object": (Failing(), r"X is not an array of numbers \(no memory left\)"),
    "no path": ("", "X is empty: name a file"),
    "a null character": ("a\0b.zarr", "cannot be used .(lstat: )?embedded null"),
    "a long name": ("a" * 5000, "cannot be used .file name too long"),
    "nothing": (None, "X is a NoneType, which cannot be read"),
    "a number": (3.5, "X is a float"),
    **{
        f"{kind} among objects": (
            objects(value),
            f"{match} .*row 0, column 1|{match} at row 0, column 1",
        )
        for kind, (value, match) in OBJECTS.items()
    },
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_in_one_sentence(kind):
    source, match = REFUSED[kind]
    with one_sentence(match):
        open_samples(source).block(0, 2)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_of_numpy_is_refused():
    with one_sentence(r"is an np\.matrix, which is not supported"):
        open_samples(np.matrix(np.eye(2)))


def test_a_mask_that_hides_nothing_is_no_mask(X):
    assert open_samples(np.ma.masked_array(X)).digest == open_samples(X).digest


@pytest.mark.parametrize(
    ("name", "element", "match"),
    [
        (
            "rows.h5",
            "nothing",
            "no element 'nothing'; it has: X, big endian, group/chunked",
        ),
        ("rows.h5", "y", "1-D array"),
        (
            "rows.h5",
            "group",
            "group is encoded as a plain group, which is not supported",
        ),
        (
            "cells.h5ad",
            "layers/by columns",
            r"stored by columns \(CSC\).*write X\.tocsr\(\) in its place",
        ),
        ("c.npy", "X", "has no element 'X': leave element out"),
        ("missing.h5", None, "missing.h5 does not exist"),
    ],
)
def test_files_and_elements_that_are_not_there(files, name, element, match):
    with one_sentence(match):
        open_samples(files[0] / name, element)


def test_elements_are_for_what_has_them(X, files):
    with one_sentence(
        r"no element 'layers/z'; it has: X, raw/X, layers/counts, .*obsm/X_pca"
    ):
        open_samples(files[1], "layers/z")
    with one_sentence("no element 'X'; it has: none"):
        open_samples(anndata.AnnData(shape=(3, 2)))
    for source in (
        X,
        frame_of(X),
        scipy.sparse.csr_array(X),
        X.tolist(),
        FRAMES["Dask"](X),
    ):
        with one_sentence("leave element out"):
            open_samples(source, "obsm/X_pca")


@pytest.mark.parametrize("name", ["c.npy", "f.npy", "rows.h5", "cells.h5ad"])
def test_damaged_files_end_in_one_sentence(files, name):
    path = files[0] / name
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"no such format" * 100):
        path.write_bytes(damaged)
        with one_sentence(name):
            open_samples(path).digest


def test_a_damaged_chunk_is_named(files):
    path = files[0] / "rows.h5"
    with h5py.File(path) as file:
        chunk = file["group/chunked"].id.get_chunk_info(3)
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\0" * chunk.size)
    with one_sentence(r"rows\.h5/group/chunked: .* cannot be read", DamagedStoreError):
        open_samples(path, "group/chunked").digest


@pytest.mark.parametrize("name", ["c.npy", "rows.h5"])
def test_a_file_put_in_its_place_is_noticed(X, files, name):
    path = files[0] / name
    sent = pickle.dumps(open_samples(path))
    if name == "c.npy":
        np.save(path, X[:-1])
    else:
        with h5py.File(path, "w") as file:
            file["X"] = X[:-1]
    with one_sentence(f"{name} has been replaced|{name} is shorter"):
        pickle.loads(sent)


def test_a_bad_number_is_named_by_row_column_and_name(files):
    folder, data = files
    data.X[4100, 2] = np.nan
    data.write_h5ad(folder / "bad.h5ad")
    for source in (data, folder / "bad.h5ad"):
        with one_sentence(r"NaN at row 4100, column 2 \('age'\) of "):
            open_samples(source).digest


def test_a_missing_extra_is_named(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for name in ("rows.h5", "cells.h5ad"):
        with one_sentence(rf'{name} needs h5py \(.*\): pip install "mmcnb\[hdf5\]"\.$'):
            open_samples(files[0] / name)


def test_a_data_array_is_what_it_holds(X):
    def labelled(data):
        members = {
            "__module__": "xarray.core.dataarray",
            "data": data,
            "dims": ("a", "b"),
        }
        return type("DataArray", (), members)()

    for data in (X, dask.array.from_array(X, chunks=(1000, 7))):
        assert_same(open_samples(labelled(data)), open_samples(X))


def test_opening_reads_no_numbers(tmp_path):
    np.lib.format.open_memmap(
        tmp_path / "large.npy", "w+", "f4", (2**18, 2**9)
    ).flush()  # 512 MiB of holes
    for source in (
        tmp_path / "large.npy",
        np.load(tmp_path / "large.npy", mmap_mode="r"),
    ):
        assert open_samples(source).block(2**18 - 2, 2**18).shape == (2, 2**9)


def test_a_frame_in_a_file_has_one_type_for_all_columns_and_no_texts(tmp_path):
    index = [f"cell{row}" for row in range(6)]
    columns = {
        "a": np.arange(6, dtype="i2"),
        "b": [True, False] * 3,
        "c": np.arange(6) * 2**40,
    }
    table = pd.DataFrame(columns, index=index)
    frames = {"t": table, "texts": table.assign(kind=list("abcabc"))}
    data = anndata.AnnData(np.zeros((6, 1)), obs=pd.DataFrame(index=index), obsm=frames)
    data.write_h5ad(tmp_path / "cells.h5ad")
    in_file = open_samples(tmp_path / "cells.h5ad", "obsm/t")
    assert in_file.digest == open_samples(data, "obsm/t").digest
    assert in_file.dtype == np.float64
    with one_sentence(r"column 'kind' of .*cells\.h5ad/obsm/texts.*convert or drop it"):
        open_samples(tmp_path / "cells.h5ad", "obsm/texts")


SUBJECTS = ["the ship left the harbour", "the judge heard the witness"]
DOCUMENTS = [f"{SUBJECTS[i % 2]} on day {i}" for i in range(60)]


@pytest.mark.parametrize(
    "X",
    [
        DOCUMENTS,
        np.array(DOCUMENTS),
        np.array(DOCUMENTS, object),
        np.array(DOCUMENTS, object)[:, None],
        [[text] for text in DOCUMENTS],
        pd.Series(DOCUMENTS),
        pd.Series(DOCUMENTS, dtype="string"),
    ],
)
def test_documents_are_told_a_call_that_makes_them_numbers(X):
    with one_sentence("contains text .* TF-IDF .* embeddings") as refusal:
        mmcnb.MaximumMarginClustering(2).fit(X)
    call = str(refusal.value).partition("TF-IDF with ")[2].partition(", or")[0]
    names = {"sklearn": sklearn, "numpy": np, "X": X}
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(eval(call, names))
    assert model.labels_[:4].tolist() == [0, 1, 0, 1]


def test_texts_of_numbers_and_of_categories_are_told_what_suits_them():
    with one_sentence("convert it with") as refusal:
        open_samples([["1", "2"], ["3", "4.5"]])
    call = str(refusal.value).partition("convert it with ")[2].removesuffix(".")
    rows = eval(call, {"numpy": np, "X": [["1", "2"], ["3", "4.5"]]})
    assert rows_of(rows).tolist() == [[1, 2], [3, 4.5]]
    X = np.array([["red", "small"], ["blue", "large"]] * 20)
    with one_sentence("whose text columns become categories") as refusal:
        open_samples(X)
    call = str(refusal.value).partition(": pass ")[2].partition(", whose")[0]
    frame = eval(call, {"pandas": pd, "X": X})
    assert mmcnb.MaximumMarginClustering(2).fit(frame).n_features_in_ == 2
