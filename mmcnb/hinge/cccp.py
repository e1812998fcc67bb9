"""The concave-convex procedure (CCCP) over labels, and continuation in C.

Each round solves the convex subproblem for fixed labels, and then relabels the rows
with the resulting hyperplane. The objective never increases. With random initial
labels, rounds at C = 10 end in a useless local optimum. Therefore, the first rounds run
at C = 1.01, where the problem has a single optimum, until the labels no longer change.
Then C is raised in steps. Each step starts with the labels and cutting planes of the
previous step.
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

# Values of C in the continuation, chosen by `python -m benchmarks collapse`.
PATH = (1.01, 1.3, 2.0, 3.5, 6.0, 10.0)
# Duality gap that is accepted at all values of C except the last, in units of rho.
LOOSE_GAP = 0.03
# At all values of C except the last, rounds stop when at most this fraction of the
# labels changes, because the next C changes labels anyway.
PASSING_SHARE = 0.003


@dataclass(frozen=True)
class CCCPLimits:
    """Stopping criteria of the CCCP rounds, and the minimum cluster size.

    Parameters
    ----------
    max_rounds : int, default=30
        Maximum number of rounds at one C.
    changed : float, default=0.0
        Rounds stop when the total weight of the rows whose label changes is at most
        this value.
    least : float, default=0.05
        Minimum share of the total weight in the smaller cluster.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop at the last C.
    settles : bool, default=True
        Whether ``changed`` and ``eta`` apply unchanged at the last C. If False, the
        looser limits that `loosened` returns apply at every C.
    """

    max_rounds: int = 30
    changed: float = 0.0
    least: float = 0.05
    eta: float = 0.01
    settles: bool = True

    def loosened(self, C: float, total_weight: float) -> "CCCPLimits":
        """Return looser limits for a value of C before the last one.

        A cutting-plane loop with tolerance eta leaves a duality gap of up to C eta rho,
        and rho exceeds |w|². With a constant eta, labels would therefore change at a
        large C without improving the result.
        """
        return replace(
            self,
            eta=max(self.eta, LOOSE_GAP / C),
            changed=max(self.changed, PASSING_SHARE * total_weight),
        )


@dataclass(frozen=True)
class CCCPResult:
    """Result of CCCP rounds: labels, and the solution that determines them.

    Parameters
    ----------
    labels : Labels
        Labels of the rows in ``training_set``.
    boundary : Hyperplane or Scores
        The hyperplane or the scores that determine the labels, already shifted by
        ``threshold``.
    solution : SubproblemResult
        Solution of the subproblem in the last round that was not degenerate.
    threshold : float or ndarray of shape (k,)
        Decision value that separates the two clusters: 0, or a quantile if the smaller
        cluster would otherwise have too few rows. With more than two clusters, the size
        multipliers that are subtracted from the scores.
    status : {"converged", "stalled", "sweeps", "rounds"}
        Status of the cutting-plane loop in the last round; "rounds" if too many labels
        were still changing after the maximum number of rounds.
    training_set : TrainingSet
        The labelled rows, with the features on which ``boundary`` is defined.
    quantile_steps : int, default=0
        Number of rounds, over all values of C, in which the boundary was shifted to
        keep the cluster sizes within their bounds.
    changed : float or None, default=None
        Weight of the rows whose label the last round changed. None if this weight is
        unknown, which can happen only if the boundary was shifted.
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
    """Return the path of C, a tuple of increasing values from 1.01 to ``C``.

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
    """Return the largest balance for which the QP at C is feasible for any labels.

    The QP with only the plane of all rows is feasible if C (1 - balance) > 1.

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
    """Run rounds at increasing C, passing labels and planes from one C to the next.

    Parameters
    ----------
    working_set : WorkingSet
        Working set of the rows. Its cutting planes are updated in place.
    labels : Labels
        Initial labels.
    objective : Objective
        Form of the objective.
    path : sequence of float
        Increasing values of C.
    limits : CCCPLimits
        Stopping criteria of the rounds at one C, and the minimum cluster size.
    record : callable
        Function that is called with one dict per sweep.
    budget : SweepBudget or None, default=None
        Counter of the sweeps that are still allowed. If None, there is no limit.

    Returns
    -------
    CCCPResult or None
        Result of the last round that was not degenerate, or None if the very first
        round was degenerate.
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
    """Return the objective, with its balance reduced if the QP at C is infeasible."""
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
    """Run rounds at one C, or return None if the first solution is degenerate."""
    state: CCCPResult | None = None
    quantile_steps = 0
    for number in range(limits.max_rounds):
        solution = working_set.cutting_plane(
            labels, objective, C, limits.eta, tag(record, round=number), budget
        )
        if solution.status == "degenerate":
            working_set.labels = None  # its planes are useless as a start
            return state
        training_set = working_set.training_set
        step = training_set.label_step(
            labels, solution.hyperplane, solution.statistics, limits.least
        )
        # If no label changed, keep the old labels object: the working set rebuilds its
        # planes for a new object.
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
