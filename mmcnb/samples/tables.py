"""Tables as rows of numbers: what `mmcnb.samples.columns` decides is done to the parts of a table."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import InputError
from mmcnb.samples._base import BLOCK_ROWS, ArraySamples, ChunkedSamples, Samples, open_again
from mmcnb.samples._files import file_identity
from mmcnb.samples._groups import GroupedRows
from mmcnb.samples._npy import Rows
from mmcnb.samples._stored import edge_bytes
from mmcnb.samples._table_files import FLOAT32_WHOLE, Part, Table, TypeChangedError
from mmcnb.samples._text import plain_name, table_format
from mmcnb.samples.columns import (
    FAULTS,
    GAPS,
    MOST_DISTINCT,
    REFUSED,
    TEXT,
    WHOLE,
    Classes,
    Column,
    Faults,
    TableOptions,
    choose_columns,
    common_dtype,
    kind_of,
    kind_of_texts,
    largest,
    number_hint,
    parsed,
    trimmed,
)
from mmcnb.samples.matrix import all_finite, block_dtype, stack

MOST_WHOLE_BYTES = 256 * 2**20  # of files that are read whole; compressed ones may have a quarter of it
LISTED_ROWS = 100_000  # after them the columns are listed for the first time


class TableRows:
    """Rows of a table as blocks of numbers.

    Parameters
    ----------
    table : Table
    options : TableOptions
    show : callable or None, default=None
        Called once with the listing of the columns, when 100,000 rows are read.

    Attributes
    ----------
    stored_dtype : dtype
        The narrowest type of all features; of text float32, or float64 if float32 would merge numbers.
    columns : list of Column
        Features first, in the order in which they are written.
    faults : Faults
        What cannot be taken, as far as rows are read.
    n_dropped, n_filled : int
        Rows left out and cells filled so far, as values are missing.
    """

    is_sparse = False

    def __init__(
        self,
        table: Table,
        options: TableOptions,
        show: Callable[[list[dict[str, Any]]], object] | None = None,
    ) -> None:
        self.table, self._options, self._show = table, options, show
        self._gaps = pa.array(options.gaps(GAPS if table.is_text else ()), TEXT)
        self._is_wide = False
        self._fixed: set[str] = set()  # columns whose type is not told from their cells once more
        self._settle()

    def begin_again(self, change: TypeChangedError) -> None:
        """Take the types that proved to be right."""
        self._is_wide |= not change.types
        for key, kind in change.types.items():
            self.table.types[self.table.keys.index(key)] = kind
            self._fixed.add(key)
        self._settle()

    def _settle(self) -> None:
        """Decide what becomes of the columns by the types that are known now."""
        table, options = self.table, self._options
        self.columns = choose_columns(table, table.types, options)
        self._used = [column for column in self.columns if column.role != "left out"]
        self.features = [column for column in self._used if column.role == "feature"]
        self._wanted = {self._key(column): column.type_to_read for column in self._used}
        self.stored_dtype = common_dtype(self.features)
        if table.is_text:
            wide = any(self._key(one) in table.wide or kind_of(one.type) == "date" for one in self.features)
            self.stored_dtype = np.dtype(np.float64 if self._is_wide or wide else np.float32)
        elif options.missing == "mean":  # of whole numbers it is none
            self.stored_dtype = block_dtype(self.stored_dtype)
        self.dtype = np.dtype(options.dtype or block_dtype(self.stored_dtype))
        self._texts = [k for k, column in enumerate(self.features) if column.is_one_hot]
        self._begin()
        if self._texts or options.missing == "mean":
            try:
                self._look_ahead()
            except TypeChangedError as change:
                self.begin_again(change)

    def _key(self, column: Column) -> str:
        return self.table.keys[column.position]

    @property
    def n_features(self) -> int:
        """Number of columns that are written."""
        return sum(len(column.feature_names) for column in self.features)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns that are written; None if the table has no header."""
        names = [name for column in self.features for name in column.feature_names]
        return names if self.table.has_names else None

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes read so far; None if they are whole numbers."""
        return self._classes.names

    def report(self) -> dict[str, Any]:
        """A listing of all columns, and what became of missing values."""
        return {
            "header": self.table.has_names,
            "columns": self._listing(),
            "rows_dropped": self.n_dropped,
            "cells_filled": self.n_filled,
        }

    def _listing(self) -> list[dict[str, Any]]:
        return [column.listing() for column in sorted(self.columns, key=lambda column: column.position)]

    # --- all rows, part by part ---

    def blocks(self) -> Iterator[Rows]:
        """Rows with class labels and row names, some at a time.

        Raises
        ------
        InputError
            Columns or cells cannot be taken; the message names all of them.
        TypeChangedError
            A column is of another type than was told: ``begin_again``, and read all rows again.
        """
        for part, values in self._pass():
            rows = self._rows(part, values)
            self.n_dropped += part.n_rows - len(rows.block)
            if not self.faults and len(rows.block):
                yield rows
        self.faults.check()
        if self.n_dropped and self.n_dropped == self.n_read:
            raise InputError(
                f"{self.table.name}: all {self.n_read} rows have a missing cell: leave out the columns that "
                "are empty (--drop), or give --missing mean."
            )

    def group(self, number: int) -> Any:
        """A group of rows that is read by itself."""
        blocks = []
        for part in self.table.parts(self._wanted, number):
            blocks.append(self._rows(part, self._values(part)).block)
            self.faults.check()
        return blocks[0] if len(blocks) == 1 else stack(blocks)

    def _begin(self) -> None:
        """Forget what was counted; note columns that cannot be taken, by the first cells that show why."""
        self.faults, self._classes = Faults(), Classes()
        self.n_read = self.n_dropped = self.n_filled = 0
        for column in self._used:
            column.missing, column.distinct = 0, pa.array([], column.type_to_read)
        refused = [column for column in self.features if column.treatment is REFUSED]
        if refused:
            part = next(self.table.parts({self._key(one): one.type_to_read for one in refused}))
            for column in refused:
                self._refuse(column, part)

    def _pass(self) -> Iterator[tuple[Part, list[pa.Array]]]:
        """All parts with the values of their columns; what is at fault is noted."""
        self._begin()
        for part in self.table.parts(self._wanted):
            if part.ragged is not None:
                count, line = part.ragged
                self.faults.add("width", f"{self.table.name}, {line}", "correct or remove the line", count)
            if not part.n_rows:
                continue
            values = self._values(part)
            for column, found in zip(self._used, values, strict=True):
                column.note(found)
            yield part, values
            self.n_read += part.n_rows
            if self._show and self.n_read >= LISTED_ROWS:
                self._show(self._listing())
                self._show = None

    def _values(self, part: Part) -> list[pa.Array]:
        """Columns in the types that they are to have; null for what is missing."""
        found = []
        for column in self._used:
            values, is_feature = part.columns[self._key(column)], column.role == "feature"
            if values.type == TEXT:
                values = trimmed(values, self._gaps if is_feature else pa.array([""], TEXT))
                if column.type_to_read != TEXT and column.role != "label":
                    values = self._parsed(column, values, part)
            elif is_feature and pa.types.is_integer(values.type):
                self._widen_if(largest(values) > FLOAT32_WHOLE)
            found.append(values)
        return found

    def _widen_if(self, is_needed: bool) -> None:
        if is_needed and self.table.is_text and self._options.dtype is None and self.dtype == np.float32:
            raise TypeChangedError({})

    def _rows(self, part: Part, values: list[pa.Array]) -> Rows:
        """Numbers of the rows that are written, their labels and names."""
        block = self._narrow(values)
        kept = self._kept(part, values, block)
        if self._options.missing == "mean":
            rows, columns = np.nonzero(~np.isfinite(block))
            block[rows, columns] = self._means[columns]  # NaN for texts, which get shares
            self.n_filled += len(rows)
        if not kept.all():
            some = np.flatnonzero(kept)
            block, place = block[some], part.place
            part = part._replace(place=lambda row: place(int(some[row])))
            values = [one.take(pa.array(some)) for one in values]
        labels = names = None
        for column, one in zip(self._used, values, strict=True):
            if column.role == "label":
                labels, wrong = self._classes.numbers(one)
                if wrong >= 0:
                    self._fault("class", column, part, [wrong], one[wrong].as_py())
            if column.role == "index":
                names = self._names(column, one, part)
        return Rows(self._widened(block), labels, names)

    def _names(self, column: Column, values: pa.Array, part: Part) -> np.ndarray:
        if not pa.types.is_integer(values.type):
            return np.array(values.fill_null("").to_pylist(), np.dtypes.StringDType())
        self._fault("row name", column, part, _rows_of(values.is_null()))
        return values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)

    def _narrow(self, values: list[pa.Array]) -> np.ndarray:
        """One column a feature, of categories their numbers; NaN if a value is missing."""
        block = np.zeros((len(values[0]), len(self.features)), self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is looked at in the whole block
            for k, column in enumerate(self.features):
                if column.treatment.encode is not None:
                    block[:, k] = column.treatment.encode(column, values[k])
        return block

    def _widened(self, block: np.ndarray) -> np.ndarray:
        """Columns of 0 and 1 in place of the numbers of categories."""
        parts = []
        for k, column in enumerate(self.features if self._texts else ()):
            part = block[:, k : k + 1]
            if column.shares is not None:
                part = np.where(np.isnan(part), column.shares, part == np.arange(len(column.shares)))
            parts.append(part)
        return np.concatenate(parts, axis=1, dtype=self.dtype) if parts else block

    # --- what must be known before the first row is written ---

    def _look_ahead(self) -> None:
        """Find the categories, and the mean of each column."""
        numbers = [k for k in range(len(self.features)) if k not in self._texts]
        counts: dict[int, Counter[str]] = {k: Counter() for k in self._texts}
        sums = _ColumnSums(len(numbers))
        for part, values in self._pass():
            block = self._narrow(values)
            kept = self._kept(part, values, block)
            sums.add(block[:, numbers])
            for k, counter in counts.items():
                for one in pc.value_counts(values[k].filter(pa.array(kept)).drop_null()).to_pylist():
                    counter[one["values"]] += one["counts"]
                if len(counter) > MOST_DISTINCT:
                    self._fault("categories", self.features[k])
                    counter.clear()
        self.faults.check()
        self._means = np.full(len(self.features), np.nan)
        self._means[numbers] = sums.means()
        for k, column in enumerate(self.features):
            if self._options.missing == "mean" and not (
                counts[k] if k in counts else self._means[k] == self._means[k]
            ):
                self._fault("no mean", column)
        self.faults.check()
        for k, counter in counts.items():
            self._take_categories(self.features[k], counter)

    def _take_categories(self, column: Column, counter: Counter[str]) -> None:
        column.categories = pa.array(sorted(counter), TEXT)
        kind = kind_of_texts(column.categories) if self.table.is_text else None
        if kind is not None and self._key(column) not in self._fixed:
            raise TypeChangedError({self._key(column): kind})
        column.shares = np.array([counter[text] for text in sorted(counter)]) / max(1, counter.total())

    # --- what cannot be taken ---

    def _fault(
        self,
        kind: str,
        column: Column,
        part: Part | None = None,
        rows: Any = (None,),
        cell: Any = None,
        hint: str = "",
    ) -> None:
        """Note a fault of a column or, at the first of its rows, of cells."""
        if not len(rows):
            return
        table, position = self.table, column.position
        where = [table.name, *([part.place(int(rows[0]))] if part else []), table.column(position)]
        said = {
            "cell": cell if kind == "gap" else repr(cell)[:60],
            "type": self.dtype if kind == "large" else column.type,
            "option": table.option(position),
            "hint": hint,
        }
        fault, remedy = (text.format(**said) for text in FAULTS[kind])
        self.faults.add((kind, position), f"{', '.join(where)}: {fault}", remedy, len(rows))

    def _refuse(self, column: Column, part: Part) -> None:
        values, kind = part.columns[self._key(column)], kind_of(column.type)
        shows = values.is_valid()
        if kind == "text":
            is_number = pc.match_substring_regex(pc.utf8_trim_whitespace(values), self._options.number())
            shows = pc.and_(pc.and_(shows, pc.invert(is_number)), pc.not_equal(values, ""))
        rows = _rows_of(shows)[:1]
        if len(rows):
            cell = values[int(rows[0])]
            self._fault(kind, column, part, rows, str(cell) if kind == "date" else cell.as_py())
        else:
            self._fault(kind, column, cell=column.type)

    def _parsed(self, column: Column, texts: pa.Array, part: Part) -> pa.Array:
        """Texts as the numbers or flags that they should be; 0 for those at fault."""
        values, wrong = parsed(texts, column.type_to_read, self._options)
        key, rows = self._key(column), _rows_of(wrong)
        if not len(rows):
            is_whole = pa.types.is_integer(column.type_to_read)
            if is_whole and not pc.all(pc.match_substring_regex(texts, WHOLE)).as_py():
                raise TypeChangedError({key: pa.float64()})
            return values
        if column.role == "index" or (pa.types.is_null(column.type) and key not in self._fixed):
            raise TypeChangedError({key: TEXT})
        is_flag = column.type == pa.bool_()
        hint = number_hint(texts.filter(wrong), self._options) if self.table.is_text else ""
        self._fault("flag cell" if is_flag else "cell", column, part, rows, texts[int(rows[0])].as_py(), hint)
        return pc.if_else(wrong, pa.scalar(0).cast(values.type), values)

    def _kept(self, part: Part, values: list[pa.Array], block: np.ndarray) -> np.ndarray:
        """Which rows are written; missing values that are not dropped or filled are faults."""
        kept, missing = np.ones(part.n_rows, bool), self._options.missing
        if not all_finite(block):
            wrong = ~np.isfinite(block)
            for k in np.flatnonzero(wrong.any(axis=0)).tolist():
                self._check_large(k, part, values[k], block[:, k])
                if missing == "refuse":
                    self._refuse_gaps(self.features[k], part, np.flatnonzero(wrong[:, k]))
            kept = ~wrong.any(axis=1) if missing == "drop" else kept
        for column, one in zip(self._used, values, strict=True):
            if column.role == "label" and one.null_count:
                if missing != "drop":
                    self._fault("no class", column, part, _rows_of(one.is_null()))
                kept &= one.is_valid().to_numpy(zero_copy_only=False)
        return kept

    def _check_large(self, k: int, part: Part, values: pa.Array, numbers: np.ndarray) -> None:
        """Numbers beyond float32 need float64."""
        if np.isinf(numbers).any():
            exact = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(np.isinf(numbers) & np.isfinite(exact))
            self._widen_if(len(rows) > 0)
            self._fault("large", self.features[k], part, rows, *exact[rows[:1]].tolist())

    def _refuse_gaps(self, column: Column, part: Part, rows: np.ndarray) -> None:
        cell, hint = part.columns[self._key(column)][int(rows[0])].as_py(), ""
        said = "has no value"
        if isinstance(cell, float):
            said = "is NaN" if cell != cell else "is infinite"
        elif isinstance(cell, str) and not cell.isspace() and cell:
            said, hint = f"{cell!r} is a mark of missing values", ", or take it as a text with --na-values ''"
        self._fault("gap", column, part, rows, said, hint)


def _rows_of(mask: pa.Array) -> np.ndarray:
    """Numbers of the rows that are true."""
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))


class _ColumnSums:
    """Sums of the finite numbers of columns, added in blocks of fixed rows as no format changes them."""

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
        """Mean of each column; NaN if it has no number."""
        self._sum(self._rest)
        with np.errstate(invalid="ignore"):
            return self._total / self._count


class TableSamples(ChunkedSamples):
    """Rows of Parquet or Arrow files, read by row groups and record batches as they are needed."""

    is_sparse = False
    checksummed = False
    is_reopenable = True

    def __init__(self, path: Path, rows: TableRows, options: TableOptions) -> None:
        lengths = rows.table.lengths or []
        self.table_rows, self._options = rows, options
        self._describe(str(path), (sum(lengths), rows.n_features), options.dtype or rows.stored_dtype)
        self.feature_names = rows.feature_names
        self.path = str(path.absolute())
        self._rows = GroupedRows(lengths, self._read_group, np.empty((0, self.n_features), self.dtype))
        self.chunk_rows = max(lengths)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        sizes = [int(n_rows * self.row_bytes) for n_rows in (self.chunk_rows, self.n_samples)]
        self.edge_bytes = edge_bytes(sizes[:1], sizes[1])

    def _read_group(self, number: int) -> np.ndarray:
        with _worded(self.name, self._options):
            return self.table_rows.group(number)

    def identity(self) -> str:
        """A hash of sizes and times of the files."""
        return "".join(file_identity(path) for path in self.table_rows.table.paths)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_again, (_open, self.path, self._options, self.identity())


def open_table(path: str | os.PathLike[str], element: str | None = None) -> Samples:
    """Open the rows of a table; row groups are read as they are needed, and text whole.

    Raises
    ------
    InputError
        A column is not numbers, a cell is missing, or the file cannot be read or is too large.
    """
    if element is not None:
        raise InputError(f"{path} is a table and has no element {element!r}: leave element out.")
    return _open(path, TableOptions())


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
    missing: str = "refuse",
    categories: str | None = None,
    dates: str | None = None,
    dtype: Any = None,
) -> Samples:
    """Read a table as rows of numbers.

    Parameters
    ----------
    path : path
        CSV text (plain, .gz, .bz2, .xz or .zst), Parquet, Arrow or Feather; or a folder of such files,
        whose columns are joined by name. A folder named ``year=2024`` adds a column ``year``.
    columns : list of str or int, default=None
        Columns to take as features, in this order, by name or by number from 0; None is all. One text may
        contain several names between commas.
    drop : list of str or int, default=None
        Columns to leave out.
    label_column, index_column : str or int, default=None
        Columns of classes and of row names, which are no features; `mmcnb.stores.convert` keeps their
        values. None leaves out the index that pandas has recorded in a Parquet or Arrow file.
    header : {None, "yes", "no"}, default=None
        Whether the first line of CSV text names the columns; None tells it from its cells.
    na_values : list of str, default=None
        Marks of missing values beside the usual ones, such as NA, ?, - and None; ``""`` is the empty cell
        alone.
    thousands : str, default=None
        Mark between thousands in CSV text.
    decimal : {".", ","}, default="."
        Decimal point of CSV text.
    delimiter : str, default=None
        Mark between cells of CSV text, a space for any number of them. None tells it from the first lines.
    missing : {"refuse", "drop", "mean"}, default="refuse"
        What becomes of missing and infinite cells: an error, rows left out, or the mean of the finite
        numbers of the column, for which all rows are read twice.
    categories : {None, "one-hot"}, default=None
        ``"one-hot"`` makes a column of text one column of 0 and 1 for each text, in sorted order; None
        refuses text.
    dates : {None, "epoch", "drop"}, default=None
        ``"epoch"`` makes dates and times seconds since 1970, ``"drop"`` leaves them out; None refuses them.
    dtype : {None, "float32", "float64"}, default=None
        None is float32 for CSV text, or float64 if float32 would merge its numbers, and for others as the
        columns are.

    Returns
    -------
    Samples
        Parquet and Arrow are read as rows are needed; text, Arrow streams and rows with ``missing="drop"``
        are in memory.

    Raises
    ------
    InputError
        Columns or cells cannot be taken; the message names all of them, with options that help.

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
    of_cells: list[Any] = [thousands, decimal, delimiter, missing, categories, dates, dtype]
    return _open(path, TableOptions(*of_columns, *of_cells))


