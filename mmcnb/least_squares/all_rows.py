"""Least squares clustering of all rows, by passes that return k (p + 1) numbers each.

Landmark features κ(x) are mapped to coordinates z(x) = κ(x) M - c in which the ridge
matrix is the identity, so that R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of
the clusters. A step labels each row by its largest score and sums the features of each
cluster. The next means and scores are computed from these sums.
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

# Number of m x m matrices in memory at the same time, for a sample of m rows: distances
# and kernel, or kernel and smoother.
MATRICES = 2
MOST_STEPS = 30  # maximum number of label steps on a larger sample
SMALLER_SAMPLE = "a smaller sample_size needs less"


def rows_of_sample(n_clusters: int) -> int:
    """Return the default number of rows in the sample."""
    # Chosen by `python -m benchmarks rls`.
    return max(SAMPLE_ROWS, 100 * n_clusters)


def matrix_bytes(rows: int) -> float:
    """Return the memory in bytes to cluster a sample, not counting its features."""
    return MATRICES * 8.0 * rows**2


def relative_weights(weights: Weights) -> Weights:
    """Scale weights to mean 1, so that their sum is the number of rows.

    Return None if all weights are equal.
    """
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
        The kernel function.
    basis : ndarray of shape (p, d)
        The landmarks.
    values : ndarray of shape (m, p), float64
        Kernel values of the rows against the landmarks.
    normalization : ndarray of shape (p, r)
        M such that MM' is the inverse of the kernel matrix of the landmarks.
    features : PrincipalFeatures
        The rows of ``values @ normalization`` in the coordinates of their principal
        axes, with the sample weights.
    """

    kernel: Kernel
    basis: np.ndarray
    values: np.ndarray
    normalization: np.ndarray
    features: PrincipalFeatures

    def ridge_map(self, alpha: float) -> RidgeMap:
        """Return the map to coordinates in which the ridge matrix is the identity.

        ``alpha`` is the ridge per row.
        """
        axes = self.features.axes / np.sqrt(self.features.variances + alpha)
        return RidgeMap(
            np.ascontiguousarray(self.normalization @ axes), self.features.mean @ axes
        )

    def model(self, scaling: Scaling | None, alpha: float) -> Model:
        """Return a model with these landmarks and a rule that is still empty."""
        empty = Scores(np.empty((0, 0)), np.empty(0))
        return Model(
            empty, self.kernel, self.basis, scaling, ridge=self.ridge_map(alpha)
        )


# -- all rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSumsPass(ClustersPass):
    """Pass that sums features and weights per cluster, and counts changed labels.

    Parameters
    ----------
    weights, rule, kept
        As in `ClustersPass`.
    before : Scores or None, default=None
        Rule of the previous pass. A label is counted as changed if this rule gives a
        different label. If None, all labels are counted as changed.
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
    """The state after a label step: the rule, and sums over the clusters.

    Parameters
    ----------
    rule : Scores or None
        Rule that labels the rows, with clusters in the order of their first rows; None
        before the first step.
    bounds : pair of ndarray of shape (k,)
        Smallest and largest allowed number of rows of the sample in each cluster.
    means, sizes : ndarray of shape (k, r) and (k,)
        Mean z and weight of each cluster.
    multipliers : ndarray of shape (k,)
        Multipliers of the size constraints, which the rule includes.
    settled : bool, default=False
        Whether at most 1 % of the labels changed in the last step.
    kept : list or None, default=None
        The labels from the last pass, or the digests of stored chunks; None if the
        labels of the pass are not final, see `labels_in_order`.
    changed : float or None, default=None
        Weight of the rows whose label the last pass changed; None if the pass did not
        compare labels.
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
        """Number (or weight) of labels that the last pass changed; None if unknown."""
        if self.changed is None:
            return None
        return whole_numbers([round(self.changed, 6)])[0]

    @property
    def mean_objective(self) -> float:
        """Objective J, computed from the means and sizes of the clusters."""
        return float(self.sizes @ (self.means**2).sum(axis=1) / self.sizes.sum())

    @property
    def one_against_all_objective(self) -> float:
        """Objective Q of Pahikkala et al., eq. (10), with a centred kernel."""
        k = self.sizes.shape[0]
        n = self.sizes.sum()
        sums = self.means * self.sizes[:, None]
        return float(
            k * n - (4 * (sums**2).sum() - (4 - k) * (sums.sum(axis=0) ** 2).sum()) / n
        )


class Stage(NamedTuple):
    """A set of rows on which steps run, such as a larger sample or all rows.

    Parameters
    ----------
    name : str
        Name of the stage in the history.
    rows : Samples
        The rows, mapped to features.
    weights : ndarray of shape (n,) or None
        Weights of the rows. If None, all weights are equal.
    """

    name: str
    rows: Samples
    weights: Weights


@dataclass(frozen=True)
class LabelSteps:
    """Steps that label rows by the current means, and update the means from the rows.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    record : callable
        Called with one dict per step.
    config : PartitionConfig
        Settings for partitioning the sample, such as the number of clusters.
    sample : LandmarkSample
        The sample in landmark features.
    """

    engine: Engine
    record: Record
    config: PartitionConfig
    sample: LandmarkSample

    @cached_property
    def mapped(self) -> RidgeMap:
        """Map to coordinates in which the ridge matrix is the identity."""
        return self.sample.ridge_map(self.config.alpha)

    def start(self, labels: np.ndarray) -> LabelledRows:
        """Return the state before the first pass, given labels of the sample."""
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
        """Label the rows of a stage, and compute the next means from these labels.

        Clusters are renumbered by their first rows after each step instead of only at
        the end, because scores may be equal up to rounding, and renumbering the
        clusters later would then change labels.

        Parameters
        ----------
        before : LabelledRows
            State after the previous step.
        stage : Stage
            The rows to label.
        number : int
            Number of earlier steps on these rows.
        kept : KeptLabels or None, default=None
            Destination of the labels. If None, the labels are discarded.
        once : bool, default=False
            Whether this is the only step on these rows. In this case, the clusters are
            first put in their likely order, and the labels are not compared with the
            labels of the previous step.

        Returns
        -------
        LabelledRows
            State after this step.
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
        # The share of 1 % was chosen by `python -m benchmarks rls`, section "large".
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
        """Return the rule for the current means, and its size multipliers."""
        low, high = before.bounds
        # Scores z·S_h are used only for equal sizes, because otherwise larger clusters
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
        """Label all rows, and update the model in each pass.

        The first means are computed from the labels of the sample. The rule of the last
        pass is not updated, so that it agrees with the labels and sums of this pass.
        Labels are stored only in passes in which the clusters are likely to be in their
        final order. If a larger sample is given, the first steps run on this sample. If
        its labels converge, one pass over all rows is enough.
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
