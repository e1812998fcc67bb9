"""A sample divided into k clusters by regularised least squares: shaking and ridge paths, judged by J."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine import Engine, Kernel, KernelSamples
from mmcnb.samples import open_samples
from mmcnb.solvers import (
    Partition,
    PrincipalFeatures,
    RidgeMap,
    Scores,
    floor_bounds,
    mean_objective,
    metric_of,
    random_labels,
    ridge_path,
    search_partition,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.solvers.rls_path import RIDGE_PATH

PATH_STARTS = 4
REFINED = 2
LEAST_GAIN = 0.01  # of J: what local search found is left for no less, for so little tells nothing
SMALLEST_EIGENVALUE = 1e-7  # of the landmarks' kernel matrix, as a share of the largest
LEADING = 50  # principal axes that k-means sees
RIDGE_ROWS, LEAST_RIDGE = 400, 0.1  # two clusters: rows up to which the whole ridge grows; least share of it
MOST_MOVES = 20  # a row, in polishing
Refine = Callable[[Partition], np.ndarray | None]


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


def landmark_values(sample: Any, kernel: Kernel, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values of rows against landmarks, and M with MM' the inverse of those between landmarks."""
    rows = KernelSamples(open_samples(sample), kernel.against(basis))
    values = rows.block(0, rows.n_samples).astype(np.float64)
    basis = basis.astype(np.float64)
    return values, metric_of(kernel(basis, basis), SMALLEST_EIGENVALUE)


def held_scores(
    mapped: RidgeMap,
    means: np.ndarray,
    sizes: np.ndarray,
    wanted: Division,
    bounds: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    weights: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[Scores, np.ndarray]:
    """Scores of clusters, less the multipliers that keep the sizes of a sample within their bounds.

    Parameters
    ----------
    mapped : RidgeMap
        Coordinates in which the ridge is the identity.
    means, sizes : ndarray of shape (k, r) and (k,)
        Means of the clusters in these coordinates, and their rows.
    wanted : Division
        Whether sizes are free.
    bounds : pair of ndarray of shape (k,)
        Least and most rows of the sample in each cluster.
    values : ndarray of shape (m, p)
        Landmark features of the sample.
    weights : ndarray of shape (m,)
        Its weights.
    start : ndarray of shape (k,) or None, default=None
        Multipliers to start from.

    Returns
    -------
    Scores
        Labels any row.
    multipliers : ndarray of shape (k,)
        What was taken off.
    """
    # Sums in place of means need sizes that are equal: of others the larger would win the rows between.
    by_sum = not wanted.sizes_are_free and np.ptp(bounds[0]) == 0
    rule = mapped.scores(means, sizes / sizes.sum() if by_sum else None)
    start = np.zeros(wanted.n_clusters) if start is None else start
    multipliers = kernels.size_multipliers(rule.decide(values), *bounds, weights, start)
    return rule.shifted(multipliers), multipliers


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
    refine: Refine | None = None,
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

    Returns
    -------
    list of Partition
        By J in the kernel matrix, or in landmark features without one. Ridge paths are numbered after the
        starts of the local search.
    """
    m, k = features.z.shape[0], wanted.n_clusters
    bounds = wanted.bounds(features.total)
    flips = [random_labels(m, wanted.shares, random_state) for _ in range(PATH_STARTS)]
    alpha = wanted.search_alpha(m)
    path = (*(ridge for ridge in RIDGE_PATH if ridge > alpha), alpha)
    R = None if K is None else smoother(K, alpha * m)

    def follow(labels: np.ndarray) -> np.ndarray:
        return polished(ridge_path(features, labels, k, bounds, path).labels)

    def polished(labels: np.ndarray) -> np.ndarray:
        if R is None:
            return labels
        return kernels.polish(
            R, labels, *wanted.bounds_by_size(np.bincount(labels, minlength=k)), MOST_MOVES * m
        )[0]

    def judge(labels: np.ndarray, start: int) -> Partition:
        J = features.objective(labels, k, alpha) if R is None else mean_objective(R, labels, k)
        return Partition(labels, J, start)

    ends = engine.each(follow, flips) if wanted.is_mixed or R is None else []
    paths = [judge(end, wanted.n_init + number) for number, end in enumerate(ends)]
    shaken = [] if R is None else _shaken(engine, R, features, wanted, random_state)
    found = [*shaken, *paths]
    if refine is not None:
        chosen = _ranked(found)[:REFINED]
        for one, labels in zip(chosen, engine.each(refine, chosen), strict=True):
            refined = one if labels is None else judge(polished(labels), one.start)
            gain = 0.0 if one.start >= wanted.n_init else LEAST_GAIN
            found += [refined] if refined.objective > one.objective + gain else []
    return _ranked(found)


def _ranked(found: list[Partition]) -> list[Partition]:
    """The largest J first; of equal ones the earlier."""
    return sorted(found, key=lambda one: -one.objective)


def _shaken(
    engine: Engine,
    R: np.ndarray,
    features: PrincipalFeatures,
    wanted: Division,
    random_state: np.random.RandomState,
) -> list[Partition]:
    """What local search finds, the best first."""
    return search_partition(
        R,
        wanted.n_clusters,
        search=wanted.search,
        schedule=wanted.schedule,
        cluster_sizes="auto" if wanted.sizes_are_free else wanted.shares,
        size_tolerance=wanted.size_tolerance,
        min_share=wanted.min_share,
        n_init=wanted.n_init,
        random_state=random_state,
        points=features.z[:, :LEADING],
        each=engine.each,
    )
