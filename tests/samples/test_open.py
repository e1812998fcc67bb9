"""The same numbers give the same bits, wherever they live; what cannot be used is refused in one sentence."""

import os
import shutil
import threading

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.stores import convert, create_csr_store, create_dense_store, open_class_labels

SPANS = [(0, 1), (0, BLOCK_ROWS), (4000, 4100), (BLOCK_ROWS, 2 * BLOCK_ROWS), (8999, 9000), (0, 9000)]
ROWS = np.array([0, 1, 2, 999, 1000, 4095, 4096, 5000, 8999])


def same_bits(a, b):
    """Whether two blocks agree in type, shape and every bit."""
    parts = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return all(
        np.asarray(p).dtype == np.asarray(q).dtype
        and np.asarray(p).shape == np.asarray(q).shape
        and np.asarray(p).tobytes() == np.asarray(q).tobytes()
        for p, q in parts
    )


def assert_same(samples, reference):
    """Blocks, gathered rows and digest of two sources agree bit for bit."""
    assert (samples.n_samples, samples.n_features) == (reference.n_samples, reference.n_features)
    assert samples.dtype == reference.dtype
    for span in SPANS:
        assert same_bits(samples.block(*span), reference.block(*span))
    assert same_bits(samples.gather(ROWS), reference.gather(ROWS))
    assert samples.digest == reference.digest


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [(1000, 7), (4096, 7), (9000, 3), (177, 7)])
def test_dense_memory_equals_zarr(X, tmp_path, zarr_format, chunks):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=chunks, zarr_format=zarr_format
    )
    array[:] = X
    samples = open_samples(tmp_path / "a.zarr")
    assert samples.chunk_rows == chunks[0]
    assert not samples.checksummed
    assert_same(samples, open_samples(X))


def test_dense_sharded_equals_memory(X, tmp_path):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(500, 7), shards=(2000, 7)
    )
    array[:] = X
    assert_same(open_samples(array), open_samples(X))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zip_stores_equal_memory(X, csr, write_csr, tmp_path, zarr_format):
    zarr.create_array(
        tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(1000, 7), zarr_format=zarr_format
    )[:] = X
    path = write_csr(csr.data, csr.indices, csr.indptr, csr.shape, zarr_format=zarr_format, name="s.zarr")
    for folder, rows in ((tmp_path / "a.zarr", X), (path, csr)):
        assert_same(open_samples(shutil.make_archive(str(folder), "zip", folder)), open_samples(rows))


def test_our_stores_may_be_zipped(X, csr, tmp_path):
    with create_dense_store(tmp_path / "d.zarr", 7, chunk_rows=1000) as writer:
        writer.append(X)
    with create_csr_store(tmp_path / "s.zarr", 40) as writer:
        writer.append(csr)
    for name, rows in (("d.zarr", X), ("s.zarr", csr)):
        samples = open_samples(shutil.make_archive(str(tmp_path / name), "zip", tmp_path / name))
        assert samples.checksummed
        assert_same(samples, open_samples(rows))


@pytest.mark.parametrize("chunk_rows", [None, 1000, 4096])
def test_our_dense_store_equals_memory(X, tmp_path, chunk_rows):
    with create_dense_store(tmp_path / "a.zarr", X.shape[1], chunk_rows=chunk_rows) as writer:
        for start in range(0, len(X), 1234):
            writer.append(X[start : start + 1234])
    samples = open_samples(tmp_path / "a.zarr")
    assert samples.checksummed
    assert_same(samples, open_samples(X))


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i2"]
)
def test_any_real_type_is_cast_as_in_memory(rng, tmp_path, dtype):
    X = rng.integers(0, 2, size=(9000, 3)).astype(dtype)
    array = zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(700, 3))
    array[:] = X
    reference = open_samples(X)
    wide = np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize >= 4
    assert reference.dtype == ("f8" if wide or np.dtype(dtype) == "f8" else "f4")
    assert np.array_equal(reference.block(0, 9000), X)
    assert_same(open_samples(array), reference)


def test_memory_blocks_are_views_where_they_can_be(X):
    assert np.shares_memory(open_samples(X).block(10, 20), X)
    fortran = open_samples(np.asfortranarray(X)).block(10, 20)
    assert fortran.flags.c_contiguous
    assert same_bits(fortran, X[10:20])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [1500, 4096, 100_000])
