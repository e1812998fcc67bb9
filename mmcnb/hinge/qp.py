"""The optimisation problems over cutting planes: a QP, or an SOCP for several kernels.

The number of variables depends on the number of planes and not on the number of rows.

With one kernel, the problem is a quadratic program (QP): Wu & Zhang, eq. (22) and (37),
in centred features. G is the Gram matrix of the planes. For each plane, s is the share
of all rows that are in the plane, and t is the sum of the labels of these rows, divided
by the number of all rows. The dual is

    adaptive   min  1/2 λ'Gλ                      s.t.  s'λ - balance·u >= 1
    fixed      min  1/2 λ'Gλ - s'λ + balance·u
    both                                          s.t.  1'λ <= C, |t'λ| <= u, λ >= 0

and rho, xi and beta are the multipliers of its constraints. `mmcnb.kernels.plane_qp`
solves this QP. The closed formula for rho in the paper is not used, because it divides
zero by zero at every ordinary optimum.

With several kernels, the problem is a second-order cone program (SOCP), because labels,
margin and the weights of the kernels are learned together (Zhao, Kwok and Zhang). G_k
is the Gram matrix of the planes under kernel k. The dual is

    fixed      max  s'λ - balance·u - 1/2 |q|
    adaptive   min  1/2 |q|                       s.t.  s'λ - balance·u >= 1
    both       s.t.  q_k >= λ'G_k λ, 1'λ <= C, |t'λ| <= u, λ >= 0

The weights of the kernels are q/|q|. For given weights, the problem is the QP of the
single kernel Σ weight_k G_k. The QP solver is more accurate than the SOCP solver, so
all values except the weights come from the QP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from mmcnb.errors import InputError
from mmcnb.kernels import unchecked as kernels

Threshold = Literal["adaptive", "fixed"]
# Tolerances of the SOCP solver, tried in this order until the solver reaches one.
TOLERANCES = (1e-10, 1e-8, 1e-6)
# Eigenvalues of a Gram matrix up to this value, relative to the mean diagonal, are
# treated as 0.
SMALLEST_EIGENVALUE = 1e-15
NO_SOLUTION = (
    "the quadratic program of the planes has no solution; lower balance or raise C."
)


class PlaneQPError(InputError, ArithmeticError):
    """Error raised if the QP of the cutting planes has no usable solution."""


@dataclass(frozen=True)
class PlaneSolution:
    """Solution of the QP of the cutting planes.

    Parameters
    ----------
    multipliers : ndarray of shape (planes,)
        One non-negative λ per plane; w = Σ λ_k P_k.
    rho : float
        Threshold of the margin; 1 if the threshold is fixed.
    xi : float
        Slack of the cutting planes.
    beta : float
        Mean decision value.
    norm2 : float
        |w|² = λ'Gλ.
    kernel_weights : ndarray of shape (kernels,) or None, default=None
        Weights of the kernels; None if there is only one kernel.
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
        For each plane, the share of all rows that are in the plane, and the sum of
        their labels divided by the number of all rows.
    C : float
        Upper bound on the sum of the multipliers.
    balance : float
        Bound l/n on the absolute value of the mean decision value, in units of rho.
    threshold : {"adaptive", "fixed"}
        Whether rho is a variable (SKMMC) or fixed at 1 (SKMMCv2).

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
    >>> gram, s, t = np.array([[4.0]]), np.ones(1), np.zeros(1)
    >>> solution = solve_planes(gram, s, t, 2.0, 0.0, "adaptive")
    >>> solution.multipliers.round(6), round(solution.rho, 6)
    (array([1.]), 4.0)
    """
    multipliers, rho, xi, beta, solved = kernels.plane_qp(
        np.ascontiguousarray(gram),
        s,
        t,
        float(C),
        float(balance),
        threshold == "adaptive",
    )
    if not solved:
        raise PlaneQPError(NO_SOLUTION)
    return PlaneSolution(multipliers, rho, xi, beta, _norm2(multipliers, gram))


def _norm2(multipliers: np.ndarray, gram: np.ndarray) -> float:
    return max(0.0, float(multipliers @ gram @ multipliers))


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
        Inner products of the centred cutting planes, for each kernel.
    s, t : ndarray of shape (planes,)
        For each plane, the share of all rows that are in the plane, and the sum of
        their labels divided by the number of all rows.
    C : float
        Upper bound on the sum of the multipliers.
    balance : float
        Bound l/n on the absolute value of the mean decision value, in units of rho.
    threshold : {"fixed", "adaptive"}
        Whether rho is fixed at 1, as in the paper, or a variable.

    Returns
    -------
    PlaneSolution
        The solution, whose ``kernel_weights`` are the paper's beta: non-negative, with
        Euclidean norm 1, and all equal if all normal vectors are 0. The normal vector
        under kernel k is v_k = weight_k Σ λ_p P_pk, and ``norm2`` is Σ |v_k|²/weight_k.

    Raises
    ------
    InputError
        If all cutting planes are 0 under every kernel, so that the kernel weights are
        undefined.
    PlaneQPError
        If the SOCP is infeasible, or the solver does not reach the loosest tolerance.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, eq. (2.6).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.qp import solve_kernel_planes
    >>> grams = [np.array([[3.0]]), np.array([[4.0]])]
    >>> s, t = np.ones(1), np.zeros(1)
    >>> solution = solve_kernel_planes(grams, s, t, 2.0, 0.0, "fixed")
    >>> solution.kernel_weights.round(6), round(solution.norm2, 6)
    (array([0.6, 0.8]), 0.2)
    """
    problem = _cone_problem(grams, s, t, C, balance, threshold)
    variables = _solve(problem)
    n_planes = s.shape[0]
    multipliers = np.maximum(variables[:n_planes], 0.0)
    q = np.array([_norm2(multipliers, gram) for gram in grams])
    n_kernels = len(grams)
    if q.max() > 0:
        weights = q / np.linalg.norm(q)
    else:
        weights = np.full(n_kernels, n_kernels**-0.5)
    combined = np.tensordot(weights, np.asarray(grams), axes=1)
    solution = solve_planes(combined, s, t, C, balance, threshold)
    return replace(solution, kernel_weights=weights)


