"""The study of rare classes: the rows each method is given, their weights, and the goals."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC as Machine

from benchmarks.protocol import LABEL_FREE, PAPER
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
)
from benchmarks.studies.scm import RINGS, Task, load_task, rings

pytestmark = pytest.mark.slow
RARE_ROWS = (np.arange(1000) % 20 == 0).astype(int)


def test_an_under_sample_has_all_rare_rows_and_its_size_and_other_methods_all_rows_or_a_sample():
    for method in (UNDER, WEIGHTED):
        rows = some_rows(Fit(method, 0, rows=130), RARE_ROWS)
        assert rows.size == np.unique(rows).size == 130
        assert RARE_ROWS[rows].sum() == 50
    np.testing.assert_array_equal(
        some_rows(Fit(SVC, 0, rows=5), RARE_ROWS), np.arange(1000)
    )
    assert np.unique(some_rows(Fit(SAMPLE, 0), np.zeros(20_000, int))).size == 10_000


@pytest.mark.parametrize("rare_weight", [None, 4.0])
def test_weights_of_an_under_sample_are_those_of_all_rows(rare_weight):
    y = RARE_ROWS
    X = np.random.default_rng(0).normal(size=(1000, 2)) + RARE_ROWS[:, None]
    few = Fit(WEIGHTED, 0, rare_weight=rare_weight, rows=130)
    whole = Fit(SVC, 0, rare_weight=rare_weight)
    rows = some_rows(few, y)
    weights = row_weights(whole, y, np.arange(1000))
    for side in (0, 1):
        few_sum = row_weights(few, y, rows)[y[rows] == side].sum()
        assert few_sum == pytest.approx(weights[y == side].sum())
    balanced = Machine(gamma=1.0, class_weight=machine(whole).class_weight).fit(X, y)
    weighted = Machine(gamma=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        balanced.decision_function(X), weighted.decision_function(X), atol=1e-2
    )


def test_where_each_row_represents_itself_a_space_is_that_of_all_rows():
    train_part, test = load_task(RINGS, 500, False)
    common = np.flatnonzero(train_part.y == 0)
    chosen, weights = scm.representatives(
        "random rows", train_part.X[common], common.size, 1.0, 0
    )
    judged = scm.machine_on(Task(train_part, test), common[chosen], weights, gamma=1.0)
    rare = np.count_nonzero(train_part.y)
    whole = Machine(gamma=1.0, class_weight={1: common.size / rare}).fit(
        train_part.X, train_part.y
    )
    expected = measures(test.y, whole.decision_function(test.X))
    assert judged["roc_auc"] == pytest.approx(expected["roc_auc"], abs=0.01)
    for name in scm.CHOICES:
        chosen, weights = scm.representatives(name, rings(800, 0).X, 20, 1.0, 0)
        assert np.unique(chosen).size == weights.size == 20
        assert weights.sum() == pytest.approx(800)


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
    runs = [
        Run(**row)
        for row in scm.others(scm.RARE, frame, Options(tmp_path)).to_dict("records")
    ]
    under = {(run.protocol, run.seed): run for run in runs if run.method == UNDER}
    settings = [
        under[key].settings for key in ((LABEL_FREE, 0), (PAPER, 0), (LABEL_FREE, 1))
    ]
    assert [(one["gamma"], one["rows trained on"]) for one in settings] == [
        (0.5, 30),
        (0.01, 40),
        (0.25, 50),
    ]
    assert under[PAPER, 0].parameters == scm.CHOSEN
    assert [run.seed for run in runs if run.method == SVC] == [0, 0]  # it draws nothing


def test_goals_are_shares_of_the_machine_of_all_rows():
    rows = [
        (SCM, 0.64, 2.0),
        (SVC, 0.64, 10.0),
        (UNDER, 0.6, 1.0),
        (WEIGHTED, 0.7, 1.0),
    ]
    table = pd.DataFrame(
        rows, columns=["method", "average_precision", "seconds"]
    ).assign(protocol=PAPER)
    goals = scm.goals_of(table)
    assert [goal.figure for goal in goals] == pytest.approx([100.0, 20.0, 0.64])
    assert [goal.reached for goal in goals] == [True, True, False]
    assert goals[-1].bound == 0.7
