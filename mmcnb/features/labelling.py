"""Passes that label all rows by a rule, and where they keep the labels."""

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

# Columns beside those of a table.
CLUSTER = "cluster"
CLASS = "class"
PROBABILITY = "probability"
OUTLIER_SCORE = "outlier_score"


class Decides(Protocol):
    """A rule, or a map whose values are wanted for each row."""

    def decide(self, rows: Any) -> np.ndarray:
        """Return the values of a block of features."""


@dataclass(frozen=True)
class DecisionPass(CollectingPass):
    """The values of all rows, in order."""

    rule: Decides

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the values of one block."""
        return [self.rule.decide(rows)]


@dataclass(frozen=True)
class TablePass(CollectingPass):
    """Cluster and margin of each row, as the columns of a table."""

    rule: Rule

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the columns of one block."""
        return [self.rule.table(rows)]


@dataclass(frozen=True)
class ClusterColumnsPass(CollectingPass):
    """Cluster of each row, and perhaps its probability and its outlier score.

    Parameters
    ----------
    rule : Rule
        Gives the clusters.
    probabilities, outlier_scores : Decides or None, default=None
        Give these columns; None leaves them out.
    """

    rule: Rule
    probabilities: Decides | None = None
    outlier_scores: Decides | None = None

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the columns of one block."""
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
    """Outlier score of each row, where it needs other features than the cluster."""

    scores: Decides

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the column of one block."""
        return [{OUTLIER_SCORE: self.scores.decide(rows)}]


@dataclass(frozen=True)
class ClassColumnPass(CollectingPass):
    """Class of each row, as a classifier names it.

    Parameters
    ----------
    rule : Rule
        Gives the number of the class.
    classes : ndarray of shape (n_classes,)
        The names.
    """

    rule: Rule
    classes: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """Return the column of one block."""
        return [{CLASS: self.classes[self.rule.label(rows)]}]


# Passes over rows that give columns together, each with the rows in its features.
ColumnPasses: TypeAlias = list[
    tuple[ClusterColumnsPass | OutlierColumnPass | ClassColumnPass, Samples]
]


@dataclass(frozen=True)
class KeptLabels:
    """Where labels of rows are kept.

    Parameters
    ----------
    sink : LabelsSink or None, default=None
        Writes each group of labels as one chunk, of which the digest is kept; None
        keeps labels in memory.
    """

    sink: LabelsSink | None = None

    def keep(self, blocks: list[np.ndarray], start: int) -> list[Any]:
        """Return labels of a group, or their digest, from the labels of its blocks."""
        if self.sink is None:
            return blocks
        return [self.sink.write(start, np.concatenate(blocks))]


@dataclass(frozen=True)
class LabelsPass(CollectingPass):
    """Label the rows; the total is what is kept of the labels."""

    rule: Rule
    kept: KeptLabels = KeptLabels()

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the labels of one block."""
        return [self.rule.label(rows)]

    def group(self, total: list[np.ndarray], start: int) -> list[Any]:
        """Keep the labels of a group."""
        return self.kept.keep(total, start)


@dataclass(frozen=True)
class ClustersPass(WeightedPass):
    """Base of passes that label rows.

    The total has sums, the first row of each cluster, and what is kept of the labels.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights.
    rule : Rule
        Labels the rows.
    kept : KeptLabels or None, default=None
        Where the labels are kept, which changes no sum; None keeps none.
    """

    rule: Rule
    kept: KeptLabels | None = field(default=None, compare=False, kw_only=True)

    def total_of(self, labels: np.ndarray, start: int, *sums: Any) -> list[Any]:
        """Return the total of a block with these labels and sums."""
        first = first_rows(labels, self.rule.n_clusters, start)
        return [*sums, first, [] if self.kept is None else [labels]]

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Keep the labels of a group."""
        if self.kept is None:
            return total
        return [*total[:-1], self.kept.keep(total[-1], start)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Combine the totals of two ranges of rows."""
        sums = [a + b for a, b in zip(total[:-2], other[:-2], strict=True)]
        return [*sums, np.minimum(total[-2], other[-2]), total[-1] + other[-1]]


@dataclass(frozen=True)
class SizesPass(ClustersPass):
    """Sizes of the clusters; noise counts nowhere."""

    def block(self, rows: Block, start: int, stop: int) -> list[Any]:
        """Return the total of one block."""
        labels = self.rule.label(rows)
        weights = self.weights_of(start, stop)
        sizes = np.bincount(labels + 1, weights, self.rule.n_clusters + 1)
        return self.total_of(labels, start, sizes[1:])


class OrderedClusters(NamedTuple):
    """Clusters in the order of their first rows.

    Attributes
    ----------
    order : ndarray of shape (k,), int64
        Number of each cluster in the pass.
    sizes : ndarray of shape (k,)
        Weight of each cluster.
    labels : list or None
        What was kept of the labels; None if the pass had another order.
    """

    order: np.ndarray
    sizes: np.ndarray
    labels: list[Any] | None


def likely_order(rule: Rule, rows: Samples, *others: Block) -> np.ndarray:
    """Order clusters by their first rows in the first block of all rows and in others.

    An order that a pass confirms needs no second pass.
    """
    parts = [rows.block(0, min(BLOCK_ROWS, rows.n_samples)), *others]
    labels = np.concatenate([rule.label(part) for part in parts])
    return np.argsort(first_rows(labels, rule.n_clusters), kind="stable")


def labels_in_order(
    engine: Engine, labels: list[Any], order: np.ndarray
) -> list[Any] | None:
    """Return what a pass kept of the labels; None unless its order was right."""
    # A checkpoint may recall labels that were kept elsewhere.
    if not labels or engine.traffic.resumed or (np.diff(order) < 0).any():
        return None
    return labels


def label_once(
    session: FitSession, rule: Hyperplane | Scores, rows: Samples
) -> tuple[Hyperplane | Scores, OrderedClusters]:
    """Label all rows in one pass, the clusters in the order of their first rows.

    Parameters
    ----------
    session : FitSession
        The fit.
    rule : Hyperplane or Scores
        Labels the rows.
    rows : Samples
        All rows in its features.

    Returns
    -------
    rule : Hyperplane or Scores
        The rule with its clusters in order.
    clusters : OrderedClusters
        Their sizes, and what was kept of the labels.
    """
    rule = rule.ordered(likely_order(rule, rows))
    clusters = _label_pass(session, rule, rows, "labels")
    return rule.ordered(clusters.order), clusters


def without_noise(session: FitSession, result: FitResult) -> FitResult:
    """Return a result with clusters that leave out noise: sizes, order and labels."""
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
    """Label all rows, and order the clusters by their first rows."""
    sweep = SizesPass(session.weights, rule, kept=session.kept_labels)
    sizes, first, labels = session.engine.run(sweep, rows, stage)
    order = np.argsort(first, kind="stable")
    labels = labels_in_order(session.engine, labels, order)
    return OrderedClusters(order, sizes[order], labels)
