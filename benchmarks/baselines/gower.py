"""Medoids of Gower's distance (1971), for frames of numbers, flags, text and dates.

They are those of PAM (Kaufman and Rousseeuw, 1990), by the swaps of FastPAM1 (Schubert
and Rousseeuw, 2019).
"""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

MOST_SWAPS = 1000  # each makes the sum smaller, so it ends by itself


class Medoids(NamedTuple):
    """Rows that stand for clusters.

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
    """The rows of a frame around k of them, so that the sum of Gower's distances to these is small.

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
    >>> frame = pd.DataFrame({"plan": ["free", "free", "paid", "paid"], "income": [1.0, 2.0, 8.0, 9.0]})
    >>> GowerMedoids(2).fit(frame).labels_
    array([0, 0, 1, 1])
    """

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters

    def fit(self, X: Any) -> Self:
        """Label the rows; it draws nothing."""
        self.labels_ = medoids(gower_distances(X), self.n_clusters).labels
        return self


def gower_distances(frame: pd.DataFrame) -> np.ndarray:
    """Mean over the columns of the difference in units of the range, or of whether two values differ.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.baselines import gower_distances
    >>> gower_distances(pd.DataFrame({"plan": ["free", "paid", "paid"], "income": [1.0, 3.0, 5.0]}))
    array([[0.  , 0.75, 1.  ],
           [0.75, 0.  , 0.25],
           [1.  , 0.25, 0.  ]])
    """
    total = np.zeros((len(frame), len(frame)))
    for name in frame:
        column = frame[name]
        if is_bool_dtype(column) or not (
            is_numeric_dtype(column) or is_datetime64_any_dtype(column)
        ):
            values = pd.factorize(column)[0]
            total += values[:, None] != values
        else:
            values = column.to_numpy(np.float64)
            total += np.abs(values[:, None] - values) / (np.ptp(values) or 1.0)
    return total / frame.shape[1]


def medoids(distances: np.ndarray, k: int) -> Medoids:
    """Medoids that no single swap betters, from those that were added one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.gower import medoids
    >>> x = np.array([0.0, 1.0, 2.0, 10.0, 11.0])
    >>> medoids(abs(x[:, None] - x), 2).rows.tolist()
    [1, 3]
    """
    rows = [int(distances.sum(axis=1).argmin())]
    while len(rows) < k:
        nearest = distances[rows].min(axis=0)
        rows.append(int(np.minimum(distances, nearest).sum(axis=1).argmin()))
    chosen = np.array(rows)
    cost = distances[chosen].min(axis=0).sum()
    for _ in range(MOST_SWAPS):
        costs = swap_costs(distances, chosen)
        row, place = np.unravel_index(costs.argmin(), costs.shape)
        if costs[row, place] >= cost - 1e-12 * len(distances):
            break
        chosen[place], cost = row, costs[row, place]
    return Medoids(chosen, distances[chosen].argmin(axis=0), float(cost))


def swap_costs(distances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The sum of distances after each swap: of shape (n, k), row i in place of medoid j."""
    near = distances[rows].argmin(axis=0)
    ordered = np.sort(distances[rows], axis=0)
    first = ordered[0]
    second = ordered[1] if len(rows) > 1 else np.full(len(distances), np.inf)
    kept = np.minimum(
        distances, first
    )  # to the new row, or to the old medoid if that stays
    lost = np.minimum(distances, second) - kept
    mine = near[:, None] == np.arange(len(rows))
    return kept.sum(axis=1)[:, None] + lost @ mine
