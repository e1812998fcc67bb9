import numpy as np
import pytest

from mmcnb import kernels
from tests import reference
from tests.kernels.inputs import DTYPES, rows_and_basis, sparse_rows

SHAPES = [(0, 3), (1, 1), (1, 4), (256, 5), (300, 7)]


def problem(rows, d, planes=3):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(rows) < 0.5, -1, 1).astype(np.int8)
    weights = rng.random(rows) + 0.5
    coefs, offsets = rng.standard_normal((d, planes)), rng.standard_normal(planes)
    return y, weights, coefs, offsets, np.array([0.3, 1.0, np.inf])[:planes]


def dense_and_csr(rows, d, dtype):
    """Arguments of the dense kernel and of its twin for the same rows, and the rows in float64."""
    csr = sparse_rows(rows, d, dtype)
    F, _ = rows_and_basis(rows, d, 0, dtype)
    return [("", (F,), F.astype(float)), ("_csr", csr, reference.dense_rows(*csr, d))]


def assert_all_close(values, expected):
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, np.reshape(wanted, np.shape(value)), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "d"), SHAPES)
def test_decision_values_equal_the_plain_loop(rows, d, dtype):
    _, _, coefs, offsets, _ = problem(rows, d)
    for suffix, block, F in dense_and_csr(rows, d, dtype):
        f = getattr(kernels, f"decision_values{suffix}")(*block, coefs[:, 0].copy(), offsets[0])
        assert f.dtype == np.float64
        assert_all_close([f], [reference.decision_values(F, coefs[:, 0], offsets[0])])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "d"), SHAPES)
def test_most_violated_constraint_equals_the_plain_loop(rows, d, dtype):
    y, weights, coefs, offsets, rhos = problem(rows, d)
    for suffix, block, F in dense_and_csr(rows, d, dtype):
        plane = y, weights, coefs[:, 0].copy(), offsets[0], rhos[0]
        found = getattr(kernels, f"most_violated_constraint{suffix}")(*block, *plane)
        assert_all_close(found, reference.most_violated_constraint(F, *plane))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "d"), SHAPES)
def test_plane_sums_equal_the_plain_loop(rows, d, dtype):
    planes = problem(rows, d)
    for suffix, block, F in dense_and_csr(rows, d, dtype):
        found = getattr(kernels, f"plane_sums{suffix}")(*block, *planes)
        assert_all_close(found, reference.plane_sums(F, *planes))


def test_no_other_plane_is_violated_more():
    """The plane maximises the violation sum_i w_i c_i (rho - y_i f_i) over c in {0, 1}^n."""
    F, _ = rows_and_basis(200, 4, 0)
    y, weights, coefs, offsets, rhos = problem(200, 4)
    coef, offset, rho = coefs[:, 0].copy(), offsets[0], rhos[0]
    active, _, sums = kernels.most_violated_constraint(F, y, weights, coef, offset, rho)
    violation = weights * (rho - y * kernels.decision_values(F, coef, offset))
    assert sums[2] == pytest.approx(active @ violation)
    rng = np.random.default_rng(0)
    assert all((rng.random(200) < share) @ violation <= sums[2] for share in np.linspace(0, 1, 50))


def test_a_plane_rebuilt_under_its_own_labels_is_the_plane():
    F, _ = rows_and_basis(300, 4, 0, "float32")
    y, weights, coefs, offsets, rhos = problem(300, 4)
    s, t, row_sums = kernels.plane_sums(F, y, weights, coefs, offsets, rhos)
    for k in range(3):
        _, row_sum, sums = kernels.most_violated_constraint(
            F, y, weights, coefs[:, k].copy(), offsets[k], rhos[k]
        )
        assert_all_close([s[k], t[k], row_sums[k]], [sums[0], sums[1], row_sum])


def test_turning_labels_and_hyperplane_over_turns_the_signed_sums_over():
    F, _ = rows_and_basis(100, 4, 0)
    y, weights, coefs, offsets, rhos = problem(100, 4)
    s, t, row_sums = kernels.plane_sums(F, y, weights, coefs, offsets, rhos)
    assert_all_close(kernels.plane_sums(F, -y, weights, -coefs, -offsets, rhos), (s, -t, -row_sums))


def test_a_weight_of_two_is_the_row_twice():
    F, _ = rows_and_basis(60, 4, 0)
    y, weights, coefs, offsets, rhos = problem(60, 4)
    weights[:20] *= 2
    twice = np.r_[:20, :60]
    single = np.r_[weights[:20] / 2, weights[:20] / 2, weights[20:]]
    assert_all_close(
        kernels.plane_sums(F[twice], y[twice], single, coefs, offsets, rhos),
        kernels.plane_sums(F, y, weights, coefs, offsets, rhos),
    )
