"""Rounds of the CCCP over rows in memory, in compiled code.

`mmcnb.hinge.cccp` runs the same rounds over rows that are streamed: relabel the planes, solve the subproblem
by cutting planes (Wu & Zhang, Alg. 1-3, lines 5-14), take the labels of its hyperplane. `mmcnb.hinge.qp` says
what the quadratic program (QP) is. A primal-dual interior-point method solves it, with Mehrotra's predictor
and corrector. Both loops call it, and both stop and drop planes by the limits of this file. The rounds here
have an adaptive threshold and no balance.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import Array, Flag, Number, takes

# Plain loops: an array expression takes up to a second to compile.
MOST_STEPS, CAREFUL = 120, 25  # of the interior-point method, and those that go for speed; 10 are common
ACCURATE, USABLE = 1e-10, 1e-6  # relative errors at which it stops, and up to which its end is used
TO_BOUNDARY = 0.995  # share of the way to the nearest bound that a step goes
RIDGE = 1e-13  # added to the diagonal, whose mean is 1; the residuals leave it out
ACTIVE = 1e-9  # share of C above which a multiplier counts
IDLE_SOLVES = 3  # QPs without weight after which a plane is dropped: `python -m benchmarks engine`
STALL_PLANES, STALL_SHARE = 30, 1e-6  # stop after so many that raise the lower bound by no larger share
CONVERGED, STALLED, DEGENERATE, UNSOLVED = 0, 1, 2, 3  # how a subproblem ends


@njit(fastmath=VECTORISED)
def _dot(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(fastmath=VECTORISED)
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


@njit()
def _copy(values, found):
    for j in range(values.shape[0]):
        found[j] = values[j]


@njit()
def _factor(M):
    """The Cholesky factor of M, in the place of its lower triangle."""
    for i in range(M.shape[0]):
        for j in range(i):
            M[i, j] = (M[i, j] - _dot(M[i, :j], M[j, :j])) / M[j, j]
        M[i, i] = np.sqrt(max(M[i, i] - _dot(M[i, :i], M[i, :i]), RIDGE))


@njit()
def _solve(L, b):
    """The solution of L L'x = b, in the place of b."""
    for i in range(b.shape[0]):
        b[i] = (b[i] - _dot(L[i, :i], b)) / L[i, i]
    for i in range(b.shape[0] - 1, -1, -1):
        b[i] /= L[i, i]
        _add_scaled(b[:i], L[i, :i], -b[i])


@njit()
def _newton(L, S, V, A, at, by, dual, primal, products):
    """A step of Newton's method from the factors L and S of its systems; V is inv(M) A'."""
    (q, n), m = A.shape, A.shape[0] + A.shape[1]
    for j in range(n):
        by[j] = -dual[j] - products[j] / at[j]
    _solve(L, by[:n])
    for i in range(q):
        by[m + n + i] = _dot(A[i], by) + primal[i] - products[n + i] / at[m + n + i]
    _solve(S, by[m + n :])
    for i in range(q):
        _add_scaled(by[:n], V[i], -by[m + n + i])
        by[n + i] = -(products[n + i] + at[n + i] * by[m + n + i]) / at[m + n + i]
    for j in range(n):
        by[m + j] = -(products[j] + at[m + j] * by[j]) / at[j]


@njit()
def _longest(at, by):  # step that leaves all values at least 0
    longest = np.inf
    for j in range(at.shape[0]):
        if by[j] < 0.0:
            longest = min(longest, -at[j] / by[j])
    return longest


@njit()
def _gap(at, by, length):  # the duality gap after a step
    gap, m = 0.0, at.shape[0] // 2
    for j in range(m):
        gap += (at[j] + length * by[j]) * (at[m + j] + length * by[m + j])
    return gap


