"""The cutting-plane method in compiled code: sums over the rows of a block, the quadratic program, the loop.

A row of ``F`` contains the features of one sample: its kernel values against the basis
vectors, or the sample itself if the kernel is linear. A hyperplane is ``f(x) = F(x) .
coef + offset``. Most violated constraint: Wu & Zhang, eq. (12), with the labels ``y``
fixed. The routines of sums read their block once, add up in float64 (`plane_sums` says
where not) and return small arrays. The caller adds those in block order. The ``_csr``
twins take the rows of a CSR matrix. Arrays are C-ordered.

`mmcnb.hinge.cutting_plane` has the loop over rows that are streamed (Alg. 1-3, lines
5-14), and `mmcnb.hinge.qp` defines the quadratic program (QP). A primal-dual
interior-point method solves it, with Mehrotra's predictor and corrector.
`sample_subproblem` is the loop over rows in memory, with an adaptive threshold and no
balance. Both loops call the QP, and both stop and drop planes by the limits of this
file.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
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

ROW_TILE = 64  # rows whose float32 sums are added in float64
# Plain loops: an array expression takes up to a second to compile.
# of the interior-point method, and those that go for speed; 10 are common
MOST_STEPS = 120
CAREFUL = 25
# relative errors at which it stops, and up to which its end is used
ACCURATE = 1e-10
USABLE = 1e-6
TO_BOUNDARY = 0.995  # share of the way to the nearest bound that a step goes
RIDGE = 1e-13  # added to the diagonal, whose mean is 1; the residuals leave it out
ACTIVE = 1e-9  # share of C above which a multiplier counts
# QPs without weight after which a plane is dropped: `python -m benchmarks engine`
IDLE_SOLVES = 3
# stop after so many that raise the lower bound by no larger share
STALL_PLANES = 30
STALL_SHARE = 1e-6
# how a subproblem ends
CONVERGED = 0
STALLED = 1
DEGENERATE = 2
UNSOLVED = 3

FEATURES = Rows("(rows, p)", FLOATS)
LABELLED = {"y": Signs("(rows,)", "int8"), "weights": FromZero("(rows,)", "float64")}
GRAM = Array("(planes, planes)", "float64")
PLANES = Array("(planes,)", "float64")  # a number for each plane


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
    """Rows in the plane, and the seven sums of `most_violated_constraint`, from the decision values."""
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
    """Sum of some rows of F, four at a time: a quarter of the loads and stores of the total."""
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
@takes(F=FEATURES, coef=Array("(p,)", "float64"), offset=Number())
def decision_values(F, coef, offset):
    """Decision values of a block of rows, w'φ(x) + b in Wu & Zhang, eq. (12), with the features F for φ.

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
    """Decision values of CSR rows: the sparse twin of `decision_values`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
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
    >>> decision_values_csr(np.array([2.0]), np.array([1]), np.array([0, 1, 1]), np.array([3.0, -1.0]), 0.5)
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
    **LABELLED,
    coef=Array("(p,)", "float64"),
    offset=Number(),
    rho=Number(finite=False),
)
def most_violated_constraint(F, y, weights, coef, offset, rho):
    """The most violated constraint of a block, with its sums.

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
    >>> active, row_sum, sums = most_violated_constraint(F, y, np.ones(2), np.ones(1), 0.0, 2.0)
    >>> active, row_sum
    (array([1, 0], dtype=int8), array([1.]))
    """
    active, sums = _count_rows(decision_values(F, coef, offset), y, weights, rho)
    return active, _weighted_sum(F, np.flatnonzero(active), weights * y), sums


@njit()
def most_violated_constraint_csr(data, indices, indptr, y, weights, coef, offset, rho):
    """The most violated constraint of CSR rows: twin of `most_violated_constraint`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
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
    for i in range(active.shape[0]):
        if active[i]:
            scale = weights[i] * y[i]
            for position in range(indptr[i], indptr[i + 1]):
                row_sum[indices[position]] += scale * data[position]
    return active, row_sum, sums


