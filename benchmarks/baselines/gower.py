"""Medoids of Gower's distance (1971), for frames of numbers, flags, text and dates.

The medoids are those of PAM (Kaufman and Rousseeuw, 1990), computed with the swaps of
FastPAM1 (Schubert and Rousseeuw, 2019).
"""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

MOST_SWAPS = 1000  # each swap makes the sum smaller, so the loop ends


class Medoids(NamedTuple):
    """Medoids, and the clusters of the rows nearest to each.

    Parameters
    ----------
    rows : ndarray of shape (k,), int64
        The medoids.
    labels : ndarray of shape (n,), int64
        The nearest medoid of each row.
    cost : float
        Sum of the distances from each row to its medoid.
    """

    rows: np.ndarray
    labels: np.ndarray
    cost: float


class GowerMedoids:
    """Clusters around k rows of a frame with a small sum of Gower's distances.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.

    Attributes
    ----------
    labels_ : ndarray of shape (n,), int64
        Cluster of each row.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.baselines import GowerMedoids
    >>> plans = ["free", "free", "paid", "paid"]
    >>> frame = pd.DataFrame({"plan": plans, "income": [1.0, 2.0, 8.0, 9.0]})
    >>> GowerMedoids(2).fit(frame).labels_
    array([0, 0, 1, 1])
    """

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters

    def fit(self, X: Any) -> Self:
        """Label the rows; the result is deterministic."""
        self.labels_ = medoids(gower_distances(X), self.n_clusters).labels
        return self


def gower_distances(frame: pd.DataFrame) -> np.ndarray:
    """Return Gower's distance between all rows, of shape (n, n).

    The distance is a mean over the columns. A column of numbers contributes the
    absolute difference divided by the range; a flag or text contributes 1 if the values
    differ. Columns in which either row has a gap are left out of the mean, and rows
    without a common column have distance 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.baselines import gower_distances
    >>> plans = ["free", "paid", "paid"]
    >>> gower_distances(pd.DataFrame({"plan": plans, "income": [1.0, 3.0, 5.0]}))
    array([[0.  , 0.75, 1.  ],
           [0.75, 0.  , 0.25],
           [1.  , 0.25, 0.  ]])
    """
    n_rows = len(frame)
    total = np.zeros((n_rows, n_rows))
    n_common = np.zeros((n_rows, n_rows))
    for name in frame:
        column = frame[name]
        is_number = is_numeric_dtype(column) and not is_bool_dtype(column)
        if is_number or is_datetime64_any_dtype(column):
            values = column.to_numpy(np.float64, na_value=np.nan)
            if is_datetime64_any_dtype(column):
                values = np.where(column.isna(), np.nan, column.to_numpy(np.int64))
            spread = (np.nanmax(values) - np.nanmin(values)) or 1.0
            differences = np.abs(values[:, None] - values) / spread
        else:
            codes, _ = pd.factorize(column)
            differences = (codes[:, None] != codes).astype(np.float64)
        is_known = column.notna().to_numpy()
        is_common = is_known[:, None] & is_known
        total += np.where(is_common, differences, 0.0)
        n_common += is_common
    distances = np.ones((n_rows, n_rows))
    return np.divide(total, n_common, out=distances, where=n_common > 0)


def medoids(distances: np.ndarray, k: int) -> Medoids:
    """Return medoids that no single swap improves, starting from greedily added medoids.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.gower import medoids
    >>> x = np.array([0.0, 1.0, 2.0, 10.0, 11.0])
    >>> medoids(abs(x[:, None] - x), 2).rows.tolist()
    [1, 3]
    """
    rows = _added_one_by_one(distances, k)
    cost = distances[rows].min(axis=0).sum()
    for _ in range(MOST_SWAPS):
        costs = swap_costs(distances, rows)
        row, medoid = np.unravel_index(costs.argmin(), costs.shape)
        least = costs[row, medoid]
        if least >= cost - 1e-12 * len(distances):
            break
        rows[medoid] = row
        cost = least
    return Medoids(rows, distances[rows].argmin(axis=0), float(cost))


def _added_one_by_one(distances: np.ndarray, k: int) -> np.ndarray:
    """Return k medoids, each of which lowers the sum of distances the most when it is added."""
    nearest = np.full(len(distances), np.inf)
    rows: list[int] = []
    for _ in range(k):
        sums = np.minimum(distances, nearest).sum(axis=1)
        rows.append(int(sums.argmin()))
        nearest = distances[rows].min(axis=0)
    return np.array(rows)


def swap_costs(distances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the sum of distances after each swap, of shape (n, k).

    Element (i, j) is the sum if row i replaces medoid j.
    """
    nearest = distances[rows].argmin(axis=0)
    ordered = np.sort(distances[rows], axis=0)
    first = ordered[0]
    second = ordered[1] if len(rows) > 1 else np.full(len(distances), np.inf)
    # The distance to the new row, or to the nearest medoid; if that is removed, to the
    # second nearest.
    if_it_stays = np.minimum(distances, first)
    rise_if_it_goes = np.minimum(distances, second) - if_it_stays
    is_nearest = nearest[:, None] == np.arange(len(rows))
    return if_it_stays.sum(axis=1)[:, None] + rise_if_it_goes @ is_nearest
