"""Kernel values between a block of rows and a few basis vectors, written into an array.

- ``rbf_kernel_block_into(X, B, gamma, out)``: exp(-gamma |x - b|²)
- ``rbf_kernel_block_csr_into(data, indices, indptr, B_T, b_norms, gamma, out)``
- ``linear_kernel_block_into(X, B, out)``: x·b
- ``linear_kernel_block_csr_into(data, indices, indptr, B_T, out)``
- ``polynomial_kernel_block_into(X, B, gamma, coef0, degree, out)``: (gamma x·b + coef0)^degree
- ``polynomial_kernel_block_csr_into(data, indices, indptr, B_T, gamma, coef0, degree, out)``

X is (rows, d) and B is (p, d), C-ordered, float32 or float64; ``out`` is (rows, p), float32 or
float64, and is overwritten. Rows in CSR form may hold their columns in any order; the twins take the
basis transposed, ``B_T = np.ascontiguousarray(B.T)``, and ``b_norms = squared_norms(B)``, so that
blocks which share a basis share that work. `mmcnb.kernels.blocks` returns new arrays instead.

A block gives the same bits in whatever thread it is computed, as long as BLAS runs single-threaded.
"""

import math

import numpy as np

from mmcnb._numba import VECTORISED, njit

__all__ = [
    "linear_kernel_block_csr_into",
    "linear_kernel_block_into",
    "polynomial_kernel_block_csr_into",
    "polynomial_kernel_block_into",
    "rbf_kernel_block_csr_into",
    "rbf_kernel_block_into",
    "squared_norms",
]

TILE_ROWS = 256  # the shifted rows and their products stay in the second-level cache
TILE_VALUES = 2**20  # bounds the memory of a tile of many columns

# exp of float32, exp(r + n ln 2) = 2^n exp(r) with |r| <= ln 2 / 2: coefficients of Cephes' expf.
LOG2_E = np.float32(1.44269504088896341)
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
EXP_2 = np.float32(5.0000001201e-1)
EXP_3 = np.float32(1.6666665459e-1)
EXP_4 = np.float32(4.1665795894e-2)
EXP_5 = np.float32(8.3334519073e-3)
EXP_6 = np.float32(1.3981999507e-3)
EXP_7 = np.float32(1.9875691500e-4)
ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)
LOWEST = np.float32(-87)  # below, exp is no normal float32 and becomes 0
ROUND = np.float32(1.5 * 2**23)  # adding it leaves the nearest whole number in the low bits
ONE_BITS = 127 << 23

# The same for float64, with as many terms of the Taylor series as float64 can see.
LOG2_E_64 = 1.44269504088896341
LN2_HIGH_64 = 6.93145751953125e-1
LN2_LOW_64 = 1.42860682030941723e-6
TAYLOR = tuple(1 / math.factorial(k) for k in range(14))
LOWEST_64 = -708.0
ROUND_64 = 1.5 * 2.0**52
ONE_BITS_64 = 1023 << 52


# "reassoc" would undo the rounding by ROUND.
@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_float32(x):
    clamped = LOWEST if x < LOWEST else x  # written so that NaN stays NaN
    rounded = clamped * LOG2_E + ROUND
    n = rounded - ROUND
    r = clamped - n * LN2_HIGH - n * LN2_LOW
    tail = EXP_2 + r * (EXP_3 + r * (EXP_4 + r * (EXP_5 + r * (EXP_6 + r * EXP_7))))
    power = np.int32((np.float32(rounded).view(np.int32) << 23) + ONE_BITS).view(np.float32)
    return ZERO if x < LOWEST else (ONE + (r + r * r * tail)) * power


@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_float64(x):
    clamped = LOWEST_64 if x < LOWEST_64 else x
    rounded = clamped * LOG2_E_64 + ROUND_64
    n = rounded - ROUND_64
    r = clamped - n * LN2_HIGH_64 - n * LN2_LOW_64
    tail = TAYLOR[9] + r * (TAYLOR[10] + r * (TAYLOR[11] + r * (TAYLOR[12] + r * TAYLOR[13])))
    tail = TAYLOR[5] + r * (TAYLOR[6] + r * (TAYLOR[7] + r * (TAYLOR[8] + r * tail)))
    tail = TAYLOR[2] + r * (TAYLOR[3] + r * (TAYLOR[4] + r * tail))
    power = np.int64((np.float64(rounded).view(np.int64) << 52) + ONE_BITS_64).view(np.float64)
    return 0.0 if x < LOWEST_64 else (1.0 + (r + r * r * tail)) * power


