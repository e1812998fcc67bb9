"""The quadratic program (QP) over cutting planes: a few dozen variables for any number of rows.

Wu & Zhang, eq. (22) and (37) in centred features. G is the Gram matrix of the
planes; s and t are the means of their rows and of their signed rows. The dual is

    adaptive   min  1/2 λ'Gλ         s.t.  s'λ - balance·u >= 1,  1'λ <= C,  |t'λ| <= u,  λ >= 0
    fixed      min  1/2 λ'Gλ - s'λ + balance·u           s.t.  1'λ <= C,  |t'λ| <= u,  λ >= 0

and rho, xi and beta are the multipliers of its rows. `mmcnb.kernels.plane_qp` solves it. The paper's closed
formula for rho divides zero by zero at every ordinary optimum, so it is not used.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmcnb.errors import InputError
from mmcnb.kernels import unchecked as kernels

Threshold = Literal["adaptive", "fixed"]
NO_SOLUTION = "the quadratic program of the planes has no solution; lower balance or raise C."


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
        If the QP is infeasible, or the solver does not reach a relative error of 1e-6.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.qp import solve_planes
    >>> solution = solve_planes(np.array([[4.0]]), np.ones(1), np.zeros(1), C=2.0)
    >>> solution.multipliers.round(6), round(solution.rho, 6)
    (array([1.]), 4.0)
    """
    given = np.ascontiguousarray(gram), s, t, float(C), float(balance), threshold == "adaptive"
    multipliers, rho, xi, beta, solved = kernels.plane_qp(*given)
    if not solved:
        raise PlaneQPError(NO_SOLUTION)
    norm2 = max(0.0, float(multipliers @ gram @ multipliers))
    return PlaneSolution(multipliers, rho, xi, beta, norm2)
