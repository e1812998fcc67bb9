"""Convert a table, text, an array or another store to a Zarr store with checksums."""

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
    attributes,
)
from mmcnb.cli._words import listed, table
from mmcnb.errors import InputError, plain


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb convert``."""
    parser.add_argument(
        "source",
        metavar="IN",
        help="CSV, LIBSVM or Matrix Market text (plain, .gz, .bz2, .xz, .zst), a "
        "folder from 10x Genomics, Parquet, Arrow, .npy, .npz, or Zarr",
    )
    parser.add_argument("out", metavar="OUT", help="Zarr store to write")
    parser.add_argument(
        "--layout",
        choices=["auto", "dense", "csr"],
        default="auto",
        help="layout of the rows in the store (default: %(default)s)",
    )
    add_table(parser)
    parser.add_argument(
        "--zero-based",
        action="store_true",
        help="LIBSVM columns are numbered from 0, not 1",
    )
    parser.add_argument(
        "--features",
        dest="n_features",
        type=int,
        metavar="N",
        help="number of features, if the last features may be absent from IN",
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        help="dtype of the values (default: as in IN)",
    )
    add_options(parser, "element", "memory-limit", "overwrite")


def run(arguments: Arguments) -> Report:
    """Convert the input to a store, and return a description of the store."""
    from mmcnb._config import parse_bytes
    from mmcnb.stores import convert, describe_store

    options = attributes(
        arguments,
        "layout",
        "element",
        "overwrite",
        "zero_based",
        "n_features",
        "dtype",
        *OF_TABLES,
    )
    if arguments.memory_limit is not None:
        options["memory_limit"] = parse_bytes(arguments.memory_limit)
    report = convert(
        arguments.source, arguments.out, show_columns=_show_columns, **options
    )
    # The store is complete, so the command succeeds even if the store cannot be
    # described.
    with suppress(InputError, OSError):
        report |= describe_store(arguments.out)
    return report


def _show_columns(listing: list[Report]) -> None:
    sentences = ["columns, according to the first rows:"]
    sentences += map(plain, listed(listing))
    print("\n".join(sentences), file=sys.stderr, flush=True)


def lines(report: Report) -> Lines:
    """Format the description of the columns and of the store."""
    yield from listed(report.get("columns") or [])
    for note in report.get("notes") or ():
        yield f"note: {plain(note)}"
    store = report | {"columns": None, "notes": None}
    for name in ("rows_dropped", "cells_filled"):
        store[name] = store.get(name) or None  # no line for 0
    yield from table(store)
