"""The working set of cutting planes, in centred features.

Plane k is P_k = Σ_i a_ki (φ_i - φ̄) with a_k = c_k∘y/n. It is held as its inner
products with the basis (``centred``) and as coefficients on the basis
(``coefs``); the Gram matrix of the planes is the product of the two. Labels
stay fixed while planes are added (the papers renew them inside the loop, which
loses convexity); when they change, all planes are signed anew.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mmcnb.features.rules import Hyperplane, Labels
from mmcnb.hinge.cutting_plane import ConstraintStatistics
from mmcnb.hinge.qp import PlaneSolution, Threshold, solve_planes
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples.matrix import row_shares


class WorkingSet(ABC):
    """The working set Ω of the cutting-plane loop.

    Parameters
    ----------
    problem : Problem
        The rows.
    """

    max_planes = 1000  # planes added in one loop

    def __init__(self, problem: TrainingSet) -> None:
        self.problem = problem
        self.generators: list[Any] = [self.all_rows()]
        self.s = self.t = np.empty(0)
        self.centred = self.coefs = np.empty((0, 0))

    @abstractmethod
    def all_rows(self) -> Any:
        """The generator of the first plane, which holds every row: the only one that is always feasible."""

    @abstractmethod
    def relabel(self, labels: Labels) -> None:
        """Compute all planes under the given labels."""

    @abstractmethod
    def find(self, labels: Labels, hyperplane: Hyperplane, rho: float) -> tuple[Any, ConstraintStatistics]:
        """The most violated constraint of a hyperplane, not yet added, and the sums of the sweep."""

    @abstractmethod
    def add(self, found: Any) -> None:
        """Add a plane that `find` returned."""

    @property
    def evaluations(self) -> int:
        """Kernel evaluations spent so far, in units of the number of rows."""
        return 0 if self.problem.basis is None else self.problem.basis.shape[0]

    @property
    def gram(self) -> np.ndarray:
        """Inner products of the planes, of shape (planes, planes)."""
        product = self.centred @ self.coefs.T
        return (product + product.T) / 2

    @property
    def to_dict(self) -> dict[str, float]:
        """What else is told of each sweep."""
        return {}

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the quadratic programme of the planes."""
        return solve_planes(self.gram, self.s, self.t, C, balance, threshold)

    def combine(self, multipliers: np.ndarray) -> np.ndarray:
        """Coefficients of Σ λ_k P_k."""
        return multipliers @ self.coefs

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """w = Σ λ_k P_k with mean decision value beta."""
        coef = self.combine(multipliers)
        return Hyperplane(coef, beta - float(self.problem.mean @ coef))

    def over(self, problem: TrainingSet) -> "WorkingSet":
        """A working set on other rows in the same features; one that grows its basis begins anew."""
        return FixedBasisWorkingSet(problem)

    def keep(self, kept: np.ndarray) -> None:
        """Drop the planes that are not kept; basis vectors stay."""
        self.generators = [generator for generator, keep in zip(self.generators, kept, strict=True) if keep]
        self.s, self.t = self.s[kept], self.t[kept]
        self.centred, self.coefs = self.centred[kept], self.coefs[kept]

    def _append(
        self, generator: Any, sums: ConstraintStatistics, centred: np.ndarray, coef: np.ndarray
    ) -> None:
        self.generators.append(generator)
        self.s, self.t = np.append(self.s, sums.active), np.append(self.t, sums.signed)
        self.centred, self.coefs = np.vstack([self.centred, centred]), np.vstack([self.coefs, coef])


class FixedBasisWorkingSet(WorkingSet):
    """Planes on a fixed basis (landmarks), or on the columns of the rows themselves.

    A plane keeps the hyperplane that generated it, p + 1 numbers, and nothing of size n: all
    planes are rebuilt under new labels in one sweep.
    """

    def all_rows(self) -> tuple[Hyperplane, float]:
        """A zero hyperplane and an infinite threshold."""
        return Hyperplane(np.zeros(self.problem.mean.shape[0]), 0.0), np.inf

    def over(self, problem: Any) -> WorkingSet:
        """The same generators on other rows."""
        planes = type(self)(problem)
        planes.generators = list(self.generators)
        return planes

    def relabel(self, labels: Labels) -> None:
        """Rebuild all planes under the labels, in one sweep."""
        self.s, self.t, row_sums = self.problem.plane_sums(labels, self.generators)
        self.centred = row_sums - np.outer(self.t, self.problem.mean)
        self.coefs = self.problem.represent(self.centred)

    def find(self, labels: Labels, hyperplane: Hyperplane, rho: float) -> tuple[Any, ConstraintStatistics]:
        """One sweep: the most violated constraint and its sums."""
        row_sum, sums = self.problem.most_violated(labels, hyperplane, rho)
        return ((hyperplane, rho), row_sum, sums), sums

    def add(self, found: Any) -> None:
        """Add a plane that `find` returned."""
        generator, row_sum, sums = found
        centred = row_sum - sums.signed * self.problem.mean
        self._append(generator, sums, centred, self.problem.represent(centred))


class ExactWorkingSet(FixedBasisWorkingSet):
    """Planes on all rows as their own basis: the features are the kernel matrix itself (Alg. 2).

    Coefficients of a plane are its signed rows, so no inverse of the kernel matrix is needed.
    """

    def __init__(self, problem: TrainingSet) -> None:
        super().__init__(problem)
        self.row_shares = row_shares(problem.n_samples, problem.weights)

    def relabel(self, labels: Labels) -> None:
        """Rebuild all planes under the labels."""
        gram = self.problem.features.block(0, self.problem.n_samples)
        y = labels.block(gram, 0, self.problem.n_samples)
        decisions = np.array([gram @ plane.coef + plane.offset for plane, _ in self.generators])
        active = y * decisions <= np.array([rho for _, rho in self.generators])[:, None]
        signed = active * y * self.row_shares
        self.s, self.t = active @ self.row_shares, signed.sum(axis=1)
        self.centred = signed @ gram - np.outer(self.t, self.problem.mean)
        self.coefs = signed - np.outer(self.t, self.row_shares)

    def find(self, labels: Labels, hyperplane: Hyperplane, rho: float) -> tuple[Any, ConstraintStatistics]:
        """One sweep of the kernel matrix."""
        active, row_sum, sums = self.problem.most_violated_rows(labels, hyperplane, rho)
        y = labels.block(self.problem.features.block(0, active.shape[0]), 0, active.shape[0])
        coef = (active * y - sums.signed) * self.row_shares
        return ((hyperplane, rho), row_sum, sums, coef), sums

    def add(self, found: Any) -> None:
        """Add a plane that `find` returned."""
        generator, row_sum, sums, coef = found
        self._append(generator, sums, row_sum - sums.signed * self.problem.mean, coef)
