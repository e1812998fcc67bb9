"""Cutting planes under several kernels, whose weights are learned with the margin.

The features of all kernels are concatenated. Labels, cutting planes and loops are the
same as for one kernel. Only the optimisation differs: an SOCP finds the weights of the
kernels and the multipliers of the planes together. In centred features, the mean score
of each cluster over all rows is 0, so the balance constraints between pairs of clusters
always hold.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, Row, run_starts
from mmcnb.errors import InputError
from mmcnb.features.base_kernels import grams_of, kernel_names
from mmcnb.features.kernel import KernelSamples, MultipleKernels
from mmcnb.features.nystroem import (
    normalization_of,
    principal_features,
    total_variance_of,
)
from mmcnb.features.rules import GivenLabels
from mmcnb.graph.merge_tree import by_first
from mmcnb.hinge.cutting_plane import SubproblemResult, WorkingSet
from mmcnb.hinge.multiclass import ROUNDS, MulticlassTrainingSet, multiclass_result
from mmcnb.hinge.qp import PlaneSolution, Threshold, solve_kernel_planes
from mmcnb.hinge.sample_search import (
    TIE,
    KernelFeatures,
    RestartResult,
    SearchConfig,
    count_rivals,
)
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.two_clusters import changed_labels, refined
from mmcnb.least_squares.all_rows import relative_weights
from mmcnb.least_squares.objective import Bounds
from mmcnb.least_squares.partition import (
    PartitionConfig,
    partition_sample,
    random_labels,
)
from mmcnb.samples import Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import Weights, as_matrix


class MultipleKernelWorkingSet(WorkingSet):
    """Cutting planes for any number of clusters, on a fixed basis for each kernel.

    Parameters
    ----------
    training_set : TrainingSet
        Training set with the concatenated features of all kernels. Its normalization
        has one block per kernel.

    Attributes
    ----------
    columns : list of slice
        For each kernel, the columns of its features.
    kernel_weights : ndarray of shape (kernels,)
        Kernel weights from the last SOCP: non-negative, with Euclidean norm 1. Before
        the first SOCP, all weights are equal.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, Alg. 1 and sec. 4.
    """

    random_planes = 50  # fewer than for one kernel, because SOCPs are slower than QPs

    def __init__(self, training_set: TrainingSet) -> None:
        super().__init__(training_set)
        self.columns = training_set.columns
        n_kernels = len(self.columns)
        self.kernel_weights: Any = np.full(n_kernels, n_kernels**-0.5)

    @property
    def grams(self) -> list[np.ndarray]:
        """Gram matrix of the cutting planes under each kernel."""
        count = self.s.shape[0]
        n_features = self.training_set.mean.shape[0]
        centred = self.centred.reshape(count, -1, n_features)
        coefs = self.coefs.reshape(count, -1, n_features)
        grams = []
        for columns in self.columns:
            centred_of_kernel = centred[..., columns].reshape(count, -1)
            coefs_of_kernel = coefs[..., columns].reshape(count, -1)
            product = centred_of_kernel @ coefs_of_kernel.T
            grams.append((product + product.T) / 2)
        return grams

    def _row(self, solution: SubproblemResult, planes: int) -> Row:
        """Return the history row of a sweep, including the kernel weights."""
        weights = {
            f"weight_{k}": float(weight) for k, weight in enumerate(self.kernel_weights)
        }
        return super()._row(solution, planes) | weights

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the SOCP and update the kernel weights.

        If all planes are 0 under every kernel, the kernel weights do not change.
        """
        grams = self.grams
        if not any(np.diag(gram).max() > 0 for gram in grams):
            return replace(
                super().solve(C, balance, threshold), kernel_weights=self.kernel_weights
            )
        solution = solve_kernel_planes(grams, self.s, self.t, C, balance, threshold)
        self.kernel_weights = solution.kernel_weights
        return solution

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """Return the hyperplane with v_k = weight_k Σ λ_p P_pk for each kernel."""
        coef = (multipliers @ self.coefs).reshape(-1, self.training_set.mean.shape[0])
        for weight, columns in zip(self.kernel_weights, self.columns, strict=True):
            coef[:, columns] *= weight
        return self.training_set.hyperplane(coef.ravel(), beta)


