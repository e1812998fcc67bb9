"""What a notebook shows of a report and an estimator."""

import json

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.engine.fit_report import Report

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


def test_a_report_of_many_columns_is_short_and_still_has_them_all():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 256)) + 3 * (np.arange(120) % 2)[:, None]
    table = pd.DataFrame(X, columns=[f"column {k}" for k in range(256)])
    table.iloc[::10, 3] = np.nan
    table["id"] = [f"row {k}" for k in range(120)]
    report = mmcnb.MaximumMarginClustering(random_state=0).fit(table).report_
    lines = repr(report).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) < 300
    assert "left out are id (" in repr(report)
    text_of = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert text_of["left_out"] == "no candidate"
    assert text_of["gaps"] == "column 3 10.0%"
    assert len(report["columns"]) == 257
    assert report["columns"][3]["name"] == "column 3"


def test_trust_is_a_dict_that_prints_as_words(tmp_path):
    X = (
        np.random.default_rng(2).normal(size=(150, 2))
        + 9 * (np.arange(150) % 3)[:, None]
    )
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
    model.save(tmp_path / "model")
    for trust in (
        model.report_["trust"],
        mmcnb.load(tmp_path / "model").report_["trust"],
    ):
        assert repr(trust) == str(trust) == f"{trust['level']}: {trust['reason']}"
        assert isinstance(trust["agreement"], float)


def test_a_plan_is_shown_as_the_text_that_it_prints():
    X = np.random.default_rng(3).normal(size=(50, 2))
    plan = mmcnb.CPMMC().plan(X)
    assert repr(plan) == str(plan)
    assert repr(plan).startswith("rows")


def test_a_notebook_shows_clusters_trust_and_sentences_of_a_fitted_estimator():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3)) + 9 * (np.arange(200) % 2)[:, None]
    table = pd.DataFrame(X, columns=[MARKUP, "b", "c"])
    table["note"] = [f"note {k}" for k in range(200)]
    model = mmcnb.MaximumMarginClustering(random_state=0)
    boxes = model._repr_html_()
    assert "<dt>" not in boxes
    shown = model.fit(table)._repr_html_()
    assert "2 clusters of 200 rows; sizes 100, 100" in shown
    assert f"<dt>Trust</dt><dd>{model.report_['trust']['level']}: " in shown
    assert "note (" in shown
    assert "Cluster 0 (50 %)" not in shown
    model.explain(table)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "<li>Cluster 0 (50 %): " in shown
        assert MARKUP not in shown
    assert "Cluster 0" not in model.fit(table)._repr_html_()


def test_a_model_of_equal_rows_is_shown_without_the_tree_that_it_does_not_have():
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(np.ones((30, 2)))
    assert "MaximumMarginClustering" in model._repr_html_()
    assert not hasattr(model, "linkage_")


def test_an_estimator_escapes_its_parameters():
    assert MARKUP not in mmcnb.CPMMC(checkpoint=MARKUP)._repr_html_()
