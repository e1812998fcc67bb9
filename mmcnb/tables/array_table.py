"""Read dense arrays with missing values as tables, from memory, files and stores."""

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import InputError, NotFiniteError
from mmcnb.samples.base import ArraySamples, ChunkedSamples, Samples
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.formats import file_format, folder_format
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.matrix import as_block
from mmcnb.samples.npy import step_rows
from mmcnb.samples.one_hot import n_columns_of, narrow
from mmcnb.samples.open import open_samples
from mmcnb.samples.paths import checked_path, is_store_folder
from mmcnb.tables.arrow import FLOAT64, TEXT
from mmcnb.tables.base import BaseTable, Part, Types, row_place
from mmcnb.tables.open import held_table
from mmcnb.tables.options import TableOptions, keeping_gaps, refilling
from mmcnb.tables.reader import TableReader
from mmcnb.tables.remedies import options_of_files, options_of_frames

OF_ARRAYS = ("na_values", "missing")
"""Table options that also apply to dense rows of numbers."""


def is_of_arrays(path: str | os.PathLike[str]) -> bool:
    """Return whether a path or URL refers to a numeric array rather than a table."""
    if "://" in os.fspath(path):
        return True
    place = checked_path(path)
    if place.is_dir():
        return is_store_folder(place) or folder_format(place) == "matrix"
    return place.is_file() and file_format(place) in ("npy", "hdf5", "matrix")


def refuse_table_options(source: object, options: TableOptions) -> None:
    """Raise InputError if an option is set that does not apply to numeric arrays."""
    for field in fields(options):
        is_given = getattr(options, field.name) != field.default
        if is_given and field.name not in OF_ARRAYS:
            name = "encoding" if field.name == "codec" else field.name
            what = source
            if not isinstance(source, str | os.PathLike):
                what = f"a {type(source).__name__}"
            raise InputError(
                f"{name} applies to data frames and tables only, and {what} is "
                f"neither: leave {name} out."
            )


