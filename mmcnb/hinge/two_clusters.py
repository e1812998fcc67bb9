"""Two clusters in the hinge form: the best start on the sample, refinement on all rows, the result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import CombinedPass, GatherPass, RowSumPass, sample_rows
from mmcnb.engine.session import FitResult, FitSession, tag, whole_numbers
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Labels, RuleLabels
from mmcnb.hinge.cccp import CCCPResult, continuation
from mmcnb.hinge.cutting_plane import (
    Objective,
    SampleWorkingSet,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.needs import FEW_SWEEPS, larger_sample
from mmcnb.hinge.sample_search import (
    CLEAN_SCORE,
    KernelFeatures,
    RestartResult,
    SearchConfig,
    search_sample,
)
from mmcnb.hinge.training_set import ConstraintStatistics
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import stack

# Share of the labels that may change in the last round after the sample: `python -m
# benchmarks engine`.
STILL_SHARE = 5e-4
FINAL_ROUNDS = 5  # on all rows after a larger sample, whose labels change little
SMALL_SHARE = (
    0.3  # of the rows; the report says so where the smaller cluster holds less
)
AGREEMENT = 0.9  # of the labels at two bandwidths; below it the criteria disagree
Refined = tuple[
    CCCPResult, Model
]  # where a refinement ended, and the model without its hyperplane
Refine = Callable[[FitSession, RestartResult, Model], Refined]


# -- all rows --------------------------------------------------------------------------


def refine_on_all_rows(
    session: FitSession, restart: RestartResult, model: Model
) -> Refined:
    """Refine the labels and cutting planes of the sample on all rows.

    With many rows a larger sample comes in between. A few are held in memory, where
    rounds are compiled.
    """
    features = session.cached(model.features(session.samples))
    n = session.samples.n_samples
    compiled = isinstance(restart.working_set, SampleWorkingSet)
    over = restart.training_set.over
    working_set = restart.working_set
    state = restart.state
    size = larger_sample(n, compiled)
    row_sum = None
    few = None
    if size:
        drawn, weights, row_sum = draw_larger_sample(
            session, features, size, restart.config.seed
        )
        larger = over(drawn, weights, hold_labels=True)
        working_set = working_set.over(larger)
        labels = larger.labels_of(state.boundary)
        stage = "all rows" if size == n else "larger sample"
        state = last_steps(session, restart, working_set, labels, None, stage)
        if size == n:
            return replace(
                state, training_set=over(features, session.weights, row_sum=row_sum)
            ), model
        # If reads are limited, the larger sample gives the quantiles.
        few = larger if session.plan.needs.sweeps <= FEW_SWEEPS else None
    training_set = over(features, session.weights, row_sum=row_sum, sketch=few)
    labels = training_set.labels_of(state.boundary)
    working_set = working_set.over(training_set)
    return last_steps(
        session, restart, working_set, labels, session.plan.needs.sweeps
    ), model


def draw_larger_sample(
    session: FitSession, features: Samples, size: int, seed: int
) -> tuple[Samples, np.ndarray | None, tuple[np.ndarray, float]]:
    """A larger sample with its weights, and the sum of all rows from the same pass."""
    rows = sample_rows(
        session.samples.n_samples, size, session.weights, np.random.RandomState(seed)
    )
    both = CombinedPass((GatherPass(rows), RowSumPass(session.weights)))
    gathered, row_sum = session.engine.run(both, features, "larger sample")
    weights = None if session.weights is None else session.weights[rows]
    return open_samples(stack(gathered)), weights, row_sum


def falling(
    config: SearchConfig, objective: Objective
) -> list[tuple[float, Objective]]:
    """C from the last to the first, and then the first with an objective for which nothing is degenerate."""
    bare = config.path[0], replace(objective, total_variance=0.0)
    return [*((C, objective) for C in reversed(config.path)), bare]


def last_steps(
    session: FitSession,
    restart: RestartResult,
    working_set: WorkingSet,
    labels: Labels,
    sweeps: int | None,
    stage: str = "all rows",
) -> CCCPResult:
    """Rounds at the last C on more rows than the sample.

    Where the labels cannot be separated at the last C, lower ones are tried.
    """
    training_set = working_set.training_set
    budget = SweepBudget(sweeps)
    config = restart.config
    most = (
        FINAL_ROUNDS
        if larger_sample(training_set.n_samples)
        else config.limits.max_rounds
    )
    still = STILL_SHARE * training_set.total_weight
    limits = replace(
        config.limits, changed=still, max_rounds=min(most, config.limits.max_rounds)
    )
    record = tag(session.record, stage=stage, gamma=restart.gamma)
    given = (config.eta, limits, record, budget)
    forms = falling(config, restart.objective)
    states = (
        continuation(working_set, labels, form, (C,), *given) for C, form in forms
    )
    return next(
        filter(None, states)
    )  # the last form separates any labels, as nothing is degenerate there


def refined(
    session: FitSession, restart: RestartResult, refine: Refine = refine_on_all_rows
) -> Refined:
    """Where a start on the sample ends on all rows, and its model."""
    training_set = restart.training_set
    empty = Hyperplane(np.empty(0), 0.0)
    dtype = training_set.features.dtype.name
    model = Model(
        empty, restart.candidate.kernel, training_set.basis, session.scaling, dtype
    )
    state = restart.state
    if session.has_more_rows:
        state, model = refine(session, restart, model)
    return state, replace(
        model,
        rule=state.boundary,
        kernel_weights=state.solution.quadratic.kernel_weights,
    )


# -- the fit ---------------------------------------------------------------------------


def fit_two_clusters(
    session: FitSession,
    candidates: Sequence[Callable[[], KernelFeatures]],
    config: SearchConfig,
    refine: Refine = refine_on_all_rows,
    **attributes: Any,
) -> FitResult:
    """Search starts on the sample, and refine the best one on all rows.

    Parameters
    ----------
    session : FitSession
        The fit.
    candidates : sequence of callable
        Each makes the sample under one kernel.
    config : SearchConfig
        Settings of the search.
    refine : callable, default=refine_on_all_rows
        The refinement if there are more rows than the sample.
    **attributes
        Fitted attributes that take the place of gamma.

    Returns
    -------
    FitResult
        Cluster 0 is where f is below 0.
    """
    restarts = search_sample(session.engine, candidates, config, session.record)
    # not even the first C separates the rows: the report says that no clusters were
    # found
    if not restarts:
        accepting = replace(config, separable=False)
        restarts = search_sample(
            session.engine, candidates[:1], accepting, session.record
        )
    restart, (state, model) = restarts[0], refined(session, restarts[0], refine)
    solution = state.solution
    statistics = state.solution.statistics
    if state.threshold != 0.0:  # the statistics are those of another threshold
        training_set = restart.training_set.over(
            model.features(session.samples), session.weights
        )
        labels = RuleLabels(state.boundary)
        _, statistics, _ = training_set.most_violated(
            labels, state.boundary, solution.quadratic.rho
        )
    separated, warnings = separation(solution, restart.random_solution())
    above_cut = _above_cut(restart)
    sample = restart.training_set
    steps = [
        restart.state.quantile_steps,
        0 if state is restart.state else state.quantile_steps,
    ]
    report = {
        **separated,
        "score": restart.leave_one_out,
        "gamma": restart.gamma,
        "widths": [] if restart.gamma is None else [one.width for one in restarts],
        "kernel_evaluations": 0 if sample.basis is None else sample.features.n_features,
        "quantile_steps": sum(steps),
    }
    result = result_of(
        session,
        model,
        state,
        statistics,
        attributes or {"gamma": restart.gamma},
        report,
    )
    features = state.training_set.features if session.has_more_rows else result.features
    warnings = [*warnings, *above_cut, *_disagreements(restarts), *result.warnings]
    return replace(
        result, features=features, warnings=warnings, quiet=[*above_cut, *result.quiet]
    )


# -- the result ------------------------------------------------------------------------


def result_of(
    session: FitSession,
    model: Model,
    state: CCCPResult,
    statistics: ConstraintStatistics,
    values: dict[str, Any],
    report: dict[str, Any],
) -> FitResult:
    """The result of a model, by the statistics of its boundary; a small cluster has a quiet warning."""
    solution = state.solution
    share = statistics.positive
    total = (
        session.samples.n_samples
        if session.weights is None
        else float(session.weights.sum())
    )
    attributes = {
        "rho": solution.quadratic.rho,
        "objective": solution.value(statistics.hinge),
    }
    attributes |= {"converged": state.status == "converged"} | values
    sizes = {
        "sizes": whole_numbers([round(total * (1 - share), 6), round(total * share, 6)])
    }
    features = model.features(session.samples)
    least = min(share, 1 - share)
    small = (
        [f"the smaller cluster holds only {least:.1%} of the rows."]
        if least < SMALL_SHARE
        else []
    )
    return FitResult(
        model, features, attributes, report, sizes, warnings=small, quiet=small
    )


def separation(
    solution: SubproblemResult, random: SubproblemResult
) -> tuple[dict[str, Any], list[str]]:
    """Report entries of a solution beside that of random labels, and a warning where it is no better."""
    found = bool(solution.score > random.score)
    norm, random_norm = (float(one.quadratic.norm2**0.5) for one in (solution, random))
    entries = {"clusters_found": found, "w_norm": norm, "w_norm_random": random_norm}
    entries |= {"C": float(solution.C), "gap": float(solution.gap)}
    sentence = "no clusters found: |w| is no larger than random labels give; try another gamma."
    return entries, [] if found else [sentence]


def _above_cut(restart: RestartResult) -> list[str]:
    score = restart.leave_one_out
    fault = f"the partition is not clean (leave-one-out score {score:.3f}, above {CLEAN_SCORE:g})"
    return (
        [] if score <= CLEAN_SCORE else [f"{fault}; other partitions may be as good."]
    )


def _disagreements(restarts: list[RestartResult]) -> list[str]:
    """Warnings for criteria that prefer a bandwidth with different labels."""
    preferred = {
        "|w|²": max(restarts, key=lambda restart: round(restart.relative_norm2, 9)),
        "the leave-one-out score": min(
            restarts, key=lambda restart: round(restart.leave_one_out, 9)
        ),
    }
    sentences = []
    for criterion, other in preferred.items():
        agreement = float(np.mean(other.labels == restarts[0].labels))
        agreement = max(agreement, 1 - agreement)
        if agreement < AGREEMENT:
            fault = f"the judges of the width disagree: {criterion} prefers gamma={other.gamma:.4g}"
            sentences.append(
                f"{fault}, whose labels agree on {agreement:.0%} of the sample."
            )
    return sentences
