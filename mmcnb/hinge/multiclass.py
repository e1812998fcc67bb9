"""More than two clusters, found by least squares and separated by the widest margin.

The labels come from a search on the sample and from least-squares passes over all rows.
(CCCP rounds on all rows would undo the improvements of these passes.) Then the labels
are fixed, and a cutting-plane loop finds the scores that separate the clusters by the
widest margin (Crammer and Singer). The model consists of these scores.

W has one row per cluster, and the score of cluster h is f_h = W_h·z in centred features
z. The runner-up r of a row in cluster c is the other cluster with the largest score.
The hinge loss of the row is max(0, rho - (f_c - f_r)), and the problem

    min  1/2 |W|² - rho + C mean_i max(0, rho - (f_c - f_r))

is the two-cluster problem with other planes: P is the sum of (e_c - e_r) z' over the
active rows, divided by the number of rows; this matrix with k rows is stored flattened.
Therefore, both problems share the QP, the cutting-plane loop and the CCCP rounds. With
two clusters, W = (w, -w), and rho and the objective are twice their values in the
two-cluster form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mmcnb.engine.passes import SumPass, Sums
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, Row, tag, whole_numbers
from mmcnb.features import rules
from mmcnb.features.labelling import ClustersPass
from mmcnb.features.model import Model
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.needs import MANY_SWEEPS, larger_sample
from mmcnb.hinge.sample_search import (
    SearchConfig,
    draw_rows,
    search_config,
    solve_random,
)
from mmcnb.hinge.training_set import (
    ConstraintStatistics,
    Generator,
    LabelStep,
    MostViolated,
    PlaneSums,
    TrainingSet,
)
from mmcnb.hinge.two_clusters import draw_larger_sample, separation
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.all_rows import LabelledRows, LabelSteps, LandmarkSample, Stage
from mmcnb.least_squares.objective import Bounds, Partition
from mmcnb.least_squares.partition import PartitionConfig, random_labels
from mmcnb.least_squares.search import SearchSettings, search
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import Block, Matrix, Weights, as_matrix, check_clusters

# Number of least-squares passes over all rows, chosen by `python -m benchmarks peers`.
PASSES = 3
# Maximum number of rounds at one C on the sample. Later rounds do not improve the
# result (`python -m benchmarks mkc`).
ROUNDS = 5
LEAST_SQUARES = "least squares"
ALL_ROWS = "all rows"


@dataclass(frozen=True)
class MarginPass(ClustersPass):
    """Pass that sums max(0, rho - margin) over the rows, and computes cluster sizes."""

    rho: float

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the totals of one block."""
        scores = self.rule.decide(rows)
        weights = self.weights_of(start, stop)
        k = self.rule.n_clusters
        labels = rules.clusters_of(scores)
        hinge = np.zeros(1)
        if k > 1:
            hinge = np.maximum(0.0, self.rho - rules.margins_of(scores))
        weighted_hinge = float((weights * hinge).sum())
        sizes = np.bincount(labels, weights, k)
        return self.total_of(labels, start, weighted_hinge, sizes)


@dataclass(frozen=True)
class RunnerUpPass(SumPass):
    """Pass that computes the most violated constraint of each of several generators.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; if None, all weights are 1.
    labels : Labels
        Cluster of each row.
    generators : sequence of (Scores, float)
        Pairs of scores and their rho. If rho is infinite, all rows are active, and all
        other clusters are runners-up with equal weight.
    """

    labels: rules.Labels
    generators: Sequence[Generator]

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the totals of one block."""
        features = as_matrix(rows)
        labels = self.labels.block(rows, start, stop)
        weights = self.weights_of(start, stop)
        planes = []
        for scores, rho in self.generators:
            if np.isinf(rho):
                plane = _all_runner_ups(features, labels, weights, scores.n_clusters)
            else:
                values = scores.decide(features)
                plane = kernels.most_violated_runner_ups(
                    features, values, labels, weights, rho
                )
            planes.append(plane)
        return [np.array(sums) for sums in zip(*planes, strict=True)]


def _all_runner_ups(
    rows: Matrix, labels: np.ndarray, weights: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cutting plane of all rows in the form of `most_violated_runner_ups`.

    This plane does not depend on scores.
    """
    sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
    n_runner_ups = max(k - 1, 1)
    row_sums = sums - (sums.sum(axis=0) - sums) / n_runner_ups
    shares = sizes - (sizes.sum() - sizes) / n_runner_ups
    return row_sums, shares, np.array([weights.sum(), 0.0, 0.0, 0.0])


