"""Medoids of Gower's distance: no swap betters them, and the distances are those of the definition."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from benchmarks.baselines import gower_distances
from benchmarks.baselines.gower import medoids, swap_costs
from benchmarks.methods import GOWER, estimator


def cost(distances, rows):
    return distances[list(rows)].min(axis=0).sum()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_subset_with_one_other_medoid_is_better(k):
    points = np.random.default_rng(k).normal(size=(11, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    result = medoids(distances, k)
    assert result.cost == pytest.approx(cost(distances, result.rows))
    subsets = [
        one for one in combinations(range(11), k) if len({*one, *result.rows}) <= k + 1
    ]
    assert result.cost <= min(cost(distances, one) for one in subsets) + 1e-9
    np.testing.assert_array_equal(result.labels, distances[result.rows].argmin(axis=0))
    start = np.arange(k) * 3
    costs = swap_costs(distances, start)
    for row, place in np.ndindex(costs.shape):
        swapped = [*start[:place], row, *start[place + 1 :]]
        assert costs[row, place] == pytest.approx(cost(distances, swapped))


def test_a_column_counts_by_its_range_or_by_whether_values_differ():
    frame = pd.DataFrame(
        {
            "income": [1.0, 3.0, 5.0],
            "flag": [True, True, False],
            "plan": ["a", "b", "b"],
            "since": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05"]),
            "constant": 7,
        }
    )
    expected = [0.5 + 0 + 1 + 0.25 + 0, 1 + 1 + 1 + 1 + 0, 0.5 + 1 + 0 + 0.75 + 0]
    distances = gower_distances(frame)
    np.testing.assert_allclose(distances[np.triu_indices(3, 1)], np.array(expected) / 5)
    np.testing.assert_array_equal(distances, distances.T)


def test_it_finds_groups_of_a_mixed_frame():
    y = np.arange(40) % 2
    income = np.where(y == 0, 1.0, 9.0) + np.random.default_rng(0).normal(size=40)
    frame = pd.DataFrame({"income": income, "plan": np.where(y == 0, "free", "paid")})
    labels = estimator(GOWER, 2, random_state=0).fit(frame).labels_
    np.testing.assert_array_equal(labels == labels[0], y == y[0])
