"""A sample clustered by regularised least squares: local search and regularisation paths, compared by J.

The local search from several starts is that of Pahikkala et al., who call their Alg. 3
shaking. Paths lead through features that are centred and rotated to their principal
axes, of variances e_j, where the ridge is diagonal: z'_j = z_j / sqrt(n (e_j + lt)) for
the ridge λ = lt n, and R = Z'Z''. At an infinite ridge the labels climb Σ|S_h|² over
plain features, one smooth hill reached from a coin flip; as the ridge falls they follow
it.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine, single_threaded
from mmcnb.engine.session import Record, ignore, run_starts
from mmcnb.features.nystroem import PrincipalFeatures
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares import objective
from mmcnb.least_squares.objective import Bounds, Partition, mean_objective

DEFAULT_ALPHA = 1e-3  # ridge a row, measured by `python -m benchmarks selection`
SCANNING_STARTS = (
    2  # starts that try every proportion; each costs as much as five others
)
# a row, in refinement and in steepest descent; `python -m benchmarks rls` counts them
MOST_MOVES = 20
TIE = 1e-6  # of J: smaller differences are rounding
# Measured by `python -m benchmarks rls`, section "defaults".
PATH_STARTS = 4
REGULARIZATION_PATH = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3)  # λ/n
REFINED = 2  # partitions that the hinge form refines: `python -m benchmarks peers`
LEADING = 50  # principal axes that k-means sees
PARTITION_ROUTINES = {"size_multipliers": 5.0, "steepest_moves": 3.5}
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
    search: Any = "shaking"
    schedule: Any = "mixed"
    n_init: int = 8
    cluster_sizes: Any = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None

    @property
    def sizes_are_free(self) -> bool:
        """Whether there is a minimum size only."""
        auto = isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto"
        return self.cluster_sizes is None or (auto and self.n_clusters == 2)

    def search_alpha(self, rows: int) -> float:
        """Ridge a row while the sample is clustered.

        With two clusters a large sample needs a smaller ridge than the model. At the
        model's, partitions that have nothing to do with the classes fit as well as
        theirs: for example digits by their position.
        """
        if self.n_clusters > 2 or not self.is_mixed:
            return self.alpha
        # Up to 400 rows the ridge is the model's: `python -m benchmarks rls`.
        return self.alpha * min(1.0, max(0.1, 400 / rows))

    def smoother(self, K: np.ndarray, overwrite: bool = False) -> np.ndarray:
        """Smoother of a kernel matrix at the ridge of the search; it may take the place of the matrix."""
        return objective.smoother(
            K, self.search_alpha(K.shape[0]) * K.shape[0], overwrite=overwrite
        )

    @property
    def is_mixed(self) -> bool:
        """Whether schedules are mixed and regularisation paths followed, instead of what is published."""
        return bool(self.search == "shaking" and self.schedule == "mixed")

    def bounds(self, total: float) -> Bounds:
        """Least and most rows of each cluster."""
        if self.sizes_are_free:
            return self.floor(total)
        return objective.size_bounds(total, self.shares, self.size_tolerance)

    def floor(self, total: float) -> Bounds:
        """Size constraints with a minimum only."""
        least = (
            0.5 if self.min_share is None else self.min_share
        )  # measured by `python -m benchmarks rls`
        return objective.floor_bounds(total, self.n_clusters, least)

    def bounds_by_size(self, sizes: np.ndarray) -> Bounds:
        """Least and most rows of clusters of some sizes: the largest cluster has the largest proportion."""
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        low, high = self.bounds(sizes.sum())
        return np.sort(low)[rank], np.sort(high)[rank]

    @property
    def shares(self) -> np.ndarray:
        """Target proportions, rising: in local search small clusters claim rows first."""
        return np.sort(objective.target_shares(self.cluster_sizes, self.n_clusters))


def random_labels(
    n_samples: int, shares: np.ndarray, random_state: np.random.RandomState
) -> np.ndarray:
    """Random labels in the given proportions, no cluster empty.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import random_labels
    >>> sorted(random_labels(4, np.array([0.75, 0.25]), np.random.RandomState(0)).tolist())
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
    points: Any = None,
) -> Iterator[np.ndarray]:
    """Starting labels: k-means of the points (where given) and random ones by turns.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import partition_starts
    >>> len(list(partition_starts(3, 5, np.full(2, 0.5), np.random.RandomState(0), np.arange(5.0)[:, None])))
    3
    """
    for number in range(n_init):
        seed = random_state.randint(2**31 - 1)
        if (
            points is not None and points.shape[1] > 0 and number % 2 == 0
        ):  # equal rows have no columns
            from sklearn.cluster import KMeans
            from sklearn.exceptions import ConvergenceWarning

            # Few rows: more threads would wait for one another longer than they work.
            with single_threaded(), warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", ConvergenceWarning
                )  # fewer different rows than clusters
                fitted = KMeans(shares.shape[0], n_init=1, random_state=seed).fit(
                    points
                )
            yield fitted.labels_.astype(np.int64)
        else:
            yield random_labels(n_samples, shares, np.random.RandomState(seed))


