"""Restarts of steepest descent with shaking, on a sample in memory."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from mmcnb import kernels
from mmcnb.errors import InputError
from mmcnb.least_squares.objective import (
    ClusterSizes,
    Partition,
    floor_bounds,
    mean_objective,
    size_bounds,
    target_shares,
)

SearchName = Literal["shaking", "steepest", "stochastic"]
Schedule = Literal["mixed", "paper"]
PAPER_SCHEDULE = (1.0, 0.5, 21)  # amplitude, decay, rounds: Pahikkala et al., eq. (11) with s = 20
MIXED_SCHEDULES = tuple(
    (amplitude, *rest) for amplitude in (1.0, 0.5, 0.25) for rest in ((0.5, 21), (0.8, 41))
)
SCANNED_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the larger of two clusters
SCANNING_STARTS = 2  # starts that try every share; each costs as much as five
MOST_MOVES = 20  # a row, in polishing and in steepest descent
MOST_SWEEPS = 1000
TIE = 1e-6


def random_labels(n_samples: int, shares: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Random labels of the given shares, no cluster empty.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.local_search import random_labels
    >>> sorted(random_labels(4, np.array([0.75, 0.25]), np.random.RandomState(0)).tolist())
    [0, 0, 0, 1]
    """
    clusters = np.arange(shares.shape[0])
    edges = np.maximum.accumulate(np.rint(np.cumsum(shares) * n_samples) - clusters - 1)
    rest = np.searchsorted(edges[:-1], np.arange(n_samples - clusters.shape[0]), side="right")
    return random_state.permutation(np.concatenate([clusters, rest]))


def partition_starts(
    n_init: int,
    n_samples: int,
    shares: np.ndarray,
    random_state: np.random.RandomState,
    points: Any = None,
) -> Iterator[np.ndarray]:
    """Starting labels: k-means of the points (where given) and random ones by turns.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.local_search import partition_starts
    >>> len(list(partition_starts(3, 5, np.full(2, 0.5), np.random.RandomState(0), np.arange(5.0)[:, None])))
    3
    """
    for number in range(n_init):
        seed = random_state.randint(2**31 - 1)
        if points is not None and number % 2 == 0:
            from sklearn.cluster import KMeans
            from sklearn.exceptions import ConvergenceWarning
            from threadpoolctl import threadpool_limits

            # Few rows: more threads would wait for one another longer than they work.
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
                fitted = KMeans(shares.shape[0], n_init=1, random_state=seed).fit(points)
            yield fitted.labels_.astype(np.int64)
        else:
            yield random_labels(n_samples, shares, np.random.RandomState(seed))


