"""Zarr stores in folders of zip archives."""

import shutil
import zipfile

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr

import mmcnb
from mmcnb.cli import main
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import create_dense_store, open_index
from tests.samples.common import one_sentence, rows_of, same_bits

X = np.random.default_rng(5).normal(size=(60, 6)).astype("float32")
X[:30] += 9
CELLS = [f"CELL{k}" for k in range(60)]


def zipped(path, *stores, below="", beside=()):
    """A zip archive with folders of stores, and other members."""
    with zipfile.ZipFile(path, "w") as archive:
        for store in stores:
            for file in sorted(store.rglob("*")):
                inner = file.relative_to(store.parent)
                archive.write(file, f"{below}{inner.as_posix()}")
        for name in beside:
            archive.writestr(name, "{}")
    return path


@pytest.mark.parametrize("name", ["rows.zarr.zip", "rows.zip", "rows.store"])
@pytest.mark.parametrize("below", ["", "exports/may/"])
def test_a_store_in_a_folder_of_an_archive_is_opened(tmp_path, name, below):
    store = tmp_path / "rows.zarr"
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.insert(0, "id", CELLS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ["convert", str(tmp_path / "rows.csv"), str(store), "--index-column", "id"]
    assert main(words) == 0
    beside = ["__MACOSX/rows.zarr/zarr.json", "readme.txt"]
    path = zipped(tmp_path / name, store, below=below, beside=beside)
    samples = mmcnb.open_samples(path)
    right = mmcnb.open_samples(store)
    assert same_bits(samples.block(0, 60), right.block(0, 60))
    assert samples.feature_names == right.feature_names
    assert samples.checksummed
    assert list(open_index(path)) == CELLS
    assert main(["verify", str(path)]) == 0
    assert main(["info", str(path)]) == 0
    shutil.rmtree(store)
    assert main(["convert", str(path), str(store)]) == 0
    np.testing.assert_array_equal(rows_of(store), rows_of(path))


@pytest.mark.filterwarnings("ignore:Writing zarr v2", "ignore:zarr v3 auto")
def test_anndata_in_a_folder_of_an_archive_has_names(tmp_path):
    store = tmp_path / "cells.zarr"
    names = pd.DataFrame(index=[f"gene{k}" for k in range(6)])
    anndata.AnnData(X, pd.DataFrame(index=CELLS), names).write_zarr(store)
    path = zipped(tmp_path / "cells.zarr.zip", store)
    samples = mmcnb.open_samples(path)
    assert samples.feature_names == [f"gene{k}" for k in range(6)]
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(path)
    assert list(model.row_index_) == CELLS


def test_an_archive_with_several_stores_is_explained(tmp_path):
    for name in ("a.zarr", "b.zarr"):
        zarr.save_array(tmp_path / name, X)
    path = zipped(tmp_path / "rows.zip", tmp_path / "a.zarr", tmp_path / "b.zarr")
    with one_sentence(
        r"contains 2 Zarr stores, such as a\.zarr and b\.zarr: unpack it"
    ):
        mmcnb.open_samples(path)


def test_a_damaged_chunk_in_an_archive_is_found(tmp_path):
    store = tmp_path / "rows.zarr"
    with create_dense_store(store, n_features=6) as writer:
        writer.append(X)
    (chunk,) = store.glob("X/c/0/0")
    chunk.write_bytes(chunk.read_bytes()[:-1])
    path = zipped(tmp_path / "rows.zip", store)
    with one_sentence("chunk", DamagedStoreError):
        mmcnb.open_samples(path).block(0, 60)
