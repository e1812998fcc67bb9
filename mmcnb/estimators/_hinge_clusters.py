"""More than two clusters in the hinge form: divided by least squares, parted by the widest margin.

Labels come from the sample and from passes of least squares over all rows, for hinge rounds on all rows lose
what these gain. They are then held, and one cutting-plane loop finds the scores that part them by the widest
margin (Crammer and Singer): that is the model.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb.engine import GatherPass, Kernel, larger_sample, stack
from mmcnb.estimators._report import report_of_clusters
from mmcnb.estimators._ridge_passes import (
    LandmarkSample,
    RidgePasses,
    landmark_sample,
    relative_weights,
)
from mmcnb.estimators._streamed import Work, sample_rows
from mmcnb.samples import Samples, open_samples
from mmcnb.selection import Search
from mmcnb.selection.divide import Division, divide, kernel_matrix
from mmcnb.selection.hinge import HingeRefinement
from mmcnb.solvers import (
    ClustersProblem,
    CrammerSingerPlanes,
    MarginPass,
    Objective,
    Scores,
    ScoresLabels,
    Solution,
    SweepBudget,
    cutting_plane,
)
from mmcnb.solvers.cutting_plane import Record

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
    solution: Solution
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
    work: Work, search: Search, wanted: Division, kernel: Kernel, n_landmarks: int, random_state: Any
) -> HingeClusters:
    """Divide the sample, label all rows, and part the clusters."""
    sample, weights = work.found.sample, relative_weights(work.sample_weights)
    mapped = landmark_sample(sample, weights, kernel, n_landmarks, wanted.n_clusters, random_state)
    form = Objective("adaptive", 0.0, float(mapped.features.variances.sum()))
    limits = replace(search.limits, max_rounds=min(ROUNDS, search.limits.max_rounds))
    values, row_weights = open_samples(mapped.values), mapped.features.weights
    rising = search.path, search.eta, limits
    refine = HingeRefinement(work.engine, values, mapped.metric, row_weights, wanted, form, *rising)
    K = kernel_matrix(sample, kernel) if weights is None else None
    found = divide(work.engine, K, mapped.features, wanted, random_state, refine)
    refine.tell(work.record)
    for one in found:
        work.record({"stage": LEAST_SQUARES, "start": one.start, "J": one.objective})
    model = mapped.model(work, wanted.alpha)
    passes = RidgePasses(replace(work, record=_least_squares(work)), wanted, mapped, model)
    rows = work.engine.keep(model.features(work.samples), work.plan)
    passes.run(rows, found[0].labels, PASSES)
    solution = _part(work, search, form, mapped, passes, rows)
    rule = _held(solution, mapped, passes)
    sweep = MarginPass(work.weights, rule, solution.quadratic.rho)
    hinge, sizes, first = work.engine.run(sweep, rows, "margins")
    order = np.argsort(first, kind="stable")
    objective = form.value(solution.quadratic, solution.C, hinge / sizes.sum())
    model = replace(model, rule=rule.ordered(order), ridge=None)
    random, J = refine.random_norm2(solution.C, search.seed), found[0].objective
    return HingeClusters(model, solution, objective, sizes[order], J, random, passes.settled, rows)


def _least_squares(work: Work) -> Record:
    """A record of passes whose objective is J, and not the hinge's."""

    def record(row: dict[str, Any]) -> None:
        J = row.pop("objective")
        work.record(row | {"stage": LEAST_SQUARES, "J": J})

    return record


def _held(solution: Solution, sample: LandmarkSample, passes: RidgePasses) -> Scores:
    """The scores, less the multipliers that keep the sizes of the sample within their bounds."""
    scores: Any = solution.hyperplane
    zeros = np.zeros(scores.offset.shape[0])
    values = scores.decide(sample.values)
    return scores.shifted(kernels.size_multipliers(values, *passes.bounds, sample.features.weights, zeros))


def _part(
    work: Work,
    search: Search,
    form: Objective,
    sample: LandmarkSample,
    passes: RidgePasses,
    rows: Samples,
) -> Solution:
    """The widest margin between the clusters of least squares: on the sample, then on more rows.

    Where the labels cannot be separated at the last C, a lower one has to serve.
    """
    labels, metric = ScoresLabels(passes.rule), sample.metric
    homes: list[tuple[str, Samples, Any]] = [("sample", open_samples(sample.values), sample.features.weights)]
    more = larger_sample(rows.n_samples)
    if more:
        chosen = sample_rows(rows.n_samples, more, work.weights, np.random.RandomState(search.seed))
        gathered = work.engine.run(GatherPass(chosen), rows, "larger sample")
        weights = None if work.weights is None else work.weights[chosen]
        homes.append(("larger sample", open_samples(stack(gathered)), weights))
    elif rows.n_samples > sample.values.shape[0]:
        homes.append(("all rows", rows, work.weights))
    generators = None
    for stage, features, weights in homes:
        problem = ClustersProblem(work.engine, features, metric, passes.bounds, weights)
        planes = CrammerSingerPlanes(problem)
        planes.generators = generators or planes.generators
        solution = _widest(work, search, form, planes, labels, stage)
        generators = planes.generators
    return solution


def _widest(
    work: Work,
    search: Search,
    form: Objective,
    planes: CrammerSingerPlanes,
    labels: ScoresLabels,
    stage: str,
) -> Solution:
    """One cutting-plane loop at the largest C at which the labels can be separated."""

    def record(row: dict[str, Any]) -> None:
        work.record(row | {"stage": stage})

    budget = SweepBudget(work.plan.sweeps if stage == "all rows" else None)
    planes.resign(labels)
    for C in reversed(search.path):
        solution = cutting_plane(planes, labels, form, C, search.eta, record, budget)
        if solution.status != "degenerate":
            return solution
    bare = replace(form, spread=0.0)
    return cutting_plane(planes, labels, bare, search.path[0], search.eta, record, budget)
