"""The cutting-plane method in compiled code: a block of rows, the plane QP, the loop.

A row of ``F`` contains the features of one sample: its kernel values against the basis
vectors, or the sample itself if the kernel is linear. A hyperplane is ``f(x) = F(x) .
coef + offset``. Most violated constraint: Wu & Zhang, eq. (12), with the labels ``y``
fixed. The routines of sums read their block once, add up in float64 and return small
arrays. The caller adds those in block order. The ``_csr`` twins take the rows of a CSR
matrix. Arrays are C-ordered.

`sample_subproblem` is the loop over rows in memory, with an adaptive threshold and no
balance. `mmcnb.hinge.cutting_plane` has the loop over rows that are streamed (Alg. 1-3,
lines 5-14). Both loops solve the same quadratic program (QP), and both stop and drop
planes by the limits of this file.

These are three thoughts in one file, because compiled routines that call each other
must share a file: numba's cache notices a change in the file of a routine alone, not in
the files of those that it calls. `kernels.planes` calls none of these.
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

# The interior-point method: most steps, and the step from which it goes for safety
# instead of speed. Ten steps are common.
MOST_STEPS = 120
CAREFUL = 25
# Relative errors at which it stops, and up to which its last iterate is used.
ACCURATE = 1e-10
USABLE = 1e-6
TO_BOUNDARY = 0.995  # share of the way to the nearest bound that a step goes
RIDGE = 1e-13  # added to the diagonal, whose mean is 1; the residuals leave it out
ACTIVE = 1e-9  # share of C above which a multiplier counts
# QPs without weight after which a plane is dropped: `python -m benchmarks engine`.
IDLE_SOLVES = 3
# The loop stops after this many planes that raise the lower bound by no larger share.
STALL_PLANES = 30
STALL_SHARE = 1e-6
# How a subproblem ends.
RUNNING = -1
CONVERGED = 0
STALLED = 1
DEGENERATE = 2
UNSOLVED = 3

FEATURES = Rows("(rows, p)", FLOATS)
NORMAL = Array("(p,)", "float64")
PLANES = Array("(planes,)", "float64")  # a number for each plane


class SampleRows(NamedTuple):
    """Rows in memory, their labels, and the centre of their features.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        Inner products of the rows with the basis.
    y : ndarray of shape (rows,), int8, -1 or +1
        The labels.
    shares : ndarray of shape (rows,), float64, at least 0
        Sample weights, which add up to 1.
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
        Normal vector, offset and rho of the hyperplane that generated each, s, centred
        inner products with the basis, coefficients on it. The first is 0 but for an
        infinite rho.
    members : ndarray of shape (planes, rows), int8
        1 where a row is in a plane; 0 before there are labels.
    signs : ndarray of shape (rows,), int8
        Labels that the planes have; 0 before there are any.
    """

    planes: np.ndarray
    members: np.ndarray
    signs: np.ndarray


class Limits(NamedTuple):
    """What bounds a subproblem.

    Parameters
    ----------
    C : float, at least 0
        Weight of the slack.
    eta : float, at least 0
        Tolerance: stop when no constraint is violated by more than xi + eta rho.
    norm2 : float, at least 0
        Labels whose |w|² is below this are not separated.
    most_planes : int, at least 1
        Most cutting planes added.
    """

    C: float
    eta: float
    norm2: float
    most_planes: int


class Sweep(NamedTuple):
    """A QP and the sweep over the rows that follows it, all float64.

    Parameters
    ----------
    planes : float
        Number of planes in the QP.
    rho, xi, norm2 : float
        Threshold of the margin, slack, and |w|².
    lower : float
        Lower bound of the objective.
    active, signed, violation : float
        Share, signed share and violation of the most violated constraint.
    above, changed : float
        Share of the rows with f >= 0, and of those whose label f would change.
    hinge : float
        Mean hinge.
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
    """What `sample_subproblem` returns.

    Parameters
    ----------
    state : SamplePlanes
        The planes at the end, and the labels that they have.
    multipliers : ndarray of shape (solved,), float64
        Solution of the last QP.
    hyperplane : ndarray of shape (p + 1,), float64
        Its hyperplane; the last value is the offset.
    history : ndarray of shape (sweeps, 11), float64
        The values of a `Sweep` in each row.
    status : int
        How it ended: 0 converged, 1 stalled, 2 degenerate, 3 without a solution of the
        QP.
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
    for j in range(row.shape[0]):  # coef may be longer
        total += row[j] * coef[j]
    return total


@njit(fastmath=VECTORISED)
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


# A branch a row would be guessed wrongly for every other row, which costs as much as
# its products.
@njit(fastmath=VECTORISED)
def _count_rows(f, y, weights, rho):
    """Find the rows in the plane, and the seven sums of `most_violated_constraint`."""
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
    return active, np.array(
        [inside, inside_y, violation, above, changed, hinge, weight]
    )


@njit(fastmath=VECTORISED)
def _weighted_sum(F, rows, scales):
    """Add up some rows of F, four at a time, with a quarter of the loads of the sum."""
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
    """Compute the decision values w'φ(x) + b of a block of rows, with features F for φ.

    Wu & Zhang, eq. (12).

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Its offset.

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
    """Compute the decision values of CSR rows: twin of `decision_values`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Where each row starts in ``data``, and where the last one ends.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Its offset.

    Returns
    -------
    ndarray of shape (rows,), float64
        One decision value a row.

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
    """Find the most violated constraint of a block, and its sums.

    A row is in the plane where ``y f <= rho`` (Wu & Zhang, eq. (12)).

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels, -1 or +1.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    coef : ndarray of shape (p,), float64
        Normal vector of the hyperplane.
    offset : float
        Its offset.
    rho : float
        The threshold of the margin, which may be infinite.

    Returns
    -------
    active : ndarray of shape (rows,), int8
        1 where the row is in the plane.
    row_sum : ndarray of shape (p,), float64
        Weighted sum of ``y F`` over the plane's rows.
    sums : ndarray of shape (7,), float64
        Over the plane's rows: weight, weight times y, weighted violation; over
        all rows: weight with f >= 0, weight of the labels that f would change,
        weighted hinge ``max(0, rho - |f|)``, weight.

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
    return active, _weighted_sum(F, np.flatnonzero(active), weights * y), sums


