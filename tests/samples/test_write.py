"""Stores appear whole or not at all, and say what they hold."""

import errno
import pickle
import subprocess
import sys
import textwrap
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, open_samples
from mmcnb.stores import (
    LabelsWriter,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_class_labels,
    verify_store,
)
from mmcnb.stores._labels import LabelsSink
from mmcnb.stores._write import chunk_rows_for


def test_chunks_are_at_most_four_mebibytes_and_fit_groups():
    for row_bytes in [1, 4, 100, 128, 500, 1024, 2704, 10_000, 5 * 2**20]:
        rows = chunk_rows_for(row_bytes)
        assert GROUP_ROWS % rows == 0
        assert rows * row_bytes <= 4 * 2**20 or rows == 1
        assert 2 * rows * row_bytes > 4 * 2**20 or rows == GROUP_ROWS


@pytest.mark.parametrize("cuts", [[9000], [1, 8999], [1000] * 9, [4096, 4096, 808], [5, 3000, 95, 5900]])
@pytest.mark.parametrize("chunk_rows", [None, 1000, 4096])
def test_how_rows_come_does_not_matter(X, tmp_path, cuts, chunk_rows):
    with create_dense_store(tmp_path / "a.zarr", 7, chunk_rows=chunk_rows) as writer:
        for stop, length in zip(np.cumsum(cuts), cuts, strict=True):
            writer.append(X[stop - length : stop], np.zeros(length, dtype=int))
    samples = open_samples(tmp_path / "a.zarr")
    assert np.array_equal(samples.block(0, 9000), X)
    assert samples.digest == open_samples(X).digest
    assert verify_store(tmp_path / "a.zarr")["checksummed"]


def test_digest_depends_on_numbers_shape_and_type(X):
    digests = {open_samples(a).digest for a in (X, X[:-1], X[:, :-1], X.astype("f8"), X + 1, X[::-1])}
    assert len(digests) == 6


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_integers_are_kept_small_and_read_as_floats(rng, tmp_path, dtype):
    X = rng.integers(0, 100, size=(500, 3))
    with create_dense_store(tmp_path / "a.zarr", 3, dtype=dtype) as writer:
        writer.append(X)
    assert zarr.open_array(tmp_path / "a.zarr/X", mode="r").dtype == np.dtype(dtype)
    assert np.array_equal(open_samples(tmp_path / "a.zarr").block(0, 500), X)


def test_values_equal_to_the_fill_value_are_data(tmp_path):
    X = np.full((5000, 2), 255, dtype=np.uint8)
    with create_dense_store(tmp_path / "a.zarr", 2, dtype="u1", chunk_rows=1000) as writer:
        writer.append(X)
    assert np.array_equal(open_samples(tmp_path / "a.zarr").block(0, 5000), X)


def test_all_zero_rows_are_written(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 2) as writer:
        writer.append(np.zeros((10, 2)))
    with create_csr_store(tmp_path / "b.zarr", n_features=5) as writer:
        writer.append(scipy.sparse.csr_array((10, 5), dtype=np.float32))
    assert not open_samples(tmp_path / "a.zarr").block(0, 10).any()
    samples = open_samples(tmp_path / "b.zarr")
    assert (samples.n_samples, samples.n_features, len(samples.block(0, 10).data)) == (10, 5, 0)


def test_number_of_columns_may_be_left_open(csr, tmp_path):
    with create_csr_store(tmp_path / "a.zarr") as writer:
        writer.append(csr.data, csr.indices, csr.indptr)
    assert open_samples(tmp_path / "a.zarr").n_features == csr.indices.max() + 1


def test_description(X, csr, tmp_path):
    y = np.arange(9000) % 2
    with create_csr_store(tmp_path / "a.zarr") as writer:
        writer.append(csr, y=y)
    report = describe_store(tmp_path / "a.zarr")
    assert (report["n_samples"], report["n_features"], report["layout"]) == (9000, 40, "csr")
    assert report["density"] == pytest.approx(csr.nnz / (9000 * 40))
    assert report["class_counts"] == {0: 4500, 1: 4500}
    assert report["checksummed"]
    assert report["digest"] == open_samples(csr).digest
    assert report["advice"] is None
    X[:, 0] = 0
    with create_dense_store(tmp_path / "b.zarr", 7) as writer:
        writer.append(X)
    assert describe_store(tmp_path / "b.zarr")["density"] == pytest.approx(6 / 7)


