"""Write a copy of a table, with new columns for the clusters, as CSV or Parquet."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples.paths import PathLike
from mmcnb.samples.row_index import RowIndex
from mmcnb.stores.atomic import AtomicOutput
from mmcnb.tables.records import JoinedText
from mmcnb.tables.source import TablePart

if TYPE_CHECKING:
    import pyarrow as pa

    from mmcnb.tables.csv_file import CSVFile

TEXTS = (".csv", ".tsv")
PARQUET = (".parquet", ".parq", ".pq")
GROUP_BYTES = 2**26  # approximate size of a row group of a Parquet file


def table_kind(path: PathLike) -> str:
    """Return the kind of output table for a path: "text", "parquet" or "folder".

    Raises
    ------
    InputError
        If the path has an unsupported extension.

    Examples
    --------
    >>> from mmcnb.stores.joined_table import table_kind
    >>> table_kind("out.csv"), table_kind("out.parquet"), table_kind("out/")
    ('text', 'parquet', 'folder')
    """
    name = os.fspath(path)
    if name.endswith(("/", os.sep)):
        return "folder"
    ending = Path(name).suffix.lower()
    if ending in TEXTS:
        return "text"
    if ending in PARQUET:
        return "parquet"
    raise InputError(
        f"{name}: a table is not written as {ending!r}; give a path that ends with "
        ".csv or .parquet, or with / for a folder with one Parquet file per cluster."
    )


def free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return unused names for new columns, with a number appended if necessary.

    Examples
    --------
    >>> from mmcnb.stores.joined_table import free_names
    >>> free_names(["cluster", "probability"], ["age", "cluster"])
    ['cluster_1', 'probability']
    """
    free: list[str] = []
    for name in names:
        number = 0
        candidate = name
        while candidate in taken or candidate in free:
            number += 1
            candidate = f"{name}_{number}"
        free.append(candidate)
    return free


class NewColumns:
    """Values of the new columns for the labelled rows, consumed in row order.

    Parameters
    ----------
    types : mapping of str to pyarrow.DataType
        Type of each new column, by name.
    groups : iterator of dict
        Values of the new columns for consecutive groups of rows. Each dict contains an
        array per column, by name.
    """

    def __init__(
        self,
        types: "Mapping[str, pa.DataType]",
        groups: Iterator[Mapping[str, np.ndarray]],
    ) -> None:
        self.types = types
        self._groups = groups
        self._ready: list[Mapping[str, np.ndarray]] = []
        self._n_ready = 0

    def take(self, n_rows: int) -> dict[str, np.ndarray]:
        """Return the new columns for the next ``n_rows`` labelled rows.

        Raises
        ------
        InputError
            If fewer than ``n_rows`` labelled rows are left.
        """
        while self._n_ready < n_rows:
            group = next(self._groups, None)
            if group is None:
                raise InputError("the table has more rows than were labelled.")
            self._ready.append(group)
            self._n_ready += len(next(iter(group.values())))
        columns = {}
        for name in self.types:
            parts = [group[name] for group in self._ready]
            columns[name] = np.concatenate(parts) if parts else np.zeros(0)
        rest = {name: values[n_rows:] for name, values in columns.items()}
        self._n_ready -= n_rows
        self._ready = [rest] if self._n_ready else []
        return {name: values[:n_rows] for name, values in columns.items()}

    def beside(self, positions: np.ndarray, n_rows: int) -> "list[pa.Array]":
        """Return the new columns for the next ``n_rows`` rows of the table.

        The next labelled rows are at ``positions``. Other rows have missing values.
        """
        import pyarrow as pa

        is_empty = np.ones(n_rows, bool)
        is_empty[positions] = False
        arrays = []
        for name, values in self.take(len(positions)).items():
            whole = np.zeros(n_rows, values.dtype)
            whole[positions] = values
            arrays.append(pa.array(whole, self.types[name], mask=is_empty))
        return arrays


