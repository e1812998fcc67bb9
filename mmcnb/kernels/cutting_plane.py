"""Compiled cutting-plane method: sums over a block of rows, the plane QP, and the loop.

A row of ``F`` contains the features of one row of the data: its kernel values against
the basis vectors, or the row itself if the kernel is linear. A hyperplane is ``f(x) =
F(x) . coef + offset``. The most violated constraint is defined in Wu & Zhang, eq. (12),
for fixed labels ``y``. Routines that sum over a block read the block once, add in
float64, and return small arrays, which the caller adds in block order. The variants
with the suffix ``_csr`` take CSR rows. Arrays are C-ordered.

`sample_subproblem` is the loop over rows in memory, with an adaptive threshold and a
balance of 0. `mmcnb.hinge.cutting_plane` contains the loop over streamed rows (Alg.
1-3, lines 5-14). Both loops solve the same quadratic program (QP). They share `stalls`,
which decides when to stop, and `count_idle`, which decides which planes to drop.

The sums, the QP and the loop share a file, because numba's cache only notices changes
in the file of a routine, not in the files of the routines that it calls. The routines
in `kernels.planes` do not call routines of this file.

Functions that are called once are inlined before LLVM sees them. Otherwise, LLVM would
optimise their code again for each caller.
"""

from typing import NamedTuple

import numpy as np

from mmcnb._numba import VECTORISED, jitable, njit
from mmcnb.kernels._checks import (
    FLOATS,
    Array,
    Flag,
    FromZero,
    Number,
    Rows,
    Signs,
    takes,
)

# The interior-point method usually needs about ten steps, and stops after MOST_STEPS.
# From step CAREFUL on, it prefers robustness to speed.
MOST_STEPS = 120
CAREFUL = 25
# The method stops at the relative error ACCURATE. If it does not reach this error, its
# best iterate is used if its relative error is at most USABLE.
ACCURATE = 1e-10
USABLE = 1e-6
TO_BOUNDARY = 0.995  # fraction of the way to the nearest bound that a step takes
RIDGE = 1e-13  # added to the diagonal (of mean 1) in Newton steps, not in residuals
ACTIVE = 1e-9  # fraction of C above which a multiplier counts as active
# A plane is dropped if its multiplier is not active in this number of successive QPs.
# The number was chosen by `python -m benchmarks engine`.
IDLE_SOLVES = 3
# The loop stops if the last STALL_PLANES planes raised the lower bound by at most the
# fraction STALL_SHARE of its value.
STALL_PLANES = 30
STALL_SHARE = 1e-6
# Status codes of a subproblem.
RUNNING = -1
CONVERGED = 0
STALLED = 1
DEGENERATE = 2
UNSOLVED = 3

FEATURES = Rows("(rows, p)", FLOATS)
NORMAL = Array("(p,)", "float64")
PLANES = Array("(planes,)", "float64")  # one number per plane


class SampleRows(NamedTuple):
    """Rows in memory, their labels, and the centre of their features.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        Features of the rows: their kernel values against the basis.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels of the rows.
    shares : ndarray of shape (rows,), float64, at least 0
        Sample weights, with sum 1.
    mean : ndarray of shape (p,), float64
        Weighted mean of F.
    inverse : ndarray of shape (p, p), float64
        Inverse of the kernel matrix of the basis.
    """

    F: np.ndarray
    y: np.ndarray
    shares: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray


class SamplePlanes(NamedTuple):
    """Cutting planes of rows in memory.

    Parameters
    ----------
    planes : ndarray of shape (planes, 3 p + 3), float64
        In each row: normal vector (p numbers), offset and rho of the hyperplane that
        generated the plane; s; the centred inner products of the plane with the basis
        (p); and its coefficients on the basis (p). The first plane contains all rows:
        its hyperplane is 0, and its rho is infinite.
    members : ndarray of shape (planes, rows), int8
        1 if the row is in the plane, and 0 otherwise. All values are 0 before the
        planes are built.
    signs : ndarray of shape (rows,), int8
        Labels for which the planes were built. All values are 0 before the planes are
        built.
    """

    planes: np.ndarray
    members: np.ndarray
    signs: np.ndarray


class Limits(NamedTuple):
    """Parameters and limits of a subproblem.

    Parameters
    ----------
    C : float, at least 0
        Weight of the slack variable.
    eta : float, at least 0
        Tolerance. The loop ends when no constraint is violated by more than xi + eta
        rho.
    norm2 : float, at least 0
        If |w|² is below this value, the labels are treated as not separated
        (degenerate).
    most_planes : int, at least 1
        Maximum number of cutting planes to add.
    """

    C: float
    eta: float
    norm2: float
    most_planes: int


