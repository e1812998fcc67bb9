"""Write a table (CSV, Parquet, Arrow), LIBSVM text, .npy, .npz or another store as a checked Zarr store."""

import sys
from contextlib import suppress

from mmcnb.cli._options import (
    OF_TABLES,
    Arguments,
    Lines,
    Parser,
    Report,
    add_options,
    add_table,
)
from mmcnb.cli._words import listed, table
from mmcnb.errors import InputError, plain


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb convert``."""
    source = "CSV or LIBSVM text (plain, .gz, .bz2, .xz, .zst), Parquet, Arrow, .npy, .npz, Zarr"
    parser.add_argument("source", metavar="IN", help=source)
    parser.add_argument("out", metavar="OUT", help="Zarr store to write")
    parser.add_argument(
        "--layout",
        choices=["auto", "dense", "csr"],
        default="auto",
        help="form of the rows",
    )
    add_table(parser)
    parser.add_argument(
        "--zero-based",
        action="store_true",
        help="LIBSVM columns are numbered from 0, not 1",
    )
    number = "number of features, if IN may not show all"
    parser.add_argument(
        "--features", dest="n_features", type=int, metavar="N", help=number
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        help="type of the values (default: of IN)",
    )
    add_options(parser, "element", "memory-limit", "overwrite")


def run(arguments: Arguments) -> Report:
    """Convert, then describe the store."""
    from mmcnb._config import parse_bytes
    from mmcnb.stores import convert, describe_store

    names = [
        "layout",
        "element",
        "overwrite",
        "zero_based",
        "n_features",
        "dtype",
        *OF_TABLES,
    ]
    given = {name: getattr(arguments, name) for name in names}
    if arguments.memory_limit is not None:
        given["memory_limit"] = parse_bytes(arguments.memory_limit)
    taken = convert(
        arguments.source, arguments.out, show_columns=_show_columns, **given
    )
    with suppress(
        InputError, OSError
    ):  # the store is written, even if it cannot be read back at once
        taken |= describe_store(arguments.out)
    return taken


def _show_columns(listing: list[Report]) -> None:
    print(
        "of the first rows:",
        *map(plain, listed(listing)),
        sep="\n",
        file=sys.stderr,
        flush=True,
    )


def lines(report: Report) -> Lines:
    """Word the treatment of each column, and the store."""
    yield from listed(report.get("columns") or [])
    shown = {name: value for name, value in report.items() if name != "columns"}
    yield from table(
        shown
        | {name: shown.get(name) or None for name in ("rows_dropped", "cells_filled")}
    )
