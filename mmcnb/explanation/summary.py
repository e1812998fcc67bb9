"""Compute figures of each column in each cluster, from all rows and from a sample."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.explanation.levels import Order, orders_of, shares_of_levels
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Block, as_matrix, to_dense

MOST_COLUMNS = 50  # maximum number of columns that describe a cluster
MOST_WORDS = 10  # maximum number of words that describe a cluster
LEAST_STRENGTH = 0.15  # minimum strength of a column in a sentence
# Before effects are computed, values are clipped to a distance of FAR times the median
# distance from the median. Otherwise, a single row with totals would inflate the
# standard deviation of a column, so that its effect would be small.
FAR = 10.0
LIMIT_ROWS = 2000  # approximate number of rows from which these limits are computed
BLOCK_COLUMNS = 64  # number of columns that are clipped at a time


class ColumnFigures(NamedTuple):
    """A row of `column_table`; see `Explanation` for the fields."""

    cluster: object
    column: str | int
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
    position: str = ""
    share: float = np.nan
    others_share: float = np.nan
    gaps: float = 0.0
    others_gaps: float = 0.0


FIGURES = list(ColumnFigures._fields)


class Moments(NamedTuple):
    """Moments of the columns in a range of rows, without missing values.

    Attributes
    ----------
    n : int
        Number of rows.
    gaps : ndarray of shape (k, d), or int
        Number of missing values by cluster and column, or 0 if no value is missing.
    sums : ndarray of shape (k, d)
        Sum of the values by cluster and column.
    squares : ndarray of shape (d,)
        For each column, the sum of squared deviations of the values from their mean.
    """

    n: int
    gaps: np.ndarray | int
    sums: np.ndarray
    squares: np.ndarray

    @property
    def n_values(self) -> np.ndarray | int:
        """Number of values in each column, or one number if no value is missing.

        Missing values are not counted.
        """
        if isinstance(self.gaps, int):
            return self.n
        return self.n - self.gaps.sum(axis=0)

    @property
    def column_means(self) -> np.ndarray:
        """Mean of the values of each column, or 0 if a column has no values."""
        return self.sums.sum(axis=0) / np.maximum(self.n_values, 1)


@dataclass(frozen=True)
class MomentsPass:
    """A pass that computes moments by the method of Chan, Golub and LeVeque (1979).

    Parameters
    ----------
    codes : ndarray of shape (n,), int8 or wider
        For each row, the index of its cluster.
    n_clusters : int
        Number of clusters, k.
    """

    codes: np.ndarray
    n_clusters: int

    def block(self, rows: Block, start: int, stop: int) -> Moments:
        """Return the moments of a dense or CSR block; NaN is a missing value."""
        X = as_matrix(rows)
        n = stop - start
        codes = self.codes[start:stop]
        shape = (self.n_clusters, n)
        is_member = csr_array((np.ones(n), (codes, np.arange(n))), shape=shape)
        if not issparse(X) and np.isnan(X).any():
            return self._moments_of_values(X, is_member)
        sums = to_dense(is_member @ X)
        if issparse(X):
            _, variances = mean_variance_axis(X.astype(float), axis=0)
        else:
            mean = sums.sum(axis=0, keepdims=True) / n
            variances = X.var(axis=0, dtype=float, mean=mean)
        return Moments(n, 0, sums, n * variances)

    @staticmethod
    def _moments_of_values(X: np.ndarray, is_member: csr_array) -> Moments:
        """Return the moments of a dense block with missing values."""
        is_gap = np.isnan(X)
        gaps = (is_member @ is_gap).astype(np.int64)
        sums = is_member @ np.where(is_gap, 0, X)
        n_values = np.maximum(len(X) - gaps.sum(axis=0), 1)
        mean = sums.sum(axis=0) / n_values
        deviations = np.where(is_gap, 0, X - mean)
        return Moments(len(X), gaps, sums, (deviations**2).sum(axis=0))

    def combine(self, total: Moments, other: Moments) -> Moments:
        """Combine the moments of two ranges of rows."""
        n = total.n_values
        m = other.n_values
        difference = total.column_means - other.column_means
        between = difference**2 * (n * m / np.maximum(n + m, 1))
        return Moments(
            n=total.n + other.n,
            gaps=total.gaps + other.gaps,
            sums=total.sums + other.sums,
            squares=total.squares + other.squares + between,
        )


def column_frame(samples: Samples) -> pd.DataFrame:
    """Return a table with the name, kind and category of each column of the rows.

    The name of a column without a name is its zero-based index. The two columns of a
    time of day have the categories "sin" and "cos".
    """
    columns: list[tuple[object, str, str]] = []
    if samples.encoding is not None:
        for feature in samples.encoding.features:
            name: object = feature.name
            if not samples.encoding.has_names and feature.name.isdecimal():
                name = int(feature.name)
            for category in feature.categories or (feature.angle,):
                columns.append((name, feature.kind, category))
    else:
        names = samples.feature_names or range(samples.n_features)
        columns = [(name, "number", "") for name in names]
    return pd.DataFrame(columns, columns=["column", "kind", "category"])


class Means(NamedTuple):
    """Means and effects by cluster and column, as arrays of shape (k, d).

    A mean is NaN if all values are missing.

    Attributes
    ----------
    mean : ndarray
        Mean of the rows of the cluster.
    others_mean : ndarray
        Mean of all other rows.
    effect : ndarray
        Difference of the two means in standard deviations of the column, or 0 if the
        column is constant. For dense rows, the effect is replaced by the result of
        `effects_in_sample`.
    gaps, others_gaps : ndarray
        Share of rows in which the value is missing, in the cluster and among other
        rows.
    """

    mean: np.ndarray
    others_mean: np.ndarray
    effect: np.ndarray
    gaps: np.ndarray
    others_gaps: np.ndarray


def means_of(counts: np.ndarray, moments: Moments) -> Means:
    """Return the means and effects of columns by cluster.

    ``counts`` contains the sizes of the clusters, and ``moments`` the moments of all
    rows.
    """
    shape = moments.sums.shape
    is_other = 1 - np.eye(counts.size)
    n_rows = counts[:, None]
    n_others = np.maximum(counts.sum() - n_rows, 1)
    gaps = np.zeros_like(n_rows)
    if not isinstance(moments.gaps, int):
        gaps = moments.gaps
    others_gaps = gaps.sum(axis=0) - gaps
    mean = _ratio(moments.sums, n_rows - gaps)
    others_mean = _ratio(is_other @ moments.sums, n_others - others_gaps)
    deviation = np.sqrt(moments.squares / np.maximum(moments.n_values, 1))
    effect = _in_deviations(mean - others_mean, deviation, moments.column_means)
    return Means(
        mean=mean,
        others_mean=others_mean,
        effect=effect,
        gaps=np.broadcast_to(gaps / n_rows, shape),
        others_gaps=np.broadcast_to(others_gaps / n_others, shape),
    )


def effects_in_sample(sample: Sample, n_clusters: int) -> np.ndarray:
    """Return the effect of each dense column in each cluster, with clipped values.

    An effect is the difference between the mean of a cluster and the mean of all other
    rows, in standard deviations of the column. Values are clipped to a maximum distance
    from the median: ten times the median distance of the values that differ from the
    median.

    Parameters
    ----------
    sample : Sample
        Sample of dense rows.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    ndarray of shape (k, d)
        Effects.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import Sample
    >>> from mmcnb.explanation.summary import effects_in_sample
    >>> X = np.array([[1.0], [2], [1], [5], [6], [1e9]])
    >>> codes = np.array([0, 0, 0, 1, 1, 1])
    >>> sample = Sample(X, X, np.arange(6), codes, np.ones(6))
    >>> effects_in_sample(sample, 2).round(1).tolist()
    [[-1.2], [1.2]]
    """
    m, d = sample.values.shape
    shape = (n_clusters, m)
    weights = csr_array((sample.weights, (sample.codes, np.arange(m))), shape=shape)
    blocks = []
    for start in range(0, d, BLOCK_COLUMNS):
        block = sample.values[:, start : start + BLOCK_COLUMNS]
        values = np.array(block, dtype=np.float64)
        few = values[:: max(1, m // LIMIT_ROWS)]
        limits = np.array([_limits(column) for column in few.T])
        np.clip(values, limits[:, 0], limits[:, 1], out=values)
        blocks.append(_effects(values, weights))
    return np.hstack(blocks) if blocks else np.zeros((n_clusters, 0))


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return the lower and upper limit to which the values of a column are clipped."""
    values = values[~np.isnan(values)]
    if not values.size:
        return -np.inf, np.inf
    median = float(np.median(values))
    distances = np.abs(values - median)
    distances = distances[distances > 0]
    if not distances.size:
        return -np.inf, np.inf
    reach = FAR * float(np.median(distances))
    return median - reach, median + reach


