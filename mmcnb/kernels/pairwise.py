"""Gaussian and polynomial kernels between a block of rows and a few basis vectors.

X has shape (rows, d), B has shape (p, d), and ``out`` has shape (rows, p) and is
overwritten. All three are C-ordered and float32 or float64. The column indices of CSR
rows may be in any order. The variants for CSR rows take the transposed basis. The
Gaussian variant also takes ``b_norms = squared_norms(B)`` and ``tiles =
column_tiles(B)``, so that these arrays are computed once for all blocks with the same
basis. `sklearn.metrics.pairwise` has similar functions that return new arrays.

If BLAS runs single-threaded, the result for a block has the same bits in any thread.
"""

import math

import numpy as np

from mmcnb._numba import SIMD_WIDTH, VECTORISED, njit, sum_scaled_rows
from mmcnb.kernels._checks import FLOATS, Array, Number, Rows, Whole, takes

TILE_ROWS = 256  # rows whose products stay in the second-level cache
TILE_VALUES = 2**20  # maximum number of values in a tile, which limits its memory
CACHE_LINE = 16  # float32 values in a cache line
# Up to this value of (n + 8) gamma (|x|² + max |b|²), float32 products of a CSR row x
# with n non-zeros cause an error of at most 2^-14 in the exponent.
NEAR_CSR = 2.0**10

# exp in float32: exp(r + n ln 2) = 2^n exp(r) with |r| <= ln 2 / 2. The coefficients
# are taken from expf in the Cephes library.
LOG2_E = np.float32(1.44269504088896341)
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
EXP_2 = np.float32(5.0000001201e-1)
EXP_3 = np.float32(1.6666665459e-1)
EXP_4 = np.float32(4.1665795894e-2)
EXP_5 = np.float32(8.3334519073e-3)
EXP_6 = np.float32(1.3981999507e-3)
EXP_7 = np.float32(1.9875691500e-4)
ZERO = np.float32(0)
ONE = np.float32(1)
TWO = np.float32(2)
LOWEST = np.float32(-87)  # below this value, exp is not a normal float32 and becomes 0
# Adding this number leaves the nearest integer in the low bits.
ROUND = np.float32(1.5 * 2**23)
ONE_BITS = 127 << 23

# exp in float64, with all terms of the Taylor series that matter in float64.
LOG2_E_64 = 1.44269504088896341
LN2_HIGH_64 = 6.93145751953125e-1
LN2_LOW_64 = 1.42860682030941723e-6
TAYLOR = tuple(1 / math.factorial(k) for k in range(14))
LOWEST_64 = -708.0
ROUND_64 = 1.5 * 2.0**52
ONE_BITS_64 = 1023 << 52

BLOCK_AND_BASIS = {"X": Rows("(rows, d)", FLOATS), "B": Array("(p, d)", FLOATS)}
OUT = Array("(rows, p)", FLOATS, written=True)


# Compile without "reassoc", which would undo the rounding by ROUND.
@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_float32(x):
    """Compute exp(min(x, 0)) in float32; x > 0 can only result from rounding errors."""
    # These comparisons keep NaN.
    clamped = x
    if x > ZERO:
        clamped = ZERO
    if x < LOWEST:
        clamped = LOWEST
    rounded = clamped * LOG2_E + ROUND
    n = rounded - ROUND
    r = clamped - n * LN2_HIGH - n * LN2_LOW
    # Horner's rule.
    tail = EXP_6 + r * EXP_7
    tail = EXP_5 + r * tail
    tail = EXP_4 + r * tail
    tail = EXP_3 + r * tail
    tail = EXP_2 + r * tail
    exp_r = ONE + (r + r * r * tail)
    # Compute 2^n by writing n into the exponent of a float.
    exponent = np.float32(rounded).view(np.int32) << 23
    power = np.int32(exponent + ONE_BITS).view(np.float32)
    if x < LOWEST:
        return ZERO
    return exp_r * power


@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_float64(x):
    """Compute exp(min(x, 0)) in float64."""
    clamped = x
    if x > 0.0:
        clamped = 0.0
    if x < LOWEST_64:
        clamped = LOWEST_64
    rounded = clamped * LOG2_E_64 + ROUND_64
    n = rounded - ROUND_64
    r = clamped - n * LN2_HIGH_64 - n * LN2_LOW_64
    tail = TAYLOR[12] + r * TAYLOR[13]
    tail = TAYLOR[11] + r * tail
    tail = TAYLOR[10] + r * tail
    tail = TAYLOR[9] + r * tail
    tail = TAYLOR[8] + r * tail
    tail = TAYLOR[7] + r * tail
    tail = TAYLOR[6] + r * tail
    tail = TAYLOR[5] + r * tail
    tail = TAYLOR[4] + r * tail
    tail = TAYLOR[3] + r * tail
    tail = TAYLOR[2] + r * tail
    exp_r = 1.0 + (r + r * r * tail)
    exponent = np.float64(rounded).view(np.int64) << 52
    power = np.int64(exponent + ONE_BITS_64).view(np.float64)
    if x < LOWEST_64:
        return 0.0
    return exp_r * power


