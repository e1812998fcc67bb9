"""Chunks that are decoded here have the numbers that Zarr reads, whatever wrote them."""

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec
from zarr.storage import LocalStore, MemoryStore, ZipStore

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import open_index
from tests.samples.common import one_sentence, rows_of, same_bits

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
CODECS = [(2, name) for name in SECOND] + [(3, name) for name in THIRD]


@st.composite
def arrays(draw):
    """How an array is stored, the numbers in it, and the rows that are written."""
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 9)))
    chunks = tuple(draw(st.integers(1, n + 3)) for n in shape)
    version, codec = draw(st.sampled_from(CODECS))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    options = {"shape": shape, "chunks": chunks, "zarr_format": version, "dtype": dtype}
    options["compressors"] = (SECOND if version == 2 else THIRD)[codec]
    options["fill_value"] = draw(st.sampled_from([0, 1]))
    if version == 2:
        options["order"] = draw(st.sampled_from("CF"))
    else:
        options["serializer"] = BytesCodec(endian="big" if dtype.str[0] == ">" else "little")
        if draw(st.booleans()):
            options["shards"] = tuple(
                -(-n // length) * length for n, length in zip(shape, chunks, strict=True)
            )
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 5, shape).astype(dtype)
    start, stop = sorted(draw(st.tuples(*[st.integers(0, shape[0])] * 2)))
    return options, values, slice(start, stop)


@pytest.mark.slow
@settings(max_examples=100)
@given(arrays(), st.sampled_from(["folder", "memory", "zip"]), st.data())
def test_any_rows_have_the_bits_that_zarr_reads(tmp_path_factory, array, kind, data):
    options, values, written = array
    path = tmp_path_factory.mktemp("codecs") / f"rows.{kind}"
    store = MemoryStore()
    if kind != "memory":
        store = LocalStore(path) if kind == "folder" else ZipStore(path, mode="w")
    stored = zarr.create_array(store, name="X", **options)
    stored[written] = values[written]
    if kind == "zip":
        store.close()
        store = ZipStore(path, mode="r")
    stored = zarr.open_array(store, path="X", mode="r")
    samples = open_samples(stored)
    expected = stored[...].astype(samples.dtype)
    start = data.draw(st.integers(0, len(values) - 1))
    stop = data.draw(st.integers(start + 1, len(values)))
    assert same_bits(samples.block(start, stop), expected[start:stop])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))), np.int64)
    assert same_bits(samples.gather(rows), expected[rows])


@pytest.mark.parametrize(("version", "codec"), CODECS)
@pytest.mark.parametrize(
    "damage", [lambda content: content[:-3], lambda content: bytes(9), lambda content: content * 2]
)
def test_a_damaged_chunk_is_named_with_its_array(tmp_path, version, codec, damage):
    path = tmp_path / "a.zarr"
    values = np.arange(80.0).reshape(20, 4)
    codecs = SECOND if version == 2 else THIRD
    zarr.create_array(
        path, name="X", data=values, chunks=(5, 4), compressors=codecs[codec], zarr_format=version
    )
    assert np.array_equal(rows_of(path), values)
    key = "X/1.0" if version == 2 else "X/c/1/0"
    (path / key).write_bytes(damage((path / key).read_bytes()))
    samples = open_samples(path)
    assert np.array_equal(samples.block(10, 20), values[10:])
    with one_sentence(rf"a\.zarr: chunk {key} is damaged \(.*restore it", DamagedStoreError):
        samples.block(0, 20)


def test_a_chunk_of_texts_makes_place_for_no_more_than_it_has(tmp_path):
    path = tmp_path / "a.zarr"
    texts = np.array([f"row {row}" for row in range(20)], np.dtypes.StringDType())
    zarr.create_array(path, name="X", data=np.eye(20))
    zarr.create_array(path, name="index", data=texts, chunks=(5,), compressors=None)
    assert open_index(path).tolist() == texts.tolist()
    chunk = path / "index/c/1"
    chunk.write_bytes((2**32 - 1).to_bytes(4, "little") + chunk.read_bytes()[4:])
    with one_sentence(r"claims? to have more than 5 texts", DamagedStoreError):
        open_index(path)
