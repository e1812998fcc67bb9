"""The study of multiple kernel clustering: its data sets, its measures, and how it chooses."""

import os
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from benchmarks.protocol import LABEL_FREE, PAPER
from benchmarks.published import MKC as MKC_PAPER
from benchmarks.published import figure
from benchmarks.studies import mkc
from benchmarks.studies._mkc_models import (
    METHODS,
    MKC,
    MNIST,
    MNIST_SAMPLE,
    OURS,
    SETS,
    NormalisedCut,
    load_set,
    majority_accuracy,
    scores,
)
from mmcnb.datasets import make_block
from mmcnb.metrics import clustering_accuracy

pytestmark = pytest.mark.slow
SHAPES = {
    "digits1v7": (361, 64),
    "digits2v7": (356, 64),
    "ionosphere": (351, 34),
    "svmguide1-a": (1000, 4),
    "ringnorm": (1000, 20),
    "letter-AvB": (1555, 16),
    "letter-AvB, a sample": (500, 16),
    "satellite-1v2": (2236, 36),
    "satellite-1v2, a sample": (500, 36),
    "letterABCD": (3096, 16),
    "letterABCD, a sample": (500, 16),
    "digits0689": (713, 64),
    "digits1279": (718, 64),
    "digits1v7-tra": (776, 64),
    "ringnorm-rest": (6400, 20),
    MNIST: (35_735, 784),
    MNIST_SAMPLE: (1000, 784),
}
LARGE = [
    pytest.param(name, marks=pytest.mark.nightly) for name in (MNIST, MNIST_SAMPLE)
]


@pytest.mark.real_data
@pytest.mark.skipif(
    "MMCNB_DATA_DIR" not in os.environ,
    reason="MMCNB_DATA_DIR does not name the real data",
)
@pytest.mark.parametrize(
    "name", [*(name for name in SETS if name not in (MNIST, MNIST_SAMPLE)), *LARGE]
)
def test_a_data_set_has_the_rows_and_classes_that_are_known_of_it(name):
    data = load_set(name)
    assert data.X.shape == SHAPES[name]
    classes = np.unique(data.y)
    assert len(classes) == SETS[name].n_clusters
    assert not SETS[name].classes or tuple(classes) == SETS[name].classes


@pytest.mark.parametrize("k", [2, 4])
def test_accuracy_is_that_of_the_best_matching_where_each_class_has_its_cluster(k):
    random = np.random.default_rng(k)
    y = random.integers(k, size=200)
    labels = np.where(
        random.random(200) < 0.8, (y + 1) % k, random.integers(k, size=200)
    )
    assert majority_accuracy(y, labels) == pytest.approx(clustering_accuracy(y, labels))
    for order in permutations(range(k)):
        assert majority_accuracy(y, np.array(order)[labels]) == majority_accuracy(
            y, labels
        )
    assert majority_accuracy([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 0]) == pytest.approx(
        4 / 6
    )
    assert scores(["a", "b", "a", "c"], [2, 0, 2, 1]) == {
        "accuracy": 1,
        "rand": 1,
        "ari": 1,
    }


def test_normalised_cut_parts_rings_that_k_means_cannot():
    X, y = make_block("rings", 0, 300, 2)
    assert majority_accuracy(y, NormalisedCut(2, 30.0, 0).fit(X).labels_) > 0.95


def fits(*rows):
    frame = pd.DataFrame(rows, columns=["parameters", "seed", "accuracy"])
    frame = frame.assign(
        rand=1.0, seconds=1.0, peak_mib=1.0, n=9, d=2, weights="", status="ok"
    )
    return frame.assign(dataset="ringnorm", method=MKC, protocol=PAPER)


def test_the_best_parameters_are_those_of_the_highest_mean_of_the_runs_that_succeeded():
    chosen = mkc.chosen_of(
        fits(("a", 0, 0.99), ("a", 1, 0.51), ("b", 0, 0.80), ("b", 1, 0.82))
    )
    assert chosen["parameters"].tolist() == ["b"]
    assert chosen["accuracy"].tolist() == [pytest.approx(0.81)]
    failed = fits(("c", 0, 0.9)).assign(status="failed")
    equal = pd.concat([failed, fits(("a", 0, 0.8), ("b", 0, 0.8))])
    assert mkc.chosen_of(equal)["parameters"].tolist() == ["a"]  # the earlier of equals


def test_each_method_stands_once_with_both_protocols_beside_the_published_figures():
    one = pd.concat(
        [
            fits(("a", 0, 0.9 + k / 100)).assign(method=name)
            for k, name in enumerate(METHODS)
        ]
    )
    free = one.assign(protocol=LABEL_FREE, accuracy=one["accuracy"] - 0.2)
    table = mkc.beside(mkc.chosen_of(pd.concat([one, free])))
    assert table["method"].tolist() == list(METHODS)
    np.testing.assert_allclose(table["accuracy"], one["accuracy"])
    np.testing.assert_allclose(table["label-free accuracy"], free["accuracy"])
    published = [
        figure(MKC_PAPER, "ringnorm", method, "accuracy") for method in METHODS
    ]
    assert table["published accuracy"].tolist() == published


def test_goals_are_a_point_below_what_was_published_and_the_best_kernel_alone():
    accuracies = zip(OURS, (0.8, 0.95, 0.92, 0.945), strict=True)
    rows = [
        fits(("a", 0, accuracy)).assign(method=method)
        for method, accuracy in accuracies
    ]
    beside, alone = mkc.table2(pd.concat(rows)).goals
    assert (beside.bound, alone.bound) == (98.0, 94.0)
    assert (beside.reached, alone.reached) == (False, True)
