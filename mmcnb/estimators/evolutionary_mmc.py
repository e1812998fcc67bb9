"""Evolutionary maximum margin clustering: two clusters by evolution of label vectors."""

import logging
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb._config import format_bytes, resolve_memory_limit
from mmcnb.engine.plan import FitPlan, square_rows
from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, MemoryLimitError
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.parameters import check_choice, check_gamma, check_number
from mmcnb.estimators.unsupervised_rls import KERNELS
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.model import Model
from mmcnb.features.nystroem import SMALLEST_EIGENVALUE, choose_landmarks, normalization_of
from mmcnb.features.rules import Hyperplane, signs
from mmcnb.least_squares.evolution import (
    Evolved,
    FeatureFitness,
    MatrixFitness,
    evolve,
    feature_fitness,
    matrix_fitness,
)
from mmcnb.samples import BLOCK_ROWS, Samples, open_samples

logger = logging.getLogger("mmcnb")

PLANNED_LANDMARKS = 200  # for the plan where the basis is the sample; its columns are counted apart
MATRICES = 3  # of the size of the kernel matrix, while it is inverted
TIE = 1e-9
AGREEMENT = 0.99
NOTHING = 1e-9  # of F that the labels explain
ONE_CLUSTER = "the model finds one cluster alone on the sample; give another gamma, or a smaller alpha."


