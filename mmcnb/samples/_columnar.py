"""Rows of Parquet and Arrow files, by row groups and record batches; and of small CSV files, read whole."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from mmcnb.errors import InputError
from mmcnb.samples._arrow import FILE_MARK, ArrowTable, IPCTable, ParquetTable, arrow_errors
from mmcnb.samples._base import ArraySamples, ChunkedSamples, Samples
from mmcnb.samples._columns import TableOptions
from mmcnb.samples._csv import CSVTable
from mmcnb.samples._stored import ChunkedRows, EdgeChunks, edge_bytes
from mmcnb.samples._table_files import table_format
from mmcnb.samples._table_rows import TableRows, put_column
from mmcnb.samples._text import plain_name
from mmcnb.samples.matrix import stack

MOST_CSV_BYTES = 256 * 2**20  # of text that is read whole; compressed files may have a quarter of it
FOOTER_BYTES = 10  # of an Arrow file: the length of its footer, and its mark


class RowGroups(ChunkedRows):
    """Rows in groups of any lengths, each read whole.

    Parameters
    ----------
    lengths : sequence of int
        Rows of each group, none of them 0.
    read_group : callable
        Gives the rows of a group by its number.
    width : int
    dtype : dtype
    """

    def __init__(
        self, lengths: Sequence[int], read_group: Callable[[int], np.ndarray], width: int, dtype: np.dtype
    ) -> None:
        self._offsets = np.concatenate(([0], np.cumsum(lengths)))
        self._read_group, self._width, self._dtype = read_group, width, dtype
        super().__init__("", int(self._offsets[-1]), EdgeChunks())

    def _group(self, row: int) -> int:
        return int(np.searchsorted(self._offsets, row, side="right")) - 1

    def chunk_at(self, row: int) -> tuple[int, int]:
        """First row of the group that holds a row, and the one after its last."""
        group = self._group(row)
        return int(self._offsets[group]), int(self._offsets[group + 1])

    def load(self, start: int, stop: int) -> np.ndarray:
        """Read whole groups."""
        return _joined(
            [self._read_group(group) for group in range(self._group(start), self._group(stop - 1) + 1)]
        )

    def read(self, start: int, stop: int) -> np.ndarray:
        """The rows ``start <= row < stop``; a pass in row order reads each group once."""
        parts = self.pieces(start, min(stop, self.length))
        return _joined([self.load(begin, end) if rows is None else rows for begin, end, rows in parts])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Single rows; each group is read at most once."""
        if not len(rows):
            return np.empty((0, self._width), self._dtype)
        numbers = np.searchsorted(self._offsets, rows, side="right") - 1
        groups = [(int(number), rows[numbers == number]) for number in np.unique(numbers)]
        return _joined([self._read_group(number)[mine - self._offsets[number]] for number, mine in groups])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else stack(parts)


class ColumnarSamples(ChunkedSamples):
    """Rows of Parquet files or of an Arrow file, whose columns are numbers.

    Parameters
    ----------
    path : Path
        A Parquet file, a folder of them, or an Arrow IPC (Feather) file. The index that pandas has recorded
        is left out.
    """

    is_sparse = False
    checksummed = False
    is_reopenable = True

    def __init__(self, path: Path) -> None:
        is_parquet = table_format(path) == "parquet"
        self._source: _ParquetGroups | _Batches = (_ParquetGroups if is_parquet else _Batches)(path)
        self._table: ArrowTable = self._source.table
        rows = TableRows(self._table, TableOptions())
        self._positions = rows.selection.features
        n_samples = sum(self._source.lengths)
        self._describe(str(path), (n_samples, rows.n_features), rows.stored_dtype)
        self.feature_names = rows.feature_names
        self.path = str(path.absolute())
        self._offsets = np.concatenate(([0], np.cumsum(self._source.lengths)))
        self._rows = RowGroups(self._source.lengths, self._read_group, self.n_features, self.stored_dtype)
        self.chunk_rows = max(self._source.lengths)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        chunk = int(self.chunk_rows * self.row_bytes)
        self.edge_bytes = edge_bytes([chunk], int(self.n_samples * self.row_bytes))

    def _read_group(self, number: int) -> np.ndarray:
        """One row group as a C-ordered array."""
        with arrow_errors(self.name), self._source.columns(number, self._positions) as columns:
            block = np.empty((self._source.lengths[number], self.n_features), self.stored_dtype)
            for place, (position, column) in enumerate(zip(self._positions, columns, strict=True)):
                if column.null_count:
                    row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                    cell = self._table.place(position, f"row {self._offsets[number] + row}")
                    raise _to_convert(
                        InputError(
                            f"{cell} holds no value: correct it, leave such rows out with --missing drop, "
                            "or take the mean of the column with --missing mean."
                        ),
                        self.name,
                    )
                put_column(block[:, place], pa.chunked_array(column))
        return block

    def identity(self) -> str:
        """A hash of what the files say of their rows."""
        return self._source.identity()

    def opener(self) -> Any:
        """The function that opens the files again."""
        return open_file


