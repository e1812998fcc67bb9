"""Build sparse rows by sorting unordered entries in memory or in scratch files."""

import tempfile
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mmcnb._machine import return_freed_memory
from mmcnb.errors import InputError
from mmcnb.samples.base import (
    BLOCK_ROWS,
    GROUP_ROWS,
    ChunkedSamples,
    Samples,
    edge_bytes,
    in_memory,
)
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.matrix import CSRParts
from mmcnb.samples.reading import check_reading, spare_bytes
from mmcnb.samples.scratch import ScratchRows

# Memory per entry (row, column and value) in bytes, if the buffer is converted to a
# matrix, and if its entries are sorted into a copy.
ENTRY_BYTES = 32
SORTING_BYTES = 48
LEAST_RUN = 2**16  # minimum number of entries in a sorted run
GROUP_ENTRIES = 2**20  # approximate number of entries in a group


class Entries(NamedTuple):
    """Values of a matrix with their rows and columns, in any order.

    Attributes
    ----------
    rows, columns : ndarray of int32 or int64 of shape (n_entries,)
        Zero-based row and column index of each entry.
    values : ndarray of float64 of shape (n_entries,)
        Value of each entry.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def taken(self, places: np.ndarray | slice) -> "Entries":
        """Return the entries at the given positions, in the order of ``places``."""
        return Entries(self.rows[places], self.columns[places], self.values[places])

    def by_row(self) -> "Entries":
        """Return the entries sorted by row, with a stable sort."""
        return self.taken(np.argsort(self.rows, kind="stable"))


class HeldEntries:
    """A buffer for the entries of a sparse matrix, which spills to scratch files.

    Parameters
    ----------
    name : str
        Name used for the rows in messages.
    shape : tuple of int
        Number of rows and columns.
    most : int
        Maximum number of entries that will be appended.
    memory_limit : str, int or None
        Limit on the resident memory of the process. Entries use at most half of the
        memory that the limit leaves after the memory of the libraries is subtracted.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, int],
        most: int,
        memory_limit: str | int | None,
    ) -> None:
        self._name = name
        self._shape = shape
        for_entries = spare_bytes(memory_limit) // 2
        check_reading(name, LEAST_RUN * SORTING_BYTES + 32 * shape[0], memory_limit)
        capacity = most
        if most * ENTRY_BYTES > for_entries:
            capacity = max(LEAST_RUN, min(most, for_entries // SORTING_BYTES))
        index_dtype = np.int32 if max(shape) < 2**31 else np.int64
        self._buffer = Entries(
            rows=np.empty(capacity, index_dtype),
            columns=np.empty(capacity, index_dtype),
            values=np.empty(capacity),
        )
        self._n_buffered = 0
        self._runs: SortedRuns | None = None

    def append(self, entries: Entries) -> None:
        """Add copies of entries to the buffer."""
        start = 0
        while start < len(entries.rows):
            if self._n_buffered == len(self._buffer.rows):
                self._write_run()
            n = min(
                len(entries.rows) - start, len(self._buffer.rows) - self._n_buffered
            )
            place = slice(self._n_buffered, self._n_buffered + n)
            part = slice(start, start + n)
            for buffer, values in zip(self._buffer, entries, strict=True):
                buffer[place] = values[part]
            self._n_buffered += n
            start += n

    def _write_run(self) -> None:
        if self._runs is None:
            self._runs = SortedRuns(self._name, self._shape, self._buffer)
        self._runs.append(self._buffer.taken(slice(0, self._n_buffered)).by_row())
        self._n_buffered = 0

    def samples(self) -> Samples:
        """Return the rows of the matrix; entries cannot be added afterwards."""
        if self._runs is not None:
            self._write_run()
            self._buffer = self._buffer.taken(slice(0, 0))
            return ScratchCSRSamples(self._name, self._runs)
        rows, columns, values = self._buffer.taken(slice(0, self._n_buffered))
        entries = scipy.sparse.coo_array((values, (rows, columns)), self._shape)
        csr = entries.tocsr()
        del self._buffer, rows, columns, values, entries
        return_freed_memory()
        samples = in_memory(csr, self._name)
        samples.held_bytes = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
        return samples


class SortedRuns:
    """Entries in scratch files, in runs that are sorted by row.

    Parameters
    ----------
    name : str
        Name used for the rows in messages.
    shape : tuple of int
        Number of rows and columns.
    like : Entries
        Entries from which the dtypes of all runs are taken.
    """

    def __init__(self, name: str, shape: tuple[int, int], like: Entries) -> None:
        self.shape = shape
        self._counts = np.zeros(shape[0], np.int64)
        self._starts = [0]
        self._files = []
        for part in like:
            what = f"the entries of {name}"
            folder = tempfile.gettempdir()
            self._files.append(ScratchRows(what, folder, 1, part.dtype))

    @property
    def n_entries(self) -> int:
        """Total number of entries in the runs that have been added."""
        return self._starts[-1]

    def append(self, run: Entries) -> None:
        """Write a run, which is a group of entries sorted by row."""
        start = self.n_entries
        for file, values in zip(self._files, run, strict=True):
            file.write(start, values.reshape(-1, 1))
        self._counts += np.bincount(run.rows, minlength=self.shape[0])
        self._starts.append(start + len(run.rows))

    def set_groups(self) -> np.ndarray:
        """Divide the rows into groups of about GROUP_ENTRIES entries or fewer.

        Return the number of rows of each group.
        """
        ends = np.cumsum(self._counts)
        wanted = np.arange(GROUP_ENTRIES, self.n_entries, GROUP_ENTRIES)
        by_entries = np.searchsorted(ends, wanted) + 1
        by_rows = np.arange(0, self.shape[0], GROUP_ROWS)
        edges = np.union1d(by_entries, by_rows)
        self._edges = np.append(edges[edges < self.shape[0]], self.shape[0])
        # The position in each run at which each group begins.
        self._places = []
        for k, start in enumerate(self._starts[:-1]):
            rows = self._files[0].read(start, self._starts[k + 1]).ravel()
            self._places.append(start + np.searchsorted(rows, self._edges))
        return np.diff(self._edges)

    def read_group(self, group: int) -> scipy.sparse.csr_array:
        """Return the rows of a group."""
        parts = []
        for places in self._places:
            start = int(places[group])
            stop = int(places[group + 1])
            if start < stop:
                read = [file.read(start, stop).ravel() for file in self._files]
                parts.append(read)
        first = int(self._edges[group])
        stop = int(self._edges[group + 1])
        shape = stop - first, self.shape[1]
        if not parts:
            return scipy.sparse.csr_array(shape)
        entries = Entries(*map(np.concatenate, zip(*parts, strict=True))).by_row()
        counts = self._counts[first:stop]
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return scipy.sparse.csr_array((entries.values, entries.columns, indptr), shape)


class ScratchCSRSamples(ChunkedSamples):
    """Sparse rows whose entries are in scratch files."""

    is_sparse = True
    checksummed = True
    makes_blocks = True

    def __init__(self, name: str, runs: SortedRuns) -> None:
        self._describe(name, runs.shape, np.dtype(np.float64))
        self._rows = GroupedRows(runs.set_groups().tolist(), runs.read_group)
        row_values = max(runs.n_entries / self.n_samples, 1e-9)
        self.row_bytes = self._sparse_row_bytes(row_values)
        rows = min(GROUP_ENTRIES / row_values, self.n_samples)
        self.chunk_rows = BLOCK_ROWS * max(1, int(rows // BLOCK_ROWS))
        group_bytes = 16 * GROUP_ENTRIES
        self.edge_bytes = edge_bytes([group_bytes], 16 * runs.n_entries)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            f"{self.name} is in a scratch file and cannot be sent to another process: "
            "convert it to a store with `mmcnb convert`, and open the store."
        )

    def _read(self, start: int, stop: int) -> CSRParts:
        return _parts(self._rows.read(start, stop))

    def _gather(self, rows: np.ndarray) -> CSRParts:
        return _parts(self._rows.gather(rows))


def _parts(rows: Any) -> CSRParts:
    return rows.data, rows.indices, rows.indptr.astype(np.int64)