def _effects(values: np.ndarray, weights: csr_array) -> np.ndarray:
    """Return the effect of each column in each cluster.

    The effect is the difference between the means of the cluster and of other rows,
    divided by the standard deviation of the column. Row k of ``weights`` contains the
    weights of the rows of cluster k, and 0 for other rows.
    """
    is_value = ~np.isnan(values)
    n_values = weights @ is_value.astype(np.float64)
    sums = weights @ np.where(is_value, values, 0)
    all_values = np.maximum(n_values.sum(axis=0), np.finfo(float).tiny)
    column_means = sums.sum(axis=0) / all_values
    squares = np.where(is_value, values - column_means, 0) ** 2
    deviation = np.sqrt((weights @ squares).sum(axis=0) / all_values)
    mean = _ratio(sums, n_values)
    is_other = 1 - np.eye(len(sums))
    others_mean = _ratio(is_other @ sums, is_other @ n_values)
    return _in_deviations(mean - others_mean, deviation, column_means)


def _in_deviations(
    difference: np.ndarray, deviation: np.ndarray, column_means: np.ndarray
) -> np.ndarray:
    """Divide differences by standard deviations; return 0 for constant columns."""
    varies = deviation > 1e-12 * np.abs(column_means)
    effect = np.zeros_like(difference)
    np.divide(difference, deviation, effect, where=varies)
    return effect


