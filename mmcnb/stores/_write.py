"""Write rows to checksummed Zarr stores, one chunk in memory at a time."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import InputError
from mmcnb.samples import matrix
from mmcnb.samples._arrays import check_feature_names, plain_values
from mmcnb.samples._base import ContentDigest
from mmcnb.samples._inventory import PathLike
from mmcnb.samples.matrix import CSRBlock
from mmcnb.stores._array_writer import ArrayWriter, chunk_rows_for, set_record
from mmcnb.stores.atomic import AtomicOutput

CSR_CHUNK_VALUES = 2**18  # smaller, as rows do not begin where chunks do
LABEL_CHUNK_ROWS = 2**18  # 2 MiB of int64
INDEX_CHUNK_ROWS = 2**16  # names of some bytes each
TEXT = np.dtypes.StringDType()


class StoreWriter(ABC):
    """Common part of the writers: rows counted and digested, class labels, inventory, rename."""

    is_sparse: bool
    n_features: int  # as far as columns are known

    def __init__(self, output: AtomicOutput, dtype: Any, attributes: dict[str, Any] | None = None) -> None:
        self._output, self._dtype = output, np.dtype(dtype)
        matrix.check_dtype(self._dtype, f"the dtype to write {self._output.name} with")
        if self._dtype.kind == "b":
            self._dtype = np.dtype(np.uint8)
        self._attributes = attributes or {}
        self._digest = ContentDigest(self.is_sparse, matrix.block_dtype(self._dtype))
        self._n_samples = 0
        self._n_nonzero = 0
        self._labels: ArrayWriter | None = None
        self._index: ArrayWriter | None = None
        self.class_names: list[str] | None = None
        self.feature_names: list[str] | None = None

    def __enter__(self) -> Self:
        """Begin the store aside of its place."""
        with self._output.discarding():
            self._output.begin()
            self._store = LocalStore(self._output.path)
            self._root = zarr.create_group(store=self._store, zarr_format=3)
            self._begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Finish the store and move it to its place, or remove it after an error."""
        with self._output:
            if error is not None:
                raise error
            self._finish()

    @abstractmethod
    def _begin(self) -> None:
        """Create the arrays of the rows."""

    @abstractmethod
    def _close_arrays(self, attributes: dict[str, Any]) -> dict[str, list[str]]:
        """Finish the arrays of the rows, with further attributes of X; their inventory."""

    def _finish(self) -> None:
        matrix.check_shape((self._n_samples, self.n_features), self._output.name)
        names = check_feature_names(self.feature_names, self.n_features, self._output.name)
        inventory = self._close_arrays({} if names is None else {"feature_names": names})
        if self._labels is not None:
            if self.class_names is not None:
                self._labels.attributes["class_names"] = self.class_names
            inventory["y"] = self._labels.close()
        if self._index is not None:
            inventory["index"] = self._index.close()
            if self._index.n_rows != self._n_samples:
                raise InputError(
                    f"{self._output.name}: {self._index.n_rows} names of rows came where X has "
                    f"{self._n_samples} rows: give one a row."
                )
        self._root.update_attributes(self._attributes)
        record = {
            "n_samples": self._n_samples,
            "n_features": self.n_features,
            "n_nonzero": self._n_nonzero,
            "digest": self._digest.hexdigest(self.n_features),
            "inventory": inventory,
        }
        set_record(self._root, self._store, record)

    def _count(self, values: np.ndarray, block: np.ndarray | CSRBlock, n_rows: int, y: Any) -> None:
        """Check rows that come as ``values`` and are written as ``block``; add them to what is recorded."""
        written, name = block.data if isinstance(block, CSRBlock) else block, self._output.name
        if not matrix.all_finite(written) and values.dtype.kind == "f" and np.isfinite(values).all():
            raise InputError(f"{name}: X holds numbers too large for {written.dtype}: write it as float64.")
        matrix.check_finite(block, name, self._n_samples)
        self._append_labels(y, n_rows)
        self._digest.update(block)
        self._n_samples += n_rows
        self._n_nonzero += int(np.count_nonzero(written))

    def _append_labels(self, y: Any, n_rows: int) -> None:
        if (y is None) != (self._labels is None) and self._n_samples:
            raise InputError(f"{self._output.name}: class labels must be given with all rows or with none.")
        if y is None:
            return
        labels = plain_values(y, "y")
        if labels.shape != (n_rows,) or labels.dtype.kind not in "biu":
            raise InputError(
                f"{self._output.name}: class labels must be one integer a row ({n_rows} here), "
                f"but y is {labels.dtype} of shape {labels.shape}."
            )
        if self._labels is None:
            self._labels = ArrayWriter(self._store, "y", np.int64, LABEL_CHUNK_ROWS)
        self._labels.append(labels.astype(np.int64))

    def append_index(self, index: np.ndarray) -> None:
        """Add names of rows, kept as array ``index`` of the store.

        Parameters
        ----------
        index : array of int or text of shape (n_rows,)
            In all, one a row.
        """
        names = np.asarray(index)
        is_text = names.dtype.kind in "TUO"
        if self._index is None:
            self._index = ArrayWriter(self._store, "index", TEXT if is_text else np.int64, INDEX_CHUNK_ROWS)
            encoding = "string-array" if is_text else "array"
            self._index.attributes = {"encoding-type": encoding, "encoding-version": "0.2.0"}
        self._index.append(names.astype(TEXT if is_text else np.int64))


