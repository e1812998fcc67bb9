"""The working set of cutting planes, in centred features.

Plane k is P_k = Σ_i a_ki (φ_i - φ̄) with a_k = c_k∘y/n. It is stored as inner
products with the basis (``centred``) and as coefficients on the basis
(``coefs``). The Gram matrix of the planes is the product of the two. Labels stay
fixed while planes are added; the papers update them inside the loop, which loses
convexity. When labels change, all planes are rebuilt.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.features.kernel import Kernel, KernelSamples, MultipleKernels
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.rules import GivenLabels, Hyperplane, Labels
from mmcnb.hinge.cutting_plane import DEGENERATE, ConstraintStatistics, Objective, SubproblemResult
from mmcnb.hinge.qp import NO_SOLUTION, PlaneQPError, PlaneSolution, Threshold, solve_planes
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import as_matrix, row_shares

STATUS = ("converged", "stalled", "degenerate", "unsolved")  # as numbered by `mmcnb.kernels.cccp_rounds`


class WorkingSet(ABC):
    """The working set Ω of the cutting-plane loop.

    Parameters
    ----------
    training_set : TrainingSet
        The rows.
    """

    max_planes = 1000  # most cutting planes added in one loop

    def __init__(self, training_set: TrainingSet) -> None:
        self.training_set = training_set
        self.generators: list[Any] = [self.all_rows()]
        self.s = self.t = np.empty(0)
        self.centred = self.coefs = np.empty((0, 0))

    @abstractmethod
    def all_rows(self) -> Any:
        """The generator of the first plane, which has every row: the only one that is always feasible."""

    @abstractmethod
    def relabel(self, labels: Labels) -> None:
        """Compute all cutting planes under the given labels."""

    @abstractmethod
    def find_most_violated(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """The most violated constraint of a hyperplane, not yet added, and its statistics."""

    @property
    def evaluations(self) -> int:
        """Kernel evaluations so far, in units of the number of rows."""
        return 0 if self.training_set.basis is None else self.training_set.basis.shape[0]

    @property
    def gram(self) -> np.ndarray:
        """Inner products of the cutting planes, of shape (planes, planes)."""
        product = self.centred @ self.coefs.T
        return (product + product.T) / 2

    @property
    def history_columns(self) -> dict[str, float]:
        """Further columns of a row of the history."""
        return {}

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the QP of the cutting planes."""
        return solve_planes(self.gram, self.s, self.t, C, balance, threshold)

    def combine(self, multipliers: np.ndarray) -> np.ndarray:
        """Coefficients of Σ λ_k P_k."""
        return multipliers @ self.coefs

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """w = Σ λ_k P_k with mean decision value beta."""
        coef = self.combine(multipliers)
        return Hyperplane(coef, beta - float(self.training_set.mean @ coef))

    def over(self, training_set: TrainingSet) -> "WorkingSet":
        """A working set on other rows in the same features; by default it starts anew, with a fixed basis."""
        return FixedBasisWorkingSet(training_set)

    def keep(self, kept: np.ndarray) -> None:
        """Drop all cutting planes but those marked; basis vectors stay."""
        self.generators = [generator for generator, keep in zip(self.generators, kept, strict=True) if keep]
        shared = self.coefs is self.centred
        self.s, self.t = self.s[kept], self.t[kept]
        self.centred = self.centred[kept]
        self.coefs = self.centred if shared else self.coefs[kept]

    def add(self, found: Any) -> None:
        """Add a cutting plane that `find_most_violated` returned."""
        generator, statistics, centred, coef = found
        self.generators.append(generator)
        self.s, self.t = np.append(self.s, statistics.active), np.append(self.t, statistics.signed)
        shared = self.coefs is self.centred and coef is centred  # rows are their own features
        self.centred = np.vstack([self.centred, centred])
        self.coefs = self.centred if shared else np.vstack([self.coefs, coef])