class ArrayTable(BaseTable):
    """Table with the columns of dense numeric rows.

    Parameters
    ----------
    rows : Samples
        Dense rows, in which NaN marks missing values.
    """

    is_text = False
    # Arrays without NaN are not searched for numbers such as -999, so arrays with NaN
    # are not searched either.
    has_known_marks = False
    fault_of_empty = "no value in an array"

    def __init__(self, rows: Samples) -> None:
        self.name = rows.name
        names = rows.feature_names
        self.has_names = names is not None
        self.names = names or list(map(str, range(rows.n_features)))
        self.keys = self.names
        self.types = [pa.from_numpy_dtype(rows.dtype)] * rows.n_features
        # A group consists of whole chunks, at least about 8 MiB in all, so that each
        # chunk is decoded only once.
        length = rows.chunk_rows * -(-step_rows(rows.row_bytes) // rows.chunk_rows)
        starts = range(0, rows.n_samples, length)
        self.lengths = [min(length, rows.n_samples - start) for start in starts]
        self._length = length
        self._rows = rows

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns of all rows or of one group of rows; see `BaseTable.parts`."""
        groups = range(len(self.lengths or ())) if group is None else [group]
        for number in groups:
            first = number * self._length
            stop = min(first + self._length, self._rows.n_samples)
            block = as_block(self._rows.stored(first, stop))
            columns = self._columns(block, wanted)
            yield Part(columns, len(block), row_place(first), first=first)

    def _columns(self, block: np.ndarray, wanted: Types) -> dict[str, pa.Array]:
        """Return the wanted columns of a block, with null for NaN."""
        numbers = {key: k for k, key in enumerate(self.keys)}
        columns = {}
        for key in wanted:
            values = np.ascontiguousarray(block[:, numbers[key]])
            columns[key] = pa.array(values, from_pandas=True).cast(wanted[key])
        return columns


class StoredTable(ArrayTable):
    """A table in a store, with its 0/1 columns converted back to text columns."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self._n_categories = rows.gaps
        self._texts: dict[str, pa.Array] = {}
        wide_names = self.names
        sources = rows.sources or wide_names
        self.names = []
        first = 0
        for n_values in rows.gaps:
            name = sources[first]
            last = first + n_columns_of([n_values])
            if n_values is not None:
                prefix = len(name) + 1
                texts = [wide[prefix:] for wide in wide_names[first:last]]
                self._texts[name] = pa.array(texts, TEXT)
            self.names.append(name if n_values is not None else wide_names[first])
            first = last
        self.keys = self.names
        number = pa.from_numpy_dtype(rows.dtype)
        self.types = [TEXT if name in self._texts else number for name in self.names]

    @property
    def text_columns(self) -> list[int]:
        """Zero-based indices of the text columns."""
        return [k for k, name in enumerate(self.names) if name in self._texts]

    def _columns(self, block: np.ndarray, wanted: Types) -> dict[str, pa.Array]:
        columns = super()._columns(
            narrow(block, self._n_categories),
            {key: FLOAT64 if key in self._texts else wanted[key] for key in wanted},
        )
        for key in columns:
            if key in self._texts:
                numbers = columns[key].cast(pa.int64())
                numbers = pc.if_else(pc.less(numbers, 0), None, numbers)
                columns[key] = self._texts[key].take(numbers)
        return columns


class FilledSamples(ChunkedSamples):
    """Rows of a file or a store, whose missing values are filled when rows are read."""

    unfilled: Any = None

    def __init__(self, base: Any, reader: TableReader, options: TableOptions) -> None:
        lengths = reader.table.lengths or []
        self._base = base
        self._reader = reader
        self.has_gaps = options.keeps_gaps
        n_features = len(reader.encoding.feature_names)
        self._describe(base.name, (base.n_samples, n_features), base.stored_dtype)
        self.feature_names = reader.feature_names
        self.encoding = reader.encoding
        self.notes = reader.notes
        self.sampled_rows = reader.sampled_rows
        self.path = base.path
        self.element = base.element
        self.is_reopenable = base.is_reopenable
        self.checksummed = base.checksummed
        self._options = replace(options, encoding=self.encoding)
        # Callers use these attributes to read other arrays of the store.
        for name in ("storage", "arrays", "node"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        self._set_rows(GroupedRows(lengths, reader.group), max(lengths))

    @property
    def as_stored(self) -> Samples:
        """The rows as they are stored, with NaN for missing values."""
        return self._base

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (self._base, self._options)

    def identity(self) -> str:
        """Return a hash that identifies the source of the rows."""
        return self._base.identity()

    def state(self) -> object:
        """Return a value that changes when the files change."""
        return self._base.state()


def open_array(
    source: Any, element: str | None = None, options: TableOptions | None = None
) -> Samples:
    """Open dense rows in which some values are missing.

    Parameters
    ----------
    source : array, path or other rows
        Anything that `mmcnb.open_samples` accepts.
    element : str or None, default=None
        Element of an HDF5 file or a Zarr group.
    options : TableOptions or None, default=None
        Markers of missing values (``na_values``), and how missing values are treated
        (``missing``). None uses the default options.

    Returns
    -------
    Samples
        The rows, with missing values treated accordingly.

    Raises
    ------
    InputError
        If the rows are sparse or cannot be read.
    """
    rows = _unfilled(_unchecked(source, element))
    if rows.is_sparse:
        raise InputError(
            f"{rows.name} has sparse rows, and na_values and missing apply to dense "
            "rows only: leave both options out, or pass X.toarray()."
        )
    return _open(rows, options or TableOptions())


def open_as_fitted(
    source: Any, element: str | None, options: TableOptions
) -> Samples | None:
    """Open dense rows whose columns match those of a fit; return None otherwise."""
    encoding = options.encoding
    if encoding is None or encoding.is_ordered or not encoding.is_plain:
        return None
    rows = _unfilled(_unchecked(source, element))
    if rows.is_sparse or not _has_columns(rows, encoding):
        return None
    # Every row must get a label, even if the fit left out rows with missing values.
    return _open(rows, replace(options, missing=encoding.missing))


def _has_columns(rows: Samples, encoding: Encoding) -> bool:
    """Return whether the columns of the rows match those of a fit."""
    if encoding.has_names:
        return rows.feature_names == encoding.names
    return rows.feature_names is None and rows.n_features == len(encoding.columns)


def _unfilled(samples: Samples) -> Samples:
    """Return the rows without filled values, if opening a store has filled them.

    Other rows are returned unchanged.
    """
    return getattr(samples, "unfilled", None) or samples


def _unchecked(source: Any, element: str | None) -> Samples:
    """Open rows that may contain NaN and infinite values."""
    try:
        return open_samples(source, element)
    except NotFiniteError as error:
        if error.samples is None:
            raise
        return error.samples


def open_stored_gaps(rows: Any, options: TableOptions | None = None) -> Samples:
    """Open rows of a store, and fill the missing values, which are stored as NaN."""
    options = options or TableOptions()
    samples = _open(rows, options)
    if isinstance(samples, FilledSamples) and options.na_values is None:
        samples.unfilled = rows
    encoding = options.encoding or rows.table_encoding
    found = samples.encoding
    if encoding is None or found is None:
        return samples
    if encoding.feature_names == found.feature_names:
        samples.encoding = replace(encoding, donors=found.donors)
    return samples


def _open(rows: Samples, options: TableOptions) -> Samples:
    in_words_of_source = options_of_files
    if isinstance(rows, ArraySamples):
        in_words_of_source = options_of_frames
    with in_words_of_source():
        samples = _filled(rows, options)
    samples.table_options = options
    return samples


def _filled(rows: Samples, options: TableOptions) -> Samples:
    options = replace(options, columns=("all",))
    table = ArrayTable(rows)
    if getattr(rows, "gaps", None) is not None:
        table = StoredTable(rows)
        options = replace(options, text=table.text_columns)
        if options.encoding is not None:
            encoding = options.encoding.of_stored_numbers()
            options = replace(options, encoding=encoding, text=None)
    _check_marks(table, options)
    reader = TableReader(table, options)
    if options.missing == "drop" or not isinstance(rows, ChunkedSamples):
        samples = reader.with_final_types(lambda: held_table(reader))
    else:
        reader.with_final_types(reader.check_first_rows)
        samples = FilledSamples(rows, reader, options)
    if reader.refills:
        samples.refilled = partial(_open_refilled, rows, options)
    if reader.may_fill_gaps(are_read=not isinstance(samples, FilledSamples)):
        of_gaps = keeping_gaps(options, samples.encoding)
        samples.with_gaps = partial(_open_any, rows, of_gaps)
    return samples


def _open_refilled(
    rows: Samples, options: TableOptions, encoding: Encoding | None
) -> Samples:
    """Open rows, and fill their missing values from neighbours, as a fit does."""
    return _open_any(rows, refilling(options, encoding))


def _open_any(rows: Samples, options: TableOptions) -> Samples:
    """Open rows, which may come from a store with missing values."""
    if getattr(rows, "gaps", None) is not None:
        return open_stored_gaps(rows, options)
    return _open(rows, options)


def _check_marks(table: ArrayTable, options: TableOptions) -> None:
    """Raise InputError if ``na_values`` is set but contains no number."""
    if options.na_values is None or options.encoding is not None:
        return
    if not any(options.numeric_marks_of(name) for name in table.names):
        raise InputError(
            f"na_values={list(options.na_values)} has no number, but {table.name} has "
            "only numbers: pass the numbers that mark missing values."
        )


def _open_again(rows: Samples, options: TableOptions) -> Samples:
    """Reopen filled rows in another process."""
    return _open(_unfilled(rows), options)
