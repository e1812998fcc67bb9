"""More than two clusters in the hinge form: clustered by least squares, separated by the widest margin.

Labels come from the sample and from passes of least squares over all rows. Hinge rounds on all rows would
undo what these passes improve. The labels are then fixed, and one cutting-plane loop finds the scores that
separate them by the widest margin (Crammer and Singer). These scores are the model.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import GatherPass, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, run_starts, tag, whole_numbers
from mmcnb.features.graph import NodeGraph
from mmcnb.features.model import Model
from mmcnb.features.rules import GivenLabels, RuleLabels, Scores
from mmcnb.hinge.cccp import continuation
from mmcnb.hinge.crammer_singer import CrammerSingerWorkingSet, MarginPass, MulticlassTrainingSet
from mmcnb.hinge.cutting_plane import Objective, SubproblemResult, SweepBudget, cutting_plane
from mmcnb.hinge.needs import larger_sample
from mmcnb.hinge.sample_search import SearchConfig, solve_random
from mmcnb.hinge.two_clusters import separation
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.all_rows import LabelledRows, MappedSample, label_all_rows
from mmcnb.least_squares.graph_partition import GraphSample
from mmcnb.least_squares.normalized_cut import cut_score
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import REFINED, PartitionConfig, Refine, random_labels
from mmcnb.least_squares.search import LandmarkSample, SampleClusters, SearchSettings, search
from mmcnb.samples import BLOCK_ROWS, Samples, open_samples
from mmcnb.samples.matrix import stack

PASSES = 3  # of least squares over all rows: `python -m benchmarks peers`
ROUNDS = 5  # at one C on the sample: later ones improve nothing (`python -m benchmarks mkc`)
LEAST_SQUARES = "least squares"


@dataclass(frozen=True)
class HingeRefinement:
    """Labels of a sample refined at rising C, under size constraints.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    sample : MappedSample
        The sample in landmark features, or in the coordinates of a graph.
    partition : PartitionConfig
        Bounds of the cluster sizes.
    config : SearchConfig
        Path of C, tolerance and limits.
    """

    engine: Engine
    sample: MappedSample
    partition: PartitionConfig
    config: SearchConfig

    @property
    def objective(self) -> Objective:
        """What is minimised."""
        return Objective("adaptive", 0.0, float(self.sample.features.variances.sum()))

    def working_set(self, labels: np.ndarray) -> CrammerSingerWorkingSet:
        """A working set whose size bounds are those of the given labels."""
        weights = self.sample.features.weights
        bounds = self.partition.bounds_by_size(np.bincount(labels, weights, self.partition.n_clusters))
        values = open_samples(self.sample.values)
        given = self.engine, values, self.sample.normalization, weights
        return CrammerSingerWorkingSet(MulticlassTrainingSet(*given, hold_labels=True, bounds=bounds))

    def run_start(self, start: Partition, record: Record) -> np.ndarray | None:
        """The labels at the last C that separates them; None where there is none."""
        tagged = tag(record, stage="sample", start=start.start)
        given = self.objective, self.config.warm_path, self.config.eta, self.config.limits, tagged
        state = continuation(self.working_set(start.labels), GivenLabels(start.labels), *given)
        return None if state is None else state.labels.block(None, 0, start.labels.shape[0])

    def random_solution(self, C: float) -> SubproblemResult:
        """The solution for random labels at one C: the baseline of a partition."""
        random_state = np.random.RandomState(self.config.seed)
        labels = random_labels(self.sample.values.shape[0], self.partition.shares, random_state)
        return solve_random(self.working_set(labels), GivenLabels(labels), self.objective, C)


def refined_by_cut(
    refinement: HingeRefinement, graph: NodeGraph, found: list[Partition], record: Record
) -> list[Partition]:
    """Partitions of a graph with refinements of the best two that improve its cut; the best comes first."""
    engine, k = refinement.engine, refinement.partition.n_clusters
    chosen, in_threads = found[:REFINED], refinement.config.sample_size <= BLOCK_ROWS
    for one, labels in zip(
        chosen, run_starts(engine, refinement.run_start, chosen, record, in_threads), strict=True
    ):
        if labels is not None:
            score = cut_score(graph.weights, graph.node_labels(labels), k)
            found = [*found, Partition(labels, score, one.start)] if score > one.objective else found
    return sorted(found, key=lambda one: -one.objective)


def fit_on_landmarks(session: FitSession, settings: SearchSettings, config: SearchConfig) -> FitResult:
    """Scores on landmarks of the sample, which separate the clusters that refinement leads to."""

    def refine(sample: LandmarkSample) -> Refine:
        return HingeRefinement(session.engine, sample, settings.partition, config).run_start

    clusters = search(session, settings, refine)
    refinement = HingeRefinement(session.engine, clusters.sample, clusters.config, config)
    return separate(session, refinement, clusters.found, clusters.report)


def fit_on_graph(session: FitSession, clusters: SampleClusters, config: SearchConfig) -> FitResult:
    """Scores that separate clusters of the nodes of a graph, refined if that improves the cut."""
    sample = clusters.sample
    assert isinstance(sample, GraphSample)
    refinement = HingeRefinement(session.engine, sample, clusters.config, config)
    found = refined_by_cut(refinement, sample.graph, clusters.found, session.record)
    return separate(session, refinement, found, clusters.report)


# -- all rows ----------------------------------------------------------------------------------


def separate(
    session: FitSession, refinement: HingeRefinement, found: list[Partition], report: dict[str, Any]
) -> FitResult:
    """Label all rows by the best partition of the sample, and separate these labels."""
    for one in found:
        session.record({"stage": LEAST_SQUARES, "start": one.start, "J": one.objective})
    sample, partition = refinement.sample, refinement.partition
    model = sample.model(session, partition.alpha)
    features = session.cached(model.features(session.samples))
    least_squares = replace(session, record=least_squares_record(session.record))
    once = model.graph is not None and session.has_more_rows  # the nodes have settled the labels
    ridge, passes = sample.ridge_map(partition.alpha), 1 if once else PASSES
    labelled = label_all_rows(least_squares, partition, sample, ridge, features, found[0].labels, passes)
    solution = widest_margin(session, refinement, labelled, features)
    model = replace(model, rule=size_constrained(solution, sample, labelled.bounds), ridge=None)
    random = refinement.random_solution(solution.C)
    converged = (labelled.settled or once) and solution.status == "converged"
    return multiclass_result(
        *(session, model, features, refinement.objective, solution, random),
        {"gamma": report["gamma"], "converged": converged},
        **{name: value for name, value in report.items() if value is not None},
        sample_objective=float(found[0].objective),
    )


def least_squares_record(record: Record) -> Record:
    """A record of least-squares passes: their objective goes to the column J."""
    return lambda row: record(
        {"J" if name == "objective" else name: value for name, value in row.items()}
        | {"stage": LEAST_SQUARES}
    )


def widest_margin(
    session: FitSession,
    refinement: HingeRefinement,
    labelled: LabelledRows,
    rows: Samples,
) -> SubproblemResult:
    """The widest margin between the clusters of least squares: on the sample, then on more rows.

    It is found at the largest C that separates the labels. Where none does, the first is used all the same.
    """
    config, sample, objective = refinement.config, refinement.sample, refinement.objective
    labels, generators = RuleLabels(labelled.rule), None
    bare = replace(objective, total_variance=0.0)  # with which nothing is degenerate
    steps = [*((C, objective) for C in reversed(config.path)), (config.path[0], bare)]
    for stage, features, weights in _stages(session, config, sample, rows):
        given = session.engine, features, sample.normalization, weights
        working_set = CrammerSingerWorkingSet(MulticlassTrainingSet(*given, bounds=labelled.bounds))
        working_set.generators = generators or working_set.generators
        record = tag(session.record, stage=stage)
        budget = SweepBudget(session.plan.needs.sweeps if stage == "all rows" else None)
        working_set.relabel(labels)
        for C, form in steps:
            solution = cutting_plane(working_set, labels, form, C, config.eta, record, budget)
            if solution.status != "degenerate":
                break
        generators = working_set.generators
    return solution


def _stages(
    session: FitSession, config: SearchConfig, sample: MappedSample, rows: Samples
) -> list[tuple[str, Samples, Any]]:
    """The sample, then a larger sample or all rows, with their weights."""
    stages: list[tuple[str, Samples, Any]] = [
        ("sample", open_samples(sample.values), sample.features.weights)
    ]
    more = larger_sample(rows.n_samples)
    if more:
        chosen = sample_rows(rows.n_samples, more, session.weights, np.random.RandomState(config.seed))
        gathered = session.engine.run(GatherPass(chosen), rows, "larger sample")
        weights = None if session.weights is None else session.weights[chosen]
        stages.append(("larger sample", open_samples(stack(gathered)), weights))
    elif rows.n_samples > sample.values.shape[0]:
        stages.append(("all rows", rows, session.weights))
    return stages


def size_constrained(
    solution: SubproblemResult, sample: MappedSample, bounds: tuple[np.ndarray, np.ndarray]
) -> Scores:
    """The scores minus the multipliers that keep cluster sizes in the sample within bounds."""
    scores: Any = solution.hyperplane
    values, zeros = scores.decide(sample.values), np.zeros(scores.offset.shape[0])
    return scores.shifted(kernels.size_multipliers(values, *bounds, sample.features.weights, zeros))


# -- the result --------------------------------------------------------------------------------


def multiclass_result(
    session: FitSession,
    model: Model,
    features: Samples,
    objective: Objective,
    solution: SubproblemResult,
    random: SubproblemResult,
    fitted: dict[str, Any],
    **entries: Any,
) -> FitResult:
    """The result of a fit of any number of clusters.

    Parameters
    ----------
    session : FitSession
        The fit.
    model : Model
        With its scores.
    features : Samples
        All rows in the features of the scores.
    objective : Objective
        What was minimised.
    solution : SubproblemResult
        Where the last cutting-plane loop ended.
    random : SubproblemResult
        The solution for random labels on the sample.
    fitted : dict
        Further fitted attributes.
    **entries
        Further entries of the report.

    Returns
    -------
    FitResult
        The result, with a warning for empty clusters and for margins no wider than at random.
    """
    scores: Any = model.rule
    sweep = MarginPass(session.weights, scores, solution.quadratic.rho)
    hinge, sizes, first = session.engine.run(sweep, features, "margins")
    empty = int((sizes == 0).sum())
    report, warnings = separation(objective, solution, random)
    if empty:
        warnings.append(f"{empty} of the {sizes.shape[0]} clusters hold no row; give fewer clusters.")
    attributes = {
        "rho": solution.quadratic.rho,
        "objective": objective.value(solution.quadratic, solution.C, hinge / sizes.sum()),
        **fitted,
    }
    per_cluster = {"sizes": whole_numbers(sizes.tolist())}
    return FitResult(model, features, attributes, report | entries, per_cluster, first, warnings)