@njit()
def _plane_rows(values, y, weights, offsets, rhos, s, t):
    """Turn the decision values of a tile into the coefficients of each plane, in place; add to s and t."""
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            if y[i] * (values[i, k] + offsets[k]) <= rhos[k]:
                values[i, k] = weights[i] * y[i]
                s[k] += weights[i]
                t[k] += weights[i] * y[i]
            else:
                values[i, k] = 0.0


@njit()
@takes(
    F=FEATURES,
    **LABELLED,
    coefs=Array("(p, planes)", "float64"),
    offsets=PLANES,
    rhos=PLANES,
)
def plane_sums(F, y, weights, coefs, offsets, rhos):
    """Rebuild several planes under the labels ``y`` from the hyperplanes that generated them.

    Plane k holds the rows with ``y f_k <= rho_k``. With c_k 1 for these rows and 0 for
    others, its row sum is Σ_i c_ki y_i F_i (Wu & Zhang, eq. (18)), t is Σ_i c_ki y_i
    (eq. (19)) and s is Σ_i c_ki.

    Any choice of rows is a valid plane, so planes found under other labels stay useful
    after a change. Rows are chosen by decision values in the dtype of F: a row that
    other values would choose otherwise lies at the threshold, where it adds no
    violation.

    The sums ``s`` and ``t`` are float64. Where F is float32, so are the row sums
    of 64 rows, which are then added in float64: the error stays below 66 eps,
    eps = 2^-24, of the sum of ``weights |F|``, and is about eps where rows are
    many.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels, -1 or +1.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    coefs : ndarray of shape (p, planes), float64
        Normal vectors.
    offsets, rhos : ndarray of shape (planes,), float64
        Offsets and thresholds; a threshold of infinity takes every row.

    Returns
    -------
    s, t : ndarray of shape (planes,), float64
        Weight, and weight times y, of each plane's rows.
    row_sums : ndarray of shape (planes, p), float64
        Weighted sum of ``y F`` over each plane's rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import plane_sums
    >>> F, y = np.array([[1.0], [-3.0]]), np.array([1, -1], np.int8)
    >>> plane_sums(F, y, np.ones(2), np.ones((1, 1)), np.zeros(1), np.array([np.inf]))
    (array([2.]), array([0.]), array([[4.]]))
    """
    rows = F.shape[0]
    planes = offsets.shape[0]
    s = np.zeros(planes, np.float64)
    t = np.zeros(planes, np.float64)
    row_sums = np.zeros((planes, F.shape[1]), np.float64)
    largest = 0.0  # weights that are all equal become 1, which float32 holds exactly
    for i in range(rows):
        largest = max(largest, weights[i])
    shares = weights / (largest if largest > 0.0 else 1.0)
    normals = coefs.astype(F.dtype)
    for start in range(0, rows, ROW_TILE):
        stop = min(start + ROW_TILE, rows)
        tile = np.ascontiguousarray(F[start:stop])
        values = np.dot(tile, normals)
        _plane_rows(values, y[start:stop], shares[start:stop], offsets, rhos, s, t)
        row_sums += np.dot(values.T, tile)
    return s * largest, t * largest, row_sums * largest


