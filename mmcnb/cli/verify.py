"""Read a store back in full and compare it with its checksums."""

import argparse
from typing import Any

from mmcnb.cli._common import add_options, table

lines = table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb verify``."""
    parser.add_argument("store", metavar="STORE", help="Zarr store of rows, or array of labels")
    add_options(parser, "element")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read everything back; a damaged chunk raises and is named."""
    from mmcnb.stores import verify_store

    return verify_store(arguments.store, arguments.element)
