"""Options of tables: each verb takes those of `mmcnb fit`, and a model passes its own on to other files."""

import json

import numpy as np
import pandas as pd
import pytest

from mmcnb.cli import main

ROWS = 120


def sales(first=0):
    """Three groups of shops by sales, with numbers above 1,000, and a number beside them."""
    kind = np.arange(first, first + ROWS) % 3
    random = np.random.default_rng(first)
    return pd.DataFrame(
        {
            "sales": 1500 + 4000 * kind + random.integers(0, 400, ROWS),
            "staff": random.integers(1, 60, ROWS),
        }
    )


def as_written(frame, thousands, decimal):
    """The numbers as people write them in other countries."""
    texts = [f"{number:,.1f}" for number in frame["sales"]]
    swap = str.maketrans(",.", thousands + decimal)
    return frame.assign(sales=[text.translate(swap) for text in texts])


@pytest.fixture
def shops(tmp_path, monkeypatch):
    """The working folder: a German table with its model and labels, and tables of later months."""
    monkeypatch.chdir(tmp_path)
    as_written(sales(), ".", ",").to_csv("may.csv", sep=";", index=False)
    as_written(sales(ROWS), ".", ",").to_csv("june.csv", sep=";", index=False)
    as_written(sales(ROWS), ",", ".").to_csv("american.csv", index=False)
    sales(ROWS).to_parquet("june.parquet", index=False)
    fit = "fit may.csv --n-clusters 3 --model m --labels may.labels.csv"
    options = ["--thousands", ".", "--decimal", ",", "--delimiter", ";"]
    assert main([*fit.split(), *options]) == 0
    return tmp_path


def clusters(path):
    return pd.read_csv(path)["cluster"].tolist()


@pytest.mark.filterwarnings("ignore:.*no checksums")
@pytest.mark.parametrize("rows", ["june.csv", "june.parquet"])
def test_options_of_the_fit_are_used_as_far_as_they_apply(rows, shops, printed):
    expected = clusters("may.labels.csv")  # the groups come in turn
    printed(f"predict m {rows} --labels l.csv")
    assert clusters("l.csv") == expected
    printed(f"update m {rows} --out m2 --labels l2.csv")
    assert clusters("l2.csv") == expected
    assert "sales" in printed(f"explain m {rows}")
    assert "sales" in printed(f"explain m {rows} --labels l.csv")
    printed(f"report m {rows} --out page.html")
    assert "cluster sizes" in printed(f"score {rows} l.csv --model m")
    fit = f"fit {rows} --like m --n-clusters 3 --labels l3.csv"
    if rows == "june.csv":
        fit += " --thousands . --decimal , --delimiter ;"
    printed(fit)
    assert clusters("l3.csv") == expected


@pytest.mark.parametrize(
    "command",
    [
        "predict m american.csv --labels l.csv",
        "update m american.csv --labels l.csv --out m2",
        "explain m american.csv",
        "report m american.csv --out page.html",
        "score american.csv may.labels.csv --model m",
        "fit american.csv --like m --n-clusters 3 --labels l.csv",
    ],
)
def test_options_that_are_given_take_the_place_of_those_of_the_fit(
    command, shops, printed
):
    printed(f"{command} --thousands , --decimal .")
    if "l.csv" in command:
        assert clusters("l.csv") == clusters("may.labels.csv")


@pytest.mark.parametrize(
    "command",
    [
        "info may.csv",
        "plan may.csv",
        "score may.csv may.labels.csv",
        "fit may.csv --labels l.csv --overwrite",
    ],
)
def test_verbs_without_a_model_take_the_options_of_a_fit(command, shops, report_of):
    options = "--thousands . --decimal , --delimiter ;"
    report = report_of(f"{command} {options}")
    if command.startswith("info"):
        assert report["faults"] is None
        becomes = {column["name"]: column["becomes"] for column in report["columns"]}
        assert becomes["sales"].startswith("number")
    elif command.startswith("score"):
        assert report["n_features"] == 2
    assert report_of(f"{command} {options} --drop sales")


def test_what_the_fit_has_decided_is_not_decided_again(shops, refusal_of):
    for option in ("--columns staff", "--drop staff", "--missing drop"):
        name = option.split()[0]
        assert f"{name} was decided when the model was fitted" in refusal_of(
            f"predict m june.csv --labels l.csv {option}"
        )


def test_options_of_tables_are_refused_without_a_table(shops, refusal_of, printed):
    printed("convert june.parquet june.zarr")
    for command in (
        "info june.zarr",
        "plan june.zarr",
        "score june.zarr may.labels.csv",
        "predict m june.zarr --labels l.csv",
    ):
        assert "--thousands applies to CSV" in refusal_of(f"{command} --thousands ,")
    assert "but no file is given" in refusal_of(
        "plan --rows 10 --features 2 --thousands ,"
    )
    assert "delimiter applies to CSV files only" in refusal_of(
        "predict m june.parquet --labels l.csv --delimiter |"
    )


@pytest.mark.parametrize("verb", ["convert", "info", "plan"])
@pytest.mark.parametrize(
    ("header", "names"),
    [("2", ["sales", "staff"]), ("auto", ["sales", "staff"]), ("no", ["0", "1"])],
)
def test_the_header_is_a_line_by_number(header, names, verb, tmp_path, printed):
    path = tmp_path / "may.csv"
    titles = {"2": "1,2\n3,4\n", "auto": "", "no": ""}[header]
    rows = "".join(f"{k % 7},{k % 5 + 0.5}\n" for k in range(40))
    names_line = "" if header == "no" else "sales,staff\n"
    path.write_text(titles + names_line + rows)
    more = f" {tmp_path / 'may.zarr'}" if verb == "convert" else ""
    out = printed(f"{verb} {path}{more} --header {header} --json")
    if verb == "convert":
        columns = json.loads(out)["columns"]
        assert [column["name"] for column in columns] == names


def test_a_header_that_is_unknown_is_refused(tmp_path, capsys):
    (tmp_path / "may.csv").write_text("a,b\n1,2\n3,4\n")
    assert main(["info", str(tmp_path / "may.csv"), "--header", "maybe"]) == 2
    said = capsys.readouterr().err
    assert "header='maybe' is unknown: pass 'yes', 'no', or the number" in said