def _ratio(sums: np.ndarray, n_values: np.ndarray) -> np.ndarray:
    """Divide sums by numbers of values; return NaN where there are no values."""
    means = np.full_like(sums, np.nan)
    np.divide(sums, n_values, means, where=n_values > 0)
    return means


def strongest_columns(means: Means, k: int) -> np.ndarray:
    """Return the indices of the 50 columns with the largest effects in cluster k.

    Effects are compared by magnitude. If there are fewer columns, all are returned.
    """
    effects = np.abs(means.effect[k]).round(9)
    return np.argsort(-effects, kind="stable")[:MOST_COLUMNS]


class Comparison(NamedTuple):
    """Weighted comparison of the values of a cluster with the values of other rows.

    Missing values are ignored. A figure is NaN if all values are missing.

    Attributes
    ----------
    auc : float, or ndarray of shape (d,)
        Probability that a row of the cluster has a larger value than another row, with
        ties counted as one half.
    median, others_median : float, or ndarray of shape (d,)
        Weighted medians of the cluster and of the other rows.
    """

    auc: float | np.ndarray
    median: float | np.ndarray
    others_median: float | np.ndarray


def compare(values: np.ndarray, inside: np.ndarray, weights: np.ndarray) -> Comparison:
    """Compare the values of one column inside and outside a cluster, ignoring NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.summary import compare
    >>> inside = np.array([False, False, True, True])
    >>> compare(np.array([1.0, 2.0, 3.0, 3.0]), inside, np.ones(4))
    Comparison(auc=1.0, median=3.0, others_median=1.5)
    """
    is_gap = np.isnan(values)
    if is_gap.any():
        values = values[~is_gap]
        inside = inside[~is_gap]
        weights = weights[~is_gap]
    distinct, codes = np.unique(values, return_inverse=True)
    # Total weight of each distinct value, inside and outside the cluster.
    w_in = np.bincount(codes, weights * inside, distinct.size)
    w_out = np.bincount(codes, weights * ~inside, distinct.size)
    w_below = w_out.cumsum() - w_out / 2
    n_larger = (w_in * w_below).sum()
    n_pairs = w_in.sum() * w_out.sum()
    auc = np.nan
    if n_pairs:
        auc = float(n_larger / n_pairs)
    return Comparison(
        auc=auc,
        median=median_of(distinct, w_in),
        others_median=median_of(distinct, w_out),
    )


