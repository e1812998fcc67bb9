"""Tell what a fit would read, hold and write, before any work."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mmcnb._errors import InputError
from mmcnb.cli._common import add_limits, add_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb plan``."""
    add_store(parser, nargs="?")
    parser.add_argument("--rows", type=int, help="plan for this many rows instead of a store's")
    parser.add_argument("--features", type=int, help="plan for this many features instead of a store's")
    parser.add_argument(
        "--n-landmarks",
        type=int,
        help="basis vectors of the model; 0 for a linear one (default: min(200, rows / 2))",
    )
    add_limits(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Plan the fit."""
    from mmcnb.engine import plan_fit

    size = _size(arguments)
    n_landmarks = arguments.n_landmarks
    if n_landmarks is None:
        n_landmarks = min(200, size["n_samples"] // 2)
    plan = plan_fit(
        **size, n_landmarks=n_landmarks, memory_limit=arguments.memory_limit, n_jobs=arguments.jobs
    )
    return {**plan.as_dict(), "lines": list(plan.lines())}


def lines(report: dict[str, Any]) -> Iterable[str]:
    """Word the plan."""
    return report["lines"]


def _size(arguments: argparse.Namespace) -> dict[str, Any]:
    by_hand = (arguments.rows, arguments.features)
    if arguments.store is not None and by_hand == (None, None):
        from mmcnb.engine import size_of
        from mmcnb.samples import open_samples

        return size_of(open_samples(arguments.store, arguments.element), arguments.jobs)
    if arguments.store is not None or None in by_hand:
        raise InputError("plan takes either STORE or both --rows and --features.")
    if min(by_hand) < 1:
        raise InputError(f"--rows {arguments.rows} --features {arguments.features}: give at least 1 of each.")
    return {"n_samples": arguments.rows, "n_features": arguments.features}
