"""The search for starts and a bandwidth, on a sample that fits in memory.

Restarts do not read the store. At one bandwidth the best score wins. Across bandwidths
the leave-one-out score of each partition is compared with a cut. Below the cut the
largest |w|² relative to the total variance wins. Where no partition is below the cut,
the lowest leave-one-out score wins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession, Record, ignore, run_starts, tag
from mmcnb.features import nystroem
from mmcnb.features.bandwidth import leave_one_out_scores
from mmcnb.features.kernel import Kernel, KernelSamples, MultipleKernels
from mmcnb.features.rules import GivenLabels, Labels, coin_flip
from mmcnb.hinge import cutting_plane
from mmcnb.hinge.cccp import CCCPLimits, CCCPResult, continuation, path_to
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.qp import Threshold
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.least_squares.objective import floor_bounds
from mmcnb.least_squares.partition import (
    PartitionConfig,
    local_search,
    random_labels,
    regularization_path,
)
from mmcnb.samples import BLOCK_ROWS, Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import Weights, as_matrix, with_short_indices

INITS = ("mixed", "random", "k-means")
LEADING = (
    50  # components for least squares of sparse or many columns, and for k-means of any
)
SEARCHED_ROWS = 1000  # of the local search, whose matrix has so many rows and columns
SEARCH_RIDGE = 1e-3  # per row, of the local search
HALVES = np.full(2, 0.5)  # proportions of a coin flip
TIE = 1e-6  # starts whose scores differ by less are equal, and the earlier wins
LOOSE_ETA = 0.1  # random labels need no accurate solution
COLD_STARTS = 2  # of mixed starts, before two partitions by least squares
WARM_LEAD = 0.025  # of the score, by which a partition by least squares has to lead
WARM_C = 2.0  # where a start by least squares enters the path; coin flips need C near 1
CLEAN_SCORE = 0.06  # leave-one-out score up to which a partition counts as real


@dataclass(frozen=True)
class KernelFeatures:
    """The sample under one kernel.

    Parameters
    ----------
    kernel : Kernel, MultipleKernels or None
        The kernel, or several; None where rows are their own features.
    z : ndarray or csr_array of shape (m, r)
        The sample in coordinates in which the kernel is an inner product.
    weights : ndarray of shape (m,) or None
        Sample weights.
    new_working_set : callable
        Makes the working set of a start.
    """

    kernel: Kernel | MultipleKernels | None
    z: Any
    weights: Weights
    new_working_set: Callable[[], WorkingSet]


def landmark_features(
    kernel: Kernel,
    engine: Engine,
    sample: Samples,
    basis: np.ndarray,
    weights: Weights,
    whole: bool = False,
) -> KernelFeatures:
    """The sample on landmarks, with its kernel columns cached in memory.

    ``whole`` says that all distinct rows are landmarks: then the method is exact, and
    so is the arithmetic. Rows are then few, and not worth the seconds that the compiled
    rounds take to compile.
    """
    dtype, tolerance = (np.float64, 1e-12) if whole else (np.float32, 1e-6)
    features = cache_features(
        KernelSamples(sample, kernel.against(basis), dtype), "memory"
    )
    make = WorkingSet if whole else cutting_plane.SampleWorkingSet
    vectors = basis.astype(np.float64)
    normalization = nystroem.normalization_of(
        kernel(vectors, vectors), tolerance, dtype
    )
    training_set = TrainingSet(
        engine, features, normalization, weights, hold_labels=True, basis=basis
    )
    return KernelFeatures(
        kernel, _rows(training_set) @ normalization, weights, lambda: make(training_set)
    )


def exact_features(
    kernel: Kernel, engine: Engine, sample: Samples, basis: np.ndarray, weights: Weights
) -> KernelFeatures:
    """The sample with all its rows as the basis: the full kernel matrix in float64."""
    features = cache_features(
        KernelSamples(sample, kernel.against(basis), np.float64), "memory"
    )
    training_set = TrainingSet(
        engine, features, None, weights, hold_labels=True, basis=basis
    )
    gram = _rows(training_set)
    z = gram @ nystroem.normalization_of(gram)
    return KernelFeatures(
        kernel, z, weights, lambda: cutting_plane.ExactWorkingSet(training_set)
    )


def linear_features(
    engine: Engine, sample: Samples, weights: Weights
) -> KernelFeatures:
    """The rows as their own features."""
    training_set = TrainingSet(engine, sample, None, weights, hold_labels=True)
    return KernelFeatures(
        None, _rows(training_set), weights, lambda: WorkingSet(training_set)
    )


def _rows(training_set: TrainingSet) -> Any:
    return as_matrix(training_set.features.block(0, training_set.n_samples)).astype(
        np.float64
    )


# -- starts ----------------------------------------------------------------------------


def starting_labels(
    init: str,
    n_init: int,
    z: Any,
    random_state: np.random.RandomState,
    weights: Weights = None,
    partitions: Sequence[GivenLabels] = (),
) -> Iterator[tuple[Labels, bool]]:
    """Starting labels of a sample.

    Parameters
    ----------
    init : {"mixed", "random", "k-means"}
        "mixed" is a coin flip, the signs of the first kernel principal component, the
        given partitions, the signs of two further components, k-means, and then coin
        flips.
    n_init : int
        Number of starts.
    z : ndarray or csr_array of shape (n, r)
        The sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    partitions : sequence of GivenLabels, default=()
        Partitions found before, such as those of `least_squares_labels`.

    Yields
    ------
    labels : Labels
        Labels -1 or +1.
    warm : bool
        Whether they are one of the given partitions: then the path skips the first C,
        where all starts meet.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.sample_search import starting_labels
    >>> len(list(starting_labels("mixed", 2, np.arange(8.0)[:, None], np.random.RandomState(0))))
    2
    """
    kinds: list[Any] = ["k-means" if init == "k-means" else "coin"] * n_init
    if init == "mixed":
        kinds = ["coin", 0, *partitions, 1, 2, "k-means", *kinds][:n_init]
    directions = (
        nystroem.principal_directions(z, 3, weights)
        if 0 in kinds
        else np.empty((z.shape[0], 0))
    )
    for kind in kinds:
        if isinstance(kind, GivenLabels):
            yield kind, True
        elif kind == "k-means":
            yield _kmeans_labels(z, random_state, weights), False
        elif kind == "coin" or kind >= directions.shape[1]:
            yield coin_flip(z.shape[0], random_state), False
        else:
            yield _signed(directions[:, kind] >= 0, random_state), False


def least_squares_labels(
    z: Any,
    random_state: np.random.RandomState,
    weights: Weights = None,
    least: float = 0.05,
) -> tuple[GivenLabels, GivenLabels]:
    """Two partitions of a sample by least squares: the end of a regularisation path, and a local search.

    Parameters
    ----------
    z : ndarray or csr_array of shape (n, r)
        The sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    least : float, default=0.05
        Least share of a cluster.

    Returns
    -------
    pair of GivenLabels
        Labels -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.sample_search import least_squares_labels
    >>> z = np.r_[np.zeros((5, 1)), np.full((5, 1), 9.0)] + np.arange(10.0)[:, None] / 99
    >>> [abs(labels.y[:5].sum()) for labels in least_squares_labels(z, np.random.RandomState(0))]
    [np.int64(5), np.int64(5)]
    """
    # The leading components where columns are sparse or many.
    narrow = isinstance(z, np.ndarray) and z.shape[1] <= nystroem.MANY_COLUMNS
    rows = z if narrow else nystroem.principal_directions(z, LEADING, weights)
    features = nystroem.principal_features(rows, weights)
    flip = random_labels(z.shape[0], HALVES, random_state)
    if (features.z == features.z[:1]).all():  # all rows are equal under the kernel
        return _signed(flip, random_state), _signed(flip, random_state)
    total_variance = max(
        1.0, features.variances.sum()
    )  # ridges assume kernel values of at most 1
    variances = features.variances / total_variance
    features = replace(
        features, z=features.z / np.sqrt(total_variance), variances=variances
    )
    path = regularization_path(
        features, flip, floor_bounds(features.total, 2, 2 * least)
    )
    searched = _local_search_labels(features, least, random_state)
    return _signed(path, random_state), _signed(searched, random_state)


def _local_search_labels(
    features: nystroem.PrincipalFeatures,
    least: float,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Cluster some rows by local search (the paper's "shaking"), and all by the nearer of the two means."""
    rows = features.z.shape[0]
    weights = features.weights
    weighted = (weights != weights[0]).any()
    chosen = random_state.choice(
        rows, min(SEARCHED_ROWS, rows), weighted, weights / weights.sum()
    )
    ridged = features.z * np.sqrt(features.scales(SEARCH_RIDGE))
    points = ridged[chosen] - ridged[chosen].mean(axis=0)
    config = PartitionConfig(2, n_init=1, min_share=2 * least)
    partition = local_search(
        points @ points.T, config, random_state, features.z[chosen, :LEADING]
    )[0]
    first, second = (
        ridged[chosen[partition.labels == cluster]].mean(axis=0) for cluster in (0, 1)
    )
    return ridged @ (second - first) >= (second + first) @ (second - first) / 2


