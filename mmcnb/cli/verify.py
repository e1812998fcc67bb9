"""Read a whole store and compare it with its checksums."""

from mmcnb.cli._options import Arguments, Parser, Report, add_options
from mmcnb.cli._words import table

lines = table


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb verify``."""
    parser.add_argument(
        "store", metavar="STORE", help="Zarr store of rows, or Zarr array of labels"
    )
    add_options(parser, "element")


def run(arguments: Arguments) -> Report:
    """Return the result of `verify_store`, which raises an error for damaged chunks."""
    from mmcnb.stores import verify_store

    return verify_store(arguments.store, arguments.element)
