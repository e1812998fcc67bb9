"""Build the row index of a table from the columns and metadata of its files."""

from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.row_index import (
    ChosenNames,
    Names,
    RowIndex,
    RowsTaken,
    range_of_pandas,
)
from mmcnb.tables.arrow import TEXT, is_text, kind_of
from mmcnb.tables.base import BaseTable
from mmcnb.tables.files import FileTable
from mmcnb.tables.reader import TableReader

# Name and values of each level of a pandas index.
Levels: TypeAlias = tuple[tuple[str | None, Names], ...]


def index_of_files(reader: TableReader, lengths: list[int]) -> RowIndex:
    """Return the row index of a table of files, all rows of which are used.

    Parameters
    ----------
    reader : TableReader
        Reader of a `FileTable`.
    lengths : list of int
        Number of rows in each group.
    """
    table = reader.table
    assert isinstance(table, FileTable)
    names = None
    own = None
    levels: Levels = ()
    if reader.index_column is not None:
        names = GroupedRows(lengths, reader.names_of_group)
    else:
        levels = _levels(table)
        if not table.files:
            own = range_of_pandas(table.metadata, sum(lengths))
    return RowIndex(
        n_samples=sum(lengths),
        files=table.files,
        lengths=tuple(table.file_lengths) if table.files else (),
        names=names,
        name=reader.index_name,
        own=own,
        levels=levels,
    )


def index_of_held(reader: TableReader, taken: RowsTaken) -> RowIndex:
    """Return the row index of a table whose rows are stored in memory or on disk.

    Parameters
    ----------
    reader : TableReader
    taken : RowsTaken
        The rows that are stored, by file and row number.
    """
    table = reader.table
    index = taken.index(reader.n_read, reader.index_name)
    if not index.is_numbered:
        return index
    own = range_of_pandas(table.metadata, reader.n_read)
    if own is not None:
        kept: Any = slice(index.n_samples)  # a slice, unlike an array, takes no memory
        if index.numbers is not None:
            kept = index.numbers_of(0, index.n_samples)
        return replace(index, own=own[kept])
    levels = []
    if not table.files:
        for name, names in _levels(table):
            numbers = index.numbers_of(0, index.n_samples)
            levels.append((name, ChosenNames(names, numbers)))
    return replace(index, levels=tuple(levels))


def _levels(table: BaseTable) -> Levels:
    """Return the levels of a pandas MultiIndex, whose values are read on demand.

    The result is empty if the table has no MultiIndex or its levels cannot be read.
    """
    types = [table.types[position] for position in table.index_columns]
    is_known = all(kind_of(kind) in ("number", "date", "text") for kind in types)
    has_categories = any(map(pa.types.is_dictionary, types))
    if len(types) < 2 or table.lengths is None or not is_known or has_categories:
        return ()
    levels = []
    for position in table.index_columns:
        name = table.names[position]
        read = partial(_level_of_group, table, position)
        is_unnamed = name.startswith("__index_level_")
        names = GroupedRows(table.lengths, read)
        levels.append((None if is_unnamed else name, names))
    return tuple(levels)


def _level_of_group(table: BaseTable, position: int, group: int) -> np.ndarray:
    """Return the values of an index column in a group of rows."""
    key = table.keys[position]
    data_type = table.types[position]
    has_zone = pa.types.is_timestamp(data_type) and data_type.tz is not None
    wanted = TEXT if has_zone or is_text(data_type) else data_type
    parts = []
    for part in table.parts({key: wanted}, group):
        cells = part.columns[key]
        if wanted == TEXT:
            texts = cells.fill_null("").to_pylist()
            parts.append(np.array(texts, np.dtypes.StringDType()))
        else:
            parts.append(cells.to_numpy(zero_copy_only=False))
    return np.concatenate(parts)
