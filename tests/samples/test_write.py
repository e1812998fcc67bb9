"""Stores appear whole or not at all, and say what they hold."""

import dataclasses
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

from mmcnb import InputError, open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from mmcnb.stores import (
    LabelsWriter,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_class_labels,
    verify_store,
)
from tests.samples.common import one_sentence, rows_of


@pytest.mark.parametrize(
    ("cuts", "chunk_rows"),
    [
        ([9000], None),
        ([1, 8999], 1000),
        ([4096, 4096, 808], 1000),
        ([5, 3000, 95, 5900], 4096),
    ],
)
def test_how_rows_come_does_not_matter(X, tmp_path, cuts, chunk_rows):
    with create_dense_store(tmp_path / "a.zarr", 7, chunk_rows=chunk_rows) as writer:
        for part in np.split(X, np.cumsum(cuts)[:-1]):
            writer.append(part, np.zeros(len(part), dtype=int))
    assert np.array_equal(rows_of(tmp_path / "a.zarr"), X)
    assert open_samples(tmp_path / "a.zarr").digest == open_samples(X).digest
    assert verify_store(tmp_path / "a.zarr")["checksummed"]


def test_digest_depends_on_numbers_shape_and_type(X):
    digests = {
        open_samples(a).digest
        for a in (X, X[:-1], X[:, :-1], X.astype("f8"), X + 1, X[::-1])
    }
    assert len(digests) == 6


@pytest.mark.parametrize(
    ("dtype", "value"), [("u1", 255), ("i2", -(2**15)), ("f4", 0), ("f8", 0.1)]
)
def test_types_are_kept_and_values_equal_to_a_fill_value_are_data(
    tmp_path, dtype, value
):
    X = np.full((5000, 2), value, dtype)
    with create_dense_store(
        tmp_path / "a.zarr", 2, dtype=dtype, chunk_rows=1000
    ) as writer:
        writer.append(X)
    array = zarr.open_array(tmp_path / "a.zarr/X", mode="r")
    assert array.dtype == dtype
    if array.dtype.kind in "iu":  # the value that data have least often
        assert array.fill_value == value
    assert np.array_equal(rows_of(tmp_path / "a.zarr"), X)


@pytest.mark.parametrize("last", [0, 99])
def test_row_pointers_may_begin_anywhere_and_columns_be_counted(tmp_path, last):
    with create_csr_store(tmp_path / "a.zarr") as writer:
        writer.append(np.array([1.0, 2.0]), np.array([0, last]), np.array([7, 8, 9]))
    block = open_samples(tmp_path / "a.zarr").block(0, 2)
    assert (block.n_features, block.indices.tolist(), block.indptr.tolist()) == (
        last + 1,
        [0, last],
        [0, 1, 2],
    )


def test_each_row_has_a_name_or_none_has(tmp_path):
    with (
        one_sentence("1 names were given for 2 rows: give one per row"),
        create_dense_store(tmp_path / "a.zarr", 2) as writer,
    ):
        writer.append(np.eye(2))
        writer.append_index(np.array(["a"]))


@pytest.mark.parametrize(
    ("n_features", "dtype"), [(5, np.int32), (2**31 - 1, np.int32), (2**31, np.int64)]
)
def test_column_indices_are_as_short_as_they_can_be(tmp_path, n_features, dtype):
    with create_csr_store(tmp_path / "a.zarr", n_features) as writer:
        writer.append(np.ones(1), np.array([n_features - 1]), np.array([0, 1]))
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["X/indices"].dtype == dtype
    assert open_samples(tmp_path / "a.zarr").n_features == n_features


@pytest.mark.parametrize(
    ("shape", "chunk_rows"),
    [
        ((10, 1), 10),
        ((BLOCK_ROWS, 1), BLOCK_ROWS),
        ((BLOCK_ROWS + 5, 1), 2 * BLOCK_ROWS),
        ((2 * GROUP_ROWS, 1), GROUP_ROWS),
        ((9000, 512), 8192),
        ((9000, 513), 4096),
        ((3, 2**21 + 1), 1),
    ],
)
def test_chunks_have_at_most_four_mebibytes_and_no_more_rows_than_there_are_but_for_blocks(
    tmp_path, shape, chunk_rows
):
    with create_dense_store(tmp_path / "a.zarr", shape[1], dtype="u1") as writer:
        writer.append(np.ones(shape, np.uint8))
    assert zarr.open_array(tmp_path / "a.zarr/X", mode="r").chunks == (
        chunk_rows,
        shape[1],
    )


