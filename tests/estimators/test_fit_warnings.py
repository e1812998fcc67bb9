"""The warnings of a fit: once, the most important first, at most five aloud, and all in the report."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb.cli import main
from mmcnb.errors import ClusterWarning

pytestmark = pytest.mark.filterwarnings("default::UserWarning")


def write_messy(path, n=300):
    """Write a table with cells, rows and columns that deserve a warning each."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 70_001,
            "joined": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 700, n), "D"),
            "weight": [f"{value:.1f} kg" for value in rng.normal(70, 9, n)],
            "answer": rng.choice(["never", "rarely", "sometimes", "often"], n),
            "height": rng.normal(170, 9, n).round(1),
            "income": rng.normal(3000, 500, n).round(),
            "age": rng.normal(40, 9, n).round(1).astype(object),
        }
    )
    table.loc[rng.random(n) < 0.1, "height"] = -999
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    table.loc[7, "age"] = "unknown?"
    lines = table.to_csv(index=False).splitlines()
    lines[50] = lines[50].rpartition(",")[0]
    path.write_text("\n".join(["Customers of 2024", *lines, "Source: sales"]) + "\n")


def issued(call):
    """The warnings of a call, as pairs of category and text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(one.category, str(one.message)) for one in caught]


# What the warnings about the messy table begin with or contain, in their order.
IN_ORDER = (
    "fewer cells than there are columns",
    "line 303 is not a row",
    "2 columns are left out",
    "cells that do not match the kind",
    "numbers that usually mark missing values",
    "the fit did not converge",
    "column 'income' has more than",
    "line 1 was skipped",
    "without their units",
    "numbers in their order",
    "gaps were filled",
)


@pytest.fixture
def messy(tmp_path, monkeypatch):
    """The name of the messy table, in the working folder."""
    monkeypatch.chdir(tmp_path)
    write_messy(tmp_path / "messy.csv")
    return "messy.csv"


def clusterer(n_clusters=3):
    """An estimator that does not converge."""
    return mmcnb.KernelKMeans(n_clusters, max_iter=1, n_init=1, random_state=0)


def assert_in_order(sentences, parts=IN_ORDER):
    """There is one sentence for each part, in the same order."""
    assert len(sentences) == len(parts)
    for sentence, part in zip(sentences, parts, strict=True):
        assert part in sentence


def test_a_fit_issues_the_five_most_important_and_reports_all(messy):
    model = clusterer()
    told = [text for _, text in issued(lambda: model.fit(messy))]
    assert_in_order(model.report_["warnings"])
    more = f"{len(IN_ORDER) - 4} more warnings are in report_['warnings']."
    assert told == [*model.report_["warnings"][:4], more]
    assert {type(sentence) for sentence in model.report_["warnings"]} == {str}


def test_five_warnings_are_all_issued_with_their_categories():
    X = np.random.default_rng(0).standard_normal((600, 4)) * [1.0, 1.0, 1.0, 90.0]
    model = clusterer()
    told = issued(lambda: model.fit(X))
    assert [text for _, text in told] == model.report_["warnings"]
    assert [category for category, _ in told] == [
        ConvergenceWarning,
        mmcnb.ClusterWarning,
    ]


def test_an_error_comes_after_the_warnings_so_far(messy):
    told = []

    def fit():
        with pytest.raises(mmcnb.InputError, match="n_clusters=4000"):
            clusterer(4000).fit(messy)

    told = [text for _, text in issued(fit)]
    of_rows = [part for part in IN_ORDER if "converge" not in part]
    assert_in_order(told, [part for part in of_rows if "more than" not in part])


def test_a_warning_made_an_error_does_not_replace_the_error_of_a_fit(messy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mmcnb.InputError, match="n_clusters=4000"):
            clusterer(4000).fit(messy)


def test_the_command_prints_them_once_and_info_shows_all(messy, capsys):
    words = f"fit {messy} --model m.model --method kernel-kmeans --n-clusters 3"
    settings = "--set max_iter=1 --set n_init=1 --random-state 0"
    assert main([*words.split(), *settings.split()]) == 0
    streams = capsys.readouterr()
    start = "mmcnb: warning: "
    told = [line for line in streams.err.splitlines() if line.startswith(start)]
    assert_in_order(told, [*IN_ORDER[:4], "7 more warnings are shown by `mmcnb info m"])
    assert "warning" not in streams.out
    assert main(["info", "m.model"]) == 0
    start = "warning: "
    shown = capsys.readouterr().out.splitlines()
    assert_in_order([line for line in shown if line.startswith(start)])
    assert main(["info", "m.model", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["warnings"] == mmcnb.load("m.model").report_["warnings"]


def test_a_command_that_fails_prints_its_warnings_before_the_error(messy, capsys):
    words = f"fit {messy} --model m.model --method kernel-kmeans --n-clusters 4000"
    assert main(words.split()) == 2
    *told, error = capsys.readouterr().err.splitlines()
    assert "n_clusters=4000" in error
    assert all(line.startswith("mmcnb: warning: messy.csv: ") for line in told)
    assert len(told) == 9


def test_options_are_checked_before_rows_are_read(messy, capsys):
    assert main(f"fit {messy} --model m.model --n-clusters five".split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "n_clusters='five' is not a number; pass a number such as 5" in error


def test_without_a_model_the_command_says_where_the_report_is(messy, capsys):
    words = f"fit {messy} --labels l.csv --method kernel-kmeans --n-clusters 3"
    assert main([*words.split(), "--set", "max_iter=1", "--json"]) == 0
    streams = capsys.readouterr()
    assert "more warnings are printed with --json, under warnings" in streams.err
    assert len(json.loads(streams.out)["warnings"]) == len(IN_ORDER)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_warnings_point_to_the_line_of_the_user_in_any_thread(n_jobs, tmp_path):
    rows = np.random.default_rng(0).normal(size=(6000, 2))
    rows[:3000] += 9
    rows[::50, 1] = np.nan
    path = tmp_path / "rows.parquet"
    pd.DataFrame(rows, columns=["a", "b"]).to_parquet(path, row_group_size=500)
    model = mmcnb.MaximumMarginClustering(2, random_state=0, n_jobs=n_jobs)
    with pytest.warns(ClusterWarning, match="gaps were filled"):
        model.fit(path)
    for call in (
        lambda: model.predict(path),
        lambda: model.explain(path),
        lambda: model.write_report(path, tmp_path / "page.html"),
    ):
        with pytest.warns(ClusterWarning, match="gaps were filled") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
