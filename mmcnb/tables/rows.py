"""Tables as rows of numbers, by the decisions of `mmcnb.tables.columns`."""

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import ClusterWarning, InputError
from mmcnb.samples.base import ChunkedSamples, Samples, in_memory
from mmcnb.samples.encoding import TEXT_OPTIONS, Encoding
from mmcnb.samples.files import file_identity
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.matrix import all_finite, block_dtype, stack
from mmcnb.samples.npy import Rows
from mmcnb.samples.text import plain_name, table_format
from mmcnb.tables import columns
from mmcnb.tables.columns import TEXT, WHOLE, Column, TableOptions, kind_of
from mmcnb.tables.files import Part, Table

MOST_WHOLE_BYTES = (
    256 * 2**20
)  # of files that are read whole; compressed ones may have a quarter of it
Result = TypeVar("Result")


class TypeChangedError(Exception):
    """The first rows did not show the type of a column; the right one is known now: read again."""


class TableRows:
    """Rows of a table as blocks of numbers.

    Parameters
    ----------
    table : Table or FrameTable
    options : TableOptions
    show : callable or None, default=None
        Called once with the listing of the columns, when 100,000 rows are read.

    Attributes
    ----------
    stored_dtype : dtype
        The narrowest type of all features; of text float32, or float64 if float32 would
        merge numbers.
    columns : list of Column
        Features first, in the order in which they are written.
    classes : Classes
        As far as rows are read.
    faults : Faults
        Columns and cells that cannot be taken, as far as rows are read.
    n_dropped, n_filled : int
        Rows left out and cells filled so far, as values are missing.
    """

    is_sparse = False

    def __init__(
        self,
        table: Any,
        options: TableOptions,
        show: Callable[..., object] | None = None,
    ) -> None:
        self.table = table
        self._options = options
        self._show = show
        self._fills = options.missing in ("median", "mean")  # gaps, from their column
        # Columns are asked for, by name or all of a kind.
        self._takes_all = (
            options.columns not in (None, ("auto",)) or options.categories == "one-hot"
        )
        self._gaps = pa.array(options.gaps(table.is_text), TEXT)
        marks = [
            float(mark)
            for mark in options.na_values or ()
            if re.fullmatch(options.number(), mark)
        ]
        self._marks = pa.array(marks, pa.float64()) if marks else None
        self._is_wide = False
        self.n_read = 0
        self._take(columns.choose_columns(table, options))

    def settled(self, read: Callable[[], Result]) -> Result:
        """The result of a function, called when all rows have told the treatment of the columns.

        Both are done again if a type proves wrong meanwhile.

        Raises
        ------
        InputError
            Columns or cells cannot be taken; the message names all of them.
        """
        while True:
            with suppress(TypeChangedError):
                has_texts = any(
                    column.treatment is columns.ONE_HOT for column in self.features
                )
                if self._options.encoding is None and (
                    self._fills or not self._takes_all or has_texts
                ):
                    self._look_ahead()
                return read()
            self._take(columns.choose_columns(self.table, self._options))

    def _take(self, chosen: list[Column]) -> None:
        """Read these columns, and write their features."""
        table = self.table
        self.columns = chosen
        self._used = [
            column for column in chosen if column.treatment is not columns.LEFT_OUT
        ]
        self.features = [column for column in self._used if column.is_feature]
        self._wanted = {column.key: column.type_to_read for column in self._used}
        types = {column.dtype for column in self.features}
        self.stored_dtype = types.pop() if len(types) == 1 else block_dtype(*types)
        if table.is_text:
            has_dates = any(kind_of(column.type) == "date" for column in self.features)
            self.stored_dtype = np.dtype(
                np.float64 if self._is_wide or has_dates else np.float32
            )
        self.dtype = np.dtype(self._options.dtype or block_dtype(self.stored_dtype))

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns that are written; None if the table has no header."""
        return self.encoding.feature_names if self.table.has_names else None

    @property
    def encoding(self) -> Encoding:
        """All columns but classes and names of rows; chosen features keep their order."""
        if self._options.encoding is not None:
            return self._options.encoding
        may_be = [
            one
            for one in self.columns
            if one.treatment not in (columns.CLASSES, columns.ROW_NAMES)
        ]
        if not self._options.names_columns:
            may_be.sort(key=lambda one: one.position)
        encoded = tuple(one.encoded for one in may_be)
        options = tuple((name, getattr(self._options, name)) for name in TEXT_OPTIONS)
        return Encoding(encoded, options, self.table.has_names)

    @property
    def notes(self) -> list[str]:
        """Sentences about cells that were changed: gaps that are filled, and unknown texts."""
        filled = [f"{one.gaps:,} in {one.name!r}" for one in self.features if one.gaps]
        unknown = [
            f"{one.unknown:,} in {one.name!r}" for one in self.features if one.unknown
        ]
        found = {
            "gaps were filled from their column": filled,
            "texts that no row of the fit had are 0 in all categories": unknown,
        }
        if self._options.missing == "drop" and self.n_dropped:
            found["rows with missing cells were left out and have no number"] = [
                f"{self.n_dropped:,}"
            ]
        return [
            f"{self.table.name}: {done}: {', '.join(some[:10])}."
            for done, some in found.items()
            if some
        ]

    def report(self) -> dict[str, Any]:
        """A listing of all columns, and counts of missing values."""
        changed = {"rows_dropped": self.n_dropped, "cells_filled": self.n_filled}
        return {"header": self.table.has_names, "columns": self._listing()} | changed

    def _listing(self) -> list[dict[str, Any]]:
        return [
            column.listing()
            for column in sorted(self.columns, key=lambda column: column.position)
        ]

    # --- all rows, part by part ---

    def blocks(self) -> Iterator[Rows]:
        """Rows with class labels and row names, some at a time.

        Raises
        ------
        InputError
            Columns or cells cannot be taken; the message names all of them.
        TypeChangedError
            A column is of another type than was told: `settled` reads all rows again.
        """
        for part, values in self._pass():
            rows = self._rows(part, values)
            self.n_dropped += part.n_rows - len(rows.block)
            if not self.faults and len(rows.block):
                yield rows
        self.faults.check()
        if self.n_dropped and self.n_dropped == self.n_read:
            remedy = "leave out the columns that are empty (--drop), or give --missing median"
            raise InputError(
                f"{self.table.name}: all {self.n_read} rows have a missing cell: {remedy}."
            )

    def group(self, number: int) -> Any:
        """A group of rows that is read by itself."""
        parts = self.table.parts(self._wanted, number)
        blocks = [self._rows(part, self._values(part)).block for part in parts]
        self.faults.check()
        if sum(map(len, blocks)) != (self.table.lengths or [])[number]:
            fault = f"{self.table.name} has other rows than when it was opened"
            raise InputError(f"{fault}; run this again once nothing writes there.")
        return blocks[0] if len(blocks) == 1 else stack(blocks)

    def check_first_rows(self) -> None:
        """Refuse columns that cannot be taken, by the first cells that show why."""
        next(self._pass(), None)
        self.faults.check()

    def _pass(self) -> Iterator[tuple[Part, list[pa.Array]]]:
        """All parts with the values of their columns; faults are noted."""
        self.faults, self.classes = columns.Faults(), columns.Classes()
        self.n_read = self.n_dropped = self.n_filled = 0
        for column in self._used:
            column.missing, column.unknown, column.distinct = (
                0,
                0,
                pa.array([], column.type_to_read),
            )
        for part in self.table.parts(self._wanted):
            for line in part.ragged:
                self.faults.add(
                    "width", f"{self.table.name}, {line}", "correct or remove the line"
                )
            if not part.n_rows:
                continue
            values = self._values(part)
            for column, found in zip(self._used, values, strict=True):
                column.note(found)
            yield part, values
            self.n_read += part.n_rows
            if self._show and self.n_read >= 100_000:
                self._show(self._listing())
                self._show = None

    def _values(self, part: Part) -> list[pa.Array]:
        """Columns in the types that they are to have; null if a value is missing."""
        found = []
        for column in self._used:
            values = part.columns[column.key]
            is_feature = column.is_feature
            if values.type == TEXT:
                values = columns.trimmed(
                    values, self._gaps if is_feature else pa.array([""], TEXT)
                )
                if (
                    column.type_to_read != TEXT
                    and column.treatment is not columns.CLASSES
                ):
                    values = self._parsed(column, values, part)
            elif (
                is_feature
                and self._marks is not None
                and kind_of(values.type) == "number"
            ):
                values = pc.if_else(
                    pc.is_in(values.cast(pa.float64()), self._marks), None, values
                )
            if pa.types.is_float32(values.type) or pa.types.is_float64(values.type):
                values = pc.if_else(pc.is_nan(values), None, values)
            if (
                is_feature
                and self.table.is_text
                and columns.float32_merges(values, is_first=not self.n_read)
            ):
                self._take_float64()
            is_told = (kind_of(column.type), column.position) in self.faults
            if column.treatment is columns.REFUSED and not is_told:
                self._refuse(column, values, part)
            found.append(values)
        return found

    def _parsed(self, column: Column, texts: pa.Array, part: Part) -> pa.Array:
        """Texts as the numbers or flags that they should be; 0 for those at fault."""
        kind = column.type_to_read
        if column.treatment is columns.ROW_NAMES or kind_of(kind) == "date":
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                if column.treatment is columns.ROW_NAMES:
                    self._take_type(column, TEXT)
                wrong = pa.array([_is_no(text, kind) for text in texts])
            self._fault("date cell", column, part, _rows_of(wrong), values=texts)
            return pc.if_else(wrong, None, texts).cast(kind)
        values, wrong = self._options.parsed(texts, kind)
        rows = _rows_of(wrong)
        if not len(rows):
            if (
                pa.types.is_integer(kind)
                and not pc.all(pc.match_substring_regex(texts, WHOLE)).as_py()
            ):
                self._take_type(column, pa.float64())
            return values
        if pa.types.is_null(column.type):
            self._take_type(column, TEXT)
        hint = self._options.number_hint(texts.filter(wrong))
        fault = "flag cell" if kind == pa.bool_() else "cell"
        self._fault(fault, column, part, rows, values=texts, hint=hint)
        return pc.if_else(wrong, pa.scalar(0).cast(values.type), values)

    def _take_type(self, column: Column, kind: pa.DataType) -> None:
        self.table.types[column.position] = kind
        raise TypeChangedError

    def _take_float64(self) -> None:
        if self.table.is_text and self._options.dtype is None and not self._is_wide:
            self._is_wide = True
            raise TypeChangedError

    def _rows(self, part: Part, values: list[pa.Array]) -> Rows:
        """Numbers of the rows that are written, their labels and names."""
        block = self._narrow(values)
        kept = self._kept(part, values, block)
        for k, column in enumerate(self.features):
            if column.fill is not None:
                rows = np.flatnonzero(np.isnan(block[:, k]))
                block[rows, k] = column.fill
                self.n_filled += len(rows)
                column.gaps += (
                    len(rows) if self._options.encoding else 0
                )  # others were looked at ahead
        if not kept.all():
            some = np.flatnonzero(kept)
            block = block[some]
            place = part.place
            part = part._replace(place=lambda row: place(int(some[row])))
            values = [one.take(pa.array(some)) for one in values]
        labels = names = None
        for column, one in zip(self._used, values, strict=True):
            if column.treatment is columns.CLASSES:
                labels, wrong = self.classes.numbers(one)
                if wrong >= 0:
                    self._fault("class", column, part, [wrong], values=one)
            elif column.treatment is columns.ROW_NAMES and pa.types.is_integer(
                one.type
            ):
                self._fault("row name", column, part, _rows_of(one.is_null()))
                names = one.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            elif column.treatment is columns.ROW_NAMES:
                names = np.array(one.fill_null("").to_pylist(), np.dtypes.StringDType())
        return Rows(self._widened(block), labels, names)

    def _narrow(self, values: list[pa.Array]) -> np.ndarray:
        """One column a feature, of categories their numbers; NaN if a value is missing."""
        features = zip(self.features, values, strict=False)  # they come first
        numbers = {
            column.key: column.treatment.encode(column, one) for column, one in features
        }
        block = (
            pa.record_batch(numbers)
            .to_tensor(null_to_nan=True, row_major=True)
            .to_numpy()
        )
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # infinity is looked at in the whole block
            return block.astype(self.dtype, copy=False)

    def _widened(self, block: np.ndarray) -> np.ndarray:
        """Columns of 0 and 1 in place of the numbers of categories."""
        if all(column.categories is None for column in self.features):
            return block
        parts = [block[:, k : k + 1] for k in range(len(self.features))]
        for k, column in enumerate(self.features):
            if (
                column.categories is not None
            ):  # of a text that no row of the fit had, all are 0
                column.unknown += int(np.isnan(parts[k]).sum())
                parts[k] = parts[k] == np.arange(len(column.categories))
        return np.concatenate(parts, axis=1, dtype=self.dtype)

    # --- identifiers, categories and medians, before the first row is written ---

    def _look_ahead(self) -> None:
        """Find the categories and the median of each column, and columns that say nothing."""
        is_text = [column.treatment is columns.ONE_HOT for column in self.features]
        categories = {k: set[str]() for k in np.flatnonzero(is_text).tolist()}
        thinned = _ThinnedRows(len(self.features))
        gaps = np.zeros(len(self.features), int)
        for part, values in self._pass():
            block = self._narrow(values)
            thinned.add(block, self.n_read)
            gaps += np.isnan(block).sum(axis=0)
            kept = pa.array(self._kept(part, values, block))
            for k, known in categories.items():
                if len(known) <= columns.MOST_DISTINCT:
                    texts = values[k].filter(kept)
                    texts = (
                        texts.fill_null(columns.GAP)
                        if self._fills
                        else texts.drop_null()
                    )
                    known.update(pc.unique(texts).to_pylist())
        if not self.n_read:
            raise InputError(f"{self.table.name} has no rows: give it at least one.")
        for k, column in enumerate(self.features):
            if k in categories:
                self._take_categories(column, categories[k])
                continue
            if self._fills and np.isnan(fill := thinned.fill(k, self._options.missing)):
                self._leave_out(column, "it is empty", "no value")
            elif self._fills:
                column.fill, column.gaps = fill, int(gaps[k])
            if kind_of(column.type) == "number" and columns.names_rows(
                column.name, *thinned.column(k)
            ):
                self._leave_out(column, columns.NUMBERS_ROWS)
        self.faults.check()
        if all(
            column.why for column in self.features
        ):  # numbers of rows are better than nothing
            for column in self.features:
                column.why = column.why.replace(columns.NUMBERS_ROWS, "")
        for column in self.features:
            column.treatment = columns.LEFT_OUT if column.why else column.treatment
        columns.check_features(self.table, self.columns)
        self._take(self.columns)

    def _take_categories(self, column: Column, texts: set[str]) -> None:
        column.categories = pa.array(sorted(texts), TEXT)
        kind = columns.kind_of_texts(
            column.categories.filter(pc.not_equal(column.categories, columns.GAP))
        )
        if len(texts) > columns.MOST_DISTINCT:
            self._leave_out(
                column, f"over {columns.MOST_DISTINCT:,} texts", "categories"
            )
        elif self.table.is_text and kind is not None:
            self._take_type(column, kind)
        elif len(texts) > min(columns.MOST_CATEGORIES, max(10, self.n_read // 100)):
            self._leave_out(column, f"{len(texts)} texts in {self.n_read:,} rows")

    def _leave_out(self, column: Column, why: str, fault: str | None = None) -> None:
        """Leave out a column that says nothing; one that is asked for may be a fault."""
        if not self._takes_all:
            column.why = why
        elif fault is not None:
            self._fault(fault, column)

    # --- faults ---

    def _fault(
        self,
        kind: str,
        column: Column,
        part: Any = None,
        rows: Any = (None,),
        **said: Any,
    ) -> None:
        """Note a fault of a column or, at the first of its rows, of cells; ``values`` has all cells."""
        if not len(rows):
            return
        table = self.table
        position = column.position
        where = [
            table.name,
            *([part.place(int(rows[0]))] if part else []),
            table.column(position),
        ]
        if "values" in said:
            cell = said["values"][int(rows[0])]
            said["cell"] = repr(str(cell) if kind == "date" else cell.as_py())[:60]
        said["type"] = self.dtype if kind == "large" else column.type
        said["drop"] = f" with --drop {table.option(position)}" if table.paths else ""
        fault, remedy = (text.format(**said) for text in columns.FAULTS[kind])
        if self._options.encoding is not None:
            remedy = "correct it, or leave its row out"
        elif not table.paths:  # options are of files
            remedy = re.sub(
                r" with --\w.*?(?=[,;] | \(|$)| --\S+ \S+$| \(.*\)", "", remedy
            )
        self.faults.add(
            (kind, position), f"{', '.join(where)}: {fault}", remedy, len(rows)
        )

    def _refuse(self, column: Column, values: pa.Array, part: Part) -> None:
        """Name the first cell that is no number."""
        kind = kind_of(column.type)
        rows = _rows_of(values.is_valid())
        if kind == "text":
            is_number = pc.match_substring_regex(values, self._options.number())
            others = _rows_of(pc.invert(is_number))
            rows = others if self.table.is_text or len(others) else rows
        self._fault(kind, column, part, rows[:1], values=values)

    def _kept(
        self, part: Part, values: list[pa.Array], block: np.ndarray
    ) -> np.ndarray:
        """Which rows are written; missing values that are not dropped or filled are faults."""
        kept = np.ones(part.n_rows, bool)
        missing = self._options.missing
        gaps = np.zeros((1, 0), bool) if all_finite(block) else ~np.isfinite(block)
        for k in np.flatnonzero(gaps.any(axis=0)).tolist():
            column = self.features[k]
            self._check_large(k, part, values[k], block[:, k])
            if missing == "drop":
                kept &= ~gaps[:, k]
            elif missing == "refuse":
                self._refuse_gaps(column, part, np.flatnonzero(gaps[:, k]))
            else:
                self._fault(
                    "infinite", column, part, np.flatnonzero(np.isinf(block[:, k]))
                )
        for column, one in zip(self._used, values, strict=True):
            if column.treatment is columns.CLASSES and one.null_count:
                if missing != "drop":
                    self._fault("no class", column, part, _rows_of(one.is_null()))
                kept &= one.is_valid().to_numpy(zero_copy_only=False)
        return kept

    def _check_large(
        self, k: int, part: Part, values: pa.Array, numbers: np.ndarray
    ) -> None:
        """Numbers beyond float32 need float64."""
        if np.isinf(numbers).any():
            exact = values.cast(pa.float64())
            rows = np.flatnonzero(
                np.isinf(numbers) & np.isfinite(exact.to_numpy(zero_copy_only=False))
            )
            if len(rows):
                self._take_float64()
            self._fault("large", self.features[k], part, rows, values=exact)

    def _refuse_gaps(self, column: Column, part: Part, rows: np.ndarray) -> None:
        cell = part.columns[column.key][int(rows[0])].as_py()
        hint = ""
        said = "has no value"
        if isinstance(cell, float):
            said = "is NaN" if cell != cell else "is infinite"
        elif isinstance(cell, str) and not cell.isspace() and cell:
            said = f"{cell!r} is a mark of missing values"
            hint = ", or take it as a text with --na-values ''"
        self._fault("gap", column, part, rows, cell=said, hint=hint)


def _rows_of(mask: pa.Array) -> np.ndarray:
    """Numbers of the rows that are true."""
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))


def _is_no(text: pa.Scalar, kind: pa.DataType) -> bool:
    """Whether a text is no value of a type."""
    try:
        text.cast(kind)
    except pa.ArrowInvalid:
        return True
    return False


class _ThinnedRows:
    """Rows at equal distances, at least 250 if there are so many, which do not depend on parts."""

    most_numbers = 2**20

    def __init__(self, width: int) -> None:
        self._parts, self._step, self._most = (
            [np.empty((0, width))],
            1,
            max(250, self.most_numbers // width),
        )

    def add(self, block: np.ndarray, start: int) -> None:
        """Add the next rows; ``start`` is the number of the first."""
        self._parts.append(
            block[-start % self._step :: self._step].astype(np.float64)
        )  # no view of all rows
        while sum(map(len, self._parts)) > self._most:
            self._parts = [np.concatenate(self._parts)[::2]]
            self._step *= 2

    def column(self, k: int) -> tuple[np.ndarray, int]:
        """Values of a column, and the distance of their rows."""
        return np.concatenate([part[:, k] for part in self._parts]), self._step

    def fill(self, k: int, missing: str) -> float:
        """The lower median or the mean of a column, NaN if it has no numbers."""
        values = np.sort(self.column(k)[0])  # NaN comes last
        count = np.isfinite(values).sum()
        middle = values[:count] if missing == "mean" else values[(count - 1) // 2 :][:1]
        return float(middle.mean()) if count else np.nan


class TableSamples(ChunkedSamples):
    """Rows of Parquet or Arrow files, read by row groups and record batches as they are needed."""

    is_reopenable = True

    def __init__(self, path: Path, rows: TableRows, options: TableOptions) -> None:
        lengths = rows.table.lengths or []
        self.table_rows, self._options, self._said = rows, options, set[str]()
        shape = sum(lengths), len(rows.encoding.feature_names)
        self._describe(str(path), shape, options.dtype or rows.stored_dtype)
        self.feature_names = rows.feature_names
        self.encoding = rows.encoding
        self.notes = (
            [] if options.encoding else rows.notes
        )  # of other rows than the fit's as they are read
        self.path = str(path.absolute())
        self.opening = (
            open_table,
            self.path,
            replace(options, encoding=rows.encoding),
        )  # without a look ahead
        self._set_rows(GroupedRows(lengths, self._read_group), max(lengths))

    def _read_group(self, number: int) -> np.ndarray:
        with _worded(self.name, self._options):
            block = self.table_rows.group(number)
        for note in self.table_rows.notes if self._options.encoding else ():
            if (kind := note.rpartition(": ")[0]) not in self._said:
                self._said.add(kind)
                sentence = f"{note.removesuffix('.')} as far as rows are read."
                warnings.warn(sentence, ClusterWarning, stacklevel=2)
        return block

    def identity(self) -> str:
        """A hash of sizes and times of the files."""
        return "".join(file_identity(path) for path in self.table_rows.table.paths)


def open_table(
    path: str | os.PathLike[str], options: TableOptions | None = None
) -> Samples:
    """Open the rows of a table; row groups are read as they are needed, and text whole.

    Raises
    ------
    InputError
        A column is not numbers, a cell is missing, or the file cannot be read or is too
        large.
    """
    path = Path(path)
    options = options or TableOptions()
    if table_format(path) is None:
        forms = "a .csv, .tsv, .parquet, .arrow or .feather file, or a folder of these"
        raise InputError(f"{path} is no table: give {forms}.")
    with _worded(path, options):
        table = Table(path, options)
        is_whole = table.lengths is None or options.missing == "drop"
        sizes = {one: one.stat().st_size for one in table.paths}
        packed = [
            size for one, size in sizes.items() if plain_name(one) != one.name.lower()
        ]
        if is_whole and sum(sizes.values()) + 3 * sum(packed) > MOST_WHOLE_BYTES:
            remedy = f"make a store with `mmcnb convert {path} OUT.zarr`"
            raise InputError(f"{path} is too large to be read whole: {remedy}.")
        rows = TableRows(table, options)
        if is_whole:
            return whole_table(rows)
        rows.settled(rows.check_first_rows)
        return TableSamples(path, rows, options)


def read_table(
    path: str | os.PathLike[str],
    columns: Any = None,
    drop: Any = None,
    *,
    label_column: str | int | None = None,
    index_column: str | int | None = None,
    header: str | None = None,
    na_values: Any = None,
    thousands: str | None = None,
    decimal: str = ".",
    delimiter: str | None = None,
    missing: str = "median",
    categories: str = "auto",
    dates: str = "epoch",
    dtype: Any = None,
) -> Samples:
    """Read a table as rows of numbers.

    Parameters
    ----------
    path : path
        CSV text (plain, .gz, .bz2, .xz or .zst), Parquet, Arrow or Feather; or a folder
        of such files, whose columns are joined by name. A folder named ``year=2024``
        adds a column ``year``.
    columns : {None, "all"} or list of str or int, default=None
        Columns to take as features, in this order, by name or by number from 0. One
        text may contain several names between commas. None leaves out texts of many
        values, numbers of rows and empty columns, "all" takes these too.
    drop : list of str or int, default=None
        Columns to leave out.
    label_column, index_column : str or int, default=None
        Columns of classes and of row names, which are no features;
        `mmcnb.stores.convert` keeps their values. None leaves out the index that pandas
        has recorded in a Parquet or Arrow file.
    header : {None, "yes", "no"}, default=None
        Whether the first line of CSV text names the columns; None tells it from its
        cells.
    na_values : list of str, default=None
        Marks of missing values beside the usual ones, such as NA, ?, - and None; ``""``
        is the empty cell alone.
    thousands : str, default=None
        Mark between thousands in CSV text.
    decimal : {".", ","}, default="."
        Decimal point of CSV text.
    delimiter : str, default=None
        Mark between cells of CSV text, a space for any number of them. None tells it
        from the first lines.
    missing : {"median", "mean", "drop", "refuse"}, default="median"
        Treatment of missing cells: the median or mean of the column, for which all rows
        are read twice; rows left out; or an error. A missing text is a category of its
        own. Infinite cells are no gaps.
    categories : {"auto", "one-hot", "refuse"}, default="auto"
        A column of text becomes one column of 0 and 1 for each text, in sorted order.
        "auto" leaves out texts of more than 30 values, or of more than 10 in fewer than
        100 rows a value. "refuse" takes no text.
    dates : {"epoch", "drop", "refuse"}, default="epoch"
        "epoch" makes dates and times seconds since 1970, "drop" leaves them out;
        "refuse" takes none.
    dtype : {None, "float32", "float64"}, default=None
        None is float32 for CSV text, or float64 if float32 would merge its numbers, and
        for others as the columns are.

    Returns
    -------
    Samples
        Parquet and Arrow are read as rows are needed; text, Arrow streams and rows with
        ``missing="drop"`` are in memory.

    Raises
    ------
    InputError
        Columns or cells cannot be taken; the message names all of them, with options
        that help.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mmcnb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder, "tiny.csv")
    ...     _ = table.write_text("width,height,kind\\n1,2.5,a\\n3,4,b\\n")
    ...     rows = mmcnb.read_table(table, drop="kind")
    >>> rows.feature_names, rows.block(0, 2).tolist()
    (['width', 'height'], [[1.0, 2.5], [3.0, 4.0]])
    """
    of_columns = [columns, drop, label_column, index_column, header, na_values]
    of_cells: list[Any] = [
        thousands,
        decimal,
        delimiter,
        missing,
        categories,
        dates,
        dtype,
    ]
    return open_table(path, TableOptions(*of_columns, *of_cells))


def whole_table(rows: TableRows) -> Samples:
    """All rows of a table, in memory."""
    blocks = rows.settled(lambda: [one.block for one in rows.blocks()])
    if not blocks:
        raise InputError(f"{rows.table.name} has no rows: give it at least one.")
    samples = in_memory(stack(blocks), rows.table.name)
    samples.feature_names = rows.feature_names
    samples.encoding = rows.encoding
    samples.notes = rows.notes
    return samples


def describe_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a table with all options at their defaults, and list its columns.

    Returns
    -------
    dict
        ``table``, ``n_samples``, ``header``, ``columns`` and ``faults``, a text or
        None.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    options = TableOptions()
    rows = TableRows(Table(Path(path), options), options)
    found = {"table": str(path), "faults": None}
    try:
        with _worded(path, options):
            rows.settled(lambda: None)
    except InputError as error:
        found["faults"] = str(error)
    return rows.report() | found | {"n_samples": rows.n_read}


@contextmanager
def _worded(path: Any, options: TableOptions) -> Iterator[None]:
    """Say whose options a message names, if it was none of these that opened the file."""
    try:
        yield
    except InputError as error:
        sentence = str(error).removesuffix(".")
        known = TableOptions(), columns.NUMBERS_ALONE
        if "--" not in sentence or "`mmcnb" in sentence or options not in known:
            raise
        able = f"`mmcnb convert {path} OUT.zarr` and `mmcnb.read_table`"
        raise InputError(f"{sentence}; {able} take these options.") from error
