"""The base class of rows that are read block by block, and rows in memory."""

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

# Another value changes the last bits of all sums over rows, and may change labels.
BLOCK_ROWS = 4096
"""Number of rows in a block. Sums over rows are added block by block, from row 0 on."""

GROUP_ROWS = 16 * BLOCK_ROWS
"""Number of rows in a group.

The sums of the blocks of a group are added first. Labels are stored in chunks of this
length.
"""

# Bytes of decoded chunks that are cached, because neighbouring reads may share a chunk.
EDGE_BYTES = 64 * 2**20

# Attributes of rows that other processes do not need.
UNSENT = ("row_index", "refilled", "with_gaps", "sampled_rows", "table_options")


class Samples(ABC):
    """Rows that can be read block by block, wherever they are stored.

    Equal numbers give bit-identical blocks, regardless of storage format and chunks.

    Attributes
    ----------
    n_samples, n_features : int
        Number of rows and of columns.
    dtype : dtype
        Type of the numbers in a block: float32 or float64.
    stored_dtype : dtype
        Type of the numbers in their storage.
    is_sparse : bool
        Whether blocks are CSR blocks.
    name : str
        Name of the rows in messages: the path, or "X" in memory.
    chunk_rows : int
        Number of rows of a storage chunk. Reading multiples of this number decodes each
        chunk only once.
    row_bytes : float
        Mean number of bytes of a row in a block.
    checksummed : bool
        Whether damage to the stored bytes is detected on reading.
    edge_bytes : int
        Maximum bytes of decoded chunks that are cached between reads. A chunk is cached
        if a read needs only a part of the chunk.
    path, element : str or None
        Arguments with which ``open_samples(path, element)`` opens the rows again; None
        for data in memory.
    is_reopenable : bool
        Whether another process can open the rows again, so that a pickle need not
        contain the numbers.
    feature_names : list of str or None
        Names of the columns, read on first access; None if the columns have no names.
    encoding : Encoding or None
        How the columns of a table became numbers; None if the rows are not from a
        table.
    notes : sequence of str
        One sentence for each change to the cells of a table.
    doubts : sequence of str
        One clause for each reason to doubt clusters of these rows.
    row_index : RowIndex or None
        Numbers or names of the rows in their table; None if the rows are not from a
        table.
    table_source : TableSource or None
        The file or folder from which the table can be read again; None for a table in
        memory.
    held_bytes : float
        Bytes of memory that rows of a table occupy until they are closed.
    makes_blocks : bool
        Whether ``block`` creates new arrays from rows that are in this process.
    refilled : callable or None
        Function that opens the rows again with their gaps filled as in a fit; its
        argument is an encoding or None. None if there are no gaps to fill.
    table_options : TableOptions or None
        Options with which the columns of a table were read; None if no table was read.
    with_gaps : callable or None
        Function that opens the rows again with NaN in place of filled gaps; None if
        no gaps were filled.
    sampled_rows : ndarray of shape (m, c) or None
        A sample of the rows of a table whose gaps were filled, with NaN for the gaps.
        A column contains numbers, or category numbers.
    has_gaps : bool
        Whether NaN stands for gaps, as in rows that ``with_gaps`` opens.
    sources : list of str or None
        For each column, the name of the table's column that it comes from, or its own
        name; None if the columns have no names.
    column_order : ndarray of shape (n_features,) or None
        The user's number of each column; None if the columns are in the user's order.
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
        """Set name, shape and types; raise InputError unless the rows are numbers.

        ``row_bytes`` is set for dense rows.
        """
        self.name = name
        self.n_samples, self.n_features = matrix.check_shape(shape, name)
        self.stored_dtype = np.dtype(stored_dtype)
        matrix.check_dtype(self.stored_dtype, name)
        self.dtype = matrix.block_dtype(self.stored_dtype)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)

    def _sparse_row_bytes(self, row_values: float) -> float:
        """Return the bytes of a CSR row: values with their indices, and a pointer."""
        return row_values * (self.dtype.itemsize + 4) + 8

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns; None if they have no names."""
        return None

    @property
    def sources(self) -> list[str] | None:
        """For each column, the table's column that it comes from, or its own name."""
        columns = None if self.encoding is None else self.encoding.sources
        return self.feature_names if columns is None else columns

    @property
    def orders(self) -> Mapping[str, Sequence[str]]:
        """The categories of each ordinal column, in their order."""
        return {} if self.encoding is None else self.encoding.orders

    @abstractmethod
    def block(self, start: int, stop: int) -> np.ndarray | CSRBlock:
        """Read the rows ``start <= row < stop``; safe to call from several threads.

        Parameters
        ----------
        start, stop : int
            Range of row numbers.

        Returns
        -------
        ndarray of shape (stop - start, n_features), C-ordered, or CSRBlock
            The rows.

        Raises
        ------
        InputError
            If a value is not finite; the message names its row and column.
        DamagedStoreError
            If the bytes differ from those that were written.
        """

    def stored(self, start: int, stop: int) -> Any:
        """Read rows like ``block``, but accept numbers that are not finite."""
        return self.block(start, stop)

    def blocks(self, start: int, stop: int) -> Iterator[np.ndarray | CSRBlock]:
        """Read the rows ``start <= row < stop`` once, in blocks of BLOCK_ROWS rows."""
        rows = self.block(start, stop)
        for first in range(0, stop - start, BLOCK_ROWS):
            yield matrix.slice_rows(rows, first, min(first + BLOCK_ROWS, stop - start))

    @abstractmethod
    def gather(self, rows: np.ndarray) -> np.ndarray | CSRBlock:
        """Read rows by number, in strictly increasing order; read each chunk once."""

    @property
    def root(self) -> "Samples":
        """The rows from which these are computed, or these rows."""
        return self

    @property
    def as_stored(self) -> "Samples":
        """The stored rows with their gaps, or these rows if no gaps were filled."""
        return self

    @property
    def cached(self) -> bool:
        """Whether all rows are cached, so that a pass does not read the source."""
        return False

    def identity(self) -> str:
        """Return a hash of the source of the rows, which must be reopenable."""
        raise NotImplementedError

    def state(self) -> object:
        """Return a value that changes when the files change; None without a path."""
        return self.identity() if self.path is not None and self.is_reopenable else None

    @cached_property
    def digest(self) -> str:
        """BLAKE2b hash of the numbers, for any storage, chunks and byte order."""
        digest = ContentDigest(self.is_sparse, self.dtype)
        step = max(self.chunk_rows, BLOCK_ROWS)
        for start in range(0, self.n_samples, step):
            digest.update(self.block(start, min(start + step, self.n_samples)))
        return digest.hexdigest(self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        """Return what other processes need: the rows, but not their names or source."""
        state = dict(vars(self))
        for name in UNSENT:
            state.pop(name, None)
        return state

    def __repr__(self) -> str:
        """Return a description with name, shape and layout."""
        layout = "CSR" if self.is_sparse else "dense"
        shape = f"{self.n_samples} x {self.n_features}"
        return f"<{type(self).__name__} {self.name}: {shape}, {layout} {self.dtype}>"


def copy_command(samples: Samples) -> str:
    """Return the command that copies the rows of a file or store with checksums.

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
    """Return how many bytes of decoded chunks to cache between reads.

    ``chunk_bytes`` has the chunk size of each array, and ``n_bytes`` is the total size
    of the arrays. The cache has room for at least two chunks of each array.
    """
    return min(n_bytes, max(EDGE_BYTES, 2 * len(chunk_bytes) * max(chunk_bytes)))


class ChunkedSamples(Samples):
    """Rows of ``_rows``, an array with the methods ``read`` and ``gather``.

    For sparse rows, ``_read`` and ``_gather`` return data, indices and row pointers,
    which begin at 0. Reopenable rows have an ``opening``: a function and its two
    arguments.
    """

    opening: tuple[Callable[[Any, Any], Samples], object, object]

    def _set_rows(self, rows: Any, chunk_rows: int) -> None:
        """Set dense rows that are read in chunks of ``chunk_rows`` rows."""
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
        """Read rows by number."""
        rows = matrix.check_rows(rows, self.n_samples)
        return self._checked(self._gather(rows), rows)

    def stored(self, start: int, stop: int) -> Any:
        """Read rows as they are stored; numbers need not be finite."""
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
    """Open pickled rows again; each process keeps the last four sources open.

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
    """Running BLAKE2b hash of rows, independent of how they are split into blocks."""

    def __init__(self, is_sparse: bool, dtype: np.dtype) -> None:
        self._kind = f"{'csr' if is_sparse else 'dense'} {np.dtype(dtype).name}"
        self.n_samples = 0
        self._parts = [
            hashlib.blake2b(digest_size=16) for _ in range(3 if is_sparse else 1)
        ]

    def update(self, block: np.ndarray | CSRBlock) -> None:
        """Add the next rows."""
        self.n_samples += matrix.n_rows_of(block)
        if isinstance(block, CSRBlock):
            self.update_part(0, block.data)
            self.update_part(1, block.indices)
            self.update_part(2, np.diff(block.indptr))
        else:
            self.update_part(0, block)

    def update_part(self, part: int, values: np.ndarray, n_rows: int = 0) -> None:
        """Add the next values of one array.

        Dense rows have one array. Sparse rows have three: data, indices, and the number
        of values of each row.
        """
        self.n_samples += n_rows
        self._parts[part].update(np.ascontiguousarray(values).data)

    def hexdigest(self, n_features: int) -> str:
        """Return the digest of all rows so far."""
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
        """Read rows by number."""
        return matrix.as_block(self._array[matrix.check_rows(rows, self.n_samples)])


class CSRSamples(Samples):
    """Rows of a SciPy sparse matrix or array, with any integer type of index."""

    is_sparse = True
    checksummed = True

    def __init__(self, source: Any, name: str) -> None:
        csr = plain_csr(source, name)
        self._describe(name, csr.shape, csr.dtype)
        matrix.check_index_dtypes(name, indices=csr.indices, indptr=csr.indptr)
        self._data = csr.data
        self._indices = csr.indices
        self._indptr = csr.indptr.astype(np.int64, copy=False)
        # SciPy allows unused capacity after the last value, in both arrays or in none.
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
        """Read rows by number."""
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
    """Open an array, a list of rows or a sparse matrix, and check that it is finite."""
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