def test_foreign_stores_are_said_to_be_unchecked(X, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype)[:] = X
    report = describe_store(tmp_path / "a.zarr")
    assert not report["checksummed"]
    assert report["digest"] is None
    assert "mmcnb convert" in report["advice"]
    verified = verify_store(tmp_path / "a.zarr")
    assert "no checksums" in verified["verdict"]
    assert verified["digest"] == open_samples(X).digest


# --- labels --------------------------------------------------------------------------------------


def write_labels(writer, labels):
    """All labels, the last chunk first."""
    starts = range(0, len(labels), writer.chunk_rows)
    digests = [writer.sink().write(s, labels[s : s + writer.chunk_rows]) for s in reversed(starts)]
    writer.finish_chunks(digests[::-1])


def test_labels_come_back(rng, tmp_path):
    labels = rng.integers(0, 3, size=600_000)
    with LabelsWriter(tmp_path / "l.zarr", len(labels)) as writer:
        write_labels(writer, labels)
    array = zarr.open_array(tmp_path / "l.zarr", mode="r")
    assert (array.dtype, array.chunks, array.metadata.zarr_format) == (np.int32, (GROUP_ROWS,), 3)
    assert np.array_equal(array[:], labels)
    assert verify_store(tmp_path / "l.zarr")["chunks"] == 10


def write_chunk(sink, start, labels):
    """One chunk, as a worker in another process would write it."""
    return sink.write(start, labels)


def test_labels_written_by_processes_are_the_same_store(rng, tmp_path):
    labels = rng.integers(0, 3, size=2 * GROUP_ROWS + 5)
    starts = range(0, len(labels), GROUP_ROWS)
    with LabelsWriter(tmp_path / "a.zarr", len(labels)) as writer:
        write_labels(writer, labels)
    with LabelsWriter(tmp_path / "b.zarr", len(labels)) as writer:
        assert len(pickle.dumps(writer.sink())) < 1000
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            written = [
                pool.submit(write_chunk, writer.sink(), s, labels[s : s + writer.chunk_rows]) for s in starts
            ]
            writer.finish_chunks([chunk.result() for chunk in written])
        assert not (tmp_path / "b.zarr").exists()
    contents = [
        {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}
        for root in (tmp_path / "a.zarr", tmp_path / "b.zarr")
    ]
    assert contents[0] == contents[1]
    assert verify_store(tmp_path / "b.zarr")["chunks"] == 3


