"""The kernels of `mmcnb.kernels.pairwise` for use by hand: each returns a new array.

These are plain functions around the compiled ones: they bring the arguments into the layout and the
types for which those are compiled.
"""

import numpy as np

from mmcnb.kernels.pairwise import (
    column_tiles,
    linear_kernel_block_csr_into,
    linear_kernel_block_into,
    polynomial_kernel_block_csr_into,
    polynomial_kernel_block_into,
    rbf_kernel_block_csr_into,
    rbf_kernel_block_into,
    squared_norms,
)

__all__ = [
    "linear_kernel_block",
    "linear_kernel_block_csr",
    "polynomial_kernel_block",
    "polynomial_kernel_block_csr",
    "rbf_kernel_block",
    "rbf_kernel_block_csr",
]


def rbf_kernel_block(X: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    """Gaussian kernel between the rows of a block and the basis, exp(-gamma |x - b|²).

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    gamma : float
        1/(2 sigma²).

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of X; for the accuracy see `rbf_kernel_block_into`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import rbf_kernel_block
    >>> rbf_kernel_block(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 2.0]]), gamma=1.0).round(4)
    array([[1.    , 0.3679]])
    """
    X, B, out = _dense(X, B)
    rbf_kernel_block_into(X, B, float(gamma), out)
    return out


def rbf_kernel_block_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, B: np.ndarray, gamma: float
) -> np.ndarray:
    """Gaussian kernel between the rows of a CSR block and the basis: twin of `rbf_kernel_block`.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order, none twice in a row.
    B : ndarray of shape (p, d), float32 or float64
    gamma : float
        1/(2 sigma²).

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of data.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import rbf_kernel_block_csr
    >>> row = np.array([1.0]), np.array([1]), np.array([0, 1])
    >>> rbf_kernel_block_csr(*row, np.array([[0.0, 1.0], [0.0, 2.0]]), gamma=1.0).round(4)
    array([[1.    , 0.3679]])
    """
    B_T, out = _csr(data, indptr, B)
    b_norms = squared_norms(np.ascontiguousarray(B))
    rbf_kernel_block_csr_into(data, indices, indptr, B_T, b_norms, column_tiles(B), float(gamma), out)
    return out


def linear_kernel_block(X: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Inner products of the rows of a block with the basis, x·b.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import linear_kernel_block
    >>> linear_kernel_block(np.array([[3.0, 1.0]]), np.eye(2))
    array([[3., 1.]])
    """
    X, B, out = _dense(X, B)
    linear_kernel_block_into(X, B, out)
    return out


def linear_kernel_block_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, B: np.ndarray
) -> np.ndarray:
    """Inner products of the rows of a CSR block with the basis: twin of `linear_kernel_block`.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order.
    B : ndarray of shape (p, d), float32 or float64

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of data.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import linear_kernel_block_csr
    >>> linear_kernel_block_csr(np.array([3.0]), np.array([1]), np.array([0, 1]), np.eye(2))
    array([[0., 3.]])
    """
    B_T, out = _csr(data, indptr, B)
    linear_kernel_block_csr_into(data, indices, indptr, B_T, out)
    return out


def polynomial_kernel_block(
    X: np.ndarray, B: np.ndarray, gamma: float, coef0: float, degree: int
) -> np.ndarray:
    """Polynomial kernel between the rows of a block and the basis, (gamma x·b + coef0)^degree.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
    B : ndarray of shape (p, d), float32 or float64
    gamma, coef0 : float
    degree : int
        At least 0.

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import polynomial_kernel_block
    >>> polynomial_kernel_block(np.array([[3.0, 1.0]]), np.eye(2), gamma=1.0, coef0=1.0, degree=2)
    array([[16.,  4.]])
    """
    X, B, out = _dense(X, B)
    polynomial_kernel_block_into(X, B, float(gamma), float(coef0), int(degree), out)
    return out


def polynomial_kernel_block_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    B: np.ndarray,
    gamma: float,
    coef0: float,
    degree: int,
) -> np.ndarray:
    """Polynomial kernel between the rows of a CSR block and the basis: twin of `polynomial_kernel_block`.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The rows, columns in any order, none twice in a row.
    B : ndarray of shape (p, d), float32 or float64
    gamma, coef0 : float
    degree : int
        At least 0.

    Returns
    -------
    ndarray of shape (rows, p)
        Of the dtype of data.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import polynomial_kernel_block_csr
    >>> row = np.array([3.0]), np.array([1]), np.array([0, 1])
    >>> polynomial_kernel_block_csr(*row, np.eye(2), gamma=1.0, coef0=1.0, degree=2)
    array([[ 1., 16.]])
    """
    B_T, out = _csr(data, indptr, B)
    polynomial_kernel_block_csr_into(data, indices, indptr, B_T, float(gamma), float(coef0), int(degree), out)
    return out


def _dense(X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.ascontiguousarray(X), np.ascontiguousarray(B), np.empty((X.shape[0], B.shape[0]), X.dtype)


def _csr(data: np.ndarray, indptr: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(B.T), np.empty((indptr.size - 1, B.shape[0]), data.dtype)