@njit()
def _residuals(P, cost, A, h, at, dual, primal):
    """Fill in the residuals of both problems; the largest relative error, of which the gap is one."""
    value, largest, wrong, infeasible, (q, n) = 0.0, 0.0, 0.0, 0.0, A.shape
    for j in range(n):
        product = _dot(P[j], at)
        value += at[j] * product / 2 + at[j] * cost[j]
        largest = max(largest, abs(product), abs(cost[j]))
        dual[j] = product + cost[j] - at[n + q + j]
    for i in range(q):
        _add_scaled(dual, A[i], at[2 * n + q + i])
        primal[i] = _dot(A[i], at) + at[n + i] - h[i]
        infeasible = max(infeasible, abs(primal[i]))
    for j in range(n):
        wrong = max(wrong, abs(dual[j]))
    return max(wrong / (1.0 + largest), infeasible / (1.0 + h[0]), _gap(at, at, 0.0) / (1.0 + abs(value)))


@njit()
def _interior_point(P, cost, A, h):
    """Minimise x'Px/2 + cost'x with Ax <= h and x >= 0: x, multipliers of rows, the error left."""
    (q, n), m, least = A.shape, A.shape[0] + A.shape[1], np.inf
    # x and the slacks of the rows, and in the second half the values that are complementary to them.
    at, by, best = np.ones(2 * m), np.zeros(2 * m), np.ones(2 * m)
    dual, primal, products = np.empty(n), np.empty(q), np.empty(m)
    L, V, S = np.empty((n, n)), np.empty((q, n)), np.empty((q, q))
    for number in range(MOST_STEPS):
        error = _residuals(P, cost, A, h, at, dual, primal)
        if error < least:
            least = error
            _copy(at, best)
        if not ACCURATE < error < np.inf:
            break
        for j in range(n):
            _copy(P[j], L[j])
            L[j, j] += at[m + j] / at[j] + RIDGE
        _factor(L)
        for i in range(q):
            _copy(A[i], V[i])
            _solve(L, V[i])
            for k in range(q):
                S[i, k] = _dot(A[k], V[i])
            S[i, i] += at[n + i] / at[m + n + i]
        _factor(S)
        gap, aim, length = _gap(at, by, 0.0), 0.0, 0.0
        for correcting in range(2):  # the second step is corrected by what the first one leaves
            for j in range(m):  # correcting for the whole of a step that is cut short leads into cycles
                products[j] = at[j] * at[m + j] + correcting * (length**2 * by[j] * by[m + j] - aim)
            _newton(L, S, V, A, at, by, dual, primal, products)
            length = min(1.0, _longest(at, by) * (TO_BOUNDARY if correcting else 1.0))
            aim = gap / m * (_gap(at, by, length) / gap) ** 3
            if number >= CAREFUL:  # back to the middle of the way, without a correction
                length, aim = length * correcting, gap / m / 2
        _add_scaled(at, by, length)
    return best[:n], best[m + n :], least