def test_labels_that_are_not_finished_leave_nothing(tmp_path):
    with (
        pytest.raises(InputError, match="begun and not finished"),
        LabelsWriter(tmp_path / "l.zarr", 3) as writer,
    ):
        writer.sink().write(0, [0, 1, 1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("start", "count"), [(1, 5), (0, 5), (2 * GROUP_ROWS, 6), (-GROUP_ROWS, GROUP_ROWS)])
def test_a_sink_takes_whole_chunks_only(tmp_path, start, count):
    def write():
        with LabelsWriter(tmp_path / "l.zarr", 2 * GROUP_ROWS + 5) as writer:
            writer.sink().write(start, np.zeros(count, int))

    with pytest.raises(InputError, match="are no chunk"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_chunks_that_are_not_what_was_written_leave_nothing(tmp_path):
    def write(spoil):
        with LabelsWriter(tmp_path / "l.zarr", 7) as writer:
            digest = writer.sink().write(0, np.arange(7))
            spoil(writer)
            writer.finish_chunks([digest])

    with pytest.raises(DamagedStoreError, match="chunk c/0 is not what was written"):
        write(lambda writer: writer.sink().write(0, np.zeros(7, int)))
    with pytest.raises(DamagedStoreError, match="chunk c/0 is missing"):
        write(lambda writer: (Path(writer.sink().path) / "c/0").unlink())
    with pytest.raises(InputError, match="0 chunks of labels came, not 1"):
        write(lambda writer: writer.finish_chunks([]))
    with pytest.raises(InputError, match="a disk that they share"):
        LabelsSink(str(tmp_path / "gone.zarr"), 3, "gone.zarr").write(0, np.zeros(3, int))
    assert list(tmp_path.iterdir()) == []


def test_labels_of_noise_are_written(tmp_path):
    with LabelsWriter(tmp_path / "l.zarr", 3) as writer:
        write_labels(writer, [0, -1, 1])
    assert zarr.open_array(tmp_path / "l.zarr", mode="r")[:].tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("labels", "match"),
    [([0, -2, 1], "from 0 a row, or -1 for noise"), ([0.5, 1, 1], "whole"), ([0, 1], "2 labels from row 0")],
)
def test_wrong_labels_leave_nothing(tmp_path, labels, match):
    def write():
        with LabelsWriter(tmp_path / "l.zarr", 3) as writer:
            write_labels(writer, labels)

    with pytest.raises(InputError, match=match):
        write()
    assert list(tmp_path.iterdir()) == []


# --- whole or not at all -------------------------------------------------------------------------

WRITERS = {
    "dense": lambda path, **options: create_dense_store(path, 2, **options),
    "csr": lambda path, **options: create_csr_store(path, 2, **options),
    "labels": lambda path, **options: LabelsWriter(path, 2, **options),
}
ROWS = {"dense": np.eye(2), "csr": scipy.sparse.csr_array(np.eye(2)), "labels": np.array([0, 1])}


@pytest.fixture(params=WRITERS)
def kind(request):
    """Each kind of output."""
    return request.param


def append(kind, writer):
    """Write two rows of a kind."""
    write_labels(writer, ROWS[kind]) if kind == "labels" else writer.append(ROWS[kind])


def fill(kind, path, fault=None, **options):
    """Write two rows of a kind; raise a fault in the middle."""
    with WRITERS[kind](path, **options) as writer:
        append(kind, writer)
        if fault is not None:
            raise fault


def test_nothing_stands_at_the_path_before_the_end(kind, tmp_path):
    with WRITERS[kind](tmp_path / "out.zarr") as writer:
        append(kind, writer)
        assert not (tmp_path / "out.zarr").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]


