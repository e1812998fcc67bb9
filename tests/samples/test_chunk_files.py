"""Files of chunks that cannot be: much too long, or no regular files."""

import os
import tracemalloc

import numpy as np
import pytest
import zarr

from mmcnb.errors import DamagedStoreError
from mmcnb.samples import open_samples
from mmcnb.stores import create_dense_store

ROWS = np.random.default_rng(0).normal(size=(600, 3))


def ours(path):
    with create_dense_store(path, 3, dtype="float64") as writer:
        writer.append(ROWS)


def foreign(path, **options):
    zarr.create_array(path, shape=ROWS.shape, chunks=(200, 3), dtype="f8", **options)[:] = ROWS


STORES = {
    "ours": ours,
    "zstd": foreign,
    "blosc": lambda path: foreign(path, compressors=[zarr.codecs.BloscCodec()]),
    "version 2": lambda path: foreign(path, zarr_format=2),
    "shards": lambda path: foreign(path, shards=(400, 3)),
    "columns": lambda path: zarr.create_array(path, data=ROWS, chunks=(200, 1)),
}


@pytest.fixture(params=STORES)
def chunk(request, tmp_path):
    """The file of a chunk, or of a shard, of a store."""
    STORES[request.param](tmp_path / "rows.zarr")
    files = (path for path in sorted((tmp_path / "rows.zarr").rglob("*")) if path.is_file())
    return next(path for path in files if path.suffix != ".json" and not path.name.startswith(".z"))


def test_a_chunk_that_is_much_too_long_is_not_read(chunk, tmp_path):
    os.truncate(chunk, 200 * 2**20)
    samples = open_samples(tmp_path / "rows.zarr")
    tracemalloc.start()
    with pytest.raises(DamagedStoreError, match=r"rows\.zarr: .*longer than"):
        samples.block(0, 600)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20