class RowsThatTookPart:
    """Finder of the labelled rows of a table, which is read from its first row on.

    Rows of the table that were dropped because of missing values are not labelled.

    Parameters
    ----------
    index : RowIndex
        Row numbers of the labelled rows in the table.
    """

    def __init__(self, index: RowIndex) -> None:
        self._index = index
        lengths = index.lengths or (index.n_samples,)
        self._stops = np.cumsum(lengths)
        self._n_found = 0

    def positions(self, file: int, first: int, n_rows: int) -> np.ndarray:
        """Return the positions of the labelled rows among the next rows.

        Parameters
        ----------
        file : int
            Zero-based index of the file that contains the next rows.
        first : int
            Row number, within the file, of the first of the next rows.
        n_rows : int
            Number of the next rows.

        Returns
        -------
        ndarray of int
            Positions relative to ``first``.
        """
        start = self._n_found
        stop = min(start + n_rows, int(self._stops[file]))
        positions = self._index.numbers_of(start, stop) - first
        positions = positions[positions < n_rows]
        self._n_found += len(positions)
        return positions

    def check(self, name: str) -> None:
        """Raise InputError if a labelled row was not found in the table ``name``."""
        if self._n_found != self._index.n_samples:
            raise InputError(
                f"{name} has changed since it was opened; run this again when no "
                "program writes to it."
            )


class TableFile(ABC):
    """Base class of writers of record batches to a file or a folder."""

    @abstractmethod
    def write(self, rows: "pa.RecordBatch") -> None:
        """Write a batch of rows."""

    @abstractmethod
    def close(self) -> None:
        """Write the remaining rows, and close all files."""


class TextFile(TableFile):
    """Writer of CSV text, which converts types that CSV cannot represent to strings."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow import csv

        self._schema = schema_of_text(schema, path.name)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        self._writer = csv.CSVWriter(str(path), self._schema, write_options=options)

    def write(self, rows: "pa.RecordBatch") -> None:
        """Write a batch of rows."""
        import pyarrow as pa

        columns = []
        for values, field in zip(rows.columns, self._schema, strict=True):
            columns.append(values.cast(field.type))
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def schema_of_text(schema: "pa.Schema", name: str) -> "pa.Schema":
    """Return the schema with which a table is written as CSV.

    ``name`` is the name of the table for messages.

    Raises
    ------
    InputError
        If a column contains lists or other nested values.
    """
    import pyarrow as pa
    from pyarrow import types

    fields = []
    for field in schema:
        data_type = field.type
        if types.is_dictionary(data_type):
            data_type = data_type.value_type
        if isinstance(data_type, pa.BaseExtensionType):
            data_type = data_type.storage_type
        if types.is_nested(data_type):
            raise InputError(
                f"{name}: the column {field.name!r} has type {field.type}, which CSV "
                "cannot store; give a path that ends with .parquet."
            )
        is_plain = (
            types.is_primitive(data_type)
            or types.is_string(data_type)
            or types.is_large_string(data_type)
        )
        fields.append(pa.field(field.name, data_type if is_plain else pa.string()))
    return pa.schema(fields)


class ParquetFile(TableFile):
    """Writer of a Parquet file in row groups of about `GROUP_BYTES` bytes."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(str(path), schema)
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0

    def write(self, rows: "pa.RecordBatch") -> None:
        """Buffer rows, and write a row group if at least `GROUP_BYTES` are buffered."""
        self._waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        if self.waiting_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        import pyarrow as pa

        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting = []
        self.waiting_bytes = 0

    def close(self) -> None:
        """Write the buffered rows, and close the file."""
        self.flush()
        self._writer.close()


class ParquetFolder(TableFile):
    """Writer of a folder with a Parquet file per cluster, in Hive partitioning.

    The file of cluster 0 is called ``cluster=0/part-0.parquet``, for example. Rows
    without a cluster are left out, because some libraries cannot read the folder that
    Hive partitioning uses for missing values.

    Parameters
    ----------
    path : Path
        Path of the folder to create.
    schema : pyarrow.Schema
        Schema of the rows, including ``column``.
    column : str
        Name of the column that contains the clusters. Its values are stored only in the
        names of the subfolders.
    """

    def __init__(self, path: Path, schema: "pa.Schema", column: str) -> None:
        self._path = path
        path.mkdir()
        self._column = column
        self._schema = schema.remove(schema.get_field_index(column))
        self._files: dict[int | str, ParquetFile] = {}

    def write(self, rows: "pa.RecordBatch") -> None:
        """Write each row to the file of its cluster."""
        import pyarrow as pa
        import pyarrow.compute as pc

        position = rows.schema.get_field_index(self._column)
        clusters = rows.column(position)
        others = rows.remove_column(position)
        for cluster in pc.unique(clusters.drop_null()).to_pylist():
            is_here = pc.equal(clusters, pa.scalar(cluster, clusters.type))
            self._file_of(cluster).write(others.filter(is_here))
        files = self._files.values()
        if sum(file.waiting_bytes for file in files) >= GROUP_BYTES:
            max(files, key=lambda file: file.waiting_bytes).flush()

    def _file_of(self, cluster: int | str) -> ParquetFile:
        if cluster not in self._files:
            value = quote(str(cluster), safe="")
            folder = self._path / f"{quote(self._column)}={value}"
            folder.mkdir()
            file = ParquetFile(folder / "part-0.parquet", self._schema)
            self._files[cluster] = file
        return self._files[cluster]

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()


