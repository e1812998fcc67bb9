"""A chunk that is sound and not the one that was written raises, however its rows are read."""

import pickle
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zarr
from numcodecs.zstd import Zstd

import mmcnb
from mmcnb import InputError, open_samples
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

# Stores of 90 rows in three chunks, and labels in two: of the first format, and of this
# one.
KEPT = Path(__file__).parents[1] / "data/stores"
MATCH = r"chunks? \S+ (is|are) not what was written: restore it.*changed on purpose, delete the attribute mmcnb"


def chunk_of(store, path, number):
    """The file of a chunk."""
    file = store / path / f"c/{number}"
    return file / "0" if file.is_dir() else file


def swap(store, path):
    """Exchange the first and the second chunk of an array."""
    first, second = (chunk_of(store, path, number) for number in (0, 1))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def renew(store, path):
    """Put other numbers in place of the second chunk, as a later version of the store would have."""
    file = chunk_of(store, path, 1)
    content = bytearray(Zstd().decode(file.read_bytes()))
    content[8] ^= 1
    file.write_bytes(Zstd(checksum=True).encode(bytes(content)))


def parts_of(store):
    """The arrays of the rows of a store."""
    return ["X/data", "X/indices"] if (store / "X/data").is_dir() else ["X"]


@pytest.fixture(params=["dense", "bytes", "csr"])
def store(request, tmp_path):
    """A store of this version, of several chunks."""
    return shutil.copytree(KEPT / f"0.3.0/{request.param}.zarr", tmp_path / "a.zarr")


READS = {
    "a pass": lambda samples: [
        samples.block(start, start + 30) for start in range(0, 90, 30)
    ],
    "a part of a chunk": lambda samples: samples.block(45, 55),
    "single rows": lambda samples: samples.gather(np.array([0, 45])),
}


@pytest.mark.parametrize("exchange", [swap, renew])
@pytest.mark.parametrize("release", ["0.2.0", "0.3.0"])
@pytest.mark.parametrize("name", ["dense", "bytes", "csr"])
def test_rows(tmp_path, exchange, release, name):
    for part in parts_of(KEPT / release / f"{name}.zarr"):
        store = shutil.copytree(
            KEPT / release / f"{name}.zarr", tmp_path / part.replace("/", "-")
        )
        READS["a pass"](open_samples(store))
        exchange(store, part)
        for read in READS.values():
            with one_sentence(MATCH, DamagedStoreError):
                read(open_samples(store))
        with one_sentence(
            f"{part}/c/1.* not what was written|missing or damaged", DamagedStoreError
        ):
            verify_store(store)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A store with two chunks of class labels and of names of rows."""
    path = tmp_path_factory.mktemp("labelled") / "a.zarr"
    numbers = np.arange(70_000)
    with create_dense_store(path, 1, dtype="u1") as writer:
        writer.append(numbers[:, None] % 200, numbers // 1000)
        writer.append_index(np.char.mod("row %d", numbers))
    return path


def as_weights(store):
    mmcnb.partition_score(store, np.arange(70_000) % 2, sample_weight=store / "y")


def as_source(store):
    convert(store, store.with_name("copy.zarr"))


@pytest.mark.parametrize("exchange", [swap, renew])
@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("y", [open_class_labels, describe_store, as_source, as_weights]),
        ("index", [open_index, as_source]),
    ],
)
def test_what_stands_beside_rows(labelled, tmp_path, exchange, path, reads):
    store = shutil.copytree(labelled, tmp_path / "a.zarr")
    exchange(store, path)
    for read in reads:
        with one_sentence(MATCH, DamagedStoreError):
            read(store)
    with one_sentence(f"{path}/c/1", DamagedStoreError):
        verify_store(store)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("place", ["zip", "memory", "element", "opened", "pickled"])
def test_any_way_to_the_store(store, place):
    swap(store, parts_of(store)[0])
    if place == "zip":
        source = shutil.make_archive(str(store), "zip", store)
    elif place == "memory":
        fsspec = pytest.importorskip(
            "fsspec", reason="stores behind addresses are an optional extra"
        )
        source = f"memory://{store.parent.name}"
        fsspec.filesystem("memory").put(str(store), source, recursive=True)
    else:
        source = {
            "element": store / "X",
            "opened": zarr.open_group(store, mode="r"),
        }.get(place, store)
    samples = open_samples(source)
    if place == "pickled":
        samples = pickle.loads(pickle.dumps(samples))
    for read in READS.values():
        with one_sentence(MATCH, DamagedStoreError):
            read(samples)


@pytest.mark.parametrize("exchange", [swap, renew])
@pytest.mark.parametrize("release", ["0.2.0", "0.3.0"])
def test_labels_that_were_written(tmp_path, exchange, release):
    labels = shutil.copytree(KEPT / release / "labels.zarr", tmp_path / "labels.zarr")
    exchange(labels, "")
    with one_sentence(MATCH, DamagedStoreError):
        mmcnb.partition_score(
            np.eye(70_000, 2), np.arange(70_000) % 2, sample_weight=labels
        )
    with one_sentence("c/1 (is|are)", DamagedStoreError):
        verify_store(labels)


@pytest.mark.parametrize("exchange", [swap, renew])
def test_fit_and_predict(store, exchange):
    model = mmcnb.UnsupervisedRLS(n_clusters=2, n_landmarks=20, random_state=0).fit(
        store
    )
    exchange(store, parts_of(store)[0])
    for call in (
        model.fit,
        model.predict,
        partial(model.predict, out=store.with_name("labels.zarr")),
    ):
        with one_sentence(MATCH, DamagedStoreError):
            call(store)
    assert not store.with_name("labels.zarr").exists()


@pytest.mark.parametrize("store", ["dense", "bytes"], indirect=True)
def test_a_store_changed_on_purpose_is_read_without_its_attribute(store, tmp_path):
    swap(store, "X")
    del zarr.open_group(store).attrs["mmcnb"]
    convert(store, tmp_path / "again.zarr")
    assert not open_samples(store).checksummed
    assert open_samples(tmp_path / "again.zarr").checksummed
    assert np.array_equal(rows_of(tmp_path / "again.zarr"), rows_of(store))


def test_a_store_of_a_later_version_says_so(tmp_path):
    with pytest.MonkeyPatch.context() as later:
        # Internal: no released version writes a later format.
        later.setattr("mmcnb.stores._write.FORMAT", 99)
        with create_dense_store(tmp_path / "later.zarr", 2) as writer:
            writer.append(np.eye(2))
    with one_sentence(
        "later version of mmcnb, in format 99: update mmcnb", InputError
    ) as caught:
        open_samples(tmp_path / "later.zarr")
    assert not isinstance(caught.value, DamagedStoreError)
