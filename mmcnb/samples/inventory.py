"""The list of all chunks of a store that mmcnb wrote, in its attributes, and the checks against it.

A chunk is one zstd frame, which ends with a checksum of its content: the list has that.
"""

import asyncio
import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype
from zarr.codecs import BytesCodec, ZstdCodec
from zarr.core.buffer import Buffer
from zarr.core.sync import collect_aiterator, sync
from zarr.registry import get_numcodec

from mmcnb.errors import DamagedStoreError, InputError, one_line, shown, worded

PathLike = str | os.PathLike[str]

ATTRIBUTE = "mmcnb"
FORMAT = 2
CODEC = ZstdCodec(level=1, checksum=True)
ZSTD: Any = get_numcodec({"id": "zstd", "level": CODEC.level, "checksum": True})  # type: ignore[typeddict-unknown-key]

_MAGIC = b"\x28\xb5\x2f\xfd"

SIZED = {
    name: get_numcodec({"id": name}) for name in ("zstd", "blosc", "lz4")
}  # a chunk says how long it is
STREAMS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "zlib": "gzip",
    "bz2": "bz2",
}  # gzip's decoder knows both headers

ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray")
TYPES = {
    **dict.fromkeys(("format", "n_samples", "n_features", "n_nonzero"), int),
    **dict.fromkeys(("digest", "metadata"), str),
    "inventory": dict,
}
PATHS = {
    "",
    "X",
    "X/data",
    "X/indices",
    "X/indptr",
    "y",
    "index",
}  # of arrays that a record may list
REMEDY = "restore it from a copy or convert the data again"
CHANGED = "if it was changed on purpose, delete the attribute mmcnb of its root and run `mmcnb convert`"


class Inventory:
    """The record that was made when a store was written.

    Parameters
    ----------
    store : zarr store
    root : str
        Path of the recorded group or array inside the store; "" is its root.
    record : dict
        ``format``, ``n_samples``, ``n_features``, ``n_nonzero``, ``digest``,
        ``inventory`` and ``metadata``. The inventory has the checksum of each chunk of
        each array, by its path below the root: the one its zstd frame ends with; in
        format 1, the blake2b of its values. The metadata is the blake2b of all this and
        of each array's own metadata.
    name : str
        For messages.
    """

    def __init__(
        self, store: Store, root: str, record: dict[str, Any], name: str
    ) -> None:
        self.store = store
        self.root = root
        self.record = record
        self.name = name

    @property
    def arrays(self) -> dict[str, list[str]]:
        """Checksums of the chunks of each recorded array, by its path below the root."""
        return self.record["inventory"]

    def hashes(self, path: str) -> list[str] | None:
        """Checksums of the chunks of the array at a path of the store; None if it was not recorded."""
        return self.arrays.get(path[len(self.root) :].strip("/"))

    def check_chunk(
        self, path: str, number: int, key: str, frame: bytes, values: np.ndarray
    ) -> None:
        """Refuse a chunk that is sound and another than was written, such as one of another version.

        Parameters
        ----------
        path : str
            The array, a recorded one.
        number : int
            The chunk, along the first axis.
        key : str
            Its key, for messages.
        frame : bytes
            As it is stored.
        values : ndarray
            As they were decoded, without the padding of the last chunk.
        """
        found = (
            frame_checksum(frame) if self.record["format"] > 1 else chunk_digest(values)
        )
        if (self.hashes(path) or [])[number : number + 1] != [found]:
            raise damaged_chunks(
                self.name, [key], "not what was written", f"{REMEDY} ({CHANGED})"
            )

    def check_chunks(self) -> None:
        """Refuse a store of which chunks are missing; its metadata must be sound."""
        if (
            not self.store.supports_listing
        ):  # then a missing chunk shows when it is read
            return
        missing = []
        for path, hashes in self.arrays.items():
            shape = _document(self.store, self.root, path)["shape"]
            columns = ["0"] * (len(shape) - 1)  # a chunk has whole rows
            keys = [
                join(self.root, path, "c", str(chunk), *columns)
                for chunk in range(len(hashes))
            ]
            found = set(
                collect_aiterator(self.store.list_prefix(join(self.root, path, "c")))
            )
            missing += [key for key in keys if key not in found]
        if missing:
            raise damaged_chunks(self.name, missing, "missing")


