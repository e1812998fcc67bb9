"""Columns of a table by name: which are features, classes or row names, and which are left out."""

import csv
import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.errors import InputError

ColumnRef = str | int

FIRST_NAMES = (
    "",
    "Unnamed: 0",
)  # of the first column, as pandas writes the index of a frame and reads it again
MISSING = ("refuse", "drop", "mean")
CATEGORIES = (None, "one-hot")
_SHOWN = 10  # names in a message


class NamedColumns:
    """The columns of a table.

    Attributes
    ----------
    name : str
        Of the table, for messages.
    names : list of str
        One a column; their numbers where there is no header.
    has_names : bool
    index_columns : tuple of int
        Columns that are known to hold names of rows.
    """

    name: str
    names: list[str]
    has_names: bool
    index_columns: tuple[int, ...] = ()

    def column(self, position: int) -> str:
        """A column's number and name, for messages."""
        return f"column {position} ({self.names[position]!r})" if self.has_names else f"column {position}"

    def option(self, position: int) -> str:
        """What names a column on the command line."""
        name = self.names[position]
        plain = name.strip() and self.names.count(name) == 1 and not name.startswith("-")
        return shlex.quote(name) if plain else str(position)


@dataclass(frozen=True)
class TableOptions:
    """What is made of the columns; see `mmcnb.stores.convert`."""

    columns: Any = None
    drop: Any = None
    label_column: ColumnRef | None = None
    index_column: ColumnRef | None = None
    missing: str = "refuse"
    categories: str | None = None
    delimiter: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        """Refuse unknown words."""
        if self.missing not in MISSING:
            raise InputError(f"missing={self.missing!r} is unknown: give 'refuse', 'drop' or 'mean'.")
        if self.categories not in CATEGORIES:
            raise InputError(f"categories={self.categories!r} is unknown: give 'one-hot' or None.")

    @property
    def given(self) -> str | None:
        """Name of an option that only tables have, if one is given."""
        for name, usual in TableOptions.__dataclass_fields__.items():
            if getattr(self, name) != usual.default:
                return name
        return None


@dataclass(frozen=True)
class Selection:
    """Numbers of the columns by what they are taken for."""

    features: list[int]
    label: int | None
    index: int | None
    left_out: list[int]


def select_columns(table: NamedColumns, options: TableOptions) -> Selection:
    """Decide what each column is taken for.

    Raises
    ------
    InputError
        A column is not there, is named twice, has no name, or none is left.
    """
    label = _resolve_one(table, options.label_column, "--label-column")
    index = _resolve_one(table, options.index_column, "--index-column")
    if index is None and len(table.index_columns) == 1 and table.index_columns[0] != label:
        index = table.index_columns[0]
    chosen = None if options.columns is None else resolve(table, options.columns, "--columns")
    dropped = resolve(table, () if options.drop is None else options.drop, "--drop")
    taken = [position for position in (label, index) if position is not None]
    for position in [*taken, *(chosen or ())]:
        if position in dropped:
            raise InputError(
                f"{table.name}: {table.column(position)} is both used and dropped: name it once."
            )
    if label is not None and label == index:
        raise InputError(f"{table.name}: {table.column(label)} cannot hold both classes and row names.")
    hidden = {*dropped, *taken, *table.index_columns}
    every = range(len(table.names))
    features = [p for p in (every if chosen is None else chosen) if p not in hidden]
    if not features:
        raise InputError(f"{table.name}: no column is left as a feature: drop fewer (--drop, --columns).")
    if table.has_names:
        _check_names(table, features, explicit=chosen is not None)
    left_out = [p for p in every if p not in features and p not in taken]
    return Selection(features, label, index, left_out)


def resolve(table: NamedColumns, references: Any, option: str) -> list[int]:
    """Numbers of columns that are given by name or number, in one text between commas or in a list."""
    positions: list[int] = []
    for reference in [references] if isinstance(references, str | int) else references:
        found = _position(table, reference)
        if found is None and isinstance(reference, str) and "," in reference:
            parts = [part.strip() for part in next(csv.reader([reference], skipinitialspace=True))]
            positions += resolve(table, [part for part in parts if part], option)
        elif found is None:
            raise _unknown(table, reference, option)
        else:
            positions.append(found)
    return list(dict.fromkeys(positions))


def _resolve_one(table: NamedColumns, reference: ColumnRef | None, option: str) -> int | None:
    if reference is None:
        return None
    position = _position(table, reference)
    if position is None:
        raise _unknown(table, reference, option)
    return position


def _position(table: NamedColumns, reference: Any) -> int | None:
    """Number of a column; a text is a name, or a number where no column is named so."""
    names, width = table.names, len(table.names)
    if isinstance(reference, str):
        if table.has_names and reference in names:
            if names.count(reference) > 1:
                raise InputError(
                    f"{table.name}: several columns are named {reference!r}: give a number from 0."
                )
            return names.index(reference)
        if not is_number_text(reference):
            return None
        reference = int(reference)
    if isinstance(reference, bool) or not isinstance(reference, int | np.integer):
        return None
    return int(reference) % width if -width <= reference < width else None


def is_number_text(reference: ColumnRef | None) -> bool:
    """Whether a text can be the number of a column."""
    return isinstance(reference, str) and reference.isascii() and reference.removeprefix("-").isdigit()


def _unknown(table: NamedColumns, reference: Any, option: str) -> InputError:
    width = len(table.names)
    if not isinstance(reference, str) or is_number_text(reference):
        return InputError(
            f"{table.name}: there is no column {reference} among {width}: "
            f"count from 0, or from -1 backwards ({option})."
        )
    if not table.has_names:
        return InputError(
            f"{table.name} has no header, so no column is named {reference!r}: "
            f"give its number from 0 ({option})."
        )
    close = difflib.get_close_matches(reference, table.names, 1)
    hint = f"perhaps {close[0]!r} is meant" if close else "name one of these, or give its number from 0"
    return InputError(
        f"{table.name}: no column is named {reference!r} among {shown_names(table.names)}: {hint} ({option})."
    )


def shown_names(names: Sequence[str], most: int = _SHOWN) -> str:
    """Names in a message; of many, the first ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _check_names(table: NamedColumns, features: list[int], explicit: bool) -> None:
    names = table.names
    for position in features:
        name = names[position].strip()
        first = position == 0 and name in FIRST_NAMES
        if not explicit and (first or not name):
            why = ", as df.to_csv() writes row names" if first else ""
            what = f"is named {name!r}" if name else "has no name"
            raise InputError(
                f"{table.name}: column {position} {what}{why}: "
                f"keep it as such with --index-column {position}, or leave it out with --drop {position}."
            )
    seen: dict[str, int] = {}
    for position in features:
        other = seen.setdefault(names[position], position)
        if other != position:
            raise InputError(
                f"{table.name}: columns {other} and {position} are both named {names[position]!r}: "
                f"rename one, or leave one out with --drop {position}."
            )
