"""Kernel values of blocks equal the plain loop, within bounds for unusual rows."""

import itertools
import math

import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
from tests import reference
from tests.kernels.arguments import DTYPES, rows_and_basis, sparse_rows

SHAPES = [(0, 3, 2), (1, 1, 1), (7, 5, 1), (20, 4, 150), (256, 2, 3), (257, 3, 2)]
TOLERANCE = {"float32": 3e-6, "float64": 1e-14}
PARAMETERS = {"rbf": (0.3,), "polynomial": (0.5, 1.0, 3)}
# Dtypes of rows, of the stored columns and of kernel values: those that fits pass, and
# at night the others.
FITS = [
    ("float32", "int32", "float32"),
    ("float64", "int32", "float32"),
    ("float64", "int32", "float64"),
]
NIGHTLY = [pytest.mark.slow, pytest.mark.nightly]
TYPES = [
    types if types in FITS else pytest.param(*types, marks=NIGHTLY)
    for types in itertools.product(DTYPES, ("int32", "int64"), DTYPES)
]


def dense_into(kernel, X, B, out_dtype, parameters=None):
    out = np.full((len(X), len(B)), np.nan, out_dtype)
    getattr(kernels, f"{kernel}_kernel_block_into")(
        X, B, *(parameters or PARAMETERS[kernel]), out
    )
    return out


def csr_into(kernel, csr, B, out_dtype, parameters=None):
    out = np.full((len(csr[2]) - 1, len(B)), np.nan, out_dtype)
    B = B.astype(float)
    with np.errstate(over="ignore"):
        norms = (
            (kernels.squared_norms(B), kernels.column_tiles(B))
            if kernel == "rbf"
            else ()
        )
    basis = (np.ascontiguousarray(B.T), *norms, *(parameters or PARAMETERS[kernel]))
    getattr(kernels, f"{kernel}_kernel_block_csr_into")(*csr, *basis, out)
    return out


def dense_and_csr(kernel, X, B, out_dtype, parameters=None):
    """Values of rows that are dense, and of the same that store every column."""
    rows, d = X.shape
    columns = np.tile(np.arange(d, dtype=np.int32), rows)
    csr = X.ravel(), columns, np.arange(0, rows * d + 1, d)
    return [
        dense_into(kernel, X, B, out_dtype, parameters),
        csr_into(kernel, csr, B, out_dtype, parameters),
    ]


@pytest.mark.parametrize("kernel", PARAMETERS)
@pytest.mark.parametrize(("dtype", "index_dtype", "out_dtype"), TYPES)
def test_dense_and_csr_rows_equal_the_plain_loop(kernel, dtype, index_dtype, out_dtype):
    twin = getattr(reference, f"{kernel}_kernel_block")
    for shape in SHAPES:
        X, B = rows_and_basis(*shape, dtype)
        data, indices, indptr = sparse_rows(*shape[:2], dtype)
        csr = data, indices.astype(index_dtype), indptr
        of_dense = dense_into(kernel, X, B, out_dtype)
        dense = twin(X, B, *PARAMETERS[kernel])
        of_csr = csr_into(kernel, csr, B, out_dtype)
        sparse = twin(reference.dense_rows(*csr, shape[1]), B, *PARAMETERS[kernel])
        loss = max(TOLERANCE[dtype], TOLERANCE[out_dtype])
        np.testing.assert_array_less(
            abs(of_dense - dense) / np.maximum(1, abs(dense)), loss
        )
        np.testing.assert_array_less(
            abs(of_csr - sparse) / np.maximum(1, abs(sparse)), TOLERANCE[out_dtype]
        )


def test_rbf_of_many_columns_equals_the_plain_loop():
    X, B = rows_and_basis(17, 2**16 + 1, 1, "float32")
    expected = reference.rbf_kernel_block(X, B, 1e-5)
    np.testing.assert_allclose(
        dense_into("rbf", X, B, "float32", (1e-5,)), expected, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("dtype", "far", "tolerance"), [("float32", 1e4, 1e-5), ("float64", 1e3, 1e-11)]
)
def test_rbf_far_from_the_origin_loses_nothing(dtype, far, tolerance):
    X, B = rows_and_basis(300, 20, 10)
    X = (X + far).astype(dtype)
    B = (B + far).astype(dtype)
    X[:10] = B
    expected = reference.rbf_kernel_block(X, B, 0.05)
    K = dense_into("rbf", X, B, dtype, (0.05,))
    np.testing.assert_allclose(K, expected, rtol=tolerance)
    assert K.max() <= 1  # and of a point with itself it is 1


