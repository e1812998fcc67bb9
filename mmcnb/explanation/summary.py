"""Figures of clusters by column: means of all rows from a pass, ranks from a sample."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Block, as_matrix, to_dense

MOST_COLUMNS = 50  # of a cluster: those with the largest effects
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
    """Number of rows, sums of each cluster, and squared deviations from the mean."""

    n: int
    sums: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class MomentsPass:
    """Moments of the columns; two ranges join by Chan, Golub and LeVeque (1979).

    Parameters
    ----------
    codes : ndarray of shape (n,), int8 or wider
        Cluster of each row.
    n_clusters : int
        Their number, k.
    """

    codes: np.ndarray
    n_clusters: int

    def block(self, rows: Block, start: int, stop: int) -> Moments:
        """Return the moments of one block, dense or CSR."""
        X = as_matrix(rows)
        n = stop - start
        places = (self.codes[start:stop], np.arange(n))
        members = csr_array((np.ones(n), places), shape=(self.n_clusters, n))
        sums = to_dense(members @ X)
        if issparse(X):
            _, variances = mean_variance_axis(X.astype(float), axis=0)
        else:
            mean = sums.sum(axis=0, keepdims=True) / n
            variances = X.var(axis=0, dtype=float, mean=mean)
        return Moments(n, sums, n * variances)

    def combine(self, total: Moments, other: Moments) -> Moments:
        """Return the moments of two ranges of rows."""
        n = total.n
        m = other.n
        step = total.sums.sum(axis=0) / n - other.sums.sum(axis=0) / m
        squares = total.squares + other.squares + step**2 * (n * m / (n + m))
        return Moments(n + m, total.sums + other.sums, squares)


def column_frame(samples: Samples) -> pd.DataFrame:
    """Return name, kind and category of each column; its number if it has no name."""
    columns: list[tuple[Any, str, str]] = []
    if samples.encoding is not None:
        for feature in samples.encoding.features:
            for category in feature.categories or ("",):
                columns.append((feature.name, feature.kind, category))
    else:
        names: Any = samples.feature_names
        if names is None:
            names = range(samples.n_features)
        columns = [(name, "number", "") for name in names]
    return pd.DataFrame(columns, columns=["column", "kind", "category"])


class Means(NamedTuple):
    """Means of the columns in each cluster, each of shape (k, d).

    Attributes
    ----------
    mean : ndarray
        Of the rows of the cluster.
    others_mean : ndarray
        Of all rows of other clusters.
    effect : ndarray
        Their difference in standard deviations of the column; 0 if it is constant.
    """

    mean: np.ndarray
    others_mean: np.ndarray
    effect: np.ndarray


def means_of(counts: np.ndarray, moments: Moments) -> Means:
    """Return the means of clusters with so many rows."""
    mean = moments.sums / counts[:, None]
    others = (1 - np.eye(counts.size)) @ moments.sums
    others /= np.maximum(counts.sum() - counts, 1)[:, None]
    deviations = np.sqrt(moments.squares / moments.n)
    varies = deviations > 1e-12 * np.abs(moments.sums.sum(axis=0) / moments.n)
    none = np.zeros_like(mean)
    effect = np.divide(mean - others, deviations, none, where=varies)
    return Means(mean, others, effect)


class Comparison(NamedTuple):
    """Values of the rows of a cluster against those of others, all weighted.

    Attributes
    ----------
    auc : float, or ndarray of shape (d,)
        How often a row of the cluster has the larger value, ties by half.
    median, others_median : float, or ndarray of shape (d,)
        The medians of both.
    """

    auc: Any
    median: Any
    others_median: Any


def compare(values: np.ndarray, inside: np.ndarray, weights: np.ndarray) -> Comparison:
    """Compare the values of one column inside and outside of a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.summary import compare
    >>> inside = np.array([False, False, True, True])
    >>> compare(np.array([1.0, 2.0, 3.0, 3.0]), inside, np.ones(4))
    Comparison(auc=1.0, median=3.0, others_median=1.5)
    """
    values, codes = np.unique(values, return_inverse=True)
    # Weights of the distinct values.
    w_in = np.bincount(codes, weights * inside, values.size)
    w_out = np.bincount(codes, weights * ~inside, values.size)
    n_larger = (w_in * (w_out.cumsum() - w_out / 2)).sum()
    auc = float(n_larger / (w_in.sum() * w_out.sum()))
    return Comparison(auc, median_of(values, w_in), median_of(values, w_out))


def compare_columns(
    X: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> Comparison:
    """Compare each of some columns inside and outside of a cluster."""
    columns = [compare(column, inside, weights) for column in X.T]
    return Comparison(*np.transpose(columns))


def median_of(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted median of distinct values in rising order."""
    sums = weights.cumsum()
    places = [np.searchsorted(sums, sums[-1] / 2, side) for side in ("left", "right")]
    return float(values[np.minimum(places, values.size - 1)].mean())


