import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from mmcnb.kernels import unchecked as kernels
from mmcnb.kernels.pairwise import TILE_ROWS, TILE_VALUES
from tests import reference
from tests.kernels.inputs import DTYPES, rows_and_basis, sparse_rows

SHAPES = [(0, 3, 2), (1, 4, 3), (1, 1, 1), (7, 5, 1), (TILE_ROWS, 2, 3), (TILE_ROWS + 1, 3, 2)]
TOLERANCE = {"float32": 3e-6, "float64": 1e-14}
KERNELS = ["rbf", "polynomial"]
PARAMETERS = {"rbf": (0.3,), "polynomial": (0.5, 1.0, 3)}


def dense_into(kernel, X, B, out_dtype):
    out = np.full((len(X), len(B)), np.nan, out_dtype)
    getattr(kernels, f"{kernel}_kernel_block_into")(X, B, *PARAMETERS[kernel], out)
    return out


def csr_into(kernel, csr, B, out_dtype):
    out = np.full((len(csr[2]) - 1, len(B)), np.nan, out_dtype)
    norms = (kernels.squared_norms(B), kernels.column_tiles(B)) if kernel == "rbf" else ()
    basis = (np.ascontiguousarray(B.T), *norms)
    getattr(kernels, f"{kernel}_kernel_block_csr_into")(*csr, *basis, *PARAMETERS[kernel], out)
    return out


def twin(kernel, X, B):
    return getattr(reference, f"{kernel}_kernel_block")(X, B, *PARAMETERS[kernel])


