"""Which files are tables, and the rows of one; pyarrow is imported when there is one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._columns import TableOptions
from mmcnb.samples._inventory import is_store_folder
from mmcnb.samples._text import plain_name

if TYPE_CHECKING:
    from mmcnb.samples._table_rows import TableRows

CSV_NAMES = (".csv", ".tsv")
PARQUET_NAMES = (".parquet", ".pq")
ARROW_NAMES = (".arrow", ".feather", ".ipc")


def table_format(path: Path) -> str | None:
    """One of csv, parquet, arrow; None for what is no table."""
    name = path.name.lower()
    if path.is_dir() and not is_store_folder(path):
        return "parquet" if any(path.rglob("[!._]*.parquet")) else None
    if not path.is_file():
        return None
    if plain_name(path).endswith(CSV_NAMES):
        return "csv"
    if name.endswith(PARQUET_NAMES):
        return "parquet"
    return "arrow" if name.endswith(ARROW_NAMES) else None


def open_table(
    path: Path, form: str, options: TableOptions, dtype: Any = None, show_progress: bool | None = None
) -> "TableRows":
    """The rows of a table as blocks of numbers.

    Parameters
    ----------
    path : Path
    form : {"csv", "parquet", "arrow"}
    options : TableOptions
    dtype : dtype or None, default=None
        None is float32 for text, and for others the type that they have.
    show_progress : bool or None, default=None

    Returns
    -------
    TableRows
    """
    from mmcnb.samples._table_rows import TableRows

    if form == "csv":
        from mmcnb.samples._csv import CSVTable

        text = CSVTable(path, options, options.delimiter, options.decimal, show_progress)
        return TableRows(text, options, np.dtype(dtype or np.float32))
    for name in ("delimiter", "decimal"):
        if getattr(options, name) != getattr(TableOptions, name):
            raise InputError(f"{name} is of CSV files, but {path} is none: leave it out.")
    from mmcnb.samples._arrow import IPCTable, ParquetTable

    return TableRows((ParquetTable if form == "parquet" else IPCTable)(path), options, dtype)
