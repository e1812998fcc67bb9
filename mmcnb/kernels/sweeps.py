"""Sums over the rows of one block, for the cutting-plane loop.

A row of ``F`` holds the features of one sample: its kernel values against the
basis vectors, or the sample itself where the kernel is linear. A hyperplane is
``f(x) = F(x) . coef + offset``. Every routine reads its block once, adds up in
float64 (`plane_sums` says where not) and returns small arrays. The caller adds those
in block order. The ``_csr`` twins take the rows of a CSR matrix. Arrays are C-ordered.

Most violated constraint: Wu & Zhang, eq. (12), with the labels ``y`` held fixed.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, Array, Number, Rows, Signs, takes

ROW_TILE = 64  # rows whose float32 sums are added in float64

FEATURES = Rows("(rows, p)", FLOATS)
LABELLED = {"y": Signs("(rows,)", "int8"), "weights": Array("(rows,)", "float64", least=0)}
HYPERPLANE = {"coef": Array("(p,)", "float64"), "offset": Number(), "rho": Number(finite=False)}
HYPERPLANES = {
    "coefs": Array("(p, planes)", "float64"),
    "offsets": Array("(planes,)", "float64"),
    "rhos": Array("(planes,)", "float64"),
}


@njit(fastmath=VECTORISED)
def _dot(row, coef):
    total = 0.0
    for j in range(coef.shape[0]):
        total += row[j] * coef[j]
    return total


@njit(fastmath=VECTORISED)
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


@njit()
def _dot_csr(data, indices, begin, end, coef):
    total = 0.0
    for position in range(begin, end):
        total += data[position] * coef[indices[position]]
    return total


# A branch a row would be guessed wrongly for every other row, which costs as much as its products.
@njit(fastmath=VECTORISED)
def _count_rows(f, y, weights, rho):
    """Rows in the plane, and the seven sums of `most_violated_constraint`, from the decision values."""
    active = np.empty(f.shape[0], np.int8)
    inside = inside_y = violation = above = changed = hinge = weight = 0.0
    for i in range(f.shape[0]):
        margin, share = y[i] * f[i], weights[i]
        violated = margin <= rho
        active[i] = violated
        inside += share if violated else 0.0
        inside_y += share * y[i] if violated else 0.0
        violation += share * (rho - margin) if violated else 0.0
        above += share if f[i] >= 0.0 else 0.0
        changed += share if (f[i] >= 0.0) != (y[i] > 0) else 0.0
        hinge += max(0.0, share * (rho - abs(f[i])))
        weight += share
    return active, np.array([inside, inside_y, violation, above, changed, hinge, weight])


@njit(fastmath=VECTORISED)
def _weighted_sum(F, rows, scales):
    """Sum of some rows of F, four at a time: a quarter of the loads and stores of the total."""
    total = np.zeros(F.shape[1], np.float64)
    whole = rows.shape[0] // 4 * 4
    for r in range(0, whole, 4):
        i0, i1, i2, i3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        c0, c1, c2, c3 = scales[i0], scales[i1], scales[i2], scales[i3]
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
        f[i] = _dot_csr(data, indices, indptr[i], indptr[i + 1], coef) + offset
    return f


@njit()
@takes(F=FEATURES, **LABELLED, **HYPERPLANE)
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
@takes(F=FEATURES, **LABELLED, **HYPERPLANES)
def plane_sums(F, y, weights, coefs, offsets, rhos):
    """Rebuild several planes under the labels ``y`` from the hyperplanes that generated them.

    Plane k holds the rows with ``y f_k <= rho_k``. With c_k 1 for these rows and 0 for others, its row sum is
    Σ_i c_ki y_i F_i (Wu & Zhang, eq. (18)), t is Σ_i c_ki y_i (eq. (19)) and s is Σ_i c_ki.

    Any choice of rows is a valid plane, so planes found under other labels stay useful after a change. Rows
    are chosen by decision values in the dtype of F: a row that other values would choose otherwise lies at
    the threshold, where it adds no violation.

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
    rows, planes = F.shape[0], offsets.shape[0]
    s, t = np.zeros(planes, np.float64), np.zeros(planes, np.float64)
    row_sums = np.zeros((planes, F.shape[1]), np.float64)
    largest = 0.0  # weights that are all equal become 1, which float32 holds exactly
    for i in range(rows):
        largest = max(largest, weights[i])
    shares, normals = weights / (largest if largest > 0.0 else 1.0), coefs.astype(F.dtype)
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
    s, t = np.zeros(planes, np.float64), np.zeros(planes, np.float64)
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
