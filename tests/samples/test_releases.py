"""Stores that a release wrote are read by every later version: the same numbers, all checked."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mmcnb.samples import open_samples
from mmcnb.stores import describe_store, open_class_labels, open_index, verify_store
from mmcnb.stores._labels import read_column, stored_classes

STORES = Path(__file__).parents[1] / "data/stores"
RELEASES = sorted(folder.name for folder in STORES.iterdir() if (folder / "dense.zarr").is_dir())

_module = importlib.util.spec_from_file_location("write_stores", STORES / "write.py")
written = importlib.util.module_from_spec(_module)
_module.loader.exec_module(written)


def test_there_are_releases():
    assert "0.2.0" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["dense", "bytes"])
def test_dense_stores(release, name):
    path = STORES / release / f"{name}.zarr"
    samples = open_samples(path)
    assert samples.checksummed
    assert np.array_equal(samples.block(0, written.ROWS), written.contents(3, 11))
    assert np.array_equal(samples.gather(np.array([3, 50, 89])), written.contents(3, 11)[[3, 50, 89]])
    assert samples.digest == open_samples(written.contents(3, 11).astype(np.float32)).digest
    assert samples.feature_names == written.COLUMNS
    assert stored_classes(path).tolist() == [["a", "b", "c"][label] for label in written.CLASSES]
    assert open_index(path).tolist() == written.NAMES
    assert verify_store(path)["digest"] == samples.digest
    assert describe_store(path)["class_counts"] == {"a": 30, "b": 30, "c": 30}


@pytest.mark.parametrize("release", RELEASES)
def test_sparse_stores(release):
    path = STORES / release / "csr.zarr"
    samples, expected = open_samples(path), open_samples(written.sparse())
    assert samples.checksummed
    assert len(samples.arrays[0].chunks) == 1 < samples.arrays[0].nchunks
    for found, known in zip(samples.block(0, written.ROWS), expected.block(0, written.ROWS), strict=True):
        assert np.array_equal(found, known)
    assert samples.digest == expected.digest == verify_store(path)["digest"]
    assert np.array_equal(open_class_labels(path), written.CLASSES)


@pytest.mark.parametrize("release", RELEASES)
def test_labels(release):
    path = STORES / release / "labels.zarr"
    assert np.array_equal(read_column(path, "y"), written.LABELS)
    assert verify_store(path)["chunks"] == 2
