"""The study of multiple kernel clustering: its data sets, its measures, and how it chooses."""

import os
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import mmcnb
from benchmarks.journal import Journal
from benchmarks.protocol import LABEL_FREE, PAPER, Data, known_balance
from benchmarks.published import MKC as MKC_PAPER
from benchmarks.published import THESIS, figure
from benchmarks.run import Options, Run
from benchmarks.studies import _mkc_curves, _mkc_models, mkc
from benchmarks.studies._mkc_models import (
    FLIPS,
    FORMS,
    K1,
    K2,
    K3,
    METHODS,
    MKC,
    MNIST,
    MNIST_SAMPLE,
    OURS,
    SETS,
    TABLE2,
    TABLE3,
    THESIS_ONLY,
    NormalisedCut,
    distance_range,
    load_set,
    majority_accuracy,
    rows_of_set,
    scores,
)
from benchmarks.studies.mkc import best_points
from mmcnb.datasets import make_block
from mmcnb.metrics import clustering_accuracy

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


# Data


@pytest.mark.parametrize("name", [pytest.param(name, marks=real_data) for name in SETS])
def test_a_data_set_has_the_rows_and_classes_that_are_known_of_it(name):
    data = load_set(name)
    assert data.X.shape == SHAPES[name]
    classes = np.unique(data.y)
    assert len(classes) == SETS[name].n_clusters
    assert not SETS[name].classes or tuple(classes) == SETS[name].classes


@pytest.mark.parametrize("name", [pytest.param("ringnorm", marks=real_data)])
def test_a_draw_repeats_and_leaves_the_others(name):
    first, rest = (load_set(one).X for one in (name, f"{name}-rest"))
    load_set.cache_clear()
    np.testing.assert_array_equal(first, load_set(name).X)
    assert len(np.unique(np.vstack([first, rest]), axis=0)) == 7400
    few = load_set(name, 50).X
    assert {row.tobytes() for row in few} < {row.tobytes() for row in first}


def test_every_set_of_the_tables_has_published_figures_and_is_known():
    assert set(TABLE3) | set(TABLE3.values()) <= set(SETS)
    for name in (*TABLE2, MNIST):
        assert all(np.isfinite(figure(MKC_PAPER, name, method, "accuracy")) for method in OURS)
    for name in THESIS_ONLY:
        assert all(np.isfinite(figure(THESIS, name, method, "accuracy")) for method in METHODS)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("ringnorm", {}, 1000),
        ("ringnorm", {"rows": 50, "quick": True}, 50),
        ("ringnorm", {"rows": 500, "quick": True}, 200),
        (MNIST, {"quick": True}, 200),
        (MNIST, {}, None),
    ],
)
def test_rows_are_the_least_of_what_bounds_them(name, given, expected, tmp_path):
    assert rows_of_set(name, Options(tmp_path, **given)) == expected


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
    assert scores(["a", "b", "a", "c"], [2, 0, 2, 1]) == {"accuracy": 1, "rand": 1, "ari": 1}


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_range_of_distances_scales_with_the_rows(factor):
    X, _ = make_block("rings", 0, 40, 3)
    assert distance_range(factor * X + 5) == pytest.approx(factor * distance_range(X), rel=1e-4)


# Peers


def test_normalised_cut_parts_rings_that_k_means_cannot():
    X, y = make_block("rings", 0, 300, 2)
    labels = NormalisedCut(2, 30.0, 0).fit(X).labels_
    assert majority_accuracy(y, labels) > 0.95


@pytest.mark.parametrize("classes", [[5, 5], [9, 1], [52, 48]])
def test_the_balance_is_kept_by_the_classes(classes):
    y = np.repeat([0, 1], classes)
    share = abs(classes[0] - classes[1]) / sum(classes)
    assert known_balance(y) >= min(share, 0.4)


@pytest.mark.parametrize(("name", "methods"), [("digits1v7", 3), ("digits0689", 2)])
def test_peers_run_by_both_protocols_where_they_can(name, methods, tmp_path):
    found = mkc.others(pd.DataFrame({"dataset": [name]}), Options(tmp_path, quick=True))
    runs = [Run(**row) for row in found.to_dict("records")]
    assert len({run.identity for run in runs}) == len(runs)
    peers = [run for run in runs if run.method not in OURS]
    assert {run.method for run in runs} - {run.method for run in peers} == set(OURS)
    for protocol in (PAPER, LABEL_FREE):
        assert len({run.method for run in peers if run.protocol == protocol}) == methods
    assert all(run.method == "k-means" or bool(run.parameters) == (run.protocol == PAPER) for run in peers)


