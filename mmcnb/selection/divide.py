"""A sample divided into k clusters by regularised least squares: shaking and ridge paths, judged by J."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine import Engine, Kernel
from mmcnb.solvers import (
    Partition,
    PrincipalFeatures,
    floor_bounds,
    mean_objective,
    random_labels,
    ridge_path,
    search_partition,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.solvers.rls_path import RIDGE_PATH

PATH_STARTS = 4
LEADING = 50  # principal axes that k-means sees


@dataclass(frozen=True)
class Division:
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

    def bounds(self, total: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and most rows of each cluster."""
        if self.sizes_are_free:
            return floor_bounds(total, self.n_clusters, self.min_share)
        return size_bounds(total, self.shares, self.size_tolerance)

    @property
    def shares(self) -> np.ndarray:
        """Wanted shares."""
        return target_shares(self.cluster_sizes, self.n_clusters)


def kernel_matrix(sample: Any, kernel: Kernel) -> np.ndarray:
    """Kernel values between all rows of a dense or CSR sample, float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    parameters: dict[str, Any] = {} if kernel.name == "linear" else {"gamma": kernel.gamma}
    if kernel.name == "poly":
        parameters |= {"degree": kernel.degree, "coef0": kernel.coef0}
    return pairwise_kernels(sample.astype(np.float64), metric=kernel.name, **parameters)


def divide(
    engine: Engine,
    K: np.ndarray | None,
    features: PrincipalFeatures,
    wanted: Division,
    random_state: np.random.RandomState,
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

    Returns
    -------
    list of Partition
        By J in the kernel matrix, or in landmark features without one.
    """
    m, k = features.z.shape[0], wanted.n_clusters
    bounds = wanted.bounds(features.total)
    flips = [random_labels(m, wanted.shares, random_state) for _ in range(PATH_STARTS)]
    path = (*(ridge for ridge in RIDGE_PATH if ridge > wanted.alpha), wanted.alpha)

    def follow(labels: np.ndarray) -> Partition:
        return ridge_path(features, labels, k, bounds, path)

    paths = engine.each(follow, flips) if wanted.search == "shaking" and wanted.schedule == "mixed" else []
    if K is None:
        paths = paths or engine.each(follow, flips)
        return sorted(paths, key=lambda one: -one.objective)
    R = smoother(K, wanted.alpha * m)
    found = search_partition(
        R,
        k,
        search=wanted.search,
        schedule=wanted.schedule,
        cluster_sizes=wanted.cluster_sizes,
        size_tolerance=wanted.size_tolerance,
        min_share=wanted.min_share,
        n_init=wanted.n_init,
        random_state=random_state,
        points=features.z[:, :LEADING],
        each=engine.each,
    )
    found += [
        Partition(one.labels, mean_objective(R, one.labels, k), wanted.n_init + number)
        for number, one in enumerate(paths)
    ]
    return sorted(found, key=lambda one: -one.objective)
