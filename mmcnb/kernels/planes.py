"""Rebuild cutting planes under new labels, by sums over the rows of a block.

These routines neither call routines of other files nor are called by them, because
numba's cache only notices changes in the file of a routine, not in the files of the
routines that it calls. Therefore, ``_add_scaled`` is a copy of the function in
`kernels.cutting_plane`.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, Array, FromZero, Rows, Signs, takes

ROW_TILE = 64  # rows that are summed in the dtype of F; tiles are added in float64

PLANES = Array("(planes,)", "float64")  # one number per plane


@njit(fastmath=VECTORISED)
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


@njit()
def _plane_rows(values, y, weights, offsets, rhos, s, t):
    """Overwrite decision values with the rows' plane coefficients; add to s and t."""
    for i in range(values.shape[0]):
        signed = weights[i] * y[i]
        for k in range(values.shape[1]):
            margin = y[i] * (values[i, k] + offsets[k])
            if margin <= rhos[k]:
                values[i, k] = signed
                s[k] += weights[i]
                t[k] += signed
            else:
                values[i, k] = 0.0


@njit()
@takes(
    F=Rows("(rows, p)", FLOATS),
    y=Signs("(rows,)", "int8"),
    weights=FromZero("(rows,)", "float64"),
    coefs=Array("(p, planes)", "float64"),
    offsets=PLANES,
    rhos=PLANES,
)
def plane_sums(F, y, weights, coefs, offsets, rhos):
    """Rebuild planes under the labels ``y`` from the hyperplanes that generated them.

    Plane k contains the rows with ``y f_k <= rho_k``. Let c_ki be 1 for these rows and
    0 for all other rows. The row sum of the plane is Σ_i c_ki y_i F_i (Wu & Zhang, eq.
    (18)), t is Σ_i c_ki y_i (eq. (19)) and s is Σ_i c_ki.

    Any subset of the rows defines a valid plane, so planes remain useful after the
    labels have changed. Decision values are computed in the dtype of F. If their
    rounding errors change whether a row is in the plane, the row is at the threshold,
    where it does not contribute to the violation.

    The sums ``s`` and ``t`` are computed in float64. If F is float32, the row sums of
    64 rows are computed in float32 and then added in float64. With eps = 2^-24, their
    error is at most 66 eps times the sum of ``weights |F|``, and about eps times this
    sum if there are many rows.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64, or rows in CSR form
        Features of the rows.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels of the rows.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    coefs : ndarray of shape (p, planes), float64
        Normal vectors of the hyperplanes.
    offsets, rhos : ndarray of shape (planes,), float64
        Offsets of the hyperplanes, and thresholds of the margin. With an infinite
        threshold, a plane contains every row.

    Returns
    -------
    s, t : ndarray of shape (planes,), float64
        Sum of the weights, and of the weights times y, over the rows of each plane.
    row_sums : ndarray of shape (planes, p), float64
        Weighted sum of ``y F`` over the rows of each plane.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import plane_sums
    >>> F, y = np.array([[1.0], [-3.0]]), np.array([1, -1], np.int8)
    >>> hyperplane = np.ones((1, 1)), np.zeros(1), np.array([np.inf])
    >>> plane_sums(F, y, np.ones(2), *hyperplane)
    (array([2.]), array([0.]), array([[4.]]))
    """
    planes = offsets.shape[0]
    s = np.zeros(planes, np.float64)
    t = np.zeros(planes, np.float64)
    row_sums = np.zeros((planes, F.shape[1]), np.float64)
    # Scale weights so that equal weights become 1, which float32 represents exactly.
    largest = 0.0
    for weight in weights:
        largest = max(largest, weight)
    unit = largest if largest > 0.0 else 1.0
    shares = weights / unit
    normals = coefs.astype(F.dtype)
    for start in range(0, F.shape[0], ROW_TILE):
        rows = slice(start, start + ROW_TILE)
        tile = np.ascontiguousarray(F[rows])
        values = np.dot(tile, normals)
        _plane_rows(values, y[rows], shares[rows], offsets, rhos, s, t)
        row_sums += np.dot(values.T, tile)
    return s * largest, t * largest, row_sums * largest


@njit()
def plane_sums_csr(data, indices, indptr, y, weights, coefs, offsets, rhos):
    """Rebuild planes from CSR rows, like `plane_sums`.

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
    >>> hyperplane = np.ones((1, 1)), np.zeros(1), np.array([np.inf])
    >>> plane_sums_csr(*rows, y, np.ones(2), *hyperplane)[2]
    array([[4.]])
    """
    planes = offsets.shape[0]
    s = np.zeros(planes, np.float64)
    t = np.zeros(planes, np.float64)
    row_sums = np.zeros((coefs.shape[0], planes), np.float64)
    # Decision values of one row, in the shape of a block.
    values = np.empty((1, planes), np.float64)
    row_values = values[0]
    for i in range(indptr.shape[0] - 1):
        row = slice(i, i + 1)
        start = indptr[i]
        stop = indptr[i + 1]
        row_values[:] = 0.0
        for position in range(start, stop):
            column = indices[position]
            _add_scaled(row_values, coefs[column], data[position])
        _plane_rows(values, y[row], weights[row], offsets, rhos, s, t)
        for position in range(start, stop):
            column = indices[position]
            _add_scaled(row_sums[column], row_values, data[position])
    return s, t, np.ascontiguousarray(row_sums.T)
