"""Sums over dense and CSR rows for two clusters equal plain loops."""

import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
from tests import reference
from tests.kernels.arguments import DTYPES, rows_and_basis, sparse_rows


def problem(rows, d, planes=3):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(rows) < 0.5, -1, 1).astype(np.int8)
    weights = rng.random(rows) + 0.5
    coefs = rng.standard_normal((d, planes))
    offsets = rng.standard_normal(planes)
    return y, weights, coefs, offsets, np.array([0.3, 1.0, np.inf])[:planes]


def assert_all_close(values, expected):
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(
            value, np.reshape(wanted, np.shape(value)), rtol=1e-11, atol=1e-13
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "d"), [(0, 3), (1, 1), (256, 5), (301, 7)])
def test_sums_of_dense_and_csr_rows_equal_the_plain_loop(rows, d, dtype):
    y, weights, coefs, offsets, rhos = problem(rows, d)
    csr, (dense, _) = sparse_rows(rows, d, dtype), rows_and_basis(rows, d, 0, dtype)
    for suffix, block, F in (
        ("", [dense], dense),
        ("_csr", csr, reference.dense_rows(*csr, d)),
    ):
        F = F.astype(float)
        for k in range(2):
            plane = y, weights, coefs[:, k].copy(), offsets[k], rhos[k]
            values = getattr(kernels, f"decision_values{suffix}")(*block, *plane[2:4])
            assert_all_close([values], [reference.decision_values(F, *plane[2:4])])
            found = getattr(kernels, f"most_violated_constraint{suffix}")(
                *block, *plane
            )
            assert_all_close(found, reference.most_violated_constraint(F, *plane))
        planes = y, weights, coefs, offsets, rhos
        *shares, row_sums = getattr(kernels, f"plane_sums{suffix}")(*block, *planes)
        *expected_shares, expected = reference.plane_sums(F, *planes)
        assert_all_close(shares, expected_shares)
        if dtype == "float32" and not suffix:  # sums of 64 rows are float32
            assert np.all(np.abs(row_sums - expected) <= 1e-6 * weights @ np.abs(F))
        else:
            assert_all_close([row_sums], [expected])


def test_float32_row_sums_of_many_rows_are_good_to_a_ten_millionth():
    F = np.random.default_rng(0).random((4096, 5), dtype=np.float32)
    y, weights, coefs, _, _ = problem(4096, 5, 1)
    _, _, row_sums = kernels.plane_sums(
        F, y, weights, coefs, np.zeros(1), np.array([np.inf])
    )
    error = np.abs(row_sums[0] - (weights * y) @ F.astype(float))
    assert np.all(error <= 1e-7 * weights @ F.astype(float))


def test_a_row_at_the_threshold_is_in_the_plane_and_on_the_boundary_is_above_it():
    F = np.array([[0.0], [0.0], [1.0]])
    y = np.array([1, -1, 1], np.int8)
    weights = np.array([1.0, 2.0, 4.0])
    csr = np.ones(1), np.zeros(1, np.int32), np.array([0, 0, 0, 1])
    for suffix, block in (("", [F]), ("_csr", csr)):
        plane = *block, y, weights
        active, _, sums = getattr(kernels, f"most_violated_constraint{suffix}")(
            *plane, np.ones(1), 0.0, 1.0
        )
        s, _, _ = getattr(kernels, f"plane_sums{suffix}")(
            *plane, np.ones((1, 1)), np.zeros(1), np.ones(1)
        )
        assert active.tolist() == [1, 1, 1]
        assert s.tolist() == [7]
        assert sums[3] == 7  # weight with f >= 0
        assert sums[4] == 2  # of the second row the label would change


@pytest.mark.parametrize("weight", [0.0, 0.3, 7.7])
def test_rows_of_equal_weight_have_the_bits_of_weight_one(weight):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((200, 5)).astype("float32")
    y = rng.choice(np.array([-1, 1], np.int8), 200)
    planes = rng.standard_normal((5, 3)), np.zeros(3), np.full(3, 0.5)
    one = kernels.plane_sums(F, y, np.ones(200), *planes)
    for found, expected in zip(
        kernels.plane_sums(F, y, np.full(200, weight), *planes), one, strict=True
    ):
        np.testing.assert_array_equal(found, weight * expected)
