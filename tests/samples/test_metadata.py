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

import mmcnb
from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import (
    convert,
    create_dense_store,
    describe_store,
    open_class_labels,
    open_index,
    verify_store,
)
from tests.samples.common import one_sentence, rows_of

anndata = pytest.importorskip("anndata", reason="writes the stores")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def model():
    """A model of rows with three columns."""
    return mmcnb.UnsupervisedRLS(2, n_landmarks=10, random_state=0).fit(
        np.arange(300).reshape(100, 3) % 7.0
    )


@pytest.fixture(params=[2, 3])
def cells(request, tmp_path):
    """An AnnData store with a sparse X, names, and classes beside."""
    X = np.arange(300).reshape(100, 3) % 7.0
    names = pd.DataFrame(index=[f"cell {row}" for row in range(100)])
    genes = pd.DataFrame(index=["a", "b", "c"])
    path = tmp_path / "cells.zarr"
    with warnings.catch_warnings():
        # of anndata, about the format and options of pandas
        warnings.simplefilter("ignore")
        with anndata.settings.override(zarr_write_format=request.param):
            anndata.AnnData(
                scipy.sparse.csr_matrix(X), obs=names, var=genes
            ).write_zarr(path)
    group = zarr.open_group(path, use_consolidated=False)
    group.create_array("y", shape=(100,), dtype="i8")[:] = np.arange(100) % 2
    group["y"].attrs["class_names"] = ["even", "odd"]
    return path


def read_all(path, model):
    """Read all that a store has, the names of its rows for a table of labels too."""
    samples = open_samples(path)
    rows_of(samples)
    samples.feature_names
    open_index(path)
    describe_store(path)
    convert(path, path.with_name("copy.zarr"), overwrite=True, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model has no names of columns
        model.predict(path, out=path.with_name("labels.csv"))
    path.with_name("labels.csv").unlink()


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
def test_attributes_of_other_types(cells, model, member, key, value):
    zarr.open_group(cells, use_consolidated=False)[member].attrs[key] = value
    with one_sentence(r"cells\.zarr"):
        read_all(cells, model)


def test_classes_without_a_name(cells):
    zarr.open_group(cells, use_consolidated=False)["y"][3] = -1
    with one_sentence(r"labels other than 0 to 1.*class_names"):
        describe_store(cells)
    assert open_class_labels(cells)[3] == -1


@pytest.fixture
def store(tmp_path):
    """A store of two rows with class labels and names."""
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 2) as writer:
        writer.append(np.eye(2), y=[0, 1])
        writer.append_index(np.array(["a", "b"]))
    return path


@pytest.mark.parametrize(
    ("member", "read"), [("y", open_class_labels), ("index", open_index)]
)
def test_metadata_of_what_stands_beside_our_rows(store, member, read):
    file = store / member / "zarr.json"
    whole = file.read_bytes()
    for spoiled in (b"", b"{}", whole[:-9], whole.replace(b"2", b"1", 1)):
        file.write_bytes(spoiled)
        with one_sentence(None, DamagedStoreError):
            read(store)
    file.unlink()
    with one_sentence(None, DamagedStoreError):
        read(store)


@pytest.mark.parametrize("spoiled", [b"", b"{", b"[]", b'{"attributes": null}'])
def test_rows_below_a_damaged_document_are_not_read_as_if_they_had_no_record(
    store, spoiled
):
    assert open_samples(store / "X").checksummed
    (store / "zarr.json").write_bytes(spoiled)
    with one_sentence(
        r"a\.zarr: the store's metadata cannot be read", DamagedStoreError
    ):
        open_samples(store / "X")


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
def test_a_record_of_other_types_or_places(store, changes):
    shutil.copytree(store, store.with_name("other.zarr"))
    document = json.loads((store / "zarr.json").read_text())
    document["attributes"]["mmcnb"] |= changes
    (store / "zarr.json").write_text(json.dumps(document))
    for read in (open_samples, verify_store, describe_store):
        with one_sentence("the store's inventory is damaged", DamagedStoreError):
            read(store)


class Touch:
    """A pickle that makes a folder when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_no_pickle_is_read(tmp_path, monkeypatch, place):
    import numcodecs.pickles

    monkeypatch.setattr(
        numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False
    )
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("X", data=np.eye(2))
    texts = np.array(["a", "b"], np.dtypes.StringDType())
    group.create_array("index", data=texts, compressors=None)
    document = tmp_path / "a.zarr/index/.zarray"
    settings = json.loads(document.read_text())
    pickled = {"id": "pickle", "protocol": 5}
    if place == "filters":
        settings["filters"].append(pickled)
    else:
        settings["compressor"] = pickled
    document.write_text(json.dumps(settings))
    (tmp_path / "a.zarr/index/0").write_bytes(pickle.dumps(Touch(tmp_path / "run")))
    with one_sentence("encoded with pickle, which is not known to be safe"):
        open_index(tmp_path / "a.zarr")
    assert not (tmp_path / "run").exists()