def _open(path: str | os.PathLike[str], options: TableOptions) -> Samples:
    path = Path(path)
    if table_format(path) is None:
        raise InputError(
            f"{path} is no table: give a .csv, .tsv, .parquet, .arrow or .feather file, or a folder of these."
        )
    with _worded(path, options):
        table = Table(path, options)
        is_whole = table.lengths is None or options.missing == "drop"
        sizes = (
            one.stat().st_size * (1 if plain_name(one) == one.name.lower() else 4) for one in table.paths
        )
        if is_whole and sum(sizes) > MOST_WHOLE_BYTES:
            raise InputError(
                f"{path} is too large to be read whole: make a store with `mmcnb convert {path} OUT.zarr`."
            )
        rows = TableRows(table, options)
        if not is_whole:
            rows.faults.check()
            return TableSamples(path, rows, options)
        return ArraySamples(_whole_table(rows), str(path), rows.feature_names)


def _whole_table(rows: TableRows) -> np.ndarray:
    while True:
        try:
            return stack([part.block for part in rows.blocks()])
        except TypeChangedError as change:
            rows.begin_again(change)


@contextmanager
def _worded(path: Any, options: TableOptions) -> Iterator[None]:
    """Say whose options a message names, if it was none of these that opened the file."""
    try:
        yield
    except InputError as error:
        sentence = str(error).removesuffix(".")
        if "--" not in sentence or "`mmcnb" in sentence or options != TableOptions():
            raise
        raise InputError(
            f"{sentence}; `mmcnb convert {path} OUT.zarr` and `mmcnb.read_table` take these options."
        ) from error
