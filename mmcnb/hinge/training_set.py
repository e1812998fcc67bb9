"""The training set of the solver: features, weights, and passes that sum over rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from mmcnb.engine.passes import RowSumPass, SumPass, Sums, WeightedPass
from mmcnb.engine.run import Engine, Pass, Total
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.rules import (
    GivenLabels,
    Hyperplane,
    Labels,
    RuleLabels,
    Scores,
)
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.matrix import Block, Matrix, Weights, as_matrix

BINS = 4096  # bins of a histogram; five passes then find a quantile to the last bit
# An empty bin: its weight, smallest value and largest value.
NO_VALUE = [[0.0], [np.inf], [-np.inf]]


@dataclass(frozen=True)
class ConstraintStatistics:
    """Statistics of a hyperplane under given labels, from one sweep.

    All statistics except ``changed`` are weighted means over all rows. The indicator c
    of a row is 1 if the row is in the most violated constraint, and 0 otherwise.

    Parameters
    ----------
    active : float
        Mean of c (s in the QP).
    signed : float
        Mean of c y (t in the QP).
    violation : float
        Mean of c (rho - y f): the slack over all constraints.
    positive : float
        Share of the rows with f >= 0; 0 if there are more than two clusters.
    changed : float
        Weight of the rows whose label the hyperplane would change.
    hinge : float
        Mean of max(0, rho - |f|): the hinge loss if each row had the label that the
        hyperplane predicts.
    """

    active: float
    signed: float
    violation: float
    positive: float
    changed: float
    hinge: float


class Generator(NamedTuple):
    """Hyperplane and rho, which together with labels determine a cutting plane."""

    hyperplane: Any
    rho: float


class MostViolated(NamedTuple):
    """The constraint that a hyperplane violates most.

    Parameters
    ----------
    centred : ndarray of shape (p,)
        Sum of y F over the rows of the constraint, in centred features, divided by the
        weight of all rows.
    statistics : ConstraintStatistics
        Statistics of the sweep.
    active : ndarray of shape (n,), int8
        1 for rows of the constraint and 0 for all other rows; empty if labels are not
        stored.
    """

    centred: np.ndarray
    statistics: ConstraintStatistics
    active: np.ndarray


class PlaneSums(NamedTuple):
    """Cutting planes of several generators: s, t and centred means of y F."""

    s: np.ndarray
    t: np.ndarray
    centred: np.ndarray


@dataclass(frozen=True)
class MostViolatedPass(SumPass):
    """Pass that computes the constraint that a hyperplane violates most.

    The constraint consists of the rows with y f(x) <= rho. The pass computes the sum of
    y F(x) over these rows.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; if None, all weights are 1.
    labels : Labels
        The labels y, -1 or +1.
    hyperplane : Hyperplane
        The hyperplane f(x) = F(x)·w + b.
    rho : float
        Threshold of the margin.
    keep_rows : bool, default=False
        Whether to return a mask of the rows in the constraint, one byte per row.
    """

    labels: Labels
    hyperplane: Hyperplane
    rho: float
    keep_rows: bool = False

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the totals of one block."""
        hyperplane = self.hyperplane
        arguments = (
            self.labels.block(rows, start, stop),
            self.weights_of(start, stop),
            hyperplane.coef,
            hyperplane.offset,
            self.rho,
        )
        if isinstance(rows, CSRBlock):
            sums = kernels.most_violated_constraint_csr(*rows[:3], *arguments)
        else:
            sums = kernels.most_violated_constraint(rows, *arguments)
        active, row_sum, totals = sums
        return [row_sum, totals, [active] if self.keep_rows else []]


@dataclass(frozen=True)
class LabelStep:
    """New labels, and the boundary that determines them.

    Parameters
    ----------
    labels : Labels
        The new labels.
    boundary : Hyperplane or Scores
        The hyperplane or scores, shifted by ``threshold``.
    threshold : float or ndarray of shape (k,)
        Shift of the decision values that brings the cluster sizes within their bounds;
        0 if no shift is needed.
    changed : float
        Weight of the rows whose label changes.
    counted : bool
        Whether ``changed`` is exact. If not, ``changed`` is the weight of the rows
        whose label would change without the shift.
    """

    labels: Labels
    boundary: Any
    threshold: float | np.ndarray
    changed: float
    counted: bool


