"""The judge of partitions equals a plain twin, and counts rows, not names or places."""

import math

import numpy as np
import pytest

from mmcnb.choice.judge import gap_between, judge, weighted_quantile
from tests import reference_judge
from tests.choice.graphs import bare, blobs, graph_of


def random_partition(graph, k, seed=0):
    """Half by place and half by chance, so that edges lie within and across; no cluster is empty."""
    rng = np.random.default_rng(seed)
    nodes = graph.search.nodes
    by_chance = rng.integers(0, k, len(nodes))
    labels = np.where(rng.random(len(nodes)) < 0.5, by_chance, nodes[:, 0] > 0)
    labels[:k] = np.arange(k)
    return labels % k


@pytest.mark.parametrize(
    ("n", "k", "weighted"), [(8, 2, False), (8, 7, True), (30, 1, True), (90, 3, True)]
)
def test_the_score_equals_the_plain_one_whatever_the_names_of_clusters(n, k, weighted):
    for seed in range(3):
        weights = np.random.default_rng(seed).lognormal(0, 1, n) if weighted else None
        graph = graph_of(blobs(n, gap=3.0, seed=seed), weights)
        names = 10 * np.random.default_rng(seed).permutation(k) + 3
        labels = names[random_partition(graph, k, seed)]
        edges, loops = graph.edges()
        plain = (
            edges.toarray(),
            loops,
            graph.numbers,
            graph.distances,
            graph.sizes,
            labels.tolist(),
        )
        for n_classes in (None, k + 1):
            expected = reference_judge.judge(*plain, n_classes)
            np.testing.assert_allclose(
                judge(graph, labels, n_classes), expected, rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("times", [np.full(60, 3), np.arange(60) % 4 + 1])
def test_a_weight_is_a_repetition(times):
    X = blobs(60, gap=3.0)
    of_rows = np.random.default_rng(0).integers(0, 3, 60)
    weighted = graph_of(X, 7.0 * times)
    repeated = graph_of(np.repeat(X, times, axis=0))
    score = judge(weighted, weighted.of_nodes(of_rows))
    again = judge(repeated, repeated.of_nodes(np.repeat(of_rows, times)))
    np.testing.assert_allclose(again, score, rtol=1e-9)
    unweighted = judge(graph_of(X), weighted.of_nodes(of_rows))
    assert (abs(unweighted.J - score.J) > 1e-3) == (np.ptp(times) > 0)


# -- the gap ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 4, 5, 9])
def test_fewer_than_five_neighbours_across_count_as_twice_the_longest_distance_within(
    count,
):
    """Two clusters of six nodes, of which some have one neighbour across, at a distance of 1."""
    node = np.arange(12)
    first, second = ((node + step) % 6 + node // 6 * 6 for step in (1, 2))
    numbers = np.c_[first, np.where(node < count, 11 - node, second)]
    distances = np.c_[np.full(12, 2.0), np.where(node < count, 1.0, 4.0)]
    within = 2.0 if 0.75 * (24 - count) <= 12 else 4.0
    between = 1.0 if count >= 5 else 8.0
    gap = gap_between(bare(numbers, distances), np.repeat([0, 1], 6))
    assert gap == pytest.approx(math.log(between / within))


def test_no_distance_within_is_the_least_gap():
    score = judge(graph_of(blobs(9)), np.arange(9))
    assert score.gap == -9.0
    assert 4 * score.information - 9.0 == score.J


@pytest.mark.parametrize("share", [0.0, 0.05, 0.75, 1.0])
def test_a_weighted_quantile_is_that_of_repeated_values(share):
    rng = np.random.default_rng(0)
    values = np.sort(rng.integers(0, 20, 50).astype(float))
    weights = rng.integers(0, 5, 50)
    repeated = np.repeat(values, weights)
    expected = repeated[max(math.ceil(share * len(repeated)) - 1, 0)]
    assert weighted_quantile(values, weights.astype(float), share) == expected