@njit()
def plane_sums_csr(data, indices, indptr, y, weights, coefs, offsets, rhos):
    """Rebuild several planes on CSR rows: twin of `plane_sums`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, p)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where each row starts in ``data``, and where the last one ends.
    y : ndarray of shape (rows,), int8, -1 or +1
    weights : ndarray of shape (rows,), float64, at least 0
    coefs : ndarray of shape (p, planes), float64
    offsets : ndarray of shape (planes,), float64
    rhos : ndarray of shape (planes,), float64
        As in `plane_sums`.

    Returns
    -------
    s, t, row_sums : ndarray
        As in `plane_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import plane_sums_csr
    >>> rows = np.array([1.0, -3.0]), np.array([0, 0]), np.array([0, 1, 2])
    >>> y = np.array([1, -1], np.int8)
    >>> plane_sums_csr(*rows, y, np.ones(2), np.ones((1, 1)), np.zeros(1), np.array([np.inf]))[2]
    array([[4.]])
    """
    planes = offsets.shape[0]
    s = np.zeros(planes, np.float64)
    t = np.zeros(planes, np.float64)
    columns = np.zeros((coefs.shape[0], planes), np.float64)
    values = np.empty((1, planes), np.float64)
    for i in range(indptr.shape[0] - 1):
        values[:] = 0.0
        for position in range(indptr[i], indptr[i + 1]):
            _add_scaled(values[0], coefs[indices[position]], data[position])
        _plane_rows(values, y[i : i + 1], weights[i : i + 1], offsets, rhos, s, t)
        for position in range(indptr[i], indptr[i + 1]):
            _add_scaled(columns[indices[position]], values[0], data[position])
    return s, t, np.ascontiguousarray(columns.T)


# -- the quadratic program -------------------------------------------------------------


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
    gap = 0.0
    m = at.shape[0] // 2
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
    return max(
        wrong / (1.0 + largest),
        infeasible / (1.0 + h[0]),
        _gap(at, at, 0.0) / (1.0 + abs(value)),
    )


@njit()
def _interior_point(P, cost, A, h):
    """Minimise x'Px/2 + cost'x with Ax <= h and x >= 0: x, multipliers of rows, the error left."""
    (q, n), m, least = A.shape, A.shape[0] + A.shape[1], np.inf
    # x and the slacks of the rows, and in the second half the values that are
    # complementary to them.
    at = np.ones(2 * m)
    by = np.zeros(2 * m)
    best = np.ones(2 * m)
    dual = np.empty(n)
    primal = np.empty(q)
    products = np.empty(m)
    L = np.empty((n, n))
    V = np.empty((q, n))
    S = np.empty((q, q))
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
        gap = _gap(at, by, 0.0)
        aim = 0.0
        length = 0.0
        for correcting in range(
            2
        ):  # the second step is corrected by what the first one leaves
            for j in range(
                m
            ):  # correcting for the whole of a step that is cut short leads into cycles
                products[j] = at[j] * at[m + j] + correcting * (
                    length**2 * by[j] * by[m + j] - aim
                )
            _newton(L, S, V, A, at, by, dual, primal, products)
            length = min(1.0, _longest(at, by) * (TO_BOUNDARY if correcting else 1.0))
            aim = gap / m * (_gap(at, by, length) / gap) ** 3
            if number >= CAREFUL:  # back to the middle of the way, without a correction
                length = length * correcting
                aim = gap / m / 2
        _add_scaled(at, by, length)
    return best[:n], best[m + n :], least


@njit()
@takes(
    gram=GRAM,
    s=PLANES,
    t=PLANES,
    C=Number(least=0),
    balance=Number(least=0),
    adaptive=Flag(),
)
def plane_qp(gram, s, t, C, balance, adaptive):
    """Solve the quadratic program over cutting planes, the dual of Wu & Zhang's eq. (11).

    Adaptive, it is min 1/2 λ'Gλ with s'λ - balance u >= 1; otherwise min 1/2 λ'Gλ - s'λ
    + balance u. Both ask for 1'λ <= C, abs(t'λ) <= u and λ >= 0. An interior-point
    method solves it.

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
    >>> multipliers, rho, *_ = plane_qp(np.array([[4.0]]), np.ones(1), np.zeros(1), 2.0, 0.0, True)
    >>> multipliers.round(6), round(rho, 6)
    (array([1.]), 4.0)
    """
    n = s.shape[0]
    scale = 0.0
    bounded = balance > 0.0
    size = n + bounded
    q = 1 + adaptive + 2 * bounded
    P = np.zeros((size, size))
    cost = np.zeros(size)
    A = np.zeros((q, size))
    h = np.zeros(q)
    for i in range(n):
        scale += (
            gram[i, i] / n
        )  # errors are relative to 1, so the matrix is brought to this size
    scale = scale if scale > 0.0 else 1.0
    h[0] = C
    if adaptive:
        h[1] = -1.0
        A[1, n:] = balance
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
    return (
        x[:n],
        scale * rows[1] if adaptive else 1.0,
        scale * rows[0],
        beta,
        error <= USABLE,
    )


