"""Chunks in shards are read as Zarr reads them, and what is wrong with a shard is one sentence."""

import google_crc32c
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec

from mmcnb import open_samples
from tests.samples.common import COMPRESS, one_sentence, rows_of

ROWS = 1003
COLUMNS = 3
VALUES = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)


def create(path, chunk=100, per_shard=4, location="end", compressor=None, index=None):
    """An array in shards of so many chunks."""
    codec = ShardingCodec(
        chunk_shape=(chunk, COLUMNS),
        codecs=[BytesCodec(), compressor or ZstdCodec()],
        index_codecs=index or [BytesCodec(), Crc32cCodec()],
        index_location=location,
    )
    shape = {
        "shape": VALUES.shape,
        "chunks": (chunk * per_shard, COLUMNS),
        "dtype": VALUES.dtype,
    }
    return zarr.create_array(
        path, **shape, serializer=codec, compressors=None, fill_value=7
    )


@pytest.mark.slow
@given(
    chunk=st.integers(1, 300),
    per_shard=st.integers(1, 8),
    written=st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted),
    read=st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted),
    location=st.sampled_from(["start", "end"]),
)
@settings(max_examples=50)
def test_any_rows_of_any_shards_are_those_of_zarr(
    tmp_path_factory, chunk, per_shard, written, read, location
):
    """Some rows are written, and others have the value of gaps."""
    path = tmp_path_factory.mktemp("shards") / "a.zarr"
    array = create(path, chunk, per_shard, location)
    array[slice(*written)] = VALUES[slice(*written)]
    samples = open_samples(path)
    assert samples.block(*read).tobytes() == np.asarray(array[slice(*read)]).tobytes()
    assert samples.block(0, ROWS).tobytes() == np.asarray(array[:]).tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"location": "start"},
        {"location": "end"},
        {"compressor": BloscCodec()},
        {"index": [BytesCodec()]},
        {"index": [BytesCodec(endian="big"), Crc32cCodec()]},
    ],
)
def test_shards_of_any_codecs_are_read(tmp_path, options):
    create(tmp_path / "a.zarr", **options)[:] = VALUES
    assert np.array_equal(rows_of(tmp_path / "a.zarr"), VALUES)


@pytest.fixture
def shard(tmp_path):
    """The file of the second shard of a store, whose index has 68 bytes."""
    create(tmp_path / "a.zarr")[:] = VALUES
    return tmp_path / "a.zarr/c/1/0"


def assert_damaged(shard, match=""):
    """The second shard is refused, and the first is read."""
    samples = open_samples(shard.parents[2])
    assert np.array_equal(samples.block(0, 400), VALUES[:400])
    with one_sentence(rf"chunk c/1/0 is damaged \(.*{match}.*\): restore it .*\.$"):
        samples.block(300, ROWS)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-70],
        lambda content: content[:50],
        lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
        lambda content: content[:-1] + bytes([content[-1] ^ 128]),
        lambda content: content[:1000] + bytes(500) + content[1500:],
    ],
    ids=["cut", "short", "index", "checksum", "chunk"],
)
def test_a_damaged_shard_is_one_sentence(shard, damage):
    shard.write_bytes(damage(shard.read_bytes()))
    assert_damaged(shard)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ((2**63 + 5, 100), "it ends within a chunk"),
        ((0, 2**40), "it is longer than"),
        ((2**64 - 1, 100), "it ends within a chunk"),
        ((0, 0), "does not have 1200 bytes"),
    ],
)
def test_an_index_that_points_nowhere_is_one_sentence(shard, entry, match):
    content = shard.read_bytes()
    index = np.frombuffer(content[-68:-4], "<u8").reshape(4, 2).copy()
    index[1] = entry
    checksum = google_crc32c.value(index.tobytes()).to_bytes(4, "little")
    shard.write_bytes(content[:-68] + index.tobytes() + checksum)
    assert_damaged(shard, match)


def test_a_shard_that_is_no_file_is_one_sentence(shard):
    shard.unlink()
    shard.mkdir()
    assert_damaged(shard, "it is not a regular file")


@pytest.mark.parametrize("rows", [99, 100, 101])
def test_a_frame_need_not_say_how_much_it_holds(tmp_path, rows):
    path = tmp_path / "a.zarr"
    zarr.create_array(
        path, data=VALUES[:100], chunks=(100, COLUMNS), compressors=ZstdCodec()
    )
    (path / "c/0/0").write_bytes(COMPRESS[".zst"](VALUES[:rows].tobytes()))
    if rows == 100:
        assert np.array_equal(rows_of(path), VALUES[:100])
    else:
        with one_sentence(r"damaged \(the chunk does not have 1200 bytes\)"):
            rows_of(path)
