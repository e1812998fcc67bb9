"""Write LIBSVM text, CSV, .npy, .npz or another store as a checksummed Zarr store."""

import argparse
from typing import Any

from mmcnb.cli._common import add_options
from mmcnb.cli._common import table as lines
from mmcnb.cli._outputs import check_paths

__all__ = ["add_arguments", "lines", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb convert``."""
    parser.add_argument(
        "source", metavar="IN", help="LIBSVM text or CSV (plain, .gz, .bz2, .xz), .npy, .npz, Zarr"
    )
    parser.add_argument("out", metavar="OUT", help="Zarr store to write")
    parser.add_argument(
        "--layout", choices=["auto", "dense", "csr"], default="auto", help="how rows are stored"
    )
    parser.add_argument(
        "--label-column", help="CSV column that holds the classes: its name or number, from 0"
    )
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


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Convert, then describe what was written."""
    check_paths([arguments.out], [arguments.source])

    from mmcnb._config import parse_bytes
    from mmcnb.samples import convert, describe_store

    limit, column = arguments.memory_limit, arguments.label_column
    convert(
        arguments.source,
        arguments.out,
        layout=arguments.layout,
        element=arguments.element,
        overwrite=arguments.overwrite,
        zero_based=arguments.zero_based,
        n_features=arguments.features,
        dtype=arguments.dtype,
        memory_limit=None if limit is None else parse_bytes(limit),
        label_column=int(column) if column is not None and column.lstrip("-").isdigit() else column,
    )
    return describe_store(arguments.out)
