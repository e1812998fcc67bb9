"""Evolutionary maximum margin clustering: an evolution strategy over label vectors."""

from dataclasses import replace

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import (
    KernelFunction,
    default_kernel,
    estimator,
    values_of,
)
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.needs import landmark_needs
from mmcnb.features.nystroem import choose_landmarks, landmark_values
from mmcnb.features.rules import Hyperplane, signs
from mmcnb.least_squares.all_rows import SMALLER_SAMPLE
from mmcnb.least_squares.evolution import (
    FeatureFitness,
    Fitness,
    MatrixFitness,
    run_evolutions,
)
from mmcnb.least_squares.partition import partition_seconds
from mmcnb.samples import BLOCK_ROWS
from mmcnb.samples.matrix import to_dense

# Number of landmarks in the plan if the whole sample is the basis; the memory for the
# other rows of the basis is added separately.
PLANNED_LANDMARKS = 200
EVOLUTION_ROUTINES = {"evolve_labels": 5.5}
MATRICES = 3  # matrices of the size of the kernel matrix that its inversion needs
ONE_CLUSTER = (
    "the model puts all rows of the sample into one cluster; "
    "pass another gamma, or a smaller alpha."
)


@estimator
class EvolutionaryMMC(KernelFunction, StreamedClusterer):
    """Maximum margin clustering by evolution and squared loss (EvoMMC, FastEvoMMC).

    Finds the two clusters, of about equal size, that kernel ridge regression fits with
    the smallest error. An evolution strategy mutates label vectors by flipping labels,
    and keeps the fittest vectors. It runs on a sample, or on all rows if there are at
    most ``sample_size``. A ridge regression on the evolved labels then labels all rows
    in one pass. Therefore, ``labels_`` can differ from the evolved labels near the
    boundary, mostly where ``balance`` forces rows to the other side.
    ``report_["agreement"]`` is the share of the rows in the sample whose two labels are
    equal.

    Parameters
    ----------
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" sets sigma to 0.55 times the root mean squared distance
        between two rows; `SparseKernelMMC` explains the other strings.
    alpha : float, default=1e-3
        Ridge parameter per row, the lambda of the paper.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    n_landmarks : int or None, default=None
        Number of k-means++ landmarks that form the basis of the model (FastEvoMMC).
        None uses all rows of the sample (EvoMMC), so that memory grows with the square
        of the sample size.
    n_init : int, default=30
        Number of evolutions, each from random labels. The result with the lowest F (see
        ``objective_``) is used. Evolutions end in many different optima. On a few
        hundred rows, 100 evolutions take a second, and usually one of them reaches the
        lowest known F.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses 2,000.
    balance : float, default=0.4
        Upper bound l/n on abs(sum(y))/n for the evolved labels y, so that the smaller
        cluster has at least a share (1 - balance)/2 of the rows. Sample weights do not
        affect this bound. The paper uses 0.03, 0.1, 0.3 or 0.4, depending on the class
        sizes.
    centre : bool, default=True
        Whether to centre the kernel. With False, as in the paper (Alg. 1), the cluster
        sizes tend to be as unequal as ``balance`` allows.
    n_parents, n_offspring : int, default=10
        Number of parents (mu) and number of children per generation (nu). With
        landmarks, the paper uses 1 for both.
    max_generations : int, default=100_000
        Maximum number of generations of an evolution.
    patience : int or None, default=None
        An evolution stops after this number of consecutive generations without a
        surviving child. None chooses it so that these generations have ten children per
        row.
    scale : {None, "standard"}, default=None
        "standard" divides each column by its standard deviation and, if the rows are
        dense, subtracts its mean. None uses the columns as they are.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, equal to ``predict(X)``. The first row is in cluster 0.
    row_index_ : pandas.Index
        Index of the rows of ``labels_``: the index of a data frame, or the names or
        numbers of the rows in their file.
    objective_ : float
        F(y) = min over f of (Σ w_i (y_i - f(x_i))² + alpha m |f|²)/m. Here y are the
        evolved labels, -1 or +1, of the m rows of the sample, w are weights with mean
        1, and f is a function of the kernel centred on the sample. F lies between 0 and
        1; smaller is better.
    gamma_ : float
        Gamma of the kernel.
    converged_ : bool
        Whether the best evolution stopped improving before ``max_generations``.
    history_ : DataFrame
        The generations 1, 2, 4, ... and the last generation of each evolution. Columns
        are stage, start, generation, objective (the lowest F so far), reads, sweeps,
        bytes, resumed, and seconds (when the evolution ended).
    report_ : dict
        Cluster sizes in the sample according to the evolved labels and according to the
        model, the agreement of these two labellings, the number of evolutions that
        reached the best F, and warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by local search, usually with lower loss.

    Notes
    -----
    Differs from the paper: EVO-1, EVO-2, EVO-3, EVO-4, EVO-6; see docs/differences.

    References
    ----------
    F. Gieseke, T. Pahikkala and O. Kramer, Fast evolutionary maximum margin clustering,
    Alg. 1, Theorems 1 and 2.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.EvolutionaryMMC(gamma="mean", random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    alpha: float = 0.001
    n_landmarks: int | None = None
    n_init: int = 30
    sample_size: int | None = None
    balance: float = 0.4
    centre: bool = True
    n_parents: int = 10
    n_offspring: int = 10
    max_generations: int = 100000
    patience: int | None = None

    fitted_names = ("objective", "gamma", "converged", "report")
    limit = "max_generations"
    unsettled = "the best evolution was stopped at"

    def _needs(self, rows: RowShape) -> FitNeeds:
        sample = min(rows.n_samples, self.sample_size or SAMPLE_ROWS)
        size = min(sample, self.n_landmarks or PLANNED_LANDMARKS)
        needs = replace(
            landmark_needs(rows, size, sample),
            search_seconds=partition_seconds(sample, 2),
        )
        needs = replace(needs, routines=needs.routines | EVOLUTION_ROUTINES)
        if self.n_landmarks is not None:
            return needs
        basis_bytes = 24.0 * (sample - size) * rows.n_features
        return replace(
            needs,
            sample_bytes=needs.sample_bytes + basis_bytes,
            work_bytes=needs.work_bytes + MATRICES * 8.0 * sample**2,
            thread_bytes=column_bytes(sample, rows.n_samples),
            remedy=f"n_landmarks={PLANNED_LANDMARKS} needs no matrix, "
            f"and {SMALLER_SAMPLE}",
        )

    def _fit(self, session: FitSession) -> FitResult:
        kernel = default_kernel(self, session.sample, session.sample_weights)
        model, fitness = self._fitness(session, kernel)
        seeds = session.random_state.randint(2**31 - 1, size=int(self.n_init)).tolist()
        limits = values_of(
            self, "balance", "n_parents", "n_offspring", "max_generations", "patience"
        )
        results = run_evolutions(
            session.engine, fitness, seeds, session.record, **limits
        )
        best = results[0]
        y = best.y.astype(np.float64)
        labels = signs(fitness.decide(y))
        objective = fitness.value(y)
        agreement = float(np.mean(y == labels))
        warnings = []
        quiet = []
        if np.ptp(labels) == 0 or objective > 1 - 1e-9:
            warnings.append(ONE_CLUSTER)
        if agreement < 0.99:
            quiet.append(
                "the model agrees with the evolved labels on only "
                f"{agreement:.0%} of the sample; raise balance if the clusters differ "
                "in size."
            )
        n_best = sum(abs(result.fitness - best.fitness) < 1e-6 for result in results)
        return FitResult(
            replace(model, rule=fitness.hyperplane(y)),
            model.features(session.samples),
            attributes={
                "objective": objective,
                "gamma": kernel.gamma,
                "converged": len(best.best) < self.max_generations,
            },
            report={
                "agreement": agreement,
                "evolutions_at_best": n_best,
                "start": best.start,
                "gamma": kernel.gamma,
            },
            per_cluster={
                "evolved_sizes": _side_sizes(y),
                "sample_sizes": _side_sizes(labels),
            },
            warnings=warnings + quiet,
            quiet=quiet,
        )

    def _fitness(self, session: FitSession, kernel: Kernel) -> tuple[Model, Fitness]:
        """Return a model with an empty hyperplane, and the fitness of label vectors."""
        sample = session.sample
        weights = session.sample_weights
        alpha = float(self.alpha)
        centre = bool(self.centre)
        empty = Hyperplane(np.empty(0), 0.0)
        if self.n_landmarks is None:
            basis = to_dense(sample, np.float64)
            fitted = MatrixFitness(kernel(sample, basis), alpha, weights, centre)
            return Model(empty, kernel, basis, session.scaling, "float64"), fitted
        basis = choose_landmarks(
            sample, self.n_landmarks, session.random_state, weights
        )
        values, normalization = landmark_values(sample, kernel, basis)
        fitness = FeatureFitness(values, normalization, alpha, weights, centre)
        return Model(empty, kernel, basis, session.scaling), fitness


def _side_sizes(labels: np.ndarray) -> list[int]:
    """Return the number of labels below 0 and the number above 0."""
    return [int((labels < 0).sum()), int((labels > 0).sum())]


def column_bytes(sample_size: int, n_samples: int) -> float:
    """Return the bytes that each thread needs for the kernel values of a block."""
    return 8.0 * sample_size * min(n_samples, BLOCK_ROWS)
