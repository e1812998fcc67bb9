"""Write a table (CSV, Parquet, Arrow), LIBSVM text, .npy, .npz or another store as a checked Zarr store."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmcnb.cli._common import add_options
from mmcnb.cli._common import table as described
from mmcnb.cli._outputs import whole_outputs

OF_TABLES = (
    *("columns", "drop", "label_column", "index_column"),
    *("missing", "categories", "delimiter", "decimal"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb convert``."""
    parser.add_argument(
        "source",
        metavar="IN",
        help="CSV or LIBSVM text (plain, .gz, .bz2, .xz, .zst), Parquet, Arrow, .npy, .npz, Zarr",
    )
    parser.add_argument("out", metavar="OUT", help="Zarr store to write")
    parser.add_argument(
        "--layout", choices=["auto", "dense", "csr"], default="auto", help="how rows are stored"
    )
    _add_table_arguments(parser.add_argument_group("tables (CSV, Parquet, Arrow)"))
    parser.add_argument(
        "--zero-based", action="store_true", help="LIBSVM column numbers begin at 0 instead of 1"
    )
    parser.add_argument(
        "--features", type=int, metavar="N", help="number of features, where IN may not show all"
    )
    parser.add_argument(
        "--dtype", choices=["float32", "float64"], help="type of the values (default: as in IN)"
    )
    add_options(parser, "element", "memory-limit", "overwrite")


def _add_table_arguments(group: Any) -> None:
    several = {"action": "append", "metavar": "NAMES"}
    group.add_argument(
        "--columns",
        **several,
        help="features to take, by name or number from 0, between commas or by several such options "
        "(default: all); a name with a comma in it stands alone",
    )
    group.add_argument("--drop", **several, help="columns to leave out, given as those of --columns")
    group.add_argument("--label-column", metavar="NAME", help="column that holds the classes")
    group.add_argument("--index-column", metavar="NAME", help="column that holds the names of rows")
    group.add_argument(
        "--missing",
        choices=["refuse", "drop", "mean"],
        default="refuse",
        help="empty, NaN and infinite cells: refuse them, drop their rows, or take the mean of the column",
    )
    group.add_argument(
        "--categories", choices=["one-hot"], help="write a column of text as one 0/1 column for each text"
    )
    group.add_argument(
        "--delimiter", metavar="MARK", help="what divides cells (default: a comma; a tab for .tsv)"
    )
    group.add_argument("--decimal", choices=[".", ","], default=".", help="decimal point")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Convert, then describe what was written."""
    with whole_outputs([arguments.out], [arguments.source], arguments.overwrite) as (aside,):
        # Described before it is in its place, where another command may replace it.
        return _convert(arguments, aside) | {"store": str(Path(arguments.out).absolute())}


def _convert(arguments: argparse.Namespace, out: str) -> dict[str, Any]:
    from mmcnb._config import parse_bytes
    from mmcnb.stores import convert, describe_store

    limit = arguments.memory_limit
    taken = convert(
        arguments.source,
        out,
        layout=arguments.layout,
        element=arguments.element,
        zero_based=arguments.zero_based,
        n_features=arguments.features,
        dtype=arguments.dtype,
        memory_limit=None if limit is None else parse_bytes(limit),
        **{name: getattr(arguments, name) for name in OF_TABLES},
    )
    return taken | describe_store(out)


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word what was taken, and what was written."""
    from mmcnb.samples._columns import shown_names

    shown = dict(report)
    for name in ("numbers", "one_hot", "left_out"):
        found = shown.get(name)
        shown[name] = f"{len(found)}: {shown_names(list(found))}" if found else None
    for name in ("rows_dropped", "cells_filled"):
        shown[name] = shown.get(name) or None
    return described(shown)
