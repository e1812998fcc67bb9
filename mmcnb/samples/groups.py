"""Rows in groups of any lengths, as Dask's chunks and the row groups of Parquet files are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.samples.matrix import stack
from mmcnb.samples.stored import ChunkedRows, EdgeChunks


class GroupedRows(ChunkedRows):
    """Rows in groups that are read whole; a pass in row order reads each once.

    Parameters
    ----------
    lengths : sequence of int
        Rows of each group.
    read_group : callable
        Gives the rows of a group by its number, as an array or a SciPy sparse matrix.
    """

    def __init__(
        self, lengths: Sequence[int], read_group: Callable[[int], Any]
    ) -> None:
        self._offsets = np.concatenate(([0], np.cumsum(lengths)))
        self._read_group = read_group
        super().__init__("", int(self._offsets[-1]), EdgeChunks())

    def _group(self, rows: Any) -> Any:
        return np.searchsorted(self._offsets, rows, side="right") - 1

    def chunk_at(self, row: int) -> tuple[int, int]:
        """First row of the group that contains a row, and the one after its last."""
        group = self._group(row)
        return int(self._offsets[group]), int(self._offsets[group + 1])

    def load(self, start: int, stop: int) -> Any:
        """Read whole groups."""
        firsts = self._offsets[(self._offsets >= start) & (self._offsets < stop)]
        return _joined(
            [self._read_group(int(group)) for group in np.unique(self._group(firsts))]
        )

    def read(self, start: int, stop: int) -> Any:
        """The rows ``start <= row < stop``."""
        parts = self.pieces(start, min(stop, self.length))
        return _joined(
            [
                self.load(begin, end) if rows is None else rows
                for begin, end, rows in parts
            ]
        )

    def gather(self, rows: np.ndarray) -> Any:
        """Single rows; each group is read at most once, and the first one for no rows."""
        groups = self._group(rows)
        wanted = np.unique(groups).tolist() or [0]
        parts = [
            self._read_group(k)[rows[groups == k] - self._offsets[k]] for k in wanted
        ]
        return _joined(parts)


def _joined(parts: list[Any]) -> Any:
    if len(parts) > 1:
        return stack(parts)
    return parts[0].tocsr() if scipy.sparse.issparse(parts[0]) else parts[0]
