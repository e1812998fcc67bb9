"""The quadratic program (QP) over cutting planes: a few dozen variables for any number of rows.

Wu & Zhang, eq. (22) and (37) in centred features. G is the Gram matrix of the
planes; s and t are the means of their rows and of their signed rows. The dual is

    adaptive   min  1/2 λ'Gλ         s.t.  s'λ - balance·u >= 1,  1'λ <= C,  |t'λ| <= u,  λ >= 0
    fixed      min  1/2 λ'Gλ - s'λ + balance·u           s.t.  1'λ <= C,  |t'λ| <= u,  λ >= 0

and rho, xi and beta are the multipliers of its rows. The paper's closed formula
for rho divides zero by zero at every ordinary optimum, so it is not used.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import piqp

from mmcnb.errors import InputError

Threshold = Literal["adaptive", "fixed"]
NO_SOLUTION = "the quadratic program of the planes has no solution; lower balance or raise C."
TOLERANCES = (1e-10, 1e-8, 1e-6)  # tried in turn, until the solver reaches one


class PlaneQPError(InputError, ArithmeticError):
    """The QP of the cutting planes has no usable solution."""


@dataclass(frozen=True)
class PlaneSolution:
    """Solution of the QP of the cutting planes.

    Parameters
    ----------
    multipliers : ndarray of shape (planes,)
        One non-negative λ per plane; w = Σ λ_k P_k.
    rho : float
        Threshold of the margin; 1 in the fixed form.
    xi : float
        Slack of the cutting planes.
    beta : float
        Mean decision value.
    norm2 : float
        |w|² = λ'Gλ.
    kernel_weights : ndarray of shape (kernels,) or None, default=None
        Weights of several kernels.
    """

    multipliers: np.ndarray
    rho: float
    xi: float
    beta: float
    norm2: float
    kernel_weights: np.ndarray | None = None


def solve_planes(
    gram: np.ndarray,
    s: np.ndarray,
    t: np.ndarray,
    C: float,
    balance: float = 0.0,
    threshold: Threshold = "adaptive",
) -> PlaneSolution:
    """Solve the QP of the cutting planes.

    Parameters
    ----------
    gram : ndarray of shape (planes, planes)
        Inner products of the centred cutting planes.
    s, t : ndarray of shape (planes,)
        Mean of each plane's rows, and of its signed rows.
    C : float
        Bound of the multipliers.
    balance : float, default=0.0
        Bound l/n of the mean decision value, in units of rho.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        Whether rho is a variable (SKMMC) or 1 (SKMMCv2).

    Returns
    -------
    PlaneSolution
        Multipliers, rho, xi, beta and |w|².

    Raises
    ------
    PlaneQPError
        If the QP is infeasible, or the solver reaches no tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.qp import solve_planes
    >>> solution = solve_planes(np.array([[4.0]]), np.ones(1), np.zeros(1), C=2.0)
    >>> solution.multipliers.round(6), round(solution.rho, 6)
    (array([1.]), 4.0)
    """
    planes = s.shape[0]
    scale = float(np.mean(np.diag(gram))) or 1.0  # tolerances are absolute, so G is brought to size 1
    adaptive, with_u = threshold == "adaptive", balance > 0
    size = planes + with_u
    P = np.zeros((size, size), order="F")
    P[:planes, :planes] = gram / scale
    cost = np.zeros(size)
    rows = np.zeros((1 + 2 * with_u + adaptive, size), order="F")
    lower, upper = np.full(rows.shape[0], -np.inf), np.zeros(rows.shape[0])
    rows[0, :planes], upper[0] = 1.0, C
    if with_u:
        rows[1, :planes], rows[2, :planes], rows[1:3, planes] = t, -t, -1.0
    if adaptive:
        rows[-1, :planes], rows[-1, planes:] = s, -balance
        lower[-1], upper[-1] = 1.0, np.inf
    else:
        cost[:planes] = -s / scale
        cost[planes:] = balance / scale
    result = _solve(P, cost, rows, lower, upper)
    multipliers = np.maximum(result.x[:planes], 0.0)
    xi = scale * result.z_u[0]
    beta = scale * (result.z_u[1] - result.z_u[2]) if with_u else 0.0
    rho = scale * result.z_l[-1] if adaptive else 1.0
    norm2 = max(0.0, float(multipliers @ gram @ multipliers))
    return PlaneSolution(multipliers, float(rho), float(xi), float(beta), norm2)


def _solve(
    P: np.ndarray, cost: np.ndarray, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> "piqp.Result":
    for tolerance in TOLERANCES:
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = tolerance
        solver.settings.check_duality_gap = True
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
        solver.setup(P, cost, None, None, rows, lower, upper, np.zeros(cost.shape[0]), None)
        if solver.solve() == piqp.PIQP_SOLVED:
            return solver.result
    raise PlaneQPError(NO_SOLUTION)
