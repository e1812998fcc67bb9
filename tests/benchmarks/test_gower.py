"""Medoids of Gower's distance: no swap betters them, and the distances are those of the definition."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from benchmarks.baselines import GowerMedoids, gower_distances
from benchmarks.baselines.gower import medoids, swap_costs
from benchmarks.methods import GOWER, estimator


def cost(distances, rows):
    return distances[list(rows)].min(axis=0).sum()


def between(points):
    return np.linalg.norm(points[:, None] - points, axis=2)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_cost_of_each_swap_is_that_of_its_medoids(k):
    distances = between(np.random.default_rng(k).normal(size=(12, 2)))
    rows = np.arange(k) * 3
    costs = swap_costs(distances, rows)
    for row, place in np.ndindex(costs.shape):
        swapped = [*rows[:place], row, *rows[place + 1 :]]
        assert costs[row, place] == pytest.approx(cost(distances, swapped))


@pytest.mark.parametrize("seed", range(10))
def test_no_subset_with_one_other_medoid_is_better(seed):
    random = np.random.default_rng(seed)
    k, distances = int(random.integers(1, 4)), between(random.normal(size=(11, 2)))
    found = medoids(distances, k)
    assert found.cost == pytest.approx(cost(distances, found.rows))
    subsets = [one for one in combinations(range(11), k) if len({*one, *found.rows}) <= k + 1]
    assert found.cost <= min(cost(distances, one) for one in subsets) + 1e-9
    np.testing.assert_array_equal(found.labels, distances[found.rows].argmin(axis=0))


def test_medoids_of_separated_groups_are_the_best_of_all_subsets():
    random = np.random.default_rng(0)
    points = np.repeat(np.array([[0, 0], [9, 0], [0, 9]]), 4, axis=0) + random.normal(size=(12, 2))
    found = medoids(between(points), 3)
    assert found.cost == pytest.approx(
        min(cost(between(points), rows) for rows in combinations(range(12), 3))
    )
    assert len({tuple(found.labels[start : start + 4]) for start in (0, 4, 8)}) == 3


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
    assert isinstance(estimator(GOWER), GowerMedoids)
