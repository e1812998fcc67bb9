"""A sample clustered by regularised least squares, by local search and ridge paths.

The partition of largest J is the best. The local search from several starts is that of
Pahikkala et al., who call their Alg. 3 shaking. Paths lead through features that are
centred and rotated to their principal axes, of variances e_j, where the ridge is
diagonal: z'_j = z_j / sqrt(n (e_j + lt)) for the ridge λ = lt n, and R = Z'Z''. At an
infinite ridge the labels climb Σ|S_h|² over plain features, one smooth hill reached
from a coin flip; as the ridge falls they follow it.
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

DEFAULT_ALPHA = 1e-3  # ridge a row, measured by `python -m benchmarks selection`
# Starts that try every proportion; each costs as much as five others.
SCANNING_STARTS = 2
# a row, in refinement and in steepest descent; `python -m benchmarks rls` counts them
MOST_MOVES = 20
TIE = 1e-6  # of J: smaller differences are rounding
# Measured by `python -m benchmarks rls`, section "defaults", as are the proportions.
PATH_STARTS = 4
REGULARIZATION_PATH = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3)  # λ/n
REFINED = 2  # partitions that the hinge form refines: `python -m benchmarks peers`
LEADING = 50  # principal axes that k-means sees
PARTITION_ROUTINES = {"size_multipliers": 5.0, "steepest_moves": 3.5}
PROPORTIONS = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the larger of two clusters
Refine = Callable[[Partition, Record], np.ndarray | None]


@dataclass(frozen=True)
class PartitionConfig:
    """How a sample is clustered.

    Parameters
    ----------
    n_clusters : int
        k.
    alpha : float, default=1e-3
        Ridge a row.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Pahikkala et al., Algorithm 3, 2 or 1.
    schedule : {"mixed", "paper"}, default="mixed"
        "mixed" varies amplitude and decay from start to start, keeps sizes within their
        constraints and ends with steepest descent. "paper" is as published, without
        size constraints: its first round moves all rows into one of two clusters, so
        that every start ends alike.
    n_init : int, default=8
        Starts of the local search.
    cluster_sizes : {"auto", "equal"}, None or sequence of k proportions, default="auto"
        Size constraints. None is a minimum size only; "auto" is that for k = 2, and
        equal sizes for k > 2. With k = 2 and a minimum size only, the local search
        tries every target proportion of a list, and the best J wins.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    min_share : float or None, default=None
        Minimum size if there is no other constraint, as a fraction of n/k; None is 0.5.
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
        """Whether there is a minimum size only."""
        auto = isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto"
        return self.cluster_sizes is None or (auto and self.n_clusters == 2)

    def search_alpha(self, rows: int) -> float:
        """Return the ridge a row while the sample is clustered.

        With two clusters a large sample needs a smaller ridge than the model. At the
        model's, partitions that have nothing to do with the classes fit as well as
        theirs: for example digits by their position.
        """
        if self.n_clusters > 2 or not self.is_mixed:
            return self.alpha
        # Up to 400 rows the ridge is the model's: `python -m benchmarks rls`.
        return self.alpha * min(1.0, max(0.1, 400 / rows))

    def smoother(self, K: np.ndarray) -> np.ndarray:
        """Return the smoother of a kernel matrix at the ridge of the search.

        It may take the place of the matrix.
        """
        m = K.shape[0]
        ridge = self.search_alpha(m) * m
        return objective.smoother(K, ridge, overwrite=True)

    @property
    def is_mixed(self) -> bool:
        """Whether schedules are mixed and paths followed, unlike what is published."""
        return self.search == "shaking" and self.schedule == "mixed"

    def bounds(self, total: float) -> Bounds:
        """Return the least and most rows of each cluster."""
        if self.sizes_are_free:
            return self.floor(total)
        return objective.size_bounds(total, self.shares, self.size_tolerance)

    def floor(self, total: float) -> Bounds:
        """Return size constraints with a minimum only."""
        # The default is measured by `python -m benchmarks rls`.
        least = 0.5 if self.min_share is None else self.min_share
        return objective.floor_bounds(total, self.n_clusters, least)

    def bounds_by_size(self, sizes: np.ndarray) -> Bounds:
        """Return the bounds of clusters; the largest one has the largest proportion."""
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        low, high = self.bounds(sizes.sum())
        return np.sort(low)[rank], np.sort(high)[rank]

    @property
    def shares(self) -> np.ndarray:
        """Target proportions, rising: in local search small clusters claim first."""
        return np.sort(objective.target_shares(self.cluster_sizes, self.n_clusters))


