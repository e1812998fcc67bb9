"""What is known of some rows: the share that a partition breaks, and labels that spread along the graph."""

from itertools import permutations

import numpy as np
import pytest

from mmcnb.choice.known import CHANCE, KnownRows, held_out, spread
from mmcnb.choice.read_known import MOST_ROWS, read_known_rows
from mmcnb.errors import InputError
from tests.choice.graphs import blobs, graph_of, ring


def known_of(rows, labels, pairs=(), together=()):
    order = np.argsort(rows)
    labels, pairs = np.asarray(labels)[order], np.array(pairs, np.int64).reshape(-1, 2)
    return KnownRows(np.asarray(rows)[order], labels, pairs, np.array(together, bool))


# -- what is broken ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_broken_share_is_that_of_a_plain_count(seed):
    rng = np.random.default_rng(seed)
    n, k = 30, 3
    rows = np.sort(rng.permutation(n)[:12])
    labels, found = rng.integers(-1, k, 12), rng.integers(0, k, n)
    pairs, together = rng.permutation(12).reshape(6, 2), rng.random(6) < 0.5
    named = labels >= 0
    best = max(
        (np.array(order)[labels[named]] == found[rows[named]]).sum() for order in permutations(range(k))
    )
    wrong = named.sum() - best
    for (a, b), joined in zip(pairs, together, strict=True):
        wrong += (found[rows[a]] == found[rows[b]]) != joined
    known = KnownRows(rows, labels, pairs, together)
    assert known.count == named.sum() + 6
    assert known.broken(found) == pytest.approx(wrong / known.count)
    assert known.tolerance == pytest.approx(1 / known.count + CHANCE)


@pytest.mark.parametrize("k", [2, 4])
def test_names_of_clusters_do_not_matter(k):
    rng = np.random.default_rng(0)
    known = known_of(np.arange(20), rng.integers(0, k, 20), [[0, 3], [5, 1]], [True, False])
    found, names = rng.integers(0, k, 50), rng.permutation(k)
    assert known.broken(names[found]) == known.broken(found) > 0


def test_a_class_that_two_clusters_share_holds_in_one_of_them():
    known = known_of(np.arange(6), [0, 0, 0, 0, 1, 1])
    assert known.broken(np.array([0, 0, 0, 2, 1, 1])) == pytest.approx(1 / 6)
    assert known.broken(np.zeros(6, int)) == pytest.approx(2 / 6)


def test_pairs_alone_have_no_labels_to_break():
    known = known_of([2, 4, 7], [-1, -1, -1], [[0, 1], [1, 2]], [True, False])
    found = np.zeros(8, int)
    assert known.broken(found) == 0.5
    found[7] = 1
    assert known.broken(found) == 0.0
    assert known.least_clusters == 2
    assert known_of([0, 1], [4, -1]).least_clusters == 5


def test_rows_are_numbered_by_their_places_among_others():
    known = known_of([3, 10, 40], [0, 1, 0], [[0, 2]], [True])
    rows = np.array([1, 3, 10, 30, 40, 50])
    among = known.among(rows)
    labels = np.random.default_rng(0).integers(0, 2, 60)
    assert among.rows.tolist() == [1, 2, 4]
    assert among.broken(labels[rows]) == known.broken(labels)


# -- spreading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_spreading_keeps_the_known_labels(seed):
    rng = np.random.default_rng(seed)
    graph = graph_of(blobs(90, 3, 1.0, seed=seed))
    rows = np.sort(rng.permutation(90)[:30])
    labels = np.r_[0, 1, 2, rng.integers(-1, 3, 27)]
    found = spread(graph, known_of(rows, labels), 3)
    of_rows = found[graph.node_of[rows]]
    np.testing.assert_array_equal(of_rows[labels >= 0], labels[labels >= 0])
    assert found.shape == (90,)
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("k", [2, 3, 5])
def test_one_label_a_group_far_apart_is_enough(k):
    graph, truth = ring(k)
    rows = np.array([np.flatnonzero(truth[graph.node_of] == h)[0] for h in range(k)])
    found = spread(graph, known_of(rows, np.arange(k)), k)
    np.testing.assert_array_equal(found, truth)


