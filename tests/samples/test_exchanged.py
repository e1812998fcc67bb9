"""A chunk that is sound and not the one that was written raises, however its rows are read."""

import pickle
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import open_samples
from mmcnb.samples._base import open_again
from mmcnb.stores import (
    LabelsWriter,
    convert,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_class_labels,
    open_index,
    verify_store,
)
from mmcnb.stores import _write as writers
from mmcnb.stores._labels import read_column

pytestmark = pytest.mark.slow

ROWS, CHUNK = 600, 100
KEPT = Path(__file__).parents[1] / "data/stores/0.2.0"
MATCH = (
    r"chunks? \S+ (is|are) not what was written: restore it.*changed on purpose, delete the attribute mmcnb"
)


def write(path, layout, seed):
    """A store of six chunks with class labels and names of rows; other seeds give other numbers."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((ROWS, 5)) < 0.5, rng.integers(1, 200, (ROWS, 5)), 0)
    y, names = rng.integers(0, 3, ROWS), np.array([f"{seed}:{row}" for row in range(ROWS)])
    if layout == "csr":
        writer = create_csr_store(path, 5)
    else:
        writer = create_dense_store(path, 5, dtype="u1" if layout == "bytes" else "f8", chunk_rows=CHUNK)
    with writer:
        if layout == "csr":
            indptr = np.concatenate([[0], np.cumsum((values > 0).sum(axis=1))])
            columns = np.nonzero(values)[1]
            writer.append(values[values > 0].astype("f4"), columns, indptr, y)
        else:
            writer.append(values, y)
        writer.append_index(names)
    return path


@pytest.fixture(params=["dense", "bytes", "csr"])
def store(request, tmp_path, monkeypatch):
    """A store of several chunks in each array, and another version of it beside."""
    monkeypatch.setattr(writers, "CSR_CHUNK_VALUES", 150)
    monkeypatch.setattr(writers, "LABEL_CHUNK_ROWS", CHUNK)
    write(tmp_path / "other.zarr", request.param, 1)
    return write(tmp_path / "a.zarr", request.param, 0)


def swap(store, path):
    """Exchange the second and the third chunk of an array."""
    folder = store / path / "c"
    first, second = (file / "0" if file.is_dir() else file for file in (folder / "1", folder / "2"))
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def stale(store, path):
    """Put the second chunk of another version of the store in place of its own."""
    name = next(file for file in (store / path / "c/1", store / path / "c/1/0") if file.is_file())
    shutil.copy(store.with_name("other.zarr") / name.relative_to(store), name)


def parts_of(store):
    """The arrays of the rows of a store."""
    return ["X/data", "X/indices"] if (store / "X/data").is_dir() else ["X"]


READS = {
    "a pass": lambda samples: [samples.block(start, start + 200) for start in range(0, ROWS, 200)],
    "a part of a chunk": lambda samples: samples.block(CHUNK + 5, CHUNK + 15),
    "single rows": lambda samples: samples.gather(np.array([CHUNK + 10])),
    "a digest": lambda samples: type(samples).digest.func(samples),
}


@pytest.mark.parametrize("exchange", [swap, stale])
@pytest.mark.parametrize("how", READS)
def test_rows(store, exchange, how):
    for path in parts_of(store):
        whole = store.with_name("whole.zarr")
        shutil.copytree(store, whole)
        READS[how](open_samples(store))
        exchange(store, path)
        with pytest.raises(DamagedStoreError, match=MATCH):
            READS[how](open_samples(store))
        with pytest.raises(DamagedStoreError, match=f"{path}/c/1.* not what was written|missing or damaged"):
            verify_store(store)
        shutil.rmtree(store)
        whole.rename(store)


@pytest.mark.parametrize("store", ["dense"], indirect=True)
@pytest.mark.parametrize("exchange", [swap, stale])
@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("y", open_class_labels),
        ("y", lambda store: read_column(store / "y", "sample_weight")),
        ("y", describe_store),
        ("y", lambda store: convert(store, store.with_name("copy.zarr"))),
        ("index", open_index),
        ("index", lambda store: convert(store, store.with_name("copy.zarr"))),
    ],
)
def test_what_stands_beside_rows(store, exchange, path, read):
    exchange(store, path)
    with pytest.raises(DamagedStoreError, match=MATCH):
        read(store)
    with pytest.raises(DamagedStoreError, match=f"{path}/c/1"):
        verify_store(store)


@pytest.mark.parametrize("place", ["zip", "memory", "element", "opened", "pickled"])
def test_any_way_to_the_store(store, place):
    swap(store, parts_of(store)[0])
    if place == "zip":
        source = shutil.make_archive(str(store), "zip", store)
    elif place == "memory":
        fsspec = pytest.importorskip("fsspec", reason="stores behind addresses are an optional extra")
        memory = fsspec.filesystem("memory")
        memory.store.clear()
        for file in store.rglob("*"):
            if file.is_file():
                memory.pipe_file(f"/a.zarr/{file.relative_to(store).as_posix()}", file.read_bytes())
        source = "memory://a.zarr"
    else:
        source = {"element": store / "X", "opened": zarr.open_group(store, mode="r")}.get(place, store)
    samples = open_samples(source)
    if place == "pickled":
        open_again.cache_clear()  # as in a process that has not opened it yet
        samples = pickle.loads(pickle.dumps(samples))
    for read in READS.values():
        with pytest.raises(DamagedStoreError, match=MATCH):
            read(samples)


def test_labels_that_were_written(tmp_path):
    for name, labels in (("l.zarr", np.arange(200_000) // 1000), ("other.zarr", np.arange(200_000) // 900)):
        with LabelsWriter(tmp_path / name, len(labels)) as writer:
            starts = range(0, len(labels), writer.chunk_rows)
            rows = writer.chunk_rows
            writer.finish_chunks(
                [writer.sink().write(start, labels[start : start + rows]) for start in starts]
            )
    swap(tmp_path / "l.zarr", "")
    with pytest.raises(DamagedStoreError, match=MATCH):
        read_column(tmp_path / "l.zarr", "y")
    swap(tmp_path / "l.zarr", "")
    assert len(read_column(tmp_path / "l.zarr", "y")) == 200_000
    stale(tmp_path / "l.zarr", "")
    with pytest.raises(DamagedStoreError, match=MATCH):
        read_column(tmp_path / "l.zarr", "y")
    with pytest.raises(DamagedStoreError, match="c/1 is"):
        verify_store(tmp_path / "l.zarr")


@pytest.mark.parametrize("exchange", [swap, stale])
def test_fit_and_predict(store, exchange):
    model = mmcnb.UnsupervisedRLS(n_clusters=2, n_landmarks=20, random_state=0).fit(store)
    exchange(store, parts_of(store)[0])
    for call in (model.fit, model.predict, partial(model.predict, out=store.with_name("labels.zarr"))):
        with pytest.raises(DamagedStoreError, match=MATCH):
            call(store)
    assert not store.with_name("labels.zarr").exists()


@pytest.mark.parametrize("store", ["dense", "csr"], indirect=True)
@pytest.mark.parametrize("recorded", ["some", "all"])
def test_a_checkpoint_on_a_store_whose_chunks_were_exchanged(store, tmp_path, recorded):
    def fit(**parameters):
        model = mmcnb.UnsupervisedRLS(n_clusters=2, n_landmarks=20, n_init=1, random_state=0, **parameters)
        return model.fit(store)

    fit(checkpoint=tmp_path / "checkpoint")
    if recorded == "some":
        sorted((tmp_path / "checkpoint/passes").iterdir())[-1].unlink()
    swap(store, parts_of(store)[0])
    with pytest.raises(DamagedStoreError, match=MATCH):
        fit(checkpoint=tmp_path / "checkpoint")
    swap(store, parts_of(store)[0])
    fit(checkpoint=tmp_path / "checkpoint")
    shutil.copy(tmp_path / "other.zarr/zarr.json", store / "zarr.json")
    with pytest.raises(InputError, match=r"the rows differ|metadata is not what was written"):
        fit(checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize("name", ["dense", "bytes", "csr", "labels"])
def test_stores_of_the_first_format_are_checked_too(name, tmp_path):
    store = tmp_path / f"{name}.zarr"
    shutil.copytree(KEPT / store.name, store)
    if name == "labels":
        shutil.copy(store / "c/0", store / "c/1")
    else:
        swap(store, parts_of(store)[0])
    with pytest.raises(DamagedStoreError, match=MATCH):
        read_column(store, "y") if name == "labels" else open_samples(store).block(0, 90)
    with pytest.raises(DamagedStoreError, match="missing or damaged"):
        verify_store(store)


def test_a_store_changed_on_purpose_is_read_without_its_attribute(store, tmp_path):
    swap(store, parts_of(store)[0])
    del zarr.open_group(store).attrs["mmcnb"]
    if parts_of(store) == ["X"]:  # rows of exchanged data of CSR may no longer be canonical
        convert(store, tmp_path / "again.zarr")
        again, changed = open_samples(tmp_path / "again.zarr"), open_samples(store)
        assert again.checksummed
        assert not changed.checksummed
        assert np.array_equal(again.block(0, ROWS), changed.block(0, ROWS))


def test_a_store_of_a_later_version_says_so(store):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmcnb.samples._inventory.FORMAT", 99)
        write(store.with_name("later.zarr"), "dense", 0)
    with pytest.raises(InputError, match="later version of mmcnb, in format 99: update mmcnb") as caught:
        open_samples(store.with_name("later.zarr"))
    assert not isinstance(caught.value, DamagedStoreError)