@dataclass(eq=False)
class MulticlassTrainingSet(TrainingSet):
    """Training set for a partition into k clusters.

    Parameters
    ----------
    engine, features, normalization, weights, hold_labels, basis, row_sum
        As in `TrainingSet`.
    sketch : MulticlassTrainingSet or None, default=None
        A uniform sample of the rows, from which the size multipliers are computed. If
        None, they are computed from all rows.
    bounds : pair of ndarray of shape (k,)
        Minimum and maximum total weight of each cluster. If there is a sketch, the
        bounds of the sketch are used instead.
    """

    bounds: Bounds = field(kw_only=True)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.bounds[0].shape[0]

    @property
    def row_weights(self) -> np.ndarray:
        """Weight of each row; 1 for every row if ``weights`` is None."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    def all_rows(self) -> Generator:
        """Return the generator of the plane of all rows, which has an infinite rho."""
        k = self.n_clusters
        p = self.mean.shape[0]
        return Generator(rules.Scores(np.zeros((p, k)), np.zeros(k)), np.inf)

    def hyperplane(self, coef: np.ndarray, beta: float) -> rules.Scores:
        """Return scores with mean 0 over the rows, given the flattened coefficients."""
        coef = coef.reshape(self.n_clusters, -1)
        return rules.Scores(np.ascontiguousarray(coef.T), coef @ self.mean)

    def plane_sums(
        self, labels: rules.Labels, generators: Sequence[Generator]
    ) -> PlaneSums:
        """Compute the planes of several generators under given labels; t is 0."""
        means, centred = self._runner_ups(labels, generators)
        s = means[:, 0]
        return PlaneSums(s, np.zeros_like(s), centred)

    def most_violated(
        self, labels: rules.Labels, hyperplane: Any, rho: float
    ) -> MostViolated:
        """Find the constraint that the scores violate most, in one sweep."""
        means, centred = self._runner_ups(labels, [Generator(hyperplane, rho)])
        active, violation, changed, hinge = means[0].tolist()
        statistics = ConstraintStatistics(
            active=active,
            signed=0.0,
            violation=violation,
            positive=0.0,
            changed=changed * self.total_weight,
            hinge=hinge,
        )
        return MostViolated(centred, statistics, np.empty(0, np.int8))

    def _runner_ups(
        self, labels: rules.Labels, generators: Sequence[Generator]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each generator, the mean statistics and the centred plane."""
        total = self.total_weight
        row_sums, shares, means = self._sweep(
            RunnerUpPass(self.weights, labels, generators)
        )
        centred = row_sums / total - (shares / total)[:, :, None] * self.mean
        return means / total, centred

    def over(
        self,
        features: Samples,
        weights: Weights,
        hold_labels: bool = False,
        row_sum: tuple[np.ndarray, float] | None = None,
        sketch: Self | None = None,
    ) -> Self:
        """Return the training set of the same problem on other rows.

        If labels are not stored and no sketch is given, this training set becomes the
        sketch. If labels are stored and no sketch is given, the bounds are scaled to
        the total weight of the other rows.
        """
        if sketch is None and not hold_labels:
            sketch = self
        other = super().over(features, weights, hold_labels, row_sum, sketch)
        if sketch is None:
            share = other.total_weight / self.total_weight
            low, high = self.bounds
            low = np.floor(low * share).astype(np.int64)
            high = np.ceil(high * share).astype(np.int64)
            other.bounds = (low, high)
        return other

    def label_step(
        self,
        labels: rules.Labels,
        hyperplane: Any,
        statistics: ConstraintStatistics,
        least: float,
    ) -> LabelStep:
        """Label each row by its largest score, after subtracting size multipliers."""
        b = (self.sketch or self).size_multipliers(hyperplane)
        boundary = hyperplane.shifted(b)
        new = self.labels_of(boundary)
        changed = statistics.changed
        if self.hold_labels:
            n = self.n_samples
            is_changed = new.block(None, 0, n) != labels.block(None, 0, n)
            changed = float(self.row_weights[is_changed].sum())
        counted = self.hold_labels or not b.any()
        return LabelStep(new, boundary, b, changed, counted)

    def size_multipliers(self, scores: rules.Scores) -> np.ndarray:
        """Return the number to subtract from the scores of each cluster.

        The subtraction keeps the sizes of the clusters within their bounds.
        """
        return _size_multipliers(self.decide(scores), self.bounds, self.row_weights)


def _size_multipliers(
    scores: np.ndarray, bounds: Bounds, weights: np.ndarray
) -> np.ndarray:
    low, high = bounds
    start = np.zeros(low.shape[0])
    return kernels.size_multipliers(scores, low, high, weights, start)


# -- the sample ------------------------------------------------------------------------


