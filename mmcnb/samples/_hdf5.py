"""Rows of HDF5 files: datasets, and the dense and CSR elements of AnnData's .h5ad."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import matrix
from mmcnb.samples._anndata import annotation_of, plain_names
from mmcnb.samples._arrays import check_feature_names
from mmcnb.samples._base import BLOCK_ROWS, GROUP_ROWS, ChunkedSamples, Samples
from mmcnb.samples._files import check_file, file_identity
from mmcnb.samples._inventory import REMEDY, join
from mmcnb.samples._stored import EdgeChunks, SlicedRows, edge_bytes
from mmcnb.samples._stored_csr import StoredCSRSamples

PARTS = "data", "indices", "indptr"
MOST_LINKS = 16  # that lead from one to the next
COPY = "no file opens others; copy them into one, for example with h5repack"


class _Dataset(SlicedRows):
    """Slices of an HDF5 dataset; one without chunks is read in those of the reduction."""

    def __init__(self, dataset: Any, name: str, edges: EdgeChunks | None = None, lookahead: int = 0) -> None:
        if dataset.is_virtual or dataset.external:
            raise InputError(f"{name}: {dataset.name} keeps its numbers in other files: {COPY}.")
        chunk_length = BLOCK_ROWS if dataset.ndim > 1 else GROUP_ROWS
        super().__init__(
            dataset.name, dataset, dataset.chunks[0] if dataset.chunks else chunk_length, edges, lookahead
        )
        self._name = name

    def load(self, start: int, stop: int) -> np.ndarray:
        """Read whole chunks; the library lets one thread in at a time."""
        try:
            return self._array[start:stop]
        except MemoryError:
            raise
        except Exception as error:  # of filters, of the driver, of a file that was closed
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise DamagedStoreError(
                f"{self._name}: {start} to {stop} of {self._array.name} cannot be read ({reason}): {REMEDY}."
            ) from error


class _HDF5Samples(ChunkedSamples):
    """What both layouts share: the node in its file, its identity and its names."""

    checksummed = False
    node: Any

    def _set_node(self, node: Any) -> None:
        self.node, file = node, node.file
        self.path, self.element = str(Path(file.filename).absolute()), node.name.strip("/")
        self.is_reopenable = file.mode == "r" and Path(self.path).is_file()

    def opener(self) -> Any:
        """The function that opens the file again."""
        return open_hdf5

    def identity(self) -> str:
        """A hash of shape and type, and of size and time of the file."""
        assert self.path is not None
        return file_identity(self.path, self.n_samples, self.n_features, str(self.stored_dtype))

    @cached_property
    def feature_names(self) -> list[str] | None:
        """AnnData's names of the variables."""
        path = annotation_of(self.node.name.strip("/"))
        try:
            group = None if path is None else _member(self.node.file, path)
            if group is None or "_index" not in group.attrs:
                return None
            names = plain_names(_member(group, group.attrs["_index"])[:])
        except InputError:
            raise
        except Exception as error:  # as for the rows
            raise DamagedStoreError(f"{self.name}: the names in {path} cannot be read: {REMEDY}.") from error
        return check_feature_names(names, self.n_features, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_reopenable:
            raise InputError(f"{self.name} cannot be sent to another process: open it by its path instead.")
        return super().__reduce__()


class HDF5ArraySamples(_HDF5Samples):
    """Rows of a 2-D dataset."""

    is_sparse = False

    def __init__(self, dataset: Any, name: str) -> None:
        self._describe(name, dataset.shape, dataset.dtype)
        self._set_node(dataset)
        self._rows = _Dataset(dataset, name)
        self.chunk_rows = self._rows.chunk_length
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.edge_bytes = edge_bytes([self._rows.chunk_bytes], self._rows.length * self._rows.row_bytes)


class HDF5CSRSamples(_HDF5Samples, StoredCSRSamples):
    """Rows of a group in AnnData's ``csr_matrix`` encoding."""

    def __init__(self, group: Any, name: str) -> None:
        parts = {part: _member(group, part) for part in PARTS}
        shape = group.attrs.get("shape")
        if shape is None or any(getattr(array, "ndim", 0) != 1 for array in parts.values()):
            raise InputError(
                f"{name}: a CSR group has 1-D datasets data, indices and indptr and an attribute shape: "
                "write the matrix again, for example with anndata."
            )
        self._describe(name, tuple(int(n) for n in shape), parts["data"].dtype)
        matrix.check_index_dtypes(name, indices=parts["indices"], indptr=parts["indptr"])
        self._set_node(group)
        edges = EdgeChunks(3)
        self._set_parts(*(_Dataset(parts[part], name, edges, int(part == "indptr")) for part in PARTS))


def open_hdf5(path: str | os.PathLike[str], element: str | None = None) -> Samples:
    """Open rows of an HDF5 file.

    Parameters
    ----------
    path : path
    element : str or None, default=None
        Path of a dataset or of a CSR group in the file; None is ``"X"``.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        The file is missing or damaged, or has no such element; the message lists those it has.
    """
    h5py = _h5py(path)
    check_file(path)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened as HDF5 ({str(error).splitlines()[0][:120]}): close it where it is "
            "written, or restore it from a copy."
        ) from error
    return open_object(file, element)


