"""Arguments and options of several verbs, and the types that all verbs share."""

import argparse
import csv
import re
from collections.abc import Iterable
from typing import Any

Parser = argparse.ArgumentParser
Arguments = argparse.Namespace
Report = dict[str, Any]  # findings of a verb, by names
Lines = Iterable[str]  # the report in words

OPTIONS: dict[str, dict[str, Any]] = {
    "element": {
        "help": 'element of the store that has the rows, such as "layers/counts" '
        "(default: X)",
    },
    "labels": {
        "metavar": "OUT",
        "help": "path of the labels: OUT.csv or OUT.parquet with the row, its cluster "
        "and margin, or a Zarr array of one integer a row, from 0; - prints CSV",
    },
    "table": {
        "metavar": "TABLE",
        "help": "path of the whole table with its clusters in new columns: OUT.csv, "
        "OUT.parquet, or OUT/ for a folder of Parquet files, one of each cluster; - is "
        "standard output",
    },
    "overwrite": {"action": "store_true", "help": "replace outputs that exist"},
    "memory-limit": {
        "metavar": "SIZE",
        "help": 'resident memory of the process, such as "512MiB" '
        "(default: a share of the free memory)",
    },
    "checkpoint": {
        "metavar": "FOLDER",
        "help": "the same command again resumes from this folder",
    },
    "jobs": {
        "type": int,
        "dest": "n_jobs",
        "metavar": "N",
        "help": "threads (default: one a core)",
    },
    "dask": {
        "dest": "engine",
        "metavar": "ADDRESS",
        "help": 'Dask scheduler, such as "tcp://host:8786", or "local:4" for four '
        "processes on this machine (default: threads of this process)",
    },
}


def _marks(text: str) -> list[str | tuple[str, str]]:
    """Return marks of missing values, perhaps each with the name of its column."""
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
        "help": "features to take, by name or number from 0, between commas or by "
        "several such options; a name with a comma in it stands alone (default: all "
        "but texts of many values, dates, numbers of rows and identifiers, which 'all' "
        "takes too)",
    },
    "drop": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns to leave out, given as those of --columns",
    },
    "keep": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns to take beside the others although they would be left out, "
        "given as those of --columns",
    },
    "text": {
        "action": "append",
        "metavar": "NAME",
        "help": "columns whose numbers or dates are categories, such as codes, given "
        "as those of --columns",
    },
    "orders": {
        "action": "append",
        "metavar": "NAME=A,B,C",
        "help": "texts of a column in their order, which become the numbers 0, 1, 2",
    },
    "label_column": {"metavar": "NAME", "help": "column of classes"},
    "index_column": {"metavar": "NAME", "help": "column of the names of rows"},
    "header": {
        "metavar": "LINE",
        "help": "yes or no: whether the first line of text names the columns; or the "
        "number of the line that names them, from 0 (default: auto, as it looks)",
    },
    "na_values": {
        "action": "extend",
        "type": _marks,
        "metavar": "MARK",
        "help": "mark of missing values beside NA, ? and -, or several between commas; "
        "NAME=MARK is of one column; '' and NAME= leave numbers such as -999 as they "
        "are; a mark with a comma or = stands in double quotes",
    },
    "thousands": {"metavar": "MARK", "help": "mark between thousands in text"},
    "decimal": {"choices": [".", ","], "help": "decimal point of text (default: .)"},
    "delimiter": {
        "metavar": "MARK",
        "help": "mark between cells of text (default: that of the first lines)",
    },
    "skip_lines": {
        "type": int,
        "metavar": "N",
        "help": "lines of text above the header to skip",
    },
    "sheet": {
        "metavar": "NAME",
        "help": "sheet of a workbook, by name or number from 0 (default: the first)",
    },
    "encoding": {
        "metavar": "NAME",
        "help": "encoding of text, such as cp1252 (default: UTF-8, or as it looks)",
    },
    "missing": {
        "choices": ["neighbors", "median", "mean", "drop", "refuse"],
        "help": "missing cells: values of the nearest rows (default of a fit), the "
        "median or the mean of the column, rows left out, or an error",
    },
    "categories": {
        "choices": ["auto", "one-hot", "refuse"],
        "help": "a column of text becomes a 0/1 column for each text, by default if "
        "these are few",
    },
    "dates": {
        "action": "append",
        "choices": ["auto", "epoch", "drop", "refuse", "day-first", "month-first"],
        "help": "all dates become seconds since 1970 (epoch), are left out, or are an "
        "error (default: left out unless kept); day-first and month-first say how "
        "3/4/2025 is read, also beside another --dates",
    },
}


def option_of(name: str) -> str:
    """Return an option of tables as the command line has it."""
    return "--order" if name == "orders" else f"--{name.replace('_', '-')}"


def add_options(parser: Parser, *names: str, **more: Any) -> None:
    """Add some of the options that several verbs have."""
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name] | more)


def add_store(parser: Parser, **options: Any) -> None:
    """Add the argument STORE and its ``--element``."""
    parser.add_argument(
        "store", metavar="STORE", help="rows: a Zarr store, or a table", **options
    )
    add_options(parser, "element")


def add_model(parser: Parser) -> None:
    """Add the argument MODEL."""
    parser.add_argument(
        "model", metavar="MODEL", help="model file that mmcnb fit --model wrote"
    )


def add_table(parser: Parser, without: str = "") -> None:
    """Add the options of CSV, Parquet and Arrow files, perhaps without one of them."""
    group = parser.add_argument_group("tables (CSV, Excel, JSON, Parquet, Arrow)")
    for name, options in OF_TABLES.items():
        if name != without:
            group.add_argument(option_of(name), dest=name, **options)


def attributes(owner: object, *names: str) -> Report:
    """Return some attributes by name."""
    return {name: getattr(owner, name) for name in names}
