"""The CCCP loop over labels, and its continuation in C.

Each round solves the convex subproblem for fixed labels, and then relabels the rows by
its hyperplane. The objective never increases. From random labels, rounds at C = 10 end
in a useless local optimum. Therefore, the first rounds run at C = 1.01, where the
problem has a single optimum, until the labels no longer change. Then C is raised in
steps. Each step starts with the labels and cutting planes of the previous step.
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
LOOSE_GAP = 0.03  # tolerance of the duality gap before the last C, in units of rho
# Fraction of the labels that may still change in the last round at any C but the last.
# The next C changes labels anyway.
PASSING_SHARE = 0.003


@dataclass(frozen=True)
class CCCPLimits:
    """Stopping rules of the rounds over labels, and the size limit of the clusters.

    Parameters
    ----------
    max_rounds : int, default=30
        Maximum number of rounds at one C.
    changed : float, default=0.0
        Stop when the total weight of the rows that change their label is at most this
        value.
    least : float, default=0.05
        Minimum share of the weight in the smaller cluster.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop at the last C.
    settles : bool, default=True
        Whether rounds at the last C continue until the labels no longer change.
        Otherwise, the looser limits of the other values of C apply there too.
    """

    max_rounds: int = 30
    changed: float = 0.0
    least: float = 0.05
    eta: float = 0.01
    settles: bool = True

    def loosened(self, C: float, total_weight: float) -> "CCCPLimits":
        """Return looser limits for a C before the last C.

        The remaining duality gap is C eta rho, and rho exceeds |w|². With a constant
        eta, labels would change at a large C without improving the result.
        """
        return replace(
            self,
            eta=max(self.eta, LOOSE_GAP / C),
            changed=max(self.changed, PASSING_SHARE * total_weight),
        )


@dataclass(frozen=True)
class CCCPResult:
    """Labels, and the solution that determines them.

    Parameters
    ----------
    labels : Labels
        The labels.
    boundary : Hyperplane or Scores
        The hyperplane or the scores that determine the labels.
    solution : SubproblemResult
        The solution of the last round that did not degenerate.
    threshold : float or ndarray of shape (k,)
        Decision value that separates the two clusters: 0, or a quantile if the smaller
        cluster would otherwise have too few rows. With more than two clusters, the
        values subtracted from the scores.
    status : {"converged", "stalled", "sweeps", "rounds"}
        "converged" if the last round changed at most the allowed number of labels and
        its cutting-plane loop reached its tolerance. Otherwise, the reason why the
        rounds ended.
    training_set : TrainingSet
        The rows, in the features of the boundary.
    quantile_steps : int, default=0
        Number of rounds, on the whole path, in which labels had to be shifted to keep
        the cluster sizes within their bounds.
    changed : float or None, default=None
        Weight of the rows whose label the last round changed. It is None if the weight
        was not counted, which can happen if the boundary was shifted.
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
    """Return increasing values of C from 1.01 to ``C``.

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
    """Return the largest balance for which every labelling has a solution at C.

    The first plane, which contains all rows, has a solution if C (1 - balance) > 1.

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
        The working set.
    labels : Labels
        Initial labels.
    objective : Objective
        Form of the problem.
    path : sequence of float
        Increasing values of C.
    limits : CCCPLimits
        Stopping rules of the rounds at one C, and the size limit of the clusters.
    record : callable
        Called with one dict per sweep.
    budget : SweepBudget or None, default=None
        Number of sweeps that are left; None for no limit.

    Returns
    -------
    CCCPResult or None
        The last result that did not degenerate, or None if the first round degenerated.
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
    """Limit the balance so that every labelling has a solution at C."""
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
    """Run rounds at one C; return None if the first round degenerates."""
    state: CCCPResult | None = None
    quantile_steps = 0
    for number in range(limits.max_rounds):
        solution = working_set.cutting_plane(
            labels, objective, C, limits.eta, tag(record, round=number), budget
        )
        if solution.status == "degenerate":
            working_set.labels = None  # its planes are not a useful start
            return state
        training_set = working_set.training_set
        step = training_set.label_step(
            labels, solution.hyperplane, solution.statistics, limits.least
        )
        # If no label changed, keep the old object, so that the planes are not rebuilt.
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
