"""Least squares clustering of all rows: label steps that keep k (p + 1) numbers a pass.

Landmark features are brought to coordinates z(x) = κ(x) M - c in which the ridge is the
identity, so that R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of the clusters.
A step labels each row by its largest score and sums the features of each cluster; the
means, and with them the next scores, follow from the sums.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS, Block, Sums
from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, whole_numbers
from mmcnb.features.kernel import Kernel
from mmcnb.features.labelling import (
    ClustersPass,
    KeptLabels,
    labels_in_order,
    likely_order,
)
from mmcnb.features.model import Model
from mmcnb.features.nystroem import PrincipalFeatures, RidgeMap
from mmcnb.features.rules import Scores
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.objective import Bounds
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import Samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.matrix import Weights

# Matrices of the size of the sample squared: distances and kernel, or kernel and
# smoother.
MATRICES = 2
MOST_STEPS = 30  # of labels on a larger sample
SMALLER_SAMPLE = "a smaller sample_size needs less"


def rows_of_sample(n_clusters: int) -> int:
    """Return the rows of the sample on which clusters are found."""
    # Measured by `python -m benchmarks rls`.
    return max(SAMPLE_ROWS, 100 * n_clusters)


def matrix_bytes(rows: int) -> float:
    """Return the bytes that clustering a sample needs beside its columns."""
    return MATRICES * 8.0 * rows**2


def relative_weights(weights: Weights) -> Weights:
    """Scale weights to mean 1, so that they count as rows do; None if all are equal."""
    if weights is None or weights.min() == weights.max():
        return None
    return weights * (weights.shape[0] / weights.sum())


# -- the sample ------------------------------------------------------------------------


@dataclass(frozen=True)
class LandmarkSample:
    """A sample in landmark features.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    basis : ndarray of shape (p, d)
        The landmarks.
    values : ndarray of shape (m, p), float64
        Kernel values of the rows against the landmarks.
    normalization : ndarray of shape (p, r)
        M with MM' the inverse of the kernel matrix of the landmarks.
    features : PrincipalFeatures
        The rows of ``values @ normalization`` along their principal axes, with their
        weights.
    """

    kernel: Kernel
    basis: np.ndarray
    values: np.ndarray
    normalization: np.ndarray
    features: PrincipalFeatures

    def ridge_map(self, alpha: float) -> RidgeMap:
        """Return the coordinates in which a ridge, given per row, is the identity."""
        axes = self.features.axes / np.sqrt(self.features.variances + alpha)
        return RidgeMap(
            np.ascontiguousarray(self.normalization @ axes), self.features.mean @ axes
        )

    def model(self, scaling: Scaling | None, alpha: float) -> Model:
        """Return the model of these landmarks, still without a rule."""
        empty = Scores(np.empty((0, 0)), np.empty(0))
        return Model(
            empty, self.kernel, self.basis, scaling, ridge=self.ridge_map(alpha)
        )


# -- all rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSumsPass(ClustersPass):
    """Sum features by cluster, sizes, and the weight of the rows whose label changes.

    Parameters
    ----------
    weights, rule, kept
        As of `ClustersPass`.
    before : Scores or None, default=None
        The rule of the pass before.
    """

    rule: Scores
    before: Scores | None = None

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the sums of one block."""
        labels = self.rule.label(rows)
        weights = self.weights_of(start, stop)
        sums, sizes = kernels.cluster_row_sums(
            rows, labels, self.rule.n_clusters, weights
        )
        moved = weights
        if self.before is not None:
            moved = weights[self.before.label(rows) != labels]
        return self.total_of(labels, start, sums, sizes, float(moved.sum()))


@dataclass(frozen=True)
class LabelledRows:
    """All rows labelled by least squares.

    Parameters
    ----------
    rule : Scores or None
        Labels the rows; clusters are in the order of their first rows. None before the
        first step.
    bounds : pair of ndarray of shape (k,)
        Least and most rows of the sample in each cluster.
    means, sizes : ndarray of shape (k, r) and (k,)
        Mean z and weight of each cluster.
    multipliers : ndarray of shape (k,)
        Those of the size constraints, which the rule contains.
    settled : bool, default=False
        Whether hardly any label changed in the last pass.
    kept : list or None, default=None
        What the last pass has kept of the labels; None where it kept none, or its
        clusters were in another order.
    changed : float or None, default=None
        Weight of the rows whose label the last pass changed; None where it compared
        none.
    """

    rule: Any
    bounds: Bounds
    means: np.ndarray
    sizes: np.ndarray
    multipliers: np.ndarray
    settled: bool = False
    kept: Sums | None = None
    changed: float | None = None

    @property
    def n_changed(self) -> float | None:
        """How many labels the last pass changed, or their weight; None if unknown."""
        if self.changed is None:
            return None
        return whole_numbers([round(self.changed, 6)])[0]

    @property
    def mean_objective(self) -> float:
        """J, by means and sizes."""
        return float(self.sizes @ (self.means**2).sum(axis=1) / self.sizes.sum())

    @property
    def one_against_all_objective(self) -> float:
        """Q, by means and sizes: Pahikkala et al., eq. (10), with a centred kernel."""
        k = self.sizes.shape[0]
        n = self.sizes.sum()
        sums = self.means * self.sizes[:, None]
        return float(
            k * n - (4 * (sums**2).sum() - (4 - k) * (sums.sum(axis=0) ** 2).sum()) / n
        )


