import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
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


def assert_all_close(values, expected, rtol=1e-11):
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, np.reshape(wanted, np.shape(value)), rtol=rtol, atol=rtol / 100)


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
        s, t, row_sums = getattr(kernels, f"plane_sums{suffix}")(*block, *planes)
        expected = reference.plane_sums(F, *planes)
        assert_all_close((s, t), expected[:2])
        if dtype == "float32" and not suffix:
            bound = 1e-6 * planes[1] @ np.abs(F) if rows else np.zeros(d)
            assert np.all(np.abs(row_sums - expected[2]) <= bound)
        else:
            assert_all_close([row_sums], expected[2:])


def test_float32_row_sums_of_many_rows_are_good_to_a_ten_millionth():
    F = np.random.default_rng(0).random((4096, 5), dtype=np.float32)
    y, weights, coefs, _, _ = problem(4096, 5, 1)
    _, _, row_sums = kernels.plane_sums(F, y, weights, coefs, np.zeros(1), np.array([np.inf]))
    error = np.abs(row_sums[0] - reference.weighted_row_sum(F, weights * y))
    assert np.all(error <= 1e-7 * weights @ np.abs(F.astype(float)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_planes_of_no_weight_are_zero(dtype):
    F, _ = rows_and_basis(10, 3, 0, dtype)
    y, weights, coefs, offsets, rhos = problem(10, 3)
    for sums in kernels.plane_sums(F, y, 0 * weights, coefs, offsets, rhos):
        np.testing.assert_array_equal(sums, np.zeros_like(sums))


def test_infinite_threshold_takes_every_row():
    F, _ = rows_and_basis(70, 3, 0)
    y, weights, coefs, offsets, _ = problem(70, 3)
    active, row_sum, _ = kernels.most_violated_constraint(
        F, y, weights, coefs[:, 0].copy(), offsets[0], np.inf
    )
    assert active.all()
    assert_all_close([row_sum], [reference.weighted_row_sum(F, weights * y)])


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
        assert_all_close([s[k], t[k]], sums[:2])
        assert_all_close([row_sums[k]], [row_sum], rtol=1e-5)


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


def test_a_row_on_the_boundary_counts_as_above_it():
    F, y, weights = np.array([[0.0], [0.0], [1.0]]), np.array([1, -1, 1], np.int8), np.array([1.0, 2.0, 4.0])
    _, _, sums = kernels.most_violated_constraint(F, y, weights, np.ones(1), 0.0, 2.0)
    assert sums[3] == 7  # weight with f >= 0
    assert sums[4] == 2  # of the second row the label would change


def test_a_row_at_the_threshold_is_in_the_plane():
    ones, csr = np.ones(1), (np.ones(1), np.zeros(1, int), np.array([0, 1]))
    for suffix, block in (("", (np.ones((1, 1)),)), ("_csr", csr)):
        plane = *block, np.ones(1, np.int8), ones
        active, _, _ = getattr(kernels, f"most_violated_constraint{suffix}")(*plane, ones, 0.0, 1.0)
        s, _, _ = getattr(kernels, f"plane_sums{suffix}")(*plane, ones[:, None], np.zeros(1), ones)
        assert active.tolist() == s.tolist() == [1]


@pytest.mark.parametrize("weight", [0.3, 1.0, 7.7])
def test_rows_of_equal_weight_have_the_bits_of_weight_one(weight):
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((200, 5)).astype("float32"), rng.choice(np.array([-1, 1], np.int8), 200)
    planes = rng.standard_normal((5, 3)), np.zeros(3), np.full(3, 0.5)
    one = kernels.plane_sums(F, y, np.ones(200), *planes)
    for found, expected in zip(kernels.plane_sums(F, y, np.full(200, weight), *planes), one, strict=True):
        np.testing.assert_array_equal(found, weight * expected)