def test_description(X, csr, tmp_path):
    path = tmp_path / "a.zarr"
    with create_csr_store(path) as writer:
        writer.append(csr, y=np.arange(9000) % 2)
    report = describe_store(path)
    assert (report["n_samples"], report["n_features"], report["layout"]) == (
        9000,
        40,
        "csr",
    )
    assert report["density"] == pytest.approx(csr.nnz / (9000 * 40))
    assert report["class_counts"] == {0: 4500, 1: 4500}
    assert "class_names" not in zarr.open_array(path / "y", mode="r").attrs
    assert report["checksummed"]
    assert report["digest"] == open_samples(csr).digest
    assert report["advice"] is None
    X[:, 0] = 0
    with create_dense_store(path, 7, overwrite=True) as writer:
        writer.append(X, y=np.arange(9000) % 2)
        writer.class_names = ["bad", "good"]
    report = describe_store(path)
    assert report["density"] == pytest.approx(6 / 7)
    assert report["class_counts"] == {"bad": 4500, "good": 4500}
    assert open_class_labels(path).tolist() == [0, 1] * 4500


def test_foreign_stores_are_said_to_be_unchecked(X, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=X)
    report = describe_store(tmp_path / "a.zarr")
    assert not report["checksummed"]
    assert report["digest"] is None
    assert "mmcnb convert" in report["advice"]
    verified = verify_store(tmp_path / "a.zarr")
    assert "no checksums" in verified["verdict"]
    assert verified["digest"] == open_samples(X).digest


# --- labels ---------------------------------------------------------------------------


def write_labels(path, labels, write=lambda sink, start, part: sink.write(start, part)):
    """All labels, the last chunk first."""
    with LabelsWriter(path, len(labels)) as writer:
        step = writer.chunk_rows
        starts = range(0, len(labels), step)
        digests = [
            write(writer.sink(), start, labels[start : start + step])
            for start in reversed(starts)
        ]
        writer.finish_chunks(digests[::-1])


def test_labels_come_back(rng, tmp_path):
    labels = rng.integers(-1, 3, size=3 * GROUP_ROWS - 5)
    write_labels(tmp_path / "l.zarr", labels)
    array = zarr.open_array(tmp_path / "l.zarr", mode="r")
    assert (array.dtype, array.chunks, array.metadata.zarr_format) == (
        np.int32,
        (GROUP_ROWS,),
        3,
    )
    assert np.array_equal(array[:], labels)
    assert verify_store(tmp_path / "l.zarr")["chunks"] == 3


def write_chunk(sink, start, labels):
    """One chunk, as a worker in another process writes it."""
    return sink.write(start, labels)


@pytest.mark.slow
def test_labels_written_by_processes_are_the_same_store(rng, tmp_path):
    labels = rng.integers(0, 3, size=2 * GROUP_ROWS + 5)
    write_labels(tmp_path / "a.zarr", labels)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:

        def elsewhere(sink, *chunk):
            assert len(pickle.dumps(sink)) < 1000
            assert not (tmp_path / "b.zarr").exists()
            return pool.submit(write_chunk, sink, *chunk).result()

        write_labels(tmp_path / "b.zarr", labels, elsewhere)
    contents = [
        {
            file.relative_to(root): file.read_bytes()
            for file in root.rglob("*")
            if file.is_file()
        }
        for root in (tmp_path / "a.zarr", tmp_path / "b.zarr")
    ]
    assert contents[0] == contents[1]
    assert verify_store(tmp_path / "b.zarr")["chunks"] == 3


def rewritten(writer, digest):
    writer.sink().write(0, np.zeros(7, int))
    writer.finish_chunks([digest])


def removed(writer, digest):
    (Path(writer.sink().path) / "c/0").unlink()
    writer.finish_chunks([digest])


def elsewhere(writer, digest):
    sink = dataclasses.replace(writer.sink(), path=writer.sink().path + "-gone")
    sink.write(0, np.zeros(7, int))


@pytest.mark.parametrize(
    ("finish", "match"),
    [
        (rewritten, "chunk c/0 is not what was written"),
        (removed, "chunk c/0 is missing"),
        (elsewhere, "a disk that all workers share"),
        (
            lambda writer, digest: writer.finish_chunks([]),
            "0 chunks of labels were written, but 1 are needed",
        ),
        (lambda writer, digest: None, "labels were not finished"),
        (
            lambda writer, digest: writer.sink().write(0, [0, -2, 1, 1, 1, 1, 1]),
            "from 0 or -1 for noise",
        ),
        (
            lambda writer, digest: writer.sink().write(0, [0.5] * 7),
            "one integer per row",
        ),
        (
            lambda writer, digest: writer.sink().write(0, [0, 1]),
            "2 labels from row 0 are not a chunk",
        ),
        (
            lambda writer, digest: writer.sink().write(1, [0] * 6),
            "6 labels from row 1 are not a chunk",
        ),
        (
            lambda writer, digest: writer.sink().write(GROUP_ROWS, np.zeros(0, int)),
            "are not a chunk",
        ),
        (
            lambda writer, digest: writer.sink().write(
                -GROUP_ROWS, np.zeros(GROUP_ROWS, int)
            ),
            "are not a chunk",
        ),
    ],
)
def test_labels_that_are_not_what_was_written_leave_nothing(tmp_path, finish, match):
    def write():
        with LabelsWriter(tmp_path / "l.zarr", 7) as writer:
            finish(writer, writer.sink().write(0, np.arange(7)))

    error = DamagedStoreError if finish in (rewritten, removed) else InputError
    with one_sentence(match, error):
        write()
    assert list(tmp_path.iterdir()) == []


