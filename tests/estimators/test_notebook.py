"""What a notebook shows of a report and an estimator."""

import json

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.engine.session import Report

MARKUP = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.standard_normal((200, 3)) * [100.0, 1.0, 1.0], columns=[MARKUP, "b", "c"]
    )
    model = mmcnb.UnsupervisedRLS(2, n_init=1, random_state=0)
    with pytest.warns(mmcnb.ClusterWarning, match="script"):
        return model.fit(X), X


def test_a_report_is_a_dict_that_prints_a_line_an_entry(fitted, tmp_path):
    model, _ = fitted
    report = model.report_
    assert isinstance(report, dict)
    assert json.loads(json.dumps(report))["sizes"] == report["sizes"]
    assert [line.split()[0] for line in repr(report).splitlines()] == list(report)
    model.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model").report_
    assert loaded == report
    assert isinstance(loaded, Report)


def test_a_model_of_equal_rows_is_shown_without_the_tree_that_it_does_not_have():
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(np.ones((30, 2)))
    assert "MaximumMarginClustering" in model._repr_html_()
    assert not hasattr(model, "linkage_")


def test_an_estimator_escapes_its_parameters():
    assert MARKUP not in mmcnb.CPMMC(checkpoint=MARKUP)._repr_html_()
