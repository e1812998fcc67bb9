"""Clusters of rows as a table, CSV or Parquet: written in blocks, and read back."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb.errors import InputError, worded
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.base import Samples
from mmcnb.samples.elements import observation_names, plain_text
from mmcnb.samples.files import check_file
from mmcnb.samples.paths import PathLike
from mmcnb.samples.zarr import stored_array
from mmcnb.stores.atomic import AtomicOutput
from mmcnb.stores.labels import array_beside, open_index, read_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

TABLES = (".csv", ".parquet")
ROW = "row"  # the column of row numbers
INDEX = "index"  # the column of row names
VALUE_COLUMNS = ("cluster", "class")  # that `read_values` reads if none is named
# Returns the names from one row to another.
NamesReader = Callable[[int, int], np.ndarray | list[str]]


def is_table(path: PathLike) -> bool:
    """Return whether labels at a path are a table; otherwise they are a Zarr array.

    Raises
    ------
    InputError
        The ending is that of another format.

    Examples
    --------
    >>> from mmcnb.stores.label_table import is_table
    >>> is_table("labels.csv"), is_table("labels.zarr"), is_table("labels")
    (True, False, False)
    """
    ending = _ending(path)
    if ending not in (*TABLES, ".zarr", ""):
        raise InputError(
            f"{path}: labels are not written as {ending!r}; "
            "give a path that ends with .csv, .parquet or .zarr."
        )
    return ending in TABLES


def _ending(path: PathLike) -> str:
    return Path(path).suffix.lower()


def names_of(samples: Samples) -> NamesReader | None:
    """Return a reader of the names of rows of a store.

    They are its array ``index``, or the names of observations of AnnData.

    Parameters
    ----------
    samples : Samples

    Returns
    -------
    callable or None
        Gives the names from one row to another.
    """
    array = array_beside(samples, "index")
    if array is not None:
        return stored_array(array).read
    names = observation_names(samples)
    if names is None or names.length != samples.n_samples:
        return None
    return lambda start, stop: plain_text(names.read(start, stop))


class TableWriter(AtomicOutput):
    """Write a table of rows, block by block, as CSV or Parquet.

    The file appears when the ``with`` block ends; after an error nothing is left.

    Parameters
    ----------
    path : str or path-like
        Ends with ``.csv`` or ``.parquet``.
    n_samples : int
        Rows to come.
    index : sequence of length n_samples, callable or None, default=None
        Names of the rows, in the first column; a callable returns the names from one
        row to another. None means row numbers, in a column "row". The column of names
        has the ``name`` of a pandas index, or "index" if the index has no name or
        another column has it.

    Raises
    ------
    InputError
        The path exists, rows are left out, or the disk is full.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> from mmcnb.stores.label_table import TableWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/labels.csv", n_samples=2) as writer:
    ...         columns = {"cluster": np.array([0, 1]), "margin": np.array([0.5, 2.0])}
    ...         writer.append(columns)
    ...     print(pathlib.Path(folder, "labels.csv").read_text().replace('"', ""))
    row,cluster,margin
    0,0,0.5
    1,1,2
    <BLANKLINE>
    """

    def __init__(
        self,
        path: PathLike,
        n_samples: int,
        index: Sequence[object] | NamesReader | None = None,
    ) -> None:
        super().__init__(path)
        self._expected = n_samples
        self._index = index
        self._index_name = str(getattr(index, "name", None) or INDEX)
        self._written = 0
        # Made with the first rows, which say its columns.
        self._file: CSVWriter | ParquetWriter | None = None

    def append(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add the next rows.

        Parameters
        ----------
        columns : mapping of str to ndarray of shape (n_rows,)
            The same columns each time.
        """
        import pyarrow as pa
        from pyarrow import csv, parquet

        n_rows = len(next(iter(columns.values())))
        if self._index_name in (ROW, *columns):
            self._index_name = INDEX
        table = pa.table({**self._names(n_rows), **columns})
        if self._file is None:
            new_file = parquet.ParquetWriter
            if _ending(self.path) == ".csv":
                new_file = csv.CSVWriter
            self._file = new_file(str(self.path), table.schema)
        self._file.write_table(table)
        self._written += n_rows

    def _names(self, n_rows: int) -> dict[str, np.ndarray | list[str]]:
        """Return the first column of the next rows, by its name."""
        start = self._written
        stop = start + n_rows
        index = self._index
        if index is None:
            return {ROW: np.arange(start, stop)}
        if callable(index):
            names = np.asarray(index(start, stop))
        else:
            names = np.asarray(index[start:stop])
        if names.dtype.kind in "iufbM":
            return {self._index_name: names}
        return {self._index_name: list(map(str, names))}

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Check the number of rows."""
        if self._written != self._expected:
            raise InputError(
                f"{self.name}: {self._written} rows came, "
                f"not {self._expected} as was said."
            )


def read_values(path: PathLike, column: str | None = None) -> np.ndarray:
    """Read one value a row: a column of a table, CSV or Parquet, or a Zarr array.

    Parameters
    ----------
    path : path
        The table or array.
    column : str or None, default=None
        Name of the column. None is "cluster" or "class", or the only column apart from
        row numbers and row names.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers or text, in the order of the rows.

    Raises
    ------
    InputError
        The table cannot be read, has no such column, a value is missing, or row numbers
        are out of order.
    """
    import pyarrow as pa

    if _ending(path) not in TABLES:
        return read_column(path, "labels")
    check_file(path)
    with worded(
        f"{path} cannot be read as a table",
        "write it again",
        pa.ArrowException,
        OSError,
        UnicodeDecodeError,
    ):
        columns = _column_names(path)
        name = _value_column(columns) if column is None else column
        if name not in columns:
            which = "" if name is None else f" {name!r}"
            raise InputError(
                f"{path} has no column{which} to take; "
                f"name one of {', '.join(columns)}."
            )
        has_numbers = ROW in columns and name != ROW
        table = _read_columns(path, [name, ROW] if has_numbers else [name])
    values = table[name]
    if values.type in (pa.binary(), pa.large_binary()):  # CSV that is not UTF-8
        raise InputError(f"{path}: {name} is no text in UTF-8; write the table again.")
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError(f"{path}: row {row} has no {name}; give one value a row.")
    if has_numbers and not _counts_from_0(table[ROW].to_numpy()):
        raise InputError(
            f'{path}: the column "{ROW}" does not count from 0; sort the table by it.'
        )
    return np.asarray(values.to_numpy())


def _counts_from_0(numbers: np.ndarray) -> bool:
    is_integer = numbers.dtype.kind in "iu"
    return is_integer and np.array_equal(numbers, np.arange(len(numbers)))


def read_names(path: PathLike) -> np.ndarray | None:
    """Read the names of the rows of a table, its column "index"; None without one."""
    if _ending(path) not in TABLES or INDEX not in _column_names(path):
        return None
    return np.asarray(_read_columns(path, [INDEX])[INDEX].to_numpy())


def labels_of_rows(labels: Any, column: str | None, samples: Samples) -> np.ndarray:
    """Return one label or class a row of samples, from an array or a path.

    Raises
    ------
    InputError
        They are of another number of rows, or of rows with other names, or have a
        number that is not an integer.
    """
    is_path = isinstance(labels, str | os.PathLike)
    if is_path:
        name = labels
        values = read_values(labels, column)
    else:
        name = "labels"
        values = plain_values(labels, "labels", text=True)
    if values.shape != (samples.n_samples,):
        shape = " x ".join(f"{size:,}" for size in values.shape)
        raise InputError(
            f"{name} has {shape} values and {samples.name} has "
            f"{samples.n_samples:,} rows; "
            "give one label a row, in the order of the rows."
        )
    if values.dtype.kind == "f" and (values % 1).any():
        example = values[values % 1 != 0][0]
        raise InputError(
            f"{name} has numbers such as {example:g}; give whole numbers or names."
        )
    table_names = read_names(labels) if is_path else None
    store_names = open_index(samples)
    if table_names is None or store_names is None:
        return values
    # Compared as texts of any length.
    differs = table_names.astype("T") != store_names.astype("T")
    if differs.any():
        row = int(differs.argmax())
        raise InputError(
            f"{name} has other rows than {samples.name}: "
            f"row {row} is {table_names[row]}, not {store_names[row]}; "
            "give the labels of these rows, in their order."
        )
    return values


def _column_names(path: PathLike) -> list[str]:
    from pyarrow import csv, parquet

    if _ending(path) == ".parquet":
        return parquet.read_schema(str(path)).names
    with csv.open_csv(str(path)) as reader:
        return reader.schema.names


def _read_columns(path: PathLike, columns: list[str]) -> "pa.Table":
    from pyarrow import csv, parquet

    if _ending(path) == ".parquet":
        return parquet.read_table(str(path), columns=columns)
    options = csv.ConvertOptions(include_columns=columns)
    return csv.read_csv(str(path), convert_options=options)


def _value_column(columns: list[str]) -> str | None:
    """Return the column that has the clusters or classes; None if it is ambiguous."""
    for name in VALUE_COLUMNS:
        if name in columns:
            return name
    value_columns = [name for name in columns if name not in (ROW, INDEX)]
    if len(value_columns) != 1:
        return None
    return value_columns[0]
