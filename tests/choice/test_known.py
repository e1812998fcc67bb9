"""Known labels of some rows: the share that a partition breaks, and how they spread along the graph."""

from itertools import permutations

import numpy as np
import pytest

from mmcnb.choice.known import KnownRows, held_out, spread
from mmcnb.choice.read_known import MOST_ROWS, read_known_rows
from mmcnb.errors import InputError
from tests.choice.graphs import blobs, graph_of, ring


def known_of(rows, labels):
    order = np.argsort(rows)
    return KnownRows(np.asarray(rows)[order], np.asarray(labels)[order])


def one_label_a_group(graph, truth, k):
    """The first row of each group."""
    return known_of(
        [np.flatnonzero(truth[graph.node_of] == h)[0] for h in range(k)], np.arange(k)
    )


# -- what is broken --------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_the_broken_share_is_the_least_under_any_names(n_clusters):
    rng = np.random.default_rng(n_clusters)
    rows = np.sort(rng.permutation(30)[:12])
    labels = rng.integers(0, 3, 12)
    found = rng.integers(0, n_clusters, 30)
    most = max(
        (np.array(names)[labels] == found[rows]).sum()
        for names in permutations(range(4))
    )
    known = KnownRows(rows, labels)
    assert known.broken(found) == pytest.approx((12 - most) / 12)
    assert known.tolerance == pytest.approx(1 / 12 + 0.05)


def test_rows_are_numbered_by_their_places_among_others():
    known = known_of([3, 10, 40], [0, 1, 0])
    rows = np.array([1, 3, 10, 30, 40, 50])
    among = known.among(rows)
    labels = np.random.default_rng(0).integers(0, 2, 60)
    assert among.rows.tolist() == [1, 2, 4]
    assert (known.least_clusters, known_of([0, 1], [4, 0]).least_clusters) == (2, 5)
    assert among.broken(labels[rows]) == known.broken(labels)


# -- spreading -------------------------------------------------------------------------


def test_spreading_keeps_the_known_labels():
    rng = np.random.default_rng(0)
    graph = graph_of(blobs(90, 3, 1.0))
    rows = np.sort(rng.permutation(90)[:30])
    labels = np.r_[0, 1, 2, rng.integers(0, 3, 27)]
    found = spread(graph, known_of(rows, labels), 3)
    np.testing.assert_array_equal(found[graph.node_of[rows]], labels)
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("k", [2, 5])
def test_one_label_a_group_far_apart_is_enough(k):
    graph, truth = ring(k)
    known = one_label_a_group(graph, truth, k)
    np.testing.assert_array_equal(spread(graph, known, k), truth)
    assert held_out(graph, known, k) == 1.0  # one label foretells no other


def test_a_cluster_without_a_label_leaves_nothing_to_spread():
    graph, truth = ring(3)
    rows = np.flatnonzero(truth[graph.node_of] < 2)[:20]
    known = known_of(rows, truth[graph.node_of][rows])
    assert spread(graph, known, 3) is None
    assert spread(graph, known, 2) is not None


def test_of_equal_rows_with_several_labels_the_first_counts():
    graph = graph_of(np.repeat(blobs(30, 2, 9.0), 2, axis=0))
    found = spread(graph, known_of(np.arange(8), [0, 1, 1, 0, 0, 0, 1, 1]), 2)
    assert found[graph.node_of[[0, 2, 4, 6]]].tolist() == [0, 1, 0, 1]


# -- held out --------------------------------------------------------------------------


def test_each_half_is_every_second_label_of_each_class():
    graph = graph_of(blobs(90, 3, 2.0))
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(90)[:40])
    classes = np.r_[0, 1, 2, 0, 1, 2, rng.integers(0, 3, 34)]
    is_first = np.zeros(40, bool)
    for one in range(3):
        is_first[np.flatnonzero(classes == one)[::2]] = True
    n_wrong = 0
    for half in (is_first, ~is_first):
        found = spread(graph, KnownRows(rows[half], classes[half]), 3)[graph.node_of]
        n_wrong += KnownRows(rows[~half], classes[~half]).broken(
            found
        ) * np.count_nonzero(~half)
    assert held_out(graph, KnownRows(rows, classes), 3) == pytest.approx(n_wrong / 40)
    assert n_wrong > 0


# -- what is read ----------------------------------------------------------------------


def test_all_forms_of_labels_are_read_alike():
    labels = np.full(20, -1)
    labels[[3, 7, 11]] = 1, 0, 2
    for form in (labels, labels.tolist(), labels.astype(float), {11: 2, 3: 1, 7: 0}):
        known = read_known_rows(form, 20, 3)
        assert (known.rows.tolist(), known.labels.tolist()) == ([3, 7, 11], [1, 0, 2])
    for nothing in (np.full(9, -1), {}, {3: -1}):
        assert read_known_rows(nothing, 9, 2) is None


def test_of_many_known_rows_some_are_used():
    labels = np.random.default_rng(0).integers(-1, 3, 50_000)
    known = read_known_rows(labels, 50_000, 3)
    named = np.flatnonzero(labels >= 0)
    assert MOST_ROWS / 2 < known.rows.size <= MOST_ROWS
    np.testing.assert_array_equal(known.rows, named[:: -(-named.size // MOST_ROWS)])
    np.testing.assert_array_equal(known.labels, labels[known.rows])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"partial_labels has the shape \(2,\) for 100 rows"),
        ({9: 7, 3: 2}, "partial_labels of row 3 is 2; give labels from 0 to 1"),
        ({3: -2}, "partial_labels of row 3 is -2"),
        ({100: 0}, "partial_labels names row 100; give row numbers from 0 to 99"),
        ({3: 0.5}, "partial_labels has a value that is not an integer"),
        ({3: [0, 1]}, r"partial_labels has the shape \(1, 2\)"),
        ({(3, 4): 0}, r"partial_labels has the shape \(1,\) for 2 rows"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_sentence(labels, message):
    with pytest.raises(InputError, match=message) as error:
        read_known_rows(labels, 100, 2)
    assert str(error.value).count(". ") == 0