def _signed(labels: np.ndarray, random_state: np.random.RandomState) -> GivenLabels:
    """Labels 0 and 1 as -1 and +1; a coin flip where there is only one."""
    labels = np.asarray(labels, np.int8)
    if labels.min() == labels.max():
        return coin_flip(labels.shape[0], random_state)
    return GivenLabels(2 * labels - 1)


def _kmeans_labels(
    z: Any, random_state: np.random.RandomState, weights: Weights
) -> GivenLabels:
    from sklearn.cluster import KMeans

    model = KMeans(2, n_init=1, random_state=random_state.randint(2**31 - 1))
    model.fit(with_short_indices(z), sample_weight=weights)
    return GivenLabels(np.where(model.labels_ == 1, 1, -1).astype(np.int8))


# -- the search ------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchConfig:
    """Settings that all fits on the sample share.

    Parameters
    ----------
    path : tuple of float
        Rising values of C; a single value is the form of the papers.
    limits : CCCPLimits
        When rounds stop and which labels they accept.
    seed : int
        Seed of the starts: the same at every bandwidth.
    sample_size : int
        Rows of the sample.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        Form of the threshold.
    balance : float, default=0.0
        l/n.
    eta : float, default=0.01
        Tolerance of the last cutting-plane loop.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starts.
    n_init : int, default=6
        Number of starts.
    separable : bool, default=True
        Whether to reject fits whose margin is 0.
    """

    path: tuple[float, ...]
    limits: CCCPLimits
    seed: int
    sample_size: int
    threshold: Threshold = "adaptive"
    balance: float = 0.0
    eta: float = 0.01
    init: str = "mixed"
    n_init: int = 6
    separable: bool = True

    def objective(self, candidate: KernelFeatures) -> Objective:
        """What is minimised under a kernel."""
        z = candidate.z
        weights = candidate.weights
        total_variance = (
            nystroem.total_variance_of(z, weights) if self.separable else 0.0
        )
        return Objective(self.threshold, self.balance, total_variance)

    def warm_start(
        self,
        number: int,
        labels: np.ndarray,
        working_set: WorkingSet,
        objective: Objective,
        record: Record,
    ) -> CCCPResult | None:
        """Rounds from labels of the sample that least squares found: they need no C near 1."""
        path = tuple(C for C in self.path if C >= WARM_C) or self.path[-1:]
        given = GivenLabels(labels), objective, path, self.eta, self.limits
        return continuation(
            working_set, *given, tag(record, stage="sample", start=number)
        )