def test_a_label_reaches_the_end_of_a_long_chain():
    graph = graph_of(np.arange(300.0)[:, None] ** 1.1)
    found = spread(graph, known_of([0, 299], [0, 1]), 2)
    of_rows = found[graph.node_of]
    assert (np.diff(of_rows) >= 0).all()
    assert 0 < of_rows.sum() < 300


def test_nodes_that_no_label_reaches_are_in_the_first_cluster(monkeypatch):
    monkeypatch.setattr("mmcnb.choice.known.MOST_SPREADS", 1)
    graph = graph_of(np.arange(300.0)[:, None] ** 1.1)
    found = spread(graph, known_of([0, 299], [0, 1]), 2)[graph.node_of]
    assert found[299] == 1
    assert 0 < found.sum() < 30


def test_a_cluster_without_a_label_leaves_nothing_to_spread():
    graph, truth = ring(3)
    rows = np.flatnonzero(truth[graph.node_of] < 2)[:20]
    known = known_of(rows, truth[graph.node_of][rows])
    assert spread(graph, known, 3) is None
    assert spread(graph, known, 2) is not None
    assert spread(graph, known_of(rows, np.full(20, -1)), 2) is None


def test_of_equal_rows_with_several_labels_the_first_counts():
    graph = graph_of(np.repeat(blobs(30, 2, 9.0), 2, axis=0))
    found = spread(graph, known_of(np.arange(8), [0, 1, 1, 0, 0, 0, 1, 1]), 2)
    assert found[graph.node_of[[0, 2, 4, 6]]].tolist() == [0, 1, 0, 1]


# -- held out ----------------------------------------------------------------------------------


def test_halves_of_the_labels_of_groups_far_apart_foretell_each_other():
    graph, truth = ring(3)
    rows = np.arange(0, 120, 4)
    known = known_of(rows, truth[graph.node_of][rows])
    assert held_out(graph, known, spread(graph, known, 3)) == 0.0


def test_labels_by_chance_are_not_foretold():
    graph, _ = ring(3)
    known = known_of(np.arange(120), np.random.default_rng(0).integers(0, 2, 120))
    labels = spread(graph, known, 2)
    assert known.broken(labels[graph.node_of]) == 0.0
    assert held_out(graph, known, labels) > 0.25


def test_each_half_is_every_second_label_of_each_class():
    graph = graph_of(blobs(90, 3, 2.0))
    rng = np.random.default_rng(0)
    rows, classes = np.sort(rng.permutation(90)[:40]), np.r_[0, 1, 2, 0, 1, 2, rng.integers(-1, 3, 34)]
    known, wrong = known_of(rows, classes), 0
    halves = [np.concatenate([rows[classes == h][first::2] for h in range(3)]) for first in (0, 1)]
    of_rows = np.full(90, -1)
    of_rows[rows] = classes
    for one, other in (halves, halves[::-1]):
        found = spread(graph, known_of(one, of_rows[one]), 3)
        wrong += known_of(other, of_rows[other]).broken(found[graph.node_of]) * other.size
    assert held_out(graph, known, spread(graph, known, 3)) == pytest.approx(wrong / known.count)
    assert wrong > 0


def test_one_label_a_cluster_foretells_nothing():
    graph, truth = ring(2)
    rows = np.array([np.flatnonzero(truth[graph.node_of] == h)[0] for h in range(2)])
    assert held_out(graph, known_of(rows, [0, 1]), truth) == 1.0


