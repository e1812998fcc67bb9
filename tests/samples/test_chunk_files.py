"""A chunk that is much longer than it can be is refused before it is read."""

import os
import tracemalloc

import numpy as np
import pytest
import zarr

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import create_dense_store
from tests.samples.common import one_sentence

ROWS = np.random.default_rng(0).normal(size=(600, 3))


def ours(path):
    with create_dense_store(path, 3, dtype="float64") as writer:
        writer.append(ROWS)


def foreign(path, **options):
    zarr.create_array(path, data=ROWS, chunks=(200, 3), **options)


STORES = {
    "ours": ours,
    "zstd": foreign,
    "blosc": lambda path: foreign(path, compressors=[zarr.codecs.BloscCodec()]),
    "version 2": lambda path: foreign(path, zarr_format=2),
    "shards": lambda path: foreign(path, shards=(400, 3)),
    "columns": lambda path: zarr.create_array(path, data=ROWS, chunks=(200, 1)),
}


@pytest.mark.parametrize("kind", STORES)
def test_a_chunk_that_is_much_too_long_is_not_read(tmp_path, kind):
    STORES[kind](tmp_path / "rows.zarr")
    files = [path for path in (tmp_path / "rows.zarr").rglob("*") if path.is_file()]
    chunk = next(
        path
        for path in files
        if path.suffix != ".json" and not path.name.startswith(".z")
    )
    os.truncate(chunk, 200 * 2**20)
    samples = open_samples(tmp_path / "rows.zarr")
    tracemalloc.start()
    with one_sentence(r"rows\.zarr: .*longer than", DamagedStoreError):
        samples.block(0, 600)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20