def test_float32_rbf_keeps_its_bound_whatever_the_width():
    X, B = rows_and_basis(60, 40, 20, "float32")
    X[np.abs(X) < 0.7] = 0
    B[:10] = X[:10] + np.float32(1e-3)
    for gamma in 10.0 ** np.arange(-6, 7):
        dense, sparse = dense_and_csr("rbf", X, B, "float32", (gamma,))
        expected = reference.rbf_kernel_block(X, B, gamma)
        np.testing.assert_allclose(dense, expected, rtol=0, atol=1e-3)
        np.testing.assert_allclose(sparse, expected, rtol=2.0**-14 + 3e-7, atol=2e-38)


@pytest.mark.parametrize(
    ("dtype", "huge"), [("float32", 1e30), ("float64", 1e30), ("float64", 1e200)]
)
def test_rbf_of_huge_distances_is_exactly_zero(dtype, huge):
    X = np.array([[1, 2], [huge, -huge], [huge, huge], [3, -huge]], dtype)
    for B in (X[:1], X[[0, 1]], X[[2, 1]]):
        equal = np.all(X[:, None] == B[None], axis=2)
        np.testing.assert_array_equal(dense_into("rbf", X, B, dtype, (1.0,)), equal)
    _, sparse = dense_and_csr(
        "rbf", X[[0, 3]], np.array([[1, 0], [-huge, 3]], dtype), dtype, (1.0,)
    )
    np.testing.assert_allclose(sparse, [[math.exp(-4), 0], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("out_dtype", DTYPES)
def test_what_is_no_number_is_never_hidden(out_dtype):
    X, B = rows_and_basis(4, 3, 3, out_dtype)
    odd = X.copy()
    basis = B.copy()
    infinite = X.copy()
    odd[2, 1] = basis[1, 0] = np.nan
    infinite[2, 1] = np.inf
    for kernel in PARAMETERS:
        for K in dense_and_csr(kernel, odd, B, out_dtype):
            np.testing.assert_array_equal(
                np.isnan(K), np.arange(4)[:, None] == [[2, 2, 2]]
            )
    np.testing.assert_array_equal(
        np.isnan(dense_into("rbf", X, basis, out_dtype)), [[False, True, False]] * 4
    )
    for K in dense_and_csr("rbf", infinite, B, out_dtype):
        assert np.all(np.isnan(K[2]) | (K[2] == 0))
        assert np.all(np.isfinite(K[[0, 1, 3]]))


@pytest.mark.parametrize(
    ("dtype", "lowest", "tolerance"), [("float32", -87, 3e-7), ("float64", -708, 1e-15)]
)
def test_exponentials_are_accurate_in_their_range_and_zero_below(
    dtype, lowest, tolerance
):
    """An empty row against a basis vector of norm t gives exp(-t): only exp rounds."""
    inside = np.concatenate(
        [np.linspace(lowest, 0, 20_001), np.linspace(-2, 0, 20_001)]
    ).astype(dtype)
    below = -np.array(
        [-np.nextafter(lowest, -np.inf, dtype=dtype), 1e4, 1e40, 1e300, np.inf],
        np.float64,
    )
    exponents = np.concatenate([inside, below])
    out = np.empty((1, len(exponents)), dtype)
    B = np.zeros((len(exponents), 1))
    empty = np.empty(0, dtype), np.empty(0, np.int32), np.zeros(2, np.int64)
    kernels.rbf_kernel_block_csr_into(
        *empty, B.T.copy(), -exponents, kernels.column_tiles(B), 1.0, out
    )
    expected = [*(math.exp(x) for x in inside), *np.zeros(len(below))]
    np.testing.assert_allclose(out[0], expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize("out_dtype", DTYPES)
def test_csr_rows_have_the_same_bits_wherever_they_stand_and_in_any_order_of_columns(
    out_dtype,
):
    data, indices, indptr = sparse_rows(540, 60, out_dtype)
    data[indptr[10] : indptr[12]] *= 100  # rows for float64
    _, B = rows_and_basis(0, 60, 70)
    whole = csr_into("rbf", (data, indices, indptr), B, out_dtype)
    for first, last in ((0, 1), (4, 11), (5, 300), (257, 540)):
        part = csr_into("rbf", (data, indices, indptr[first : last + 1]), B, out_dtype)
        np.testing.assert_array_equal(part, whole[first:last])
    turned = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in itertools.pairwise(indptr)]
    )
    other = csr_into("rbf", (data[turned], indices[turned], indptr), B, out_dtype)
    np.testing.assert_allclose(
        other, whole, rtol=1e-4 if out_dtype == "float32" else 1e-12
    )
