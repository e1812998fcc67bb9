"""Rows of a store are sent as its path, and another store in its place is noticed."""

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import zarr

from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.samples._base import open_again
from mmcnb.stores import create_csr_store, create_dense_store


@pytest.fixture(params=["dense", "csr", "foreign", "zip"])
def samples(request, X, csr, tmp_path):
    """Rows of each kind of store with a path."""
    if request.param == "foreign":
        zarr.create_array(tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(1000, 7))[:] = X
        return open_samples(tmp_path / "a.zarr")
    if request.param == "csr":
        with create_csr_store(tmp_path / "a.zarr", 40) as writer:
            writer.append(csr)
        return open_samples(tmp_path / "a.zarr")
    with create_dense_store(tmp_path / "a.zarr", 7, chunk_rows=1000) as writer:
        writer.append(X)
    if request.param == "zip":
        shutil.make_archive(str(tmp_path / "a.zarr"), "zip", tmp_path / "a.zarr")
        return open_samples(tmp_path / "a.zarr.zip")
    return open_samples(tmp_path / "a.zarr")


def first_rows(samples):
    """A few rows, as another process reads them."""
    return samples.block(0, 5)


@pytest.mark.slow
def test_pickles_are_small_and_open_elsewhere(samples):
    assert samples.is_reopenable
    assert len(pickle.dumps(samples)) < 2000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = pool.submit(first_rows, samples).result()
    here = samples.block(0, 5)
    parts = zip(there, here, strict=True) if isinstance(here, tuple) else [(there, here)]
    assert all(np.array_equal(a, b) for a, b in parts)


def test_a_process_opens_a_store_once(samples):
    sent = pickle.dumps(samples)
    assert pickle.loads(sent) is pickle.loads(sent)


@pytest.mark.parametrize(
    ("change", "checksums"),
    [("numbers", True), ("shape", True), ("chunks", True), ("shape", False), ("chunks", False)],
)
def test_a_store_put_in_its_place_is_noticed(X, tmp_path, change, checksums):
    def write(rows, chunk_rows):
        if checksums:
            with create_dense_store(tmp_path / "a.zarr", 7, chunk_rows=chunk_rows, overwrite=True) as writer:
                writer.append(rows)
        else:
            foreign = zarr.open_group(tmp_path / "a.zarr", mode="w")
            foreign.create_array("X", shape=rows.shape, dtype=rows.dtype, chunks=(chunk_rows, 7))[:] = rows

    write(X, 1000)
    sent = pickle.dumps(open_samples(tmp_path / "a.zarr"))
    pickle.loads(sent)
    write(X + 1 if change == "numbers" else X[:-1] if change == "shape" else X, 500)
    open_again.cache_clear()  # as in a process that has not opened it yet
    with pytest.raises(InputError, match=r"a\.zarr.* was replaced by another since"):
        pickle.loads(sent)


def test_an_opened_store_without_a_path_is_not_pickled(X):
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    group.create_array("X", shape=X.shape, dtype=X.dtype)[:] = X
    samples = open_samples(group)
    assert not samples.is_reopenable
    assert not open_samples(X).is_reopenable
    with pytest.raises(InputError, match="open it by its path"):
        pickle.dumps(samples)
