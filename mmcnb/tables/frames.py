"""Convert data frames to rows of numbers with column names, using Arrow."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mmcnb.columns.gaps import make_donors
from mmcnb.errors import InputError, worded
from mmcnb.samples.base import BLOCK_ROWS, Samples, in_memory
from mmcnb.samples.encoding import EncodedColumn, Encoding
from mmcnb.samples.far_values import LEAST_VALUES
from mmcnb.samples.frames import (
    FRAME,
    as_frame,
    column_labels,
    column_names,
    notes_on_names,
)
from mmcnb.samples.matrix import all_finite, block_dtype
from mmcnb.samples.row_index import index_of_frame
from mmcnb.tables.arrow import TEXT, kind_of, type_name
from mmcnb.tables.base import BaseTable, Part, Types, parts_of
from mmcnb.tables.choose import UNNAMED
from mmcnb.tables.held import release_memory
from mmcnb.tables.look_ahead import Medians
from mmcnb.tables.nested import flat_batch
from mmcnb.tables.objects import array_of_objects
from mmcnb.tables.open import held_table
from mmcnb.tables.options import (
    NUMBERS_ALONE,
    OF_FITS,
    TableOptions,
    keeping_gaps,
    refilling,
)
from mmcnb.tables.plain_types import has_order, plain_array, texts_of_order
from mmcnb.tables.reader import TableReader
from mmcnb.tables.record_columns import are_spread_evenly, sign_of
from mmcnb.tables.remedies import options_of_frames
from mmcnb.tables.sentinels import KnownMarks


def is_frame(source: object) -> bool:
    """Return whether an object is a data frame, including lazy frames.

    `open_frame` raises an error for lazy frames.
    """
    is_lazy = type(source).__name__ == "LazyFrame"
    return is_lazy or as_frame(source) is not None


def open_frame(
    source: object,
    options: TableOptions | None = None,
    memory_limit: str | int | None = None,
) -> Samples:
    """Open the rows of a data frame.

    Parameters
    ----------
    source : data frame
        A pandas data frame, or a data frame of a library that exports Arrow.
    options : TableOptions or None, default=None
        By default, a frame of numbers without missing values is used unchanged, and any
        other frame is read with the default options.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process. Rows that are copied and exceed
        about a quarter of this limit are written to a scratch file.

    Returns
    -------
    Samples
        Sparse rows if all columns of a pandas frame are sparse. Dense rows share the
        memory of the frame if it is stored as a single C-ordered array; otherwise they
        are a float32 or float64 copy.

    Raises
    ------
    InputError
        If a column cannot be converted, or if column names are invalid.
    """
    frame = as_frame(source)
    if options is not None and options.encoding is not None:
        # A fit on a file may drop rows, but every row of a frame must get a label.
        options = replace(options, missing=options.encoding.missing)
    with options_of_frames():
        samples = _open_columns(frame, options, memory_limit)
    if hasattr(frame, "iloc"):  # a pandas frame
        samples.row_index = index_of_frame(frame.index, samples.row_index)
    return samples


def _open_columns(
    frame: Any, options: TableOptions | None, memory_limit: str | int | None
) -> Samples:
    names = column_names(frame)
    columns = column_labels(frame)
    notes = []
    if names is not None:
        notes = notes_on_names(FRAME, columns)
    if columns and hasattr(frame, "sparse"):  # a pandas frame with only sparse columns
        fault = f"{FRAME} has sparse columns with a fill value other than 0"
        with worded(fault, "pass X.sparse.to_dense()", ValueError):
            if any(data_type.fill_value != 0 for data_type in frame.dtypes):
                raise ValueError("fill value must be 0")
            sparse_rows = _of_one_type(frame).sparse.to_coo().tocsr()
            samples = in_memory(sparse_rows, FRAME, names)
            samples.notes = notes
            return samples
    if _may_be_plain(names, options) and columns and columns[0] not in UNNAMED:
        plain = _plain_rows(frame)
        is_decided = options not in (None, OF_FITS)
        # For rows of a fitted model, its encoding determines the markers and the
        # columns.
        if plain is not None and not is_decided and _needs_reader(plain, names):
            plain = None
        if plain is not None:
            samples = in_memory(plain.block, FRAME, names)
            samples.notes = notes
            samples.encoding = _encoding_of_numbers(plain, names, options)
            if options is not None and options.encoding is not None:
                samples.encoding = options.encoding
            return samples
    options = options or TableOptions()
    reader = TableReader(table_of_frame(frame), options)
    samples = reader.with_final_types(lambda: held_table(reader, memory_limit))
    samples.table_options = options
    release_memory()
    if reader.refills:
        samples.refilled = partial(_open_refilled, frame, options, memory_limit)
    if reader.may_fill_gaps(are_read=True):
        of_gaps = keeping_gaps(options, samples.encoding)
        samples.with_gaps = partial(open_frame, frame, of_gaps, memory_limit)
    return samples


def table_of_frame(source: object) -> "FrameTable":
    """Return the columns of a data frame as a table."""
    frame = as_frame(source)
    names = column_names(frame)
    refusals: dict[int, InputError] = {}
    columns = list(_arrays(frame, refusals))
    table = FrameTable(columns, names, refusals)
    if names is not None:
        table.notes = notes_on_names(FRAME, column_labels(frame))
    return table


def _open_refilled(
    frame: Any,
    options: TableOptions,
    memory_limit: str | int | None,
    encoding: Encoding | None,
) -> Samples:
    """Open a frame, and fill its missing values from neighbours, as a fit does."""
    return open_frame(frame, refilling(options, encoding), memory_limit)


def _of_one_type(frame: Any) -> Any:
    """Convert sparse columns to a common dtype, so that pandas does not use object."""
    sparse_types = list(frame.dtypes)
    common = np.result_type(*(sparse_type.subtype for sparse_type in sparse_types))
    sparse_type = type(sparse_types[0])
    return frame.astype(sparse_type(common, common.type(0)))


def _arrays(
    frame: Any, refusals: dict[int, InputError] | None = None
) -> Iterator[pa.Array]:
    """Yield the columns as Arrow arrays.

    A column that Arrow cannot represent may be left out later. The error is therefore
    stored in ``refusals``, by column index, instead of being raised.
    """
    for k, name in enumerate(column_labels(frame)):
        try:
            if isinstance(frame, pa.Table):
                column = _array_of_arrow(name, frame.column(k))
            else:
                column = _array_of_series(name, frame.iloc[:, k])
        except InputError as error:
            column = pa.array([""] * len(frame), TEXT)
            if refusals is not None:
                refusals[k] = error
        yield column


def _may_be_plain(names: list[str] | None, options: TableOptions | None) -> bool:
    """Return whether options allow using columns of numbers without gaps unchanged."""
    if options in (None, NUMBERS_ALONE, OF_FITS):
        return True
    assert options is not None
    encoding = options.encoding
    return encoding is not None and encoding.is_ordered and encoding.names == names


class PlainRows(NamedTuple):
    """Rows of a frame of plain numbers, with the kinds and medians of its columns."""

    block: np.ndarray
    kinds: list[str]
    medians: Medians


def _needs_reader(rows: PlainRows, names: list[str] | None) -> bool:
    """Return whether a frame has markers of missing values, or columns to leave out."""
    return _has_known_marks(rows) or _has_records(rows, names)


def _has_records(rows: PlainRows, names: list[str] | None) -> bool:
    """Return whether a column seems to describe the record, or is spread evenly."""
    has_names = names is not None
    for k, name in enumerate(names or map(str, range(len(rows.kinds)))):
        if rows.kinds[k] == "number":
            numbers = rows.medians.column(k)
            sign = sign_of(name, "number", numbers, rows.medians.step, has_names)
            if sign is not None or (has_names and are_spread_evenly(numbers)):
                return True
    return False


def _encoding_of_numbers(
    rows: PlainRows, names: list[str] | None, options: TableOptions | None
) -> Encoding:
    """Return the encoding of plain numbers.

    The encoding includes medians and, with ``missing="neighbors"``, donors, which fill
    missing values in later rows.
    """
    columns = []
    for k, name in enumerate(names or map(str, range(len(rows.kinds)))):
        fill = rows.medians.fill(k, "median")
        columns.append(EncodedColumn(name, rows.kinds[k], fill=fill))
    donors = None
    if options is not None and options.missing == "neighbors":
        n_categories = [None] * len(rows.kinds)
        donors = make_donors(rows.medians.some_rows(), n_categories)
    return Encoding(
        tuple(columns), (), names is not None, is_ordered=True, donors=donors
    )


def _plain_rows(frame: Any) -> PlainRows | None:
    """Return the rows of a frame of plain numbers, or None.

    A frame with missing values or other kinds of values needs a `TableReader`.
    """
    kinds = []
    for column in _arrays(frame):
        if not _is_plain(column):
            return None
        kinds.append(kind_of(column.type))
    block = _block_of_numbers(frame)
    medians = Medians(len(kinds))
    for start in range(0, len(block), BLOCK_ROWS):
        medians.add(block[start : start + BLOCK_ROWS], start)
    return PlainRows(block, kinds, medians)


def _block_of_numbers(frame: Any) -> np.ndarray:
    """Return columns of plain numbers as one array, without a copy if possible."""
    pandas_types = set(getattr(frame, "dtypes", ()))
    if len(pandas_types) == 1 and _is_of_numpy(pandas_types.pop()):
        rows = frame.to_numpy(copy=False)
        if rows.flags.c_contiguous:
            return rows
    values = list(map(np.asarray, _arrays(frame)))
    dtypes = [column.dtype for column in values]
    return np.stack(values, axis=1, dtype=block_dtype(*dtypes))


def _has_known_marks(rows: PlainRows) -> bool:
    """Return whether a column has a value such as -999 that marks missing values."""
    numbers = [k for k, kind in enumerate(rows.kinds) if kind == "number"]
    marks = KnownMarks(len(rows.kinds), numbers)
    for start in range(0, len(rows.block), BLOCK_ROWS):
        marks.add(rows.block[start : start + BLOCK_ROWS])
    for k in marks.columns:
        # Counting distinct values is slow, so it is skipped if no count would reveal a
        # marker.
        if marks.find(k, LEAST_VALUES):
            n_values = np.unique(rows.block[:, k]).size
            if marks.find(k, n_values):
                return True
    return False


def _is_of_numpy(data_type: Any) -> bool:
    """Return whether a dtype is a NumPy dtype other than object."""
    return isinstance(data_type, np.dtype) and data_type.kind != "O"


def _is_plain(column: pa.Array) -> bool:
    """Return whether a column has only finite numbers or flags."""
    if kind_of(column.type) not in ("number", "flag"):
        return False
    if pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        return False
    if column.null_count:
        return False
    if pa.types.is_floating(column.type):
        return all_finite(np.asarray(column))
    return True


class FrameTable(BaseTable):
    """A table of the columns of a data frame in memory."""

    name = FRAME
    is_text = False

    def __init__(
        self,
        columns: list[pa.Array],
        names: list[str] | None,
        refusals: Mapping[int, InputError],
    ) -> None:
        self.has_names = names is not None
        keys = names or list(map(str, range(len(columns))))
        self._refusals = {keys[k]: error for k, error in refusals.items()}
        self._rows, leaves = flat_batch(pa.record_batch(columns, keys), FRAME)
        self.names = self._rows.schema.names
        self.keys = self.names
        self.types = self._rows.schema.types
        self.blocks = [leaf.block for leaf in leaves]
        self.numbers = [leaf.source for leaf in leaves]

    def orders(self) -> dict[int, list[str]]:
        """Return the categories of each ordered column, as texts in their order.

        The keys of the result are column indices.
        """
        return {
            position: texts_of_order(self._rows.column(position))
            for position, data_type in enumerate(self.types)
            if has_order(data_type)
        }

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns, a limited number of rows at a time.

        Parameters
        ----------
        wanted : mapping of str to pyarrow.DataType
            For the key of each column to read, the type to read the column as.
        group : None
            Ignored, because a frame has no groups.
        """
        for key, error in self._refusals.items():
            if key in wanted:
                raise error
        return parts_of(self._rows, wanted)


def _array_of_series(name: object, series: Any) -> pa.Array:
    """Return a column of a pandas frame as an Arrow array."""
    if hasattr(series, "sparse"):
        series = series.sparse.to_dense()
    if hasattr(series, "cat") and not _has_plain_categories(series):
        series = series.cat.rename_categories(str)
    array = None
    if hasattr(series.array, "_pa_array"):  # Arrow already stores the column
        array = series.array.__arrow_array__()
    else:
        array = array_of_objects(name, series, FRAME)
    return _array_of_arrow(name, array)


def _has_plain_categories(series: Any) -> bool:
    """Return whether Arrow can represent the categories as an array of one type."""
    try:
        pa.array(series.cat.categories)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return series.cat.categories.dtype != "interval"


def _array_of_arrow(name: object, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert a column to a plain type; raise InputError if this is impossible."""
    data_type = type_name(column.type)
    with worded(
        f"{FRAME}, column {name!r}: values of type {data_type} cannot be read",
        "cast it to numbers or texts, or drop it",
        pa.ArrowException,
        ValueError,
        OverflowError,
    ):
        return plain_array(column)
