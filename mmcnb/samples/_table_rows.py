"""Blocks of numbers, class labels and row names from the parts of a table."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from mmcnb.errors import InputError
from mmcnb.samples import matrix
from mmcnb.samples._base import BLOCK_ROWS
from mmcnb.samples._columns import TableOptions, select_columns
from mmcnb.samples._npy import Rows
from mmcnb.samples._table import (
    Classes,
    Part,
    Table,
    encoded,
    has_value,
    is_blank_or_number,
    kind_of,
    number_chunks,
    number_dtype,
    row_names,
    trimmed,
)

MOST_CATEGORIES = 1000  # more different texts than these are no categories


class TableRows:
    """Rows of a table as blocks of numbers.

    Parameters
    ----------
    table : Table
    options : TableOptions
    dtype : dtype or None, default=None
        Type of the blocks; None is the one that holds all columns.

    Attributes
    ----------
    stored_dtype : dtype
        The narrowest type that holds all features.
    feature_names : list of str or None
        None where the table has no header.
    n_dropped, n_filled : int
        Rows left out and cells filled so far, as values are missing.
    """

    is_sparse = False

    def __init__(self, table: Table, options: TableOptions, dtype: np.dtype | None = None) -> None:
        self.table, self._missing = table, options.missing
        self.selection = select_columns(table, options)
        self._kinds = self._check_kinds(options.categories is not None)
        self._wanted = self._wanted_types()
        numbers = [number_dtype(table.types[p]) for p, kind in self._kinds.items() if kind == "number"]
        texts = [np.dtype(np.uint8)] if "text" in self._kinds.values() else []
        types = set(numbers + texts)
        self.stored_dtype = types.pop() if len(types) == 1 else matrix.block_dtype(*types)
        if options.missing == "mean":  # of whole numbers it is none
            self.stored_dtype = matrix.block_dtype(self.stored_dtype)
        self._dtype = np.dtype(dtype or matrix.block_dtype(self.stored_dtype))
        self.categories: dict[int, list[str]] = {}
        self._means: np.ndarray | None = None
        label = self.selection.label
        self._classes = None if label is None else Classes(table, label)
        self.n_read = self.n_dropped = self.n_filled = 0
        self._look_ahead()

    def _check_kinds(self, one_hot: bool) -> dict[int, str]:
        """Number or text, for each feature."""
        kinds = {position: kind_of(self.table.types[position]) for position in self.selection.features}
        for position, kind in kinds.items():
            if kind != "number" and not (kind == "text" and one_hot):
                raise self._no_numbers(position, kind)
        return kinds

    def _no_numbers(self, position: int, kind: str) -> InputError:
        table = self.table
        drop = f"leave it out with --drop {table.option(position)}"
        place, cell = self._first_cell(position)
        if kind == "text":
            return InputError(
                f"{place}: {cell} is not a number: write one 0/1 column a text with --categories one-hot, "
                f"or {drop} (classes are named with --label-column, rows with --index-column)."
            )
        what = "a date or time" if kind == "date" else f"of type {table.types[position]}"
        return InputError(f"{place}: {cell} is {what} and not a number: {drop}, or write a number instead.")

    def _first_cell(self, position: int) -> tuple[str, str]:
        """Place and value of the first cell of a column that is neither empty nor a number."""
        kind = self.table.types[position]
        for part in self.table.parts({position: pa.string() if kind_of(kind) == "date" else kind}):
            for row, cell in enumerate(part.columns[0].to_pylist()):
                if cell is not None and not (isinstance(cell, str) and is_blank_or_number(cell)):
                    return self.table.place(position, part.place(row)), repr(cell)[:60]
        return f"{self.table.name}, {self.table.column(position)}", "its type"

    def _wanted_types(self) -> dict[int, pa.DataType]:
        """Types to read columns with: features first, then classes and names of rows."""
        types = self.table.types
        wanted = {p: pa.large_string() if kind == "text" else types[p] for p, kind in self._kinds.items()}
        label, index = self.selection.label, self.selection.index
        if label is not None:
            wanted[label] = types[label] if pa.types.is_integer(types[label]) else pa.large_string()
        if index is not None:
            is_whole = pa.types.is_integer(types[index]) or index in self.table.whole_columns
            wanted[index] = pa.int64() if is_whole else pa.large_string()
        return wanted

    # --- what must be known before the first row is written ------------------------------------------

    def _look_ahead(self) -> None:
        """Read all rows once where categories or means are asked for."""
        texts = [position for position, kind in self._kinds.items() if kind == "text"]
        if not texts and self._missing != "mean":
            return
        counts: dict[int, Counter[str]] = {position: Counter() for position in texts}
        means = _ColumnMeans(sum(kind == "number" for kind in self._kinds.values()))
        n_rows = 0
        for part in self.table.parts(self._wanted):
            block = self._numbers(part)
            whole = np.ones(len(block), bool)
            if self._missing == "drop":
                whole = self._is_whole(part, block)
            elif self._missing == "mean":
                means.add(block)
            for position, counter in counts.items():
                self._count(counter, self._text(part, position), whole, position)
            n_rows += len(block)
        self.categories = {position: sorted(counter) for position, counter in counts.items()}
        if self._missing == "mean":
            self._means = self._all_means(means, counts)

    def _count(self, counter: Counter[str], texts: pa.Array, whole: np.ndarray, position: int) -> None:
        names, codes = encoded(texts)
        times = np.bincount(codes[whole & (codes >= 0)], minlength=len(names)).tolist()
        counter.update({name: n for name, n in zip(names, times, strict=True) if n})
        if len(counter) > MOST_CATEGORIES:
            table = self.table
            raise InputError(
                f"{table.name}: {table.column(position)} holds more than {MOST_CATEGORIES} different texts, "
                f"which are no categories: leave it out with --drop {table.option(position)}."
            )

    def _all_means(self, means: "_ColumnMeans", counts: dict[int, Counter[str]]) -> np.ndarray:
        """Mean of each column that is written; those of a category are its share."""
        found = iter(means.means().tolist())
        filled: list[float] = []
        for position, kind in self._kinds.items():
            total = 0 if kind == "number" else counts[position].total()
            shares = [counts[position][name] / total for name in self.categories.get(position, [])]
            own = [next(found)] if kind == "number" else shares
            if not own or np.isnan(own[0]):
                raise InputError(
                    f"{self.table.name}: {self.table.column(position)} holds no value, so it has no mean: "
                    f"leave it out with --drop {self.table.option(position)}."
                )
            filled += own
        return np.array(filled)

    # --- the shape of what is written ----------------------------------------------------------------

    @cached_property
    def n_features(self) -> int:
        """Number of columns that are written."""
        return sum(len(self.categories.get(position, (0,))) for position in self._kinds)

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns that are written; a category stands behind the name of its column."""
        if not self.table.has_names:
            return None
        found = []
        for position in self._kinds:
            name = self.table.names[position]
            found += (
                [f"{name}_{category}" for category in self.categories[position]]
                if (position in self.categories)
                else [name]
            )
        return found

    def report(self) -> dict[str, Any]:
        """What each column was taken for, and what became of missing values."""
        names = [name or str(position) for position, name in enumerate(self.table.names)]
        selection = self.selection
        return {
            "header": self.table.has_names,
            "numbers": [names[p] for p, kind in self._kinds.items() if kind == "number"],
            "one_hot": {names[p]: len(found) for p, found in self.categories.items()},
            "classes": None if selection.label is None else names[selection.label],
            "index": None if selection.index is None else names[selection.index],
            "left_out": [names[p] for p in selection.left_out],
            "rows_dropped": self.n_dropped,
            "cells_filled": self.n_filled,
        }

    # --- blocks --------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Rows]:
        """Rows with class labels and row names, some at a time."""
        for part in self.table.parts(self._wanted):
            block = self._block(part)
            kept = self._cleaned(part, block)
            self.n_read += part.n_rows
            if kept is not None:
                block, part = block[kept], _kept(part, kept)
                self.n_dropped += len(kept) - len(block)
            if len(block):
                yield Rows(block, self._labels(part), self._index(part))
        if self.n_dropped and self.n_dropped == self.n_read:
            raise InputError(
                f"{self.table.name}: all {self.n_read} rows have a missing cell: leave out the columns that "
                "are empty (--drop), or give --missing mean."
            )

    def _labels(self, part: Part) -> np.ndarray | None:
        if self._classes is None:
            return None
        return self._classes.numbers(self._column(part, self._classes.position), part.place)

    def _index(self, part: Part) -> np.ndarray | None:
        position = self.selection.index
        if position is None:
            return None
        return row_names(self.table, position, self._column(part, position), part.place)

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes read so far; None where they are whole numbers."""
        return None if self._classes is None else self._classes.names

    def _column(self, part: Part, position: int) -> pa.ChunkedArray:
        return part.columns[list(self._wanted).index(position)]

    def _text(self, part: Part, position: int) -> pa.Array:
        return trimmed(self._column(part, position))

    def _numbers(self, part: Part) -> np.ndarray:
        """The columns of numbers alone."""
        positions = [position for position, kind in self._kinds.items() if kind == "number"]
        block = np.empty((part.n_rows, len(positions)), self._dtype)
        for place, position in enumerate(positions):
            put_column(block[:, place], self._column(part, position))
        return block

    def _block(self, part: Part) -> np.ndarray:
        """All columns that are written; NaN where a value is missing."""
        if not self.categories:
            return self._numbers(part)
        block, place = np.zeros((part.n_rows, self.n_features), self._dtype), 0
        for position, kind in self._kinds.items():
            if kind == "number":
                put_column(block[:, place], self._column(part, position))
                place += 1
                continue
            known = {category: number for number, category in enumerate(self.categories[position])}
            names, codes = encoded(self._text(part, position))
            # A category of rows that are dropped has no column; -1 stands for no text.
            numbers = np.array([known.get(name, -1) for name in names] + [-1], np.int64)[codes]
            rows = np.flatnonzero(numbers >= 0)
            block[rows, place + numbers[rows]] = 1
            block[numbers < 0, place : place + len(known)] = np.nan
            place += len(known)
        return block

    def _is_whole(self, part: Part, numbers: np.ndarray) -> np.ndarray:
        """Rows with no missing feature or class."""
        whole = np.isfinite(numbers).all(axis=1)
        for position, column in zip(self._wanted, part.columns, strict=True):
            if self._kinds.get(position) == "text" or position == self.selection.label:
                whole &= has_value(column)
        return whole

    def _cleaned(self, part: Part, block: np.ndarray) -> np.ndarray | None:
        """Refuse missing values, fill them in place, or tell which rows have none."""
        kept = None
        if not matrix.all_finite(block):
            wrong = ~np.isfinite(block)
            if self._missing == "refuse" or np.isinf(block).any():
                self._check_cells(part, wrong)
            if self._means is not None:
                rows, columns = np.nonzero(wrong)
                block[rows, columns] = self._means[columns]
                self.n_filled += len(rows)
                return None
            kept = ~wrong.any(axis=1)
        if self._missing == "drop" and self.selection.label is not None:
            valid = has_value(self._column(part, self.selection.label))
            kept = valid if kept is None else kept & valid
        return kept

    def _check_cells(self, part: Part, wrong: np.ndarray) -> None:
        """Refuse the first cell that is missing, unless such cells are filled, or too large for the type."""
        row = int(np.argmax(wrong.any(axis=1)))
        rows = [row] if self._missing == "refuse" else np.flatnonzero(wrong.any(axis=1)).tolist()
        for row in rows:
            for position in self._kinds:
                value = self._column(part, position).slice(row, 1).to_pylist()[0]
                place = self.table.place(position, part.place(row))
                if isinstance(value, str) and value.strip():
                    continue
                if value is not None and not isinstance(value, str) and np.isfinite(float(value)):
                    if abs(float(value)) <= float(np.finfo(self._dtype).max):
                        continue
                    raise InputError(
                        f"{place}: {value!r} is too large for {self._dtype}: write float64 (--dtype float64)."
                    )
                if self._missing == "refuse":
                    empty = value is None or isinstance(value, str)
                    what = "no value" if empty else "NaN" if value != value else "infinity"
                    raise InputError(
                        f"{place} holds {what}: correct it, leave such rows out with --missing drop, "
                        "or take the mean of the column with --missing mean."
                    )


def _kept(part: Part, kept: np.ndarray) -> Part:
    """Some rows of a part, named as before."""
    rows = np.flatnonzero(kept)
    columns = [column.filter(pa.array(kept)) for column in part.columns]
    return Part(columns, len(rows), lambda row: part.place(int(rows[row])))


def put_column(out: np.ndarray, column: pa.ChunkedArray) -> None:
    """Write a column of a table into one of a block, some rows at a time, as both fit in the cache then."""
    start = 0
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is looked at in the whole block
        for chunk in number_chunks(column):
            out[start : start + len(chunk)] = chunk
            start += len(chunk)


class _ColumnMeans:
    """Means of the finite numbers of columns, added in blocks of fixed rows as no format changes them."""

    def __init__(self, width: int) -> None:
        self._rest = np.empty((0, width))
        self._total, self._count = np.zeros(width), np.zeros(width)

    def add(self, block: np.ndarray) -> None:
        """Add the next rows."""
        rows = np.concatenate([self._rest, block])
        whole = len(rows) // BLOCK_ROWS * BLOCK_ROWS
        for start in range(0, whole, BLOCK_ROWS):
            self._sum(rows[start : start + BLOCK_ROWS])
        self._rest = rows[whole:].copy()

    def _sum(self, rows: np.ndarray) -> None:
        finite = np.isfinite(rows)
        self._total += np.where(finite, rows, 0).sum(axis=0)
        self._count += finite.sum(axis=0)

    def means(self) -> np.ndarray:
        """Mean of each column; NaN where it has no number."""
        self._sum(self._rest)
        with np.errstate(invalid="ignore"):
            return self._total / self._count
