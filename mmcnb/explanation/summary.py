"""Figures of clusters by column: means of all rows from one pass, and ranks of a sample."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, to_dense


class Moments(NamedTuple):
    """Rows and means of each cluster, squared deviations of all rows from their mean, the least value."""

    counts: np.ndarray
    means: np.ndarray
    squares: Any
    least: float

    @property
    def centre(self) -> np.ndarray:
        """Mean of all rows."""
        return (self.counts[:, None] * self.means).sum(axis=0) / max(self.counts.sum(), 1.0)


@dataclass(frozen=True)
class MomentsPass:
    """Moments of the columns by cluster; those of two ranges join as Chan, Golub and LeVeque do it.

    Parameters
    ----------
    codes : ndarray of shape (n,), int8 or int32
        Cluster of each row.
    n_clusters : int
        Their number, k.
    """

    codes: np.ndarray
    n_clusters: int

    def start(self) -> Moments:
        """Moments of no rows."""
        return Moments(np.zeros(self.n_clusters), np.zeros((self.n_clusters, 1)), 0.0, np.inf)

    def block(self, rows: Any, start: int, stop: int) -> Moments:
        """Moments of one block, dense or CSR."""
        X, codes = as_matrix(rows), self.codes[start:stop]
        counts = np.bincount(codes, minlength=self.n_clusters)
        members = csr_array(
            (np.ones(len(codes)), np.argsort(codes, kind="stable"), np.r_[0, counts.cumsum()]),
            shape=(self.n_clusters, len(codes)),
        )
        means = to_dense(members @ X) / np.maximum(counts, 1)[:, None]
        found = Moments(counts.astype(float), means, 0.0, float(X.min()))
        return found._replace(squares=squares_about(X, found.centre))

    def combine(self, total: Moments, other: Moments) -> Moments:
        """Moments of both."""
        n, m = total.counts.sum(), other.counts.sum()
        counts = total.counts + other.counts
        share = (other.counts / np.maximum(counts, 1))[:, None]
        means = total.means + share * (other.means - total.means)
        between = (other.centre - total.centre) ** 2 * (n * m / max(n + m, 1))
        squares = total.squares + other.squares + between
        return Moments(counts, means, squares, min(total.least, other.least))


def squares_about(X: Any, centre: np.ndarray) -> np.ndarray:
    """Squared deviations of dense or CSR rows from a centre, summed by column, in float64."""
    if not issparse(X):
        deviations = X - centre
        return np.einsum("ij,ij->j", deviations, deviations)
    deviations = centre[X.indices]
    deviations -= X.data
    stored = np.bincount(X.indices, np.square(deviations, out=deviations), X.shape[1])
    return stored + (X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])) * centre**2


def described_columns(samples: Samples) -> list[tuple[Any, str, str]]:
    """Name, kind and category of each column; one without a name has its number."""
    if samples.encoding is not None:
        return [
            (one.name, one.kind, category)
            for one in samples.encoding.features
            for category in (one.categories or ("",))
        ]
    names = range(samples.n_features) if samples.feature_names is None else samples.feature_names
    return [(name, "number", "") for name in names]


def effects_of(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Means of all rows that are not of a cluster, and its effects; a constant column has none."""
    counts, means = moments.counts, moments.means
    weights = counts * (1 - np.eye(counts.size))
    others = weights @ means / np.maximum(weights.sum(axis=1), 1)[:, None]
    deviations = np.sqrt(moments.squares / counts.sum())
    varies = deviations > 1e-12 * np.abs(moments.centre)
    return others, np.divide(means - others, deviations, np.zeros_like(means), where=varies)


def compared(values: np.ndarray, inside: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """How often a row inside has the larger value, ties by half, and both medians; all weighted.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.summary import compared
    >>> compared(np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, False, True, True]), np.ones(4))
    (1.0, 3.0, 1.5)
    """
    values, codes = np.unique(values, return_inverse=True)
    own, others = (np.bincount(codes, weights * which, values.size) for which in (inside, ~inside))
    auc = (own * (others.cumsum() - others / 2)).sum() / (own.sum() * others.sum())
    return float(auc), median_of(values, own), median_of(values, others)


def median_of(values: np.ndarray, weights: np.ndarray) -> float:
    """Median of distinct values in rising order, by their weights."""
    sums = weights.cumsum()
    places = [np.searchsorted(sums, sums[-1] / 2, side) for side in ("left", "right")]
    return float(values[np.minimum(places, values.size - 1)].mean())


class ColumnFigures(NamedTuple):
    """A column in one cluster, beside all other rows; see `Explanation`."""

    cluster: Any
    column: Any
    category: str
    kind: str
    effect: float
    auc: float
    near: float
    mean: float
    others_mean: float
    median: float
    others_median: float
    spread: float
    others_spread: float

    @property
    def strength(self) -> float:
        """How far it tells the cluster from other rows, up to 0.5."""
        return float(np.fmax(abs(self.auc - 0.5), self.near - 0.5))

    @property
    def order(self) -> tuple[float, ...]:
        """Of the columns of two categories, which differ alike, the frequent one comes first."""
        return -round(self.strength, 9), -round(abs(self.effect), 9), -self.effect


def columns_of_clusters(
    engine: Engine, samples: Samples, groups: Groups, moments: Moments, sample: Sample, most: int = 50
) -> list[list[ColumnFigures]]:
    """The columns with the largest effects in each cluster, first those that tell most."""
    others, effects = effects_of(moments)
    described = described_columns(samples)

    def figures(k: int, j: int, values: np.ndarray) -> ColumnFigures:
        (name, kind, category), inside = described[j], sample.codes == k
        kind = "flag" if kind == "number" and np.isin(values, (0, 1)).all() else kind
        auc, *medians = compared(values, inside, sample.weights)
        far, *spreads = np.nan, np.nan, np.nan
        if kind in ("number", "date"):
            far, *spreads = compared(np.abs(values - medians[0]), inside, sample.weights)
        own = groups.clusters[k], name, category, kind, float(effects[k, j]), auc, 1 - far
        return ColumnFigures(*own, float(moments.means[k, j]), float(others[k, j]), *medians, *spreads)

    def of_cluster(k: int) -> list[ColumnFigures]:
        chosen = np.argsort(-np.abs(effects[k]), kind="stable")[:most]
        values = to_dense(sample.X[:, chosen], np.float64).T
        return sorted(map(partial(figures, k), chosen.tolist(), values), key=lambda one: one.order)

    return engine.each(of_cluster, groups.known.tolist() if groups.known.size > 1 else [])


def table_of_words(samples: Samples, groups: Groups, moments: Moments, most: int = 10) -> Any:
    """The words that mark each cluster; None if the columns are no counts with names."""
    import pandas as pd

    names = samples.feature_names
    if not samples.is_sparse or names is None or moments.least < 0:
        return None
    counts = (moments.counts[:, None] * moments.means)[groups.known]
    total = counts.sum(axis=0)
    average = total.sum() / max(len(counts), 1)
    rarity = np.log1p(np.divide(average, total, np.zeros_like(total), where=total > 0))
    scores = counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(float).tiny) * rarity
    best = np.argsort(-scores, axis=1, kind="stable")[:, :most]
    found = [
        (cluster, names[j], row[j])
        for cluster, row, places in zip(groups.clusters[groups.known], scores, best, strict=True)
        for j in places
        if row[j] > 0
    ]
    return pd.DataFrame(found, columns=["cluster", "word", "score"])
