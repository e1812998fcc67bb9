"""Data frames as rows of numbers with names of columns, by way of Arrow."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import InputError, shown, worded
from mmcnb.samples.base import Samples, in_memory
from mmcnb.samples.frames import FRAME, as_frame, column_names, columns_of
from mmcnb.samples.matrix import block_dtype
from mmcnb.tables.columns import (
    NUMBERS_ALONE,
    TEXT,
    UNNAMED,
    NamedColumns,
    TableOptions,
    kind_of,
    names_rows,
)
from mmcnb.tables.files import parts_of
from mmcnb.tables.rows import TableRows, whole_table


def open_frame(source: Any, options: TableOptions | None = None) -> Samples:
    """The rows of a data frame.

    Parameters
    ----------
    source : data frame
        Of pandas, or of another library that exports Arrow.
    options : TableOptions or None, default=None
        None takes a frame of numbers without gaps as it is, and others as tables are
        taken.

    Returns
    -------
    Samples
        Sparse if all columns of a pandas frame are. Dense rows are those of the frame
        itself if it is one C-ordered array, and float32 or float64 otherwise.

    Raises
    ------
    InputError
        A column cannot be taken, or names are no names.
    """
    frame = as_frame(source)
    names = column_names(frame)
    columns = columns_of(frame)
    if columns and hasattr(frame, "sparse"):  # of pandas, and only if all columns are
        with worded(
            f"{FRAME} is sparse around other values",
            "give X.sparse.to_dense()",
            ValueError,
        ):
            return in_memory(frame.sparse.to_coo().tocsr(), FRAME, names)
    column_of = (
        frame.column if isinstance(frame, pa.Table) else lambda k: frame.iloc[:, k]
    )
    arrays = partial(
        map, lambda k: _values(columns[k], column_of(k)), range(len(columns))
    )
    may_be_plain = (
        options in (None, NUMBERS_ALONE) and columns and columns[0] not in UNNAMED
    )
    if (
        may_be_plain
        and (rows := _plain_rows(frame, arrays, list(map(str, columns)))) is not None
    ):
        return in_memory(rows, FRAME, names)
    return whole_table(
        TableRows(FrameTable([*arrays()], names), options or TableOptions())
    )


def _plain_rows(
    frame: Any, arrays: Callable[[], Iterable[pa.Array]], names: list[str]
) -> np.ndarray | None:
    """The rows of a frame of numbers without gaps, none of which only names the rows; None of others."""
    for column, name in zip(arrays(), names, strict=True):  # one at a time
        is_number = kind_of(column.type) in (
            "number",
            "flag",
        ) and not pa.types.is_decimal(column.type)
        has_gaps = pc.any(pc.is_null(column, nan_is_null=True)).as_py()
        if (
            not is_number
            or has_gaps
            or names_rows(name, column.to_numpy(zero_copy_only=False) * 1)
        ):
            return None
    types = set(getattr(frame, "dtypes", ()))
    if len(types) == 1 and isinstance(next(iter(types)), np.dtype):
        rows = frame.to_numpy(copy=False)
        if rows.flags.c_contiguous:
            return rows
    values = [column.to_numpy(zero_copy_only=False) for column in arrays()]
    return np.stack(values, axis=1, dtype=block_dtype(*(one.dtype for one in values)))


class FrameTable(NamedColumns):
    """The columns of a data frame, in memory, as a table."""

    name = FRAME
    is_text = False
    paths = ()

    def __init__(self, columns: list[pa.Array], names: list[str] | None) -> None:
        self.has_names = names is not None
        self.keys = self.names = names or list(map(str, range(len(columns))))
        self.types = [column.type for column in columns]
        self.parts = partial(parts_of, pa.record_batch(columns, self.keys))


def _values(name: Any, series: Any) -> pa.Array:
    """A column as Arrow has it; categories as texts."""
    if isinstance(series, pa.ChunkedArray):
        column = series.combine_chunks()
    else:
        series = series.sparse.to_dense() if hasattr(series, "sparse") else series
        try:
            column = pa.array(series, from_pandas=True)
        except (
            pa.ArrowException,
            TypeError,
            ValueError,
            OverflowError,
        ) as error:  # not of one type
            raise InputError(_mixed(name, series)) from error
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.cast(TEXT).take(column.indices)
    return column


def _mixed(name: Any, series: Any) -> str:
    """A sentence about the first value that is of another type than those before."""
    rows = np.flatnonzero(series.notna())
    first = series.iloc[rows[0]]
    row = next(
        (row for row in rows.tolist() if type(series.iloc[row]) is not type(first)),
        rows[0],
    )
    kinds = dict.fromkeys(type(one).__name__ for one in (first, series.iloc[row]))
    fault = (
        "is of another type than the values before"
        if len(kinds) > 1
        else "is no number, text or date"
    )
    return (
        f"{FRAME}, row {row}, column {name!r}: {shown(series.iloc[row])} {fault} ({' and '.join(kinds)}): "
        f"make the column one type, such as by X[{name!r}].astype(str), or drop it."
    )
