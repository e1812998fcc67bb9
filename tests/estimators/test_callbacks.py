"""Callbacks of scikit-learn are told each row of the history, whatever the method."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

import mmcnb
from tests.estimators.every import NAMES, make_any

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on"
)
X = load_iris().data


class Log:
    """What a callback hears."""

    def __init__(self):
        self.heard = []
        self.rows = []
        self.labels = None

    def setup(self, estimator, context):
        self.heard.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(
        self, estimator, context, *, X=None, metadata=None, fitted_estimator=None
    ):
        self.heard.append(f"end {context.task_name}")
        self.rows += [] if metadata is None else [metadata]
        if fitted_estimator is not None:
            self.labels = fitted_estimator.predict(X)

    def teardown(self, estimator, context):
        self.heard.append("teardown")


def fit(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


@pytest.mark.parametrize("name", NAMES)
def test_a_callback_hears_each_row_of_the_history_and_sees_the_fitted_model(name):
    log = Log()
    model = fit(make_any(name, n_clusters=3, n_init=1).set_callbacks(log))
    assert len(log.rows) == len(model.history_) > 0
    assert [row["stage"] for row in log.rows] == model.history_["stage"].tolist()
    assert [row["seconds"] for row in log.rows] == model.history_["seconds"].tolist()
    tasks = [f"{when} {row['stage']}" for row in log.rows for when in ("begin", "end")]
    assert log.heard == ["setup", "begin fit", *tasks, "end fit", "teardown"]
    np.testing.assert_array_equal(log.labels, model.labels_)


def test_callbacks_change_no_bit_go_with_a_clone_and_end_with_a_failure():
    model = make_any("MaximumMarginClustering", n_clusters=3)
    expected = fit(model).labels_
    log = Log()
    again = fit(clone(model.set_callbacks(log)))
    np.testing.assert_array_equal(again.labels_, expected)
    assert log.heard.count("begin fit") == 1
    fit(again.set_callbacks())
    assert log.heard.count("begin fit") == 1
    failing = Log()
    with pytest.raises(ValueError, match="all rows are equal"):
        mmcnb.MaximumMarginClustering(2).set_callbacks(failing).fit(np.ones((50, 2)))
    assert failing.heard == ["setup", "begin fit", "teardown"]


def test_a_progress_bar_and_a_grid_search_of_scikit_learn_work(capsys):
    pytest.importorskip("rich", reason="scikit-learn draws its bar by rich")
    model = make_any("MaximumMarginClustering", n_clusters=3)
    fit(model.set_callbacks(callback.ProgressBar()))
    assert "MaximumMarginClustering - fit" in capsys.readouterr().out
    log = Log()
    search = GridSearchCV(
        model.set_callbacks(log), {"kernel": ["graph", "rbf"]}, cv=2
    ).fit(X)
    assert log.heard.count("begin fit") == 5
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
