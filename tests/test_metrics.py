"""Laws of the metrics: what may not change them, what must."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score

from mmcnb import _agreement
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


def _best_over_all_matchings(y, labels, score):
    """Try every assignment of distinct clusters (or none) to the classes."""
    classes, clusters = np.unique(y), np.unique(labels)
    candidates = [*clusters, *[None] * len(classes)]
    return max(
        score(dict(zip(classes, m, strict=True))) for m in itertools.permutations(candidates, len(classes))
    )


@given(two_labelings)
def test_both_are_the_best_over_every_matching(case):
    y, labels = map(np.asarray, case)

    def mean_rate(match):
        return np.mean([np.mean(labels[y == c] == match[c]) if match[c] is not None else 0.0 for c in match])

    def agreement(match):
        return np.mean([label == match[c] for c, label in zip(y, labels, strict=True)])

    assert balanced_clustering_error(y, labels) == pytest.approx(
        1 - _best_over_all_matchings(y, labels, mean_rate)
    )
    assert clustering_accuracy(y, labels) == pytest.approx(_best_over_all_matchings(y, labels, agreement))


@pytest.mark.slow
@given(two_labelings)
def test_the_rand_index_is_that_of_scikit_learn_at_any_size_of_blocks(case):
    y, labels = map(np.asarray, case)
    expected = pytest.approx(adjusted_rand_score(y, labels), abs=1e-12)
    for rows in (1, 3, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mmcnb.metrics.COUNTED_ROWS", rows)
            assert adjusted_rand_index(y, labels) == expected
            assert adjusted_rand_index(y.astype(str), labels) == expected


def test_the_rand_index_of_many_clusters_holds_no_table_of_all_pairs():
    rows = np.arange(10**5)  # whose table would take 80 GB
    assert adjusted_rand_index(rows, rows) == 1.0
    assert adjusted_rand_index(rows, rows // 2) == pytest.approx(adjusted_rand_score(rows, rows // 2))


def test_the_rand_index_counts_more_pairs_than_an_integer_of_64_bits_holds():
    halves = scipy.sparse.csr_array(np.array([[2 * 10**10, 1], [0, 2 * 10**10]]))
    assert _agreement.adjusted_rand_index(halves) == pytest.approx(1 - 1e-10, abs=1e-12)


@given(two_labelings, st.permutations(range(4)), st.permutations(range(3)))
def test_names_of_clusters_and_classes_mean_nothing(case, clusters, classes):
    y, labels = map(np.asarray, case)
    renamed_y, renamed_labels = np.take(classes, y).astype(str), np.take(clusters, labels)
    for normalization in (balanced_clustering_error, clustering_accuracy):
        assert normalization(renamed_y, renamed_labels) == pytest.approx(normalization(y, labels))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_two_by_two_is_the_papers_formula(pairs):
    y, labels = np.array(pairs, dtype=int).T
    if len(np.unique(y)) < 2:
        y[0], y[1] = 0, 1
    expected = min(1 - balanced_accuracy_score(y, labels), 1 - balanced_accuracy_score(y, 1 - labels))
    if len(np.unique(labels)) == 2:
        assert balanced_clustering_error(y, labels) == pytest.approx(expected)
    else:
        assert balanced_clustering_error(y, labels) == pytest.approx(0.5)


def test_perfect_clusters_have_no_error_and_one_cluster_is_a_coin_flip():
    y = np.repeat([0, 1], [90, 10])
    assert balanced_clustering_error(y, 1 - y) == 0.0
    assert clustering_accuracy(y, 1 - y) == 1.0
    assert balanced_clustering_error(y, np.zeros(100)) == 0.5
    assert clustering_accuracy(y, np.zeros(100)) == 0.9


def test_a_class_repeated_changes_the_accuracy_and_not_the_balanced_error():
    y, labels = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 0])
    repeat = np.where(y == 1, 7, 1)
    many_y, many_labels = np.repeat(y, repeat), np.repeat(labels, repeat)
    assert balanced_clustering_error(many_y, many_labels) == pytest.approx(
        balanced_clustering_error(y, labels)
    )
    assert clustering_accuracy(many_y, many_labels) < clustering_accuracy(y, labels)


@given(two_labelings)
def test_the_confusion_has_each_row_once_and_its_matched_clusters_on_the_diagonal(case):
    y, labels = map(np.asarray, case)
    counts = matched_confusion(y, labels)
    assert counts.index.tolist() == np.unique(y).tolist()
    assert sorted(counts.columns) == np.unique(labels).tolist()
    for name, cluster in itertools.product(counts.index, counts.columns):
        assert counts.loc[name, cluster] == np.sum((y == name) & (labels == cluster))
    if counts.shape[0] <= counts.shape[1]:
        assert np.trace(counts) == pytest.approx(len(y) * clustering_accuracy(y, labels))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: balanced_clustering_error([0, 1], [0, 1, 1]), "y_true has 2 rows and labels has 3"),
        (lambda: clustering_accuracy([], []), "at least one row"),
        (lambda: clustering_accuracy([[0, 1]], [0, 1]), "y_true has shape"),
    ],
)
def test_bad_input_is_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
