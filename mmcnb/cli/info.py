"""Tell what a store holds: shape, density, layout, codec, class counts, digest."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mmcnb.cli._common import add_store, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb info``."""
    add_store(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Describe the store."""
    from mmcnb.samples import describe_store

    return describe_store(arguments.store, arguments.element)


def lines(report: dict[str, Any]) -> Iterable[str]:
    """Word the description."""
    return table(report)
