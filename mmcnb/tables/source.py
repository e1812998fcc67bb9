"""Reopen the file or folder of a table to read all its columns unchanged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.tables.arrow import TEXT
from mmcnb.tables.base import Types
from mmcnb.tables.files import FileTable
from mmcnb.tables.marks import OF_PANDAS
from mmcnb.tables.options import TableOptions

# Plain numbers. Codes with a leading zero do not match.
WHOLE = r"^-?(0|[1-9]\d{0,17})$"
NUMBER = r"^-?(0|[1-9]\d*)?({point}\d*)?([eE][-+]?\d+)?$"
GAPS = pa.array(OF_PANDAS, TEXT)


class TablePart(NamedTuple):
    """Consecutive rows of a table with all its columns.

    Attributes
    ----------
    rows : pyarrow.RecordBatch
        The rows.
    first : int
        Zero-based index, in the file, of the first of these rows.
    file : int
        Zero-based index of the file in its folder.
    """

    rows: pa.RecordBatch
    first: int = 0
    file: int = 0


@dataclass(frozen=True)
class TableSource:
    """The file or folder of a table, and the options used to read it.

    Parameters
    ----------
    path : str
    options : TableOptions
    """

    path: str
    options: TableOptions

    def table(self) -> FileTable:
        """Open the table again, without splitting lists and objects."""
        options = replace(self.options, encoding=None)
        return FileTable(Path(self.path), options, is_flat=False)


class WholeTable:
    """All columns of a table, with their types in the files.

    A text column that contains only plain numbers becomes a column of numbers; all rows
    are read once to find such columns. Codes such as 0123 remain text, and all other
    text cells are unchanged, byte for byte.

    Parameters
    ----------
    table : FileTable
    decimal : str
        Decimal mark of numbers that are written as text.
    """

    def __init__(self, table: FileTable, decimal: str) -> None:
        self._table = table
        self._decimal = decimal
        if table.is_text:
            types = _plain_types(table, decimal)
        else:
            types = table.types_as_written()
        self.schema = pa.schema(list(types.items()), table.metadata)

    def parts(self) -> Iterator[TablePart]:
        """Yield the rows of the table in parts of limited size."""
        wanted = dict(zip(self.schema.names, self.schema.types, strict=True))
        if self._table.is_text:
            wanted = dict.fromkeys(wanted, TEXT)
        for part in self._table.parts(wanted):
            columns = []
            for field in self.schema:
                values = part.columns[field.name]
                columns.append(_as_type(values, field.type, self._decimal))
            rows = pa.record_batch(columns, schema=self.schema)
            yield TablePart(rows, part.first, part.file)


def _as_type(values: pa.Array, data_type: pa.DataType, decimal: str) -> pa.Array:
    """Return values of the given type unchanged, and parse texts as this type."""
    if values.type == data_type:
        return values
    texts = pc.if_else(pc.is_in(values, GAPS), None, values)
    if decimal != ".":
        texts = pc.replace_substring(texts, decimal, ".")
    return texts.cast(data_type)


def _plain_types(table: FileTable, decimal: str) -> Types:
    """Return the type of each column: int64 or float64 if all its cells are numbers.

    All other columns, including columns without values, are text.
    """
    types: dict[str, pa.DataType] = dict.fromkeys(table.keys, pa.int64())
    has_values = dict.fromkeys(table.keys, False)
    number = NUMBER.format(point=re.escape(decimal))
    for part in table.parts(dict.fromkeys(table.keys, TEXT)):
        for key, values in part.columns.items():
            if types[key] == TEXT:
                continue
            cells = values.filter(pc.invert(pc.is_in(values, GAPS)))
            has_values[key] |= len(cells) > 0
            if types[key] == pa.int64() and not _all_match(cells, WHOLE):
                types[key] = pa.float64()
            is_number = _all_match(cells, number) and _all_match(cells, r"\d")
            if types[key] == pa.float64() and not is_number:
                types[key] = TEXT
    return {key: types[key] if has_values[key] else TEXT for key in types}


def _all_match(cells: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern), min_count=0).as_py())