# Choice


def fits(*rows):
    columns = ["parameters", "seed", "accuracy"]
    frame = pd.DataFrame(rows, columns=columns).assign(
        rand=1.0, seconds=1.0, peak_mib=1.0, n=9, d=2, weights=""
    )
    return frame.assign(dataset="ringnorm", method=MKC, protocol=PAPER, status="ok")


def test_the_best_parameters_are_those_of_the_highest_mean():
    found = mkc.chosen_of(fits(("a", 0, 0.99), ("a", 1, 0.51), ("b", 0, 0.80), ("b", 1, 0.82)))
    assert found["parameters"].tolist() == ["b"]
    assert found["accuracy"].tolist() == [pytest.approx(0.81)]


def test_the_earlier_of_equals_wins_and_failed_runs_do_not_count():
    assert mkc.chosen_of(fits(("a", 0, 0.8), ("b", 0, 0.8)))["parameters"].tolist() == ["a"]
    failed = fits(("c", 0, np.nan)).assign(status="failed")
    assert mkc.chosen_of(pd.concat([failed, fits(("a", 0, 0.8))]))["parameters"].tolist() == ["a"]


class HalfRight:
    """An estimator that is right on the more rows, the larger C is; with kernels of any names."""

    made = ()

    def __init__(self, n_clusters, kernels, C=None, basis=None, random_state=None, **form):
        self.kernels, self.C, self.basis, self.random_state = kernels, C, basis, random_state
        self.kernel_names_, self.kernel_weights_ = [str(one) for one in kernels], [1.0] * len(kernels)
        HalfRight.made = (*HalfRight.made, self)

    def fit(self, X):
        right = 5 if self.C is None else 5 + int(np.log2(self.C)) // 2
        self.labels_ = np.r_[np.zeros(right, int), np.ones(len(X) - right, int)]
        return self


@pytest.fixture
def ten(monkeypatch, tmp_path):
    """The grid over ten rows, as the journal has it."""
    X, _ = make_block("rings", 0, 10, 2)
    data = Data("ringnorm", X, np.r_[np.zeros(9, int), [1]])
    monkeypatch.setattr(mmcnb, "MultipleKernelClustering", HalfRight, raising=False)
    monkeypatch.setattr(HalfRight, "made", ())
    monkeypatch.setattr(_mkc_models, "load_set", lambda name, rows: data)
    monkeypatch.setattr(_mkc_models, "sigma0_of", lambda name, rows: distance_range(X))
    options = Options(tmp_path)
    with Journal("mkc", options, "a") as journal:
        alone = journal.results(mkc.alone(3 * (["ringnorm"],), options), _mkc_models.compute)
        combined = journal.results(mkc.combined(alone, options), _mkc_models.compute)
    return pd.concat([alone, combined])


def test_the_grid_has_each_kernel_alone_and_one_of_each_kind_together(ten):
    assert set(ten["status"]) == {"ok"}
    assert list(ten["method"].unique()) == [K1, K2, K3, MKC]
    counts = [len(one.kernels) for one in HalfRight.made]
    assert [{1: "alone", 3: MKC}[count] for count in counts] == [
        MKC if method == MKC else "alone" for method in ten["method"]
    ]
    assert {one.basis for one in HalfRight.made} == {"exact"}
    assert {one.random_state for one in HalfRight.made} == set(range(len(FLIPS)))
    assert {one.C for one in HalfRight.made} == {form["C"] for form in FORMS.values()}


def test_the_best_point_is_that_of_the_highest_accuracy(ten):
    for method in OURS:
        rows = ten[ten["method"] == method]
        point = best_points(ten, method)["ringnorm"]
        assert FORMS[point["form"]]["C"] == 2.0 ** max(_mkc_models.EXPONENTS)
        chosen = rows[(rows["kernels"] == point["kernels"]) & (rows["form"] == point["form"])]
        assert chosen["accuracy"].tolist() == [rows["accuracy"].max()]


def test_the_default_is_fitted_to_a_store_in_a_process_that_is_watched(monkeypatch, tmp_path):
    data = Data(MNIST, *make_block("blobs", 0, 300, 8, n_clusters=5))
    monkeypatch.setattr(_mkc_models, "load_set", lambda name, rows: data)
    run = Run(MNIST, MKC, 0, part="mnist", settings={"rows": None}, folder=str(tmp_path))
    found = mkc.compute_mnist(run)
    assert (found["n"], found["d"], found["accuracy"]) == (300, 8, 1)
    assert found["peak_mib"] > 50
    weights = [float(one.rpartition(": ")[2]) for one in found["weights"].split("; ")]
    assert sum(np.square(weights)) == pytest.approx(1, abs=0.05)


