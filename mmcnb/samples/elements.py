"""Rows of an element of a store: an array, or an AnnData matrix or data frame."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from mmcnb.errors import RESTORE, DamagedStoreError, InputError
from mmcnb.samples import matrix
from mmcnb.samples.arrays import check_feature_names
from mmcnb.samples.base import BLOCK_ROWS, ChunkedSamples, Samples, edge_bytes
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.files import files_below
from mmcnb.samples.one_hot import n_columns_of
from mmcnb.samples.paths import join
from mmcnb.samples.stored import EdgeChunks, SlicedRows

Node: TypeAlias = Any
"""An array or group of Zarr or h5py; h5py has no type annotations."""


class Storage(Protocol):
    """The interface of a Zarr store or an HDF5 file, which contains nodes."""

    def place(self, node: Node) -> tuple[str, str | None]:
        """Return the path or address of the storage, and the node's path inside it."""

    def attributes(self, node: Node) -> Mapping[str, Any]:
        """Return the attributes of a node."""

    def root(self, node: Node) -> Node | None:
        """Return the root group; None if the root is not a group."""

    def member(self, group: Node, path: str) -> Node | None:
        """Return the node at a path below a group, or None if it does not exist."""

    def members(self, group: Node) -> Iterable[tuple[str, Node]]:
        """Return the name and the node of each member of a group."""

    def rows(
        self, array: Node, edges: EdgeChunks | None = None, lookahead: int = 0
    ) -> SlicedRows:
        """Return a reader of an array's slices along its first axis."""

    def take(self, samples: "Element") -> None:
        """Set how to reopen the rows, and whether they have checksums."""

    def identity(self, samples: "Element") -> str:
        """Return a hash that identifies the source of the rows."""