class MultipleKernelSample:
    """A sample under several kernels, each scaled to trace(K̃)/n = 1.

    Without this scaling, the weights of the kernels would depend on the scale of the
    kernel values.

    Parameters
    ----------
    sample : Samples
        The rows, in memory.
    kernels : MultipleKernels
        The kernels to combine.
    basis : ndarray of shape (p, d)
        Basis vectors, shared by all kernels.
    weights : ndarray of shape (m,) or None
        Sample weights; if None, all weights are 1.
    exact : bool, default=False
        Whether all distinct rows are basis vectors. If so, kernel values are float64;
        otherwise, they are float32.

    Attributes
    ----------
    features : Samples
        Kernel values between the rows and the basis, concatenated for all kernels.
    normalization : tuple of ndarray
        For each kernel, a matrix M such that M M' is the inverse of the kernel matrix
        of the basis, scaled so that the total variance is 1.
    columns : tuple of slice
        For each kernel, the columns of its features.
    z : ndarray of shape (m, r)
        The sample in coordinates in which the sum of the kernels is the inner product.

    Raises
    ------
    InputError
        If there are too few landmarks to distinguish the rows under one of the kernels.
    """

    def __init__(
        self,
        sample: Samples,
        kernels: MultipleKernels,
        basis: np.ndarray,
        weights: Weights,
        exact: bool = False,
    ) -> None:
        self.kernels = kernels
        self.basis = basis
        self.weights = weights
        dtype: type[np.floating] = np.float32
        tolerance = 1e-6
        if exact:
            dtype = np.float64
            tolerance = 1e-12
        values_of_kernels = KernelSamples(sample, kernels.against(basis), dtype)
        self.features = cache_features(values_of_kernels, "memory")
        self.columns = kernels.slices(basis.shape[0])
        values = as_matrix(self.features.block(0, self.features.n_samples)).astype(
            np.float64
        )
        normalizations = []
        parts = []
        grams = grams_of(kernels, basis)
        for k, (gram, columns) in enumerate(zip(grams, self.columns, strict=True)):
            normalization = normalization_of(gram, tolerance, dtype)
            z = values[:, columns] @ normalization
            total_variance = total_variance_of(z, weights)
            if not total_variance > 0:
                raise InputError(
                    f"kernel {k} has the same values for all rows against "
                    f"{basis.shape[0]} landmarks; give more landmarks."
                )
            normalizations.append(normalization / np.sqrt(total_variance))
            parts.append(z / np.sqrt(total_variance))
        self.normalization = tuple(normalizations)
        self.z = _narrow(np.hstack(parts))

    def candidate(self, engine: Engine, bounds: Bounds | None = None) -> KernelFeatures:
        """Return the sample as `KernelFeatures`.

        If ``bounds`` of cluster sizes are given, the training set allows more than two
        clusters.
        """
        new_training_set: Callable[..., TrainingSet] = TrainingSet
        if bounds is not None:
            new_training_set = partial(MulticlassTrainingSet, bounds=bounds)
        training_set = new_training_set(
            engine=engine,
            features=self.features,
            normalization=self.normalization,
            weights=self.weights,
            hold_labels=True,
            basis=self.basis,
        )
        make = partial(MultipleKernelWorkingSet, training_set)
        return KernelFeatures(self.kernels, self.z, self.weights, make)


