"""Sums over the rows of one block, for the estimation of basis vectors.

The fixed point of Wu & Zhang, eq. (46) and (47), moves a basis vector b to a weighted mean of rows
with the weights z_i K(x_i, b). Numerator and denominator are sums over rows: each routine returns
those of its block in float64, and the caller adds them in block order. The weights z may have mixed
signs, so the denominator can vanish: the caller decides what to do then. The ``_csr`` twins take the
rows of a CSR matrix. Arrays are C-ordered.
"""

import math

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, Array, Number, Rows, takes


@njit(fastmath=VECTORISED)
def _squared_distance(x, b):
    total = 0.0
    for j in range(x.size):
        difference = np.float64(x[j]) - b[j]
        total += difference * difference
    return total


@njit()
def _add_row(total, x, weight):
    for j in range(x.size):
        total[j] += weight * x[j]


@njit()
@takes(
    X=Rows("(rows, d)", FLOATS),
    z=Array("(rows,)", "float64"),
    b=Array("(d,)", "float64"),
    gamma=Number(least=0),
)
def basis_fixed_point_sums(X, z, b, gamma):
    """Numerator and denominator of the fixed point for a basis vector of the Gaussian kernel.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64, or rows in CSR form
        A block of rows.
    z : ndarray of shape (rows,), float64
        Their coefficients in Psi, of either sign.
    b : ndarray of shape (d,), float64
        The basis vector now.
    gamma : float, at least 0
        1/(2 sigma²).

    Returns
    -------
    numerator : ndarray of shape (d,), float64
        Sum of z_i K(x_i, b) x_i: Wu & Zhang, eq. (47).
    denominator : float
        Sum of z_i K(x_i, b).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import basis_fixed_point_sums
    >>> X = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> numerator, denominator = basis_fixed_point_sums(X, np.ones(2), np.array([2.0, 0.0]), 0.5)
    >>> numerator / denominator
    array([2., 0.])
    """
    numerator = np.zeros(X.shape[1])
    denominator = 0.0
    for i in range(X.shape[0]):
        weight = z[i] * math.exp(-gamma * _squared_distance(X[i], b))
        denominator += weight
        _add_row(numerator, X[i], weight)
    return numerator, denominator


@njit()
def basis_fixed_point_sums_csr(data, indices, indptr, z, b, gamma):
    """Numerator and denominator of the fixed point on CSR rows: twin of `basis_fixed_point_sums`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Their columns, in any order, none twice in a row.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where each row starts in ``data``, and where the last one ends.
    z : ndarray of shape (rows,), float64
    b : ndarray of shape (d,), float64
    gamma : float, at least 0
        As in `basis_fixed_point_sums`.

    Returns
    -------
    numerator, denominator
        As in `basis_fixed_point_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import basis_fixed_point_sums_csr
    >>> rows = np.array([1.0, 3.0]), np.array([0, 0]), np.array([0, 1, 2])
    >>> numerator, denominator = basis_fixed_point_sums_csr(*rows, np.ones(2), np.array([2.0, 0.0]), 0.5)
    >>> numerator / denominator
    array([2., 0.])
    """
    numerator = np.zeros(b.size)
    denominator = 0.0
    b_norm = 0.0
    for j in range(b.size):
        b_norm += b[j] * b[j]
    for i in range(indptr.size - 1):
        distance = b_norm
        for s in range(indptr[i], indptr[i + 1]):
            distance += data[s] * (data[s] - 2.0 * b[indices[s]])
        distance = 0.0 if distance < 0.0 else distance  # written so that NaN stays NaN
        weight = z[i] * math.exp(-gamma * distance)
        denominator += weight
        for s in range(indptr[i], indptr[i + 1]):
            numerator[indices[s]] += weight * data[s]
    return numerator, denominator


@njit()
@takes(X=Rows("(rows, d)", FLOATS), z=Array("(rows,)", "float64"))
def weighted_row_sum(X, z):
    """Weighted sum of the rows of a block.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64, or rows in CSR form
    z : ndarray of shape (rows,), float64

    Returns
    -------
    ndarray of shape (d,), float64
        Sum of z_i x_i.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import weighted_row_sum
    >>> weighted_row_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0]))
    array([-2., -2.])
    """
    total = np.zeros(X.shape[1])
    for i in range(X.shape[0]):
        _add_row(total, X[i], z[i])
    return total


@njit()
def weighted_row_sum_csr(data, indices, indptr, z, n_features):
    """Weighted sum of CSR rows: twin of `weighted_row_sum`.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where each row starts in ``data``, and where the last one ends.
    z : ndarray of shape (rows,), float64
    n_features : int, at least 1

    Returns
    -------
    ndarray of shape (n_features,), float64
        Sum of z_i x_i.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import weighted_row_sum_csr
    >>> rows = np.array([1.0, 3.0]), np.array([0, 1]), np.array([0, 1, 2])
    >>> weighted_row_sum_csr(*rows, np.array([1.0, -1.0]), 3)
    array([ 1., -3.,  0.])
    """
    total = np.zeros(n_features)
    for i in range(indptr.size - 1):
        for s in range(indptr[i], indptr[i + 1]):
            total[indices[s]] += z[i] * data[s]
    return total
