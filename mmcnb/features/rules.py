"""Decision rules on features, and the labels they give."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from mmcnb.engine.passes import CollectingPass, WeightedPass, first_rows
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import BLOCK_ROWS, CSRBlock, Samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores.labels import LabelsSink


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

    def label(self, rows: Any) -> np.ndarray:
        """Cluster of each row (int32): 1 where the decision value is at least 0, otherwise 0."""
        return clusters_of(self.decide(rows))

    def shifted(self, q: float) -> "Hyperplane":
        """The hyperplane with its threshold at q instead of 0."""
        return Hyperplane(self.coef, self.offset - q)

    def ordered(self, clusters: Sequence[int]) -> "Hyperplane":
        """The hyperplane with the given clusters on its two sides: [1, 0] reverses it."""
        return Hyperplane(-self.coef, -self.offset) if clusters[0] == 1 else self


@dataclass(frozen=True)
class Scores:
    """One score per cluster, F(x)·coef - offset; a row belongs to the cluster of its largest score.

    Parameters
    ----------
    coef : ndarray of shape (p, k)
        Coefficients of each cluster in the coordinates of the features.
    offset : ndarray of shape (k,)
        What is subtracted from each score.
    """

    coef: np.ndarray
    offset: np.ndarray

    def decide(self, rows: Any) -> np.ndarray:
        """Scores of a block of features, of shape (rows, k)."""
        if isinstance(rows, CSRBlock):
            return np.asarray(as_matrix(rows) @ self.coef) - self.offset
        return kernels.cluster_scores(
            rows, np.ascontiguousarray(self.coef.T), self.offset
        )

    def label(self, rows: Any) -> np.ndarray:
        """Cluster of each row (int32); the first of equal scores."""
        return clusters_of(self.decide(rows))

    def shifted(self, b: np.ndarray) -> "Scores":
        """The scores minus b."""
        return Scores(self.coef, self.offset + b)

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Scores":
        """The scores of the given clusters, in this order."""
        return Scores(
            np.ascontiguousarray(self.coef[:, clusters]), self.offset[clusters]
        )


@dataclass(frozen=True)
class Shares(Scores):
    """Scores that the rows have already, one in a column.

    Parameters
    ----------
    coef : ndarray of shape (k,)
        Number of the column of each cluster.
    offset : ndarray of shape (k,)
        Zeros.
    """

    def decide(self, rows: Any) -> np.ndarray:
        """The columns, in the order of the clusters."""
        return np.asarray(rows)[:, self.coef.astype(np.int64)]

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Shares":
        """The columns of the given clusters, in this order."""
        return Shares(self.coef[clusters], self.offset[clusters])


def clusters_of(values: np.ndarray) -> np.ndarray:
    """Cluster of each row (int32) from its decision value, of shape (m,), or its scores, of shape (m, k)."""
    chosen = values >= 0 if values.ndim == 1 else values.argmax(axis=1)
    return chosen.astype(np.int32)


def margins_of(values: np.ndarray) -> np.ndarray:
    """Margins of rows: the score of the cluster of a row minus the best other score.

    Where two clusters have one decision function f, their scores differ by it: the
    margin is abs(f).

    Parameters
    ----------
    values : ndarray of shape (m,) or (m, k)
        Decision values of two clusters, or scores.

    Returns
    -------
    ndarray of shape (m,), float64
        Margins, not negative; 0 on a boundary, and with one cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.rules import margins_of
    >>> margins_of(np.array([[1.0, 4.0, 2.0]])), margins_of(np.array([-3.0]))
    (array([2.]), array([3.]))
    """
    if values.ndim == 1:
        return np.abs(values)
    if values.shape[1] == 1:
        return np.zeros(values.shape[0])
    two = np.partition(values, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


@dataclass(frozen=True)
class Softmax:
    """The probabilities of clusters by the scores of a rule.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.rules import Scores, Softmax
    >>> Softmax(Scores(np.eye(2), np.zeros(2))).decide(np.array([[1.0, 1.0]]))
    array([[0.5, 0.5]])
    """

    rule: Hyperplane | Scores

    def decide(self, rows: Any) -> np.ndarray:
        """Probabilities of a block of features, of shape (rows, k)."""
        return np.asarray(softmax(self.rule.decide(rows), axis=1))


@dataclass(frozen=True)
class GivenLabels:
    """Labels stored as one byte per row.

    Parameters
    ----------
    y : ndarray of shape (n,), int8
        -1 or +1; of any integer type where they number clusters.
    """

    y: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """The labels of rows start to stop."""
        return self.y[start:stop]


@dataclass(frozen=True)
class RuleLabels:
    """Labels derived from a rule when they are needed: nothing of size n is stored.

    Parameters
    ----------
    rule : Hyperplane or Scores
        The sign of its decision value is the label, or the cluster of the largest
        score.
    """

    rule: Hyperplane | Scores

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """The labels of rows start to stop."""
        return labels_from(self.rule.decide(rows))


Labels = GivenLabels | RuleLabels
"""Labels of the rows of a block: -1 or +1, or the number of the cluster where there are scores."""


def signs(f: np.ndarray) -> np.ndarray:
    """Labels -1 or +1 (int8) of decision values; 0 counts as +1."""
    return np.where(f >= 0, 1, -1).astype(np.int8)


def labels_from(values: np.ndarray) -> np.ndarray:
    """Labels -1 or +1 of decision values, of shape (m,), or clusters of scores, of shape (m, k)."""
    return signs(values) if values.ndim == 1 else clusters_of(values)


@dataclass(frozen=True)
class DecisionPass(CollectingPass):
    """Values of all rows, in order, by anything that decides."""

    rule: Any

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """Decision values of one block."""
        return [self.rule.decide(rows)]


@dataclass(frozen=True)
class TablePass(CollectingPass):
    """Cluster and margin of each row, as the columns of a table."""

    rule: Hyperplane | Scores

    def block(self, rows: Any, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """The columns of one block."""
        if hasattr(self.rule, "table"):
            return [self.rule.table(rows)]
        values = self.rule.decide(rows)
        return [{"cluster": clusters_of(values), "margin": margins_of(values)}]


def coin_flip(n_samples: int, random_state: np.random.RandomState) -> GivenLabels:
    """Random labels -1 and +1, both of which occur."""
    y = np.where(random_state.uniform(size=n_samples) < 0.5, -1, 1).astype(np.int8)
    if np.abs(y.sum(dtype=np.int64)) == n_samples:
        y[random_state.randint(n_samples)] *= -1
    return GivenLabels(y)


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

    def of_group(self, blocks: list[np.ndarray], start: int) -> list[Any]:
        """What is kept of the labels of a group of rows, which come block by block."""
        return (
            blocks
            if self.sink is None
            else [self.sink.write(start, np.concatenate(blocks))]
        )


@dataclass(frozen=True)
class LabelsPass(CollectingPass):
    """Label the rows; the total is what is kept of the labels."""

    rule: Hyperplane | Scores
    kept: KeptLabels = KeptLabels()

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Labels of one block."""
        return [self.rule.label(rows)]

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Keep the labels of a group."""
        return self.kept.of_group(total, start)


@dataclass(frozen=True)
class ClustersPass(WeightedPass):
    """Base of passes that label rows: sums, first rows of the clusters, and what is kept of the labels.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights.
    rule : Scores
        Labels the rows.
    kept : KeptLabels or None, default=None
        Where the labels are kept, which changes no sum; None keeps none.
    """

    rule: Scores
    kept: KeptLabels | None = field(default=None, compare=False, kw_only=True)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.rule.offset.shape[0]

    def total_of(self, labels: np.ndarray, start: int, *sums: Any) -> list[Any]:
        """The total of a block with these labels and sums."""
        return [
            *sums,
            first_rows(labels, self.n_clusters, start),
            [] if self.kept is None else [labels],
        ]

    def group(self, total: list[Any], start: int) -> list[Any]:
        """Keep the labels of a group."""
        return (
            total
            if self.kept is None
            else [*total[:-1], self.kept.of_group(total[-1], start)]
        )

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Both together."""
        added = [a + b for a, b in zip(total[:-2], other[:-2], strict=True)]
        return [*added, np.minimum(total[-2], other[-2]), total[-1] + other[-1]]


