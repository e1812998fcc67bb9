"""What every home of rows looks like to the rest of the project."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmcnb.errors import InputError

BLOCK_ROWS = 4096
"""Rows in the fixed block of reduction, counted by row number."""

GROUP_ROWS = 16 * BLOCK_ROWS
"""Rows whose partial results are combined before those of other groups; a chunk of a labels array."""

_FLOAT32_EXACT = {
    np.dtype(t)
    for t in (np.bool_, np.int8, np.int16, np.uint8, np.uint16, np.float16, np.float32)
}  # fmt: skip


class CSRBlock(NamedTuple):
    """Rows of a sparse matrix: column indices rise within each row and ``indptr[0] == 0``.

    Attributes
    ----------
    data : ndarray of shape (nnz,), float32 or float64
    indices : ndarray of shape (nnz,), int32, or int64 where n_features >= 2**31
    indptr : ndarray of shape (n_rows + 1,), int64
    n_features : int
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int


def slice_rows(rows: np.ndarray | CSRBlock, start: int, stop: int) -> np.ndarray | CSRBlock:
    """Rows of a dense or CSR block, without a copy of the values.

    Parameters
    ----------
    rows : ndarray or CSRBlock
        The block.
    start, stop : int
        Range of rows, counted from the first of the block.

    Returns
    -------
    ndarray or CSRBlock

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import slice_rows
    >>> slice_rows(np.array([[1.0], [2.0], [3.0]]), 1, 3).tolist()
    [[2.0], [3.0]]
    """
    if not isinstance(rows, CSRBlock):
        return rows[start:stop]
    first, last = rows.indptr[start], rows.indptr[stop]
    indptr = rows.indptr[start : stop + 1] - first
    return CSRBlock(rows.data[first:last], rows.indices[first:last], indptr, rows.n_features)


