"""From the sample to all rows: a larger sample where there are many, then the last steps on every row."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import CombinedPass, GatherPass, RowSumPass, sample_rows
from mmcnb.engine.plan import larger_sample
from mmcnb.engine.session import FitSession
from mmcnb.features.model import Model
from mmcnb.features.rules import Labels
from mmcnb.hinge.cccp import CCCPResult, continuation
from mmcnb.hinge.cutting_plane import SweepBudget
from mmcnb.hinge.sample_search import RestartResult, SearchConfig
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.working_set import WorkingSet
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import stack

STILL_SHARE = 5e-4  # share of the labels that may still change in the last round on many rows
FINAL_ROUNDS = 5  # rounds on all rows where a larger sample went before: they only settle its labels


def last_steps(
    session: FitSession,
    search: SearchConfig,
    trial: RestartResult,
    planes: WorkingSet,
    labels: Labels,
    budget: SweepBudget,
    stage: str = "all rows",
) -> CCCPResult:
    """Rounds at the last C on more rows than the sample.

    Where the labels cannot be separated there at the last C, a lower one has to serve.
    """
    most = FINAL_ROUNDS if larger_sample(planes.problem.n_samples) else search.limits.max_rounds
    still = STILL_SHARE * planes.problem.total_weight
    limits = replace(search.limits, changed=still, max_rounds=min(most, search.limits.max_rounds))

    def record(row: dict[str, Any]) -> None:
        session.record(row | {"stage": stage, "gamma": trial.gamma})

    steps = [(C, trial.objective.total_variance) for C in reversed(search.path)]
    for C, total_variance in [*steps, (search.path[0], 0.0)]:
        objective = replace(trial.objective, total_variance=total_variance)
        state = continuation(planes, labels, objective, (C,), search.eta, limits, record, budget)
        if state is not None:
            return state
    raise AssertionError("unreachable: without a spread nothing is degenerate")


def working_set_on_all_rows(
    session: FitSession, search: SearchConfig, trial: RestartResult, model: Model
) -> tuple[WorkingSet, Labels]:
    """Planes and labels found on samples, over all rows."""
    features = session.engine.cache(model.features(session.samples), session.plan)
    wanted = larger_sample(session.samples.n_samples)
    if wanted:
        random_state = np.random.RandomState(search.seed)
        rows = sample_rows(session.samples.n_samples, wanted, session.weights, random_state)
        both = CombinedPass((GatherPass(rows), RowSumPass(session.weights)))
        gathered, row_sum = session.engine.run(both, features, "larger sample")
        weights = None if session.weights is None else session.weights[rows]
        sketch = trial.problem.over(open_samples(stack(gathered)), weights, hold_labels=True)
        known, state = _on_larger_sample(session, search, trial, sketch)
        # Where reads are few, none is spent on the exact place of a quantile.
        few = sketch if session.plan.few else None
        problem = trial.problem.over(features, session.weights, row_sum=row_sum, sketch=few)
    else:
        problem = trial.problem.over(features, session.weights)
        known, state = trial.planes, trial.state
    return known.over(problem), problem.labels_of(state.boundary)


def _on_larger_sample(
    session: FitSession, search: SearchConfig, trial: RestartResult, problem: TrainingSet
) -> tuple[WorkingSet, CCCPResult]:
    planes = trial.planes.over(problem)
    labels = problem.labels_of(trial.state.boundary)
    return planes, last_steps(session, search, trial, planes, labels, SweepBudget(), "larger sample")
