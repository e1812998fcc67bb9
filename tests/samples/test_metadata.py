"""Damaged metadata of the members of a store ends in one sentence, and nothing in it leads elsewhere."""

import json
import os
import pickle
import shutil
import warnings

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import open_samples
from mmcnb.stores import (
    convert,
    create_dense_store,
    describe_store,
    open_class_labels,
    open_index,
    verify_store,
)
from mmcnb.stores._label_table import names_of
from mmcnb.stores._labels import stored_classes

anndata = pytest.importorskip("anndata", reason="writes the stores")
pd = pytest.importorskip("pandas")


def read_all(path):
    """All that is read of a store."""
    samples = open_samples(path)
    names = names_of(samples)
    return (
        samples.block(0, samples.n_samples),
        samples.feature_names,
        names and names(0, samples.n_samples),
        stored_classes(path),
        open_index(path),
        describe_store(path),
        convert(path, path.with_name("copy.zarr"), overwrite=True, progress=False),
    )


@pytest.fixture(params=[2, 3])
def cells(request, tmp_path):
    """An AnnData store with a sparse X, names, and classes beside."""
    X = np.arange(300).reshape(100, 3) % 7.0
    names = pd.DataFrame(index=[f"cell {row}" for row in range(100)])
    genes = pd.DataFrame(index=["a", "b", "c"])
    path = tmp_path / "cells.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of anndata, about the format and options of pandas
        with anndata.settings.override(zarr_write_format=request.param):
            anndata.AnnData(scipy.sparse.csr_matrix(X), obs=names, var=genes).write_zarr(path)
    group = zarr.open_group(path, use_consolidated=False)
    group.create_array("y", shape=(100,), dtype="i8")[:] = np.arange(100) % 2
    group["y"].attrs["class_names"] = ["even", "odd"]
    return path


def sentence(path):
    """What a reader of all is told in one line; None where nothing is."""
    try:
        read_all(path)
    except InputError as error:
        told = str(error)
    else:
        return None
    assert len(told.splitlines()) == 1
    return told


DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
SPOILED = (b"", b"{", b"[]", b"null", b"3", b'{"zarr_format": 3', b"\xff\xfe\x00", b'{"attributes": []}')


@pytest.mark.nightly
@pytest.mark.slow
def test_documents_that_are_none(cells):
    read_all(cells)
    refused = 0
    for file in sorted(file for file in cells.rglob("*") if file.name in DOCUMENTS):
        whole = file.read_bytes()
        for spoiled in SPOILED:
            file.write_bytes(spoiled)
            refused += sentence(cells) is not None
        file.write_bytes(whole)
    read_all(cells)
    assert refused > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("member", "key", "value"),
    [
        ("var", "_index", 3),
        ("var", "_index", "../obs/_index"),
        ("obs", "_index", "http://127.0.0.1:9/names"),
        ("obs", "_index", ["a"]),
        ("X", "shape", [100.0, 3]),
        ("X", "shape", [True, 3]),
        ("X", "shape", "100x3"),
        ("X", "encoding-type", ["csr_matrix"]),
        ("y", "class_names", "ab"),
        ("y", "class_names", {"0": "even"}),
        ("y", "class_names", ["even", 1]),
        ("y", "class_names", ["even"]),
    ],
)
def test_attributes_of_other_types(cells, member, key, value):
    zarr.open_group(cells, use_consolidated=False)[member].attrs[key] = value
    with pytest.raises(InputError, match=r"cells\.zarr") as caught:
        read_all(cells)
    assert "\n" not in str(caught.value)


def test_classes_without_a_name(cells):
    group = zarr.open_group(cells, use_consolidated=False)
    group["y"][3] = -1
    for read in (stored_classes, describe_store):
        with pytest.raises(InputError, match=r"labels other than 0 to 1.*class_names"):
            read(cells)
    assert open_class_labels(cells)[3] == -1


def test_metadata_of_what_stands_beside_our_rows(tmp_path):
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 2) as writer:
        writer.append(np.eye(2), y=[0, 1])
        writer.append_index(np.array(["a", "b"]))
    for member, read in (("y", open_class_labels), ("index", open_index)):
        file = path / member / "zarr.json"
        whole = file.read_bytes()
        for spoiled in (b"", b"{}", whole.replace(b'"c/', b'"d/'), whole[:-9], whole.replace(b"2", b"1", 1)):
            if spoiled == whole:
                continue
            file.write_bytes(spoiled)
            with pytest.raises(DamagedStoreError):
                read(path)
        file.unlink()
        with pytest.raises(DamagedStoreError):
            read(path)
        file.write_bytes(whole)


@pytest.mark.parametrize("spoiled", [b"", b"{", b"[]", b'{"attributes": null}'])
def test_rows_below_a_damaged_document_are_not_read_as_if_they_had_no_record(tmp_path, spoiled):
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 2) as writer:
        writer.append(np.eye(2))
    assert open_samples(path / "X").checksummed
    (path / "zarr.json").write_bytes(spoiled)
    with pytest.raises(DamagedStoreError, match=r"a\.zarr: the store's metadata cannot be read"):
        open_samples(path / "X")


def record_of(path):
    """The record of a store, and how to write another in its place."""
    document = json.loads((path / "zarr.json").read_text())

    def write(**changes):
        changed = document["attributes"]["mmcnb"] | changes
        text = json.dumps(document | {"attributes": {"mmcnb": changed}})
        (path / "zarr.json").write_text(text)

    return document["attributes"]["mmcnb"], write


@pytest.mark.parametrize(
    "changes",
    [
        {"inventory": {"../other.zarr": ["00000000"]}},
        {"inventory": {"/etc": []}},
        {"inventory": {"X": "00000000"}},
        {"inventory": {"X": [1]}},
        {"inventory": []},
        {"format": "2"},
        {"format": True},
        {"n_samples": 2.0},
        {"n_features": None},
        {"n_nonzero": "2"},
        {"digest": 5},
        {"metadata": None},
    ],
)
def test_a_record_of_other_types_or_places(tmp_path, changes):
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 2) as writer:
        writer.append(np.eye(2))
    shutil.copytree(path, tmp_path / "other.zarr")
    record_of(path)[1](**changes)
    for read in (open_samples, verify_store, describe_store):
        with pytest.raises(DamagedStoreError, match="the store's inventory is damaged"):
            read(path)


class Touch:
    """A pickle that makes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_no_pickle_is_read(tmp_path, monkeypatch, place):
    import numcodecs.pickles

    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("X", shape=(2, 2), dtype="f4")[:] = 1
    index = group.create_array("index", shape=(2,), dtype=np.dtypes.StringDType(), compressors=None)
    index[:] = np.array(["a", "b"])
    document = tmp_path / "a.zarr/index/.zarray"
    settings = json.loads(document.read_text())
    pickled = {"id": "pickle", "protocol": 5}
    filters = [*settings["filters"], pickled] if place == "filters" else settings["filters"]
    document.write_text(
        json.dumps(settings | {"filters": filters, "compressor": pickled if place == "compressor" else None})
    )
    (tmp_path / "a.zarr/index/0").write_bytes(pickle.dumps(Touch(tmp_path / "run")))
    with pytest.raises(InputError, match="encoded by pickle, which is not known to be harmless"):
        open_index(tmp_path / "a.zarr")
    assert not (tmp_path / "run").exists()
