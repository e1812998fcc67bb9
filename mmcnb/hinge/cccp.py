"""The CCCP loop over labels, and its continuation in C.

Each round solves the convex subproblem for fixed labels and takes the labels of
its hyperplane; the objective never rises. A random start is useless at C = 10.
So rounds run to a fixed point of the labels at C near 1, where there is one
smooth hill. Then C is raised, and labels and cutting planes carry over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.session import Record, tag
from mmcnb.features.rules import Labels
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.training_set import TrainingSet

PATH = (
    1.01,
    1.3,
    2.0,
    3.5,
    6.0,
    10.0,
)  # C of the continuation: `python -m benchmarks collapse`
LOOSE_GAP = 0.03  # duality gap in units of rho, before the last C
# Share of the labels that may still change before the last C: the next C moves them
# anyway.
PASSING_SHARE = 0.003


@dataclass(frozen=True)
class CCCPLimits:
    """When the rounds over labels stop, and which labels they accept.

    Parameters
    ----------
    max_rounds : int, default=30
        Most rounds at one C.
    changed : float, default=0.0
        Stop when the rows that change their label weigh no more than this.
    least : float, default=0.05
        Least share of the weight in the smaller cluster.
    """

    max_rounds: int = 30
    changed: float = 0.0
    least: float = 0.05


@dataclass(frozen=True)
class CCCPResult:
    """Labels, and the solution that gave them.

    Parameters
    ----------
    labels : Labels
        The labels.
    boundary : Hyperplane or Scores
        What separates the clusters and gives the labels.
    solution : SubproblemResult
        The solution of the last round that did not degenerate.
    threshold : float or ndarray of shape (k,)
        Decision value that separates the clusters: 0, or a quantile where the smaller
        cluster would have held too few rows. With more clusters, what is subtracted
        from each score.
    status : {"converged", "stalled", "sweeps", "rounds"}
        "converged" where the labels no longer changed and the last cutting-plane loop
        reached its tolerance; otherwise what ended the rounds.
    training_set : TrainingSet
        The features in which the hyperplane is written.
    quantile_steps : int, default=0
        How often the labels had to be shifted into their bounds, on the whole path.
    """

    labels: Labels
    boundary: Any
    solution: SubproblemResult
    threshold: Any
    status: str
    training_set: TrainingSet
    quantile_steps: int = 0


def path_to(C: float) -> tuple[float, ...]:
    """Values of C from near 1 up to ``C``.

    Examples
    --------
    >>> from mmcnb.hinge.cccp import path_to
    >>> path_to(3.0)
    (1.01, 1.3, 2.0, 3.0)
    """
    steps = [step for step in PATH if step < C * 0.999]
    while steps and steps[-1] >= PATH[-1] and steps[-1] * 2 < C:
        steps.append(steps[-1] * 2)
    return (*steps, C)


def greatest_balance(C: float) -> float:
    """The balance up to which every labelling has a solution at C: the first plane needs C (1 - balance) > 1.

    Examples
    --------
    >>> from mmcnb.hinge.cccp import greatest_balance
    >>> round(greatest_balance(10.0), 4)
    0.8999
    """
    return 1 - 1.001 / C


def continuation(
    working_set: WorkingSet,
    labels: Labels,
    objective: Objective,
    path: Sequence[float],
    eta: float,
    limits: CCCPLimits,
    record: Record,
    budget: SweepBudget | None = None,
    passing: bool = False,
) -> CCCPResult | None:
    """Rounds at rising C, each from the labels and cutting planes of the one before.

    Parameters
    ----------
    working_set : WorkingSet
        The working set.
    labels : Labels
        Labels to start from.
    objective : Objective
        Form of the problem.
    path : sequence of float
        Rising values of C.
    eta : float
        Tolerance of the last rounds; the others run at a loose one.
    limits : CCCPLimits
        When rounds at one C stop, and which labels they accept.
    record : callable
        Called with one dict per sweep.
    budget : SweepBudget or None, default=None
        Sweeps that are left; None for no bound.
    passing : bool, default=False
        Whether the last C, too, may end before all labels settle.

    Returns
    -------
    CCCPResult or None
        The last result that did not degenerate; None where there is none.
    """
    budget = budget or SweepBudget()
    working_set.labels = None
    state: CCCPResult | None = None
    few = PASSING_SHARE * working_set.training_set.total_weight
    steps = 0
    for C in path:
        bearable = min(objective.balance, max(0.0, greatest_balance(C)))
        form = (
            objective
            if objective.threshold == "fixed"
            else replace(objective, balance=bearable)
        )
        # The gap left is C eta rho, and rho exceeds |w|²: with a constant eta the
        # labels wander at large C.
        last = path[-1] == C and not passing
        tolerance = eta if last else max(eta, LOOSE_GAP / C)
        changed = limits.changed if last else max(limits.changed, few)
        for number in range(limits.max_rounds):
            tagged = tag(record, round=number)
            solution = working_set.cutting_plane(
                labels, form, C, tolerance, tagged, budget
            )
            if solution.status == "degenerate":
                working_set.labels = None  # what is left of its planes is no start
                break
            training_set = working_set.training_set
            step = training_set.label_step(
                labels, solution.hyperplane, solution.statistics, limits.least
            )
            if (
                step.changed or not step.counted
            ):  # otherwise the planes have these labels
                labels = step.labels
            steps += bool(np.any(step.threshold))
            still = step.changed <= changed or (not step.counted and number > 0)
            status = (
                solution.status if still or solution.status == "sweeps" else "rounds"
            )
            state = CCCPResult(
                labels,
                step.boundary,
                solution,
                step.threshold,
                status,
                training_set,
                steps,
            )
            if still or status == "sweeps":
                break
        if solution.status == "degenerate" and number == 0:
            return state
    return state
