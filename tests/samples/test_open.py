"""The same numbers give the same bits, wherever they live; what cannot be used is refused in one sentence."""

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_csr_store, create_dense_store, open_class_labels
from tests.samples.common import assert_same, one_sentence, rows_of, same_bits


def write_dense(path, rows, **options):
    with create_dense_store(path, rows.shape[1], **options) as writer:
        for start in range(0, len(rows), 1234):
            writer.append(rows[start : start + 1234])
    return path


def write_sparse(path, rows):
    with create_csr_store(path, rows.shape[1]) as writer:
        for start in range(0, rows.shape[0], 1234):
            writer.append(rows[start : start + 1234])
    return path


@pytest.mark.parametrize(
    ("chunks", "shards", "zarr_format"),
    [
        ((1000, 7), None, 2),
        ((4096, 7), None, 3),
        ((9000, 3), None, 2),
        ((177, 7), None, 3),
        ((500, 7), (2000, 7), 3),
    ],
)
def test_dense_zarr_equals_memory(X, tmp_path, chunks, shards, zarr_format):
    path = tmp_path / "a.zarr"
    zarr.create_array(
        path, data=X, chunks=chunks, shards=shards, zarr_format=zarr_format
    )
    samples = open_samples(path)
    assert samples.chunk_rows == chunks[0]
    assert not samples.checksummed
    assert_same(samples, open_samples(X))
    assert_same(
        open_samples(shutil.make_archive(str(path), "zip", path)), open_samples(X)
    )


@pytest.mark.parametrize("chunk_rows", [None, 1000, 4096])
def test_our_dense_store_equals_memory(X, tmp_path, chunk_rows):
    path = write_dense(tmp_path / "a.zarr", X, chunk_rows=chunk_rows)
    for source in (path, shutil.make_archive(str(path), "zip", path)):
        samples = open_samples(source)
        assert samples.checksummed
        assert_same(samples, open_samples(X))


def test_our_csr_store_equals_memory(csr, tmp_path):
    path = write_sparse(tmp_path / "a.zarr", csr)
    for source in (path, shutil.make_archive(str(path), "zip", path)):
        samples = open_samples(source)
        assert samples.checksummed
        assert_same(samples, open_samples(csr))


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "u1", "i2", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i2"],
)
def test_any_real_type_is_cast_as_in_memory(rng, tmp_path, dtype):
    X = rng.integers(0, 2, size=(9000, 3)).astype(dtype)
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(700, 3))
    reference = open_samples(X)
    assert reference.dtype == ("f8" if dtype in ("i4", "i8", "u8", "f8") else "f4")
    assert np.array_equal(rows_of(X), X)
    assert_same(open_samples(tmp_path / "a.zarr"), reference)


def test_memory_blocks_are_views_where_they_can_be(X):
    assert np.shares_memory(open_samples(X).block(10, 20), X)
    fortran = open_samples(np.asfortranarray(X)).block(10, 20)
    assert fortran.flags.c_contiguous
    assert same_bits(fortran, X[10:20])


@pytest.mark.parametrize(
    ("zarr_format", "chunks", "index_dtype"),
    [(2, 1500, "i4"), (3, 4096, "i8"), (2, 100_000, "u1"), (3, 1500, "u4")],
)
def test_csr_in_zarr_equals_memory(csr, write_csr, zarr_format, chunks, index_dtype):
    indices = csr.indices.astype(index_dtype)
    path = write_csr(
        csr.data, indices, csr.indptr, csr.shape, chunks, zarr_format=zarr_format
    )
    samples = open_samples(path)
    assert samples.chunk_rows % BLOCK_ROWS == 0
    block = samples.block(0, 10)
    assert (block.indices.dtype, block.indptr.dtype, block.indptr[0]) == (
        np.int32,
        np.int64,
        0,
    )
    assert_same(samples, open_samples(csr))
    assert_same(
        open_samples(shutil.make_archive(str(path), "zip", path)), open_samples(csr)
    )


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"])
def test_every_form_of_sparse_matrix_is_its_rows(csr, form):
    rows = csr[:30]
    assert open_samples(rows.asformat(form)).digest == open_samples(rows).digest
    matrix = scipy.sparse.csr_matrix(rows)
    matrix.indices = matrix.indices.astype(np.int64)
    assert open_samples(matrix).digest == open_samples(rows).digest


