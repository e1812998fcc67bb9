"""Rows in groups of any length, such as Dask chunks and Parquet row groups."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.samples.matrix import Matrix, stack
from mmcnb.samples.stored import ChunkedRows, EdgeChunks


class GroupedRows(ChunkedRows):
    """Rows in groups that are read in full; a pass in row order reads each group once.

    Parameters
    ----------
    lengths : sequence of int
        Number of rows of each group.
    read_group : callable
        Function that returns the rows of a group, given its index, as an array or a
        SciPy sparse matrix.
    """

    def __init__(
        self, lengths: Sequence[int], read_group: Callable[[int], Matrix]
    ) -> None:
        self._offsets = np.concatenate(([0], np.cumsum(lengths)))
        self._read_group = read_group
        super().__init__("", int(self._offsets[-1]), EdgeChunks())

    def _groups_of(self, rows: int | np.ndarray) -> np.ndarray:
        return np.searchsorted(self._offsets, rows, side="right") - 1

    def chunk_at(self, row: int) -> tuple[int, int]:
        """Return the range (start, stop) of the group that contains a row."""
        group = self._groups_of(row)
        return int(self._offsets[group]), int(self._offsets[group + 1])

    def load(self, start: int, stop: int) -> Matrix:
        """Read the rows ``start <= row < stop``, which must form complete groups."""
        firsts = self._offsets[(self._offsets >= start) & (self._offsets < stop)]
        groups = np.unique(self._groups_of(firsts)).tolist()
        return _stack_groups([self._read_group(group) for group in groups])

    def read(self, start: int, stop: int) -> Matrix:
        """Return the rows ``start <= row < stop``."""
        stop = min(stop, self.length)
        if start >= stop:
            return self.gather(np.empty(0, np.int64))
        parts = []
        for begin, end, rows in self.pieces(start, stop):
            parts.append(self.load(begin, end) if rows is None else rows)
        return _stack_groups(parts)

    def gather(self, rows: np.ndarray) -> Matrix:
        """Return the rows with the given indices; each group is read at most once.

        If ``rows`` is empty, the first group is read to determine the type of the rows.
        """
        groups = self._groups_of(rows)
        parts = []
        for group in np.unique(groups).tolist() or [0]:
            inside = rows[groups == group] - self._offsets[group]
            parts.append(self._read_group(group)[inside])
        return _stack_groups(parts)


def _stack_groups(parts: list[Any]) -> Matrix:
    if len(parts) > 1:
        return stack(parts)
    return parts[0].tocsr() if scipy.sparse.issparse(parts[0]) else parts[0]
