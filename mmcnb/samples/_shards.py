"""Read single chunks from the shards of a Zarr array on a local disk."""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import google_crc32c
import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec

from mmcnb.errors import damaged_chunks
from mmcnb.samples.codecs import codec_setting, most_bytes
from mmcnb.samples.files import check_chunk_file
from mmcnb.samples.paths import join

MISSING = 2**64 - 1  # offset and length of a chunk that was never written
CHECKSUM_BYTES = 4


def has_plain_shards(array: zarr.Array) -> bool:
    """Return whether `chunks_in_shards` can read the shards of an array.

    Shards and chunks must contain whole rows, and the index of a shard must have a
    checksum.
    """
    codecs: Any = getattr(array.metadata, "codecs", ())
    if (
        not array.shards
        or array.shards[1:] != array.shape[1:]
        or list(map(type, codecs)) != [ShardingCodec]
    ):
        return False
    indexed = [type(codec) for codec in codecs[0].index_codecs] == [
        BytesCodec,
        Crc32cCodec,
    ]
    little = indexed and codec_setting(codecs[0].index_codecs[0], "endian") == "little"
    return little and array.chunks[1:] == array.shape[1:]


def chunks_in_shards(
    array: zarr.Array, name: str, firsts: Iterable[int]
) -> Iterator[tuple[str, bytes | OSError | None]]:
    """Yield the stored bytes of chunks, with the keys of their shards.

    Parameters
    ----------
    array : zarr.Array
        An array for which `has_plain_shards` is True.
    name : str
        Name used for the array in messages.
    firsts : iterable of int
        First row of each chunk, in ascending order.

    Yields
    ------
    tuple of str and bytes
        Key of the shard, and bytes of the chunk. The second item is None if the chunk
        was never written, and an OSError if the shard cannot be read.

    Raises
    ------
    DamagedStoreError
        If a chunk, or the index of a shard, is damaged.
    """
    shards: Any = array.shards
    for shard, group in itertools.groupby(firsts, lambda first: first // shards[0]):
        key = join(
            array.path,
            array.metadata.encode_chunk_key((shard, *[0] * (array.ndim - 1))),
        )
        numbers = [first % shards[0] // array.chunks[0] for first in group]
        try:
            for frame in _chunks(array, key, numbers):
                yield key, frame
        except ValueError as error:
            raise damaged_chunks(name, [key], f"damaged ({error})") from error
        except OSError as error:
            yield key, error


def _chunks(array: Any, key: str, numbers: list[int]) -> Iterator[bytes | None]:
    """Yield the stored bytes of the chunks with the given numbers in one shard.

    For a chunk that was never written, yield None.
    """
    try:
        path = Path(array.store.root, key)
        # For each chunk, a shard contains at most `most_bytes` bytes of data, 16 bytes
        # of index and, as a generous allowance, 4 bytes of checksum.
        check_chunk_file(
            path, array.shards[0] // array.chunks[0] * (most_bytes(array) + 20)
        )
        with path.open("rb") as file:
            for place, n_bytes in _index(file, array)[numbers].tolist():
                yield (
                    None
                    if place == n_bytes == MISSING
                    else _chunk(file, array, place, n_bytes)
                )
    except FileNotFoundError:
        yield from [None] * len(numbers)


def _index(file: IO[bytes], array: Any) -> np.ndarray:
    """Read the index of a shard: the offset and length in bytes of each chunk.

    The result has shape (n_chunks, 2).
    """
    length = 16 * (array.shards[0] // array.chunks[0]) + CHECKSUM_BYTES
    n_bytes = file.seek(0, os.SEEK_END)
    if n_bytes < length:
        raise ValueError(f"it has {n_bytes} bytes, but its index alone has {length}")
    location = codec_setting(array.metadata.codecs[0], "index_location")
    file.seek(0 if location == "start" else n_bytes - length)
    places = file.read(length - CHECKSUM_BYTES)
    checksum = file.read(CHECKSUM_BYTES)
    if google_crc32c.value(places) != int.from_bytes(checksum, "little"):
        raise ValueError("its index does not match its checksum")
    return np.frombuffer(places, "<u8").reshape(-1, 2)


def _chunk(file: IO[bytes], array: Any, place: int, n_bytes: int) -> bytes:
    """Read the ``n_bytes`` bytes of a chunk that begins at byte ``place`` of a shard.

    Raise ValueError if the chunk is too long or ends beyond the end of the file.
    """
    most = most_bytes(array)
    if n_bytes > most:
        raise ValueError(f"it is longer than {most:,} bytes")
    if place + n_bytes > file.seek(0, os.SEEK_END):
        raise ValueError("it ends within a chunk")
    file.seek(place)
    return file.read(n_bytes)
