"""The number of clusters: that of groups far apart is found, none without structure, and ranges are held."""

import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice import number as module
from mmcnb.choice.candidates import candidates, makers
from mmcnb.choice.judge import cluster_weights, judge
from mmcnb.choice.number import (
    GATE,
    Number,
    agreement,
    best_number,
    dimension,
    judged,
    layers,
    real_merges,
    significance,
    split,
    structure,
    without_small,
)
from mmcnb.graph.communities import by_first
from tests import reference_judge
from tests.choice.graphs import blobs, graph_of, ring


def without_structure(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) if kind == "normal" else rng.uniform(size=(n, d))


@pytest.fixture(scope="module")
def nested():
    """Three pairs of groups that touch: their structure, the pairs, and the groups."""
    angle = 2 * np.pi * np.arange(3) / 3
    centres = np.repeat(14 * np.c_[np.cos(angle), np.sin(angle)], 2, axis=0)
    centres[1::2, 0] += 4.5
    y = np.arange(420) % 6
    graph = graph_of(centres[y] + np.random.default_rng(0).standard_normal((420, 2)))
    groups = graph.of_nodes(y)
    return structure(graph), by_first(groups // 2), by_first(groups)


@pytest.fixture(scope="module")
def apart():
    """Six groups far apart: their structure, and the groups."""
    graph, truth = ring(6, 420)
    return structure(graph), by_first(truth)


# -- the number --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4, 6, 20])
def test_the_number_of_groups_far_apart_is_found(k):
    graph, truth = ring(k, 40 * k)
    found = best_number(structure(graph))
    assert found.n_clusters == k
    assert adjusted_rand_score(truth, found.labels) == 1
    assert 0.5 < found.agreement <= 1
    assert found.next_best != k
    assert found.reason.startswith(f"{k} clusters: their expected agreement with the right partition is ")
    assert found.reason.count(". ") == 0


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_without_structure_there_is_one_cluster(kind):
    found = []
    for seed in range(20):
        X = without_structure(kind, 150 + 50 * (seed % 5), [2, 3, 5, 10][seed % 4], seed)
        seen = structure(graph_of(X))
        found.append(best_number(seen))
        assert (found[-1].n_clusters == 1) == (max(one.z for one in seen.partitions) <= GATE)
    alone = [one for one in found if one.n_clusters == 1]
    assert len(alone) >= 19
    for one in alone:
        assert one.reason.startswith(
            f"one cluster: no partition differs from rows without structure by {GATE} ("
        )
        assert set(one.labels) == {0}


def test_what_is_far_too_few_for_structure_is_one_cluster():
    for rows in ([[0.0], [1.0]], np.arange(7.0)[:, None] ** 2):
        found = best_number(structure(graph_of(np.array(rows))))
        assert (found.n_clusters, set(found.labels)) == (1, {0})


@pytest.mark.parametrize("least_most", [(2, 3), (2, 20), (4, 5), (5, 5), (7, 9), (2, 2)])
def test_numbers_lie_in_their_range(least_most, nested):
    least, most = least_most
    for seen in (nested[0], structure(graph_of(without_structure("normal", 400, 3, 0)))):
        found = best_number(seen, least, most)
        assert least <= found.n_clusters <= most
        assert set(found.labels) == set(range(found.n_clusters))
        assert found.next_best is None or least <= found.next_best <= most


def test_a_range_that_no_resolution_has_is_a_cut_of_the_tree():
    graph, _ = ring(2, 120)
    seen = replace(structure(graph), partitions=[])
    found = best_number(seen, 3, 5)
    assert found.n_clusters == 3
    np.testing.assert_array_equal(found.labels, seen.tree.labels(3))
    assert found.reason == "no resolution has a number in the range."


def test_the_expected_agreement_is_that_of_all_pairs(nested):
    seen, _, _ = nested
    chances = np.array([math.exp(8 * one.score) * one.persistence for one in seen.partitions])
    chances /= chances.sum()
    expected = [
        sum(
            p * adjusted_rand_score(one.labels, other.labels)
            for p, other in zip(chances, seen.partitions, strict=True)
        )
        for one in seen.partitions
    ]
    found = best_number(seen)
    best = int(np.argmax(expected))
    assert found.agreement == pytest.approx(expected[best], abs=1e-4)
    assert found.n_clusters == seen.partitions[best].n_clusters
    others = [i for i, one in enumerate(seen.partitions) if one.n_clusters != found.n_clusters]
    assert found.next_best == seen.partitions[max(others, key=lambda i: expected[i])].n_clusters
    np.testing.assert_allclose(seen.shares(8.0), chances, rtol=1e-9)


def test_a_weight_is_a_repetition():
    X, counts = blobs(150, 3, 6.0), np.arange(150) % 4 + 1
    one, other = graph_of(X, 1.0 * counts), graph_of(np.repeat(X, counts, axis=0))
    found, again = best_number(structure(one)), best_number(structure(other))
    assert found.to_dict() == {**again.to_dict(), "agreement": pytest.approx(again.agreement, rel=1e-9)}
    np.testing.assert_array_equal(found.labels, again.labels)


def test_the_number_is_chosen_without_a_layout(monkeypatch):
    graph = replace(graph_of(blobs(40)), is_unit=True)
    monkeypatch.setattr("mmcnb.choice.candidates.layout", None)  # a call would fail
    assert "layout" in dict(makers(graph, 2, 0))
    assert best_number(structure(graph), 2, 3).n_clusters in (2, 3)


def test_candidates_have_the_number_that_is_found():
    graph, truth = ring(4, 180)
    k = best_number(structure(graph)).n_clusters
    found, _ = candidates(graph, k, makers(graph, k, 0))
    assert all(set(one.labels) == set(range(4)) for one in found)
    assert max(adjusted_rand_score(truth, one.labels) for one in found) == 1


# -- partitions and the evidence for them ------------------------------------------------------


def test_partitions_are_each_there_once_and_have_their_evidence(nested):
    seen, _, _ = nested
    assert len({one.labels.tobytes() for one in seen.partitions}) == len(seen.partitions)
    for one in seen.partitions:
        assert one.n_clusters == one.labels.max() + 1
        assert 2 <= one.n_clusters <= seen.graph.n_nodes / 6
        assert one.persistence >= 1
        assert pytest.approx(judge(seen.graph, one.labels).J, rel=1e-9) == one.J
        again = judged(seen.graph, seen.d, one.labels, one.persistence)
        assert asdict(one) | {"labels": None} == asdict(again) | {"labels": None}


def test_a_number_that_is_given_has_cuts_alone(nested):
    seen = structure(nested[0].graph, 40)
    assert seen.tree.n_pieces >= 40
    for one in seen.partitions:
        np.testing.assert_array_equal(one.labels, seen.tree.labels(one.n_clusters))


def test_the_score_is_its_formula(nested):
    seen, _, groups = nested
    n = seen.graph.n_nodes
    weights, loops = seen.graph.edges()
    table = cluster_weights(seen.graph, groups, 6)
    score = reference_judge.judge(
        weights.toarray(), loops, seen.graph.numbers, seen.graph.distances, seen.graph.sizes, groups.tolist()
    )
    shares = table / table.sum()
    volumes = shares.sum(axis=1)
    information = sum(
        shares[a, b] * math.log(shares[a, b] / volumes[a] / volumes[b])
        for a in range(6)
        for b in range(6)
        if shares[a, b] > 0
    )
    found = judged(seen.graph, seen.d, groups)
    assert found.entropy == pytest.approx(-sum(v * math.log(v) for v in volumes))
    assert found.loss == pytest.approx(max(1 - information / found.entropy, 1e-4))
    assert found.z == pytest.approx(significance(n, 6, found.loss, found.entropy, seen.d))
    expected = 4 * information / math.log(7) + score[2] - 0.06 * math.log(n / 100) * math.log(6)
    assert found.score == pytest.approx(expected + 1.4 / seen.d * math.log1p(max(found.z, 0)), rel=1e-9)


def plain_significance(n, k, loss, entropy, d):
    """The same figure, term after term."""
    i, u, H, log_k = 1 / max(d, 1.2), math.log(n / k), entropy, math.log(k)
    a, s = module.LOSS, module.SPREAD
    of_u = a[0] + a[1] * i + a[2] * i * i + a[3] * u + a[4] * u * i + a[5] * u * i * i
    of_entropy = a[6] * H + a[7] * H * i + a[8] * H * H + a[9] * H * H * i
    rest = (
        a[10] * log_k
        + a[11] * log_k * i
        + a[12] * u * H
        + a[13] * u * H * i
        + a[14] * u * u
        + a[15] * u * u * i
    )
    log_spread = s[0] + s[1] * i + s[2] * math.log(n) + s[3] * i * math.log(n) + s[4] * H + s[5] * H * i
    spread = max(0.04, 1.5 * math.exp(log_spread))
    return (of_u + of_entropy + rest - math.log(loss)) / spread


def test_the_significance_is_its_formula():
    rng = np.random.default_rng(0)
    n, k = 10 ** rng.uniform(1, 4.3, 200), rng.integers(2, 60, 200)
    loss, entropy, d = (
        rng.uniform(1e-4, 1, 200),
        np.log(k) * rng.uniform(0.2, 1, 200),
        rng.uniform(1.01, 60, 200),
    )
    for case in zip(n, k, loss, entropy, d, strict=True):
        assert significance(*case) == pytest.approx(plain_significance(*map(float, case)), rel=1e-9)
    together = significance(500.0, k, loss, entropy, 3.0)
    alone = [significance(500.0, *case, 3.0) for case in zip(k, loss, entropy, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_less_loss_is_more_significant():
    losses = np.geomspace(1e-4, 1, 30)
    for n, k, d in ((100, 2, 1.5), (1000, 5, 4.0), (20_000, 40, 12.0)):
        found = significance(n, k, losses, 0.9 * np.log(k), d)
        assert (np.diff(found) < 0).all()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_dimension_is_near_that_of_the_rows_whatever_their_unit(d):
    X = np.random.default_rng(d).uniform(size=(1500, d))
    found = dimension(graph_of(X))
    assert 0.7 * d < found < 1.3 * d
    assert dimension(graph_of(2.0**20 * X)) == pytest.approx(found, rel=1e-6)
    wide = np.c_[X, np.zeros((1500, 3))]
    assert dimension(graph_of(wide)) == pytest.approx(found, rel=1e-3)


def test_the_agreement_is_the_adjusted_rand_index():
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(0, 5, 60), rng.integers(0, 3, 60)
        assert agreement(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)


# -- layers ------------------------------------------------------------------------------------


def is_inside(fine, coarse):
    return np.unique(np.c_[fine, coarse], axis=0).shape[0] == fine.max() + 1


@pytest.mark.parametrize("which", ["pairs", "groups", "neither"])
def test_layers_are_the_one_taken_and_cuts_that_nest(nested, which):
    seen, pairs, groups = nested
    labels = {"pairs": pairs, "groups": groups, "neither": np.arange(420) % 7}[which]
    found = layers(seen, labels)
    assert sum(one.labels is labels for one in found) == 1
    assert 1 < len(found) <= 5
    numbers = [one.n_clusters for one in found]
    assert numbers == sorted(set(numbers))
    cuts = [one for one in found if one.labels is not labels]
    for one in cuts:
        np.testing.assert_array_equal(one.labels, seen.tree.labels(one.n_clusters))
    for coarse, fine in pairwise(cuts):
        assert is_inside(fine.labels, coarse.labels)


def test_groups_in_pairs_are_two_layers(nested):
    seen, pairs, groups = nested
    for labels in (pairs, groups):
        found = {one.n_clusters: one for one in layers(seen, labels)}
        assert adjusted_rand_score(pairs, found[3].labels) == 1
        assert adjusted_rand_score(groups, found[6].labels) > 0.95
        assert min(found[3].persistence, found[6].persistence) > 5


def test_each_layer_adds_most_to_the_expected_agreement(nested):
    seen, _, groups = nested
    shares = seen.shares(1.0)

    def reached(some):
        best = [max(max(adjusted_rand_score(a, one.labels), 0) for a in some) for one in seen.partitions]
        return float(shares @ np.array(best))

    found = layers(seen, groups)
    chosen = [one.labels for one in found]
    assert reached(chosen) >= reached([groups]) + 0.01 * (len(found) - 1)
    cuts = [
        one.labels
        for one in seen.partitions
        if one.n_clusters != 6 and np.array_equal(seen.tree.labels(one.n_clusters), one.labels)
    ]
    some = [groups]
    while len(some) < 5:
        best = max(cuts, key=lambda labels: reached([*some, labels]))
        if reached([*some, best]) < reached(some) + 0.01:
            break
        some.append(best)
    assert {one.tobytes() for one in some} == {one.tobytes() for one in chosen}


def test_there_are_five_layers_at_most(nested):
    assert len(layers(nested[0], nested[1], least_gain=-1.0)) == 5


def test_one_cluster_is_one_layer(nested):
    (one,) = layers(nested[0], np.zeros(420, np.int64))
    assert (one.n_clusters, one.persistence) == (1, 0)


# -- inner splits and small clusters -----------------------------------------------------------


def test_real_merges_are_those_of_groups(apart):
    seen, groups = apart
    is_real = real_merges(seen.graph, seen.tree, seen.d)
    assert is_real.sum() == 5
    assert is_real[-5:].all()
    assert adjusted_rand_score(groups, seen.groups) == 1


def evidence_of(seen, t):
    """How far the link of merge t is below that by chance, as a logarithm; by loops."""
    graph, tree, d = seen.graph, seen.tree, seen.d
    piece, k = tree.piece_of_node, tree.n_pieces
    members = [{p} for p in range(k)]
    for one, other in tree.merges:
        members.append(members[one] | members[other])
    sides = [np.isin(piece, list(members[side])) for side in tree.merges[t]]
    a, c = sorted(graph.counts[side].sum() for side in sides)
    n, wide = graph.counts.sum(), max(d, 1.35)
    i, r = 1 / wide, 1 / math.sqrt(wide)
    u, v, w = math.log(a / 10), math.log(n / a), math.log(c / a)
    e = math.exp(-v)
    terms = [1, i, r, u, v, w, u * i, v * i, w * i, u * r, v * r, w * r]
    terms += [
        u * u * i,
        v * v,
        w * w,
        w * v,
        v * v * i,
        w * w * i,
        v * w * i,
        u * v * i,
        u * w * i,
        e,
        e * i,
        e * r,
    ]
    far = np.log(graph.distances[:, 9])
    across = []
    for one, other in zip(*graph.edges()[0].nonzero(), strict=True):
        if (sides[0][one] and sides[1][other]) or (sides[1][one] and sides[0][other]):
            across.append((far[one] + far[other]) / 2)
    within = np.mean([far[side].mean() for side in sides])
    valley = min(max(d * (np.mean(across) - within), -1.0), 1.5) if across else 1.5
    by_chance = sum(term * factor for term, factor in zip(terms, module.LINK, strict=True))
    return by_chance - math.log(max(tree.links[t], module.LEAST_LINK)) + valley / 2, a


def test_the_evidence_of_a_merge_is_its_formula(nested, apart):
    noise = structure(graph_of(without_structure("normal", 300, 3, 0)))
    for seen in (nested[0], apart[0], noise):
        expected = [evidence_of(seen, t) for t in range(seen.tree.links.size)]
        for clear in (-1.0, 0.0, 0.5, 1.0, 2.0, 4.0):
            found = real_merges(seen.graph, seen.tree, seen.d, clear)
            assert found.tolist() == [evidence > clear and a >= 8 for evidence, a in expected]


def test_rows_without_structure_have_no_real_merge():
    counts = []
    for seed in range(8):
        seen = structure(graph_of(without_structure("normal", 500, 2 + seed % 3, seed)))
        counts.append(real_merges(seen.graph, seen.tree, seen.d).sum())
    assert sum(count > 0 for count in counts) <= 1


def test_a_cluster_is_split_into_its_large_groups(apart):
    seen, groups = apart
    pairs = by_first(groups // 2)
    np.testing.assert_array_equal(split(groups, pairs, np.ones(groups.size)), groups)
    np.testing.assert_array_equal(split(groups, groups, np.ones(groups.size)), groups)
    np.testing.assert_array_equal(split(np.zeros(420, int), pairs, np.ones(420)), pairs)
    coarse = [
        replace(one, labels=by_first(one.labels // 2), n_clusters=3)
        for one in seen.partitions
        if one.n_clusters == 6
    ]
    found = best_number(replace(seen, partitions=coarse))
    np.testing.assert_array_equal(found.labels, groups)
    assert ", after 3 were split at gaps inside" in found.reason
    assert best_number(replace(seen, partitions=coarse), 2, 5).n_clusters == 3  # a range is held


def test_small_groups_stay_with_the_largest():
    """A group is large from half a cluster on, and from half a mean one."""
    sizes = [60, 7, 40, 40, 40]
    labels = np.repeat([0, 0, 0, 1, 2], sizes)
    expected = np.repeat([0, 0, 1, 2, 3], sizes)
    np.testing.assert_array_equal(
        split(np.repeat(np.arange(5), sizes), labels, np.ones(labels.size)), expected
    )
    sizes = [60, 7, 25, 40, 40]
    labels = np.repeat([0, 0, 0, 1, 2], sizes)
    np.testing.assert_array_equal(split(np.repeat(np.arange(5), sizes), labels, np.ones(labels.size)), labels)


def test_small_clusters_join_those_they_are_linked_to_most(nested):
    seen, pairs, groups = nested
    graph = seen.graph
    np.testing.assert_array_equal(without_small(graph, groups, 0.0), groups)
    np.testing.assert_array_equal(without_small(graph, groups, 1.0), groups)
    labels = groups.copy()
    labels[np.flatnonzero(groups == 0)[:9]] = 6
    again = without_small(graph, labels, 20.0 * graph.sizes.mean())
    assert adjusted_rand_score(groups, again) == 1
    joined = without_small(graph, groups, 100 * graph.sizes.mean())
    assert adjusted_rand_score(pairs, joined) == 1
    assert without_small(graph, groups, 1e9).max() == 0


def test_no_small_cluster_is_left(nested):
    graph = nested[0].graph
    rng = np.random.default_rng(0)
    for least in (5.0, 30.0, 90.0):
        labels = without_small(graph, by_first(rng.integers(0, 12, 420)), least)
        sizes = np.bincount(labels, graph.sizes)
        assert sizes.min() >= least
        assert (np.diff(np.unique(labels, return_index=True)[1]) > 0).all()


def test_a_number_is_told_as_plain_values():
    one = Number(3, np.zeros(4, int), "because.", 2, 0.5)
    assert one.to_dict() == {"n_clusters": 3, "reason": "because.", "next_best": 2, "agreement": 0.5}


def test_a_heap_of_equal_rows_is_a_cluster_of_its_own():
    X = np.random.default_rng(0).normal(size=(300, 4)) + 20 * np.repeat(np.eye(4)[:3], 100, axis=0)
    seen = structure(graph_of(np.r_[X, np.full((80, 4), 1.0)]))
    found = best_number(seen)
    sizes = np.bincount(found.labels, seen.graph.counts)
    assert sorted(sizes) == [80, 100, 100, 100]


def test_rows_count_in_agreements_and_splits_as_often_as_they_are_equal():
    counts, one, other = np.array([3.0, 1.0, 2.0]), np.array([0, 0, 1]), np.array([0, 1, 1])
    rows = np.repeat(np.arange(3), counts.astype(int))
    assert agreement(one, other, counts) == agreement(one[rows], other[rows])
    heap = split(np.zeros(21, int), np.zeros(21, int), np.append(np.ones(20), 20.0))
    assert heap.tolist() == [0] * 20 + [1]
