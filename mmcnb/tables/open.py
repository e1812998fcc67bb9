"""Open a table as samples: held, or by groups of rows as they are needed."""

import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mmcnb.errors import ClusterWarning, InputError, OptionError
from mmcnb.samples.base import ChunkedSamples, Samples
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.files import check_file, file_identity
from mmcnb.samples.formats import is_unknown, refusal, table_format
from mmcnb.samples.groups import GroupedRows
from mmcnb.samples.paths import checked_path
from mmcnb.samples.reading import check_reading
from mmcnb.samples.row_index import RowsTaken
from mmcnb.tables.files import FileTable, refuse_csv_options
from mmcnb.tables.held import HeldRows, groups_fit, release_memory
from mmcnb.tables.index_columns import index_of_files, index_of_held
from mmcnb.tables.options import TableOptions, keeping_gaps, refilling
from mmcnb.tables.reader import TableReader
from mmcnb.tables.remedies import options_of_files
from mmcnb.tables.source import TableSource


class TableSamples(ChunkedSamples):
    """Rows of Parquet or Arrow files, read by row groups and record batches."""

    is_reopenable = True

    def __init__(self, path: Path, reader: TableReader, options: TableOptions) -> None:
        lengths = reader.table.lengths or []
        encoding = reader.encoding
        self._reader = reader
        self._options = options
        self._warned: set[str] = set()
        self.has_gaps = options.keeps_gaps
        shape = sum(lengths), len(encoding.feature_names)
        self._describe(str(path), shape, options.dtype or reader.stored_dtype)
        self.feature_names = reader.feature_names
        self.encoding = encoding
        self.notes = []
        if options.encoding is None:  # notes of other rows come as they are read
            self.notes = reader.notes
        self.doubts = reader.doubts
        self.sampled_rows = reader.sampled_rows
        self.path = str(path.absolute())
        # With the encoding, no process looks ahead again.
        self.opening = (_open_groups, self.path, replace(options, encoding=encoding))
        self._set_rows(GroupedRows(lengths, self._read_group), max(lengths))
        self.row_index = index_of_files(reader, lengths)

    def _read_group(self, number: int) -> np.ndarray:
        with options_of_files():
            block = self._reader.group(number)
        # The rows with their gaps filled have told of other rows already.
        if self._options.encoding is not None and not self.has_gaps:
            for note in self._reader.notes:
                self._warn_once(note)
        return block

    def _warn_once(self, note: str) -> None:
        change = note.rpartition(": ")[0]
        if change not in self._warned:
            self._warned.add(change)
            sentence = f"{note.removesuffix('.')} as far as rows are read."
            warnings.warn(sentence, ClusterWarning, stacklevel=3)

    def identity(self) -> str:
        """Return a hash of sizes and times of the files."""
        return "".join(map(file_identity, self._reader.table.paths))


def open_table(
    path: str | os.PathLike[str],
    options: TableOptions | None = None,
    memory_limit: str | int | None = None,
) -> Samples:
    """Open the rows of a table.

    Row groups are read as they are needed if they are small beside the memory limit.
    Other rows are read once and held, in memory or in a scratch file.

    Raises
    ------
    InputError
        A column is not numbers, a cell is missing, or the file cannot be read or is too
        large.
    """
    path = checked_path(path)
    options = options or TableOptions()
    check_is_table(path)
    with options_of_files():
        table = FileTable(path, options)
        check_reading(table.name, table.cached_bytes, memory_limit)
        reader = TableReader(table, options)

        def read() -> Samples:
            if options.missing != "drop" and table.lengths is not None:
                reader.check_first_rows()
                row_bytes = len(reader.encoding.feature_names) * reader.dtype.itemsize
                if groups_fit(table.lengths, row_bytes, memory_limit):
                    return TableSamples(path, reader, options)
            return held_table(reader, memory_limit)

        samples = reader.with_final_types(read)
    release_memory()
    samples.table_source = TableSource(str(path.absolute()), options)
    if reader.refills:
        samples.refilled = partial(_open_refilled, path, options, memory_limit)
    if reader.may_fill_gaps(are_read=not isinstance(samples, TableSamples)):
        of_gaps = keeping_gaps(options, samples.encoding)
        samples.with_gaps = partial(open_table, path, of_gaps, memory_limit)
    return samples


def _open_refilled(
    path: Path,
    options: TableOptions,
    memory_limit: str | int | None,
    encoding: Encoding | None,
) -> Samples:
    """Open a table with its gaps filled as in a fit."""
    return open_table(path, refilling(options, encoding), memory_limit)


