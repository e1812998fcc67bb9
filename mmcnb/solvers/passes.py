"""The passes of the solvers: all that touches rows. What they return has the size of the basis."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mmcnb import kernels
from mmcnb.samples import CSRBlock
from mmcnb.solvers.hyperplane import Hyperplane, Labels, Scores


def first_rows(labels: np.ndarray, n_clusters: int, start: int = 0) -> np.ndarray:
    """First row of each cluster, of rows that begin at ``start``; the largest int64 where there is none."""
    first = np.full(n_clusters, np.iinfo(np.int64).max)
    found, where = np.unique(labels, return_index=True)
    first[found] = start + where
    return first


class Rule(Protocol):
    """What gives values of rows."""

    def decide(self, rows: Any) -> np.ndarray:
        """Values of a block of features."""


@dataclass(frozen=True)
class WeightedPass:
    """What every pass needs: the sample weights of a block."""

    weights: np.ndarray | None

    def weights_of(self, start: int, stop: int) -> np.ndarray:
        return np.ones(stop - start) if self.weights is None else self.weights[start:stop]


@dataclass(frozen=True)
class MostViolatedPass(WeightedPass):
    """The most violated constraint of a hyperplane, with its sums; optionally which rows are in it."""

    labels: Labels
    hyperplane: Hyperplane
    rho: float
    keep_rows: bool = False

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0, []]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        sparse = isinstance(rows, CSRBlock)
        sweep = kernels.most_violated_constraint_csr if sparse else kernels.most_violated_constraint
        features, plane = rows[:3] if sparse else (rows,), self.hyperplane
        active, row_sum, sums = sweep(*features, y, weights, plane.coef, plane.offset, self.rho)
        return [row_sum, sums, [active] if self.keep_rows else []]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class PlaneSumsPass(WeightedPass):
    """Planes rebuilt under new labels, and the mean of the features."""

    labels: Labels
    coefs: np.ndarray
    offsets: np.ndarray
    rhos: np.ndarray

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        planes = (y, weights, self.coefs, self.offsets, self.rhos)
        if isinstance(rows, CSRBlock):
            return list(kernels.plane_sums_csr(*rows[:3], *planes))
        return list(kernels.plane_sums(rows, *planes))

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class RowSumPass(WeightedPass):
    """Weighted sum of the features, and the weight."""

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sum of one block."""
        weights = self.weights_of(start, stop)
        if isinstance(rows, CSRBlock):
            return [kernels.weighted_row_sum_csr(*rows[:3], weights, rows.n_features), float(weights.sum())]
        return [kernels.weighted_row_sum(rows, weights), float(weights.sum())]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sum of both."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class DecisionPass:
    """Decision values of all rows, in order."""

    rule: Rule

    def start(self) -> list[np.ndarray]:
        """Nothing yet."""
        return []

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """Decision values of one block."""
        return [self.rule.decide(rows)]

    def combine(self, total: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
        """Decision values of both."""
        return total + other


@dataclass(frozen=True)
class RangePass:
    """Least and largest decision value."""

    hyperplane: Hyperplane

    def start(self) -> tuple[float, float]:
        """The empty range."""
        return np.inf, -np.inf

    def block(self, rows: Any, start: int, stop: int) -> tuple[float, float]:
        """Range of one block."""
        f = self.hyperplane.decide(rows)
        return float(f.min()), float(f.max())

    def combine(self, total: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
        """Range of both."""
        return min(total[0], other[0]), max(total[1], other[1])


@dataclass(frozen=True)
class GapPass:
    """Largest decision value below q, and least at or above it."""

    hyperplane: Hyperplane
    q: float

    def start(self) -> tuple[float, float]:
        """No value on either side."""
        return -np.inf, np.inf

    def block(self, rows: Any, start: int, stop: int) -> tuple[float, float]:
        """The two values of one block."""
        f = self.hyperplane.decide(rows)
        below = f < self.q
        return float(f[below].max(initial=-np.inf)), float(f[~below].min(initial=np.inf))

    def combine(self, total: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
        """The two values of both."""
        return max(total[0], other[0]), min(total[1], other[1])


@dataclass(frozen=True)
class HistogramPass(WeightedPass):
    """Weight of the decision values in equal bins, with the weight below the range in front."""

    hyperplane: Hyperplane
    edges: np.ndarray

    def start(self) -> np.ndarray:
        """Nothing yet."""
        return np.zeros(self.edges.shape[0] + 1)

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Weights of one block."""
        bins = np.searchsorted(self.edges, self.hyperplane.decide(rows), side="right")
        return np.bincount(bins, self.weights_of(start, stop), self.edges.shape[0] + 1)

    def combine(self, total: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Weights of both."""
        return total + other


@dataclass(frozen=True)
class MarginPass(WeightedPass):
    """Margins of rows, their largest score less the second, with the sizes of the clusters."""

    rule: Scores
    rho: float

    def start(self) -> list[Any]:
        """Nothing yet: weighted max(0, rho - margin), sizes, first row of each cluster."""
        return [0.0, 0.0, first_rows(np.empty(0, np.int64), self.rule.offset.shape[0])]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        scores, weights, k = self.rule.decide(rows), self.weights_of(start, stop), self.rule.offset.shape[0]
        labels = scores.argmax(axis=1)
        sizes, first = np.bincount(labels, weights, k), first_rows(labels, k, start)
        ranked = np.sort(scores, axis=1)
        hinge = np.maximum(0.0, self.rho - (ranked[:, -1] - ranked[:, -2])) if k > 1 else np.zeros(1)
        return [float((weights * hinge).sum()), sizes, first]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        return [total[0] + other[0], total[1] + other[1], np.minimum(total[2], other[2])]
