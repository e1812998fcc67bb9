"""The study of multiple kernel clustering: its data sets, its measures, and how it chooses."""

import os
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import mmcnb
from benchmarks import _mkc_fits
from benchmarks._common import Data, Options
from benchmarks._mkc_data import (
    K1,
    K2,
    K3,
    METHODS,
    MKC,
    MNIST,
    OURS,
    PUBLISHED,
    SETS,
    TABLE2,
    TABLE3,
    THESIS,
    distance_range,
    load_set,
    majority_accuracy,
    published,
    scores,
)
from benchmarks._mkc_fits import FREE, PAPER, NormalisedCut, best_rows, known_balance, rival_fits
from benchmarks.mkc import beside_published, goals_of
from mmcnb.metrics import clustering_accuracy
from mmcnb.synthetic import make_block

real_data = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data"
    ),
]
SHAPES = {
    "digits1v7": (361, 64),
    "digits2v7": (356, 64),
    "ionosphere": (351, 34),
    "ringnorm": (1000, 20),
    "digits0689": (713, 64),
    "digits1279": (718, 64),
    "digits1v7-tra": (776, 64),
    "ringnorm-rest": (6400, 20),
    MNIST: (35_735, 784),
}


# Data


@pytest.mark.parametrize("name", [pytest.param(name, marks=real_data) for name in SETS])
def test_a_data_set_has_the_rows_and_classes_that_are_known_of_it(name, tmp_path):
    data = load_set(name, Options(tmp_path))
    assert data.X.shape == SHAPES[name]
    classes = np.unique(data.y)
    assert len(classes) == SETS[name].n_clusters
    assert not SETS[name].classes or tuple(classes) == SETS[name].classes


@pytest.mark.parametrize("name", [pytest.param("ringnorm", marks=real_data)])
def test_a_draw_repeats_and_leaves_the_others(name, tmp_path):
    first, second, rest = (load_set(n, Options(tmp_path)).X for n in (name, name, f"{name}-rest"))
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(np.vstack([first, rest]), axis=0)) == 7400
    few = load_set(name, Options(tmp_path, rows=50)).X
    assert {row.tobytes() for row in few} < {row.tobytes() for row in first}


def test_published_figures_are_shares_for_each_method():
    assert set(PUBLISHED) == {*TABLE2, MNIST}
    for figures in PUBLISHED.values():
        assert len(figures) == len(METHODS)
        for accuracy, rand in figures:
            assert np.isnan(accuracy) == np.isnan(rand)
            assert np.isnan(accuracy) or (40 < accuracy <= 100 and 0.5 < rand <= 1)
    assert set(THESIS) | set(TABLE3) <= set(SETS)
    assert all(len(figures) == len(METHODS) for figures in THESIS.values())


def test_a_figure_that_was_not_published_is_missing():
    assert all(np.isnan(figure) for figure in published("digits1v7-tra", "MKC").values() if figure != 99.74)
    assert np.isnan(published("digits0689", "IterSVR")["published rand"])


# Measures


@pytest.mark.parametrize("k", [2, 4])
def test_accuracy_is_that_of_the_best_matching_where_each_class_has_its_cluster(k):
    random = np.random.default_rng(k)
    y = random.integers(k, size=200)
    labels = np.where(random.random(200) < 0.8, (y + 1) % k, random.integers(k, size=200))
    assert majority_accuracy(y, labels) == pytest.approx(clustering_accuracy(y, labels))
    for order in permutations(range(k)):
        assert majority_accuracy(y, np.array(order)[labels]) == majority_accuracy(y, labels)


def test_two_clusters_may_take_one_class():
    y, labels = [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 0]
    assert majority_accuracy(y, labels) == pytest.approx(4 / 6)
    assert majority_accuracy(y, [0] * 6) == pytest.approx(4 / 6)
    assert majority_accuracy(y, range(6)) == 1


def test_scores_of_the_classes_themselves_are_full():
    assert scores(["a", "b", "a", "c"], [2, 0, 2, 1]) == {"accuracy": 100, "rand": 1, "ari": 1}


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_range_of_distances_scales_with_the_rows(factor):
    X, _ = make_block("rings", 0, 40, 3)
    assert distance_range(factor * X + 5) == pytest.approx(factor * distance_range(X), rel=1e-4)


# Rivals


def test_normalised_cut_parts_rings_that_k_means_cannot():
    X, y = make_block("rings", 0, 300, 2)
    labels = NormalisedCut(2, 30.0, 0).fit(X).labels_
    assert majority_accuracy(y, labels) > 0.95


@pytest.mark.parametrize("classes", [[5, 5], [9, 1], [52, 48]])
def test_the_balance_is_kept_by_the_classes(classes):
    y = np.repeat([0, 1], classes)
    share = abs(classes[0] - classes[1]) / sum(classes)
    assert known_balance(y) >= min(share, 0.4)


@pytest.mark.parametrize("protocol", [PAPER, FREE])
def test_what_cannot_be_run_says_why(protocol, monkeypatch):
    monkeypatch.setattr(_mkc_fits, "MOST_AFFINITIES", 20)
    monkeypatch.setattr(_mkc_fits, "RUNS", 2)
    rng = np.random.default_rng(0)
    data = Data("digits0689", rng.normal(size=(40, 3)), np.arange(40) % 4)
    rows = pd.DataFrame(rival_fits(data, protocol, range(1))).set_index("method")
    assert rows.loc["normalised cut", "parameters"] == "not run: 40² affinities"
    assert rows.loc["IterSVR", "parameters"] == "not run: two clusters only"
    assert rows.loc[["normalised cut", "IterSVR"], "accuracy"].isna().all()
    assert rows.loc[["k-means"], "accuracy"].notna().all()


