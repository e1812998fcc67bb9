"""Chebyshev filters of the spectrum of a sparse matrix: they raise eigenvalues near 1 above the others."""

import numpy as np

from mmcnb._numba import VECTORISED, njit


# Sums are of the dtype of the values: what a filter leaves out is corrected by the next one.
@njit(fastmath=VECTORISED)
def _recur(data, indices, indptr, now, older, factors):
    """``factors[0] * S @ now - factors[1] * now - factors[2] * older`` takes the place of ``older``."""
    a, b, c = factors
    for i in range(now.shape[0]):
        out, own = older[i], now[i]
        for t in range(out.size):
            out[t] = -c * out[t] - b * own[t]
        j, last = indptr[i], indptr[i + 1]
        while j + 4 <= last:
            one, two = now[indices[j]], now[indices[j + 1]]
            three, four = now[indices[j + 2]], now[indices[j + 3]]
            u, v, w, x = a * data[j], a * data[j + 1], a * data[j + 2], a * data[j + 3]
            for t in range(out.size):
                out[t] += u * one[t] + v * two[t] + w * three[t] + x * four[t]
            j += 4
        while j < last:
            one, u = now[indices[j]], a * data[j]
            for t in range(out.size):
                out[t] += u * one[t]
            j += 1


@njit()
def chebyshev_filter(data, indices, indptr, values, low, high, degree):
    """A Chebyshev polynomial of a square matrix S, times some vectors.

    The polynomial is small on an interval, rises steeply above it, and is 1 at 1.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Values of S in CSR form, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, rows)
        Their columns, in any order.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising from at least 0 to at most stored
        Where the values of each row start in ``data``, and where the last ones end.
    values : ndarray of shape (rows, c), float32 or float64
        The vectors, one a column.
    low, high : float
        The interval, below 1.
    degree : int, at least 1
        Degree of the polynomial.

    Returns
    -------
    ndarray of shape (rows, c), of the dtype of the vectors
        T((S - m) / e) @ values / T((1 - m) / e), with T the polynomial, m the middle of the interval and e
        half of its length.

    References
    ----------
    Y. Zhou and Y. Saad, A Chebyshev-Davidson algorithm for large symmetric eigenproblems, Alg. 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import chebyshev_filter
    >>> diagonal = np.array([1.0, 0.2]), np.array([0, 1]), np.array([0, 1, 2])
    >>> chebyshev_filter(*diagonal, np.ones((2, 1)), -0.5, 0.5, 4).ravel().round(3)
    array([ 1.  , -0.001])
    """
    middle, half = (low + high) / 2, (high - low) / 2
    sigma = half / (1 - middle)
    first, older, now = sigma, np.zeros_like(values), values.copy()
    factors = np.empty(3, values.dtype)
    for step in range(degree):
        if step == 0:
            scale, share = sigma / half, 0.0
        else:
            following = 1 / (2 / first - sigma)
            scale, share = 2 * following / half, sigma * following
            sigma = following
        factors[0], factors[1], factors[2] = scale, scale * middle, share
        _recur(data, indices, indptr, now, older, factors)
        older, now = now, older
    return now