def most_bytes(array: Any) -> int:
    """Bytes that a stored chunk may have: codecs lengthen those that they cannot shorten by a little."""
    return 2 * math.prod(array.chunks) * array.dtype.itemsize + 2**16


def check_chunk_file(path: Path, most: int) -> None:
    """Refuse a file of a chunk that is longer than it can be, and a pipe, device or broken link in its place.

    Raises
    ------
    FileNotFoundError
        There is none.
    OSError
        It is not to be read.
    """
    status = (
        path.stat() if path.exists() else path.lstat()
    )  # of a link that leads nowhere
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes")


def damaged_chunks(
    name: str, keys: list[str], what: str, remedy: str = REMEDY
) -> DamagedStoreError:
    """One sentence about missing or damaged chunks."""
    listed = ", ".join(keys[:3]) + (
        f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    )
    verb = "chunks {} are" if len(keys) > 1 else "chunk {} is"
    return DamagedStoreError(f"{name}: {verb.format(listed)} {what}: {remedy}.")


def damage(fault: str, *causes: type[Exception]) -> AbstractContextManager[None]:
    """Turn an error of another library into one sentence about a damaged store; no causes are all."""
    return worded(fault, REMEDY, *causes, kind=DamagedStoreError)


def find_inventory(node: zarr.Array | zarr.Group, name: str) -> Inventory | None:
    """Inventory that covers an array or group, recorded on it or on a group above it; None if there is none.

    Raises
    ------
    DamagedStoreError
        The record, or the metadata of the arrays that it lists, is not what was
        written.
    InputError
        A later version of mmcnb wrote the store.
    """
    root = node.path
    attributes = attributes_of(node, name)
    with damage(f"{name}: the store's metadata cannot be read"):
        while root and ATTRIBUTE not in attributes:
            root = root.rpartition("/")[0]
            attributes = _document(node.store, root).get("attributes", {})
        if ATTRIBUTE not in attributes:
            return None
        if not _is_record(record := attributes[ATTRIBUTE]):
            raise DamagedStoreError(
                f"{name}: the store's inventory is damaged: {REMEDY}."
            )
        found = metadata_digest(node.store, root, record)
    if record["metadata"] != found:
        fault = f"{name}: the store's metadata is not what was written"
        raise DamagedStoreError(f"{fault}: {REMEDY} ({CHANGED}).")
    if record["format"] not in (1, FORMAT):
        later = f"a later version of mmcnb, in format {record['format']}"
        raise InputError(f"{name} was written by {later}: update mmcnb to read it.")
    return Inventory(node.store, root, record, name)


def _is_record(record: Any) -> bool:
    """Whether an attribute has the members of a record, each of its type, and lists known arrays alone."""
    if not isinstance(record, dict):
        return False
    record = {"n_nonzero": 0, **record}  # labels have none
    return all(type(record.get(key)) is kind for key, kind in TYPES.items()) and all(
        path in PATHS
        and isinstance(hashes, list)
        and all(isinstance(value, str) for value in hashes)
        for path, hashes in record["inventory"].items()
    )


def attributes_of(node: zarr.Array | zarr.Group, name: str) -> dict[str, Any]:
    """The attributes of a node, of whatever types its writer gave them."""
    attributes: Any = node.metadata.attributes
    if not isinstance(attributes, dict):
        raise DamagedStoreError(
            f"{name}: the attributes of {node.path or 'the root'} are damaged: {REMEDY}."
        )
    return attributes


def _document(store: Store, *parts: str) -> dict[str, Any]:
    """Metadata of a node of Zarr 3 as they are stored; empty if there are none."""
    text = read_key(store, join(*parts, "zarr.json"))
    return {} if text is None else json.loads(text)


