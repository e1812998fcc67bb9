"""Dask arrays are rows like any others, and each of their chunks is computed once a pass."""

import pickle
import threading
from collections import Counter

import numpy as np
import pytest
import scipy.sparse

from mmcnb.errors import InputError
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.stores import convert, verify_store
from tests.engine.fakes import run

da = pytest.importorskip("dask.array", reason="Dask is an optional extra")
dask = pytest.importorskip("dask", reason="Dask is an optional extra")

ROWS = np.array([0, 1, 999, 4096, 8999])
SPANS = [(0, 1), (0, BLOCK_ROWS), (4000, 4100), (8999, 9000), (0, 9000)]


def assert_same(samples, reference):
    """Blocks, gathered rows and digest of two sources agree bit for bit."""
    assert (samples.n_samples, samples.n_features) == (reference.n_samples, reference.n_features)
    pairs = [(samples.block(*span), reference.block(*span)) for span in SPANS]
    none = np.array([], dtype=np.int64)
    for a, b in [*pairs, *((samples.gather(rows), reference.gather(rows)) for rows in (ROWS, none))]:
        for p, q in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
            assert np.asarray(p).dtype == np.asarray(q).dtype
            assert np.array_equal(p, q)
    assert samples.digest == reference.digest


@pytest.mark.parametrize("chunks", [(1000, 7), (9000, 7), (4096, 3), ((5000, 0, 1, 3999), (2, 5))])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", ">f4"])
def test_dense_equals_memory(X, chunks, dtype):
    rows = np.abs(X * 50).astype(dtype)
    assert_same(open_samples(da.from_array(rows, chunks=chunks)), open_samples(rows))


def sparse_array(csr, cuts, count=None):
    """A Dask array of CSR matrices, which counts how often each is made."""
    edges = [0, *np.cumsum(cuts).tolist()]

    def make(block_info=None):
        place = block_info[None]["chunk-location"][0]
        if count is not None:
            count[place] += 1
        return csr[edges[place] : edges[place + 1]]

    return da.map_blocks(make, chunks=(tuple(cuts), (csr.shape[1],)), dtype=csr.dtype, meta=csr[:0])


@pytest.mark.parametrize("cuts", [[9000], [1000] * 9, [5000, 1, 3999]])
@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_sparse_equals_memory(csr, cuts, form):
    samples = open_samples(sparse_array(form(csr), cuts))
    assert samples.is_sparse
    assert_same(samples, open_samples(csr))


class Rows:
    """A pass that counts rows."""

    def start(self):
        return 0

    def block(self, rows, start, stop):
        return stop - start

    def combine(self, total, other):
        return total + other


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("cuts", [[9000], [1000] * 9, [5000, 1, 3999]])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_pass_computes_each_chunk_once(X, csr, monkeypatch, layout, cuts, n_jobs):
    from mmcnb.engine import run as _run

    monkeypatch.setattr(_run, "TASK_BYTES", 1)
    count, lock = Counter(), threading.Lock()
    if layout == "csr":
        array = sparse_array(csr, cuts, count)
    else:

        def counting(rows, block_info=None):
            with lock:
                count[block_info[0]["chunk-location"]] += 1
            return rows

        array = da.from_array(X, chunks=(tuple(cuts), (7,))).map_blocks(counting, dtype=X.dtype, meta=X[:0])
    samples = open_samples(array)
    count.clear()
    assert run(Rows(), samples, n_jobs) == 9000
    assert sorted(count.values()) == [1] * len(cuts)


def test_chunks_are_computed_in_the_thread_that_asks(X):
    seen = set()

    def watch(rows):
        seen.add(threading.get_ident())
        return rows

    array = da.from_array(X, chunks=(1000, 7)).map_blocks(watch, dtype=X.dtype, meta=X[:0])
    with dask.config.set(scheduler="threads"):
        open_samples(array).block(0, 9000)
    assert seen == {threading.get_ident()}


def test_dask_arrays_are_pickled_and_can_be_converted(X, tmp_path):
    samples = open_samples(da.from_array(X, chunks=(1000, 7)))
    assert samples.is_reopenable
    assert np.array_equal(pickle.loads(pickle.dumps(samples)).block(5, 50), X[5:50])
    convert(da.from_array(X, chunks=(1000, 7)), tmp_path / "a.zarr")
    assert verify_store(tmp_path / "a.zarr")["digest"] == samples.digest


def test_what_is_refused(X):
    X[1500, 2] = np.nan
    array = da.from_array(X, chunks=(1000, 7))

    def fail(rows):
        raise RuntimeError("no such luck")

    for source, match in [
        (array[array[:, 0] > 0], r"unknown sizes: call its compute_chunk_sizes\(\)"),
        (array[:, 0], "1-D"),
        (da.zeros((0, 3)), r"0 sample\(s\)"),
        (da.zeros((3, 3), dtype=complex), "complex"),
        (array, "NaN at row 1500, column 2 of dask array"),
        (array.map_blocks(fail, dtype="f4", meta=X[:0]), r"chunk 0 could not be computed.*no such luck"),
        (array.map_blocks(lambda rows: rows.astype("f8"), dtype="f4", meta=X[:0]), "chunk 0 is float64"),
        (
            array.map_blocks(lambda rows: rows[1:], dtype="f4", meta=X[:0]),
            r"of shape \(999, 7\), but the array says",
        ),
    ]:
        with pytest.raises(InputError, match=match) as caught:
            open_samples(source).block(0, 9000)
        assert "\n" not in str(caught.value)