@njit()
@takes(
    gram=Array("(planes, planes)", "float64"),
    s=Array("(planes,)", "float64"),
    t=Array("(planes,)", "float64"),
    C=Number(least=0),
    balance=Number(least=0),
    adaptive=Flag(),
)
def plane_qp(gram, s, t, C, balance, adaptive):
    """Solve the quadratic program over cutting planes, the dual of Wu & Zhang's eq. (11).

    Adaptive, it is min 1/2 λ'Gλ with s'λ - balance u >= 1; otherwise min 1/2 λ'Gλ - s'λ + balance u. Both ask
    for 1'λ <= C, abs(t'λ) <= u and λ >= 0. An interior-point method solves it.

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
        Whether there is a solution, with a relative error of at most 1e-6; 1e-10 is common.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import plane_qp
    >>> multipliers, rho, *_ = plane_qp(np.array([[4.0]]), np.ones(1), np.zeros(1), 2.0, 0.0, True)
    >>> multipliers.round(6), round(rho, 6)
    (array([1.]), 4.0)
    """
    n, scale, bounded = s.shape[0], 0.0, balance > 0.0
    size, q = n + bounded, 1 + adaptive + 2 * bounded
    P, cost, A, h = np.zeros((size, size)), np.zeros(size), np.zeros((q, size)), np.zeros(q)
    for i in range(n):
        scale += gram[i, i] / n  # errors are relative to 1, so the matrix is brought to this size
    scale = scale if scale > 0.0 else 1.0
    h[0] = C
    if adaptive:
        h[1], A[1, n:] = -1.0, balance
    else:
        cost[n:] = balance / scale
    if bounded:
        A[q - 2, n] = A[q - 1, n] = -1.0
    for i in range(n):
        A[0, i] = 1.0
        if adaptive:
            A[1, i] = -s[i]
        else:
            cost[i] = -s[i] / scale
        if bounded:
            A[q - 2, i], A[q - 1, i] = t[i], -t[i]
        for j in range(n):
            P[i, j] = gram[i, j] / scale
    x, rows, error = _interior_point(P, cost, A, h)
    beta = scale * (rows[q - 2] - rows[q - 1]) if bounded else 0.0
    return x[:n], scale * rows[1] if adaptive else 1.0, scale * rows[0], beta, error <= USABLE


@njit()
def _relabel(F, y, shares, mean, inverse, planes, members, count, signs):
    """Change the planes by the rows whose label changes."""
    p, any_row = F.shape[1], False
    for i in range(F.shape[0]):
        if y[i] == signs[i]:
            continue
        for k in range(count):
            plane = planes[k]
            member = y[i] * (_dot(F[i], plane[:p]) + plane[p]) <= plane[p + 1]
            before, after = shares[i] * members[k, i], shares[i] if member else 0.0
            signed = after * y[i] - before * signs[i]
            plane[p + 2] += after - before
            if signed != 0.0:
                _add_scaled(plane[p + 3 : 2 * p + 3], F[i], signed)
                _add_scaled(plane[p + 3 : 2 * p + 3], mean, -signed)
            members[k, i] = member
        signs[i], any_row = y[i], True
    for k in range(count if any_row else 0):
        _represent(planes[k], inverse, p)


@njit()
def _represent(plane, inverse, p):
    """The coefficients of a plane on the basis, from its inner products with the basis."""
    for j in range(p):
        plane[2 * p + 3 + j] = _dot(inverse[j], plane[p + 3 : 2 * p + 3])


@njit()
def _sweep(F, y, shares, hyperplane, rho, member, above):
    """Mark the rows with y f <= rho and those with f >= 0; the sum of the former's y F, and six means."""
    row_sum, means = np.zeros(F.shape[1]), np.zeros(6)
    for i in range(F.shape[0]):
        f, share = _dot(F[i], hyperplane) + hyperplane[-1], shares[i]
        margin = y[i] * f
        above[i] = 1 if f >= 0.0 else -1
        member[i] = margin <= rho
        if member[i]:
            means[0] += share
            means[1] += share * y[i]
            means[2] += share * (rho - margin)
            _add_scaled(row_sum, F[i], share * y[i])
        means[3] += share if f >= 0.0 else 0.0
        means[4] += share if above[i] != y[i] else 0.0
        means[5] += max(0.0, share * (rho - abs(f)))
    return row_sum, means


@njit()
def stalls(lowers):
    """Whether the last planes no longer raise the lower bound: the basis cannot express them.

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
    last, best = lowers.shape[0] - 1, -np.inf
    for i in range(last + 1 - STALL_PLANES):
        best = max(best, lowers[i])
    return best > -np.inf and lowers[last] - best <= STALL_SHARE * abs(lowers[last])


@njit()
def count_idle(idle, multipliers, C):
    """Count in how many QPs in a row each plane had no weight; mark the planes that may stay.

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
        False for a plane that is to be dropped. The first stays: it keeps the QP feasible.

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
        idle[k] = 0 if multipliers[k] > ACTIVE * C else idle[k] + 1
        stay[k] = k == 0 or idle[k] < IDLE_SOLVES
    return stay


