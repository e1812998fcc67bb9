"""From the sample to all rows: a larger sample where there are many, then the last steps on every row."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine import GatherPass, Together, larger_sample, stack
from mmcnb.estimators._model import Model
from mmcnb.estimators._streamed import Work, sample_rows
from mmcnb.samples import open_samples
from mmcnb.selection import Search, Trial
from mmcnb.solvers import (
    Labels,
    Planes,
    Problem,
    RowSumPass,
    State,
    SweepBudget,
    continuation,
)

STILL_SHARE = 5e-4  # share of the labels that may still change in the last round on many rows
FINAL_ROUNDS = 5  # rounds on all rows where a larger sample went before: they only settle its labels


def last_steps(
    work: Work,
    search: Search,
    trial: Trial,
    planes: Planes,
    labels: Labels,
    budget: SweepBudget,
    stage: str = "all rows",
) -> State:
    """Rounds at the last C on more rows than the sample.

    Where the labels cannot be separated there at the last C, a lower one has to serve.
    """
    most = FINAL_ROUNDS if larger_sample(planes.problem.n_samples) else search.limits.max_rounds
    still = STILL_SHARE * planes.problem.total_weight
    limits = replace(search.limits, changed=still, max_rounds=min(most, search.limits.max_rounds))

    def record(row: dict[str, Any]) -> None:
        work.record(row | {"stage": stage, "gamma": trial.gamma})

    steps = [(C, trial.objective.spread) for C in reversed(search.path)]
    for C, spread in [*steps, (search.path[0], 0.0)]:
        objective = replace(trial.objective, spread=spread)
        state = continuation(planes, labels, objective, (C,), search.eta, limits, record, budget)
        if state is not None:
            return state
    raise AssertionError("unreachable: without a spread nothing is degenerate")


def planes_on_all_rows(work: Work, search: Search, trial: Trial, model: Model) -> tuple[Planes, Labels]:
    """Planes and labels found on samples, over all rows."""
    features = work.engine.keep(model.features(work.samples), work.plan)
    wanted = larger_sample(work.samples.n_samples)
    if wanted:
        random_state = np.random.RandomState(search.seed)
        rows = sample_rows(work.samples.n_samples, wanted, work.weights, random_state)
        both = Together((GatherPass(rows), RowSumPass(work.weights)))
        gathered, row_sum = work.engine.run(both, features, "larger sample")
        weights = None if work.weights is None else work.weights[rows]
        sketch = trial.problem.over(open_samples(stack(gathered)), weights, hold_labels=True)
        known, state = _on_larger_sample(work, search, trial, sketch)
        # Where reads are few, none is spent on the exact place of a quantile.
        few = sketch if work.plan.few else None
        problem = trial.problem.over(features, work.weights, row_sum=row_sum, sketch=few)
    else:
        problem = trial.problem.over(features, work.weights)
        known, state = trial.planes, trial.state
    return known.over(problem), problem.labels_of(state.boundary)


def _on_larger_sample(work: Work, search: Search, trial: Trial, problem: Problem) -> tuple[Planes, State]:
    planes = trial.planes.over(problem)
    labels = problem.labels_of(trial.state.boundary)
    return planes, last_steps(work, search, trial, planes, labels, SweepBudget(), "larger sample")
