import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.kernels import unchecked as kernels
from tests import reference
from tests.kernels.inputs import DTYPES, rows_and_basis, sparse_rows

SHAPES = [(0, 3), (1, 1), (1, 4), (50, 7)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fixed_point_sums_equal_the_plain_loop(dtype):
    for rows, d in SHAPES:
        X, b = rows_and_basis(rows, d, 1, dtype)
        z = np.linspace(-1, 1.5, rows)
        numerator, denominator = kernels.basis_fixed_point_sums(X, z, b[0].astype(float), 0.2)
        expected = reference.basis_fixed_point_sums(X, z, b[0], 0.2)
        np.testing.assert_allclose(numerator, expected[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(denominator, expected[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_csr_fixed_point_sums_equal_the_plain_loop(dtype):
    for rows, d in SHAPES:
        csr, b = sparse_rows(rows, d, dtype), rows_and_basis(0, d, 1)[1][0]
        z = np.linspace(-1, 1.5, rows)
        numerator, denominator = kernels.basis_fixed_point_sums_csr(*csr, z, b, 0.2)
        expected = reference.basis_fixed_point_sums(reference.dense_rows(*csr, d), z, b, 0.2)
        np.testing.assert_allclose(numerator, expected[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(denominator, expected[1], rtol=1e-12, atol=1e-14)


def test_fixed_point_sums_are_the_gradient_of_the_projection():
    """d/db of <Psi, phi(b)> is 2 gamma (numerator - denominator b): Wu & Zhang, eq. (45)."""
    X, b = rows_and_basis(30, 3, 1)
    z, b, gamma, step = np.linspace(-1, 1.5, 30), b[0], 0.2, 1e-5
    numerator, denominator = kernels.basis_fixed_point_sums(X, z, b, gamma)

    def projection(b):
        return z @ Kernel("rbf", gamma)(X, b[None])[:, 0]

    gradient = [(projection(b + step * e) - projection(b - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(2 * gamma * (numerator - denominator * b), gradient, rtol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_add_up_over_blocks(dtype):
    X, b = rows_and_basis(50, 7, 1, dtype)
    z, b = np.linspace(-1, 1.5, 50), b[0].astype(float)
    whole, parts = kernels.weighted_row_sum(X, z), [slice(0, 13), slice(13, 50)]
    np.testing.assert_allclose(sum(kernels.weighted_row_sum(X[r], z[r]) for r in parts), whole, rtol=1e-12)
    numerator, denominator = kernels.basis_fixed_point_sums(X, z, b, 0.2)
    blocks = [kernels.basis_fixed_point_sums(X[r], z[r], b, 0.2) for r in parts]
    np.testing.assert_allclose(sum(n for n, _ in blocks), numerator, rtol=1e-12)
    assert sum(d for _, d in blocks) == pytest.approx(denominator, rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_weighted_row_sum_equals_the_plain_loop(dtype):
    for rows, d in SHAPES:
        X, _ = rows_and_basis(rows, d, 0, dtype)
        csr, z = sparse_rows(rows, d, dtype), np.linspace(-1, 1.5, rows)
        np.testing.assert_allclose(
            kernels.weighted_row_sum(X, z), reference.weighted_row_sum(X, z), rtol=1e-12, atol=1e-14
        )
        expected = reference.weighted_row_sum(reference.dense_rows(*csr, d), z)
        np.testing.assert_allclose(kernels.weighted_row_sum_csr(*csr, z, d), expected, rtol=1e-12, atol=1e-14)


def test_float32_rows_are_added_in_float64():
    X = np.full((100_000, 1), 0.1, np.float32)
    total = kernels.weighted_row_sum(X, np.ones(len(X)))[0]
    assert total == pytest.approx(len(X) * float(np.float32(0.1)), rel=1e-11)


def test_nan_is_never_hidden():
    X, b = rows_and_basis(4, 3, 1)
    X[1, 2] = np.nan
    csr = X.ravel(), np.tile([0, 1, 2], 4), np.arange(0, 13, 3)
    for numerator, denominator in (
        kernels.basis_fixed_point_sums(X, np.ones(4), b[0], 0.2),
        kernels.basis_fixed_point_sums_csr(*csr, np.ones(4), b[0], 0.2),
    ):
        assert np.isnan(denominator)
        assert np.all(np.isnan(numerator))
    assert np.isnan(kernels.weighted_row_sum(X, np.ones(4))[2])
    assert np.isnan(kernels.weighted_row_sum_csr(*csr, np.ones(4), 3)[2])


def test_a_long_sum_of_float32_keeps_its_digits():
    # Added up in float32, 20 million terms of .1 end near 2.1 million.
    X = np.full((20_000_000, 1), 0.1, np.float32)
    exact = X.shape[0] * float(np.float32(0.1))
    assert kernels.weighted_row_sum(X, np.ones(X.shape[0]))[0] == pytest.approx(exact, rel=1e-9)
