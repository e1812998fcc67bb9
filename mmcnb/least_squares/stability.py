"""Stability: how far the predictors fitted on subsets of a sample agree on all of it.

A bandwidth and a ridge are wrong where the clusters change with the rows they were found on. The objective J,
the gap between eigenvalues and the agreement of restarts tell bandwidths and ridges apart less well.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index, contingency
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.bandwidth import DEFAULT_BANDWIDTH, mean_squared_distance
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.nystroem import choose_landmarks, principal_features
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.all_rows import constrained_scores
from mmcnb.least_squares.landmark_sample import LandmarkSample, sample_on_landmarks
from mmcnb.least_squares.local_search import DEFAULT_ALPHA, TIE, PartitionConfig
from mmcnb.least_squares.partition import partition_sample

# Measured by `python -m benchmarks selection`.
BANDWIDTHS = (0.4, 0.55, 0.75)  # sigma in units of the root mean squared pairwise distance
ALPHAS = (1e-4, 3e-4, 1e-3)  # ridge a row
SUBSETS = 5  # `python -m benchmarks selection`
SUBSET_ROWS = 1000  # at most: as many as the local search takes in a second
SUBSET_SHARE = 2 / 3  # of the sample, where that is fewer rows
SUBSET_STARTS = 4  # of the local search on a subset
CLEARLY = 0.1  # how much more stable a setting has to be to leave the default: less is noise of the subsets


@dataclass(frozen=True)
class Setting:
    """A kernel and a ridge, and how stable the clusters are with them.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    alpha : float
        Ridge a row.
    stability : float
        Mean adjusted Rand index between the predictors of the subsets.
    """

    kernel: Kernel
    alpha: float
    stability: float

    def to_dict(self) -> dict[str, float]:
        """The setting as plain numbers."""
        return {"gamma": float(self.kernel.gamma), "alpha": self.alpha, "stability": self.stability}


def draw_subsets(
    n_samples: int, n_clusters: int, n_subsets: int, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Row numbers of random subsets of a sample, each drawn anew.

    Parameters
    ----------
    n_samples : int
        Rows of the sample.
    n_clusters : int
        Clusters of each subset.
    n_subsets : int
        How many subsets.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    list of ndarray of shape (m,), int64
        Rising row numbers: two thirds of the rows, at most 1,000.

    Raises
    ------
    InputError
        If a subset has no more rows than clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.stability import draw_subsets
    >>> [len(rows) for rows in draw_subsets(9, 2, 3, np.random.RandomState(0))]
    [6, 6, 6]
    """
    size = min(SUBSET_ROWS, int(SUBSET_SHARE * n_samples))
    if size <= n_clusters:
        raise InputError(
            f"stability compares fits on subsets of {size} of the {n_samples} rows of the sample, which are "
            f"too few for n_clusters={n_clusters}; give more rows, a larger sample_size or fewer clusters."
        )
    return [np.sort(random_state.permutation(n_samples)[:size]) for _ in range(n_subsets)]


def mean_adjusted_rand_index(labelings: Sequence[np.ndarray]) -> float:
    """Mean adjusted Rand index between any two labelings of the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.stability import mean_adjusted_rand_index
    >>> mean_adjusted_rand_index([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1])])
    1.0
    """
    pairs = combinations(labelings, 2)
    return float(np.mean([adjusted_rand_index(contingency(one, other)) for one, other in pairs]))


def most_stable(stabilities: Sequence[float], bandwidths: Sequence[float], alphas: Sequence[float]) -> int:
    """Number of the most stable setting; where none is clearly so, of the one nearest to the default.

    Examples
    --------
    >>> from mmcnb.least_squares.stability import most_stable
    >>> settings = [0.4, 0.55, 0.75], [1e-3] * 3
    >>> most_stable([0.9, 0.7, 0.8], *settings), most_stable([0.9, 0.85, 0.8], *settings)
    (0, 1)
    """

    def distance(number: int) -> tuple[float, float]:
        bandwidth, ridge = bandwidths[number] / DEFAULT_BANDWIDTH, alphas[number] / DEFAULT_ALPHA
        return abs(float(np.log(bandwidth))), abs(float(np.log(ridge)))

    order = sorted(range(len(stabilities)), key=distance)
    best = max(stabilities)
    if stabilities[order[0]] >= best - CLEARLY:
        return order[0]
    return next(number for number in order if stabilities[number] >= best - TIE)


