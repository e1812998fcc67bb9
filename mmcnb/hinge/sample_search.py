"""Search for the best start and bandwidth, on a sample that fits in memory.

At each bandwidth, the start with the best score is selected. Then, among the bandwidths
with a leave-one-out score of at most `CLEAN_SCORE`, the bandwidth with the largest |w|²
relative to the total variance is selected. If all leave-one-out scores are larger, the
bandwidth with the lowest leave-one-out score is selected.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, ignore, run_starts, tag
from mmcnb.features import nystroem
from mmcnb.features.bandwidth import leave_one_out_scores
from mmcnb.features.kernel import Kernel, KernelSamples, MultipleKernels
from mmcnb.features.model import Model
from mmcnb.features.rules import GivenLabels, Labels, coin_flip
from mmcnb.hinge import cutting_plane
from mmcnb.hinge.cccp import CCCPLimits, CCCPResult, continuation, path_to
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.needs import larger_sample
from mmcnb.hinge.qp import Threshold
from mmcnb.hinge.starts import Start, least_squares_labels, starting_labels
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples import BLOCK_ROWS, Samples
from mmcnb.samples.derived import Scaling, cache_features
from mmcnb.samples.matrix import Matrix, Weights

# Scores with a relative difference of at most TIE are treated as equal, and the earlier
# start is selected.
TIE = 1e-6
LOOSE_ETA = 0.1  # tolerance for random labels, where a rough solution is enough
COLD_STARTS = 2  # number of "mixed" starts before the warm starts
WARM_STARTS = 2  # number of "mixed" starts that are least-squares partitions
WARM_LEAD = 0.025  # relative lead in the score that a warm start needs to be selected
LATE_STARTS = 2  # late starts: the partitions with the lowest leave-one-out scores
# Relative lead in the score at the last C that a late start needs to be selected. On
# rings and moons with additional noise columns, the true labels have 2.5 to 9 times the
# score of other labels. On one table, however, wrong labels have 3 times the score of
# the true labels.
LATE_LEAD = 1.0
WARM_C = 2.0  # C at which warm starts enter the path; random labels need C near 1
CLEAN_SCORE = 0.06  # maximum leave-one-out score of a reliable partition
# By default, rounds on more rows than the sample stop when at most this share of the
# labels changes. It was chosen by `python -m benchmarks engine`.
STILL_SHARE = 5e-4
# A start with other labels is a rival of the best start if its score is at least this
# fraction of the best score. On rings and moons with additional noise columns, the true
# labels have at least 2.5 times the score of wrong labels.
RIVAL_SCORE = 0.7
SAME_PARTITION = 0.8  # partitions with a lower mean Jaccard index are different
FINAL_ROUNDS = 5  # maximum number of rounds on all rows if a larger sample is used


@dataclass(frozen=True)
class KernelFeatures:
    """The sample under one kernel, or under several kernels together.

    Parameters
    ----------
    kernel : Kernel, MultipleKernels or None
        The kernel or kernels. None if the rows are their own features.
    z : ndarray or csr_array of shape (m, r)
        The sample in coordinates in which the kernel is the inner product.
    weights : ndarray of shape (m,) or None
        Sample weights; if None, all weights are 1.
    new_working_set : callable
        Function without arguments that returns a new working set for a start.
    """

    kernel: Kernel | MultipleKernels | None
    z: Matrix
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
    """Map the sample to kernel values against landmarks, and cache them in memory.

    ``whole`` says whether all distinct rows are landmarks. If they are, the method is
    exact, so kernel values are float64. The sample is then also small, so the compiled
    loop would save less time than its compilation takes.
    """
    dtype: type[np.floating] = np.float32
    tolerance = 1e-6
    make: type[WorkingSet] = cutting_plane.SampleWorkingSet
    if whole:
        dtype = np.float64
        tolerance = 1e-12
        make = WorkingSet
    features = cache_features(
        KernelSamples(sample, kernel.against(basis), dtype), "memory"
    )
    vectors = basis.astype(np.float64)
    gram = kernel(vectors, vectors)
    normalization = nystroem.normalization_of(gram, tolerance, dtype)
    training_set = TrainingSet(
        engine, features, normalization, weights, hold_labels=True, basis=basis
    )
    z = training_set.matrix() @ normalization
    return KernelFeatures(kernel, z, weights, lambda: make(training_set))


def exact_features(
    kernel: Kernel, engine: Engine, sample: Samples, basis: np.ndarray, weights: Weights
) -> KernelFeatures:
    """Map the sample to float64 kernel values against a basis of all its rows."""
    features = cache_features(
        KernelSamples(sample, kernel.against(basis), np.float64), "memory"
    )
    training_set = TrainingSet(
        engine, features, None, weights, hold_labels=True, basis=basis
    )
    gram = training_set.matrix()
    z = gram @ nystroem.normalization_of(gram)
    return KernelFeatures(
        kernel, z, weights, lambda: cutting_plane.ExactWorkingSet(training_set)
    )


def linear_features(
    engine: Engine, sample: Samples, weights: Weights
) -> KernelFeatures:
    """Return the sample with its rows as their own features."""
    training_set = TrainingSet(engine, sample, None, weights, hold_labels=True)
    z = training_set.matrix()
    return KernelFeatures(None, z, weights, lambda: WorkingSet(training_set))


def draw_rows(
    rows: Matrix,
    weights: Weights,
    size: int,
    random_state: np.random.RandomState,
) -> tuple[Matrix, Weights]:
    """Draw at most ``size`` random rows and their weights, in their original order."""
    if rows.shape[0] <= size:
        return rows, weights
    drawn = np.sort(random_state.permutation(rows.shape[0])[:size])
    return rows[drawn], None if weights is None else weights[drawn]


# -- the search ------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchConfig:
    """Settings of the search on the sample, shared by all starts and bandwidths.

    Parameters
    ----------
    path : tuple of float
        Increasing values of C. The papers use a single value.
    limits : CCCPLimits
        Stopping criteria of the rounds, and the minimum cluster size.
    seed : int
        Seed of the starts; every bandwidth uses the same seed.
    sample_size : int
        Number of rows in the sample.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        Whether rho is a variable or fixed at 1.
    balance : float, default=0.0
        Bound l/n on the absolute value of the mean decision value, in units of rho.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starting labels, as in `starting_labels`.
    n_init : int, default=6
        Number of starts.
    separable : bool, default=True
        Whether to reject solutions with a margin of 0.
    tol : float, default=5e-4
        Rounds on more rows than the sample stop when at most this share of the labels
        changes.
    n_searches : int, default=0
        Number of additional local searches by least squares. If there are any, the two
        partitions with the lowest leave-one-out scores are also late starts, which
        enter the path at its last C. Late starts are needed with several kernels: at C
        = 2, a smooth kernel gets all the weight, and the rounds move away from the true
        labels of curved clusters.
    """

    path: tuple[float, ...]
    limits: CCCPLimits
    seed: int
    sample_size: int
    threshold: Threshold = "adaptive"
    balance: float = 0.0
    init: str = "mixed"
    n_init: int = 6
    separable: bool = True
    tol: float = STILL_SHARE
    n_searches: int = 0

    def objective(self, candidate: KernelFeatures) -> Objective:
        """Return the form of the objective for the sample under a kernel."""
        total_variance = 0.0
        if self.separable:
            z = candidate.z
            total_variance = nystroem.total_variance_of(z, candidate.weights)
        return Objective(self.threshold, self.balance, total_variance)

    def falling(self, objective: Objective) -> list[tuple[float, Objective]]:
        """Return the values of C in decreasing order, each paired with an objective.

        The list ends with a second entry for the smallest C, whose objective accepts
        solutions that are otherwise degenerate.
        """
        forms = [(C, objective) for C in reversed(self.path)]
        forms.append((self.path[0], replace(objective, total_variance=0.0)))
        return forms

    def warm_start(
        self,
        number: int,
        labels: np.ndarray,
        working_set: WorkingSet,
        objective: Objective,
        record: Record,
    ) -> CCCPResult | None:
        """Run rounds at each C >= 2, starting from labels found by least squares."""
        path = [C for C in self.path if C >= WARM_C] or self.path[-1:]
        return continuation(
            working_set,
            GivenLabels(labels),
            objective,
            path,
            self.limits,
            tag(record, stage="sample", start=number),
        )


def search_config(
    n_rows: int,
    seed: int,
    C: float = 10.0,
    continuation: bool = True,
    min_share: float = 0.1,
    max_rounds: int = 30,
    eta: float = 0.01,
    **fields: Any,
) -> SearchConfig:
    """Convert parameters of an estimator to the settings of the search.

    ``fields`` are passed to `SearchConfig` unchanged.
    """
    least_rows = min(2.0, n_rows / 4)
    least = max(min_share / 2, least_rows / n_rows)
    limits = CCCPLimits(max_rounds=max_rounds, least=least, eta=eta)
    path = path_to(C) if continuation else (C,)
    return SearchConfig(path, limits, seed, n_rows, **fields)


@dataclass(frozen=True)
class RestartResult:
    """Result of one start, or of the best start at one bandwidth.

    Parameters
    ----------
    candidate : KernelFeatures
        The sample under the kernel of this result.
    config : SearchConfig
        Settings of the search.
    objective : Objective
        Form of the objective that was minimised.
    working_set : WorkingSet
        Working set at the end of the rounds.
    state : CCCPResult
        Labels and hyperplane at the end of the rounds.
    start : int
        Zero-based index of the start.
    scores : tuple of float
        Scores of the solutions at C = 2, if the path contains this value, and at the
        last C.
    leave_one_out : float, default=0.0
        Leave-one-out score of the labels. 0 if it was not computed because there was
        only one bandwidth to select.
    rivals : int, default=0
        Number of other starts with a similar score but different labels.
    """

    candidate: KernelFeatures
    config: SearchConfig
    objective: Objective
    working_set: WorkingSet
    state: CCCPResult
    start: int
    scores: tuple[float, ...]
    leave_one_out: float = 0.0
    rivals: int = 0

    @property
    def labels(self) -> np.ndarray:
        """Labels of the rows in the training set, of shape (m,)."""
        return self.state.labels.block(None, 0, self.training_set.n_samples)

    @property
    def gamma(self) -> float | None:
        """Gamma of the kernel, or None if there are several kernels or no kernel."""
        kernel = self.candidate.kernel
        return float(kernel.gamma) if isinstance(kernel, Kernel) else None

    @property
    def training_set(self) -> TrainingSet:
        """Training set of the last rounds, with the features of the hyperplane."""
        return self.state.training_set

    @property
    def score(self) -> float:
        """Geometric mean of ``scores``, by which starts are compared.

        At a large C, an arbitrary partition that is determined by a few outliers may
        have a wide margin. At a small C, more rows are inside the margin, and such a
        partition has a much lower score.
        """
        positive = np.maximum(self.scores, np.finfo(float).tiny)
        return float(np.exp(np.mean(np.log(positive))))

    def is_better_than(self, other: "RestartResult | None", margin: float) -> bool:
        """Return whether the score exceeds another start's score by a relative margin.

        A start that ended at a lower C is always worse, because its labels could not be
        separated at the next C.
        """
        if other is None:
            return True
        C = self.state.solution.C
        C_of_other = other.state.solution.C
        if C != C_of_other:
            return C > C_of_other
        return self.score > other.score * (1 + margin)

    def is_far_ahead_of(self, other: "RestartResult | None") -> bool:
        """Return whether the last score is ahead of another start's by `LATE_LEAD`.

        This is True if ``other`` is None, and False if the starts ended at different
        values of C.
        """
        if other is None:
            return True
        if self.state.solution.C != other.state.solution.C:
            return False
        return self.scores[-1] > other.scores[-1] * (1 + LATE_LEAD)

    def is_rival_of(self, best: "RestartResult") -> bool:
        """Return whether the score is close to the best score, but the labels differ.

        A start that ended at a lower C is not a rival.
        """
        if self.state.solution.C != best.state.solution.C:
            return False
        if self.scores[-1] < RIVAL_SCORE * best.scores[-1]:
            return False
        weights = self.candidate.weights
        return mean_jaccard(self.labels, best.labels, weights) < SAME_PARTITION

    def warnings_of_rivals(self) -> list[str]:
        """Return a list with a warning if there are rivals, or an empty list."""
        if self.rivals == 0:
            return []
        starts = "start has" if self.rivals == 1 else "starts have"
        return [
            f"{self.rivals} {starts} other labels but nearly the same objective, so "
            "another seed may give other labels; raise n_init."
        ]

    @property
    def relative_norm2(self) -> float:
        """Squared norm |w|² in units of the total variance of the features."""
        norm2 = self.state.solution.quadratic.norm2
        # The total variance is 0 if all rows are equal.
        return norm2 / max(self.objective.total_variance, 1e-100)

    def model(self, scaling: Scaling | None) -> Model:
        """Return a model with this hyperplane that scales rows by ``scaling``."""
        training_set = self.training_set
        return Model(
            rule=self.state.boundary,
            kernel=self.candidate.kernel,
            basis=training_set.basis,
            scaling=scaling,
            feature_dtype=training_set.features.dtype.name,
            kernel_weights=self.state.solution.quadratic.kernel_weights,
        )

    def random_solution(self, labels: Labels | None = None) -> SubproblemResult:
        """Solve the subproblem for random labels at the last C, as a baseline."""
        working_set = self.candidate.new_working_set()
        if labels is None:
            random_state = np.random.RandomState(self.config.seed)
            labels = coin_flip(working_set.training_set.n_samples, random_state)
        return solve_random(working_set, labels, self.objective, self.config.path[-1])

    # -- refinement on more rows -------------------------------------------------------

    def refined_in_memory(
        self, features: Samples, weights: Weights, record: Record, stage: str
    ) -> "RestartResult":
        """Refine labels and planes on a larger set of rows that fits in memory."""
        training_set = self.training_set.over(features, weights, hold_labels=True)
        working_set = self.working_set.over(training_set)
        labels = training_set.labels_of(self.state.boundary)
        state = self.last_steps(working_set, labels, record, stage)
        return replace(self, working_set=working_set, state=state)

    def last_steps(
        self,
        working_set: WorkingSet,
        labels: Labels,
        record: Record,
        stage: str = "all rows",
        max_sweeps: int | None = None,
    ) -> CCCPResult:
        """Run rounds at the last C on more rows than the sample.

        If the labels cannot be separated at the last C, lower values of C are tried.
        """
        training_set = working_set.training_set
        limits = self.config.limits
        max_rounds = limits.max_rounds
        # After rounds on a larger sample, few labels still change. Limit the rounds on
        # all rows, unless the user has requested more rounds by lowering tol.
        if larger_sample(training_set.n_samples) and self.config.tol >= STILL_SHARE:
            max_rounds = min(FINAL_ROUNDS, max_rounds)
        still = self.config.tol * training_set.total_weight
        limits = replace(limits, changed=still, max_rounds=max_rounds)
        record = tag(record, stage=stage, gamma=self.gamma)
        budget = SweepBudget(max_sweeps)
        for C, objective in self.config.falling(self.objective):
            state = continuation(
                working_set, labels, objective, (C,), limits, record, budget
            )
            if state is not None:
                break
        assert state is not None  # the last objective accepts any labels
        return state


def search_sample(
    engine: Engine,
    candidates: Sequence[Callable[[], KernelFeatures]],
    config: SearchConfig,
    record: Record,
) -> list[RestartResult]:
    """Search at each bandwidth, and return the results, best first.

    Least-squares partitions are computed once, at the middle bandwidth, and are used as
    starts at all bandwidths.

    Parameters
    ----------
    engine : Engine
        Engine whose threads search several bandwidths in parallel, if the sample is a
        single block.
    candidates : sequence of callable
        For each bandwidth, a function that returns the sample under its kernel.
    config : SearchConfig
        Settings of the search.
    record : callable
        Function that is called with one dict per sweep, in the order of the candidates.
        In this dict, ``clock`` is the time of the sweep.

    Returns
    -------
    list of RestartResult
        One result for each bandwidth at which the labels of at least one start were
        separable. Results with a leave-one-out score of at most `CLEAN_SCORE` come
        first, sorted by decreasing relative |w|². All other results follow, sorted by
        increasing leave-one-out score and, for equal scores, by decreasing relative
        |w|². If no start was separable at any bandwidth, the list has one result, whose
        margin may be 0.
    """
    restarts = _search_bandwidths(engine, candidates, config, record)
    if restarts:
        return restarts
    # At no bandwidth could the labels of a start be separated, so accept a solution
    # without a margin. The report will state that no clusters were found.
    accepting = replace(config, separable=False)
    return _search_bandwidths(engine, candidates[:1], accepting, record)


def _search_bandwidths(
    engine: Engine,
    candidates: Sequence[Callable[[], KernelFeatures]],
    config: SearchConfig,
    record: Record,
) -> list[RestartResult]:
    in_threads = config.sample_size <= BLOCK_ROWS
    middle = None
    if config.init == "mixed" and config.n_init > COLD_STARTS:
        middle = len(candidates) // 2

    def prepare(number: int, _: Record) -> tuple[KernelFeatures, list[GivenLabels]]:
        sample = candidates[number]()
        if number != middle:
            return sample, []
        random_state = np.random.RandomState(config.seed)
        least = config.limits.least
        return sample, least_squares_labels(
            sample.z, random_state, sample.weights, least, config.n_searches
        )

    def run(sample: KernelFeatures, record: Record) -> RestartResult | None:
        return search_bandwidth(sample, config, record, partitions)

    numbers = range(len(candidates))
    # Start with the middle bandwidth. It takes longest, because the least-squares
    # partitions are computed there.
    order = sorted(numbers, key=lambda number: number != middle)
    prepared = run_starts(engine, prepare, order, in_threads=in_threads)
    partitions = prepared[0][1]
    samples = [prepared[order.index(number)][0] for number in numbers]
    results = run_starts(engine, run, samples, record, in_threads)
    restarts = [restart for restart in results if restart is not None]
    if len(restarts) < 2:
        return restarts
    scores = leave_one_out_scores(
        np.array([restart.labels for restart in restarts]),
        [sample.z for sample in samples],
        samples[0].weights,
        engine.each if in_threads else map,
    )
    scored = [
        replace(restart, leave_one_out=score)
        for restart, score in zip(restarts, scores.tolist(), strict=True)
    ]
    return sorted(scored, key=_rank)


def cleanest(
    partitions: Sequence[GivenLabels], sample: KernelFeatures
) -> list[GivenLabels]:
    """Return the two partitions with the lowest leave-one-out scores."""
    scores = leave_one_out_scores(
        np.array([labels.y for labels in partitions]),
        [sample.z],
        sample.weights,
    )
    order = np.argsort(scores.round(9), kind="stable")
    return [partitions[number] for number in order[:LATE_STARTS]]


def _rank(restart: RestartResult) -> tuple[float, float]:
    # Bandwidths with the same partition have equal scores, up to rounding. Round the
    # scores, so that the order does not depend on rounding errors.
    score = round(restart.leave_one_out, 9)
    if score <= CLEAN_SCORE:
        score = 0.0
    return score, -round(restart.relative_norm2, 9)


# -- one bandwidth ---------------------------------------------------------------------


class Pieces(NamedTuple):
    """Path of C, divided into three parts.

    ``first`` contains the first C, after which many starts have the same labels.
    ``early`` contains the next values up to C = 2, and ``rest`` contains all other
    values. Scores are computed at the end of ``early`` and at the end of ``rest``.
    """

    first: tuple[float, ...]
    early: tuple[float, ...]
    rest: tuple[float, ...]

    @property
    def warm(self) -> "Pieces":
        """Path of warm starts.

        It begins later than the path of other starts, so that the labels of warm starts
        are preserved.
        """
        if self.early:
            return Pieces((), self.early[-1:], self.rest)
        return Pieces((), (), self.rest[-1:])


def pieces_of(path: tuple[float, ...]) -> Pieces:
    """Split a path of values of C after its first C and after C = 2.

    Examples
    --------
    >>> from mmcnb.hinge.sample_search import pieces_of
    >>> pieces_of((1.01, 1.3, 2.0, 3.5))
    Pieces(first=(1.01,), early=(1.3, 2.0), rest=(3.5,))
    >>> pieces_of((1.01, 1.3, 2.0)).rest, pieces_of((10.0,)).rest
    ((1.3, 2.0), (10.0,))
    """
    first = path[:-1][:1]
    passed = path[1:-1].index(WARM_C) + 1 if WARM_C in path[1:-1] else 0
    return Pieces(first, path[1 : 1 + passed], path[len(first) + passed :])


def search_bandwidth(
    candidate: KernelFeatures,
    config: SearchConfig,
    record: Record,
    partitions: Sequence[GivenLabels] = (),
) -> RestartResult | None:
    """Run the starts under one kernel, and refine the best start.

    Most starts run at the first C, and continue along the path only if their labels
    then differ from the labels of all earlier starts. The first two ``partitions`` are
    warm starts: they enter the path at C = 2, and need a relative lead of `WARM_LEAD`
    to be selected. If there are more partitions, the two with the lowest leave-one-out
    scores are also late starts: they enter the path at the last C, and need a relative
    lead of `LATE_LEAD`.
    """
    late: list[GivenLabels] = []
    if len(partitions) > WARM_STARTS:
        late = cleanest(partitions, candidate)
    random_state = np.random.RandomState(config.seed)
    starts = starting_labels(
        config.init,
        config.n_init,
        candidate.z,
        random_state,
        candidate.weights,
        partitions[:WARM_STARTS],
    )
    gamma = getattr(candidate.kernel, "gamma", np.nan)  # NaN for several kernels
    record = tag(record, gamma=gamma)
    objective = config.objective(candidate)
    best: RestartResult | None = None
    ended: list[RestartResult] = []
    reached = set[tuple[int, bytes]]()
    late_starts = [Start(labels, is_late=True) for labels in late]
    for number, start in enumerate([*starts, *late_starts]):
        tagged = tag(record, stage="sample", start=number)
        restart = _run_start(
            candidate, config, objective, start, number, reached, tagged
        )
        if restart is None:
            continue
        ended.append(restart)
        if start.is_late:
            is_better = restart.is_far_ahead_of(best)
        else:
            lead = WARM_LEAD if start.is_warm else TIE
            is_better = restart.is_better_than(best, lead)
        if is_better:
            best = restart
    if best is None:
        return None
    best = replace(best, rivals=count_rivals(best, ended))
    return _settled(best, tag(record, stage="sample", start=best.start))


def _run_start(
    candidate: KernelFeatures,
    config: SearchConfig,
    objective: Objective,
    start: Start,
    number: int,
    reached: set[tuple[int, bytes]],
    record: Record,
) -> RestartResult | None:
    """Run one start; return None if it fails or repeats an earlier start.

    ``reached`` contains the labels, up to their sign, that earlier starts had at the
    end of each part of the path. The labels of this start are added to it.
    """
    working_set = candidate.new_working_set()
    labels: Labels = start.labels
    pieces = pieces_of(config.path)
    if start.is_warm:
        pieces = pieces.warm
    if start.is_late:
        pieces = Pieces((), (), config.path[-1:])
    scores = list[float]()
    for piece, path in enumerate(pieces):
        if not path:
            continue
        limits = replace(config.limits, settles=piece == 0)
        end = continuation(working_set, labels, objective, path, limits, record)
        if end is None:
            break
        state = end
        labels = state.labels
        y = labels.block(None, 0, state.training_set.n_samples)
        place = (piece, (y * y[0]).tobytes())
        if place in reached:
            return None
        reached.add(place)
        if piece > 0:
            scores.append(state.solution.score)
    if not scores:
        return None
    return RestartResult(
        candidate=candidate,
        config=config,
        objective=objective,
        working_set=working_set,
        state=state,
        start=number,
        scores=tuple(scores),
    )


def count_rivals(best: RestartResult, restarts: Sequence[RestartResult]) -> int:
    """Return the number of starts that are rivals of the best start."""
    return sum(restart.is_rival_of(best) for restart in restarts)


def mean_jaccard(labels: np.ndarray, others: np.ndarray, weights: Weights) -> float:
    """Return the mean Jaccard index between the clusters of two labellings.

    Each cluster of ``labels`` is compared with the most similar cluster of ``others``.
    Unlike the share of equal labels, the mean is small for unrelated partitions,
    whatever the cluster sizes are.

    Parameters
    ----------
    labels, others : ndarray of shape (m,)
        Two labellings of the same rows.
    weights : ndarray of shape (m,) or None
        Sample weights; if None, all weights are 1.

    Returns
    -------
    float
        Mean Jaccard index, between 0 and 1; 1 if the partitions are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.sample_search import mean_jaccard
    >>> mean_jaccard(np.array([-1, -1, 1, 1]), np.array([1, 1, -1, -1]), None)
    1.0
    >>> round(mean_jaccard(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), None), 3)
    0.333
    """
    names, rows = np.unique(labels, return_inverse=True)
    names_of_others, columns = np.unique(others, return_inverse=True)
    both = np.zeros((len(names), len(names_of_others)))
    np.add.at(both, (rows, columns), 1.0 if weights is None else weights)
    either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
    return float((both / either).max(axis=1).mean())


def _settled(restart: RestartResult, record: Record) -> RestartResult:
    """Refine the best start until its labels no longer change."""
    before = restart.state
    state = continuation(
        restart.working_set,
        before.labels,
        restart.objective,
        (before.solution.C,),
        restart.config.limits,
        record,
    )
    if state is None:
        return restart
    quantile_steps = before.quantile_steps + state.quantile_steps
    state = replace(state, quantile_steps=quantile_steps)
    scores = (*restart.scores[:-1], state.solution.score)
    return replace(restart, state=state, scores=scores)


def solve_random(
    working_set: WorkingSet, labels: Labels, objective: Objective, C: float
) -> SubproblemResult:
    """Solve the subproblem for random labels at one C.

    The maximum number of planes is reduced to ``working_set.random_planes``.
    """
    working_set.max_planes = min(working_set.max_planes, working_set.random_planes)
    return working_set.cutting_plane(
        labels, objective, C, LOOSE_ETA, ignore, SweepBudget()
    )