def search_config(
    session: FitSession,
    C: float = 10.0,
    continuation: bool = True,
    min_share: float = 0.1,
    max_rounds: int = 30,
    **others: Any,
) -> SearchConfig:
    """The settings of the search on a sample, from parameters of an estimator; the others are as they are."""
    m = session.sample.shape[0]
    path = path_to(C) if continuation else (C,)
    limits = CCCPLimits(max_rounds, 0, max(min_share / 2, min(2.0, m / 4) / m))
    return SearchConfig(path, limits, session.seed(), m, **others)


@dataclass(frozen=True)
class RestartResult:
    """The best start at one bandwidth.

    Parameters
    ----------
    candidate : KernelFeatures
        The sample under this kernel.
    config : SearchConfig
        Settings of the search.
    objective : Objective
        What was minimised.
    working_set : WorkingSet
        The working set at the end.
    state : CCCPResult
        Labels and hyperplane.
    start : int
        Number of the start that won.
    scores : tuple of float
        Score of the objective at C = 2, where the path has it, and at the end.
    leave_one_out : float, default=0.0
        Leave-one-out score; 0 where only one bandwidth was tried.
    """

    candidate: KernelFeatures
    config: SearchConfig
    objective: Objective
    working_set: WorkingSet
    state: CCCPResult
    start: int
    scores: tuple[float, ...]
    leave_one_out: float = 0.0

    @property
    def labels(self) -> np.ndarray:
        """Labels of the sample, of shape (m,)."""
        return self.state.labels.block(None, 0, self.training_set.n_samples)

    @property
    def gamma(self) -> float | None:
        """Gamma of the kernel; None without a kernel, or with several."""
        kernel = self.candidate.kernel
        return float(kernel.gamma) if isinstance(kernel, Kernel) else None

    @property
    def training_set(self) -> TrainingSet:
        """The sample in the features of the hyperplane."""
        return self.state.training_set

    @property
    def score(self) -> float:
        """The criterion of a start: the geometric mean of its scores at C = 2 and at the end.

        At a large C a few outliers can separate two unrelated halves by a wide margin.
        At a small C more rows lie in the margin, and such a partition scores far less.
        """
        return float(
            np.exp(np.mean(np.log(np.maximum(self.scores, np.finfo(float).tiny))))
        )

    def is_better_than(self, other: "RestartResult | None", margin: float) -> bool:
        """Whether it is better than another start by a margin.

        A start that ended at a lower C loses: its labels could not be separated at the
        next.
        """
        if other is None or self.state.solution.C != other.state.solution.C:
            return other is None or self.state.solution.C > other.state.solution.C
        return self.score > other.score * (1 + margin)

    @property
    def relative_norm2(self) -> float:
        """|w|² in units of the total variance of the features."""
        norm2 = self.state.solution.quadratic.norm2
        return norm2 / max(
            self.objective.total_variance, 1e-100
        )  # 0 of rows that are all alike

    @property
    def width(self) -> dict[str, Any]:
        """The entry of its bandwidth in a report."""
        return {
            "gamma": self.gamma,
            "relative_norm": self.relative_norm2,
            "score": self.leave_one_out,
        }

    def random_solution(self, labels: Labels | None = None) -> SubproblemResult:
        """The solution for random labels on the sample at the last C: the baseline of a fit."""
        working_set = self.candidate.new_working_set()
        seed = self.config.seed
        labels = labels or coin_flip(
            working_set.training_set.n_samples, np.random.RandomState(seed)
        )
        return solve_random(working_set, labels, self.objective, self.config.path[-1])


