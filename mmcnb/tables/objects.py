"""Convert Python objects to an Arrow array of numbers, texts, dates or lists."""

import datetime
import shlex
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from mmcnb.errors import InputError, shown
from mmcnb.tables.arrow import FLOAT64, TEXT

SCALARS = (
    str,
    Real,
    Decimal,
    np.bool_,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
    pd.Interval,
    pd.Period,
    UUID,
)
NUMBERS = (Real, Decimal, np.bool_)
CONTAINERS = (list, tuple, dict, set, frozenset, np.ndarray)
# For other classes, pyarrow may convert only a part of the value, warn, or even crash,
# for example if other scalars follow NumPy dates.
KNOWN_CLASSES = frozenset(
    {
        *(type(None), type(pd.NA), type(pd.NaT)),
        *(bool, int, float, str, bytes, Decimal),
        *(np.bool_, np.str_, np.float16, np.float32, np.float64),
        *(np.int8, np.int16, np.int32, np.int64),
        *(np.uint8, np.uint16, np.uint32, np.uint64),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
        *(pd.Timestamp, pd.Timedelta),
        *(list, tuple, dict, np.ndarray),
    }
)


def array_of_objects(name: object, values: Any, table: str) -> pa.Array:
    """Convert objects to an Arrow array.

    Objects of mixed types become float64 if all of them are numbers, and texts
    otherwise.

    Parameters
    ----------
    name : object
        Name of the column, for messages.
    values : sequence or pandas.Series
        The objects. None, NaN, NaT and ``pandas.NA`` are missing values.
    table : str
        Name of the table, for messages.

    Returns
    -------
    pyarrow.Array
        The converted objects, with null for missing values.

    Raises
    ------
    InputError
        If a value is not a number, text, date or list.

    Examples
    --------
    >>> from mmcnb.tables.objects import array_of_objects
    >>> array_of_objects("price", [1, True, None], "rows").to_pylist()
    [1.0, 1.0, None]
    >>> array_of_objects("price", [1, "2.5 kg", True], "rows").to_pylist()
    ['1', '2.5 kg', 'True']
    """
    if not _are_known(values):
        return _array_of_mixed(name, list(values), table)
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return _array_of_mixed(name, list(values), table)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):  # for example periods and intervals
        return _array_of_mixed(name, list(values), table)
    return array


def _array_of_mixed(name: object, values: list[Any], table: str) -> pa.Array:
    """Convert objects of mixed types to numbers or texts.

    Lists and dictionaries that Arrow cannot represent become empty objects, because a
    table leaves out such columns whatever they contain.
    """
    present = [value for value in values if not _is_missing(value)]
    if present and all(isinstance(value, CONTAINERS) for value in present):
        objects: list[dict[str, Any] | None] = [
            None if _is_missing(value) else {} for value in values
        ]
        return pa.array(objects, pa.struct([]))
    known: list[Any] = []
    are_numbers = True
    for row, value in enumerate(values):
        if not isinstance(value, SCALARS):
            if _is_missing(value):
                known.append(None)
                continue
            raise InputError(_refusal(name, row, value, table))
        if pd.isna(value):
            known.append(None)
            continue
        known.append(value)
        are_numbers &= isinstance(value, NUMBERS)
        # NumPy registers timedelta64 as an integer, so it is an instance of Real.
        are_numbers &= not isinstance(value, np.timedelta64)
    if not are_numbers:
        texts = [None if value is None else str(value) for value in known]
        return pa.array(map(_encodable, texts), TEXT)
    numbers = [None if value is None else _number(value) for value in known]
    for row, number in enumerate(numbers):
        if number is not None and np.isinf(number) and not _is_infinite(known[row]):
            raise InputError(_refusal(name, row, known[row], table))
    return pa.array(numbers, FLOAT64)


def _are_known(values: Any) -> bool:
    """Return whether pyarrow converts values of these classes correctly."""
    if getattr(values, "dtype", np.dtype(object)).kind != "O":
        return True
    classes = set(map(type, values))
    are_of_numpy = classes in ({np.datetime64}, {np.timedelta64})
    return are_of_numpy or classes <= KNOWN_CLASSES


def _encodable(text: str | None) -> str | None:
    """Return a text that UTF-8 can encode, with lone surrogates escaped."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _is_infinite(value: Any) -> bool:
    """Return whether a number is infinite, rather than too large for float64."""
    return not isinstance(value, int) and value in (np.inf, -np.inf)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, float) and np.isnan(value)


def _refusal(name: object, row: int, value: Any, table: str) -> str:
    kind = type(value).__name__
    return (
        f"{table}, row {row}, column {name!r}: {shown(value)} has type {kind}, which "
        "is not a number, text or date: write one of these, or leave the column out "
        f"with --drop {shlex.quote(str(name))}."
    )