@pytest.mark.parametrize("index_dtype", ["i4", "i8", "u1", "u4"])
def test_csr_memory_equals_zarr(csr, write_csr, zarr_format, chunks, index_dtype):
    path = write_csr(
        csr.data, csr.indices.astype(index_dtype), csr.indptr, csr.shape, chunks, zarr_format=zarr_format
    )
    samples = open_samples(path)
    assert samples.chunk_rows % BLOCK_ROWS == 0
    block = samples.block(0, 10)
    assert (block.indices.dtype, block.indptr.dtype, block.indptr[0]) == (np.int32, np.int64, 0)
    assert_same(samples, open_samples(csr))


def test_our_csr_store_equals_memory(csr, tmp_path):
    with create_csr_store(tmp_path / "a.zarr", csr.shape[1]) as writer:
        for start in range(0, csr.shape[0], 1234):
            writer.append(csr[start : start + 1234])
    assert_same(open_samples(tmp_path / "a.zarr"), open_samples(csr))


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_scipy_forms_agree(csr, make, index_dtype):
    other = make(csr)
    if other.format == "csr":
        other.indices, other.indptr = other.indices.astype(index_dtype), other.indptr.astype(index_dtype)
    assert_same(open_samples(other), open_samples(csr))


def test_unsorted_and_duplicate_columns_are_summed_alike(rng, write_csr):
    counts = rng.integers(0, 12, size=9000)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = rng.integers(0, 8, size=indptr[-1]).astype(np.int64)
    data = rng.normal(size=indptr[-1]).astype(np.float32)
    memory = open_samples(scipy.sparse.csr_array((data, indices, indptr), shape=(9000, 8)))
    assert_same(open_samples(write_csr(data, indices, indptr, (9000, 8))), memory)
    assert_same(open_samples(write_csr(data, indices, indptr, (9000, 8), chunks=777, name="b.zarr")), memory)
    block = memory.block(0, 9000)
    dense = scipy.sparse.csr_array(tuple(block[:3]), shape=(9000, 8)).toarray()
    expected = np.zeros((9000, 8))
    np.add.at(expected, (np.repeat(np.arange(9000), counts), indices), data)
    np.testing.assert_allclose(dense, expected, rtol=1e-5, atol=1e-6)
    rises = np.diff(block.indices.astype(int) + 100 * np.repeat(np.arange(9000), np.diff(block.indptr)))
    assert (rises > 0).all()


def test_gather_equals_the_same_rows_of_blocks(X, csr, rng, tmp_path):
    rows = np.sort(rng.choice(9000, size=500, replace=False))
    with create_dense_store(tmp_path / "d.zarr", 7, chunk_rows=512) as writer:
        writer.append(X)
    with create_csr_store(tmp_path / "s.zarr", 40) as writer:
        writer.append(csr)
    assert same_bits(open_samples(tmp_path / "d.zarr").gather(rows), X[rows])
    assert same_bits(open_samples(tmp_path / "s.zarr").gather(rows), open_samples(csr[rows]).block(0, 500))
    empty = open_samples(tmp_path / "s.zarr").gather(np.array([], dtype=np.int64))
    assert len(empty.data) == 0
    with pytest.raises(InputError, match="rise strictly"):
        open_samples(X).gather(np.array([3, 3]))