class _ConeProblem(NamedTuple):
    """Cone program: minimise cost'x such that right - rows x is in the cones."""

    cost: np.ndarray
    rows: np.ndarray
    right: np.ndarray
    cones: list[object]


def _cone_problem(
    grams: Sequence[np.ndarray],
    s: np.ndarray,
    t: np.ndarray,
    C: float,
    balance: float,
    threshold: Threshold,
) -> _ConeProblem:
    """Set up the scaled SOCP in x = (λ, u, q, |q|); omit u if ``balance`` is 0."""
    import clarabel

    scale = float(np.mean([np.diag(gram) for gram in grams]))
    if not scale > 0:
        raise InputError(
            "the planes are zero under every kernel, so the kernel weights are "
            "undefined; give other kernels."
        )
    planes = s.shape[0]
    first_q = planes + (balance > 0)
    size = first_q + len(grams) + 1
    identity = np.eye(size)
    cost = identity[-1] / 2

    # s'λ - balance·u.
    linear_term = np.zeros(size)
    linear_term[:planes] = s
    linear_term[planes:first_q] = -balance

    # Divide λ by its expected size, so that the solver works with numbers near 1.
    unit = 1.0 if threshold == "adaptive" else min(C, 1 / scale)
    # 1'λ <= C and λ >= 0.
    rows = [identity[:planes].sum(axis=0), *-identity[:planes]]
    right = [C / unit, *np.zeros(planes)]
    if balance > 0:  # |t'λ| <= u
        signed = t @ identity[:planes]
        rows += [signed - identity[planes], -signed - identity[planes]]
        right += [0.0, 0.0]
    if threshold == "adaptive":  # s'λ - balance·u >= 1
        rows.append(-linear_term)
        right.append(-1.0)
    else:
        cost -= linear_term / (unit * scale)
    blocks = [np.array(rows)]
    sides = [np.array(right)]
    cones = [clarabel.NonnegativeConeT(len(right))]

    # (q + 1, q - 1, 2 F λ) is in the cone if and only if |F λ|² <= q.
    for k, gram in enumerate(grams):
        factor = _factor(gram / scale)
        block = np.zeros((2 + factor.shape[0], size))
        block[:2, first_q + k] = -1.0
        block[2:, :planes] = -2 * factor
        blocks.append(block)
        sides.append(np.r_[1.0, -1.0, np.zeros(factor.shape[0])])
        cones.append(clarabel.SecondOrderConeT(block.shape[0]))

    # |q| is the last variable.
    blocks.append(-identity[[size - 1, *range(first_q, size - 1)]])
    sides.append(np.zeros(1 + len(grams)))
    cones.append(clarabel.SecondOrderConeT(1 + len(grams)))
    return _ConeProblem(cost, np.vstack(blocks), np.concatenate(sides), cones)


def _factor(gram: np.ndarray) -> np.ndarray:
    """Return F such that F'F is the Gram matrix, omitting its null space."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    positive = values > SMALLEST_EIGENVALUE
    return np.sqrt(values[positive])[:, None] * vectors[:, positive].T


def _solve(problem: _ConeProblem) -> np.ndarray:
    import clarabel

    done = clarabel.SolverStatus.Solved
    nearly = clarabel.SolverStatus.AlmostSolved
    size = problem.cost.shape[0]
    no_quadratic_term = sparse.csc_matrix((size, size))
    rows = sparse.csc_matrix(problem.rows)
    for tolerance in TOLERANCES:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1  # so that results do not depend on the number of cores
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        solver = clarabel.DefaultSolver(
            no_quadratic_term,
            problem.cost,
            rows,
            problem.right,
            problem.cones,
            settings,
        )
        solution = solver.solve()
        # Only the kernel weights come from the SOCP, so a solution that almost reaches
        # the loosest tolerance is good enough.
        if solution.status == done or (
            solution.status == nearly and tolerance == TOLERANCES[-1]
        ):
            return np.array(solution.x)
    raise PlaneQPError(
        "the second-order cone program of the planes has no solution; "
        "lower balance or raise C."
    )