@dataclass(eq=False)
class TrainingSet:
    """Features and weights of rows, and an engine that makes passes over the rows.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes.
    features : Samples
        Features of the rows: kernel values against a basis, or the rows themselves.
    normalization : ndarray of shape (p, r), tuple of ndarray, or None
        Matrix M such that M M' is the inverse of the kernel matrix of the basis. The
        inner products of the rows of F M are then the Nyström approximation of the
        kernel. With several kernels, a tuple of the diagonal blocks of M, one block per
        kernel. If None, the features are not normalized.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights; if None, all weights are 1.
    hold_labels : bool, default=False
        Whether to store labels, with one byte per row, instead of computing them in
        each sweep. Storing labels saves time if the rows are in memory.
    basis : ndarray of shape (p, d) or None, default=None
        The basis vectors. None if the rows are their own features.
    row_sum : (ndarray of shape (p,), float) or None, default=None
        Weighted sum of the features, and sum of the weights. If None, a pass computes
        them.
    sketch : TrainingSet or None, default=None
        A uniform sample of the rows, from which quantiles are computed. If None, they
        are computed from all rows.
    """

    engine: Engine
    features: Samples
    normalization: np.ndarray | tuple[np.ndarray, ...] | None
    weights: Weights = None
    hold_labels: bool = False
    basis: np.ndarray | None = None
    row_sum: tuple[np.ndarray, float] | None = None
    sketch: Self | None = None

    def __post_init__(self) -> None:
        blocks = self.normalization
        if not isinstance(blocks, tuple):
            blocks = () if blocks is None else (blocks,)
        self.inverses = [block @ block.T for block in blocks]
        self.columns = list[slice]()
        start = 0
        for inverse in self.inverses:
            stop = start + len(inverse)
            self.columns.append(slice(start, stop))
            start = stop
        self.n_samples = self.features.n_samples
        total, weight = self.row_sum or self._sweep(RowSumPass(self.weights))
        self.total_weight: float = weight
        self.mean: np.ndarray = total / weight

    def _sweep(self, pass_: Pass[Total]) -> Total:
        # A sweep over a sample is too short for a progress bar.
        description = "" if self.hold_labels else "sweep"
        return self.engine.run(pass_, self.features, description)

    def matrix(self) -> Matrix:
        """Return the features of all rows as a float64 matrix."""
        return as_matrix(self.features.block(0, self.n_samples)).astype(np.float64)

    def represent(self, row_sums: np.ndarray) -> np.ndarray:
        """Convert inner products of vectors with the basis to coefficients."""
        if not self.inverses:
            return row_sums
        parts = [
            row_sums[..., columns] @ inverse
            for columns, inverse in zip(self.columns, self.inverses, strict=True)
        ]
        return np.concatenate(parts, axis=-1)

    def over(
        self,
        features: Samples,
        weights: Weights,
        hold_labels: bool = False,
        row_sum: tuple[np.ndarray, float] | None = None,
        sketch: Self | None = None,
    ) -> Self:
        """Return a training set of other rows in the same feature space."""
        return replace(
            self,
            features=features,
            weights=weights,
            hold_labels=hold_labels,
            row_sum=row_sum,
            sketch=sketch,
        )

    def all_rows(self) -> Generator:
        """Return the generator of the plane of all rows: f = 0 and infinite rho."""
        return Generator(Hyperplane(np.zeros(self.mean.shape[0]), 0.0), np.inf)

    def hyperplane(self, coef: np.ndarray, beta: float) -> Any:
        """Return the hyperplane with given coefficients and mean decision value."""
        return Hyperplane(coef, beta - float(self.mean @ coef))

    def most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> MostViolated:
        """Find the constraint that a hyperplane violates most, in one sweep."""
        sweep = MostViolatedPass(
            self.weights, labels, hyperplane, rho, self.hold_labels
        )
        row_sum, totals, active = self._sweep(sweep)
        active_weight, signed, violation, positive, changed, hinge, _ = totals.tolist()
        total = self.total_weight
        statistics = ConstraintStatistics(
            active=active_weight / total,
            signed=signed / total,
            violation=violation / total,
            positive=positive / total,
            changed=changed,
            hinge=hinge / total,
        )
        centred = row_sum / total - statistics.signed * self.mean
        no_rows = np.empty(0, np.int8)
        return MostViolated(centred, statistics, np.concatenate([no_rows, *active]))

    def plane_sums(self, labels: Labels, generators: Sequence[Generator]) -> PlaneSums:
        """Compute the planes of several generators under given labels, in one sweep."""
        hyperplanes = [generator.hyperplane for generator in generators]
        coefs = np.column_stack([hyperplane.coef for hyperplane in hyperplanes])
        sweep = PlaneSumsPass(
            weights=self.weights,
            labels=labels,
            coefs=np.ascontiguousarray(coefs),
            offsets=np.array([hyperplane.offset for hyperplane in hyperplanes]),
            rhos=np.array([generator.rho for generator in generators], np.float64),
        )
        total = self.total_weight
        s, t, row_sums = self._sweep(sweep)
        s = s / total
        t = t / total
        return PlaneSums(s, t, row_sums / total - np.outer(t, self.mean))

    def decide(self, rule: Hyperplane | Scores) -> np.ndarray:
        """Return the decision values or scores of all rows."""
        return np.concatenate(self._sweep(DecisionPass(rule)))

    def labels_of(self, hyperplane: Any) -> Labels:
        """Return the labels that a hyperplane or scores assign to all rows."""
        if self.hold_labels:
            labels = self._sweep(DecisionPass(RuleLabels(hyperplane)))
            return GivenLabels(np.concatenate(labels))
        return RuleLabels(hyperplane)

    def label_step(
        self,
        labels: Labels,
        hyperplane: Hyperplane,
        statistics: ConstraintStatistics,
        least: float,
    ) -> LabelStep:
        """Label rows by a hyperplane, which is shifted if a cluster would be too small.

        Parameters
        ----------
        labels : Labels
            The previous labels.
        hyperplane : Hyperplane
            The hyperplane.
        statistics : ConstraintStatistics
            Statistics of the hyperplane under the previous labels.
        least : float
            Minimum share of the total weight in the smaller cluster.

        Returns
        -------
        LabelStep
            The new labels, the shifted boundary, the threshold, and the weight of the
            changed labels.
        """
        q = 0.0
        positive = statistics.positive
        if positive < least:
            q = self.quantile(hyperplane, 1 - least)
        elif positive > 1 - least:
            q = self.quantile(hyperplane, least)
        boundary = hyperplane.shifted(q)
        labels = self.labels_of(boundary)
        return LabelStep(labels, boundary, q, statistics.changed, counted=q == 0.0)

    def quantile(self, hyperplane: Hyperplane, share: float) -> float:
        """Return a threshold with approximately a given share of the weight below it.

        A histogram is refined in several passes, so no array of size n is stored. Rows
        with equal decision values stay together: if the quantile is such a value, the
        threshold is just below or just above it, whichever makes the smaller cluster
        larger.
        """
        if self.sketch is not None:
            return self.sketch.quantile(hyperplane, share)
        _, least, largest = self._histogram(hyperplane, np.zeros(1))
        low = float(least.min())
        high = float(np.nextafter(largest.max(), np.inf))
        total = self.total_weight
        wanted = share * total * (1 - 1e-12)
        for _ in range(5):
            edges = np.linspace(low, high, BINS + 1)
            weight, _, _ = self._histogram(hyperplane, edges)
            below = np.cumsum(weight)[:-1]  # weight of f < edges[k]
            first_enough = int(np.searchsorted(below, wanted))
            k = min(max(first_enough, 1), BINS)
            smaller_at_low = min(below[k - 1], total - below[k - 1])
            smaller_at_high = min(below[k], total - below[k])
            low = float(edges[k - 1])
            high = float(edges[k])
            if high <= np.nextafter(low, np.inf):
                break
        q = high
        is_tie = smaller_at_low == smaller_at_high
        if smaller_at_low > smaller_at_high or (is_tie and share > 0.5):
            q = low
        _, least, largest = self._histogram(hyperplane, np.array([q]))
        under = float(largest[0])
        above = float(least[1])
        gap = above - under
        if not np.isfinite(gap):
            return q
        # Return the middle of the gap, so that rounding errors do not move rows across
        # the threshold.
        return under + gap / 2

    def _histogram(self, hyperplane: Hyperplane, edges: np.ndarray) -> np.ndarray:
        return self._sweep(HistogramPass(self.weights, hyperplane, edges))


