"""Open a table as samples, which are stored in memory or read on demand in groups."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mmcnb._fit_warnings import Importance, warn
from mmcnb.errors import InputError, OptionError
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
    """Rows of Parquet or Arrow files, read by row group or record batch."""

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
        # For new rows of a fitted model, `_read_group` warns instead.
        if options.encoding is None:
            self.notes = reader.notes
        self.doubts = reader.doubts
        self.sampled_rows = reader.sampled_rows
        self.path = str(path.absolute())
        # Given the encoding, other processes can open the table without a first pass.
        self.opening = (_open_groups, self.path, replace(options, encoding=encoding))
        self._set_rows(GroupedRows(lengths, self._read_group), max(lengths))
        self.row_index = index_of_files(reader, lengths)

    def _read_group(self, number: int) -> np.ndarray:
        with options_of_files():
            block = self._reader.group(number)
        # Reading rows with gaps does not warn, because a warning was issued when the
        # same rows were read with their gaps filled.
        if self._options.encoding is not None and not self.has_gaps:
            for note in self._reader.notes:
                self._warn_once(note)
        return block

    def _warn_once(self, note: str) -> None:
        change = note.rpartition(": ")[0]
        if change not in self._warned:
            self._warned.add(change)
            sentence = f"{note.removesuffix('.')} in the rows read so far."
            importance = getattr(note, "importance", Importance.DATA)
            warn(sentence, importance)

    def identity(self) -> str:
        """Return a hash of the sizes and modification times of the files."""
        return "".join(map(file_identity, self._reader.table.paths))


def open_table(
    path: str | os.PathLike[str],
    options: TableOptions | None = None,
    memory_limit: str | int | None = None,
) -> Samples:
    """Open the rows of a table file, or of a folder of table files.

    Row groups are read on demand if they are small compared with the memory limit.
    Otherwise, all rows are read once and stored in memory or in a scratch file.

    Parameters
    ----------
    path : path
        File or folder.
    options : TableOptions or None, default=None
        Which columns to use, and how to read their cells. If None, the defaults of
        `mmcnb.read_table` are used.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process, such as ``"512MiB"``. If None, the
        limit is the setting of `mmcnb.config` or, if it is not set, half of the free
        memory.

    Returns
    -------
    Samples
        The rows, as numbers.

    Raises
    ------
    InputError
        If a column cannot be converted to numbers, if a cell is missing although
        ``missing="refuse"``, or if the file cannot be read or is too large.
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
    samples.table_options = options
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
    """Open a table, and fill its missing values from neighbours, as a fit does."""
    return open_table(path, refilling(options, encoding), memory_limit)


def _open_groups(path: str, options: TableOptions) -> TableSamples:
    """Reopen a table in another process, with the columns already decided."""
    reader = TableReader(FileTable(Path(path), options), options)
    samples = TableSamples(Path(path), reader, options)
    samples.table_source = TableSource(path, options)
    return samples


