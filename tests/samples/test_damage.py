"""Damage to a store we wrote raises; wrong numbers never come out of it."""

import errno
import itertools
import re
import shutil

import numpy as np
import pytest
import scipy.sparse
import zarr
from numcodecs.zstd import Zstd

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import _limits, open_samples
from mmcnb.stores import LabelsWriter, create_csr_store, create_dense_store, open_class_labels, verify_store

ROWS = 600


def contents(path):
    """All that a reader sees of a store."""
    samples = open_samples(path)
    block = samples.block(0, samples.n_samples)
    parts = block[:3] if samples.is_sparse else (block,)
    labels = open_class_labels(path)
    return [samples.n_features, *(part.tolist() for part in parts), labels.tolist()]


def contents_or_error(path):
    """All that a reader sees, or the sentence that it is told."""
    try:
        return contents(path)
    except InputError as error:
        return str(error)


@pytest.fixture(params=["dense", "bytes", "csr"])
def store(request, tmp_path):
    """A small store of several chunks with class labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(-1, 2, size=ROWS)
    path = tmp_path / "whole.zarr"
    if request.param == "csr":
        rows = scipy.sparse.random_array((ROWS, 30), density=0.2, rng=rng, dtype=np.float32, format="csr")
        with create_csr_store(path, 30) as writer:
            writer.append(rows, y=y)
    else:
        dtype = "u1" if request.param == "bytes" else "f4"
        with create_dense_store(path, 5, dtype=dtype, chunk_rows=200) as writer:
            writer.append(rng.integers(0, 256, size=(ROWS, 5)), y)
    return path


def files_of(path):
    """All files of a store."""
    return sorted(file for file in path.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_flipped_bit_is_never_silently_wrong(store, tmp_path):
    rng = np.random.default_rng(1)
    good = contents(store)
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    noticed = 0
    for file in files_of(copy):
        whole = file.read_bytes()
        # The first bytes of a frame say whether it has a checksum; then places drawn at random.
        places = [*range(min(12, len(whole))), *rng.integers(len(whole), size=15).tolist()]
        for place in places:
            spoiled = bytearray(whole)
            spoiled[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(spoiled)
            seen = contents_or_error(copy)
            noticed += isinstance(seen, str)
            assert seen == good or (isinstance(seen, str) and "\n" not in seen), (file.name, place)
        file.write_bytes(whole)
    assert noticed > 100
    assert contents(copy) == good


def test_a_cut_or_empty_file_is_noticed(store):
    good = contents(store)
    for file in files_of(store):
        whole = file.read_bytes()
        for kept in (0, 1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:kept])
            with pytest.raises(DamagedStoreError):
                contents(store)
        file.write_bytes(whole)
    assert contents(store) == good


def test_a_missing_file_is_named_when_the_store_is_opened(store):
    for file in files_of(store):
        if file == store / "zarr.json":
            continue
        whole = file.read_bytes()
        file.unlink()
        key = file.relative_to(store).as_posix()
        match = "metadata" if file.name == "zarr.json" else f"{key} is missing.*restore it.*convert"
        with pytest.raises(DamagedStoreError, match=match):
            open_samples(store)
        file.write_bytes(whole)


def test_a_chunk_lost_after_opening_is_noticed(store):
    samples = open_samples(store)
    lost = next(file for file in files_of(store / "X") if file.name == "0" or file.parent.name == "c")
    lost.unlink()
    with pytest.raises(DamagedStoreError, match="missing"):
        samples.block(0, ROWS)
    with pytest.raises(DamagedStoreError, match="missing"):
        samples.gather(np.array([0, ROWS - 1]))


def test_a_damaged_chunk_is_named_by_its_key(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(1000, 5)))
    file = tmp_path / "a.zarr/X/c/7/0"
    spoiled = bytearray(file.read_bytes())
    spoiled[50] ^= 1
    file.write_bytes(spoiled)
    samples = open_samples(tmp_path / "a.zarr")
    assert samples.block(0, 700).shape == (700, 5)
    with pytest.raises(DamagedStoreError, match=r"chunk X/c/7/0 is damaged.*restore it.*convert"):
        samples.block(0, 1000)
    with pytest.raises(DamagedStoreError, match="X/c/7/0"):
        verify_store(tmp_path / "a.zarr")


@pytest.mark.parametrize("n_bytes", [0, 100, 255, 300, 1999, 2001, 100_000])
@pytest.mark.parametrize("checksum", [True, False])
def test_a_chunk_of_another_size_is_no_chunk(tmp_path, n_bytes, checksum):
    with create_dense_store(tmp_path / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(1000, 5)))
    file = tmp_path / "a.zarr/X/c/7/0"
    file.write_bytes(Zstd(level=1, checksum=checksum).encode(np.zeros(n_bytes, np.uint8)))
    with pytest.raises(DamagedStoreError, match="chunk X/c/7/0 is damaged"):
        open_samples(tmp_path / "a.zarr").block(700, 800)


def test_verify_finds_exchanged_chunks(tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(1000, 5)))
    chunks = tmp_path / "a.zarr/X/c"
    (chunks / "1").rename(chunks / "x")
    (chunks / "2").rename(chunks / "1")
    (chunks / "x").rename(chunks / "2")
    with pytest.raises(DamagedStoreError, match="X/c/1/0, X/c/2/0 are"):
        verify_store(tmp_path / "a.zarr")


def test_verify_lists_missing_and_damaged_chunks(store):
    y_chunk = next(file for file in files_of(store / "y") if file.name == "0")
    y_chunk.unlink()
    with pytest.raises(DamagedStoreError, match="y/c/0 is missing or damaged"):
        verify_store(store)


def test_labels_are_protected_too(tmp_path):
    with LabelsWriter(tmp_path / "l.zarr", 1000) as writer:
        writer.finish_chunks([writer.sink().write(0, np.arange(1000) % 2)])
    assert verify_store(tmp_path / "l.zarr")["checksummed"]
    file = tmp_path / "l.zarr/c/0"
    spoiled = bytearray(file.read_bytes())
    spoiled[-3] ^= 4
    file.write_bytes(spoiled)
    with pytest.raises(DamagedStoreError, match="c/0"):
        verify_store(tmp_path / "l.zarr")


def test_a_user_may_add_attributes_and_arrays(store):
    good = contents(store)
    group = zarr.open_group(store)
    group.attrs["note"] = "mine"
    group.create_array("extra", shape=(3,), dtype="f4")
    assert contents(store) == good
    assert verify_store(store)["checksummed"]


def test_a_consolidated_copy_of_the_metadata_is_not_trusted(tmp_path):
    rows = np.random.default_rng(0).normal(size=(100, 5))
    with create_dense_store(tmp_path / "a.zarr", 5) as writer:
        writer.append(rows)
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(tmp_path / "a.zarr")
    document = tmp_path / "a.zarr/zarr.json"
    document.write_text(document.read_text().replace('"little"', '"big"'))
    for source in (tmp_path / "a.zarr", zarr.open_group(tmp_path / "a.zarr", mode="r")):
        assert np.array_equal(open_samples(source).block(0, 100), rows.astype(np.float32))


def test_a_store_changed_on_purpose_is_refused(store):
    group = zarr.open_group(store)
    group["y"].resize((ROWS + 10,))
    with pytest.raises(DamagedStoreError, match=r"metadata is not what was written.*convert"):
        open_samples(store)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5])
def test_metadata_that_cannot_be_read_names_the_store(store, number, monkeypatch):
    """Whichever read of a document fails, be it the first one or a later one of the same document."""
    read, documents = _limits.read_document, itertools.count()

    def fail(path):
        if path.name == "zarr.json" and next(documents) == number:
            raise OSError(errno.EIO, "Input/output error")
        return read(path)

    monkeypatch.setattr(_limits, "read_document", fail)
    match = rf"^{re.escape(str(store))}[^\n]* cannot be read \(Input/output error\): [^\n]*\.$"
    with pytest.raises(DamagedStoreError, match=match):
        open_samples(store)
