"""What the stages of one fit share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.passes import DrawnSample
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine
from mmcnb.samples import Samples

Record = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class FitSession:
    """What the stages of one fit share.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        All rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    plan : FitPlan
        What is held where.
    record : callable
        Keeps one dict a sweep, for ``history_``.
    found : Survey
        The sample, its columns scaled, and the moments of the columns.
    sample_weights : ndarray of shape (m,) or None
        Weights of the sample.
    """

    engine: Engine
    samples: Samples
    weights: np.ndarray | None
    plan: FitPlan
    record: Callable[[dict[str, Any]], None]
    found: DrawnSample
    sample_weights: np.ndarray | None


def gathered(facts: dict[str, Any] | None = None) -> tuple[list[dict[str, Any]], Record]:
    """A list, and a record that adds to it, with some facts and ``clock``, when it happened."""
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row | (facts or {}) | {"clock": time.perf_counter()})

    return rows, keep