def compare_columns(
    X: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> Comparison:
    """Compare each column of ``X`` inside and outside a cluster."""
    comparisons = [compare(column, inside, weights) for column in X.T]
    return Comparison(*map(np.array, zip(*comparisons, strict=True)))


def median_of(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted median of distinct values in ascending order.

    The result is NaN if all weights are 0.
    """
    if not weights.any():
        return np.nan
    sums = weights.cumsum()
    half = sums[-1] / 2
    places = [np.searchsorted(sums, half, side) for side in ("left", "right")]
    middle = values[np.minimum(places, values.size - 1)]
    return float(middle.mean())


def strength_of(columns: pd.DataFrame) -> pd.Series:
    """Return how well each column separates a cluster from other rows.

    The strength is the larger of abs(auc - 0.5) and near - 0.5, and is at most 0.5.
    """
    return np.fmax((columns["auc"] - 0.5).abs(), columns["near"] - 0.5)


def column_table(
    engine: Engine, samples: Samples, groups: Groups, means: Means, sample: Sample
) -> pd.DataFrame:
    """Return the table `Explanation.columns`."""
    if groups.known.size < 2:
        return pd.DataFrame(columns=FIGURES)
    names = column_frame(samples)
    orders = orders_of(samples, sample)

    def of_cluster(k: int) -> pd.DataFrame:
        chosen = strongest_columns(means, k)
        table = names.iloc[chosen].assign(
            cluster=groups.clusters[k],
            mean=means.mean[k, chosen],
            others_mean=means.others_mean[k, chosen],
            effect=means.effect[k, chosen],
            gaps=means.gaps[k, chosen],
            others_gaps=means.others_gaps[k, chosen],
        )
        values = to_dense(sample.values[:, chosen], np.float64)
        inside = sample.codes == k
        _add_ranks(table, values, inside, sample.weights)
        _add_levels(table, values, inside, sample.weights, orders)
        return _telling_first(table)

    tables = engine.each(of_cluster, groups.known.tolist())
    return pd.concat(tables, ignore_index=True)


def _add_ranks(
    table: pd.DataFrame, values: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> None:
    """Add AUCs, medians and spreads in the sample to the table of a cluster.

    Number columns that contain only 0 and 1 get the kind "flag".
    """
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
    is_binary = (np.isin(values, (0, 1)) | np.isnan(values)).all(axis=0)
    is_flag = (table["kind"] == "number") & is_binary
    table.loc[is_flag, "kind"] = "flag"
    has_no_spread = table["kind"].isin(("flag", "text"))
    table.loc[has_no_spread, ["near", "spread", "others_spread"]] = np.nan
    has_mode = table["spread"] == 0  # at least half of the values equal the median
    for name, of_rows in (("share", inside), ("others_share", ~inside)):
        shares = _ratio(
            (weights * of_rows) @ (distances == 0),
            (weights * of_rows) @ ~np.isnan(distances),
        )
        table[name] = np.where(has_mode, shares, np.nan)


def _add_levels(
    table: pd.DataFrame,
    values: np.ndarray,
    inside: np.ndarray,
    weights: np.ndarray,
    orders: dict[int, Order],
) -> None:
    """Add the overrepresented levels of ordered columns to the table of a cluster."""
    table["position"] = ""
    for place, column in enumerate(table.index):
        answers = ~np.isnan(values[:, place])
        are_compared = inside[answers].any() and not inside[answers].all()
        if column not in orders or not are_compared:
            continue
        levels = shares_of_levels(
            orders[column],
            values[answers, place],
            inside[answers],
            weights[answers],
        )
        added = ["order", levels.words, *levels[1:]]
        table.loc[column, ["kind", "category", "position", "share", "others_share"]] = (
            added
        )


def _telling_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the columns in the table of a cluster by `strength_of`, strongest first."""
    # The two columns of a text with two categories are equally strong. Ties are broken
    # so that the category that is frequent in the cluster comes first.
    effect = table["effect"].round(9)
    keys = (-effect, -effect.abs(), -strength_of(table).round(9))
    return table.iloc[np.lexsort(keys)][FIGURES]


def word_table(
    samples: Samples, groups: Groups, moments: Moments, sample: Sample
) -> pd.DataFrame | None:
    """Return the table `Explanation.words`.

    The result is None if rows are not sparse, have negative values, or have columns
    without names.
    """
    clusters = groups.clusters[groups.known]
    is_named = samples.is_sparse and samples.feature_names is not None
    if not clusters.size or not is_named or sample.X.min() < 0:
        return None
    counts = moments.sums[groups.known]
    is_used = counts.sum(axis=0) > 0
    names = np.array(samples.feature_names)[is_used]
    counts = counts[:, is_used]
    # Class-based TF-IDF: the share of the word among all words of the cluster, times
    # log(1 + mean number of words in a cluster / number of occurrences of the word).
    cluster_sums = counts.sum(axis=1, keepdims=True)
    share = counts / np.maximum(cluster_sums, np.finfo(float).tiny)
    mean_sum = counts.sum() / clusters.size
    scores = share * np.log1p(mean_sum / counts.sum(axis=0))
    best = {}
    for k, cluster in enumerate(clusters):
        best[cluster] = pd.Series(scores[k], names).nlargest(MOST_WORDS)
    words = pd.concat(best, names=["cluster", "word"])
    table = words[words > 0].rename("score")
    return table.reset_index()
