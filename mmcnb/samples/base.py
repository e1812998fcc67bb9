"""The base class of rows that are read block by block, and its in-memory subclasses."""

import hashlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.errors import InputError, NotFiniteError
from mmcnb.samples import matrix
from mmcnb.samples.arrays import plain_array, plain_csr
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.matrix import CSRBlock
from mmcnb.samples.row_index import RowIndex

# A different value changes the last bits of all sums over rows, and may change labels.
BLOCK_ROWS = 4096
"""Number of rows in a block. Sums over rows are computed block by block from row 0."""

GROUP_ROWS = 16 * BLOCK_ROWS
"""Number of rows in a group.

The sums of the blocks in a group are added to one sum before the sums of groups are
added. Labels are stored in chunks of this length.
"""

# Default size of the cache for decoded chunks, in bytes. Consecutive reads may need
# parts of the same chunk.
EDGE_BYTES = 64 * 2**20

# Attributes that are not pickled, because other processes do not need them.
UNSENT = ("row_index", "refilled", "with_gaps", "sampled_rows", "table_options")


class Samples(ABC):
    """Rows in memory or in any storage format, which are read block by block.

    Equal values result in bit-identical blocks, regardless of storage format and
    chunks.

    Attributes
    ----------
    n_samples, n_features : int
        Number of rows, and number of columns.
    dtype : dtype
        Data type of the values in a block: float32 or float64.
    stored_dtype : dtype
        Data type of the stored values.
    is_sparse : bool
        Whether blocks are of type `CSRBlock` instead of ndarray.
    name : str
        Name used for the rows in messages: their path, or "X" if they are in memory.
    chunk_rows : int
        Number of rows in a storage chunk. If each read starts and ends at a multiple of
        this number, each chunk is decoded only once.
    row_bytes : float
        Mean size of a row in a block, in bytes.
    checksummed : bool
        Whether damage to the stored values is detected when they are read.
    edge_bytes : int
        Maximum size of the decoded chunks that are cached between reads, in bytes. A
        chunk is cached if a read needs only part of it.
    path, element : str or None
        Arguments with which ``open_samples(path, element)`` opens the rows again; None
        for data in memory.
    is_reopenable : bool
        Whether another process can open the rows again, so that a pickle does not have
        to contain the values.
    feature_names : list of str or None
        Names of the columns, read on first access; None if the columns have no names.
    encoding : Encoding or None
        How the columns of a table were converted to numbers; None if the rows do not
        come from a table.
    notes : sequence of str
        One sentence for each kind of change that was made to the cells of a table.
    doubts : sequence of str
        One clause for each reason to doubt clusters that are found in these rows.
    row_index : RowIndex or None
        Numbers or names that identify the rows in their source; None if only their
        positions identify them.
    table_source : TableSource or None
        The file or folder from which the table can be read again; None if there is
        none.
    held_bytes : float
        Size of the data that these rows hold in memory, in bytes; 0 if it is read from
        storage or belongs to the caller.
    makes_blocks : bool
        Whether ``block`` creates new arrays from rows that this process holds, instead
        of returning views of an array.
    refilled : callable or None
        Function that opens the rows again and fills missing values as in a fit; its
        argument is an encoding or None. None if no values are missing.
    table_options : TableOptions or None
        Options with which the table was read; None if the rows do not come from a
        table.
    with_gaps : callable or None
        Function that opens the rows again with NaN in place of filled values; None if
        no missing values were filled.
    sampled_rows : ndarray of shape (m, c) or None
        A sample of the rows of a table in which missing cells were filled, with NaN for
        these cells. Each column contains numbers or category codes.
    has_gaps : bool
        Whether NaN represents missing values, as in rows that ``with_gaps`` opens.
    sources : list of str or None
        For each column, the name of the table column from which it is derived, or its
        own name; None if the columns have no names.
    column_order : ndarray of shape (n_features,) or None
        Index of each column in the user's data; None if the columns are in the user's
        order.
    """

    n_samples: int
    n_features: int
    dtype: np.dtype
    stored_dtype: np.dtype
    is_sparse: bool = False
    name: str
    chunk_rows: int = BLOCK_ROWS
    row_bytes: float
    checksummed: bool = False
    edge_bytes: int = 0
    path: str | None = None
    element: str | None = None
    is_reopenable: bool = False
    held_bytes: float = 0
    makes_blocks: bool = False
    encoding: Encoding | None = None
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()
    row_index: RowIndex | None = None
    table_source: Any = None
    table_options: Any = None
    refilled: Callable[[Encoding | None], "Samples"] | None = None
    with_gaps: Callable[[], "Samples"] | None = None
    sampled_rows: np.ndarray | None = None
    has_gaps: bool = False
    column_order: np.ndarray | None = None

    def _describe(
        self, name: str, shape: tuple[int, ...], stored_dtype: np.dtype
    ) -> None:
        """Set the name, shape and dtypes, and raise InputError if they are invalid.

        ``row_bytes`` is set to the size of a dense row.
        """
        self.name = name
        self.n_samples, self.n_features = matrix.check_shape(shape, name)
        self.stored_dtype = np.dtype(stored_dtype)
        matrix.check_dtype(self.stored_dtype, name)
        self.dtype = matrix.block_dtype(self.stored_dtype)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)

    def _sparse_row_bytes(self, row_values: float) -> float:
        """Return the size in bytes of a CSR row with ``row_values`` values.

        The size includes the values, their column indices and one row pointer.
        """
        return row_values * (self.dtype.itemsize + 4) + 8

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, or None if the columns have no names."""
        return None

    @property
    def sources(self) -> list[str] | None:
        """For each column, the table column it is derived from, or its own name."""
        columns = None if self.encoding is None else self.encoding.sources
        return self.feature_names if columns is None else columns

    @property
    def orders(self) -> Mapping[str, Sequence[str]]:
        """The categories of each ordinal column, in ascending order."""
        return {} if self.encoding is None else self.encoding.orders

    @abstractmethod
    def block(self, start: int, stop: int) -> np.ndarray | CSRBlock:
        """Read the rows ``start <= row < stop``; safe to call from several threads.

        Parameters
        ----------
        start, stop : int
            Range of row indices.

        Returns
        -------
        ndarray of shape (stop - start, n_features), C-ordered, or CSRBlock
            The rows.

        Raises
        ------
        InputError
            If a value is not finite; the message names its row and column.
        DamagedStoreError
            If the stored data is damaged.
        """

    def stored(self, start: int, stop: int) -> Any:
        """Read the rows ``start <= row < stop``, which may contain NaN or infinity."""
        return self.block(start, stop)

    def blocks(self, start: int, stop: int) -> Iterator[np.ndarray | CSRBlock]:
        """Yield the rows ``start <= row < stop`` in blocks of BLOCK_ROWS rows."""
        rows = self.block(start, stop)
        for first in range(0, stop - start, BLOCK_ROWS):
            yield matrix.slice_rows(rows, first, min(first + BLOCK_ROWS, stop - start))

    @abstractmethod
    def gather(self, rows: np.ndarray) -> np.ndarray | CSRBlock:
        """Read the rows with the given indices, which must increase strictly.

        Each stored chunk is decoded at most once.
        """

    @property
    def root(self) -> "Samples":
        """The stored rows from which these rows are computed.

        For rows that are not computed from other rows, these rows themselves.
        """
        return self

    @property
    def as_stored(self) -> "Samples":
        """The rows before missing values were filled.

        If no missing values were filled, these rows themselves.
        """
        return self

    @property
    def cached(self) -> bool:
        """Whether all rows are cached, so that a pass does not read their source."""
        return False

    def identity(self) -> str:
        """Return a hash that identifies the source of rows that can be reopened."""
        raise NotImplementedError

    def state(self) -> object:
        """Return a value that changes if the files of the rows change.

        The result is None if the rows have no path or cannot be reopened.
        """
        return self.identity() if self.path is not None and self.is_reopenable else None

    @cached_property
    def digest(self) -> str:
        """BLAKE2b hash of the values of all rows.

        The hash does not depend on the file format, the chunk size or the byte order.
        """
        digest = ContentDigest(self.is_sparse, self.dtype)
        step = max(self.chunk_rows, BLOCK_ROWS)
        for start in range(0, self.n_samples, step):
            digest.update(self.block(start, min(start + step, self.n_samples)))
        return digest.hexdigest(self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to pickle, which are all except those in `UNSENT`."""
        state = dict(vars(self))
        for name in UNSENT:
            state.pop(name, None)
        return state

    def __repr__(self) -> str:
        """Return a one-line description with the name, shape and layout of the rows."""
        layout = "CSR" if self.is_sparse else "dense"
        shape = f"{self.n_samples} x {self.n_features}"
        return f"<{type(self).__name__} {self.name}: {shape}, {layout} {self.dtype}>"


