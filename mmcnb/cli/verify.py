"""Read a store back in full and compare it with its checksums."""

import argparse
from typing import Any

from mmcnb.cli._common import add_store as add_arguments
from mmcnb.cli._common import table as lines

__all__ = ["add_arguments", "lines", "run"]


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read everything back; a damaged chunk raises and is named."""
    from mmcnb.stores import verify_store

    return verify_store(arguments.store, arguments.element)
