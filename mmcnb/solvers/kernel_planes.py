"""The working set of cutting planes under several kernels, whose combination is learned with the margin.

The features are those of all kernels side by side, each in coordinates of its own. Labels, planes and loops
are those of one kernel; what differs is the programme that weighs the planes, for it weighs the kernels too.
"""

from collections.abc import Sequence

import numpy as np

from mmcnb.solvers.hyperplane import Hyperplane
from mmcnb.solvers.plane_qp import PlaneSolution, Threshold
from mmcnb.solvers.plane_socp import solve_kernel_planes
from mmcnb.solvers.planes import BasisPlanes
from mmcnb.solvers.problem import Problem


class KernelPlanes(BasisPlanes):
    """Planes on a fixed basis for each of several kernels.

    Parameters
    ----------
    problem : Problem
        The rows, in the features of all kernels; its metric is block diagonal.
    columns : sequence of slice
        The features of each kernel.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, Alg. 1.
    """

    def __init__(self, problem: Problem, columns: Sequence[slice]) -> None:
        super().__init__(problem)
        self.columns = tuple(columns)
        self.kernel_weights = np.full(len(self.columns), len(self.columns) ** -0.5)

    @property
    def grams(self) -> list[np.ndarray]:
        """Inner products of the planes under each kernel, of shape (planes, planes)."""
        products = [self.centred[:, one] @ self.coefs[:, one].T for one in self.columns]
        return [(product + product.T) / 2 for product in products]

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Weigh the planes, and with them the kernels."""
        grams = self.grams
        solution, self.kernel_weights = solve_kernel_planes(grams, self.s, self.t, C, balance, threshold)
        return solution

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Hyperplane:
        """v_k = weight_k Σ λ_p P_pk for each kernel, with mean decision value beta."""
        coef = multipliers @ self.coefs
        for weight, one in zip(self.kernel_weights, self.columns, strict=True):
            coef[one] *= weight
        return Hyperplane(coef, beta - float(self.problem.mean @ coef))