@njit()
def _drop(planes, members, gram, idle, stay):
    """Drop planes, in place; how many stay."""
    kept = 0
    for k in range(stay.shape[0]):
        if not stay[k]:
            continue
        if kept < k:
            _copy(planes[k], planes[kept])
            _copy(members[k], members[kept])
            _copy(gram[k], gram[kept])
            idle[kept] = idle[k]
            for other in range(stay.shape[0]):
                gram[other, kept] = gram[other, k]
        kept += 1
    return kept


@njit()
def _subproblem(rows, y, planes, members, gram, count, history, number, problem):
    """The cutting-plane loop for fixed labels; the history has room for its sweeps, and they for planes."""
    (F, shares, mean, inverse), (C, eta, least_norm2) = rows, problem
    p, status, sweeps = F.shape[1], CONVERGED, 0
    idle, multipliers, hyperplane = np.zeros(planes.shape[0], np.int64), np.zeros(0), np.zeros(p + 1)
    member, above = np.empty(F.shape[0], np.int8), np.empty(F.shape[0], np.int8)
    for k in range(count):
        for other in range(k + 1):
            gram[k, other] = gram[other, k] = _dot(planes[k, p + 3 : 2 * p + 3], planes[other, 2 * p + 3 :])
    while True:
        s = planes[:count, p + 2]
        found, rho, xi, _, solved = plane_qp(gram, s, s, C, 0.0, True)
        if not solved:  # the last plane was too close to the others, or nothing is feasible
            status = STALLED if sweeps > 0 else UNSOLVED
            break
        multipliers, norm2, hyperplane = found, 0.0, np.zeros(p + 1)
        for k in range(count):
            _add_scaled(hyperplane[:p], planes[k, 2 * p + 3 :], multipliers[k])
            norm2 += multipliers[k] * _dot(multipliers, gram[k])
        hyperplane[p], norm2 = -_dot(mean, hyperplane[:p]), max(0.0, norm2)
        entry, lower = history[sweeps], norm2 / 2 - rho + C * max(0.0, xi)
        entry[0], entry[1], entry[2], entry[3], entry[4], entry[5] = number, count, rho, xi, norm2, lower
        row_sum, means = _sweep(F, y, shares, hyperplane, rho, member, above)
        _copy(means, entry[6:])
        sweeps += 1
        if norm2 < least_norm2:
            status = DEGENERATE
            break
        if entry[8] <= max(xi, 0.0) + eta * rho:
            break
        if sweeps == history.shape[0] or count == planes.shape[0] or stalls(history[:sweeps, 5]):
            status = STALLED
            break
        count = _drop(planes, members, gram, idle, count_idle(idle, multipliers, C))
        plane, idle[count] = planes[count], 0
        _copy(member, members[count])
        _copy(hyperplane, plane)
        plane[p + 1], plane[p + 2] = rho, entry[6]
        for j in range(p):
            plane[p + 3 + j] = row_sum[j] - entry[7] * mean[j]
        _represent(plane, inverse, p)
        for k in range(count + 1):
            gram[k, count] = gram[count, k] = _dot(planes[k, p + 3 : 2 * p + 3], plane[2 * p + 3 :])
        count += 1
    return count, sweeps, status, multipliers, hyperplane, above