def test_unsorted_and_duplicate_columns_are_summed_alike(rng, write_csr):
    counts = rng.integers(0, 12, size=9000)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = rng.integers(0, 8, size=indptr[-1]).astype(np.int64)
    data = rng.normal(size=indptr[-1]).astype(np.float32)
    memory = open_samples(
        scipy.sparse.csr_array((data, indices, indptr), shape=(9000, 8))
    )
    for chunks in (1000, 777):
        stored = write_csr(
            data, indices, indptr, (9000, 8), chunks, name=f"{chunks}.zarr"
        )
        assert_same(open_samples(stored), memory)
    expected = np.zeros((9000, 8))
    np.add.at(expected, (np.repeat(np.arange(9000), counts), indices), data)
    np.testing.assert_allclose(rows_of(memory), expected, rtol=1e-5, atol=1e-6)
    block = memory.block(0, 9000)
    places = block.indices.astype(int) + 100 * np.repeat(
        np.arange(9000), np.diff(block.indptr)
    )
    assert (np.diff(places) > 0).all()


def test_path_pathlib_opened_group_and_array_are_one(X, tmp_path):
    y = np.arange(9000) % 3 - 1
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 7) as writer:
        writer.append(X[:10], y[:10])
        writer.append(X[10:], y[10:])
    group = zarr.open_group(path, mode="r")
    for source in (str(path), path, path / "X", group, group["X"], open_samples(path)):
        samples = open_samples(source)
        assert samples.checksummed
        assert same_bits(samples.block(0, 50), X[:50])
        assert same_bits(
            open_samples(samples.path, samples.element).block(0, 50), X[:50]
        )
        assert np.array_equal(open_class_labels(source), y)
    assert open_class_labels(X) is None
    assert open_class_labels(write_dense(tmp_path / "b.zarr", X)) is None


def test_anndata_reads_what_we_write(csr, tmp_path):
    anndata = pytest.importorskip("anndata", reason="AnnData is an optional extra")
    path = write_sparse(tmp_path / "a.zarr", csr)
    assert (anndata.io.read_elem(zarr.open_group(path, mode="r")["X"]) != csr).nnz == 0


# --- rows in other processes ----------------------------------------------------------


@pytest.fixture(params=["dense", "csr", "foreign", "zip"])
def samples(request, X, csr, tmp_path):
    """Rows of each kind of store with a path."""
    path = tmp_path / "a.zarr"
    if request.param == "foreign":
        zarr.create_array(path, data=X, chunks=(1000, 7))
    elif request.param == "csr":
        write_sparse(path, csr)
    else:
        write_dense(path, X)
    if request.param == "zip":
        path = shutil.make_archive(str(path), "zip", path)
    return open_samples(path)


@pytest.mark.slow
def test_pickles_are_small_and_open_elsewhere(samples):
    assert samples.is_reopenable
    sent = pickle.dumps(samples)
    assert len(sent) < 2000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert same_bits(pool.submit(samples.block, 0, 5).result(), samples.block(0, 5))


def test_a_process_opens_a_store_once(samples):
    sent = pickle.dumps(samples)
    assert pickle.loads(sent) is pickle.loads(sent)


@pytest.mark.parametrize(
    ("change", "is_ours"),
    [
        ("numbers", True),
        ("shape", True),
        ("chunks", True),
        ("shape", False),
        ("chunks", False),
    ],
)
def test_a_store_put_in_its_place_is_noticed(X, tmp_path, change, is_ours):
    path = tmp_path / "a.zarr"

    def write(rows, chunk_rows):
        if is_ours:
            write_dense(path, rows, chunk_rows=chunk_rows, overwrite=True)
        else:
            zarr.create_array(
                path, name="X", data=rows, chunks=(chunk_rows, 7), overwrite=True
            )

    write(X, 1000)
    sent = pickle.dumps(open_samples(path))
    write({"numbers": X + 1, "shape": X[:-1], "chunks": X}[change], 500)
    with one_sentence(r"a\.zarr.* has been replaced since"):
        pickle.loads(sent)


