"""Read labels or classes of rows from an array, or match a table to the rows."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.base import Samples
from mmcnb.samples.row_index import FILE, INDEX, ROW, RowIndex
from mmcnb.stores.label_table import (
    TABLES,
    LabelTable,
    as_arrow,
    ending_of,
    read_values,
)
from mmcnb.stores.row_index import row_index_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def labels_of_rows(labels: Any, column: str | None, samples: Samples) -> np.ndarray:
    """Return one label or class for each row of ``samples``.

    If a table of labels has columns with row names or row numbers, as written by
    `predict`, its rows are matched to ``samples`` by these columns. Other labels must
    be in the order of the rows. A table may have further rows only if ``samples`` left
    them out.

    Parameters
    ----------
    labels : array-like or path
        Labels or classes, or the path of a table or Zarr array that contains them.
    column : str or None
        Name of the column of a table that contains the labels; None selects it as in
        `LabelTable.value_column`.
    samples : Samples
        The rows.

    Raises
    ------
    InputError
        If the number of labels differs from the number of rows, a row has no label, or
        a label is a number that is not an integer.
    """
    name = "labels"
    if isinstance(labels, str | os.PathLike):
        name = os.fspath(labels)
        index = row_index_of(None, samples)
        values = _values_at(name, column, index, samples.name)
    else:
        values = plain_values(labels, "labels", text=True)
    if values.shape != (samples.n_samples,):
        raise _other_length(name, values.shape, samples.name, samples.n_samples)
    if values.dtype.kind == "f" and (values % 1).any():
        example = values[values % 1 != 0][0]
        raise InputError(
            f"{name} has numbers such as {example:g}; give whole numbers or names."
        )
    return values


def _other_length(
    name: str, shape: tuple[int, ...], rows_name: str, n_samples: int
) -> InputError:
    sizes = " x ".join(f"{size:,}" for size in shape)
    return InputError(
        f"{name} has {sizes} values and {rows_name} has {n_samples:,} rows; "
        "give one label for each row, in the order of the rows."
    )


def _values_at(
    path: str, column: str | None, index: RowIndex, rows_name: str
) -> np.ndarray:
    """Read one value for each row from the table or array at a path."""
    if ending_of(path) not in TABLES:
        return read_values(path, column)
    table = LabelTable(path, column)
    keys = _keys_of(table.columns, index)
    if not keys:
        return _in_order(table, column, index)
    columns = index.columns(0, index.n_samples)
    wanted = {}
    for key, values in zip(keys, columns.values(), strict=True):
        wanted[key] = as_arrow(values)
    value = table.value_column(column, keys)
    read = table.read([value, *keys], {key: wanted[key].type for key in keys})
    rows = _matched(path, read, wanted, rows_name)
    # Row numbers fit any table. Names identify rows, so that a table of labels may
    # contain the labels of other rows too.
    are_numbers = {FILE, ROW}.issuperset(keys)
    n_left_out = index.n_left_out
    most = index.n_samples + (n_left_out or 0)
    if are_numbers and n_left_out is not None and read.num_rows > most:
        raise _other_length(path, (read.num_rows,), rows_name, index.n_samples)
    return table.plain(read[value].take(rows), value)


def _keys_of(columns: list[str], index: RowIndex) -> list[str]:
    """Return the names of the columns that identify the rows of a table.

    The list is empty if the table has no such columns.
    """
    keys = index.keys
    # A table with a column of files numbers the rows of each file separately, so these
    # numbers do not identify rows of a single source.
    if index.is_plain and FILE in columns:
        return []
    # `TableWriter` calls the column of row names "index" if a column of values has the
    # same name.
    is_named = not {"cluster", "margin"} & set(keys)
    if is_named and all(key in columns for key in keys):
        return keys
    if len(keys) == 1 and keys != [ROW] and INDEX in columns:
        return [INDEX]
    return []


def _in_order(table: LabelTable, column: str | None, index: RowIndex) -> np.ndarray:
    """Return the values of a table without columns that identify its rows.

    The table contains one value for each row of the samples, or one value for each row
    of the file from which the samples were read. In the second case, the values of rows
    that were dropped are skipped.
    """
    has_numbers = index.is_numbered or index.numbers is not None
    if index.n_left_out == 0 or index.files or not has_numbers:
        return read_values(table.path, column)
    value = table.value_column(column, [ROW])
    values = table.read([value])[value]
    numbers = index.numbers_of(0, index.n_samples)
    is_whole = len(values) > max(index.n_samples, int(numbers[-1]))
    if index.n_left_out is not None:
        is_whole = len(values) == index.n_samples + index.n_left_out
    if is_whole:
        return table.plain(values.take(numbers), value)
    return read_values(table.path, column)


def _matched(
    path: str, table: "pa.Table", wanted: "dict[str, pa.Array]", rows_name: str
) -> np.ndarray:
    """Return the position in the table of each wanted row.

    Parameters
    ----------
    path : str
        Path of the table for messages.
    table : pyarrow.Table
        Table with the columns that identify rows.
    wanted : dict of str to pyarrow.Array
        Names or numbers of the wanted rows, by column.
    rows_name : str
        Name of the wanted rows for messages.

    Raises
    ------
    InputError
        If a wanted row is not in the table, or a row occurs twice in the table.
    """
    keys = [*wanted]
    here = [_as_type_of(table[key].combine_chunks(), wanted[key]) for key in keys]
    there = [_as_type_of(wanted[key], table[key]) for key in keys]
    if all(mine.equals(other) for mine, other in zip(here, there, strict=True)):
        return np.arange(table.num_rows)
    rows_here = _index_of(here)
    rows_there = _index_of(there)
    if not rows_here.is_unique:
        twice = rows_here[rows_here.duplicated()][0]
        raise InputError(
            f"{path} has the row {twice} twice ({', '.join(keys)}); give one label a "
            "row."
        )
    rows = rows_here.get_indexer(rows_there)
    if (rows < 0).any():
        absent = rows_there[int(np.argmax(rows < 0))]
        raise InputError(
            f"{path} has other rows than {rows_name}: it has no row {absent} "
            f"({', '.join(keys)}); give the labels of these rows."
        )
    return rows


def _as_type_of(values: Any, others: Any) -> "pa.Array":
    """Convert ``values`` to int64 if both arrays are integers, otherwise to strings."""
    import pyarrow as pa

    if pa.types.is_integer(values.type) and pa.types.is_integer(others.type):
        return values.cast(pa.int64())
    return values.cast(pa.large_string())


def _index_of(columns: "list[pa.Array]") -> "pd.Index":
    import pandas as pd

    arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
    return (
        pd.Index(arrays[0]) if len(arrays) == 1 else pd.MultiIndex.from_arrays(arrays)
    )
