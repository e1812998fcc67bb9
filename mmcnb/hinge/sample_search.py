"""The coarse search: starts and kernel widths tried on a sample that fits in memory.

Restarts cost no reads of the store. Within a width the best objective wins. Across widths, among those
whose division is clean by its cross-kernel leave-one-out score, the largest |w|² in units of the spread
wins; where none is clean, the lowest score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, gathered
from mmcnb.features.bandwidth import leave_one_out_scores
from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.multiple_kernels import MultipleKernels
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.principal import total_variance_of
from mmcnb.features.rules import GivenLabels, Labels, coin_flip, signs
from mmcnb.hinge.cccp import CCCPLimits, CCCPResult, continuation
from mmcnb.hinge.cutting_plane import Objective, SubproblemResult, SweepBudget, cutting_plane
from mmcnb.hinge.growing import GrowingWorkingSet, Rows
from mmcnb.hinge.starts import least_squares_labels, starting_labels
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.working_set import ExactWorkingSet, FixedBasisWorkingSet, WorkingSet
from mmcnb.samples import BLOCK_ROWS, Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import as_matrix

TIE = 1e-6
RANDOM_PLANES, LOOSE_ETA = 200, 0.1
RANDOM_PLANES_OF_SEVERAL = 50  # kernels: a cone programme costs many times a quadratic one
COLD_STARTS = 2  # of mixed starts, before two divisions by least squares
WARM_GAIN = 0.025  # of |w|²: what least squares found has to be clearly ahead, for less tells nothing
WARM_C = 2.0  # where a start that is a division already enters the path
CLEAN_SCORE = 0.06  # leave-one-out score up to which a division counts as real


@dataclass(frozen=True)
class SearchConfig:
    """What every fit on the sample shares.

    Parameters
    ----------
    threshold : {"adaptive", "fixed"}
        Form of the threshold.
    balance : float
        l/n.
    path : tuple of float
        Rising values of C; one value is the papers' form.
    eta : float
        Tolerance of the last cutting-plane loop.
    limits : Rounds
        When rounds stop and which labels they accept.
    init : str
        Kind of starts.
    n_init : int
        Number of starts.
    seed : int
        Seed of the starts: the same at every width.
    sample_size : int
        Rows of the sample.
    """

    threshold: Any
    balance: float
    path: tuple[float, ...]
    eta: float
    limits: CCCPLimits
    init: str
    n_init: int
    seed: int
    sample_size: int


@dataclass(frozen=True)
class KernelFeatures:
    """The sample under one kernel.

    Parameters
    ----------
    kernel : Kernel, KernelStack or None
        The kernel, or several; None where rows are their own features.
    z : ndarray or csr_array of shape (m, r)
        The sample in coordinates in which the kernel is an inner product.
    weights : ndarray of shape (m,) or None
        Sample weights.
    new_planes : callable
        Makes the working set of a start.
    """

    kernel: Kernel | MultipleKernels | None
    z: Any
    weights: np.ndarray | None
    new_planes: Callable[[], WorkingSet]


@dataclass(frozen=True)
class RestartResult:
    """The best start at one width.

    Parameters
    ----------
    candidate : Candidate
        The sample under this kernel.
    objective : Objective
        What was minimised.
    planes : Planes
        The working set at the end.
    state : State
        Labels and hyperplane.
    labels : ndarray of shape (m,), int8
        Labels of the sample.
    start : int
        Number of the start that won.
    gains : tuple of float
        How good it was at C = 2, where the path passes it, and at the end.
    score : float
        Leave-one-out score; 0 where only one width was tried.
    """

    candidate: KernelFeatures
    objective: Objective
    planes: WorkingSet
    state: CCCPResult
    labels: np.ndarray
    start: int
    gains: tuple[float, ...]
    score: float = 0.0

    @property
    def kernel(self) -> Kernel | MultipleKernels | None:
        """The kernel of the candidate."""
        return self.candidate.kernel

    @property
    def gamma(self) -> float | None:
        """Width of the kernel; None where there is none, or several kernels."""
        return float(self.kernel.gamma) if isinstance(self.kernel, Kernel) else None

    @property
    def problem(self) -> TrainingSet:
        """The sample in the features of the hyperplane."""
        return self.state.problem

    @property
    def gain(self) -> float:
        """What a start is judged by: |w|² at C = 2 and at the end, their geometric mean.

        A few rows far from all others can part two halves that have little to do with them by a wide margin
        at a large C; at a small one, where more rows lie in the margin, such a division is far behind.
        """
        return float(np.exp(np.mean(np.log(np.maximum(self.gains, np.finfo(float).tiny)))))

    def is_better_than(self, other: "RestartResult | None", margin: float) -> bool:
        """Whether it is better than another start by a margin; one that ended at a lower C has lost, for its
        labels could not be separated at the next.
        """
        if other is None or self.state.solution.C != other.state.solution.C:
            return other is None or self.state.solution.C > other.state.solution.C
        return self.gain > other.gain * (1 + margin)

    @property
    def norm2(self) -> float:
        """|w|² of the last solution."""
        return self.state.solution.quadratic.norm2

    @property
    def relative_norm2(self) -> float:
        """|w|² in units of the spread of the features."""
        return self.norm2 / max(self.objective.total_variance, np.finfo(float).tiny)


def landmark_features(
    engine: Engine,
    sample: Samples,
    kernel: Kernel,
    basis: np.ndarray,
    weights: np.ndarray | None,
    whole: bool = False,
) -> KernelFeatures:
    """The sample on landmarks, its kernel columns held in memory.

    ``whole`` says that every different row is a landmark: then the method is exact, and so are its numbers.
    """
    dtype, tolerance = (np.float64, 1e-12) if whole else (np.float32, 1e-6)
    features = cache_features(KernelSamples(sample, kernel.against(basis), dtype), "memory")
    normalization = normalization_of(kernel(basis.astype(np.float64), basis.astype(np.float64)), tolerance)
    problem = TrainingSet(engine, features, normalization, weights, hold_labels=True, basis=basis)
    return KernelFeatures(
        kernel, _rows(problem) @ normalization, weights, lambda: FixedBasisWorkingSet(problem)
    )


def growing_features(
    engine: Engine,
    sample: Samples,
    kernel: Kernel,
    basis: np.ndarray,
    weights: np.ndarray | None,
    planes: type[GrowingWorkingSet],
    seed: int,
) -> KernelFeatures:
    """The sample with a basis that grows with the planes; landmarks serve its starts alone."""
    z = landmark_features(engine, sample, kernel, basis, weights).z
    rows = Rows(engine, sample, kernel, weights, seed)
    return KernelFeatures(kernel, z, weights, lambda: planes(rows))


def exact_features(
    engine: Engine, sample: Samples, kernel: Kernel, basis: np.ndarray, weights: np.ndarray | None
) -> KernelFeatures:
    """The sample with all its rows as the basis: the whole kernel matrix in float64."""
    features = cache_features(KernelSamples(sample, kernel.against(basis), np.float64), "memory")
    problem = TrainingSet(engine, features, None, weights, hold_labels=True, basis=basis)
    gram = _rows(problem)
    return KernelFeatures(kernel, gram @ normalization_of(gram), weights, lambda: ExactWorkingSet(problem))


def linear_features(engine: Engine, sample: Samples, weights: np.ndarray | None) -> KernelFeatures:
    """The rows as their own features."""
    problem = TrainingSet(engine, sample, None, weights, hold_labels=True)
    return KernelFeatures(None, _rows(problem), weights, lambda: FixedBasisWorkingSet(problem))


def _rows(problem: TrainingSet) -> Any:
    return as_matrix(problem.features.block(0, problem.n_samples)).astype(np.float64)


def search_bandwidth(
    candidate: KernelFeatures,
    search: SearchConfig,
    record: Record,
    accept_degenerate: bool = False,
    divisions: Sequence[GivenLabels] = (),
) -> RestartResult | None:
    """All starts at the first C, then the distinct ones through the whole path; the best wins, and its labels
    come to stand still.

    Given divisions go through the path from C = 2, and win where they are clearly ahead.
    """
    total_variance = 0.0 if accept_degenerate else total_variance_of(candidate.z, candidate.weights)
    objective = Objective(search.threshold, search.balance, total_variance)
    random_state = np.random.RandomState(search.seed)
    limits, known = search.limits, (candidate.weights, divisions)
    starts = starting_labels(search.init, search.n_init, candidate.z, random_state, *known)
    pieces = pieces_of(search.path)
    best: RestartResult | None = None
    seen: set[tuple[int, bytes]] = set()  # labels at the ends of the pieces: starts that meet go on as one
    for number, (labels, warm) in enumerate(starts):
        planes, gains = candidate.new_planes(), list[float]()
        tag = _tag(record, number, candidate.kernel)
        for piece, path in enumerate(_of_division(pieces) if warm else pieces):
            if not path:
                continue
            reached = continuation(
                planes, labels, objective, path, search.eta, limits, tag, passing=piece > 0
            )
            if reached is None:
                break
            state = reached
            labels = GivenLabels(signs(state.problem.decide(state.boundary)))
            met = piece, (labels.y * labels.y[0]).tobytes()
            if met in seen:
                gains.clear()
                break
            seen.add(met)
            if piece > 0:
                gains.append(objective.gain(state.solution))
        if gains:
            trial = RestartResult(candidate, objective, planes, state, labels.y, number, tuple(gains))
            if trial.is_better_than(best, WARM_GAIN if warm else TIE):
                best = trial
    return best and _settled(best, search, _tag(record, best.start, candidate.kernel))


def _settled(trial: RestartResult, search: SearchConfig, record: Record) -> RestartResult:
    """The best start, until its labels stand still."""
    C, limits = trial.state.solution.C, search.limits
    labels, objective = GivenLabels(trial.labels), trial.objective
    state = continuation(trial.planes, labels, objective, (C,), search.eta, limits, record)
    if state is None:
        return trial
    state = replace(state, quantile_steps=trial.state.quantile_steps + state.quantile_steps)
    settled, gain = signs(state.problem.decide(state.boundary)), objective.gain(state.solution)
    return replace(trial, state=state, labels=settled, gains=(*trial.gains[:-1], gain))


def pieces_of(path: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """The first C, where many starts meet; those up to 2, where a gain is taken; and the others.

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