def copy_command(samples: Samples) -> str:
    """Return the command that copies rows to a Zarr store with checksums.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.base import copy_command, in_memory
    >>> rows = in_memory(np.eye(2))
    >>> rows.path, rows.element = "my cells.h5ad", "obsm/X_pca"
    >>> copy_command(rows)
    "mmcnb convert 'my cells.h5ad' OUT.zarr --element obsm/X_pca"
    """
    words = ["mmcnb", "convert", samples.path or samples.name, "OUT.zarr"]
    if samples.element not in (None, "X"):
        words += ["--element", samples.element]
    return shlex.join(words)


def edge_bytes(chunk_bytes: list[int], n_bytes: int) -> int:
    """Return the maximum number of bytes of decoded chunks to cache between reads.

    ``chunk_bytes`` has the chunk size of each array, and ``n_bytes`` is the total size
    of the arrays. The cache has room for at least two chunks of each array.
    """
    return min(n_bytes, max(EDGE_BYTES, 2 * len(chunk_bytes) * max(chunk_bytes)))


class ChunkedSamples(Samples):
    """Rows of ``_rows``, an object with the methods ``read`` and ``gather``.

    For sparse rows, ``_read`` and ``_gather`` return the arrays data, indices and
    indptr of CSR rows, where indptr begins at 0. Reopenable rows have an attribute
    ``opening``: the function that opens them, and its two arguments.
    """

    opening: tuple[Callable[[Any, Any], Samples], object, object]

    def _set_rows(self, rows: Any, chunk_rows: int) -> None:
        """Set the reader of dense rows, whose chunks have ``chunk_rows`` rows."""
        self._rows = rows
        self.chunk_rows = chunk_rows
        stored = self.n_features * self.stored_dtype.itemsize
        self.edge_bytes = edge_bytes([chunk_rows * stored], self.n_samples * stored)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_reopenable:
            raise InputError(
                f"{self.name} cannot be sent to another process: "
                "open it by its path instead."
            )
        return open_again, (*self.opening, self.identity())

    def block(self, start: int, stop: int) -> np.ndarray | CSRBlock:
        """Read the rows ``start <= row < stop``."""
        return self._checked(self._read(start, min(stop, self.n_samples)), start)

    def gather(self, rows: np.ndarray) -> np.ndarray | CSRBlock:
        """Read the rows with the given indices, which must increase strictly."""
        rows = matrix.check_rows(rows, self.n_samples)
        return self._checked(self._gather(rows), rows)

    def stored(self, start: int, stop: int) -> Any:
        """Read the rows ``start <= row < stop``, which may contain NaN or infinity."""
        return self._read(start, min(stop, self.n_samples))

    def _checked(self, values: Any, rows: int | np.ndarray) -> np.ndarray | CSRBlock:
        if self.is_sparse:
            block = matrix.csr_block(values, self.n_features, self.name, rows)
            matrix.check_finite(block, self.name, rows, lambda: self.feature_names)
            return block
        dense = matrix.as_block(values)
        if not self.has_gaps:
            matrix.check_finite(dense, self.name, rows, lambda: self.feature_names)
        return dense

    def _read(self, start: int, stop: int) -> Any:
        return self._rows.read(start, stop)

    def _gather(self, rows: np.ndarray) -> Any:
        return self._rows.gather(rows)


