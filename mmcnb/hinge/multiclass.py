"""More than two clusters in the hinge form: clustered by least squares, separated by the widest margin.

Labels come from the sample and from passes of least squares over all rows. Hinge rounds
on all rows would undo what these passes improve. The labels are then fixed, and one
cutting-plane loop finds the scores that separate them by the widest margin (Crammer and
Singer). These scores are the model. Each row is set against its runner-up cluster. W
has one row a cluster, f_h = W_h·z in centred features z. The hinge of a row of cluster
c is max(0, rho - (f_c - max_{r != c} f_r)), and

    min  1/2 |W|² - rho + C mean_i max(0, rho - (f_c - f_r))

is the two-cluster problem with other planes: P = mean over the active rows of (e_c -
e_r) z', a k x r matrix that is stored flattened. So the QP, the cutting-plane loop and
the CCCP rounds are the same. With two clusters W = (w, -w), and rho and the objective
are twice those of the two-cluster form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from mmcnb.engine.passes import SumPass
from mmcnb.engine.plan import FitPlan, RowShape
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, tag, whole_numbers
from mmcnb.features import rules
from mmcnb.features.labelling import ClustersPass
from mmcnb.features.model import Model
from mmcnb.hinge.cutting_plane import (
    Objective,
    SubproblemResult,
    SweepBudget,
    WorkingSet,
)
from mmcnb.hinge.needs import larger_sample, needs_of_search
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
from mmcnb.least_squares.all_rows import LabelledRows, LandmarkSample, label_all_rows
from mmcnb.least_squares.objective import Bounds, Partition
from mmcnb.least_squares.partition import PartitionConfig, Refine, random_labels
from mmcnb.least_squares.search import SearchSettings, search
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import Weights, as_matrix

PASSES = 3  # of least squares over all rows: `python -m benchmarks peers`
ROUNDS = (
    5  # at one C on the sample: later ones improve nothing (`python -m benchmarks mkc`)
)
LEAST_SQUARES = "least squares"


@dataclass(frozen=True)
class MarginPass(ClustersPass):
    """Sums of max(0, rho - margin) over the rows, and the sizes of the clusters."""

    rho: float

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        scores = self.rule.decide(rows)
        weights = self.weights_of(start, stop)
        k = self.rule.n_clusters
        labels = rules.clusters_of(scores)
        hinge = (
            np.maximum(0.0, self.rho - rules.margins_of(scores))
            if k > 1
            else np.zeros(1)
        )
        return self.total_of(
            labels,
            start,
            float((weights * hinge).sum()),
            np.bincount(labels, weights, k),
        )


@dataclass(frozen=True)
class RunnerUpPass(SumPass):
    """The constraints that some scores violate most: one cutting plane for each of them.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights.
    labels : Labels
        Cluster of each row.
    generators : sequence of (Scores, float)
        Scores and their rho. With an infinite rho all rows are active, and all other
        clusters count equally as runners-up.
    """

    labels: rules.Labels
    generators: Any

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        rows, labels = as_matrix(rows), self.labels.block(rows, start, stop)
        weights = self.weights_of(start, stop)
        parts = []
        for scores, rho in self.generators:
            if np.isinf(rho):
                parts.append(_all_runner_ups(rows, labels, weights, scores.n_clusters))
            else:
                values = scores.decide(rows)
                parts.append(
                    kernels.most_violated_runner_ups(rows, values, labels, weights, rho)
                )
        return [np.array(one) for one in zip(*parts, strict=True)]


def _all_runner_ups(
    rows: Any, labels: np.ndarray, weights: np.ndarray, k: int
) -> tuple[Any, ...]:
    """The cutting plane of all rows: it needs no scores, and holds for any labels."""
    sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
    others = max(k - 1, 1)
    row_sums = sums - (sums.sum(axis=0) - sums) / others
    return (
        row_sums,
        sizes - (sizes.sum() - sizes) / others,
        np.array([weights.sum(), 0.0, 0.0, 0.0]),
    )


class _RunnerUps(NamedTuple):
    """For each generator the means of its sweep, and its plane, of shape (k, p)."""

    means: np.ndarray
    centred: np.ndarray


@dataclass(eq=False)
class MulticlassTrainingSet(TrainingSet):
    """Rows as features, to be partitioned into k clusters.

    Parameters
    ----------
    engine, features, normalization, weights, hold_labels, basis, row_sum
        As in `TrainingSet`.
    sketch : MulticlassTrainingSet or None, default=None
        A uniform sample of the rows whose cluster sizes stay within the bounds; None
        counts all rows.
    bounds : pair of ndarray of shape (k,)
        Least and most rows (or weight) of each cluster; of the sketch where there is
        one.
    """

    bounds: Bounds = field(kw_only=True)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.bounds[0].shape[0]

    def all_rows(self) -> Generator:
        """Return the generator of the plane of all rows: scores of 0, and infinity."""
        k = self.n_clusters
        p = self.mean.shape[0]
        return Generator(rules.Scores(np.zeros((p, k)), np.zeros(k)), np.inf)

    def hyperplane(self, coef: np.ndarray, beta: float) -> rules.Scores:
        """Scores of mean 0, from the coefficients of all clusters."""
        coef = coef.reshape(self.n_clusters, -1)
        return rules.Scores(np.ascontiguousarray(coef.T), coef @ self.mean)

    def plane_sums(
        self, labels: rules.Labels, generators: Sequence[Generator]
    ) -> PlaneSums:
        """Sum the cutting planes that some scores generate under the labels; t is 0."""
        planes = self._runner_ups(labels, generators)
        s = planes.means[:, 0]
        return PlaneSums(s, np.zeros_like(s), planes.centred)

    def most_violated(
        self, labels: rules.Labels, hyperplane: Any, rho: float
    ) -> MostViolated:
        """Find the most violated constraint of some scores in one sweep."""
        planes = self._runner_ups(labels, [Generator(hyperplane, rho)])
        active, violation, changed, hinge = planes.means[0].tolist()
        statistics = ConstraintStatistics(
            active=active,
            signed=0.0,
            violation=violation,
            positive=0.0,
            changed=changed * self.total_weight,
            hinge=hinge,
        )
        return MostViolated(planes.centred, statistics, np.empty(0, np.int8))

    def _runner_ups(
        self, labels: rules.Labels, generators: Sequence[Generator]
    ) -> _RunnerUps:
        total = self.total_weight
        row_sums, shares, means = self._sweep(
            RunnerUpPass(self.weights, labels, generators)
        )
        centred = row_sums / total - (shares / total)[:, :, None] * self.mean
        return _RunnerUps(means / total, centred)

    def over(self, features: Samples, weights: Weights, **given: Any) -> Self:
        """The same problem on other rows; where labels are not held, this set serves as the sketch."""
        sketch = given.pop("sketch", None) or (
            None if given.get("hold_labels") else self
        )
        other = super().over(features, weights, sketch=sketch, **given)
        if sketch is None:
            share, (low, high) = other.total_weight / self.total_weight, self.bounds
            other.bounds = (
                np.floor(low * share).astype(np.int64),
                np.ceil(high * share).astype(np.int64),
            )
        return other

    def label_step(
        self, labels: rules.Labels, hyperplane: Any, statistics: Any, least: float
    ) -> LabelStep:
        """The largest score of each row, minus the multipliers that keep cluster sizes within bounds."""
        b = (self.sketch or self).size_multipliers(hyperplane)
        boundary = hyperplane.shifted(b)
        new = self.labels_of(boundary)
        if not self.hold_labels:
            return LabelStep(new, boundary, b, statistics.changed, not b.any())
        every = None, 0, self.n_samples
        changed = new.block(*every) != labels.block(*every)
        weight = changed.sum() if self.weights is None else self.weights[changed].sum()
        return LabelStep(new, boundary, b, float(weight), True)

    def size_multipliers(self, hyperplane: Any) -> np.ndarray:
        """What to subtract from the scores so that cluster sizes stay within their bounds."""
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        start = np.zeros(self.n_clusters)
        return kernels.size_multipliers(
            self.decide(hyperplane), *self.bounds, weights, start
        )


# -- the sample ------------------------------------------------------------------------


@dataclass(frozen=True)
class HingeRefinement:
    """Labels of a sample refined at rising C, under size constraints.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    sample : LandmarkSample
        The sample in landmark features.
    partition : PartitionConfig
        Bounds of the cluster sizes.
    config : SearchConfig
        Path of C, tolerance and limits.
    """

    engine: Engine
    sample: LandmarkSample
    partition: PartitionConfig
    config: SearchConfig

    @property
    def objective(self) -> Objective:
        """What is minimised."""
        return Objective("adaptive", 0.0, float(self.sample.features.variances.sum()))

    def working_set(self, labels: np.ndarray) -> WorkingSet:
        """A working set whose size bounds are those of the given labels."""
        weights = self.sample.features.weights
        bounds = self.partition.bounds_by_size(
            np.bincount(labels, weights, self.partition.n_clusters)
        )
        given = (
            self.engine,
            open_samples(self.sample.values),
            self.sample.normalization,
            weights,
        )
        return WorkingSet(
            MulticlassTrainingSet(*given, hold_labels=True, bounds=bounds)
        )

    def run_start(self, start: Partition, record: Record) -> np.ndarray | None:
        """The labels at the last C that separates them; None where there is none."""
        given = self.working_set(start.labels), self.objective, record
        state = self.config.warm_start(start.start, start.labels, *given)
        return (
            None
            if state is None
            else state.labels.block(None, 0, start.labels.shape[0])
        )

    def random_solution(self, C: float) -> SubproblemResult:
        """The solution for random labels at one C: the baseline of a partition."""
        random_state = np.random.RandomState(self.config.seed)
        labels = random_labels(
            self.sample.values.shape[0], self.partition.shares, random_state
        )
        return solve_random(
            self.working_set(labels), rules.GivenLabels(labels), self.objective, C
        )

    def widest_margin(
        self, session: FitSession, labelled: LabelledRows, rows: Samples
    ) -> SubproblemResult:
        """The widest margin between the clusters of least squares: on the sample, then on more rows.

        It is found at the largest C that separates the labels. If none does, the first
        is used all the same.
        """
        sample = self.sample
        labels = rules.RuleLabels(labelled.rule)
        generators = None
        stages: list[Any] = [
            ("sample", open_samples(sample.values), sample.features.weights)
        ]
        if more := larger_sample(rows.n_samples):
            larger = draw_larger_sample(session, rows, more, self.config.seed)
            stages.append(("larger sample", larger.features, larger.weights))
        elif rows.n_samples > sample.values.shape[0]:
            stages.append(("all rows", rows, session.weights))
        for stage, features, weights in stages:
            given = session.engine, features, sample.normalization, weights
            working_set = WorkingSet(
                MulticlassTrainingSet(*given, bounds=labelled.bounds)
            )
            working_set.generators = generators or working_set.generators
            record = tag(session.record, stage=stage)
            budget = SweepBudget(
                session.plan.needs.sweeps if stage == "all rows" else None
            )
            working_set.relabel(labels)
            for C, form in self.config.falling(self.objective):
                solution = working_set.cutting_plane(
                    labels, form, C, self.config.limits.eta, record, budget
                )
                if solution.status != "degenerate":
                    break
            generators = working_set.generators
        return solution


def widest_margin_of_rows(
    engine: Engine,
    rows: np.ndarray | csr_array,
    weights: Weights,
    settings: SearchSettings,
    random_state: np.random.RandomState,
    record: Record,
) -> Model:
    samples = open_samples(rows)
    shape = RowShape.of(samples, 1)
    needs = needs_of_search(shape, settings)
    n_searched = settings.searched_rows(samples.n_samples)
    drawn = draw_rows(rows, weights, n_searched, random_state)
    session = FitSession(
        engine=engine,
        samples=samples,
        weights=weights,
        plan=FitPlan(shape, needs, memory_limit=0, store="memory"),
        record=record,
        random_state=random_state,
        sample=drawn.rows,
        sample_weights=drawn.weights,
    )
    config = search_config(drawn.rows.shape[0], session.seed(), max_rounds=ROUNDS)
    result = fit_multiclass(session, settings, config)
    return replace(
        result.model,
        rule=in_margins(result.model.rule, float(result.attributes["rho"])),
    )


def in_margins(scores: rules.Scores, rho: float) -> rules.Scores:
    """Return scores in units of the margin rho; as they are if there is no margin."""
    unit = rho if rho > 0 else 1.0
    return rules.Scores(scores.coef / unit, scores.offset / unit)


def fit_multiclass(
    session: FitSession, settings: SearchSettings, config: SearchConfig
) -> FitResult:
    """Scores on landmarks of the sample, which separate the clusters that refinement leads to."""

    def refine(sample: LandmarkSample) -> Refine:
        return HingeRefinement(
            session.engine, sample, settings.partition, config
        ).run_start

    sample, found = search(session, settings, refine)
    for one in found:
        session.record({"stage": LEAST_SQUARES, "start": one.start, "J": one.objective})
    partition = settings.partition
    best = found[0]
    refinement = HingeRefinement(session.engine, sample, partition, config)
    model = sample.model(session, partition.alpha)
    features = session.cached(model.features(session.samples))

    def record_j(
        row: dict[str, Any],
    ) -> None:  # the objective of least squares has a column of its own
        renamed = {"J" if name == "objective" else name: row[name] for name in row}
        session.record(renamed | {"stage": LEAST_SQUARES})

    least_squares = replace(session, record=record_j, kept_labels=None)
    labelled = label_all_rows(
        least_squares, partition, sample, features, best.labels, PASSES
    )
    solution = refinement.widest_margin(session, labelled, features)
    scores = solution.hyperplane
    start = np.zeros(partition.n_clusters)
    weights = sample.features.weights
    b = kernels.size_multipliers(
        scores.decide(sample.values), *labelled.bounds, weights, start
    )
    model = replace(model, rule=scores.shifted(b), ridge=None)
    result = multiclass_result(
        session, model, features, solution, refinement.random_solution(solution.C)
    )
    converged = labelled.settled and solution.status == "converged"
    gamma = sample.kernel.gamma
    fitted = result.attributes | {"gamma": gamma, "converged": converged}
    report = result.report | {"gamma": gamma, "sample_objective": float(best.objective)}
    return replace(result, attributes=fitted, report=report)


# -- the result ------------------------------------------------------------------------


def multiclass_result(
    session: FitSession,
    model: Model,
    features: Samples,
    solution: SubproblemResult,
    random: SubproblemResult,
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
    solution : SubproblemResult
        Where the last cutting-plane loop ended.
    random : SubproblemResult
        The solution for random labels on the sample.

    Returns
    -------
    FitResult
        The result, with a warning for empty clusters and for margins no wider than at
        random.
    """
    scores: Any = model.rule
    sweep = MarginPass(session.weights, scores, solution.quadratic.rho)
    hinge, sizes, first, _ = session.engine.run(sweep, features, "margins")
    empty = int((sizes == 0).sum())
    report, warnings = separation(solution, random)
    if empty:
        warnings.append(
            f"{empty} of the {sizes.shape[0]} clusters hold no row; give fewer clusters."
        )
    attributes = {
        "rho": solution.quadratic.rho,
        "objective": solution.value(hinge / sizes.sum()),
    }
    per_cluster = {"sizes": whole_numbers(sizes.tolist())}
    return FitResult(model, features, attributes, report, per_cluster, first, warnings)
