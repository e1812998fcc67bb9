"""The cutting-plane loop: labels fixed, planes added until none is violated by more than the tolerance.

Wu & Zhang, Alg. 1-3, lines 5-14, with the stopping rule (13). Each subset c of the rows is a constraint on
the mean of c_i (rho - y_i f(x_i)). The most violated one takes the rows with y_i f(x_i) <= rho, eq. (12):
a single sweep finds it (`MostViolatedPass`).
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mmcnb import kernels
from mmcnb.engine.passes import SumPass
from mmcnb.engine.session import Record
from mmcnb.features.rules import (
    Hyperplane,
    Labels,
)
from mmcnb.hinge.qp import PlaneQPError, PlaneSolution, Threshold
from mmcnb.samples import CSRBlock

DEGENERATE = 1e-6  # |w|² below this share of the total variance: the labels cannot be separated
IDLE_SOLVES = 3  # programmes without weight after which a plane is dropped: `python -m benchmarks engine`
STALL_PLANES, STALL_SHARE = 30, 1e-6  # planes that lift the lower bound by no more than this share of it


@dataclass(frozen=True)
class ConstraintStatistics:
    """What one sweep says of a hyperplane and the labels: means over the weight of all rows.

    Parameters
    ----------
    active : float
        Share of the rows in the most violated constraint (s).
    signed : float
        The same, signed by the labels (t).
    violation : float
        Mean of c (rho - y f): the true slack.
    positive : float
        Share of the rows with f >= 0; 0 where there are more clusters than two.
    changed : float
        Weight of the rows whose label the hyperplane would change.
    hinge : float
        Mean of max(0, rho - |f|): the slack under the hyperplane's own labels.
    """

    active: float
    signed: float
    violation: float
    positive: float
    changed: float
    hinge: float


@dataclass(frozen=True)
class MostViolatedPass(SumPass):
    """The most violated constraint of a hyperplane: the rows with y f(x) <= rho, and the sum of their y F(x).

    Parameters
    ----------
    labels : Labels
        The labels y.
    hyperplane : Hyperplane
        f(x) = F(x)·w + b.
    rho : float
        Threshold of the margin.
    keep_rows : bool, default=False
        Whether to say which rows are in it, one byte a row.
    """

    labels: Labels
    hyperplane: Hyperplane
    rho: float
    keep_rows: bool = False

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [0.0, 0.0, []]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        sparse = isinstance(rows, CSRBlock)
        sweep = kernels.most_violated_constraint_csr if sparse else kernels.most_violated_constraint
        features, plane = rows[:3] if sparse else (rows,), self.hyperplane
        active, row_sum, sums = sweep(*features, y, weights, plane.coef, plane.offset, self.rho)
        return [row_sum, sums, [active] if self.keep_rows else []]


class CuttingPlanes(Protocol):
    """What the loop asks of a working set of cutting planes."""

    s: np.ndarray
    max_planes: int

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the quadratic programme of the planes."""

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """The hyperplane that the planes add up to."""

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep: the most violated constraint of a hyperplane, not yet added, and its statistics."""

    def add(self, found: Any) -> None:
        """Add a constraint that was found."""

    def keep(self, kept: np.ndarray) -> None:
        """Drop the planes that are not kept."""

    @property
    def history_columns(self) -> dict[str, float]:
        """What else the history tells of a sweep."""


@dataclass(frozen=True)
class Objective:
    """What is minimised: the form of the threshold, the balance and the scale of the features.

    Parameters
    ----------
    threshold : {"adaptive", "fixed"}
        SKMMC or SKMMCv2.
    balance : float
        l/n, in units of rho.
    total_variance : float
        Mean squared distance of the features from their mean, trace(K̃)/n.
    """

    threshold: Threshold
    balance: float
    total_variance: float

    def solve(self, working_set: CuttingPlanes, C: float) -> PlaneSolution:
        """Solve the programme of the planes."""
        return working_set.solve(C, self.balance, self.threshold)

    def value(self, solution: PlaneSolution, C: float, slack: float) -> float:
        """1/2|w|² - rho + C slack, or without rho in the fixed form."""
        rho = solution.rho if self.threshold == "adaptive" else 0.0
        return 0.5 * solution.norm2 - rho + C * max(0.0, slack)

    def score(self, solution: "SubproblemResult") -> float:
        """How good a solution is, the more the better: |w|², minus twice the objective at its optimum; at a
        threshold of 1, how far the objective lies below C, what it is without a hyperplane.
        """
        if self.threshold == "adaptive":
            return solution.quadratic.norm2
        return solution.C - solution.primal


@dataclass(frozen=True)
class SubproblemResult:
    """Where a cutting-plane loop ended.

    Parameters
    ----------
    hyperplane : Hyperplane
        The hyperplane.
    quadratic : PlaneSolution
        Solution of the last quadratic programme.
    C : float
        Its C.
    sums : ConstraintStatistics
        The sweep that found no plane violated by more than the tolerance.
    objective : float
        J_CP, the lower bound given by the planes.
    primal : float
        The objective at the true slack: an upper bound of the optimum for these labels.
    status : {"converged", "degenerate", "stalled", "sweeps"}
        Why the loop ended.
    """

    hyperplane: Hyperplane
    quadratic: PlaneSolution
    C: float
    sums: ConstraintStatistics
    objective: float
    primal: float
    status: str

    @property
    def gap(self) -> float:
        """Duality gap, relative to C rho."""
        return (self.primal - self.objective) / max(self.C * self.quadratic.rho, np.finfo(float).tiny)


class SweepBudget:
    """How many more sweeps may be made; None for no bound."""

    def __init__(self, sweeps: int | None = None) -> None:
        self.left = float("inf") if sweeps is None else sweeps

    def spend(self) -> None:
        """Take one sweep."""
        self.left -= 1


def cutting_plane(
    working_set: CuttingPlanes,
    labels: Labels,
    objective: Objective,
    C: float,
    eta: float,
    record: Record,
    budget: SweepBudget,
) -> SubproblemResult:
    """Solve the convex subproblem for fixed labels.

    Parameters
    ----------
    working_set : CuttingPlanes
        Planes are added and idle ones dropped.
    labels : Labels
        The labels, fixed.
    objective : Objective
        Form of the problem.
    C : float
        Weight of the slack.
    eta : float
        Tolerance: stop when no constraint is violated by more than xi + eta rho.
    record : callable
        Called with one dict a sweep.
    budget : SweepBudget
        Sweeps that may be made.

    Returns
    -------
    SubproblemResult
        With ``gap <= eta`` where the status is "converged".
    """
    idle = np.zeros(working_set.s.shape[0], np.int64)
    solution: SubproblemResult | None = None
    lowers: list[float] = []
    while True:
        try:
            quadratic = objective.solve(working_set, C)
        except PlaneQPError:
            if solution is None:
                raise
            return replace(solution, status="stalled")  # the last plane was too near the others
        hyperplane = working_set.hyperplane(quadratic.multipliers, quadratic.beta)
        budget.spend()
        found, sums = working_set.find_most_violated(labels, hyperplane, quadratic.rho)
        lower, upper = (objective.value(quadratic, C, slack) for slack in (quadratic.xi, sums.violation))
        solution = SubproblemResult(hyperplane, quadratic, C, sums, lower, upper, "converged")
        record(_row(solution, working_set))
        if objective.threshold == "adaptive" and quadratic.norm2 < DEGENERATE * objective.total_variance:
            return replace(solution, status="degenerate")
        if sums.violation <= max(quadratic.xi, 0.0) + eta * quadratic.rho:
            return solution
        lowers.append(lower)
        if len(lowers) > working_set.max_planes or _stalls(lowers):
            return replace(solution, status="stalled")
        if budget.left <= 0:
            return replace(solution, status="sweeps")
        idle = np.where(quadratic.multipliers > 1e-9 * C, 0, idle + 1)
        kept = idle < IDLE_SOLVES
        kept[0] = True  # the plane of all rows keeps the programme feasible
        working_set.keep(kept)
        working_set.add(found)
        idle = np.append(idle[kept], 0)


def _stalls(lowers: list[float]) -> bool:
    """Whether new planes no longer lift the lower bound: the basis cannot express what they ask for."""
    if len(lowers) <= STALL_PLANES:
        return False
    return lowers[-1] - max(lowers[:-STALL_PLANES]) <= STALL_SHARE * abs(lowers[-1])


def _row(solution: SubproblemResult, working_set: CuttingPlanes) -> dict[str, Any]:
    return {
        "C": solution.C,
        "objective": solution.objective,
        "primal": solution.primal,
        "norm": solution.quadratic.norm2**0.5,
        "rho": solution.quadratic.rho,
        "violation": solution.sums.violation - solution.quadratic.xi,
        "planes": working_set.s.shape[0],
        "changed": solution.sums.changed,
        **working_set.history_columns,
    }
