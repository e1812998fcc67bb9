"""Passes that label all rows by a rule, and return or store the labels."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from mmcnb.engine.passes import CollectingPass, WeightedPass, first_rows
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.features.rules import Hyperplane, Rule, Scores
from mmcnb.samples import BLOCK_ROWS, Samples
from mmcnb.samples.matrix import Block
from mmcnb.stores.labels import LabelsSink

# Names of the columns that passes add to a table.
CLUSTER = "cluster"
CLASS = "class"
PROBABILITY = "probability"
OUTLIER_SCORE = "outlier_score"


class Decides(Protocol):
    """Protocol of rules and maps that compute values for each row."""

    def decide(self, rows: Any) -> np.ndarray:
        """Return the values of all rows of a block of features."""


@dataclass(frozen=True)
class DecisionPass(CollectingPass):
    """Pass that returns the values that a rule or map computes for all rows."""

    rule: Decides

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the values that the rule or map computes for one block."""
        return [self.rule.decide(rows)]


@dataclass(frozen=True)
class TablePass(CollectingPass):
    """Pass that returns the columns of `Rule.table`, such as cluster and margin."""

    rule: Rule

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the columns for the rows of one block."""
        return [self.rule.table(rows)]


@dataclass(frozen=True)
class ClusterColumnsPass(CollectingPass):
    """Pass that returns each row's cluster, and optionally two more columns.

    The optional columns are the probability of the row's cluster, which is 0 for noise,
    and the outlier score of the row.

    Parameters
    ----------
    rule : Rule
        Computes the clusters.
    probabilities : Decides or None, default=None
        Computes the probability of each cluster. If None, the column is omitted.
    outlier_scores : Decides or None, default=None
        Computes the outlier scores. If None, the column is omitted.
    """

    rule: Rule
    probabilities: Decides | None = None
    outlier_scores: Decides | None = None

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the columns for the rows of one block."""
        labels = self.rule.label(rows)
        columns = {CLUSTER: labels}
        if self.probabilities is not None:
            of_clusters = self.probabilities.decide(rows)
            own = of_clusters[np.arange(len(labels)), labels]
            columns[PROBABILITY] = np.where(labels < 0, 0.0, own)
        if self.outlier_scores is not None:
            columns[OUTLIER_SCORE] = self.outlier_scores.decide(rows)
        return [columns]


@dataclass(frozen=True)
class OutlierColumnPass(CollectingPass):
    """Pass that returns the outlier scores alone.

    It is needed if the labels are computed from different features than the outlier
    scores.
    """

    scores: Decides

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the column for the rows of one block."""
        return [{OUTLIER_SCORE: self.scores.decide(rows)}]


@dataclass(frozen=True)
class ClassColumnPass(CollectingPass):
    """Pass that returns the class name of each row.

    Parameters
    ----------
    rule : Rule
        Computes the index of each row's class.
    classes : ndarray of shape (n_classes,)
        Names of the classes.
    """

    rule: Rule
    classes: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the column for the rows of one block."""
        return [{CLASS: self.classes[self.rule.label(rows)]}]


# Passes that together compute the columns of a table. Each pass is paired with the
# rows, mapped to the features that it needs.
ColumnPasses: TypeAlias = list[
    tuple[ClusterColumnsPass | OutlierColumnPass | ClassColumnPass, Samples]
]


@dataclass(frozen=True)
class KeptLabels:
    """Destination of the labels that a pass computes: memory or a file.

    Parameters
    ----------
    sink : LabelsSink or None, default=None
        Writes each group of labels to a file as one chunk; the pass then returns the
        digests of the chunks. If None, the labels stay in memory.
    """

    sink: LabelsSink | None = None

    def keep(self, blocks: list[np.ndarray], start: int) -> list[Any]:
        """Keep the labels of a group of blocks.

        Return the labels or, if they are written to a sink, the digest of the chunk.
        """
        if self.sink is None:
            return blocks
        return [self.sink.write(start, np.concatenate(blocks))]


