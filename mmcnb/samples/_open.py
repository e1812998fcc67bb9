"""Open whatever holds rows: arrays, matrices, Dask arrays, and Zarr stores of version 2 or 3."""

import importlib
import os
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zarr
from zarr.storage import LocalStore, ZipStore

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import matrix
from mmcnb.samples._arrays import check_feature_names
from mmcnb.samples._base import ArraySamples, ChunkedSamples, CSRSamples, Samples
from mmcnb.samples._dask import DaskSamples
from mmcnb.samples._files import check_file
from mmcnb.samples._inventory import (
    REMEDY,
    Inventory,
    attributes_of,
    checked_path,
    find_inventory,
    is_store_folder,
    join,
    member,
    members,
)
from mmcnb.samples._limits import check_documents
from mmcnb.samples._remote import RemoteStore, open_address
from mmcnb.samples._stored import EdgeChunks, StoredArray, edge_bytes
from mmcnb.samples._stored_csr import StoredCSRSamples
from mmcnb.samples._text import table_format

Node = zarr.Array | zarr.Group


class _ZarrSamples(ChunkedSamples):
    """What both layouts share: the inventory and the recorded digest."""

    inventory: Inventory | None
    node: Node
    arrays: list[zarr.Array]

    def _set_arrays(self, node: Node, arrays: list[zarr.Array], inventory: Inventory | None) -> None:
        self.node, self.arrays, self.inventory = node, arrays, inventory
        self.checksummed = inventory is not None and all(inventory.hashes(a.path) is not None for a in arrays)
        if inventory is not None and self.checksummed:
            # The cached property finds the recorded digest in its place.
            self.__dict__["digest"] = inventory.record["digest"]

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns: an attribute of the rows, or AnnData's names of the variables."""
        names: Any = attributes_of(self.node, self.name).get("feature_names")
        if names is None and self.node.path and not self.checksummed:
            from mmcnb.samples._anndata import stored_names

            names = stored_names(self.node, self.name)
        return None if names is None else check_feature_names(names, self.n_features, self.name)

    def identity(self) -> str:
        """A hash of what the store says of its arrays, which covers the digests of chunks it records."""
        if self.inventory is not None and self.checksummed:
            return self.inventory.record["metadata"]
        documents = [array.metadata.to_dict() for array in self.arrays]
        return blake2b(repr((self.n_features, documents)).encode(), digest_size=16).hexdigest()

    def opener(self) -> Any:
        """The function that opens the store again."""
        return open_samples


class ZarrArraySamples(_ZarrSamples):
    """Rows of a Zarr array."""

    is_sparse = False

    def __init__(self, array: zarr.Array, name: str, inventory: Inventory | None) -> None:
        self._describe(name, array.shape, array.dtype)
        self._set_arrays(array, [array], inventory)
        self._rows = StoredArray(array, inventory, name)
        self.chunk_rows = self._rows.chunk_length
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.edge_bytes = edge_bytes([self._rows.chunk_bytes], self._rows.length * self._rows.row_bytes)


class ZarrCSRSamples(StoredCSRSamples, _ZarrSamples):
    """Rows of a group in AnnData's ``csr_matrix`` encoding, read by contiguous slices."""

    def __init__(self, group: zarr.Group, name: str, inventory: Inventory | None) -> None:
        parts = {part: _part(group, part, name) for part in ("data", "indices", "indptr")}
        self._describe(name, _shape(group, name), parts["data"].dtype)
        matrix.check_index_dtypes(name, indices=parts["indices"], indptr=parts["indptr"])
        self._set_arrays(group, list(parts.values()), inventory)
        edges = EdgeChunks(3)
        data, indices, indptr = (
            StoredArray(array, inventory, name, edges, lookahead=int(part == "indptr"))
            for part, array in parts.items()
        )
        self._set_parts(data, indices, indptr)


def _part(group: zarr.Group, part: str, name: str) -> zarr.Array:
    array = member(group, part, name)
    if not isinstance(array, zarr.Array) or array.ndim != 1:
        raise InputError(f"{name}: a CSR group needs a 1-D array named {part}: write the matrix again.")
    return array