@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_distances(products, x_norm, b_norms, out):
    """exp of 2 x·b - |x|² - |b|², at most 1, for one row."""
    if out.itemsize == 4:
        for j in range(out.size):
            exponent = np.float32(TWO * products[j] - (x_norm + b_norms[j]))
            out[j] = _exp_float32(ZERO if exponent > ZERO else exponent)
    else:
        for j in range(out.size):
            exponent = np.float64(TWO * products[j] - (x_norm + b_norms[j]))
            out[j] = _exp_float64(0.0 if exponent > 0.0 else exponent)


@njit(fastmath=VECTORISED)
def _squared_norm(x):
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * np.float64(x[j])
    return total


@njit()
def squared_norms(X):
    """Squared Euclidean norm of each row.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64

    Returns
    -------
    ndarray of shape (n,), float64

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import squared_norms
    >>> squared_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    norms = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        norms[i] = _squared_norm(X[i])
    return norms


@njit(fastmath=VECTORISED)
def _rbf_by_differences(x, B, gamma, out):
    for k in range(B.shape[0]):
        distance = 0.0
        for j in range(x.size):
            difference = np.float64(x[j]) - np.float64(B[k, j])
            distance += difference * difference
        out[k] = math.exp(-gamma * distance)


@njit()
def _scale_rows(X, centre, scale, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = (X[i, j] - centre[j]) * scale


@njit()
def rbf_kernel_block_into(X, B, gamma, out):
    """Gaussian kernel between the rows of a block and the basis, exp(-gamma |x - b|²), into ``out``.

    Rows and basis are shifted by the mean of the basis and scaled by sqrt(gamma), so that one matrix
    product per tile gives the distances whatever the distance of the data from the origin. Rows so
    far from the basis that the product would lose the distance are computed by differences.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    gamma : float
        1/(2 sigma²).
    out : ndarray of shape (rows, p), float32 or float64
        Distances are computed in the dtype of X. The absolute error stays below 1e-3 for float32 X
        in the worst case, and a few 1e-6 where |x - mean(B)| is a few sigma. float32 values below
        exp(-87) are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import rbf_kernel_block_into
    >>> out = np.empty((1, 2), dtype=np.float32)
    >>> rbf_kernel_block_into(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 2.0]]), 1.0, out)
    >>> out.round(4)
    array([[1.    , 0.3679]], dtype=float32)
    """
    rows, d = X.shape
    p = B.shape[0]
    # The error of the product is about eps |x|²: up to here it is harmless.
    far = 2.0**10 if X.itemsize == 4 else 2.0**24
    centre = np.zeros(d, dtype=X.dtype)
    for j in range(d):
        total = 0.0
        for k in range(p):
            total += B[k, j]
        centre[j] = total / p
    scale = X.dtype.type(math.sqrt(gamma))

    scaled_B = np.empty((p, d), dtype=X.dtype)
    _scale_rows(B, centre, scale, scaled_B)
    b_norms = np.empty(p, dtype=X.dtype)
    for k in range(p):
        b_norms[k] = _squared_norm(scaled_B[k])
        if not b_norms[k] <= 4 * far:  # then the kernel is 0 for every row that is not far
            scaled_B[k] = 0
            b_norms[k] = np.inf

    tile_rows = max(16, min(TILE_ROWS, TILE_VALUES // d))
    tile = np.empty((tile_rows, d), dtype=X.dtype)
    products = np.empty((tile_rows, p), dtype=X.dtype)
    for start in range(0, rows, tile_rows):
        n = min(tile_rows, rows - start)
        _scale_rows(X[start : start + n], centre, scale, tile[:n])
        np.dot(tile[:n], scaled_B.T, products[:n])
        for i in range(n):
            x_norm = X.dtype.type(_squared_norm(tile[i]))
            if x_norm <= far:
                _exp_distances(products[i], x_norm, b_norms, out[start + i])
            else:  # NaN comes here too, and stays NaN
                _rbf_by_differences(X[start + i], B, gamma, out[start + i])


@njit(fastmath=VECTORISED)
def _csr_products(data, indices, start, stop, B_T, products):
    """x·b for one row and all basis vectors."""
    products[:] = 0
    whole = start + (stop - start) // 4 * 4
    for s in range(start, whole, 4):  # four at a time: a quarter of the loads and stores of products
        x0, x1 = np.float64(data[s]), np.float64(data[s + 1])
        x2, x3 = np.float64(data[s + 2]), np.float64(data[s + 3])
        b0, b1, b2, b3 = B_T[indices[s]], B_T[indices[s + 1]], B_T[indices[s + 2]], B_T[indices[s + 3]]
        for j in range(products.size):
            products[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j]
    for s in range(whole, stop):
        x0, b0 = np.float64(data[s]), B_T[indices[s]]
        for j in range(products.size):
            products[j] += x0 * b0[j]


@njit()
def rbf_kernel_block_csr_into(data, indices, indptr, B_T, b_norms, gamma, out):
    """Gaussian kernel between the rows of a CSR block and the basis, into ``out``.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order, none twice in a row; ``indptr`` may start above 0.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    b_norms : ndarray of shape (p,), float64
        ``squared_norms(B)``.
    gamma : float
        1/(2 sigma²).
    out : ndarray of shape (rows, p), float32 or float64
        Distances are computed in float64. float32 values below exp(-87) are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import rbf_kernel_block_csr_into, squared_norms
    >>> row, out = (np.array([1.0]), np.array([1]), np.array([0, 1])), np.empty((1, 2))
    >>> B = np.array([[0.0, 1.0], [0.0, 2.0]])
    >>> rbf_kernel_block_csr_into(*row, np.ascontiguousarray(B.T), squared_norms(B), 1.0, out)
    >>> out.round(4)
    array([[1.    , 0.3679]])
    """
    scaled_norms = gamma * b_norms
    products = np.empty(B_T.shape[1])
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        _csr_products(data, indices, start, stop, B_T, products)
        x_norm = gamma * _squared_norm(data[start:stop])
        products *= gamma
        _exp_distances(products, x_norm, scaled_norms, out[i])


@njit()
def linear_kernel_block_into(X, B, out):
    """Inner products of the rows of a block with the basis, x·b, into ``out``.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    out : ndarray of shape (rows, p), float32 or float64
        Products are computed in the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import linear_kernel_block_into
    >>> out = np.empty((1, 2))
    >>> linear_kernel_block_into(np.array([[3.0, 1.0]]), np.eye(2), out)
    >>> out
    array([[3., 1.]])
    """
    B_T = B.T.astype(X.dtype)
    for start in range(0, X.shape[0], TILE_ROWS):
        stop = min(start + TILE_ROWS, X.shape[0])
        out[start:stop] = np.dot(X[start:stop], B_T)


@njit()
def linear_kernel_block_csr_into(data, indices, indptr, B_T, out):
    """Inner products of the rows of a CSR block with the basis, x·b, into ``out``.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order; ``indptr`` may start above 0.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    out : ndarray of shape (rows, p), float32 or float64
        Products are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import linear_kernel_block_csr_into
    >>> out = np.empty((1, 2))
    >>> linear_kernel_block_csr_into(np.array([3.0]), np.array([1]), np.array([0, 1]), np.eye(2), out)
    >>> out
    array([[0., 3.]])
    """
    products = np.empty(B_T.shape[1])
    for i in range(indptr.size - 1):
        _csr_products(data, indices, indptr[i], indptr[i + 1], B_T, products)
        out[i] = products


@njit()
def _power(products, gamma, coef0, degree, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            base = gamma * products[i, j] + coef0
            power = 1.0
            for _ in range(degree):
                power *= base
            out[i, j] = power


@njit()
def polynomial_kernel_block_into(X, B, gamma, coef0, degree, out):
    """Polynomial kernel between the rows of a block and the basis, (gamma x·b + coef0)^degree.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    gamma, coef0 : float
    degree : int
        At least 0.
    out : ndarray of shape (rows, p), float32 or float64
        Products are computed in the dtype of X, powers in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import polynomial_kernel_block_into
    >>> out = np.empty((1, 2))
    >>> polynomial_kernel_block_into(np.array([[3.0, 1.0]]), np.eye(2), 1.0, 1.0, 2, out)
    >>> out
    array([[16.,  4.]])
    """
    B_T = B.T.astype(X.dtype)
    for start in range(0, X.shape[0], TILE_ROWS):
        stop = min(start + TILE_ROWS, X.shape[0])
        _power(np.dot(X[start:stop], B_T), gamma, coef0, degree, out[start:stop])


@njit()
def polynomial_kernel_block_csr_into(data, indices, indptr, B_T, gamma, coef0, degree, out):
    """Polynomial kernel between the rows of a CSR block and the basis, into ``out``.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order; ``indptr`` may start above 0.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    gamma, coef0 : float
    degree : int
        At least 0.
    out : ndarray of shape (rows, p), float32 or float64
        Computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import polynomial_kernel_block_csr_into
    >>> row, out = (np.array([3.0]), np.array([1]), np.array([0, 1])), np.empty((1, 2))
    >>> polynomial_kernel_block_csr_into(*row, np.eye(2), 1.0, 1.0, 2, out)
    >>> out
    array([[ 1., 16.]])
    """
    products = np.empty((1, B_T.shape[1]))
    for i in range(indptr.size - 1):
        _csr_products(data, indices, indptr[i], indptr[i + 1], B_T, products[0])
        _power(products, gamma, coef0, degree, out[i : i + 1])
