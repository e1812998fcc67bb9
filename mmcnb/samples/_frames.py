"""Data frames of any library that narwhals knows, as one array of numbers with names of columns."""

import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._arrays import is_number, one_line, plain_array
from mmcnb.samples.matrix import block_dtype

FRAME = "the data frame"  # for messages
COUNTERS = ("", "Unnamed: 0", "__index_level_0__")  # an index that was written as a column


class Table(NamedTuple):
    """Rows of a data frame, dense or sparse, and the names of its columns."""

    rows: Any
    names: list[str] | None


def as_frame(source: Any) -> Any:
    """A data frame as narwhals knows it; None for anything else."""
    if type(source).__module__.startswith("pyarrow") and type(source).__name__ == "RecordBatch":
        import pyarrow

        source = pyarrow.table(source)
    try:
        frame = nw.from_native(source, pass_through=True)
    except nw.exceptions.NarwhalsError as error:
        raise InputError(f"{FRAME} cannot be read ({' '.join(str(error).split())}): correct it.") from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"{FRAME} is lazy, a query without rows: call its collect() or to_pandas() first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def read_frame(frame: Any) -> Table:
    """The numbers of a data frame.

    Parameters
    ----------
    frame : narwhals.DataFrame

    Returns
    -------
    Table
        Sparse where all columns of a pandas frame are. Dense rows are C-ordered; they are those of the frame
        where it holds one C-ordered array, and float32 or float64 otherwise.

    Raises
    ------
    InputError
        A column holds no numbers, a value is missing, or names are no names.
    """
    native, columns = frame.to_native(), list(frame.columns)
    names = column_names(columns)
    series = list(frame.iter_columns())
    _check_types(series)
    if frame.implementation.is_pandas() and len(columns):
        import pandas as pd

        if all(isinstance(dtype, pd.SparseDtype) for dtype in native.dtypes):
            return Table(_sparse_rows(native), names)
        one = native.to_numpy(copy=False) if len(set(native.dtypes)) == 1 else None
        if one is not None and one.dtype.kind in "biuf" and one.flags.c_contiguous:
            _check_counter(columns[0], one[:, 0])
            return Table(one, names)
    values = [_values(one) for one in series]
    if values:
        _check_counter(columns[0], values[0])
    rows = np.empty((len(frame), len(values)), block_dtype(*(column.dtype for column in values)))
    for number, column in enumerate(values):
        rows[:, number] = column
    return Table(rows, names)


def column_names(columns: Sequence[Any]) -> list[str] | None:
    """Names of columns, where all are text; None where none is, as in scikit-learn.

    Raises
    ------
    InputError
        Some names are text and others not, or a name stands twice.
    """
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        other = columns[text.index(False)]
        raise InputError(
            f"Feature names are only supported if all input features have string names, but {FRAME} has a "
            f"column {other!r}: rename it, or rename all columns, such as by X.columns.astype(str)."
        )
    seen: set[Any] = set()
    for name in columns:
        if name in seen:
            raise InputError(f"{FRAME} has two columns {name!r}: rename or drop one of them.")
        seen.add(name)
    return [str(name) for name in columns] if columns and all(text) else None


def _sparse_rows(native: Any) -> Any:
    try:
        return native.sparse.to_coo().tocsr()
    except ValueError as error:
        raise InputError(
            f"{FRAME} is sparse around values that are not 0: give X.sparse.to_dense()."
        ) from error


def _check_types(series: list[Any]) -> None:
    """Refuse columns that hold no numbers, by name."""
    for one in series:
        kind = one.dtype
        if kind.is_numeric() or kind == nw.Boolean or kind in (nw.Object, nw.Unknown):
            continue
        if kind.is_temporal():
            what, remedy = "dates or times", "make it a number, such as the days since the first, or drop it"
        elif kind in (nw.String, nw.Categorical) or kind == nw.Enum:
            what, remedy = "text or categories", "drop it, or make it columns of 0 and 1 (pandas.get_dummies)"
        else:
            what, remedy = f"values of type {kind}", "make it one number a row, or drop it"
        raise InputError(f"column {one.name!r} of {FRAME} holds {what}, no numbers: {remedy}.")


def _values(series: Any) -> np.ndarray:
    """The numbers of a column; a missing one is refused by row and name."""
    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise InputError(
            f"Input X contains NaN, a missing value, at row {row}, column {series.name!r} of {FRAME}: "
            "fill in or drop such rows before clustering."
        )
    if isinstance(series.dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    try:
        values = np.asarray(series.to_numpy())
    except Exception as error:  # of the library, such as for integers of 128 bits
        raise InputError(
            f"column {series.name!r} of {FRAME} holds {series.dtype}, which NumPy does not know "
            f"({one_line(error)}): cast it to Float64."
        ) from error
    if values.dtype.kind in "biuf":
        return values
    for row, value in enumerate(values.tolist()):
        if not is_number(value):
            raise InputError(
                f"column {series.name!r} of {FRAME} holds no number in row {row}, but {reprlib.repr(value)}: "
                "correct it, make the column numbers, or drop it."
            )
    return plain_array(values, f"column {series.name!r} of {FRAME}")


def _check_counter(name: Any, values: np.ndarray) -> None:
    """Refuse the index of another frame that was written and read as a column."""
    if name in COUNTERS and np.array_equal(values, np.arange(len(values))):
        raise InputError(
            f"the first column {name!r} of {FRAME} only counts its rows, as to_csv() writes them: "
            "drop it, or read the file with index_col=0."
        )
