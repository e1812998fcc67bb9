"""Cutting planes of the hinge form for k clusters: each row against its runner-up cluster.

W has one row a cluster, f_h = W_h·z in centred features z. The hinge of a row of cluster c is
max(0, rho - (f_c - max_{r != c} f_r)), and

    min  1/2 |W|² - rho + C mean_i max(0, rho - (f_c - f_r))

is the two-cluster problem with other planes: P = mean over the active rows of (e_c - e_r) z', a k x r matrix
that is stored flattened. So the QP, the cutting-plane loop and the CCCP rounds are the same. With two
clusters W = (w, -w), and rho and the objective are twice those of the two-cluster form.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from mmcnb.engine.passes import SumPass, WeightedPass, first_rows
from mmcnb.features.rules import GivenLabels, Labels, RuleLabels, Scores
from mmcnb.hinge.cutting_plane import ConstraintStatistics
from mmcnb.hinge.training_set import LabelStep, TrainingSet
from mmcnb.hinge.working_set import WorkingSet
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix


@dataclass(frozen=True)
class MarginPass(WeightedPass):
    """Margins of rows, the largest score minus the second, with the sizes of the clusters."""

    rule: Scores
    rho: float

    def start(self) -> list[Any]:
        """Zero totals: weighted max(0, rho - margin), sizes, first row of each cluster."""
        return [0.0, 0.0, first_rows(np.empty(0, np.int64), self.rule.offset.shape[0])]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        scores, weights, k = self.rule.decide(rows), self.weights_of(start, stop), self.rule.offset.shape[0]
        labels = scores.argmax(axis=1)
        sizes, first = np.bincount(labels, weights, k), first_rows(labels, k, start)
        ranked = np.sort(scores, axis=1)
        hinge = np.maximum(0.0, self.rho - (ranked[:, -1] - ranked[:, -2])) if k > 1 else np.zeros(1)
        return [float((weights * hinge).sum()), sizes, first]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Totals of both."""
        return [total[0] + other[0], total[1] + other[1], np.minimum(total[2], other[2])]


@dataclass(frozen=True)
class RunnerUpPass(SumPass):
    """The constraints that some scores violate most: one cutting plane for each of them.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights.
    labels : Labels
        Cluster of each row.
    generators : sequence of (Scores, float)
        Scores and their rho. With an infinite rho all rows are active, and all other clusters count equally
        as runners-up.
    """

    labels: Labels
    generators: Any
    n_sums: ClassVar[int] = 3

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        rows, labels = as_matrix(rows), self.labels.block(rows, start, stop)
        weights = self.weights_of(start, stop)
        parts = []
        for scores, rho in self.generators:
            if np.isinf(rho):
                parts.append(_all_runner_ups(rows, labels, weights, scores.offset.shape[0]))
            else:
                values = scores.decide(rows)
                parts.append(kernels.most_violated_runner_ups(rows, values, labels, weights, rho))
        return [np.array(one) for one in zip(*parts, strict=True)]


def _all_runner_ups(rows: Any, labels: np.ndarray, weights: np.ndarray, k: int) -> tuple[Any, ...]:
    """The cutting plane of all rows: it needs no scores, and holds for any labels."""
    sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
    others = max(k - 1, 1)
    row_sums = sums - (sums.sum(axis=0) - sums) / others
    return row_sums, sizes - (sizes.sum() - sizes) / others, np.array([weights.sum(), 0.0, 0.0, 0.0])


