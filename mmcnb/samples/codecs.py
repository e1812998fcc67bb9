"""Codecs of the chunks of Zarr arrays, and limits on the size of chunks.

mmcnb writes each chunk as one zstd frame, which ends with a checksum of its content.
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

# Codecs that store the decoded size in the header of a chunk.
SIZED = {name: get_numcodec({"id": name}) for name in ("zstd", "blosc", "lz4")}

# Name in pyarrow of each streaming codec. Its gzip decoder also reads zlib headers.
STREAMS = {"zstd": "zstd", "gzip": "gzip", "zlib": "gzip", "bz2": "bz2"}


def frame_checksum(frame: bytes) -> str:
    """Return the checksum of a zstd frame in hexadecimal, or "" if it has none.

    The checksum is the low half of the XXH64 hash of the decoded content (RFC 8878,
    section 3.1.1), and the decoder verifies it. If it equals the recorded checksum, the
    chunk is the recorded chunk, and its content does not have to be hashed again.
    """
    has_checksum = frame[:4] == _MAGIC and len(frame) > 8 and frame[4] & 4
    return frame[-4:].hex() if has_checksum else ""


def most_bytes(array: zarr.Array) -> int:
    """Return the maximum size of a chunk of the array as stored, in bytes.

    The maximum exceeds the decoded size, because codecs make incompressible chunks
    slightly larger.
    """
    return 2 * math.prod(array.chunks) * array.dtype.itemsize + 2**16


def codec_name(array: zarr.Array) -> str:
    """Return the name of the codec that compresses chunks, or "" if there is none.

    For an array with shards, this is the codec of the inner chunks.
    """
    if not array.compressors:
        return ""
    codec = array.compressors[-1]
    class_name = type(codec).__name__.lower().removesuffix("codec")
    return str(getattr(codec, "codec_id", class_name))


@dataclass(frozen=True)
class ChunkCodec:
    """The encoding of the chunks of a numeric array.

    Parameters
    ----------
    name : str
        Name of the codec, a key of `SIZED` or `STREAMS`; "" if chunks are not
        compressed.
    dtype : dtype
        Data type of the values, including the byte order.
    shape : tuple of int
        Shape of a chunk; the last chunk along an axis is padded to this shape.
    order : {"C", "F"}
        Memory layout of a chunk.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"

    def decode(self, frame: bytes, out: np.ndarray, place: str) -> None:
        """Decode a chunk, without its padding, into ``out``.

        Raises
        ------
        DamagedStoreError
            If the chunk cannot be decoded, or if its decoded size is wrong. The message
            begins with ``place``.
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

    The result is None if the chunks do not contain real numbers, or if they are encoded
    with several codecs or with an unsupported codec.
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
    """Return a setting of a codec as written in the metadata.

    In some versions of Zarr, the codec's attribute of this name is an enumeration
    member instead of a string.
    """
    configuration: Any = codec.to_dict().get("configuration", {})
    return configuration.get(name)


def _decode(name: str, frame: bytes, out: np.ndarray) -> int:
    """Decode a chunk into ``out``, and return the decoded size in bytes.

    The result differs from the size of ``out`` if the decoded chunk has another size.
    """
    size = claimed_size(name, frame)
    if size is None and name in STREAMS:  # a streaming writer may not know the size
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
    """Decode at most the first ``most + 1`` bytes of a chunk.

    The result is empty if the codec is unknown, and consists of zeros if the header of
    the chunk announces more than ``most`` bytes.
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
    """Return the decoded size of a chunk according to its header.

    The result is None if the header does not contain the size.
    """
    if name == "zstd":
        return content_size(frame)
    if name == "lz4":
        return int.from_bytes(frame[:4], "little")
    if name == "blosc":
        # The decoder would read beyond the end of a truncated chunk.
        is_cut = int.from_bytes(frame[12:16], "little") != len(frame)
        return 2**62 if is_cut else int.from_bytes(frame[4:8], "little")
    return None if name else len(frame)


def content_size(frame: bytes) -> int | None:
    """Return the decoded size of a zstd frame according to its header, or None.

    RFC 8878, section 3.1.1.1, describes the header.
    """
    if frame[:4] != _MAGIC or len(frame) < 5:
        return None
    descriptor = frame[4]
    is_single_segment = descriptor >> 5 & 1
    n_bytes = (0, 2, 4, 8)[descriptor >> 6] or is_single_segment
    if n_bytes == 0:
        return None
    # The window descriptor and the dictionary ID precede the size.
    n_dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    begin = 6 - is_single_segment + n_dictionary_bytes
    size = int.from_bytes(frame[begin : begin + n_bytes], "little")
    return size + 256 if n_bytes == 2 else size
