"""The list of all chunks of a store that mmcnb wrote, in its attributes, and the checks against it."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype
from zarr.core.sync import sync

from mmcnb.errors import DamagedStoreError, InputError

PathLike = str | os.PathLike[str]

ATTRIBUTE = "mmcnb"
FORMAT = 1
ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray")
REMEDY = "restore it from a copy or convert the data again"


class Inventory:
    """What was recorded when a store was written.

    Parameters
    ----------
    store : zarr store
    root : str
        Path of the recorded group or array inside the store; "" is its root.
    record : dict
        ``format``, ``n_samples``, ``n_features``, ``n_nonzero``, ``digest``, ``inventory`` and
        ``metadata``. The inventory has the blake2b of each decoded chunk of each array, by its path below
        the root. The metadata is the blake2b of all this and of each array's own metadata.
    name : str
        For messages.
    """

    def __init__(self, store: Store, root: str, record: dict[str, Any], name: str) -> None:
        self.store, self.root, self.record, self.name = store, root, record, name

    @property
    def arrays(self) -> dict[str, list[str]]:
        """Chunk digests of each recorded array, by its path below the root."""
        return self.record["inventory"]

    def hashes(self, path: str) -> list[str] | None:
        """Chunk digests of the array at a path of the store; None where it was not recorded."""
        return self.arrays.get(path[len(self.root) :].strip("/"))

    def check_metadata(self) -> None:
        """Refuse a store whose shapes, types, codecs or recorded digests are not those written."""
        try:
            recorded, found = self.record["metadata"], metadata_digest(self.store, self.root, self.record)
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedStoreError(f"{self.name}: the store's metadata is damaged: {REMEDY}.") from error
        if recorded != found or self.record["format"] != FORMAT:
            raise DamagedStoreError(
                f"{self.name}: the store's metadata is not what was written: {REMEDY} "
                "(a store changed on purpose becomes usable again by `mmcnb convert`)."
            )

    def check_chunks(self) -> None:
        """Refuse a store of which chunks are missing; its metadata must be sound."""
        if not self.store.supports_listing:  # then a missing chunk shows when it is read
            return
        missing = []
        for path, hashes in self.arrays.items():
            document = json.loads(read_key(self.store, join(self.root, path, "zarr.json")) or b"{}")
            columns = ["0"] * (len(document["shape"]) - 1)  # a chunk holds whole rows
            keys = [join(self.root, path, "c", str(chunk), *columns) for chunk in range(len(hashes))]
            found = set(list_keys(self.store, join(self.root, path, "c")))
            missing += [key for key in keys if key not in found]
        if missing:
            raise damaged_chunks(self.name, missing, "missing")


def damaged_chunks(name: str, keys: list[str], what: str) -> DamagedStoreError:
    """One sentence about missing or damaged chunks."""
    listed = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    verb = "chunks {} are" if len(keys) > 1 else "chunk {} is"
    return DamagedStoreError(f"{name}: {verb.format(listed)} {what}: {REMEDY}.")


def find_inventory(node: zarr.Array | zarr.Group, name: str) -> Inventory | None:
    """Inventory that covers an array or group, recorded on it or on a group above it."""
    parts = PurePosixPath(node.path).parts
    for depth in range(len(parts), -1, -1):
        root = "/".join(parts[:depth])
        attributes = node.attrs if depth == len(parts) else _attributes(node.store, root)
        if ATTRIBUTE not in attributes:
            continue
        record = attributes[ATTRIBUTE]
        if not isinstance(record, dict) or not isinstance(record.get("inventory"), dict):
            raise DamagedStoreError(f"{name}: the store's inventory is damaged: {REMEDY}.")
        return Inventory(node.store, root, record, name)
    return None


def _attributes(store: Store, root: str) -> dict[str, Any]:
    text = read_key(store, join(root, "zarr.json"))
    try:
        return {} if text is None else json.loads(text).get("attributes") or {}
    except (ValueError, AttributeError):
        return {}


def chunk_digest(values: np.ndarray) -> str:
    """blake2b of a chunk's values, without the padding of the last chunk; of texts as JSON lists them."""
    if values.dtype.kind == "T":
        return hashlib.blake2b(json.dumps(values.tolist()).encode(), digest_size=8).hexdigest()
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=8).hexdigest()


def metadata_digest(store: Store, root: str, record: dict[str, Any]) -> str:
    """blake2b of the record and of the metadata of all that it lists."""
    documents: dict[str, Any] = {"record": {key: record[key] for key in sorted(record) if key != "metadata"}}
    for path in sorted(_nodes(record["inventory"])):
        text = read_key(store, join(root, path, "zarr.json"))
        document = {} if text is None else json.loads(text)
        document.pop("consolidated_metadata", None)
        if path == "":  # attributes beside the record are the user's
            document.pop("attributes", None)
        documents[f"/{path}"] = document
    return hashlib.blake2b(json.dumps(documents, sort_keys=True).encode(), digest_size=16).hexdigest()


def _nodes(paths: Iterable[str]) -> set[str]:
    nodes = {""}
    for path in paths:
        parts = PurePosixPath(path).parts
        nodes |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return nodes


def is_store_folder(path: Path) -> bool:
    """Whether a folder is the root of a Zarr array or group."""
    return any((path / mark).is_file() for mark in ZARR_MARKS)


def join(*parts: str) -> str:
    """Join the parts of a key, leaving out empty ones."""
    return "/".join(part for part in parts if part)


def read_key(store: Store, key: str) -> bytes | None:
    """Bytes stored under a key of any Zarr store; None where it is missing."""
    value = sync(store.get(key, prototype=default_buffer_prototype()))
    return None if value is None else value.to_bytes()


def list_keys(store: Store, prefix: str) -> list[str]:
    """Keys of any Zarr store that begin so."""

    async def collect() -> list[str]:
        return [key async for key in store.list_prefix(prefix)]

    return sync(collect())
