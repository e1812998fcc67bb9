"""The cutting-plane loop: for fixed labels, add planes until none is violated beyond the tolerance.

Wu & Zhang, Alg. 1-3, lines 5-14, with the stopping rule (13). Each subset c of the rows is a constraint on
the mean of c_i (rho - y_i f(x_i)). The most violated one takes the rows with y_i f(x_i) <= rho, eq. (12):
a single sweep finds it (`MostViolatedPass`).
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mmcnb.engine.passes import SumPass
from mmcnb.engine.session import Record
from mmcnb.features.rules import Hyperplane, Labels
from mmcnb.hinge.qp import PlaneQPError, PlaneSolution, Threshold
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock

DEGENERATE = 1e-6  # |w|² below this share of the total variance: the labels cannot be separated


@dataclass(frozen=True)
class ConstraintStatistics:
    """Statistics of a hyperplane and the labels from one sweep: means over the weight of all rows.

    Parameters
    ----------
    active : float
        Share of the rows in the most violated constraint (s).
    signed : float
        The same, signed by the labels (t).
    violation : float
        Mean of c (rho - y f): the true slack.
    positive : float
        Share of the rows with f >= 0; 0 with more than two clusters.
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
    weights : ndarray of shape (n,) or None
        Sample weights.
    labels : Labels
        The labels y.
    hyperplane : Hyperplane
        f(x) = F(x)·w + b.
    rho : float
        Threshold of the margin.
    keep_rows : bool, default=False
        Whether to return which rows are in the constraint, one byte per row.
    """

    labels: Labels
    hyperplane: Hyperplane
    rho: float
    keep_rows: bool = False

    def start(self) -> list[Any]:
        """Zero totals."""
        return [0.0, 0.0, []]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        y, weights = self.labels.block(rows, start, stop), self.weights_of(start, stop)
        sparse = isinstance(rows, CSRBlock)
        sweep = kernels.most_violated_constraint_csr if sparse else kernels.most_violated_constraint
        features, plane = rows[:3] if sparse else (rows,), self.hyperplane
        active, row_sum, totals = sweep(*features, y, weights, plane.coef, plane.offset, self.rho)
        return [row_sum, totals, [active] if self.keep_rows else []]


class CuttingPlanes(Protocol):
    """What the loop needs from a working set of cutting planes."""

    s: np.ndarray
    max_planes: int

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the QP of the cutting planes."""

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """The hyperplane that combines the cutting planes."""

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep: the most violated constraint of a hyperplane, not yet added, and its statistics."""

    def add(self, found: Any) -> None:
        """Add a constraint that was found."""

    def keep(self, kept: np.ndarray) -> None:
        """Drop all cutting planes but those marked."""

    @property
    def history_columns(self) -> dict[str, float]:
        """Further columns of a row of the history."""


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
        """Solve the QP of the cutting planes, or the SOCP of several kernels."""
        return working_set.solve(C, self.balance, self.threshold)

    def value(self, solution: PlaneSolution, C: float, slack: float) -> float:
        """1/2|w|² - rho + C slack, or without rho in the fixed form."""
        rho = solution.rho if self.threshold == "adaptive" else 0.0
        return 0.5 * solution.norm2 - rho + C * max(0.0, slack)

    def score(self, solution: "SubproblemResult") -> float:
        """How good a solution is; higher is better.

        With an adaptive threshold the score is |w|², which at the optimum is minus twice the objective. At a
        threshold of 1 it is how far the objective lies below C, its value without a hyperplane.
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
        Solution of the last QP.
    C : float
        Its C.
    statistics : ConstraintStatistics
        Statistics of the last sweep.
    objective : float
        J_CP, the lower bound given by the cutting planes.
    primal : float
        The objective at the true slack: an upper bound of the optimum for these labels.
    status : {"converged", "degenerate", "stalled", "sweeps"}
        Why the loop ended.
    """

    hyperplane: Hyperplane
    quadratic: PlaneSolution
    C: float
    statistics: ConstraintStatistics
    objective: float
    primal: float
    status: str

    @property
    def gap(self) -> float:
        """Duality gap, relative to C rho."""
        return (self.primal - self.objective) / max(self.C * self.quadratic.rho, np.finfo(float).tiny)


class SweepBudget:
    """How many more sweeps are allowed; None for no bound."""

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
        Cutting planes are added to it, and idle ones dropped.
    labels : Labels
        The labels, fixed.
    objective : Objective
        Form of the problem.
    C : float
        Weight of the slack.
    eta : float
        Tolerance: stop when no constraint is violated by more than xi + eta rho.
    record : callable
        Called with one dict per sweep.
    budget : SweepBudget
        Sweeps that are left.

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
            return replace(solution, status="stalled")  # the last plane was too close to the others
        hyperplane = working_set.hyperplane(quadratic.multipliers, quadratic.beta)
        budget.spend()
        found, statistics = working_set.find_most_violated(labels, hyperplane, quadratic.rho)
        lower, upper = (
            objective.value(quadratic, C, slack) for slack in (quadratic.xi, statistics.violation)
        )
        solution = SubproblemResult(hyperplane, quadratic, C, statistics, lower, upper, "converged")
        record(_row(solution, working_set))
        if objective.threshold == "adaptive" and quadratic.norm2 < DEGENERATE * objective.total_variance:
            return replace(solution, status="degenerate")
        if statistics.violation <= max(quadratic.xi, 0.0) + eta * quadratic.rho:
            return solution
        lowers.append(lower)
        if len(lowers) > working_set.max_planes or kernels.stalls(np.array(lowers)):
            return replace(solution, status="stalled")
        if budget.left <= 0:
            return replace(solution, status="sweeps")
        kept = kernels.count_idle(idle, quadratic.multipliers, float(C))
        working_set.keep(kept)
        working_set.add(found)
        idle = np.append(idle[kept], 0)


def _row(solution: SubproblemResult, working_set: CuttingPlanes) -> dict[str, Any]:
    return {
        "C": solution.C,
        "objective": solution.objective,
        "primal": solution.primal,
        "norm": solution.quadratic.norm2**0.5,
        "rho": solution.quadratic.rho,
        "violation": solution.statistics.violation - solution.quadratic.xi,
        "planes": working_set.s.shape[0],
        "changed": solution.statistics.changed,
        **working_set.history_columns,
    }
