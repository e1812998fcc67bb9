"""Rows of an element of a store or file: an array, or AnnData's matrix or frame."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mmcnb.errors import RESTORE, DamagedStoreError, InputError
from mmcnb.samples import matrix
from mmcnb.samples.arrays import check_feature_names
from mmcnb.samples.base import BLOCK_ROWS, ChunkedSamples, Samples, edge_bytes
from mmcnb.samples.files import files_below
from mmcnb.samples.paths import join
from mmcnb.samples.stored import EdgeChunks, SlicedRows


class Element(ChunkedSamples):
    """Rows of a node of a storage, which is an array or a group with attributes.

    Attributes
    ----------
    storage : ZarrStorage or HDF5Storage
        Reads nodes, and knows whether their bytes are checked.
    node : object
        Of Zarr or h5py, as are the arrays.
    arrays : list
        The arrays from which rows are read.
    """

    def _set(
        self, storage: Any, node: Any, shape: Any, dtype: Any, arrays: list[Any]
    ) -> None:
        self.storage = storage
        self.node = node
        self.arrays = arrays
        self._describe(describe(storage, node), shape, dtype)
        self.path, self.element = storage.place(node)
        storage.take(self)
        self.path = self.path if self.is_reopenable else None

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns: an attribute, or AnnData's names of the variables."""
        names = self.storage.attributes(self.node).get("feature_names")
        if names is None and not self.checksummed:
            names = names_beside(self, _variables(self.element or ""))
            names = None if names is None else plain_names(names.read(0, names.length))
        return check_feature_names(names, self.n_features, self.name)

    @property
    def sources(self) -> list[str] | None:
        """For each column the column of the table that was converted, or its own name."""
        names = self.storage.attributes(self.node).get("table_columns")
        if names is None:
            return self.feature_names
        return check_feature_names(
            names, self.n_features, f"{self.name}, table_columns"
        )

    def identity(self) -> str:
        """A hash of the metadata of its arrays."""
        return self.storage.identity(self)

    def state(self) -> Any:
        """The identity, and sizes and times of chunks that have files of their own."""
        places = {
            Path(self.path or "", getattr(array, "path", "")) for array in self.arrays
        }
        return super().state(), {place: files_below(place) for place in places}


class ArrayElement(Element):
    """Rows of a 2-D array."""

    def __init__(self, storage: Any, array: Any) -> None:
        self._set(storage, array, array.shape, array.dtype, [array])
        rows = storage.rows(array)
        self._set_rows(rows, rows.chunk_length)