class Sweep(NamedTuple):
    """Results of a QP and of the subsequent sweep over the rows, all as floats.

    Parameters
    ----------
    planes : float
        Number of planes in the QP.
    rho, xi, norm2 : float
        Threshold of the margin, slack variable, and |w|².
    lower : float
        Lower bound of the objective.
    active, signed, violation : float
        Sum of the weights, and of the weights times labels, over the rows in the most
        violated constraint, and the violation of this constraint.
    above, changed : float
        Share of the rows with f >= 0, and share of the rows whose label f would change.
    hinge : float
        Mean of max(0, rho - |f|), the hinge loss of unlabelled rows.
    """

    planes: float
    rho: float
    xi: float
    norm2: float
    lower: float
    active: float
    signed: float
    violation: float
    above: float
    changed: float
    hinge: float


LOWER = Sweep._fields.index("lower")


class SampleSolution(NamedTuple):
    """Result of `sample_subproblem`.

    Parameters
    ----------
    state : SamplePlanes
        The final planes, and the labels for which they were built.
    multipliers : ndarray of shape (solved,), float64
        Multipliers of the planes in the last QP that was solved.
    hyperplane : ndarray of shape (p + 1,), float64
        Normal vector and offset of the hyperplane with these multipliers.
    history : ndarray of shape (sweeps, 11), float64
        One row per sweep, with the values of a `Sweep`.
    status : int
        Reason why the loop ended: it converged (0), it stalled (1), the solution is
        degenerate (2), or the first QP could not be solved (3).
    """

    state: SamplePlanes
    multipliers: np.ndarray
    hyperplane: np.ndarray
    history: np.ndarray
    status: int


# -- rows of a block -------------------------------------------------------------------


@njit(fastmath=VECTORISED)
def _dot(row, coef):
    total = 0.0
    for j in range(row.shape[0]):  # coef may be longer than the row
        total += row[j] * coef[j]
    return total


@njit(fastmath=VECTORISED)
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


# Use conditional expressions instead of branches. Half of the branches would be
# mispredicted, which would cost as much as computing the decision value of the row.
@njit(fastmath=VECTORISED)
def _count_rows(f, y, weights, rho):
    """Return the mask and the seven sums of `most_violated_constraint`."""
    active = np.empty(f.shape[0], np.int8)
    inside = inside_y = violation = above = changed = hinge = weight = 0.0
    for i in range(f.shape[0]):
        margin = y[i] * f[i]
        share = weights[i]
        violated = margin <= rho
        active[i] = violated
        inside += share if violated else 0.0
        inside_y += share * y[i] if violated else 0.0
        violation += share * (rho - margin) if violated else 0.0
        above += share if f[i] >= 0.0 else 0.0
        changed += share if (f[i] >= 0.0) != (y[i] > 0) else 0.0
        hinge += max(0.0, share * (rho - abs(f[i])))
        weight += share
    sums = np.empty(7)
    sums[0] = inside
    sums[1] = inside_y
    sums[2] = violation
    sums[3] = above
    sums[4] = changed
    sums[5] = hinge
    sums[6] = weight
    return active, sums


@njit()
def _rows_inside(active):
    """Return the indices of the rows in the plane.

    This loop replaces np.flatnonzero, which takes numba a second to compile.
    """
    rows = np.empty(active.shape[0], np.int64)
    count = 0
    for i in range(active.shape[0]):
        if active[i]:
            rows[count] = i
            count += 1
    return rows[:count]


@njit(fastmath=VECTORISED)
def _weighted_sum(F, rows, scales):
    """Sum scaled rows of F, four at a time, so that the total is loaded less often."""
    total = np.zeros(F.shape[1], np.float64)
    whole = rows.shape[0] // 4 * 4
    for r in range(0, whole, 4):
        i0 = rows[r]
        i1 = rows[r + 1]
        i2 = rows[r + 2]
        i3 = rows[r + 3]
        c0 = scales[i0]
        c1 = scales[i1]
        c2 = scales[i2]
        c3 = scales[i3]
        for j in range(F.shape[1]):
            total[j] += F[i0, j] * c0 + F[i1, j] * c1 + F[i2, j] * c2 + F[i3, j] * c3
    for r in range(whole, rows.shape[0]):
        for j in range(F.shape[1]):
            total[j] += F[rows[r], j] * scales[rows[r]]
    return total


