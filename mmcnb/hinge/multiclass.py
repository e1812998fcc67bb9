"""Divisions of a sample into k clusters, made better by the hinge form at rising C."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine.passes import GatherPass, sample_rows
from mmcnb.engine.plan import larger_sample
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession, Record
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.rules import GivenLabels, Scores, ScoresLabels
from mmcnb.hinge.cccp import CCCPLimits, continuation
from mmcnb.hinge.crammer_singer import CrammerSingerWorkingSet, MarginPass, MulticlassTrainingSet
from mmcnb.hinge.cutting_plane import Objective, SubproblemResult, SweepBudget, cutting_plane
from mmcnb.hinge.report import report_of_clusters
from mmcnb.hinge.sample_search import SearchConfig
from mmcnb.least_squares.all_rows import LandmarkSample, LeastSquaresPasses, landmark_sample, relative_weights
from mmcnb.least_squares.local_search import random_labels
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import PartitionConfig, partition_sample
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import stack

RANDOM_PLANES, LOOSE_ETA = 200, 0.1
FIRST_C = 2.0  # labels that least squares found start here; coin flips would need C near 1


class HingeRefinement:
    """Labels of a sample followed through rising C, their sizes held.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    values : Samples
        Landmark features of the sample.
    metric : ndarray of shape (p, r)
        M with MM' the inverse of the kernel matrix of the landmarks.
    weights : ndarray of shape (m,)
        Weights of the rows.
    wanted : Division
        What is asked of a division.
    objective : Objective
        Form of the problem.
    path : sequence of float
        Rising values of C.
    eta : float
        Tolerance of the last rounds.
    limits : Rounds
        When rounds stop.
    """

    def __init__(
        self,
        engine: Engine,
        values: Samples,
        normalization: np.ndarray,
        weights: np.ndarray,
        config: PartitionConfig,
        objective: Objective,
        path: Sequence[float],
        eta: float,
        limits: CCCPLimits,
    ) -> None:
        self.engine, self.values, self.normalization, self.weights = engine, values, normalization, weights
        self.config, self.objective, self.eta, self.limits = config, objective, eta, limits
        self.path = tuple(C for C in path if C >= FIRST_C) or tuple(path[-1:])
        self.sweeps: dict[int, list[dict[str, Any]]] = {}

    def working_set(self, labels: np.ndarray) -> CrammerSingerWorkingSet:
        """A working set, with the bounds of clusters that have the sizes of some labels."""
        sizes = np.bincount(labels, self.weights, self.config.n_clusters)
        bounds = self.config.bounds_by_size(sizes)
        training_set = MulticlassTrainingSet(
            self.engine, self.values, self.normalization, bounds, self.weights, True
        )
        return CrammerSingerWorkingSet(training_set)

    def __call__(self, start: Partition) -> np.ndarray | None:
        """The labels at the last C at which they can be separated; None where there is none."""
        rows = self.sweeps[start.start] = []

        def keep(row: dict[str, Any]) -> None:
            rows.append(row | {"stage": "sample", "start": start.start, "clock": time.perf_counter()})

        labels = GivenLabels(start.labels)
        working_set = self.working_set(start.labels)
        state = continuation(working_set, labels, self.objective, self.path, self.eta, self.limits, keep)
        return None if state is None else state.labels.block(None, 0, start.labels.shape[0])

    def random_norm2(self, C: float, seed: int) -> float:
        """|W|² that random labels reach at one C: what a division has to beat."""
        shares, m = self.config.shares, self.weights.shape[0]
        labels = random_labels(m, shares, np.random.RandomState(seed))
        working_set = self.working_set(labels)
        working_set.relabel(GivenLabels(labels))
        working_set.max_planes = RANDOM_PLANES
        solution = cutting_plane(
            working_set, GivenLabels(labels), self.objective, C, LOOSE_ETA, lambda row: None, SweepBudget()
        )
        return solution.quadratic.norm2

    def tell(self, record: Record) -> None:
        """Hand all sweeps to a record, start by start."""
        for start in sorted(self.sweeps):
            for row in self.sweeps[start]:
                record(row)


ALPHA = 1e-3  # ridge a row, while labels are sought
PASSES = 3  # of least squares over all rows
LEAST_SQUARES = "least squares"
ROUNDS = 5  # at one C on the sample


@dataclass(frozen=True)
class HingeClusters:
    """What a fit found, with the clusters numbered by their first rows.

    Parameters
    ----------
    model : Model
        The model, its scores less the multipliers that hold the sizes.
    solution : Solution
        Where the last cutting-plane loop ended.
    objective : float
        1/2 |W|² - rho + C mean(max(0, rho - margin)), the margin being the largest score less the second.
    sizes : ndarray of shape (k,)
        Rows (or weight) of each cluster.
    sample_objective : float
        J of the division of the sample.
    random_norm2 : float
        |W|² that random labels reach on the sample.
    settled : bool
        Whether the passes of least squares ended because labels stood still.
    features : Samples
        Features of all rows.
    """

    model: Any
    solution: SubproblemResult
    objective: float
    sizes: np.ndarray
    sample_objective: float
    random_norm2: float
    settled: bool
    features: Samples

    def report(self) -> dict[str, Any]:
        """What the fit says of itself: plain numbers, and ``warnings``, one sentence each."""
        found = self.solution.quadratic.norm2 > self.random_norm2
        facts = {"gamma": self.model.kernel.gamma, "sample_objective": float(self.sample_objective)}
        return report_of_clusters(self.sizes, self.solution, found, self.random_norm2, **facts)


def fit_hinge_clusters(
    session: FitSession,
    search: SearchConfig,
    config: PartitionConfig,
    kernel: Kernel,
    n_landmarks: int,
    random_state: Any,
) -> HingeClusters:
    """Divide the sample, label all rows, and part the clusters."""
    sample, weights = session.found.sample, relative_weights(session.sample_weights)
    mapped = landmark_sample(sample, weights, kernel, n_landmarks, config.n_clusters, random_state)
    form = Objective("adaptive", 0.0, float(mapped.features.variances.sum()))
    limits = replace(search.limits, max_rounds=min(ROUNDS, search.limits.max_rounds))
    values, row_weights = open_samples(mapped.values), mapped.features.weights
    rising = search.path, search.eta, limits
    refine = HingeRefinement(session.engine, values, mapped.normalization, row_weights, config, form, *rising)
    K = kernel_matrix(sample, kernel) if weights is None else None
    found = partition_sample(session.engine, K, mapped.features, config, random_state, refine)
    refine.tell(session.record)
    for one in found:
        session.record({"stage": LEAST_SQUARES, "start": one.start, "J": one.objective})
    model = mapped.model(session, config.alpha)
    passes = LeastSquaresPasses(replace(session, record=_least_squares(session)), config, mapped, model)
    rows = session.engine.cache(model.features(session.samples), session.plan)
    passes.run(rows, found[0].labels, PASSES)
    solution = _part(session, search, form, mapped, passes, rows)
    rule = _held(solution, mapped, passes)
    sweep = MarginPass(session.weights, rule, solution.quadratic.rho)
    hinge, sizes, first = session.engine.run(sweep, rows, "margins")
    order = np.argsort(first, kind="stable")
    objective = form.value(solution.quadratic, solution.C, hinge / sizes.sum())
    model = replace(model, rule=rule.ordered(order), ridge=None)
    random, J = refine.random_norm2(solution.C, search.seed), found[0].objective
    return HingeClusters(model, solution, objective, sizes[order], J, random, passes.settled, rows)


def _least_squares(session: FitSession) -> Record:
    """A record of passes whose objective is J, and not the hinge's."""

    def record(row: dict[str, Any]) -> None:
        J = row.pop("objective")
        session.record(row | {"stage": LEAST_SQUARES, "J": J})

    return record


