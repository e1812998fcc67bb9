"""What the columns of an Arrow table hold, and how they become NumPy's numbers and texts.

A file format gives its columns' names, types and parts (`Table`); what is made of them is the same for all.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import InputError
from mmcnb.samples._columns import NamedColumns


class Part(NamedTuple):
    """Some rows of a table: the columns that were asked for, and how a row is named in messages."""

    columns: list[pa.ChunkedArray]
    n_rows: int
    place: Callable[[int], str]


class Table(NamedColumns):
    """A table that can be read in parts, more than once.

    Attributes
    ----------
    types : list of pyarrow.DataType
        What the columns hold, as far as is known before all rows are read.
    whole_columns : frozenset of int
        Columns that hold whole numbers, whatever their type is here.
    n_rows : int or None
        None where the reader shows its own progress.
    cached_bytes : int
        What is in memory at once, beyond a few megabytes.
    """

    types: list[pa.DataType]
    whole_columns: frozenset[int] = frozenset()
    n_rows: int | None = None
    cached_bytes: int = 0

    @abstractmethod
    def parts(self, wanted: Mapping[int, pa.DataType]) -> Iterator[Part]:
        """Read columns, given by number, with the types that they are to have."""

    def place(self, position: int, row: str) -> str:
        """A cell, for messages."""
        return f"{self.name}, {row}, {self.column(position)}"


def kind_of(kind: pa.DataType) -> str:
    """One of number, text, date, other."""
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind) or types.is_null(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return "text"
    return "date" if types.is_temporal(kind) else "other"


def number_dtype(kind: pa.DataType) -> np.dtype:
    """NumPy's type of a column of numbers."""
    if pa.types.is_dictionary(kind):
        return number_dtype(kind.value_type)
    if pa.types.is_null(kind):
        return np.dtype(np.float32)
    return np.dtype(np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype())


def number_chunks(column: pa.ChunkedArray) -> Iterator[np.ndarray]:
    """Numbers of a column, chunk by chunk; NaN where there is none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    for chunk in column.chunks:
        yield chunk.to_numpy(zero_copy_only=False)


def trimmed(column: pa.ChunkedArray) -> pa.Array:
    """Text without spaces around it; null where it is empty."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = pc.utf8_trim_whitespace(column.cast(pa.large_string()).combine_chunks())
    return pc.if_else(pc.equal(texts, ""), None, texts)


def encoded(texts: pa.Array) -> tuple[list[str], np.ndarray]:
    """Different texts in the order of their first appearance, and the number of each row's; -1 for null."""
    found = texts.dictionary_encode()
    return found.dictionary.to_pylist(), pc.fill_null(found.indices, -1).to_numpy(zero_copy_only=False)


def has_value(column: pa.ChunkedArray) -> np.ndarray:
    """Rows of a column of texts or whole numbers that are not empty."""
    if kind_of(column.type) == "text":
        return trimmed(column).is_valid().to_numpy(zero_copy_only=False)
    return column.is_valid().to_numpy()


class Classes:
    """Class labels from a column: whole numbers as they are, names numbered as they first appear.

    Parameters
    ----------
    table : Table
    position : int
        The column.

    Attributes
    ----------
    names : list of str or None
        Names of the classes read so far; None where they are whole numbers.
    """

    def __init__(self, table: Table, position: int) -> None:
        self._table, self.position = table, position
        self.names: list[str] | None = None
        self._codes: dict[str, int] = {}
        self._has_begun = False

    def numbers(self, column: pa.ChunkedArray, place: Callable[[int], str]) -> np.ndarray:
        """The next labels."""
        valid = has_value(column)
        if not valid.all():
            raise InputError(
                f"{self._cell(place(int(np.argmin(valid))))}: the class is empty: fill it in, "
                "or leave such rows out with --missing drop."
            )
        if pa.types.is_integer(column.type):
            return column.to_numpy().astype(np.int64)
        names, codes = encoded(trimmed(column))
        if not self._has_begun:
            self._has_begun = True
            self.names = None if _whole(names[0]) is not None else []
        if self.names is not None:
            return self._named(names, self.names)[codes]
        wholes = [_whole(name) for name in names]
        if None in wholes:
            wrong = wholes.index(None)
            raise InputError(
                f"{self._cell(place(int(np.argmax(codes == wrong))))}: label {names[wrong]!r} is not a whole "
                "number as those before: correct it, or use names in all rows."
            )
        return np.array(wholes, np.int64)[codes]

    def _cell(self, row: str) -> str:
        return self._table.place(self.position, row)

    def _named(self, names: list[str], known: list[str]) -> np.ndarray:
        for name in names:
            if name not in self._codes:
                self._codes[name] = len(known)
                known.append(name)
        return np.array([self._codes[name] for name in names], np.int64)


def is_blank_or_number(text: str) -> bool:
    """Whether a text is empty, or says a number as a table may."""
    try:
        return not text.strip() or ("_" not in text and text.isascii() and float(text) is not None)
    except ValueError:
        return False


def _whole(text: str) -> int | None:
    """A whole number, also if it is written as 1.0 or 1e0."""
    if "_" in text or not text.isascii():
        return None
    try:
        value = float(text)
        return int(text) if text.lstrip("+-").isdigit() else int(value) if value.is_integer() else None
    except ValueError:
        return None


def row_names(
    table: Table, position: int, column: pa.ChunkedArray, place: Callable[[int], str]
) -> np.ndarray:
    """Names of rows: int64 or text."""
    if not pa.types.is_integer(column.type):
        return np.array(column.fill_null("").to_pylist(), np.dtypes.StringDType())
    valid = has_value(column)
    if not valid.all():
        raise InputError(
            f"{table.place(position, place(int(np.argmin(valid))))}: the name of the row is missing: "
            f"fill it in, or leave the column out with --drop {table.option(position)}."
        )
    return column.to_numpy().astype(np.int64)