def test_gather_reads_each_chunk_once(X, rng, monkeypatch, tmp_path):
    from mmcnb.samples import _stored

    monkeypatch.setattr(_stored, "GATHER_BYTES", 5 * 512 * 28)
    with create_dense_store(tmp_path / "d.zarr", 7, chunk_rows=512) as writer:
        writer.append(X)
    samples = open_samples(tmp_path / "d.zarr")
    read = []
    original = _stored.read_chunk_file

    def counting(path, most):
        read.append(int(path.parent.name))
        return original(path, most)

    monkeypatch.setattr(_stored, "read_chunk_file", counting)
    rows = np.sort(rng.choice(9000, size=20, replace=False))
    assert same_bits(samples.gather(rows), X[rows])
    assert len(read) == len(set(read))
    assert set(read) == set(rows // 512)


def test_blocks_may_be_read_from_threads(X, tmp_path):
    with create_dense_store(tmp_path / "d.zarr", 7, chunk_rows=256) as writer:
        writer.append(X)
    samples = open_samples(tmp_path / "d.zarr")
    wrong = []

    def session(offset):
        starts = range(offset, 8000, 800)
        wrong.extend(s for s in starts if not same_bits(samples.block(s, s + 500), X[s : s + 500]))

    threads = [threading.Thread(target=session, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_path_pathlib_opened_group_and_array_are_one(X, tmp_path):
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 7) as writer:
        writer.append(X)
    group = zarr.open_group(path, mode="r")
    sources = [str(path), path, os.fspath(path) + "/X", group, group["X"]]
    for source in sources:
        samples = open_samples(source)
        assert samples.checksummed
        assert same_bits(samples.block(0, 50), X[:50])
        assert same_bits(open_samples(samples.path, samples.element).block(0, 50), X[:50])
    assert open_samples(samples) is samples


def test_row_bytes_is_what_blocks_take(X, csr, tmp_path):
    assert open_samples(X).row_bytes == X.nbytes / len(X)
    samples = open_samples(csr)
    parts = samples.block(0, samples.n_samples)[:3]
    assert samples.row_bytes == pytest.approx(
        sum(part.nbytes for part in parts) / samples.n_samples, rel=1e-3
    )


@pytest.mark.filterwarnings("ignore:zarr v3 autosharding:UserWarning")  # anndata announces its next default
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_anndata_store_with_elements(csr, X, tmp_path, zarr_format):
    anndata = pytest.importorskip("anndata", reason="AnnData is an optional extra")
    adata = anndata.AnnData(
        X=scipy.sparse.csr_matrix(csr), layers={"dense": csr.toarray()}, obsm={"pca": X}, shape=None
    )
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    anndata.io.write_elem(group, "/", adata)
    path = tmp_path / "a.zarr"
    assert_same(open_samples(path), open_samples(csr))
    assert_same(open_samples(path, "X"), open_samples(csr))
    assert_same(open_samples(path / "X"), open_samples(csr))
    assert_same(open_samples(path, "layers/dense"), open_samples(csr.toarray()))
    assert_same(open_samples(path, "obsm/pca"), open_samples(X))
    with pytest.raises(InputError, match=r"no element 'layers/none'.*X, layers/dense, obsm/pca"):
        open_samples(path, "layers/none")


def test_anndata_reads_what_we_write(csr, tmp_path):
    anndata = pytest.importorskip("anndata", reason="AnnData is an optional extra")
    with create_csr_store(tmp_path / "a.zarr") as writer:
        writer.append(csr)
    back = anndata.io.read_elem(zarr.open_group(tmp_path / "a.zarr", mode="r")["X"])
    assert (back != csr).nnz == 0


# --- what is refused -----------------------------------------------------------------------------


def refuse(source, match, element=None, error=InputError):
    """Check that opening or reading the first rows raises one sentence."""

    def read():
        samples = open_samples(source, element)
        samples.block(0, samples.n_samples)

    with pytest.raises(error, match=match) as caught:
        read()
    assert "\n" not in str(caught.value)


def test_missing_paths(tmp_path):
    refuse(tmp_path / "none.zarr", "none.zarr does not exist")
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", "is a folder that contains no Zarr array or group")
    (tmp_path / "empty" / "notes.txt").write_text("hello")
    refuse(tmp_path / "empty", "contains no Zarr array or group")
    refuse(tmp_path / "empty" / "notes.txt", "mmcnb convert")
    refuse(3.5, "X is a float")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: np.zeros(3), "1-D"),
        (lambda: np.zeros((2, 3, 4)), "3-D"),
        (lambda: np.zeros((0, 3)), r"0 sample\(s\)"),
        (lambda: np.zeros((3, 0)), r"0 feature\(s\)"),
        (lambda: np.array([["a", "b"]]), "text"),
        (lambda: np.array([[1j, 2]]), "complex"),
    ],
)
def test_shapes_and_types(tmp_path, make, match):
    values = make()
    refuse(values, match)
    if values.dtype.kind != "U":
        array = zarr.create_array(
            tmp_path / "a.zarr",
            shape=values.shape,
            dtype=values.dtype,
            chunks=tuple(max(n, 1) for n in values.shape),
        )
        if values.size:
            array[:] = values
        refuse(tmp_path / "a.zarr", match)


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_not_finite_names_row_and_column(X, csr, tmp_path, write_csr, value, kind):
    X[5000, 3] = value
    refuse(X, f"{kind} at row 5000, column 3 of X")
    array = zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(600, 7))
    array[:] = X
    refuse(array, f"{kind} at row 5000, column 3 of .*a.zarr")
    with pytest.raises(InputError, match="row 5000, column 3"):
        open_samples(array).gather(np.array([10, 5000, 6000]))
    where = csr.indptr[7000] + 1
    csr.data[where] = value
    row, column = 7000, csr.indices[where]
    refuse(csr, f"{kind} at row {row}, column {column}")
    refuse(write_csr(csr.data, csr.indices, csr.indptr, csr.shape), f"{kind} at row {row}, column {column}")


def test_large_finite_sums_are_no_fault():
    X = np.full((10, 10), np.finfo(np.float32).max)
    assert same_bits(open_samples(X).block(0, 10), X)


