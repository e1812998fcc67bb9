"""The pick takes the largest J, the first of equal ones, and repairs what gains by it."""

import weakref
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from mmcnb.choice import pick as module
from mmcnb.choice.candidates import LAYOUT, MARGIN
from mmcnb.choice.judge import cluster_weights, judge, mutual_information
from mmcnb.choice.pick import (
    LEAST_GAIN,
    MOST_REPAIRED,
    REPAIRED,
    _linked_pairs,
    _moves,
    led,
    margin_lead,
    pick,
    repaired,
)
from mmcnb.graph.communities import communities_at
from tests.choice.graphs import blobs, candidate, graph_of, ring

TWO, THREE = np.arange(6) % 2, np.arange(6) % 3


def wrongly_joined(k):
    """Groups on a ring, of which the first two are one cluster and the last one is two."""
    graph, truth = ring(k)
    labels = np.where(truth == 0, 1, truth)
    last = np.flatnonzero(truth == k - 1)
    labels[last[: last.size // 2]] = 0
    return graph, truth, labels


def parts(labels):
    """A partition without its numbers."""
    return frozenset(tuple(np.flatnonzero(labels == one).tolist()) for one in np.unique(labels))


def same_clusters(one, other):
    return (np.equal.outer(one, one) == np.equal.outer(other, other)).all()


# -- which one ---------------------------------------------------------------------------------


def test_the_largest_counts_and_of_equal_ones_the_first():
    found = [candidate(J, TWO, str(i)) for i, J in enumerate([1.0, 3.0, 2.0, 3.0])]
    assert pick(None, found, 0) is found[1]
    assert pick(None, found[::-1], 0) is found[3]


@pytest.mark.parametrize(
    ("name", "n_nodes", "lead"),
    [(MARGIN, 6, 0.5), (MARGIN, 400, 0.3), (MARGIN, 9000, 0.1), (LAYOUT, 6, 0.1), (LAYOUT, 9000, 0.1)],
)
def test_the_widest_margin_and_the_layout_have_a_lead(name, n_nodes, lead):
    labels = np.arange(n_nodes) % 2
    leader = candidate(1.0, labels, name, model="a machine")
    assert led(leader) == 1.0 + lead
    for other, expected in ((1.0 + lead - 0.01, True), (1.0 + lead + 0.01, False)):
        found = [candidate(other, labels, "other", model="a vote"), leader]
        assert (pick(None, found, 0) is leader) == expected
        assert led(found[0]) == other


def test_the_lead_of_the_margin_falls_with_the_number_of_nodes():
    leads = [margin_lead(n) for n in (2, 200, 1000, 3600, 20_000)]
    assert leads == sorted(leads, reverse=True)
    assert leads[-2:] == [0.1, 0.1]


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_candidates_that_break_more_than_the_tolerance_do_not_count(tolerance):
    found = [candidate(J, TWO, broken=broken) for J, broken in ((1.0, 0.1), (2.0, 0.25), (3.0, 0.4))]
    assert pick(None, found, 0, tolerance) is found[1 if tolerance else 0]
    assert pick(None, found, 0) is found[0]


# -- the repair --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 4, 7])
def test_a_merge_and_a_halving_put_right_what_was_joined(k):
    graph, truth, labels = wrongly_joined(k)
    assert same_clusters(repaired(graph, labels, 0), truth)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_repaired_labels_have_no_smaller_J_and_as_many_clusters(k, weighted):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graph = graph_of(
            blobs(70, 4, 2.0, seed=seed), rng.integers(1, 4, 70).astype(float) if weighted else None
        )
        labels = rng.permutation(np.arange(70) % k)
        before = labels.copy()
        found = repaired(graph, labels, 0)
        np.testing.assert_array_equal(labels, before)
        assert set(found) == set(range(k))
        assert judge(graph, found).J >= judge(graph, labels).J


def test_moves_are_all_merges_with_all_halvings():
    graph, k = graph_of(blobs(80, 4, 2.0), np.arange(80) % 3 + 1.0), 4
    labels = np.random.default_rng(0).permutation(np.arange(80) % k)
    weights, loops = graph.edges()

    def halved(nodes):
        return nodes[communities_at(weights[nodes][:, nodes], loops[nodes], 2, 0) == 1]

    expected = Counter()
    for a, b in combinations(range(k), 2):
        merged = np.where(labels == b, a, labels)
        for one in {*range(k)} - {a, b}:
            other = merged.copy()
            other[halved(np.flatnonzero(labels == one))] = b
            expected[parts(other)] += 1
        merged[halved(np.flatnonzero(merged == a))] = b
        expected[parts(merged)] += 1
    assert Counter(parts(other) for _, other in _moves(graph, labels, 0, {})) == expected


def test_clusters_of_one_node_are_merged_and_not_halved():
    graph = graph_of(blobs(9, 2, 2.0))
    labels = np.r_[0, 1, 2, np.full(6, 3)]
    moves = [other for _, other in _moves(graph, labels, 0, {})]
    assert len(moves) == 3 + 6  # the large one is halved where two others merge, and each two are parted anew
    assert repaired(graph, labels, 0).max() == 3
    assert [*_moves(graph, np.arange(9), 0, {})]


@pytest.mark.parametrize("k", [3, 4, 12])
def test_the_pairs_with_the_strongest_links_merge(k):
    rng = np.random.default_rng(k)
    table = rng.random((k, k)) * np.outer(*[rng.lognormal(0, 2, k)] * 2)
    table += table.T
    volumes = table.sum(axis=1)
    links = {(a, b): table[a, b] / volumes[a] / volumes[b] for a, b in combinations(range(k), 2)}
    found = _linked_pairs(table)
    assert found == sorted(links, key=links.get, reverse=True)[: max(8, k)]


def test_few_of_many_moves_are_held_at_once(monkeypatch):
    graph, k = graph_of(blobs(120, 12, 2.0)), 12
    labels = np.random.default_rng(0).permutation(np.arange(120) % k)
    moves, most = [], 0

    def watched(*given):
        nonlocal most
        for information, other in _moves(*given):
            moves.append(weakref.ref(other))
            most = max(most, sum(move() is not None for move in moves))
            yield information, other

    monkeypatch.setattr(module, "_moves", watched)
    repaired(graph, labels, 0)
    assert len(moves) > 100
    assert most <= 2 * module.JUDGED + 3  # of this round and of the one before


def test_what_no_move_betters_stays_as_it_is():
    graph, truth = ring(4)
    assert repaired(graph, truth, 0) is truth


@pytest.mark.parametrize("k", [3, 5])
def test_the_table_of_parts_gives_the_information_of_a_recount(k):
    graph = graph_of(blobs(80, 4, 2.0), np.arange(80) % 3 + 1.0)
    labels = np.random.default_rng(0).permutation(np.arange(80) % k)
    moves = list(_moves(graph, labels, 0, {}))
    assert len(moves) >= k
    for information, other in moves:
        assert set(other) == set(range(k))
        recounted = mutual_information(cluster_weights(graph, other, k))
        assert information == pytest.approx(recounted, rel=1e-9, abs=1e-12)


def test_a_repair_is_taken_above_its_least_gain_alone():
    graph, truth, labels = wrongly_joined(4)
    best = judge(graph, truth).J
    for gain, is_taken in ((LEAST_GAIN - 0.01, False), (LEAST_GAIN + 0.01, True)):
        given = candidate(best - gain, labels, "communities 10", seconds=2.0)
        found = pick(graph, [given], 0)
        assert (found is given) is not is_taken
        if is_taken:
            assert (found.name, found.seconds, found.model) == (f"communities 10{REPAIRED}", 2.0, None)
            assert found.score == judge(graph, found.labels)
            assert found.score == judge(graph, found.labels)
            assert same_clusters(found.labels, truth)


@pytest.mark.parametrize("case", ["two clusters", "many clusters", "a model", "known rows"])
def test_some_are_never_repaired(monkeypatch, case):
    monkeypatch.setattr("mmcnb.choice.pick.repaired", lambda *_: pytest.fail("it was"))
    k = {"two clusters": 2, "many clusters": MOST_REPAIRED + 1}.get(case, 3)
    others = {"a model": {"model": "a machine"}, "known rows": {"broken": 0.0}}.get(case, {})
    given = candidate(1.0, np.arange(2 * MOST_REPAIRED + 2) % k, **others)
    assert pick(None, [given], 0) is given


def test_one_node_has_no_halves():
    assert module._halved(graph_of(blobs(60, 2)), np.array([3]), 0, {}) is None
