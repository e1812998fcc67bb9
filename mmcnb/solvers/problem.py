"""Rows as the solver sees them: features, labels, weights, and the geometry of planes.

Everything that touches rows is a pass; what it returns has the size of the basis.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from mmcnb import kernels
from mmcnb.engine import Engine, Pass
from mmcnb.samples import CSRBlock, Samples

BINS = 4096
Total = TypeVar("Total")


@dataclass(frozen=True)
class Hyperplane:
    """f(x) = F(x)·coef + offset, for the features F of a row.

    Parameters
    ----------
    coef : ndarray of shape (p,)
        Normal vector in the coordinates of the features.
    offset : float
        Offset.
    """

    coef: np.ndarray
    offset: float

    def decide(self, rows: Any) -> np.ndarray:
        """Decision values of a block of features."""
        if isinstance(rows, CSRBlock):
            return kernels.decision_values_csr(*rows[:3], self.coef, self.offset)
        return kernels.decision_values(rows, self.coef, self.offset)

    def shifted(self, q: float) -> "Hyperplane":
        """The hyperplane with its threshold at q instead of 0."""
        return Hyperplane(self.coef, self.offset - q)


class Labels(Protocol):
    """Labels -1 or +1 of the rows of a block."""

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Labels of rows start to stop, whose features are ``rows``."""


@dataclass(frozen=True)
class GivenLabels:
    """Labels held as one byte a row.

    Parameters
    ----------
    y : ndarray of shape (n,), int8
        -1 or +1.
    """

    y: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """The labels of rows start to stop."""
        return self.y[start:stop]


@dataclass(frozen=True)
class HyperplaneLabels:
    """Labels derived from a hyperplane when they are needed: nothing of size n is kept.

    Parameters
    ----------
    hyperplane : Hyperplane
        The sign of its decision value is the label.
    """

    hyperplane: Hyperplane

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """The labels of rows start to stop."""
        return signs(self.hyperplane.decide(rows))


def signs(f: np.ndarray) -> np.ndarray:
    """Labels -1 or +1 (int8) of decision values; 0 counts as +1."""
    return np.where(f >= 0, 1, -1).astype(np.int8)


@dataclass(frozen=True)
class Sums:
    """What one sweep says of a hyperplane and the labels: means over the weight of all rows.

    Parameters
    ----------
    active : float
        Share of the rows in the most violated constraint (s).
    signed : float
        The same, signed by the labels (t).
    violation : float
        Mean of c (rho - y f): the true slack.
    positive : float
        Share of the rows with f >= 0.
    changed : int
        Number of rows whose label the hyperplane would change.
    hinge : float
        Mean of max(0, rho - |f|): the slack under the hyperplane's own labels.
    """

    active: float
    signed: float
    violation: float
    positive: float
    changed: int
    hinge: float


@dataclass(frozen=True)
class _Weighted:
    """What every pass needs: the sample weights of a block."""

    weights: np.ndarray | None

    def weights_of(self, start: int, stop: int) -> np.ndarray:
        return np.ones(stop - start) if self.weights is None else self.weights[start:stop]


