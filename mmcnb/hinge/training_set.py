"""The training set of the solver: features with their weights, and the geometry of cutting planes."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from mmcnb.engine.passes import RowSumPass, SumPass
from mmcnb.engine.run import Engine, Pass
from mmcnb.features.rules import DecisionPass, GivenLabels, Hyperplane, Labels, RuleLabels, signs
from mmcnb.hinge.cutting_plane import ConstraintStatistics, MostViolatedPass
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples

BINS = 4096  # of a histogram; five passes find a quantile to the last bit
Total = TypeVar("Total")


@dataclass(frozen=True)
class LabelStep:
    """New labels, and how they were found.

    Parameters
    ----------
    labels : Labels
        The labels.
    boundary : Hyperplane or Scores
        What gives them: the hyperplane, shifted by the threshold.
    threshold : float or ndarray of shape (k,)
        Shift of the decision values that brings the sizes within their bounds; 0 where none is needed.
    changed : float
        Weight of the rows that change their label.
    counted : bool
        Whether that weight is exact. After a shift found in a stream it is the weight without the shift.
    """

    labels: Labels
    boundary: Any
    threshold: Any
    changed: float
    counted: bool


@dataclass(eq=False)
class TrainingSet:
    """Rows as features with their weights, and an engine that sweeps them.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    features : Samples
        One row of features per sample: kernel values against a basis, or the rows themselves.
    normalization : ndarray of shape (p, r), tuple of such, or None
        M with M M' the inverse of the kernel matrix of the basis, so that F M has the inner products of
        the landmark space (Nyström). A tuple holds the blocks of M, for features side by side. None where
        features are already orthonormal coordinates.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    hold_labels : bool, default=False
        Store labels, one byte per row, instead of deriving them in each sweep; it saves work on a sample.
    basis : ndarray of shape (p, d) or None, default=None
        The basis vectors; None where rows are their own features.
    row_sum : (ndarray of shape (p,), float) or None, default=None
        The totals of `RowSumPass`, where an earlier pass has computed them.
    sketch : TrainingSet or None, default=None
        A uniform sample of the rows for quantiles; None takes them on all rows.
    """

    engine: Engine
    features: Samples
    normalization: np.ndarray | tuple[np.ndarray, ...] | None
    weights: np.ndarray | None = None
    hold_labels: bool = False
    basis: np.ndarray | None = None
    row_sum: tuple[np.ndarray, float] | None = None
    sketch: Any = None

    def __post_init__(self) -> None:
        blocks = self.normalization if isinstance(self.normalization, tuple) else (self.normalization,)
        self.inverses = [block @ block.T for block in blocks if block is not None]
        self.n_samples = self.features.n_samples
        total, weight = self.row_sum or self._sweep(RowSumPass(self.weights))
        self.total_weight: float = weight
        self.mean: np.ndarray = total / weight

    def _sweep(self, pass_: Pass[Total]) -> Total:
        description = "" if self.hold_labels else "sweep"  # work on a sample is too short for a bar
        return self.engine.run(pass_, self.features, description)

    def represent(self, row_sums: np.ndarray) -> np.ndarray:
        """Coefficients on the features of vectors that are given by inner products with the basis."""
        if not self.inverses:
            return row_sums
        starts = np.cumsum([inverse.shape[0] for inverse in self.inverses])[:-1]
        parts = np.split(row_sums, starts, axis=-1)
        return np.concatenate(
            [one @ inverse for one, inverse in zip(parts, self.inverses, strict=True)], axis=-1
        )

    def over(self, features: Samples, weights: np.ndarray | None, **given: Any) -> Self:
        """The same problem on other rows in the same features; ``given`` are further arguments."""
        fresh = {"hold_labels": False, "basis": None, "row_sum": None, "sketch": None}
        return replace(self, features=features, weights=weights, **fresh | given)

    def most_violated(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[np.ndarray, ConstraintStatistics]:
        """The mean of y F over the most violated constraint, and the statistics of the sweep."""
        row_sum, totals, _ = self._sweep(MostViolatedPass(self.weights, labels, hyperplane, rho))
        return row_sum / self.total_weight, self.statistics_of(totals)

    def most_violated_rows(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[np.ndarray, np.ndarray, ConstraintStatistics]:
        """As `most_violated`, preceded by which rows are in the constraint: one byte per row."""
        sweep = MostViolatedPass(self.weights, labels, hyperplane, rho, keep_rows=True)
        row_sum, totals, active = self._sweep(sweep)
        return np.concatenate(active), row_sum / self.total_weight, self.statistics_of(totals)

    def statistics_of(self, totals: np.ndarray) -> ConstraintStatistics:
        """The totals of a sweep as named means over the weight of all rows."""
        active, signed, violation, positive, changed, hinge, _ = totals.tolist()
        total = self.total_weight
        shares = active / total, signed / total, violation / total, positive / total
        return ConstraintStatistics(*shares, changed, hinge / total)

    def plane_sums(
        self, labels: Labels, generators: list[tuple[Hyperplane, float]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cutting planes that some hyperplanes generate under the labels: s, t and means of y F."""
        coefs = np.ascontiguousarray(np.column_stack([plane.coef for plane, _ in generators]))
        offsets = np.array([plane.offset for plane, _ in generators])
        rhos = np.array([rho for _, rho in generators], np.float64)
        totals = self._sweep(PlaneSumsPass(self.weights, labels, coefs, offsets, rhos))
        s, t, row_sums = (total / self.total_weight for total in totals)
        return s, t, row_sums

    def decide(self, hyperplane: Hyperplane) -> np.ndarray:
        """Decision values of all rows."""
        return np.concatenate(self._sweep(DecisionPass(hyperplane)))

    def labels_of(self, hyperplane: Hyperplane) -> Labels:
        """The labels that a hyperplane gives."""
        if self.hold_labels:
            return GivenLabels(signs(self.decide(hyperplane)))
        return RuleLabels(hyperplane)

    def label_step(
        self, labels: Labels, hyperplane: Hyperplane, statistics: ConstraintStatistics, least: float
    ) -> LabelStep:
        """The labels of a hyperplane, shifted where a cluster would fall below its least share.

        Parameters
        ----------
        labels : Labels
            The previous labels.
        hyperplane : Hyperplane
            The hyperplane.
        statistics : ConstraintStatistics
            Its statistics under these labels.
        least : float
            Least share of the smaller cluster.

        Returns
        -------
        LabelStep
            The new labels, their threshold and how many changed.
        """
        q = self.label_threshold(hyperplane, statistics.positive, least)
        boundary = hyperplane.shifted(q)
        return LabelStep(self.labels_of(boundary), boundary, q, statistics.changed, q == 0.0)

    def label_threshold(self, hyperplane: Hyperplane, positive: float, least: float) -> float:
        """0 where both clusters hold their least share; otherwise the quantile that ensures it."""
        if least <= positive <= 1 - least:
            return 0.0
        return self.quantile(hyperplane, 1 - least if positive < least else least)

    def quantile(self, hyperplane: Hyperplane, share: float) -> float:
        """A threshold that leaves about a given share of the weight of the decision values below it.

        A histogram is refined step by step, so nothing of size n is stored. Ties are not split: of the
        thresholds on their two sides, the one that leaves the smaller cluster larger is taken.
        """
        if self.sketch is not None:
            return self.sketch.quantile(hyperplane, share)
        low, high = self._sweep(RangePass(hyperplane))
        high = np.nextafter(high, np.inf)
        for _ in range(5):
            edges = np.linspace(low, high, BINS + 1)
            (counts,) = self._sweep(HistogramPass(self.weights, hyperplane, edges))
            below = np.cumsum(counts)[:-1]  # weight of f < edges[k]
            k = int(np.searchsorted(below, share * self.total_weight * (1 - 1e-12), side="left"))
            k = min(max(k, 1), BINS)
            sides = np.minimum(below, self.total_weight - below)[k - 1 : k + 1]
            low, high = float(edges[k - 1]), float(edges[k])
            if high <= np.nextafter(low, np.inf):
                break
        q = low if sides[0] > sides[1] or (sides[0] == sides[1] and share > 0.5) else high
        under, above = self._sweep(GapPass(hyperplane, q))
        # The middle of the gap, where rounding cannot move a row to the other side.
        return under + (above - under) / 2 if np.isfinite(above - under) else q


@dataclass(frozen=True)
class PlaneSumsPass(SumPass):
    """Cutting planes rebuilt under new labels: s, t and sums of y F."""

    labels: Labels
    coefs: np.ndarray
    offsets: np.ndarray
    rhos: np.ndarray

    n_sums: ClassVar[int] = 3

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        given = (y, weights, self.coefs, self.offsets, self.rhos)
        if isinstance(rows, CSRBlock):
            return list(kernels.plane_sums_csr(*rows[:3], *given))
        return list(kernels.plane_sums(rows, *given))


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
        """An empty gap."""
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
class HistogramPass(SumPass):
    """Weight of the decision values in equal bins; the first entry is the weight below the range."""

    hyperplane: Hyperplane
    edges: np.ndarray

    n_sums: ClassVar[int] = 1

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """Weights of one block."""
        bins = np.searchsorted(self.edges, self.hyperplane.decide(rows), side="right")
        return [np.bincount(bins, self.weights_of(start, stop), self.edges.shape[0] + 1)]
