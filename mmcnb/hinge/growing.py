"""Cutting planes whose basis grows with them, one vector per plane, as in the papers.

A basis vector is a fixed point of App. C, eq. (47): the point where one Gaussian bump is most like
Ψ. Signs in Ψ are mixed, so the denominator can vanish. The search then restarts from another random
average. Iterations are capped, and the best point found is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SumPass
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.rules import Hyperplane, Labels
from mmcnb.hinge.cutting_plane import ConstraintStatistics
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.working_set import KernelFeatures, WorkingSet, landmark_features
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, row_shares

STEP = 0.01  # the papers' delta, in units of sigma²
MAX_STEPS = 50  # of one fixed-point iteration; most end after ten
ATTEMPTS = 4  # starts where the denominator vanishes, a case that Alg. 4 leaves open
AVERAGED_ROWS = 5  # rows whose mean is the first start
SAME = 1 - 1e-6  # kernel value above which two basis vectors count as one


@dataclass(frozen=True)
class _FixedPointPass(SumPass):
    """Sums of z_i K(x_i, b) x_i and of z_i K(x_i, b)."""

    z: np.ndarray
    b: np.ndarray
    gamma: float

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        z = self.z[start:stop]
        if isinstance(rows, CSRBlock):
            return list(kernels.basis_fixed_point_sums_csr(*rows[:3], z, self.b, self.gamma))
        return list(kernels.basis_fixed_point_sums(rows, z, self.b, self.gamma))


@dataclass(frozen=True)
class Rows:
    """The rows a basis grows from, in memory.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        The rows.
    kernel : Kernel
        A Gaussian kernel.
    weights : ndarray of shape (n,) or None
        Sample weights.
    seed : int
        Seed of the random averages.
    """

    engine: Engine
    samples: Samples
    kernel: Kernel
    weights: np.ndarray | None
    seed: int


class GrowingWorkingSet(WorkingSet):
    """Cutting planes on a basis that gains one vector with each plane.

    Parameters
    ----------
    rows : Rows
        The rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.random_state = np.random.RandomState(rows.seed)
        self.spent = 0
        self.columns: np.ndarray = np.empty((rows.samples.n_samples, 0), np.float32)
        self.basis: np.ndarray = np.empty((0, rows.samples.n_features))
        self.row_shares = row_shares(rows.samples.n_samples, rows.weights)
        self._grow(self._fixed_point(self.row_shares))
        super().__init__(self.training_set)

    @property
    def evaluations(self) -> int:
        """Kernel evaluations so far, most of them in the search for fixed points."""
        return self.spent

    def all_rows(self) -> np.ndarray:
        """Every row."""
        return np.ones(self.rows.samples.n_samples, np.int8)

    def find_most_violated(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep of the columns so far."""
        active, _, statistics = self.training_set.most_violated_rows(labels, hyperplane, rho)
        return (active, statistics), statistics

    def add(self, found: Any) -> None:
        """Add the cutting plane, and a basis vector for it."""
        active, statistics = found
        self.generators.append(active)
        self.s, self.t = np.append(self.s, statistics.active), np.append(self.t, statistics.signed)
        self._grow(self._fixed_point(self._signed(active)))
        self._represent_all()

    def relabel(self, labels: Labels) -> None:
        """Sign the cutting planes with new labels."""
        self.y = labels.block(self.columns, 0, self.columns.shape[0])
        active = np.array(self.generators)
        self.s, self.t = active @ self.row_shares, (active * self.y) @ self.row_shares
        self._represent_all()

    def _signed(self, active: np.ndarray) -> np.ndarray:
        return active * self.y * self.row_shares

    def _represent_all(self) -> None:
        """Inner products and coefficients of all cutting planes on the basis so far: one shared subspace."""
        signed = np.array([self._signed(active) for active in self.generators])
        self.centred = signed @ self.columns - np.outer(self.t, self.training_set.mean)
        self.coefs = self.training_set.represent(self.centred)

    def _grow(self, b: np.ndarray) -> None:
        """Add a basis vector unless the basis has it already."""
        kernel, samples = self.rows.kernel, self.rows.samples
        if self.basis.shape[0] and kernel(b[None, :], self.basis).max() > SAME:
            return
        self.basis = np.vstack([self.basis, b])
        column = kernel.against(b[None, :].astype(samples.dtype)).block(
            samples.block(0, samples.n_samples), np.float32
        )
        self.spent += 1
        self.columns = np.ascontiguousarray(np.hstack([self.columns, column]))
        self.training_set = TrainingSet(
            self.rows.engine,
            open_samples(self.columns),
            normalization_of(kernel(self.basis, self.basis)),
            self.rows.weights,
            hold_labels=True,
            basis=self.basis,
        )

    def _fixed_point(self, z: np.ndarray) -> np.ndarray:
        """The point where one Gaussian bump is most like Σ z_i φ(x_i)."""
        best, highest = np.zeros(self.rows.samples.n_features), -1.0
        for attempt in range(ATTEMPTS):
            b = self._random_average(1 if attempt else AVERAGED_ROWS)
            for _ in range(MAX_STEPS):
                total, weight = self.rows.engine.run(
                    _FixedPointPass(None, z, b, self.rows.kernel.gamma), self.rows.samples
                )
                self.spent += 1
                if abs(weight) > highest:
                    best, highest = b, abs(weight)
                if abs(weight) < 1e-12:
                    break
                moved, b = float(((total / weight - b) ** 2).sum()), total / weight
                if moved <= STEP / (2 * self.rows.kernel.gamma):
                    return best
        return best

    def _random_average(self, count: int) -> np.ndarray:
        numbers = np.unique(self.random_state.randint(self.columns.shape[0], size=count))
        rows = as_matrix(self.rows.samples.gather(numbers.astype(np.int64)))
        return np.asarray(rows.mean(axis=0), np.float64).ravel()


def growing_candidates(
    session: FitSession, kernels: Sequence[Kernel], basis: np.ndarray
) -> list[Callable[[], KernelFeatures]]:
    """Factories of the sample under each kernel, on a growing basis; landmarks serve the starts alone."""
    sample, weights, seed = open_samples(session.sample), session.sample_weights, session.seed()

    def features(kernel: Kernel) -> KernelFeatures:
        z = landmark_features(kernel, session.engine, sample, basis, weights).z
        rows = Rows(session.engine, sample, kernel, weights, seed)
        return KernelFeatures(kernel, z, weights, lambda: GrowingWorkingSet(rows))

    return [partial(features, kernel) for kernel in kernels]