def search_bandwidth(
    candidate: KernelFeatures,
    config: SearchConfig,
    record: Record,
    partitions: Sequence[GivenLabels] = (),
) -> RestartResult | None:
    """Run all starts at the first C, and the distinct ones along the whole path; refine the best.

    Given partitions enter the path at C = 2, and win where they are clearly ahead.
    """
    objective = config.objective(candidate)
    random_state = np.random.RandomState(config.seed)
    record = tag(
        record, gamma=getattr(candidate.kernel, "gamma", np.nan)
    )  # of one kernel alone
    limits = config.limits
    known = (candidate.weights, partitions)
    starts = starting_labels(
        config.init, config.n_init, candidate.z, random_state, *known
    )
    first, early, rest = pieces_of(config.path)
    # The first C would lose a partition by least squares.
    warm_pieces = (), early[-1:], rest if early else rest[-1:]
    best: RestartResult | None = None
    seen = set[
        tuple[int, bytes]
    ]()  # labels at the ends of the pieces; of starts that meet one continues
    for number, (labels, warm) in enumerate(starts):
        working_set = candidate.new_working_set()
        scores = list[float]()
        tagged = tag(record, stage="sample", start=number)
        for piece, path in enumerate(warm_pieces if warm else (first, early, rest)):
            if not path:
                continue
            given = working_set, labels, objective, path, config.eta, limits, tagged
            reached = continuation(*given, passing=piece > 0)
            if reached is None:
                break
            state = reached
            labels = reached.labels
            y = labels.block(None, 0, state.training_set.n_samples)
            met = piece, (y * y[0]).tobytes()
            if met in seen:
                scores.clear()
                break
            seen.add(met)
            if piece > 0:
                scores.append(state.solution.score)
        if scores:
            restart = RestartResult(
                candidate, config, objective, working_set, state, number, tuple(scores)
            )
            if restart.is_better_than(best, WARM_LEAD if warm else TIE):
                best = restart
    return best and _settled(best, tag(record, stage="sample", start=best.start))


