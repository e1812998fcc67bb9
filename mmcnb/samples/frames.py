"""Data frames of any library, and names of their columns."""

from collections import Counter
from typing import Any

import pyarrow as pa

from mmcnb.errors import InputError, worded

FRAME = "the data frame"  # for messages


def as_frame(source: Any) -> Any:
    """Return a frame of pandas, or the Arrow table of another frame; else None."""
    if type(source).__name__ == "LazyFrame":
        raise InputError(
            f"{FRAME} is lazy; "
            "give the path of its sink_parquet(path), or collect() it."
        )
    if not (hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns")):
        return None
    if hasattr(source, "iloc"):
        return source
    with worded(f"{FRAME} cannot be read", "cast its columns to numbers"):
        return pa.table(source)


def column_labels(frame: Any) -> list[Any]:
    """Names of the columns, of any type."""
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def column_names(frame: Any) -> list[str] | None:
    """Return the column names of a frame if all are text; None if none is.

    Raises
    ------
    InputError
        Some names are text and others not, or a name stands twice.
    """
    columns = column_labels(frame)
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        other = columns[text.index(False)]
        rule = (
            "Feature names are only supported if all input features have string names"
        )
        remedy = "rename it, or rename all columns, such as by X.columns.astype(str)"
        raise InputError(f"{rule}, but {FRAME} has a column {other!r}: {remedy}.")
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(
            f"{FRAME} has two columns {twice[0]!r}: rename or drop one of them."
        )
    return [str(name) for name in columns] if columns and all(text) else None