class FixedBasisWorkingSet(WorkingSet):
    """Cutting planes on a fixed basis (landmarks), or on the columns of the rows themselves.

    A plane stores the hyperplane that generated it, p + 1 numbers, and nothing of size n. One
    sweep rebuilds all planes under new labels.
    """

    def all_rows(self) -> tuple[Hyperplane, float]:
        """A zero hyperplane and an infinite threshold."""
        return Hyperplane(np.zeros(self.training_set.mean.shape[0]), 0.0), np.inf

    def over(self, training_set: Any) -> WorkingSet:
        """The same generators on other rows."""
        other = type(self)(training_set)
        other.generators = list(self.generators)
        return other

    def relabel(self, labels: Labels) -> None:
        """Rebuild all cutting planes under the labels, in one sweep."""
        self.s, self.t, row_sums = self.training_set.plane_sums(labels, self.generators)
        self.centred = row_sums - np.outer(self.t, self.training_set.mean)
        self.coefs = self.training_set.represent(self.centred)

    def find_most_violated(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep: the most violated constraint and its statistics."""
        row_sum, statistics = self.training_set.most_violated(labels, hyperplane, rho)
        centred = row_sum - statistics.signed * self.training_set.mean
        return ((hyperplane, rho), statistics, centred, self.training_set.represent(centred)), statistics


class ExactWorkingSet(FixedBasisWorkingSet):
    """Cutting planes with all rows as the basis: the features are the kernel matrix itself (Alg. 2).

    The coefficients of a plane are its signed rows, so no inverse of the kernel matrix is needed.
    """

    def __init__(self, training_set: TrainingSet) -> None:
        super().__init__(training_set)
        self.row_shares = row_shares(training_set.n_samples, training_set.weights)

    def relabel(self, labels: Labels) -> None:
        """Rebuild all cutting planes under the labels."""
        gram = self.training_set.features.block(0, self.training_set.n_samples)
        y = labels.block(gram, 0, self.training_set.n_samples)
        decisions = np.array([gram @ plane.coef + plane.offset for plane, _ in self.generators])
        active = y * decisions <= np.array([rho for _, rho in self.generators])[:, None]
        signed = active * y * self.row_shares
        self.s, self.t = active @ self.row_shares, signed.sum(axis=1)
        self.centred = signed @ gram - np.outer(self.t, self.training_set.mean)
        self.coefs = signed - np.outer(self.t, self.row_shares)

    def find_most_violated(
        self, labels: Labels, hyperplane: Hyperplane, rho: float
    ) -> tuple[Any, ConstraintStatistics]:
        """One sweep of the kernel matrix."""
        active, row_sum, statistics = self.training_set.most_violated_rows(labels, hyperplane, rho)
        y = labels.block(self.training_set.features.block(0, active.shape[0]), 0, active.shape[0])
        centred = row_sum - statistics.signed * self.training_set.mean
        coef = (active * y - statistics.signed) * self.row_shares
        return ((hyperplane, rho), statistics, centred, coef), statistics


class SampleRounds(NamedTuple):
    """Rounds at one C on a sample.

    Parameters
    ----------
    solution : SubproblemResult or None
        The solution of the last round that did not degenerate; None where the first did.
    labels : Labels
        The labels of its hyperplane, where these leave each cluster its least share; otherwise those before.
    rounds : int
        How many rounds did not degenerate.
    history : list of dict
        A row for each sweep.
    """

    solution: SubproblemResult | None
    labels: Labels
    rounds: int
    history: list[dict[str, Any]]


class SampleWorkingSet(FixedBasisWorkingSet):
    """Cutting planes of a dense sample in memory, whose rounds are compiled (`mmcnb.kernels.cccp_rounds`).

    A plane also stores which rows it holds, one byte per row. So new labels change it by the rows whose label
    changes.
    """

    def __init__(self, training_set: TrainingSet) -> None:
        super().__init__(training_set)
        n, p = training_set.n_samples, training_set.mean.shape[0]
        self.planes, self.members = np.zeros((1, 3 * p + 3)), np.zeros((1, n), np.int8)
        self.planes[0, p + 1] = np.inf  # the threshold of the first plane, which has every row
        self.signs = np.zeros(n, np.int8)  # the labels that the planes have; 0 for none

    def over(self, training_set: Any) -> WorkingSet:
        """The same generators on other rows; their rounds are compiled where these are in memory too."""
        p = training_set.mean.shape[0]
        if not self.signs.any() or not training_set.hold_labels:
            other = FixedBasisWorkingSet(training_set)
            found = [
                (Hyperplane(plane[:p].copy(), float(plane[p])), float(plane[p + 1])) for plane in self.planes
            ]
            other.generators = found if self.signs.any() else list(self.generators)
            return other
        other = SampleWorkingSet(training_set)
        other.planes = np.zeros_like(self.planes)
        other.planes[:, : p + 2] = self.planes[:, : p + 2]
        other.members = np.zeros((len(self.planes), training_set.n_samples), np.int8)
        return other

    def rounds(
        self,
        labels: Labels,
        objective: Objective,
        C: float,
        eta: float,
        max_rounds: int,
        changed: float,
        least: float,
    ) -> SampleRounds:
        """CCCP rounds at one C, until few labels change or a cluster falls below its least share."""
        own, total = self.training_set, self.training_set.total_weight
        planes, members, signs, y, multipliers, plane, sweeps, rounds, status = kernels.cccp_rounds(
            np.ascontiguousarray(own.features.block(0, own.n_samples)),
            labels.block(None, 0, own.n_samples),
            row_shares(own.n_samples, own.weights),
            own.mean,
            own.inverses[0],
            self.planes,
            self.members,
            self.signs,
            float(C),
            float(eta),
            DEGENERATE * objective.total_variance,
            self.max_planes,
            max_rounds,
            changed / total,
            least,
        )
        self.planes, self.members, self.signs = planes, members, signs
        if STATUS[status] == "unsolved":
            raise PlaneQPError(NO_SOLUTION)
        history = _sweeps(sweeps, C, total)
        if rounds == 0:
            return SampleRounds(None, labels, 0, history)
        _, _, rho, xi, norm2, _, active, signed, violation, positive, moved, hinge = sweeps[
            sweeps[:, 0] < rounds
        ][-1].tolist()
        quadratic = PlaneSolution(multipliers, rho, xi, 0.0, norm2)
        statistics = ConstraintStatistics(active, signed, violation, positive, moved * total, hinge)
        lower, upper = (objective.value(quadratic, C, slack) for slack in (xi, violation))
        hyperplane = Hyperplane(plane[:-1], float(plane[-1]))
        solution = SubproblemResult(hyperplane, quadratic, C, statistics, lower, upper, STATUS[status])
        return SampleRounds(solution, GivenLabels(y), rounds, history)


def _sweeps(history: np.ndarray, C: float, total: float) -> list[dict[str, Any]]:
    """Rows of the history, as those of the cutting-plane loop, from the columns of `cccp_rounds`."""
    number, planes, rho, xi, norm2, lower, _, _, violation, _, changed, _ = history.T
    columns = {
        "C": np.full(len(history), C),
        "objective": lower,
        "primal": lower + C * (np.maximum(violation, 0.0) - np.maximum(xi, 0.0)),
        "norm": np.sqrt(norm2),
        "rho": rho,
        "violation": violation - xi,
        "planes": planes.astype(np.int64),
        "changed": changed * total,
        "round": number.astype(np.int64),
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


@dataclass(frozen=True)
class KernelFeatures:
    """The sample under one kernel.

    Parameters
    ----------
    kernel : Kernel, MultipleKernels or None
        The kernel, or several; None where rows are their own features.
    z : ndarray or csr_array of shape (m, r)
        The sample in coordinates in which the kernel is an inner product.
    weights : ndarray of shape (m,) or None
        Sample weights.
    new_working_set : callable
        Makes the working set of a start.
    """

    kernel: Kernel | MultipleKernels | None
    z: Any
    weights: np.ndarray | None
    new_working_set: Callable[[], WorkingSet]


def landmark_features(
    kernel: Kernel,
    engine: Engine,
    sample: Samples,
    basis: np.ndarray,
    weights: np.ndarray | None,
    whole: bool = False,
) -> KernelFeatures:
    """The sample on landmarks, with its kernel columns cached in memory.

    ``whole`` says that all distinct rows are landmarks: then the method is exact, and so is the arithmetic.
    Rows are then few, and not worth the seconds that the compiled rounds take to compile.
    """
    dtype, tolerance = (np.float64, 1e-12) if whole else (np.float32, 1e-6)
    features = cache_features(KernelSamples(sample, kernel.against(basis), dtype), "memory")
    make = FixedBasisWorkingSet if whole else SampleWorkingSet
    normalization = normalization_of(kernel(basis.astype(np.float64), basis.astype(np.float64)), tolerance)
    training_set = TrainingSet(engine, features, normalization, weights, hold_labels=True, basis=basis)
    return KernelFeatures(kernel, _rows(training_set) @ normalization, weights, lambda: make(training_set))


def exact_features(
    kernel: Kernel, engine: Engine, sample: Samples, basis: np.ndarray, weights: np.ndarray | None
) -> KernelFeatures:
    """The sample with all its rows as the basis: the full kernel matrix in float64."""
    features = cache_features(KernelSamples(sample, kernel.against(basis), np.float64), "memory")
    training_set = TrainingSet(engine, features, None, weights, hold_labels=True, basis=basis)
    gram = _rows(training_set)
    return KernelFeatures(
        kernel, gram @ normalization_of(gram), weights, lambda: ExactWorkingSet(training_set)
    )


def linear_features(engine: Engine, sample: Samples, weights: np.ndarray | None) -> KernelFeatures:
    """The rows as their own features."""
    training_set = TrainingSet(engine, sample, None, weights, hold_labels=True)
    return KernelFeatures(None, _rows(training_set), weights, lambda: FixedBasisWorkingSet(training_set))


def _rows(training_set: TrainingSet) -> Any:
    return as_matrix(training_set.features.block(0, training_set.n_samples)).astype(np.float64)