@dataclass(frozen=True)
class SizesPass(ClustersPass):
    """Sizes of the clusters."""

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """The total of one block; rows that are noise count nowhere."""
        labels = self.rule.label(rows)
        weights = self.weights_of(start, stop)
        return self.total_of(
            labels, start, np.bincount(labels + 1, weights, self.n_clusters + 1)[1:]
        )


def likely_order(rule: Scores, rows: Samples, *others: Any) -> np.ndarray:
    """The clusters in the order of their first rows among the first of all rows, and then among others."""
    parts = [rows.block(0, min(BLOCK_ROWS, rows.n_samples)), *others]
    labels = np.concatenate([rule.label(part) for part in parts])
    return np.argsort(first_rows(labels, rule.offset.shape[0]), kind="stable")


def kept_labels(
    session: FitSession, labels: list[Any], order: np.ndarray
) -> list[Any] | None:
    """What a pass has kept of the labels; None if nothing, or the clusters came in another order."""
    # What a checkpoint recalls may be of labels that were kept elsewhere.
    is_kept = (
        bool(labels)
        and not session.engine.traffic.resumed
        and bool((np.diff(order) > 0).all())
    )
    return labels if is_kept else None


def label_once(
    session: FitSession, rule: Any, rows: Samples
) -> tuple[Scores, np.ndarray, list[Any] | None]:
    """Label all rows in one pass, the clusters in the order of their first rows.

    Parameters
    ----------
    session : FitSession
        The fit.
    rule : Scores
        Labels the rows.
    rows : Samples
        All rows in its features.

    Returns
    -------
    rule : Scores
        The same with its clusters in order.
    sizes : ndarray of shape (k,)
        Weight of each cluster.
    kept : list or None
        What was kept of the labels; None if the first rows came in another order than
        expected.
    """
    rule = rule.ordered(likely_order(rule, rows))
    sweep = SizesPass(session.weights, rule, kept=session.kept_labels)
    sizes, first, labels = session.engine.run(sweep, rows, "labels")
    order = np.argsort(first, kind="stable")
    return rule.ordered(order), sizes[order], kept_labels(session, labels, order)


def without_noise(session: FitSession, made: FitResult) -> FitResult:
    """The result of a fit with the sizes, the order and the labels of clusters without noise."""
    features, rule = made.model.labelling(session.samples)
    sweep = SizesPass(session.weights, rule, kept=session.kept_labels)
    sizes, first, labels = session.engine.run(sweep, features, "noise")
    order = np.argsort(first, kind="stable")
    total = (
        session.samples.n_samples
        if session.weights is None
        else session.weights.sum(dtype=np.float64)
    )
    noise, *sizes = whole_numbers([total - sizes.sum(), *sizes[order]])
    model = replace(made.model, rule=made.model.rule.ordered(order.tolist()))
    kept = kept_labels(session, labels, order)
    return replace(
        made, model=model, report={"sizes": sizes, "noise": noise}, kept_labels=kept
    )