# -- the loop over rows in memory ------------------------------------------------------


@njit()
def _relabel(F, y, shares, mean, inverse, planes, members, count, signs):
    """Change the planes by the rows whose label changes."""
    p = F.shape[1]
    any_row = False
    for i in range(F.shape[0]):
        if y[i] == signs[i]:
            continue
        for k in range(count):
            plane = planes[k]
            member = y[i] * (_dot(F[i], plane[:p]) + plane[p]) <= plane[p + 1]
            before = shares[i] * members[k, i]
            after = shares[i] if member else 0.0
            signed = after * y[i] - before * signs[i]
            plane[p + 2] += after - before
            if signed != 0.0:
                _add_scaled(plane[p + 3 : 2 * p + 3], F[i], signed)
                _add_scaled(plane[p + 3 : 2 * p + 3], mean, -signed)
            members[k, i] = member
        signs[i] = y[i]
        any_row = True
    for k in range(count if any_row else 0):
        _represent(planes[k], inverse, p)


@njit()
def _represent(plane, inverse, p):
    """The coefficients of a plane on the basis, from its inner products with the basis."""
    for j in range(p):
        plane[2 * p + 3 + j] = _dot(inverse[j], plane[p + 3 : 2 * p + 3])


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
    last = lowers.shape[0] - 1
    best = -np.inf
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
def _combine(planes, multipliers, gram, mean, hyperplane):
    """Write the hyperplane of some multipliers, of mean decision value 0; its |w|²."""
    p = mean.shape[0]
    norm2 = 0.0
    hyperplane[:] = 0.0
    for k in range(multipliers.shape[0]):
        _add_scaled(hyperplane[:p], planes[k, 2 * p + 3 :], multipliers[k])
        norm2 += multipliers[k] * _dot(multipliers, gram[k])
    hyperplane[p] = -_dot(mean, hyperplane[:p])
    return max(0.0, norm2)


@njit()
def _append(planes, gram, count, hyperplane, entry, row_sum, mean, inverse):
    """Make a plane of the rows that the last sweep found, and its products with the others."""
    p = mean.shape[0]
    plane = planes[count]
    _copy(hyperplane, plane)
    plane[p + 1], plane[p + 2] = entry[1], entry[5]
    for j in range(p):
        plane[p + 3 + j] = row_sum[j] - entry[6] * mean[j]
    _represent(plane, inverse, p)
    for k in range(count + 1):
        gram[k, count] = gram[count, k] = _dot(
            planes[k, p + 3 : 2 * p + 3], plane[2 * p + 3 :]
        )


