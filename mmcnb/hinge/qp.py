"""The programs over cutting planes: a few dozen variables for any number of rows and features.

With one kernel it is a quadratic program (QP), Wu & Zhang, eq. (22) and (37) in centred
features. G is the Gram matrix of the planes; s and t are the means of their rows and of
their signed rows. The dual is

    adaptive   min  1/2 λ'Gλ         s.t.  s'λ - balance·u >= 1,  1'λ <= C,  |t'λ| <= u,  λ >= 0
    fixed      min  1/2 λ'Gλ - s'λ + balance·u           s.t.  1'λ <= C,  |t'λ| <= u,  λ >= 0

and rho, xi and beta are the multipliers of its rows. `mmcnb.kernels.plane_qp` solves
it. The paper's closed formula for rho divides zero by zero at every ordinary optimum,
so it is not used.

With several kernels it is a second-order cone program (SOCP): Zhao, Kwok and Zhang
learn labels, margin and a combination of kernels together. G_k is the Gram matrix of
the planes under kernel k. The dual is

    fixed      max  s'λ - balance·u - 1/2 |q|     s.t.  q_k >= λ'G_k λ,  1'λ <= C,  |t'λ| <= u,  λ >= 0
    adaptive   min  1/2 |q|                       s.t.  s'λ - balance·u >= 1, and the same

The weights of the kernels are q/|q|. For given weights the problem is the QP of one
kernel, Σ weight_k G_k. Its solver is more accurate than that of the SOCP, so all other
values come from the QP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from mmcnb.errors import InputError
from mmcnb.kernels import unchecked as kernels

Threshold = Literal["adaptive", "fixed"]
TOLERANCES = (
    1e-10,
    1e-8,
    1e-6,
)  # of the SOCP, tried in turn until the solver reaches one
SMALLEST_EIGENVALUE = 1e-15  # of a Gram matrix, as a share of the mean diagonal of all
NO_SOLUTION = (
    "the quadratic program of the planes has no solution; lower balance or raise C."
)


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
    balance: float,
    threshold: Threshold,
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
    balance : float
        Bound l/n of the mean decision value, in units of rho.
    threshold : {"adaptive", "fixed"}
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
    >>> solution = solve_planes(np.array([[4.0]]), np.ones(1), np.zeros(1), 2.0, 0.0, "adaptive")
    >>> solution.multipliers.round(6), round(solution.rho, 6)
    (array([1.]), 4.0)
    """
    given = (
        np.ascontiguousarray(gram),
        s,
        t,
        float(C),
        float(balance),
        threshold == "adaptive",
    )
    multipliers, rho, xi, beta, solved = kernels.plane_qp(*given)
    if not solved:
        raise PlaneQPError(NO_SOLUTION)
    return PlaneSolution(
        multipliers, rho, xi, beta, max(0.0, float(multipliers @ gram @ multipliers))
    )


def solve_kernel_planes(
    grams: Sequence[np.ndarray],
    s: np.ndarray,
    t: np.ndarray,
    C: float,
    balance: float,
    threshold: Threshold,
) -> PlaneSolution:
    """Solve the SOCP of the cutting planes.

    Parameters
    ----------
    grams : sequence of ndarray of shape (planes, planes)
        For each kernel the inner products of the centred cutting planes.
    s, t : ndarray of shape (planes,)
        Mean of each plane's rows, and of its signed rows.
    C : float
        Bound of the multipliers.
    balance : float
        Bound l/n of the mean decision value, in units of rho.
    threshold : {"fixed", "adaptive"}
        Whether rho is 1, as in the paper, or a variable.

    Returns
    -------
    PlaneSolution
        With ``kernel_weights``, the papers' beta: non-negative, of Euclidean norm 1;
        equal where all normal vectors are 0. The normal vector under kernel k is v_k =
        weight_k Σ λ_p P_pk, and ``norm2`` is Σ |v_k|²/weight_k.

    Raises
    ------
    InputError
        If the cutting planes are zero under every kernel, which leaves the weights
        undefined.
    PlaneQPError
        If the SOCP is infeasible, or the solver reaches no tolerance.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, eq. (2.6).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.qp import solve_kernel_planes
    >>> grams = [np.array([[3.0]]), np.array([[4.0]])]
    >>> solution = solve_kernel_planes(grams, np.ones(1), np.zeros(1), 2.0, 0.0, "fixed")
    >>> solution.kernel_weights.round(6), round(solution.norm2, 6)
    (array([0.6, 0.8]), 0.2)
    """
    problem = _cone_problem(grams, s, t, C, balance, threshold)
    multipliers = np.maximum(_solve(*problem)[: s.shape[0]], 0.0)
    q = np.array([max(0.0, float(multipliers @ gram @ multipliers)) for gram in grams])
    weights = (
        q / np.linalg.norm(q)
        if q.max() > 0
        else np.full(len(grams), len(grams) ** -0.5)
    )
    combined = np.tensordot(weights, np.asarray(grams), axes=1)
    return replace(
        solve_planes(combined, s, t, C, balance, threshold), kernel_weights=weights
    )