def schedule_of(schedule: Schedule, number: int) -> tuple[float, float, int]:
    """Amplitude, decay and rounds of a restart; twelve in a row, of both kinds of rls_starts, differ.

    Examples
    --------
    >>> from mmcnb.least_squares.local_search import schedule_of
    >>> schedule_of("paper", 7), schedule_of("mixed", 1)
    ((1.0, 0.5, 21), (0.5, 0.5, 21))
    """
    if schedule == "paper":
        return PAPER_SCHEDULE
    if schedule != "mixed":
        raise InputError(f'schedule is "mixed" or "paper", not {schedule!r}.')
    return MIXED_SCHEDULES[2 * (number % 3) + number // 2 % 2]


def best_partition(partitions: Iterable[Partition]) -> Partition:
    """The division of largest J; the earlier one where they are equal but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import Partition
    >>> from mmcnb.least_squares.local_search import best_partition
    >>> best_partition(Partition(np.zeros(2), objective) for objective in (1.0, 2.0, 2.0 + 1e-9)).objective
    2.0
    """
    return max(partitions, key=lambda partition: round(partition.objective / TIE))


def canonical_labels(labels: np.ndarray) -> np.ndarray:
    """Clusters numbered by the first row that falls in each.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.local_search import canonical_labels
    >>> canonical_labels(np.array([2, 2, 0, 1])).tolist()
    [0, 0, 1, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def search_partition(
    R: np.ndarray,
    n_clusters: int,
    *,
    search: SearchName = "shaking",
    schedule: Schedule = "mixed",
    cluster_sizes: ClusterSizes = "auto",
    size_tolerance: float = 0.1,
    min_share: float = 0.5,
    n_init: int = 8,
    random_state: np.random.RandomState,
    points: Any = None,
    each: Callable[[Callable[[Any], Partition], list[Any]], Iterable[Partition]] = map,
) -> list[Partition]:
    """Divide the rows of a sample by local search from several starts.

    Parameters
    ----------
    R : ndarray of shape (m, m), float64
        Smoother of the centred kernel, symmetric and C-ordered.
    n_clusters : int
        Number of clusters, k.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Pahikkala et al., Algorithm 3, 2 or 1.
    schedule : {"mixed", "paper"}, default="mixed"
        Other amplitudes and decays from start to start, held sizes and a polish; or all as published, with
        no bounds on sizes. Published shaking moves all rows into one of two clusters in its first wave, so
        that every start ends alike.
    cluster_sizes : {"auto", "equal"} or sequence of k shares, default="auto"
        Sizes held; "auto" is equal for k > 2, and for k = 2 a scan over target shares of which the best J
        wins, polished with no bound but the floor.
    size_tolerance : float, default=0.1
        How far held sizes may lie from their shares, relatively.
    min_share : float, default=0.5
        Least size of a cluster where sizes are free, as a share of m/k.
    n_init : int, default=8
        Starts; the first two try every target share, the others the best of them.
    random_state : RandomState
        Source of randomness.
    points : ndarray or CSR of shape (m, d) or None, default=None
        Rows for k-means, where every second start is one.
    each : callable, default=map
        Applies a function to the starts, in order: an engine's ``each`` runs them in its threads.

    Returns
    -------
    list of Partition
        One a start, the best at each start over the target shares; the first has the largest J.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.local_search import search_partition
    >>> from mmcnb.least_squares.objective import smoother
    >>> x = np.r_[np.zeros(5), np.ones(4)][:, None]
    >>> R = smoother(x * x.T, 0.1)
    >>> search_partition(R, 2, random_state=np.random.RandomState(0))[0].labels.tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 1]
    """
    m = R.shape[0]
    free = n_clusters == 2 and isinstance(cluster_sizes, str) and cluster_sizes == "auto"
    shares = target_shares(cluster_sizes, n_clusters)
    if schedule == "paper":
        low, high = np.ones(n_clusters, np.int64), np.full(n_clusters, m)
    else:
        low, high = floor_bounds(m, 2, min_share) if free else size_bounds(m, shares, size_tolerance)
    scan = free and schedule != "paper"
    targets = [np.array([p, 1 - p]) for p in SCANNED_SHARES] if scan else [shares]
    points = points if search == "shaking" else None
    starts = list(enumerate(partition_starts(n_init, m, shares, random_state, points)))
    orders = [np.arange(m) if schedule == "paper" else random_state.permutation(m) for _ in starts]

    def attempt(start: tuple[int, np.ndarray]) -> Partition:
        number, labels = start
        if search == "shaking":
            ends = [kernels.shake(R, labels, target, *schedule_of(schedule, number))[0] for target in targets]
            if schedule != "paper":
                ends = [kernels.refine(R, end, low, high, MOST_MOVES * m)[0] for end in ends]
        elif search == "steepest":
            ends = [kernels.steepest_moves(R, labels, low, high, MOST_MOVES * m)[0]]
        elif search == "stochastic":
            ends = [kernels.stochastic_moves(R, labels, low, high, orders[number], MOST_SWEEPS)[0]]
        else:
            raise InputError(f'search is "shaking", "steepest" or "stochastic", not {search!r}.')
        return best_partition(Partition(end, mean_objective(R, end, n_clusters), number) for end in ends)

    found = list(each(attempt, starts[:SCANNING_STARTS]))
    if scan:  # the other starts keep to the share that the first ones found best
        larger = max(np.bincount(best_partition(found).labels)) / m
        targets = [min(targets, key=lambda target: abs(target[0] - larger))]
    found += each(attempt, starts[SCANNING_STARTS:])
    found.sort(key=lambda partition: -round(partition.objective / TIE))
    return [Partition(canonical_labels(one.labels), one.objective, one.start) for one in found]