@njit()
@takes(F=FEATURES, coef=NORMAL, offset=Number())
def decision_values(F, coef, offset):
    """Compute the decision values w'φ(x) + b of a block of rows with features F.

    These values determine the most violated constraint, Wu & Zhang, eq. (12).

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Offset of the hyperplane.

    Returns
    -------
    ndarray of shape (rows,), float64
        ``F @ coef + offset``.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import decision_values
    >>> decision_values(np.array([[1.0, 2.0]]), np.array([3.0, -1.0]), 0.5)
    array([1.5])
    """
    f = np.empty(F.shape[0], np.float64)
    for i in range(F.shape[0]):
        f[i] = _dot(F[i], coef) + offset
    return f


@njit()
def decision_values_csr(data, indices, indptr, coef, offset):
    """Compute the decision values of CSR rows, like `decision_values`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Stored values of the rows, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Column index of each value, in any order within a row.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Start of each row in ``data``, followed by the end of the last row.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Offset of the hyperplane.

    Returns
    -------
    ndarray of shape (rows,), float64
        One decision value per row.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import decision_values_csr
    >>> rows = np.array([2.0]), np.array([1]), np.array([0, 1, 1])
    >>> decision_values_csr(*rows, np.array([3.0, -1.0]), 0.5)
    array([-1.5,  0.5])
    """
    f = np.empty(indptr.shape[0] - 1, np.float64)
    for i in range(f.shape[0]):
        total = 0.0
        for position in range(indptr[i], indptr[i + 1]):
            total += data[position] * coef[indices[position]]
        f[i] = total + offset
    return f


@njit()
@takes(
    F=FEATURES,
    y=Signs("(rows,)", "int8"),
    weights=FromZero("(rows,)", "float64"),
    coef=NORMAL,
    offset=Number(),
    rho=Number(finite=False),
)
def most_violated_constraint(F, y, weights, coef, offset, rho):
    """Find the rows of a block in the most violated constraint, and sum over them.

    These rows form a cutting plane. A row is in the plane if ``y f <= rho`` (Wu &
    Zhang, eq. (12)).

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels of the rows.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Offset of the hyperplane.
    rho : float
        Threshold of the margin, which may be infinite.

    Returns
    -------
    active : ndarray of shape (rows,), int8
        1 if the row is in the plane, and 0 otherwise.
    row_sum : ndarray of shape (p,), float64
        Weighted sum of ``y F`` over the rows in the plane.
    sums : ndarray of shape (7,), float64
        Sums over the rows in the plane: weight, weight times y, and weighted violation
        ``rho - y f``. Sums over all rows: weight of the rows with f >= 0, weight of the
        rows whose label f would change, weighted hinge loss ``max(0, rho - |f|)``, and
        weight.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import most_violated_constraint
    >>> F, y = np.array([[1.0], [-3.0]]), np.array([1, -1], np.int8)
    >>> active, row_sum, sums = most_violated_constraint(
    ...     F, y, np.ones(2), np.ones(1), 0.0, 2.0
    ... )
    >>> active, row_sum
    (array([1, 0], dtype=int8), array([1.]))
    """
    active, sums = _count_rows(decision_values(F, coef, offset), y, weights, rho)
    scales = np.empty(F.shape[0])
    for i in range(F.shape[0]):
        scales[i] = weights[i] * y[i]
    return active, _weighted_sum(F, _rows_inside(active), scales), sums


@njit()
def most_violated_constraint_csr(data, indices, indptr, y, weights, coef, offset, rho):
    """Find the most violated constraint of CSR rows, like `most_violated_constraint`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Stored values of the rows, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Column index of each value, in any order within a row.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Start of each row in ``data``, followed by the end of the last row.
    y : ndarray of shape (rows,), int8, -1 or +1
    weights : ndarray of shape (rows,), float64, at least 0
    coef : ndarray of shape (p,), float64
    offset : float
    rho : float
        As in `most_violated_constraint`.

    Returns
    -------
    active, row_sum, sums : ndarray
        As in `most_violated_constraint`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import most_violated_constraint_csr
    >>> rows = np.array([1.0, -3.0]), np.array([0, 0]), np.array([0, 1, 2])
    >>> y = np.array([1, -1], np.int8)
    >>> most_violated_constraint_csr(*rows, y, np.ones(2), np.ones(1), 0.0, 2.0)[0]
    array([1, 0], dtype=int8)
    """
    f = decision_values_csr(data, indices, indptr, coef, offset)
    active, sums = _count_rows(f, y, weights, rho)
    row_sum = np.zeros(coef.shape[0], np.float64)
    for i in _rows_inside(active):
        scale = weights[i] * y[i]
        for position in range(indptr[i], indptr[i + 1]):
            column = indices[position]
            row_sum[column] += scale * data[position]
    return active, row_sum, sums