def test_each_method_stands_once_with_both_protocols_beside_the_published_figures():
    one = pd.concat(
        [fits(("a", 0, 0.9 + place / 100)).assign(method=name) for place, name in enumerate(METHODS)]
    )
    both = pd.concat([one, one.assign(protocol=LABEL_FREE, accuracy=one["accuracy"] - 0.2)])
    table = mkc.beside(mkc.chosen_of(both))
    assert table["method"].tolist() == list(METHODS)
    np.testing.assert_allclose(table["accuracy"], one["accuracy"])
    np.testing.assert_allclose(table["label-free accuracy"], one["accuracy"] - 0.2)
    for paper, name in ((MKC_PAPER, "published accuracy"), (THESIS, "thesis accuracy")):
        assert table[name].tolist() == [figure(paper, "ringnorm", method, "accuracy") for method in METHODS]


@pytest.mark.parametrize(
    ("dataset", "bound"), [("ringnorm", 98.0), ("ionosphere", 90.01), ("digits1v7-tra", 98.74)]
)
def test_goals_are_a_point_below_what_was_published_and_the_best_kernel_alone(dataset, bound):
    rows = [
        fits(("a", 0, found)).assign(method=method)
        for method, found in zip(OURS, (0.8, 0.95, 0.92, 0.945), strict=True)
    ]
    beside, alone = mkc.table2(pd.concat(rows).assign(dataset=dataset)).goals
    assert (beside.bound, alone.bound) == (bound, 94.0)
    assert beside.reached == (bound <= 94.5)
    assert alone.reached


# Curves


@pytest.fixture
def curves(monkeypatch, tmp_path):
    """The section "curves" of the study, on a few rows of rings, as the journal has it."""
    data = Data("ionosphere", *make_block("rings", 0, 60, 2, random_state=0))
    monkeypatch.setattr(_mkc_models, "load_set", lambda name, rows: data)
    monkeypatch.setattr(_mkc_models, "sigma0_of", lambda name, rows: distance_range(data.X))
    _mkc_curves.steps_of.cache_clear()
    options = Options(tmp_path, quick=True, smoke=True, rows=60)
    with Journal("mkc", options, "a") as journal:
        by_round = journal.results(_mkc_curves.grid(options), _mkc_curves.compute)
        by_step = journal.results(_mkc_curves.violations(by_round, options), _mkc_curves.compute)
    return pd.concat([by_round, by_step])


def test_curves_have_each_round_and_each_cutting_plane(curves):
    assert set(curves["status"]) == {"ok"}
    accuracy, time, violation = (
        curves[curves["part"] == part].dropna(axis=1, how="all")
        for part in (_mkc_curves.BY_ROUND, _mkc_curves.OF_TIME, _mkc_curves.BY_STEP)
    )
    assert accuracy["round"].tolist() == [1, 2]
    assert accuracy["accuracy"].between(0.5, 1).all()
    assert violation["step"].tolist() == list(range(1, int(accuracy["steps"].iloc[-1]) + 1))
    assert (violation["violation"] >= 0).all()
    assert violation["violation"].iloc[-1] <= 0.01 < violation["violation"].max(), "it ends within eta"
    assert violation["seconds"].is_monotonic_increasing
    assert time[["rows", "eta"]].to_numpy().tolist() == [[60, 0.1], [60, 0.01]]


def test_curves_are_shown_with_a_line_for_each_point(curves):
    found = mkc.SECTIONS["curves"].tables(curves).tables
    assert list(found) == ["mkc-curves-accuracy", "mkc-curves-time", "mkc-curves-violation"]
    assert list(found["mkc-curves-accuracy"].columns) == ["round", "ionosphere"]
    assert list(found["mkc-curves-time"].columns) == ["rows", "0.1", "0.01"]
    assert len(found["mkc-curves-violation"]) == (curves["part"] == _mkc_curves.BY_STEP).sum()


def test_fits_of_the_curves_have_one_kernel_of_each_kind_and_the_form_of_the_thesis(curves):
    model = _mkc_curves.as_published("ionosphere", None, max_rounds=3)
    assert [kernel if isinstance(kernel, str) else kernel[0] for kernel in model.kernels] == [
        *("linear", "poly", "rbf")
    ]
    assert (model.threshold, model.continuation, model.basis, model.max_rounds) == (
        "fixed",
        False,
        "exact",
        3,
    )
