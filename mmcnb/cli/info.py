"""Describe a store: shape, density, layout, codec, class counts, digest."""

import argparse
from typing import Any

from mmcnb.cli._common import add_store as add_arguments
from mmcnb.cli._common import table as lines

__all__ = ["add_arguments", "lines", "run"]


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Describe the store."""
    from mmcnb.stores import describe_store

    return describe_store(arguments.store, arguments.element)