def _held(solution: SubproblemResult, sample: LandmarkSample, passes: LeastSquaresPasses) -> Scores:
    """The scores, less the multipliers that keep the sizes of the sample within their bounds."""
    scores: Any = solution.hyperplane
    zeros = np.zeros(scores.offset.shape[0])
    values = scores.decide(sample.values)
    return scores.shifted(kernels.size_multipliers(values, *passes.bounds, sample.features.weights, zeros))


def _part(
    session: FitSession,
    search: SearchConfig,
    form: Objective,
    sample: LandmarkSample,
    passes: LeastSquaresPasses,
    rows: Samples,
) -> SubproblemResult:
    """The widest margin between the clusters of least squares: on the sample, then on more rows.

    Where the labels cannot be separated at the last C, a lower one has to serve.
    """
    labels, normalization = ScoresLabels(passes.rule), sample.normalization
    homes: list[tuple[str, Samples, Any]] = [("sample", open_samples(sample.values), sample.features.weights)]
    more = larger_sample(rows.n_samples)
    if more:
        chosen = sample_rows(rows.n_samples, more, session.weights, np.random.RandomState(search.seed))
        gathered = session.engine.run(GatherPass(chosen), rows, "larger sample")
        weights = None if session.weights is None else session.weights[chosen]
        homes.append(("larger sample", open_samples(stack(gathered)), weights))
    elif rows.n_samples > sample.values.shape[0]:
        homes.append(("all rows", rows, session.weights))
    generators = None
    for stage, features, weights in homes:
        training_set = MulticlassTrainingSet(session.engine, features, normalization, passes.bounds, weights)
        working_set = CrammerSingerWorkingSet(training_set)
        working_set.generators = generators or working_set.generators
        solution = _widest(session, search, form, working_set, labels, stage)
        generators = working_set.generators
    return solution


def _widest(
    session: FitSession,
    search: SearchConfig,
    form: Objective,
    working_set: CrammerSingerWorkingSet,
    labels: ScoresLabels,
    stage: str,
) -> SubproblemResult:
    """One cutting-plane loop at the largest C at which the labels can be separated."""

    def record(row: dict[str, Any]) -> None:
        session.record(row | {"stage": stage})

    budget = SweepBudget(session.plan.sweeps if stage == "all rows" else None)
    working_set.relabel(labels)
    for C in reversed(search.path):
        solution = cutting_plane(working_set, labels, form, C, search.eta, record, budget)
        if solution.status != "degenerate":
            return solution
    bare = replace(form, total_variance=0.0)
    return cutting_plane(working_set, labels, bare, search.path[0], search.eta, record, budget)
