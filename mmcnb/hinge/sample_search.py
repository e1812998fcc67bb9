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
from mmcnb.engine.session import Record, ignore, run_starts, tag
from mmcnb.features.bandwidth import leave_one_out_scores
from mmcnb.features.kernel import Kernel
from mmcnb.features.multiple_kernels import MultipleKernels
from mmcnb.features.nystroem import total_variance_of
from mmcnb.features.rules import GivenLabels, Labels, coin_flip, signs
from mmcnb.hinge.cccp import CCCPLimits, CCCPResult, continuation
from mmcnb.hinge.cutting_plane import Objective, SubproblemResult, SweepBudget, cutting_plane
from mmcnb.hinge.starts import least_squares_labels, starting_labels
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.working_set import KernelFeatures, WorkingSet
from mmcnb.samples import BLOCK_ROWS

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
    limits : CCCPLimits
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
class RestartResult:
    """The best start at one width.

    Parameters
    ----------
    candidate : KernelFeatures
        The sample under this kernel.
    objective : Objective
        What was minimised.
    working_set : WorkingSet
        The working set at the end.
    state : CCCPResult
        Labels and hyperplane.
    labels : ndarray of shape (m,), int8
        Labels of the sample.
    start : int
        Number of the start that won.
    scores : tuple of float
        How good it was at C = 2, where the path passes it, and at the end.
    score : float
        Leave-one-out score; 0 where only one width was tried.
    """

    candidate: KernelFeatures
    objective: Objective
    working_set: WorkingSet
    state: CCCPResult
    labels: np.ndarray
    start: int
    scores: tuple[float, ...]
    leave_one_out: float = 0.0

    @property
    def kernel(self) -> Kernel | MultipleKernels | None:
        """The kernel of the candidate."""
        return self.candidate.kernel

    @property
    def gamma(self) -> float | None:
        """Width of the kernel; None where there is none, or several kernels."""
        return float(self.kernel.gamma) if isinstance(self.kernel, Kernel) else None

    @property
    def training_set(self) -> TrainingSet:
        """The sample in the features of the hyperplane."""
        return self.state.training_set

    @property
    def score(self) -> float:
        """What a start is judged by: |w|² at C = 2 and at the end, their geometric mean.

        A few rows far from all others can part two halves that have little to do with them by a wide margin
        at a large C; at a small one, where more rows lie in the margin, such a division is far behind.
        """
        return float(np.exp(np.mean(np.log(np.maximum(self.scores, np.finfo(float).tiny)))))

    def is_better_than(self, other: "RestartResult | None", margin: float) -> bool:
        """Whether it is better than another start by a margin; one that ended at a lower C has lost, for its
        labels could not be separated at the next.
        """
        if other is None or self.state.solution.C != other.state.solution.C:
            return other is None or self.state.solution.C > other.state.solution.C
        return self.score > other.score * (1 + margin)

    @property
    def norm2(self) -> float:
        """|w|² of the last solution."""
        return self.state.solution.quadratic.norm2

    @property
    def relative_norm2(self) -> float:
        """|w|² in units of the spread of the features."""
        return self.norm2 / max(self.objective.total_variance, np.finfo(float).tiny)


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
        working_set, scores = candidate.new_working_set(), list[float]()
        tagged = _tag(record, number, candidate.kernel)
        for piece, path in enumerate(_of_division(pieces) if warm else pieces):
            if not path:
                continue
            reached = continuation(
                working_set, labels, objective, path, search.eta, limits, tagged, passing=piece > 0
            )
            if reached is None:
                break
            state = reached
            labels = GivenLabels(signs(state.training_set.decide(state.boundary)))
            met = piece, (labels.y * labels.y[0]).tobytes()
            if met in seen:
                scores.clear()
                break
            seen.add(met)
            if piece > 0:
                scores.append(objective.score(state.solution))
        if scores:
            restart = RestartResult(candidate, objective, working_set, state, labels.y, number, tuple(scores))
            if restart.is_better_than(best, WARM_GAIN if warm else TIE):
                best = restart
    return best and _settled(best, search, _tag(record, best.start, candidate.kernel))


def _settled(restart: RestartResult, search: SearchConfig, record: Record) -> RestartResult:
    """The best start, until its labels stand still."""
    C, limits = restart.state.solution.C, search.limits
    labels, objective = GivenLabels(restart.labels), restart.objective
    state = continuation(restart.working_set, labels, objective, (C,), search.eta, limits, record)
    if state is None:
        return restart
    state = replace(state, quantile_steps=restart.state.quantile_steps + state.quantile_steps)
    settled, gain = signs(state.training_set.decide(state.boundary)), objective.score(state.solution)
    return replace(restart, state=state, labels=settled, scores=(*restart.scores[:-1], gain))


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
    return tag(record, stage="sample", start=start, gamma=gamma)


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
    search : SearchConfig
        What to try.
    record : callable
        Called with one dict a sweep, in the order of the candidates; ``clock`` is when it happened.
    accept_degenerate : bool, default=False
        Keep fits whose margin is nothing.

    Returns
    -------
    list of RestartResult
        One a width at which some start was separable: first those with a clean division, by their
        relative |w|²; then the others, by their leave-one-out score.
    """

    divisions: Sequence[GivenLabels] = ()
    if search.init == "mixed" and search.n_init > COLD_STARTS:
        middle = candidates[len(candidates) // 2]()
        random_state = np.random.RandomState(search.seed)
        divisions = least_squares_labels(middle.z, random_state, middle.weights, search.limits.least)
        del middle  # made again in its turn, as each holds kernel columns

    def follow(
        make: Callable[[], KernelFeatures], record: Record
    ) -> tuple[KernelFeatures, RestartResult | None]:
        features = make()
        return features, search_bandwidth(features, search, record, accept_degenerate, divisions)

    in_threads = search.sample_size <= BLOCK_ROWS
    found = run_starts(engine, follow, candidates, record, in_threads)
    restarts = [restart for _, restart in found if restart is not None]
    if len(restarts) < 2:
        return restarts
    labelings = np.array([restart.labels for restart in restarts])
    embeddings = [features.z for features, _ in found]
    scores = leave_one_out_scores(labelings, embeddings, found[0][0].weights)
    scored = [
        replace(restart, leave_one_out=float(score)) for restart, score in zip(restarts, scores, strict=True)
    ]
    return sorted(scored, key=_rank)


def _rank(restart: RestartResult) -> tuple[bool, float]:
    clean = restart.leave_one_out <= CLEAN_SCORE
    return not clean, -restart.relative_norm2 if clean else restart.leave_one_out


def fit_random_labels(
    restart: RestartResult, search: SearchConfig, labels: Labels | None = None
) -> SubproblemResult:
    """What random labels reach on the sample, at the last C: what a fit has to beat."""
    working_set = restart.candidate.new_working_set()
    labels = labels or coin_flip(working_set.training_set.n_samples, np.random.RandomState(search.seed))
    working_set.relabel(labels)
    most = RANDOM_PLANES_OF_SEVERAL if isinstance(restart.kernel, MultipleKernels) else RANDOM_PLANES
    working_set.max_planes = min(working_set.max_planes, most)
    given = restart.objective, search.path[-1], LOOSE_ETA, ignore, SweepBudget()
    return cutting_plane(working_set, labels, *given)