def _cone_problem(
    grams: Sequence[np.ndarray],
    s: np.ndarray,
    t: np.ndarray,
    C: float,
    balance: float,
    threshold: Threshold,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Any]]:
    """Cost, rows, right sides and cones of the SOCP in λ, u (with a balance), q and |q|, up to scale."""
    import clarabel

    scale = float(np.mean([np.diag(gram) for gram in grams]))
    if not scale > 0:
        raise InputError(
            "the planes are zero under every kernel, so no kernel has a weight; give others."
        )
    planes = s.shape[0]
    kernels = len(grams)
    with_u = balance > 0
    adaptive = threshold == "adaptive"
    first_q = planes + with_u
    size = first_q + kernels + 1
    linear_term = np.zeros(size)
    linear_term[:planes] = s
    linear_term[planes:first_q] = -balance
    cost = np.zeros(size)
    cost[-1] = 0.5

    # λ in units of its size without the bound, so that the solver works on numbers near
    # 1.
    unit = 1.0 if adaptive else min(C, 1 / scale)
    linear = [np.r_[np.ones(planes), np.zeros(size - planes)], *-np.eye(size)[:planes]]
    right = [C / unit, *np.zeros(planes)]
    if with_u:
        linear += [np.r_[sign * t, -1.0, np.zeros(kernels + 1)] for sign in (1.0, -1.0)]
        right += [0.0, 0.0]
    if adaptive:
        linear.append(-linear_term)
        right.append(-1.0)
    else:
        cost -= linear_term / (unit * scale)
    parts = [(np.array(linear), np.array(right), clarabel.NonnegativeConeT(len(right)))]
    for k, gram in enumerate(grams):
        # (q + 1, q - 1, 2 F λ) in the cone is |F λ|² <= q.
        factor = _factor(gram / scale)
        rows = np.zeros((2 + factor.shape[0], size))
        rows[:2, first_q + k] = -1.0
        rows[2:, :planes] = -2 * factor
        sides = np.r_[1.0, -1.0, np.zeros(factor.shape[0])]
        parts.append((rows, sides, clarabel.SecondOrderConeT(sides.shape[0])))
    rows = -np.eye(size)[[size - 1, *range(first_q, size - 1)]]
    parts.append((rows, np.zeros(1 + kernels), clarabel.SecondOrderConeT(1 + kernels)))
    blocks, sides, cones = zip(*parts, strict=True)
    return cost, np.vstack(blocks), np.concatenate(sides), list(cones)


def _factor(gram: np.ndarray) -> np.ndarray:
    """F with F'F the Gram matrix, without its null space."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    positive = values > SMALLEST_EIGENVALUE
    return np.sqrt(values[positive])[:, None] * vectors[:, positive].T


def _solve(
    cost: np.ndarray, rows: np.ndarray, right: np.ndarray, cones: list[Any]
) -> np.ndarray:
    import clarabel

    done = clarabel.SolverStatus.Solved
    nearly = clarabel.SolverStatus.AlmostSolved
    nothing = sparse.csc_matrix((cost.shape[0], cost.shape[0]))
    for tolerance in TOLERANCES:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1  # the same bits on any computer
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        solver = clarabel.DefaultSolver(
            nothing, cost, sparse.csc_matrix(rows), right, cones, settings
        )
        solution = solver.solve()
        # Only the weights of the kernels come from the SOCP, so the loosest tolerance
        # may be missed a little.
        if solution.status == done or (
            solution.status == nearly and tolerance == TOLERANCES[-1]
        ):
            return np.array(solution.x)
    fault = "the second-order cone program of the planes has no solution"
    raise PlaneQPError(f"{fault}; lower balance or raise C.")