class DenseStoreWriter(StoreWriter):
    """See `create_dense_store`."""

    is_sparse = False

    def __init__(self, n_features: int, chunk_rows: int | None, n_samples: int | None, *store: Any) -> None:
        super().__init__(*store)
        self.n_features, self._expected = int(n_features), n_samples
        self._chunk_rows = chunk_rows or chunk_rows_for(max(1, self.n_features) * self._dtype.itemsize)

    def _begin(self) -> None:
        self._rows = ArrayWriter(self._store, "X", self._dtype, self._chunk_rows, self.n_features)
        self._rows.attributes = {"encoding-type": "array", "encoding-version": "0.2.0"}

    def _close_arrays(self, attributes: dict[str, Any]) -> dict[str, list[str]]:
        if self._expected is not None and self._expected != self._n_samples:
            raise InputError(
                f"{self._output.name}: {self._n_samples} rows came where {self._expected} were said."
            )
        self._rows.attributes |= attributes
        return {"X": self._rows.close()}

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
                f"{self._output.name}: rows of shape {X.shape} came, not of {self.n_features} columns."
            )
        matrix.check_dtype(X.dtype, "X")
        with np.errstate(over="ignore", invalid="ignore"):
            stored = np.ascontiguousarray(X, dtype=self._dtype)
        if self._dtype.kind in "iu" and X.dtype != self._dtype and not np.array_equal(stored, X):
            raise InputError(
                f"{self._output.name}: X holds numbers that {self._dtype} cannot: write a wider dtype."
            )
        self._count(X, matrix.as_block(stored), len(X), y)
        self._rows.append(stored)


class CSRStoreWriter(StoreWriter):
    """See `create_csr_store`."""

    is_sparse = True

    def __init__(self, n_features: int | None, *store: Any) -> None:
        super().__init__(*store)
        if self._dtype not in (np.float32, np.float64):
            raise InputError(f"dtype is {self._dtype}; sparse rows are written as float32 or float64.")
        self._given = n_features
        self.n_features = n_features or 0  # where it is not given, one more than the largest index so far
        self.n_values = 0

    def _begin(self) -> None:
        index_dtype = np.int32 if (self._given or 0) < 2**31 else np.int64
        self._group = zarr.create_group(store=self._store, path="X", zarr_format=3)
        self._data = ArrayWriter(self._store, "X/data", self._dtype, CSR_CHUNK_VALUES)
        self._indices = ArrayWriter(self._store, "X/indices", index_dtype, CSR_CHUNK_VALUES)
        self._indptr = ArrayWriter(self._store, "X/indptr", np.int64, chunk_rows_for(8))
        self._indptr.append(np.zeros(1, np.int64))

    def _close_arrays(self, attributes: dict[str, Any]) -> dict[str, list[str]]:
        shape = [self._n_samples, self.n_features]
        encoding = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape}
        self._group.update_attributes(encoding | attributes)
        writers = {"X/data": self._data, "X/indices": self._indices, "X/indptr": self._indptr}
        return {name: writer.close() for name, writer in writers.items()}

    def append(self, data: Any, indices: Any = None, indptr: Any = None, y: Any = None) -> None:
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
            data, indices, indptr = csr.data, csr.indices, csr.indptr
        data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr, dtype=np.int64)
        matrix.check_dtype(data.dtype, "X")
        target, n_rows = self._output.name, len(indptr) - 1
        matrix.check_indptr(indptr - indptr[0], n_rows, len(data), len(indices), target)
        width = self._given
        if width is None:
            width = max(1, int(indices.max(initial=0)) + 1)
            if width > 2**31 - 1:
                raise InputError(f"{target}: column index {width - 1} needs n_features to be given.")
        with np.errstate(over="ignore", invalid="ignore"):
            stored = data.astype(self._dtype, copy=False)
        block = matrix.csr_block(stored, indices, indptr - indptr[0], width, target, self._n_samples)
        self._count(data, block, n_rows, y)
        self._data.append(block.data)
        self._indices.append(block.indices)
        self._indptr.append(block.indptr[1:] + self.n_values)
        self.n_values += len(block.data)
        if len(block.indices):
            self.n_features = max(self.n_features, width)


def create_dense_store(
    path: PathLike,
    n_features: int,
    dtype: Any = "float32",
    chunk_rows: int | None = None,
    overwrite: bool = False,
    n_samples: int | None = None,
    attributes: dict[str, Any] | None = None,
) -> DenseStoreWriter:
    """Write rows, block by block, to a dense Zarr store with checksums.

    The store appears under its path when the ``with`` block ends; after an error nothing is left.

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
    n_samples : int, default=None
        Number of rows to come, checked at the end.
    attributes : dict, default=None
        Further attributes of the store.

    Returns
    -------
    DenseStoreWriter
        A context manager with ``append(X, y=None)``. Set its ``feature_names``
        to the names of the columns where they have names.

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
    output = AtomicOutput(path, overwrite)
    return DenseStoreWriter(n_features, chunk_rows, n_samples, output, dtype, attributes)


def create_csr_store(
    path: PathLike,
    n_features: int | None = None,
    dtype: Any = "float32",
    overwrite: bool = False,
    attributes: dict[str, Any] | None = None,
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
    attributes : dict, default=None
        Further attributes of the store.

    Returns
    -------
    CSRStoreWriter
        A context manager with ``append(data, indices, indptr, y=None)`` or ``append(csr, y=y)``.
        Set its ``feature_names`` to the names of the columns where they have names.

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
    return CSRStoreWriter(n_features, AtomicOutput(path, overwrite), dtype, attributes)