# --- whole or not at all --------------------------------------------------------------

WRITERS = {
    "dense": lambda path, **options: create_dense_store(path, 2, **options),
    "csr": lambda path, **options: create_csr_store(path, 2, **options),
    "labels": lambda path, **options: LabelsWriter(path, 2, **options),
}


@pytest.fixture(params=WRITERS)
def kind(request):
    """Each kind of output."""
    return request.param


def fill(kind, path, fault=None, **options):
    """Write two rows of a kind; raise a fault in the middle."""
    with WRITERS[kind](path, **options) as writer:
        if kind == "labels":
            writer.finish_chunks([writer.sink().write(0, [0, 1])])
        else:
            writer.append(
                scipy.sparse.csr_array(np.eye(2)) if kind == "csr" else np.eye(2)
            )
        assert path.exists() == options.get("overwrite", False)
        if fault is not None:
            raise fault


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fault", [RuntimeError("stop"), KeyboardInterrupt()])
def test_an_error_leaves_what_was_there(kind, tmp_path, fault):
    with pytest.raises(type(fault)):
        fill(kind, tmp_path / "out.zarr", fault)
    assert list(tmp_path.iterdir()) == []
    fill(kind, tmp_path / "out.zarr")
    before = files_of(tmp_path)
    with pytest.raises(type(fault)):
        fill(kind, tmp_path / "out.zarr", fault, overwrite=True)
    assert files_of(tmp_path) == before


def test_a_full_disk_is_one_sentence(kind, tmp_path):
    with one_sentence(r"disk is full.*nothing was left behind"):
        fill(
            kind,
            tmp_path / "out.zarr",
            OSError(errno.ENOSPC, "No space left on device"),
        )
    assert list(tmp_path.iterdir()) == []


def run(program, path):
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="RLIMIT_FSIZE makes writes fail only on POSIX systems",
)
def test_a_file_that_cannot_grow_is_one_sentence(tmp_path):
    program = """
        import resource, signal, sys, numpy as np
        from mmcnb.errors import InputError
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
    assert "disk is full" in run(program, tmp_path / "out.zarr").stdout
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_nothing_at_the_path(tmp_path):
    program = """
        import os, signal, sys, numpy as np
        from mmcnb.stores import create_dense_store
        with create_dense_store(sys.argv[1], 5, chunk_rows=10) as writer:
            writer.append(np.zeros((1000, 5)))
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    """
    run(program, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [".part-out.zarr"]
    fill("dense", tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    assert open_samples(tmp_path / "out.zarr").n_samples == 2


def test_existing_paths_are_kept_unless_overwrite(kind, tmp_path):
    path = tmp_path / "out.zarr"
    fill(kind, path)
    with one_sentence(r"exists already.*overwrite=True"):
        fill(kind, path)
    fill(kind, path, overwrite=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "precious.txt").write_text("keep me")
    with one_sentence("not a Zarr store"):
        fill(kind, tmp_path / "notes", overwrite=True)
    with one_sentence("does not exist"):
        fill(kind, tmp_path / "none" / "out.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "out.zarr"]


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        ([(np.zeros((2, 3)), None)], "has 2 columns"),
        (
            [(np.eye(2), None), (np.array([[0, np.nan]]), None)],
            "NaN at row 2, column 1",
        ),
        ([(np.array([[0, 1e300]]), None)], "too large for float32"),
        ([(np.zeros((0, 2)), None)], r"0 sample\(s\)"),
        ([(np.zeros((2, 2)), [0.5, 1])], "one integer per row"),
        ([(np.eye(2), [0, 1]), (np.eye(2), None)], "all rows or with none"),
        ([(np.eye(2), None), (np.eye(2), [0, 1])], "all rows or with none"),
    ],
)
def test_rows_that_do_not_fit(tmp_path, blocks, match):
    def write():
        with create_dense_store(tmp_path / "a.zarr", 2) as writer:
            for rows, y in blocks:
                writer.append(rows, y)

    with one_sentence(match):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [0.5, 300, -1])
def test_numbers_an_integer_type_cannot_hold(tmp_path, value):
    with (
        one_sentence("wider dtype"),
        create_dense_store(tmp_path / "a.zarr", 1, dtype="u1") as writer,
    ):
        writer.append(np.array([[value]]))


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
    assert peak < 30 * 2**20
