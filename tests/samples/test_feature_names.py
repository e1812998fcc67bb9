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

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import open_samples
from mmcnb.samples.derived import CachedSamples, ScaledSamples, Scaling
from mmcnb.stores import convert, create_csr_store, create_dense_store

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
        rows = X[:50]
        data = anndata.AnnData(rows.copy(), var=pd.DataFrame(index=names))
        data.layers["counts"] = scipy.sparse.csr_matrix(rows)
        data.obsm["X_pca"] = rows[:, :2].copy()
        data.raw = data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what anndata will write in its next version
            data.write_zarr(tmp_path / "cells.zarr")
        return tmp_path / "cells.zarr"

    return write


def test_stores_and_their_copies_keep_names(named_store, tmp_path):
    assert open_samples(named_store).feature_names == NAMES
    for layout in ("dense", "csr"):
        convert(named_store, tmp_path / f"{layout}.zarr", layout=layout, progress=False)
        assert open_samples(tmp_path / f"{layout}.zarr").feature_names == NAMES


def test_names_are_part_of_what_the_inventory_checks(named_store):
    document = named_store / "X" / "zarr.json"
    metadata = json.loads(document.read_text())
    metadata["attributes"]["feature_names"][0] = "depth"
    document.write_text(json.dumps(metadata))
    with pytest.raises(DamagedStoreError, match="metadata is not what was written"):
        open_samples(named_store)


@pytest.mark.parametrize("names", [["a", "b"], "seven..", [1, 2, 3, 4, 5, 6, 7]])
def test_names_are_one_text_a_column(X, tmp_path, names):
    def write():
        with create_dense_store(tmp_path / "a.zarr", 7) as writer:
            writer.append(X)
            writer.feature_names = names

    with pytest.raises(InputError, match=r"a\.zarr: feature_names has \d entries for 7 columns: [^\n]*\.$"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_rows_without_names_have_none(X, tmp_path):
    zarr.create_array(tmp_path / "bare.zarr", data=X)
    for source in (X, scipy.sparse.csr_array(X), tmp_path / "bare.zarr"):
        assert open_samples(source).feature_names is None


def test_scaled_and_cached_rows_keep_names(named_store):
    samples = open_samples(named_store)
    scaled = ScaledSamples(samples, Scaling(np.zeros(7), np.ones(7)))
    assert CachedSamples(scaled).feature_names == NAMES


@pytest.mark.parametrize(
    ("element", "named"), [(None, True), ("layers/counts", True), ("raw/X", True), ("obsm/X_pca", False)]
)
def test_variables_of_anndata_name_the_columns(annotated, element, named):
    samples = open_samples(annotated(NAMES), element)
    assert samples.feature_names == (NAMES if named else None)


@pytest.mark.parametrize("form", ["zarr", "h5ad"])
def test_names_beside_a_mask_are_read(annotated, tmp_path, form):
    """AnnData writes texts of pandas 3 as a group of values and a mask."""
    path = annotated(NAMES) if form == "zarr" else tmp_path / "cells.h5ad"
    if form == "h5ad":
        with h5py.File(path, "w") as root:
            root["X"] = np.eye(7)
    root = zarr.open_group(path, use_consolidated=False) if form == "zarr" else h5py.File(path, "a")
    frame = root.require_group("var")
    frame.attrs["_index"] = "names"
    names = frame.create_group("names")
    names.attrs["encoding-type"] = "nullable-string-array"
    texts = np.array(NAMES, np.dtypes.StringDType()) if form == "zarr" else [one.encode() for one in NAMES]
    for key, values in {"values": texts, "mask": np.zeros(7, bool)}.items():
        names.create_array(key, data=values) if form == "zarr" else names.create_dataset(key, data=values)
    if form == "h5ad":
        root.close()
    assert open_samples(path).feature_names == NAMES


def test_numbers_that_anndata_gives_are_no_names(annotated):
    assert open_samples(annotated([str(column) for column in range(7)])).feature_names is None


def test_names_of_a_store_are_read_when_they_are_asked_for(annotated):
    path = annotated(NAMES)
    files = [file for file in (path / "var" / "_index").rglob("*") if file.is_file()]
    chunk = next(file for file in files if not file.name.startswith((".z", "zarr.json")))
    chunk.write_bytes(b"no names")
    samples = open_samples(path)  # which reads no names
    # Of anndata 0.12, and of 0.13, which writes shards.
    plain, masked = r": chunk var/_index/0\S* is damaged", "/values: 0 to 7 cannot be read"
    with pytest.raises(DamagedStoreError, match=rf"cells\.zarr/var/_index({plain}|{masked}) [^\n]*\.$"):
        samples.feature_names
