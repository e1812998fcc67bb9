"""Evolutionary maximum margin clustering: two clusters by evolution of labels."""

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

# For the plan if the basis is the sample, whose columns are counted apart.
PLANNED_LANDMARKS = 200
EVOLUTION_ROUTINES = {"evolve_labels": 5.5}
MATRICES = 3  # of the size of the kernel matrix, while it is inverted
ONE_CLUSTER = (
    "the model finds one cluster alone on the sample; "
    "give another gamma, or a smaller alpha."
)


@estimator
class EvolutionaryMMC(KernelFunction, StreamedClusterer):
    """Maximum margin clustering by evolution and squared loss (EvoMMC, FastEvoMMC).

    Finds the two clusters, of about equal size, on which kernel ridge regression leaves
    the smallest error: label vectors are mutated by flips, the fittest live on. The
    evolution runs on a sample, or on all rows if there are no more. The ridge
    regression of the labels it ends with then labels all rows in one pass. So
    ``labels_`` are those of the model: rows at its boundary can differ from the evolved
    labels, most where ``balance`` forces rows to the other side.
    ``report_["agreement"]`` is the share that does not differ.

    Parameters
    ----------
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth
        sigma. "auto" is sigma = 0.55 times the root mean squared distance between two
        rows; the other names are those of `SparseKernelMMC`.
    alpha : float, default=1e-3
        Ridge a row: lambda of the paper.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    n_landmarks : int or None, default=None
        None takes all rows of the sample as the basis (EvoMMC), for which storage grows
        with their square; a number takes so many k-means++ landmarks (FastEvoMMC).
    n_init : int, default=30
        Evolutions, each from random labels; the lowest F wins. They end in many
        different optima: on a few hundred rows 100 take a second, and mostly one of
        them reaches the lowest F that any does.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000.
    balance : float, default=0.4
        l/n: bound of abs(sum(y))/n for the evolved labels, of which the smaller cluster
        has at least (1 - balance)/2. It counts rows, whatever their weights. The paper
        takes 0.03, 0.1, 0.3 or 0.4, by the sizes of the classes.
    centre : bool, default=True
        Centre the kernel; False is the paper's form (Alg. 1), which draws the sizes
        towards the bound.
    n_parents, n_offspring : int, default=10
        mu and nu; the paper takes 1 and 1 with landmarks.
    max_generations : int, default=100_000
        Most generations of an evolution.
    patience : int or None, default=None
        Generations without a surviving child after which an evolution stops; None is as
        many as make ten children a row.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream (sparse columns are not
        centred).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, 0 for the cluster of the first row; equal to
        ``predict(X)``.
    row_index_ : pandas.Index
        Which rows ``labels_`` belong to: the index of a frame, or names or numbers of
        rows in their file.
    objective_ : float
        F(y) = min over f of (Σ w_i (y_i - f(x_i))² + alpha m |f|²)/m of the evolved
        labels y in {-1, +1} of the m rows of the sample, with weights w of mean 1; f is
        of the kernel centred on the sample. It lies between 0 and 1; the smaller, the
        better.
    gamma_ : float
        Gamma of the kernel.
    converged_ : bool
        Whether the best evolution stood still before ``max_generations``.
    history_ : DataFrame
        Of each evolution the generations 1, 2, 4, ... and the last: stage, start,
        generation, objective (the lowest F so far), reads, sweeps, bytes, resumed, and
        the seconds at which that evolution ended.
    report_ : dict
        Sizes of the sample's clusters, evolved and by the model; agreement of the two;
        how many evolutions ended at the best F; warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by local search; mostly of lower loss.

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
                f"the model agrees with the evolved labels on {agreement:.0%} of the "
                "sample only; raise balance if the clusters differ in size."
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
        """Return the model without its hyperplane, and the fitness of sample labels."""
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
    """Count the labels below and above 0."""
    return [int((labels < 0).sum()), int((labels > 0).sum())]


def column_bytes(sample_size: int, n_samples: int) -> float:
    """Return the bytes of the kernel columns of a block, which every thread needs."""
    return 8.0 * sample_size * min(n_samples, BLOCK_ROWS)