class Stage(NamedTuple):
    """Rows that label steps go over.

    Parameters
    ----------
    name : str
        What the history calls them.
    rows : Samples
        The rows, in features.
    weights : ndarray of shape (n,) or None
        Their weights.
    """

    name: str
    rows: Samples
    weights: Weights


@dataclass(frozen=True)
class LabelSteps:
    """Steps that label rows by the means so far, and renew the means by the rows.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    record : callable
        Called with one dict per step.
    config : PartitionConfig
        How the sample was partitioned.
    sample : LandmarkSample
        The sample.
    """

    engine: Engine
    record: Record
    config: PartitionConfig
    sample: LandmarkSample

    @cached_property
    def mapped(self) -> RidgeMap:
        """Coordinates in which the ridge is the identity."""
        return self.sample.ridge_map(self.config.alpha)

    def start(self, labels: np.ndarray) -> LabelledRows:
        """Return the clusters of the sample."""
        k = self.config.n_clusters
        weights = self.sample.features.weights
        sums, sizes = kernels.cluster_row_sums(self.sample.values, labels, k, weights)
        return LabelledRows(
            rule=None,
            bounds=self.config.bounds_by_size(sizes),
            means=self.mapped.means(sums, sizes),
            sizes=sizes,
            multipliers=np.zeros(k),
        )

    def step(
        self,
        before: LabelledRows,
        stage: Stage,
        number: int,
        kept: KeptLabels | None = None,
        once: bool = False,
    ) -> LabelledRows:
        """Label some rows, and renew the means by them.

        Clusters are numbered by their first rows at each step: where scores are equal
        but for rounding, a later change of their order could change labels.

        Parameters
        ----------
        before : LabelledRows
            The step before.
        stage : Stage
            The rows.
        number : int
            How many steps have labelled these rows.
        kept : KeptLabels or None, default=None
            Where the labels are kept.
        once : bool, default=False
            Whether this is the only step on these rows. Then its clusters take their
            likely order, and its labels are not compared with those of the step before.

        Returns
        -------
        LabelledRows
            The rows.
        """
        low, high = before.bounds
        rule, multipliers = self._next_rule(before)
        if once:
            order = likely_order(rule, stage.rows, self.sample.values)
            rule = rule.ordered(order)
            multipliers = multipliers[order]
            low = low[order]
            high = high[order]
        compared = None if once else before.rule
        sweep = LabelSumsPass(stage.weights, rule, compared, kept=kept)
        sums, sizes, changed, first, labels = self.engine.run(
            sweep, stage.rows, stage.name
        )
        # The share is measured by `python -m benchmarks rls`, section "large".
        settled = compared is not None and changed <= 0.01 * float(sizes.sum())
        order = np.argsort(first, kind="stable")
        labelled = LabelledRows(
            rule=rule.ordered(order),
            bounds=(low[order], high[order]),
            means=self.mapped.means(sums[order], sizes[order]),
            sizes=sizes[order],
            multipliers=multipliers[order],
            settled=settled,
            kept=labels_in_order(self.engine, labels, order),
            changed=None if compared is None else changed,
        )
        self.record(
            {
                "stage": stage.name,
                "round": number,
                "objective": labelled.mean_objective,
                "changed": changed,
            }
        )
        return labelled

    def _next_rule(self, before: LabelledRows) -> tuple[Scores, np.ndarray]:
        """Return the rule of some means, and the multipliers that it contains."""
        low, high = before.bounds
        # Sums in place of means need sizes that are equal: otherwise larger clusters
        # would attract the rows in between.
        by_sum = not self.config.sizes_are_free and np.ptp(low) == 0
        shares = before.sizes / before.sizes.sum() if by_sum else None
        rule = self.mapped.scores(before.means, shares)
        scores = rule.decide(self.sample.values)
        weights = self.sample.features.weights
        multipliers = kernels.size_multipliers(
            scores, low, high, weights, before.multipliers
        )
        return rule.shifted(multipliers), multipliers

    def all_rows(
        self,
        labels: np.ndarray,
        rows: Stage,
        passes: int,
        kept: KeptLabels | None = None,
        larger: Stage | None = None,
    ) -> LabelledRows:
        """Label all rows and renew the model pass by pass.

        The first means are those of the labels of the sample. The last pass renews
        nothing, so that the rule and its sums belong together. Labels are kept of
        passes whose clusters are likely to be in order. Where a larger sample is given,
        steps on it come first; once its labels have settled, one pass over all rows is
        enough.
        """
        labelled = self.start(labels)
        if larger is not None:
            for number in range(MOST_STEPS):
                labelled = self.step(labelled, larger, number)
                if labelled.settled:
                    break
        sample_settled = labelled.settled
        once = passes == 1 or sample_settled
        for number in range(1 if once else passes):
            keep = kept if number > 0 or once else None
            labelled = self.step(labelled, rows, number, keep, once)
            if labelled.settled:
                break
        return replace(labelled, settled=labelled.settled or sample_settled)
