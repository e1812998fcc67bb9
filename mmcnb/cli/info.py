"""Describe a store: shape, density, layout, codec, class counts, digest; or the columns of a table."""

from pathlib import Path

from mmcnb.cli import convert
from mmcnb.cli._options import Arguments, Report, add_store

add_arguments = add_store
lines = convert.lines


def run(arguments: Arguments) -> Report:
    """Describe the store or the table."""
    from mmcnb.samples.text import table_format
    from mmcnb.stores import describe_store

    if (
        "://" not in arguments.store
        and table_format(Path(arguments.store))
        and not arguments.element
    ):
        from mmcnb.tables.rows import describe_table

        return describe_table(arguments.store)
    return describe_store(arguments.store, arguments.element)
