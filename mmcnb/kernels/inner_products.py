"""Kernels of the inner products of a block of rows with a few basis vectors: linear and polynomial.

X is (rows, d) and B is (p, d), float32 or float64; ``out`` is (rows, p), float32 or float64, and is
overwritten. All arrays are C-ordered. Rows in CSR form may hold their columns in any order; their twins take
the basis transposed. `sklearn.metrics.pairwise` has functions that return new arrays.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, Array, Number, Whole, csr, takes

TILE_ROWS = 256  # rows whose products stay in the second-level cache

POLYNOMIAL = {"gamma": Number(), "coef0": Number(), "degree": Whole()}


# Stands in `mmcnb.kernels.gaussian` too: the compile cache does not see changes of another file.
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
@takes(X=Array("(rows, d)", FLOATS), B=Array("(p, d)", FLOATS), out=Array("(rows, p)", FLOATS, written=True))
def linear_kernel_block_into(X, B, out):
    """Inner products of the rows of a block with the basis, x·b, into ``out``: the linear kernel.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    out : ndarray of shape (rows, p), float32 or float64, overwritten
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
@takes(**csr("d"), B_T=Array("(d, p)", FLOATS), out=Array("(rows, p)", FLOATS, written=True))
def linear_kernel_block_csr_into(data, indices, indptr, B_T, out):
    """Inner products of the rows of a CSR block with the basis, x·b, into ``out``.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where each row starts in ``data``, and where the last one ends.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
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
@takes(
    X=Array("(rows, d)", FLOATS),
    B=Array("(p, d)", FLOATS),
    **POLYNOMIAL,
    out=Array("(rows, p)", FLOATS, written=True),
)
def polynomial_kernel_block_into(X, B, gamma, coef0, degree, out):
    """Polynomial kernel between the rows of a block and the basis, (gamma x·b + coef0)^degree.

    That of Zhao, Kwok and Zhang, *Multiple kernel clustering*, has gamma = coef0 = 1.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    gamma, coef0 : float
    degree : int, at least 0
        At least 0.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
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
@takes(
    **csr("d"),
    B_T=Array("(d, p)", FLOATS),
    **POLYNOMIAL,
    out=Array("(rows, p)", FLOATS, written=True),
)
def polynomial_kernel_block_csr_into(data, indices, indptr, B_T, gamma, coef0, degree, out):
    """Polynomial kernel between the rows of a CSR block and the basis, into ``out``.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of the rows in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where each row starts in ``data``, and where the last one ends.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    gamma, coef0 : float
    degree : int, at least 0
        At least 0.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
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
