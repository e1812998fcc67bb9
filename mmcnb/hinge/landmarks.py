"""Two clusters on basis vectors: landmarks from the sample, or a basis that grows with the cutting planes.

The hyperplane lies in the span of the basis. A growing basis gains one vector per plane, as in the papers.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS, SumPass, row_sum
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.bandwidth import candidate_gammas, default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.needs import ROUTINES
from mmcnb.features.nystroem import choose_landmarks, normalization_of, scaled_landmarks
from mmcnb.features.rules import Labels
from mmcnb.hinge.cutting_plane import WorkingSet
from mmcnb.hinge.needs import ROUND_ROUTINES, hinge_needs
from mmcnb.hinge.sample_search import KernelFeatures, SearchConfig, landmark_features
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.least_squares.partition import PARTITION_ROUTINES
from mmcnb.samples import CSRBlock, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, row_shares

MOST_LANDMARKS = 200  # by default: `python -m benchmarks basis`
STEP = 0.01  # the papers' delta, in units of sigma²
MAX_STEPS = 50  # of one fixed-point iteration; most end after ten
ATTEMPTS = 4  # starts where the denominator vanishes, a case that Alg. 4 leaves open
AVERAGED_ROWS = 5  # rows whose mean is the first start
SAME = 1 - 1e-6  # kernel value above which two basis vectors count as one


def basis_size(n_landmarks: int | None, rows: int) -> int:
    """Number of landmarks of a sample; by default half of its rows and at most 200."""
    return min(rows, n_landmarks) if n_landmarks else max(2, min(MOST_LANDMARKS, rows // 2))


def candidate_kernels(
    name: str,
    gamma: float | str,
    sample: Any,
    weights: np.ndarray | None,
    degree: int = 3,
    coef0: float = 1.0,
) -> list[Kernel]:
    """The kernels to try on a sample: one, or one for each candidate bandwidth.

    Raises
    ------
    InputError
        If all rows are equal.
    """
    try_all = isinstance(gamma, str) and gamma == "auto" and name == "rbf"  # others have no bandwidth
    gammas = candidate_gammas(sample, weights) if try_all else [default_gamma(gamma, name, sample, weights)]
    return [Kernel(name, one, int(degree), float(coef0)) for one in gammas]


def needs_of_landmarks(
    rows: RowShape,
    sample_size: int | None,
    n_landmarks: int | None,
    landmarks: Any = None,
    growing: bool = False,
) -> FitNeeds:
    """Bytes and work of a fit on landmarks of a sample."""
    drawn = sample_size or SAMPLE_ROWS
    searched = min(rows.n_samples, drawn)
    size = basis_size(n_landmarks, searched) if landmarks is None else len(landmarks)
    compiled, sparse = not growing and size < searched, landmarks is None and not growing
    needs = hinge_needs(rows, size, drawn, stays_sparse=sparse, compiled=compiled)
    routines = {**ROUTINES, **PARTITION_ROUTINES, **needs.routines, **(ROUND_ROUTINES if compiled else {})}
    return replace(needs, routines=routines)


def fit_on_landmarks(
    session: FitSession,
    config: SearchConfig,
    kernels: list[Kernel],
    n_landmarks: int | None,
    landmarks: Any = None,
    growing: bool = False,
) -> FitResult:
    """Fit to the landmarks of a sample; on a growing basis the landmarks serve the starts alone."""
    rows, weights = session.sample, session.sample_weights
    size = basis_size(n_landmarks, rows.shape[0])
    if landmarks is None:
        basis = choose_landmarks(rows, size, session.random_state, weights, may_be_sparse=not growing)
    else:
        basis = scaled_landmarks(landmarks, rows, session.scaling)
    make: Any = growing_features if growing else landmark_features
    last = session.seed() if growing else landmarks is None and size == rows.shape[0]
    given = session.engine, open_samples(rows), basis, weights, last
    return fit_two_clusters(session, [partial(make, kernel, *given) for kernel in kernels], config)


# -- a basis that grows ------------------------------------------------------------------------


def growing_features(
    kernel: Kernel, engine: Engine, sample: Samples, basis: np.ndarray, weights: np.ndarray | None, seed: int
) -> KernelFeatures:
    """The sample on a growing basis; the landmarks serve the starts alone."""
    z = landmark_features(kernel, engine, sample, basis, weights).z
    given = engine, sample, kernel, weights, seed
    return KernelFeatures(kernel, z, weights, lambda: GrowingWorkingSet(*given))


@dataclass(frozen=True)
class _FixedPointPass(SumPass):
    """Sums of z_i K(x_i, b) x_i and of z_i K(x_i, b), with z as the weights: Wu & Zhang, eq. (47)."""

    b: np.ndarray
    kernel: Kernel

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        precise = rows if isinstance(rows, CSRBlock) else rows.astype(np.float64)
        return row_sum(rows, self.weights_of(start, stop) * self.kernel(precise, self.b[None])[:, 0])


class GrowingWorkingSet(WorkingSet):
    """Cutting planes on a basis that gains one vector with each plane.

    A basis vector is a fixed point of App. C, eq. (47): the point where one Gaussian bump is most like
    Ψ. Signs in Ψ are mixed, so the denominator can vanish. The search then restarts from another random
    average. Iterations are capped, and the best point found is used.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        The rows, in memory.
    kernel : Kernel
        A Gaussian kernel.
    weights : ndarray of shape (n,) or None
        Sample weights.
    seed : int
        Seed of the random averages.
    """

    def __init__(
        self, engine: Engine, samples: Samples, kernel: Kernel, weights: np.ndarray | None, seed: int
    ) -> None:
        self.engine, self.samples, self.kernel, self.weights = engine, samples, kernel, weights
        self.random_state = np.random.RandomState(seed)
        self.spent = 0
        self.columns: np.ndarray = np.empty((samples.n_samples, 0), np.float32)
        self.basis: np.ndarray = np.empty((0, samples.n_features))
        self.row_shares = row_shares(samples.n_samples, weights)
        self._grow(self._fixed_point(self.row_shares))
        super().__init__(self.training_set)
        self.generators = [np.ones(samples.n_samples, np.int8)]  # which rows each plane has

    def over(self, training_set: Any) -> WorkingSet:
        """A working set on other rows, which starts anew: its basis is the one of now."""
        return WorkingSet(training_set)

    @property
    def evaluations(self) -> int:
        """Kernel evaluations so far, most of them in the search for fixed points."""
        return self.spent

    def find_most_violated(self, labels: Labels, hyperplane: Any, rho: float) -> tuple[Any, ...]:
        """One sweep of the columns so far."""
        _, statistics, active = self.training_set.most_violated(labels, hyperplane, rho)
        return active, statistics

    def add(self, found: Any) -> None:
        """Add the cutting plane, and a basis vector for it."""
        active, statistics = found
        self.generators.append(active)
        self.s, self.t = np.append(self.s, statistics.active), np.append(self.t, statistics.signed)
        self._grow(self._fixed_point(active * self.y * self.row_shares))
        self._represent_all()

    def relabel(self, labels: Labels) -> None:
        """Sign the cutting planes with new labels."""
        self.labels, self.y = labels, labels.block(self.columns, 0, self.columns.shape[0])
        active = np.array(self.generators)
        self.s, self.t = active @ self.row_shares, (active * self.y) @ self.row_shares
        self._represent_all()

    def _represent_all(self) -> None:
        """Inner products and coefficients of all cutting planes on the basis so far: one shared subspace."""
        signed = np.array(self.generators) * self.y * self.row_shares
        self.centred = signed @ self.columns - np.outer(self.t, self.training_set.mean)
        self.coefs = self.training_set.represent(self.centred)

    def _grow(self, b: np.ndarray) -> None:
        """Add a basis vector unless the basis has it already."""
        kernel, samples = self.kernel, self.samples
        if self.basis.shape[0] and kernel(b[None, :], self.basis).max() > SAME:
            return
        self.basis = np.vstack([self.basis, b])
        column = kernel(samples.block(0, samples.n_samples), b[None, :].astype(samples.dtype), np.float32)
        self.spent += 1
        self.columns = np.ascontiguousarray(np.hstack([self.columns, column]))
        normalization = normalization_of(kernel(self.basis, self.basis))
        given = self.engine, open_samples(self.columns), normalization, self.weights
        self.training_set = TrainingSet(*given, hold_labels=True, basis=self.basis)

    def _fixed_point(self, z: np.ndarray) -> np.ndarray:
        """The point where one Gaussian bump is most like Σ z_i φ(x_i)."""
        best, highest = np.zeros(self.samples.n_features), -1.0
        for attempt in range(ATTEMPTS):
            b = self._random_average(1 if attempt else AVERAGED_ROWS)
            for _ in range(MAX_STEPS):
                total, weight = self.engine.run(_FixedPointPass(z, b, self.kernel), self.samples)
                self.spent += 1
                if abs(weight) > highest:
                    best, highest = b, abs(weight)
                if abs(weight) < 1e-12:
                    break
                moved, b = float(((total / weight - b) ** 2).sum()), total / weight
                if moved <= STEP / (2 * self.kernel.gamma):
                    return best
        return best

    def _random_average(self, count: int) -> np.ndarray:
        numbers = np.unique(self.random_state.randint(self.columns.shape[0], size=count))
        rows = as_matrix(self.samples.gather(numbers.astype(np.int64)))
        return np.asarray(rows.mean(axis=0), np.float64).ravel()
