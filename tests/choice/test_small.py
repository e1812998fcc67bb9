"""Small clusters: found among far rows, not in noise; each becomes a cluster, and others stay as they are."""

from functools import partial

import numpy as np
import pytest

from mmcnb.choice.judge import judge
from mmcnb.choice.number import ChosenNumber
from mmcnb.choice.small import far_groups, far_row_groups, set_apart, with_small
from mmcnb.graph.merge_tree import by_first
from tests.choice.graphs import candidate, graph_of, ring


def drawn_twice(sizes, n_noise=0, seed=0):
    """Rows of two large groups, then of small ones and of noise; the small group of each, from 1 on."""
    random = np.random.default_rng(seed)
    large = random.normal(size=(800, 4)) + 14.0 * (np.arange(800) % 2)[:, None]
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = 40.0 * np.eye(4)[: len(sizes)]
    small = centres[y] + random.normal(size=(len(y), 4))
    noise = random.uniform(-60, 80, (n_noise, 4))
    return np.vstack([large, small, noise]), np.r_[
        np.zeros(800, int), y + 1, np.zeros(n_noise, int)
    ]


@pytest.mark.parametrize(
    ("sizes", "n_noise"), [([12], 0), ([9, 30], 60), ([16, 20, 40], 60)]
)
def test_small_groups_far_from_others_are_found_whole(sizes, n_noise):
    X, truth = drawn_twice(sizes, n_noise)
    found = far_row_groups(X, graph_of(X[:800]), seed=0).small
    assert found.max() == len(sizes)
    for one in range(1, len(sizes) + 1):
        inside = found[truth == one]
        assert inside.min() == inside.max() > 0
        assert np.count_nonzero(found == inside[0]) <= 1.25 * len(inside)
    assert not found[:800].any()


@pytest.mark.parametrize(
    ("kind", "columns"), [("normal", 2), ("uniform", 5), ("heavy", 20)]
)
def test_far_rows_of_one_cloud_are_no_cluster(kind, columns):
    random = np.random.default_rng(columns)
    draws = {
        "normal": random.normal,
        "uniform": random.uniform,
        "heavy": partial(random.standard_t, 3),
    }
    X = draws[kind](size=(2000, columns))
    far = np.argsort(-np.linalg.norm(X[1000:] - X.mean(axis=0), axis=1))[:200]
    sample = np.vstack([X[:1000], X[1000:][far]])
    assert not far_row_groups(sample, graph_of(X[:1000]), seed=0).small.any()


def test_what_remains_between_far_groups_may_be_too_small():
    groups = np.repeat([0, 1, 2, 3], [20, 5, 8, 9])
    is_far = groups > 0
    numbers = far_groups(groups, is_far, 8)
    np.testing.assert_array_equal(numbers, np.array([0, 0, 1, 2])[groups])


def test_seven_rows_are_too_few():
    X, _ = drawn_twice([7])
    assert not far_row_groups(X, graph_of(X[:800]), seed=0).small.any()


def test_each_small_cluster_becomes_a_cluster():
    graph, truth = ring(3, 150)
    small = np.zeros(150, np.int64)
    first = np.flatnonzero(truth == 0)
    second = np.flatnonzero(truth == 1)
    small[first[:10]] = 1
    small[second[:40]] = 2
    made = set_apart(graph, candidate(1.0, truth, model="svm"), small)
    expected = truth + 3
    expected[first[:10]] = 1
    expected[second] = 2  # most of it is small, and the rest joins
    np.testing.assert_array_equal(made.labels, by_first(expected))
    assert made.score == judge(graph, made.labels)
    assert made.model is None
    same = candidate(1.0, by_first(truth), model="svm")
    assert set_apart(graph, same, np.where(truth == 2, 1, 0)) is same


def test_the_reason_tells_of_small_clusters():
    number = ChosenNumber(
        2, np.zeros(9, np.int64), "2 clusters: some reason.", agreement=0.9
    )
    found = with_small(number, 4, np.r_[1, 2, np.zeros(7, int)])
    assert (found.n_clusters, found.agreement) == (4, 0.9)
    assert found.reason.startswith(
        "4 clusters, 2 of them small and far from the others; "
    )
    assert found.reason.endswith(number.reason)