def _narrow(z: np.ndarray) -> np.ndarray:
    """Return at most m coordinates of each of m rows, with the same inner products."""
    if z.shape[1] <= z.shape[0]:
        return z
    values, vectors = np.linalg.eigh(z @ z.T)
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def search_clusters(
    session: FitSession,
    sample: MultipleKernelSample,
    partition: PartitionConfig,
    config: SearchConfig,
) -> RestartResult | None:
    """Cluster a sample by least squares, and refine the best partitions.

    Parameters
    ----------
    session : FitSession
        State of the fit, whose engine runs the starts in its threads.
    sample : MultipleKernelSample
        The sample under all kernels.
    partition : PartitionConfig
        Settings of the partition. The least-squares search applies all size
        constraints; the refinement applies only the minimum size.
    config : SearchConfig
        Settings of the refinement.

    Returns
    -------
    RestartResult or None
        The result with the best score, or None if no partition can be separated.
    """
    z = sample.z / np.sqrt(len(sample.columns))
    features = principal_features(z, sample.weights)
    R = None
    if sample.weights is None:
        R = features.smoother(partition.search_alpha(len(z)))
    partitions = partition_sample(
        session.engine, R, features, partition, session.random_state
    )
    distinct = {}
    for clustering in partitions:
        labels = clustering.labels
        distinct[by_first(labels).tobytes()] = labels
    starts = list(enumerate(distinct.values()))[: config.n_init]
    candidate = sample.candidate(session.engine, partition.floor(features.total))
    objective = config.objective(candidate)

    def run_start(
        start: tuple[int, np.ndarray], record: Record
    ) -> RestartResult | None:
        number, labels = start
        working_set = candidate.new_working_set()
        state = config.warm_start(number, labels, working_set, objective, record)
        if state is None:
            return None
        scores = (state.solution.score,)
        return RestartResult(
            candidate, config, objective, working_set, state, number, scores
        )

    results = run_starts(session.engine, run_start, starts, session.record)
    ended = [restart for restart in results if restart is not None]
    best: RestartResult | None = None
    for restart in ended:
        if restart.is_better_than(best, TIE):
            best = restart
    if best is None:
        return None
    return replace(best, rivals=count_rivals(best, ended))


def fit_clusters(
    session: FitSession,
    sample: MultipleKernelSample,
    partition: PartitionConfig,
    config: SearchConfig,
) -> FitResult:
    """Search for more than two clusters on the sample, and refine them on all rows.

    Parameters
    ----------
    session : FitSession
        State of the fit.
    sample : MultipleKernelSample
        The sample under all kernels.
    partition : PartitionConfig
        Settings of the partition of the sample.
    config : SearchConfig
        Settings of the refinement.

    Returns
    -------
    FitResult
        The result, including the names and weights of the kernels.
    """
    # With many clusters, some labels change in every round, but the rounds after the
    # first five do not improve the result.
    limits = replace(config.limits, max_rounds=min(ROUNDS, config.limits.max_rounds))
    config = replace(config, limits=limits)
    restart = search_clusters(session, sample, partition, config)
    if restart is None:
        accepting = replace(config, separable=False)
        restart = search_clusters(session, sample, partition, accepting)
    assert restart is not None  # this search accepts any solution
    # Use relative weights, because the bounds on cluster sizes are numbers of rows.
    counted = replace(session, weights=relative_weights(session.weights))
    state, model = refined(counted, restart)
    random_state = np.random.RandomState(config.seed)
    labels = random_labels(
        restart.training_set.n_samples, partition.shares, random_state
    )
    random = restart.random_solution(GivenLabels(labels))
    fitted = {
        "converged": state.status == "converged",
        "n_changed": changed_labels(session, state),
        "kernel_names": kernel_names(sample.kernels),
    }
    result = multiclass_result(
        session, model, state.training_set.features, state.solution, random
    )
    features = result.features
    if not session.has_more_rows:
        features = model.features(session.samples)
    return replace(
        result,
        attributes=result.attributes | fitted,
        features=features,
        warnings=[*restart.warnings_of_rivals(), *result.warnings],
    )
