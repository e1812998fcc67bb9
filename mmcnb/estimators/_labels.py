"""Labels of all rows, written where they are computed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.samples import LabelsSink
from mmcnb.solvers import Hyperplane, Scores


@dataclass(frozen=True)
class LabelsPass:
    """Label the rows.

    With a sink each group of labels is written as one chunk, and the total is the chunks' digests.
    """

    rule: Hyperplane | Scores
    sink: LabelsSink | None = None

    def start(self) -> list[Any]:
        """Nothing yet."""
        return []

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Labels of one block."""
        return [self.rule.label(rows)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Labels of both, or digests of both."""
        return total + other

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Write the labels of a group."""
        return total if self.sink is None else [self.sink.write(start, np.concatenate(total))]
