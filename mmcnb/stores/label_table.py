"""Write and read CSV and Parquet tables of labels."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb.errors import InputError, worded
from mmcnb.samples.files import check_file
from mmcnb.samples.paths import PathLike
from mmcnb.samples.row_index import FILE, INDEX, ROW, RowIndex
from mmcnb.stores.atomic import AtomicOutput
from mmcnb.stores.labels import read_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

TABLES = (".csv", ".parquet")
VALUE_COLUMNS = ("cluster", "class")  # columns that `read_values` reads by default


def is_table(path: PathLike) -> bool:
    """Return whether labels at a path are stored as a table instead of a Zarr array.

    Raises
    ------
    InputError
        If the path has an extension other than .csv, .parquet and .zarr.

    Examples
    --------
    >>> from mmcnb.stores.label_table import is_table
    >>> is_table("labels.csv"), is_table("labels.zarr"), is_table("labels")
    (True, False, False)
    """
    ending = ending_of(path)
    if ending not in (*TABLES, ".zarr", ""):
        raise InputError(
            f"{path}: labels are not written as {ending!r}; "
            "give a path that ends with .csv, .parquet or .zarr."
        )
    return ending in TABLES


def ending_of(path: PathLike) -> str:
    """Return the extension of a path in lower case."""
    return Path(path).suffix.lower()


class TableWriter(AtomicOutput):
    """Writer of a CSV or Parquet table with columns that identify its rows.

    The file appears at its path when the ``with`` block ends. After an error, all
    written files are removed.

    Parameters
    ----------
    path : str or path-like
        Path of the table, which ends with ``.csv`` or ``.parquet``.
    index : RowIndex
        Names or numbers of the rows that will be written, which become the first
        columns of the table. If rows come from a folder of files, the first column is
        "file". Row numbers are in the column "row". Row names are in a column with
        their own name, or in "index" if they have no name or another column has the
        same name.

    Raises
    ------
    InputError
        If the path exists, the disk is full, or fewer or more rows than ``index`` has
        were written when the ``with`` block ends.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> from mmcnb.samples.row_index import RowIndex
    >>> from mmcnb.stores.label_table import TableWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/labels.csv", RowIndex(2)) as writer:
    ...         columns = {"cluster": np.array([0, 1]), "margin": np.array([0.5, 2.0])}
    ...         writer.append(columns)
    ...     print(pathlib.Path(folder, "labels.csv").read_text().replace('"', ""))
    row,cluster,margin
    0,0,0.5
    1,1,2
    <BLANKLINE>
    """

    def __init__(self, path: PathLike, index: RowIndex) -> None:
        super().__init__(path)
        self._index = index
        self._written = 0
        # The file is opened by the first call of `append`, when its columns are known.
        self._file: CSVWriter | ParquetWriter | None = None

    def append(self, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows to the table.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n_rows,)
            Values of each column, by name. All calls must have the same columns.
        """
        import pyarrow as pa
        from pyarrow import csv, parquet

        n_rows = len(next(iter(columns.values())))
        table = pa.table({**self._rows(n_rows, columns), **columns})
        if self._file is None:
            new_file = parquet.ParquetWriter
            if ending_of(self.path) == ".csv":
                new_file = csv.CSVWriter
            self._file = new_file(str(self.path), table.schema)
        self._file.write_table(table)
        self._written += n_rows

    def _rows(self, n_rows: int, others: Mapping[str, object]) -> dict[str, "pa.Array"]:
        """Return the columns that identify the next ``n_rows`` rows."""
        columns = self._index.columns(self._written, self._written + n_rows)
        rows = {}
        for name, values in columns.items():
            rows[INDEX if name in others else name] = as_arrow(values)
        return rows

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Raise InputError unless one row was written for each row of the row index."""
        if self._written != self._index.n_samples:
            raise InputError(
                f"{self.name}: {self._written} rows were written, but "
                f"{self._index.n_samples} are needed."
            )


def as_arrow(values: Any) -> "pa.Array":
    """Convert row names or numbers to an Arrow array of numbers, times or strings."""
    import pyarrow as pa

    array = np.asarray(values)
    if array.dtype.kind in "iufbM":
        return pa.array(array)
    if array.dtype.kind == "m":
        import pandas as pd

        array = pd.to_timedelta(array)
    return pa.array(list(map(str, array)), pa.string())


class LabelTable:
    """A CSV or Parquet table of labels or classes.

    Parquet files, and CSV files in UTF-8 with commas and a header in line 1, are read
    with pyarrow. Other CSV files are read with the same table reader that fits use.

    Parameters
    ----------
    path : path
        Path of the table.
    column : str or None, default=None
        Name of the column with the values, or None if it is unknown.

    Attributes
    ----------
    columns : list of str
        Names of the columns.

    Raises
    ------
    InputError
        If the table cannot be read.
    """

    def __init__(self, path: PathLike, column: str | None = None) -> None:
        from pyarrow import parquet

        self.path = path
        self._is_parquet = ending_of(path) == ".parquet"
        self._is_plain = True
        check_file(path)
        if self._is_parquet:
            with self._worded():
                self.columns = parquet.read_schema(str(path)).names
            return
        names = _names_of_plain_csv(path)
        if names is None or (column is not None and column not in names):
            from mmcnb.tables.files import FileTable
            from mmcnb.tables.options import TableOptions

            self._is_plain = False
            names = FileTable(Path(path), TableOptions()).names
        self.columns = names

    def _worded(self) -> AbstractContextManager[None]:
        import pyarrow as pa

        return worded(
            f"{self.path} cannot be read as a table",
            "write it again",
            pa.ArrowException,
            OSError,
            UnicodeDecodeError,
        )

    def value_column(self, column: str | None, others: Sequence[str] = ()) -> str:
        """Return the name of the column that contains the values.

        Parameters
        ----------
        column : str or None
            Name of the column. None means "cluster" or, if it does not exist, "class".
            If neither exists, None means the only column that is not in ``others`` and
            is not called "file", "row" or "index".
        others : sequence of str, default=()
            Names of columns that do not contain the values.

        Raises
        ------
        InputError
            If the table has no such column.
        """
        if column is None:
            named = [name for name in VALUE_COLUMNS if name in self.columns]
            rows = {FILE, ROW, INDEX, *others}
            left = named[:1] or [name for name in self.columns if name not in rows]
            if len(left) == 1:
                return left[0]
        elif column in self.columns:
            return column
        which = "" if column is None else f" {column!r}"
        raise InputError(
            f"{self.path} has no column{which} of labels; "
            f"name one of {', '.join(self.columns)}."
        )

    def read(
        self, columns: list[str], types: "Mapping[str, pa.DataType] | None" = None
    ) -> "pa.Table":
        """Read columns of the table.

        Parameters
        ----------
        columns : list of str
            Names of the columns.
        types : mapping of str to pyarrow.DataType, or None, default=None
            Types of columns of a CSV file, by name. The types of other columns are
            inferred. Integer types are ignored.
        """
        import pyarrow as pa
        from pyarrow import csv, parquet

        texts = {
            name: data_type
            for name, data_type in (types or {}).items()
            if not pa.types.is_integer(data_type)
        }
        if not self._is_plain:
            return _read_as_fits_do(Path(self.path), columns)
        with self._worded():
            if self._is_parquet:
                return parquet.read_table(str(self.path), columns=columns)
            options = csv.ConvertOptions(include_columns=columns, column_types=texts)
            return csv.read_csv(str(self.path), convert_options=options)

    def plain(self, values: "pa.ChunkedArray", name: str) -> np.ndarray:
        """Return ``values`` as a NumPy array.

        ``name`` is the name of their column in messages.

        Raises
        ------
        InputError
            If a value is missing or is not UTF-8 text.
        """
        import pyarrow as pa

        if values.type in (pa.binary(), pa.large_binary()):  # CSV that is not UTF-8
            raise InputError(
                f"{self.path}: {name} is not UTF-8 text; write the table again."
            )
        if values.null_count:
            row = int(np.argmax(np.asarray(values.is_null())))
            raise InputError(
                f"{self.path}: row {row} has no {name}; give one value a row."
            )
        return np.asarray(values.to_numpy())


def _names_of_plain_csv(path: PathLike) -> list[str] | None:
    """Return the column names of a plain CSV file.

    A plain CSV file is UTF-8 text with commas, and its first line is the header.

    If the file does not have this form, the result is None.
    """
    import pyarrow as pa
    from pyarrow import csv

    try:
        with csv.open_csv(str(path)) as reader:
            names = reader.schema.names
            types = reader.schema.types
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    has_other_delimiter = len(names) == 1 and any(mark in names[0] for mark in ";\t|")
    if has_other_delimiter or any(map(pa.types.is_binary, types)):
        return None
    return names


def _read_as_fits_do(path: Path, columns: list[str]) -> "pa.Table":
    """Read columns of a CSV file with the same table reader as fits.

    Each column is read as integers if possible, otherwise as text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from mmcnb.tables.arrow import TEXT
    from mmcnb.tables.files import FileTable
    from mmcnb.tables.options import TableOptions
    from mmcnb.tables.reader import TypeChangedError

    table = FileTable(path, TableOptions())
    positions = [table.names.index(name) for name in columns]
    wanted = {table.keys[position]: TEXT for position in positions}
    try:
        parts = [part.columns for part in table.parts(wanted)]
    # A later line is not valid UTF-8. The table has recorded this, so read it again.
    except TypeChangedError:
        parts = [part.columns for part in table.parts(wanted)]
    read = {}
    for name, key in zip(columns, wanted, strict=True):
        texts = pa.chunked_array([part[key] for part in parts if part], TEXT)
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, TEXT), texts)
        is_whole = pc.all(pc.match_substring_regex(texts, r"^-?\d{1,18}$")).as_py()
        read[name] = texts.cast(pa.int64()) if is_whole else texts
    return pa.table(read)


