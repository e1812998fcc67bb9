"""Least squares clustering of all rows: label steps that keep k (p + 1) numbers a pass, nothing of size n.

Landmark features are brought to coordinates z(x) = κ(x) M - c in which the ridge is the
identity, so that R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of the clusters.
A step labels each row by its largest score and sums the features of each cluster; the
means, and with them the next scores, follow from the sums.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.session import FitSession
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.nystroem import PrincipalFeatures, RidgeMap
from mmcnb.features.rules import (
    ClustersPass,
    KeptLabels,
    Scores,
    kept_labels,
    likely_order,
)
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.objective import Bounds
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import Samples

MATRICES = (
    2  # of the size of the sample squared: distances and kernel, or kernel and smoother
)
MOST_STEPS = 30  # of labels on a larger sample
SMALLER_SAMPLE = "a smaller sample_size needs less"


def rows_of_sample(n_clusters: int) -> int:
    """Rows of the sample that so many clusters are found on."""
    return max(SAMPLE_ROWS, 100 * n_clusters)  # measured by `python -m benchmarks rls`


def matrix_bytes(rows: int) -> float:
    """What clustering a sample holds beside its columns."""
    return MATRICES * 8.0 * rows**2


def relative_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights of mean 1, so that they count as rows do; None where all are equal."""
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
        """The coordinates in which a ridge, given per row, is the identity."""
        axes = self.features.axes / np.sqrt(self.features.variances + alpha)
        return RidgeMap(
            np.ascontiguousarray(self.normalization @ axes), self.features.mean @ axes
        )

    def model(self, session: FitSession, alpha: float) -> Model:
        """The model of these landmarks, still without a rule."""
        empty = Scores(np.empty((0, 0)), np.empty(0))
        return Model(
            empty, self.kernel, self.basis, session.scaling, ridge=self.ridge_map(alpha)
        )


# -- all rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSumsPass(ClustersPass):
    """Sum the features of rows by cluster; further sums are the sizes, and the weight of changed labels.

    Parameters
    ----------
    weights, rule, kept
        As of `ClustersPass`.
    before : Scores or None, default=None
        The rule of the pass before.
    """

    before: Scores | None = None

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        labels = self.rule.label(rows)
        weights = self.weights_of(start, stop)
        sums, sizes = kernels.cluster_row_sums(rows, labels, self.n_clusters, weights)
        changed = (
            weights
            if self.before is None
            else weights[self.before.label(rows) != labels]
        )
        return self.total_of(labels, start, sums, sizes, float(changed.sum()))


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
    """

    rule: Any
    bounds: Bounds
    means: np.ndarray
    sizes: np.ndarray
    multipliers: np.ndarray
    settled: bool = False
    kept: list[Any] | None = None

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


def label_step(
    session: FitSession,
    config: PartitionConfig,
    sample: LandmarkSample,
    mapped: RidgeMap,
    before: LabelledRows,
    rows: Samples,
    weights: np.ndarray | None,
    stage: str,
    number: int,
    kept: KeptLabels | None = None,
    once: bool = False,
) -> LabelledRows:
    """Label some rows by the means so far, and renew the means by them.

    Clusters are numbered by their first rows at each step: where scores are equal but
    for rounding, a later change of their order could change labels.

    Parameters
    ----------
    session : FitSession
        The fit.
    config : PartitionConfig
        How the sample was partitioned.
    sample : LandmarkSample
        The sample.
    mapped : RidgeMap
        Coordinates in which the ridge is the identity.
    before : LabelledRows
        The step before.
    rows : Samples
        The rows, in features.
    weights : ndarray of shape (n,) or None
        Their weights.
    stage : str
        What the history calls them.
    number : int
        How many steps have labelled these rows.
    kept : KeptLabels or None, default=None
        Where the labels are kept.
    once : bool, default=False
        Whether this is the only step on these rows: its clusters take the order that is
        likely, and its labels are compared with none.

    Returns
    -------
    LabelledRows
        The rows.
    """
    low, high = before.bounds
    # Sums in place of means need sizes that are equal: of others the larger would win
    # the rows between.
    by_sum = not config.sizes_are_free and np.ptp(low) == 0
    rule = mapped.scores(
        before.means, before.sizes / before.sizes.sum() if by_sum else None
    )
    given = low, high, sample.features.weights, before.multipliers
    multipliers = kernels.size_multipliers(rule.decide(sample.values), *given)
    rule = rule.shifted(multipliers)
    if once:
        order = likely_order(rule, rows, sample.values)
        rule = rule.ordered(order)
        multipliers = multipliers[order]
        low = low[order]
        high = high[order]
    compared = None if once else before.rule
    sweep = LabelSumsPass(weights, rule, compared, kept=kept)
    sums, sizes, changed, first, labels = session.engine.run(sweep, rows, stage)
    # The share is measured by `python -m benchmarks rls`, section "large".
    settled = compared is not None and changed <= 0.01 * float(sizes.sum())
    order = np.argsort(first, kind="stable")
    bounds = (low[order], high[order])
    means = mapped.means(sums[order], sizes[order])
    rule = rule.ordered(order)
    multipliers = multipliers[order]
    in_order = kept_labels(session, labels, order)
    found = LabelledRows(
        rule, bounds, means, sizes[order], multipliers, settled, in_order
    )
    objective = found.mean_objective
    session.record(
        {"stage": stage, "round": number, "objective": objective, "changed": changed}
    )
    return found


def label_all_rows(
    session: FitSession,
    config: PartitionConfig,
    sample: LandmarkSample,
    rows: Samples,
    labels: np.ndarray,
    passes: int,
    kept: KeptLabels | None = None,
    larger: Samples | None = None,
) -> LabelledRows:
    """Label all rows and renew the model pass by pass, from the labels of the sample.

    The last pass renews nothing, so that the rule and its sums belong together. Labels
    are kept of passes whose clusters are likely to be in order. Where a larger sample
    is given, steps on it come first; once its labels have settled, one pass over all
    rows is enough.
    """
    weights = sample.features.weights
    mapped = sample.ridge_map(config.alpha)
    step = partial(label_step, session, config, sample, mapped)
    sums, sizes = kernels.cluster_row_sums(
        sample.values, labels, config.n_clusters, weights
    )
    bounds = config.bounds_by_size(sizes)
    zeros = np.zeros(config.n_clusters)
    found = LabelledRows(None, bounds, mapped.means(sums, sizes), sizes, zeros)
    if larger is not None:
        for number in range(MOST_STEPS):
            found = step(found, larger, session.sample_weights, "larger sample", number)
            if found.settled:
                break
    has_settled = found.settled
    once = passes == 1 or has_settled
    for number in range(1 if once else passes):
        keep = kept if number > 0 or once else None
        found = step(found, rows, session.weights, "all rows", number, keep, once)
        if found.settled:
            break
    return replace(found, settled=found.settled or has_settled)