@lru_cache(maxsize=4)
def open_again(
    opener: Callable[[Any, Any], Samples], path: object, element: object, identity: str
) -> Samples:
    """Open the source of pickled rows again.

    Each process keeps the four most recently used sources open.

    Raises
    ------
    InputError
        If the source has changed since the rows were pickled.
    """
    samples = opener(path, element)
    if samples.identity() != identity:
        raise InputError(
            f"{samples.name} has been replaced since it was opened: open it again."
        )
    return samples


class ContentDigest:
    """BLAKE2b hash of rows that are added block by block.

    The hash does not depend on how the rows are split into blocks.
    """

    def __init__(self, is_sparse: bool, dtype: np.dtype) -> None:
        self._kind = f"{'csr' if is_sparse else 'dense'} {np.dtype(dtype).name}"
        self.n_samples = 0
        self._parts = [
            hashlib.blake2b(digest_size=16) for _ in range(3 if is_sparse else 1)
        ]

    def update(self, block: np.ndarray | CSRBlock) -> None:
        """Add the next rows to the hash."""
        self.n_samples += matrix.n_rows_of(block)
        if isinstance(block, CSRBlock):
            self.update_part(0, block.data)
            self.update_part(1, block.indices)
            self.update_part(2, np.diff(block.indptr))
        else:
            self.update_part(0, block)

    def update_part(self, part: int, values: np.ndarray, n_rows: int = 0) -> None:
        """Add the next values of one of the arrays that represent the rows to the hash.

        Dense rows have one array. Sparse rows have three: data, indices, and the number
        of stored values in each row. ``n_rows`` is added to the number of rows.
        """
        self.n_samples += n_rows
        self._parts[part].update(np.ascontiguousarray(values).data)

    def hexdigest(self, n_features: int) -> str:
        """Return the digest of all rows added so far."""
        header = f"{self._kind} {self.n_samples} {n_features}"
        whole = hashlib.blake2b(header.encode(), digest_size=16)
        for part in self._parts:
            whole.update(part.digest())
        return whole.hexdigest()


