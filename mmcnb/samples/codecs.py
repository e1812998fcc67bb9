"""How chunks of Zarr arrays are encoded, and how many bytes they may have.

A chunk that mmcnb writes is one zstd frame, which ends with a checksum of its content.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import zarr
from zarr.abc.codec import Codec
from zarr.codecs import BytesCodec, ZstdCodec
from zarr.registry import get_numcodec

from mmcnb.errors import damage

CODEC = ZstdCodec(level=1, checksum=True)
ZSTD: Any = get_numcodec({"id": "zstd", "level": CODEC.level, "checksum": True})  # type: ignore[typeddict-unknown-key]

_MAGIC = b"\x28\xb5\x2f\xfd"

# A chunk of these codecs begins with its decoded size.
SIZED = {name: get_numcodec({"id": name}) for name in ("zstd", "blosc", "lz4")}

# pyarrow's name of each codec; its decoder of gzip reads the header of zlib, too.
STREAMS = {"zstd": "zstd", "gzip": "gzip", "zlib": "gzip", "bz2": "bz2"}


def frame_checksum(frame: bytes) -> str:
    """Return the checksum that a zstd frame ends with, in hexadecimal digits.

    It is empty if the frame has none. The checksum is the low half of XXH64 of the
    content of the frame (RFC 8878, 3.1.1), and decoding compares the two. So comparing
    it with the recorded checksum tells at no cost which chunk this is.
    """
    has_checksum = frame[:4] == _MAGIC and len(frame) > 8 and frame[4] & 4
    return frame[-4:].hex() if has_checksum else ""


def most_bytes(array: zarr.Array) -> int:
    """Return how many bytes a stored chunk may have.

    Codecs lengthen a little the chunks that they cannot shorten.
    """
    return 2 * math.prod(array.chunks) * array.dtype.itemsize + 2**16


def codec_name(array: zarr.Array) -> str:
    """Return the codec that encodes the bytes of chunks; "" if there is none.

    In shards it is the codec of the inner chunks.
    """
    if not array.compressors:
        return ""
    codec = array.compressors[-1]
    class_name = type(codec).__name__.lower().removesuffix("codec")
    return str(getattr(codec, "codec_id", class_name))


@dataclass(frozen=True)
class ChunkCodec:
    """How chunks of numbers are encoded.

    Parameters
    ----------
    name : str
        A codec of `SIZED` or `STREAMS`, or "" if chunks are not compressed.
    dtype : dtype
        Of the numbers, with their byte order.
    shape : tuple of int
        Of a chunk; the last chunk along an axis is padded to it.
    order : {"C", "F"}
        Memory layout of a chunk.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"

    def decode(self, frame: bytes, out: np.ndarray, place: str) -> None:
        """Decode a chunk into ``out``, which is smaller where the array ends.

        Raises
        ------
        DamagedStoreError
            It cannot be decoded, or has another size; the message names the place.
        """
        is_direct = (
            self.order == "C"
            and out.shape == self.shape
            and out.dtype == self.dtype
            and out.flags.c_contiguous
        )
        whole = out if is_direct else np.empty(self.shape, self.dtype, self.order)
        with damage(f"{place} is damaged"):
            n_bytes = _decode(self.name, frame, whole.ravel("K").view(np.uint8))
            if n_bytes != whole.nbytes:
                raise ValueError(f"the chunk does not have {whole.nbytes} bytes")
        if not is_direct:
            out[...] = whole[tuple(map(slice, out.shape))]


def chunk_codec(array: zarr.Array) -> ChunkCodec | None:
    """Return how the chunks of an array are encoded.

    None if they are not numbers, or are encoded by several codecs or an unknown one.
    """
    metadata = array.metadata
    name = codec_name(array)
    dtype = array.dtype
    is_plain = not array.filters and len(array.compressors) < 2 and dtype.kind in "biuf"
    if not is_plain or name not in {"", *SIZED, *STREAMS}:
        return None
    if metadata.zarr_format == 2:
        return ChunkCodec(name, dtype, array.chunks, metadata.order)
    if type(array.serializer) is not BytesCodec:
        return None
    byte_order: Any = codec_setting(array.serializer, "endian") or "little"
    return ChunkCodec(name, dtype.newbyteorder(byte_order), array.chunks)


def codec_setting(codec: Codec, name: str) -> Any:
    """Return a setting of a codec as it is stored.

    The attribute of the codec is an enumeration in some versions of Zarr.
    """
    configuration: Any = codec.to_dict().get("configuration", {})
    return configuration.get(name)


def _decode(name: str, frame: bytes, out: np.ndarray) -> int:
    """Decode a chunk into bytes, and return how many it has.

    If they do not fit into ``out``, another number than its length is returned.
    """
    size = claimed_size(name, frame)
    if size is None and name in STREAMS:  # its writer did not know the size yet
        with _stream(name, frame) as stream:
            return int(stream.readinto(out)) + len(stream.read(1))
    if size != out.nbytes:
        return -1
    if name:
        SIZED[name].decode(frame, out)
    else:
        out[:] = np.frombuffer(frame, np.uint8)
    return size


def start_of(name: str, frame: bytes, most: int) -> bytes:
    """Return what a chunk decodes to, cut after ``most`` + 1 bytes.

    Of an unknown codec it is empty, and of a chunk that claims more bytes it is zeros.
    """
    size = claimed_size(name, frame)
    if size is not None and size > most:
        return bytes(most + 1)
    if name in STREAMS:
        with _stream(name, frame) as stream:
            return bytes(stream.read(most + 1))
    if name in SIZED:
        return SIZED[name].decode(frame)
    return b"" if name else frame


def _stream(name: str, frame: bytes) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.py_buffer(frame), STREAMS[name])


def claimed_size(name: str, frame: bytes) -> int | None:
    """Return the decoded bytes of a chunk by its header; None if it does not say."""
    if name == "zstd":
        return content_size(frame)
    if name == "lz4":
        return int.from_bytes(frame[:4], "little")
    if name == "blosc":
        # Of a chunk that is cut, the decoder would read beyond the end.
        is_cut = int.from_bytes(frame[12:16], "little") != len(frame)
        return 2**62 if is_cut else int.from_bytes(frame[4:8], "little")
    return None if name else len(frame)


def content_size(frame: bytes) -> int | None:
    """Return the decoded bytes of a zstd frame by its header; None if it does not say.

    RFC 8878, 3.1.1.1, describes the header.
    """
    if frame[:4] != _MAGIC or len(frame) < 5:
        return None
    descriptor = frame[4]
    is_single_segment = descriptor >> 5 & 1
    n_bytes = (0, 2, 4, 8)[descriptor >> 6] or is_single_segment
    if n_bytes == 0:
        return None
    # The window descriptor and the dictionary's id precede the size.
    n_dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    begin = 6 - is_single_segment + n_dictionary_bytes
    size = int.from_bytes(frame[begin : begin + n_bytes], "little")
    return size + 256 if n_bytes == 2 else size
