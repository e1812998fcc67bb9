"""The pick takes the largest J, the first of equal ones, and repairs what gains by it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mmcnb.choice.candidates import DENSITY, LAYOUT, MARGIN, Candidate
from mmcnb.choice.judge import Score, cluster_weights, judge
from mmcnb.choice.pick import (
    LEAST_GAIN,
    MOST_REPAIRED,
    REPAIRED,
    pick,
    repaired,
    score_with_lead,
)
from mmcnb.graph.communities import communities_at
from tests.choice.graphs import blobs, candidate, graph_of, ring

TWO = np.arange(6) % 2


def wrongly_joined(k):
    """Groups on a ring, of which the first two are one cluster and the last one is two."""
    graph, truth = ring(k)
    labels = np.where(truth == 0, 1, truth)
    last = np.flatnonzero(truth == k - 1)
    labels[last[: last.size // 2]] = 0
    return graph, truth, labels


def same_clusters(one, other):
    return (np.equal.outer(one, one) == np.equal.outer(other, other)).all()


# -- which one -------------------------------------------------------------------------


def test_the_largest_counts_and_of_equal_ones_the_first():
    found = [candidate(J, TWO, str(i)) for i, J in enumerate([1.0, 3.0, 2.0, 3.0])]
    assert pick(None, found, 0) is found[1]
    assert pick(None, found[::-1], 0) is found[3]


def test_of_candidates_that_differ_by_rounding_the_first_counts():
    found = [
        candidate(J, TWO, str(i)) for i, J in enumerate([3.0, 3.0 + 1e-13, 3.0 - 1e-13])
    ]
    assert pick(None, found, 0) is found[0]
    assert pick(None, found[::-1], 0) is found[2]


@pytest.mark.parametrize(
    ("name", "n_nodes", "lead"),
    [
        (MARGIN, 6, 0.5),
        (MARGIN, 400, 0.3),
        (MARGIN, 9000, 0.1),
        (LAYOUT, 6, 0.1),
        (LAYOUT, 9000, 0.1),
    ],
)
def test_the_widest_margin_and_the_layout_have_a_lead(name, n_nodes, lead):
    labels = np.arange(n_nodes) % 2
    leader = candidate(1.0, labels, name, model="a machine")
    assert score_with_lead(leader) == 1.0 + lead
    for other, expected in ((1.0 + lead - 0.01, True), (1.0 + lead + 0.01, False)):
        # Of the same gap.
        score = Score(other, (other - 1.0) / 4, 1.0)
        found = [Candidate("other", labels, score, model="a vote"), leader]
        assert (pick(None, found, 0) is leader) == expected
        assert score_with_lead(found[0]) == other


@pytest.mark.parametrize(
    ("lacking", "leads"),
    [(-0.1, True), (0.0, True), (0.03, True), (0.03 + 1e-13, True), (0.04, False)],
)
def test_the_lead_of_the_layout_does_not_make_up_for_a_narrower_gap(lacking, leads):
    """Those without a lead search for the largest information, and have too much."""
    labels = np.arange(9000) % 2
    gap = 0.05 - lacking
    leader = Candidate(LAYOUT, labels, Score(2.0, (2.0 - gap) / 4, gap))
    rival = Candidate("communities 10", labels, Score(2.05, 0.5, 0.05))
    other = Candidate("communities 15", labels, Score(2.01, 0.25, 1.01))
    assert score_with_lead(leader, rival) == (2.1 if leads else 2.0)
    found = [other, rival, leader]
    assert pick(None, found, 0, repairs=False) is (leader if leads else rival)
    margin = replace(leader, name=MARGIN)
    assert score_with_lead(margin, rival) == 2.1


@pytest.mark.parametrize(("tolerance", "best"), [(0.0, 0), (0.2, 1)])
def test_candidates_that_break_more_than_the_tolerance_do_not_count(tolerance, best):
    found = [
        candidate(J, TWO, broken=broken)
        for J, broken in ((1.0, 0.1), (2.0, 0.25), (3.0, 0.4))
    ]
    assert pick(None, found, 0, tolerance) is found[best]


# -- the repair ------------------------------------------------------------------------


def all_moves(graph, labels, seed):
    """Two clusters merge, of the most strongly linked ones, and another one is halved."""
    k = labels.max() + 1
    weights, loops = graph.edges()
    table = cluster_weights(graph, labels, k)
    volumes = table.sum(axis=1)
    pairs = sorted(
        combinations(range(k), 2),
        key=lambda ab: -table[ab] / volumes[ab[0]] / volumes[ab[1]],
    )
    for a, b in pairs[: max(8, k)]:
        merged = np.where(labels == b, a, labels)
        for one in {*range(k)} - {b}:
            nodes = np.flatnonzero(merged == one)
            halves = communities_at(weights[nodes][:, nodes], loops[nodes], 2, seed)
            if halves is not None:
                moved = merged.copy()
                moved[nodes[halves == 1]] = b
                yield moved


def repaired_by_trial(graph, labels, seed):
    for _ in range(6):
        likely = sorted(
            all_moves(graph, labels, seed),
            key=lambda one: -judge(graph, one).information,
        )
        best = max(likely[:10], key=lambda one: judge(graph, one).J, default=labels)
        if judge(graph, best).J <= judge(graph, labels).J + 1e-9:
            break
        labels = best
    return labels


@pytest.mark.parametrize("k", [3, 4, 7])
def test_a_merge_and_a_halving_put_right_what_was_joined(k):
    graph, truth, labels = wrongly_joined(k)
    assert same_clusters(repaired(graph, labels, 0), truth)
    assert repaired(graph, truth, 0) is truth


@pytest.mark.parametrize(
    ("k", "weighted"), [(2, True), (3, False), (4, True), (6, True)]
)
def test_repaired_labels_are_the_best_of_all_moves(k, weighted):
    rng = np.random.default_rng(k)
    graph = graph_of(
        blobs(70, 4, 2.0), rng.integers(1, 4, 70).astype(float) if weighted else None
    )
    labels = rng.permutation(np.arange(70) % k)
    before = labels.copy()
    found = repaired(graph, labels, 0)
    np.testing.assert_array_equal(labels, before)
    assert same_clusters(found, repaired_by_trial(graph, labels, 0))
    assert set(found) == set(range(k))
    assert judge(graph, found).J >= judge(graph, labels).J


def test_clusters_of_one_node_are_merged_and_not_halved():
    graph = graph_of(blobs(9, 2, 2.0))
    for labels in (np.r_[0, 1, 2, np.full(6, 3)], np.arange(9)):
        found = repaired(graph, labels, 0)
        assert same_clusters(found, repaired_by_trial(graph, labels, 0))
        assert set(found) == set(labels)


def test_a_cluster_of_two_heavy_nodes_is_halved():
    random = np.random.default_rng(0)
    rows = np.concatenate([random.standard_normal((20, 2)), [[40.0, 0.0], [0.0, 40.0]]])
    graph = graph_of(rows, np.append(np.ones(20), [20.0, 20.0]))
    truth = graph.of_nodes(np.append(np.zeros(20, int), [1, 2]))
    joined = graph.of_nodes(np.append(np.arange(20) % 2, [2, 2]))
    assert same_clusters(repaired(graph, joined, 0), truth)


def test_a_repair_is_taken_above_its_least_gain_alone():
    graph, truth, labels = wrongly_joined(4)
    best = judge(graph, truth).J
    slight = candidate(best - LEAST_GAIN + 0.01, labels)
    assert pick(graph, [slight], 0) is slight
    found = pick(
        graph,
        [candidate(best - LEAST_GAIN - 0.01, labels, "communities 10", seconds=2.0)],
        0,
    )
    assert (found.name, found.seconds, found.model) == (
        f"communities 10{REPAIRED}",
        2.0,
        None,
    )
    assert found.score == judge(graph, found.labels)
    assert same_clusters(found.labels, truth)


@pytest.mark.parametrize(
    ("k", "others"),
    [
        (2, {}),
        (MOST_REPAIRED + 1, {}),
        (4, {"model": "a machine"}),
        (4, {"broken": 0.0}),
    ],
)
def test_few_and_many_clusters_models_and_known_rows_are_never_repaired(k, others):
    graph, _, _ = wrongly_joined(4)
    one = candidate(
        -99.0, np.random.default_rng(0).permutation(np.arange(120) % k), **others
    )
    assert pick(graph, [one], 0) is one
    other = candidate(-99.0, one.labels)
    assert pick(graph, [other], 0, repairs=False) is other


def test_the_partition_of_the_density_leads_more_the_more_clusters_it_has():
    few = candidate(3.0, np.arange(60) % 3, DENSITY)
    many = candidate(3.0, np.arange(60) % 20, DENSITY)
    assert score_with_lead(few) == pytest.approx(3.0 + 0.07 * np.log(3) ** 2)
    assert score_with_lead(many) == pytest.approx(3.0 + 0.07 * np.log(20) ** 2)


def test_the_partition_of_the_density_is_not_repaired():
    graph, _, labels = wrongly_joined(4)
    judged = Candidate("some", labels, judge(graph, labels))
    assert pick(graph, [judged], seed=0).name == f"some{REPAIRED}"
    by_density = replace(judged, name=DENSITY)
    assert pick(graph, [by_density], seed=0) is by_density
