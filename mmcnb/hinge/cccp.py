"""The CCCP loop over labels, and its continuation in C.

Each round solves the convex subproblem for fixed labels and takes the labels of
its hyperplane; the objective never rises. A random start is useless at C = 10.
So rounds run to a fixed point of the labels at C near 1, where there is one
smooth hill. Then C is raised, and labels and cutting planes carry over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmcnb.engine.session import Record, tag
from mmcnb.features.rules import Hyperplane, Labels, Scores
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.training_set import TrainingSet

# C of the continuation: `python -m benchmarks collapse`.
PATH = (1.01, 1.3, 2.0, 3.5, 6.0, 10.0)
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
    eta : float, default=0.01
        Tolerance of the cutting-plane loop at the last C.
    settles : bool, default=True
        Whether labels settle at the last C; otherwise its rounds may end as early as
        those at the other C.
    """

    max_rounds: int = 30
    changed: float = 0.0
    least: float = 0.05
    eta: float = 0.01
    settles: bool = True

    def loosened(self, C: float, total_weight: float) -> "CCCPLimits":
        """Return the limits at a C after which a larger one follows.

        The remaining gap is C eta rho, and rho exceeds |w|². With a constant eta the
        labels would wander at a large C.
        """
        return replace(
            self,
            eta=max(self.eta, LOOSE_GAP / C),
            changed=max(self.changed, PASSING_SHARE * total_weight),
        )


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
        "converged" where the last round changed few enough labels and its cutting-plane
        loop reached its tolerance; otherwise what ended the rounds.
    training_set : TrainingSet
        The features in which the hyperplane is written.
    quantile_steps : int, default=0
        How often the labels had to be shifted into their bounds, on the whole path.
    changed : float or None, default=None
        Weight of the rows whose label the last round changed; None if it was not
        counted, because labels of a stream were shifted.
    """

    labels: Labels
    boundary: Hyperplane | Scores
    solution: SubproblemResult
    threshold: float | np.ndarray
    status: str
    training_set: TrainingSet
    quantile_steps: int = 0
    changed: float | None = None


def path_to(C: float) -> tuple[float, ...]:
    """Return values of C from near 1 up to ``C``.

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
    """Return the balance up to which every labelling has a solution at C.

    The first plane needs C (1 - balance) > 1.

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
    limits: CCCPLimits,
    record: Record,
    budget: SweepBudget | None = None,
) -> CCCPResult | None:
    """Run rounds at rising C, each from the labels and planes of the one before.

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
    limits : CCCPLimits
        When rounds at one C stop, and which labels they accept.
    record : callable
        Called with one dict per sweep.
    budget : SweepBudget or None, default=None
        Sweeps that are left; None for no bound.

    Returns
    -------
    CCCPResult or None
        The last result that did not degenerate; None where there is none.
    """
    budget = budget or SweepBudget()
    working_set.labels = None
    total_weight = working_set.training_set.total_weight
    state: CCCPResult | None = None
    quantile_steps = 0
    for C in path:
        settles = limits.settles and C == path[-1]
        limits_at_C = limits if settles else limits.loosened(C, total_weight)
        form = _feasible(objective, C)
        reached = _rounds(working_set, labels, form, C, limits_at_C, record, budget)
        if reached is None:
            return state
        labels = reached.labels
        quantile_steps += reached.quantile_steps
        state = replace(reached, quantile_steps=quantile_steps)
    return state


def _feasible(objective: Objective, C: float) -> Objective:
    """Bound the balance so that every labelling has a solution at C."""
    if objective.threshold == "fixed":
        return objective
    balance = min(objective.balance, max(0.0, greatest_balance(C)))
    return replace(objective, balance=balance)


def _rounds(
    working_set: WorkingSet,
    labels: Labels,
    objective: Objective,
    C: float,
    limits: CCCPLimits,
    record: Record,
    budget: SweepBudget,
) -> CCCPResult | None:
    """Run rounds at one C; return None if the first one degenerates."""
    state: CCCPResult | None = None
    quantile_steps = 0
    for number in range(limits.max_rounds):
        solution = working_set.cutting_plane(
            labels, objective, C, limits.eta, tag(record, round=number), budget
        )
        if solution.status == "degenerate":
            working_set.labels = None  # the planes that are left are no start
            return state
        training_set = working_set.training_set
        step = training_set.label_step(
            labels, solution.hyperplane, solution.statistics, limits.least
        )
        # Without a change the planes already have these labels.
        if step.changed or not step.counted:
            labels = step.labels
        quantile_steps += bool(np.any(step.threshold))
        is_last = (
            solution.status == "sweeps"
            or step.changed <= limits.changed
            or (not step.counted and number > 0)
        )
        state = CCCPResult(
            labels=labels,
            boundary=step.boundary,
            solution=solution,
            threshold=step.threshold,
            status=solution.status if is_last else "rounds",
            training_set=training_set,
            quantile_steps=quantile_steps,
            changed=step.changed if step.counted else None,
        )
        if is_last:
            break
    return state
