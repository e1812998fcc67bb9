"""Write one array of a store, chunk by chunk, and list what was written."""

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from mmcnb.samples._base import BLOCK_ROWS, GROUP_ROWS
from mmcnb.samples._inventory import (
    ATTRIBUTE,
    CODEC,
    FORMAT,
    ZSTD,
    frame_checksum,
    has_plain_chunks,
    metadata_digest,
)

PARTIAL = ".partial"  # ending of the files of chunks being written, Zarr's too
CHUNK_BYTES = 4 * 2**20  # decoded bytes of a chunk of dense rows or row pointers


class ArrayWriter:
    """Append to one array of a store; whole chunks are written, the rest waits in memory.

    Parameters
    ----------
    store : LocalStore
    name : str
        Path inside the store; "" is its root.
    dtype : dtype
    chunk_rows : int
    width : int or None, default=None
        Columns; None is a 1-D array.
    """

    def __init__(
        self, store: LocalStore, name: str, dtype: Any, chunk_rows: int, width: int | None = None
    ) -> None:
        self._store, self._name, self._dtype = store, name, np.dtype(dtype)
        self._chunk_rows, self._row_shape = chunk_rows, () if width is None else (width,)
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0
        self.n_rows = 0
        self._array: zarr.Array | None = None
        self.attributes: dict[str, Any] = {}
        self.hashes: list[str] = []

    def append(self, values: np.ndarray) -> None:
        """Add values; they are copied unless they make whole chunks."""
        begin = 0
        self.n_rows += len(values)
        while begin < len(values):
            end = min(len(values), begin + self._chunk_rows - self._n_waiting)
            part = np.ascontiguousarray(values[begin:end], dtype=self._dtype)
            if end - begin == self._chunk_rows:
                self._write(part)
            else:
                self._waiting.append(part if part.base is None else part.copy())
                self._n_waiting += len(part)
                if self._n_waiting == self._chunk_rows:
                    self._flush()
            begin = end

    def close(self) -> list[str]:
        """Write what waits; return the checksums of the chunks."""
        self._flush()
        array = self._array or self._create(self._chunk_rows)
        if array.shape[0] != self.n_rows:
            array.resize((self.n_rows, *self._row_shape))
        if self.attributes:
            array.update_attributes(self.attributes)
        return self.hashes

    def _flush(self) -> None:
        if self._n_waiting:
            self._write(np.concatenate(self._waiting))
            self._waiting, self._n_waiting = [], 0

    def _write(self, chunk: np.ndarray) -> None:
        if self._array is None:
            self._array = self._create(len(chunk))
        if not has_plain_chunks(self._array):  # Zarr writes those, and clips at the end of the array
            self._array.resize((self._array.shape[0] + len(chunk), *self._row_shape))
        self.hashes.append(write_chunk(self._array, len(self.hashes), chunk))

    def _create(self, rows: int) -> zarr.Array:
        # A store of less than one chunk gets a smaller one; multiples of the block suit readers.
        if rows > BLOCK_ROWS:
            rows = -(-rows // BLOCK_ROWS) * BLOCK_ROWS
        chunks = (min(rows, self._chunk_rows), *self._row_shape)
        return create_array(self._store, self._name, self._dtype, (0, *self._row_shape), chunks)


def write_chunk(array: zarr.Array, number: int, chunk: np.ndarray) -> str:
    """Write a chunk of whole rows of an array in a local folder, as Zarr would; its checksum.

    Zarr's own way has an event loop and copies.
    """
    store: Any = array.store
    key = array.metadata.encode_chunk_key((number, *[0] * (array.ndim - 1)))
    path = Path(store.root, array.path, key)
    if not has_plain_chunks(array):
        first = number * array.chunks[0]
        array[first : first + len(chunk)] = chunk
        return frame_checksum(path.read_bytes())
    if len(chunk) < array.chunks[0]:
        whole = np.full(array.chunks, array.fill_value, array.dtype)
        whole[: len(chunk)] = chunk
        chunk = whole
    frame = ZSTD.encode(chunk)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{PARTIAL}")
    part.write_bytes(frame)
    part.replace(path)
    return frame_checksum(frame)


def create_array(
    store: LocalStore, name: str, dtype: np.dtype, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> zarr.Array:
    """An array of a store in our codec: what is damaged or missing in it shows."""
    return zarr.create_array(
        store=store,
        name=name or None,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        compressors=[CODEC],
        fill_value=_fill_value(dtype),
        config={"write_empty_chunks": True},
        zarr_format=3,
    )


def _fill_value(dtype: np.dtype) -> Any:
    """A value that data seldom or never hold, so that a missing chunk shows."""
    if dtype.kind == "T":
        return ""
    if dtype.kind == "f":
        return float("nan")
    limits = np.iinfo(dtype)
    return int(limits.max if dtype.kind == "u" else limits.min)


def chunk_rows_for(row_bytes: int) -> int:
    """Rows in a chunk of at most 4 MiB: a power of two, so that no two groups share a chunk."""
    rows = min(GROUP_ROWS, max(1, CHUNK_BYTES // row_bytes))
    return 1 << (rows.bit_length() - 1)


def set_record(node: zarr.Array | zarr.Group, store: LocalStore, record: dict[str, Any]) -> None:
    """Put the inventory on the root of a store all of whose arrays are written."""
    record = {"format": FORMAT, **record}
    record["metadata"] = metadata_digest(store, "", record)
    node.update_attributes({ATTRIBUTE: record})