@njit()
def cccp_rounds(
    F, y, shares, mean, inverse, planes, members, signs, C, eta, norm2, most_planes, max_rounds, moved, share
):
    """Rounds of the CCCP at one C, with an adaptive threshold: relabel, solve, take the new labels.

    Wu & Zhang, Alg. 1-3, with labels that stay fixed while planes are added. Rounds end where few labels
    change, where a cluster falls below its least share, or where no hyperplane separates them.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        Inner products of the rows with the basis.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels to start from.
    shares : ndarray of shape (rows,), float64, at least 0
        Sample weights, which add up to 1.
    mean : ndarray of shape (p,), float64
        Weighted mean of F.
    inverse : ndarray of shape (p, p), float64
        Inverse of the kernel matrix of the basis.
    planes : ndarray of shape (planes, columns), float64
        Cutting planes: normal vector, offset and rho of the hyperplane that generated each, s, centred inner
        products with the basis, coefficients on it: 3 p + 3. The first is 0 but for an infinite rho.
    members : ndarray of shape (planes, rows), int8
        1 where a row is in a plane; 0 before there are labels.
    signs : ndarray of shape (rows,), int8
        Labels that the planes have; 0 before there are any.
    C : float, at least 0
        Weight of the slack.
    eta : float, at least 0
        Tolerance: stop when no constraint is violated by more than xi + eta rho.
    norm2 : float, at least 0
        Labels whose |w|² is below this are not separated.
    most_planes : int, at least 1
        Most cutting planes added in one round.
    max_rounds : int, at least 1
        Most rounds.
    moved : float, at least 0
        Stop when rows of no larger share change their label.
    share : float, at least 0
        Least share of a cluster.

    Returns
    -------
    planes, members, signs : ndarray
        The planes at the end, and the labels that they have.
    y : ndarray of shape (rows,), int8
        The labels of the hyperplane, where these leave each cluster its least share; otherwise those before.
    multipliers, hyperplane : ndarray of shape (solved,) and (p + 1,), float64
        Solution of the last round that did not degenerate; the last value is the offset.
    history : ndarray of shape (sweeps, 12), float64
        A row for each sweep: number of the round, planes, rho, xi, |w|², lower bound; of the most violated
        constraint share, signed share and violation; share with f >= 0, share that changes, mean hinge.
    rounds, status : int
        Rounds that did not degenerate, and how the last one ended: 0 converged, 1 stalled; 2 where there is
        none, 3 where a QP has no solution.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import cccp_rounds
    >>> F, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1, -1, 1, 1], np.int8)
    >>> rows = F, y, np.full(4, 0.25), F.mean(axis=0), np.eye(1)
    >>> planes = np.array([[0.0, 0.0, np.inf, 0.0, 0.0, 0.0]])
    >>> state = planes, np.zeros((1, 4), np.int8), np.zeros(4, np.int8)
    >>> cccp_rounds(*rows, *state, 1.01, 0.01, 1e-9, 100, 30, 0.0, 0.1)[3]
    array([-1, -1,  1,  1], dtype=int8)
    """
    p, count, room = F.shape[1], planes.shape[0], planes.shape[0] + most_planes
    held, inside, signs = np.empty((room, 3 * p + 3)), np.empty((room, F.shape[0]), np.int8), signs.copy()
    for k in range(count):
        _copy(planes[k], held[k])
        _copy(members[k], inside[k])
    gram, history, sweeps = np.empty((room, room)), np.empty((max_rounds * (most_planes + 1), 12)), 0
    solved, ended, best, best_hyperplane = 0, CONVERGED, np.zeros(0), np.zeros(p + 1)
    for number in range(max_rounds):
        _relabel(F, y, shares, mean, inverse, held, inside, count, signs)
        given = history[sweeps : sweeps + most_planes + 1], number, (C, eta, norm2)
        count, used, status, multipliers, hyperplane, above = _subproblem(
            (F, shares, mean, inverse), y, held, inside, gram, count, *given
        )
        sweeps += used
        if status >= DEGENERATE:
            ended = ended if solved and status == DEGENERATE else status
            break
        solved, ended, best, best_hyperplane = number + 1, status, multipliers, hyperplane
        if not share <= history[sweeps - 1, 9] <= 1.0 - share:
            break
        y = above
        if history[sweeps - 1, 10] <= moved:
            break
    solution = y.copy(), best, best_hyperplane, history[:sweeps].copy(), solved, ended
    return held[:count].copy(), inside[:count].copy(), signs, *solution
