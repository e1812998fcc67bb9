"""Cluster a sample by regularised least squares: local search and regularisation paths.

The partition with the largest J is the best. The local search from several starts is
the method of Pahikkala et al., who call their Alg. 3 "shaking". Regularisation paths
use features that are centred and rotated to their principal axes, with variances e_j.
In these coordinates, the ridge matrix is diagonal: the ridge λ = n alpha scales z_j by
1 / sqrt(n (e_j + alpha)), and R contains the inner products of the scaled rows. With an
infinite ridge, the objective is Σ|S_h|² over unscaled features, and its optimum is
reached from random labels. The labels then follow the optimum as the ridge decreases.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from mmcnb.engine.run import Engine, single_threaded
from mmcnb.engine.session import Record, ignore, run_starts
from mmcnb.features.nystroem import PrincipalFeatures
from mmcnb.graph.merge_tree import by_first
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares import objective
from mmcnb.least_squares.objective import (
    Bounds,
    ClusterSizes,
    Partition,
    mean_objective,
)

DEFAULT_ALPHA = 1e-3  # ridge per row, chosen by `python -m benchmarks selection`
# Number of starts that try all PROPORTIONS, so that each takes as long as five other
# starts.
SCANNING_STARTS = 2
# Maximum number of moves per row in refinement and in steepest descent. `python -m
# benchmarks rls` counts the moves.
MOST_MOVES = 20
TIE = 1e-6  # smaller differences in J are rounding errors
# The path and the proportions below were chosen by `python -m benchmarks rls`, section
# "defaults".
PATH_STARTS = 4
REGULARIZATION_PATH = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3)  # λ/n
# Number of partitions that hinge methods refine. It was chosen by `python -m benchmarks
# peers`.
REFINED = 2
LEADING = 50  # number of principal axes on which k-means runs
# Compiled routines and their compile times in seconds.
PARTITION_ROUTINES = {"size_multipliers": 5.0, "steepest_moves": 3.5}
PROPORTIONS = (0.5, 0.6, 0.7, 0.8, 0.9)  # tried shares of the larger of two clusters
Refine = Callable[[Partition, Record], np.ndarray | None]


@dataclass(frozen=True)
class PartitionConfig:
    """Settings for partitioning a sample into clusters.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, k.
    alpha : float, default=1e-3
        Ridge per row.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Local search: Algorithm 3, 2 or 1 of Pahikkala et al., respectively.
    schedule : {"mixed", "paper"}, default="mixed"
        Schedule of "shaking". "mixed" varies amplitude and decay from start to start,
        keeps sizes within their constraints, and ends with steepest descent. "paper" is
        the algorithm as published, without size constraints. With two clusters, the
        first round of "paper" moves all rows into one cluster, so that all starts give
        the same labels.
    n_init : int, default=8
        Number of starts of the local search.
    cluster_sizes : {"auto", "equal"}, None or sequence of k proportions, default="auto"
        Size constraints. None sets only a minimum size; "auto" is None for k = 2, and
        "equal" for k > 2. With k = 2 and only a minimum size, the local search tries
        several target proportions, and selects the partition with the largest J.
    size_tolerance : float, default=0.1
        Allowed relative deviation from the target sizes.
    min_share : float or None, default=None
        Minimum cluster size if there is no other size constraint, as a fraction of n/k.
        If None, 0.5 is used.
    """

    n_clusters: int
    alpha: float = DEFAULT_ALPHA
    search: Literal["shaking", "steepest", "stochastic"] = "shaking"
    schedule: Literal["mixed", "paper"] = "mixed"
    n_init: int = 8
    cluster_sizes: ClusterSizes = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None

    @property
    def sizes_are_free(self) -> bool:
        """Whether cluster sizes are only constrained by a minimum size."""
        auto = isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto"
        return self.cluster_sizes is None or (auto and self.n_clusters == 2)

    def search_alpha(self, rows: int) -> float:
        """Return the ridge per row in the search on the sample.

        With two clusters, a large sample needs a smaller ridge than the model. With the
        ridge of the model, irrelevant partitions fit as well as the classes, for
        example a partition of digit images by the position of the digit.
        """
        if self.n_clusters > 2 or not self.is_mixed:
            return self.alpha
        # Up to 400 rows, the ridge equals the ridge of the model (`python -m benchmarks
        # rls`).
        return self.alpha * min(1.0, max(0.1, 400 / rows))

    def smoother(self, K: np.ndarray) -> np.ndarray:
        """Return the smoother of a kernel matrix for the ridge of the search.

        The kernel matrix may be overwritten.
        """
        m = K.shape[0]
        ridge = self.search_alpha(m) * m
        return objective.smoother(K, ridge, overwrite=True)

    @property
    def is_mixed(self) -> bool:
        """Whether the search combines mixed schedules with regularisation paths."""
        return self.search == "shaking" and self.schedule == "mixed"

    def bounds(self, total: float) -> Bounds:
        """Return the smallest and largest allowed size of each cluster."""
        if self.sizes_are_free:
            return self.floor(total)
        return objective.size_bounds(total, self.shares, self.size_tolerance)

    def floor(self, total: float) -> Bounds:
        """Return size bounds that only guarantee a minimum size."""
        # The default was chosen by `python -m benchmarks rls`.
        least = 0.5 if self.min_share is None else self.min_share
        return objective.floor_bounds(total, self.n_clusters, least)

    def bounds_by_size(self, sizes: np.ndarray) -> Bounds:
        """Return size bounds for clusters of given sizes.

        The larger a cluster is, the larger are its bounds.
        """
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        low, high = self.bounds(sizes.sum())
        return np.sort(low)[rank], np.sort(high)[rank]

    @property
    def shares(self) -> np.ndarray:
        """Target proportions in increasing order.

        In local search, the first clusters claim rows first, so small clusters come
        first.
        """
        return np.sort(objective.target_shares(self.cluster_sizes, self.n_clusters))


def random_labels(
    n_samples: int, shares: np.ndarray, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw random labels in given proportions, such that no cluster is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import random_labels
    >>> shares = np.array([0.75, 0.25])
    >>> sorted(random_labels(4, shares, np.random.RandomState(0)).tolist())
    [0, 0, 0, 1]
    """
    clusters = np.arange(shares.shape[0])
    edges = np.maximum.accumulate(np.rint(np.cumsum(shares) * n_samples) - clusters - 1)
    rest = np.searchsorted(
        edges[:-1], np.arange(n_samples - clusters.shape[0]), side="right"
    )
    return random_state.permutation(np.concatenate([clusters, rest]))


