"""Find two clusters with the hinge loss: search a sample, then refine on all rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmcnb.engine.passes import CombinedPass, GatherPass, RowSumPass, sample_rows
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.features.kernel import MultipleKernels
from mmcnb.features.model import Model
from mmcnb.features.rules import RuleLabels
from mmcnb.hinge.cccp import CCCPResult
from mmcnb.hinge.cutting_plane import SampleWorkingSet, SubproblemResult
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
from mmcnb.samples.matrix import Weights, stack

# The report has a warning if the smaller cluster contains less than this share of the
# rows.
SMALL_SHARE = 0.3
# A fit warns if a criterion prefers a bandwidth whose labels agree with the labels of
# the fit on less than this share of the sample.
AGREEMENT = 0.9


# A function that refines a start on all rows. It returns the result of the rounds, and
# a model that maps rows to the features that were used in the rounds.
Refine = Callable[[FitSession, RestartResult], tuple[CCCPResult, Model]]


# -- all rows --------------------------------------------------------------------------


def refine_on_all_rows(
    session: FitSession, restart: RestartResult
) -> tuple[CCCPResult, Model]:
    """Refine the labels and cutting planes of the sample on all rows.

    If there are more than 131,072 rows, labels and planes are first refined on a larger
    sample. If there is a compiled loop and at most `HELD_ROWS` rows, the features of
    all rows are kept in memory.
    """
    model = restart.model(session.scaling)
    features = session.cached(model.features(session.samples))
    over = restart.training_set.over
    n = session.samples.n_samples
    max_sweeps = session.plan.needs.sweeps
    row_sum = None
    sketch = None
    size = larger_sample(n, isinstance(restart.working_set, SampleWorkingSet))
    if size < n:
        size = min(size, session.plan.needs.larger_rows)
    if size:
        larger = draw_larger_sample(session, features, size, restart.config.seed)
        row_sum = larger.row_sum
        stage = "all rows" if size == n else "larger sample"
        restart = restart.refined_in_memory(
            larger.features, larger.weights, session.record, stage
        )
        if size == n:
            training_set = over(features, session.weights, row_sum=row_sum)
            return replace(restart.state, training_set=training_set), model
        # If only a few sweeps are allowed, compute quantiles from the larger sample.
        if max_sweeps <= FEW_SWEEPS:
            sketch = restart.training_set
    training_set = over(features, session.weights, row_sum=row_sum, sketch=sketch)
    labels = training_set.labels_of(restart.state.boundary)
    working_set = restart.working_set.over(training_set)
    state = restart.last_steps(
        working_set, labels, session.record, max_sweeps=max_sweeps
    )
    return state, model


class LargerSample(NamedTuple):
    """Features and weights of a sample in memory, and the feature sum of all rows."""

    features: Samples
    weights: Weights
    row_sum: tuple[np.ndarray, float]


def draw_larger_sample(
    session: FitSession, features: Samples, size: int, seed: int
) -> LargerSample:
    """Draw a larger sample, and sum the features of all rows in the same pass."""
    rows = sample_rows(
        session.samples.n_samples, size, session.weights, np.random.RandomState(seed)
    )
    both = CombinedPass((GatherPass(rows), RowSumPass(session.weights)))
    gathered, row_sum = session.engine.run(both, features, "larger sample")
    weights = None if session.weights is None else session.weights[rows]
    return LargerSample(open_samples(stack(gathered)), weights, row_sum)


def refined(
    session: FitSession, restart: RestartResult, refine: Refine = refine_on_all_rows
) -> tuple[CCCPResult, Model]:
    """Refine a start on all rows if the sample does not contain all rows."""
    if not session.has_more_rows:
        return restart.state, restart.model(session.scaling)
    state, model = refine(session, restart)
    weights = state.solution.quadratic.kernel_weights
    return state, replace(model, rule=state.boundary, kernel_weights=weights)


# -- the fit ---------------------------------------------------------------------------


def fit_two_clusters(
    session: FitSession,
    candidates: Sequence[Callable[[], KernelFeatures]],
    config: SearchConfig,
    refine: Refine = refine_on_all_rows,
    **attributes: object,
) -> FitResult:
    """Run starts on the sample, and refine the best start on all rows.

    Parameters
    ----------
    session : FitSession
        State of the fit.
    candidates : sequence of callable
        For each bandwidth, a function that returns the sample under its kernel.
    config : SearchConfig
        Settings of the search.
    refine : callable, default=refine_on_all_rows
        Function that refines the best start on all rows. It is called only if the
        sample does not contain all rows.
    **attributes
        Fitted attributes of the estimator. The default is ``gamma``.

    Returns
    -------
    FitResult
        The result. Rows with f < 0 are in cluster 0.
    """
    restarts = search_sample(session.engine, candidates, config, session.record)
    restart = restarts[0]
    state, model = refined(session, restart, refine)
    statistics = state.solution.statistics
    if state.threshold != 0.0:  # the statistics were computed before the shift
        training_set = restart.training_set.over(
            model.features(session.samples), session.weights
        )
        statistics = training_set.most_violated(
            RuleLabels(state.boundary), state.boundary, state.solution.quadratic.rho
        ).statistics
    quantile_steps = restart.state.quantile_steps
    if state is not restart.state:
        quantile_steps += state.quantile_steps
    sample = restart.training_set
    random = restart.random_solution()
    separation_report, separation_warnings = separation(state.solution, random)
    report = {
        **separation_report,
        "score": restart.leave_one_out,
        "gamma": restart.gamma,
        "widths": _bandwidth_entries(restarts),
        "kernel_evaluations": 0 if sample.basis is None else sample.features.n_features,
        "quantile_steps": quantile_steps,
    }
    attributes = attributes or {"gamma": restart.gamma}
    result = result_of(session, model, state, statistics, attributes, report)
    if session.has_more_rows:
        result = replace(result, features=state.training_set.features)
    unclean = _unclean(restart.leave_one_out)
    rivals = []
    # With one kernel, the leave-one-out score shows whether the partition is reliable,
    # so rivals are not reported.
    if isinstance(restart.candidate.kernel, MultipleKernels):
        rivals = restart.warnings_of_rivals()
    return replace(
        result,
        warnings=[
            *separation_warnings,
            *rivals,
            *unclean,
            *_disagreements(restarts),
            *result.warnings,
        ],
        quiet=[*unclean, *result.quiet],
    )


def _bandwidth_entries(
    restarts: list[RestartResult],
) -> list[dict[str, float | None]]:
    """Return one entry of the report for each bandwidth."""
    return [
        {
            "gamma": restart.gamma,
            "relative_norm": restart.relative_norm2,
            "score": restart.leave_one_out,
        }
        for restart in restarts
        if restart.gamma is not None
    ]


# -- the result ------------------------------------------------------------------------


def result_of(
    session: FitSession,
    model: Model,
    state: CCCPResult,
    statistics: ConstraintStatistics,
    attributes: Mapping[str, object],
    report: dict[str, object],
) -> FitResult:
    """Return the fit result of a model, given the statistics of its boundary.

    A warning about a small cluster appears only in the report.
    """
    solution = state.solution
    share = statistics.positive
    total: float = session.samples.n_samples
    if session.weights is not None:
        total = float(session.weights.sum())
    sizes = [round(total * (1 - share), 6), round(total * share, 6)]
    small = []
    least = min(share, 1 - share)
    if least < SMALL_SHARE:
        small.append(f"the smaller cluster has only {least:.1%} of the rows.")
    return FitResult(
        model=model,
        features=model.features(session.samples),
        attributes={
            "rho": solution.quadratic.rho,
            "objective": solution.value(statistics.hinge),
            "converged": state.status == "converged",
            "n_changed": changed_labels(session, state),
            **attributes,
        },
        report=report,
        per_cluster={"sizes": whole_numbers(sizes)},
        warnings=small,
        quiet=small,
    )


def changed_labels(session: FitSession, state: CCCPResult) -> float | None:
    """Return the number (or weight) of labels that the last round changed.

    Return None if these labels were not counted.
    """
    if state.changed is None:
        return None
    total: float = session.samples.n_samples
    if session.weights is not None:
        total = float(session.weights.sum())
    # With several kernels, the weights of the training set are relative.
    share = state.changed / state.training_set.total_weight
    return whole_numbers([round(share * total, 6)])[0]


def separation(
    solution: SubproblemResult, random: SubproblemResult
) -> tuple[dict[str, object], list[str]]:
    """Compare a solution with the solution for random labels.

    Return entries of the report, and a list that contains a warning if the solution is
    not better.
    """
    is_better = bool(solution.score > random.score)
    report: dict[str, object] = {
        "clusters_found": is_better,
        "w_norm": float(solution.quadratic.norm2**0.5),
        "w_norm_random": float(random.quadratic.norm2**0.5),
        "C": float(solution.C),
        "gap": float(solution.gap),
    }
    warnings = []
    if not is_better:
        warnings.append(
            "no clusters found: |w| is not larger than for random labels; "
            "try another gamma."
        )
    return report, warnings


def _unclean(score: float) -> list[str]:
    """Return a list with a warning if the leave-one-out score is too high."""
    if score <= CLEAN_SCORE:
        return []
    return [
        f"the partition is not clean (leave-one-out score {score:.3f}, above "
        f"{CLEAN_SCORE:g}); other partitions may be as good."
    ]


def _disagreements(restarts: list[RestartResult]) -> list[str]:
    """Return a warning for each criterion whose best bandwidth gives other labels."""
    preferred = {
        "|w|²": max(restarts, key=lambda restart: round(restart.relative_norm2, 9)),
        "the leave-one-out score": min(
            restarts, key=lambda restart: round(restart.leave_one_out, 9)
        ),
    }
    warnings = []
    for criterion, other in preferred.items():
        agreement = float(np.mean(other.labels == restarts[0].labels))
        agreement = max(agreement, 1 - agreement)
        if agreement < AGREEMENT:
            warnings.append(
                "the criteria select different values of gamma: "
                f"{criterion} prefers gamma={other.gamma:.4g}, whose labels agree with "
                f"the labels of this fit on {agreement:.0%} of the sample."
            )
    return warnings
