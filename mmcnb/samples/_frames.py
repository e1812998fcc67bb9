"""Data frames as one array of numbers with names of columns, by way of Arrow."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mmcnb.errors import InputError, worded
from mmcnb.samples._arrays import plain_array
from mmcnb.samples.columns import kind_of
from mmcnb.samples.matrix import block_dtype

FRAME = "the data frame"  # for messages


class Table(NamedTuple):
    """Rows of a data frame, dense or sparse, and the names of its columns."""

    rows: Any
    names: list[str] | None


def as_frame(source: Any) -> Any:
    """A frame of pandas, or an Arrow table of the frame of another library; None for anything else."""
    if type(source).__name__ == "LazyFrame":
        raise InputError(f"{FRAME} is lazy, a query without rows: call its collect() or to_pandas() first.")
    if not (hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns")):
        return None
    if hasattr(source, "iloc"):
        return source
    with worded(f"{FRAME} cannot be read", "cast its columns to numbers"):
        return pa.table(source)


def read_frame(frame: Any) -> Table:
    """The numbers of a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame or pyarrow.Table

    Returns
    -------
    Table
        Sparse if all columns of a pandas frame are. Dense rows are C-ordered: those of the frame itself if
        it is one C-ordered array, and float32 or float64 otherwise.

    Raises
    ------
    InputError
        A column is not numbers, a value is missing, or names are no names.
    """
    is_arrow = isinstance(frame, pa.Table)
    names, columns = column_names(frame), _columns(frame)
    if columns and hasattr(frame, "sparse"):  # of pandas, and only if all columns are
        with worded(f"{FRAME} is sparse around other values", "give X.sparse.to_dense()", ValueError):
            return Table(frame.sparse.to_coo().tocsr(), names)
    types, one = set(() if is_arrow else frame.dtypes), None
    if len(types) == 1 and all(isinstance(one, np.dtype) for one in types):
        one = frame.to_numpy(copy=False)
    if one is not None and one.dtype.kind in "biuf" and one.flags.c_contiguous:
        rows, values = one, [one[:, 0]]
    else:
        column_of = frame.column if is_arrow else lambda k: frame.iloc[:, k]
        values = [_values(name, column_of(k)) for k, name in enumerate(columns)]
        rows = np.empty((len(frame), len(values)), block_dtype(*(column.dtype for column in values)))
        for number, column in enumerate(values):
            rows[:, number] = column
    written = ("", "Unnamed: 0", "__index_level_0__")  # an index that was written as a column
    if columns and columns[0] in written and np.array_equal(values[0], np.arange(len(rows))):
        fault = f"the first column {columns[0]!r} of {FRAME} only counts its rows, as to_csv() writes them"
        raise InputError(f"{fault}: drop it, or read the file with index_col=0.")
    return Table(rows, names)


def _columns(frame: Any) -> list[Any]:
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def column_names(frame: Any) -> list[str] | None:
    """Names of the columns of a frame, if all are text; None if none is, as in scikit-learn.

    Raises
    ------
    InputError
        Some names are text and others not, or a name stands twice.
    """
    columns = _columns(frame)
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        other = columns[text.index(False)]
        rule = "Feature names are only supported if all input features have string names"
        remedy = "rename it, or rename all columns, such as by X.columns.astype(str)"
        raise InputError(f"{rule}, but {FRAME} has a column {other!r}: {remedy}.")
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(f"{FRAME} has two columns {twice[0]!r}: rename or drop one of them.")
    return [str(name) for name in columns] if columns and all(text) else None


REMEDIES = {
    "other": ("values of type {}", "make it one number a row, or drop it"),
    "text": ("text or categories", "drop it, or make it columns of 0 and 1 (pandas.get_dummies)"),
    "date": ("dates or times", "make it a number, such as the days since the first, or drop it"),
}


def _values(name: Any, series: Any) -> np.ndarray:
    """The numbers of a column; a missing value is refused by row and name."""
    try:
        column = series if isinstance(series, pa.ChunkedArray) else pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError):  # of objects that are not of one type
        return plain_array(series.to_numpy(), f"column {name!r} of {FRAME}")
    kind = "text" if pa.types.is_dictionary(column.type) else kind_of(column.type)
    if kind in REMEDIES:
        found, remedy = REMEDIES[kind]
        raise InputError(f"column {name!r} of {FRAME} is {found.format(column.type)}, not numbers: {remedy}.")
    if column.null_count:
        row = column.is_null().index(True).as_py()
        fault = f"Input X contains NaN, a missing value, at row {row}, column {name!r} of {FRAME}"
        raise InputError(f"{fault}: fill in or drop such rows before clustering.")
    column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    return column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
