"""The order of columns by their values."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmcnb.columns.gaps import donors_of_sample, fill_from
from mmcnb.columns.order import order_of_columns
from mmcnb.samples.matrix import as_csr_block, as_matrix, take_columns


def in_order(rows):
    return take_columns(rows, order_of_columns(rows))


def rows_of(seed, m=90, d=40):
    """Few values and equal columns, so that many columns differ in late rows only."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (m, d)) * (rng.random((m, d)) < rng.random())
    rows[:, d // 2 :: 3] = rows[:, : len(range(d // 2, d, 3))]
    rows[: m // 2, ::4] = 0
    return rows.astype(np.float64)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("form", [np.array, csr_array])
def test_columns_in_any_order_are_put_in_the_same(form, seed):
    rows = rows_of(seed)
    arranged = np.random.default_rng(seed).permutation(rows.shape[1])
    one = in_order(form(rows))
    other = in_order(form(rows[:, arranged]))
    assert abs(one - other).max() == 0
    assert order_of_columns(one) is None


@pytest.mark.parametrize("seed", range(8))
def test_sparse_columns_have_the_order_of_dense_ones(seed, monkeypatch):
    monkeypatch.setattr("mmcnb.columns.order.FIRST_SPARSE_ROWS", 5)
    for m in (1, 2, 90):
        rows = rows_of(seed, m)
        np.testing.assert_array_equal(
            in_order(rows), in_order(csr_array(rows)).toarray()
        )


@pytest.mark.parametrize("form", [np.array, csr_array])
@pytest.mark.parametrize("repeat", ["each", "all", "some"])
def test_repeated_rows_change_no_order(repeat, form):
    rows = rows_of(3)
    repeated = {
        "each": np.repeat(rows, 2, axis=0),
        "all": np.tile(rows, (3, 1)),
        "some": np.repeat(rows, 1 + np.arange(90) % 3, axis=0),
    }[repeat]
    order = order_of_columns(form(rows))
    np.testing.assert_array_equal(order_of_columns(form(repeated)), order)


def test_units_change_no_order():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 30))
    order = order_of_columns(rows)
    scaled = np.exp(rows * rng.uniform(0.1, 2, 30)) * rng.lognormal(0, 5, 30) - 7
    np.testing.assert_array_equal(order_of_columns(scaled), order)
    np.testing.assert_array_equal(order_of_columns(rows.astype(np.float32)), order)


def test_signed_zeros_are_equal():
    rows = rows_of(1)
    np.testing.assert_array_equal(
        order_of_columns(np.where(rows == 0, -0.0, rows)), order_of_columns(rows)
    )


def test_taken_sparse_columns_rise_in_each_row():
    rows = rows_of(5)
    order = np.random.default_rng(5).permutation(rows.shape[1])
    block = take_columns(as_csr_block(csr_array(rows)), order)
    assert as_matrix(block).has_canonical_format
    np.testing.assert_array_equal(as_matrix(block).toarray(), rows[:, order])


def test_filled_gaps_have_the_same_bits_in_any_order_of_columns():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 30)) * rng.lognormal(0, 3, 30)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    order = rng.permutation(30)
    filled = fill_from(donors_of_sample(rows), rows)
    other = fill_from(donors_of_sample(rows[:, order]), rows[:, order])
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(other, filled[:, order])
