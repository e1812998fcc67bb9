"""Read a store back in full and compare it with its checksums."""

import argparse
from pathlib import Path
from typing import Any

from mmcnb.cli._common import add_options, table

lines = table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb verify``."""
    parser.add_argument("store", metavar="STORE", help="Zarr store of rows, or array of labels")
    add_options(parser, "element")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read everything back; a damaged chunk raises and is named."""
    from mmcnb.errors import InputError
    from mmcnb.samples._text import table_format
    from mmcnb.stores import verify_store

    if "://" not in arguments.store and table_format(Path(arguments.store)):
        remedy = f"write a store with `mmcnb convert {arguments.store} OUT.zarr` and verify that"
        raise InputError(f"{arguments.store} is a table, which has no checksums: {remedy}.")
    return verify_store(arguments.store, arguments.element)
