"""Decision rules, which assign labels to rows from their features."""

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
    """Base class of rules that compute decision values and clusters of rows."""

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
    """Decision function f(x) = F(x)·coef + offset for the features F(x) of a row.

    Rows with f(x) >= 0 are in cluster 1, and all other rows are in cluster 0.

    Parameters
    ----------
    coef : ndarray of shape (p,)
        Normal vector in the coordinates of the features.
    offset : float
        Offset of the hyperplane.
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
        """Return the hyperplane on which f(x) = q."""
        return Hyperplane(self.coef, self.offset - q)

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Hyperplane":
        """Return the hyperplane with reordered clusters.

        If ``clusters`` is [1, 0], the two sides of the hyperplane are swapped.
        """
        if clusters[0] == 0:
            return self
        return Hyperplane(-self.coef, -self.offset)


@dataclass(frozen=True)
class Scores(Rule):
    """Rule that assigns a row to the cluster with the largest F(x)·coef - offset.

    Parameters
    ----------
    coef : ndarray of shape (p, k)
        Coefficients of each cluster, one column per cluster.
    offset : ndarray of shape (k,)
        Offset that is subtracted from each score.
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
        """Return a rule that subtracts ``b[h]`` from the score of each cluster h."""
        return Scores(self.coef, self.offset + b)

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Scores":
        """Return a rule with only the given clusters, in the given order."""
        coef = np.ascontiguousarray(self.coef[:, clusters])
        return Scores(coef, self.offset[clusters])


@dataclass(frozen=True)
class Shares(Scores):
    """Scores that are columns of the features, such as shares of votes.

    Parameters
    ----------
    coef : ndarray of shape (k,)
        For each cluster, the index of the feature column that is its score.
    offset : ndarray of shape (k,)
        Zeros, because shares have no offset.
    """

    def decide(self, rows: Block) -> np.ndarray:
        """Return the columns, in the order of the clusters."""
        return np.asarray(rows)[:, self.coef.astype(np.int64)]

    def ordered(self, clusters: Sequence[int] | np.ndarray) -> "Shares":
        """Return a rule with only the given clusters, in the given order."""
        return Shares(self.coef[clusters], self.offset[clusters])


def clusters_of(values: np.ndarray) -> np.ndarray:
    """Return the clusters (int32) of decision values or scores.

    If several clusters have the largest score, the row belongs to the first of them.
    """
    if values.ndim == 1:
        return (values >= 0).astype(np.int32)
    return values.argmax(axis=1).astype(np.int32)


def margins_of(values: np.ndarray) -> np.ndarray:
    """Return margins: the score of a row's cluster minus the best other score.

    If one decision function f separates two clusters, the margin is abs(f).

    Parameters
    ----------
    values : ndarray of shape (m,) or (m, k)
        Decision values of two clusters, or scores.

    Returns
    -------
    ndarray of shape (m,), float64
        Margins, at least 0. They are 0 on a boundary, and if there is only one cluster.

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
    """Cluster probabilities: the softmax of the scores of a rule.

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
    """Labels stored in an array.

    Parameters
    ----------
    y : ndarray of shape (n,), integer
        Labels -1 and +1, or cluster numbers.
    """

    y: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Return the labels of rows start to stop."""
        return self.y[start:stop]


@dataclass(frozen=True)
class RuleLabels:
    """Labels that a rule computes block by block, so that no array of size n is stored.

    Parameters
    ----------
    rule : Rule
        Rule whose decision values determine the labels. A label is the sign of a single
        decision value, or the cluster with the largest score.
    """

    rule: Rule

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        """Return the labels of rows start to stop."""
        return self.decide(rows)

    def decide(self, rows: Any) -> np.ndarray:
        """Return the labels of the rows of a block of features."""
        return labels_from(self.rule.decide(rows))


Labels = GivenLabels | RuleLabels
"""Labels of rows, read block by block: -1 or +1, or cluster numbers."""


def signs(f: np.ndarray) -> np.ndarray:
    """Return the signs of decision values as labels -1 or +1 (int8); 0 gives +1."""
    return np.where(f >= 0, 1, -1).astype(np.int8)


def labels_from(values: np.ndarray) -> np.ndarray:
    """Convert decision values to labels -1 or +1, or scores to cluster numbers."""
    return signs(values) if values.ndim == 1 else clusters_of(values)


def coin_flip(n_samples: int, random_state: np.random.RandomState) -> GivenLabels:
    """Draw random labels -1 and +1 such that each occurs at least once."""
    y = np.empty(n_samples, np.int8)
    # Draw in groups, because the random numbers take eight bytes per row.
    for start in range(0, n_samples, GROUP_ROWS):
        group = y[start : start + GROUP_ROWS]
        group[:] = np.where(random_state.uniform(size=group.size) < 0.5, -1, 1)
    if np.abs(y.sum(dtype=np.int64)) == n_samples:
        y[random_state.randint(n_samples)] *= -1
    return GivenLabels(y)