@dataclass(frozen=True)
class LabelsPass(CollectingPass):
    """Pass that labels the rows and returns the labels, or digests of stored chunks."""

    rule: Rule
    kept: KeptLabels = KeptLabels()

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the labels of the rows of one block."""
        return [self.rule.label(rows)]

    def group(self, total: list[np.ndarray], start: int) -> list[Any]:
        """Keep the labels of a group of blocks."""
        return self.kept.keep(total, start)


@dataclass(frozen=True)
class ClustersPass(WeightedPass):
    """Base class of passes that label rows and compute sums per cluster.

    The total consists of the sums, the first row of each cluster, and the labels or the
    digests of stored chunks.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights. If None, all weights are equal.
    rule : Rule
        Labels the rows.
    kept : KeptLabels or None, default=None
        Destination of the labels. If None, the labels are discarded. The sums do not
        depend on this parameter.
    """

    rule: Rule
    kept: KeptLabels | None = field(default=None, compare=False, kw_only=True)

    def total_of(self, labels: np.ndarray, start: int, *sums: Any) -> list[Any]:
        """Return the sums of a block, the first row of each cluster, and the labels."""
        first = first_rows(labels, self.rule.n_clusters, start)
        return [*sums, first, [] if self.kept is None else [labels]]

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Keep the labels of a group of blocks."""
        if self.kept is None:
            return total
        return [*total[:-1], self.kept.keep(total[-1], start)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Combine the totals of two ranges of rows."""
        sums = [a + b for a, b in zip(total[:-2], other[:-2], strict=True)]
        return [*sums, np.minimum(total[-2], other[-2]), total[-1] + other[-1]]


@dataclass(frozen=True)
class SizesPass(ClustersPass):
    """Pass that computes the sizes of the clusters, excluding noise."""

    def block(self, rows: Block, start: int, stop: int) -> list[Any]:
        """Return the total of one block, whose sums are the cluster sizes."""
        labels = self.rule.label(rows)
        weights = self.weights_of(start, stop)
        sizes = np.bincount(labels + 1, weights, self.rule.n_clusters + 1)
        return self.total_of(labels, start, sizes[1:])


class OrderedClusters(NamedTuple):
    """Clusters found by a pass, in the order of their first rows.

    Attributes
    ----------
    order : ndarray of shape (k,), int64
        Number that each cluster had during the pass.
    sizes : ndarray of shape (k,)
        Total weight of each cluster.
    labels : list or None
        The labels, or the digests of stored chunks. None if the labels of the pass are
        not final; see `labels_in_order`.
    """

    order: np.ndarray
    sizes: np.ndarray
    labels: list[Any] | None


def likely_order(rule: Rule, rows: Samples, *others: Block) -> np.ndarray:
    """Guess the order in which the clusters first occur among all rows.

    The guess uses the first block of ``rows``, followed by ``others``.

    If a labelling pass then confirms this order, the labels of the pass are final and
    no second pass is needed.
    """
    parts = [rows.block(0, min(BLOCK_ROWS, rows.n_samples)), *others]
    labels = np.concatenate([rule.label(part) for part in parts])
    return np.argsort(first_rows(labels, rule.n_clusters), kind="stable")


def labels_in_order(
    engine: Engine, labels: list[Any], order: np.ndarray
) -> list[Any] | None:
    """Return the labels of a pass if they can be used unchanged, otherwise None.

    They cannot be used if some are missing because the pass was resumed, or if the
    clusters must be renumbered, because ``order`` is not increasing.
    """
    # If the pass was resumed, an earlier process may have computed some of the labels.
    if not labels or engine.traffic.resumed or (np.diff(order) < 0).any():
        return None
    return labels


def label_once(
    session: FitSession, rule: Hyperplane | Scores, rows: Samples
) -> tuple[Hyperplane | Scores, OrderedClusters]:
    """Label all rows in one pass, and number the clusters by their first rows.

    Parameters
    ----------
    session : FitSession
        The session of the fit.
    rule : Hyperplane or Scores
        The rule that labels the rows.
    rows : Samples
        All rows, mapped to the features of the rule.

    Returns
    -------
    rule : Hyperplane or Scores
        The rule, with its clusters numbered by their first rows.
    clusters : OrderedClusters
        Sizes of the clusters, and the labels or the digests of stored chunks.
    """
    rule = rule.ordered(likely_order(rule, rows))
    clusters = _label_pass(session, rule, rows, "labels")
    return rule.ordered(clusters.order), clusters


def without_noise(session: FitSession, result: FitResult) -> FitResult:
    """Recompute the sizes, order and labels of the clusters without the noise rows."""
    features, rule = result.model.labelling(session.samples)
    clusters = _label_pass(session, rule, features, "noise")
    total = session.samples.n_samples
    if session.weights is not None:
        total = session.weights.sum(dtype=np.float64)
    noise, *sizes = whole_numbers([total - clusters.sizes.sum(), *clusters.sizes])
    ordered = result.model.rule.ordered(clusters.order.tolist())
    return replace(
        result,
        model=replace(result.model, rule=ordered),
        report={"sizes": sizes, "noise": noise},
        kept_labels=clusters.labels,
    )


def _label_pass(
    session: FitSession, rule: Rule, rows: Samples, stage: str
) -> OrderedClusters:
    """Label all rows in one pass, and order the clusters by their first rows."""
    sweep = SizesPass(session.weights, rule, kept=session.kept_labels)
    sizes, first, labels = session.engine.run(sweep, rows, stage)
    order = np.argsort(first, kind="stable")
    labels = labels_in_order(session.engine, labels, order)
    return OrderedClusters(order, sizes[order], labels)