def spoil(csr, part, how):
    """Arrays and shape of a CSR matrix with one fault."""
    arrays = {"data": csr.data.copy(), "indices": csr.indices.copy(), "indptr": csr.indptr.copy()}
    arrays[part] = how(arrays[part])
    return arrays["data"], arrays["indices"], arrays["indptr"]


def put(position, value):
    """A function that sets one value of an array."""

    def change(array):
        array[position] = value
        return array

    return change


CSR_FAULTS = [
    ("indptr", put(100, 10**6), "indptr falls at row 100"),
    ("indptr", put(0, 1), "indptr starts at 1"),
    ("indptr", lambda a: a[:-1], "indptr has length 9000, but 9000 rows need 9001"),
    ("indptr", put(-1, 10**6), "indptr ends at 1000000 but data has length"),
    ("data", lambda a: a[:-1], "data has length .* but indices has length"),
    ("indices", put(9, 40), "column index 40 in row .* is outside 0..39"),
    ("indices", put(9, -1), "column index -1 in row .* is outside 0..39"),
    ("indices", lambda a: put(9, 2**32 + 1)(a.astype(np.int64)), "column index 4294967297"),
    ("indices", lambda a: a.astype(np.float32), "indices has dtype float32"),
]


@pytest.mark.parametrize(("part", "how", "match"), CSR_FAULTS)
def test_malformed_csr_in_zarr(csr, write_csr, part, how, match):
    refuse(write_csr(*spoil(csr, part, how), csr.shape), match)


@pytest.mark.parametrize(("part", "how", "match"), CSR_FAULTS)
def test_malformed_csr_in_memory(csr, part, how, match):
    csr.data, csr.indices, csr.indptr = spoil(csr, part, how)
    refuse(csr, match)


def test_csr_without_shape_or_arrays(csr, write_csr):
    refuse(write_csr(csr.data, csr.indices, csr.indptr, None), "no attribute shape")
    path = write_csr(csr.data, csr.indices, csr.indptr, csr.shape)
    del zarr.open_group(path)["X/indices"]
    refuse(path, "needs a 1-D array named indices")


def test_unknown_encodings_are_named(csr, write_csr):
    path = write_csr(csr.data, csr.indices, csr.indptr, csr.shape)
    zarr.open_group(path)["X"].update_attributes({"encoding-version": "9.9.9"})
    refuse(path, r"csr_matrix 9\.9\.9.*csr_matrix 0\.1\.0")
    zarr.open_group(path)["X"].update_attributes({"encoding-type": "csc_matrix"})
    refuse(path, r"stored by columns \(CSC\)")
    refuse(path, "no element 'Y'", element="Y")


def test_element_of_an_array_is_refused(X, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype)
    refuse(tmp_path / "a.zarr", "has no element 'X'", element="X")


def test_broken_foreign_metadata(X, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype)
    (tmp_path / "a.zarr" / "zarr.json").write_text('{"shape": [')
    refuse(tmp_path / "a.zarr", "metadata cannot be read", error=DamagedStoreError)


def test_class_labels(X, tmp_path):
    y = np.arange(9000) % 3 - 1
    with create_dense_store(tmp_path / "a.zarr", 7) as writer:
        writer.append(X[:10], y[:10])
        writer.append(X[10:], y[10:])
    path = tmp_path / "a.zarr"
    for source in (path, str(path), zarr.open_group(path, mode="r"), open_samples(path), path / "X"):
        assert np.array_equal(open_class_labels(source), y)
    with create_dense_store(tmp_path / "b.zarr", 7) as writer:
        writer.append(X)
    assert open_class_labels(tmp_path / "b.zarr") is None
    assert open_class_labels(X) is None


@pytest.mark.parametrize("form", ["csc", "coo", "dia", "bsr", "lil", "dok"])
def test_every_form_of_sparse_matrix_is_its_rows(rng, form):
    rows = scipy.sparse.random_array((30, 9), density=0.3, rng=rng, format="csr", dtype=np.float32)
    assert open_samples(rows.asformat(form)).digest == open_samples(rows).digest


@pytest.mark.parametrize("form", ["csc", "coo", "dia", "bsr"])
def test_a_saved_sparse_matrix_is_converted_or_saved_again_as_told(rng, tmp_path, form):
    rows = scipy.sparse.random_array((30, 9), density=0.3, rng=rng, format="csr")
    scipy.sparse.save_npz(tmp_path / "a.npz", rows.asformat(form))
    with pytest.raises(InputError, match=rf"a sparse matrix as {form}.*save_npz\(path, X\.tocsr\(\)\)"):
        convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.load_npz(tmp_path / "a.npz").tocsr())
    convert(tmp_path / "a.npz", tmp_path / "a.zarr")
    assert open_samples(tmp_path / "a.zarr").digest == open_samples(rows).digest
