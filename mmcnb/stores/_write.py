"""Write rows to checksummed Zarr stores, one chunk in memory at a time."""

import secrets
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
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

PARTIAL = ".partial"  # ending of the files of chunks being written, Zarr's too
LABEL_CHUNK_ROWS = GROUP_ROWS  # of class labels and names of rows
CSR_CHUNK_VALUES = (
    2**18
)  # fewer bytes than a chunk of dense rows, as rows do not begin with chunks


class ArrayWriter:
    """Append to one array of a store; whole chunks are written, the rest waits in memory.

    Parameters
    ----------
    store : LocalStore
    name : str
        Path inside the store.
    dtype : dtype
    chunk_rows : int
    *row_shape : int
        Number of columns; none for a 1-D array.
    """

    def __init__(
        self, store: LocalStore, name: str, dtype: Any, chunk_rows: int, *row_shape: int
    ) -> None:
        self._store = store
        self._name = name
        self._chunk = np.empty((chunk_rows, *row_shape), dtype)
        self._filled = 0
        self.n_rows = 0
        self.hashes: list[str] = []

    def append(self, values: np.ndarray) -> None:
        """Add values; they are copied."""
        self.n_rows += len(values)
        while len(values):
            place = self._chunk[self._filled : self._filled + len(values)]
            place[...] = values[: len(place)]
            self._filled, values = self._filled + len(place), values[len(place) :]
            if self._filled == len(self._chunk):
                self._write()

    def close(self) -> list[str]:
        """Write the rest; return the checksums of the chunks."""
        if self._filled:
            self._write()
        if self._array.shape[0] != self.n_rows:
            self._array.resize((self.n_rows, *self._array.shape[1:]))
        return self.hashes

    def _write(self) -> None:
        self.hashes.append(
            write_chunk(self._array, len(self.hashes), self._chunk[: self._filled])
        )
        self._filled = 0

    @cached_property
    def _array(self) -> zarr.Array:
        """The array, made with its first chunk."""
        # A store of less than one chunk gets a smaller one; multiples of the block suit
        # readers.
        rows = self._filled or len(self._chunk)
        if rows > BLOCK_ROWS:
            rows = -(-rows // BLOCK_ROWS) * BLOCK_ROWS
        chunks = (min(rows, len(self._chunk)), *self._chunk.shape[1:])
        return create_array(self._store, self._name, self._chunk.dtype, 0, chunks)


def write_chunk(array: zarr.Array, number: int, chunk: np.ndarray) -> str:
    """Write a chunk of whole rows of an array in a local folder, as Zarr would; its checksum.

    Zarr's own way has an event loop and copies.
    """
    store: Any = array.store
    key = array.metadata.encode_chunk_key((number, *[0] * (array.ndim - 1)))
    path = Path(store.root, array.path, key)
    if chunk_codec(array) is None:
        first = number * array.chunks[0]
        array.resize(
            (first + len(chunk), *array.shape[1:])
        )  # Zarr clips at the end of the array
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
    store: LocalStore, name: str, dtype: np.dtype, n_rows: int, chunks: tuple
) -> zarr.Array:
    """An array of a store in our codec, in chunks of whole rows: damage shows."""
    how: Any = {
        "dtype": dtype,
        "fill_value": _fill_value(dtype),
        "config": {"write_empty_chunks": True},
    }
    how |= {
        "shape": (n_rows, *chunks[1:]),
        "chunks": chunks,
        "compressors": [CODEC],
    }
    return zarr.create_array(store, name=name or None, zarr_format=3, **how)


def _fill_value(dtype: np.dtype) -> Any:
    """A value that data seldom or never have, so that a missing chunk shows."""
    if dtype.kind == "T":
        return ""
    if dtype.kind == "f":
        return float("nan")
    return int(np.iinfo(dtype).max if dtype.kind == "u" else np.iinfo(dtype).min)