def _settled(restart: RestartResult, record: Record) -> RestartResult:
    """Refine the best start until its labels no longer change."""
    config = restart.config
    given = (restart.working_set, restart.state.labels, restart.objective)
    state = continuation(
        *given, (restart.state.solution.C,), config.eta, config.limits, record
    )
    if state is None:
        return restart
    state = replace(
        state, quantile_steps=restart.state.quantile_steps + state.quantile_steps
    )
    return replace(
        restart, state=state, scores=(*restart.scores[:-1], state.solution.score)
    )


def pieces_of(
    path: tuple[float, ...],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """The first C, where many starts meet; those up to 2, where a score is taken; and the others.

    Examples
    --------
    >>> from mmcnb.hinge.sample_search import pieces_of
    >>> pieces_of((1.01, 1.3, 2.0, 3.5))
    ((1.01,), (1.3, 2.0), (3.5,))
    >>> pieces_of((1.01, 1.3, 2.0)), pieces_of((10.0,))
    (((1.01,), (), (1.3, 2.0)), ((), (), (10.0,)))
    """
    first = path[:-1][:1]
    passed = path[1:-1].index(WARM_C) + 1 if WARM_C in path[1:-1] else 0
    return first, path[1 : 1 + passed], path[len(first) + passed :]


def search_sample(
    engine: Engine,
    candidates: Sequence[Callable[[], KernelFeatures]],
    config: SearchConfig,
    record: Record,
) -> list[RestartResult]:
    """Try every bandwidth; the best result comes first.

    Partitions by least squares are made once, at the middle bandwidth, and serve as
    starts at all of them.

    Parameters
    ----------
    engine : Engine
        Its threads share the bandwidths where the sample is a single block.
    candidates : sequence of callable
        Each makes the sample under one kernel.
    config : SearchConfig
        What to try.
    record : callable
        Called with one dict per sweep, in the order of the candidates; ``clock`` is the
        time of the sweep.

    Returns
    -------
    list of RestartResult
        One for each bandwidth at which some start was separable. Partitions below the
        cut come first, by their relative |w|²; then the others, by their leave-one-out
        score and, where that is equal, by |w|².
    """
    in_threads = config.sample_size <= BLOCK_ROWS
    middle = (
        len(candidates) // 2
        if config.init == "mixed" and config.n_init > COLD_STARTS
        else None
    )

    def prepare(number: int, _: Record) -> tuple[KernelFeatures, Sequence[GivenLabels]]:
        sample = candidates[number]()
        if number != middle:
            return sample, ()
        random_state = np.random.RandomState(config.seed)
        return sample, least_squares_labels(
            sample.z, random_state, sample.weights, config.limits.least
        )

    def run_start(sample: KernelFeatures, record: Record) -> RestartResult | None:
        return search_bandwidth(sample, config, record, partitions)

    order = sorted(
        range(len(candidates)), key=lambda number: number != middle
    )  # the longest work first
    prepared = dict(
        zip(
            order,
            run_starts(engine, prepare, order, in_threads=in_threads),
            strict=True,
        )
    )
    samples = [prepared[i][0] for i in range(len(candidates))]
    partitions = prepared[order[0]][1]
    found = run_starts(engine, run_start, samples, record, in_threads)
    restarts = [restart for restart in found if restart is not None]
    if len(restarts) < 2:
        return restarts
    labelings = np.array([restart.labels for restart in restarts])
    each = engine.each if in_threads else map
    scores = leave_one_out_scores(
        labelings, [one.z for one in samples], samples[0].weights, each
    )
    pairs = zip(restarts, scores.tolist(), strict=True)
    return sorted(
        (replace(restart, leave_one_out=score) for restart, score in pairs), key=_rank
    )


def _rank(restart: RestartResult) -> tuple[float, float]:
    # Bandwidths that part the rows alike have one score but for its rounding, which
    # must not choose.
    score = round(restart.leave_one_out, 9)
    return 0.0 if score <= CLEAN_SCORE else score, -round(restart.relative_norm2, 9)


def solve_random(
    working_set: WorkingSet, labels: Labels, objective: Objective, C: float
) -> SubproblemResult:
    """The solution for random labels at one C, from a limited number of cutting planes."""
    working_set.max_planes = min(working_set.max_planes, working_set.random_planes)
    return working_set.cutting_plane(
        labels, objective, C, LOOSE_ETA, ignore, SweepBudget()
    )
