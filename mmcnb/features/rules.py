"""Decision rules on features, and the labels that they give."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import GROUP_ROWS, CSRBlock
from mmcnb.samples.matrix import Block, as_matrix


class Rule(ABC):
    """Base of decision rules: decision values of rows, and the clusters that follow."""

    n_clusters: int

    @abstractmethod
    def decide(self, rows: Any) -> np.ndarray:
        """Return the decision values of a block, of shape (m,) or (m, k)."""

    def label(self, rows: Any) -> np.ndarray:
        """Return the cluster of each row, int32."""
        return clusters_of(self.decide(rows))

    def table(self, rows: Any) -> dict[str, np.ndarray]:
        """Return the cluster and the margin of each row, as columns of a table."""
        values = self.decide(rows)
        return {"cluster": clusters_of(values), "margin": margins_of(values)}


@dataclass(frozen=True)
class Hyperplane(Rule):
    """f(x) = F(x)·coef + offset, for the features F of a row; cluster 1 has f(x) >= 0.

    Parameters
    ----------
    coef : ndarray of shape (p,)
        Normal vector in the coordinates of the features.
    offset : float
        Offset.
    """

    coef: np.ndarray
    offset: float
    n_clusters = 2

    def decide(self, rows: Block) -> np.ndarray:
        """Return the decision values of a block of features."""
        if isinstance(rows, CSRBlock):
            return kernels.decision_values_csr(*rows[:3], self.coef, self.offset)
        return kernels.decision_values(rows, self.coef, self.offset)

    def shifted(self, q: float) -> "Hyperplane":
        """Return the hyperplane with its threshold at q instead of 0."""
        return Hyperplane(self.coef, self.offset - q)

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Hyperplane":
        """Return the hyperplane with the given clusters on its sides: [1, 0] swaps."""
        if clusters[0] == 0:
            return self
        return Hyperplane(-self.coef, -self.offset)


@dataclass(frozen=True)
class Scores(Rule):
    """One score per cluster, F(x)·coef - offset; the cluster has the largest score.

    Parameters
    ----------
    coef : ndarray of shape (p, k)
        Coefficients of each cluster in the coordinates of the features.
    offset : ndarray of shape (k,)
        What is subtracted from each score.
    """

    coef: np.ndarray
    offset: np.ndarray

    @property
    def n_clusters(self) -> int:  # type: ignore[override]
        """Number of clusters, k."""
        return len(self.offset)

    def decide(self, rows: Block) -> np.ndarray:
        """Return the scores of a block of features, of shape (rows, k)."""
        if isinstance(rows, CSRBlock):
            return np.asarray(as_matrix(rows) @ self.coef) - self.offset
        coef = np.ascontiguousarray(self.coef.T)
        return kernels.cluster_scores(rows, coef, self.offset)

    def shifted(self, b: np.ndarray) -> "Scores":
        """Return the scores minus b."""
        return Scores(self.coef, self.offset + b)

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Scores":
        """Return the scores of the given clusters, in this order."""
        coef = np.ascontiguousarray(self.coef[:, clusters])
        return Scores(coef, self.offset[clusters])


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

    def decide(self, rows: Block) -> np.ndarray:
        """Return the columns, in the order of the clusters."""
        return np.asarray(rows)[:, self.coef.astype(np.int64)]

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Shares":
        """Return the columns of the given clusters, in this order."""
        return Shares(self.coef[clusters], self.offset[clusters])


def clusters_of(values: np.ndarray) -> np.ndarray:
    """Return clusters (int32) by decision values, or by scores (ties: the first)."""
    if values.ndim == 1:
        return (values >= 0).astype(np.int32)
    return values.argmax(axis=1).astype(np.int32)


def margins_of(values: np.ndarray) -> np.ndarray:
    """Return margins: the score of the cluster of a row minus the best other score.

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

    rule: Rule

    def decide(self, rows: Block) -> np.ndarray:
        """Return the probabilities of a block of features, of shape (rows, k)."""
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
        """Return the labels of rows start to stop."""
        return self.y[start:stop]


@dataclass(frozen=True)
class RuleLabels:
    """Labels derived from a rule when they are needed: nothing of size n is stored.

    Parameters
    ----------
    rule : Rule
        The sign of its decision value is the label, or the cluster of the largest
        score.
    """

    rule: Rule

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Return the labels of rows start to stop."""
        return self.decide(rows)

    def decide(self, rows: Any) -> np.ndarray:
        """Return the labels of a block of features."""
        return labels_from(self.rule.decide(rows))


Labels = GivenLabels | RuleLabels
"""Labels of the rows of a block: -1 or +1, or clusters where a rule has scores."""


def signs(f: np.ndarray) -> np.ndarray:
    """Return labels -1 or +1 (int8) of decision values; 0 counts as +1."""
    return np.where(f >= 0, 1, -1).astype(np.int8)


def labels_from(values: np.ndarray) -> np.ndarray:
    """Return labels -1 or +1 of decision values, or clusters of scores."""
    return signs(values) if values.ndim == 1 else clusters_of(values)


def coin_flip(n_samples: int, random_state: np.random.RandomState) -> GivenLabels:
    """Draw random labels -1 and +1, both of which occur."""
    y = np.empty(n_samples, np.int8)
    for start in range(0, n_samples, GROUP_ROWS):  # eight bytes of so many rows alone
        group = y[start : start + GROUP_ROWS]
        group[:] = np.where(random_state.uniform(size=group.size) < 0.5, -1, 1)
    if np.abs(y.sum(dtype=np.int64)) == n_samples:
        y[random_state.randint(n_samples)] *= -1
    return GivenLabels(y)