# -- the quadratic program -------------------------------------------------------------
#
# minimise    x'Px/2 + c'x    with    Ax + s = h,  x >= 0,  s >= 0
#
# The multipliers are lam for the rows of A, and mu for x >= 0. At an optimum
#
#     Px + c + A'lam - mu = 0       Ax + s - h = 0       x mu = 0       s lam = 0
#
# in each coordinate, and all values are at least 0. The method is described in S.
# Mehrotra, On the implementation of a primal-dual interior point method, SIAM J.
# Optimization 2 (1992), and in J. Nocedal and S. Wright, Numerical Optimization,
# Algorithm 16.4. The code uses plain loops, because an array expression takes up to a
# second to compile.


class _Iterate(NamedTuple):
    """Views of one array, whose halves (x, s) and (mu, lam) are complementary."""

    values: np.ndarray
    x: np.ndarray
    s: np.ndarray
    mu: np.ndarray
    lam: np.ndarray


@njit(inline="always")
def _iterate(value, n, q):
    m = n + q
    values = np.full(2 * m, value)
    primal = values[:m]
    dual = values[m:]
    return _Iterate(values, primal[:n], primal[n:], dual[:n], dual[n:])


@njit()
def _copy(source, target):
    for j in range(source.shape[0]):
        target[j] = source[j]


@njit()
def _factor(M):
    """Overwrite the lower triangle of M with its Cholesky factor."""
    for i in range(M.shape[0]):
        for j in range(i):
            M[i, j] = (M[i, j] - _dot(M[i, :j], M[j, :j])) / M[j, j]
        M[i, i] = np.sqrt(max(M[i, i] - _dot(M[i, :i], M[i, :i]), RIDGE))


@njit()
def _solve(L, b):
    """Overwrite b with the solution x of L L'x = b."""
    for i in range(b.shape[0]):
        b[i] = (b[i] - _dot(L[i, :i], b)) / L[i, i]
    for i in range(b.shape[0] - 1, -1, -1):
        b[i] /= L[i, i]
        _add_scaled(b[:i], L[i, :i], -b[i])


@njit(inline="always")
def _factor_systems(P, A, now, L, V, S):
    """Write the Cholesky factors L and S of the two systems of a Newton step.

    L L' = P + diag(mu/x) and S S' = A inv(L L') A' + diag(s/lam). V is the transpose of
    inv(L L') A'.
    """
    q, n = A.shape
    for j in range(n):
        _copy(P[j], L[j])
        L[j, j] += now.mu[j] / now.x[j] + RIDGE
    _factor(L)
    for i in range(q):
        _copy(A[i], V[i])
        _solve(L, V[i])
        for k in range(q):
            S[i, k] = _dot(A[k], V[i])
        S[i, i] += now.s[i] / now.lam[i]
    _factor(S)


@njit(inline="always")
def _newton(L, S, V, A, now, dual, primal, products, step):
    """Write a Newton step, using the factors from `_factor_systems`.

    The step solves P dx + A'dlam - dmu = -dual and A dx + ds = -primal, with
    mu dx + x dmu and lam ds + s dlam both equal to -products.
    """
    q, n = A.shape
    _, x, s, mu, lam = now
    _, dx, ds, dmu, dlam = step
    x_mu = products[:n]
    s_lam = products[n:]
    for j in range(n):
        dx[j] = -dual[j] - x_mu[j] / x[j]
    _solve(L, dx)
    for i in range(q):
        product = _dot(A[i], dx)
        dlam[i] = product + primal[i] - s_lam[i] / lam[i]
    _solve(S, dlam)
    for i in range(q):
        _add_scaled(dx, V[i], -dlam[i])
        lam_ds = -(s_lam[i] + s[i] * dlam[i])
        ds[i] = lam_ds / lam[i]
    for j in range(n):
        x_dmu = -(x_mu[j] + mu[j] * dx[j])
        dmu[j] = x_dmu / x[j]


@njit(inline="always")
def _longest(now, step):
    """Return the largest multiple of a step that keeps all values non-negative."""
    longest = np.inf
    for j in range(now.shape[0]):
        if step[j] < 0.0:
            longest = min(longest, -now[j] / step[j])
    return longest


