"""Open Zarr stores (formats 2 and 3) in folders, in zip archives or at addresses."""

import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.store import Store
from zarr.storage import LocalStore, ZipStore

from mmcnb._config import format_bytes
from mmcnb.errors import InputError, damage, worded
from mmcnb.samples._limits import FolderStore, check_documents
from mmcnb.samples._remote import RemoteStore, open_address
from mmcnb.samples.base import Samples, copy_command
from mmcnb.samples.elements import Element, open_element
from mmcnb.samples.files import check_file
from mmcnb.samples.formats import is_unknown, refusal
from mmcnb.samples.inventory import Inventory, attributes_of, find_inventory
from mmcnb.samples.paths import ZARR_MARKS, checked_path, is_store_folder, join
from mmcnb.samples.stored import EdgeChunks, StoredArray

Node = zarr.Array | zarr.Group


@dataclass(frozen=True)
class ZarrStorage:
    """Access to the nodes of a Zarr store, with the inventory of the rows, if any."""

    inventory: Inventory | None

    def place(self, node: Node) -> tuple[str, str | None]:
        """Return the path or address of the store, and the node's path in the store."""
        return _place_of(node.store), node.path or None

    def attributes(self, node: Node) -> Mapping[str, Any]:
        """Return the attributes of a node."""
        return attributes_of(node, describe(node))

    def root(self, node: Node) -> zarr.Group | None:
        """Return the root group of a node's store; None if the root is not a group."""
        try:
            root = reopen(node.store, "")
        except FileNotFoundError:
            return None
        return root if isinstance(root, zarr.Group) else None

    def member(self, group: zarr.Group, path: str) -> Node | None:
        """Return the node at a path below a group, or None if it does not exist."""
        with damage(f"{describe(group)}: the metadata of {path} cannot be read"):
            return group.get(path)

    def members(self, group: zarr.Group) -> list[tuple[str, Node]]:
        """Return the names and nodes of a group's members, sorted by name.

        The result is empty if the store cannot list the members.
        """
        with damage(f"{describe(group)}: the metadata of a member cannot be read"):
            if not group.store.supports_listing:
                return []
            return sorted(group.members())

    def rows(
        self, array: zarr.Array, edges: EdgeChunks | None = None, lookahead: int = 0
    ) -> StoredArray:
        """Return a reader of an array's slices along the first axis."""
        return StoredArray(array, self.inventory, describe(array), edges, lookahead)

    def take(self, samples: Element) -> None:
        """Set how to reopen the rows, and copy their digest from the inventory."""
        inventory = self.inventory
        samples.opening = (open_zarr, samples.path, samples.element)
        samples.is_reopenable = isinstance(
            samples.node.store, RemoteStore | LocalStore | ZipStore
        )
        if inventory is None:
            return
        recorded = [inventory.hashes(array.path) for array in samples.arrays]
        if None not in recorded:
            samples.checksummed = True
            samples.digest = inventory.record["digest"]

    def identity(self, samples: Element) -> str:
        """Return a hash of the arrays' metadata and of any recorded checksums."""
        if self.inventory is not None and samples.checksummed:
            return self.inventory.record["metadata"]
        documents = [array.metadata.to_dict() for array in samples.arrays]
        source = repr((samples.n_features, documents))
        return blake2b(source.encode(), digest_size=16).hexdigest()


def open_zarr(source: Any, element: str | None = None) -> Samples:
    """Open the rows of a Zarr array or group, given itself, its path or its address."""
    node = open_node(source)
    with damage(f"{describe(node)}: the store's metadata cannot be read", OSError):
        inventory = find_inventory(node, describe(node))
        if inventory is not None:
            inventory.check_chunks()
            node = reopen(node.store, node.path)
    return open_element(ZarrStorage(inventory), node, element)


def is_zarr(samples: Samples) -> bool:
    """Return whether rows are read from a Zarr store."""
    return isinstance(getattr(samples, "storage", None), ZarrStorage)


def open_node(source: Any) -> Node:
    """Open the Zarr array or group at a path or an address.

    A node that is already open is returned unchanged.
    """
    if isinstance(source, zarr.Array | zarr.Group):
        return source
    # The returned Path is not used, because it would turn "//" into "/".
    checked_path(source)
    path = os.fspath(source).removeprefix("file://")
    if "://" in path:
        remote, inner = open_address(path)
        return _open_store(remote, inner, path)
    root, inner = _split(_checked(checked_path(path)))
    store: Store = FolderStore(root)
    if root.is_file():
        store = ZippedFolder(root, zipped_folder(root) or "")
    return _open_store(store, inner, path)


