"""The working set of cutting planes under several kernels, whose combination is learned with the margin.

The features are those of all kernels side by side, each in coordinates of its own. Labels, planes and loops
are those of one kernel; what differs is the programme that weighs the planes, for it weighs the kernels too.
In centred features the mean score of each cluster is 0: the pairwise balance of k clusters holds by itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.solvers.crammer_singer import CrammerSingerPlanes
from mmcnb.solvers.plane_qp import PlaneSolution, Threshold
from mmcnb.solvers.plane_socp import solve_kernel_planes
from mmcnb.solvers.planes import BasisPlanes, Planes
from mmcnb.solvers.problem import Problem


class SeveralKernels(Planes):
    """What planes of two and of more clusters share under several kernels.

    Parameters
    ----------
    problem : Problem
        The rows, in the features of all kernels; its metric is block diagonal.
    columns : sequence of slice
        The features of each kernel.

    Attributes
    ----------
    kernel_weights : ndarray of shape (kernels,)
        Of the last programme that was solved, non-negative, of Euclidean norm 1; equal before.
    """

    def __init__(self, problem: Problem, columns: Sequence[slice]) -> None:
        super().__init__(problem)
        self.columns = tuple(columns)
        self.kernel_weights = np.full(len(self.columns), len(self.columns) ** -0.5)

    @property
    def grams(self) -> list[np.ndarray]:
        """Inner products of the planes under each kernel, of shape (planes, planes)."""
        count, features = self.s.shape[0], self.problem.mean.shape[0]
        centred, coefs = (one.reshape(count, -1, features) for one in (self.centred, self.coefs))
        pairs = [[side[..., one].reshape(count, -1) for side in (centred, coefs)] for one in self.columns]
        products = [one @ other.T for one, other in pairs]
        return [(product + product.T) / 2 for product in products]

    @property
    def evaluations(self) -> int:
        """Those of all kernels."""
        return len(self.columns) * super().evaluations

    @property
    def facts(self) -> dict[str, float]:
        """The weights of the kernels."""
        return {f"weight_{k}": float(weight) for k, weight in enumerate(self.kernel_weights)}

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Weigh the planes, and with them the kernels; planes that are nothing leave the kernels equal."""
        grams = self.grams
        if not any(np.diag(gram).max() > 0 for gram in grams):
            return replace(super().solve(C, balance, threshold), kernel_weights=self.kernel_weights)
        solution = solve_kernel_planes(grams, self.s, self.t, C, balance, threshold)
        assert solution.kernel_weights is not None
        self.kernel_weights = solution.kernel_weights
        return solution

    def combine(self, multipliers: np.ndarray) -> np.ndarray:
        """v_k = weight_k Σ λ_p P_pk for each kernel."""
        coef = super().combine(multipliers).reshape(-1, self.problem.mean.shape[0])
        for weight, one in zip(self.kernel_weights, self.columns, strict=True):
            coef[:, one] *= weight
        return coef.ravel()

    def over(self, problem: Any) -> "SeveralKernels":
        """The same generators on other rows."""
        planes = type(self)(problem, self.columns)
        planes.generators = list(self.generators)
        return planes


class KernelPlanes(SeveralKernels, BasisPlanes):
    """Planes of two clusters on a fixed basis for each of several kernels.

    Parameters
    ----------
    problem, columns
        As in `SeveralKernels`.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, Alg. 1.
    """


class KernelClustersPlanes(SeveralKernels, CrammerSingerPlanes):
    """Planes of k clusters on a fixed basis for each of several kernels.

    Parameters
    ----------
    problem : ClustersProblem
        The rows.
    columns
        As in `SeveralKernels`.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, sec. 4.
    """