@njit()
def most_violated_constraint_csr(data, indices, indptr, y, weights, coef, offset, rho):
    """Find the most violated constraint of CSR rows, as `most_violated_constraint`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Where each row starts in ``data``, and where the last one ends.
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
    for i in np.flatnonzero(active):
        scale = weights[i] * y[i]
        for position in range(indptr[i], indptr[i + 1]):
            column = indices[position]
            row_sum[column] += scale * data[position]
    return active, row_sum, sums


# -- the quadratic program -------------------------------------------------------------
#
# minimise    x'Px/2 + c'x    with    Ax + s = h,  x >= 0,  s >= 0
#
# The multipliers are lam of the rows of A, and mu of x >= 0. An optimum has
#
#     Px + c + A'lam - mu = 0       Ax + s - h = 0       x mu = 0       s lam = 0
#
# in each coordinate, and all values at least 0. S. Mehrotra, On the implementation of a
# primal-dual interior point method, SIAM J. Optimization 2 (1992); J. Nocedal and
# S. Wright, Numerical Optimization, Algorithm 16.4. Plain loops here: an array
# expression takes up to a second to compile.


class _Iterate(NamedTuple):
    """Views of one array, whose halves x, s and mu, lam are complementary."""

    values: np.ndarray
    x: np.ndarray
    s: np.ndarray
    mu: np.ndarray
    lam: np.ndarray


@njit()
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
    """Write the Cholesky factor of M over its lower triangle."""
    for i in range(M.shape[0]):
        for j in range(i):
            M[i, j] = (M[i, j] - _dot(M[i, :j], M[j, :j])) / M[j, j]
        M[i, i] = np.sqrt(max(M[i, i] - _dot(M[i, :i], M[i, :i]), RIDGE))


@njit()
def _solve(L, b):
    """Write the solution of L L'x = b over b."""
    for i in range(b.shape[0]):
        b[i] = (b[i] - _dot(L[i, :i], b)) / L[i, i]
    for i in range(b.shape[0] - 1, -1, -1):
        b[i] /= L[i, i]
        _add_scaled(b[:i], L[i, :i], -b[i])


