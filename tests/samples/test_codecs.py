"""Chunks that are decoded here have the numbers that Zarr reads, whatever wrote them."""

from types import SimpleNamespace

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec
from zarr.storage import LocalStore, MemoryStore, ZipStore

from mmcnb.errors import DamagedStoreError
from mmcnb.samples._inventory import codec_setting
from mmcnb.samples._zarr import stored_array

pytestmark = pytest.mark.filterwarnings("ignore:.*Numcodecs codecs are not in the Zarr version 3")
DTYPES = "<f4", ">f4", "<f8", ">f8", "|i1", "|u1", "<i2", ">u4", "<i8", "|b1"
BLOSC = [("lz4", 1), ("zstd", 2), ("blosclz", 0), ("zlib", 1)]  # the codec inside, and the shuffle
SECOND = {
    "none": None,
    "zstd": numcodecs.Zstd(),
    "lz4": numcodecs.LZ4(),
    "gzip": numcodecs.GZip(),
    "zlib": numcodecs.Zlib(),
    "bz2": numcodecs.BZ2(),
    **{f"blosc {name} {shuffle}": numcodecs.Blosc(name, shuffle=shuffle) for name, shuffle in BLOSC},
}
THIRD = {
    "none": None,
    "zstd": ZstdCodec(),
    "zstd with checksum": ZstdCodec(checksum=True),
    "blosc": BloscCodec(cname="lz4"),
    "blosc zstd": BloscCodec(cname="zstd", shuffle="bitshuffle"),
    "gzip": GzipCodec(),
}


@st.composite
def arrays(draw):
    """How an array is stored, the numbers in it, and the chunks that are written."""
    shape = draw(st.one_of(st.tuples(st.integers(1, 40)), st.tuples(st.integers(1, 40), st.integers(1, 9))))
    chunks = tuple(draw(st.integers(1, n + 3)) for n in shape)
    version = draw(st.sampled_from([2, 3]))
    codecs = SECOND if version == 2 else THIRD
    told = {"shape": shape, "chunks": chunks, "zarr_format": version}
    told["dtype"] = dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    told["compressors"] = codecs[draw(st.sampled_from(list(codecs)))]
    told["fill_value"] = draw(st.sampled_from([0, 1, *([float("nan")] * (dtype.kind == "f"))]))
    if version == 2:
        told["order"] = draw(st.sampled_from("CF"))
    else:
        told["serializer"] = BytesCodec(endian="big" if dtype.str[0] == ">" else "little")
        if draw(st.booleans()):
            told["shards"] = tuple(-(-n // length) * length for n, length in zip(shape, chunks, strict=True))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 5, shape).astype(dtype)
    start, stop = sorted(draw(st.tuples(*[st.integers(0, shape[0])] * 2)))
    return told, values, slice(start, stop)


@settings(max_examples=300)
@given(arrays(), st.data())
@pytest.mark.parametrize("kind", ["folder", "memory", "zip"])
def test_any_slice_has_the_bits_that_zarr_reads(tmp_path_factory, kind, array, data):
    told, values, written = array
    folder = tmp_path_factory.mktemp("codecs")
    store = {"folder": LocalStore, "zip": ZipStore, "memory": lambda path: MemoryStore()}[kind](
        folder / "rows.zarr"
    )
    if kind == "zip":
        store = ZipStore(folder / "rows.zip", mode="w")
    stored = zarr.create_array(store, name="X", **told)
    stored[written] = values[written]
    if kind == "zip":
        store.close()
        store = ZipStore(folder / "rows.zip", mode="r")
    stored = zarr.open_array(store, path="X", mode="r")
    own, expected = stored_array(stored), stored[...]
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(values))] * 2)))
    found = own.read(start, stop)
    assert found.dtype == told["dtype"].newbyteorder("=")
    np.testing.assert_array_equal(found, expected[start:stop])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))), np.int64)
    np.testing.assert_array_equal(own.gather(rows), expected[rows])
    assert own._codec is not None or "shards" in told


ENCODED = [(2, name) for name in SECOND] + [(3, name) for name in THIRD]


@pytest.mark.parametrize("order", ["big", "little"])
def test_settings_of_a_codec_are_told_as_they_are_stored(order):
    """Zarr 3.1 has them as members of an enumeration, Zarr 3.4 as texts."""
    codec = BytesCodec(endian=order)
    assert codec_setting(codec, "endian") == order
    stored = SimpleNamespace(
        to_dict=lambda: {"name": "bytes", "configuration": {"endian": order}}, endian=order
    )
    assert codec_setting(stored, "endian") == order
    assert codec_setting(SimpleNamespace(to_dict=lambda: {"name": "crc32c"}), "endian") is None


@pytest.mark.parametrize(("version", "codec"), ENCODED)
@pytest.mark.parametrize(
    "damage", [lambda content: content[:-3], lambda content: bytes(9), lambda content: content * 2]
)
def test_a_damaged_chunk_is_named_with_its_array(tmp_path, version, codec, damage):
    told = {"compressors": (SECOND if version == 2 else THIRD)[codec], "zarr_format": version}
    zarr.create_array(
        tmp_path / "a.zarr", name="X", data=np.arange(80.0).reshape(20, 4), chunks=(5, 4), **told
    )
    key = "X/1.0" if version == 2 else "X/c/1/0"
    path = tmp_path / "a.zarr" / key
    content = damage(path.read_bytes())
    path.write_bytes(content)
    own = stored_array(zarr.open_array(tmp_path / "a.zarr", path="X", mode="r"))
    np.testing.assert_array_equal(own.read(10, 20), np.arange(40.0, 80.0).reshape(10, 4))
    with pytest.raises(DamagedStoreError, match=rf"a\.zarr: chunk {key} is damaged \([^\n]*restore it"):
        own.read(0, 20)


def test_a_chunk_of_texts_makes_place_for_no_more_than_it_has(tmp_path):
    texts = np.array([f"row {row}" for row in range(20)], np.dtypes.StringDType())
    array = zarr.create_array(tmp_path / "a.zarr", data=texts, chunks=(5,), compressors=None)
    np.testing.assert_array_equal(stored_array(array).read(3, 17), texts[3:17])
    path = tmp_path / "a.zarr" / "c" / "1"
    path.write_bytes((2**32 - 1).to_bytes(4, "little") + path.read_bytes()[4:])
    with pytest.raises(DamagedStoreError, match=r"claims? to have more than 5 texts"):
        stored_array(array).read(0, 20)