@dataclass(frozen=True)
class HingeRefinement:
    """Refinement of the labels of a sample at increasing C, under size constraints.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes.
    sample : LandmarkSample
        The sample, mapped to landmark features.
    partition : PartitionConfig
        Number of clusters, and bounds on their sizes.
    config : SearchConfig
        Values of C, tolerance, and stopping criteria of the rounds.
    """

    engine: Engine
    sample: LandmarkSample
    partition: PartitionConfig
    config: SearchConfig

    @property
    def objective(self) -> Objective:
        """Form of the objective: an adaptive threshold and a balance of 0."""
        return Objective("adaptive", 0.0, float(self.sample.features.variances.sum()))

    @property
    def rows(self) -> Stage:
        """The rows of the sample, as the first stage of `separate`."""
        sample = self.sample
        return Stage("sample", open_samples(sample.values), sample.features.weights)

    def working_set(
        self, stage: Stage, bounds: Bounds, hold_labels: bool = False
    ) -> WorkingSet:
        """Return a working set for the rows of a stage with given size bounds."""
        training_set = MulticlassTrainingSet(
            self.engine,
            stage.rows,
            self.sample.normalization,
            stage.weights,
            hold_labels,
            bounds=bounds,
        )
        return WorkingSet(training_set)

    def working_set_of(self, labels: np.ndarray) -> WorkingSet:
        """Return a working set for the sample, with size bounds that fit given labels.

        The larger a cluster is under these labels, the larger are the bounds of its
        size.
        """
        k = self.partition.n_clusters
        sizes = np.bincount(labels, self.sample.features.weights, k)
        bounds = self.partition.bounds_by_size(sizes)
        return self.working_set(self.rows, bounds, hold_labels=True)

    def run_start(self, start: Partition, record: Record) -> np.ndarray | None:
        """Refine the labels of a partition; return None if it cannot be separated."""
        labels = start.labels
        state = self.config.warm_start(
            start.start, labels, self.working_set_of(labels), self.objective, record
        )
        return None if state is None else state.labels.block(None, 0, labels.shape[0])

    def random_solution(self, C: float) -> SubproblemResult:
        """Solve the subproblem at a given C for random labels, as a baseline."""
        random_state = np.random.RandomState(self.config.seed)
        n = self.sample.values.shape[0]
        labels = random_labels(n, self.partition.shares, random_state)
        working_set = self.working_set_of(labels)
        return solve_random(working_set, rules.GivenLabels(labels), self.objective, C)

    def label_all(
        self, labels: np.ndarray, rows: Stage, record: Record
    ) -> LabelledRows:
        """Label all rows by least squares, starting from the labels of the sample."""

        def record_J(row: Row) -> None:
            # In the history, "objective" is the hinge objective, so rename the
            # least-squares objective to "J".
            renamed = {"J" if name == "objective" else name: row[name] for name in row}
            record(renamed | {"stage": LEAST_SQUARES})

        steps = LabelSteps(self.engine, record_J, self.partition, self.sample)
        return steps.all_rows(labels, rows, PASSES)

    def separate(
        self,
        labelled: LabelledRows,
        further: Sequence[Stage],
        record: Record,
        max_sweeps: int,
    ) -> tuple[rules.Scores, SubproblemResult]:
        """Find the widest margin between labelled clusters.

        Return the scores and the solution of the last stage. Each stage starts with the
        planes of the previous stage, and uses the largest C at which the clusters are
        separated. If no C separates them, the solution at the smallest C is accepted,
        although it is degenerate.
        """
        labels = rules.RuleLabels(labelled.rule)
        generators = list[Generator]()
        for stage in (self.rows, *further):
            working_set = self.working_set(stage, labelled.bounds)
            working_set.generators = generators or working_set.generators
            tagged = tag(record, stage=stage.name)
            budget = SweepBudget(max_sweeps if stage.name == ALL_ROWS else None)
            working_set.relabel(labels)
            for C, form in self.config.falling(self.objective):
                solution = working_set.cutting_plane(
                    labels, form, C, self.config.limits.eta, tagged, budget
                )
                if solution.status != "degenerate":
                    break
            generators = working_set.generators
        scores = solution.hyperplane
        values = scores.decide(self.sample.values)
        weights = self.sample.features.weights
        b = _size_multipliers(values, labelled.bounds, weights)
        return scores.shifted(b), solution


def cluster_sample(
    engine: Engine,
    rows: Matrix,
    weights: Weights,
    settings: SearchSettings,
    config: SearchConfig,
    random_state: np.random.RandomState,
    record: Record,
) -> tuple[Partition, HingeRefinement]:
    """Cluster a sample by least squares, and refine the best partitions.

    Return the best partition, and the `HingeRefinement` of the sample, whose methods
    then label and separate more rows.
    """

    def refinement(sample: LandmarkSample) -> HingeRefinement:
        return HingeRefinement(engine, sample, settings.partition, config)

    sample, partitions = search(
        engine,
        rows,
        weights,
        settings,
        random_state,
        record,
        refine=lambda sample: refinement(sample).run_start,
    )
    for partition in partitions:
        record(
            {
                "stage": LEAST_SQUARES,
                "start": partition.start,
                "J": partition.objective,
            }
        )
    return partitions[0], refinement(sample)