def _of_division(pieces: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """What a division goes through: the first C would make it forget where it came from."""
    _, early, rest = pieces
    return (), early[-1:], rest if early else rest[-1:]


def _tag(record: Record, start: int, kernel: Any) -> Record:
    gamma = kernel.gamma if isinstance(kernel, Kernel) else np.nan
    return lambda row: record(row | {"stage": "sample", "start": start, "gamma": gamma})


def search_sample(
    engine: Engine,
    candidates: Sequence[Callable[[], KernelFeatures]],
    search: SearchConfig,
    record: Record,
    accept_degenerate: bool = False,
) -> list[RestartResult]:
    """Try every width; the best trial comes first.

    Divisions by least squares, which all widths start from too, are made once, at the middle width.

    Parameters
    ----------
    engine : Engine
        Its threads share the widths where the sample is a single block.
    candidates : sequence of callable
        Each makes the sample under one kernel.
    search : Search
        What to try.
    record : callable
        Called with one dict a sweep, in the order of the candidates; ``clock`` is when it happened.
    accept_degenerate : bool, default=False
        Keep fits whose margin is nothing.

    Returns
    -------
    list of Trial
        One a width at which some start was separable: first those with a clean division, by their
        relative |w|²; then the others, by their leave-one-out score.
    """

    divisions: Sequence[GivenLabels] = ()
    if search.init == "mixed" and search.n_init > COLD_STARTS:
        middle = candidates[len(candidates) // 2]()
        random_state = np.random.RandomState(search.seed)
        divisions = least_squares_labels(middle.z, random_state, middle.weights, search.limits.least)
        del middle  # made again in its turn, as each holds kernel columns

    def attempt(
        make: Callable[[], KernelFeatures],
    ) -> tuple[KernelFeatures, RestartResult | None, list[dict[str, Any]]]:
        rows, keep = gathered()
        candidate = make()
        return candidate, search_bandwidth(candidate, search, keep, accept_degenerate, divisions), rows

    small = search.sample_size <= BLOCK_ROWS
    attempts = engine.each(attempt, candidates) if small else [attempt(make) for make in candidates]
    for _, _, rows in attempts:
        for row in rows:
            record(row)
    trials = [trial for _, trial, _ in attempts if trial is not None]
    if len(trials) < 2:
        return trials
    labelings = np.array([trial.labels for trial in trials])
    embeddings = [candidate.z for candidate, _, _ in attempts]
    scores = leave_one_out_scores(labelings, embeddings, attempts[0][0].weights)
    scored = [replace(trial, score=float(score)) for trial, score in zip(trials, scores, strict=True)]
    return sorted(scored, key=_rank)


def _rank(trial: RestartResult) -> tuple[bool, float]:
    clean = trial.score <= CLEAN_SCORE
    return not clean, -trial.relative_norm2 if clean else trial.score


def fit_random_labels(
    trial: RestartResult, search: SearchConfig, labels: Labels | None = None
) -> SubproblemResult:
    """What random labels reach on the sample, at the last C: what a fit has to beat."""
    planes = trial.candidate.new_planes()
    labels = labels or coin_flip(planes.problem.n_samples, np.random.RandomState(search.seed))
    planes.relabel(labels)
    most = RANDOM_PLANES_OF_SEVERAL if isinstance(trial.kernel, MultipleKernels) else RANDOM_PLANES
    planes.max_planes = min(planes.max_planes, most)
    given = trial.objective, search.path[-1], LOOSE_ETA, _ignore, SweepBudget()
    return cutting_plane(planes, labels, *given)


def _ignore(row: dict[str, Any]) -> None:
    """Record nothing."""