class Samples(ABC):
    """Rows that can be read block by block, wherever they live.

    The same numbers give bit-identical blocks whatever their home and however they are chunked.

    Attributes
    ----------
    n_samples, n_features : int
    stored_dtype : dtype of the numbers as they are kept
    is_sparse : bool
    name : str
        For messages: the path, or "array".
    chunk_rows : int
        Rows held by one storage chunk; reading in multiples of it decodes no chunk twice.
    row_bytes : float
        Average bytes of a row as ``block`` gives it.
    checksummed : bool
        True when damage to the stored bytes would be found on reading.
    edge_bytes : int
        Most bytes of decoded chunks that are kept between reads, for reads that need parts of a chunk.
    path, element : str or None
        What ``open_samples(path, element)`` needs to open the rows again; None for data in memory.
    travels : bool
        Whether the rows can be opened again in another process, so that a pickle holds no numbers.
    """

    n_samples: int
    n_features: int
    stored_dtype: np.dtype
    is_sparse: bool
    name: str
    chunk_rows: int
    row_bytes: float
    checksummed: bool
    edge_bytes: int = 0
    path: str | None = None
    element: str | None = None
    is_reopenable: bool = False

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64: the type of the numbers in a block."""
        return block_dtype(self.stored_dtype)

    @abstractmethod
    def block(self, start: int, stop: int) -> np.ndarray | CSRBlock:
        """Read the rows ``start <= row < stop``; safe to call from several threads.

        Returns
        -------
        ndarray of shape (stop - start, n_features), C-ordered, or CSRBlock

        Raises
        ------
        InputError
            A value is not finite; the message names its row and column.
        DamagedStoreError
            The bytes are not those that were written.
        """

    def blocks(self, start: int, stop: int) -> Iterator[np.ndarray | CSRBlock]:
        """Read the rows ``start <= row < stop`` once and hand them out in blocks of ``BLOCK_ROWS``."""
        rows = self.block(start, stop)
        for first in range(0, stop - start, BLOCK_ROWS):
            yield slice_rows(rows, first, min(first + BLOCK_ROWS, stop - start))

    @abstractmethod
    def gather(self, rows: np.ndarray) -> np.ndarray | CSRBlock:
        """Read single rows, given by strictly increasing numbers; each chunk is read at most once."""

    @property
    def root(self) -> "Samples":
        """The rows that are read, where these are computed from others."""
        return self

    @property
    def cached(self) -> bool:
        """Whether a pass would be served from rows computed before, without a read of the root."""
        return False

    @cached_property
    def digest(self) -> str:
        """blake2b of the numbers; the same for any home, chunking and byte order."""
        digest = ContentDigest(self.is_sparse, self.dtype)
        step = max(self.chunk_rows, BLOCK_ROWS)
        for start in range(0, self.n_samples, step):
            digest.update(self.block(start, min(start + step, self.n_samples)))
        return digest.hexdigest(self.n_features)

    def __repr__(self) -> str:
        """Name, shape and layout."""
        layout = "CSR" if self.is_sparse else "dense"
        shape = f"{self.n_samples} x {self.n_features}"
        return f"<{type(self).__name__} {self.name}: {shape}, {layout} {self.dtype}>"


class ContentDigest:
    """Running blake2b over blocks in row order, independent of where they are cut."""

    def __init__(self, is_sparse: bool, dtype: np.dtype) -> None:
        self._kind = f"{'csr' if is_sparse else 'dense'} {np.dtype(dtype).name}"
        self._n_samples = 0
        self._parts = [hashlib.blake2b(digest_size=16) for _ in range(3 if is_sparse else 1)]

    def update(self, block: np.ndarray | CSRBlock) -> None:
        """Add the next rows."""
        if isinstance(block, CSRBlock):
            arrays = [block.data, block.indices, np.diff(block.indptr)]
            self._n_samples += len(block.indptr) - 1
        else:
            arrays = [block]
            self._n_samples += len(block)
        for part, array in zip(self._parts, arrays, strict=True):
            part.update(np.ascontiguousarray(array).data)

    def hexdigest(self, n_features: int) -> str:
        """Digest of all rows so far."""
        whole = hashlib.blake2b(f"{self._kind} {self._n_samples} {n_features}".encode(), digest_size=16)
        for part in self._parts:
            whole.update(part.digest())
        return whole.hexdigest()


def block_dtype(dtype: np.dtype) -> np.dtype:
    """Type in which numbers stored as ``dtype`` are handed out: float32 where it holds each of them."""
    native = np.dtype(dtype).newbyteorder("=")
    return np.dtype(np.float32 if native in _FLOAT32_EXACT else np.float64)


def check_dtype(dtype: np.dtype, name: str) -> None:
    """Refuse text, complex numbers and whatever else is not real numbers."""
    if np.dtype(dtype).kind not in "biuf":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "O": "objects", "T": "text"}
        what = kinds.get(np.dtype(dtype).kind, f"{dtype} values")
        raise InputError(
            f"{name} holds {what} (dtype {dtype}), which are not supported: convert them to real numbers."
        )


def check_shape(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    """Refuse what is not a table with at least one row and one column."""
    if len(shape) != 2:
        raise InputError(
            f"{name} is a {len(shape)}-D array of shape {shape}; rows x features (2-D) is needed: "
            "reshape it, with one row per sample."
        )
    if shape[0] == 0:
        raise InputError(
            f"Found array with 0 sample(s) (shape={shape}) in {name} while a minimum of 1 is required: "
            "give it rows."
        )
    if shape[1] == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape={shape}) in {name} while a minimum of 1 is required: "
            "give it columns."
        )
    return int(shape[0]), int(shape[1])


def all_finite(values: np.ndarray) -> bool:
    """Whether no value is NaN or infinite, by one sum unless that sum is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(values).all())


def check_finite(block: np.ndarray | CSRBlock, name: str, rows: int | np.ndarray) -> None:
    """Refuse NaN and infinity, naming the first row and column.

    ``rows`` is the number of the block's first row, or the number of each of its rows.
    """
    values = block.data if isinstance(block, CSRBlock) else block
    if all_finite(values):
        return
    where = int(np.argmin(np.isfinite(values.reshape(-1))))
    if isinstance(block, CSRBlock):
        row, column = int(np.searchsorted(block.indptr, where, side="right")) - 1, int(block.indices[where])
    else:
        row, column = divmod(where, block.shape[1])
    value = values.reshape(-1)[where]
    row = int(rows[row]) if isinstance(rows, np.ndarray) else rows + row
    kind = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        f"Input X contains {kind} at row {row}, column {column} of {name}: "
        "fill in or drop such rows before clustering (inf and NaN are not accepted)."
    )


def as_block(values: np.ndarray) -> np.ndarray:
    """Values in C order and their block dtype; no copy where they are so already."""
    return np.ascontiguousarray(values, dtype=block_dtype(values.dtype))


def check_rows(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Row numbers as int64; they must rise strictly and lie within the data."""
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows) and (rows[0] < 0 or rows[-1] >= n_samples or (np.diff(rows) <= 0).any()):
        raise InputError(f"row numbers to gather must rise strictly within 0..{n_samples - 1}.")
    return rows
