"""Peers of mixed tables: each finds two groups, with gaps and without, and their parts are as defined."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import mixed
from benchmarks.baselines import gower_distances
from benchmarks.methods import GOWER, estimator
from benchmarks.studies import _columns_peers
from mmcnb.metrics import adjusted_rand_index

Y = np.arange(120) % 2


def groups(share=0.0):
    """Two groups by two numbers, a flag, a text and a date."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": 4.0 * Y + rng.normal(size=120),
            "paid": (Y == 1) ^ (rng.random(120) < 0.1),
            "age": 30 + 9 * Y + 2 * rng.normal(size=120),
            "plan": np.where(rng.random(120) < 0.1, "plus", np.array(["a", "b"])[Y]),
            "joined": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(100 * Y + rng.integers(0, 30, 120), "D"),
        }
    )
    return _columns_peers.with_gaps(frame, share, 0)


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("method", [*mixed.METHODS, GOWER])
def test_each_method_finds_two_groups(method, share):
    if method in mixed.PACKAGES:
        pytest.importorskip(mixed.PACKAGES[method][0])
    labels = estimator(method, 2, random_state=0).fit(groups(share)).labels_
    assert adjusted_rand_index(Y, labels) > 0.8


def test_a_frame_is_divided_and_its_gaps_are_filled():
    table = mixed.mixed(groups(0.2))
    assert table.numbers.shape == (120, 3)
    assert table.codes.shape == (120, 2)
    assert np.isnan(table.numbers).sum(axis=0).tolist() == [24, 24, 24]
    np.testing.assert_allclose(np.nanstd(table.numbers, axis=0), 1)
    filled = table.filled()
    is_gap = np.isnan(table.numbers[:, 0])
    assert set(filled.numbers[is_gap, 0]) == {np.nanmedian(table.numbers[:, 0])}
    flags = pd.DataFrame({"flag": [True, None, True, False]})
    codes = mixed.mixed(flags)
    assert codes.codes[:, 0].tolist() == [0, -1, 0, 1]
    assert codes.filled().codes[:, 0].tolist() == [0, 0, 0, 1]


def test_distances_of_factors_are_those_of_the_categories_by_their_shares():
    codes = np.array([[0], [1], [1], [1]])
    columns = mixed.factor_columns(mixed.Mixed(np.empty((4, 0)), codes))
    squared = np.square(columns[0] - columns[1]).sum()
    assert squared == pytest.approx(1 / 0.25 + 1 / 0.75)


def test_gaps_do_not_count_in_the_distance_of_gower():
    frame = pd.DataFrame(
        {
            "income": [1.0, np.nan, 5.0],
            "plan": ["a", "b", None],
            "since": pd.to_datetime(["2024-01-01", None, "2024-01-05"]),
        }
    )
    distances = gower_distances(frame)
    assert distances[0].tolist() == [0, 1, 1]
    assert distances[1, 2] == 1  # without a common column
    frame["age"] = [20.0, 25.0, 30.0]
    distances = gower_distances(frame)
    assert distances[0, 1] == pytest.approx((1 + 0.5) / 2)
    assert distances[1, 2] == pytest.approx(0.5)


def test_the_table_has_means_by_kind_and_gaps():
    rows = [
        ("customers-1", "ours", 0.0, 0.9),
        ("customers-2", "ours", 0.0, 0.7),
        ("heart", "ours", 0.0, 0.2),
        ("heart", "ours", 0.2, 0.1),
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "method", "gaps", "ari"])
    found = _columns_peers.tables(frame.assign(status="ok")).tables["columns-mixed"]
    found = found.set_index(["kind", "gaps"])["ours"]
    assert found["customers", 0.0] == pytest.approx(0.8)
    assert found["real", 0.2] == 0.1
    assert found["made", 0.0] == pytest.approx(0.8)
    assert found["all", 0.0] == pytest.approx(0.6)


def test_each_table_has_a_row_and_the_best_method_comes_first():
    rows = [
        ("heart", 0.0, GOWER, 0.4),
        ("heart", 0.0, mixed.KAMILA, 0.5),
        ("customers-1", 0.0, GOWER, 0.7),
        ("customers-1", 0.0, mixed.KAMILA, 0.9),
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "gaps", "method", "ari"])
    result = _columns_peers.tables(frame.assign(status="ok"))
    table = result.tables["columns-mixed-sets"]
    assert list(table) == ["dataset", "gaps", mixed.KAMILA, GOWER]
    assert table["dataset"].tolist() == ["customers-1", "heart", "mean"]
    assert np.allclose(table.loc[2, [mixed.KAMILA, GOWER]].tolist(), [0.7, 0.55])
