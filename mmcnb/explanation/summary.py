"""Figures of clusters by column: means of all rows from one pass, and ranks of a sample."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, to_dense

FIGURES = [
    "cluster",
    "column",
    "category",
    "kind",
    "effect",
    "auc",
    "near",
    "mean",
    "others_mean",
    "median",
    "others_median",
    "spread",
    "others_spread",
]


class Moments(NamedTuple):
    """Number of rows, sums of each cluster, and squared deviations of all rows from their mean."""

    n: int
    sums: np.ndarray
    squares: Any


@dataclass(frozen=True)
class MomentsPass:
    """Moments of the columns; those of two ranges join as Chan, Golub and LeVeque do it.

    Parameters
    ----------
    codes : ndarray of shape (n,), int8 or wider
        Cluster of each row.
    n_clusters : int
        Their number, k.
    """

    codes: np.ndarray
    n_clusters: int

    def block(self, rows: Any, start: int, stop: int) -> Moments:
        """Moments of one block, dense or CSR."""
        X = as_matrix(rows)
        n = stop - start
        members = csr_array(
            (np.ones(n), (self.codes[start:stop], np.arange(n))),
            shape=(self.n_clusters, n),
        )
        sums = to_dense(members @ X)
        if issparse(X):
            return Moments(n, sums, n * mean_variance_axis(X.astype(float), axis=0)[1])
        return Moments(
            n,
            sums,
            n * X.var(axis=0, dtype=float, mean=sums.sum(axis=0, keepdims=True) / n),
        )

    def combine(self, total: Moments, other: Moments) -> Moments:
        """Moments of both."""
        n = total.n
        m = other.n
        apart = total.sums.sum(axis=0) / n - other.sums.sum(axis=0) / m
        squares = total.squares + other.squares + apart**2 * (n * m / (n + m))
        return Moments(n + m, total.sums + other.sums, squares)


def described_columns(samples: Samples) -> list[tuple[Any, str, str]]:
    """Name, kind and category of each column; one without a name has its number."""
    if samples.encoding is not None:
        features = samples.encoding.features
        return [
            (one.name, one.kind, text)
            for one in features
            for text in one.categories or ("",)
        ]
    names = (
        range(samples.n_features)
        if samples.feature_names is None
        else samples.feature_names
    )
    return [(name, "number", "") for name in names]


def effects_of(
    counts: np.ndarray, moments: Moments
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of clusters and of all rows beside each, and effects; a constant column has none."""
    means = moments.sums / counts[:, None]
    others = (1 - np.eye(counts.size)) @ moments.sums
    others /= np.maximum(counts.sum() - counts, 1)[:, None]
    deviations = np.sqrt(moments.squares / moments.n)
    varies = deviations > 1e-12 * np.abs(moments.sums.sum(axis=0) / moments.n)
    return (
        means,
        others,
        np.divide(means - others, deviations, np.zeros_like(means), where=varies),
    )


def compared(
    values: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> tuple[float, float, float]:
    """How often a row inside has the larger value, ties by half, and both medians; all weighted.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.summary import compared
    >>> compared(np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, False, True, True]), np.ones(4))
    (1.0, 3.0, 1.5)
    """
    values, codes = np.unique(values, return_inverse=True)
    own, others = (
        np.bincount(codes, weights * which, values.size) for which in (inside, ~inside)
    )
    auc = (own * (others.cumsum() - others / 2)).sum() / (own.sum() * others.sum())
    return float(auc), median_of(values, own), median_of(values, others)


def median_of(values: np.ndarray, weights: np.ndarray) -> float:
    """Median of distinct values in rising order, by their weights."""
    sums = weights.cumsum()
    places = [np.searchsorted(sums, sums[-1] / 2, side) for side in ("left", "right")]
    return float(values[np.minimum(places, values.size - 1)].mean())


def strength_of(columns: Any) -> Any:
    """How far each column tells a cluster from other rows, up to 0.5."""
    return np.fmax((columns["auc"] - 0.5).abs(), columns["near"] - 0.5)


def column_table(
    engine: Engine, samples: Samples, groups: Groups, moments: Moments, sample: Sample
) -> Any:
    """The 50 columns with the largest effects in each cluster, first those that tell most."""
    import pandas as pd

    means, others, effects = effects_of(groups.counts, moments)
    described = pd.DataFrame(
        described_columns(samples), columns=["column", "kind", "category"]
    )

    def of_cluster(k: int) -> Any:
        chosen = np.argsort(-np.abs(effects[k]).round(9), kind="stable")[:50]
        values = to_dense(sample.X[:, chosen], np.float64)
        inside = sample.codes == k

        def ranks(values: np.ndarray) -> np.ndarray:
            return np.transpose(
                [compared(column, inside, sample.weights) for column in values.T]
            )

        found = described.iloc[chosen].assign(
            cluster=groups.clusters[k], effect=effects[k, chosen]
        )
        found["mean"], found["others_mean"] = means[k, chosen], others[k, chosen]
        found["auc"], median, found["others_median"] = ranks(values)
        far, found["spread"], found["others_spread"] = ranks(np.abs(values - median))
        found["near"] = 1 - far
        found["median"] = median
        found.loc[
            (found["kind"] == "number") & np.isin(values, (0, 1)).all(axis=0), "kind"
        ] = "flag"
        found.loc[
            found["kind"].isin(("flag", "text")), ["near", "spread", "others_spread"]
        ] = np.nan
        # Of the columns of two categories, which differ alike, the frequent one comes
        # first.
        keys = (
            -found["effect"].round(9),
            -found["effect"].abs().round(9),
            -strength_of(found).round(9),
        )
        return found.iloc[np.lexsort(keys)][FIGURES]

    parts = engine.each(
        of_cluster, groups.known.tolist() if groups.known.size > 1 else []
    )
    return (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=FIGURES)
    )


def word_table(
    samples: Samples, groups: Groups, moments: Moments, sample: Sample, most: int = 10
) -> Any:
    """The words that mark each cluster; None if the columns are no counts with names."""
    import pandas as pd

    clusters = groups.clusters[groups.known]
    sums = moments.sums[groups.known]
    if (
        not clusters.size
        or not samples.is_sparse
        or samples.feature_names is None
        or sample.X.min() < 0
    ):
        return None
    used = np.flatnonzero(sums.sum(axis=0) > 0)
    names = np.array(samples.feature_names)[used]
    counts = sums[:, used]
    rarity = np.log1p(counts.sum() / clusters.size / counts.sum(axis=0))
    scores = (
        counts
        / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        * rarity
    )
    rows = zip(clusters, scores, strict=True)
    best = {cluster: pd.Series(row, names).nlargest(most) for cluster, row in rows}
    found = pd.concat(best, names=["cluster", "word"]).rename("score").reset_index()
    return found[found["score"] > 0].reset_index(drop=True)
