"""Stores that a release wrote are read by every later version: the same numbers, all checked."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import zarr

from mmcnb import open_samples
from mmcnb.stores import describe_store, open_class_labels, open_index, verify_store
from tests.samples.common import rows_of

STORES = Path(__file__).parents[1] / "data/stores"
RELEASES = sorted(
    folder.name for folder in STORES.iterdir() if (folder / "dense.zarr").is_dir()
)

_module = importlib.util.spec_from_file_location("write_stores", STORES / "write.py")
written = importlib.util.module_from_spec(_module)
_module.loader.exec_module(written)


def test_there_are_releases():
    assert "0.2.0" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["dense", "bytes", "csr"])
def test_rows_with_classes_and_names(release, name):
    path = STORES / release / f"{name}.zarr"
    samples = open_samples(path)
    expected = (
        written.sparse()
        if name == "csr"
        else written.contents(3, 11).astype(np.float32)
    )
    assert samples.checksummed
    assert (
        samples.digest == open_samples(expected).digest == verify_store(path)["digest"]
    )
    assert np.array_equal(
        rows_of(path), expected.toarray() if name == "csr" else expected
    )
    assert open_class_labels(path).tolist() == written.CLASSES.tolist()
    if name != "csr":
        assert np.array_equal(
            samples.gather(np.array([3, 50, 89])), expected[[3, 50, 89]]
        )
        assert samples.feature_names == written.COLUMNS
        assert open_index(path).tolist() == written.NAMES
        assert describe_store(path)["class_counts"] == {"a": 30, "b": 30, "c": 30}


@pytest.mark.parametrize("release", RELEASES)
def test_labels(release):
    path = STORES / release / "labels.zarr"
    assert np.array_equal(zarr.open_array(path, mode="r")[:], written.LABELS)
    assert verify_store(path)["chunks"] == 2