@dataclass(eq=False)
class MulticlassTrainingSet(TrainingSet):
    """Rows as features, to be partitioned into k clusters.

    Parameters
    ----------
    engine, features, normalization, weights, hold_labels, basis, row_sum
        As in `TrainingSet`.
    sketch : MulticlassTrainingSet or None, default=None
        A uniform sample of the rows whose cluster sizes stay within the bounds; None counts all rows.
    bounds : pair of ndarray of shape (k,)
        Least and most rows (or weight) of each cluster; of the sketch where there is one.
    """

    bounds: tuple[np.ndarray, np.ndarray] = field(kw_only=True)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.bounds[0].shape[0]

    def runner_ups(self, labels: Labels, generators: Any) -> list[np.ndarray]:
        """The totals of `RunnerUpPass` as means over the weight, for each generator."""
        totals = self._sweep(RunnerUpPass(self.weights, labels, generators))
        return [total / self.total_weight for total in totals]

    def over(self, features: Samples, weights: np.ndarray | None, **given: Any) -> Self:
        """The same problem on other rows; where labels are not held, this set serves as the sketch."""
        sketch = given.pop("sketch", None) or (None if given.get("hold_labels") else self)
        other = super().over(features, weights, sketch=sketch, **given)
        if sketch is None:
            share, (low, high) = other.total_weight / self.total_weight, self.bounds
            other.bounds = np.floor(low * share).astype(np.int64), np.ceil(high * share).astype(np.int64)
        return other

    def labels_of(self, hyperplane: Any) -> Labels:
        """The cluster of the largest score."""
        if not self.hold_labels:
            return RuleLabels(hyperplane)
        return GivenLabels(hyperplane.label(self.features.block(0, self.n_samples)))

    def label_step(
        self, labels: Labels, hyperplane: Any, statistics: ConstraintStatistics, least: float
    ) -> LabelStep:
        """The largest score of each row, minus the multipliers that keep cluster sizes within bounds."""
        b = (self.sketch or self).size_multipliers(hyperplane)
        boundary = hyperplane.shifted(b)
        new = self.labels_of(boundary)
        if not self.hold_labels:
            return LabelStep(new, boundary, b, statistics.changed, not b.any())
        every = None, 0, self.n_samples
        changed = new.block(*every) != labels.block(*every)
        weight = changed.sum() if self.weights is None else self.weights[changed].sum()
        return LabelStep(new, boundary, b, float(weight), True)

    def size_multipliers(self, hyperplane: Any) -> np.ndarray:
        """What to subtract from the scores so that cluster sizes stay within their bounds."""
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        start = np.zeros(self.n_clusters)
        return kernels.size_multipliers(self.decide(hyperplane), *self.bounds, weights, start)


class CrammerSingerWorkingSet(WorkingSet):
    """Cutting planes of k clusters on a fixed basis, each stored with the scores that generated it.

    Parameters
    ----------
    training_set : MulticlassTrainingSet
        The rows.
    """

    training_set: MulticlassTrainingSet

    def all_rows(self) -> tuple[Scores, float]:
        """Scores of 0 and an infinite threshold."""
        k, p = self.training_set.n_clusters, self.training_set.mean.shape[0]
        return Scores(np.zeros((p, k)), np.zeros(k)), np.inf

    def relabel(self, labels: Labels) -> None:
        """Rebuild all cutting planes under the labels, in one sweep."""
        row_sums, shares, statistics = self.training_set.runner_ups(labels, self.generators)
        self.s, self.t = statistics[:, 0], np.zeros(statistics.shape[0])
        self.centred, self.coefs = self._flat(row_sums, shares)

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep: the most violated constraint and its statistics."""
        generator = hyperplane, rho
        row_sums, shares, means = self.training_set.runner_ups(labels, [generator])
        active, violation, changed, hinge = means[0].tolist()
        statistics = ConstraintStatistics(
            active, 0.0, violation, 0.0, changed * self.training_set.total_weight, hinge
        )
        return (generator, statistics, *self._flat(row_sums, shares)), statistics

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """W = Σ λ_p P_p, as scores of mean 0."""
        coef = self.combine(multipliers).reshape(self.training_set.n_clusters, -1)
        return Scores(np.ascontiguousarray(coef.T), coef @ self.training_set.mean)

    def _flat(self, row_sums: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cutting planes as rows: inner products with the basis, and coefficients on it."""
        centred = row_sums - shares[:, :, None] * self.training_set.mean
        planes = centred.shape[0]
        return centred.reshape(planes, -1), self.training_set.represent(centred).reshape(planes, -1)
