"""The study of rare classes: its sets, the rows each method is given, and its goals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC as Machine

import mmcnb
from benchmarks import _scm_effects, scm
from benchmarks._common import Data, Options
from benchmarks._fit_scm import SAMPLE, SCM, SVC, UNDER, UNDER_BALANCED, measures, some_rows, trained_rows
from benchmarks._scm_data import BLOCK, RARITY, RINGS, Task, load_task, ring_blocks, thinned, write_task
from mmcnb.samples import open_class_labels, open_samples


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
    X, y = next(ring_blocks(BLOCK, 0))
    few_X, few_y = next(ring_blocks(500, 0))
    np.testing.assert_array_equal(few_X, X[:500])
    np.testing.assert_array_equal(few_y, y[:500])
    assert not np.array_equal(next(ring_blocks(500, 1))[0], few_X)
    assert (y == 0).sum() / y.sum() == pytest.approx(RARITY, rel=0.15)
    assert np.linalg.norm(X[y == 1], axis=1).mean() < 0.6 < np.linalg.norm(X[y == 0], axis=1).mean()


def test_a_store_holds_the_rows_that_are_loaded(quick, tmp_path):
    paths = write_task(RINGS, quick, tmp_path)
    task = load_task(RINGS, quick)
    for path, data in zip(paths, (task.train, task.test), strict=True):
        np.testing.assert_array_equal(open_samples(str(path)).block(0, 600), data.X)
        np.testing.assert_array_equal(open_class_labels(str(path)), data.y)


# Rows and figures of a method


@pytest.mark.parametrize("method", [UNDER, UNDER_BALANCED])
def test_an_under_sample_has_all_rare_rows_and_its_size(method):
    y = (np.arange(1000) % 20 == 0).astype(int)
    rows = some_rows(method, y, 0, 130)
    assert rows.size == np.unique(rows).size == 130
    assert y[rows].sum() == 50
    assert not np.array_equal(rows, some_rows(method, y, 1, 130))


def test_other_methods_take_all_rows_or_a_sample():
    y = np.zeros(20_000, int)
    np.testing.assert_array_equal(some_rows(SVC, y, 0, 5), np.arange(y.size))
    assert np.unique(some_rows(SAMPLE, y, 0, 5)).size == 10_000


@pytest.mark.parametrize("representatives", ["negatives", "both"])
def test_rows_trained_on_bound_the_support_vectors(representatives):
    X, y = load_task(RINGS, Options(None, rows=4000)).train[1:]
    model = mmcnb.SupportClusterMachine(
        n_clusters=30, representatives=representatives, max_rounds=2, random_state=0
    ).fit(X, y)
    rows = trained_rows(model)
    assert (
        model.report_["support_vectors"] <= rows <= 30 + 30 + (30 if representatives == "both" else y.sum())
    )


def test_measures_of_the_classes_themselves_are_full():
    y = np.array([0, 1, 0, 1, 0])
    assert set(measures(y, 2.0 * y - 1).values()) == {1.0}
    assert measures(y, 1 - 2.0 * y)["ROC AUC"] == 0


def test_where_each_row_represents_itself_a_space_is_that_of_all_rows():
    train, test = load_task(RINGS, Options(None, rows=500))[1:]
    common = np.flatnonzero(train.y == 0)
    chosen, weights = _scm_effects.drawn(train.X[common], common.size, 1.0, 0)
    found = _scm_effects.machine_on(Task(RINGS, train, test), common[chosen], weights, 1.0)
    whole = measures(test.y, Machine(gamma=1.0).fit(train.X, train.y).decision_function(test.X))
    assert found["ROC AUC"] == pytest.approx(whole["ROC AUC"], abs=0.01)


@pytest.mark.parametrize("space", list(_scm_effects.SPACES))
def test_representatives_stand_for_all_rows(space):
    X = next(ring_blocks(800, 0))[0]
    chosen, weights = _scm_effects.SPACES[space](X, 20, 1.0, 0)
    assert np.unique(chosen).size == chosen.size == weights.size == 20
    assert weights.sum() == pytest.approx(800)


# The study


def test_a_method_is_a_process_whose_memory_is_told(quick, monkeypatch):
    monkeypatch.setattr(scm, "METHODS", {RINGS: (SCM, SVC, UNDER)})
    monkeypatch.setattr(scm, "MOST_SVC_ROWS", 100)
    frames, goals = scm.compared("rings", RINGS, quick)
    table = frames["scm-rings"].set_index("method")
    assert not goals
    assert table.loc[SVC, scm.FIGURES].isna().all()
    assert "not run: over 100 rows" in set(frames["scm-rings-fits"]["end"])
    ran = table.loc[[SCM, UNDER]]
    assert (ran["peak MiB"] > 50).all()
    assert ran["rows trained on"].nunique() == 1
    assert (ran["ROC AUC"] > 0.8).all()
    assert not list(quick.out.iterdir()), "a store was left behind"


def test_goals_are_shares_of_the_machine_of_all_rows():
    rows = {SCM: (0.64, 2.0), SVC: (0.64, 10.0), UNDER: (0.6, 1.0), UNDER_BALANCED: (0.7, 1.0)}
    table = pd.DataFrame(
        [
            {"method": name, "average precision": precision, "seconds": seconds}
            for name, (precision, seconds) in rows.items()
        ]
    )
    goals = scm.goals_of(table)
    assert [goal.figure for goal in goals] == pytest.approx([100.0, 20.0, 0.64])
    assert [goal.reached for goal in goals] == [True, True, False]
    assert goals[-1].bound == 0.7