class ArraySamples(Samples):
    """Rows of a NumPy array or of a list of rows.

    Blocks of a C-ordered float array are views of the array.
    """

    checksummed = True

    def __init__(self, array: Any, name: str) -> None:
        is_plain = type(array) is np.ndarray and array.dtype.kind in "biufc"
        self._array = array if is_plain else plain_array(array, name, True)
        self._describe(name, self._array.shape, self._array.dtype)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Read the rows ``start <= row < stop``."""
        return matrix.as_block(self._array[start:stop])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Read the rows with the given indices, which must increase strictly."""
        return matrix.as_block(self._array[matrix.check_rows(rows, self.n_samples)])


class CSRSamples(Samples):
    """Rows of a SciPy sparse matrix or array, with indices of any integer type."""

    is_sparse = True
    checksummed = True

    def __init__(self, source: Any, name: str) -> None:
        csr = plain_csr(source, name)
        self._describe(name, csr.shape, csr.dtype)
        matrix.check_index_dtypes(name, indices=csr.indices, indptr=csr.indptr)
        self._data = csr.data
        self._indices = csr.indices
        self._indptr = csr.indptr.astype(np.int64, copy=False)
        # SciPy allows unused capacity at the end of both arrays.
        if len(self._indptr) and len(self._data) == len(self._indices):
            n_used = max(int(self._indptr[-1]), 0)
            self._data = self._data[:n_used]
            self._indices = self._indices[:n_used]
        n_data = len(self._data)
        n_indices = len(self._indices)
        matrix.check_indptr(self._indptr, self.n_samples, n_data, n_indices, name)
        self.row_bytes = self._sparse_row_bytes(n_data / self.n_samples)

    def block(self, start: int, stop: int) -> CSRBlock:
        """Read the rows ``start <= row < stop``."""
        indptr = self._indptr[start : stop + 1]
        return self._part(slice(indptr[0], indptr[-1]), indptr - indptr[0], start)

    def gather(self, rows: np.ndarray) -> CSRBlock:
        """Read the rows with the given indices, which must increase strictly."""
        rows = matrix.check_rows(rows, self.n_samples)
        starts = self._indptr[rows]
        stops = self._indptr[rows + 1]
        positions, indptr = matrix.row_positions(starts, stops)
        return self._part(positions, indptr, rows)

    def _part(
        self, positions: slice | np.ndarray, indptr: np.ndarray, rows: int | np.ndarray
    ) -> CSRBlock:
        parts = self._data[positions], self._indices[positions], indptr
        return matrix.csr_block(parts, self.n_features, self.name, rows)


def in_memory(
    rows: Any, name: str = "X", feature_names: list[str] | None = None
) -> Samples:
    """Open the rows of an array, list or sparse matrix.

    Raise InputError if a value is not finite.
    """
    if scipy.sparse.issparse(rows):
        samples: Samples = CSRSamples(rows, name)
    else:
        samples = ArraySamples(rows, name)
    if feature_names is not None:
        samples.feature_names = feature_names
    if samples.is_sparse or samples.stored_dtype.kind == "f":
        try:
            _check_blocks(samples)
        except NotFiniteError as error:
            error.samples = samples
            raise
    return samples


def _check_blocks(samples: Samples) -> None:
    for start in range(0, samples.n_samples, BLOCK_ROWS):
        block = samples.block(start, start + BLOCK_ROWS)
        matrix.check_finite(block, samples.name, start, lambda: samples.feature_names)
