"""Clusters matched to earlier ones, beside all assignments tried out."""

from itertools import permutations

import numpy as np
import pytest

from mmcnb.choice.match import changes, matched


def by_brute_force(table):
    """The largest common weight of any assignment of alike clusters."""
    a, b = table.shape
    lighter = np.minimum(table.sum(axis=1)[:, None], table.sum(axis=0))
    alike = np.pad(np.where(2 * table >= lighter, table, 0), ((0, b), (0, 0)))
    return max(
        sum(alike[i, j] for j, i in enumerate(chosen))
        for chosen in permutations(range(a + b), b)
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_match_has_the_largest_common_weight(seed):
    random = np.random.default_rng(seed)
    table = random.integers(0, 9, random.integers(1, 4, 2)) * random.integers(0, 2)
    numbers = matched(table)
    a = len(table)
    assert np.unique(numbers).size == table.shape[1]
    assert sum(table[i, j] for j, i in enumerate(numbers) if i < a) == by_brute_force(
        table
    )
    assert sorted(numbers[numbers >= a]) == list(
        range(a, a + np.count_nonzero(numbers >= a))
    )


def test_each_change_has_its_word_and_a_number_without_rows_is_left_out():
    table = np.zeros((6, 6))
    table[:4, :5] = [
        [90, 0, 0, 0, 0],
        [0, 50, 0, 0, 40],
        [0, 0, 60, 0, 0],
        [0, 0, 30, 0, 0],
    ]
    found = changes(table, table.sum(axis=1).tolist(), [95, 50, 90, 0, 40, 0])
    assert [one["change"] for one in found] == [
        "kept",
        "split",
        "merged",
        "gone",
        "new",
    ]
    assert [(one["number"], one["before"], one["after"]) for one in found][3:] == [
        (3, 30, 0),
        (4, 0, 40),
    ]