def random_labels(
    n_samples: int, shares: np.ndarray, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw random labels in the given proportions, no cluster empty.

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
    """Yield starting labels: of k-means of points, if given, and random by turns.

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
        # Points without columns are rows that are all equal.
        if points is not None and points.shape[1] > 0 and number % 2 == 0:
            from sklearn.cluster import KMeans
            from sklearn.exceptions import ConvergenceWarning

            # Few rows: more threads would wait for one another longer than they work.
            with single_threaded(), warnings.catch_warnings():
                # There may be fewer different rows than clusters.
                warnings.simplefilter("ignore", ConvergenceWarning)
                kmeans = KMeans(shares.shape[0], n_init=1, random_state=seed)
                labels = kmeans.fit_predict(points)
            yield labels.astype(np.int64)
        else:
            yield random_labels(n_samples, shares, np.random.RandomState(seed))


class Schedule(NamedTuple):
    """How a start is shaken: Pahikkala et al., eq. (11)."""

    amplitude: float
    decay: float
    rounds: int


def schedule_of(schedule: Literal["mixed", "paper"], number: int) -> Schedule:
    """Return the schedule of a start.

    Twelve in a row, of both kinds of `partition_starts`, differ.

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
    # Measured by `python -m benchmarks rls`.
    amplitude = (1.0, 0.5, 0.25)[number % 3]
    if number // 2 % 2 == 0:
        return Schedule(amplitude, 0.5, rounds=21)
    return Schedule(amplitude, 0.8, rounds=41)


def best_partition(partitions: Iterable[Partition]) -> Partition:
    """Return the partition of largest J; of equal ones, but for rounding, the first.

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
    """A start of the local search: its number, its labels, and the order of visits."""

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
        Source of randomness.
    points : ndarray of shape (m, d) or None, default=None
        Rows for k-means, where every second start is one.
    engine : Engine or None, default=None
        Its threads share the starts; None takes one after the other.

    Returns
    -------
    list of Partition
        One a start, the best at each start over the target proportions; the first has
        the largest J.
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
    # The other starts keep to the proportion that the first ones found best.
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
    """Return the labels at the end of one start, for each target proportion."""
    low, high = bounds
    most = MOST_MOVES * R.shape[0]

    def descend(labels: np.ndarray, by_mean: bool) -> np.ndarray:
        return kernels.steepest_moves(R, labels, low, high, most, by_mean)[0]

    if config.search == "steepest":
        return [descend(start.labels, by_mean=False)]
    if config.search == "stochastic":
        # The sweeps end long before 1,000.
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
    """Cluster a sample; the best partition comes first.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    R : ndarray of shape (m, m) or None
        Smoother of the sample at the ridge ``config.search_alpha(m) * m``; None follows
        regularisation paths alone, as the local search knows no weights.
    features : PrincipalFeatures
        The sample in landmark features, with its weights.
    config : PartitionConfig
        Number of clusters, ridge, search and sizes.
    random_state : RandomState
        Source of randomness.
    refine : callable or None, default=None
        ``refine(partition, record)`` gives other labels, or None. It is tried on the
        best two partitions. Its labels count where J rises, by more than 0.01 for what
        local search found.
    record : callable, default=ignore
        Takes what ``refine`` records.

    Returns
    -------
    list of Partition
        By J under the smoother, or in landmark features without one. Paths are numbered
        after the starts of the local search.
    """
    m = features.z.shape[0]
    k = config.n_clusters
    first_path = config.n_init
    bounds = config.bounds(features.total)
    alpha = config.search_alpha(m)
    flips = [random_labels(m, config.shares, random_state) for _ in range(PATH_STARTS)]
    path = [ridge for ridge in REGULARIZATION_PATH if ridge > alpha] + [alpha]

    def scored(labels: np.ndarray, start: int) -> Partition:
        """Return a partition after steepest descent, if there is a matrix for it."""
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
            # A smaller gain of J does not replace labels of the local search.
            least_gain = 0.0 if partition.start >= first_path else 0.01
            if refined.objective > partition.objective + least_gain:
                partitions.append(refined)
    return sorted(partitions, key=_rank)


def _rank(partition: Partition) -> float:
    """Rank partitions so that the largest J comes first, of equal ones the earlier."""
    return -partition.objective


def partition_seconds(rows: int, n_clusters: int) -> float:
    """Return the seconds that the search on a sample takes one core."""
    # From fits to 1,500 x 30 and 20,000 x 50 rows.
    return 0.5 * (rows / 2000) ** 2 * (1 + 0.1 * (n_clusters - 2))


# -- the regularisation path -----------------------------------------------------------


def size_constrained_step(
    features: PrincipalFeatures,
    labels: np.ndarray,
    alpha: float,
    bounds: Bounds,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Label rows by argmax over h of z'·S'_h - b_h, with b for the size constraints.

    The search for the multipliers b, which are returned too, begins at ``start``.

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
    """Follow labels from a large ridge to a small one.

    Parameters
    ----------
    features : PrincipalFeatures
        The rows.
    labels : ndarray of shape (m,), int
        Where to start: a coin flip will do.
    bounds : pair of ndarray of shape (k,)
        Least and most rows (or weight) of each cluster.
    path : sequence of float, default=REGULARIZATION_PATH
        Falling ridges per row, λ/n, from infinity.

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
        # Most labels settle in five steps.
        for _ in range(12):
            before = labels
            labels, multipliers = size_constrained_step(
                features, labels, alpha, bounds, multipliers
            )
            if np.array_equal(labels, before):
                break
    return labels