class Element(ChunkedSamples):
    """Rows of a node: an array, or a group of arrays with attributes.

    Attributes
    ----------
    storage : Storage
        Storage that contains the node.
    node : Node
        Array or group that contains the rows.
    arrays : list
        Arrays from which the rows are read.
    """

    def _set(
        self,
        storage: Storage,
        node: Node,
        shape: tuple[int, ...],
        dtype: np.dtype,
        arrays: list[Node],
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
        """Names of the columns, from an attribute or from AnnData's variable names."""
        names = self.storage.attributes(self.node).get("feature_names")
        if names is None and not self.checksummed:
            stored = names_beside(self, _variables(self.element or ""))
            if stored is not None:
                names = plain_names(stored.read(0, stored.length))
        return check_feature_names(names, self.n_features, self.name)

    @property
    def sources(self) -> list[str] | None:
        """For each column, the table column it is derived from, or its own name."""
        names = self.storage.attributes(self.node).get("table_columns")
        if names is None:
            return self.feature_names
        return check_feature_names(
            names, self.n_features, f"{self.name}, table_columns"
        )

    @property
    def orders(self) -> Mapping[str, Sequence[str]]:
        """The categories of each ordinal column of the converted table, in order."""
        orders = self.storage.attributes(self.node).get("ordered_texts")
        if not isinstance(orders, Mapping):
            return {}
        return {str(name): tuple(map(str, orders[name])) for name in orders}

    @property
    def gaps(self) -> list[int | None] | None:
        """Number of categories of each table column, or None for a numeric column.

        The result is None instead of a list if NaN does not represent missing values.
        """
        gaps = self.storage.attributes(self.node).get("gaps")
        if gaps is None:
            return None
        are_counts = isinstance(gaps, list) and all(
            n_values is None or (type(n_values) is int and n_values > 0)
            for n_values in gaps
        )
        if not are_counts or n_columns_of(gaps) != self.n_features:
            raise InputError(
                f"{self.name}: the attribute gaps does not count the categories of "
                f"{self.n_features} columns: convert the data again."
            )
        return gaps

    @property
    def table_encoding(self) -> Encoding | None:
        """How the cells of the table were converted to numbers, or None if unknown."""
        encoding = self.storage.attributes(self.node).get("table_encoding")
        return None if encoding is None else Encoding.restore(encoding)

    def identity(self) -> str:
        """Return a hash that identifies the source of the rows."""
        return self.storage.identity(self)

    def state(self) -> object:
        """Return a value that changes if the files of the rows change.

        It contains the identity, and the size and modification time of each chunk file.
        """
        files = {}
        for array in self.arrays:
            place = Path(self.path or "", getattr(array, "path", ""))
            files[place] = files_below(place)
        return super().state(), files


class ArrayElement(Element):
    """Rows of a 2-D array."""

    def __init__(self, storage: Storage, array: Node) -> None:
        self._set(storage, array, array.shape, array.dtype, [array])
        rows = storage.rows(array)
        self._set_rows(rows, rows.chunk_length)


class CSRElement(Element):
    """Rows of a group in AnnData's ``csr_matrix`` encoding, read by slices."""

    is_sparse = True

    def __init__(self, storage: Storage, group: Node) -> None:
        name = describe(storage, group)
        arrays: list[Node] = []
        for part in ("data", "indices", "indptr"):
            array = storage.member(group, part)
            if len(getattr(array, "shape", ())) != 1:
                raise InputError(
                    f"{name}: a CSR group needs a 1-D array named {part}: "
                    "write it again."
                )
            arrays.append(array)
        shape = self._shape_of(storage, group)
        self._set(storage, group, shape, arrays[0].dtype, arrays)
        matrix.check_index_dtypes(name, indices=arrays[1], indptr=arrays[2])
        edges = EdgeChunks(len(arrays))
        self._data = data = storage.rows(arrays[0], edges)
        self._indices = indices = storage.rows(arrays[1], edges)
        self._indptr = indptr = storage.rows(arrays[2], edges, lookahead=1)
        matrix.check_indptr_length(
            indptr.length, self.n_samples, data.length, indices.length, name
        )
        ends = indptr.gather(np.array([0, self.n_samples])).astype(np.int64)
        matrix.check_indptr_ends(int(ends[0]), int(ends[1]), data.length, name)
        chunk_bytes = []
        n_bytes = 0
        for stored in (data, indices, indptr):
            chunk_bytes.append(stored.chunk_bytes)
            n_bytes += stored.length * stored.row_bytes
        self.edge_bytes = edge_bytes(chunk_bytes, n_bytes)
        row_values = max(data.length / self.n_samples, 1e-9)
        self.row_bytes = self._sparse_row_bytes(row_values)
        rows = min(data.chunk_length / row_values, self.n_samples)
        self.chunk_rows = BLOCK_ROWS * max(1, int(rows // BLOCK_ROWS))

    def _shape_of(self, storage: Storage, group: Node) -> tuple[int, ...]:
        """Return the shape of the matrix in a CSR group."""
        shape = storage.attributes(group).get("shape")
        return csr_shape(shape, describe(storage, group))

    def _read(self, start: int, stop: int) -> matrix.CSRParts:
        indptr = self._indptr.read(start, stop).astype(np.int64, copy=False)
        matrix.check_indptr_rises(
            indptr[:-1], indptr[1:], self._data.length, self.name, start
        )
        first = int(indptr[0])
        last = int(indptr[-1])
        data = self._data.read(first, last)
        indices = self._indices.read(first, last)
        return data, indices, indptr - first

    def _gather(self, rows: np.ndarray) -> matrix.CSRParts:
        starts, stops = self._row_pointers(rows)
        n_data = self._data.length
        matrix.check_indptr_rises(starts, stops, n_data, self.name, rows)
        gap_starts = stops[:-1]
        gap_stops = starts[1:]
        matrix.check_indptr_rises(gap_starts, gap_stops, n_data, self.name, rows)
        positions, indptr = matrix.row_positions(starts, stops)
        data = self._data.gather(positions)
        indices = self._indices.gather(positions)
        return data, indices, indptr

    def _row_pointers(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the row pointers at the beginning and end of each given row."""
        next_rows = rows + 1
        needed = np.union1d(rows, next_rows)
        pointers = self._indptr.gather(needed).astype(np.int64)
        starts = pointers[np.searchsorted(needed, rows)]
        stops = pointers[np.searchsorted(needed, next_rows)]
        return starts, stops


def csr_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Return the attribute ``shape`` of a CSR group as a tuple of integers."""
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    is_listed = isinstance(shape, list | tuple)
    if not is_listed or not all(type(n) is int and n >= 0 for n in shape):
        raise InputError(
            f"{name}: the CSR group has no attribute shape of the form "
            "[rows, columns]: write the matrix again, for example with anndata."
        )
    return tuple(shape)


class FrameElement(Element):
    """Rows of a group in AnnData's ``dataframe`` encoding, with an array per column."""

    def __init__(self, storage: Storage, group: Node) -> None:
        name = describe(storage, group)
        columns = plain_text(storage.attributes(group).get("column-order", ()))
        arrays = []
        for column in columns:
            array: Node = storage.member(group, column)
            kind = getattr(getattr(array, "dtype", None), "kind", "O")
            if kind not in "biuf" or array.ndim != 1:
                raise InputError(
                    f"column {column!r} of {name} is not numeric: convert or drop it."
                )
            arrays.append(array)
        lengths = [array.shape[0] for array in arrays] or [0]
        if len(set(lengths)) > 1:
            raise DamagedStoreError(
                f"{name}: its columns have different lengths: {RESTORE}."
            )
        dtype = matrix.block_dtype(*(array.dtype for array in arrays))
        self._set(storage, group, (lengths[0], len(arrays)), dtype, arrays)
        self.feature_names = columns
        edges = EdgeChunks(len(arrays))
        self._columns = [storage.rows(array, edges) for array in arrays]
        longest = max(column.chunk_length for column in self._columns)
        self._set_rows(self._columns, longest)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._joined(column.read(start, stop) for column in self._columns)

    def _gather(self, rows: np.ndarray) -> np.ndarray:
        return self._joined(column.gather(rows) for column in self._columns)

    def _joined(self, columns: Iterable[np.ndarray]) -> np.ndarray:
        return np.column_stack(list(columns)).astype(self.dtype)


READERS: dict[tuple[bool, str], tuple[str, Callable[[Storage, Node], Element]]] = {
    (True, ""): ("", ArrayElement),
    (True, "array"): ("0.2.0", ArrayElement),
    (False, "csr_matrix"): ("0.1.0", CSRElement),
    (False, "dataframe"): ("0.2.0", FrameElement),
}
"""Supported encoding-version, and reader, by (is an array, encoding-type)."""


ANNDATA = "anndata"
"""Encoding-type of a group that contains an AnnData object."""


def open_element(storage: Storage, node: Node, element: str | None) -> Samples:
    """Open the rows of an array, or of an element of a group.

    Raises
    ------
    InputError
        If the group has no such element (the message lists the elements that exist), or
        if the element has an unsupported encoding.
    """
    if not hasattr(node, "shape"):
        node = _element_of(storage, node, element)
    elif element not in (None, ""):
        name = describe(storage, node)
        raise InputError(
            f"{name} is an array and has no element {element!r}: leave element out."
        )
    if hasattr(node, "shape") and node.shape is None:  # an empty dataset of HDF5
        raise InputError(
            f"{describe(storage, node)} has no values: "
            "name another element (--element)."
        )
    form = _form(storage, node)
    version = str(storage.attributes(node).get("encoding-version", ""))
    known, reader = READERS.get((hasattr(node, "shape"), form), ("", None))
    if reader is None or version not in ("", known):
        encoding = f"{form or 'a plain group'} {version}".rstrip()
        fault = f"encoded as {encoding}, which is not supported"
        remedy = "write it as one of array 0.2.0, csr_matrix 0.1.0, or as a 2-D array"
        if form == "csc_matrix":
            fault = "stored by columns (CSC), so no rows can be streamed"
            remedy = "write X.tocsr() in its place"
        raise InputError(f"{describe(storage, node)} is {fault}: {remedy}.")
    return reader(storage, node)


def describe(storage: Storage, node: Node) -> str:
    """Return the name of a node for messages: its storage's path and its own path."""
    path, inner = storage.place(node)
    if inner is None or inner == "X":
        return path
    return join(path, inner)


def _form(storage: Storage, node: Node) -> str:
    return str(storage.attributes(node).get("encoding-type", ""))


def _element_of(storage: Storage, group: Node, element: str | None) -> Node:
    """Return the element of a group, or the group itself if it contains rows."""
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
    if _form(storage, node) == ANNDATA:  # a modality of MuData
        return _element_of(storage, group, join(path, "X"))
    return node


def _listed(storage: Storage, group: Node, prefix: str = "") -> list[str]:
    """Return the paths of the elements in a group that can be opened.

    The search includes the groups in the root, and AnnData groups inside them, as in
    MuData files.
    """
    is_root = not prefix or _form(storage, group) == ANNDATA
    elements = []
    for name, node in storage.members(group):
        path = prefix + name
        if hasattr(node, "shape"):
            elements += [path] * (len(node.shape or ()) == 2)
        elif (False, _form(storage, node)) in READERS:
            elements += [path] * (name not in ("obs", "var"))
        elif is_root or _form(storage, node) == ANNDATA:
            elements += _listed(storage, node, f"{path}/")
    return elements


# -- names of AnnData ------------------------------------------------------------------


def plain_text(values: Iterable[object]) -> list[str]:
    """Convert names to str, because HDF5 returns names as bytes."""
    names = []
    for value in values:
        if isinstance(value, bytes):
            value = value.decode()
        names.append(str(value))
    return names


class Texts:
    """Row names that are stored as text or bytes, and are read when needed.

    Parameters
    ----------
    names : SlicedRows
        The stored names.
    """

    def __init__(self, names: SlicedRows) -> None:
        self._names = names
        self.length = names.length

    def read(self, start: int, stop: int) -> list[str]:
        """Return the names of the rows ``start <= row < stop``."""
        return plain_text(self._names.read(start, stop))


def plain_names(values: Iterable[object]) -> list[str] | None:
    """Convert names to str.

    The result is None if the names are 0, 1, 2, ..., which AnnData uses by default.
    """
    names = plain_text(values)
    if names == list(map(str, range(len(names)))):
        return None
    return names


def _variables(element: str) -> str | None:
    """Return the path of the AnnData frame that names the columns of an element.

    The result is None if the element is neither ``X`` nor a layer.
    """
    *above, last = element.split("/")
    if last == "X":
        return join(*above, "var")
    if above[-1:] == ["layers"]:
        return join(*above[:-1], "var")
    return None


def names_beside(samples: Element, path: str | None) -> SlicedRows | None:
    """Return a reader of the index of an AnnData frame in the same storage.

    The result is None if there is no data frame at this path, or if it has no index.
    """
    if path is None:
        return None
    storage = samples.storage
    root = storage.root(samples.node)
    if root is None:
        return None
    frame = storage.member(root, path)
    if frame is None:
        return None
    key = storage.attributes(frame).get("_index")
    if key is None:
        return None
    array = None
    if isinstance(key, str) and "/" not in key:
        array = storage.member(frame, key)
    if array is not None and not hasattr(array, "shape"):
        # AnnData stores strings with missing values as a group of values and a mask.
        array = storage.member(array, "values")
    if len(getattr(array, "shape", ())) != 1:
        raise DamagedStoreError(
            f"{samples.name}: the attribute _index of {path} does not name a 1-D array "
            f"in it: {RESTORE}."
        )
    return storage.rows(array)


def observation_names(samples: Samples) -> SlicedRows | None:
    """Return a reader of AnnData's observation names, or None if there are none."""
    root = samples.root.as_stored
    if not isinstance(root, Element):
        return None
    *above, last = (root.element or "").split("/")
    if above[-1:] in (["layers"], ["obsm"], ["obsp"]):
        above.pop()
    elif last != "X":
        return None
    elif above[-1:] == ["raw"]:
        above.pop()
    return names_beside(root, join(*above, "obs"))
