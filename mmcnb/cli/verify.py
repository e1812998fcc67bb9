"""Read a store back whole and compare it with what was written."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mmcnb.cli._common import add_store, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb verify``."""
    add_store(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read everything back; a damaged chunk raises and is named."""
    from mmcnb.samples import verify_store

    return verify_store(arguments.store, arguments.element)


def lines(report: dict[str, Any]) -> Iterable[str]:
    """Word the result."""
    return table(report)
