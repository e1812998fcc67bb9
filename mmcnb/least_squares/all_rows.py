"""Least squares clustering of all rows: label steps that keep k (p + 1) numbers a pass, nothing of size n.

Landmark features are brought to coordinates z(x) = κ(x) M - c in which the ridge is the identity, so that
R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of the clusters. A step labels each row by its largest
score and sums the features of each cluster; the means, and with them the next scores, follow from the sums.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from mmcnb._config import LIBRARIES, format_bytes, resolve_memory_limit
from mmcnb.engine.passes import SAMPLE_ROWS, WeightedPass, first_rows
from mmcnb.engine.session import FitSession
from mmcnb.errors import MemoryLimitError
from mmcnb.features.model import Model
from mmcnb.features.nystroem import PrincipalFeatures, RidgeMap
from mmcnb.features.rules import KeptLabels, Scores
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import BLOCK_ROWS, Samples

MATRICES = 2  # of the size of the sample squared: distances and kernel, or kernel and smoother
MOST_STEPS = 30  # of labels on a larger sample


def rows_of_sample(n_clusters: int) -> int:
    """Rows of the sample that so many clusters are found on."""
    return max(SAMPLE_ROWS, 100 * n_clusters)  # measured by `python -m benchmarks rls`


def matrix_bytes(rows: int) -> float:
    """What clustering a sample holds beside its columns."""
    return MATRICES * 8.0 * rows**2


def square_rows(bytes_allowed: int, matrices: int) -> int:
    """Rows of a sample of which so many square matrices, float64, leave half of the memory to other things.

    Examples
    --------
    >>> from mmcnb.least_squares.all_rows import square_rows
    >>> square_rows(2**30, 3)
    3808
    """
    return int((max(bytes_allowed - LIBRARIES, 0) / 2 / matrices / 8) ** 0.5)


def check_matrices(rows: int, n_clusters: int, memory_limit: str | int | None) -> None:
    """Refuse a sample whose kernel matrix does not fit, where a smaller one would."""
    held, limit = matrix_bytes(rows), resolve_memory_limit(memory_limit)
    fits = square_rows(limit, MATRICES)
    if held + LIBRARIES > limit and fits >= n_clusters:
        raise MemoryLimitError(
            f"the kernel matrix of a sample of {rows:,} rows takes {format_bytes(8 * rows**2)}, and "
            f"{MATRICES} such are held, of {format_bytes(limit)} allowed; give sample_size={fits} or "
            "raise memory_limit."
        )


def relative_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights of mean 1, so that they count as rows do; None where all are equal."""
    if weights is None or weights.min() == weights.max():
        return None
    return weights * (weights.shape[0] / weights.sum())


# -- the sample ----------------------------------------------------------------------------------


class MappedSample(Protocol):
    """A sample in features of any kind."""

    @property
    def values(self) -> np.ndarray:
        """Features of the rows, of shape (m, p), float64."""

    @property
    def normalization(self) -> np.ndarray:
        """M, by which features become coordinates whose inner product is the kernel."""

    @property
    def features(self) -> PrincipalFeatures:
        """The rows along the principal axes of these, with their weights."""

    def ridge_map(self, alpha: float) -> RidgeMap:
        """The coordinates in which a ridge is the identity."""

    def model(self, session: FitSession, alpha: float) -> Model:
        """The model of these features, still without a rule."""


def constrained_scores(
    sample: MappedSample,
    mapped: RidgeMap,
    config: PartitionConfig,
    means: np.ndarray,
    sizes: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    start: np.ndarray | None = None,
) -> tuple[Scores, np.ndarray]:
    """Scores of clusters, less the multipliers that keep the sizes of a sample within their constraints.

    Parameters
    ----------
    sample : MappedSample
        The sample.
    mapped : RidgeMap
        Coordinates in which the ridge is the identity.
    config : PartitionConfig
        Whether sizes have a minimum only.
    means, sizes : ndarray of shape (k, r) and (k,)
        Means of the clusters in these coordinates, and their rows.
    bounds : pair of ndarray of shape (k,)
        Least and most rows of the sample in each cluster.
    start : ndarray of shape (k,) or None, default=None
        Multipliers to start from.

    Returns
    -------
    Scores
        Labels any row.
    multipliers : ndarray of shape (k,)
        What was subtracted.
    """
    # Sums in place of means need sizes that are equal: of others the larger would win the rows between.
    by_sum = not config.sizes_are_free and np.ptp(bounds[0]) == 0
    rule = mapped.scores(means, sizes / sizes.sum() if by_sum else None)
    start = np.zeros(config.n_clusters) if start is None else start
    values, weights = rule.decide(sample.values), sample.features.weights
    multipliers = kernels.size_multipliers(values, *bounds, weights, start)
    return rule.shifted(multipliers), multipliers