def chunk_rows_for(row_bytes: int) -> int:
    """Rows in a chunk of at most 4 MiB: a power of two, so that no two groups share a chunk."""
    rows = min(GROUP_ROWS, max(1, 4 * 2**20 // row_bytes))
    return 1 << (rows.bit_length() - 1)


def set_record(root: zarr.Array | zarr.Group, record: dict[str, Any]) -> None:
    """Put the inventory on the root of a store all of whose arrays are written."""
    record = {"format": FORMAT, **record}
    record["metadata"] = metadata_digest(root.store, "", record)
    root.update_attributes({ATTRIBUTE: record})


class StoreWriter(AtomicOutput):
    """Common part of the writers: rows counted and digested, class labels, names of rows, inventory.

    Parameters
    ----------
    path : str or path-like
    n_features : int
        As far as columns are known.
    dtype : dtype
    overwrite : bool, default=False
        Replace a store that is there.

    Attributes
    ----------
    attributes : dict
        Of the arrays, by path.
    class_names, feature_names : list of str or None
    sources : list of str or None
        The columns of a table behind the columns.
    """

    encoding: tuple[str, str]  # AnnData's name of it, and its version

    def __init__(
        self, path: PathLike, n_features: int, dtype: Any, overwrite: bool = False
    ) -> None:
        super().__init__(path, overwrite)
        self.n_features, self._dtype = int(n_features), np.dtype(dtype)
        matrix.check_dtype(self._dtype, f"the dtype to write {self.name} with")
        if self._dtype.kind == "b":
            self._dtype = np.dtype(np.uint8)
        self._is_sparse = self.encoding[0] == "csr_matrix"
        self._digest = ContentDigest(self._is_sparse, matrix.block_dtype(self._dtype))
        self._store = LocalStore(self.path)
        self._arrays: dict[str, ArrayWriter] = {}
        self.attributes: dict[str, Any] = {"X": _encoded(*self.encoding)}
        self._n_nonzero = 0
        self.class_names: list[str] | None = None
        self.feature_names: list[str] | None = None
        self.sources: list[str] | None = None

    def finish(self) -> None:
        """Write the rest, the names, and the inventory."""
        n_samples = self._digest.n_samples
        n_features = self.n_features
        name = self.name
        matrix.check_shape((n_samples, n_features), name)
        sources = None if self.sources == self.feature_names else self.sources
        for key, names in (
            ("feature_names", self.feature_names),
            ("table_columns", sources),
        ):
            if (checked := check_feature_names(names, n_features, name)) is not None:
                self.attributes["X"][key] = checked
        if self._is_sparse:
            self.attributes["X"]["shape"] = [n_samples, n_features]
        if self.class_names is not None and "y" in self._arrays:
            self.attributes["y"] = {"class_names": self.class_names}
        if (
            "index" in self._arrays
            and (n_names := self._arrays["index"].n_rows) != n_samples
        ):
            raise InputError(
                f"{name}: {n_names} names of rows came for {n_samples} rows: give one a row."
            )
        inventory = {path: array.close() for path, array in self._arrays.items()}
        root = zarr.open_group(self._store, mode="r+")
        for path, attributes in self.attributes.items():
            root[path].update_attributes(attributes)
        counts = {
            "n_samples": n_samples,
            "n_features": n_features,
            "n_nonzero": self._n_nonzero,
        }
        digest = self._digest.hexdigest(n_features)
        set_record(root, {**counts, "digest": digest, "inventory": inventory})

    def _add(self, name: str, dtype: Any, chunk_rows: int, *row_shape: int) -> None:
        self._arrays[name] = ArrayWriter(
            self._store, name, dtype, chunk_rows, *row_shape
        )

    def _count(
        self,
        values: np.ndarray,
        block: np.ndarray | matrix.CSRBlock,
        n_rows: int,
        y: Any,
    ) -> None:
        """Check rows that come as ``values`` and are written as ``block``; add them to the record."""
        written = block.data if isinstance(block, matrix.CSRBlock) else block
        if (
            not matrix.all_finite(written)
            and values.dtype.kind == "f"
            and np.isfinite(values).all()
        ):
            raise InputError(
                f"{self.name}: X has numbers too large for {written.dtype}: write float64."
            )
        matrix.check_finite(block, self.name, self._digest.n_samples)
        self._append_labels(y, n_rows)
        self._digest.update(block)
        self._n_nonzero += int(np.count_nonzero(written))

    def _append_labels(self, y: Any, n_rows: int) -> None:
        if (y is None) == ("y" in self._arrays) and self._digest.n_samples:
            raise InputError(
                f"{self.name}: class labels must be given with all rows or with none."
            )
        if y is None:
            return
        labels = plain_values(y, "y")
        if labels.shape != (n_rows,) or labels.dtype.kind not in "biu":
            wanted = f"class labels must be one integer a row ({n_rows} here)"
            raise InputError(
                f"{self.name}: {wanted}, but y is {labels.dtype} of shape {labels.shape}."
            )
        if "y" not in self._arrays:
            self._add("y", np.int64, LABEL_CHUNK_ROWS)
        self._arrays["y"].append(labels)

    def append_index(self, index: np.ndarray) -> None:
        """Add names of rows, kept as array ``index`` of the store.

        Parameters
        ----------
        index : array of int or text of shape (n_rows,)
            In all, one a row.
        """
        names = np.asarray(index)
        if "index" not in self._arrays:
            is_text = names.dtype.kind in "TUO"
            self._add(
                "index",
                np.dtypes.StringDType() if is_text else np.int64,
                LABEL_CHUNK_ROWS,
            )
            self.attributes["index"] = _encoded(
                "string-array" if is_text else "array", "0.2.0"
            )
        self._arrays["index"].append(names)


def _encoded(encoding: str, version: str) -> dict[str, Any]:
    return {"encoding-type": encoding, "encoding-version": version}


class DenseStoreWriter(StoreWriter):
    """See `create_dense_store`."""

    encoding = "array", "0.2.0"

    def __init__(self, *store: Any, chunk_rows: int | None = None) -> None:
        super().__init__(*store)
        row_bytes = max(1, self.n_features) * self._dtype.itemsize
        self._add(
            "X", self._dtype, chunk_rows or chunk_rows_for(row_bytes), self.n_features
        )

    def append(self, X: np.ndarray, y: Any = None) -> None:
        """Add rows, and their class labels.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of int of shape (n_rows,), default=None
            Given with all blocks of rows or with none.
        """
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InputError(
                f"{self.name}: rows of shape {X.shape} came, not of {self.n_features} columns."
            )
        matrix.check_dtype(X.dtype, "X")
        with np.errstate(over="ignore", invalid="ignore"):
            stored = np.ascontiguousarray(X, dtype=self._dtype)
        if (
            self._dtype.kind in "iu"
            and X.dtype != self._dtype
            and not np.array_equal(stored, X)
        ):
            raise InputError(
                f"{self.name}: X has numbers that {self._dtype} cannot: write a wider dtype."
            )
        self._count(X, matrix.as_block(stored), len(X), y)
        self._arrays["X"].append(stored)


class CSRStoreWriter(StoreWriter):
    """See `create_csr_store`."""

    encoding = "csr_matrix", "0.1.0"

    def __init__(self, path: PathLike, n_features: int | None, *store: Any) -> None:
        super().__init__(path, n_features or 0, *store)
        if self._dtype not in (np.float32, np.float64):
            raise InputError(
                f"dtype is {self._dtype}; sparse rows are written as float32 or float64."
            )
        self._given = n_features  # None is one more than the largest index so far
        self._add("X/data", self._dtype, CSR_CHUNK_VALUES)
        self._add(
            "X/indices",
            np.int32 if self.n_features < 2**31 else np.int64,
            CSR_CHUNK_VALUES,
        )
        self._add("X/indptr", np.int64, chunk_rows_for(8))
        self._arrays["X/indptr"].append(np.zeros(1, np.int64))

    @property
    def density(self) -> float:
        """Share of values that are stored."""
        return self._arrays["X/data"].n_rows / (
            self._digest.n_samples * self.n_features
        )

    def append(
        self, data: Any, indices: Any = None, indptr: Any = None, y: Any = None
    ) -> None:
        """Add rows, and their class labels.

        Parameters
        ----------
        data : array of shape (nnz,), or SciPy CSR matrix
        indices : array of int of shape (nnz,), default=None
        indptr : array of int of shape (n_rows + 1,), default=None
        y : array of int of shape (n_rows,), default=None
            Given with all blocks of rows or with none.
        """
        if scipy.sparse.issparse(data):
            csr = data.tocsr()
            data = csr.data
            indices = csr.indices
            indptr = csr.indptr
        data = np.asarray(data)
        indices = np.asarray(indices)
        indptr = np.asarray(indptr, dtype=np.int64)
        matrix.check_dtype(data.dtype, "X")
        n_rows = len(indptr) - 1
        indptr = indptr - indptr[0]
        matrix.check_indptr(indptr, n_rows, len(data), len(indices), self.name)
        width = self._given or max(1, int(indices.max(initial=0)) + 1)
        if self._given is None and width > 2**31 - 1:
            raise InputError(
                f"{self.name}: column index {width - 1} needs n_features to be given."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            stored = data.astype(self._dtype, copy=False)
        block = matrix.csr_block(
            (stored, indices, indptr), width, self.name, self._digest.n_samples
        )
        self._count(data, block, n_rows, y)
        self._arrays["X/indptr"].append(
            block.indptr[1:] + self._arrays["X/data"].n_rows
        )
        self._arrays["X/data"].append(block.data)
        self._arrays["X/indices"].append(block.indices)
        if len(block.indices):
            self.n_features = max(self.n_features, width)


def create_dense_store(
    path: PathLike,
    n_features: int,
    dtype: Any = "float32",
    chunk_rows: int | None = None,
    overwrite: bool = False,
) -> DenseStoreWriter:
    """Write rows, block by block, to a dense Zarr store with checksums.

    The store appears under its path when the ``with`` block ends; after an error
    nothing is left.

    Parameters
    ----------
    path : str or path-like
    n_features : int
    dtype : dtype, default="float32"
        Type of the stored numbers; integers are read back as floats.
    chunk_rows : int, default=None
        Rows of a chunk; None makes chunks of 2 to 4 MiB that divide ``GROUP_ROWS``.
    overwrite : bool, default=False
        Replace a store that is there.

    Returns
    -------
    DenseStoreWriter
        A context manager with ``append(X, y=None)``. Set its ``feature_names``
        to the names of the columns if they have names.

    Raises
    ------
    InputError
        The path exists, rows do not fit, a number is not finite, or the disk is full.

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
    return DenseStoreWriter(path, n_features, dtype, overwrite, chunk_rows=chunk_rows)


def create_csr_store(
    path: PathLike,
    n_features: int | None = None,
    dtype: Any = "float32",
    overwrite: bool = False,
) -> CSRStoreWriter:
    """Write sparse rows, block by block, to a Zarr store with checksums, in AnnData's encoding.

    Parameters
    ----------
    path : str or path-like
    n_features : int or None, default=None
        None: one more than the largest column index that comes.
    dtype : {"float32", "float64"}, default="float32"
    overwrite : bool, default=False
        Replace a store that is there.

    Returns
    -------
    CSRStoreWriter
        A context manager with ``append(data, indices, indptr, y=None)`` or
        ``append(csr, y=y)``. Set its ``feature_names`` to the names of the columns if
        they have names.

    Raises
    ------
    InputError
        The path exists, rows do not fit, a number is not finite, or the disk is full.

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