@dataclass(frozen=True)
class PlaneSumsPass(SumPass):
    """Pass that rebuilds cutting planes under new labels: s, t and sums of y F."""

    labels: Labels
    coefs: np.ndarray
    offsets: np.ndarray
    rhos: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the totals of one block."""
        arguments = (
            self.labels.block(rows, start, stop),
            self.weights_of(start, stop),
            self.coefs,
            self.offsets,
            self.rhos,
        )
        if isinstance(rows, CSRBlock):
            return list(kernels.plane_sums_csr(*rows[:3], *arguments))
        return list(kernels.plane_sums(rows, *arguments))


@dataclass(frozen=True)
class HistogramPass(WeightedPass):
    """Pass that computes the weight, smallest and largest decision value of each bin.

    The first bin contains the decision values below all edges.
    """

    hyperplane: Hyperplane
    edges: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> np.ndarray:
        """Return the histogram of one block."""
        f = self.hyperplane.decide(rows)
        bins = np.searchsorted(self.edges, f, side="right")
        n_bins = self.edges.shape[0] + 1
        histogram = np.repeat(NO_VALUE, n_bins, axis=1)
        weight, least, largest = histogram
        weights = self.weights_of(start, stop)
        np.add.at(weight, bins, weights)
        np.minimum.at(least, bins, f)
        np.maximum.at(largest, bins, f)
        return histogram

    def combine(self, total: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Combine two histograms."""
        weight = total[0] + other[0]
        least = np.minimum(total[1], other[1])
        largest = np.maximum(total[2], other[2])
        return np.array([weight, least, largest])