def partition_starts(
    n_init: int,
    n_samples: int,
    shares: np.ndarray,
    random_state: np.random.RandomState,
    points: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Yield starting labels, alternately from k-means on ``points`` and at random.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import partition_starts
    >>> shares, points = np.full(2, 0.5), np.arange(5.0)[:, None]
    >>> starts = partition_starts(3, 5, shares, np.random.RandomState(0), points)
    >>> len(list(starts))
    3
    """
    for number in range(n_init):
        seed = random_state.randint(2**31 - 1)
        # If all rows are equal, the principal features have no columns.
        if points is not None and points.shape[1] > 0 and number % 2 == 0:
            from sklearn.cluster import KMeans
            from sklearn.exceptions import ConvergenceWarning

            # There are few rows, so several threads would mostly wait for each other.
            with single_threaded(), warnings.catch_warnings():
                # scikit-learn warns if there are fewer different rows than clusters.
                warnings.simplefilter("ignore", ConvergenceWarning)
                kmeans = KMeans(shares.shape[0], n_init=1, random_state=seed)
                labels = kmeans.fit_predict(points)
            yield labels.astype(np.int64)
        else:
            yield random_labels(n_samples, shares, np.random.RandomState(seed))


class Schedule(NamedTuple):
    """Amplitude, decay and number of rounds of "shaking" (Pahikkala et al., eq. 11)."""

    amplitude: float
    decay: float
    rounds: int


def schedule_of(schedule: Literal["mixed", "paper"], number: int) -> Schedule:
    """Return the schedule of a start, given the zero-based index of the start.

    Combined with the two kinds of labels that `partition_starts` yields, any twelve
    consecutive starts of "mixed" differ from each other.

    Examples
    --------
    >>> from mmcnb.least_squares.partition import schedule_of
    >>> schedule_of("paper", 7)
    Schedule(amplitude=1.0, decay=0.5, rounds=21)
    >>> schedule_of("mixed", 1)
    Schedule(amplitude=0.5, decay=0.5, rounds=21)
    """
    if schedule == "paper":
        return Schedule(1.0, 0.5, rounds=21)  # s = 20
    # Chosen by `python -m benchmarks rls`.
    amplitude = (1.0, 0.5, 0.25)[number % 3]
    if number // 2 % 2 == 0:
        return Schedule(amplitude, 0.5, rounds=21)
    return Schedule(amplitude, 0.8, rounds=41)


def best_partition(partitions: Iterable[Partition]) -> Partition:
    """Return the partition with the largest J; ties go to the first partition.

    Objectives are compared up to rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import Partition
    >>> from mmcnb.least_squares.partition import best_partition
    >>> objectives = 1.0, 2.0, 2.0 + 1e-9
    >>> best_partition(Partition(np.zeros(2), J) for J in objectives).objective
    2.0
    """
    return max(partitions, key=lambda partition: round(partition.objective / TIE))


class Start(NamedTuple):
    """A start of the local search: its index, its labels, and an order of the rows.

    Stochastic descent visits the rows in this order.
    """

    number: int
    labels: np.ndarray
    order: np.ndarray


def local_search(
    R: np.ndarray,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    points: np.ndarray | None = None,
    engine: Engine | None = None,
) -> list[Partition]:
    """Cluster the rows of a sample by local search from several starts.

    Parameters
    ----------
    R : ndarray of shape (m, m), float64
        Smoother of the centred kernel, symmetric and C-ordered.
    config : PartitionConfig
        Number of clusters, search and sizes.
    random_state : RandomState
        Random number generator.
    points : ndarray of shape (m, d) or None, default=None
        Rows on which every second start runs k-means. If None, all starts are random.
    engine : Engine or None, default=None
        Engine whose threads run the starts. If None, the starts run one after the
        other.

    Returns
    -------
    list of Partition
        For each start, the best partition over the target proportions. The partitions
        are sorted by decreasing J.
    """
    m = R.shape[0]
    k = config.n_clusters
    paper = config.schedule == "paper"
    bounds = (np.ones(k, np.int64), np.full(k, m)) if paper else config.bounds(m)
    scan = config.sizes_are_free and k == 2 and not paper
    targets = [config.shares]
    if scan:
        targets = [np.array([share, 1 - share]) for share in PROPORTIONS]
    if config.search != "shaking":
        points = None
    labelings = list(
        partition_starts(config.n_init, m, config.shares, random_state, points)
    )
    starts = []
    for number, labels in enumerate(labelings):
        order = np.arange(m) if paper else random_state.permutation(m)
        starts.append(Start(number, labels, order))

    def attempt(start: Start) -> Partition:
        ends = _ends(R, config, start, targets, bounds)
        return best_partition(
            Partition(labels, mean_objective(R, labels, k), start.number)
            for labels in ends
        )

    each = engine.each if engine else map
    partitions = list(each(attempt, starts[:SCANNING_STARTS]))
    # The other starts use only the proportion closest to the best partition of the
    # first starts.
    if scan:
        larger = max(np.bincount(best_partition(partitions).labels)) / m
        targets = [min(targets, key=lambda target: abs(target[0] - larger))]
    partitions += each(attempt, starts[SCANNING_STARTS:])
    partitions.sort(key=lambda partition: -round(partition.objective / TIE))
    return [
        replace(partition, labels=by_first(partition.labels))
        for partition in partitions
    ]


def _ends(
    R: np.ndarray,
    config: PartitionConfig,
    start: Start,
    targets: list[np.ndarray],
    bounds: Bounds,
) -> list[np.ndarray]:
    """Run a start for each target proportion, and return the resulting labels."""
    low, high = bounds
    most = MOST_MOVES * R.shape[0]

    def descend(labels: np.ndarray, by_mean: bool) -> np.ndarray:
        return kernels.steepest_moves(R, labels, low, high, most, by_mean)[0]

    if config.search == "steepest":
        return [descend(start.labels, by_mean=False)]
    if config.search == "stochastic":
        # In practice, the descent ends before 1,000 sweeps.
        labels, _ = kernels.stochastic_moves(
            R, start.labels, low, high, start.order, 1000
        )
        return [labels]
    schedule = schedule_of(config.schedule, start.number)
    ends = [kernels.shake(R, start.labels, target, *schedule)[0] for target in targets]
    if config.schedule == "paper":
        return ends
    return [descend(labels, by_mean=True) for labels in ends]


# -- the whole search ------------------------------------------------------------------


def partition_sample(
    engine: Engine,
    R: np.ndarray | None,
    features: PrincipalFeatures,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    refine: Refine | None = None,
    record: Record = ignore,
) -> list[Partition]:
    """Cluster a sample, and return the best partition first.

    Parameters
    ----------
    engine : Engine
        The starts run in the threads of this engine.
    R : ndarray of shape (m, m) or None
        Smoother of the sample for the ridge ``config.search_alpha(m) * m``. If None,
        only regularisation paths are used, because the local search does not support
        weights.
    features : PrincipalFeatures
        The sample in landmark features, with its weights.
    config : PartitionConfig
        Number of clusters, ridge, search and sizes.
    random_state : RandomState
        Random number generator.
    refine : callable or None, default=None
        ``refine(partition, record)`` returns other labels, or None. It is called for
        the two best partitions. The refined labels are accepted if they increase J. If
        the local search found the partition, they must increase J by more than 0.01.
    record : callable, default=ignore
        Called with the dicts that ``refine`` records.

    Returns
    -------
    list of Partition
        Partitions in order of decreasing J. J is computed from the smoother or, if
        ``R`` is None, from the landmark features. Paths are numbered after the starts
        of the local search.
    """
    m = features.z.shape[0]
    k = config.n_clusters
    first_path = config.n_init
    bounds = config.bounds(features.total)
    alpha = config.search_alpha(m)
    flips = [random_labels(m, config.shares, random_state) for _ in range(PATH_STARTS)]
    path = [ridge for ridge in REGULARIZATION_PATH if ridge > alpha] + [alpha]

    def scored(labels: np.ndarray, start: int) -> Partition:
        """Return the partition with given labels and its J.

        If R is not None, the labels are first improved by steepest descent.
        """
        if R is None:
            return Partition(labels, features.objective(labels, k, alpha), start)
        low, high = config.bounds_by_size(np.bincount(labels, minlength=k))
        labels, _ = kernels.steepest_moves(R, labels, low, high, MOST_MOVES * m, True)
        return Partition(labels, mean_objective(R, labels, k), start)

    def run_path(number: int, record: Record) -> Partition:
        labels = regularization_path(features, flips[number], bounds, path)
        return scored(labels, first_path + number)

    follows_paths = config.is_mixed or R is None
    partitions = run_starts(
        engine, run_path, range(PATH_STARTS if follows_paths else 0)
    )
    if R is not None:
        leading = features.z[:, :LEADING]
        searched = local_search(R, config, random_state, leading, engine)
        partitions = searched + partitions
    if refine is not None:
        best = sorted(partitions, key=_rank)[:REFINED]
        best.sort(key=lambda partition: partition.start)
        refinements = run_starts(engine, refine, best, record)
        for partition, labels in zip(best, refinements, strict=True):
            if labels is None:
                continue
            refined = scored(labels, partition.start)
            # If the local search found the partition, refined labels must increase J by
            # more than 0.01.
            least_gain = 0.0 if partition.start >= first_path else 0.01
            if refined.objective > partition.objective + least_gain:
                partitions.append(refined)
    return sorted(partitions, key=_rank)


def _rank(partition: Partition) -> float:
    """Return the sort key of a partition; the largest J comes first."""
    return -partition.objective


def partition_seconds(rows: int, n_clusters: int) -> float:
    """Estimate the time of the search on a sample on one core, in seconds."""
    # Measured in fits of 1,500 x 30 and 20,000 x 50 rows.
    return 0.5 * (rows / 2000) ** 2 * (1 + 0.1 * (n_clusters - 2))


# -- the regularisation path -----------------------------------------------------------


def size_constrained_step(
    features: PrincipalFeatures,
    labels: np.ndarray,
    alpha: float,
    bounds: Bounds,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Label rows by the cluster h with the largest z'·S'_h - b_h.

    The multipliers b enforce the size constraints. The search for b begins at
    ``start``. Return the labels and b.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import size_constrained_step
    >>> from mmcnb.features.nystroem import principal_features
    >>> rows = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> labels, two = np.array([0, 1, 1, 1]), np.array([2, 2])
    >>> labels, b = size_constrained_step(rows, labels, 0.1, (two, two), np.zeros(2))
    >>> labels.tolist()
    [0, 0, 1, 1]
    """
    S, _ = features.sums(labels, start.shape[0])
    scores = features.z @ (S * features.scales(alpha)).T
    multipliers = kernels.size_multipliers(scores, *bounds, features.weights, start)
    return (scores - multipliers).argmax(axis=1), multipliers


def regularization_path(
    features: PrincipalFeatures,
    labels: np.ndarray,
    bounds: Bounds,
    path: Sequence[float] = REGULARIZATION_PATH,
) -> np.ndarray:
    """Return the labels at the end of a path of decreasing ridges.

    For each ridge, size-constrained steps start from the labels of the previous ridge.

    Parameters
    ----------
    features : PrincipalFeatures
        The rows in the coordinates of their principal axes.
    labels : ndarray of shape (m,), int
        Initial labels, which may be random.
    bounds : pair of ndarray of shape (k,)
        Smallest and largest size (or weight) of each cluster.
    path : sequence of float, default=REGULARIZATION_PATH
        Decreasing ridges per row, λ/n, beginning with infinity.

    Returns
    -------
    ndarray of shape (m,), int64
        The labels at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.nystroem import principal_features
    >>> from mmcnb.least_squares.partition import regularization_path
    >>> rows = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> two = np.array([2, 2])
    >>> regularization_path(rows, np.array([0, 1, 1, 1]), (two, two)).tolist()
    [0, 0, 1, 1]
    """
    for alpha in path:
        multipliers = np.zeros(bounds[0].shape[0])
        # Usually labels no longer change after five steps.
        for _ in range(12):
            before = labels
            labels, multipliers = size_constrained_step(
                features, labels, alpha, bounds, multipliers
            )
            if np.array_equal(labels, before):
                break
    return labels