def read_values(path: PathLike, column: str | None = None) -> np.ndarray:
    """Read one value per row from a CSV or Parquet table or from a Zarr array.

    Parameters
    ----------
    path : path
        Path of the table or array.
    column : str or None, default=None
        Name of the column of a table, as in `LabelTable.value_column`.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers or strings, in the order of the rows.

    Raises
    ------
    InputError
        If the table or array cannot be read, the table has no such column, a value is
        missing, or the row numbers in a table do not increase.
    """
    if ending_of(path) not in TABLES:
        return read_column(path, "labels")
    table = LabelTable(path, column)
    name = table.value_column(column)
    numbers = []
    if ROW in table.columns and name != ROW:
        numbers = [key for key in (ROW, FILE) if key in table.columns]
    columns = table.read([name, *numbers])
    values = table.plain(columns[name], name)
    if numbers and not _rise(*(columns[key].to_numpy() for key in numbers)):
        raise InputError(
            f'{path}: the column "{ROW}" does not increase; sort the table by it.'
        )
    return values


def _rise(numbers: np.ndarray, files: np.ndarray | None = None) -> bool:
    """Return whether row numbers increase strictly within each file."""
    if numbers.dtype.kind not in "iu":
        return False
    is_next = numbers[1:] > numbers[:-1]
    if files is not None:
        is_next |= files[1:] != files[:-1]
    return bool(is_next.all())
