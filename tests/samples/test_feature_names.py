"""Columns keep their names, wherever the rows go."""

import json
import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.samples.derived import CachedSamples, ScaledSamples, Scaling
from mmcnb.stores import convert, create_csr_store, create_dense_store
from tests.samples.common import one_sentence

NAMES = ["height", "weight", "age", "größe", "no. 5", "x", "y"]


@pytest.fixture(params=["dense", "csr"])
def named_store(request, X, tmp_path):
    path = tmp_path / "named.zarr"
    create = create_dense_store if request.param == "dense" else create_csr_store
    with create(path, 7) as writer:
        writer.append(X if request.param == "dense" else scipy.sparse.csr_array(X))
        writer.feature_names = NAMES
    return path


@pytest.fixture
def annotated(X, tmp_path):
    """A function that writes an AnnData store with some names and gives its path."""

    def write(names):
        data = anndata.AnnData(X[:50].copy(), var=pd.DataFrame(index=names))
        with warnings.catch_warnings():
            # of what anndata will write in its next version
            warnings.simplefilter("ignore")
            data.write_zarr(tmp_path / "cells.zarr")
        return tmp_path / "cells.zarr"

    return write


def test_stores_and_their_copies_keep_names(named_store, tmp_path):
    samples = open_samples(named_store)
    assert samples.feature_names == NAMES
    for layout in ("dense", "csr"):
        convert(named_store, tmp_path / f"{layout}.zarr", layout=layout)
        assert open_samples(tmp_path / f"{layout}.zarr").feature_names == NAMES
    scaled = ScaledSamples(samples, Scaling(np.zeros(7), np.ones(7)))
    assert CachedSamples(scaled).feature_names == NAMES


def test_names_are_part_of_what_the_inventory_checks(named_store):
    document = named_store / "X/zarr.json"
    metadata = json.loads(document.read_text())
    metadata["attributes"]["feature_names"][0] = "depth"
    document.write_text(json.dumps(metadata))
    with one_sentence("metadata is not what was written", DamagedStoreError):
        open_samples(named_store)


@pytest.mark.parametrize("names", [["a", "b"], "seven..", [1, 2, 3, 4, 5, 6, 7]])
def test_names_are_one_text_a_column(X, tmp_path, names):
    def write():
        with create_dense_store(tmp_path / "a.zarr", 7) as writer:
            writer.append(X)
            writer.feature_names = names

    with one_sentence(r"a\.zarr: feature_names has \d entries for 7 columns: .*\.$"):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["zarr", "h5ad"])
def test_names_beside_a_mask_are_read(annotated, tmp_path, form):
    """AnnData writes texts of pandas 3 as a group of values and a mask."""
    if form == "zarr":
        path = annotated(NAMES)
        root = zarr.open_group(path, use_consolidated=False)
        texts = np.array(NAMES, np.dtypes.StringDType())
    else:
        path = tmp_path / "cells.h5ad"
        root = h5py.File(path, "w")
        root["X"] = np.eye(7)
        texts = [name.encode() for name in NAMES]
    frame = root.require_group("var")
    frame.attrs["_index"] = "names"
    names = frame.create_group("names")
    names.attrs["encoding-type"] = "nullable-string-array"
    create = names.create_array if form == "zarr" else names.create_dataset
    create("values", data=texts)
    create("mask", data=np.zeros(7, bool))
    if form == "h5ad":
        root.close()
    assert open_samples(path).feature_names == NAMES


def test_numbers_that_anndata_gives_are_no_names(annotated):
    assert (
        open_samples(annotated([str(column) for column in range(7)])).feature_names
        is None
    )


def test_names_of_a_store_are_read_when_they_are_asked_for(annotated):
    path = annotated(NAMES)
    files = [file for file in (path / "var/_index").rglob("*") if file.is_file()]
    chunk = next(
        file for file in files if not file.name.startswith((".z", "zarr.json"))
    )
    chunk.write_bytes(b"no names")
    samples = open_samples(path)  # which reads no names
    # Of anndata 0.12, and of 0.13, which writes shards.
    plain = r": chunk var/_index/0\S* is damaged"
    masked = "/values: 0 to 7 cannot be read"
    with one_sentence(
        rf"cells\.zarr/var/_index({plain}|{masked}) .*\.$", DamagedStoreError
    ):
        samples.feature_names
