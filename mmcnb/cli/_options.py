"""Arguments and options that several verbs share."""

import argparse
import csv
import re
from collections.abc import Iterable
from typing import Any

Parser = argparse.ArgumentParser
Arguments = argparse.Namespace
Report = dict[str, Any]  # results of a verb, by name, as printed by --json
Lines = Iterable[str]  # lines of the report as text

OPTIONS: dict[str, dict[str, Any]] = {
    "element": {
        "help": 'element of the store that contains the rows, such as "layers/counts" '
        "(default: X)",
    },
    "labels": {
        "metavar": "OUT",
        "help": "path of the labels to write: OUT.csv or OUT.parquet with the name or "
        "number, cluster and margin of each row, or a Zarr array with the cluster of "
        "each row, counted from 0; - prints CSV",
    },
    "table": {
        "metavar": "TABLE",
        "help": "path of the table to write, with all columns of DATA and the "
        "clusters: OUT.csv, OUT.parquet, or OUT/ for a folder with one Parquet file "
        "per cluster; - prints CSV",
    },
    "overwrite": {"action": "store_true", "help": "replace outputs that exist"},
    "memory-limit": {
        "metavar": "SIZE",
        "help": 'limit on the resident memory of the process, such as "512MiB" '
        "(default: a share of the free memory)",
    },
    "checkpoint": {
        "metavar": "FOLDER",
        "help": "record progress in this folder; the same command, run again, resumes "
        "from it",
    },
    "jobs": {
        "type": int,
        "dest": "n_jobs",
        "metavar": "N",
        "help": "number of threads (default: one per core)",
    },
    "dask": {
        "dest": "engine",
        "metavar": "ADDRESS",
        "help": 'Dask scheduler, such as "tcp://host:8786", or "local:4" for four '
        "processes on this machine (default: threads of this process)",
    },
}


def _marks(text: str) -> list[str | tuple[str, str]]:
    """Parse a comma-separated list of markers of missing values.

    Markers for a single column, as in NAME=MARK, become pairs (NAME, MARK).
    """
    named = re.fullmatch(r'([^"].*)=((?:[^="]|"[^"]*")*)', text)
    written = text if named is None else named[2]
    marks: list[str] = []
    for cells in csv.reader([written], skipinitialspace=True):
        marks += filter(None, map(str.strip, cells))
    if not marks:
        marks = [""]
    if named is None:
        return [*marks]
    return [(named[1], mark) for mark in marks]


OF_TABLES: dict[str, dict[str, Any]] = {
    "columns": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns to use as features, by name or by number from 0, separated "
        "by commas or in repeated options; a name that contains a comma needs a "
        "separate option (default: all except text with many values, dates, row "
        "numbers and identifiers; 'all' selects all columns)",
    },
    "drop": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns to leave out, in the format of --columns",
    },
    "keep": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns to use even though they would be left out by default, in the "
        "format of --columns",
    },
    "text": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns with numbers or dates that are categories, such as codes, in "
        "the format of --columns",
    },
    "orders": {
        "action": "append",
        "metavar": "NAME=A,B,C",
        "help": "values of a text column in ascending order, which become the numbers "
        "0, 1, 2, ...",
    },
    "label_column": {"metavar": "NAME", "help": "column with the known classes"},
    "index_column": {"metavar": "NAME", "help": "column with the names of the rows"},
    "header": {
        "metavar": "LINE",
        "help": "whether the first line of a text file names the columns (yes or no), "
        "or the number of the line that names them, counted from 0 (default: auto, "
        "which detects the header)",
    },
    "na_values": {
        "action": "extend",
        "type": _marks,
        "metavar": "MARK",
        "help": "markers of missing values in addition to NA, ? and -, separated by "
        "commas; NAME=MARK applies to one column; '' and NAME= treat numbers such as "
        "-999 as values; enclose a marker that contains a comma or = in double quotes",
    },
    "thousands": {
        "metavar": "MARK",
        "help": "thousands separator of numbers in text (default: detected)",
    },
    "decimal": {
        "choices": [".", ","],
        "help": "decimal separator of numbers in text (default: detected)",
    },
    "delimiter": {
        "metavar": "MARK",
        "help": "separator of the cells in a text file (default: detected)",
    },
    "skip_lines": {
        "type": int,
        "metavar": "N",
        "help": "number of lines to skip above the header of a text file",
    },
    "sheet": {
        "metavar": "NAME",
        "help": "sheet of a workbook, by name or number from 0 (default: the first "
        "sheet with rows)",
    },
    "encoding": {
        "metavar": "NAME",
        "help": "encoding of a text file, such as cp1252 (default: UTF-8, or detected)",
    },
    "missing": {
        "choices": ["neighbors", "median", "mean", "drop", "refuse"],
        "help": "treatment of missing cells: fill them from the nearest rows (default "
        "of a fit) or with the median or mean of the column, drop their rows, or "
        "refuse the table",
    },
    "categories": {
        "choices": ["auto", "one-hot", "refuse"],
        "help": "treatment of text columns: convert all to 0/1 columns, one for each "
        "value (one-hot), convert only those with few values (auto, the default), or "
        "refuse the table",
    },
    "dates": {
        "action": "append",
        "choices": ["auto", "epoch", "drop", "refuse", "day-first", "month-first"],
        "help": "treatment of dates: convert them to seconds since 1970 (epoch), drop "
        "them, or refuse the table (default: drop them unless --keep names them); "
        "day-first and month-first specify how to read 3/4/2025, and can be combined "
        "with another --dates",
    },
}


def option_of(name: str) -> str:
    """Return the command-line option of a table option, such as "--na-values"."""
    return "--order" if name == "orders" else f"--{name.replace('_', '-')}"


def add_options(parser: Parser, *names: str, **more: Any) -> None:
    """Add the named options of `OPTIONS` to a parser.

    ``more`` contains further arguments of ``add_argument``, such as ``help``.
    """
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name] | more)


def add_store(parser: Parser, **options: Any) -> None:
    """Add the argument DATA and the option ``--element``."""
    options = {
        "help": "rows: a table (CSV, Excel, Parquet, ...) or a Zarr store"
    } | options
    parser.add_argument("store", metavar="DATA", **options)
    add_options(parser, "element")


def add_model(parser: Parser) -> None:
    """Add the argument MODEL."""
    parser.add_argument(
        "model", metavar="MODEL", help="model file that mmcnb fit --model wrote"
    )


def add_table(parser: Parser, without: str = "") -> None:
    """Add the table options in `OF_TABLES`, except the option ``without``."""
    group = parser.add_argument_group("tables (CSV, Excel, JSON, Parquet, Arrow)")
    for name, options in OF_TABLES.items():
        if name != without:
            group.add_argument(option_of(name), dest=name, **options)


def attributes(owner: object, *names: str) -> Report:
    """Return the named attributes of an object as a dictionary."""
    return {name: getattr(owner, name) for name in names}