@njit()
def _factor_systems(P, A, now, L, V, S):
    """Write the Cholesky factors L and S of the two systems of a Newton step.

    L L' = P + diag(mu/x) and S S' = A inv(L L') A' + diag(s/lam). V is inv(L L') A',
    transposed.
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


@njit()
def _newton(L, S, V, A, now, dual, primal, products, step):
    """Write a Newton step, from what `_factor_systems` wrote.

    It solves P dx + A'dlam - dmu = -dual and A dx + ds = -primal, with
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


@njit()
def _longest(now, step):
    """Return the length of step that leaves all values at least 0."""
    longest = np.inf
    for j in range(now.shape[0]):
        if step[j] < 0.0:
            longest = min(longest, -now[j] / step[j])
    return longest


@njit()
def _gap(now, step, length):
    """Return the duality gap x'mu + s'lam after a step."""
    gap = 0.0
    m = now.shape[0] // 2
    for j in range(m):
        primal = now[j] + length * step[j]
        dual = now[m + j] + length * step[m + j]
        gap += primal * dual
    return gap


@njit()
def _residuals(P, c, A, h, now, dual, primal):
    """Write the residuals; return the largest relative error, also of the gap."""
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


@njit()
def _interior_point(P, c, A, h):
    """Solve the program; return the most accurate iterate and its relative error."""
    q, n = A.shape
    m = n + q
    now = _iterate(1.0, n, q)
    step = _iterate(0.0, n, q)
    at = now.values
    change = step.values
    best = _iterate(1.0, n, q)
    # What is left of Px + c + A'lam - mu, and of Ax + s - h.
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
        # The second step corrects for what the first one leaves. Correcting for the
        # whole of a step that is cut short leads into cycles.
        for correcting in range(2):
            for j in range(m):
                products[j] = at[j] * at[m + j] + correcting * (
                    length**2 * change[j] * change[m + j] - aim
                )
            _newton(L, S, V, A, now, dual, primal, products, step)
            part = TO_BOUNDARY if correcting else 1.0
            length = min(1.0, _longest(at, change) * part)
            aim = gap / m * (_gap(at, change, length) / gap) ** 3
            # Back to the middle of the way, without a correction.
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

    The program is the dual of Wu & Zhang's eq. (11). Adaptive, it is min 1/2 λ'Gλ with
    s'λ - balance u >= 1; otherwise min 1/2 λ'Gλ - s'λ + balance u. Both ask for
    1'λ <= C, abs(t'λ) <= u and λ >= 0. An interior-point method solves it.

    Parameters
    ----------
    gram : ndarray of shape (planes, planes), float64
        Inner products of the centred planes.
    s, t : ndarray of shape (planes,), float64
        Mean of each plane's rows, and of its signed rows.
    C : float, at least 0
        Bound of the sum of the multipliers.
    balance : float, at least 0
        Bound of the mean decision value, in units of rho.
    adaptive : bool
        Whether rho is a variable, or 1.

    Returns
    -------
    multipliers : ndarray of shape (planes,), float64
        One of each plane, at least 0.
    rho, xi, beta : float
        Threshold of the margin, slack, and mean decision value.
    solved : bool
        Whether there is a solution, with a relative error of at most 1e-6; 1e-10 is
        common.

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
    # Errors are relative to 1, so the matrix is brought to this size.
    scale = 0.0
    for i in range(n):
        scale += gram[i, i] / n
    if not scale > 0.0:
        scale = 1.0
    h[0] = C
    if adaptive:
        h[1] = -1.0
        A[1, n:] = balance
    else:
        c[n:] = balance / scale
    if bounded:
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
    """Return the part of a plane with its centred inner products with the basis."""
    p = plane.shape[0] // 3 - 1
    return plane[p + 3 : 2 * p + 3]


