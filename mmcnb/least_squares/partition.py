"""A sample clustered by regularised least squares: local search and regularisation paths, compared by J."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, ignore, run_starts
from mmcnb.features.principal import PrincipalFeatures
from mmcnb.least_squares.local_search import MOST_MOVES, random_labels, search_partition
from mmcnb.least_squares.objective import (
    Partition,
    floor_bounds,
    mean_objective,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.least_squares.regularization_path import REGULARIZATION_PATH, regularization_path

# All by `python -m benchmarks rls`, section "defaults".
PATH_STARTS = 4
REFINED = 2
LEAST_GAIN = 0.01  # of J: what local search found is given up for no smaller gain
LEADING = 50  # principal axes that k-means sees
RIDGE_ROWS, LEAST_RIDGE = 400, 0.1  # two clusters: rows up to which the ridge is the model's; its least share
Refine = Callable[[Partition, Record], np.ndarray | None]


@dataclass(frozen=True)
class PartitionConfig:
    """How a sample is clustered.

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
        "auto", "equal" or proportions.
    size_tolerance, min_share : float
        How far constrained sizes may lie from their proportions; the minimum size of other clusters, as a
        fraction of n/k.
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
        """Whether there is a minimum size only: two clusters of unknown sizes."""
        return isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto" and self.n_clusters == 2

    def search_alpha(self, rows: int) -> float:
        """Ridge a row while the sample is clustered.

        With two clusters a large sample needs a smaller ridge than the model. At the model's, partitions that
        have nothing to do with the classes fit as well as theirs: for example digits by their position.
        """
        if self.n_clusters > 2 or not self.is_mixed:
            return self.alpha
        return self.alpha * min(1.0, max(LEAST_RIDGE, RIDGE_ROWS / rows))

    @property
    def is_mixed(self) -> bool:
        """Whether schedules are mixed and regularisation paths followed, instead of what is published."""
        return bool(self.search == "shaking" and self.schedule == "mixed")

    def bounds(self, total: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and most rows of each cluster."""
        if self.sizes_are_free:
            return self.floor(total)
        return size_bounds(total, self.shares, self.size_tolerance)

    def floor(self, total: float) -> tuple[np.ndarray, np.ndarray]:
        """Size constraints with a minimum only."""
        return floor_bounds(total, self.n_clusters, self.min_share)

    def bounds_by_size(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and most rows of clusters of some sizes: the largest cluster has the largest proportion."""
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        low, high = self.bounds(sizes.sum())
        return np.sort(low)[rank], np.sort(high)[rank]

    @property
    def shares(self) -> np.ndarray:
        """Target proportions, rising: in local search small clusters claim rows first."""
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
    """Cluster a sample; the best partition comes first.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    K : ndarray of shape (m, m) or None
        Kernel matrix of the sample; None follows regularisation paths alone, as the local search knows no
        weights.
    features : PrincipalFeatures
        The sample in landmark features, with its weights.
    config : PartitionConfig
        Number of clusters, ridge, search and sizes.
    random_state : RandomState
        Source of randomness.
    refine : callable or None, default=None
        ``refine(partition, record)`` gives other labels, or None. It is tried on the best two partitions.
        Its labels count where J rises, by more than 0.01 for what local search found.
    record : callable, default=ignore
        Takes what ``refine`` records.

    Returns
    -------
    list of Partition
        By J in the kernel matrix, or in landmark features without one. Paths are numbered after the starts of
        the local search.
    """
    m, k, first_path = features.z.shape[0], config.n_clusters, config.n_init
    bounds, alpha = config.bounds(features.total), config.search_alpha(m)
    flips = [random_labels(m, config.shares, random_state) for _ in range(PATH_STARTS)]
    path = (*(ridge for ridge in REGULARIZATION_PATH if ridge > alpha), alpha)
    R = None if K is None else smoother(K, alpha * m)

    def scored(labels: np.ndarray, start: int) -> Partition:
        """A partition at the end of steepest descent, where there is a matrix to descend on."""
        if R is None:
            return Partition(labels, features.objective(labels, k, alpha), start)
        sizes = config.bounds_by_size(np.bincount(labels, minlength=k))
        labels = kernels.refine(R, labels, *sizes, MOST_MOVES * m)[0]
        return Partition(labels, mean_objective(R, labels, k), start)

    def follow(start: int, record: Record) -> Partition:
        labels = regularization_path(features, flips[start - first_path], k, bounds, path).labels
        return scored(labels, start)

    follows_paths = config.is_mixed or R is None
    paths = [*range(first_path, first_path + PATH_STARTS)] if follows_paths else []
    found = run_starts(engine, follow, paths)
    if R is not None:
        found = _local_search(engine, R, features.z[:, :LEADING], config, random_state) + found
    if refine is not None:
        chosen = sorted(sorted(found, key=_rank)[:REFINED], key=lambda one: one.start)
        for one, labels in zip(chosen, run_starts(engine, refine, chosen, record), strict=True):
            refined = one if labels is None else scored(labels, one.start)
            gain = 0.0 if one.start >= first_path else LEAST_GAIN
            found += [refined] if refined.objective > one.objective + gain else []
    return sorted(found, key=_rank)


def _rank(partition: Partition) -> float:
    """The largest J comes first; of equal ones the earlier."""
    return -partition.objective


def _local_search(
    engine: Engine, R: np.ndarray, points: np.ndarray, config: PartitionConfig, random_state: Any
) -> list[Partition]:
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
        points=points,
        engine=engine,
    )
