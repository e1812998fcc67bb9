"""The inventory of a store that mmcnb wrote: a record of its chunks in an attribute.

The record contains the checksum of each chunk, and a digest of the metadata.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.core.sync import collect_aiterator

from mmcnb.errors import RESTORE, DamagedStoreError, InputError, damage, damaged_chunks
from mmcnb.samples.codecs import frame_checksum
from mmcnb.samples.paths import join, read_key

ATTRIBUTE = "mmcnb"
FORMAT = 2

Record = dict[str, Any]

# Members of a record, and the type of each.
MEMBERS = {
    "format": int,
    "n_samples": int,
    "n_features": int,
    "n_nonzero": int,
    "digest": str,
    "metadata": str,
    "inventory": dict,
}

# Paths of the arrays that a record may list; "" is an array of labels.
PATHS = {"", "X", "X/data", "X/indices", "X/indptr", "y", "index"}
CHANGED = (
    "if it was changed on purpose, delete the attribute mmcnb of its root "
    "and run `mmcnb convert`"
)


@dataclass(eq=False)
class Inventory:
    """The inventory of a store: the record that mmcnb made when it wrote the store.

    Parameters
    ----------
    store : zarr store
        Store that the inventory describes.
    root : str
        Path of the recorded group or array inside the store; "" is its root.
    record : dict
        The record, with ``format``, ``n_samples``, ``n_features``, ``n_nonzero``,
        ``digest``, ``inventory`` and ``metadata``. ``inventory`` lists the checksums of
        the chunks of each array, by the array's path below the root. The checksum of a
        chunk is at the end of its zstd frame; in format 1, it is the BLAKE2b hash of
        the chunk's values. ``metadata`` is the BLAKE2b hash of the record and of the
        metadata of all arrays.
    name : str
        Name used for the store in messages.
    """

    store: Store
    root: str
    record: Record
    name: str

    @property
    def arrays(self) -> dict[str, list[str]]:
        """Checksums of the chunks of each recorded array.

        The keys are the paths of the arrays relative to the root.
        """
        return self.record["inventory"]

    def hashes(self, path: str) -> list[str] | None:
        """Return the checksums of the chunks of an array.

        The result is None if the record does not contain the array. ``path`` is the
        path of the array in the store.
        """
        return self.arrays.get(path[len(self.root) :].strip("/"))

    def check_chunk(
        self, path: str, number: int, key: str, frame: bytes, values: np.ndarray
    ) -> None:
        """Raise DamagedStoreError if a chunk differs from the chunk that was written.

        An undamaged chunk can be wrong too, for example if it comes from another
        version of the store.

        Parameters
        ----------
        path : str
            Path of the recorded array.
        number : int
            Index of the chunk along the first axis.
        key : str
            Key of the chunk, for the message.
        frame : bytes
            The stored bytes of the chunk.
        values : ndarray
            The decoded chunk, without padding.
        """
        if self.record["format"] == 1:
            checksum = chunk_digest(values)
        else:
            checksum = frame_checksum(frame)
        recorded = self.hashes(path) or []
        if recorded[number : number + 1] != [checksum]:
            remedy = f"{RESTORE} ({CHANGED})"
            raise damaged_chunks(self.name, [key], "not what was written", remedy)

    def check_chunks(self) -> None:
        """Raise DamagedStoreError if the store lacks a chunk that the record lists."""
        if not self.store.supports_listing:
            return  # a missing chunk raises an error when it is read
        missing = []
        for path, hashes in self.arrays.items():
            folder = join(self.root, path, "c")
            stored = set(collect_aiterator(self.store.list_prefix(folder)))
            n_axes = len(_document(self.store, self.root, path)["shape"])
            columns = ["0"] * (n_axes - 1)  # a chunk contains whole rows
            for chunk in range(len(hashes)):
                key = join(folder, str(chunk), *columns)
                if key not in stored:
                    missing.append(key)
        if missing:
            raise damaged_chunks(self.name, missing, "missing")


def find_inventory(node: zarr.Array | zarr.Group, name: str) -> Inventory | None:
    """Return the inventory that covers an array or group, or None if there is none.

    The record is an attribute of the node itself or of a group above it.

    Raises
    ------
    DamagedStoreError
        If the record, or the metadata of an array that it lists, has changed since it
        was written.
    InputError
        If a later version of mmcnb wrote the store.
    """
    root = node.path
    attributes = attributes_of(node, name)
    with damage(f"{name}: the store's metadata cannot be read"):
        while root and ATTRIBUTE not in attributes:
            root = root.rpartition("/")[0]
            attributes = _document(node.store, root).get("attributes", {})
        if ATTRIBUTE not in attributes:
            return None
        record = attributes[ATTRIBUTE]
        if not _is_record(record):
            raise DamagedStoreError(
                f"{name}: the store's inventory is damaged: {RESTORE}."
            )
        digest = metadata_digest(node.store, root, record)
    if record["metadata"] != digest:
        raise DamagedStoreError(
            f"{name}: the store's metadata is not what was written: "
            f"{RESTORE} ({CHANGED})."
        )
    if record["format"] not in (1, FORMAT):
        raise InputError(
            f"{name} was written by a later version of mmcnb, "
            f"in format {record['format']}: update mmcnb to read it."
        )
    return Inventory(node.store, root, record, name)


def _is_record(record: Any) -> bool:
    """Return whether a value has all members of a record, with the correct types."""
    if not isinstance(record, dict):
        return False
    members = {"n_nonzero": 0, **record}  # the record of labels has no n_nonzero
    for member, member_type in MEMBERS.items():
        if type(members.get(member)) is not member_type:
            return False
    for path, hashes in record["inventory"].items():
        if path not in PATHS or not isinstance(hashes, list):
            return False
        if not all(isinstance(value, str) for value in hashes):
            return False
    return True


def attributes_of(node: zarr.Array | zarr.Group, name: str) -> dict[str, Any]:
    """Return the attributes of a node; raise DamagedStoreError if they are damaged."""
    attributes: Any = node.metadata.attributes
    if not isinstance(attributes, dict):
        place = node.path or "the root"
        raise DamagedStoreError(
            f"{name}: the attributes of {place} are damaged: {RESTORE}."
        )
    return attributes


def _document(store: Store, *parts: str) -> dict[str, Any]:
    """Return the metadata of a Zarr 3 node, or an empty dict if there is none."""
    text = read_key(store, join(*parts, "zarr.json"))
    return {} if text is None else json.loads(text)


def chunk_digest(values: np.ndarray) -> str:
    """Return the checksum of a chunk in format 1: the BLAKE2b hash of its values.

    Strings are hashed as a JSON list.
    """
    if values.dtype.kind == "T":
        content: Any = json.dumps(values.tolist()).encode()
    else:
        content = np.ascontiguousarray(values).data
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def metadata_digest(store: Store, root: str, record: Record) -> str:
    """Return a hash of the record, and of the metadata of the arrays that it lists."""
    record = dict(record)
    record.pop("metadata", None)
    documents = {"record": record}
    paths: set[str] = set()
    for path in record["inventory"]:
        paths.update(("", path.rpartition("/")[0], path))
    for path in paths:
        document = _document(store, root, path)
        document.pop("consolidated_metadata", None)
        if path == "":  # attributes other than the record belong to the user
            document.pop("attributes", None)
        documents[f"/{path}"] = document
    text = json.dumps(documents, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
