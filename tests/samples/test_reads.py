"""A pass reads each chunk once, whatever the chunks, the parts that are read and the threads."""

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_dense_store
from tests.engine.fakes import run
from tests.samples.common import rows_of

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


def dense(blocks, n_features):
    """Blocks as one dense array."""
    shaped = [
        scipy.sparse.csr_array(
            block[:3], shape=(len(block.indptr) - 1, n_features)
        ).toarray()
        if isinstance(block, tuple)
        else block
        for block in blocks
    ]
    return np.vstack(shaped)


def counted_pass(path, n_jobs):
    """The blocks of one pass, and how often each chunk was got."""
    store = RecordingStore(LocalStore(path))
    samples = open_samples(zarr.open(store, mode="r"))
    store.gets.clear()
    return dense(run(Rows(), samples, n_jobs), samples.n_features), store.gets


@pytest.fixture(scope="module")
def rows():
    """Wide rows, so that a pass has several tasks."""
    return np.random.default_rng(0).normal(size=(ROWS, 129)).astype(np.float32)


@pytest.mark.parametrize(("inner", "n_jobs"), [(1000, 4), (5000, 1)])
def test_a_pass_over_shards(rows, tmp_path, inner, n_jobs):
    array = zarr.create_array(
        tmp_path / "a.zarr", data=rows, chunks=(inner, 129), shards=(10_000, 129)
    )
    values, gets = counted_pass(tmp_path / "a.zarr", n_jobs)
    assert np.array_equal(values, rows)
    # A shard comes whole or by its inner chunks; Zarr reads its index anew with each of
    # those.
    parts = {key: count for key, count in gets.items() if "Suffix" not in str(key)}
    whole = {key for key in parts if isinstance(key, str)}
    assert set(parts.values()) == {1}
    assert not whole & {key[0] for key in parts if not isinstance(key, str)}
    per_shard = 10_000 // inner
    n_inner = len(parts) + (per_shard - 1) * len(whole)
    assert array.nchunks <= n_inner < array.nchunks + per_shard


@pytest.mark.slow
@given(
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    chunk=st.integers(1, 50),
    is_sparse=st.booleans(),
    order=st.randoms(use_true_random=False),
    n_threads=st.sampled_from([1, 3]),
)
@settings(max_examples=25)
def test_reads_in_any_order_load_each_chunk_once(
    cuts, chunk, is_sparse, order, n_threads
):
    n = sum(cuts)
    values = np.arange(2.0 * n).reshape(n, 2) + 1
    store = RecordingStore(MemoryStore())
    group = zarr.open_group(store, mode="w")
    if is_sparse:
        attributes = {
            "encoding-type": "csr_matrix",
            "encoding-version": "0.1.0",
            "shape": [n, 2],
        }
        group = group.create_group("X", attributes=attributes)
        csr = scipy.sparse.csr_array(values)
        for part in ("data", "indices", "indptr"):
            group.create_array(part, data=getattr(csr, part), chunks=(chunk,))
    else:
        group.create_array("X", data=values, chunks=(chunk, 2))
    samples = open_samples(zarr.open(store, mode="r"))
    store.gets.clear()
    windows = list(itertools.pairwise([0, *np.cumsum(cuts).tolist()]))
    order.shuffle(windows)
    with ThreadPoolExecutor(n_threads) as pool:
        blocks = list(pool.map(lambda window: samples.block(*window), windows))
    for (start, stop), block in zip(windows, blocks, strict=True):
        assert np.array_equal(dense([block], 2), values[start:stop])
    assert set(store.gets.values()) == {1}


def test_single_rows_read_each_chunk_once(rows, rng):
    store = RecordingStore(MemoryStore())
    zarr.create_array(store, data=rows, chunks=(512, 129))
    samples = open_samples(zarr.open(store, mode="r"))
    store.gets.clear()
    numbers = np.sort(rng.choice(ROWS, size=60, replace=False))
    assert np.array_equal(samples.gather(numbers), rows[numbers])
    assert store.gets == {f"c/{chunk}/0": 1 for chunk in numbers // 512}


@pytest.mark.slow
def test_cached_chunks_are_bounded():
    """Of five chunks of 20 MiB, the last three are kept."""
    store = RecordingStore(MemoryStore())
    zarr.create_array(
        store, shape=(50, 2**19), chunks=(10, 2**19), dtype="f4", fill_value=1
    )[:] = 0
    samples = open_samples(zarr.open(store, mode="r"))
    assert samples.edge_bytes == 64 * 2**20
    for start in range(0, 50, 10):
        samples.block(start + 5, start + 6)
    store.gets.clear()
    for start in (40, 30, 20, 10):
        samples.block(start, start + 1)
    assert store.gets == {"c/1/0": 1}


def test_a_chunk_that_cannot_be_read_is_tried_again(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.ones((300, 5)))
    samples = open_samples(tmp_path / "a.zarr")
    file = tmp_path / "a.zarr/X/c/1/0"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"X/c/1/0 is damaged"):
            samples.block(50, 150)
    file.write_bytes(whole)
    assert np.array_equal(rows_of(samples), np.ones((300, 5)))