@njit()
def _gap(now, step, length):
    """Return the duality gap x'mu + s'lam after a step of a given length."""
    gap = 0.0
    m = now.shape[0] // 2
    for j in range(m):
        primal = now[j] + length * step[j]
        dual = now[m + j] + length * step[m + j]
        gap += primal * dual
    return gap


@njit(inline="always")
def _residuals(P, c, A, h, now, dual, primal):
    """Write the residuals; return the largest relative residual or duality gap."""
    q, n = A.shape
    values, x, s, mu, lam = now
    value = 0.0
    largest = 0.0
    for j in range(n):
        product = _dot(P[j], x)
        value += x[j] * product / 2 + x[j] * c[j]
        largest = max(largest, abs(product), abs(c[j]))
        dual[j] = product + c[j] - mu[j]
    infeasible = 0.0
    for i in range(q):
        _add_scaled(dual, A[i], lam[i])
        primal[i] = _dot(A[i], x) + s[i] - h[i]
        infeasible = max(infeasible, abs(primal[i]))
    wrong = 0.0
    for j in range(n):
        wrong = max(wrong, abs(dual[j]))
    return max(
        wrong / (1.0 + largest),
        infeasible / (1.0 + h[0]),
        _gap(values, values, 0.0) / (1.0 + abs(value)),
    )


@njit(inline="always")
def _interior_point(P, c, A, h):
    """Solve the QP; return the most accurate iterate and its relative error."""
    q, n = A.shape
    m = n + q
    now = _iterate(1.0, n, q)
    step = _iterate(0.0, n, q)
    at = now.values
    change = step.values
    best = _iterate(1.0, n, q)
    # Residuals Px + c + A'lam - mu and Ax + s - h.
    dual = np.empty(n)
    primal = np.empty(q)
    products = np.empty(m)
    L = np.empty((n, n))
    V = np.empty((q, n))
    S = np.empty((q, q))
    least = np.inf
    for number in range(MOST_STEPS):
        error = _residuals(P, c, A, h, now, dual, primal)
        if error < least:
            least = error
            _copy(at, best.values)
        if not ACCURATE < error < np.inf:
            break
        _factor_systems(P, A, now, L, V, S)
        gap = _gap(at, change, 0.0)
        aim = 0.0
        length = 0.0
        # Compute the predictor and then the corrector. The correction is scaled by the
        # squared length of the predictor: if the predictor is shortened, a correction
        # for its full length leads to cycles.
        for correcting in range(2):
            for j in range(m):
                products[j] = at[j] * at[m + j] + correcting * (
                    length**2 * change[j] * change[m + j] - aim
                )
            _newton(L, S, V, A, now, dual, primal, products, step)
            part = TO_BOUNDARY if correcting else 1.0
            length = min(1.0, _longest(at, change) * part)
            aim = gap / m * (_gap(at, change, length) / gap) ** 3
            # Careful steps move towards the central path, without a correction.
            if number >= CAREFUL:
                length = length * correcting
                aim = gap / m / 2
        _add_scaled(at, change, length)
    return best, least