def relative_error(values, expected):
    return np.max(np.abs(values - expected) / np.maximum(1, np.abs(expected)), initial=0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("out_dtype", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_equals_the_plain_loop(kernel, dtype, out_dtype):
    for shape in SHAPES:
        X, B = rows_and_basis(*shape, dtype)
        tolerance = max(TOLERANCE[dtype], TOLERANCE[out_dtype])
        assert relative_error(dense_into(kernel, X, B, out_dtype), twin(kernel, X, B)) < tolerance


def test_rbf_of_many_columns_equals_the_plain_loop():
    X, B = rows_and_basis(20, TILE_VALUES // 16 + 1, 1, "float32")
    out = np.empty((20, 1), np.float32)
    kernels.rbf_kernel_block_into(X, B, 1e-5, out)
    np.testing.assert_allclose(out, reference.rbf_kernel_block(X, B, 1e-5), rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("out_dtype", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_csr_equals_the_plain_loop(kernel, dtype, out_dtype):
    for rows, d, p in SHAPES:
        csr = sparse_rows(rows, d, dtype)
        _, B = rows_and_basis(rows, d, p, dtype)
        expected = twin(kernel, reference.dense_rows(*csr, d), B)
        assert relative_error(csr_into(kernel, csr, B, out_dtype), expected) < TOLERANCE[out_dtype]


@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_equals_csr(kernel):
    X, B = rows_and_basis(300, 9, 4)
    X[np.abs(X) < 0.7] = 0
    csr = scipy.sparse.csr_array(X)
    csr = csr.data, csr.indices, csr.indptr.astype(np.int64)
    np.testing.assert_allclose(
        csr_into(kernel, csr, B, "float64"), dense_into(kernel, X, B, "float64"), rtol=1e-12, atol=1e-14
    )


def test_read_only_rows_and_basis_of_another_dtype():
    X, B = rows_and_basis(5, 4, 3, "float32")
    X.flags.writeable = B.flags.writeable = False
    out = np.empty((5, 3), np.float32)
    kernels.rbf_kernel_block_into(X, B.astype(np.float64), 0.3, out)
    np.testing.assert_allclose(out, dense_into("rbf", X, B, "float32"), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rbf_kernel_of_a_point_with_itself_is_one(dtype):
    X, _ = rows_and_basis(300, 50, 0, dtype)
    K = np.empty((300, 20), dtype)
    kernels.rbf_kernel_block_into(X, X[:20].copy(), 0.02, K)
    np.testing.assert_allclose(np.diag(K), 1, rtol=0, atol=2e-6 if dtype == "float32" else 1e-14)
    assert K.max() <= 1


def test_float32_rbf_far_from_the_origin_loses_nothing():
    X, B = rows_and_basis(300, 20, 10)
    X, B = (X + 1e4).astype(np.float32), (B + 1e4).astype(np.float32)
    out = np.empty((300, 10), np.float32)
    kernels.rbf_kernel_block_into(X, B, 0.05, out)
    np.testing.assert_allclose(out, reference.rbf_kernel_block(X, B, 0.05), rtol=1e-5, atol=0)


def test_float64_rbf_far_from_the_origin_loses_nothing():
    X, B = rows_and_basis(50, 3, 10)
    X, B = X + 1000.0, B + 1000.0
    out = dense_into("rbf", X, B, "float64")
    np.testing.assert_allclose(out, twin("rbf", X, B), rtol=0, atol=1e-12)


def test_float32_rbf_stays_within_a_thousandth_whatever_the_width():
    X, B = rows_and_basis(300, 20, 10, "float32")
    B[:5] = X[:5] + np.float32(1e-3)
    out = np.empty((300, 10), np.float32)
    for gamma in 10.0 ** np.arange(-6, 7):
        kernels.rbf_kernel_block_into(X, B, gamma, out)
        np.testing.assert_allclose(out, reference.rbf_kernel_block(X, B, gamma), rtol=0, atol=1e-3)


@pytest.mark.parametrize("out_dtype", DTYPES)
@pytest.mark.parametrize(("dtype", "huge"), [("float32", 1e30), ("float64", 1e30), ("float64", 1e200)])
def test_rbf_of_huge_distances_is_exactly_zero(dtype, huge, out_dtype):
    X = np.array([[1, 2], [huge, -huge], [huge, huge], [3, -huge]], dtype)
    for B in (X[:1], X[[0, 1]], X[[2, 1]]):
        out = np.empty((len(X), len(B)), out_dtype)
        kernels.rbf_kernel_block_into(X, B, 1.0, out)
        np.testing.assert_array_equal(out, np.all(X[:, None] == B[None], axis=2))


def test_csr_rbf_of_huge_distances_is_exactly_zero():
    data, indices, indptr = np.array([1e30, 1.0], np.float32), np.array([1, 0]), np.array([0, 1, 2])
    B = np.array([[1, 0], [-1e30, 3]], np.float32)
    out = np.empty((2, 2), np.float32)
    basis = np.ascontiguousarray(B.T), kernels.squared_norms(B), kernels.column_tiles(B)
    kernels.rbf_kernel_block_csr_into(data, indices, indptr, *basis, 1.0, out)
    np.testing.assert_array_equal(out, [[0, 0], [1, 0]])


def dense_and_csr(kernel, X, B, out_dtype):
    rows, d = X.shape
    csr = X.ravel(), np.tile(np.arange(d), rows), np.arange(0, rows * d + 1, d)
    return dense_into(kernel, X, B, out_dtype), csr_into(kernel, csr, B, out_dtype)


@pytest.mark.parametrize("out_dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_nan_in_a_row_is_never_hidden(kernel, out_dtype):
    X, B = rows_and_basis(4, 3, 3, "float32")
    X[2, 1] = np.nan
    for K in dense_and_csr(kernel, X, B, out_dtype):
        np.testing.assert_array_equal(np.isnan(K), np.arange(4)[:, None] == [[2, 2, 2]])


@pytest.mark.parametrize("out_dtype", DTYPES)
def test_rbf_of_an_infinite_row_is_zero_or_nan(out_dtype):
    X, B = rows_and_basis(4, 3, 3, "float32")
    X[2, 1] = np.inf
    for K in dense_and_csr("rbf", X, B, out_dtype):
        assert np.all(np.isnan(K[2]) | (K[2] == 0))
        assert np.all(np.isfinite(K[[0, 1, 3]]))


@pytest.mark.parametrize("out_dtype", DTYPES)
def test_nan_in_the_basis_is_never_hidden(out_dtype):
    X, B = rows_and_basis(4, 3, 3, "float32")
    B[1, 0] = np.nan
    K = dense_into("rbf", X, B, out_dtype)
    np.testing.assert_array_equal(np.isnan(K), [[False, True, False]] * 4)


@pytest.mark.parametrize(("dtype", "lowest", "tolerance"), [("float32", -87, 3e-7), ("float64", -708, 1e-15)])
def test_exponential_over_its_whole_range(dtype, lowest, tolerance):
    """An empty row against a basis vector of norm t gives exp(-t): no rounding but that of exp."""
    exponents = np.concatenate([np.linspace(lowest, 0, 20_001), np.linspace(-2, 0, 20_001)]).astype(dtype)
    out = np.empty((1, len(exponents)), dtype)
    empty = np.empty(0, dtype), np.empty(0, np.int32), np.zeros(2, np.int64)
    B = np.zeros((len(exponents), 1), dtype)
    basis = B.T.copy(), -exponents.astype(np.float64), kernels.column_tiles(B)
    kernels.rbf_kernel_block_csr_into(*empty, *basis, 1.0, out)
    expected = [math.exp(x) for x in exponents]
    np.testing.assert_allclose(out[0], expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize(("dtype", "lowest"), [("float32", -87), ("float64", -708)])
def test_exponential_below_its_range_is_zero(dtype, lowest):
    norms = np.array([-np.nextafter(lowest, -np.inf, dtype=dtype), 1e4, 1e40, 1e300, np.inf], np.float64)
    out = np.empty((1, len(norms)), dtype)
    empty = np.empty(0, dtype), np.empty(0, np.int32), np.zeros(2, np.int64)
    B = np.zeros((len(norms), 1), dtype)
    kernels.rbf_kernel_block_csr_into(*empty, B.T.copy(), norms, kernels.column_tiles(B), 1.0, out)
    np.testing.assert_array_equal(out, np.zeros_like(out))


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_from_threads_at_once(dtype):
    X, B = rows_and_basis(3 * TILE_ROWS + 17, 40, 30, dtype)
    csr = sparse_rows(len(X), 40, dtype)
    with threadpool_limits(1, user_api="blas"):
        dense, sparse = dense_into("rbf", X, B, dtype), csr_into("rbf", csr, B, dtype)
        with ThreadPoolExecutor(4) as pool:
            for K in pool.map(lambda _: dense_into("rbf", X, B, dtype), range(16)):
                np.testing.assert_array_equal(K, dense)
            for K in pool.map(lambda _: csr_into("rbf", csr, B, dtype), range(16)):
                np.testing.assert_array_equal(K, sparse)


@pytest.mark.parametrize("out_dtype", DTYPES)
def test_csr_rows_give_the_same_bits_however_they_are_cut(out_dtype):
    rows = 2 * TILE_ROWS + 30
    data, indices, indptr = sparse_rows(rows, 60, "float32")
    data[indptr[10] : indptr[12]] *= 100  # rows for float64
    _, B = rows_and_basis(0, 60, 70, "float32")
    whole = csr_into("rbf", (data, indices, indptr), B, out_dtype)
    for first, last in ((0, 1), (4, 11), (5, 300), (TILE_ROWS + 1, rows)):
        part = csr_into("rbf", (data, indices, indptr[first : last + 1]), B, out_dtype)
        np.testing.assert_array_equal(part, whole[first:last])


def test_equal_csr_rows_have_the_same_bits_wherever_they_stand():
    x, B = rows_and_basis(1, 40, 70, "float32")
    rows = 2 * TILE_ROWS
    csr = np.tile(x[0], rows), np.tile(np.arange(40), rows), np.arange(0, 40 * rows + 1, 40)
    out = np.empty((rows, 70), np.float32)
    basis = B.T.copy(), kernels.squared_norms(B), kernels.column_tiles(B)
    kernels.rbf_kernel_block_csr_into(*csr, *basis, 0.05, out)
    np.testing.assert_array_equal(out, np.tile(out[0], (rows, 1)))


@pytest.mark.parametrize("p", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("d", [1, 130])
def test_column_tiles_equal_the_plain_loop(p, d):
    _, B = rows_and_basis(0, d, p)
    tiles = kernels.column_tiles(B)
    assert tiles.dtype == np.float32
    np.testing.assert_array_equal(tiles, reference.column_tiles(B).astype(np.float32))


@pytest.mark.parametrize(("dtype", "index_dtype"), [("float32", "int32"), ("float64", "int64")])
def test_csr_rbf_of_many_vectors_equals_the_plain_loop(dtype, index_dtype):
    data, indices, indptr = sparse_rows(20, 30, dtype)
    _, B = rows_and_basis(0, 30, 150, dtype)
    csr = data, indices.astype(index_dtype), indptr
    expected = reference.rbf_kernel_block(reference.dense_rows(*csr, 30), B, 0.02)
    out = np.empty((20, 150), dtype)
    basis = np.ascontiguousarray(B.T), kernels.squared_norms(B), kernels.column_tiles(B)
    kernels.rbf_kernel_block_csr_into(*csr, *basis, 0.02, out)
    np.testing.assert_allclose(out, expected, rtol=2e-6 if dtype == "float32" else 1e-13)


def test_float32_csr_rbf_keeps_its_bound_whatever_the_width():
    data, indices, indptr = sparse_rows(60, 40, "float32")
    B = reference.dense_rows(data, indices, indptr[:21], 40).astype(np.float32) + np.float32(1e-3)
    norms, tiles = kernels.squared_norms(B), kernels.column_tiles(B)
    for gamma in 10.0 ** np.arange(-6, 7):
        narrow, wide = np.empty((60, 20), np.float32), np.empty((60, 20))
        for out in (narrow, wide):
            kernels.rbf_kernel_block_csr_into(data, indices, indptr, B.T.copy(), norms, tiles, gamma, out)
        np.testing.assert_allclose(narrow, wide, rtol=2.0**-14 + 3e-7, atol=2e-38)


def test_order_of_columns_does_not_matter():
    data, indices, indptr = sparse_rows(50, 12)
    _, B = rows_and_basis(0, 12, 3)
    ordered = scipy.sparse.csr_array((data, indices, indptr), shape=(50, 12)).sorted_indices()
    np.testing.assert_allclose(
        csr_into("rbf", (ordered.data, ordered.indices, ordered.indptr.astype(np.int64)), B, "float64"),
        csr_into("rbf", (data, indices, indptr), B, "float64"),
        rtol=1e-13,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_squared_norms(dtype):
    X, _ = rows_and_basis(7, 5, 0, dtype)
    norms = kernels.squared_norms(X)
    assert norms.dtype == np.float64
    np.testing.assert_allclose(norms, reference.squared_norms(X), rtol=1e-14)
