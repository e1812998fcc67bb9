"""Base class of tables, which finds columns by name or index."""

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
    """Consecutive rows of a table.

    Attributes
    ----------
    columns : dict of str to pyarrow.Array
        The values of each column, by column key.
    n_rows : int
        Number of rows in the part.
    place : callable
        Given the zero-based index of a row in the part, returns the text that messages
        use for this row, such as "line 17".
    ragged : sequence of str
        A sentence about each line that was left out because it has the wrong number of
        cells.
    first : int
        Zero-based index, in the file, of the first row of the part.
    file : int
        Zero-based index of the file in its folder.
    is_cut : bool
        Whether the last row is the last line of a text file, and is incomplete.
    """

    columns: dict[str, pa.Array]
    n_rows: int
    place: Callable[[int], str]
    ragged: Sequence[str] = ()
    first: int = 0
    file: int = 0
    is_cut: bool = False


def parts_of(batch: pa.RecordBatch, wanted: Types, first: int = 0) -> Iterator[Part]:
    """Divide a batch into parts of limited size.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    wanted : mapping of str to pyarrow.DataType
        For the key of each column to return, the type to convert the column to.
    first : int, default=0
        Zero-based index, in the file, of the first row of the batch.
    """
    n_bytes = 0
    for key in wanted:
        column = batch.column(key)
        # pyarrow may crash when asked for the size of a union.
        if not pa.types.is_union(column.type):
            n_bytes += column.nbytes
    row_bytes = max(8 * len(wanted), n_bytes / max(1, batch.num_rows))
    step = step_rows(row_bytes)
    for start in range(0, batch.num_rows, step):
        rows = batch.slice(start, step)
        columns = {key: as_type(rows.column(key), wanted[key]) for key in wanted}
        place = row_place(first + start)
        yield Part(columns, rows.num_rows, place, first=first + start)


def row_place(first: int) -> Callable[[int], str]:
    """Return a function that maps a row index ``k`` to the text "row {first + k}"."""
    return lambda row: f"row {first + row}"