@pytest.mark.parametrize("fault", [RuntimeError("stop"), KeyboardInterrupt()])
def test_an_error_leaves_nothing(kind, tmp_path, fault):
    with pytest.raises(type(fault)):
        fill(kind, tmp_path / "out.zarr", fault)
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_what_was_there(kind, tmp_path):
    fill(kind, tmp_path / "out.zarr")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RuntimeError, match="stop"):
        fill(kind, tmp_path / "out.zarr", RuntimeError("stop"), overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_full_disk_is_one_sentence(kind, tmp_path):
    with pytest.raises(InputError, match=r"disk is full.*nothing was left behind"):
        fill(kind, tmp_path / "out.zarr", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE makes writes fail only on POSIX systems")
def test_a_file_that_cannot_grow_is_one_sentence(tmp_path):
    program = """
        import resource, signal, sys, numpy as np
        from mmcnb.errors import DamagedStoreError, InputError
        from mmcnb.stores import create_dense_store
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with create_dense_store(sys.argv[1], 50) as writer:
                for _ in range(10):
                    writer.append(np.random.default_rng(0).normal(size=(20_000, 50)))
        except InputError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "out.zarr")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "disk is full" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_nothing_at_the_path(tmp_path):
    program = """
        import os, signal, sys, numpy as np
        from mmcnb.stores import create_dense_store
        with create_dense_store(sys.argv[1], 5, chunk_rows=10) as writer:
            writer.append(np.zeros((1000, 5)))
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "out.zarr")], check=False)
    assert not (tmp_path / "out.zarr").exists()
    assert [path.name for path in tmp_path.iterdir()] == [".part-out.zarr"]
    fill("dense", tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    assert open_samples(tmp_path / "out.zarr").n_samples == 2


def test_existing_paths_are_kept_unless_overwrite(kind, tmp_path):
    path = tmp_path / "out.zarr"
    fill(kind, path)
    with pytest.raises(InputError, match=r"exists already.*--overwrite"):
        fill(kind, path)
    fill(kind, path, overwrite=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "precious.txt").write_text("keep me")
    with pytest.raises(InputError, match="no Zarr store"):
        fill(kind, tmp_path / "notes", overwrite=True)
    with pytest.raises(InputError, match="does not exist"):
        fill(kind, tmp_path / "none" / "out.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "out.zarr"]


@pytest.mark.parametrize(
    ("rows", "y", "match"),
    [
        (np.zeros((2, 3)), None, "not of 2 columns"),
        (np.zeros(2), None, "not of 2 columns"),
        (np.array([[0, np.nan]]), None, "NaN at row 0, column 1"),
        (np.array([[0, 1e300]]), None, "too large for float32"),
        (np.array([["a", "b"]]), None, "text"),
        (np.zeros((0, 2)), None, r"0 sample\(s\)"),
        (np.zeros((2, 2)), [0], "one integer a row"),
        (np.zeros((2, 2)), [0.5, 1], "one integer a row"),
    ],
)
def test_rows_that_do_not_fit(tmp_path, rows, y, match):
    def write(create, values):
        with create(tmp_path / "a.zarr", 2) as writer:
            writer.append(values, y=y)

    with pytest.raises(InputError, match=match):
        write(create_dense_store, rows)
    assert list(tmp_path.iterdir()) == []


def test_labels_for_all_rows_or_for_none(tmp_path):
    def write():
        with create_dense_store(tmp_path / "a.zarr", 2) as writer:
            writer.append(np.eye(2), y=[0, 1])
            writer.append(np.eye(2))

    with pytest.raises(InputError, match="all rows or with none"):
        write()


def test_numbers_an_integer_type_cannot_hold(tmp_path):
    def write():
        with create_dense_store(tmp_path / "a.zarr", 2, dtype="u1") as writer:
            writer.append(np.array([[0.5, 300]]))

    with pytest.raises(InputError, match="wider dtype"):
        write()


def test_memory_is_bounded_by_a_chunk(tmp_path):
    block = np.random.default_rng(0).normal(size=(4096, 64)).astype(np.float32)
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 64) as writer:  # load what is loaded once
        writer.append(block)
    tracemalloc.start()
    with create_dense_store(path, 64, overwrite=True) as writer:
        for _ in range(60):
            writer.append(block)
    samples = open_samples(path)
    for start in range(0, samples.n_samples, samples.chunk_rows):
        samples.block(start, min(start + samples.chunk_rows, samples.n_samples))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 60 * block.nbytes >= 2 * 30 * 2**20
    assert peak < 30 * 2**20


def test_class_names_stay_beside_the_labels(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 2) as writer:
        writer.append(np.eye(2), y=[1, 0])
        writer.class_names = ["bad", "good"]
    assert describe_store(tmp_path / "a.zarr")["class_counts"] == {"bad": 1, "good": 1}
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("n", "chunk"),
    [(10, 10), (BLOCK_ROWS, BLOCK_ROWS), (BLOCK_ROWS + 5, 2 * BLOCK_ROWS), (10 * GROUP_ROWS, GROUP_ROWS)],
)
def test_chunks_have_no_more_rows_than_there_are_but_for_whole_blocks(tmp_path, n, chunk):
    with create_dense_store(tmp_path / "a.zarr", n_features=1, dtype="u1") as writer:
        writer.append(np.ones((n, 1), np.uint8))
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["X"].chunks == (chunk, 1)


@pytest.mark.parametrize(("n_features", "dtype"), [(5, np.int32), (2**31 - 1, np.int32), (2**31, np.int64)])
def test_column_indices_are_as_short_as_they_can_be(tmp_path, n_features, dtype):
    with create_csr_store(tmp_path / "a.zarr", n_features) as writer:
        writer.append(np.ones(1), np.array([n_features - 1]), np.array([0, 1]))
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["X/indices"].dtype == dtype
    assert open_samples(tmp_path / "a.zarr").n_features == n_features


def test_row_pointers_may_begin_anywhere_and_columns_be_counted(tmp_path):
    with create_csr_store(tmp_path / "a.zarr") as writer:
        writer.append(np.array([1.0, 2.0]), np.array([0, 99]), np.array([7, 8, 9]))
    block = open_samples(tmp_path / "a.zarr").block(0, 2)
    assert (block.n_features, block.indices.tolist(), block.indptr.tolist()) == (100, [0, 99], [0, 1, 2])