# Index tiles by row and column, because creating a view of each row would take as long
# as computing the exponentials of the row.
@njit(fastmath=VECTORISED - {"reassoc"})
def _exp_distances(products, scale, x_norms, b_norms, out):
    """Write exp(scale x·b - |x|² - |b|²), at most 1; skip rows whose norm is NaN."""
    for i in range(out.shape[0]):
        x_norm = x_norms[i]
        if not np.isnan(x_norm):
            for j in range(out.shape[1]):
                norms = x_norm + b_norms[j]
                exponent = scale * products[i, j] - norms
                # The compiler moves this condition out of the loops.
                if out.itemsize == 4:
                    out[i, j] = _exp_float32(np.float32(exponent))
                else:
                    out[i, j] = _exp_float64(np.float64(exponent))


@njit(fastmath=VECTORISED)
@takes(X=Array("(rows, d)", FLOATS))
def squared_norms(X):
    """Compute the squared Euclidean norm of each row.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        A block of rows.

    Returns
    -------
    ndarray of shape (rows,), float64
        Squared norms, computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import squared_norms
    >>> squared_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    norms = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * np.float64(X[i, j])
        norms[i] = total
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
def _column_means_into(B, means):
    for j in range(B.shape[1]):
        total = 0.0
        for k in range(B.shape[0]):
            total += B[k, j]
        means[j] = total / B.shape[0]


@njit()
def _scale_rows(X, centre, scale, out):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = (X[i, j] - centre[j]) * scale


@njit()
@takes(**BLOCK_AND_BASIS, gamma=Number(least=0), out=OUT)
def rbf_kernel_block_into(X, B, gamma, out):
    """Write the Gaussian kernel exp(-gamma |x - b|²) of rows and basis to ``out``.

    Wu & Zhang write the kernel with sigma; gamma is 1/(2 sigma²). Rows and basis are
    shifted by the mean of the basis and scaled by sqrt(gamma). Distances are then
    computed from one matrix product per tile, which is accurate even if the data are
    far from the origin. For rows far from the basis, the product would be inaccurate,
    so their distances are computed from differences.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64, or rows in CSR form
        A block of rows.
    B : ndarray of shape (p, d), float32 or float64
        The basis vectors.
    gamma : float, at least 0
        Kernel coefficient, 1/(2 sigma²).
    out : ndarray of shape (rows, p), float32 or float64, overwritten
        The kernel values. Distances are computed in the dtype of X. For float32 X, the
        absolute error is below 1e-3 in the worst case, and a few times 1e-6 if
        |x - mean(B)| is a few times sigma. float32 values below exp(-87) are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import rbf_kernel_block_into
    >>> out = np.empty((1, 2), dtype=np.float32)
    >>> B = np.array([[0.0, 1.0], [0.0, 2.0]])
    >>> rbf_kernel_block_into(np.array([[0.0, 1.0]]), B, 1.0, out)
    >>> out.round(4)
    array([[1.    , 0.3679]], dtype=float32)
    """
    rows, d = X.shape
    p = B.shape[0]
    # The error of the product is about eps |x|², which is harmless if |x|² is at most
    # this value.
    far = 2.0**10 if X.itemsize == 4 else 2.0**24
    centre = np.zeros(d, dtype=X.dtype)
    _column_means_into(B, centre)
    scale = X.dtype.type(math.sqrt(gamma))

    scaled_B = np.empty((p, d), dtype=X.dtype)
    _scale_rows(B, centre, scale, scaled_B)
    b_norms = squared_norms(scaled_B).astype(X.dtype)
    for k in range(p):
        # The kernel values between such a vector and rows that are not far are 0.
        if not b_norms[k] <= 4 * far:
            scaled_B[k] = 0
            b_norms[k] = np.inf

    tile_rows = max(16, min(TILE_ROWS, TILE_VALUES // d))
    tile = np.empty((tile_rows, d), dtype=X.dtype)
    products = np.empty((tile_rows, p), dtype=X.dtype)
    for start in range(0, rows, tile_rows):
        part = X[start : start + tile_rows]
        out_part = out[start : start + tile_rows]
        n = part.shape[0]
        scaled = tile[:n]
        _scale_rows(part, centre, scale, scaled)
        np.dot(scaled, scaled_B.T, products[:n])
        x_norms = squared_norms(scaled).astype(X.dtype)
        for i in range(n):
            # The condition is also true for rows with NaN, whose kernel values are NaN.
            if not x_norms[i] <= far:
                x_norms[i] = np.nan
                _rbf_by_differences(part[i], B, gamma, out_part[i])
        _exp_distances(products, TWO, x_norms, b_norms, out_part)


@njit(fastmath=VECTORISED)
def _csr_products(data, indices, start, stop, B_T, products):
    """Compute x·b for one row and all basis vectors."""
    products[:] = 0
    whole = start + (stop - start) // 4 * 4
    # Add four terms at a time, so that the products are loaded and stored only a
    # quarter as often.
    for s in range(start, whole, 4):
        x0 = np.float64(data[s])
        x1 = np.float64(data[s + 1])
        x2 = np.float64(data[s + 2])
        x3 = np.float64(data[s + 3])
        b0 = B_T[indices[s]]
        b1 = B_T[indices[s + 1]]
        b2 = B_T[indices[s + 2]]
        b3 = B_T[indices[s + 3]]
        for j in range(products.size):
            products[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j]
    for s in range(whole, stop):
        x0 = np.float64(data[s])
        b0 = B_T[indices[s]]
        for j in range(products.size):
            products[j] += x0 * b0[j]


@njit()
@takes(B=Array("(p, d)", FLOATS))
def column_tiles(B):
    """Arrange the basis in the tiles that `rbf_kernel_block_csr_into` reads.

    A tile contains 64 basis vectors, stored feature by feature. A tile with a few
    hundred features stays in the first-level cache while the rows of a block are
    processed.

    Parameters
    ----------
    B : ndarray of shape (p, d), float32 or float64
        The basis vectors.

    Returns
    -------
    ndarray of shape (ceil(p / 64), d, 64), float32
        The tiles, padded with zeros after the last vector.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import column_tiles
    >>> column_tiles(np.eye(3))[0, :, :4]
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.]], dtype=float32)
    """
    p, d = B.shape
    n_tiles = (p + SIMD_WIDTH - 1) // SIMD_WIDTH
    size = n_tiles * d * SIMD_WIDTH
    memory = np.zeros(size + CACHE_LINE, np.float32)
    # Align the tiles, so that no register crosses a cache line.
    first = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    tiles = memory[first : first + size].reshape(n_tiles, d, SIMD_WIDTH)
    for k in range(p):
        tile = tiles[k // SIMD_WIDTH]
        for j in range(d):
            tile[j, k % SIMD_WIDTH] = np.float32(B[k, j])
    return tiles


@njit(fastmath=VECTORISED)
def _csr_norms(data, indptr):
    norms = np.empty(indptr.size - 1)
    for i in range(norms.size):
        total = 0.0
        for s in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[s]) * np.float64(data[s])
        norms[i] = total
    return norms


@njit()
def _rbf_near_rows(data, indices, indptr, tiles, x_norms, b_norms, gamma, out):
    """Write the rows of ``out`` whose norm is not NaN, with products in float32."""
    scale = np.float32(2 * gamma)
    x_norms = x_norms.astype(np.float32)
    b_norms = b_norms.astype(np.float32)
    products = np.empty((TILE_ROWS, tiles.shape[0], SIMD_WIDTH), np.float32)
    flat = products.reshape(TILE_ROWS, -1)
    for start in range(0, x_norms.size, TILE_ROWS):
        stop = min(start + TILE_ROWS, x_norms.size)
        for t in range(tiles.shape[0]):
            for i in range(start, stop):
                if not np.isnan(x_norms[i]):
                    sum_scaled_rows(
                        data,
                        indices,
                        indptr[i],
                        indptr[i + 1],
                        tiles,
                        t,
                        products,
                        i - start,
                    )
        _exp_distances(flat, scale, x_norms[start:stop], b_norms, out[start:stop])


@njit()
def _rbf_far_rows(data, indices, indptr, B_T, x_norms, b_norms, gamma, out):
    """Write the rows of ``out`` whose norm is not NaN, with products in float64."""
    products = np.empty((TILE_ROWS, B_T.shape[1]))
    for start in range(0, x_norms.size, TILE_ROWS):
        stop = min(start + TILE_ROWS, x_norms.size)
        for i in range(start, stop):
            if not np.isnan(x_norms[i]):
                _csr_products(
                    data, indices, indptr[i], indptr[i + 1], B_T, products[i - start]
                )
        _exp_distances(
            products, 2 * gamma, x_norms[start:stop], b_norms, out[start:stop]
        )


@njit()
def rbf_kernel_block_csr_into(data, indices, indptr, B_T, b_norms, tiles, gamma, out):
    """Write the Gaussian kernel of CSR rows and basis to ``out``.

    If ``out`` is float32, the inner products of a row x with n non-zeros are computed
    in float32 if they fit the range of float32 and (n + 8) gamma (|x|² + max |b|²) is
    at most 1024. With eps = 2^-24, the error of an inner product is at most n eps |x|
    |b|. Rounding b, x, gamma, the norms and their sum adds 8 eps gamma (|x|² + |b|²).
    The error of the exponent is then at most 2^-14, and so is the relative error of the
    kernel value. Usually, both are a few times 1e-7. For all other rows, and for all
    rows if ``out`` is float64, inner products are computed in float64.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Stored values of the rows, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Column index of each value, in any order within a row, without duplicates.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Start of each row in ``data``, followed by the end of the last row.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    b_norms : ndarray of shape (p,), float64
        ``squared_norms(B)``.
    tiles : ndarray of shape (tiles, d, 64), float32
        ``column_tiles(B)``: ceil(p / 64) tiles.
    gamma : float, at least 0
        Kernel coefficient, 1/(2 sigma²).
    out : ndarray of shape (rows, p), float32 or float64, overwritten
        The kernel values; float32 values below exp(-87) are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import unchecked as kernels
    >>> row, out = (np.array([1.0]), np.array([1]), np.array([0, 1])), np.empty((1, 2))
    >>> B = np.array([[0.0, 1.0], [0.0, 2.0]])
    >>> norms, tiles = kernels.squared_norms(B), kernels.column_tiles(B)
    >>> B_T = np.ascontiguousarray(B.T)
    >>> kernels.rbf_kernel_block_csr_into(*row, B_T, norms, tiles, 1.0, out)
    >>> out.round(4)
    array([[1.    , 0.3679]])
    """
    norms = _csr_norms(data, indptr)
    scaled_norms = gamma * b_norms
    x_norms = gamma * norms
    near_norms = np.full(x_norms.size, np.nan)
    if out.itemsize == 4:
        largest = np.max(scaled_norms)
        longest = np.max(b_norms)
        for i in range(x_norms.size):
            products_fit = 1e-30 <= norms[i] + longest <= 1e37
            terms = indptr[i + 1] - indptr[i] + 8
            if products_fit and terms * (x_norms[i] + largest) <= NEAR_CSR:
                near_norms[i] = x_norms[i]
                x_norms[i] = np.nan
        _rbf_near_rows(
            data, indices, indptr, tiles, near_norms, scaled_norms, gamma, out
        )
    _rbf_far_rows(data, indices, indptr, B_T, x_norms, scaled_norms, gamma, out)
    for i in range(x_norms.size):
        if np.isnan(x_norms[i]) and np.isnan(near_norms[i]):
            out[i] = np.nan


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
@takes(**BLOCK_AND_BASIS, gamma=Number(), coef0=Number(), degree=Whole(), out=OUT)
def polynomial_kernel_block_into(X, B, gamma, coef0, degree, out):
    """Write the polynomial kernel (gamma x·b + coef0)^degree to ``out``.

    Zhao, Kwok and Zhang, *Multiple kernel clustering*, use gamma = coef0 = 1. With
    gamma = degree = 1 and coef0 = 0, the result is the linear kernel, x·b.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64, or rows in CSR form
        A block of rows.
    B : ndarray of shape (p, d), float32 or float64
        The basis vectors.
    gamma, coef0 : float
        Factor of the inner product, and the constant that is added to it.
    degree : int, at least 0
        The exponent.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
        The kernel values. Products are computed in the dtype of X, powers in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import polynomial_kernel_block_into
    >>> out = np.empty((1, 2))
    >>> X, B = np.array([[3.0, 1.0]]), np.eye(2)
    >>> polynomial_kernel_block_into(X, B, 1.0, 1.0, 2, out)
    >>> out
    array([[16.,  4.]])
    """
    B_T = B.T.astype(X.dtype)
    for start in range(0, X.shape[0], TILE_ROWS):
        stop = min(start + TILE_ROWS, X.shape[0])
        _power(np.dot(X[start:stop], B_T), gamma, coef0, degree, out[start:stop])


@njit()
def polynomial_kernel_block_csr_into(
    data, indices, indptr, B_T, gamma, coef0, degree, out
):
    """Write the polynomial kernel of CSR rows and basis to ``out``.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Stored values of the rows, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Column index of each value, in any order within a row.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Start of each row in ``data``, followed by the end of the last row.
    B_T : ndarray of shape (d, p), float32 or float64
        The basis, transposed.
    gamma, coef0 : float
        Factor of the inner product, and the constant that is added to it.
    degree : int, at least 0
        The exponent.
    out : ndarray of shape (rows, p), float32 or float64, overwritten
        The kernel values, computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import polynomial_kernel_block_csr_into
    >>> row, out = (np.array([3.0]), np.array([1]), np.array([0, 1])), np.empty((1, 2))
    >>> polynomial_kernel_block_csr_into(*row, np.eye(2), 1.0, 1.0, 2, out)
    >>> out
    array([[ 1., 16.]])
    """
    products = np.empty((1, B_T.shape[1]))
    for i in range(indptr.size - 1):
        _csr_products(data, indices, indptr[i], indptr[i + 1], B_T, products[0])
        _power(products, gamma, coef0, degree, out[i : i + 1])


# -- sums for a basis vector -----------------------------------------------------------


@njit()
@takes(
    X=Rows("(rows, d)", FLOATS),
    z=Array("(rows,)", "float64"),
    b=Array("(d,)", "float64"),
    gamma=Number(least=0),
)
def basis_fixed_point_sums(X, z, b, gamma):
    """Compute the two sums of a fixed-point step for a basis vector.

    A basis vector b that approximates the mean Ψ = 1/n Σ z_i φ(x_i) moves to numerator
    / denominator: Wu & Zhang, eq. (47). If b approximates the residual after earlier
    vectors b_j with coefficients β_j, eq. (46), call the routine again with these
    vectors as rows and -n β as z, and add the results. If z has both signs, the
    denominator can be 0.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64, or rows in CSR form
        A block of rows.
    z : ndarray of shape (rows,), float64
        Coefficients of these rows in Ψ, of either sign.
    b : ndarray of shape (d,), float64
        The current basis vector.
    gamma : float, at least 0
        Kernel coefficient, 1/(2 sigma²).

    Returns
    -------
    numerator : ndarray of shape (d,), float64
        Sum of z_i K(x_i, b) x_i.
    denominator : float
        Sum of z_i K(x_i, b), which is n <Ψ, φ(b)>: the right side of eq. (49).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import basis_fixed_point_sums
    >>> X, b = np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([2.0, 0.0])
    >>> numerator, denominator = basis_fixed_point_sums(X, np.ones(2), b, 0.5)
    >>> numerator / denominator
    array([2., 0.])
    """
    basis = b.reshape(1, -1)
    value = np.empty(1)
    numerator = np.zeros(b.shape[0])
    denominator = 0.0
    for i in range(X.shape[0]):
        _rbf_by_differences(X[i], basis, gamma, value)
        weight = z[i] * value[0]
        denominator += weight
        for j in range(b.shape[0]):
            numerator[j] += weight * X[i, j]
    return numerator, denominator


@njit()
def basis_fixed_point_sums_csr(data, indices, indptr, z, b, gamma):
    """Compute the sums of a fixed-point step on CSR rows.

    Parameters
    ----------
    data : ndarray of shape (stored,), float32 or float64
        Stored values of the rows, row after row.
    indices : ndarray of shape (stored,), int32 or int64, in [0, d)
        Column index of each value, in any order within a row, without duplicates.
    indptr : ndarray of shape (rows + 1,), int32 or int64, rising
        Start of each row in ``data``, followed by the end of the last row.
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
    >>> b = np.array([2.0, 0.0])
    >>> numerator, denominator = basis_fixed_point_sums_csr(*rows, np.ones(2), b, 0.5)
    >>> numerator / denominator
    array([2., 0.])
    """
    b_norm = squared_norms(b.reshape(1, -1))[0]
    numerator = np.zeros(b.shape[0])
    denominator = 0.0
    for i in range(indptr.shape[0] - 1):
        distance = b_norm
        for s in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[s])
            distance += value * (value - 2.0 * b[indices[s]])
        # This comparison keeps NaN.
        if distance < 0.0:
            distance = 0.0
        weight = z[i] * math.exp(-gamma * distance)
        denominator += weight
        for s in range(indptr[i], indptr[i + 1]):
            numerator[indices[s]] += weight * data[s]
    return numerator, denominator
