"""Limits on the size of chunks, so that a damaged store cannot exhaust memory.

The metadata of an array determines the size of its decoded chunks. A stored chunk that
is much larger, or whose header announces a much larger size, is damaged or malicious.
Such a chunk raises an error, because decoding it could fill the memory of the machine.
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import ByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore, StorePath, WrapperStore, ZipStore

from mmcnb._machine import available_memory
from mmcnb.errors import InputError, damage, damaged_chunks
from mmcnb.samples._remote import METADATA_BYTES, RemoteStore
from mmcnb.samples.codecs import chunk_codec, codec_name, codec_setting, start_of
from mmcnb.samples.files import check_chunk_file, read_document
from mmcnb.samples.paths import ZARR_MARKS, PathLike

# Zarr 2 codecs of numcodecs that, unlike "pickle", never execute code from the data.
CODECS = {
    "adler32",
    "astype",
    "base64",
    "bitround",
    "blosc",
    "bz2",
    "categorize",
    "crc32",
    "crc32c",
    "delta",
    "fixedscaleoffset",
    "fletcher32",
    "gzip",
    "jenkins_lookup3",
    "json2",
    "lz4",
    "msgpack2",
    "packbits",
    "quantize",
    "shuffle",
    "vlen-array",
    "vlen-bytes",
    "vlen-utf8",
    "zfpy",
    "zlib",
    "zstd",
}
DOCUMENTS = {*ZARR_MARKS, ".zattrs", ".zmetadata"}


def check_chunk_bytes(n_bytes: int, name: str) -> None:
    """Raise InputError if a decoded chunk is larger than this machine's free memory."""
    free = available_memory()
    if n_bytes > free:
        raise InputError(
            f"{name}: one chunk has {n_bytes:,} bytes, but only {free:,} bytes are "
            "free on this machine: write the array again with smaller chunks."
        )