@njit()
@takes(
    gram=Array("(planes, planes)", "float64"),
    s=PLANES,
    t=PLANES,
    C=Number(least=0),
    balance=Number(least=0),
    adaptive=Flag(),
)
def plane_qp(gram, s, t, C, balance, adaptive):
    """Solve the quadratic program over cutting planes.

    The program is the dual of Wu & Zhang's eq. (11). If ``adaptive``, it is
    min 1/2 λ'Gλ with s'λ - balance u >= 1, otherwise min 1/2 λ'Gλ - s'λ + balance u.
    Both have the constraints 1'λ <= C, abs(t'λ) <= u and λ >= 0. It is solved by an
    interior-point method.

    Parameters
    ----------
    gram : ndarray of shape (planes, planes), float64
        Inner products of the centred planes.
    s, t : ndarray of shape (planes,), float64
        Sum of the weights, and of the weights times labels, over the rows of each
        plane.
    C : float, at least 0
        Upper bound of the sum of the multipliers.
    balance : float, at least 0
        Upper bound of the absolute mean decision value, in units of rho. With 0, the
        mean decision value is 0.
    adaptive : bool
        Whether rho is a variable; otherwise it is 1.

    Returns
    -------
    multipliers : ndarray of shape (planes,), float64
        Multiplier λ of each plane, at least 0.
    rho, xi, beta : float
        Threshold of the margin, slack variable, and mean decision value.
    solved : bool
        Whether the relative error is at most 1e-6. Usually, it is at most 1e-10.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import plane_qp
    >>> gram, s, t = np.array([[4.0]]), np.ones(1), np.zeros(1)
    >>> multipliers, rho, *_ = plane_qp(gram, s, t, 2.0, 0.0, True)
    >>> multipliers.round(6), round(rho, 6)
    (array([1.]), 4.0)
    """
    n = s.shape[0]
    bounded = balance > 0.0
    size = n + bounded
    q = 1 + adaptive + 2 * bounded
    P = np.zeros((size, size))
    c = np.zeros(size)
    A = np.zeros((q, size))
    h = np.zeros(q)
    # The solver divides residuals by at least 1, so scale the matrix to a mean diagonal
    # of 1.
    scale = 0.0
    for i in range(n):
        scale += gram[i, i] / n
    if not scale > 0.0:
        scale = 1.0
    h[0] = C
    if adaptive:
        h[1] = -1.0
    if bounded:
        if adaptive:
            A[1, n] = balance
        else:
            c[n] = balance / scale
        A[q - 2, n] = -1.0
        A[q - 1, n] = -1.0
    for i in range(n):
        A[0, i] = 1.0
        if adaptive:
            A[1, i] = -s[i]
        else:
            c[i] = -s[i] / scale
        if bounded:
            A[q - 2, i] = t[i]
            A[q - 1, i] = -t[i]
        for j in range(n):
            P[i, j] = gram[i, j] / scale
    best, error = _interior_point(P, c, A, h)
    lam = best.lam
    xi = scale * lam[0]
    rho = 1.0
    if adaptive:
        rho = scale * lam[1]
    beta = 0.0
    if bounded:
        beta = scale * (lam[q - 2] - lam[q - 1])
    return best.x[:n], rho, xi, beta, error <= USABLE


# -- the loop over rows in memory ------------------------------------------------------


@njit()
def _centred(plane):
    """Return a view of the centred inner products of a plane with the basis."""
    p = plane.shape[0] // 3 - 1
    return plane[p + 3 : 2 * p + 3]


