"""Data frames of any library, and the names of their columns."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from mmcnb._fit_warnings import Importance, Note
from mmcnb.errors import InputError, worded

FRAME = "the data frame"  # name used for the rows in messages


def as_frame(source: Any) -> Any:
    """Return a pandas or pyarrow frame unchanged, any other frame as an Arrow table.

    The result is None if the object is not a frame.
    """
    if type(source).__name__ == "LazyFrame":
        raise InputError(
            f"{FRAME} is lazy; pass X.collect(), or the path that "
            "X.sink_parquet(path) wrote."
        )
    if not (hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns")):
        return None
    if hasattr(source, "iloc") or isinstance(source, pa.Table):
        return source
    with worded(f"{FRAME} cannot be read", "cast its columns to numbers"):
        return pa.table(source)


def is_stream(source: object) -> bool:
    """Return whether an object is a stream of Arrow record batches, not a frame.

    A stream yields each batch only once.
    """
    if isinstance(source, type) or hasattr(source, "__array__"):
        return False
    if hasattr(source, "__arrow_c_stream__"):
        return not hasattr(source, "columns")
    # pyarrow's datasets and scanners
    return hasattr(source, "to_table") and hasattr(source, "to_batches")


def table_of_stream(source: Any) -> pa.Table:
    """Read all rows of an Arrow stream or dataset.

    Raises
    ------
    InputError
        If the stream cannot be read, or has no rows left.
    """
    name = f"X, of type {type(source).__name__},"
    remedy = "pass an Arrow table, or the path of a Parquet file"
    with worded(f"{name} cannot be read", remedy):
        if hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        else:
            table = source.to_table()
    if table.num_rows == 0:
        raise InputError(
            f"{name} has no rows, or they were read before: open it again, or pass a "
            "table, which can be read more than once."
        )
    return table


def column_labels(frame: Any) -> list[Any]:
    """Return the labels of a frame's columns, which may be of any type."""
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def column_names(frame: Any) -> list[str] | None:
    """Return the column names of a frame, or None if no column label is a string.

    Raises
    ------
    InputError
        If only some of the labels are strings.
    """
    columns = column_labels(frame)
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        other = columns[text.index(False)]
        rule = (
            "Feature names are only supported if all input features have string names"
        )
        remedy = "rename it, or rename all columns with X.rename(columns=str)"
        raise InputError(f"{rule}, but {FRAME} has a column {other!r}: {remedy}.")
    if not columns or not all(text):
        return None
    return unique_names(list(map(str, columns)))


def unique_names(names: Sequence[str]) -> list[str]:
    """Number duplicate names as pandas does: ``a``, ``a.1``, ``a.2``.

    Examples
    --------
    >>> from mmcnb.samples.frames import unique_names
    >>> unique_names(["a", "a", "a.1", "a"])
    ['a', 'a.2', 'a.1', 'a.3']
    """
    taken = set(names)
    last_number = dict.fromkeys(names, 0)
    seen: set[str] = set()
    unique = []
    for name in names:
        new_name = name
        while name in seen and new_name in taken:
            last_number[name] += 1
            new_name = f"{name}.{last_number[name]}"
        taken.add(new_name)
        seen.add(name)
        unique.append(new_name)
    return unique


def notes_on_names(table: str, names: Sequence[str]) -> list[str]:
    """Return a list with one note about duplicate column names.

    The list is empty if all names differ.
    """
    new_names: dict[str, list[str]] = {}
    for name, new_name in zip(names, unique_names(names), strict=True):
        new_names.setdefault(name, []).append(repr(new_name))
    renamed = [group for group in new_names.values() if len(group) > 1]
    if not renamed:
        return []
    listed = ""
    n_listed = 0
    for group in renamed[:10]:
        listed += f"{'; ' if listed else ''}{', '.join(group[:10])}"
        n_listed += len(group[:10])
    n_more = sum(map(len, renamed)) - n_listed
    if n_more:
        listed += f" and {n_more} more"
    sentence = (
        f"{table}: columns with equal names are numbered from left to right: {listed}."
    )
    return [Note(sentence, Importance.ADVICE)]