def check_documents(path: PathLike) -> None:
    """Check the sizes of the metadata documents in a zip archive before reading them.

    Raises
    ------
    InputError
        If a document is larger than 64 MiB.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            is_document = member.filename.rpartition("/")[2] in DOCUMENTS
            if is_document and member.file_size > METADATA_BYTES:
                raise InputError(
                    f"{path}: {member.filename} has {member.file_size:,} bytes, "
                    "too many for the metadata of a store: get the store from "
                    "elsewhere."
                )


def limited(array: zarr.Array, name: str) -> zarr.Array:
    """Return the array with a store that raises an error for chunks that are too large.

    Raise InputError if a Zarr 2 array uses a codec that is not in `CODECS`, because
    some codecs execute code that is contained in the data.
    """
    if array.metadata.zarr_format == 2:
        for codec in (*array.filters, *array.compressors):
            codec_id = str(getattr(codec, "codec_id", codec))
            if codec_id not in CODECS:
                raise InputError(
                    f"{name}: {array.path or 'the array'} is encoded with {codec_id}, "
                    "which is not known to be safe: "
                    "write it again with another codec, such as blosc or zstd."
                )
    place = StorePath(LimitedStore(array.store, array, name), array.path)
    return zarr.Array(zarr.AsyncArray(array.metadata, place))


class FolderStore(LocalStore):
    """A local store whose metadata documents must be regular files of at most 64 MiB.

    Reading a document that is a pipe might never end.
    """

    async def get(self, key: str, *how: Any, **options: Any) -> Buffer | None:
        """Return the bytes stored under a key, or None if it does not exist."""
        path = self.root / key
        is_there = path.is_symlink() or path.exists()
        if path.name in DOCUMENTS and is_there and not path.is_dir():
            return default_buffer_prototype().buffer.from_bytes(read_document(path))
        return await super().get(key, *how, **options)


class LimitedStore(WrapperStore[Store]):
    """The store of one array, which raises an error for oversized chunks.

    Parameters
    ----------
    store : zarr store
        Store that contains the array.
    array : zarr.Array
        The array to read; the size of its chunks determines the limits.
    name : str
        Name used for the array in messages.
    """

    def __init__(self, store: Store, array: zarr.Array, name: str) -> None:
        super().__init__(store)
        self._array = array
        self._name = name
        self._codec = codec_name(array)
        self._is_decoded_here = not array.shards and chunk_codec(array) is not None
        self._inner = 0
        if array.shards:
            self._inner = int(np.prod(np.floor_divide(array.shards, array.chunks)))
        if array.dtype.kind in "biufcSUV":
            self._n_texts = 0
            n_numbers = math.prod(array.shards or array.chunks)
            self.chunk_bytes = n_numbers * array.dtype.itemsize
        else:  # the metadata does not specify the lengths of strings
            self._n_texts = math.prod(array.chunks)
            self.chunk_bytes = 2**30

    _supports_sync_io = False  # synchronous reads would bypass `get`
    get_ranges = RemoteStore.get_ranges

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return the bytes stored under a key, or None if it does not exist."""
        # Codecs make incompressible chunks slightly larger, and shards contain an
        # index.
        most = 2 * self.chunk_bytes + 64 * self._inner + 2**16
        if isinstance(self._store, LocalStore):
            with (
                damage(f"{self._name}: chunk {key} is damaged"),
                suppress(FileNotFoundError),
            ):
                check_chunk_file(self._store.root / key, most)
        if isinstance(self._store, ZipStore):
            packed = self._store._zf.NameToInfo.get(key)
            if packed is not None and packed.file_size > most:
                raise self._too_long(key, most)
        if isinstance(self._store, RemoteStore):
            value = await self._store.get(key, prototype, byte_range, most)
        else:
            value = await self._store.get(key, prototype, byte_range)
        if value is None:
            return None
        if len(value) > most:
            raise self._too_long(key, most)
        if not self._is_decoded_here:
            self._check_decoded(key, value, byte_range)
        return value

    def _check_decoded(
        self, key: str, value: Buffer, byte_range: ByteRequest | None
    ) -> None:
        """Raise DamagedStoreError if a stored chunk would decode to too many bytes."""
        most = self.chunk_bytes + 2**16
        limit = f"{self.chunk_bytes:,} bytes"
        if self._n_texts:
            limit = f"{self._n_texts:,} texts"
        for frame in self._frames(value, byte_range) if self._inner else [value]:
            content = start_of(self._codec, frame.to_bytes(), most)
            # The encoding of strings begins with the number of strings.
            n_claimed = int.from_bytes(content[:4], "little")
            if len(content) > most or n_claimed > self._n_texts > 0:
                what = f"damaged (it is truncated, or claims to have more than {limit})"
                raise damaged_chunks(self._name, [key], what)

    def _too_long(self, key: str, most: int) -> InputError:
        return damaged_chunks(
            self._name, [key], f"damaged (it is longer than {most:,} bytes)"
        )

    def _frames(
        self, shard: Buffer, byte_range: ByteRequest | None
    ) -> Iterator[Buffer]:
        """Yield the encoded inner chunks in a shard, or in a byte range of a shard.

        Without a byte range, the index at the beginning or end of the shard gives the
        positions of the inner chunks.
        """
        codec: Any = self._array.metadata.codecs[0]  # type: ignore[union-attr]
        is_at_end = codec_setting(codec, "index_location") != "start"
        if byte_range is not None:
            # A byte range contains the index, which is skipped, or one inner chunk.
            is_first = not is_at_end and getattr(byte_range, "start", 1) == 0
            if not is_first and not isinstance(byte_range, SuffixByteRequest):
                yield shard
            return
        length = 16 * self._inner
        begin = 0
        if is_at_end:
            checksum_bytes = 4 * (len(codec.index_codecs) > 1)
            begin = len(shard) - length - checksum_bytes
        index = shard[begin : begin + length]
        if len(index) != length:
            return
        places = np.frombuffer(index.to_bytes(), "<u8").reshape(-1, 2)
        for offset, n_bytes in places.tolist():
            if offset + n_bytes <= len(shard):
                yield shard[offset : offset + n_bytes]
