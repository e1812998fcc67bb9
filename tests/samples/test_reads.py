"""A pass reads each chunk once, whatever the chunks, the tasks and the threads."""

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.storage import LocalStore, WrapperStore

from mmcnb.errors import DamagedStoreError
from mmcnb.samples import BLOCK_ROWS, _stored, open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.engine.fakes import run

ROWS = 5 * BLOCK_ROWS + 123


class RecordingStore(WrapperStore):
    """A store that counts what is got from it, by key and range."""

    def __init__(self, store):
        super().__init__(store)
        self.gets = Counter()

    def with_read_only(self, read_only=False):
        return self

    async def get(self, key, prototype, byte_range=None):
        if not key.endswith((".json", ".zarray", ".zgroup", ".zattrs")):
            # The ranges of some versions of Zarr have no hash.
            self.gets[key if byte_range is None else (key, repr(byte_range))] += 1
        return await super().get(key, prototype, byte_range)


class Rows:
    """A pass that keeps all rows."""

    def start(self):
        return []

    def block(self, rows, start, stop):
        return [rows]

    def combine(self, total, other):
        return total + other


def counted_pass(path, n_jobs):
    """The blocks of one pass, and how often each chunk was got."""
    store = RecordingStore(LocalStore(path))
    samples = open_samples(zarr.open(store, mode="r"))
    store.gets.clear()
    return run(Rows(), samples, n_jobs), store.gets


def dense(blocks, n_features):
    """Blocks as one dense array."""
    return np.vstack(
        [
            scipy.sparse.csr_array(b[:3], shape=(len(b.indptr) - 1, n_features)).toarray()
            if isinstance(b, tuple)
            else b
            for b in blocks
        ]
    )


@pytest.fixture(scope="module")
def rows():
    """Wide rows, so that a pass has several tasks."""
    return np.random.default_rng(0).normal(size=(ROWS, 129)).astype(np.float32)


@pytest.fixture(scope="module")
def sparse():
    """Sparse rows, some empty."""
    return scipy.sparse.random_array(
        (ROWS, 60), density=0.2, rng=np.random.default_rng(0), dtype=np.float32, format="csr"
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize(
    ("chunks", "shards"),
    [
        ((BLOCK_ROWS, 129), None),
        ((1000, 129), None),
        ((5000, 129), None),
        ((3 * BLOCK_ROWS, 129), None),
        ((ROWS, 129), None),
        ((3001, 50), None),
        ((1000, 129), (5000, 129)),
        ((5000, 129), (10_000, 129)),
    ],
)
def test_a_pass_over_dense_chunks(rows, tmp_path, chunks, shards, n_jobs):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=rows.shape, dtype=rows.dtype, chunks=chunks, shards=shards
    )
    array[:] = rows
    blocks, gets = counted_pass(tmp_path / "a.zarr", n_jobs)
    assert np.array_equal(np.vstack(blocks), rows)
    if shards is None:
        assert set(gets.values()) == {1}
        assert len(gets) == array.nchunks
    else:  # a shard comes whole or by its inner chunks; Zarr reads its index anew with each of those
        inner = Counter({key: n for key, n in gets.items() if not is_index(key)})
        assert set(inner.values()) == {1}
        whole = {key for key in inner if isinstance(key, str)}
        assert not whole & {key[0] for key in inner if not isinstance(key, str)}
        per_shard = shards[0] // chunks[0]
        assert len(inner) - len(whole) + per_shard * len(whole) in range(
            array.nchunks, array.nchunks + per_shard
        )


def is_index(key):
    """Whether a range of a shard is its index."""
    return isinstance(key, tuple) and "Suffix" in key[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "zarr_format"),
    [(1000, 2), (1000, 3), (BLOCK_ROWS, 2), (BLOCK_ROWS + 1, 3), (10_000, 2), (10**6, 3)],
)
def test_a_pass_over_sparse_chunks(sparse, write_csr, monkeypatch, chunks, zarr_format):
    from mmcnb.engine import run as _run

    monkeypatch.setattr(_run, "TASK_BYTES", 2**17)
    path = write_csr(
        sparse.data, sparse.indices, sparse.indptr, sparse.shape, chunks, zarr_format=zarr_format
    )
    for n_jobs in (1, 2, 4):
        blocks, gets = counted_pass(path, n_jobs)
        assert np.array_equal(dense(blocks, 60), sparse.toarray())
        assert set(gets.values()) == {1}
        assert len(gets) == 2 * -(-sparse.nnz // chunks) + -(-(ROWS + 1) // chunks)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_pass_over_sparse_shards(sparse, tmp_path, monkeypatch, n_jobs):
    from mmcnb.engine import run as _run

    monkeypatch.setattr(_run, "TASK_BYTES", 2**17)
    attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(sparse.shape)}
    group = zarr.open_group(tmp_path / "a.zarr", mode="w").create_group("X", attributes=attributes)
    for part in ("data", "indices", "indptr"):
        values = getattr(sparse, part)
        array = group.create_array(
            part, shape=values.shape, dtype=values.dtype, chunks=(1000,), shards=(100_000,)
        )
        array[:] = values
    blocks, gets = counted_pass(tmp_path / "a.zarr", n_jobs)
    assert np.array_equal(dense(blocks, 60), sparse.toarray())
    assert {n for key, n in gets.items() if not is_index(key)} == {1}


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_pass_over_our_stores(rows, sparse, tmp_path, monkeypatch, layout, n_jobs):
    from mmcnb.engine import run as _run

    monkeypatch.setattr(_run, "TASK_BYTES", 2**17)
    if layout == "dense":
        with create_dense_store(tmp_path / "a.zarr", 129, chunk_rows=3 * BLOCK_ROWS) as writer:
            writer.append(rows)
    else:
        with create_csr_store(tmp_path / "a.zarr", 60) as writer:
            writer.append(sparse)
    read = Counter()
    original = _stored.read_chunk_file
    lock = threading.Lock()

    def counting(path, most):
        with lock:
            read[path] += 1
        return original(path, most)

    samples = open_samples(tmp_path / "a.zarr")
    monkeypatch.setattr(_stored, "read_chunk_file", counting)
    for _ in range(2):
        blocks = run(Rows(), samples, n_jobs)
    expected = rows if layout == "dense" else sparse.toarray()
    assert np.array_equal(dense(blocks, 60), expected)
    chunks = [file for file in (tmp_path / "a.zarr").rglob("c/**/*") if file.is_file()]
    assert set(read) == set(chunks)
    assert max(read.values()) <= 2  # once a pass, or less often if chunks are still cached


