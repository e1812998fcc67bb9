"""Choose the columns that the sentence about a cluster names."""

from itertools import combinations

import numpy as np
import pandas as pd

from mmcnb.explanation.summary import LEAST_STRENGTH, strength_of

LEAST_GAPS = 0.2  # minimum difference between shares of missing values
# Minimum distance between the medians of two clusters, divided by the sum of this
# distance and the two spreads; for shares, their minimum difference.
LEAST_DISTANCE = 0.5
MOST_ADDED = 2  # maximum number of columns added to the sentence of a cluster


def strong_columns(
    columns: pd.DataFrame, most: int = 3, least: float = LEAST_STRENGTH
) -> pd.DataFrame:
    """Return the rows of the columns that distinguish a cluster from other rows.

    The result is empty if no column has a strength of at least ``least``. A column must
    also be at least half as strong as the strongest column: a column that is high in
    only one cluster is slightly low in all other clusters, and does not characterise
    them. For a text column, a frequent category is preferred to a rare one.

    Parameters
    ----------
    columns : DataFrame
        Rows of `column_table` for one cluster.
    most : int, default=3
        Maximum number of columns.
    least : float, default=0.15
        Minimum strength of a column, as returned by `strength_of`.

    Returns
    -------
    DataFrame
        One row per column.
    """
    strength = strength_of(columns)
    strong = columns[strength >= max(least, strength.max() / 2)]
    often_first = np.argsort(strong["auc"] < 0.5, kind="stable")
    by_column = strong.iloc[often_first].drop_duplicates("column").set_index("column")
    return by_column.loc[strong["column"].unique()[:most]].reset_index()


def columns_with_gaps(
    columns: pd.DataFrame, most: int = 3, least: float = LEAST_GAPS
) -> pd.DataFrame:
    """Return the rows of the columns in which the share of missing values differs.

    Up to ``most`` columns are returned, in which the shares in the cluster and in other
    rows differ by at least ``least``.
    """
    difference = (columns["gaps"] - columns["others_gaps"]).abs().round(9)
    order = np.argsort(-difference, kind="stable")
    named = columns.iloc[order][difference.iloc[order] >= least]
    return named.drop_duplicates("column")[:most]


def added_columns(columns: pd.DataFrame) -> dict[object, list[pd.DataFrame]]:
    """Return columns that distinguish clusters whose sentences name the same columns.

    If two clusters are alike in all columns that their sentences name, the column in
    which they differ most is added to both sentences.

    Parameters
    ----------
    columns : DataFrame
        Result of `column_table`.

    Returns
    -------
    dict of {object: list of DataFrame}
        For each cluster that needs additional columns, one row of ``columns`` per
        column.
    """
    tables: dict[object, pd.DataFrame] = dict(
        iter(columns.groupby("cluster", sort=False))
    )
    alike: dict[tuple[frozenset[object], frozenset[object]], list[object]] = {}
    for cluster, table in tables.items():
        named = frozenset(strong_columns(table)["column"])
        lacking = frozenset(columns_with_gaps(table)["column"])
        alike.setdefault((named, lacking), []).append(cluster)
    added: dict[object, list[pd.DataFrame]] = {}
    for (named, _), clusters in alike.items():
        if len(clusters) > 1:
            for cluster, names in _added_names(tables, clusters, named).items():
                table = tables[cluster]
                added[cluster] = [
                    strong_columns(table[table["column"] == name], least=0)
                    for name in names
                ]
    return added


def _added_names(
    tables: dict[object, pd.DataFrame],
    clusters: list[object],
    named: frozenset[object],
) -> dict[object, list[object]]:
    """Return the names of columns to add to the sentence of each cluster."""
    by_cluster = [_figures(tables[cluster]) for cluster in clusters]
    items = list(dict.fromkeys(item for figures in by_cluster for item in figures))
    absent = (np.nan, np.nan, np.nan)
    figures = np.array(
        [[figures.get(item, absent) for item in items] for figures in by_cluster]
    )
    names = [name for name, _ in items]
    is_named = np.tile([name in named for name in names], (len(clusters), 1))
    added: dict[object, list[object]] = {cluster: [] for cluster in clusters}
    for pair in combinations(range(len(clusters)), 2):
        first, second = pair
        distances = _distances(figures[first], figures[second])
        is_in_both = is_named[first] & is_named[second]
        best = int(np.argmax(distances))
        is_enough = distances[is_in_both].max(initial=0.0) >= LEAST_DISTANCE
        if is_enough or distances[best] < LEAST_DISTANCE:
            continue
        of_name = [name == names[best] for name in names]
        for place in pair:
            columns = added[clusters[place]]
            if not is_named[place, best] and len(columns) < MOST_ADDED:
                columns.append(names[best])
                is_named[place, of_name] = True
    return {cluster: columns for cluster, columns in added.items() if columns}


def _figures(
    columns: pd.DataFrame,
) -> dict[tuple[object, str], tuple[float, float, float]]:
    """Return the median, spread and mean of each column and category of a cluster."""
    # The category of an ordered column contains the levels of one cluster.
    is_order = columns["kind"] == "order"
    categories = columns["category"].where(~is_order, "")
    items = zip(columns["column"], categories, strict=True)
    figures = zip(columns["median"], columns["spread"], columns["mean"], strict=True)
    return dict(zip(items, figures, strict=True))


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the distances of two clusters in each column, between 0 and 1.

    A distance of numbers is the distance of the two medians, divided by the sum of this
    distance and the two spreads. A distance of shares is their difference. It is 0 for
    a column without values in one of the clusters.
    """
    median, spread, mean = first.T
    other_median, other_spread, other_mean = second.T
    of_medians = np.abs(median - other_median)
    reach = np.maximum(of_medians + spread + other_spread, np.finfo(float).tiny)
    is_share = np.isnan(spread) | np.isnan(other_spread)
    of_shares = np.abs(mean - other_mean)
    return np.nan_to_num(np.where(is_share, of_shares, of_medians / reach))