def open_object(node: Any, element: str | None) -> Samples:
    """Open rows of a file, group or dataset of h5py."""
    if not node:
        raise InputError("X is of an HDF5 file that was closed: open it again.")
    name = node.file.filename
    if hasattr(node, "shape"):
        if element not in (None, ""):
            raise InputError(f"{name}{node.name} is a dataset and has no element {element!r}: leave it out.")
        return HDF5ArraySamples(node, _describe(node))
    if element is not None or node.attrs.get("encoding-type") not in ("csr_matrix", "csc_matrix"):
        path = (element or "X").strip("/")
        try:
            found = _member(node, path)
        except InputError:
            raise
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise DamagedStoreError(f"{name}: {path} cannot be read: {REMEDY}.") from error
        if found is None:
            known = ", ".join(_elements(node)) or "none"
            raise InputError(
                f"{name} has no element {path!r}; it has: {known}. Name one with element (--element)."
            )
        node = found
    return HDF5ArraySamples(node, _describe(node)) if hasattr(node, "shape") else _open_group(node)


def _open_group(group: Any) -> Samples:
    form, name = group.attrs.get("encoding-type", "a plain group"), _describe(group)
    if form == "csr_matrix":
        return HDF5CSRSamples(group, name)
    if form == "csc_matrix":
        raise InputError(
            f"{name} is stored by columns (CSC), so its rows cannot be streamed: write it as CSR, such as by "
            "adata.X = adata.X.tocsr() and adata.write_h5ad(...)."
        )
    raise InputError(f"{name} is encoded as {form}, which has no reader: give a 2-D dataset or a CSR group.")


def _member(node: Any, path: str, n_links: int = 0) -> Any:
    """What a path inside a file leads to; None where it leads nowhere. A link to another file is refused."""
    import h5py

    if n_links > MOST_LINKS:
        raise DamagedStoreError(f"{node.file.filename}: links to {path} lead in a circle: {REMEDY}.")
    for part in path.strip("/").split("/"):
        link = node.get(part, getlink=True) if hasattr(node, "keys") else None
        if isinstance(link, h5py.ExternalLink):
            raise InputError(f"{node.file.filename}: {path} leads to the file {link.filename}: {COPY}.")
        if isinstance(link, h5py.SoftLink):
            start = node.file if link.path.startswith("/") else node
            node = _member(start, link.path, n_links + 1)
        else:
            node = None if link is None else node.get(part)
    return node


def _describe(node: Any) -> str:
    path = node.name.strip("/")
    return join(node.file.filename, "" if path == "X" else path)


def _elements(group: Any, prefix: str = "") -> Iterator[str]:
    for name in group:
        node = _member(group, name)
        if node is None:
            continue
        if hasattr(node, "shape"):
            if node.ndim == 2:
                yield prefix + name
        elif node.attrs.get("encoding-type") == "csr_matrix":
            yield prefix + name
        elif not prefix:
            yield from _elements(node, f"{name}/")


def _h5py(path: Any) -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f'{path} needs h5py: pip install "mmcnb[hdf5]".') from error
    return h5py
