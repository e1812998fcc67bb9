"""The study of rare classes: its sets, the rows each method is given, and its goals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC as Machine

from benchmarks.__main__ import run_study
from benchmarks.journal import Journal
from benchmarks.protocol import LABEL_FREE, PAPER, Data
from benchmarks.run import Options, Run
from benchmarks.studies import scm
from benchmarks.studies._scm_machines import (
    SAMPLE,
    SCM,
    SVC,
    UNDER,
    WEIGHTED,
    Fit,
    machine,
    measures,
    row_weights,
    some_rows,
    train,
    trained_rows,
)
from benchmarks.studies.scm import (
    BLOCK,
    RARITY,
    RINGS,
    Task,
    load_task,
    rings,
    stores_in,
    thinned,
    write_task,
)
from benchmarks.support_cluster_machine import SupportClusterMachine
from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels


@pytest.fixture
def quick(tmp_path):
    return Options(tmp_path, quick=True, seeds=1, rows=600)


# Sets


def test_thinning_takes_rare_rows_alone_and_repeats():
    y = np.arange(2000) % 4 == 0
    data = Data("rows", np.arange(2000)[:, None], y.astype(int))
    few, again = thinned(data, 50), thinned(data, 50)
    np.testing.assert_array_equal(few.X, again.X)
    assert few.y.tolist().count(1) == 1500 // 50
    np.testing.assert_array_equal(few.X[few.y == 0], data.X[~y])
    assert set(few.X[few.y == 1, 0]) < set(data.X[y, 0])
    assert (np.diff(few.X[:, 0]) > 0).all()


def test_fewer_rings_are_the_first_of_more():
    _, X, y = rings(BLOCK + 1, 0)
    _, few_X, few_y = rings(500, 0)
    np.testing.assert_array_equal(few_X, X[:500])
    np.testing.assert_array_equal(few_y, y[:500])
    assert not np.array_equal(rings(500, 1).X, few_X)
    assert (y == 0).sum() / y.sum() == pytest.approx(RARITY, rel=0.15)
    assert np.linalg.norm(X[y == 1], axis=1).mean() < 0.6 < np.linalg.norm(X[y == 0], axis=1).mean()


def test_a_store_holds_the_rows_that_are_loaded(tmp_path):
    folder = tmp_path / "rings"
    task = load_task(RINGS, 600, True)
    write_task(task, folder)
    for path, data in zip(stores_in(folder), task, strict=True):
        np.testing.assert_array_equal(open_samples(str(path)).block(0, 600), data.X)
        np.testing.assert_array_equal(open_class_labels(str(path)), data.y)


# Rows and figures of a method


@pytest.mark.parametrize("method", [UNDER, WEIGHTED])
def test_an_under_sample_has_all_rare_rows_and_its_size(method):
    y = (np.arange(1000) % 20 == 0).astype(int)
    rows = some_rows(Fit(method, 0, rows=130), y)
    assert rows.size == np.unique(rows).size == 130
    assert y[rows].sum() == 50
    assert not np.array_equal(rows, some_rows(Fit(method, 1, rows=130), y))


@pytest.mark.parametrize("rare_weight", [None, 4.0])
def test_weights_of_an_under_sample_are_those_of_all_rows(rare_weight):
    y = (np.arange(1000) % 20 == 0).astype(int)
    few, whole = Fit(WEIGHTED, 0, rare_weight=rare_weight, rows=130), Fit(SVC, 0, rare_weight=rare_weight)
    weights = [row_weights(fit, y, some_rows(fit, y)) for fit in (few, whole)]
    for side in (0, 1):
        sums = [w[y[some_rows(fit, y)] == side].sum() for w, fit in zip(weights, (few, whole), strict=True)]
        assert sums[0] == pytest.approx(sums[1])
    X = np.random.default_rng(0).normal(size=(1000, 2)) + y[:, None]
    weight = "balanced" if rare_weight is None else {1: rare_weight}
    assert machine(whole).class_weight == weight
    balanced = Machine(gamma=1.0, class_weight=weight).fit(X, y)
    weighted = Machine(gamma=1.0).fit(X, y, sample_weight=weights[1])
    np.testing.assert_allclose(balanced.decision_function(X), weighted.decision_function(X), atol=1e-2)


def test_other_methods_take_all_rows_or_a_sample():
    y = np.zeros(20_000, int)
    np.testing.assert_array_equal(some_rows(Fit(SVC, 0, rows=5), y), np.arange(y.size))
    assert np.unique(some_rows(Fit(SAMPLE, 0, rows=5), y)).size == 10_000


@pytest.mark.parametrize("clustered", ["negatives", "both"])
def test_rows_trained_on_bound_the_support_vectors(clustered):
    X, y = load_task(RINGS, 4000, False).train[1:]
    model = SupportClusterMachine(n_clusters=30, clustered=clustered, max_rounds=2, random_state=0)
    rows = trained_rows(model.fit(X, y))
    assert model.report_["support_vectors"] <= rows <= 30 + 30 + (30 if clustered == "both" else y.sum())


@pytest.mark.parametrize("method", [SCM, SVC, UNDER, WEIGHTED])
def test_a_point_of_the_grid_is_what_the_machine_is_trained_with(method):
    X, y = load_task(RINGS, 3000, False).train[1:]
    model, found = train(Fit(method, 0, C=0.5, rare_weight=5.0, gamma=0.7, rows=200), X, y)
    assert (model.C, model.gamma) == (0.5, 0.7)
    assert model.class_weight == ({1: 5.0} if method in (SCM, SVC) else None)
    assert (
        found["support_vectors"]
        <= found["rows_trained_on"]
        == (y.size if method == SVC else trained_rows(model) if method == SCM else 200)
    )


def test_measures_of_the_classes_themselves_are_full():
    y = np.array([0, 1, 0, 1, 0])
    assert set(measures(y, 2.0 * y - 1).values()) == {1.0}
    assert measures(y, 1 - 2.0 * y)["roc_auc"] == 0


def test_where_each_row_represents_itself_a_space_is_that_of_all_rows():
    train_part, test = load_task(RINGS, 500, False)
    common = np.flatnonzero(train_part.y == 0)
    chosen, weights = scm.representatives("random rows", train_part.X[common], common.size, 1.0, 0)
    found = scm.machine_on(Task(train_part, test), common[chosen], weights, gamma=1.0)
    rare = np.count_nonzero(train_part.y)
    whole = Machine(gamma=1.0, class_weight={1: common.size / rare}).fit(train_part.X, train_part.y)
    expected = measures(test.y, whole.decision_function(test.X))
    assert found["roc_auc"] == pytest.approx(expected["roc_auc"], abs=0.01)


@pytest.mark.parametrize("name", scm.CHOICES)
def test_representatives_stand_for_all_rows(name):
    X = rings(800, 0).X
    chosen, weights = scm.representatives(name, X, 20, 1.0, 0)
    assert np.unique(chosen).size == chosen.size == weights.size == 20
    assert weights.sum() == pytest.approx(800)


# The study


def test_a_method_is_a_process_whose_memory_is_told(quick, monkeypatch):
    monkeypatch.setattr(scm, "METHODS", {RINGS: (SVC, WEIGHTED)})
    monkeypatch.setattr(scm, "MOST_SVC_ROWS", 100)
    options = replace(quick, parts=("rings",))
    with Journal("scm", options, "a") as journal:
        table = run_study(scm, options, journal).tables["scm-rings"].set_index("method")
        monkeypatch.setattr("benchmarks.protocol.run_and_watch", None)  # nothing is fitted a second time
        again = run_study(scm, options, journal).tables["scm-rings"].set_index("method")
    pd.testing.assert_frame_equal(table, again)
    assert table.index.tolist() == [SCM, WEIGHTED]  # the SVC is not for so many rows
    assert (table["peak_mib"] > 50).all()
    assert table["rows_trained_on"].nunique() == 1
    assert (table["roc_auc"] > 0.8).all()
    assert {path.suffix for path in quick.out.iterdir()} <= {".jsonl", ".lock", ".parquet"}, (
        "a store was left behind"
    )


def test_other_methods_take_the_parameters_and_the_gamma_of_scm(tmp_path):
    frame = pd.DataFrame(
        {
            "status": ["ok", "ok", "ok", "failed"],
            "parameters": ["{}", json.dumps(scm.CHOSEN), "{}", "{}"],
            "protocol": [LABEL_FREE, PAPER, LABEL_FREE, LABEL_FREE],
            "seed": [0, 0, 1, 2],
            "found_gamma": [0.5, 0.01, 0.25, 1.0],
            "rows_trained_on": [30.0, 40.0, 50.0, 60.0],
            "n": 100,
        }
    )
    runs = [Run(**row) for row in scm.others(scm.RARE, frame, Options(tmp_path)).to_dict("records")]
    assert len({run.identity for run in runs}) == len(runs)
    under = {(run.protocol, run.seed): run for run in runs if run.method == UNDER}
    settings = [under[key].settings for key in ((LABEL_FREE, 0), (PAPER, 0), (LABEL_FREE, 1))]
    assert [(one["gamma"], one["rows trained on"]) for one in settings] == [(0.5, 30), (0.01, 40), (0.25, 50)]
    assert under[PAPER, 0].parameters == scm.CHOSEN
    assert [run.seed for run in runs if run.method == SVC] == [0, 0]  # it draws nothing


def test_goals_are_shares_of_the_machine_of_all_rows():
    found = {SCM: (0.64, 2.0), SVC: (0.64, 10.0), UNDER: (0.6, 1.0), WEIGHTED: (0.7, 1.0)}
    rows = [
        {"protocol": protocol, "method": name, "average_precision": precision, "seconds": seconds}
        for protocol in (LABEL_FREE, PAPER)
        for name, (precision, seconds) in found.items()
    ]
    goals = scm.goals_of(pd.DataFrame(rows))
    assert [goal.figure for goal in goals] == pytest.approx(2 * [100.0, 20.0, 0.64])
    assert [goal.reached for goal in goals] == 2 * [True, True, False]
    assert goals[-1].bound == 0.7


def test_the_grid_is_told_from_the_best_of_the_machine_of_all_rows(quick, monkeypatch):
    rings = load_task(RINGS, 600, True)
    monkeypatch.setattr(scm, "POINTS", ({"C": 0.1}, {"C": 1.0, "rare_weight": 10.0}))
    monkeypatch.setattr(scm, "load_task", lambda name, rows, quick: rings)
    options = replace(quick, parts=("grid",))
    with Journal("scm", options, "a") as journal:
        table = run_study(scm, options, journal).tables["scm-grid"]
    assert len(table) == len(scm.GAMMAS) * 2
    assert table[f"{SVC} average_precision"].is_monotonic_decreasing
    assert set(table["rare_weight"]) == {"balanced", 10.0}
