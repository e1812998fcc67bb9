"""The cutting-plane loop: labels fixed, planes added until none is violated by more than the tolerance.

Wu & Zhang, Alg. 1-3, lines 5-14, with the stopping rule (13).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.solvers.hyperplane import Hyperplane, Labels
from mmcnb.solvers.plane_qp import PlaneQPError, PlaneSolution, Threshold
from mmcnb.solvers.planes import Planes
from mmcnb.solvers.problem import Sums

DEGENERATE = 1e-6  # |w|² below this share of the spread of the features: the labels cannot be separated
IDLE_SOLVES = 3
STALL_PLANES, STALL_SHARE = 30, 1e-6
Record = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Objective:
    """What is minimised: the form of the threshold, the balance and the scale of the features.

    Parameters
    ----------
    threshold : {"adaptive", "fixed"}
        SKMMC or SKMMCv2.
    balance : float
        l/n, in units of rho.
    spread : float
        Mean squared distance of the features from their mean, trace(K̃)/n.
    """

    threshold: Threshold
    balance: float
    spread: float

    def solve(self, planes: Planes, C: float) -> PlaneSolution:
        """Solve the programme of the planes."""
        return planes.solve(C, self.balance, self.threshold)

    def value(self, solution: PlaneSolution, C: float, slack: float) -> float:
        """1/2|w|² - rho + C slack, or without rho in the fixed form."""
        rho = solution.rho if self.threshold == "adaptive" else 0.0
        return 0.5 * solution.norm2 - rho + C * max(0.0, slack)

    def gain(self, solution: "Solution") -> float:
        """How good a solution is, the more the better: |w|², minus twice the objective at its optimum; at a
        threshold of 1, how far the objective lies below C, what it is without a hyperplane.
        """
        if self.threshold == "adaptive":
            return solution.quadratic.norm2
        return solution.C - solution.primal


@dataclass(frozen=True)
class Solution:
    """Where a cutting-plane loop ended.

    Parameters
    ----------
    hyperplane : Hyperplane
        The hyperplane.
    quadratic : PlaneSolution
        Solution of the last quadratic programme.
    C : float
        Its C.
    sums : Sums
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
    sums: Sums
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
    planes: Planes,
    labels: Labels,
    objective: Objective,
    C: float,
    eta: float,
    record: Record,
    budget: SweepBudget,
) -> Solution:
    """Solve the convex subproblem for fixed labels.

    Parameters
    ----------
    planes : Planes
        The working set; planes are added and idle ones dropped.
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
    Solution
        With ``gap <= eta`` where the status is "converged".
    """
    idle = np.zeros(planes.s.shape[0], np.int64)
    solution: Solution | None = None
    lowers: list[float] = []
    while True:
        try:
            quadratic = objective.solve(planes, C)
        except PlaneQPError:
            if solution is None:
                raise
            return replace(solution, status="stalled")  # the last plane was too near the others
        hyperplane = planes.hyperplane(quadratic.multipliers, quadratic.beta)
        budget.spend()
        found, sums = planes.find(labels, hyperplane, quadratic.rho)
        lower, upper = (objective.value(quadratic, C, slack) for slack in (quadratic.xi, sums.violation))
        solution = Solution(hyperplane, quadratic, C, sums, lower, upper, "converged")
        record(_row(solution, planes))
        if objective.threshold == "adaptive" and quadratic.norm2 < DEGENERATE * objective.spread:
            return replace(solution, status="degenerate")
        if sums.violation <= max(quadratic.xi, 0.0) + eta * quadratic.rho:
            return solution
        lowers.append(lower)
        if len(lowers) > planes.most_planes or _stalls(lowers):
            return replace(solution, status="stalled")
        if budget.left <= 0:
            return replace(solution, status="sweeps")
        idle = np.where(quadratic.multipliers > 1e-9 * C, 0, idle + 1)
        kept = idle < IDLE_SOLVES
        kept[0] = True  # the plane of all rows keeps the programme feasible
        planes.keep(kept)
        planes.add(found)
        idle = np.append(idle[kept], 0)


def _stalls(lowers: list[float]) -> bool:
    """Whether new planes no longer lift the lower bound: the basis cannot express what they ask for."""
    if len(lowers) <= STALL_PLANES:
        return False
    return lowers[-1] - max(lowers[:-STALL_PLANES]) <= STALL_SHARE * abs(lowers[-1])


def _row(solution: Solution, planes: Planes) -> dict[str, Any]:
    return {
        "C": solution.C,
        "objective": solution.objective,
        "primal": solution.primal,
        "norm": solution.quadratic.norm2**0.5,
        "rho": solution.quadratic.rho,
        "violation": solution.sums.violation - solution.quadratic.xi,
        "planes": planes.s.shape[0],
        "changed": solution.sums.changed,
        **planes.facts,
    }