def _shape(group: zarr.Group, name: str) -> tuple[int, ...]:
    shape = attributes_of(group, name).get("shape")
    if not isinstance(shape, list | tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise InputError(
            f"{name}: the CSR group has no attribute shape of the form [rows, columns]: "
            "write the matrix again, for example with anndata."
        )
    return tuple(shape)


READERS: dict[tuple[type, str, str], Callable[..., Samples]] = {
    (zarr.Array, "", ""): ZarrArraySamples,
    (zarr.Array, "array", "0.2.0"): ZarrArraySamples,
    (zarr.Group, "csr_matrix", "0.1.0"): ZarrCSRSamples,
}
"""Readers of Zarr nodes by type, ``encoding-type`` and ``encoding-version``."""


def open_samples(source: Any, element: str | None = None) -> Samples:
    """Open rows for reading, block by block.

    Parameters
    ----------
    source : array, sparse matrix, data frame, AnnData, file, Zarr store or Samples
        An array of shape (n_samples, n_features) or a list of rows; a SciPy sparse matrix or array; a data
        frame of pandas, polars, pyarrow or another library that exports Arrow; an AnnData object, in memory
        or backed; a Dask array or frame; an xarray DataArray; a dataset or group of h5py; the path of a
        ``.npy``, ``.h5``, ``.hdf5`` or ``.h5ad`` file, or of a table of numbers: Parquet (a file, or a folder
        of files), Arrow IPC or Feather, or CSV of at most 256 MiB; a Zarr array or group, opened, as a path
        or as an address such as ``"https://host/rows.zarr"`` (which needs ``mmcnb[remote]``): a 2-D array, a
        CSR group in AnnData's encoding, or a group that holds such an element, as an AnnData store does.
    element : str, default=None
        Element of a group, file or AnnData object, such as ``"X"``, ``"layers/counts"``, ``"obsm/X_pca"`` or
        ``"raw/X"``; None is ``"X"``.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        The rows cannot be read or reached, or are not real finite numbers.
    DamagedStoreError
        The store is not what was written.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> samples = open_samples(np.eye(3))
    >>> samples.n_samples, samples.block(0, 2).shape
    (3, (2, 3))
    """
    if isinstance(source, Samples):
        return source
    if isinstance(source, zarr.Array | zarr.Group):
        return _open_zarr(source, element)
    if isinstance(source, str | os.PathLike):
        checked_path(source, "X")
        if is_file_of_rows(source):
            module, opener = FILES.get(Path(source).suffix.lower(), TABLES)
            return getattr(importlib.import_module(module), opener)(source, element)
        return _open_zarr(open_node(source), element)
    if isinstance(source, np.ndarray) or scipy.sparse.issparse(source):
        return _open_array(source, element)
    return _open_object(source, element)


def _open_zarr(node: Node, element: str | None) -> Samples:
    inventory = find_inventory(node, describe(node))
    if inventory is not None:
        inventory.check_metadata()
        inventory.check_chunks()
        node = reopen(node.store, node.path)
    if isinstance(node, zarr.Group):
        node = _find_element(node, element, describe(node))
    elif element not in (None, ""):
        raise InputError(f"{describe(node)} is an array and has no element {element!r}: leave element out.")
    return _read_node(node, inventory)


def _refuse_element(what: str, element: str | None) -> None:
    if element is not None:
        raise InputError(f"X is {what} and has no element {element!r}: leave element out.")


def _samples_of(array: Any, *described: Any) -> Samples:
    return (CSRSamples if scipy.sparse.issparse(array) else ArraySamples)(array, *described)


def _open_array(array: Any, element: str | None) -> Samples:
    _refuse_element("an array", element)
    if isinstance(array, np.memmap):
        return importlib.import_module("mmcnb.samples._npy_samples").open_memmap(array)
    return _samples_of(array)


def _open_object(source: Any, element: str | None) -> Samples:
    """Rows of an object of another library, known by its package or by what it holds."""
    package = type(source).__module__.partition(".")[0]
    if package == "h5py":
        return importlib.import_module("mmcnb.samples._hdf5").open_object(source, element)
    if type(source).__module__.startswith("dask.array"):
        _refuse_element("a Dask array", element)
        return DaskSamples(source)
    from mmcnb.samples._objects import unwrap

    rows = unwrap(source, element)
    if isinstance(rows.source, np.ndarray) or scipy.sparse.issparse(rows.source):
        return _samples_of(rows.source, rows.name or "X", rows.names)
    samples = open_samples(rows.source)
    samples.name = rows.name or samples.name
    if rows.names is not None:
        samples.feature_names = check_feature_names(rows.names, samples.n_features, samples.name)
    return samples


FILES = {
    ".npy": ("mmcnb.samples._npy_samples", "open_npy"),
    ".h5": ("mmcnb.samples._hdf5", "open_hdf5"),
    ".hdf5": ("mmcnb.samples._hdf5", "open_hdf5"),
    ".h5ad": ("mmcnb.samples._hdf5", "open_hdf5"),
}
"""Modules that read files of rows, by ending, and their functions of path and element."""

TABLES = ("mmcnb.samples.tables", "open_table")


def is_file_of_rows(source: Any) -> bool:
    """Whether a source is the path of a file that one of the modules reads."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return False
    path = Path(source)
    if is_store_folder(path):
        return False
    return (path.suffix.lower() in FILES and not path.is_dir()) or table_format(path) is not None


def _read_node(node: Node, inventory: Inventory | None) -> Samples:
    name = describe(node)
    kind = zarr.Array if isinstance(node, zarr.Array) else zarr.Group
    form, version = encoding(node)
    reader = READERS.get((kind, form, version))
    if reader is None:
        known = sorted({f"{key[1]} {key[2]}" for key in READERS if key[1]})
        raise InputError(
            f"{name} is encoded as {form or 'a plain group'} {version}".rstrip()
            + f", which has no reader: write it as one of {', '.join(known)}, or as a 2-D array."
        )
    samples = reader(node, name, inventory)
    samples.path, samples.element = _storage_of(node), node.path or None
    samples.is_reopenable = samples.path is not None
    return samples


def open_node(source: Any) -> Node:
    """Open what a path names; what is open already is returned as it is."""
    if isinstance(source, zarr.Array | zarr.Group):
        return source
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"X is a {type(source).__name__}, which cannot be read: give an array, a SciPy CSR matrix, "
            "a Zarr array or group, or the path of a Zarr store."
        )
    path = os.fspath(checked_path(source)) if "://" not in os.fspath(source) else os.fspath(source)
    if "://" in path and not path.startswith("file://"):
        return _open_store(*open_address(path), path)
    path = path.removeprefix("file://")
    root, inner = _split(_check_path(Path(path)))
    store = ZipStore(root, mode="r") if root.is_file() else root
    return _open_store(store, inner, path)


def _open_store(store: Any, inner: str, name: str) -> Node:
    try:
        if isinstance(store, ZipStore):
            check_documents(store.path)
        return reopen(store, inner)
    except InputError:  # of a store that could not be reached
        raise
    except (FileNotFoundError, zarr.errors.BaseZarrError) as error:
        raise InputError(f"{name} holds no Zarr array or group: check the path.") from error
    except Exception as error:  # a damaged document can break anywhere in Zarr's parsers
        raise DamagedStoreError(f"{name}: the store's metadata cannot be read: {REMEDY}.") from error


def reopen(store: Any, path: str) -> Node:
    """Open a node by its own metadata: a consolidated copy would escape the inventory."""
    return zarr.open(store, mode="r", path=path or None, use_consolidated=False)


def stored_array(array: zarr.Array) -> StoredArray:
    """An open array to be read by slices, checked against the inventory of its store."""
    name = describe(array)
    inventory = find_inventory(array, name)
    if inventory is not None:
        inventory.check_metadata()
    return StoredArray(array, inventory, name)


def _check_path(path: Path) -> Path:
    if not path.is_dir():
        check_file(path)
        if path.suffix == ".zip" and zipfile.is_zipfile(path):
            return path
        raise InputError(
            f"{path} is a file and no Zarr store: make one with `mmcnb convert {path} OUT.zarr`."
        )
    if not any(path.iterdir()):
        raise InputError(f"{path} is an empty folder and no Zarr store: check the path.")
    if not is_store_folder(path):
        raise InputError(f"{path} is a folder that holds no Zarr array or group: check the path.")
    return path


def _split(path: Path) -> tuple[Path, str]:
    """Root of the store a path lies in, and the path inside: an inventory stands at the root."""
    root = path.absolute()
    while is_store_folder(root.parent) and root.parent != root:
        root = root.parent
    return root, "" if root == path.absolute() else path.absolute().relative_to(root).as_posix()


def _find_element(group: zarr.Group, element: str | None, name: str) -> Node:
    if element is None and (READERS.get((zarr.Group, *encoding(group))) or "indptr" in group):
        return group
    path = (element or "X").strip("/")
    node = member(group, path, name)
    if node is not None:
        return node
    if not group.store.supports_listing:
        raise InputError(f"{name} has no element {path!r}: name one that it has with element (--element).")
    known = ", ".join(_elements(group)) or "none"
    raise InputError(f"{name} has no element {path!r}; it has: {known}. Name one with element (--element).")


def encoding(node: Node) -> tuple[str, str]:
    """AnnData's ``encoding-type`` and ``encoding-version`` of a node; empty where it has none."""
    attributes = attributes_of(node, describe(node))
    return str(attributes.get("encoding-type", "")), str(attributes.get("encoding-version", ""))


def _elements(group: zarr.Group, prefix: str = "") -> Iterator[str]:
    for name, node in members(group, describe(group)):
        if isinstance(node, zarr.Array):
            if node.ndim == 2:
                yield prefix + name
        elif (zarr.Group, *encoding(node)) in READERS:
            yield prefix + name
        elif not prefix:
            yield from _elements(node, f"{name}/")


def _storage_of(node: Node) -> str | None:
    """Path or address to open a node's store again; None where there is none."""
    store = node.store
    if isinstance(store, RemoteStore):
        return store.url
    if isinstance(store, LocalStore):
        return str(store.root.absolute())
    return str(Path(store.path).absolute()) if isinstance(store, ZipStore) else None


def describe(node: Node) -> str:
    """Name of a node for messages: its store's path and its own inside."""
    return join(_storage_of(node) or str(node.store), "" if node.path == "X" else node.path)