class CSRElement(Element):
    """Rows of a group in AnnData's ``csr_matrix`` encoding, read by slices."""

    is_sparse = True

    def __init__(self, storage: Any, group: Any) -> None:
        name = describe(storage, group)
        attributes = storage.attributes(group)
        parts = {
            part: storage.member(group, part) for part in ("data", "indices", "indptr")
        }
        for part, array in parts.items():
            if len(getattr(array, "shape", ())) != 1:
                raise InputError(
                    f"{name}: a CSR group needs a 1-D array named {part}: "
                    "write it again."
                )
        shape = attributes.get("shape")
        shape = shape.tolist() if isinstance(shape, np.ndarray) else shape
        if not isinstance(shape, list | tuple) or not all(
            type(n) is int and n >= 0 for n in shape
        ):
            raise InputError(
                f"{name}: the CSR group has no attribute shape of the form "
                "[rows, columns]: write the matrix again, for example with anndata."
            )
        self._set(
            storage, group, tuple(shape), parts["data"].dtype, list(parts.values())
        )
        matrix.check_index_dtypes(
            name, indices=parts["indices"], indptr=parts["indptr"]
        )
        edges = EdgeChunks(len(parts))
        # The row pointers look one value ahead.
        stored = [
            storage.rows(array, edges, int(part == "indptr"))
            for part, array in parts.items()
        ]
        self._data, self._indices, self._indptr = data, indices, indptr = stored
        matrix.check_indptr_length(
            indptr.length, self.n_samples, data.length, indices.length, name
        )
        ends = indptr.gather(np.array([0, self.n_samples])).astype(np.int64)
        matrix.check_indptr_ends(int(ends[0]), int(ends[1]), data.length, name)
        n_bytes = sum(part.length * part.row_bytes for part in stored)
        self.edge_bytes = edge_bytes([part.chunk_bytes for part in stored], n_bytes)
        row_values = max(data.length / self.n_samples, 1e-9)
        self.row_bytes = self._sparse_row_bytes(row_values)
        rows = min(data.chunk_length / row_values, self.n_samples)
        self.chunk_rows = BLOCK_ROWS * max(1, int(rows // BLOCK_ROWS))

    def _read(self, start: int, stop: int) -> matrix.CSRParts:
        indptr = self._indptr.read(start, stop).astype(np.int64, copy=False)
        matrix.check_indptr_rises(
            indptr[:-1], indptr[1:], self._data.length, self.name, start
        )
        first = int(indptr[0])
        last = int(indptr[-1])
        data = self._data.read(first, last)
        return data, self._indices.read(first, last), indptr - first

    def _gather(self, rows: np.ndarray) -> matrix.CSRParts:
        around = np.union1d(rows, rows + 1)
        pointers = self._indptr.gather(around).astype(np.int64)
        starts = pointers[np.searchsorted(around, rows)]
        stops = pointers[np.searchsorted(around, rows + 1)]
        n_data = self._data.length
        matrix.check_indptr_rises(starts, stops, n_data, self.name, rows)
        matrix.check_indptr_rises(stops[:-1], starts[1:], n_data, self.name, rows)
        positions, indptr = matrix.row_positions(starts, stops)
        return self._data.gather(positions), self._indices.gather(positions), indptr


class FrameElement(Element):
    """Rows of a group in AnnData's ``dataframe`` encoding, a column an array."""

    def __init__(self, storage: Any, group: Any) -> None:
        name = describe(storage, group)
        columns = plain_text(storage.attributes(group).get("column-order", ()))
        arrays = [storage.member(group, column) for column in columns]
        for column, array in zip(columns, arrays, strict=True):
            kind = getattr(getattr(array, "dtype", None), "kind", "O")
            if kind not in "biuf" or array.ndim != 1:
                raise InputError(
                    f"column {column!r} of {name} has no plain numbers: "
                    "convert or drop it."
                )
        lengths = [array.shape[0] for array in arrays] or [0]
        if len(set(lengths)) > 1:
            raise DamagedStoreError(
                f"{name}: its columns have different lengths: {RESTORE}."
            )
        dtype = matrix.block_dtype(*(array.dtype for array in arrays))
        self._set(storage, group, (lengths[0], len(arrays)), dtype, arrays)
        self.feature_names = columns
        edges = EdgeChunks(len(arrays))
        parts = [storage.rows(array, edges) for array in arrays]
        self._set_rows(parts, max(part.chunk_length for part in parts))

    def _read(self, start: int, stop: int) -> np.ndarray:
        columns = [column.read(start, stop) for column in self._rows]
        return np.column_stack(columns).astype(self.dtype)

    def _gather(self, rows: np.ndarray) -> np.ndarray:
        columns = [column.gather(rows) for column in self._rows]
        return np.column_stack(columns).astype(self.dtype)


READERS = {
    (True, ""): ("", ArrayElement),
    (True, "array"): ("0.2.0", ArrayElement),
    (False, "csr_matrix"): ("0.1.0", CSRElement),
    (False, "dataframe"): ("0.2.0", FrameElement),
}
"""Version and reader of a node, by whether it is an array and its encoding-type."""


def open_element(storage: Any, node: Any, element: str | None) -> Samples:
    """Open the rows of an array, or of an element of a group.

    Raises
    ------
    InputError
        The group has no such element; the message lists those it has. Or the element
        has no reader.
    """
    if not hasattr(node, "shape"):
        node = _found(storage, node, element)
    elif element not in (None, ""):
        name = describe(storage, node)
        raise InputError(
            f"{name} is an array and has no element {element!r}: leave element out."
        )
    form = _form(storage, node)
    version = str(storage.attributes(node).get("encoding-version", ""))
    known, reader = READERS.get((hasattr(node, "shape"), form), ("", None))
    if reader is None or version not in ("", known):
        fault = (
            f"encoded as {form or 'a plain group'} {version}".rstrip()
            + ", which has no reader"
        )
        remedy = "write it as one of array 0.2.0, csr_matrix 0.1.0, or as a 2-D array"
        if form == "csc_matrix":
            fault = "stored by columns (CSC), so no rows can be streamed"
            remedy = "write X.tocsr() in its place"
        raise InputError(f"{describe(storage, node)} is {fault}: {remedy}.")
    return reader(storage, node)


def describe(storage: Any, node: Any) -> str:
    """Name of a node for messages: the path of its storage and its own inside."""
    path, inner = storage.place(node)
    return join(path, "" if inner in (None, "X") else inner)


def _form(storage: Any, node: Any) -> str:
    return str(storage.attributes(node).get("encoding-type", ""))


def _found(storage: Any, group: Any, element: str | None) -> Any:
    """The element of a group; the group itself if it is one."""
    form = _form(storage, group)
    is_known = form == "csc_matrix" or (False, form) in READERS
    if element is None and (is_known or storage.member(group, "indptr") is not None):
        return group
    path = (element or "X").strip("/")
    node = storage.member(group, path)
    if node is None:
        name = describe(storage, group)
        known = ", ".join(_listed(storage, group))
        has = known and f"; it has: {known}"
        raise InputError(
            f"{name} has no element {path!r}{has}. Name one with element (--element)."
        )
    return node


def _listed(storage: Any, group: Any, prefix: str = "") -> list[str]:
    """Elements of a group that have readers, as far as its storage lists them."""
    elements = []
    for name, node in storage.members(group):
        if hasattr(node, "shape"):
            elements += [prefix + name] * (len(node.shape) == 2)
        elif (False, _form(storage, node)) in READERS:
            elements += [prefix + name] * (name not in ("obs", "var"))
        elif not prefix:
            elements += _listed(storage, node, f"{name}/")
    return elements


# -- names of AnnData ------------------------------------------------------------------


def plain_text(values: Iterable[Any]) -> list[str]:
    """Names as text, also those that HDF5 gives as bytes."""
    return [
        value.decode() if isinstance(value, bytes) else str(value) for value in values
    ]


def plain_names(values: Iterable[Any]) -> list[str] | None:
    """Return names as text; None if they are AnnData's default, the column numbers."""
    names = plain_text(values)
    return None if names == [str(column) for column in range(len(names))] else names


def _variables(element: str) -> str | None:
    """Return the path of the frame that names the columns of ``X`` or of a layer."""
    *above, last = element.split("/")
    if last == "X":
        return join(*above, "var")
    return join(*above[:-1], "var") if above and above[-1] == "layers" else None


def names_beside(samples: Element, path: str | None) -> SlicedRows | None:
    """Return the index of a frame of AnnData beside rows, unread; None if it has none."""
    storage = samples.storage
    root = None if path is None else storage.root(samples.node)
    frame = None if root is None else storage.member(root, path or "")
    key = None if frame is None else storage.attributes(frame).get("_index")
    if key is None:
        return None
    array = None
    if isinstance(key, str) and "/" not in key:
        array = storage.member(frame, key)
    if array is not None and not hasattr(array, "shape"):
        # Texts that may be missing are a group, with a mask.
        array = storage.member(array, "values")
    if len(getattr(array, "shape", ())) != 1:
        raise DamagedStoreError(
            f"{samples.name}: {path} names no 1-D array of its own as _index: "
            f"{RESTORE}."
        )
    return storage.rows(array)


def observation_names(samples: Samples) -> SlicedRows | None:
    """Return the names of the observations beside rows of AnnData, unread."""
    root = samples.root
    if not isinstance(root, Element):
        return None
    path = root.element or ""
    folder = path.partition("/")[0]
    is_annotated = path in ("X", "raw/X") or folder in ("layers", "obsm", "obsp")
    return names_beside(root, "obs") if is_annotated else None
