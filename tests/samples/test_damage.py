"""Damage to a store we wrote raises; wrong numbers never come out of it."""

import shutil

import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb import InputError, open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import (
    create_csr_store,
    create_dense_store,
    open_class_labels,
    verify_store,
)
from tests.samples.common import one_sentence, rows_of

ROWS = 600


def contents(path):
    """All that a reader sees of a store."""
    samples = open_samples(path)
    block = samples.block(0, samples.n_samples)
    parts = block[:3] if samples.is_sparse else (block,)
    return [
        samples.n_features,
        *(part.tolist() for part in parts),
        open_class_labels(path).tolist(),
    ]


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
        rows = scipy.sparse.random_array(
            (ROWS, 30), density=0.2, rng=rng, dtype=np.float32, format="csr"
        )
        with create_csr_store(path, 30) as writer:
            writer.append(rows, y=y)
    else:
        dtype = "u1" if request.param == "bytes" else "f4"
        with create_dense_store(path, 5, dtype=dtype, chunk_rows=200) as writer:
            writer.append(rng.integers(0, 256, size=(ROWS, 5)), y)
    return path


@pytest.fixture
def ten_chunks(tmp_path):
    """A store of ten chunks, and the file of the eighth."""
    path = tmp_path / "a.zarr"
    with create_dense_store(path, 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(1000, 5)))
    return path, path / "X/c/7/0"


def flip(file, place, bit=1):
    """Turn a bit of a file."""
    content = bytearray(file.read_bytes())
    content[place] ^= bit
    file.write_bytes(content)


def files_of(path):
    """All files of a store."""
    return sorted(file for file in path.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_flipped_bit_is_never_silently_wrong(store):
    rng = np.random.default_rng(1)
    good = contents(store)
    noticed = 0
    for file in files_of(store):
        whole = file.read_bytes()
        # The first bytes of a frame say whether it has a checksum; then places drawn at
        # random.
        places = [
            *range(min(12, len(whole))),
            *rng.integers(len(whole), size=8).tolist(),
        ]
        for place in places:
            flip(file, place, 1 << int(rng.integers(8)))
            seen = contents_or_error(store)
            noticed += isinstance(seen, str)
            assert seen == good or (isinstance(seen, str) and "\n" not in seen), (
                file.name,
                place,
            )
            file.write_bytes(whole)
    assert noticed > 80
    assert contents(store) == good


def test_a_cut_or_missing_file_is_noticed(store):
    good = contents(store)
    for file in files_of(store):
        whole = file.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:length])
            with one_sentence(None, DamagedStoreError):
                contents(store)
        file.unlink()
        key = file.relative_to(store).as_posix()
        is_document = file.name == "zarr.json"
        if key != "zarr.json":
            match = (
                "metadata" if is_document else f"{key} is missing.*restore it.*convert"
            )
            with one_sentence(match, DamagedStoreError):
                open_samples(store)
        if key.startswith("y/c"):
            with one_sentence("y/c/0 is missing or damaged", DamagedStoreError):
                verify_store(store)
        file.write_bytes(whole)
    assert contents(store) == good


def test_a_chunk_lost_after_opening_is_noticed(store):
    samples = open_samples(store)
    shutil.rmtree(
        next(
            folder for folder in store.rglob("c") if folder.parent.name in ("X", "data")
        )
    )
    with one_sentence("missing", DamagedStoreError):
        samples.block(0, ROWS)
    with one_sentence("missing", DamagedStoreError):
        samples.gather(np.array([0, ROWS - 1]))


def test_a_damaged_chunk_is_named_by_its_key(ten_chunks):
    path, file = ten_chunks
    flip(file, 50)
    samples = open_samples(path)
    assert samples.block(0, 700).shape == (700, 5)
    with one_sentence(
        r"chunk X/c/7/0 is damaged.*restore it.*convert", DamagedStoreError
    ):
        samples.block(0, 1000)
    with one_sentence("X/c/7/0", DamagedStoreError):
        verify_store(path)


def test_a_user_may_add_attributes_and_arrays(store):
    good = contents(store)
    group = zarr.open_group(store)
    group.attrs["note"] = "mine"
    group.create_array("extra", shape=(3,), dtype="f4")
    assert contents(store) == good
    assert verify_store(store)["checksummed"]


def test_a_store_changed_on_purpose_is_refused(store):
    zarr.open_group(store)["y"].resize((ROWS + 10,))
    with one_sentence(r"metadata is not what was written.*convert", DamagedStoreError):
        open_samples(store)


def test_a_consolidated_copy_of_the_metadata_is_not_trusted(ten_chunks):
    path = ten_chunks[0]
    rows = rows_of(path)
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(path)
    document = path / "zarr.json"
    document.write_text(document.read_text().replace('"little"', '"big"'))
    for source in (path, zarr.open_group(path, mode="r")):
        assert np.array_equal(rows_of(source), rows)