def chunk_digest(values: np.ndarray) -> str:
    """Checksum of a chunk in stores of format 1: blake2b of its values; of texts as JSON lists them."""
    if values.dtype.kind == "T":
        return hashlib.blake2b(
            json.dumps(values.tolist()).encode(), digest_size=8
        ).hexdigest()
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=8).hexdigest()


def metadata_digest(store: Store, root: str, record: dict[str, Any]) -> str:
    """blake2b of the record and of the metadata of all that it lists."""
    documents: dict[str, Any] = {
        "record": {key: record[key] for key in sorted(record) if key != "metadata"}
    }
    paths = {
        part
        for path in record["inventory"]
        for part in ("", path.rpartition("/")[0], path)
    }
    for path in sorted(paths):
        document = _document(store, root, path)
        document.pop("consolidated_metadata", None)
        if path == "":  # attributes beside the record are the user's
            document.pop("attributes", None)
        documents[f"/{path}"] = document
    return hashlib.blake2b(
        json.dumps(documents, sort_keys=True).encode(), digest_size=16
    ).hexdigest()


def is_store_folder(path: Path) -> bool:
    """Whether a folder is the root of a Zarr array or group."""
    return any((path / mark).is_file() for mark in ZARR_MARKS)


def join(*parts: str) -> str:
    """Join the parts of a key, leaving out empty ones."""
    return "/".join(part for part in parts if part)


def read_key(store: Store, key: str) -> bytes | None:
    """Bytes stored under a key of any Zarr store; None if it is missing."""
    value = sync(store.get(key, prototype=default_buffer_prototype()))
    return None if value is None else value.to_bytes()


def read_keys(store: Store, keys: Sequence[str]) -> list[Any]:
    """Bytes stored under keys, fetched side by side: None if one is missing, the error if it fails."""

    async def fetch() -> list[Any]:
        fetched = (store.get(key, prototype=default_buffer_prototype()) for key in keys)
        return await asyncio.gather(*fetched, return_exceptions=True)

    return [
        found.to_bytes() if isinstance(found, Buffer) else found
        for found in sync(fetch())
    ]


def checked_path(path: Any, what: str = "the path") -> Path:
    """A path that the system takes; whether something is there is another question.

    Parameters
    ----------
    path : str or path-like
    what : str, default="the path"
        For messages.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        It is no path, is empty or too long, or has a null character.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise InputError(
            f"{what} is {shown(path)}, which is no path: give a text or a pathlib.Path."
        )
    text = os.fspath(path)
    if not text:
        raise InputError(f"{what} is empty: name a file or a folder.")
    try:
        os.lstat(text)
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or error.errno in (
            errno.ENAMETOOLONG,
            errno.ELOOP,
        ):
            why = one_line(error).lower()
            raise InputError(
                f"{what} {text[:100]!r} cannot be used ({why}): choose another."
            ) from error
    return Path(text)


def frame_checksum(frame: bytes) -> str:
    """Checksum that a zstd frame ends with, in hexadecimal digits; empty if it has none.

    It is the low half of XXH64 of the content of the frame (RFC 8878, 3.1.1), and
    decoding compares the two. So that the checksum is the one recorded says which chunk
    this is, at no cost.
    """
    has_one = frame[:4] == _MAGIC and len(frame) > 8 and frame[4] & 4
    return frame[-4:].hex() if has_one else ""


# -- chunks and their codecs -----------------------------------------------------------


def codec_name(array: zarr.Array) -> str:
    """The codec that encodes the bytes of chunks, of those in shards if there are any; "" of none."""
    if not array.compressors:
        return ""
    codec: Any = array.compressors[-1]
    return str(
        getattr(codec, "codec_id", type(codec).__name__.lower().removesuffix("codec"))
    )


@dataclass(frozen=True)
class ChunkCodec:
    """How chunks of numbers are encoded.

    Parameters
    ----------
    name : str
        A codec of `SIZED` or `STREAMS`, or "" of none.
    dtype : dtype
        Of the numbers, with their order of bytes.
    shape : tuple of int
        Of a chunk; the last one along an axis is as long.
    order : {"C", "F"}
        Order of the numbers.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    order: Any = "C"

    def decode(self, frame: bytes, out: np.ndarray, place: str) -> None:
        """Decode a chunk; ``out`` has fewer rows or columns where the array ends within the chunk.

        Raises
        ------
        DamagedStoreError
            It cannot be decoded, or has another size; the message names the place.
        """
        is_same = (out.shape, out.dtype, "C") == (self.shape, self.dtype, self.order)
        is_straight = is_same and out.flags.c_contiguous
        whole = out if is_straight else np.empty(self.shape, self.dtype, self.order)
        with damage(f"{place} is damaged"):
            if (
                _decode(self.name, frame, whole.ravel("K").view(np.uint8))
                != whole.nbytes
            ):
                raise ValueError(f"the chunk does not have {whole.nbytes} bytes")
        if not is_straight:
            out[...] = whole[tuple(map(slice, out.shape))]


