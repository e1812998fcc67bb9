"""State the reads, memory and files of a fit, before any work."""

import argparse
from collections.abc import Iterable
from typing import Any

from mmcnb.cli._common import add_options, add_store
from mmcnb.cli._methods import add_method, make_estimator
from mmcnb.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb plan``."""
    add_store(parser, nargs="?")
    parser.add_argument("--rows", type=int, help="plan for this many rows instead of a store's")
    parser.add_argument("--features", type=int, help="plan for this many features instead of a store's")
    add_method(parser)
    add_options(parser, "memory-limit", "jobs")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Plan the fit."""
    samples = _samples(arguments)
    plan = make_estimator(arguments).plan(samples)
    return {"method": arguments.method, **plan.to_dict(), "lines": plan.lines()}


def lines(report: dict[str, Any]) -> Iterable[str]:
    """Word the plan."""
    return report["lines"]


def _samples(arguments: argparse.Namespace) -> Any:
    """The rows of the store, or as many as are planned for."""
    by_hand = (arguments.rows, arguments.features)
    if arguments.store is not None and by_hand == (None, None):
        from mmcnb.samples import open_samples

        return open_samples(arguments.store, arguments.element)
    if arguments.store is not None or None in by_hand:
        raise InputError("plan takes either STORE or both --rows and --features.")
    if min(by_hand) < 1:
        raise InputError(f"--rows {arguments.rows} --features {arguments.features}: give at least 1 of each.")
    from mmcnb.engine.needs import RowShape

    return RowShape(arguments.rows, arguments.features)