@njit()
def _add_planes(
    F, y, shares, mean, inverse, planes, members, count, C, eta, least_norm2, history
):
    """The cutting-plane loop; the history has room for its sweeps, and the planes for as many more."""
    p = F.shape[1]
    sweeps = 0
    status = CONVERGED
    gram = np.empty((planes.shape[0], planes.shape[0]))
    idle = np.zeros(planes.shape[0], np.int64)
    multipliers = np.zeros(0)
    hyperplane = np.zeros(p + 1)
    for k in range(count):
        for other in range(k + 1):
            gram[k, other] = gram[other, k] = _dot(
                planes[k, p + 3 : 2 * p + 3], planes[other, 2 * p + 3 :]
            )
    while True:
        s = planes[:count, p + 2]
        found, rho, xi, _, solved = plane_qp(gram, s, s, C, 0.0, True)
        if (
            not solved
        ):  # the last plane was too close to the others, or nothing is feasible
            status = STALLED if sweeps > 0 else UNSOLVED
            break
        multipliers = found
        norm2 = _combine(planes, found, gram, mean, hyperplane)
        entry = history[sweeps]
        entry[0] = count
        entry[1] = rho
        entry[2] = xi
        entry[3] = norm2
        entry[4] = norm2 / 2 - rho + C * max(0.0, xi)
        rows = F, y, shares, hyperplane[:p], hyperplane[p], rho
        member, row_sum, means = most_violated_constraint(*rows)
        _copy(means[:6], entry[5:])
        sweeps += 1
        if norm2 < least_norm2:
            status = DEGENERATE
            break
        if entry[7] <= max(xi, 0.0) + eta * rho:
            break
        if sweeps == history.shape[0] or stalls(history[:sweeps, 4]):
            status = STALLED
            break
        count = _drop(planes, members, gram, idle, count_idle(idle, multipliers, C))
        idle[count] = 0
        _copy(member, members[count])
        _append(planes, gram, count, hyperplane, entry, row_sum, mean, inverse)
        count += 1
    return count, sweeps, status, multipliers, hyperplane


@njit()
def sample_subproblem(
    F, y, shares, mean, inverse, planes, members, signs, C, eta, norm2, most_planes
):
    """The cutting-plane loop over rows in memory, with an adaptive threshold.

    Wu & Zhang, Alg. 1-3, with labels that stay fixed while planes are added.

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
    planes : ndarray of shape (planes, columns), float64
        Cutting planes: normal vector, offset and rho of the hyperplane that generated
        each, s, centred inner products with the basis, coefficients on it: 3 p + 3. The
        first is 0 but for an infinite rho.
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
        Most cutting planes added.

    Returns
    -------
    planes, members, signs : ndarray
        The planes at the end, and the labels that they have.
    multipliers, hyperplane : ndarray of shape (solved,) and (p + 1,), float64
        Solution of the last QP; the last value is the offset.
    history : ndarray of shape (sweeps, 11), float64
        A row for each sweep: planes, rho, xi, |w|², lower bound; of the most violated
        constraint share, signed share and violation; share with f >= 0, share that
        changes, mean hinge.
    status : int
        How it ended: 0 converged, 1 stalled, 2 degenerate, 3 without a solution of the
        QP.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import sample_subproblem
    >>> F, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1, -1, 1, 1], np.int8)
    >>> rows = F, y, np.full(4, 0.25), F.mean(axis=0), np.eye(1)
    >>> planes = np.array([[0.0, 0.0, np.inf, 0.0, 0.0, 0.0]])
    >>> state = planes, np.zeros((1, 4), np.int8), np.zeros(4, np.int8)
    >>> *_, hyperplane, _, status = sample_subproblem(*rows, *state, 1.01, 0.01, 1e-9, 100)
    >>> status, bool(((F @ hyperplane[:1] > 0) == (y > 0)).all())
    (0, True)
    """
    (count, columns), room, signs = (
        planes.shape,
        planes.shape[0] + most_planes,
        signs.copy(),
    )
    kept = np.empty((room, columns))
    inside = np.empty((room, F.shape[0]), np.int8)
    history = np.empty((most_planes + 1, 11))
    for k in range(count):
        _copy(planes[k], kept[k])
        _copy(members[k], inside[k])
    given = F, y, shares, mean, inverse, kept, inside, count
    _relabel(*given, signs)
    count, sweeps, status, multipliers, hyperplane = _add_planes(
        *given, C, eta, norm2, history
    )
    state = kept[:count].copy(), inside[:count].copy(), signs
    return *state, multipliers, hyperplane, history[:sweeps].copy(), status