class BaseTable:
    """Base class of tables, which finds columns by name or index.

    Attributes
    ----------
    name : str
        Name of the table in messages.
    keys : list of str
        Keys of the columns in `Part.columns`.
    types : list of pyarrow.DataType
        Arrow types of the columns. They may change while rows are read.
    names : list of str
        Names of the columns, or "0", "1", ... if there is no header.
    has_names : bool
        Whether there is a header.
    is_text : bool
        Whether the table is CSV text, whose cells must be parsed.
    has_known_marks : bool
        Whether to search for numbers that conventionally mark missing values, such as
        -999.
    fault_of_empty : str
        Key in `FAULTS` of the message about a column without values that an option
        asks for.
    index_columns : tuple of int
        Indices of the columns that are known to contain row names.
    paths : sequence of Path
        Paths of the files of the table; empty if the table is in memory.
    files : tuple of str
        Paths of the files relative to their folder; empty if the table is not a folder.
    lengths : list of int or None
        Number of rows in each group that can be read separately; None if there are no
        groups.
    notes : sequence of str
        Sentences about decisions made, and values changed, while reading.
    partial_keys : set of str
        Keys of the columns that some files of a folder lack.
    blocks : sequence of str
        For each column, the name of the list that it is an element of, or ``""``. Empty
        if there are no lists.
    numbers : sequence of int
        For each column, the index of the column of the file that contains it. Several
        columns have the same index if a list or object is split into them. Empty if
        nothing is split.
    metadata : mapping or None
        Arrow schema metadata, if the table is a single file that contains such
        metadata; otherwise None.
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
    numbers: Sequence[int] = ()
    metadata: Mapping[bytes, bytes] | None = None

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns of all rows, or of the rows of one group.

        Parameters
        ----------
        wanted : mapping of str to pyarrow.DataType
            For the key of each column to read, the type to read the column as.
        group : int or None, default=None
            Zero-based index of the group. If None, all rows are read.

        Yields
        ------
        Part
            The next rows, in parts of limited size.
        """
        raise NotImplementedError

    def orders(self) -> dict[int, list[str]]:
        """Return the categories of each ordered column, as texts in their order.

        The keys of the result are column indices.
        """
        return {}

    def label_of(self, position: int) -> str:
        """Return the index and name of a column, for messages."""
        number = self.number_of(position)
        if self.has_names:
            return f"column {number} ({self.names[position]!r})"
        return f"column {number}"

    def number_of(self, position: int) -> int:
        """Return the index of the file's column that contains column ``position``.

        The two indices differ if lists or objects are split into several columns.
        """
        return self.numbers[position] if self.numbers else position

    def option(self, position: int) -> str:
        """Return the name or index that selects a column on the command line."""
        name = self.names[position]
        number = str(self.number_of(position))
        is_clear = self.names.count(name) == 1 and not name.startswith("-")
        # A blank name is used only if the index of the column would be ambiguous,
        # because it is the name of a column.
        if self.has_names and is_clear and (name.strip() or number in self.names):
            return shlex.quote(name)
        return number

    def resolve(self, references: Any, option: str) -> list[int]:
        """Return the indices of the columns that an option refers to.

        Parameters
        ----------
        references : str, int, sequence of these, or None
            Names or indices of columns; negative indices count from the end. The index
            of a list or object selects all columns that it is split into. A string that
            is not the name of a column may be the name of a list, which selects all
            elements of the list, or may contain several names separated by commas.
        option : str
            Name of the option, for messages.

        Raises
        ------
        InputError
            If a column does not exist, or if several columns have the same name.
        """
        if isinstance(references, str | int):
            references = [references]
        positions: list[int] = []
        for reference in references or ():
            found = self._positions(reference)
            if found:
                positions += found
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

    def position_in_fit(self, name: str, by_number: bool) -> int:
        """Return the index of a column that a fitted model needs.

        Parameters
        ----------
        name : str
            Name of the column in the fit, which may contain commas.
        by_number : bool
            Whether a name such as "3" may be the index of a column.

        Raises
        ------
        InputError
            If no column, or more than one column, has this name.
        """
        if is_numeral(name) and name not in self.names and not by_number:
            raise InputError(
                f"{self.name} has no column {name!r}, but the fit had one: pass rows "
                "with the columns of the fit."
            )
        if self.has_names and self.names.count(name) > 1:
            raise InputError(
                f"{self.name}: several columns are named {name!r}: keep this name for "
                "the column that the model needs, and rename the others."
            )
        position = self._position(name, len(self.names))
        if position is None:
            raise InputError(f"{self.name} {self._lack(name)}.")
        return position

    def _lack(self, name: str) -> str:
        """Return the end of the message about a missing column of the fit."""
        if not self.has_names:
            return (
                f"has no header, but the model needs a column {name!r}: write the "
                "names of the columns above the rows"
            )
        lack = f"has no column {name!r}, which the model needs"
        folded = {other.casefold().strip(): other for other in self.names}
        close = difflib.get_close_matches(
            name.casefold().strip(), folded, 1, cutoff=0.8
        )
        if close:
            return f"{lack}: rename {folded[close[0]]!r} to {name!r} if this is meant"
        return f"{lack}: add it, or rename the column that has these values"

    def _positions(self, reference: object) -> list[int]:
        """Return the indices of the columns that a name or an index refers to.

        An index refers to a column of the file, and therefore to all columns that a
        list or object is split into.
        """
        if not self.numbers:
            found = self._position(reference, len(self.names))
            return [] if found is None else [found]
        if isinstance(reference, str) and reference in self.names:
            return [self.names.index(reference)]
        wanted = self._position(reference, max(self.numbers) + 1)
        return [k for k, number in enumerate(self.numbers) if number == wanted]

    def _position(self, reference: object, width: int) -> int | None:
        """Return the index of the column that a name or an index refers to, or None.

        ``width`` is the number of columns. Negative indices count from the end.
        """
        if isinstance(reference, str) and self.has_names and reference in self.names:
            if self.names.count(reference) > 1:
                raise InputError(
                    f"{self.name}: several columns are named {reference!r}: "
                    "pass the index of one of them."
                )
            return self.names.index(reference)
        if is_numeral(reference):
            reference = int(reference)
        if isinstance(reference, bool) or not isinstance(reference, int | np.integer):
            return None
        if -width <= reference < width:
            return int(reference) % width
        return None

    def _unknown(self, reference: object) -> str:
        """Return the end of the message about a name or an index that no column has."""
        n_names = len(self.names)
        if not isinstance(reference, str) or is_numeral(reference):
            n_columns = max(self.numbers) + 1 if self.numbers else n_names
            return (
                f": there is no column {reference} among the {n_columns} columns: "
                "count from 0, or backwards from -1"
            )
        if not self.has_names:
            return (
                f" has no header, so no column is named {reference!r}: "
                "pass its index, counted from 0"
            )
        hint = "name one of these, or pass an index, counted from 0"
        close = difflib.get_close_matches(reference, self.names, 1)
        if close:
            hint = f"perhaps {close[0]!r} is meant"
        listed = ", ".join(map(repr, self.names[:10]))
        if n_names > 10:
            listed += f" and {n_names - 10} more"
        return f": no column is named {reference!r} among {listed}: {hint}"


def is_numeral(reference: object) -> TypeGuard[str]:
    """Return whether a reference is a string that represents an integer."""
    return (
        isinstance(reference, str)
        and reference.isascii()
        and reference.removeprefix("-").isdigit()
    )
