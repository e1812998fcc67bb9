"""Chunks in shards are read as Zarr reads them, and what is wrong with a shard is one sentence."""

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec

from mmcnb import InputError
from mmcnb.samples import _stored, open_samples

ROWS, COLUMNS = 1003, 3


def write(path, chunk, per_shard, values, location="end", compressor=None, index=None):
    """An array in shards of so many chunks, of which only some rows are written."""
    codec = ShardingCodec(
        chunk_shape=(chunk, COLUMNS),
        codecs=[BytesCodec(), compressor or ZstdCodec()],
        index_codecs=index or [BytesCodec(), Crc32cCodec()],
        index_location=location,
    )
    array = zarr.create_array(
        path,
        shape=values.shape,
        dtype=values.dtype,
        chunks=(chunk * per_shard, COLUMNS),
        serializer=codec,
        compressors=None,
        fill_value=7,
    )
    assert array.shards == (chunk * per_shard, COLUMNS)
    return array


def values(rows=ROWS):
    return np.random.default_rng(0).normal(size=(rows, COLUMNS)).astype(np.float32)


@pytest.fixture
def read_alone(monkeypatch):
    """Zarr reads no chunk."""
    monkeypatch.delattr(_stored.StoredArray, "_zarr_values")


@pytest.mark.slow
@given(
    chunk=st.integers(1, 300),
    per_shard=st.integers(1, 8),
    written=st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted),
    asked=st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted),
    location=st.sampled_from(["start", "end"]),
)
def test_any_rows_of_any_shards_are_those_of_zarr(
    tmp_path_factory, chunk, per_shard, written, asked, location
):
    path = tmp_path_factory.mktemp("shards") / "a.zarr"
    rows = slice(*written)
    array = write(path, chunk, per_shard, values(), location)
    array[rows] = values()[rows]
    samples = open_samples(path)
    assert samples.block(*asked).tobytes() == np.asarray(array[slice(*asked)]).tobytes()
    assert samples.block(0, ROWS).tobytes() == np.asarray(array[:]).tobytes()


@pytest.mark.parametrize("location", ["start", "end"])
def test_shards_of_zstd_frames_are_read_without_zarr(tmp_path, read_alone, location):
    write(tmp_path / "a.zarr", 100, 4, values(), location)[:] = values()
    assert np.array_equal(open_samples(tmp_path / "a.zarr").block(0, ROWS), values())


@pytest.mark.parametrize(
    "options",
    [
        {"compressor": BloscCodec()},
        {"index": [BytesCodec()]},
        {"index": [BytesCodec(endian="big"), Crc32cCodec()]},
    ],
)
def test_other_shards_are_read_by_zarr(tmp_path, options):
    write(tmp_path / "a.zarr", 100, 4, values(), **options)[:] = values()
    assert np.array_equal(open_samples(tmp_path / "a.zarr").block(0, ROWS), values())


def spoil(content, kind):
    """A shard of four chunks, damaged; its index has 68 bytes."""
    index = np.frombuffer(content[-68:-4], "<u8").reshape(4, 2)
    place, n_bytes = (int(value) for value in index[2])
    return {
        "cut": content[:-70],
        "short": content[:50],
        "index": content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
        "checksum": content[:-1] + bytes([content[-1] ^ 128]),
        "chunk": content[:place] + bytes(n_bytes) + content[place + n_bytes :],
    }[kind]


@pytest.mark.parametrize("kind", ["cut", "short", "index", "checksum", "chunk"])
def test_a_damaged_shard_is_one_sentence(tmp_path, kind):
    write(tmp_path / "a.zarr", 100, 4, values())[:] = values()
    shard = tmp_path / "a.zarr" / "c/1/0"
    shard.write_bytes(spoil(shard.read_bytes(), kind))
    samples = open_samples(tmp_path / "a.zarr")
    assert np.array_equal(samples.block(0, 400), values()[:400])
    with pytest.raises(InputError, match=r"^[^\n]*chunk c/1/0 is damaged \([^\n]*\): restore it [^\n]*\.$"):
        samples.block(300, ROWS)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ((2**63 + 5, 100), "it ends within a chunk"),
        ((0, 2**40), "it is longer than"),
        ((2**64 - 1, 100), "it ends within a chunk"),
        ((0, 0), "does not have 1200 bytes"),
    ],
)
def test_an_index_that_points_nowhere_is_one_sentence(tmp_path, entry, match):
    import google_crc32c

    write(tmp_path / "a.zarr", 100, 4, values())[:] = values()
    shard = tmp_path / "a.zarr" / "c/1/0"
    content = shard.read_bytes()
    index = np.frombuffer(content[-68:-4], "<u8").reshape(4, 2).copy()
    index[1] = entry
    places = index.tobytes()
    shard.write_bytes(content[:-68] + places + google_crc32c.value(places).to_bytes(4, "little"))
    with pytest.raises(InputError, match=rf"^[^\n]*chunk c/1/0 is damaged \([^\n]*{match}[^\n]*\): [^\n]*$"):
        open_samples(tmp_path / "a.zarr").block(0, ROWS)


@pytest.mark.parametrize("rows", [99, 100, 101])
def test_a_frame_need_not_say_how_much_it_holds(tmp_path, rows):
    import pyarrow as pa

    expected = values(100)
    array = zarr.create_array(
        tmp_path / "a.zarr", data=expected, chunks=(100, COLUMNS), compressors=ZstdCodec()
    )
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(values(rows).tobytes())
    (tmp_path / "a.zarr" / "c/0/0").write_bytes(sink.getvalue().to_pybytes())
    samples = open_samples(tmp_path / "a.zarr")
    if rows == 100:
        assert np.array_equal(samples.block(0, 100), np.asarray(array[:]))
        assert np.array_equal(samples.block(0, 100), expected)
    else:
        with pytest.raises(InputError, match=r"damaged \(the chunk does not have 1200 bytes\)"):
            samples.block(0, 100)


def test_a_shard_that_cannot_be_read_is_one_sentence(tmp_path):
    write(tmp_path / "a.zarr", 100, 4, values())[:] = values()
    shard = tmp_path / "a.zarr" / "c/1/0"
    shard.unlink()
    shard.mkdir()
    with pytest.raises(InputError, match=r"chunk c/1/0 is damaged \(it is no regular file"):
        open_samples(tmp_path / "a.zarr").block(0, ROWS)