def _open_groups(path: str, options: TableOptions) -> TableSamples:
    """Open a table in another process, as it was opened in the first."""
    reader = TableReader(FileTable(Path(path), options), options)
    samples = TableSamples(Path(path), reader, options)
    samples.table_source = TableSource(path, options)
    return samples


def check_is_table(path: Path) -> None:
    """Refuse a path that is no table.

    Raises
    ------
    InputError
        There is nothing at the path, or it is something else.
    """
    if table_format(path) is not None:
        return
    if not path.is_dir():
        check_file(path)
        if is_unknown(path):
            raise refusal(path)
    raise InputError(
        f"{path} is no table: give a .csv, .tsv, .jsonl, .xlsx, .parquet, .arrow or "
        ".feather file, or a folder of these."
    )


def read_table(  # noqa: PLR0913
    path: Any,
    columns: Any = None,
    drop: Any = None,
    *,
    keep: Any = None,
    text: Any = None,
    orders: Any = None,
    label_column: str | int | None = None,
    index_column: str | int | None = None,
    header: str | int | None = None,
    na_values: Any = None,
    thousands: str | None = None,
    decimal: str = ".",
    delimiter: str | None = None,
    skip_lines: int | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    missing: str = "auto",
    categories: str = "auto",
    dates: Any = "auto",
    dtype: Any = None,
    element: str | None = None,
    memory_limit: str | int | None = None,
) -> Samples:
    """Read a table as rows of numbers.

    Parameters
    ----------
    path : path, data frame or array
        CSV text or JSON (plain, .gz, .bz2, .xz or .zst), Parquet, Arrow or Feather, a
        workbook (.xlsx, .xls, .ods; needs ``mmcnb[excel]``), ORC, ARFF, or a file of
        Stata or SAS; or a folder of such files, whose columns are joined by name. A
        folder named ``year=2024`` adds a column ``year``. Or a frame of pandas, polars
        or Arrow, to give the options of its columns. Or dense rows as
        `mmcnb.open_samples` takes them, in memory or as the path of a .npy file, an
        HDF5 file or a Zarr store, which have the options ``na_values`` and ``missing``
        alone.
    columns : {None, "all"} or list of str or int, default=None
        Columns to take as features, in this order, by name or by number from 0. One
        text may contain several names between commas. None leaves out texts of many
        values, empty columns and, in tables with names, columns that describe the
        record: dates, numbers of rows and identifiers. "all" takes these too.
    drop : list of str or int, default=None
        Columns to leave out.
    keep : list of str or int, default=None
        Columns to take beside the others although they would be left out.
    text : list of str or int, default=None
        Columns whose numbers, dates or ordered texts are categories, such as codes.
    orders : dict of str to list of str, default=None
        The texts of columns in their order, such as ``{"size": ["S", "M", "L"]}``,
        which become the numbers 0, 1, 2. Ordered categories and known scales, such as
        "never" to "always", need no order.
    label_column, index_column : str or int, default=None
        Columns of classes and of row names, which are no features;
        `mmcnb.stores.convert` keeps their values. None leaves out the index that pandas
        has recorded in a Parquet or Arrow file.
    header : {None, "yes", "no"} or int, default=None
        Whether the first line of CSV text names the columns; None tells it from its
        cells. As in pandas, a number is that of the line with the names, from 0, where
        empty lines do not count.
    na_values : str, number, list, array or dict, default=None
        Marks of missing values beside the usual ones, such as NA, ?, - and None; ``""``
        is the empty cell alone. A dict has the marks of each column, by name. Numbers
        such as -999 far outside all others are marks, unless ``""`` is among those
        given for their column.
    thousands : str, default=None
        Mark between thousands of numbers written as text; None recognises commas,
        points, spaces and apostrophes where they are certain.
    decimal : {".", ","}, default="."
        Decimal point of numbers written as text. A decimal comma is recognised where it
        is certain.
    delimiter : str, default=None
        Mark between cells of CSV text, a space for any number of them. None tells it
        from the first lines.
    skip_lines : int, default=None
        Lines of CSV text above the header or, without one, above the rows. None tells
        titles from rows by their cells.
    encoding : str, default=None
        Python's name of the encoding of CSV text, such as "cp1252". None is UTF-8 or
        UTF-16, or cp1252 if the bytes are no UTF-8.
    sheet : str or int, default=None
        Sheet of a workbook, by name or by number from 0; None is the first with rows.
    missing : {"auto", "neighbors", "median", "mean", "drop", "refuse"}, default="auto"
        Treatment of missing cells. "neighbors" takes the median of the five nearest of
        at most 1,000 rows that have a value there, or their most frequent text.
        "median" and "mean" are those of the column, where a missing text is a category
        of its own. "drop" leaves the rows out, and "refuse" is an error. "auto" is
        "median", and "neighbors" in a fit. Infinite cells are no gaps.
    categories : {"auto", "one-hot", "refuse"}, default="auto"
        A column of text becomes one column of 0 and 1 for each text, in sorted order.
        "auto" leaves out texts of more than 30 values, or of more than 10 in fewer than
        100 rows a value. "refuse" takes no text.
    dates : str or list of str, default="auto"
        "auto" leaves dates out if the table has names, because they mostly say when a
        row was recorded; ``keep`` and ``columns`` take them as seconds since 1970.
        "epoch" takes all dates, "drop" leaves them out without a word, and "refuse" is
        an error. "day-first" and "month-first" say how dates such as 3/4/2025 are read,
        and take these; without them the whole column decides it. A list may have both:
        ``["epoch", "day-first"]``.
    dtype : {None, "float32", "float64"}, default=None
        None is float32 for CSV text, or float64 if float32 would merge its numbers, and
        for others as the columns are.
    element : str, default=None
        Element of an HDF5 file or a Zarr store.
    memory_limit : str, int or None, default=None
        Resident memory of the process, such as ``"512MiB"``; None is the setting of
        `mmcnb.config`, or half of what is free.

    Returns
    -------
    Samples
        Parquet and Arrow are read as rows are needed. Text, Arrow streams, rows with
        ``missing="drop"`` and files of large row groups are read once, and are in
        memory, or in a scratch file if they take more than about a quarter of the
        memory limit.

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
    options = TableOptions(
        columns=columns,
        drop=drop,
        keep=keep,
        text=text,
        orders=orders,
        label_column=label_column,
        index_column=index_column,
        header=header,
        na_values=na_values,
        thousands=thousands,
        decimal=decimal,
        delimiter=delimiter,
        skip_lines=skip_lines,
        sheet=sheet,
        codec=encoding,
        missing=missing,
        categories=categories,
        dates=dates,
        dtype=dtype,
    )
    from mmcnb.tables.array_table import (
        is_of_arrays,
        open_array,
        refuse_table_options,
    )

    is_path = isinstance(path, str | os.PathLike)
    if is_path and not is_of_arrays(path):
        if element is not None:
            raise InputError(f"{path} is a table and has no elements: leave it out.")
        return open_table(path, options, memory_limit)
    from mmcnb.samples.frames import is_stream, table_of_stream
    from mmcnb.tables.frames import is_frame, open_frame

    if is_stream(path):
        path = table_of_stream(path)
    if is_frame(path):
        refuse_csv_options("a data frame", options)
        return open_frame(path, options, memory_limit)
    refuse_table_options(path, options)
    return open_array(path, element, options)


def held_table(reader: TableReader, memory_limit: str | int | None = None) -> Samples:
    """Read all rows of a table, whose columns are decided, and hold them."""
    taken = RowsTaken(reader.table.files)
    has_gaps = reader.keeps_gaps
    held = HeldRows(reader.table.name, reader.n_categories, memory_limit, has_gaps)
    for rows in reader.narrow_blocks():
        assert isinstance(rows.block, np.ndarray)
        assert rows.numbers is not None
        taken.add(rows.file, rows.numbers, rows.names)
        held.append(rows.block)
    samples = held.samples()
    samples.feature_names = reader.feature_names
    samples.encoding = reader.encoding
    samples.notes = reader.notes
    samples.doubts = reader.doubts
    samples.sampled_rows = reader.sampled_rows
    samples.row_index = index_of_held(reader, taken)
    return samples


def describe_table(
    path: str | os.PathLike[str], options: TableOptions | None = None
) -> dict[str, object]:
    """Read a table as `open_table` does, and list its columns.

    Returns
    -------
    dict
        ``table``, ``n_samples``, ``header``, ``columns``, ``notes`` and ``faults``, a
        text or None.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    path = checked_path(path)
    check_is_table(path)
    options = options or TableOptions()
    reader = TableReader(FileTable(path, options), options)
    faults = None
    try:
        with options_of_files():
            reader.with_final_types(lambda: None)
    except OptionError as error:
        faults = error.command
    except InputError as error:
        faults = str(error)
    return {
        **reader.report(),
        "table": str(path),
        "faults": faults,
        "n_samples": reader.n_read,
    }