class _ParquetGroups:
    """Row groups of Parquet files."""

    def __init__(self, path: Path) -> None:
        self.table = ParquetTable(path)
        self._groups = [
            (file, metadata, number)
            for file, metadata in zip(self.table.files, self.table.metadata, strict=True)
            for number in range(metadata.num_row_groups)
            if metadata.row_group(number).num_rows
        ]
        self.lengths = [metadata.row_group(number).num_rows for _, metadata, number in self._groups]

    @contextmanager
    def columns(self, group: int, positions: list[int]) -> Iterator[list[pa.ChunkedArray]]:
        """Columns of a row group."""
        path, metadata, number = self._groups[group]
        names = [self.table.names[position] for position in positions]
        with pa.parquet.ParquetFile(path, metadata=metadata) as file:  # a reader is not for several threads
            table = file.read_row_group(number, names, use_threads=False)
            yield [table.column(place) for place in self.table.places(table.schema, positions)]

    def identity(self) -> str:
        """A hash of the metadata of all files."""
        documents = repr([metadata.to_dict() for metadata in self.table.metadata])
        return blake2b(documents.encode(), digest_size=16).hexdigest()


class _Batches:
    """Record batches of an Arrow file, by a map that is closed with them, as mapped pages count as memory."""

    def __init__(self, path: Path) -> None:
        self._path, self.table = path, IPCTable(path)
        with arrow_errors(str(path)), pa.memory_map(str(path)) as file:
            if file.read(6) != FILE_MARK:
                raise InputError(
                    f"{path} is an Arrow stream, which cannot be read by parts: "
                    f"make a store with `mmcnb convert {path} OUT.zarr`."
                )
            options = pa.ipc.IpcReadOptions(included_fields=[0])
            reader = pa.ipc.open_file(file, options=options)
            lengths = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
        self._numbers = [number for number, length in enumerate(lengths) if length]
        self.lengths = [length for length in lengths if length]
        if not self.lengths:
            raise InputError(f"{path} has no rows: give it at least one.")

    @contextmanager
    def columns(self, group: int, positions: list[int]) -> Iterator[list[pa.Array]]:
        """Columns of a record batch; they live as long as the map."""
        options = pa.ipc.IpcReadOptions(included_fields=sorted(positions), use_threads=False)
        with pa.memory_map(str(self._path)) as file:
            batch = pa.ipc.open_file(file, options=options).get_batch(self._numbers[group])
            order = sorted(positions)
            yield [batch.column(order.index(position)) for position in positions]

    def identity(self) -> str:
        """A hash of the file's footer, which says where each batch lies."""
        with self._path.open("rb") as file:
            size = file.seek(-FOOTER_BYTES, os.SEEK_END) + FOOTER_BYTES
            length = int.from_bytes(file.read(4), "little")
            file.seek(-FOOTER_BYTES - length, os.SEEK_END)
            return blake2b(size.to_bytes(8, "little") + file.read(length), digest_size=16).hexdigest()


def open_file(path: str | os.PathLike[str], element: str | None = None) -> Samples:
    """Open the rows of a table; row groups are read as they are needed, and CSV whole.

    Raises
    ------
    InputError
        A column holds no numbers, a cell is missing, or the file cannot be read or is too large.
    """
    path = Path(path)
    if element is not None:
        raise InputError(f"{path} is a table and has no element {element!r}: leave element out.")
    try:
        return _read_csv(path) if table_format(path) == "csv" else ColumnarSamples(path)
    except InputError as error:
        raise _to_convert(error, str(path)) from error


def _to_convert(error: InputError, path: str) -> InputError:
    """The same sentence, which says whose options it names."""
    sentence = str(error).removesuffix(".")
    if "--" not in sentence or "mmcnb convert" in sentence:
        return error
    return InputError(f"{sentence}; `mmcnb convert {path} OUT.zarr` takes these options.")


def _read_csv(path: Path) -> ArraySamples:
    n_bytes = path.stat().st_size * (1 if plain_name(path) == path.name.lower() else 4)
    if n_bytes > MOST_CSV_BYTES:
        raise InputError(
            f"{path} is too large to be read whole: make a store with `mmcnb convert {path} OUT.zarr`."
        )
    rows = TableRows(
        CSVTable(path, TableOptions(), show_progress=False), TableOptions(), np.dtype(np.float32)
    )
    return ArraySamples(stack([part.block for part in rows.blocks()]), str(path), rows.feature_names)
