"""The number of clusters: that of groups far apart is found, none without structure, and ranges are held."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.inner_splits import real_merges, split
from mmcnb.choice.judge import judge
from mmcnb.choice.no_structure import dimension, significance
from mmcnb.choice.number import GATE, best_number, layers, without_small
from mmcnb.choice.structure import agreement, find_structure, score_partition
from mmcnb.graph.merge_tree import by_first
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
    return find_structure(graph), by_first(groups // 2), by_first(groups)


@pytest.fixture(scope="module")
def apart():
    """Six groups far apart: their structure, and the groups."""
    graph, truth = ring(6, 420)
    return find_structure(graph), by_first(truth)


@pytest.fixture(scope="module")
def noise():
    return find_structure(graph_of(without_structure("normal", 400, 3, 0)))


# -- the number ------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4, 20])
def test_the_number_of_groups_far_apart_is_found(k):
    graph, truth = ring(k, 40 * k)
    found = best_number(find_structure(graph))
    assert found.n_clusters == k
    assert adjusted_rand_score(truth, found.labels) == 1
    assert 0.5 < found.agreement <= 1
    assert found.reason.startswith(f"{k} clusters: ")
    assert found.reason.count(". ") == 0


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_without_structure_there_is_one_cluster(kind):
    n_alone = 0
    for seed in range(12):
        seen = find_structure(
            graph_of(
                without_structure(
                    kind, 150 + 50 * (seed % 5), [2, 3, 5, 10][seed % 4], seed
                )
            )
        )
        found = best_number(seen)
        assert (found.n_clusters == 1) == (
            max(one.z for one in seen.partitions) <= GATE
        )
        if found.n_clusters == 1:
            n_alone += 1
            assert found.reason.startswith(
                "one cluster: no partition is clearer than in rows without"
            )
            assert set(found.labels) == {0}
    assert n_alone >= 11


def test_what_is_far_too_few_for_structure_is_one_cluster():
    for rows in (np.arange(2.0), np.arange(7.0) ** 2):
        found = best_number(find_structure(graph_of(rows[:, None])))
        assert (found.n_clusters, set(found.labels)) == (1, {0})


@pytest.mark.parametrize(("least", "most"), [(2, 2), (2, 20), (4, 5), (7, 9)])
def test_numbers_lie_in_their_range(least, most, nested, noise):
    for seen in (nested[0], noise):
        found = best_number(seen, least, most)
        assert least <= found.n_clusters <= most
        assert set(found.labels) == set(range(found.n_clusters))
        assert found.next_best is None or least <= found.next_best <= most
        # a range that no resolution has is a cut of the tree
        alone = replace(seen, partitions=[])
        np.testing.assert_array_equal(
            best_number(alone, least, most).labels, seen.tree.labels(least)
        )


def test_the_number_has_the_largest_expected_agreement(nested):
    seen, _, _ = nested
    chances = np.array(
        [math.exp(8 * one.score) * one.persistence for one in seen.partitions]
    )
    chances /= chances.sum()
    expected = [
        sum(
            chance * agreement(one.labels, other.labels)
            for chance, other in zip(chances, seen.partitions, strict=True)
        )
        for one in seen.partitions
    ]
    found = best_number(seen)
    best = int(np.argmax(expected))
    assert found.agreement == pytest.approx(expected[best], abs=1e-4)
    assert found.n_clusters == seen.partitions[best].n_clusters
    others = [
        i for i, one in enumerate(seen.partitions) if one.n_clusters != found.n_clusters
    ]
    assert (
        found.next_best
        == seen.partitions[max(others, key=expected.__getitem__)].n_clusters
    )


def test_a_weight_is_a_repetition_and_the_order_of_rows_changes_nothing():
    X = blobs(150, 3, 6.0)
    counts = np.arange(150) % 4 + 1
    order = np.random.default_rng(0).permutation(150)
    weighted = graph_of(X, 1.0 * counts)
    found = best_number(find_structure(weighted))
    turned = graph_of(X[order], 1.0 * counts[order])
    for other in (graph_of(np.repeat(X, counts, axis=0)), turned):
        again = best_number(find_structure(other))
        assert again.to_dict() == {
            **found.to_dict(),
            "agreement": pytest.approx(found.agreement, rel=1e-9),
        }
        labels = found.labels[weighted.node_of]
        of_rows = again.labels[other.node_of]
        expected = labels[order] if other is turned else np.repeat(labels, counts)
        assert adjusted_rand_score(expected, of_rows) == 1


# -- partitions and the evidence for them ----------------------------------------------


def test_partitions_are_each_there_once_and_have_their_evidence(nested):
    seen, _, _ = nested
    assert len({one.labels.tobytes() for one in seen.partitions}) == len(
        seen.partitions
    )
    for one in seen.partitions:
        assert 2 <= one.n_clusters == one.labels.max() + 1 <= seen.graph.n_nodes / 6
        assert one.persistence >= 1
        assert pytest.approx(judge(seen.graph, one.labels).J, rel=1e-9) == one.J
        assert score_partition(seen.graph, seen.d, one.labels).score == one.score


def test_a_number_that_is_given_has_cuts_alone(nested):
    seen = find_structure(nested[0].graph, 40)
    for one in seen.partitions:
        np.testing.assert_array_equal(one.labels, seen.tree.labels(one.n_clusters))


def test_names_of_clusters_do_not_matter_and_the_figures_are_those_of_the_fitted_formulas(
    nested,
):
    """Other figures would need thresholds that are fitted anew."""
    seen, pairs, groups = nested
    for labels, expected in (
        (groups, (1.7917406, 0.06289794, 2.76797087, 6.50597423, 3.88102159)),
        (pairs, (1.09860187, 1.13561745e-4, 5.79064666, 41.303026, 7.77224613)),
    ):
        for names in (np.arange(6), np.arange(labels.max(), -1, -1)):
            one = score_partition(seen.graph, seen.d, names[labels])
            assert (one.entropy, one.loss, one.J, one.z, one.score) == pytest.approx(
                expected, rel=1e-6
            )


@pytest.mark.parametrize(
    ("n", "k", "loss", "entropy", "d", "expected"),
    [
        (100, 2, 0.5, 0.6, 1.5, -4.56946896),
        (300, 3, 0.8, 0.7, 1.05, -14.39642568),
        (1000, 5, 0.3, 1.4, 4.0, 0.40884641),
        (20_000, 40, 0.1, 3.2, 12.0, 9.68042693),
        (5000, 12, 0.02, 2.0, 60.0, 15.36934981),
    ],
)
def test_less_loss_is_more_significant(n, k, loss, entropy, d, expected):
    assert significance(n, k, loss, entropy, d) == pytest.approx(expected, rel=1e-6)
    losses = np.geomspace(1e-4, 1, 30)
    together = significance(n, np.full(30, k), losses, np.full(30, entropy), d)
    np.testing.assert_allclose(
        together, [significance(n, k, one, entropy, d) for one in losses]
    )
    assert (np.diff(together) < 0).all()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_dimension_is_near_that_of_the_rows_whatever_their_unit(d):
    X = np.random.default_rng(d).uniform(size=(700, d))
    found = dimension(graph_of(X))
    assert 0.7 * d < found < 1.3 * d
    assert dimension(graph_of(np.c_[2.0**20 * X, np.zeros((700, 3))])) == pytest.approx(
        found, rel=1e-6
    )


def test_the_agreement_is_the_adjusted_rand_index_of_rows():
    rng = np.random.default_rng(0)
    for _ in range(20):
        one = rng.integers(0, 5, 60)
        other = rng.integers(0, 3, 60)
        counts = rng.integers(1, 4, 60)
        expected = adjusted_rand_score(np.repeat(one, counts), np.repeat(other, counts))
        assert agreement(one, other, 1.0 * counts) == pytest.approx(expected, abs=1e-12)


# -- layers ----------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["pairs", "groups", "neither"])
def test_layers_are_the_one_taken_and_the_cuts_that_add_most_to_the_expected_agreement(
    nested, which
):
    seen, pairs, groups = nested
    labels = {"pairs": pairs, "groups": groups, "neither": np.arange(420) % 7}[which]
    shares = seen.probabilities(1.0)

    def agreements(labels):
        return np.array(
            [max(agreement(labels, one.labels), 0) for one in seen.partitions]
        )

    cuts = [
        one.labels
        for one in seen.partitions
        if one.n_clusters != labels.max() + 1
        and np.array_equal(seen.tree.labels(one.n_clusters), one.labels)
    ]
    chosen = [labels]
    reached = agreements(labels)
    while len(chosen) < 5:
        best = max(cuts, key=lambda one: shares @ np.maximum(reached, agreements(one)))
        if shares @ np.maximum(reached, agreements(best)) < shares @ reached + 0.01:
            break
        chosen.append(best)
        reached = np.maximum(reached, agreements(best))
    found = layers(seen, labels)
    assert {one.labels.tobytes() for one in found} == {one.tobytes() for one in chosen}
    assert len(found) > 1
    assert sum(one.labels is labels for one in found) == 1
    assert found[0].labels is labels
    numbers = [one.n_clusters for one in found[1:]]
    assert numbers == sorted(set(numbers))
    for coarse, fine in pairwise(
        one.labels for one in found if one.labels is not labels
    ):
        # they nest
        assert (
            len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1
        )


def test_there_are_five_layers_at_most_and_one_of_one_cluster(nested):
    assert len(layers(nested[0], nested[1], least_gain=-1.0)) == 5
    (one,) = layers(nested[0], np.zeros(420, np.int64))
    assert (one.n_clusters, one.persistence) == (1, 0)


# -- inner splits and small clusters ---------------------------------------------------


def test_real_merges_are_those_of_groups(nested, apart, noise):
    seen, groups = apart
    is_real = real_merges(seen.graph, seen.tree, seen.d)
    assert np.flatnonzero(is_real).tolist() == list(
        range(is_real.size - 5, is_real.size)
    )
    assert adjusted_rand_score(groups, seen.groups) == 1
    assert not real_merges(noise.graph, noise.tree, noise.d).any()
    # How many merges are clear at all levels together is a figure of the fitted
    # formula, too.
    for one, expected in ((seen, 1546), (nested[0], 1401), (noise, 966)):
        levels = np.arange(-2, 4, 0.05)
        n_real = sum(
            np.count_nonzero(real_merges(one.graph, one.tree, one.d, level))
            for level in levels
        )
        assert n_real == expected


def test_a_cluster_is_split_into_its_large_groups(apart):
    seen, groups = apart
    pairs = by_first(groups // 2)
    ones = np.ones(groups.size)
    np.testing.assert_array_equal(split(groups, pairs, ones), groups)
    np.testing.assert_array_equal(split(pairs, groups, ones), groups)
    coarse = [
        replace(one, labels=pairs, n_clusters=3)
        for one in seen.partitions
        if one.n_clusters == 6
    ]
    found = best_number(replace(seen, partitions=coarse))
    np.testing.assert_array_equal(found.labels, groups)
    assert ", after 3 were split at gaps inside them" in found.reason
    # a range is held
    assert 3 <= best_number(replace(seen, partitions=coarse), 2, 5).n_clusters <= 5


@pytest.mark.parametrize(
    ("third", "expected"), [(40, [0, 0, 1, 2, 3]), (25, [0, 0, 0, 1, 2])]
)
def test_small_groups_stay_with_the_largest(third, expected):
    """A group is large from half a cluster on, and from half a mean one."""
    sizes = [60, 7, third, 40, 40]
    labels = np.repeat([0, 0, 0, 1, 2], sizes)
    found = split(np.repeat(np.arange(5), sizes), labels, np.ones(labels.size))
    np.testing.assert_array_equal(found, np.repeat(expected, sizes))


def test_small_clusters_join_those_they_are_linked_to_most(nested):
    seen, pairs, groups = nested
    graph = seen.graph
    np.testing.assert_array_equal(without_small(graph, groups, 1.0), groups)
    labels = groups.copy()
    labels[np.flatnonzero(groups == 0)[:9]] = 6
    np.testing.assert_array_equal(without_small(graph, labels, 20.0), groups)
    np.testing.assert_array_equal(without_small(graph, groups, 100.0), pairs)
    assert without_small(graph, groups, 1e9).max() == 0
    by_chance = by_first(np.random.default_rng(0).integers(0, 12, 420))
    for least in (5.0, 30.0, 90.0):
        found = without_small(graph, by_chance, least)
        assert np.bincount(found, graph.sizes).min() >= least
        np.testing.assert_array_equal(found, by_first(found))


def test_a_heap_of_equal_rows_is_a_cluster_of_its_own():
    X = np.random.default_rng(0).normal(size=(300, 4)) + 20 * np.repeat(
        np.eye(4)[:3], 100, axis=0
    )
    seen = find_structure(graph_of(np.r_[X, np.full((80, 4), 1.0)]))
    found = best_number(seen)
    assert sorted(np.bincount(found.labels, seen.graph.counts)) == [80, 100, 100, 100]