# Choice


def fits(*rows):
    columns = ["parameters", "seed", "accuracy"]
    frame = pd.DataFrame(rows, columns=columns).assign(rand=1.0, ari=1.0, seconds=1.0, n=9, weights="")
    return frame.assign(dataset="ringnorm", method=MKC, protocol=PAPER)


def test_the_best_parameters_are_those_of_the_highest_mean():
    found = best_rows(fits(("a", 0, 99.0), ("a", 1, 51.0), ("b", 0, 80.0), ("b", 1, 82.0)))
    assert found[["parameters", "accuracy"]].to_numpy().tolist() == [["b", 81.0]]


def test_the_earlier_of_equals_wins_and_a_row_without_figure_stays():
    assert best_rows(fits(("a", 0, 80.0), ("b", 0, 80.0)))["parameters"].tolist() == ["a"]
    assert best_rows(fits(("not run", 0, np.nan)))["parameters"].tolist() == ["not run"]


class HalfRight:
    """An estimator that is right on the more rows, the larger C is."""

    made = ()

    def __init__(self, n_clusters, kernels, C=None, basis=None, random_state=None, **form):
        self.kernels, self.C, self.basis, self.random_state = kernels, C, basis, random_state
        HalfRight.made = (*HalfRight.made, self)

    def fit(self, X):
        right = 5 if self.C is None else 5 + int(np.log2(self.C)) // 2
        self.labels_ = np.r_[np.zeros(right, int), np.ones(len(X) - right, int)]
        return self


@pytest.fixture
def ten(monkeypatch):
    monkeypatch.setattr(mmcnb, "MultipleKernelClustering", HalfRight, raising=False)
    monkeypatch.setattr(HalfRight, "made", ())
    monkeypatch.setattr(_mkc_fits, "RUNS", 2)
    X, _ = make_block("rings", 0, 10, 2)
    return Data("ringnorm", X, np.r_[np.zeros(9, int), [1]])


def test_the_grid_has_each_kernel_alone_and_one_of_each_kind_together(ten):
    rows = pd.DataFrame(_mkc_fits.mkc_fits(ten, PAPER, 7))
    assert list(rows["method"].unique()) == [K1, K2, K3, MKC]
    counts = [len(one.kernels) for one in HalfRight.made]
    assert [{1: "alone", 3: MKC}[count] for count in counts] == [
        MKC if method == MKC else "alone" for method in rows["method"]
    ]
    assert not rows.duplicated(["method", "parameters"]).any()
    assert {one.basis for one in HalfRight.made} == {"exact"}
    assert {one.random_state for one in HalfRight.made} == {7, *range(len(_mkc_fits.FLIPS))}
    assert {one.C for one in HalfRight.made} == {form["C"] for form in _mkc_fits.FORMS.values()}


def test_without_classes_each_method_is_fitted_once(ten):
    rows = _mkc_fits.mkc_fits(ten, FREE, 0)
    assert [row["method"] for row in rows] == list(OURS)
    assert all(one.C is None and one.basis is None for one in HalfRight.made)


def test_the_best_point_is_that_of_the_highest_accuracy(ten):
    found = _mkc_fits.grid_fits(ten, 0)
    for method in OURS:
        point = _mkc_fits.best_point(found[method])
        assert (_mkc_fits.FORMS | _mkc_fits.FLIPS)[point.form]["C"] == 2.0 ** max(_mkc_fits.EXPONENTS)
        best = max(row["accuracy"] for _, row in found[method])
        assert {row["parameters"]: row["accuracy"] for _, row in found[method]}[str(point)] == best


def test_each_method_stands_once_with_both_protocols_beside_the_published_figures():
    one = pd.concat([fits(("a", 0, 90.0 + place)).assign(method=name) for place, name in enumerate(METHODS)])
    both = pd.concat([one, one.assign(protocol=FREE, accuracy=one["accuracy"] - 20)])
    table = beside_published(both)
    assert table["method"].tolist() == list(METHODS)
    np.testing.assert_array_equal(table["accuracy"], one["accuracy"])
    np.testing.assert_array_equal(table["label-free accuracy"], one["accuracy"] - 20)
    np.testing.assert_array_equal(table["published accuracy"], [pair[0] for pair in PUBLISHED["ringnorm"]])
    np.testing.assert_array_equal(table["thesis accuracy"], THESIS["ringnorm"])


@pytest.mark.parametrize(
    ("dataset", "bound"), [("ringnorm", 98.0), ("ionosphere", 90.01), ("digits1v7-tra", 98.74)]
)
def test_goals_are_a_point_below_what_was_published_and_the_best_kernel_alone(dataset, bound):
    accuracies = [80.0, 95.0, 92.0, 94.5]
    table = pd.DataFrame({"dataset": dataset, "method": OURS, "accuracy": accuracies})
    known = pd.DataFrame([published(dataset, method) for method in OURS])
    beside, alone = goals_of(table.join(known))
    assert (beside.bound, alone.bound) == (bound, 94.0)
    assert beside.reached == (bound <= 94.5)
    assert alone.reached
