"""Open the rows of HDF5 files, such as AnnData's .h5ad files."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from mmcnb.errors import RESTORE, DamagedStoreError, InputError, damage, worded
from mmcnb.samples.base import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples.elements import Element, Node, open_element
from mmcnb.samples.files import check_file, file_identity
from mmcnb.samples.stored import EdgeChunks, SlicedRows
from mmcnb.samples.tenx_hdf5 import open_tenx

COPY = "links to other files are not followed; copy the data into one file"


class _Dataset(SlicedRows):
    """A dataset that is read by slices along its first axis.

    A dataset without chunks is read in blocks of BLOCK_ROWS rows or, if it is 1-D, of
    GROUP_ROWS values.
    """

    def __init__(self, dataset: Node, edges: EdgeChunks | None, lookahead: int) -> None:
        self._name = f"{dataset.file.filename}{dataset.name}"
        if dataset.is_virtual or dataset.external:
            raise InputError(f"{self._name} stores its numbers in other files: {COPY}.")
        if dataset.chunks:
            chunk_length = dataset.chunks[0]
        else:
            chunk_length = BLOCK_ROWS if dataset.ndim > 1 else GROUP_ROWS
        super().__init__(dataset.name, dataset, chunk_length, edges, lookahead)

    def load(self, start: int, stop: int) -> np.ndarray:
        """Read whole chunks.

        A lock is held, because HDF5 allows only one thread to read at a time.
        """
        # Filters, drivers and closed files raise errors of different types.
        with damage(f"{self._name}: {start} to {stop} cannot be read"):
            return self._array[start:stop]


class HDF5Storage:
    """Access to the nodes of an HDF5 file."""

    def place(self, node: Node) -> tuple[str, str | None]:
        """Return the path of a node's file, and the node's path inside the file."""
        return str(Path(node.file.filename).absolute()), node.name.strip("/") or None

    def attributes(self, node: Node) -> Mapping[str, object]:
        """Return the attributes of a node."""
        return node.attrs

    def root(self, node: Node) -> Node:
        """Return the file that contains a node; the file is also the root group."""
        return node.file

    def member(self, group: Node, path: str) -> Node:
        """Return the node at a path below a group, or None if it does not exist."""
        with damage(f"{group.file.filename}: {path} cannot be read"):
            return _follow(group, path)

    def members(self, group: Node) -> Iterable[tuple[str, Node]]:
        """Yield the names and nodes of the members of a group."""
        for name in group:
            node = self.member(group, name)
            if node is not None:
                yield name, node

    def rows(
        self, array: Node, edges: EdgeChunks | None = None, lookahead: int = 0
    ) -> SlicedRows:
        """Return a reader of a dataset's slices along the first axis."""
        return _Dataset(array, edges, lookahead)

    def take(self, samples: Element) -> None:
        """Set how to reopen the rows, and whether other processes can reopen them."""
        file = samples.node.file
        samples.opening = open_hdf5, samples.path, samples.element
        samples.is_reopenable = file.mode == "r" and Path(file.filename).is_file()

    def identity(self, samples: Element) -> str:
        """Return a hash that identifies the source of the rows.

        The hash covers the shape and dtype of the rows, and the size and modification
        time of the file.
        """
        known = samples.n_samples, samples.n_features, str(samples.stored_dtype)
        return file_identity(samples.node.file.filename, *known)


def _follow(node: Node, path: str, n_links: int = 0) -> Node:
    """Return the node at a path below another node, or None if it does not exist.

    Soft links are followed. A link to another file raises InputError.
    """
    import h5py

    if n_links > 16:  # soft links form a cycle
        raise DamagedStoreError(
            f"{node.file.filename}: links to {path} lead in a circle: {RESTORE}."
        )
    for part in path.strip("/").split("/"):
        if not hasattr(node, "keys"):  # None, or a dataset
            return None
        link = node.get(part, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise InputError(
                f"{node.file.filename}: {path} leads to the file {link.filename}: "
                f"{COPY}."
            )
        if isinstance(link, h5py.SoftLink):
            start = node.file if link.path.startswith("/") else node
            node = _follow(start, link.path, n_links + 1)
        else:
            node = node.get(part)
    return node


def open_hdf5(path: str | os.PathLike[str], element: str | None = None) -> Samples:
    """Open the rows of an HDF5 file.

    Parameters
    ----------
    path : path
        The file.
    element : str or None, default=None
        Path inside the file of a dataset, or of a CSR group or data frame in AnnData's
        encoding. None means ``"X"``.

    Returns
    -------
    Samples
        The rows.

    Raises
    ------
    InputError
        If the file is missing or damaged, or if it has no such element. In the latter
        case, the message lists the elements that exist.
    """
    with worded(f"{path} needs h5py", 'pip install "mmcnb[hdf5]"', ImportError):
        import h5py
    check_file(path)
    remedy = "close it in the program that writes it, or restore it from a copy"
    with worded(f"{path} cannot be opened as HDF5", remedy, OSError):
        file = h5py.File(path, "r")
    return open_hdf5_node(file, element)


def open_hdf5_node(node: Node, element: str | None = None) -> Samples:
    """Open the rows of an h5py file, group or dataset."""
    if not node:
        raise InputError("X belongs to a closed HDF5 file: open it again.")
    storage = HDF5Storage()
    counts = open_tenx(storage, node, element)
    if counts is not None:
        return counts
    return open_element(storage, node, element)
