"""Valleys of density: equal to a plain count, blind to repeated rows, and deep only where rows are sparse."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmcnb.features.valley import (
    APART,
    BOUNDARY_SHARE,
    FEWEST,
    NEIGHBOURS,
    boundary_valley,
    surroundings,
    weakest_valley,
)


def around(rows):
    return surroundings(rows, np.random.RandomState(0))


def plain_valleys(rows, labels):
    """The valley of the whole boundary and of each pair of clusters, row by row."""
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    count = min(NEIGHBOURS, max(1, (len(rows) - 1) // 3))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :count]
    reach = distances[np.arange(len(rows)), nearest[:, -1]]
    spread = np.log(reach)
    spread = (spread - spread.mean()) / spread.std()
    whole, pairs = [], {}
    for i, numbers in enumerate(nearest):
        others = labels[numbers]
        if (others != labels[i]).mean() >= BOUNDARY_SHARE:
            whole.append((spread[i], 1 / reach[i]))
        for other in set(others.tolist()) - {int(labels[i])}:
            if (others == other).mean() >= BOUNDARY_SHARE:
                pair = tuple(sorted((int(labels[i]), other)))
                pairs.setdefault(pair, []).append((spread[i], 1 / reach[i]))
    means = {pair: weighted_mean(values) for pair, values in pairs.items() if len(values) >= FEWEST}
    return weighted_mean(whole) if whole else APART, means


def weighted_mean(values):
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_valleys_are_those_of_a_plain_count(k, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(120, 3)) + 1.5 * rng.integers(0, 2, (120, 1))
    labels = rng.integers(0, k, 120) if seed % 2 else (rows[:, 0] > np.linspace(-1, 1, k)[:, None]).sum(0) % k
    whole, pairs = plain_valleys(rows, labels)
    found, pair = weakest_valley(around(rows), labels)
    assert boundary_valley(around(rows), labels) == pytest.approx(whole, abs=1e-12)
    assert found == pytest.approx(min(pairs.values(), default=APART), abs=1e-12)
    assert pair == (min(pairs, key=pairs.get) if pairs else None)


def test_a_row_that_stands_twice_counts_once():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    labels = (rows[:, 0] > 0.2) * 1
    times = rng.integers(1, 4, 80)
    many = around(np.repeat(rows, times, axis=0))
    valley, pair = weakest_valley(around(rows), labels)
    assert boundary_valley(many, np.repeat(labels, times)) == pytest.approx(
        boundary_valley(around(rows), labels), abs=1e-12
    )
    assert weakest_valley(many, np.repeat(labels, times)) == (pytest.approx(valley, abs=1e-12), pair)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_distinct_rows_have_neighbours_too(n):
    rows = np.repeat(np.arange(float(n))[:, None], 20, axis=0)
    assert around(rows).neighbours.shape == (n, 1)
    assert np.isfinite(boundary_valley(around(rows), (rows[:, 0] > 0) * 1))


def test_sparse_rows_have_the_valleys_of_dense_ones():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((150, 30)) < 0.2, rng.random((150, 30)), 0.0)
    labels = (rows.sum(axis=1) > 3) * 1
    dense = boundary_valley(around(rows), labels)
    assert boundary_valley(around(csr_array(rows)), labels) == pytest.approx(dense, abs=1e-9)


def test_a_boundary_in_the_middle_of_a_group_is_no_valley():
    rng = np.random.default_rng(0)
    group = rng.normal(size=(600, 2))
    assert boundary_valley(around(group), (group[:, 0] > 0) * 1) < 0
    y = rng.integers(0, 2, 600)
    apart = group + 3.5 * y[:, None]
    assert boundary_valley(around(apart), y) > 1
    assert boundary_valley(around(group + 99.0 * y[:, None]), y) == APART


def test_the_weakest_pair_is_the_one_that_touches():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [9, 2.0]], 100, axis=0)
    valley, pair = weakest_valley(around(rows), np.repeat([0, 1, 2], 100))
    assert pair == (1, 2)
    assert valley < 0.5
    assert weakest_valley(around(rows), np.repeat([0, 1, 1], 100)) == (APART, None)
