"""Write a table (CSV, Parquet, Arrow), LIBSVM text, .npy, .npz or another store as a checked Zarr store."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from mmcnb.cli._common import add_options, words
from mmcnb.cli._common import table as described

OF_TABLES: dict[str, dict[str, Any]] = {
    "columns": {
        "action": "append",
        "help": "features to take, by name or number from 0, between commas or by several such options "
        "(default: all); a name with a comma in it stands alone",
    },
    "drop": {"action": "append", "help": "columns to leave out, given as those of --columns"},
    "label_column": {"help": "column of classes"},
    "index_column": {"help": "column of the names of rows"},
    "header": {"choices": ["yes", "no"], "help": "whether the first line of text names the columns"},
    "na_values": {"action": "append", "help": "mark of missing values beside NA, ? and -; '' is none"},
    "thousands": {"help": "mark between thousands in text"},
    "decimal": {"choices": [".", ","], "help": "decimal point of text (default: .)"},
    "delimiter": {"help": "mark between cells of text (default: that of the first lines)"},
    "missing": {
        "choices": ["refuse", "drop", "mean"],
        "help": "missing and infinite cells: refuse (default), drop their rows, or take the column's mean",
    },
    "categories": {"choices": ["one-hot"], "help": "write a column of text as one 0/1 column for each text"},
    "dates": {"choices": ["epoch", "drop"], "help": "write dates as seconds since 1970, or leave them out"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb convert``."""
    source = "CSV or LIBSVM text (plain, .gz, .bz2, .xz, .zst), Parquet, Arrow, .npy, .npz, Zarr"
    parser.add_argument("source", metavar="IN", help=source)
    parser.add_argument("out", metavar="OUT", help="Zarr store to write")
    parser.add_argument("--layout", choices=["auto", "dense", "csr"], default="auto", help="form of the rows")
    group = parser.add_argument_group("tables (CSV, Parquet, Arrow)")
    for name, options in OF_TABLES.items():
        metavar: Any = {} if "choices" in options else {"metavar": "NAME" if "column" in name else "MARK"}
        group.add_argument(f"--{name.replace('_', '-')}", **metavar, **options)
    parser.add_argument("--zero-based", action="store_true", help="LIBSVM columns are numbered from 0, not 1")
    number = "number of features, if IN may not show all"
    parser.add_argument("--features", dest="n_features", type=int, metavar="N", help=number)
    parser.add_argument("--dtype", choices=["float32", "float64"], help="type of the values (default: of IN)")
    add_options(parser, "element", "memory-limit", "overwrite")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Convert, then describe the store."""
    from mmcnb._config import parse_bytes
    from mmcnb.stores import convert, describe_store

    names = ["layout", "element", "overwrite", "zero_based", "n_features", "dtype", *OF_TABLES]
    limit = arguments.memory_limit
    taken = convert(
        arguments.source,
        arguments.out,
        memory_limit=None if limit is None else parse_bytes(limit),
        show_columns=_show_columns,
        **{name: getattr(arguments, name) for name in names},
    )
    return taken | describe_store(arguments.out)


def _show_columns(listing: list[dict[str, Any]]) -> None:
    print("of the first rows:", *_listed(listing), sep="\n", file=sys.stderr, flush=True)


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the treatment of each column, and the store."""
    yield from _listed(report.get("columns") or [])
    shown = {name: value for name, value in report.items() if name != "columns"}
    yield from described(shown | {name: shown.get(name) or None for name in ("rows_dropped", "cells_filled")})


def _listed(listing: list[dict[str, Any]]) -> Iterator[str]:
    """Columns with type, missing and different values, and their treatment, as a table."""
    if not listing:
        return
    rows = [["column", *list(listing[0])[1:]]]
    rows += [["" if value is None else words(value) for value in column.values()] for column in listing]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
