"""Laws of the metrics: brute force over all matchings, what may not change them, and what must."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score

from mmcnb.errors import InputError
from mmcnb.metrics import (
    adjusted_rand_index,
    balanced_clustering_error,
    clustering_accuracy,
    matched_confusion,
)

two_labelings = st.integers(2, 20).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


def best_over_all_matchings(y, labels, score):
    """Try every assignment of distinct clusters (or none) to the classes."""
    classes = np.unique(y)
    candidates = [*np.unique(labels), *[None] * len(classes)]
    matchings = itertools.permutations(candidates, len(classes))
    return max(
        score(dict(zip(classes, clusters, strict=True))) for clusters in matchings
    )


@settings(max_examples=40)
@given(two_labelings, st.permutations(range(4)), st.permutations(range(3)))
def test_all_are_those_of_a_brute_force_whatever_the_names(
    labelings, clusters, classes
):
    y, labels = map(np.asarray, labelings)

    def mean_rate(match):
        return np.mean(
            [
                np.mean(labels[y == c] == match[c]) if match[c] is not None else 0.0
                for c in match
            ]
        )

    def agreement(match):
        return np.mean([label == match[c] for c, label in zip(y, labels, strict=True)])

    expected = {
        balanced_clustering_error: 1 - best_over_all_matchings(y, labels, mean_rate),
        clustering_accuracy: best_over_all_matchings(y, labels, agreement),
        adjusted_rand_index: adjusted_rand_score(y, labels),
    }
    renamed = np.take(classes, y).astype(str), np.take(clusters, labels)
    for metric, value in expected.items():
        assert metric(y, labels) == pytest.approx(value, abs=1e-12)
        assert metric(*renamed) == pytest.approx(value, abs=1e-12)


@settings(max_examples=40)
@given(two_labelings)
def test_the_confusion_has_each_row_once_and_its_matched_clusters_on_the_diagonal(
    labelings,
):
    y, labels = map(np.asarray, labelings)
    counts = matched_confusion(y, labels)
    assert counts.index.tolist() == np.unique(y).tolist()
    assert sorted(counts.columns) == np.unique(labels).tolist()
    for name, cluster in itertools.product(counts.index, counts.columns):
        assert counts.loc[name, cluster] == np.sum((y == name) & (labels == cluster))
    if counts.shape[0] <= counts.shape[1]:
        assert np.trace(counts) == pytest.approx(
            len(y) * clustering_accuracy(y, labels)
        )


def test_the_rand_index_of_many_rows_is_exact_and_holds_no_table_of_all_pairs():
    # products of their numbers of pairs exceed 64 bits
    halves = np.arange(2**20 + 3) % 2
    changed = np.where(np.arange(halves.size) % 1000 == 0, 2, halves)
    assert adjusted_rand_index(halves, changed) == pytest.approx(
        adjusted_rand_score(halves, changed)
    )
    rows = np.arange(10**5)  # whose table would take 80 GB
    assert adjusted_rand_index(rows, rows) == 1.0
    assert adjusted_rand_index(rows, rows // 2) == pytest.approx(
        adjusted_rand_score(rows, rows // 2)
    )


def test_two_by_two_is_the_papers_formula():
    y = np.array([0, 0, 0, 0, 1, 1, 1])
    labels = np.array([1, 1, 0, 1, 0, 0, 1])
    errors = (
        1 - balanced_accuracy_score(y, labels),
        1 - balanced_accuracy_score(y, 1 - labels),
    )
    assert balanced_clustering_error(y, labels) == pytest.approx(min(errors))


def test_perfect_clusters_have_no_error_and_one_cluster_is_a_coin_flip():
    y = np.repeat([0, 1], [90, 10])
    assert balanced_clustering_error(y, 1 - y) == 0.0
    assert clustering_accuracy(y, 1 - y) == 1.0
    assert balanced_clustering_error(y, np.zeros(100)) == 0.5
    assert clustering_accuracy(y, np.zeros(100)) == 0.9


@pytest.mark.parametrize(
    ("metric", "y", "labels", "sentence"),
    [
        (
            balanced_clustering_error,
            [0, 1],
            [0, 1, 1],
            "^y_true has 2 rows and labels has 3; give one[^\n]*$",
        ),
        (clustering_accuracy, [], [], "^[^\n]*at least one row[^\n]*$"),
        (clustering_accuracy, [[0, 1]], [0, 1], "^y_true has shape[^\n]*$"),
        (
            matched_confusion,
            np.array([0, "a"], object),
            [0, 1],
            "^y_true or labels mixes strings and numbers",
        ),
    ],
)
def test_bad_input_is_one_sentence(metric, y, labels, sentence):
    with pytest.raises(InputError, match=sentence):
        metric(y, labels)
