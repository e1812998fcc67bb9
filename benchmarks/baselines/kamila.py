"""KAMILA (Foss, Markatou, Ray and Heching, 2016) for tables of numbers and categories.

A row belongs to the cluster with the largest sum of a log density of its distance to
the mean, which a kernel estimates from the distances of all rows to their nearest mean,
and of the log probabilities of its categories.
"""

from typing import NamedTuple, Self

import numpy as np

STARTS = 10
STEPS = 25
GRID = 512  # number of points of the estimated density of distances
FLAT_SHARE = 0.05  # quantile of the distances below which the density is constant
SMOOTHING = 0.025  # of category probabilities, as in the authors' package
LEAST_LOG = -700.0


class _Clusters(NamedTuple):
    means: np.ndarray  # shape (k, number of numeric columns)
    log_shares: list[np.ndarray]  # for each column, shape (k, number of categories)


class Kamila:
    """KAMILA's k clusters of rows of numbers and categories, from the best of ten starts.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    random_state : int
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n,), int64
        Cluster of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines import Kamila
    >>> codes = np.array([[0], [0], [0], [1], [1], [1]])
    >>> numbers = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> labels = Kamila(2, random_state=0).fit(numbers, codes).labels_
    >>> (labels == labels[0]).tolist()
    [True, True, True, False, False, False]
    """

    def __init__(self, n_clusters: int, random_state: int) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, numbers: np.ndarray, codes: np.ndarray) -> Self:
        """Label rows of standardised numbers and of categories that are numbered from 0, without gaps."""
        draw = np.random.RandomState(self.random_state)
        best = -np.inf
        for _ in range(STARTS):
            labels, objective = self._run(numbers, codes, draw)
            if objective > best:
                best = objective
                self.labels_ = labels
        return self

    def _run(
        self, numbers: np.ndarray, codes: np.ndarray, draw: np.random.RandomState
    ) -> tuple[np.ndarray, float]:
        """Return the labels from one start, and their objective."""
        k = self.n_clusters
        rows = draw.choice(len(codes), k, replace=False)
        n_categories = codes.max(axis=0, initial=0) + 1
        log_shares = [
            np.log(draw.dirichlet(np.ones(size), k) + 1e-12) for size in n_categories
        ]
        clusters = _Clusters(numbers[rows], log_shares)
        labels = np.full(len(codes), -1)
        objective = -np.inf
        for _ in range(STEPS):
            heights = _heights(numbers, codes, clusters)
            new_labels = heights.argmax(axis=1)
            objective = float(heights.max(axis=1).sum())
            if np.array_equal(new_labels, labels):
                break
            labels = new_labels
            clusters = _updated(numbers, codes, labels, clusters)
        return labels, objective


def _heights(numbers: np.ndarray, codes: np.ndarray, clusters: _Clusters) -> np.ndarray:
    """Return H for each row and cluster, of shape (n, k)."""
    heights = np.zeros((len(codes), len(clusters.means)))
    if numbers.shape[1]:
        offsets = numbers[:, None, :] - clusters.means
        distances = np.sqrt(np.square(offsets).sum(axis=2))
        heights += _log_density(distances, numbers.shape[1])
    for column, log_shares in zip(codes.T, clusters.log_shares, strict=True):
        heights += log_shares.T[column]
    return heights


def _log_density(distances: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the log density of rows at given distances from a mean, up to a constant.

    f(r) = f_R(r) / r^(p - 1), where f_R is the density of the distances of all rows to
    their nearest mean. f has a pole at 0, so it is constant below a small quantile.
    """
    nearest = distances.min(axis=1)
    quartiles = np.quantile(nearest, [0.25, 0.75])
    spread = min(nearest.std(), np.ptp(quartiles) / 1.34) or nearest.std() or 1.0
    width = 0.9 * spread * nearest.size**-0.2
    least = max(np.quantile(nearest, FLAT_SHARE), 1e-9)
    grid = np.linspace(least, max(distances.max(), 2 * least), GRID)
    scaled = (grid[:, None] - nearest) / width
    density = np.exp(-0.5 * np.square(scaled)).mean(axis=1) / width
    with np.errstate(divide="ignore"):
        logs = np.log(density) - (n_columns - 1) * np.log(grid)
    # Far from all rows, the estimate is 0, and the density must still decrease with the
    # distance.
    logs = np.minimum.accumulate(np.maximum(logs, LEAST_LOG - grid / width))
    return np.interp(distances, grid, logs)


def _updated(
    numbers: np.ndarray, codes: np.ndarray, labels: np.ndarray, clusters: _Clusters
) -> _Clusters:
    """Return means and smoothed category probabilities; an empty cluster keeps its values."""
    means = clusters.means.copy()
    all_log_shares = [log_shares.copy() for log_shares in clusters.log_shares]
    for cluster in range(len(means)):
        is_in = labels == cluster
        if not is_in.any():
            continue
        means[cluster] = numbers[is_in].mean(axis=0)
        for column, log_shares in zip(codes[is_in].T, all_log_shares, strict=True):
            size = log_shares.shape[1]
            shares = np.bincount(column, minlength=size) / is_in.sum()
            shares = (1 - SMOOTHING) * shares + SMOOTHING / size
            log_shares[cluster] = np.log(shares)
    return _Clusters(means, all_log_shares)