def stable_settings(
    engine: Engine,
    sample: Any,
    weights: np.ndarray | None,
    kernel: Kernel,
    config: PartitionConfig,
    n_landmarks: int,
    random_state: np.random.RandomState,
    vary_bandwidth: bool = True,
) -> tuple[list[Setting], int]:
    """Stability of the least squares clusters of a sample, over bandwidths and ridges.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts of each fit; fits follow one another, for each holds a kernel matrix.
    sample : ndarray or CSR of shape (m, d)
        The rows.
    weights : ndarray of shape (m,) or None
        Their weights.
    kernel : Kernel
        The kernel, whose bandwidth is kept or varied.
    config : PartitionConfig
        How each subset is clustered, but for its ridge and its starts.
    n_landmarks : int
        Landmarks of the predictors.
    random_state : RandomState
        Source of randomness; it is left as it is.
    vary_bandwidth : bool, default=True
        Whether bandwidths are tried, and not ridges alone.

    Returns
    -------
    settings : list of Setting
        One a bandwidth and ridge.
    chosen : int
        Number of the one to take: `most_stable`.
    """
    bandwidths: tuple[float, ...] = (DEFAULT_BANDWIDTH,)
    candidates = [kernel]
    if vary_bandwidth:
        bandwidths, distance = BANDWIDTHS, mean_squared_distance(sample, weights)
        candidates = [replace(kernel, gamma=1 / (2 * bandwidth**2 * distance)) for bandwidth in bandwidths]
    random_state = deepcopy(random_state)  # what follows goes on as if the setting had been given
    subsets = draw_subsets(sample.shape[0], config.n_clusters, SUBSETS, random_state)
    basis = choose_landmarks(sample, n_landmarks, random_state, weights, may_be_sparse=True)
    seed = int(random_state.randint(2**31 - 1))
    config = replace(config, n_init=min(config.n_init, SUBSET_STARTS))
    settings = []
    for one in candidates:
        mapped, labelings = sample_on_landmarks(sample, weights, one, basis), list[list[np.ndarray]]()
        for rows in subsets:
            K = kernel_matrix(sample[rows], one) if weights is None else None
            labelings.append(_labels_by_ridge(engine, mapped, rows, K, config, seed))
        found = zip(ALPHAS, zip(*labelings, strict=True), strict=True)
        settings += [Setting(one, alpha, mean_adjusted_rand_index(several)) for alpha, several in found]
    grid = list(product(bandwidths, ALPHAS))
    stabilities = [one.stability for one in settings]
    return settings, most_stable(
        stabilities, [bandwidth for bandwidth, _ in grid], [alpha for _, alpha in grid]
    )


def _labels_by_ridge(
    engine: Engine,
    whole: LandmarkSample,
    rows: np.ndarray,
    K: np.ndarray | None,
    config: PartitionConfig,
    seed: int,
) -> list[np.ndarray]:
    """Labels of the whole sample by the predictors of one subset, one a ridge."""
    values = whole.values[rows]
    features = principal_features(values @ whole.normalization, whole.features.weights[rows])
    subset, labelings = replace(whole, values=values, features=features), []
    for alpha in ALPHAS:
        config = replace(config, alpha=alpha)
        R = None if K is None else config.smoother(K)
        labels = partition_sample(engine, R, features, config, np.random.RandomState(seed))[0].labels
        sums, sizes = kernels.cluster_row_sums(values, labels, config.n_clusters, features.weights)
        ridge, bounds = subset.ridge_map(alpha), config.bounds_by_size(sizes)
        rule, _ = constrained_scores(subset, ridge, config, ridge.means(sums, sizes), sizes, bounds)
        labelings.append(rule.label(whole.values))
    return labelings