@njit()
def _coefs(plane):
    """Return a view of the coefficients of a plane on the basis."""
    return plane[2 * (plane.shape[0] // 3) + 1 :]


@njit()
def _represent(plane, inverse):
    """Compute the coefficients of a plane from its inner products with the basis."""
    coefs = _coefs(plane)
    for j in range(coefs.shape[0]):
        coefs[j] = _dot(inverse[j], _centred(plane))


@njit(inline="always")
def _relabel(rows, state, count):
    """Update the first ``count`` planes for the rows whose labels have changed."""
    p = rows.mean.shape[0]
    any_row = False
    for i in range(rows.y.shape[0]):
        y = rows.y[i]
        if y == state.signs[i]:
            continue
        row = rows.F[i]
        for k in range(count):
            plane = state.planes[k]
            member = y * (_dot(row, plane[:p]) + plane[p]) <= plane[p + 1]
            before = rows.shares[i] * state.members[k, i]
            after = rows.shares[i] * member
            signed = after * y - before * state.signs[i]
            plane[p + 2] += after - before
            if signed != 0.0:
                _add_scaled(_centred(plane), row, signed)
                _add_scaled(_centred(plane), rows.mean, -signed)
            state.members[k, i] = member
        state.signs[i] = y
        any_row = True
    if any_row:
        for k in range(count):
            _represent(state.planes[k], rows.inverse)


@njit()
def stalls(lowers):
    """Return whether the last 30 planes have hardly raised the lower bound.

    The bound stops rising if the basis cannot represent the planes.

    Parameters
    ----------
    lowers : ndarray of shape (sweeps,), float64
        The lower bound after each sweep.

    Returns
    -------
    bool
        True if the loop should stop.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import stalls
    >>> stalls(np.ones(31)), stalls(np.arange(31.0))
    (True, False)
    """
    last = lowers.shape[0] - 1
    best = -np.inf
    for i in range(last + 1 - STALL_PLANES):
        best = max(best, lowers[i])
    return best > -np.inf and lowers[last] - best <= STALL_SHARE * abs(lowers[last])


@njit()
def count_idle(idle, multipliers, C):
    """Count the successive QPs in which each plane was idle, and mark planes to keep.

    A plane is idle in a QP if its multiplier is at most 1e-9 C.

    Parameters
    ----------
    idle : ndarray of shape (planes,), int64, overwritten
        For each plane, the number of successive QPs in which it was idle, updated in
        place.
    multipliers : ndarray of shape (planes,), float64
        Solution of the last QP.
    C : float
        Upper bound of the sum of the multipliers.

    Returns
    -------
    ndarray of shape (planes,), bool
        False for planes to drop: they were idle in at least three successive QPs. The
        first plane is always kept, so that the QP stays feasible.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import count_idle
    >>> idle = np.array([5, 2, 2])
    >>> count_idle(idle, np.array([0.0, 0.0, 1.0]), 2.0)
    array([ True, False,  True])
    >>> idle
    array([6, 3, 0])
    """
    stay = np.empty(multipliers.shape[0], np.bool_)
    for k in range(stay.shape[0]):
        idle[k] += 1
        if multipliers[k] > ACTIVE * C:
            idle[k] = 0
        stay[k] = k == 0 or idle[k] < IDLE_SOLVES
    return stay


@njit(inline="always")
def _drop(state, gram, idle, stay):
    """Drop planes, in place; return the number of remaining planes."""
    count = 0
    for k in range(stay.shape[0]):
        if not stay[k]:
            continue
        if count < k:
            _copy(state.planes[k], state.planes[count])
            _copy(state.members[k], state.members[count])
            _copy(gram[k], gram[count])
            idle[count] = idle[k]
            for other in range(stay.shape[0]):
                gram[other, count] = gram[other, k]
        count += 1
    return count


@njit(inline="always")
def _combine(planes, multipliers, gram, mean, hyperplane):
    """Write the hyperplane with mean decision value 0; return |w|²."""
    p = mean.shape[0]
    normal = hyperplane[:p]
    norm2 = 0.0
    hyperplane[:] = 0.0
    for k in range(multipliers.shape[0]):
        _add_scaled(normal, _coefs(planes[k]), multipliers[k])
        product = _dot(multipliers, gram[k])
        norm2 += multipliers[k] * product
    hyperplane[p] = -_dot(mean, normal)
    return max(0.0, norm2)


@njit()
def _add_products(planes, gram, k, partners):
    """Write the inner products of plane k with the planes in ``partners``."""
    for other in partners:
        product = _dot(_centred(planes[other]), _coefs(planes[k]))
        gram[other, k] = product
        gram[k, other] = product


@njit(inline="always")
def _append(planes, gram, count, hyperplane, sweep, row_sum, rows):
    """Append the plane that the last sweep found, with its inner products."""
    p = row_sum.shape[0]
    plane = planes[count]
    _copy(hyperplane, plane)
    plane[p + 1] = sweep.rho
    plane[p + 2] = sweep.active
    centred = _centred(plane)
    for j in range(p):
        centred[j] = row_sum[j] - sweep.signed * rows.mean[j]
    _represent(plane, rows.inverse)
    _add_products(planes, gram, count, range(count + 1))


@njit(inline="always")
def _with_room(start, room):
    """Copy the planes to the front of arrays with room for ``room`` planes."""
    count, columns = start.planes.shape
    n = start.signs.shape[0]
    planes = np.empty((room, columns))
    members = np.empty((room, n), np.int8)
    for k in range(count):
        _copy(start.planes[k], planes[k])
        _copy(start.members[k], members[k])
    return SamplePlanes(planes, members, start.signs.copy())


@njit(inline="always")
def _gram(planes, count):
    """Return the Gram matrix of the first planes, with room for more planes."""
    room = planes.shape[0]
    gram = np.empty((room, room))
    for k in range(count):
        _add_products(planes, gram, k, range(k, count))
    return gram


@njit(inline="always")
def _status(sweep, lowers, limits):
    """Return the status of the loop after a sweep; RUNNING if it continues."""
    if sweep.norm2 < limits.norm2:
        return DEGENERATE
    if sweep.violation <= max(sweep.xi, 0.0) + limits.eta * sweep.rho:
        return CONVERGED
    if lowers.shape[0] > limits.most_planes or stalls(lowers):
        return STALLED
    return RUNNING


@njit(inline="always")
def _add_planes(rows, state, count, limits):
    """Run the cutting-plane loop, starting with the first planes of a state."""
    planes = state.planes
    p = rows.mean.shape[0]
    history = np.empty((limits.most_planes + 1, 11))
    sweeps = 0
    gram = _gram(planes, count)
    idle = np.zeros(planes.shape[0], np.int64)
    multipliers = np.zeros(0)
    hyperplane = np.zeros(p + 1)
    while True:
        s = planes[:count, p + 2]
        solution, rho, xi, _, solved = plane_qp(gram, s, s, limits.C, 0.0, True)
        # The last plane is nearly a linear combination of the other planes, or the QP
        # is infeasible.
        if not solved:
            status = STALLED if sweeps > 0 else UNSOLVED
            break
        multipliers = solution
        norm2 = _combine(planes, multipliers, gram, rows.mean, hyperplane)
        member, row_sum, sums = most_violated_constraint(
            rows.F, rows.y, rows.shares, hyperplane[:p], hyperplane[p], rho
        )
        lower = norm2 / 2 - rho + limits.C * max(0.0, xi)
        sweep = Sweep(
            float(count), rho, xi, norm2, lower,
            sums[0], sums[1], sums[2], sums[3], sums[4], sums[5],
        )  # fmt: skip
        # Use a loop, because numba takes a second to compile the assignment of a whole
        # row.
        for j in range(len(sweep)):
            history[sweeps, j] = sweep[j]
        sweeps += 1
        status = _status(sweep, history[:sweeps, LOWER], limits)
        if status != RUNNING:
            break
        stay = count_idle(idle, multipliers, limits.C)
        count = _drop(state, gram, idle, stay)
        idle[count] = 0
        _copy(member, state.members[count])
        _append(planes, gram, count, hyperplane, sweep, row_sum, rows)
        count += 1
    last_planes = planes[:count].copy()
    last_members = state.members[:count].copy()
    last_state = last_planes, last_members, state.signs
    return last_state, multipliers, hyperplane, history[:sweeps].copy(), status


@njit()
def sample_subproblem_parts(rows, start, limits):
    """Run the loop of `sample_subproblem`, but return plain tuples.

    Parameters
    ----------
    rows : SampleRows
    start : SamplePlanes
    limits : Limits
        As in `sample_subproblem`.

    Returns
    -------
    state : tuple
        The values of a `SamplePlanes`.
    multipliers, hyperplane, history : ndarray
    status : int
        As in a `SampleSolution`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import unchecked as kernels
    >>> F, y = np.array([[-1.0], [1.0]]), np.array([-1, 1], np.int8)
    >>> rows = kernels.SampleRows(F, y, np.full(2, 0.5), np.zeros(1), np.eye(1))
    >>> planes = np.array([[0.0, 0.0, np.inf, 0.0, 0.0, 0.0]])
    >>> members, signs = np.zeros((1, 2), np.int8), np.zeros(2, np.int8)
    >>> start = kernels.SamplePlanes(planes, members, signs)
    >>> limits = kernels.Limits(1.01, 0.01, 1e-9, 100)
    >>> *_, status = kernels.sample_subproblem_parts(rows, start, limits)
    >>> status
    0
    """
    count = start.planes.shape[0]
    state = _with_room(start, count + limits.most_planes)
    _relabel(rows, state, count)
    return _add_planes(rows, state, count, limits)


@jitable
def sample_subproblem(rows, start, limits):
    """Run the cutting-plane loop over rows in memory, with an adaptive threshold.

    The loop follows Wu & Zhang, Alg. 1-3, but labels stay fixed while planes are added.

    Parameters
    ----------
    rows : SampleRows
        The rows and their labels.
    start : SamplePlanes
        The initial planes. They may have been built for other labels.
    limits : Limits
        Parameters and limits of the loop.

    Returns
    -------
    SampleSolution
        The final planes, the final hyperplane, and statistics of each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import unchecked as kernels
    >>> F = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> y = np.array([-1, -1, 1, 1], np.int8)
    >>> rows = kernels.SampleRows(F, y, np.full(4, 0.25), F.mean(axis=0), np.eye(1))
    >>> planes = np.array([[0.0, 0.0, np.inf, 0.0, 0.0, 0.0]])
    >>> members, signs = np.zeros((1, 4), np.int8), np.zeros(4, np.int8)
    >>> start = kernels.SamplePlanes(planes, members, signs)
    >>> limits = kernels.Limits(1.01, 0.01, 1e-9, 100)
    >>> found = kernels.sample_subproblem(rows, start, limits)
    >>> found.status, bool(((F @ found.hyperplane[:1] > 0) == (y > 0)).all())
    (0, True)
    """
    state, multipliers, hyperplane, history, status = sample_subproblem_parts(
        rows, start, limits
    )
    return SampleSolution(
        SamplePlanes(*state), multipliers, hyperplane, history, status
    )