# -- all rows ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSumsPass(WeightedPass):
    """Label the rows and sum their features by cluster.

    Parameters
    ----------
    rule : Scores
        Labels the rows.
    before : Scores or None, default=None
        The rule of the pass before.
    kept : KeptLabels or None, default=None
        Where the labels are kept, which changes no sum; None keeps none.
    """

    rule: Scores
    before: Scores | None = None
    kept: KeptLabels | None = field(default=None, compare=False, kw_only=True)

    def start(self) -> list[Any]:
        """Nothing yet: sums of features, sizes, weight of changed labels, first rows of clusters, labels."""
        return [0.0, 0.0, 0.0, first_rows(np.empty(0, np.int64), self.rule.offset.shape[0]), []]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        labels, weights = self.rule.label(rows), self.weights_of(start, stop)
        k = self.rule.offset.shape[0]
        sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
        changed = weights if self.before is None else weights[self.before.label(rows) != labels]
        kept = [] if self.kept is None else [labels]
        return [sums, sizes, float(changed.sum()), first_rows(labels, k, start), kept]

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Keep the labels of a group."""
        return total if self.kept is None else [*total[:4], self.kept.of_group(total[4], start)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        added = [a + b for a, b in zip(total[:3], other[:3], strict=True)]
        return [*added, np.minimum(total[3], other[3]), total[4] + other[4]]


@dataclass(frozen=True)
class LabelledRows:
    """All rows labelled by least squares.

    Parameters
    ----------
    rule : Scores or None
        Labels the rows; clusters are in the order of their first rows. None before the first step.
    bounds : pair of ndarray of shape (k,)
        Least and most rows of the sample in each cluster.
    means, sizes : ndarray of shape (k, r) and (k,)
        Mean z and weight of each cluster.
    multipliers : ndarray of shape (k,) or None, default=None
        Those of the size constraints, which the rule contains.
    settled : bool, default=False
        Whether hardly any label changed in the last pass.
    kept : list or None, default=None
        What the last pass has kept of the labels; None where it kept none, or its clusters were in another
        order.
    """

    rule: Any
    bounds: tuple[np.ndarray, np.ndarray]
    means: np.ndarray
    sizes: np.ndarray
    multipliers: np.ndarray | None = None
    settled: bool = False
    kept: list[Any] | None = None

    @property
    def mean_objective(self) -> float:
        """J, by means and sizes."""
        return float(self.sizes @ (self.means**2).sum(axis=1) / self.sizes.sum())

    @property
    def one_against_all_objective(self) -> float:
        """Q, by means and sizes: Pahikkala et al., eq. (10), with a centred kernel."""
        k, n, sums = self.sizes.shape[0], self.sizes.sum(), self.means * self.sizes[:, None]
        return float(k * n - (4 * (sums**2).sum() - (4 - k) * (sums.sum(axis=0) ** 2).sum()) / n)


def likely_order(rule: Scores, sample: MappedSample, rows: Samples) -> np.ndarray:
    """The clusters in the order of their first rows among the first of all rows, and then in the sample."""
    head = rule.label(rows.block(0, min(BLOCK_ROWS, rows.n_samples)))
    labels = np.concatenate([head, rule.label(sample.values)])
    return np.argsort(first_rows(labels, rule.offset.shape[0]), kind="stable")


def label_step(
    session: FitSession,
    config: PartitionConfig,
    sample: MappedSample,
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

    Clusters are numbered by their first rows at each step: where scores are equal but for rounding, a later
    change of their order could change labels.

    Parameters
    ----------
    session : FitSession
        The fit.
    config : PartitionConfig
        How the sample was partitioned.
    sample : MappedSample
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
        Whether this is the only step on these rows: its clusters take the order that is likely, and its
        labels are compared with none.

    Returns
    -------
    LabelledRows
        The rows.
    """
    engine, (low, high) = session.engine, before.bounds
    given = before.means, before.sizes, before.bounds, before.multipliers
    rule, multipliers = constrained_scores(sample, mapped, config, *given)
    if once:
        order = likely_order(rule, sample, rows)
        rule, multipliers, low, high = rule.ordered(order), multipliers[order], low[order], high[order]
    compared = None if once else before.rule
    sweep = LabelSumsPass(weights, rule, compared, kept=kept)
    sums, sizes, changed, first, labels = engine.run(sweep, rows, stage)
    # The share is measured by `python -m benchmarks rls`, section "large".
    settled = compared is not None and changed <= 0.01 * float(sizes.sum())
    order = np.argsort(first, kind="stable")
    # What a checkpoint recalls may be of labels that were kept elsewhere.
    is_kept = kept is not None and not engine.traffic.resumed and bool((np.diff(order) > 0).all())
    bounds, means = (low[order], high[order]), mapped.means(sums[order], sizes[order])
    kept_labels = labels if is_kept else None
    rule, multipliers = rule.ordered(order), multipliers[order]
    found = LabelledRows(rule, bounds, means, sizes[order], multipliers, settled, kept_labels)
    row = {"stage": stage, "round": number, "objective": found.mean_objective, "changed": changed}
    session.record(row)
    return found


def label_all_rows(
    session: FitSession,
    config: PartitionConfig,
    sample: MappedSample,
    mapped: RidgeMap,
    rows: Samples,
    labels: np.ndarray,
    passes: int,
    kept: KeptLabels | None = None,
    larger: Samples | None = None,
) -> LabelledRows:
    """Label all rows and renew the model pass by pass, from the labels of the sample.

    The last pass renews nothing, so that the rule and its sums belong together. Labels are kept of passes
    whose clusters are likely to be in order. Where a larger sample is given, steps on it come first; once
    its labels have settled, one pass over all rows is enough.
    """
    weights, step = sample.features.weights, partial(label_step, session, config, sample, mapped)
    sums, sizes = kernels.cluster_row_sums(sample.values, labels, config.n_clusters, weights)
    found = LabelledRows(None, config.bounds_by_size(sizes), mapped.means(sums, sizes), sizes)
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