class ZippedFolder(ZipStore):
    """A zip archive that contains a store at its root or in a folder.

    Parameters
    ----------
    path : Path
        The archive.
    folder : str
        Folder of the store, which ends with /; "" is the root of the archive.
    """

    def __init__(self, path: Path, folder: str) -> None:
        super().__init__(path, mode="r")
        self._folder = folder

    def _sync_open(self) -> None:
        """Open the archive, and make its members' names relative to the folder."""
        super()._sync_open()
        archive = self._zf
        members = []
        for member in archive.infolist():
            if member.filename.startswith(self._folder):
                member.filename = member.filename.removeprefix(self._folder)
                members.append(member)
        archive.filelist = members
        archive.NameToInfo = {member.filename: member for member in members}


def zipped_folder(path: Path) -> str | None:
    """Return the folder of the store in a zip archive, or None if it has no store.

    Raises
    ------
    InputError
        If the archive contains several stores.
    """
    folders = set()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            folder, _, mark = name.rpartition("/")
            # macOS adds a folder __MACOSX with a companion of each file.
            if mark in ZARR_MARKS and not name.startswith("__MACOSX/"):
                folders.add(f"{folder}/" if folder else "")
    roots: list[str] = []
    for folder in sorted(folders):
        if not roots or not folder.startswith(roots[-1]):
            roots.append(folder)
    if len(roots) > 1:
        names = " and ".join(folder.rstrip("/") for folder in roots[:2])
        raise InputError(
            f"{path} contains {len(roots)} Zarr stores, such as {names}: unpack it, "
            "and give one of them."
        )
    return roots[0] if roots else None


def _open_store(store: Store, inner: str, name: str) -> Node:
    if isinstance(store, ZipStore):
        check_documents(store.path)
    with (
        # A damaged document can raise errors of any type in Zarr's parsers.
        damage(f"{name}: the store's metadata cannot be read"),
        worded(
            f"{name} contains no Zarr array or group",
            "check the path; a table must be local",
            FileNotFoundError,
            zarr.errors.BaseZarrError,
        ),
    ):
        return reopen(store, inner)


def reopen(store: Store, path: str) -> Node:
    """Open a node with its own metadata.

    The consolidated copy of the metadata would not be checked.
    """
    return zarr.open(store, mode="r", path=path or None, use_consolidated=False)


def stored_array(array: zarr.Array) -> StoredArray:
    """Return a reader of an array's slices that checks chunks against the inventory."""
    name = describe(array)
    return StoredArray(array, find_inventory(array, name), name)


def _checked(path: Path) -> Path:
    if not path.is_dir():
        check_file(path)
        is_zip = zipfile.is_zipfile(path)
        if is_zip and (path.suffix == ".zip" or zipped_folder(path) is not None):
            return path
        if is_unknown(path):
            raise refusal(path)
        raise InputError(
            f"{path} is a file, not a Zarr store: "
            f"convert it with `mmcnb convert {path} OUT.zarr`."
        )
    if not is_store_folder(path):
        raise InputError(
            f"{path} is a folder that contains no Zarr array or group: check the path."
        )
    return path


def _split(path: Path) -> tuple[Path, str]:
    """Return the root of the store that contains a path, and the path in the store."""
    root = path.absolute()
    while is_store_folder(root.parent) and root.parent != root:
        root = root.parent
    if root == path.absolute():
        return root, ""
    return root, path.absolute().relative_to(root).as_posix()


def _place_of(store: Store) -> str:
    """Return the path or address of a store, or Zarr's name of a store in memory."""
    if isinstance(store, LocalStore):
        return str(store.root.absolute())
    if isinstance(store, ZipStore):
        return str(Path(store.path).absolute())
    return str(store)


def describe(node: Node) -> str:
    """Return the name of a node for messages."""
    path = _place_of(node.store)
    if node.path == "X":
        return path
    return join(path, node.path)


def chunk_advice(samples: Samples) -> str | None:
    """Return a sentence about chunks that make reading slow, or None.

    Parameters
    ----------
    samples : Samples
        The rows, from any source.

    Returns
    -------
    str or None
        What is wrong with the chunks, and the command that writes larger chunks; None
        if reading is not slow.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.samples.zarr import chunk_advice
    >>> chunk_advice(open_samples(np.eye(3))) is None
    True
    """
    root: Any = samples.root
    # Up to 255 chunks are read fast, regardless of their size and shape.
    if not is_zarr(root) or root.arrays[0].nchunks < 256:
        return None
    name = root.name
    array = root.arrays[0]
    size = math.prod(array.chunks) * array.dtype.itemsize
    if array.chunks[1:] < array.shape[1:]:
        trouble = (
            f"chunks of {array.chunks[1]:,} of {array.shape[1]:,} columns, "
            "so each row is in several chunks"
        )
    elif size < 2**15:
        trouble = (
            f"{array.nchunks:,} chunks of {format_bytes(size)}, "
            "so most of the reading time is overhead"
        )
    else:
        return None
    return f"{name} has {trouble}; `{copy_command(root)}` writes larger chunks."
