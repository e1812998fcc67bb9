"""Describe a store or the columns of a table."""

from pathlib import Path

from mmcnb.cli import convert
from mmcnb.cli._options import Arguments, Report, add_store

add_arguments = add_store
lines = convert.lines


def run(arguments: Arguments) -> Report:
    """Describe the store or the table."""
    from mmcnb.samples.text import table_format
    from mmcnb.stores import describe_store

    store = arguments.store
    is_local = "://" not in store
    if is_local and table_format(Path(store)) and not arguments.element:
        from mmcnb.tables.open import describe_table

        return describe_table(store)
    return describe_store(store, arguments.element)