@njit()
def _coefs(plane):
    """Return the part of a plane with its coefficients on the basis."""
    return plane[2 * (plane.shape[0] // 3) + 1 :]


@njit()
def _represent(plane, inverse):
    """Compute the coefficients of a plane from its inner products with the basis."""
    coefs = _coefs(plane)
    for j in range(coefs.shape[0]):
        coefs[j] = _dot(inverse[j], _centred(plane))


@njit()
def _relabel(rows, state, count):
    """Change the planes by the rows whose label changes."""
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
    """Return whether the last planes no longer raise the lower bound.

    Then the basis cannot express them.

    Parameters
    ----------
    lowers : ndarray of shape (sweeps,), float64
        The bound after each sweep.

    Returns
    -------
    bool
        Whether it is so.

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
    """Count in how many QPs in a row each plane had no weight; mark those that stay.

    Parameters
    ----------
    idle : ndarray of shape (planes,), int64, overwritten
        The counts.
    multipliers : ndarray of shape (planes,), float64
        Solution of the last QP.
    C : float
        Bound of their sum.

    Returns
    -------
    ndarray of shape (planes,), bool
        False for a plane that is to be dropped. The first stays: it keeps the QP
        feasible.

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


@njit()
def _drop(state, gram, idle, stay):
    """Drop planes, in place; return how many stay."""
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


@njit()
def _combine(planes, multipliers, gram, mean, hyperplane):
    """Write the hyperplane of multipliers, of mean decision value 0; return |w|²."""
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
    """Write the inner products of plane k with other planes."""
    for other in partners:
        product = _dot(_centred(planes[other]), _coefs(planes[k]))
        gram[other, k] = product
        gram[k, other] = product


@njit()
def _append(planes, gram, count, hyperplane, sweep, row_sum, rows):
    """Make a plane of the rows that the last sweep found, and its inner products."""
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


@njit()
def _with_room(start, room):
    """Copy the planes to the front of larger arrays."""
    count, columns = start.planes.shape
    n = start.signs.shape[0]
    planes = np.empty((room, columns))
    members = np.empty((room, n), np.int8)
    for k in range(count):
        _copy(start.planes[k], planes[k])
        _copy(start.members[k], members[k])
    return SamplePlanes(planes, members, start.signs.copy())


@njit()
def _gram(planes, count):
    """Return the inner products of the first planes, with room for those to come."""
    room = planes.shape[0]
    gram = np.empty((room, room))
    for k in range(count):
        _add_products(planes, gram, k, range(k, count))
    return gram


@njit()
def _status(sweep, lowers, limits):
    """Return how the loop ends after a sweep; RUNNING if it goes on."""
    if sweep.norm2 < limits.norm2:
        return DEGENERATE
    if sweep.violation <= max(sweep.xi, 0.0) + limits.eta * sweep.rho:
        return CONVERGED
    if lowers.shape[0] > limits.most_planes or stalls(lowers):
        return STALLED
    return RUNNING


@njit()
def _add_planes(rows, state, count, limits):
    """Run the cutting-plane loop from the planes of a state with room for more."""
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
        # The last plane was too close to the others, or nothing is feasible.
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
        # Numba would take a second to compile the assignment of a whole row.
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
    """Run the cutting-plane loop of `sample_subproblem`; return plain tuples.

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

    Wu & Zhang, Alg. 1-3, with labels that stay fixed while planes are added.

    Parameters
    ----------
    rows : SampleRows
        The rows and their labels.
    start : SamplePlanes
        The planes to start from, of these labels or of others.
    limits : Limits
        What bounds the loop.

    Returns
    -------
    SampleSolution
        The planes and the hyperplane at the end.

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
