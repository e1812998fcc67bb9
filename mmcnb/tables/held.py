"""Store the rows of a table in memory or in a scratch file.

The table is read only once. Categories are stored as indices, and become 0/1 columns
when the stored rows are read.
"""

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mmcnb._machine import return_freed_memory
from mmcnb.errors import InputError
from mmcnb.samples.base import (
    BLOCK_ROWS,
    ArraySamples,
    ChunkedSamples,
    Samples,
    in_memory,
)
from mmcnb.samples.matrix import stack
from mmcnb.samples.npy import PIECE_BYTES
from mmcnb.samples.one_hot import has_categories, n_columns_of, widen
from mmcnb.samples.reading import spare_bytes
from mmcnb.samples.scratch import ScratchRows
from mmcnb.samples.stored import SlicedRows

LEAST_HELD_BYTES = 2**24
GROUPS_AT_ONCE = 6  # number of row groups assumed to be in memory at the same time


def groups_fit(
    lengths: Sequence[int], row_bytes: float, memory_limit: str | int | None
) -> bool:
    """Return whether groups of rows can be read on demand within a memory limit.

    Parameters
    ----------
    lengths : sequence of int
        Number of rows in each group.
    row_bytes : float
        Size of a row of numbers in bytes.
    memory_limit : str, int or None
        Limit on the resident memory of the process.
    """
    group_bytes = max(lengths, default=0) * row_bytes
    return GROUPS_AT_ONCE * group_bytes <= spare_bytes(memory_limit) / 2


class HeldRows:
    """Collector of rows, in memory or, if they are too large, in a scratch file.

    Parameters
    ----------
    name : str
        Name of the table, for messages.
    n_categories : sequence of int or None
        Number of categories of each column, or None for a column of numbers.
    memory_limit : str, int or None
        Limit on the resident memory of the process. Rows may use a quarter of what
        remains of this limit after the memory of the libraries is subtracted.
    has_gaps : bool, default=False
        Whether rows may contain NaN, which marks missing values.
    """

    def __init__(
        self,
        name: str,
        n_categories: Sequence[int | None],
        memory_limit: str | int | None,
        has_gaps: bool = False,
    ) -> None:
        self._name = name
        self._has_gaps = has_gaps
        self._n_categories = tuple(n_categories)
        self._most_bytes = max(LEAST_HELD_BYTES, spare_bytes(memory_limit) / 4)
        self._blocks: list[np.ndarray] = []
        self._n_bytes = 0
        self._scratch: ScratchRows | None = None

    def append(self, block: np.ndarray) -> None:
        """Add the next rows."""
        if not len(block):
            return
        self._n_bytes += block.nbytes
        if self._scratch is None and self._n_bytes > self._most_bytes:
            self._scratch = ScratchRows(
                f"the rows of {self._name}",
                tempfile.gettempdir(),
                block.shape[1],
                block.dtype,
            )
            for earlier in self._blocks:
                self._write(earlier)
            self._blocks = []
        if self._scratch is None:
            self._blocks.append(block)
        else:
            self._write(block)

    def _write(self, block: np.ndarray) -> None:
        assert self._scratch is not None
        self._scratch.write(self._scratch.n_rows, np.ascontiguousarray(block))

    def samples(self) -> Samples:
        """Return all rows as samples.

        Raises
        ------
        InputError
            If there are no rows.
        """
        if self._scratch is not None:
            return self._narrow_samples(self._scratch)
        if not self._blocks:
            raise InputError(f"{self._name} has no rows: add at least one.")
        rows = stack(self._blocks)
        n_columns = n_columns_of(self._n_categories)
        wide_bytes = len(rows) * n_columns * rows.dtype.itemsize
        if wide_bytes > max(rows.nbytes, self._most_bytes):
            return self._narrow_samples(rows)
        wide = _widened(rows, self._n_categories, self._has_gaps)
        if self._has_gaps:
            samples: Samples = ArraySamples(wide, self._name)
            samples.has_gaps = True
        else:
            samples = in_memory(wide, self._name)
        samples.held_bytes = wide_bytes
        return samples

    def _narrow_samples(self, rows: np.ndarray | ScratchRows) -> Samples:
        return HeldSamples(self._name, rows, self._n_categories, self._has_gaps)


def _widened(
    rows: np.ndarray, n_categories: Sequence[int | None], has_gaps: bool
) -> np.ndarray:
    """Expand category indices to 0/1 columns, a block of rows at a time."""
    if not has_categories(n_categories):
        return rows
    wide = np.empty((len(rows), n_columns_of(n_categories)), rows.dtype)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        wide[part] = widen(rows[part], n_categories, has_gaps)
    return wide


class HeldSamples(ChunkedSamples):
    """Rows in memory or in a scratch file, with categories stored as indices."""

    checksummed = True
    makes_blocks = True

    def __init__(
        self,
        name: str,
        rows: np.ndarray | ScratchRows,
        n_categories: tuple[int | None, ...],
        has_gaps: bool = False,
    ) -> None:
        self._describe(name, (rows.shape[0], n_columns_of(n_categories)), rows.dtype)
        self._held = rows
        self._n_categories = n_categories
        self.has_gaps = has_gaps
        if isinstance(rows, np.ndarray):
            self.held_bytes = rows.nbytes
        # Pieces span a few memory pages. Their length is a power of two, so that none
        # crosses the boundary of a block.
        n_rows = max(1, PIECE_BYTES // (rows.shape[1] * rows.dtype.itemsize))
        length = min(1 << n_rows.bit_length() - 1, BLOCK_ROWS)
        array: Any = rows
        if isinstance(rows, np.ndarray):
            array = _InMemory(rows)
        self._set_rows(SlicedRows("", array, length), length)

    def __reduce__(self) -> tuple[Any, ...]:
        if not isinstance(self._held, np.ndarray):
            raise InputError(
                f"{self.name} is in a scratch file and cannot be sent to another "
                "process: make a store with `mmcnb convert`, and open the store."
            )
        state = {
            name: getattr(self, name) for name in ("feature_names", "encoding", "notes")
        }
        parts = self.name, self._held, self._n_categories, self.has_gaps
        return HeldSamples, parts, state

    def _read(self, start: int, stop: int) -> np.ndarray:
        rows = self._rows.read(start, stop)
        return widen(rows, self._n_categories, self.has_gaps)

    def _gather(self, rows: np.ndarray) -> np.ndarray:
        return widen(self._rows.gather(rows), self._n_categories, self.has_gaps)


class _InMemory:
    """An array with the interface that `SlicedRows` requires."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start <= row < stop``."""
        return self._rows[start:stop]


def release_memory() -> None:
    """Return unused memory of Arrow and the C library to the operating system."""
    pa.default_memory_pool().release_unused()
    return_freed_memory()
