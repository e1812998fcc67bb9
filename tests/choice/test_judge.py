"""The judge of partitions equals a plain twin, and counts rows, not names or places."""

import math

import numpy as np
import pytest

from mmcnb.choice.judge import (
    FEWEST_ACROSS,
    NO_DISTANCE_WITHIN,
    cluster_weights,
    gap_between,
    judge,
    mutual_information,
    weighted_quantile,
)
from tests import reference_judge
from tests.choice.graphs import bare, blobs, graph_of


def random_partition(graph, k, seed=0):
    """Half by place and half by chance, so that edges lie within and across; no cluster is empty."""
    rng = np.random.default_rng(seed)
    nodes = graph.search.nodes
    labels = np.where(
        rng.random(len(nodes)) < 0.5, rng.integers(0, k, len(nodes)), (nodes[:, 0] > 0).astype(int)
    )
    labels[:k] = np.arange(k)
    return labels


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [8, 30, 90])
def test_the_score_equals_the_plain_one(n, k, weighted):
    for seed in range(3):
        X = blobs(n, gap=3.0, seed=seed)
        graph = graph_of(X, np.random.default_rng(seed).lognormal(0, 1, n) if weighted else None)
        labels = random_partition(graph, k, seed)
        weights, loops = graph.edges()
        plain = weights.toarray(), loops, graph.numbers, graph.distances, graph.sizes, labels.tolist()
        for n_classes in (None, k + 1):
            expected = reference_judge.judge(*plain, n_classes)
            np.testing.assert_allclose(judge(graph, labels, n_classes), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_information_lies_between_nothing_and_the_logarithm_of_the_number(k):
    rng = np.random.default_rng(k)
    for _ in range(20):
        table = rng.random((k, k)) * (rng.random((k, k)) < 0.7) + np.eye(k)
        assert -1e-12 <= mutual_information(table + table.T) <= math.log(k) + 1e-12
    shares = rng.random(k) + 0.1
    assert mutual_information(np.outer(shares, shares)) == pytest.approx(0, abs=1e-12)
    entropy = -(shares / shares.sum()) @ np.log(shares / shares.sum())
    assert mutual_information(np.diag(shares)) == pytest.approx(entropy)
    assert mutual_information(np.eye(k)) == pytest.approx(math.log(k))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_weights_between_clusters_are_those_of_their_nodes(k):
    graph = graph_of(blobs(60), np.arange(60) % 3 + 1.0)
    labels = random_partition(graph, k)
    weights, loops = graph.edges()
    member = np.eye(k)[labels]
    expected = member.T @ (weights.toarray() + np.diag(loops)) @ member
    table = cluster_weights(graph, labels, k)
    np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(table, table.T)


@pytest.mark.parametrize("k", [2, 4])
def test_names_of_clusters_change_nothing(k):
    graph = graph_of(blobs(90))
    labels = random_partition(graph, k)
    names = 10 * np.random.default_rng(0).permutation(k) + 3
    np.testing.assert_allclose(judge(graph, names[labels]), judge(graph, labels), rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_repetition_of_all_rows_changes_nothing(k):
    X = blobs(60, gap=3.0)
    of_rows = np.random.default_rng(0).integers(0, k, 60)
    graphs = graph_of(X), graph_of(np.repeat(X, 3, axis=0)), graph_of(X, np.full(60, 7.0))
    rows = of_rows, np.repeat(of_rows, 3), of_rows
    found = [judge(graph, graph.of_nodes(labels)) for graph, labels in zip(graphs, rows, strict=True)]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-9)


def test_a_weight_is_a_repetition():
    X, times = blobs(60, gap=3.0), np.arange(60) % 4 + 1
    of_rows = np.random.default_rng(0).integers(0, 3, 60)
    one, other = graph_of(X, 1.0 * times), graph_of(np.repeat(X, times, axis=0))
    score = judge(one, one.of_nodes(of_rows))
    np.testing.assert_allclose(judge(other, other.of_nodes(np.repeat(of_rows, times))), score, rtol=1e-9)
    unweighted = judge(graph_of(X), one.of_nodes(of_rows))
    assert abs(unweighted.J - score.J) > 1e-3


def test_groups_apart_score_above_any_mixture_of_them():
    graph = graph_of(blobs(120, 2, gap=9.0))
    truth = graph.of_nodes(np.arange(120) % 2)
    apart = judge(graph, truth)
    assert apart.information == pytest.approx(1, abs=0.01)
    for seed in range(5):
        moved = truth.copy()
        moved[np.random.default_rng(seed).permutation(120)[:12]] ^= 1
        mixed = judge(graph, moved)
        assert mixed.information < apart.information
        assert mixed.gap < apart.gap


# -- the gap -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(2 * FEWEST_ACROSS))
def test_too_few_neighbours_across_count_as_twice_the_longest_distance_within(count):
    """Two clusters of six nodes, of which some have one neighbour across, at a distance of 1."""
    node, labels = np.arange(12), np.repeat([0, 1], 6)
    first, second = ((node + step) % 6 + node // 6 * 6 for step in (1, 2))
    numbers = np.c_[first, np.where(node < count, 11 - node, second)]
    distances = np.c_[np.full(12, 2.0), np.where(node < count, 1.0, 4.0)]
    within = 2.0 if 0.75 * (24 - count) <= 12 else 4.0
    between = 1.0 if count >= FEWEST_ACROSS else 8.0
    assert gap_between(bare(numbers, distances), labels) == pytest.approx(math.log(between / within))


def test_how_far_apart_clusters_are_that_have_no_common_neighbours_changes_nothing():
    rows = np.random.default_rng(0).integers(-(2**20), 2**20, (80, 2)) / 2.0**20  # sums are exact
    side = np.repeat([0, 1], 40)
    gaps = set()
    for apart in (2.0**4, 2.0**6):
        graph = graph_of(rows + apart * side[:, None])
        gaps.add(round(gap_between(graph, graph.of_nodes(side)), 9))
    assert len(gaps) == 1
    longest = graph.distances.max()
    within = weighted_quantile(np.sort(graph.distances, axis=None), np.ones(graph.distances.size), 0.75)
    assert gaps.pop() == pytest.approx(math.log(2 * longest / within))


def test_no_distance_within_is_the_least_gap():
    graph = graph_of(blobs(9))
    whole, information, gap = judge(graph, np.arange(9))
    assert gap == NO_DISTANCE_WITHIN
    assert whole == 4 * information + NO_DISTANCE_WITHIN


def test_a_cluster_of_one_node_does_not_count_within():
    graph = graph_of(np.array([[0.0], [1.0], [2.0], [3.0], [100.0]]))
    labels = np.array([0, 0, 0, 0, 1])  # within are 1 six times, 2 four times and 3 twice
    assert gap_between(graph, labels) == pytest.approx(math.log(97 / 2))


def test_distances_of_no_length_have_a_gap():
    numbers, distances = [[1, 2], [0, 3], [3, 0], [2, 1]], np.zeros((4, 2))
    labels = np.array([0, 0, 1, 1])
    assert gap_between(bare(numbers, distances), labels) == pytest.approx(math.log(2))  # four across
    distances[:, 1] = 1.0
    again = bare([*numbers, [0, 1]], np.r_[distances, [[1.0, 1.0]]])
    assert gap_between(again, np.array([0, 0, 1, 1, 1])) == pytest.approx(math.log(1e12))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.75, 1.0])
def test_a_weighted_quantile_is_that_of_repeated_values(share):
    rng = np.random.default_rng(0)
    values, weights = np.sort(rng.integers(0, 20, 50).astype(float)), rng.integers(0, 5, 50)
    repeated = np.sort(np.repeat(values, weights))
    expected = repeated[max(math.ceil(share * len(repeated)) - 1, 0)]
    assert weighted_quantile(values, weights.astype(float), share) == expected
