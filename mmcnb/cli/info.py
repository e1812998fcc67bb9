"""Describe a store or the columns of a table."""

from pathlib import Path

from mmcnb.cli import convert
from mmcnb.cli._options import Arguments, Parser, Report, add_store, add_table
from mmcnb.cli._rows import options_of_tables

lines = convert.lines


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb info``."""
    add_store(parser)
    add_table(parser)


def run(arguments: Arguments) -> Report:
    """Describe the store, or the columns of the table."""
    from mmcnb.samples.formats import table_format
    from mmcnb.stores import describe_store

    store = arguments.store
    options = options_of_tables(arguments)
    is_local = "://" not in store
    if is_local and table_format(Path(store)) and not arguments.element:
        from mmcnb.tables.open import describe_table
        from mmcnb.tables.options import named_options

        return describe_table(store, named_options({"missing": "neighbors"} | options))
    return describe_store(store, arguments.element)