def test_pairs_count_by_the_partition_itself():
    graph, truth = ring(2)
    of_rows = truth[graph.node_of]
    rows = np.arange(40)
    pairs, joined = rows.reshape(-1, 2), of_rows[rows[::2]] == of_rows[rows[1::2]]
    right, wrong = (known_of(rows, of_rows[rows], pairs, together) for together in (joined, ~joined))
    assert held_out(graph, right, truth) == 0.0
    assert held_out(graph, wrong, truth) == pytest.approx(20 / 60)


# -- what is read ------------------------------------------------------------------------------


def test_all_forms_of_labels_are_read_alike():
    labels = np.full(20, -1)
    labels[[3, 7, 11]] = 1, 0, 2
    forms = [labels, labels.tolist(), labels.astype(float), {11: 2, 3: 1, 7: 0}]
    for form in forms:
        known = read_known_rows(form, [(7, 9)], [(3, 11)], 20, 3)
        assert (known.rows.tolist(), known.labels.tolist()) == ([3, 7, 9, 11], [1, 0, -1, 2])
        assert known.rows[known.pairs].tolist() == [[7, 9], [3, 11]]
        assert known.together.tolist() == [True, False]


@pytest.mark.parametrize(
    "nothing", [(None, None, None), (np.full(9, -1), None, None), ({}, [], np.empty((0, 2)))]
)
def test_nothing_known_is_none(nothing):
    assert read_known_rows(*nothing, 9, 2) is None


def test_of_many_known_rows_some_are_used():
    labels = np.arange(50_000) % 3
    known = read_known_rows(labels, [(0, 3), (1, 4)], [(0, 1)], 50_000, 3)
    assert known.rows.size <= MOST_ROWS
    assert set(known.labels.tolist()) == {0, 1, 2}
    assert known.together.tolist() == [True, True, False]
    np.testing.assert_array_equal(known.rows[known.pairs], [[0, 3], [1, 4], [0, 1]])
    np.testing.assert_array_equal(known.labels, labels[known.rows])


def test_of_many_pairs_some_are_used():
    pairs = np.random.default_rng(0).permutation(20_000).reshape(-1, 2)
    known = read_known_rows(None, pairs[:5000], pairs[5000:], 20_000, 3)
    assert 0 < known.rows.size <= MOST_ROWS
    assert known.together.any()
    assert not known.together.all()
    used = {tuple(pair) for pair in known.rows[known.pairs].tolist()}
    assert used <= {tuple(pair) for pair in pairs.tolist()}


@pytest.mark.parametrize(
    ("labels", "linked", "parted", "told"),
    [
        ([0, 1], None, None, r"partial_labels has the shape \(2,\) for 100 rows"),
        ({3: 2}, None, None, "partial_labels of row 3 is 2; give labels from 0 to 1"),
        ({3: -2}, None, None, "partial_labels of row 3 is -2"),
        ({100: 0}, None, None, "partial_labels names row 100; give row numbers from 0 to 99"),
        ({3: 0.5}, None, None, "partial_labels holds what is no whole number"),
        (np.full(100, np.nan), None, None, "partial_labels holds what is no whole number"),
        (None, [(0, 1, 2)], None, r"must_link has the shape \(1, 3\); give pairs of row numbers"),
        (None, [(4, 4)], None, "must_link pairs row 4 with itself; leave this pair out"),
        (None, None, [(0, -1)], "cannot_link names row -1"),
        (None, [(0, 1), (1, 2)], [(2, 0)], "rows 2 and 0 stand in cannot_link, but"),
        ({5: 1, 6: 1}, None, [(5, 6)], "rows 5 and 6 stand in cannot_link, but"),
        ({5: 0, 6: 1}, [(5, 7), (7, 6)], None, "joins rows with the partial_labels 0 and 1"),
    ],
)
def test_what_contradicts_or_is_out_of_range_is_refused_in_one_sentence(labels, linked, parted, told):
    with pytest.raises(InputError, match=told) as error:
        read_known_rows(labels, linked, parted, 100, 2)
    assert str(error.value).count(". ") == 0