def schedule_of(schedule: str, number: int) -> tuple[float, float, int]:
    """Amplitude, decay and rounds of a start; twelve in a row, of both kinds of `partition_starts`, differ.

    Examples
    --------
    >>> from mmcnb.least_squares.partition import schedule_of
    >>> schedule_of("paper", 7), schedule_of("mixed", 1)
    ((1.0, 0.5, 21), (0.5, 0.5, 21))
    """
    if schedule == "paper":
        # Amplitude, decay and rounds: Pahikkala et al., eq. (11) with s = 20.
        return 1.0, 0.5, 21
    # Measured by `python -m benchmarks rls`.
    amplitude, (decay, rounds) = (
        (1.0, 0.5, 0.25)[number % 3],
        ((0.5, 21), (0.8, 41))[number // 2 % 2],
    )
    return amplitude, decay, rounds


def best_partition(partitions: Iterable[Partition]) -> Partition:
    """The partition of largest J; the earlier one where they are equal but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.objective import Partition
    >>> from mmcnb.least_squares.partition import best_partition
    >>> best_partition(Partition(np.zeros(2), objective) for objective in (1.0, 2.0, 2.0 + 1e-9)).objective
    2.0
    """
    return max(partitions, key=lambda partition: round(partition.objective / TIE))


def canonical_labels(labels: np.ndarray) -> np.ndarray:
    """Clusters numbered by the first row that falls in each.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import canonical_labels
    >>> canonical_labels(np.array([2, 2, 0, 1])).tolist()
    [0, 0, 1, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def local_search(
    R: np.ndarray,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    points: Any = None,
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
    points : ndarray or CSR of shape (m, d) or None, default=None
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
    shares = config.shares
    bounds = (np.ones(k, np.int64), np.full(k, m)) if paper else config.bounds(m)
    scan = config.sizes_are_free and k == 2 and not paper
    # Proportions of the larger of two clusters, measured by `python -m benchmarks rls`.
    targets = (
        [np.array([p, 1 - p]) for p in (0.5, 0.6, 0.7, 0.8, 0.9)] if scan else [shares]
    )
    given = points if config.search == "shaking" else None
    labelings = list(
        enumerate(partition_starts(config.n_init, m, shares, random_state, given))
    )
    starts = [
        (*one, np.arange(m) if paper else random_state.permutation(m))
        for one in labelings
    ]

    def attempt(start: tuple[int, np.ndarray, np.ndarray]) -> Partition:
        ends = _ends(R, config, start, targets, bounds)
        return best_partition(
            Partition(end, mean_objective(R, end, k), start[0]) for end in ends
        )

    each = engine.each if engine else map
    found = list(each(attempt, starts[:SCANNING_STARTS]))
    if scan:  # the other starts keep to the proportion that the first ones found best
        larger = max(np.bincount(best_partition(found).labels)) / m
        targets = [min(targets, key=lambda target: abs(target[0] - larger))]
    found += each(attempt, starts[SCANNING_STARTS:])
    found.sort(key=lambda partition: -round(partition.objective / TIE))
    return [
        Partition(canonical_labels(one.labels), one.objective, one.start)
        for one in found
    ]


def _ends(
    R: np.ndarray,
    config: PartitionConfig,
    start: tuple[int, Any, Any],
    targets: Any,
    bounds: Any,
) -> list[np.ndarray]:
    """Labels that the search of one start ends with, for each target proportion."""
    (number, labels, order), most = start, MOST_MOVES * R.shape[0]
    if config.search == "steepest":
        return [kernels.steepest_moves(R, labels, *bounds, most, False)[0]]
    if config.search == "stochastic":
        # The sweeps end long before 1,000.
        return [kernels.stochastic_moves(R, labels, *bounds, order, 1000)[0]]
    schedule = schedule_of(config.schedule, number)
    ends = [kernels.shake(R, labels, target, *schedule)[0] for target in targets]
    if config.schedule == "paper":
        return ends
    return [kernels.steepest_moves(R, end, *bounds, most, True)[0] for end in ends]


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
    path = (*(ridge for ridge in REGULARIZATION_PATH if ridge > alpha), alpha)

    def scored(labels: np.ndarray, start: int) -> Partition:
        """A partition at the end of steepest descent, where there is a matrix to descend on."""
        if R is None:
            return Partition(labels, features.objective(labels, k, alpha), start)
        sizes = config.bounds_by_size(np.bincount(labels, minlength=k))
        labels = kernels.steepest_moves(R, labels, *sizes, MOST_MOVES * m, True)[0]
        return Partition(labels, mean_objective(R, labels, k), start)

    def run_start(start: int, record: Record) -> Partition:
        return scored(
            regularization_path(features, flips[start - first_path], bounds, path),
            start,
        )

    paths = (
        range(first_path, first_path + PATH_STARTS)
        if config.is_mixed or R is None
        else []
    )
    found = run_starts(engine, run_start, paths)
    if R is not None:
        found = (
            local_search(R, config, random_state, features.z[:, :LEADING], engine)
            + found
        )
    if refine is not None:
        chosen = sorted(sorted(found, key=_rank)[:REFINED], key=lambda one: one.start)
        for one, labels in zip(
            chosen, run_starts(engine, refine, chosen, record), strict=True
        ):
            refined = one if labels is None else scored(labels, one.start)
            # A smaller gain of J does not replace labels of the local search.
            gain = 0.0 if one.start >= first_path else 0.01
            found += [refined] if refined.objective > one.objective + gain else []
    return sorted(found, key=_rank)


def _rank(partition: Partition) -> float:
    """The largest J comes first; of equal ones the earlier."""
    return -partition.objective


def partition_seconds(rows: int, n_clusters: int) -> float:
    """Seconds of one core for the search on a sample, from fits to 1,500 x 30 and 20,000 x 50 rows."""
    return 0.5 * (rows / 2000) ** 2 * (1 + 0.1 * (n_clusters - 2))


# -- the regularisation path -----------------------------------------------------------


def size_constrained_step(
    features: PrincipalFeatures,
    labels: np.ndarray,
    alpha: float,
    bounds: Bounds,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """One label step under size constraints: argmax over h of z'·S'_h - b_h, and the multipliers b.

    The search for the multipliers begins at ``start``.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.partition import size_constrained_step
    >>> from mmcnb.features.nystroem import principal_features
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
    >>> size_constrained_step(rows, np.array([0, 1, 1, 1]), 0.1, (two, two), np.zeros(2))[0].tolist()
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
    """Labels followed from a large ridge to a small one.

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
    >>> rows, two = principal_features(np.array([[0.0], [1.0], [5.0], [6.0]])), np.array([2, 2])
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
