"""A sample divided into k clusters by regularised least squares: shaking and ridge paths, judged by J."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, ignore, run_starts
from mmcnb.features.principal import PrincipalFeatures
from mmcnb.least_squares.local_search import random_labels, search_partition
from mmcnb.least_squares.objective import (
    Partition,
    floor_bounds,
    mean_objective,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.least_squares.regularization_path import REGULARIZATION_PATH, regularization_path

PATH_STARTS = 4
REFINED = 2
LEAST_GAIN = 0.01  # of J: what local search found is left for no less, for so little tells nothing
LEADING = 50  # principal axes that k-means sees
RIDGE_ROWS, LEAST_RIDGE = 400, 0.1  # two clusters: rows up to which the whole ridge grows; least share of it
MOST_MOVES = 20  # a row, in polishing
Refine = Callable[[Partition, Record], np.ndarray | None]


@dataclass(frozen=True)
class PartitionConfig:
    """What is asked of a division.

    Parameters
    ----------
    n_clusters : int
        k.
    alpha : float
        Ridge a row.
    search, schedule : str
        Local search and its schedule.
    n_init : int
        Starts of the local search.
    cluster_sizes : str or sequence of float
        "auto", "equal" or shares.
    size_tolerance, min_share : float
        How far held sizes may lie from their shares; the floor of free sizes, as a share of n/k.
    """

    n_clusters: int
    alpha: float
    search: Any
    schedule: Any
    n_init: int
    cluster_sizes: Any
    size_tolerance: float
    min_share: float

    @property
    def sizes_are_free(self) -> bool:
        """Whether no sizes are held: two clusters of unknown sizes."""
        return isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto" and self.n_clusters == 2

    def search_alpha(self, rows: int) -> float:
        """Ridge a row while the sample is divided.

        Of two clusters a large sample bears a smaller ridge than the model, and needs it: at the model's,
        divisions that the classes do not know, such as digits by where they stand, fit as well as theirs.
        """
        if self.n_clusters > 2 or not self.is_mixed:
            return self.alpha
        return self.alpha * min(1.0, max(LEAST_RIDGE, RIDGE_ROWS / rows))

    @property
    def is_mixed(self) -> bool:
        """Whether shaking is mixed and ridge paths are followed, not what is published."""
        return bool(self.search == "shaking" and self.schedule == "mixed")

    def bounds(self, total: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and most rows of each cluster."""
        if self.sizes_are_free:
            return self.floor(total)
        return size_bounds(total, self.shares, self.size_tolerance)

    def floor(self, total: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of free sizes: a floor."""
        return floor_bounds(total, self.n_clusters, self.min_share)

    def bounds_by_size(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of clusters that have some sizes: the largest cluster has the largest share, for the order
        of the clusters is not that of the shares.
        """
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        low, high = self.bounds(sizes.sum())
        return np.sort(low)[rank], np.sort(high)[rank]

    @property
    def shares(self) -> np.ndarray:
        """Wanted shares, rising, for clusters have no order: shaking lets the small ones claim rows first."""
        return np.sort(target_shares(self.cluster_sizes, self.n_clusters))


def partition_sample(
    engine: Engine,
    K: np.ndarray | None,
    features: PrincipalFeatures,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    refine: Refine | None = None,
    record: Record = ignore,
) -> list[Partition]:
    """Divide a sample; the best division comes first.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    K : ndarray of shape (m, m) or None
        Kernel matrix of the sample; None leaves the ridge paths alone, as the local search knows no weights.
    features : PrincipalFeatures
        The sample in landmark features, with its weights.
    wanted : Division
        What is asked.
    random_state : RandomState
        Source of randomness.
    refine : callable or None, default=None
        Makes other labels of a division, or None. It is tried on the best two, and what it makes counts
        where J rises, by more than 0.01 for what local search found.
    record : callable, default=ignore
        Takes the sweeps of ``refine``.

    Returns
    -------
    list of Partition
        By J in the kernel matrix, or in landmark features without one. Ridge paths are numbered after the
        starts of the local search.
    """
    m, k = features.z.shape[0], config.n_clusters
    bounds = config.bounds(features.total)
    flips = [random_labels(m, config.shares, random_state) for _ in range(PATH_STARTS)]
    alpha = config.search_alpha(m)
    path = (*(ridge for ridge in REGULARIZATION_PATH if ridge > alpha), alpha)
    R = None if K is None else smoother(K, alpha * m)

    def follow(labels: np.ndarray) -> np.ndarray:
        return polished(regularization_path(features, labels, k, bounds, path).labels)

    def polished(labels: np.ndarray) -> np.ndarray:
        if R is None:
            return labels
        return kernels.refine(
            R, labels, *config.bounds_by_size(np.bincount(labels, minlength=k)), MOST_MOVES * m
        )[0]

    def judge(labels: np.ndarray, start: int) -> Partition:
        J = features.objective(labels, k, alpha) if R is None else mean_objective(R, labels, k)
        return Partition(labels, J, start)

    ends = engine.each(follow, flips) if config.is_mixed or R is None else []
    paths = [judge(end, config.n_init + number) for number, end in enumerate(ends)]
    shaken = [] if R is None else _shaken(engine, R, features, config, random_state)
    found = [*shaken, *paths]
    if refine is not None:
        chosen = sorted(_ranked(found)[:REFINED], key=lambda one: one.start)
        for one, labels in zip(chosen, run_starts(engine, refine, chosen, record), strict=True):
            refined = one if labels is None else judge(polished(labels), one.start)
            gain = 0.0 if one.start >= config.n_init else LEAST_GAIN
            found += [refined] if refined.objective > one.objective + gain else []
    return _ranked(found)


def _ranked(found: list[Partition]) -> list[Partition]:
    """The largest J first; of equal ones the earlier."""
    return sorted(found, key=lambda one: -one.objective)


def _shaken(
    engine: Engine,
    R: np.ndarray,
    features: PrincipalFeatures,
    config: PartitionConfig,
    random_state: np.random.RandomState,
) -> list[Partition]:
    """What local search finds, the best first."""
    return search_partition(
        R,
        config.n_clusters,
        search=config.search,
        schedule=config.schedule,
        cluster_sizes="auto" if config.sizes_are_free else config.shares,
        size_tolerance=config.size_tolerance,
        min_share=config.min_share,
        n_init=config.n_init,
        random_state=random_state,
        points=features.z[:, :LEADING],
        each=engine.each,
    )
