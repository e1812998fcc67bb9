"""Write rows to Zarr stores with checksums, with one chunk in memory at a time."""

import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import InputError
from mmcnb.samples import matrix
from mmcnb.samples.arrays import check_feature_names, plain_values
from mmcnb.samples.base import BLOCK_ROWS, GROUP_ROWS, ContentDigest
from mmcnb.samples.codecs import CODEC, ZSTD, chunk_codec, frame_checksum
from mmcnb.samples.inventory import ATTRIBUTE, FORMAT, metadata_digest
from mmcnb.samples.paths import PathLike
from mmcnb.stores.atomic import AtomicOutput

PARTIAL = ".partial"  # suffix of chunk files that are being written, as in Zarr
LABEL_CHUNK_ROWS = GROUP_ROWS  # rows per chunk of class labels or row names
# Number of values per chunk of CSR data. These chunks have fewer bytes than chunks of
# dense rows, because the values of a row may be split between two chunks.
CSR_CHUNK_VALUES = 2**18


class ArrayWriter:
    """Writer that appends values to an array, and buffers them until a chunk is full.

    Parameters
    ----------
    store : LocalStore
        Store that contains the array.
    name : str
        Path of the array inside the store.
    dtype : dtype
        Data type of the array.
    chunk_shape : tuple of int
        Number of rows of a chunk and, for a 2-D array, its number of columns.
    """

    def __init__(
        self,
        store: LocalStore,
        name: str,
        dtype: npt.DTypeLike,
        chunk_shape: tuple[int, ...],
    ) -> None:
        self._store = store
        self._name = name
        self._chunk = np.empty(chunk_shape, dtype)
        self._filled = 0
        self.n_rows = 0
        self.hashes: list[str] = []

    def append(self, values: np.ndarray) -> None:
        """Append a copy of ``values`` along the first axis."""
        self.n_rows += len(values)
        start = 0
        while start < len(values):
            place = self._chunk[self._filled :][: len(values) - start]
            place[...] = values[start : start + len(place)]
            start += len(place)
            self._filled += len(place)
            if self._filled == len(self._chunk):
                self._write()

    def close(self) -> list[str]:
        """Write the buffered values, and return the checksums of all chunks."""
        if self._filled:
            self._write()
        if self._array.shape[0] != self.n_rows:
            self._array.resize((self.n_rows, *self._array.shape[1:]))
        return self.hashes

    def _write(self) -> None:
        chunk = self._chunk[: self._filled]
        self.hashes.append(write_chunk(self._array, len(self.hashes), chunk))
        self._filled = 0

    @cached_property
    def _array(self) -> zarr.Array:
        """The array, which is created when its first chunk is written."""
        # If the array is shorter than a chunk, its only chunk is shorter, too. A chunk
        # longer than a block has a multiple of BLOCK_ROWS rows, because readers read
        # whole blocks.
        rows = self._filled or len(self._chunk)
        if rows > BLOCK_ROWS:
            rows = -(-rows // BLOCK_ROWS) * BLOCK_ROWS
        chunks = (min(rows, len(self._chunk)), *self._chunk.shape[1:])
        return create_array(self._store, self._name, self._chunk.dtype, 0, chunks)


def write_chunk(array: zarr.Array, number: int, chunk: np.ndarray) -> str:
    """Write a chunk of an array in a local folder, and return its checksum.

    Zarr would write the same file, but more slowly, with an event loop and additional
    copies.

    Parameters
    ----------
    array : zarr.Array
        Array whose chunks contain whole rows.
    number : int
        Zero-based index of the chunk along the first axis.
    chunk : ndarray
        Rows of the chunk. The last chunk of the array may have fewer rows than the
        others.
    """
    root = cast(LocalStore, array.store).root
    key = array.metadata.encode_chunk_key((number, *[0] * (array.ndim - 1)))
    path = Path(root, array.path, key)
    if chunk_codec(array) is None:
        start = number * array.chunks[0]
        stop = start + len(chunk)
        array.resize((stop, *array.shape[1:]))  # Zarr ignores rows beyond the end
        array[start:stop] = chunk
        return frame_checksum(path.read_bytes())
    whole = chunk
    if len(chunk) < array.chunks[0]:
        whole = np.full(array.chunks, array.fill_value, array.dtype)
        whole[: len(chunk)] = chunk
    frame = ZSTD.encode(whole)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{PARTIAL}")
    part.write_bytes(frame)
    part.replace(path)
    return frame_checksum(frame)


def create_array(
    store: LocalStore, name: str, dtype: np.dtype, n_rows: int, chunks: tuple
) -> zarr.Array:
    """Create an array whose chunks contain whole rows and have checksums."""
    return zarr.create_array(
        store,
        name=name or None,
        shape=(n_rows, *chunks[1:]),
        dtype=dtype,
        chunks=chunks,
        compressors=[CODEC],
        fill_value=_fill_value(dtype),
        zarr_format=3,
        config={"write_empty_chunks": True},
    )


def _fill_value(dtype: np.dtype) -> str | float:
    """Return a fill value that is rare in data, to make missing chunks noticeable."""
    if dtype.kind == "T":
        return ""
    if dtype.kind == "f":
        return float("nan")
    limits = np.iinfo(dtype)
    if dtype.kind == "u":
        return int(limits.max)
    return int(limits.min)


def chunk_rows_for(row_bytes: int) -> int:
    """Return the number of rows of a chunk.

    The result is the largest power of two with which a chunk has at most 4 MiB and at
    most ``GROUP_ROWS`` rows, but at least 1. With a power of two, two groups of rows
    never share a chunk.
    """
    rows = min(GROUP_ROWS, max(1, 4 * 2**20 // row_bytes))
    return 1 << (rows.bit_length() - 1)


def set_record(root: zarr.Array | zarr.Group, record: dict[str, Any]) -> None:
    """Write the inventory to the root of a store; call it after all other writes."""
    complete = {"format": FORMAT, **record}
    complete["metadata"] = metadata_digest(root.store, "", complete)
    root.update_attributes({ATTRIBUTE: complete})


class StoreWriter(AtomicOutput):
    """Base class of store writers, which writes labels, names and the inventory.

    Parameters
    ----------
    path : str or path-like
        Path of the store.
    n_features : int
        Number of columns; 0 if it is not known yet.
    dtype : dtype
        Data type of the stored rows.
    overwrite : bool or None, default=False
        Whether to replace an existing store. None is like False, but messages do not
        suggest ``overwrite=True``.

    Attributes
    ----------
    attributes : dict
        Attributes of each array of the store, by the path of the array.
    class_names : list of str or None
        Names of the classes; None if classes have no names.
    feature_names : list of str or None
        Names of the columns; None if columns have no names.
    gaps : list of int or None, or None
        For rows of a table in which NaN means a missing value: the number of categories
        of each column of the table, or None for a numeric column. None if no values are
        missing.
    encoding_of_table : dict or None
        Encoding of a table with missing values, as a JSON object. None if no values are
        missing.
    sources : list of str or None
        For each column, the name of the table column from which it is derived. None if
        the rows do not come from a table.
    orders : mapping of str to sequence of str
        Ordered categories of each ordinal column of a table, by the name of the column.
    row_index : dict or None
        Attribute of the array ``index``: the name of the row names, and the name and
        number of rows of each file. None if the store has no row names.
    """

    encoding: tuple[str, str]  # name and version of AnnData's encoding

    def __init__(
        self,
        path: PathLike,
        n_features: int,
        dtype: npt.DTypeLike,
        overwrite: bool | None = False,
    ) -> None:
        super().__init__(path, overwrite)
        self.n_features = int(n_features)
        self._dtype = np.dtype(dtype)
        matrix.check_dtype(self._dtype, f"the dtype to write {self.name} with")
        if self._dtype.kind == "b":
            self._dtype = np.dtype(np.uint8)
        block_dtype = matrix.block_dtype(self._dtype)
        encoding, version = self.encoding
        self._is_sparse = encoding == "csr_matrix"
        self._digest = ContentDigest(self._is_sparse, block_dtype)
        self._store = LocalStore(self.path)
        self._arrays: dict[str, ArrayWriter] = {}
        self.attributes = {"X": _encoded(encoding, version)}
        self._n_nonzero = 0
        self.class_names: list[str] | None = None
        self.feature_names: list[str] | None = None
        self.sources: list[str] | None = None
        self.orders: Mapping[str, Sequence[str]] = {}
        self.row_index: dict[str, Any] | None = None
        self.gaps: list[int | None] | None = None
        self.encoding_of_table: dict[str, Any] | None = None

    def finish(self) -> None:
        """Write the buffered rows, the attributes and the inventory."""
        n_samples = self._digest.n_samples
        matrix.check_shape((n_samples, self.n_features), self.name)
        if self.row_index is not None and "index" in self._arrays:
            self.attributes["index"]["row_index"] = self.row_index
        self._name_columns("feature_names", self.feature_names)
        if self.sources != self.feature_names:
            self._name_columns("table_columns", self.sources)
        if self.orders:
            orders = {name: [*texts] for name, texts in self.orders.items()}
            self.attributes["X"]["ordered_texts"] = orders
        if self.gaps is not None:
            self.attributes["X"]["gaps"] = self.gaps
            self.attributes["X"]["table_encoding"] = self.encoding_of_table
        if self._is_sparse:
            self.attributes["X"]["shape"] = [n_samples, self.n_features]
        if self.class_names is not None and "y" in self._arrays:
            self.attributes["y"] = {"class_names": self.class_names}
        if "index" in self._arrays:
            n_names = self._arrays["index"].n_rows
            if n_names != n_samples:
                raise InputError(
                    f"{self.name}: {n_names} names were given for {n_samples} rows: "
                    "give one per row."
                )
        inventory = {path: array.close() for path, array in self._arrays.items()}
        root = zarr.open_group(self._store, mode="r+")
        for path, attributes in self.attributes.items():
            root[path].update_attributes(attributes)
        record = {
            "n_samples": n_samples,
            "n_features": self.n_features,
            "n_nonzero": self._n_nonzero,
            "digest": self._digest.hexdigest(self.n_features),
            "inventory": inventory,
        }
        set_record(root, record)

    def _name_columns(self, attribute: str, names: list[str] | None) -> None:
        checked = check_feature_names(names, self.n_features, self.name)
        if checked is not None:
            self.attributes["X"][attribute] = checked

    def _add(
        self, name: str, dtype: npt.DTypeLike, chunk_shape: tuple[int, ...]
    ) -> None:
        self._arrays[name] = ArrayWriter(self._store, name, dtype, chunk_shape)

    def _count(
        self,
        values: np.ndarray,
        block: np.ndarray | matrix.CSRBlock,
        n_rows: int,
        y: npt.ArrayLike | None,
    ) -> None:
        """Check the next rows and write their labels, and update the digest and counts.

        Parameters
        ----------
        values : ndarray
            Values of the rows as the caller passed them, before conversion to the dtype
            of the store.
        block : ndarray or CSRBlock
            The rows in the dtype in which they are read back.
        n_rows : int
            Number of rows.
        y : array of int of shape (n_rows,) or None
            Class labels of the rows.
        """
        written = block.data if isinstance(block, matrix.CSRBlock) else block
        if (
            not matrix.all_finite(written)
            and values.dtype.kind == "f"
            and not np.isinf(values).any()
            and np.isinf(written).any()
        ):
            raise InputError(
                f"{self.name}: X has numbers too large for {written.dtype}: "
                "write float64."
            )
        checked = block
        if self.gaps is not None and isinstance(block, np.ndarray):
            checked = np.nan_to_num(block, posinf=np.inf, neginf=-np.inf)
        matrix.check_finite(checked, self.name, self._digest.n_samples)
        self._append_labels(y, n_rows)
        self._digest.update(block)
        self._n_nonzero += int(np.count_nonzero(written))

    def _append_labels(self, y: npt.ArrayLike | None, n_rows: int) -> None:
        if (y is None) == ("y" in self._arrays) and self._digest.n_samples:
            raise InputError(
                f"{self.name}: class labels must be given with all rows or with none."
            )
        if y is None:
            return
        labels = plain_values(y, "y")
        if labels.shape != (n_rows,) or labels.dtype.kind not in "biu":
            raise InputError(
                f"{self.name}: class labels must be one integer per row ({n_rows} "
                f"here), but y has dtype {labels.dtype} and shape {labels.shape}."
            )
        if "y" not in self._arrays:
            self._add("y", np.int64, (LABEL_CHUNK_ROWS,))
        self._arrays["y"].append(labels)

    def append_index(self, index: np.ndarray) -> None:
        """Add row names to the array ``index`` of the store.

        Parameters
        ----------
        index : array of int or str of shape (n_rows,)
            Names of the next rows. After the last call, the array must have one name
            per row.
        """
        names = np.asarray(index)
        if "index" not in self._arrays:
            dtype: npt.DTypeLike = np.int64
            encoding = "array"
            if names.dtype.kind in "TUO":
                dtype = np.dtypes.StringDType()
                encoding = "string-array"
            self._add("index", dtype, (LABEL_CHUNK_ROWS,))
            self.attributes["index"] = _encoded(encoding, "0.2.0")
        self._arrays["index"].append(names)


def _encoded(encoding: str, version: str) -> dict[str, Any]:
    return {"encoding-type": encoding, "encoding-version": version}


class DenseStoreWriter(StoreWriter):
    """Writer of a dense store, as returned by `create_dense_store`."""

    encoding = "array", "0.2.0"

    def __init__(
        self,
        path: PathLike,
        n_features: int,
        dtype: npt.DTypeLike,
        overwrite: bool | None = False,
        chunk_rows: int | None = None,
    ) -> None:
        super().__init__(path, n_features, dtype, overwrite)
        row_bytes = max(1, self.n_features) * self._dtype.itemsize
        rows = chunk_rows or chunk_rows_for(row_bytes)
        self._add("X", self._dtype, (rows, self.n_features))

    def append(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> None:
        """Add rows and, optionally, their class labels.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows.
        y : array of int of shape (n_rows,), default=None
            Class labels; pass them with all blocks of rows or with none.
        """
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(
                f"{self.name}: rows have shape {rows.shape}, but the store has "
                f"{self.n_features} columns."
            )
        matrix.check_dtype(rows.dtype, "X")
        with np.errstate(over="ignore", invalid="ignore"):
            stored = np.ascontiguousarray(rows, dtype=self._dtype)
        is_cast = self._dtype.kind in "iu" and rows.dtype != self._dtype
        if is_cast and not np.array_equal(stored, rows):
            raise InputError(
                f"{self.name}: X has numbers that do not fit in {self._dtype}: "
                "write a wider dtype."
            )
        self._count(rows, matrix.as_block(stored), len(rows), y)
        self._arrays["X"].append(stored)


class CSRStoreWriter(StoreWriter):
    """Writer of a CSR store, as returned by `create_csr_store`."""

    encoding = "csr_matrix", "0.1.0"

    def __init__(
        self,
        path: PathLike,
        n_features: int | None,
        dtype: npt.DTypeLike,
        overwrite: bool = False,
    ) -> None:
        super().__init__(path, n_features or 0, dtype, overwrite)
        if self._dtype not in (np.float32, np.float64):
            raise InputError(
                f"dtype is {self._dtype}; "
                "sparse rows are written as float32 or float64."
            )
        # Number of columns, or None if it follows from the largest column index.
        self._width = n_features
        index_dtype = np.int32 if self.n_features < 2**31 else np.int64
        self._add("X/data", self._dtype, (CSR_CHUNK_VALUES,))
        self._add("X/indices", index_dtype, (CSR_CHUNK_VALUES,))
        self._add("X/indptr", np.int64, (chunk_rows_for(8),))
        self._arrays["X/indptr"].append(np.zeros(1, np.int64))

    @property
    def density(self) -> float:
        """Number of stored values divided by the number of elements of the matrix."""
        size = self._digest.n_samples * self.n_features
        return self._arrays["X/data"].n_rows / size

    def append(
        self,
        data: npt.ArrayLike | scipy.sparse.csr_array,
        indices: npt.ArrayLike | None = None,
        indptr: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
    ) -> None:
        """Add rows and, optionally, their class labels.

        Parameters
        ----------
        data : array of shape (nnz,), or SciPy CSR matrix
            Stored values of the rows, or the rows as a matrix.
        indices : array of int of shape (nnz,), default=None
            Column index of each value; None if ``data`` is a matrix.
        indptr : array of int of shape (n_rows + 1,), default=None
            Index pointer of the rows; None if ``data`` is a matrix.
        y : array of int of shape (n_rows,), default=None
            Class labels; pass them with all blocks of rows or with none.
        """
        if scipy.sparse.issparse(data):
            csr = scipy.sparse.csr_array(data)
            self.append(csr.data, csr.indices, csr.indptr, y)
            return
        values = np.asarray(data)
        columns = np.asarray(indices)
        pointers = np.asarray(indptr, dtype=np.int64)
        matrix.check_dtype(values.dtype, "X")
        n_rows = len(pointers) - 1
        ends = pointers - pointers[0]
        matrix.check_indptr(ends, n_rows, len(values), len(columns), self.name)
        width = self._width or max(1, int(columns.max(initial=0)) + 1)
        if self._width is None and width > 2**31 - 1:
            raise InputError(
                f"{self.name}: column index {width - 1} is too large for int32: give "
                "n_features."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            stored = values.astype(self._dtype, copy=False)
        block = matrix.csr_block(
            (stored, columns, ends), width, self.name, self._digest.n_samples
        )
        self._count(values, block, n_rows, y)
        n_stored = self._arrays["X/data"].n_rows
        self._arrays["X/indptr"].append(block.indptr[1:] + n_stored)
        self._arrays["X/data"].append(block.data)
        self._arrays["X/indices"].append(block.indices)
        if len(block.indices):
            self.n_features = max(self.n_features, width)


def create_dense_store(
    path: PathLike,
    n_features: int,
    dtype: npt.DTypeLike = "float32",
    chunk_rows: int | None = None,
    overwrite: bool | None = False,
) -> DenseStoreWriter:
    """Create a dense Zarr store with checksums, to which rows are appended.

    The store appears at its path when the ``with`` block ends. After an error, all
    written files are removed.

    Parameters
    ----------
    path : str or path-like
        Path of the store.
    n_features : int
        Number of columns.
    dtype : dtype, default="float32"
        Data type of the stored rows. Integers are read back as floats.
    chunk_rows : int, default=None
        Number of rows of a chunk. None means the largest power of two with which a
        chunk has at most 4 MiB and at most ``GROUP_ROWS`` rows.
    overwrite : bool or None, default=False
        Whether to replace an existing store. None is like False, but messages do not
        suggest ``overwrite=True``.

    Returns
    -------
    DenseStoreWriter
        Context manager with the method ``append(X, y=None)``. If the columns have
        names, set its attribute ``feature_names`` to a list of the names.

    Raises
    ------
    InputError
        If the path exists, rows have the wrong shape, a value is not finite, or the
        disk is full.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import create_dense_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_dense_store(f"{folder}/small.zarr", n_features=2) as writer:
    ...         writer.append(np.eye(2), y=[0, 1])
    ...     open_samples(f"{folder}/small.zarr").n_samples
    2
    """
    return DenseStoreWriter(path, n_features, dtype, overwrite, chunk_rows)


def create_csr_store(
    path: PathLike,
    n_features: int | None = None,
    dtype: npt.DTypeLike = "float32",
    overwrite: bool = False,
) -> CSRStoreWriter:
    """Create a CSR Zarr store with checksums, to which sparse rows are appended.

    The store uses AnnData's encoding of CSR matrices. It appears at its path when the
    ``with`` block ends. After an error, all written files are removed.

    Parameters
    ----------
    path : str or path-like
        Path of the store.
    n_features : int or None, default=None
        Number of columns. None means one more than the largest column index.
    dtype : {"float32", "float64"}, default="float32"
        Data type of the stored values.
    overwrite : bool, default=False
        Whether to replace an existing store.

    Returns
    -------
    CSRStoreWriter
        Context manager whose method ``append`` is called with ``(data, indices, indptr,
        y=None)`` or ``(csr, y=y)``. If the columns have names, set its attribute
        ``feature_names`` to a list of the names.

    Raises
    ------
    InputError
        If the path exists, an index is out of range, a value is not finite, or the disk
        is full.

    Examples
    --------
    >>> import tempfile, scipy.sparse
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import create_csr_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_csr_store(f"{folder}/small.zarr") as writer:
    ...         writer.append(scipy.sparse.eye_array(3, format="csr"))
    ...     open_samples(f"{folder}/small.zarr").n_features
    3
    """
    return CSRStoreWriter(path, n_features, dtype, overwrite)