def _metadata_of_texts(
    metadata: Mapping[bytes, bytes] | None,
) -> Mapping[bytes, bytes] | None:
    """Return the metadata of a table, in which pandas' column names are strings.

    If the metadata declared that column names are numbers, pandas would try to convert
    the names of the new columns to numbers.
    """
    if metadata is None or b"pandas" not in metadata:
        return metadata
    with suppress(ValueError, KeyError, TypeError):
        of_pandas = json.loads(metadata[b"pandas"])
        if len(of_pandas["column_indexes"]) == 1:
            names = of_pandas["column_indexes"][0]
            names |= {"pandas_type": "unicode", "numpy_type": "object"}
        return {**metadata, b"pandas": json.dumps(of_pandas).encode()}
    return metadata


class JoinedTableWriter(AtomicOutput):
    """Writer of a copy of a table with new columns.

    The copy appears at its path when the ``with`` block ends.

    Parameters
    ----------
    path : path
        Path of the copy. It determines the kind of the copy, as in `table_kind`.

    Attributes
    ----------
    kind : {"text", "parquet", "folder"}
        Kind of the copy.
    names : list of str
        Names of the new columns. They are set when rows are written.
    n_rows : int
        Number of rows that have been written.
    """

    names: list[str]
    n_rows = 0

    def __init__(self, path: PathLike) -> None:
        self.kind = table_kind(path)
        super().__init__(path)
        self._file: TableFile | None = None

    def write_parts(
        self,
        name: str,
        schema: "pa.Schema",
        parts: Iterator[TablePart],
        index: RowIndex,
        new: NewColumns,
    ) -> None:
        """Write all rows of a table with the new columns.

        Parameters
        ----------
        name : str
            Name of the table for messages.
        schema : pyarrow.Schema
            Schema of the table.
        parts : iterator of TablePart
            Consecutive parts of the table.
        index : RowIndex
            Row numbers of the labelled rows in the table.
        new : NewColumns
            Values of the new columns for the labelled rows.
        """
        import pyarrow as pa

        self.names = free_names([*new.types], schema.names)
        joined = schema
        for column, data_type in zip(self.names, new.types.values(), strict=True):
            joined = joined.append(pa.field(column, data_type))
        joined = joined.with_metadata(_metadata_of_texts(schema.metadata))
        self._file = self._open(joined, self.names[0])
        found = RowsThatTookPart(index)
        for part in parts:
            n_rows = part.rows.num_rows
            positions = found.positions(part.file, part.first, n_rows)
            columns = [*part.rows.columns, *new.beside(positions, n_rows)]
            self._file.write(pa.record_batch(columns, schema=joined))
            self.n_rows += n_rows
        found.check(name)

    def _open(self, schema: "pa.Schema", column: str) -> TableFile:
        if self.kind == "text":
            return TextFile(self.path, schema)
        if self.kind == "parquet":
            return ParquetFile(self.path, schema)
        return ParquetFolder(self.path, schema, column)

    def write_text(
        self,
        files: Sequence["CSVFile"],
        index: RowIndex,
        new: NewColumns,
        decimal: str,
    ) -> None:
        """Write the text of CSV files with additional cells in each row.

        All other bytes are copied from the files. The header is copied from the first
        file only.

        Parameters
        ----------
        files : sequence of CSVFile
            Files of the table.
        index : RowIndex
            Row numbers of the labelled rows in the files.
        new : NewColumns
            Values of the new columns for the labelled rows.
        decimal : {".", ","}
            Decimal separator of the new values.
        """
        self.names = free_names([*new.types], files[0].names)
        found = RowsThatTookPart(index)
        is_start = True
        with self.path.open("wb") as output:
            for number, file in enumerate(files):
                text = JoinedText(file, self.names, decimal, is_first=number == 0)
                first = 0
                for piece in file.pieces():
                    n_rows = piece.n_rows
                    positions = found.positions(number, first, n_rows)
                    joined = text.joined(piece, new.beside(positions, n_rows))
                    output.write(file.as_written(joined, is_start))
                    is_start = False
                    first += n_rows
                self.n_rows += first
                if number < len(files) - 1:
                    output.write(file.as_written(text.missing_end, False))
        found.check(self.name)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
