"""A page without rows: nothing that a cell, the name of a row or a path says is in its bytes."""

import re

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main

ROWS = 150
# Parts of words, dates and numbers that no page has by chance.
SECRET = re.compile(rb"sEcReT|1987|19:47|7531\d\d")


def secrets(n=ROWS):
    """Three groups in numbers, texts, ordered texts, dates and times that must not be shown."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    frame = pd.DataFrame(
        {
            "size": (50 + 20 * group + rng.normal(size=n)).round(3).astype(str),
            "plan": np.array(["sEcReT one", "sEcReT two", "sEcReT three"])[group],
            "mood": np.array(["sEcReT low", "sEcReT mid", "sEcReT high"])[group],
            "since": pd.Timestamp("1987-01-01")
            + pd.to_timedelta(100 * group + rng.integers(0, 20, n), unit="D"),
            "at": [f"{hour:02d}:47" for hour in np.array([7, 19, 12])[group]],
            "note": [f"sEcReT note {row}" for row in range(n)],
        }
    )
    frame.loc[::15, "size"] = "sEcReT mark"
    frame.index = pd.Index([f"sEcReT row {k}" for k in range(n)], name="customer")
    return frame


OPTIONS = {
    "na_values": ["sEcReT mark"],
    "orders": {"mood": ["sEcReT low", "sEcReT mid", "sEcReT high"]},
    "keep": ["since", "at"],
}


def assert_hidden(path):
    page = path.read_bytes()
    assert SECRET.findall(page) == []
    assert b"Typical rows" not in page
    assert b"<title>row" not in page
    return page.decode()


@pytest.fixture(scope="module")
def fitted():
    X = secrets()
    model = mmcnb.MaximumMarginClustering(3, random_state=0)
    return X, model.fit(mmcnb.read_table(X, **OPTIONS))


def test_nothing_of_a_cell_a_row_or_a_path_is_on_the_page(fitted, tmp_path):
    X, model = fitted
    model.write_report(X, tmp_path / "shown.html")
    shown = (tmp_path / "shown.html").read_bytes()
    assert {b"sEcReT", b"1987"} <= {*SECRET.findall(shown)}
    model.write_report(X, tmp_path / "page.html", hide_rows=True)
    text = assert_hidden(tmp_path / "page.html")
    assert "plan mostly value 1 (100 %" in text
    assert "size low (median" in text
    assert "na_values=na_values" in text
    assert "mood" in text
    names = np.array(["sEcReT a", "sEcReT b", "sEcReT c"])[model.labels_]
    model.write_report(X, tmp_path / "page.html", names, hide_rows=True)
    assert "Cluster 2 (33 %)" in assert_hidden(tmp_path / "page.html")


def test_the_path_and_the_columns_beside_are_hidden_too(fitted, tmp_path, monkeypatch):
    X, _ = fitted
    folder = tmp_path / "sEcReT folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    X.to_csv("sEcReT.csv")
    embedding = pd.DataFrame(np.eye(3)[np.arange(ROWS) % 3] * 9, columns=[*"abc"])
    embedding += np.random.default_rng(0).normal(size=(ROWS, 3))
    embedding.to_csv("sEcReT rows.csv", index=False)
    fit = ["fit", "sEcReT rows.csv", "--model", "m", "--n-clusters", "3"]
    assert main([*fit, "--random-state", "0"]) == 0
    more = ["--meta", "sEcReT.csv", "--hide-rows", "--out", "page.html"]
    assert main(["report", "m", "sEcReT rows.csv", *more]) == 0
    assert "plan mostly value 1" in assert_hidden(folder / "page.html")


def test_columns_of_a_store_that_are_named_by_texts_are_numbered(tmp_path):
    X = secrets()[["plan", "mood"]]
    X.assign(size=np.arange(ROWS) % 3 * 9.0).to_csv(tmp_path / "table.csv", index=False)
    mmcnb.stores.convert(tmp_path / "table.csv", tmp_path / "rows.zarr")
    rows = tmp_path / "rows.zarr"
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(rows)
    model.write_report(rows, tmp_path / "page.html", hide_rows=True)
    assert "plan, value 1" in assert_hidden(tmp_path / "page.html")


def test_figures_of_few_rows_are_left_out(tmp_path):
    """The median of a cluster of one row is a cell."""
    X = pd.DataFrame({"age": np.r_[np.arange(40.0), 753124.0]})
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
    labels = (np.arange(41) == 40).astype(int) + (np.arange(41) < 20) * 2
    model.write_report(X, tmp_path / "page.html", labels, hide_rows=True)
    text = assert_hidden(tmp_path / "page.html")
    assert "figures of fewer than 5 rows are not shown" in text