def widest_margin_of_rows(
    engine: Engine,
    rows: Matrix,
    weights: Weights,
    settings: SearchSettings,
    random_state: np.random.RandomState,
    record: Record,
) -> tuple[Model, float]:
    """Cluster rows in memory like `fit_multiclass`; return a model and its rho."""
    n = rows.shape[0]
    size = settings.searched_rows(n)
    sample, sample_weights = draw_rows(rows, weights, size, random_state)
    m = sample.shape[0]
    seed = random_state.randint(2**31 - 1)
    config = search_config(m, seed, max_rounds=ROUNDS)
    check_clusters(settings.partition.n_clusters, sample, n)
    best, refinement = cluster_sample(
        engine, sample, sample_weights, settings, config, random_state, record
    )
    model = refinement.sample.model(None, settings.partition.alpha)
    features = model.features(open_samples(rows))
    all_rows = Stage(ALL_ROWS, cache_features(features, "memory"), weights)
    labelled = refinement.label_all(best.labels, all_rows, record)
    further = [all_rows] if n > m else []
    scores, solution = refinement.separate(labelled, further, record, MANY_SWEEPS)
    return replace(model, rule=scores, ridge=None), solution.quadratic.rho


def fit_multiclass(
    session: FitSession, settings: SearchSettings, config: SearchConfig
) -> FitResult:
    """Find clusters by least squares, refine them, and fit scores that separate them.

    The scores are functions of kernel values against landmarks.
    """
    record = session.record
    n = session.samples.n_samples
    check_clusters(settings.partition.n_clusters, session.sample, n)
    best, refinement = cluster_sample(
        session.engine,
        session.sample,
        session.sample_weights,
        settings,
        config,
        session.random_state,
        record,
    )
    model = refinement.sample.model(session.scaling, settings.partition.alpha)
    features = session.cached(model.features(session.samples))
    all_rows = Stage(ALL_ROWS, features, session.weights)
    labelled = refinement.label_all(best.labels, all_rows, record)
    further = [all_rows] if session.has_more_rows else []
    size = min(larger_sample(n), session.plan.needs.larger_rows)
    if size:
        larger = draw_larger_sample(session, features, size, config.seed)
        further = [Stage("larger sample", larger.features, larger.weights)]
    max_sweeps = session.plan.needs.sweeps
    scores, solution = refinement.separate(labelled, further, record, max_sweeps)
    model = replace(model, rule=scores, ridge=None)
    random = refinement.random_solution(solution.C)
    result = multiclass_result(session, model, features, solution, random)
    gamma = refinement.sample.kernel.gamma
    converged = labelled.settled and solution.status == "converged"
    return replace(
        result,
        attributes=result.attributes
        | {"gamma": gamma, "converged": converged, "n_changed": labelled.n_changed},
        report=result.report
        | {"gamma": gamma, "sample_objective": float(best.objective)},
    )


# -- the result ------------------------------------------------------------------------


def multiclass_result(
    session: FitSession,
    model: Model,
    features: Samples,
    solution: SubproblemResult,
    random: SubproblemResult,
) -> FitResult:
    """Return the result of a fit with one score per cluster.

    Parameters
    ----------
    session : FitSession
        State of the fit.
    model : Model
        The model, whose rule is the scores.
    features : Samples
        All rows, mapped to the features on which the scores are defined.
    solution : SubproblemResult
        Result of the last cutting-plane loop.
    random : SubproblemResult
        Solution for random labels on the sample.

    Returns
    -------
    FitResult
        The result, with a warning if some clusters are empty, and a warning if the
        margin is not wider than the margin for random labels.
    """
    sweep = MarginPass(session.weights, model.rule, solution.quadratic.rho)
    hinge, sizes, first, _ = session.engine.run(sweep, features, "margins")
    empty = int((sizes == 0).sum())
    report, warnings = separation(solution, random)
    if empty:
        warnings.append(
            f"{empty} of the {sizes.shape[0]} clusters contain no rows; "
            "give fewer clusters."
        )
    attributes = {
        "rho": solution.quadratic.rho,
        "objective": solution.value(hinge / sizes.sum()),
    }
    per_cluster = {"sizes": whole_numbers(sizes.tolist())}
    return FitResult(model, features, attributes, report, per_cluster, first, warnings)