def test_rows_without_a_path_are_not_pickled(X):
    assert not open_samples(X).is_reopenable
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    group.create_array("X", data=X)
    samples = open_samples(group)
    assert not samples.is_reopenable
    with one_sentence("open it by its path"):
        pickle.dumps(samples)


# --- what is refused ------------------------------------------------------------------


def refuse(source, match, element=None):
    """Check that opening or reading all rows raises one sentence."""
    with one_sentence(match):
        rows_of(open_samples(source, element))


def test_paths_that_lead_to_no_rows(X, tmp_path):
    refuse(tmp_path / "none.zarr", "none.zarr does not exist")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.md").write_text("hello")
    refuse(tmp_path / "folder", "is a folder that contains no Zarr array or group")
    refuse(tmp_path / "folder/notes.md", "unknown format: name it")
    zarr.create_array(tmp_path / "a.zarr", data=X)
    refuse(tmp_path / "a.zarr", "has no element 'X'", element="X")
    (tmp_path / "a.zarr/zarr.json").write_text('{"shape": [')
    with one_sentence("metadata cannot be read", DamagedStoreError):
        open_samples(tmp_path / "a.zarr")


@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_not_finite_names_row_and_column(X, csr, tmp_path, write_csr, value, kind):
    X[5000, 3] = value
    refuse(X, f"{kind} at row 5000, column 3 of X")
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(600, 7))
    refuse(tmp_path / "a.zarr", f"{kind} at row 5000, column 3 of .*a.zarr")
    with one_sentence("row 5000, column 3"):
        open_samples(tmp_path / "a.zarr").gather(np.array([10, 5000, 6000]))
    where = csr.indptr[7000] + 1
    csr.data[where] = value
    for source in (csr, write_csr(csr.data, csr.indices, csr.indptr, csr.shape)):
        refuse(source, f"{kind} at row 7000, column {csr.indices[where]}")


def test_single_rows_are_given_in_rising_order(X):
    with one_sentence("increase strictly"):
        open_samples(X).gather(np.array([3, 3]))


def test_large_finite_sums_are_no_fault():
    X = np.full((10, 10), np.finfo(np.float32).max)
    assert same_bits(open_samples(X).block(0, 10), X)


@pytest.mark.parametrize("place", ["memory", "zarr"])
@pytest.mark.parametrize(
    ("part", "position", "value", "match"),
    [
        ("indptr", 100, 10**6, "indptr falls at row 100"),
        ("indptr", 0, 1, "indptr starts at 1"),
        ("indptr", -1, 10**6, "indptr ends at 1000000 but data has length"),
        (
            "indptr",
            None,
            lambda array: array[:-1],
            "indptr has length 9000, but 9000 rows need 9001",
        ),
        (
            "data",
            None,
            lambda array: array[:-1],
            "data has length .* but indices has length",
        ),
        ("indices", 9, 40, "column index 40 in row .* is outside 0..39"),
        ("indices", 9, -1, "column index -1 in row .* is outside 0..39"),
        ("indices", 9, 2**32 + 1, "column index 4294967297"),
        (
            "indices",
            None,
            lambda array: array.astype(np.float32),
            "indices has dtype float32",
        ),
    ],
)
def test_malformed_csr(csr, write_csr, place, part, position, value, match):
    array = getattr(csr, part)
    if position is None:
        array = value(array)
    else:
        array = array.astype(np.int64)
        array[position] = value
    setattr(csr, part, array)
    refuse(
        csr
        if place == "memory"
        else write_csr(csr.data, csr.indices, csr.indptr, csr.shape),
        match,
    )


def test_groups_of_other_members_and_encodings_are_named(csr, write_csr):
    parts = (csr.data, csr.indices, csr.indptr)
    refuse(write_csr(*parts, None), "no attribute shape")
    path = write_csr(*parts, csr.shape)
    group = zarr.open_group(path)["X"]
    group.update_attributes({"encoding-version": "9.9.9"})
    refuse(path, r"csr_matrix 9\.9\.9.*csr_matrix 0\.1\.0")
    group.update_attributes({"encoding-type": "csc_matrix"})
    refuse(path, r"stored by columns \(CSC\)")
    refuse(path, "no element 'Y'", element="Y")
    group.update_attributes(
        {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
    )
    del group["indices"]
    refuse(path, "needs a 1-D array named indices")