def check_is_table(path: Path) -> None:
    """Raise InputError if a path is not a table.

    Raises
    ------
    InputError
        If the path does not exist, or is not a table.
    """
    if table_format(path) is not None:
        return
    if not path.is_dir():
        check_file(path)
        if is_unknown(path):
            raise refusal(path)
    raise InputError(
        f"{path} is not a table: pass a .csv, .tsv, .jsonl, .xlsx, .parquet, .arrow or "
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
        A file, or a folder of files that are joined by column name. The formats are CSV
        and JSON (plain, .gz, .bz2, .xz or .zst), Parquet, Arrow or Feather, workbooks
        (.xlsx, .xls and .ods, which require ``mmcnb[excel]``), ORC, ARFF, Stata and
        SAS. A folder named ``year=2024`` adds a column ``year``.

        Data frames of pandas, polars or Arrow are also accepted, so that the options
        below can be applied to their columns.

        Dense rows of numbers are accepted in any form that `mmcnb.open_samples`
        accepts: an array, or the path of a .npy file, an HDF5 file or a Zarr store.
        Only ``na_values`` and ``missing`` apply to such rows.
    columns : {None, "all"} or list of str or int, default=None
        Columns to use as features, in this order, by name or by zero-based index. A
        string may contain several names separated by commas. If None, all columns are
        used except text columns with many distinct values, empty columns and columns
        that describe the record: row numbers and, in tables with column names, dates
        and identifiers. If "all", all columns are used.
    drop : list of str or int, default=None
        Columns to leave out.
    keep : list of str or int, default=None
        Columns to use although they would be left out by default.
    text : list of str or int, default=None
        Columns to treat as categories although they contain numbers, dates or ordered
        texts. This is useful for codes.
    orders : dict of str to list of str, default=None
        Order of the texts of columns, such as ``{"size": ["S", "M", "L"]}``. These
        texts become the numbers 0, 1 and 2. Ordered categories and well-known scales,
        such as "never" to "always", are recognised automatically.
    label_column, index_column : str or int, default=None
        Column of class labels, and column of row names. These columns are not features,
        but `mmcnb.stores.convert` stores their values. If ``index_column`` is None, an
        index that pandas has written to the file is used as row names.
    header : {None, "yes", "no"} or int, default=None
        Whether the first line of a CSV file contains the column names. By default, this
        is inferred by comparing the line with the rows below it. An integer is the
        number of the line that contains the names, counted from 0 and without empty
        lines, as in pandas.
    na_values : str, number, list, array or dict, default=None
        Markers of missing values, in addition to common markers such as NA, ?, - and
        None. If ``""`` is the only marker, only empty cells are missing. A dict
        contains the markers of each column, by column name. Numbers such as -999 that
        are far outside the range of all other values are treated as missing unless the
        markers of their column include ``""``.
    thousands : str, default=None
        Thousands separator of numbers written as text. If None, the separator (comma,
        point, space or apostrophe) is inferred from all cells of the column.
    decimal : {".", ","}, default="."
        Decimal mark of numbers written as text. With ".", decimal commas are also
        recognised if they are unambiguous.
    delimiter : str, default=None
        Character that separates the cells of a CSV file; a space stands for any number
        of spaces. If None, the delimiter is inferred from the first lines.
    skip_lines : int, default=None
        Number of lines to skip at the beginning of a CSV file. The next line is the
        header, or the first row if there is no header. If None, titles above the table
        are recognised by their cells.
    encoding : str, default=None
        Encoding of a CSV file by its Python name, such as "cp1252". If None, UTF-8 and
        UTF-16 are detected, and files that are not valid UTF-8 are read as cp1252.
    sheet : str or int, default=None
        Sheet of a workbook, by name or by zero-based index. If None, the first sheet
        that has rows is read.
    missing : {"auto", "neighbors", "median", "mean", "drop", "refuse"}, default="auto"
        Treatment of missing cells:

        - "neighbors" takes, from at most 1,000 sampled rows, the five nearest rows that
          have a value in the column, and fills a number with their median and a text
          with their most frequent category;
        - "median" and "mean" fill numbers with the median or mean of their column, and
          treat missing texts as a separate category;
        - "drop" leaves out rows with missing cells;
        - "refuse" raises an error;
        - "auto" is "neighbors" in a fit and "median" otherwise.

        Infinite cells do not count as missing.
    categories : {"auto", "one-hot", "refuse"}, default="auto"
        Treatment of text. A text column becomes a 0/1 column for each distinct text, in
        sorted order. "auto" leaves out columns with more than 30 distinct texts, or
        with more than 10 if there are fewer than 100 rows per text. "one-hot" keeps all
        text columns. "refuse" raises an error if a column contains text.
    dates : str or list of str, default="auto"
        Treatment of dates. "auto" leaves dates out if the table has column names,
        because dates mostly record when a row was entered; dates selected by ``keep``
        or ``columns`` become seconds since 1970. "epoch" converts all dates, "drop"
        leaves out dates without a note, and "refuse" raises an error. "day-first" and
        "month-first" specify the order of day and month in dates such as 3/4/2025, and
        also convert these dates; by default, the order is inferred from all cells of
        the column. A list may combine a treatment and an order: ``["epoch",
        "day-first"]``.
    dtype : {None, "float32", "float64"}, default=None
        Type of the features. By default, text files are read as float32, or as float64
        if a column has dates or if float32 would merge distinct numbers. For other
        formats, the default depends on the types of the columns.
    element : str, default=None
        Element of an HDF5 file or a Zarr store.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process, such as ``"512MiB"``. If None, the
        limit is the setting of `mmcnb.config` or, if it is not set, half of the free
        memory.

    Returns
    -------
    Samples
        The rows, as numbers. Rows of Parquet and Arrow files are read on demand. Other
        table formats, Arrow streams, files with large row groups, and tables with
        ``missing="drop"`` are read once. Their rows are stored in memory, or in a
        scratch file if they need more than about a quarter of the memory limit.

    Raises
    ------
    InputError
        If columns or cells cannot be converted. The message lists these columns and
        cells, with options that resolve the problems.

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
            raise InputError(
                f"{path} is a table, which has no elements: leave element out."
            )
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
    """Read all rows of a table into memory or a scratch file.

    The roles of the columns must have been decided.

    Parameters
    ----------
    reader : TableReader
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process. Rows that exceed about a quarter of
        this limit are written to a scratch file.
    """
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
    """Read a table in the same way as `open_table`, and describe its columns.

    Returns
    -------
    dict
        ``table`` (path), ``n_samples``, ``header`` (whether there are column names),
        ``columns``, ``notes``, ``rows_dropped``, ``cells_filled``, and ``faults``: the
        message about columns and cells that cannot be converted, or None.

    Raises
    ------
    InputError
        If the file cannot be read.
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