@dataclass(frozen=True)
class MostViolatedPass(_Weighted):
    """The most violated constraint of a hyperplane, with its sums; optionally which rows are in it."""

    labels: Labels
    hyperplane: Hyperplane
    rho: float
    keep_rows: bool = False

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0, []]

    def block(self, rows: Any, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        plane = self.hyperplane
        if isinstance(rows, CSRBlock):
            return kernels.most_violated_constraint_csr(
                *rows[:3], y, weights, plane.coef, plane.offset, self.rho
            )
        return kernels.most_violated_constraint(rows, y, weights, plane.coef, plane.offset, self.rho)

    def combine(self, total: list[Any], partial: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[Any]:
        """Sums so far."""
        active, row_sum, sums = partial
        total[0], total[1] = total[0] + row_sum, total[1] + sums
        if self.keep_rows:
            total[2].append(active)
        return total


@dataclass(frozen=True)
class PlaneSumsPass(_Weighted):
    """Planes rebuilt under new labels, and the mean of the features."""

    labels: Labels
    coefs: np.ndarray
    offsets: np.ndarray
    rhos: np.ndarray

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        planes = (y, weights, self.coefs, self.offsets, self.rhos)
        if isinstance(rows, CSRBlock):
            return kernels.plane_sums_csr(*rows[:3], *planes)
        return kernels.plane_sums(rows, *planes)

    def combine(self, total: list[Any], partial: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[Any]:
        """Sums so far."""
        return [a + b for a, b in zip(total, partial, strict=True)]


@dataclass(frozen=True)
class RowSumPass(_Weighted):
    """Weighted sum of the features, and the weight."""

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> tuple[np.ndarray, float]:
        """Sum of one block."""
        weights = self.weights_of(start, stop)
        if isinstance(rows, CSRBlock):
            return kernels.weighted_row_sum_csr(*rows[:3], weights, rows.n_features), float(weights.sum())
        return kernels.weighted_row_sum(rows, weights), float(weights.sum())

    def combine(self, total: list[Any], partial: tuple[np.ndarray, float]) -> list[Any]:
        """Sum so far."""
        return [total[0] + partial[0], total[1] + partial[1]]


@dataclass(frozen=True)
class DecisionPass:
    """Decision values of all rows, in order."""

    hyperplane: Hyperplane

    def start(self) -> list[np.ndarray]:
        """Nothing yet."""
        return []

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Decision values of one block."""
        return self.hyperplane.decide(rows)

    def combine(self, total: list[np.ndarray], partial: np.ndarray) -> list[np.ndarray]:
        """Decision values so far."""
        total.append(partial)
        return total


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

    def combine(self, total: tuple[float, float], partial: tuple[float, float]) -> tuple[float, float]:
        """Range so far."""
        return min(total[0], partial[0]), max(total[1], partial[1])


@dataclass(frozen=True)
class HistogramPass(_Weighted):
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

    def combine(self, total: np.ndarray, partial: np.ndarray) -> np.ndarray:
        """Weights so far."""
        return total + partial


class Problem:
    """Rows as features with their weights, and an engine to sweep them.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    features : Samples
        One row of features a sample: kernel values against a basis, or the rows themselves.
    metric : ndarray of shape (p, r) or None
        M with M M' the inverse of the kernel matrix of the basis, so that F M has the inner products
        of the landmark space (Nyström); None where features are already orthonormal coordinates.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    hold_labels : bool, default=False
        Keep labels as one byte a row, which saves work on a sample, instead of deriving them in each sweep.
    basis : ndarray of shape (p, d) or None, default=None
        The basis vectors; None where rows are their own features.
    """

    def __init__(
        self,
        engine: Engine,
        features: Samples,
        metric: np.ndarray | None,
        weights: np.ndarray | None = None,
        hold_labels: bool = False,
        basis: np.ndarray | None = None,
    ) -> None:
        self.engine, self.features, self.metric, self.weights = engine, features, metric, weights
        self.hold_labels, self.basis = hold_labels, basis
        self.description = "" if hold_labels else "sweep"  # work on a sample is too short for a bar
        self.n_samples = features.n_samples
        row_sum, self.total_weight = self._sweep(RowSumPass(weights))
        self.mean = row_sum / self.total_weight

    def _sweep(self, pass_: Pass[Total]) -> Total:
        return self.engine.run(pass_, self.features, self.description)

    def represent(self, row_sums: np.ndarray) -> np.ndarray:
        """Coefficients, on the features, of vectors given by their inner products with the basis."""
        return row_sums if self.metric is None else (row_sums @ self.metric) @ self.metric.T

    def most_violated(self, labels: Labels, hyperplane: Hyperplane, rho: float) -> tuple[np.ndarray, Sums]:
        """The mean of y F over the most violated constraint, and the sums of the sweep."""
        row_sum, sums, _ = self._sweep(MostViolatedPass(self.weights, labels, hyperplane, rho))
        return row_sum / self.total_weight, self.read_sums(sums)

    def read_sums(self, sums: np.ndarray) -> Sums:
        """Name the sums of a sweep, as means over the weight of all rows."""
        active, signed, violation, positive, changed, hinge = (
            sums[:6] / np.r_[[self.total_weight] * 4, 1, self.total_weight]
        )
        return Sums(active, signed, violation, positive, int(changed), hinge)

    def plane_sums(
        self, labels: Labels, generators: list[tuple[Hyperplane, float]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The planes that some hyperplanes generate under the labels: s, t and means of y F."""
        coefs = np.ascontiguousarray(np.column_stack([plane.coef for plane, _ in generators]))
        offsets = np.array([plane.offset for plane, _ in generators])
        rhos = np.array([rho for _, rho in generators], np.float64)
        sums = self._sweep(PlaneSumsPass(self.weights, labels, coefs, offsets, rhos))
        s, t, row_sums = (total / self.total_weight for total in sums)
        return s, t, row_sums

    def decide(self, hyperplane: Hyperplane) -> np.ndarray:
        """Decision values of all rows."""
        return np.concatenate(self._sweep(DecisionPass(hyperplane)))

    def labels_of(self, hyperplane: Hyperplane) -> Labels:
        """The labels that a hyperplane gives."""
        if self.hold_labels:
            return GivenLabels(signs(self.decide(hyperplane)))
        return HyperplaneLabels(hyperplane)

    def quantile(self, hyperplane: Hyperplane, share: float) -> float:
        """A threshold that leaves about a given share of the weight of the decision values below it.

        Found by refining a histogram, so that nothing of size n is kept. Ties are not split: of the
        thresholds on their two sides the one with the larger smaller side is taken.
        """
        low, high = self._sweep(RangePass(hyperplane))
        high = np.nextafter(high, np.inf)
        for _ in range(5):
            edges = np.linspace(low, high, BINS + 1)
            counts = self._sweep(HistogramPass(self.weights, hyperplane, edges))
            below = np.cumsum(counts)[:-1]  # weight of f < edges[k]
            k = int(np.searchsorted(below, share * self.total_weight, side="left"))
            k = min(max(k, 1), BINS)
            sides = np.minimum(below, self.total_weight - below)[k - 1 : k + 1]
            low, high = float(edges[k - 1]), float(edges[k])
            if high <= np.nextafter(low, np.inf):
                break
        return low if sides[0] > sides[1] or (sides[0] == sides[1] and share > 0.5) else high


def metric_of(gram: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """M with M M' the pseudo-inverse of a kernel matrix; tiny eigenvalues are dropped."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > tolerance * values[-1]
    return np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))
