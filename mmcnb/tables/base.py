"""What all tables have: columns by name and number, and parts of rows."""

import csv
import difflib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa

from mmcnb.errors import InputError
from mmcnb.samples.npy import step_rows
from mmcnb.tables.plain_types import as_type

Types = Mapping[str, pa.DataType]


class Part(NamedTuple):
    """Some rows of a table: columns by their keys, and how a row is named in messages.

    Lines whose cells are too many or too few are left out; ``ragged`` has a sentence
    about each. ``first`` is the number of the first row in its file, and ``file`` that
    of the file in its folder.
    """

    columns: dict[str, pa.Array]
    n_rows: int
    place: Callable[[int], str]
    ragged: Sequence[str] = ()
    first: int = 0
    file: int = 0


def parts_of(batch: pa.RecordBatch, wanted: Types, first: int = 0) -> Iterator[Part]:
    """Yield some rows of a batch at a time; its first row has the number ``first``."""
    n_bytes = 0
    for key in wanted:
        column = batch.column(key)
        if not pa.types.is_union(column.type):  # whose size pyarrow may crash to tell
            n_bytes += column.nbytes
    row_bytes = max(8 * len(wanted), n_bytes / max(1, batch.num_rows))
    step = step_rows(row_bytes)
    for start in range(0, batch.num_rows, step):
        rows = batch.slice(start, step)
        columns = {key: as_type(rows.column(key), wanted[key]) for key in wanted}
        place = row_place(first + start)
        yield Part(columns, rows.num_rows, place, first=first + start)


def row_place(first: int) -> Callable[[int], str]:
    """Return the function that names a row in messages, counted from ``first``."""
    return lambda row: f"row {first + row}"


class BaseTable:
    """The columns of a table by name and number.

    Attributes
    ----------
    name : str
        Of the table, for messages.
    keys : list of str
        Names of the columns in parts.
    types : list of pyarrow.DataType
        As far as is known before all rows are read.
    names : list of str
        One a column; their numbers if there is no header.
    has_names : bool
    is_text : bool
        Whether its cells are read from text.
    has_known_marks : bool
        Whether numbers such as -999 may be gaps though no option says so.
    fault_of_empty : str
        What is said of a column without values that is asked for.
    index_columns : tuple of int
        Columns that are known to be names of rows.
    paths : sequence of Path
        Its files; none if it is in memory.
    files : tuple of str
        Names of its files in a folder; none if it is no folder.
    lengths : list of int or None
        Rows of each group that can be read by itself; None if there are none.
    notes : sequence of str
        Sentences about what was decided or changed while the table was read.
    partial_keys : set of str
        Columns that only some of its files have.
    blocks : sequence of str
        For each column the name of the list that it is an element of, or ``""``; none
        if there are no lists.
    metadata : mapping or None
        Of the schema of a single file, if it has some.
    """

    name: str
    is_text: bool
    keys: list[str]
    types: list[pa.DataType]
    names: list[str]
    has_names: bool
    has_known_marks: bool = True
    fault_of_empty: str = "no value"
    index_columns: tuple[int, ...] = ()
    paths: Sequence[Path] = ()
    files: tuple[str, ...] = ()
    lengths: list[int] | None = None
    notes: Sequence[str] = ()
    partial_keys: Set[str] = frozenset()
    blocks: Sequence[str] = ()
    metadata: Mapping[bytes, bytes] | None = None

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns, given by their keys, as these types; of one group, or all."""
        raise NotImplementedError

    def orders(self) -> dict[int, list[str]]:
        """Return the texts of categories that have an order, by number of column."""
        return {}

    def label_of(self, position: int) -> str:
        """Return a column's number and name, for messages."""
        if self.has_names:
            return f"column {position} ({self.names[position]!r})"
        return f"column {position}"

    def option(self, position: int) -> str:
        """Return a column as the command line takes it: by name, or by number."""
        name = self.names[position]
        number = str(position)
        is_clear = self.names.count(name) == 1 and not name.startswith("-")
        # A blank name is used only if the number is the name of another column.
        if self.has_names and is_clear and (name.strip() or number in self.names):
            return shlex.quote(name)
        return number

    def resolve(self, references: Any, option: str) -> list[int]:
        """Return numbers of columns, given by name or number or as text with commas."""
        if isinstance(references, str | int):
            references = [references]
        positions: list[int] = []
        for reference in references or ():
            position = self._position(reference)
            if position is not None:
                positions.append(position)
            elif isinstance(reference, str) and reference in self.blocks:
                of_block = [block == reference for block in self.blocks]
                positions += np.flatnonzero(of_block).tolist()
            elif isinstance(reference, str) and "," in reference:
                cells = next(csv.reader([reference], skipinitialspace=True))
                names = filter(None, map(str.strip, cells))
                positions += self.resolve(names, option)
            else:
                raise InputError(f"{self.name}{self._unknown(reference)} ({option}).")
        return list(dict.fromkeys(positions))

    def position_of(self, name: str, option: str, by_number: bool) -> int:
        """Return the number of the column of a name, in which commas do not divide.

        ``by_number`` says whether a name such as "3" may be the number of a column.

        Raises
        ------
        InputError
            There is no such column, or there are several.
        """
        if is_numeral(name) and name not in self.names and not by_number:
            raise InputError(
                f"{self.name} has no column {name!r}, as the fit had: give rows with "
                "the columns of the fit."
            )
        position = self._position(name)
        if position is None:
            raise InputError(f"{self.name}{self._unknown(name)} ({option}).")
        return position

    def _position(self, reference: object) -> int | None:
        if isinstance(reference, str) and self.has_names and reference in self.names:
            if self.names.count(reference) > 1:
                raise InputError(
                    f"{self.name}: several columns are named {reference!r}: "
                    "give a number."
                )
            return self.names.index(reference)
        if is_numeral(reference):
            reference = int(reference)
        if isinstance(reference, bool) or not isinstance(reference, int | np.integer):
            return None
        width = len(self.names)
        if -width <= reference < width:
            return int(reference) % width
        return None

    def _unknown(self, reference: object) -> str:
        """Say why there is no such column."""
        n_names = len(self.names)
        if not isinstance(reference, str) or is_numeral(reference):
            return (
                f": there is no column {reference} among {n_names}: "
                "count from 0, or from -1 backwards"
            )
        if not self.has_names:
            return (
                f" has no header, so no column is named {reference!r}: "
                "give its number from 0"
            )
        hint = "name one of these, or give its number from 0"
        close = difflib.get_close_matches(reference, self.names, 1)
        if close:
            hint = f"perhaps {close[0]!r} is meant"
        listed = ", ".join(map(repr, self.names[:10]))
        if n_names > 10:
            listed += f" and {n_names - 10} more"
        return f": no column is named {reference!r} among {listed}: {hint}"


def is_numeral(reference: object) -> TypeGuard[str]:
    """Whether a text can be the number of a column."""
    return (
        isinstance(reference, str)
        and reference.isascii()
        and reference.removeprefix("-").isdigit()
    )
