"""Chunks that are decoded here have the numbers that Zarr reads, whatever wrote them."""

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import open_index
from tests.samples.common import one_sentence, rows_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*Numcodecs codecs are not in the Zarr version 3"
)
DTYPES = "<f4", ">f4", "<f8", ">f8", "|i1", "|u1", "<i2", ">u4", "<i8", "|b1"
# the codec inside, and the shuffle
BLOSC = [
    ("lz4", 1),
    ("zstd", 2),
    ("blosclz", 0),
    ("zlib", 1),
]
SECOND = {
    "none": None,
    "zstd": numcodecs.Zstd(),
    "lz4": numcodecs.LZ4(),
    "gzip": numcodecs.GZip(),
    "zlib": numcodecs.Zlib(),
    "bz2": numcodecs.BZ2(),
    **{
        f"blosc {name} {shuffle}": numcodecs.Blosc(name, shuffle=shuffle)
        for name, shuffle in BLOSC
    },
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


@pytest.mark.parametrize(
    ("number", "version", "codec"), [(n, *CODECS[n % len(CODECS)]) for n in range(20)]
)
def test_chunks_are_decoded_as_by_zarr_and_a_damaged_one_is_named(
    tmp_path, number, version, codec
):
    """Numbers of each type, by each codec, in chunks that end beyond the rows and the columns."""
    path = tmp_path / "a.zarr"
    dtype = np.dtype(DTYPES[number % len(DTYPES)])
    values = np.random.default_rng(number).integers(0, 2, (18, 4)).astype(dtype)
    options = {
        "compressors": (SECOND if version == 2 else THIRD)[codec],
        "zarr_format": version,
    }
    if version == 2:
        options["order"] = "CF"[number % 2]
    else:
        options["serializer"] = BytesCodec(
            endian="big" if dtype.str[0] == ">" else "little"
        )
    zarr.create_array(path, name="X", data=values, chunks=(5, 3), **options)
    assert np.array_equal(rows_of(path), values)
    key = "X/1.0" if version == 2 else "X/c/1/0"
    whole = (path / key).read_bytes()
    for damaged in (whole[:-3], bytes(9), whole * 2):
        (path / key).write_bytes(damaged)
        samples = open_samples(path)
        assert np.array_equal(samples.block(10, 18), values[10:])
        with one_sentence(
            rf"a\.zarr: chunk {key} is damaged \(.*restore it", DamagedStoreError
        ):
            samples.block(0, 18)


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