class CountedRows(_stored.ChunkedRows):
    """Numbered rows in chunks of a given length that count their loads."""

    def __init__(self, length, chunk, lookahead):
        super().__init__("", length, _stored.EdgeChunks(), lookahead)
        self.chunk, self.loads, self.lock = chunk, Counter(), threading.Lock()

    def chunk_at(self, row):
        first = row // self.chunk * self.chunk
        return first, min(first + self.chunk, self.length)

    def load(self, start, stop):
        with self.lock:
            self.loads.update(range(start // self.chunk, -(-stop // self.chunk)))
        return np.arange(start, stop)

    def read(self, start, stop):
        return np.concatenate(
            [self.load(a, b) if values is None else values for a, b, values in self.pieces(start, stop)]
        )


@pytest.mark.slow
@given(
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    chunk=st.integers(1, 50),
    lookahead=st.integers(0, 1),
    order=st.randoms(use_true_random=False),
    threads=st.sampled_from([1, 3]),
)
@settings(deadline=None, max_examples=300)
def test_reads_in_any_order_load_each_chunk_once(cuts, chunk, lookahead, order, threads):
    ends = np.cumsum(cuts).tolist()
    windows = list(itertools.pairwise([0, *ends]))
    order.shuffle(windows)
    rows = CountedRows(ends[-1] + lookahead, chunk, lookahead)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda window: rows.read(*window), windows))
    for (start, stop), values in zip(windows, found, strict=True):
        assert values.tolist() == list(range(start, stop + lookahead))
    assert set(rows.loads.values()) == {1}


def test_readers_of_one_chunk_wait_for_one_load():
    edges, loads, inside = _stored.EdgeChunks(), [], threading.Event()

    def load():
        loads.append(1)
        inside.wait()
        return np.arange(10)

    with ThreadPoolExecutor(4) as pool:
        parts = [pool.submit(edges.take, 0, load) for _ in range(4)]
        inside.set()
        assert all(np.array_equal(part.result(), np.arange(10)) for part in parts)
    assert loads == [1]


def test_cached_chunks_are_bounded(monkeypatch):
    monkeypatch.setattr(_stored, "EDGE_BYTES", 3 * 80)
    rows = CountedRows(1000, 10, 0)
    for start in range(0, 1000, 10):
        rows.read(start + 5, start + 6)
    rows.loads.clear()
    for start in range(990, 960, -10):
        rows.read(start, start + 1)
    assert not rows.loads
    rows.read(960, 961)
    assert rows.loads == {96: 1}


def test_what_may_be_kept_is_told(rows, sparse, write_csr, tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(2**20, 2**6), dtype="f4", chunks=(2**19, 2**6))
    assert open_samples(tmp_path / "a.zarr").edge_bytes == 2**28  # two chunks, which are all
    zarr.create_array(tmp_path / "b.zarr", shape=(2**20, 2**6), dtype="f4", chunks=(2**14, 2**6))
    assert open_samples(tmp_path / "b.zarr").edge_bytes == _stored.EDGE_BYTES
    path = write_csr(sparse.data, sparse.indices, sparse.indptr, sparse.shape)
    parts = (sparse.data, sparse.indices, sparse.indptr)
    assert open_samples(path).edge_bytes == sum(part.nbytes for part in parts)
    assert open_samples(rows).edge_bytes == 0


def test_a_pass_after_a_broken_one_reads_each_chunk_once_more(tmp_path):
    rows = CountedRows(100, 40, 0)
    for start in range(0, 70, 10):
        rows.read(start, start + 10)
    rows.loads.clear()
    for start in range(0, 100, 10):
        rows.read(start, start + 10)
    assert max(rows.loads.values()) == 1


def test_a_chunk_that_cannot_be_read_fails_all_its_readers_and_is_tried_again(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.ones((300, 5)))
    samples, file = open_samples(tmp_path / "a.zarr"), tmp_path / "a.zarr/X/c/1/0"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"X/c/1/0 is damaged"):
            samples.block(50, 150)
    file.write_bytes(whole)
    assert np.array_equal(samples.block(50, 150), np.ones((100, 5)))
