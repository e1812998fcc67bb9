"""SKMMC as published (Wu & Zhang, Alg. 3): each plane has its own basis vectors.

Each plane Ψ_k, and the mean Ψ_0 of all rows, is approximated by Σ β_j φ(b_j). Centred
planes are linear combinations of these sums, so their Gram matrix and the hyperplane
need only kernel values between basis vectors. All rows are streamed.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, tag
from mmcnb.features.basis import BasisEstimate, KernelMean, RowCoefficients
from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.model import Model
from mmcnb.features.rules import (
    GivenLabels,
    Hyperplane,
    Labels,
    RuleLabels,
    coin_flip,
)
from mmcnb.hinge.cccp import CCCPResult, continuation
from mmcnb.hinge.cutting_plane import NewPlane, Objective, WorkingSet
from mmcnb.hinge.sample_search import SearchConfig, solve_random
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.two_clusters import result_of, separation
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.samples.matrix import Weights, with_short_indices

# Upper bound on the bytes per row: the labels of the best start and of the current
# start, the labels before and after a round, the mask of the rows in a plane, and a
# copy of one array while blocks are concatenated.
ROW_BYTES = 8.0


class OwnBasisWorkingSet(WorkingSet):
    """Cutting planes, each with its own basis vectors, on streamed rows.

    The features are the kernel values against all basis vectors found so far. They are
    recomputed in each sweep. When the labels change, all planes except the plane of all
    rows are dropped.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes.
    samples : Samples
        All rows of the fit.
    kernel : Kernel
        A Gaussian kernel.
    weights : ndarray of shape (n,) or None
        Sample weights; if None, all weights are 1.
    seed : int
        Seed for the starts of the fixed-point iterations. All planes use the same seed,
        so that the labels can converge.
    """

    evaluations = 0  # number of kernel evaluations, divided by the number of rows

    def __init__(
        self,
        engine: Engine,
        samples: Samples,
        kernel: Kernel,
        weights: Weights,
        seed: int,
    ) -> None:
        self.engine = engine
        self.samples = samples
        self.kernel = kernel
        self.weights = weights
        self.seed = seed
        self.labels = None
        self.counts: Weights = None  # weights, scaled to mean 1
        if weights is not None:
            self.counts = weights * (samples.n_samples / weights.sum())
        self.mean = self._estimate(self.counts)
        self._restart()

    def _estimate(self, z: Any) -> BasisEstimate:
        """Find basis vectors that approximate 1/n Σ z_i φ(x_i)."""
        mean = KernelMean(self.engine, self.samples, z, self.kernel)
        estimate = mean.estimate(np.random.RandomState(self.seed))
        self.evaluations += estimate.n_iter + len(estimate.basis)
        return estimate

    def _restart(self) -> None:
        """Drop all planes and their basis vectors."""
        self.generators = []
        self.s = np.empty(0)
        self.t = np.empty(0)
        self.coefs = np.empty((0, len(self.mean.basis)))
        self._set_basis(self.mean.basis)

    def _set_basis(self, basis: np.ndarray) -> None:
        """Set the basis vectors; the features become the kernel values against them."""
        kernel = self.kernel
        self.basis = basis
        # The mean of the features is computed from the estimate of Ψ_0, without a pass.
        mean = kernel(basis, self.mean.basis) @ self.mean.beta
        self.training_set = TrainingSet(
            engine=self.engine,
            features=KernelSamples(self.samples, kernel.against(basis), np.float64),
            normalization=None,
            weights=self.weights,
            hold_labels=True,
            basis=basis,
            row_sum=(mean, 1.0),
        )
        weight = self.samples.n_samples if self.weights is None else self.weights.sum()
        self.training_set.total_weight = float(weight)
        self.centred = self.coefs @ kernel(basis, basis)

    def relabel(self, labels: Labels) -> None:
        """Drop all planes, and add the plane of all rows under new labels."""
        self.labels = labels
        self.y = labels.block(None, 0, self.samples.n_samples)
        self._restart()
        self._add_rows(np.ones(self.samples.n_samples, np.int8))

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> NewPlane:
        """Find the rows of the most violated constraint, in one sweep."""
        violated = self.training_set.most_violated(labels, hyperplane, rho)
        return NewPlane(violated.active, violated.statistics)

    def add(self, plane: NewPlane) -> None:
        """Add a cutting plane and its basis vectors."""
        self._add_rows(plane.generator)

    def _add_rows(self, active: np.ndarray) -> None:
        n = self.samples.n_samples
        s, t = (total / n for total in self._totals(active))
        factors: tuple[np.ndarray, ...] = (active, self.y)
        if self.counts is not None:
            factors = (*factors, self.counts)
        plane = self._estimate(RowCoefficients(factors))
        mean = self.mean
        # The new plane has coefficients on its own basis vectors, which come last, and
        # on the basis vectors of the mean, which come first.
        n_planes, n_vectors = self.coefs.shape
        coefs = np.zeros((n_planes + 1, n_vectors + len(plane.beta)))
        coefs[:-1, :n_vectors] = self.coefs
        coefs[-1, n_vectors:] = plane.beta
        coefs[-1, : len(mean.beta)] -= t * mean.beta
        self.coefs = coefs
        self.s = np.append(self.s, s)
        self.t = np.append(self.t, t)
        # No generator is needed, because planes are never rebuilt under new labels.
        self.generators.append(None)
        basis = np.vstack([self.basis, plane.basis])
        self._set_basis(basis)

    def _totals(self, active: np.ndarray) -> tuple[float, float]:
        """Return the weight of the active rows, and the sum of weight times label.

        Rows are added in groups, so that no float array of size n is created.
        """
        weight = 0.0
        signed = 0.0
        for start in range(0, active.size, GROUP_ROWS):
            rows = slice(start, start + GROUP_ROWS)
            counts = np.ones(active[rows].size)
            if self.counts is not None:
                counts = self.counts[rows]
            weight += float(active[rows] @ counts)
            signed += float((active[rows] * self.y[rows] * counts).sum())
        return weight, signed


def fit_on_own_basis(
    session: FitSession, config: SearchConfig, kernel: Kernel
) -> FitResult:
    """Fit all rows by Alg. 3 from several starts, and return the best result.

    Parameters
    ----------
    session : FitSession
        State of the fit.
    config : SearchConfig
        Settings of the search.
    kernel : Kernel
        A Gaussian kernel.

    Returns
    -------
    FitResult
        The result. Rows with f < 0 are in cluster 0.
    """
    bare_model = Model(Hyperplane(np.empty(0), 0.0), scaling=session.scaling)
    samples = bare_model.scaled(session.samples)
    working_set = OwnBasisWorkingSet(
        session.engine, samples, kernel, session.weights, config.seed
    )
    random_state = np.random.RandomState(config.seed)
    mean = working_set.mean
    variance = 1 - float(mean.beta @ kernel(mean.basis, mean.basis) @ mean.beta)
    objective = Objective(config.threshold, config.balance, variance)
    record = tag(session.record, stage="all rows", gamma=kernel.gamma)
    state: CCCPResult | None = None
    for number, start in enumerate(_starts(session, samples, config, random_state)):
        tagged = tag(record, start=number)
        end = _end_of(working_set, start, objective, config, tagged)
        if state is None or _rank(end) > _rank(state):
            state = end
    assert state is not None  # n_init is at least 1
    solution = state.solution
    training_set = state.training_set
    statistics = training_set.most_violated(
        state.labels, state.boundary, solution.quadratic.rho
    ).statistics
    flips = coin_flip(samples.n_samples, random_state)
    random = solve_random(working_set, flips, objective, config.path[-1])
    separation_report, separation_warnings = separation(solution, random)
    boundary = state.boundary
    used = np.flatnonzero(boundary.coef)
    model = Model(
        rule=replace(boundary, coef=boundary.coef[used]),
        kernel=kernel,
        basis=np.asarray(training_set.basis)[used],
        scaling=session.scaling,
        feature_dtype="float64",
    )
    attributes = {"gamma": kernel.gamma}
    report = {
        **separation_report,
        "gamma": kernel.gamma,
        "kernel_evaluations": working_set.evaluations,
    }
    result = result_of(session, model, state, statistics, attributes, report)
    return replace(result, warnings=[*separation_warnings, *result.warnings])


def _rank(end: CCCPResult) -> tuple[float, float]:
    """Return the sort key of the result of a start: the last C, then the score.

    Scores are rounded so that, of several equally good results, the first is selected
    on every processor.
    """
    return end.solution.C, round(end.solution.score, 9)


def _end_of(
    working_set: WorkingSet,
    start: Labels,
    objective: Objective,
    config: SearchConfig,
    record: Record,
) -> CCCPResult:
    """Run a start along the path of values of C.

    If the solution at the first C is degenerate, it is accepted, and the run ends
    there.
    """
    path = config.path
    end = continuation(working_set, start, objective, path, config.limits, record)
    if end is None:
        bare = replace(objective, total_variance=0.0)
        end = continuation(working_set, start, bare, path[:1], config.limits, record)
    assert end is not None  # with total_variance=0 no solution is degenerate
    return end


def _starts(
    session: FitSession,
    samples: Samples,
    config: SearchConfig,
    random_state: np.random.RandomState,
) -> Iterator[Labels]:
    """Yield starting labels, random or from k-means; "mixed" begins with k-means."""
    from sklearn.cluster import KMeans

    sample = with_short_indices(session.sample)
    for number in range(config.n_init):
        if config.init == "random" or (config.init == "mixed" and number > 0):
            yield coin_flip(samples.n_samples, random_state)
            continue
        kmeans = KMeans(2, n_init=1, random_state=random_state)
        kmeans.fit(sample, sample_weight=session.sample_weights)
        low, high = kmeans.cluster_centers_
        normal = (high - low).astype(np.float64)
        offset = float(low @ low - high @ high) / 2
        between = Hyperplane(normal, offset)
        sides = RuleLabels(between)
        labels = session.engine.run(DecisionPass(sides), samples, "start")
        yield GivenLabels(np.concatenate(labels))
