"""Bounds on what a chunk costs, known before it is fetched or decoded.

An array's metadata says how many bytes a chunk has. A chunk that is much longer as it
is stored, or that claims to be, is damaged or hostile: reading it could fill the memory
of the machine.
"""

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
from mmcnb.samples.paths import ZARR_MARKS

CODECS = {  # of numcodecs, for Zarr 2
    *(
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
    ),
    *(
        "fixedscaleoffset",
        "fletcher32",
        "gzip",
        "jenkins_lookup3",
        "json2",
        "lz4",
        "msgpack2",
    ),
    *(
        "packbits",
        "quantize",
        "shuffle",
        "vlen-array",
        "vlen-bytes",
        "vlen-utf8",
        "zfpy",
        "zlib",
        "zstd",
    ),
}
DOCUMENTS = {*ZARR_MARKS, ".zattrs", ".zmetadata"}


def check_chunk_bytes(n_bytes: int, name: str) -> None:
    """Refuse chunks that cannot be decoded in the memory of this machine."""
    if n_bytes > (free := available_memory()):
        fault = f"{name}: one chunk has {n_bytes:,} bytes and {free:,} are free on this machine"
        raise InputError(f"{fault}: write the array again with smaller chunks.")


def check_documents(path: Any) -> None:
    """Refuse a zip archive with a document of metadata that no store needs.

    Raises
    ------
    InputError
        If one is longer than 64 MiB.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if (
                member.filename.rpartition("/")[2] in DOCUMENTS
                and member.file_size > METADATA_BYTES
            ):
                fault = f"{member.filename} has {member.file_size:,} bytes, more than metadata of a store has"
                raise InputError(f"{path}: {fault}: get the store from elsewhere.")


def limited(array: zarr.Array, name: str) -> zarr.Array:
    """The same array, whose chunks are refused if they are longer than they can be.

    Codecs that are not known to be harmless are refused: one of Zarr 2 may run code
    that it reads.
    """
    codecs = (
        (*array.filters, *array.compressors) if array.metadata.zarr_format == 2 else ()
    )
    names = [str(getattr(codec, "codec_id", codec)) for codec in codecs]
    if unknown := [codec for codec in names if codec not in CODECS]:
        fault = f"{array.path or 'the array'} is encoded by {unknown[0]}, which is not known to be harmless"
        raise InputError(
            f"{name}: {fault}: write it again by another codec, such as blosc or zstd."
        )
    place = StorePath(LimitedStore(array.store, array, name), array.path)
    return zarr.Array(zarr.AsyncArray(array.metadata, place))


class FolderStore(LocalStore):
    """A folder whose documents of metadata are regular files of at most 64 MiB; a pipe may never end."""

    async def get(self, key: str, *how: Any, **options: Any) -> Buffer | None:
        """Bytes stored under a key; None if there are none."""
        path = self.root / key
        if (
            path.name not in DOCUMENTS
            or path.is_dir()
            or not (path.is_symlink() or path.exists())
        ):
            return await super().get(key, *how, **options)
        return default_buffer_prototype().buffer.from_bytes(read_document(path))


class LimitedStore(WrapperStore[Store]):
    """The store of an array, which hands out no chunk that is longer than it can be, or claims to be.

    Parameters
    ----------
    store : zarr store
    array : zarr.Array
        One of its arrays; no other is read by way of this.
    name : str
        For messages.
    """

    def __init__(self, store: Store, array: zarr.Array, name: str) -> None:
        super().__init__(store)
        self._array = array
        self._name = name
        shape = array.shards or array.chunks
        fixed = (
            array.dtype.kind in "biufcSUV"
        )  # of texts the metadata does not say the lengths
        self.chunk_bytes = (
            int(np.prod(shape, dtype=object)) * array.dtype.itemsize if fixed else 2**30
        )
        self._inner = (
            int(np.prod(np.floor_divide(array.shards, array.chunks)))
            if array.shards
            else 0
        )
        self._is_decoded_here = not array.shards and chunk_codec(array) is not None
        self._codec, self._n_texts = (
            codec_name(array),
            0 if fixed else int(np.prod(array.chunks)),
        )

    _supports_sync_io = False  # which would not call `get`
    get_ranges = RemoteStore.get_ranges

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Bytes stored under a key; None if there are none."""
        # Codecs lengthen chunks that they cannot shorten by a little, and shards have
        # an index.
        most = 2 * self.chunk_bytes + 64 * self._inner + 2**16
        most_decoded = self.chunk_bytes + 2**16
        if isinstance(self._store, LocalStore):
            with (
                damage(f"{self._name}: chunk {key} is damaged"),
                suppress(FileNotFoundError),
            ):
                check_chunk_file(self._store.root / key, most)
        packed = (
            self._store._zf.NameToInfo.get(key)
            if isinstance(self._store, ZipStore)
            else None
        )
        if packed is not None and packed.file_size > most:
            raise self._too_long(key, most)
        bound = [most] if isinstance(self._store, RemoteStore) else []
        value = await self._store.get(key, prototype, byte_range, *bound)
        if value is None:
            return None
        if len(value) > most:
            raise self._too_long(key, most)
        frames = self._frames(value, byte_range) if self._inner else [value]
        for frame in () if self._is_decoded_here else frames:
            content = start_of(self._codec, frame.to_bytes(), most_decoded)
            fault = (
                f"{self._n_texts:,} texts"
                if self._n_texts
                else f"{self.chunk_bytes:,} bytes"
            )
            if (
                len(content) > most_decoded
                or int.from_bytes(content[:4], "little") > self._n_texts > 0
            ):
                fault = f"it is cut, or claims to have more than {fault}"
                raise damaged_chunks(self._name, [key], f"damaged ({fault})")
        return value

    def _too_long(self, key: str, most: int) -> InputError:
        return damaged_chunks(
            self._name, [key], f"damaged (it is longer than {most:,} bytes)"
        )

    def _frames(
        self, shard: Buffer, byte_range: ByteRequest | None
    ) -> Iterator[Buffer]:
        """The inner chunks of a shard or of a part of it, by the index at its end or at its beginning."""
        codec: Any = self._array.metadata.codecs[0]  # type: ignore[union-attr]
        # its checksum
        length = 16 * self._inner
        extra = 4 * (len(codec.index_codecs) > 1)
        at_end = codec_setting(codec, "index_location") != "start"
        if byte_range is not None:
            is_first = not at_end and getattr(byte_range, "start", 1) == 0
            yield from (
                [] if is_first or isinstance(byte_range, SuffixByteRequest) else [shard]
            )
            return
        index = (
            shard[len(shard) - length - extra : len(shard) - extra]
            if at_end
            else shard[:length]
        )
        if len(index) != length:
            return
        for offset, n_bytes in (
            np.frombuffer(index.to_bytes(), "<u8").reshape(-1, 2).tolist()
        ):
            if offset + n_bytes <= len(shard):
                yield shard[offset : offset + n_bytes]
