"""Dask arrays are rows like any others, and each of their chunks is computed once a pass."""

import pickle
from collections import Counter

import numpy as np
import pytest
import scipy.sparse

from mmcnb import open_samples
from mmcnb.stores import convert, verify_store
from tests.samples.common import assert_same, one_sentence

da = pytest.importorskip("dask.array", reason="Dask is an optional extra")
dask = pytest.importorskip("dask", reason="Dask is an optional extra")


@pytest.mark.parametrize(
    ("chunks", "dtype"),
    [
        ((1000, 7), "f4"),
        ((9000, 7), "f8"),
        ((4096, 3), "u1"),
        (((5000, 0, 1, 3999), (2, 5)), ">f4"),
    ],
)
def test_dense_equals_memory(X, chunks, dtype):
    rows = np.abs(X * 50).astype(dtype)
    assert_same(open_samples(da.from_array(rows, chunks=chunks)), open_samples(rows))


def counted(rows, cuts):
    """A Dask array of dense or sparse rows, and how often each of its chunks was made."""
    edges = [0, *np.cumsum(cuts).tolist()]
    count = Counter()

    def make(block_info=None):
        place = block_info[None]["chunk-location"][0]
        count[place] += 1
        return rows[edges[place] : edges[place + 1]]

    chunks = (tuple(cuts), (rows.shape[1],))
    return da.map_blocks(make, chunks=chunks, dtype=rows.dtype, meta=rows[:0]), count


@pytest.mark.parametrize(
    ("cuts", "form"),
    [([9000], scipy.sparse.csr_matrix), ([5000, 1, 3999], scipy.sparse.csr_array)],
)
def test_sparse_equals_memory(csr, cuts, form):
    samples = open_samples(counted(form(csr), cuts)[0])
    assert samples.is_sparse
    assert_same(samples, open_samples(csr))


@pytest.mark.parametrize("cuts", [[9000], [1000] * 9, [5000, 1, 3999]])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_pass_computes_each_chunk_once(X, csr, layout, cuts):
    array, count = counted(X if layout == "dense" else csr, cuts)
    samples = open_samples(array)
    count.clear()
    for start in range(0, 9000, 700):
        samples.block(start, min(start + 700, 9000))
    assert count == dict.fromkeys(range(len(cuts)), 1)


def test_dask_arrays_are_pickled_and_can_be_converted(X, tmp_path):
    array = da.from_array(X, chunks=(1000, 7))
    samples = open_samples(array)
    assert samples.is_reopenable
    assert np.array_equal(pickle.loads(pickle.dumps(samples)).block(5, 50), X[5:50])
    convert(array, tmp_path / "a.zarr")
    assert verify_store(tmp_path / "a.zarr")["digest"] == samples.digest


def test_what_is_refused(X):
    X[1500, 2] = np.nan
    array = da.from_array(X, chunks=(1000, 7))

    def mapped(function):
        return array.map_blocks(function, dtype="f4", meta=X[:0])

    for source, match in [
        (array[array[:, 0] > 0], r"unknown sizes: call its compute_chunk_sizes\(\)"),
        (array[:, 0], "1-D"),
        (da.zeros((0, 3)), r"0 sample\(s\)"),
        (da.zeros((3, 3), dtype=complex), "complex"),
        (array, "NaN at row 1500, column 2 of dask array"),
        (mapped(lambda rows: rows / "x"), r"chunk 0 could not be computed"),
        (mapped(lambda rows: rows.astype("f8")), "chunk 0 is float64"),
        (mapped(lambda rows: rows[1:]), r"of shape \(999, 7\), but the array declares"),
    ]:
        with one_sentence(match):
            open_samples(source).block(0, 9000)
