"""Landmark features: k-means++ sampling, the Nyström map, and kernel centring."""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.errors import InputError
from mmcnb.kernels._checks import FLOATS, Array, FromZero, Number, takes


def _check_finite(arguments):
    if not np.isfinite(arguments["gram"]).all():
        raise InputError("gram has values that are not finite; give finite ones.")


@njit(fastmath=VECTORISED)
def _squared_distance(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        difference = np.float64(a[j]) - np.float64(b[j])
        total += difference * difference
    return total


@njit()
def _draw(masses, target):
    """Return the index of the row at which the cumulative mass exceeds a target."""
    total = 0.0
    last = 0
    for i in range(masses.shape[0]):
        if masses[i] > 0.0:
            total += masses[i]
            last = i
            if total > target:
                break
    return last


@njit()
@takes(
    X=Array("(rows, d)", FLOATS),
    weights=FromZero("(rows,)", "float64"),
    uniforms=FromZero("(k,)", "float64"),
)
def kmeans_plusplus_rows(X, weights, uniforms):
    """Draw rows by k-means++, one for each random number.

    The first row is drawn with probability proportional to its weight. Later rows are
    drawn with probability proportional to their weight times the squared distance to
    the nearest row that was already drawn. An integer weight has the same effect as
    repeating the row.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        The rows to draw from.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    uniforms : ndarray of shape (k,), float64, at least 0
        Uniform random numbers in [0, 1), for instance from
        ``numpy.random.Generator.random``.

    Returns
    -------
    ndarray of shape (drawn,), int64
        Indices of the drawn rows, in the order in which they were drawn. There are k
        indices, or fewer if X has fewer than k distinct rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import kmeans_plusplus_rows
    >>> X = np.array([[0.0], [0.0], [9.0]])
    >>> kmeans_plusplus_rows(X, np.ones(3), np.array([0.5, 0.1, 0.7]))
    array([1, 2])
    """
    rows = X.shape[0]
    drawn = np.empty(uniforms.shape[0], np.int64)
    masses = weights.copy()
    distances = np.full(rows, np.inf)
    for step in range(drawn.shape[0]):
        total = 0.0
        for i in range(rows):
            total += masses[i]
        if not total > 0.0:
            return drawn[:step].copy()
        chosen = _draw(masses, uniforms[step] * total)
        drawn[step] = chosen
        for i in range(rows):
            distance = _squared_distance(X[i], X[chosen])
            distances[i] = min(distances[i], distance)
            masses[i] = weights[i] * distances[i]
    return drawn


@njit()
@takes(_check_finite, gram=Array("(p, p)", "float64"), tolerance=Number(least=0))
def nystroem_map(gram, tolerance):
    """Return the Nyström map M, where M M' is the pseudo-inverse of a kernel matrix.

    The features of rows are ``K @ M``, where K contains the kernel values between rows
    and landmarks. Inner products of features approximate kernel values. Between
    landmarks, they are exact.

    Parameters
    ----------
    gram : ndarray of shape (p, p), float64
        Kernel values between landmarks. Only the lower triangle is read.
    tolerance : float, at least 0
        Eigenvalues up to this fraction of the largest eigenvalue are dropped. Fits use
        values from 1e-12 to 1e-6.

    Returns
    -------
    ndarray of shape (p, r), float64
        One column for each remaining eigenvalue, in ascending order of eigenvalues.
        The signs of columns depend on LAPACK.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import nystroem_map
    >>> abs(nystroem_map(np.diag([4.0, 0.0]), 1e-6)).tolist()
    [[0.5], [0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    keep = values > tolerance * values[-1]
    return np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))


@njit()
@takes(
    K=Array("(rows, p)", FLOATS),
    row_means=Array("(rows,)", "float64"),
    column_means=Array("(p,)", "float64"),
    mean=Number(),
    out=Array("(rows, p)", FLOATS, written=True),
)
def centre_kernel_block_into(K, row_means, column_means, mean, out):
    """Write a block of the centred kernel HKH to ``out``.

    An entry is the inner product of φ(x) - μ and φ(b) - μ, where μ is the mean of φ
    over all rows: K(x, b) - <φ(x), μ> - <φ(b), μ> + |μ|².

    Parameters
    ----------
    K : ndarray of shape (rows, p), float32 or float64
        Kernel values of a block of rows against p vectors.
    row_means : ndarray of shape (rows,), float64
        <φ(x), μ>: for each row of the block, the mean of its kernel values with all
        rows.
    column_means : ndarray of shape (p,), float64
        <φ(b), μ>: for each vector, the mean of its kernel values with all rows.
    mean : float
        |μ|²: the mean kernel value over all pairs of rows.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
        The result, which may be K itself. Differences are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import centre_kernel_block_into
    >>> K = np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> centre_kernel_block_into(K, K.mean(axis=1), K.mean(axis=0), K.mean(), K)
    >>> K
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] = K[i, j] - row_means[i] - column_means[j] + mean