@estimator
class EvolutionaryMMC(StreamedClusterer):
    """Maximum margin clustering by evolution, with the squared loss (EvoMMC, FastEvoMMC).

    Finds the two clusters, of about equal size, on which kernel ridge regression leaves the smallest error:
    label vectors are mutated by flips, the fittest live on. The evolution runs on a sample, or on all rows
    where there are no more; the ridge regression of the labels it ends with then labels all rows in one pass.
    So ``labels_`` are those of the model: rows at its boundary can differ from the evolved labels, most where
    ``balance`` forces rows to the other side, and ``report_["agreement"]`` is the share that does not.

    Parameters
    ----------
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
    alpha : float, default=1e-3
        Ridge a row: lambda of the paper.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    n_landmarks : int or None, default=None
        None takes all rows of the sample as the basis (EvoMMC), for which storage grows with their square; a
        number takes so many k-means++ landmarks (FastEvoMMC).
    n_init : int, default=30
        Evolutions, each from random labels; the lowest F wins. They end in many different optima: on a few
        hundred rows 100 take a second, and mostly one of them reaches the lowest F that any does.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000.
    balance : float, default=0.4
        l/n: bound of abs(sum(y))/n for the evolved labels, of which the smaller cluster holds at least
        (1 - balance)/2. It counts rows, whatever their weights. The paper takes .03, .1, .3 or .4, by the
        sizes of the classes.
    centre : bool, default=True
        Centre the kernel; False is the paper's form, which draws the sizes towards the bound.
    n_parents, n_offspring : int, default=10
        mu and nu; the paper takes 1 and 1 with landmarks.
    max_generations : int, default=100_000
        Most generations of an evolution.
    patience : int or None, default=None
        Generations without a surviving child after which an evolution stops; None is as many as make ten
        children a row.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream (sparse columns are not centred).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, 0 for the cluster of the first row; equal to ``predict(X)``.
    objective_ : float
        F(y) = min over f of (Σ w_i (y_i - f(x_i))² + alpha m |f|²)/m of the evolved labels y in {-1, +1} of
        the m rows of the sample, with weights w of mean 1; f is of the kernel centred on the sample. It lies
        between 0 and 1; the smaller, the better.
    gamma_ : float
        Width of the kernel.
    converged_ : bool
        Whether the best evolution stood still before ``max_generations``.
    history_ : DataFrame
        Of each evolution the generations 1, 2, 4, ... and the last: stage, start, generation, objective (the
        lowest F so far), reads, sweeps, bytes, resumed, and the seconds at which that evolution ended.
    report_ : dict
        Sizes of the sample's clusters, evolved and by the model; agreement of the two; how many evolutions
        ended at the best F; warnings.
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    UnsupervisedRLS : The same loss by local search, for any number of clusters; mostly finds lower losses.

    References
    ----------
    F. Gieseke, T. Pahikkala and O. Kramer, Fast evolutionary maximum margin clustering, Alg. 1,
    Theorems 1 and 2.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.EvolutionaryMMC(gamma="mean", random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    gamma: float | str = "auto"
    alpha: float = 0.001
    kernel: str = "rbf"
    n_landmarks: int | None = None
    n_init: int = 30
    sample_size: int | None = None
    balance: float = 0.4
    centre: bool = True
    n_parents: int = 10
    n_offspring: int = 10
    max_generations: int = 100000
    patience: int | None = None
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    fitted_names = ("objective", "gamma", "converged", "report")

    # -- the fit -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_gamma(self.gamma)
        check_number("alpha", self.alpha, 0.0, open_low=True)
        check_choice("kernel", self.kernel, KERNELS)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_choice("centre", self.centre, (True, False))
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)
        for name in ("n_init", "n_parents", "n_offspring", "max_generations"):
            check_number(name, getattr(self, name), 1, integer=True)
        for name in ("n_landmarks", "patience"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 1, integer=True)

    def _basis_size(self, n_samples: int) -> int:
        return min(n_samples, self._rows_of_sample(), self.n_landmarks or PLANNED_LANDMARKS)

    def _sample_bytes(self, n_samples: int) -> float:
        rows = min(n_samples, self._rows_of_sample())
        return 0.0 if self.n_landmarks else MATRICES * 8.0 * rows**2 + self._column_bytes(n_samples)

    def _sweeps(self) -> int:
        return 1  # the labels

    def _column_bytes(self, n_samples: int) -> float:
        """Of the kernel columns of a block against the whole sample, which every thread holds."""
        return 8.0 * min(n_samples, self._rows_of_sample()) * min(n_samples, BLOCK_ROWS)

    def _plan(self, samples: Samples) -> FitPlan:
        if self.n_landmarks is not None:
            return super()._plan(samples)
        rows, limit = min(samples.n_samples, self._rows_of_sample()), resolve_memory_limit(self.memory_limit)
        held, fits = self._sample_bytes(samples.n_samples), square_rows(limit, MATRICES + 1)
        if held > limit and fits >= 2:
            raise MemoryLimitError(
                f"the kernel matrix of {rows:,} rows takes {format_bytes(8 * rows**2)} and the evolution "
                f"{format_bytes(held)}, of {format_bytes(limit)} allowed; give n_landmarks="
                f"{PLANNED_LANDMARKS}, which needs no matrix, sample_size={fits}, or raise memory_limit."
            )
        plan = super()._plan(samples)
        spare = plan.memory_limit - plan.libraries - plan.in_flight - plan.sample
        threads = 1 + int(max(0.0, spare) // self._column_bytes(samples.n_samples))
        return replace(plan, threads=min(plan.threads, threads))

    def _kernel(self, sample: Any, weights: np.ndarray | None) -> Kernel:
        gamma = default_gamma(self.gamma, self.kernel, sample, weights)
        return Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        sample, weights = session.found.sample, session.sample_weights
        kernel = self._kernel(sample, weights)
        model, fitness = self._fitness(session, kernel, random_state)
        found = self._evolutions(session, fitness, random_state)
        y = found[0].y.astype(np.float64)
        plane = fitness.hyperplane(y)
        if plane.decide(model.features(session.samples).block(0, 1))[0] >= 0:  # the first row's cluster is 0
            plane, y = Hyperplane(-plane.coef, -plane.offset), -y
        self.model_ = replace(model, rule=plane)
        self.gamma_ = kernel.gamma
        self.objective_ = fitness.value(y)
        self.converged_ = len(found[0].best) < self.max_generations
        self.report_ = self._report(found, y, signs(fitness.decide(y)))
        for sentence in self.report_["warnings"]:
            logger.info(sentence)
        if ONE_CLUSTER in self.report_["warnings"]:
            warnings.warn(ONE_CLUSTER, ClusterWarning, stacklevel=5)
        return self.model_.features(session.samples)

    def _fitness(
        self, session: FitSession, kernel: Kernel, random_state: Any
    ) -> tuple[Model, MatrixFitness | FeatureFitness]:
        """The model without its hyperplane, and the fitness of labels of the sample."""
        sample, weights = session.found.sample, session.sample_weights
        m = sample.shape[0]
        exact = self.n_landmarks is None
        if exact:
            basis = np.ascontiguousarray(sample.toarray() if hasattr(sample, "toarray") else sample)
        else:
            basis = choose_landmarks(sample, self._basis_size(m), random_state, weights)
        dtype = np.dtype(np.float64 if exact else np.float32)
        rows = KernelSamples(open_samples(sample), kernel.against(basis), dtype)
        columns = rows.block(0, m)
        empty = Hyperplane(np.empty(0), 0.0)
        model = Model(empty, kernel, basis, session.found.mean, session.found.deviation, dtype.name)
        if exact:
            return model, matrix_fitness(columns, float(self.alpha), weights, bool(self.centre))
        vectors = basis.astype(np.float64)
        normalization = normalization_of(kernel(vectors, vectors), SMALLEST_EIGENVALUE)
        return model, feature_fitness(columns, normalization, float(self.alpha), weights, bool(self.centre))

    def _evolutions(
        self, session: FitSession, fitness: MatrixFitness | FeatureFitness, random_state: Any
    ) -> list[Evolved]:
        """All evolutions, the lowest F first."""

        def evolution(seed: int) -> tuple[Evolved, float]:
            (found,) = evolve(
                fitness.M,
                matrix=fitness.matrix,
                balance=float(self.balance),
                n_parents=int(self.n_parents),
                n_offspring=int(self.n_offspring),
                n_init=1,
                max_generations=int(self.max_generations),
                patience=None if self.patience is None else int(self.patience),
                random_state=np.random.RandomState(seed),
            )
            return found, time.perf_counter()

        seeds = random_state.randint(2**31 - 1, size=int(self.n_init)).tolist()
        found = []
        for start, (one, clock) in enumerate(session.engine.each(evolution, seeds)):
            last = len(one.best)
            for generation in sorted({*(2**k for k in range(last.bit_length())), last}):
                facts = {"stage": "sample", "start": start, "generation": generation}
                session.record(facts | {"objective": float(one.best[generation - 1]), "clock": clock})
            found.append(replace(one, start=start))
        return sorted(found, key=lambda one: round(one.fitness / TIE))

    def _report(self, found: list[Evolved], evolved: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        agreement = float(np.mean(evolved == labels))
        doubts = []
        sizes = [int((labels < 0).sum()), int((labels > 0).sum())]
        if min(sizes) == 0 or self.objective_ > 1 - NOTHING:
            doubts.append(ONE_CLUSTER)
        if not self.converged_:
            doubts.append(
                f"the best evolution was stopped at max_generations={self.max_generations}; raise it."
            )
        if agreement < AGREEMENT:
            doubts.append(
                f"the model agrees with the evolved labels on {agreement:.0%} of the sample only; "
                "raise balance if the clusters differ in size."
            )
        return {
            "evolved_sizes": [int((evolved < 0).sum()), int((evolved > 0).sum())],
            "sample_sizes": sizes,
            "agreement": agreement,
            "evolutions_at_best": sum(abs(one.fitness - found[0].fitness) < 1e-6 for one in found),
            "start": found[0].start,
            "gamma": self.gamma_,
            "warnings": doubts,
        }
