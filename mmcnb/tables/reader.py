"""Read the rows of a table as numbers, according to the roles of the columns.

If necessary, the reader makes a first pass over all rows. This pass decides which kind
of values texts represent, collects categories and medians, and finds columns that carry
no information. A second pass reads the rows as blocks of numbers. If a cell shows that
the first rows suggested a wrong type for a column, reading starts again with the
correct type.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb._fit_warnings import Importance, Note
from mmcnb.columns.gaps import fill_from, make_donors
from mmcnb.errors import InputError, shown
from mmcnb.samples.donors import Donors
from mmcnb.samples.encoding import TEXT_OPTIONS, CellForm, Encoding
from mmcnb.samples.matrix import all_finite, block_dtype, stack
from mmcnb.samples.npy import Rows, step_rows
from mmcnb.samples.one_hot import UNKNOWN, n_columns_of, widen
from mmcnb.tables.arrow import FLOAT64, TEXT, is_text, kind_of, type_name
from mmcnb.tables.base import BaseTable, Part
from mmcnb.tables.cells import parse_cells
from mmcnb.tables.choose import (
    UNNAMED,
    check_features,
    choose_columns,
    decisions_asked_for,
    leave_out_records,
)
from mmcnb.tables.classes import ClassLabels
from mmcnb.tables.columns import (
    GAP,
    MOST_DISTINCT,
    Role,
    TableColumn,
    are_documents,
    float32_merges,
)
from mmcnb.tables.decide import Decision, decide_forms, wrong_cells_allowed
from mmcnb.tables.faults import FAULTS, Faults
from mmcnb.tables.look_ahead import Categories, Medians
from mmcnb.tables.marks import (
    LEAST,
    mark_as_argument,
    marks_of_numbers,
    marks_of_order,
    marks_of_texts,
    without_gaps,
    without_marks,
)
from mmcnb.tables.notes import listed, notes_of_columns
from mmcnb.tables.numbers import WHOLE
from mmcnb.tables.options import TableOptions
from mmcnb.tables.record_columns import are_spread_evenly, sign_of
from mmcnb.tables.sentinels import KnownMarks
from mmcnb.tables.survey import Survey
from mmcnb.tables.total_rows import TotalRows

# Maximum number of categories of a text column, unless an option asks for the column.
MOST_CATEGORIES = 30
# A column is refused if no cell in at least this many rows has the kind of the column.
LEAST_WRONG = 10
DOCUMENTS = (
    "its texts are documents, which TF-IDF (scikit-learn's TfidfVectorizer) or an "
    "embedding model converts to numbers"
)
FAULT_OF_KIND = {"flag": "flag cell", "number": "cell", "order": "order cell"}
Result = TypeVar("Result")


class TypeChangedError(Exception):
    """A later row changed the type of a column, so the table must be read again."""


class TableReader:
    """Reader that converts the rows of a table to blocks of numbers.

    Parameters
    ----------
    table : BaseTable
    options : TableOptions
    show : callable or None, default=None
        Function that is called once, after 100,000 rows, with the listing of the
        columns.

    Attributes
    ----------
    stored_dtype : dtype
        The narrowest type that represents all features. For text files it is float32,
        or float64 if a column has dates or if float32 would merge distinct numbers.
    columns : list of TableColumn
        All columns of the table. The features come first, in the order in which blocks
        contain them.
    classes : ClassLabels
        Class labels of the rows read so far.
    faults : Faults
        Columns and cells of the rows read so far that cannot be converted.
    keeps_gaps : bool
        Whether missing values that could be filled remain NaN.
    sampled_rows : ndarray of shape (m, c) or None
        A sample of m rows with c features, in which texts are replaced by category
        indices, and missing values by NaN; None before the first pass.
    n_dropped, n_filled : int
        Number of rows left out, and number of cells filled, because of missing values
        in the rows read so far.
    """

    is_sparse = False

    def __init__(
        self,
        table: BaseTable,
        options: TableOptions,
        show: Callable[..., object] | None = None,
    ) -> None:
        self.table = table
        self.keeps_gaps = options.keeps_gaps
        self._options = options
        self._show = show
        # This resolves "auto"; a fit passes "neighbors" (`OF_FITS`).
        self._missing = options.missing
        if options.missing == "auto":
            self._missing = "median"
        self._fills = self._missing in ("neighbors", "median", "mean")
        self.sampled_rows: np.ndarray | None = None
        self._donors: Donors | None = None
        if options.encoding is not None and options.missing != "drop":
            self._donors = options.encoding.donors
        self._is_wide = False
        self._asked = decisions_asked_for(table, options)
        self._decisions = dict(self._asked)
        self._are_decided = False
        self._are_marked = False
        self._known_marks: dict[int, dict[float, int]] = {}
        self._notes_on_totals: list[Note] = []
        self.n_read = 0
        self._take(choose_columns(table, options, self._decisions))
        # The counts are reset here as well, because another process may read groups
        # without a pass over all rows.
        self._begin_count()

    def with_final_types(self, read: Callable[[], Result]) -> Result:
        """Decide how the columns are used, then call a function that reads rows.

        If a row changes the type of a column, both steps are repeated with the new
        type.

        Parameters
        ----------
        read : callable
            Function without arguments that reads rows.

        Returns
        -------
        object
            The result of ``read``.

        Raises
        ------
        InputError
            If columns or cells cannot be converted; the message lists all of them.
        """
        while True:
            with suppress(TypeChangedError):
                self._decide_by_first_rows()
                if self._needs_look_ahead():
                    self._look_ahead()
                return read()
            self._take_decided()

    def _take_decided(self) -> None:
        columns = choose_columns(self.table, self._options, self._decisions)
        for column in columns:
            if column.is_feature and column.position in self._known_marks:
                column.known_marks = self._known_marks[column.position]
                column.marks += tuple(column.known_marks)
        self._take(columns)

    def _needs_look_ahead(self) -> bool:
        """Return whether all rows must be read to decide what the columns become."""
        if self._options.encoding is not None:
            return False
        if self._fills or not self._options.asks_columns:
            return True
        if self._searched_for_marks():
            return True
        return any(column.type_to_read == TEXT for column in self.features)

    def _take(self, columns: list[TableColumn]) -> None:
        """Set the columns, the features, and their markers of missing values."""
        self.columns = columns
        self._used = [column for column in columns if column.role is not Role.LEFT_OUT]
        self.features = [column for column in self._used if column.is_feature]
        self._wanted = {column.key: column.type_to_read for column in self._used}
        self._marks_of_texts = {}
        self._marks_of_numbers = {}
        for column in self.features:
            key = column.key
            self._marks_of_texts[key] = marks_of_texts(self._options, column.name)
            if column.form is not None and column.kind == "order":
                self._marks_of_texts[key] = marks_of_order(
                    self._options, column.name, column.form
                )
            self._marks_of_numbers[key] = marks_of_numbers(self._options, column.name)
        self._surveys: dict[int, Survey] = {}
        self.stored_dtype = self._narrowest_dtype()
        self.dtype = np.dtype(self._options.dtype or block_dtype(self.stored_dtype))

    def _narrowest_dtype(self) -> np.dtype:
        if self.table.is_text:
            kinds = {column.kind for column in self.features}
            is_wide = self._is_wide or "date" in kinds
            return np.dtype(np.float64 if is_wide else np.float32)
        dtypes = {column.dtype for column in self.features}
        if len(dtypes) == 1:
            return dtypes.pop()
        return block_dtype(*dtypes)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns of numbers, or None if the table has no header."""
        if not self.table.has_names:
            return None
        return self.encoding.feature_names

    @property
    def refills(self) -> bool:
        """Whether a fit would fill the missing values of these rows differently."""
        if self._options.missing != "auto" or self._options.encoding is not None:
            return False
        return any(column.missing for column in self.features)

    @property
    def encoding(self) -> Encoding:
        """How columns other than class labels and row names become numbers.

        Columns selected by name are in the order of the selection.
        """
        if self._options.encoding is not None:
            return self._options.encoding
        columns = self.columns
        if not self._options.names_columns:
            columns = sorted(columns, key=lambda column: column.position)
        encoded = []
        for column in columns:
            is_second = column.angle == "cos" and not column.is_feature
            if column.role not in (Role.CLASSES, Role.ROW_NAMES) and not is_second:
                encoded.append(column.encoded)
        options = [(name, getattr(self._options, name)) for name in TEXT_OPTIONS]
        return Encoding(
            columns=tuple(encoded),
            options=tuple(options),
            has_names=self.table.has_names,
            index_column=self.index_column,
            drops_gaps=self._missing == "drop",
            donors=self._donors,
        )

    @property
    def notes(self) -> list[str]:
        """Sentences about the table, its columns, and cells that were changed."""
        n_dropped = self.n_dropped if self._missing == "drop" else 0
        return [
            *self.table.notes,
            *self._notes_on_totals,
            *notes_of_columns(
                self.table,
                self._in_order(),
                self._options,
                n_dropped,
                self._how_filled,
            ),
        ]

    @property
    def _how_filled(self) -> str:
        if self.keeps_gaps:
            return "gaps are stored as NaN, and a fit fills them from the nearest rows"
        if self._missing == "neighbors":
            return "gaps were filled from the nearest rows"
        return "gaps were filled from their column"

    @property
    def has_stored_gaps(self) -> bool:
        """Whether the rows have missing values that remain NaN."""
        return self.keeps_gaps and any(column.gaps for column in self.features)

    def may_fill_gaps(self, are_read: bool) -> bool:
        """Return whether rows, read or unread, may have missing values to fill.

        Parameters
        ----------
        are_read : bool
            Whether all rows have been read.
        """
        if self.keeps_gaps or not self._fills:
            return False
        is_counted = are_read or self._options.encoding is None
        return not is_counted or any(column.gaps for column in self.features)

    @property
    def doubts(self) -> list[str]:
        """Reasons to distrust clusters of these rows, as a list of clauses."""
        partial = [
            repr(column.name)
            for column in self.features
            if column.key in self.table.partial_keys
        ]
        if not partial or self._options.encoding is not None:
            return []
        return [f"some files of the folder lack columns ({listed(partial)})"]

    def report(self) -> dict[str, object]:
        """Return the listing of the columns, the notes, and counts of missing cells."""
        return {
            "header": self.table.has_names,
            "columns": self.listing(),
            "notes": self.notes,
            "rows_dropped": self.n_dropped,
            "cells_filled": self.n_filled,
        }

    def listing(self) -> list[dict[str, object]]:
        """Return the name, type, counts of values, and role of each column."""
        return [column.listing() for column in self._in_order()]

    def _in_order(self) -> list[TableColumn]:
        """Return all columns in the order of the table."""
        columns = [column for column in self.columns if column.angle != "cos"]
        return sorted(columns, key=lambda column: column.position)

    # --- all rows, part by part ---

    def blocks(self) -> Iterator[Rows]:
        """Yield blocks of rows, with class labels and row names.

        Raises
        ------
        InputError
            If columns or cells cannot be converted; the message lists all of them.
        TypeChangedError
            If a cell shows that the type of its column is wrong. `with_final_types`
            then reads all rows again.
        """
        for rows in self.narrow_blocks():
            yield from self._widened(rows)

    def narrow_blocks(self) -> Iterator[Rows]:
        """Yield the same rows as `blocks`, but with category indices.

        A text column becomes one column that contains category indices, instead of a
        0/1 column for each category.

        Raises
        ------
        InputError
            If columns or cells cannot be converted; the message lists all of them.
        TypeChangedError
            If a cell shows that the type of its column is wrong. `with_final_types`
            then reads all rows again.
        """
        for part, values in self._pass():
            rows = self._rows(part, values)
            self.n_dropped += part.n_rows - len(rows.block)
            if not self.faults and len(rows.block):
                yield rows
        self._refuse_wrong_columns()
        self.faults.check()
        if self.n_dropped and self.n_dropped == self.n_read:
            raise InputError(
                f"{self.table.name}: all {self.n_read} rows have a missing cell: "
                "leave out the columns with many missing cells (--drop), or pass "
                "--missing median."
            )

    def _refuse_wrong_columns(self) -> None:
        """Add a fault for each column of a fit in which no cell has the right kind."""
        for column in self.features:
            if column.n_wrong == self.n_read >= LEAST_WRONG:
                fault = "order cell" if column.role is Role.ORDER else "cell"
                self._fault(fault, column, cell=column.wrong[0])

    def group(self, number: int) -> Any:
        """Read one group of rows as numbers.

        Parameters
        ----------
        number : int
            Zero-based index of the group.

        Raises
        ------
        InputError
            If cells cannot be converted, or if the number of rows in the group has
            changed.
        """
        parts = self.table.parts(self._wanted, number)
        blocks: list[Any] = []
        for part in parts:
            blocks.append(self._rows(part, self._values(part)).block)
        n_rows = sum(map(len, blocks))
        self.faults.check()
        assert self.table.lengths is not None
        if n_rows != self.table.lengths[number]:
            raise InputError(
                f"{self.table.name} has changed since it was opened; run this "
                "again when no program writes to it."
            )
        narrow = blocks[0] if len(blocks) == 1 else stack(blocks)
        return widen(narrow, self.n_categories, self.keeps_gaps)

    @property
    def index_column(self) -> str | None:
        """Name of the column of row names, or None if there is no such column.

        If the table has no header, the name is the index of the column as text.
        """
        for column in self._used:
            if column.role is Role.ROW_NAMES:
                return column.name
        return None

    @property
    def index_name(self) -> str | None:
        """Name of the index in pandas, or None if the index has no name."""
        name = self.index_column
        if name is None or not self.table.has_names or name in UNNAMED:
            return None
        return None if name.startswith("__index_level_") else name

    def names_of_group(self, number: int) -> np.ndarray:
        """Return the row names of a group of rows."""
        names = []
        for column in self._used:
            if column.role is Role.ROW_NAMES:
                wanted = {column.key: column.type_to_read}
                for part in self.table.parts(wanted, number):
                    cells = self._values_of(column, part)
                    names.append(self._row_names(column, cells, part))
        self.faults.check()
        return np.concatenate(names)

    def check_first_rows(self) -> None:
        """Read the first rows, and raise InputError if a column cannot be converted."""
        if self._needs_look_ahead():
            # The first pass has checked all rows, and another pass would reset the
            # counts.
            return
        next(self._pass(), None)
        self.faults.check()

    def _pass(self) -> Iterator[tuple[Part, list[pa.Array]]]:
        """Yield the parts of the table with their column values, and collect faults."""
        self._begin_count()
        for part in self.table.parts(self._wanted):
            for line in part.ragged:
                place = f"{self.table.name}, {line}"
                self.faults.add("width", place, "correct or remove the line")
            if not part.n_rows:
                continue
            values = self._values(part)
            for column, cells in zip(self._used, values, strict=True):
                column.count(cells)
            yield part, values
            self.n_read += part.n_rows
            if self._show and self.n_read >= 100_000:
                self._show(self.listing())
                self._show = None

    def _begin_count(self) -> None:
        self.faults = Faults()
        self.classes = ClassLabels()
        self.n_read = 0
        self.n_dropped = 0
        self.n_filled = 0
        for column in self._used:
            column.begin_count()

    # --- values of cells ---

    def _values(self, part: Part) -> list[pa.Array]:
        """Return the used columns of a part in their final types.

        Missing values are null.
        """
        return [self._values_of(column, part) for column in self._used]

    def _values_of(self, column: TableColumn, part: Part) -> pa.Array:
        values = part.columns[column.key]
        if types.is_float16(values.type):
            values = values.cast(pa.float32())  # pyarrow 24 has no unique() for float16
        if not column.is_feature:
            values = self._names_or_classes(column, values)
        elif is_text(values.type):
            values = self._values_of_texts(column, values, part)
        elif kind_of(values.type) == "number":
            values = without_marks(values, column.marks)
        if types.is_float32(values.type) or types.is_float64(values.type):
            is_nan = pc.is_nan(values)
            if pc.any(is_nan).as_py():
                values = pc.if_else(is_nan, None, values)
        is_read = column.is_feature and self.table.is_text
        if is_read and float32_merges(values, is_first=not self.n_read):
            self._take_float64()
        fault = column.kind, column.position
        if column.role is Role.REFUSED and fault not in self.faults:
            self._refuse(column, values, part)
        return values

    def _names_or_classes(self, column: TableColumn, values: pa.Array) -> pa.Array:
        """Return row names or class labels as texts or integers."""
        if not is_text(values.type):
            return values
        values = without_gaps(values, pa.array([""], TEXT))
        if column.type_to_read != TEXT and column.role is Role.ROW_NAMES:
            try:
                return values.cast(column.type_to_read)
            except pa.ArrowInvalid:
                self._take_type(column, TEXT)
        return values

    def _values_of_texts(
        self, column: TableColumn, cells: pa.Array, part: Part
    ) -> pa.Array:
        """Parse the texts of a feature, with null for missing and unparsable cells."""
        texts = without_gaps(cells.cast(TEXT), self._marks_of_texts[column.key])
        survey = self._surveys.get(column.position)
        # A time of day becomes two features, sine and cosine, with the same texts.
        if survey is not None and column.angle != "cos":
            survey.add(self._surveyed(cells, texts))
        if column.role is Role.REFUSED or column.kind == "text":
            return texts
        if column.role is Role.ORDER:
            return self._places(column, texts, part)
        texts = without_gaps(texts, self._marks_of_numbers[column.key])
        form = column.form or CellForm(column.kind, decimal=self._options.decimal)
        values = parse_cells(texts, form)
        is_wrong = pc.and_(values.is_null(), texts.is_valid())
        rows = _rows_of(is_wrong)
        is_read_as_text = column.type_to_read == TEXT
        if len(rows):
            self._note_wrong(column, texts.filter(is_wrong), part, rows)
        elif types.is_integer(column.type) and not _are_whole(texts):
            self._take_type(column, FLOAT64)
        if is_read_as_text or kind_of(values.type) != "number":
            return without_marks(values, column.marks) if column.marks else values
        return without_marks(values, column.marks)

    @staticmethod
    def _surveyed(cells: pa.Array, texts: pa.Array) -> pa.Array:
        """Restore the text "None" where it was replaced with null.

        "None" is a marker of missing values, but may also be the lowest level of a
        scale.
        """
        if not texts.null_count:
            return texts
        is_least = pc.fill_null(pc.equal(cells, pa.scalar(LEAST, cells.type)), False)
        return pc.if_else(is_least, pa.scalar(LEAST, TEXT), texts)

    def _places(self, column: TableColumn, texts: pa.Array, part: Part) -> pa.Array:
        """Return the rank of each text in the order of its column.

        Texts that are not in the order become null.
        """
        assert column.form is not None
        places = parse_cells(texts, column.form)
        is_wrong = pc.and_(places.is_null(), texts.is_valid())
        rows = _rows_of(is_wrong)
        if len(rows):
            self._note_wrong(column, texts.filter(is_wrong), part, rows)
        return places

    def _note_wrong(
        self, column: TableColumn, texts: pa.Array, part: Part, rows: np.ndarray
    ) -> None:
        """Count cells that do not match the kind of their column and become missing."""
        is_of_fit = self._options.encoding is not None
        if not is_of_fit and column.type_to_read != TEXT:
            # The kind of the column is then inferred from the texts of all rows.
            self._take_type(column, TEXT)
        if self._missing == "refuse" and not is_of_fit:
            fault = FAULT_OF_KIND.get(column.kind, "date cell")
            self._fault(fault, column, part, rows, values=None, cell=texts[0].as_py())
        column.count_wrong(texts)

    def _take_type(self, column: TableColumn, data_type: pa.DataType) -> None:
        self.table.types[column.position] = data_type
        raise TypeChangedError

    def _take_float64(self) -> None:
        if self.table.is_text and self._options.dtype is None and not self._is_wide:
            self._is_wide = True
            raise TypeChangedError

    # --- rows of numbers ---

    def _rows(self, part: Part, values: list[pa.Array]) -> Rows:
        """Convert a part to rows of numbers, with class labels and row names.

        Rows that are dropped because of missing values are not included.
        """
        block = self._narrow(values)
        is_kept = self._is_kept(part, values, block)
        if np.isnan(block).any():
            block = self._filled(part, block)
        rows = np.flatnonzero(is_kept)
        if len(rows) < part.n_rows:
            block = block[rows]
            place = part.place
            part = part._replace(place=lambda row: place(int(rows[row])))
            values = [cells.take(pa.array(rows)) for cells in values]
        labels = None
        names = None
        for column, cells in zip(self._used, values, strict=True):
            if column.role is Role.CLASSES:
                labels, wrong = self.classes.numbers(cells)
                if wrong >= 0:
                    self._fault("class", column, part, [wrong], values=cells)
            elif column.role is Role.ROW_NAMES:
                names = self._row_names(column, cells, part)
        for k, column in enumerate(self.features):
            if column.categories is not None:
                column.unknown += int((block[:, k] == UNKNOWN).sum())
        return Rows(block, labels, names, part.first + rows, part.file)

    def _row_names(
        self, column: TableColumn, cells: pa.Array, part: Part
    ) -> np.ndarray:
        """Return row names as an array of integers, dates or texts."""
        if types.is_temporal(cells.type):
            return cells.to_numpy(zero_copy_only=False)
        if not types.is_integer(cells.type):
            texts = cells.fill_null("").to_pylist()
            return np.array(texts, np.dtypes.StringDType())
        self._fault("row name", column, part, _rows_of(cells.is_null()))
        return np.array(cells.fill_null(0), np.int64)

    def _narrow(self, values: list[pa.Array]) -> np.ndarray:
        """Return one column of numbers per feature, with NaN for missing values.

        A text is represented by the index of its category.
        """
        numbers = {}
        for column, cells in zip(self.features, values, strict=False):
            numbers[column.key + column.angle] = column.encode(cells)
        batch = pa.record_batch(numbers)
        block = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        # Overflow results in infinity, which `_is_kept` reports for the whole block.
        with np.errstate(over="ignore", invalid="ignore"):
            return block.astype(self.dtype, copy=False)

    def _check_empty_rows(self, part: Part, is_gap: np.ndarray) -> None:
        """Add a fault for rows without any value, which have no nearest donor."""
        empty = np.flatnonzero(is_gap.all(axis=1))
        if part.is_cut and empty.size and empty[-1] == part.n_rows - 1:
            fault, remedy = FAULTS["cut row"]
            place = f"{self.table.name}, {part.place(part.n_rows - 1)}"
            self.faults.add(("cut row", -1), f"{place}: {fault}", remedy)
            empty = empty[:-1]
        if not empty.size:
            return
        fault, remedy = FAULTS["empty row"]
        if self._options.encoding is not None:
            remedy = "leave the row out"
        place = f"{self.table.name}, {part.place(int(empty[0]))}"
        self.faults.add(("empty row", -1), f"{place}: {fault}", remedy, empty.size)

    def _filled(self, part: Part, block: np.ndarray) -> np.ndarray:
        """Fill missing values from donor rows, or with the fill value of their column.

        The fill value of a column is used where donors are not available. If missing
        values are kept, they are not filled.
        """
        is_gap = np.isnan(block)
        if self._donors is not None:
            self._check_empty_rows(part, is_gap)
        if self.keeps_gaps:
            return block
        if self._donors is not None:
            block = fill_from(self._donors, block)
        for k, column in enumerate(self.features):
            if column.fill is not None:
                block[np.isnan(block[:, k]), k] = column.fill
            if column.fill is None and self._donors is None:
                continue
            n_gaps = int(is_gap[:, k].sum())
            self.n_filled += n_gaps
            # Without an encoding, the first pass has already counted the gaps.
            if self._options.encoding is not None:
                column.gaps += n_gaps
        return block

    @property
    def n_categories(self) -> list[int | None]:
        """Number of categories of each feature, or None for a feature of numbers."""
        return [
            None if column.categories is None else len(column.categories)
            for column in self.features
        ]

    def _widened(self, rows: Rows) -> Iterator[Rows]:
        """Yield rows with 0/1 columns for categories, in blocks of limited size."""
        n_categories = self.n_categories
        assert isinstance(rows.block, np.ndarray)
        step = step_rows(n_columns_of(n_categories) * self.dtype.itemsize)
        for start in range(0, len(rows.block), step):
            part = slice(start, start + step)
            yield Rows(
                block=widen(rows.block[part], n_categories, self.keeps_gaps),
                y=None if rows.y is None else rows.y[part],
                names=None if rows.names is None else rows.names[part],
                numbers=None if rows.numbers is None else rows.numbers[part],
                file=rows.file,
            )

    # --- decisions about columns, before the first block is read ---

    def _decide_by_first_rows(self) -> None:
        """Infer the kinds of texts from the first rows, unless all rows were read."""
        if self._options.encoding is not None or self._are_decided:
            return
        self._survey_texts()
        if not self._surveys:
            return
        self.faults = Faults()
        keys = {self.table.keys[position]: TEXT for position in self._surveys}
        for part in self.table.parts(keys):
            if part.n_rows:
                for position, survey in self._surveys.items():
                    column = self._column_at(position)
                    cells = part.columns[column.key].cast(TEXT)
                    texts = without_gaps(cells, self._marks_of_texts[column.key])
                    survey.add(self._surveyed(cells, texts))
                break
        # Doubts are removed, because the remaining rows may resolve them.
        decisions = {
            position: replace(decision, doubt="")
            for position, decision in self._decided().items()
        }
        self._decisions = self._asked | decisions
        self._take_decided()

    def _decided(self) -> dict[int, Decision]:
        """Return the kind of values that the texts of each column represent.

        The keys of the result are column indices. A column stored as categories is
        included only if its texts have an order.
        """
        decisions = decide_forms(self._surveys, self._options)
        return {
            position: decision
            for position, decision in decisions.items()
            if decision.form.kind == "order"
            or not self._surveys[position].has_categories
        }

    def _survey_texts(self) -> None:
        """Start a survey of the texts of each column whose kind no option specifies."""
        self._surveys = {}
        takes_orders = self._options.categories == "auto"
        for column in self.features:
            has_categories = types.is_dictionary(column.type)
            is_surveyed = is_text(column.type) or (has_categories and takes_orders)
            if is_surveyed and column.position not in self._asked:
                marks = self._marks_of_numbers[column.key]
                self._surveys[column.position] = Survey(marks, has_categories)

    def _column_at(self, position: int) -> TableColumn:
        return next(column for column in self.columns if column.position == position)

    def _look_ahead(self) -> None:
        """Read all rows to find categories, medians, and the columns to leave out."""
        if not self._are_decided:
            self._survey_texts()
        takes_gaps = self._missing in ("median", "mean")
        categories = Categories(self.features, takes_gaps)
        medians = Medians(len(self.features))
        known_marks = KnownMarks(len(self.features), self._searched_for_marks())
        totals = TotalRows()
        first_text = self._first_text()
        for part, values in self._pass():
            if first_text is not None and is_text(values[first_text].type):
                totals.add(values[first_text], part, self.n_read)
            block = self._narrow(values)
            is_kept = self._is_kept(part, values, block)
            self.n_dropped += int(np.count_nonzero(~is_kept))
            categories.add(values, is_kept, block)
            medians.add(block, self.n_read)
            known_marks.add(block)
        if not self.n_read:
            raise InputError(f"{self.table.name} has no rows: add at least one.")
        self._decide_by_all_rows()
        self._decide_known_marks(known_marks)
        self._note_totals(totals, first_text)
        for k, column in enumerate(self.features):
            if k in categories.texts:
                self._decide_text(column, set(categories.texts[k]))
                if not takes_gaps and self._fills:
                    column.gaps = int(medians.n_gaps[k])
            else:
                self._decide_number(column, k, medians)
        self._leave_columns_out()
        if self._fills:
            self._sample_rows(categories, medians)
        self._take(self.columns)

    def _first_text(self) -> int | None:
        """Return the index of the first column that is read as texts."""
        texts = [
            (column.position, k)
            for k, column in enumerate(self._used)
            if column.type_to_read == TEXT
        ]
        return min(texts)[1] if texts else None

    def _note_totals(self, totals: TotalRows, first_text: int | None) -> None:
        """Store a note on rows that seem to contain totals of other rows."""
        if first_text is None:
            return
        # A text file names its last row itself if the first cell is a total.
        is_first = self._used[first_text].position == 0
        is_last_known = self.table.is_text and is_first
        sentence = totals.sentence(self.n_read, is_last_known)
        self._notes_on_totals = []
        if sentence:
            note = Note(f"{self.table.name}: {sentence}", Importance.DATA)
            self._notes_on_totals.append(note)

    def _leave_columns_out(self) -> None:
        """Leave out columns that carry no information or describe the record."""
        leave_out_records(self.features)
        for column in self.features:
            if column.why and column.role is not Role.REFUSED:
                self.faults.forget(column.position)
                column.role = Role.LEFT_OUT
        self.faults.check()
        for column in self.features:
            if column.why:
                column.role = Role.LEFT_OUT
        check_features(self.table, self.columns)

    def _sample_rows(self, categories: Categories, medians: Medians) -> None:
        """Store a sample of the rows before filling, and make donors from it if needed.

        The sample contains only the columns that are still features.
        """
        rows = medians.some_rows()
        is_feature = [column.is_feature for column in self.features]
        n_categories = []
        for k in np.flatnonzero(is_feature).tolist():
            in_order = None
            if k in categories.texts:
                in_order = categories.in_order(k)
                is_known = ~np.isnan(rows[:, k])
                rows[is_known, k] = in_order[rows[is_known, k].astype(np.intp)]
            n_categories.append(None if in_order is None else in_order.size)
        self.sampled_rows = rows[:, is_feature]
        if self._missing == "neighbors":
            self._donors = make_donors(self.sampled_rows, n_categories)

    def _decide_by_all_rows(self) -> None:
        """Infer the kinds of texts from all rows, and start again if a kind changes.

        Raises
        ------
        TypeChangedError
            If the decisions differ from those based on the first rows.
        """
        if self._are_decided or not self._surveys:
            return
        self._are_decided = True
        decisions = self._decided()
        forms = {
            position: (decision.form, decision.doubt)
            for position, decision in decisions.items()
        }
        first_forms = {
            position: (decision.form, decision.doubt)
            for position, decision in self._decisions.items()
            if position in self._surveys
        }
        self._decisions = self._asked | decisions
        for column in self.features:
            column.decision = decisions.get(column.position, column.decision)
        if forms != first_forms:
            raise TypeChangedError

    def _searched_for_marks(self) -> list[int]:
        """Return the indices of the features to search for markers such as -999."""
        is_searched = self.table.has_known_marks and not self._are_marked
        if not is_searched or self._options.missing == "refuse":
            return []
        return [
            k
            for k, column in enumerate(self.features)
            if column.role is Role.NUMBER
            and "" not in self._options.marks_of(column.name)
        ]

    def _decide_known_marks(self, known_marks: KnownMarks) -> None:
        """Treat known markers such as -999 as missing, and start again if any occur.

        Raises
        ------
        TypeChangedError
            If a column contains such markers.
        """
        self._are_marked = True
        found = False
        for k in known_marks.columns:
            column = self.features[k]
            n_values = MOST_DISTINCT
            if column.distinct is not None:
                n_values = len(column.distinct)
            marks = known_marks.find(k, n_values)
            if marks:
                self._known_marks[column.position] = marks
                found = True
        if found:
            self._is_wide = False  # perhaps only the markers require float64
            raise TypeChangedError

    def _decide_text(self, column: TableColumn, texts: set[str]) -> None:
        """Set the categories of a text column, and decide whether to leave it out.

        A column is left out if it is empty, contains documents or has too many
        categories.
        """
        n_texts = len(texts)
        column.categories = pa.array(sorted(texts), TEXT)
        if not texts - {GAP}:
            self._leave_out(column, "it is empty", "no value")
            return
        most = min(MOST_CATEGORIES, max(10, self.n_read // 100))
        if n_texts <= most:
            return
        if are_documents(texts, self.n_read):
            self._leave_out(column, DOCUMENTS, "documents")
            return
        why = f"{n_texts} texts in {self.n_read - self.n_dropped:,} rows"
        fault = None
        if n_texts > MOST_DISTINCT:
            why = f"over {MOST_DISTINCT:,} texts"
            fault = "categories"
        if column.decision is not None and column.decision.why_text:
            why += f"; {column.decision.why_text}"
        self._leave_out(column, why, fault)

    def _decide_number(self, column: TableColumn, k: int, medians: Medians) -> None:
        """Set the number that fills gaps, and decide whether to leave a column out.

        An empty column is left out. A column that describes the record is marked, and
        is left out later if enough other columns remain.
        """
        if not self._is_in_order(column):
            return
        if self._fills:
            fill = medians.fill(k, self._missing)
            if np.isnan(fill):
                self._leave_out(column, "it is empty", self.table.fault_of_empty)
            else:
                column.fill = fill
                column.gaps = int(medians.n_gaps[k])
        has_unit = column.form is not None and column.form.factors
        if column.is_named or has_unit or column.block:
            return
        numbers = medians.column(k)
        has_names = self.table.has_names
        column.record = sign_of(
            column.name, column.kind, numbers, medians.step, has_names
        )
        if column.record is None and column.kind == "number" and has_names:
            column.is_even = are_spread_evenly(numbers)

    def _is_in_order(self, column: TableColumn) -> bool:
        """Return whether nearly all texts are in the given order, else add a fault."""
        decision = column.decision
        if column.role is not Role.ORDER or decision is None or decision.answers:
            return True
        n_cells = self.n_read - (column.missing or 0) + column.n_wrong
        if column.n_wrong <= wrong_cells_allowed(n_cells):
            return True
        texts = [*decision.form.shown_levels, *column.wrong]
        order = f"{self.table.names[column.position]}={','.join(texts)}"
        self._fault(
            "order",
            column,
            cell=column.wrong[0],
            n_wrong=column.n_wrong,
            n_cells=n_cells,
            order=f"--order {shlex.quote(order)}",
            mark=mark_as_argument(column.wrong[0]),
        )
        return False

    def _leave_out(
        self, column: TableColumn, why: str, fault: str | None = None
    ) -> None:
        """Leave a column out, or add a fault if an option asks for the column."""
        if not column.is_asked:
            column.why = why
            column.can_be_kept = fault is None
        elif fault is not None:
            self._fault(fault, column)

    # --- faults ---

    def _fault(
        self,
        kind: str,
        column: TableColumn,
        part: Part | None = None,
        rows: Sequence[int] | np.ndarray = (),
        **details: Any,
    ) -> None:
        """Add a fault of a column, or of its cells in some rows of a part.

        Parameters
        ----------
        kind : str
            Key of `FAULTS`.
        column : TableColumn
        part : Part or None, default=None
            Part that contains the cells; None if the fault concerns the whole column.
        rows : sequence of int, default=()
            Indices in the part of the rows that contain the cells. If there is a part
            but no row, no fault is added.
        **details
            Values for the placeholders of the message, such as ``cell``, the text of
            the first cell. If ``values`` (the column in the part) is given, the first
            cell is taken from it.
        """
        place = self.table.label_of(column.position)
        count = 1
        if part is not None:
            count = len(rows)
            if count == 0:
                return
            place = f"{part.place(int(rows[0]))}, {place}"
        if details.get("values") is not None:
            cell = details["values"][int(rows[0])]
            details["cell"] = str(cell) if kind == "date" else cell.as_py()
        if "cell" in details and kind != "gap":
            details["cell"] = shown(details["cell"])
        details["type"] = self.dtype if kind == "large" else type_name(column.type)
        details["position"] = column.position
        details["drop"] = f" with --drop {self.table.option(column.position)}"
        fault, remedy = FAULTS[kind]
        remedy = remedy.format(**details)
        if self._options.encoding is not None:
            remedy = "correct it, or leave its row out"
            if kind == "cell" and column.form is not None and column.form.unit:
                remedy = (
                    f"the unit of this column in the fit is {column.form.unit}: "
                    "convert the cell to this unit, or leave its row out"
                )
        sentence = f"{self.table.name}, {place}: {fault.format(**details)}"
        self.faults.add((kind, column.position), sentence, remedy, count)

    def _refuse(self, column: TableColumn, values: pa.Array, part: Part) -> None:
        """Add a fault that shows the first cell that is not a number."""
        rows = _rows_of(values.is_valid())
        kind = "date order" if column.why else column.kind
        if kind == "text" and is_text(values.type):
            numbers = parse_cells(values, CellForm("number"))
            texts = _rows_of(pc.and_(numbers.is_null(), values.is_valid()))
            if self.table.is_text or len(texts):
                rows = texts
        self._fault(kind, column, part, rows[:1], values=values)

    def _is_kept(
        self, part: Part, values: list[pa.Array], block: np.ndarray
    ) -> np.ndarray:
        """Return a mask of the rows to keep, and add faults for values to refuse."""
        is_kept = np.ones(part.n_rows, bool)
        drops = self._missing == "drop"
        if not all_finite(block):
            is_finite = np.isfinite(block)
            for k in np.flatnonzero(~is_finite.all(axis=0)).tolist():
                self._check_gaps(self.features[k], part, values[k], block[:, k])
                if drops:
                    is_kept &= is_finite[:, k]
        for column, cells in zip(self._used, values, strict=True):
            if column.role is Role.CLASSES and cells.null_count:
                if not drops:
                    self._fault("no class", column, part, _rows_of(cells.is_null()))
                is_kept &= np.asarray(cells.is_valid())
        return is_kept

    def _check_gaps(
        self, column: TableColumn, part: Part, values: pa.Array, numbers: np.ndarray
    ) -> None:
        """Add faults for missing and infinite values of a column."""
        missing = self._missing
        self._check_large(column, part, values, numbers)
        if missing == "refuse":
            self._refuse_gaps(column, part, np.flatnonzero(~np.isfinite(numbers)))
        elif missing != "drop":
            rows = np.flatnonzero(np.isinf(numbers))
            self._fault("infinite", column, part, rows)

    def _check_large(
        self, column: TableColumn, part: Part, values: pa.Array, numbers: np.ndarray
    ) -> None:
        """Switch to float64 for numbers beyond float32, or add a fault."""
        if not np.isinf(numbers).any():
            return
        exact = values.cast(FLOAT64)
        rows = np.flatnonzero(np.isinf(numbers) & np.isfinite(np.asarray(exact)))
        if len(rows):
            self._take_float64()
        self._fault("large", column, part, rows, values=exact)

    def _refuse_gaps(self, column: TableColumn, part: Part, rows: np.ndarray) -> None:
        cells = part.columns[column.key]
        # Unparsable cells are also null, but they are a different kind of fault.
        if is_text(cells.type):
            texts = without_gaps(cells.cast(TEXT), self._marks_of_numbers[column.key])
            rows = rows[np.asarray(texts.is_null())[rows]]
        if not rows.size:
            return
        cell = part.columns[column.key][int(rows[0])].as_py()
        hint = ""
        state = "has no value"
        if isinstance(cell, float) and not np.isfinite(cell):
            state = "is NaN" if np.isnan(cell) else "is infinite"
        elif isinstance(cell, int | float):
            state = f"is {cell:g}, a marker of missing values"
        elif isinstance(cell, str) and cell.strip():
            state = f"{cell!r} is a marker of missing values"
            hint = ", or read it as text with --na-values ''"
        self._fault("gap", column, part, rows, cell=state, hint=hint)


def _rows_of(mask: pa.Array) -> np.ndarray:
    """Return the indices at which a mask is true."""
    return np.flatnonzero(np.asarray(pc.fill_null(mask, False)))


def _are_whole(texts: pa.Array) -> bool:
    """Return whether all texts are integers, ignoring nulls."""
    return bool(pc.all(pc.match_substring_regex(texts, WHOLE)).as_py())