def strength_of(columns: pd.DataFrame) -> pd.Series:
    """Return how far each column tells a cluster from other rows, up to 0.5."""
    return np.fmax((columns["auc"] - 0.5).abs(), columns["near"] - 0.5)


def column_table(
    engine: Engine, samples: Samples, groups: Groups, moments: Moments, sample: Sample
) -> pd.DataFrame:
    """Return the 50 columns with the largest effects in each cluster, telling first."""
    if groups.known.size < 2:
        return pd.DataFrame(columns=FIGURES)
    means = means_of(groups.counts, moments)
    names = column_frame(samples)

    def of_cluster(k: int) -> pd.DataFrame:
        effects = np.abs(means.effect[k]).round(9)
        chosen = np.argsort(-effects, kind="stable")[:MOST_COLUMNS]
        table = names.iloc[chosen].assign(cluster=groups.clusters[k])
        for name, figures in means._asdict().items():
            table[name] = figures[k, chosen]
        values = to_dense(sample.X[:, chosen], np.float64)
        _add_ranks(table, values, sample.codes == k, sample.weights)
        return _telling_first(table)

    tables = engine.each(of_cluster, groups.known.tolist())
    return pd.concat(tables, ignore_index=True)


def _add_ranks(
    table: pd.DataFrame, values: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> None:
    """Add the figures of a sample to the columns of a cluster, and which are flags."""
    by_value = compare_columns(values, inside, weights)
    # Distances to the median of the cluster.
    distances = np.abs(values - by_value.median)
    by_distance = compare_columns(distances, inside, weights)
    table["auc"] = by_value.auc
    table["median"] = by_value.median
    table["others_median"] = by_value.others_median
    table["near"] = 1 - by_distance.auc
    table["spread"] = by_distance.median
    table["others_spread"] = by_distance.others_median
    is_flag = (table["kind"] == "number") & np.isin(values, (0, 1)).all(axis=0)
    table.loc[is_flag, "kind"] = "flag"
    has_no_spread = table["kind"].isin(("flag", "text"))
    table.loc[has_no_spread, ["near", "spread", "others_spread"]] = np.nan


def _telling_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the columns of a cluster by what they tell, and their figures."""
    # Columns of two categories differ alike: the frequent one comes first.
    effect = table["effect"].round(9)
    keys = (-effect, -effect.abs(), -strength_of(table).round(9))
    return table.iloc[np.lexsort(keys)][FIGURES]


def word_table(
    samples: Samples, groups: Groups, moments: Moments, sample: Sample, most: int = 10
) -> pd.DataFrame | None:
    """Return the words that mark each cluster; None unless columns are named counts."""
    clusters = groups.clusters[groups.known]
    is_named = samples.is_sparse and samples.feature_names is not None
    if not clusters.size or not is_named or sample.X.min() < 0:
        return None
    sums = moments.sums[groups.known]
    used = np.flatnonzero(sums.sum(axis=0) > 0)
    names = np.array(samples.feature_names)[used]
    counts = sums[:, used]
    # Class-based TF-IDF: the share in all words of the cluster, times
    # log(1 + words of a cluster on average / words of this name).
    rarity = np.log1p(counts.sum() / clusters.size / counts.sum(axis=0))
    totals = np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    best = {}
    for cluster, scores in zip(clusters, counts / totals * rarity, strict=True):
        best[cluster] = pd.Series(scores, names).nlargest(most)
    words = pd.concat(best, names=["cluster", "word"]).rename("score").reset_index()
    return words[words["score"] > 0].reset_index(drop=True)
