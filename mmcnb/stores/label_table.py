"""Clusters of rows as a table, CSV or Parquet: written block by block, and read back."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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

TABLES = (".csv", ".parquet")
# the columns of the numbers and the names of rows
ROW = "row"
INDEX = "index"
RowNames = Sequence[Any] | Callable[[int, int], Any]
NAMES = ("cluster", "class")  # of the column that `read_values` takes if none is named


def is_table(path: PathLike) -> bool:
    """Whether labels at a path are a table; otherwise they are a Zarr array.

    Raises
    ------
    InputError
        The ending is of neither.

    Examples
    --------
    >>> from mmcnb.stores.label_table import is_table
    >>> is_table("labels.csv"), is_table("labels.zarr"), is_table("labels")
    (True, False, False)
    """
    ending = Path(path).suffix.lower()
    if ending not in (*TABLES, ".zarr", ""):
        fault = f"{path}: labels are not written as {ending!r}"
        raise InputError(
            f"{fault}; give a path that ends with .csv, .parquet or .zarr."
        )
    return ending in TABLES


def names_of(samples: Samples) -> Callable[[int, int], Any] | None:
    """A reader of the names of rows of a store: its array ``index``, or AnnData's names of observations.

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
    """Write a table of rows, block by block; the ending of its path says in which form.

    The file appears when the ``with`` block ends; after an error nothing is left.

    Parameters
    ----------
    path : str or path-like
        Ends with ``.csv`` or ``.parquet``.
    n_samples : int
        Rows to come.
    index : sequence of length n_samples, callable or None, default=None
        Names of the rows, in the first column; a callable gives those from one row to
        another. None is their numbers. The column has the ``name`` of a pandas index,
        unless another one has it, or is "index"; it is "row" if rows have numbers
        alone.

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
    ...         writer.append({"cluster": np.array([0, 1]), "margin": np.array([0.5, 2.0])})
    ...     print(pathlib.Path(folder, "labels.csv").read_text().replace('"', ""))
    row,cluster,margin
    0,0,0.5
    1,1,2
    <BLANKLINE>
    """

    def __init__(
        self, path: PathLike, n_samples: int, index: RowNames | None = None
    ) -> None:
        super().__init__(path)
        self._expected = n_samples
        self._index = index
        self._index_name = str(getattr(index, "name", None) or INDEX)
        self._written = 0
        self._file: Any = None  # is made with the first rows, which say its columns

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
            writer = (
                csv.CSVWriter
                if self.path.suffix.lower() == ".csv"
                else parquet.ParquetWriter
            )
            self._file = writer(str(self.path), table.schema)
        self._file.write_table(table)
        self._written += n_rows

    def _names(self, n_rows: int) -> dict[str, Any]:
        start = self._written
        stop = self._written + n_rows
        index = self._index
        if index is None:
            return {ROW: np.arange(start, stop)}
        names = np.asarray(index(start, stop) if callable(index) else index[start:stop])
        return {
            self._index_name: names
            if names.dtype.kind in "iufbM"
            else [str(name) for name in names]
        }

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Check the number of rows."""
        if self._written != self._expected:
            raise InputError(
                f"{self.name}: {self._written} rows came, not {self._expected} as was said."
            )


def read_values(path: PathLike, column: str | None = None) -> np.ndarray:
    """One value a row: a column of a table, CSV or Parquet, or a Zarr array.

    Parameters
    ----------
    path : path
        The table or array.
    column : str or None, default=None
        Name of the column. None is "cluster" or "class", or the only column beside
        those of row numbers.

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

    if Path(path).suffix.lower() not in TABLES:
        return read_column(path, "labels")
    check_file(path)
    known_faults = pa.ArrowException, OSError, UnicodeDecodeError
    with worded(f"{path} cannot be read as a table", "write it again", *known_faults):
        known, read = _opened(path)
        column = _chosen(path, column, known)
        table = read([column, *({ROW} & set(known) - {column})])
    values = table[column]
    if values.type in (pa.binary(), pa.large_binary()):  # of CSV that is no UTF-8
        raise InputError(
            f"{path}: {column} is no text in UTF-8; write the table again."
        )
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null())))
        raise InputError(f"{path}: row {row} has no {column}; give one value a row.")
    if ROW in table.column_names and column != ROW:
        rows = table[ROW].to_numpy()
        if rows.dtype.kind not in "iu" or not np.array_equal(
            rows, np.arange(len(rows))
        ):
            raise InputError(
                f'{path}: the column "{ROW}" does not count from 0; sort the table by it.'
            )
    return np.asarray(values.to_numpy())


def read_names(path: PathLike) -> np.ndarray | None:
    """The names of the rows of a table, its column "index"; None if it has none."""
    if Path(path).suffix.lower() not in TABLES:
        return None
    known, read = _opened(path)
    return np.asarray(read([INDEX])[INDEX].to_numpy()) if INDEX in known else None


def labels_of_rows(labels: Any, column: str | None, samples: Samples) -> np.ndarray:
    """One label or class a row, of the rows of some samples, from an array in memory or a path.

    Raises
    ------
    InputError
        They are of another number of rows, or of rows with other names, or are no whole
        numbers.
    """
    is_path = isinstance(labels, str | os.PathLike)
    values = (
        read_values(labels, column)
        if is_path
        else plain_values(labels, "labels", text=True)
    )
    name = labels if is_path else "labels"
    if values.shape != (samples.n_samples,):
        shape = " x ".join(f"{size:,}" for size in values.shape)
        fault = f"{name} has {shape} values and {samples.name} has {samples.n_samples:,} rows"
        raise InputError(f"{fault}; give one label a row, in the order of the rows.")
    if values.dtype.kind == "f" and (values % 1).any():
        example = values[values % 1 != 0][0]
        raise InputError(
            f"{name} has numbers such as {example:g}; give whole numbers or names."
        )
    names = read_names(labels) if is_path else None
    kept = open_index(samples)
    if names is None or kept is None:
        return values
    other = names.astype("T") != kept.astype("T")  # as texts of any length
    if other.any():
        row = int(other.argmax())
        fault = f"{name} has other rows than {samples.name}: row {row} is {names[row]}, not {kept[row]}"
        raise InputError(f"{fault}; give the labels of these rows, in their order.")
    return values


def _opened(path: PathLike) -> tuple[list[str], Callable[[list[str]], Any]]:
    """Names of the columns of a table, and a function that reads some of them."""
    from pyarrow import csv, parquet

    place = str(path)
    if Path(path).suffix.lower() == ".parquet":
        return parquet.read_schema(place).names, lambda some: parquet.read_table(
            place, columns=some
        )
    with csv.open_csv(place) as reader:
        names = reader.schema.names
    return names, lambda some: csv.read_csv(
        place, None, None, csv.ConvertOptions(include_columns=some)
    )


def _chosen(path: PathLike, column: str | None, known: list[str]) -> str:
    if column is None:
        others = [name for name in known if name not in (ROW, INDEX)]
        column = next(
            (name for name in NAMES if name in known),
            others[0] if len(others) == 1 else None,
        )
    if column not in known:
        which = "" if column is None else f" {column!r}"
        raise InputError(
            f"{path} has no column{which} to take; name one of {', '.join(known)}."
        )
    return column