def chunk_codec(array: zarr.Array) -> ChunkCodec | None:
    """How the chunks of an array are encoded; None if they are not numbers that one codec encodes."""
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
    order: Any = codec_setting(array.serializer, "endian") or "little"
    return ChunkCodec(name, dtype.newbyteorder(order), array.chunks)


def codec_setting(codec: Any, name: str) -> Any:
    """A setting of a codec as it is stored; of its attribute, some versions of Zarr make an enumeration."""
    return codec.to_dict().get("configuration", {}).get(name)


def _decode(name: str, frame: bytes, out: np.ndarray) -> int:
    """Decode a chunk into bytes; how many it has, or some other number than there is place for."""
    size = claimed_size(name, frame)
    if size is None and name in STREAMS:  # of a writer that did not know it yet
        with _stream(name, frame) as stream:
            return int(stream.readinto(out)) + len(stream.read(1))
    if size == out.nbytes and name:
        SIZED[name].decode(frame, out)
    elif size == out.nbytes:
        out[:] = np.frombuffer(frame, np.uint8)
    return -1 if size is None else size


def start_of(name: str, frame: bytes, most: int) -> bytes:
    """What a chunk decodes to, at most so many bytes and one; nothing of an unknown codec."""
    size = claimed_size(name, frame)
    if size is not None and size > most:
        return bytes(most + 1)
    if name in STREAMS:
        with _stream(name, frame) as stream:
            return bytes(stream.read(most + 1))
    return SIZED[name].decode(frame) if name in SIZED else b"" if name else frame


def _stream(name: str, frame: bytes) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.py_buffer(frame), STREAMS[name])


def claimed_size(name: str, frame: bytes) -> int | None:
    """Decoded bytes of a chunk by its header; None if that does not say."""
    if name == "zstd":
        return content_size(frame)
    if name == "blosc" and int.from_bytes(frame[12:16], "little") != len(frame):
        return 2**62  # it is cut, and its decoder would read beyond the end
    if name in ("blosc", "lz4"):
        return int.from_bytes(frame[4:8] if name == "blosc" else frame[:4], "little")
    return None if name else len(frame)


def content_size(frame: bytes) -> int | None:
    """Decoded bytes of a zstd frame by its header (RFC 8878, 3.1.1.1); None if it does not say."""
    if frame[:4] != _MAGIC or len(frame) < 5:
        return None
    descriptor = frame[4]
    single_segment = descriptor >> 5 & 1
    n_bytes = (0, 2, 4, 8)[descriptor >> 6] or single_segment
    begin = (
        6 - single_segment + (0, 1, 2, 4)[descriptor & 3]
    )  # behind the name of a dictionary
    size = int.from_bytes(frame[begin : begin + n_bytes], "little")
    return size + 256 * (n_bytes == 2) if n_bytes else None
