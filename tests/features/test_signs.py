"""Axes have the same signs on every processor, also when entries tie up to rounding."""

import numpy as np
import pytest

from mmcnb.features.nystroem import principal_directions, principal_features
from mmcnb.graph.axes import leading_axes
from mmcnb.samples.matrix import with_fixed_signs

EPS = np.finfo(float).eps


def test_the_largest_entry_of_each_column_is_positive():
    axes = np.random.default_rng(0).standard_normal((9, 40))
    turned = with_fixed_signs(axes)
    np.testing.assert_array_equal(np.abs(turned), np.abs(axes))
    np.testing.assert_array_equal(turned.max(axis=0), np.abs(axes).max(axis=0))


@pytest.mark.parametrize("rounding", [-8 * EPS, 0.0, 8 * EPS])
@pytest.mark.parametrize("sign", [-1, 1])
def test_of_entries_that_tie_up_to_rounding_the_first_is_positive(rounding, sign):
    axis = sign * np.array([0.25, -2.0, 2.0 + rounding])
    np.testing.assert_allclose(
        with_fixed_signs(axis[:, None])[:, 0], [-0.25, 2.0, -2.0]
    )


def test_a_column_of_zeros_stays():
    np.testing.assert_array_equal(with_fixed_signs(np.zeros((3, 1))), np.zeros((3, 1)))


def mirrored(n_columns):
    """Return rows whose leading axis has two largest entries, of opposite signs."""
    random = np.random.default_rng(1)
    rows = 1e-3 * random.standard_normal((60, n_columns))
    along = random.standard_normal(60)
    rows[:, 0] = along
    rows[:, -1] = -along
    return rows


@pytest.mark.parametrize(
    ("scores", "n_columns"),
    [
        (lambda rows: principal_features(rows).z[:, 0], 5),
        # the iterative solver
        (
            lambda rows: principal_directions(rows, 1)[:, 0],
            1_001,
        ),
        (
            lambda rows: (
                rows @ leading_axes(rows, np.random.RandomState(0), n_axes=3).axes[:, 0]
            ),
            5,
        ),
    ],
)
def test_rounding_of_the_rows_turns_no_axis(scores, n_columns):
    rows = mirrored(n_columns)
    noise = np.random.default_rng(2).choice([-4 * EPS, 4 * EPS], size=(8, *rows.shape))
    expected = scores(rows)
    assert np.corrcoef(expected, rows[:, 0])[0, 1] > 0.99
    for each in noise:
        np.testing.assert_allclose(scores(rows * (1 + each)), expected, atol=1e-6)
