"""``--table`` writes the whole table with its clusters, and ``-`` prints labels or the table."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mmcnb import CPMMC
from mmcnb.cli import main

NEW = ["cluster", "probability", "outlier_score"]


@pytest.fixture
def messy(folder):
    """The table of customers with codes, gaps and quotes."""
    frame = pd.read_csv("customers.csv")
    frame.insert(0, "code", [f"{number:04d}" for number in range(len(frame))])
    frame["note"] = 'said "no", twice'
    frame.loc[[2, 9], "age"] = np.nan
    frame.to_csv("messy.csv", index=False)
    return frame


FIT = "fit messy.csv --missing drop --columns age,spent --n-clusters 3 --random-state 0"


def test_fit_writes_the_table_with_its_clusters(messy, report_of):
    report = report_of(f"{FIT} --table out.csv --labels l.csv --model m")
    assert report["table"] == "out.csv"
    table = pd.read_csv("out.csv", dtype={"code": str})
    assert table.columns.tolist() == [*messy.columns, *NEW]
    pd.testing.assert_frame_equal(table[messy.columns], messy, check_dtype=False)
    labels = pd.read_csv("l.csv").set_index("row")["cluster"]
    assert labels.index.tolist() == messy.index.drop([2, 9]).tolist()
    pd.testing.assert_series_equal(
        table["cluster"].dropna(), labels, check_dtype=False, check_names=False
    )
    assert report["sizes"] == labels.value_counts(sort=False).sort_index().tolist()


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out/"])
def test_predict_and_update_write_the_same(target, messy, printed):
    printed(f"{FIT} --table fit.csv --model m")
    read = pd.read_csv if target == "out.csv" else pd.read_parquet
    expected = pd.read_csv("fit.csv", dtype={"code": str})
    if target == "out/":
        expected = expected.dropna(subset="cluster", ignore_index=True)
    for command in (
        f"predict m messy.csv --table {target}",
        f"update m messy.csv --table second-{target}",
    ):
        printed(command)
        table = read(command.split()[-1])
        table = table.astype({"code": int, "cluster": float})
        table = table.sort_values("code", ignore_index=True)
        pd.testing.assert_frame_equal(
            table[expected.columns],
            expected.astype({"code": int}),
            check_dtype=False,
            rtol=1e-6,
        )


@pytest.mark.parametrize("option", ["--labels", "--table"])
def test_a_dash_prints_csv_and_the_report_goes_to_standard_error(option, messy, capsys):
    capsys.readouterr()
    assert main(f"{FIT} {option} - --model m".split()) == 0
    out, err = capsys.readouterr()
    assert "cluster sizes" in err
    table = pd.read_csv(io.StringIO(out))
    assert "cluster" in table
    assert main(f"predict m messy.csv {option} - --json".split()) == 0
    out, err = capsys.readouterr()
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(out)), table)
    assert '"n_samples"' in err


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(messy, printed):
    printed(f"{FIT} --model m")
    command = f"{sys.executable} -m mmcnb predict m messy.csv --table - | head -1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("code,")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (
            "fit messy.csv",
            "nothing would be written; give --labels OUT.csv, or --model",
        ),
        ("predict customers.model messy.csv", "nothing would be written; give --lab"),
        (
            "fit messy.csv --table o.xls",
            "a table is not written as '.xls'; give a path",
        ),
        (
            "fit messy.csv --table - --labels -",
            "would both be printed; give a path for one of them",
        ),
        (
            "fit messy.csv --table messy.csv",
            "the output messy.csv would replace the input messy.csv",
        ),
        (
            "fit messy.csv --table o.csv --labels o.csv",
            "o.csv would replace the output o.csv",
        ),
        (
            "fit blobs.zarr --table o.csv",
            "is not a table, so the clusters cannot be added",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(command, sentence, messy, refusal_of):
    assert sentence in refusal_of(command)
    assert not [
        path for path in ("o.csv", "o.xls") if __import__("os").path.exists(path)
    ]


def test_a_table_that_cannot_be_written_is_refused_before_the_fit(
    messy, refusal_of, monkeypatch
):
    messy.assign(tags=[["a"]] * len(messy)).to_parquet("lists.parquet")
    fits = []
    monkeypatch.setattr(CPMMC, "fit_model", lambda *_, **__: fits.append("fit"))
    options = "--columns age,spent --method cpmmc --table o.csv"
    assert "o.csv: the column 'tags' has type" in refusal_of(
        f"fit lists.parquet {options}"
    )
    assert "is not a table" in refusal_of("fit blobs.zarr --method cpmmc --table o.csv")
    assert not fits


def test_a_table_that_is_there_is_replaced_if_asked_for(messy, printed, refusal_of):
    printed(f"{FIT} --table out.csv")
    assert "exists already" in refusal_of(f"{FIT} --table out.csv")
    printed(f"{FIT} --table out.csv --overwrite")


def test_other_verbs_match_these_labels_with_their_rows(messy, printed, report_of):
    printed(f"{FIT} --labels l.csv --table t.csv --model m")
    options = "--missing drop --columns age,spent"
    expected = report_of(f"score messy.csv l.csv {options}")
    assert expected["n_samples"] == len(messy) - 2
    pd.read_csv("l.csv")[::-1].to_csv("l.csv", index=False)
    for labels in ("l.csv", "t.csv"):
        report = report_of(f"score messy.csv {labels} {options}")
        assert (report["sizes"], report["J"]) == (expected["sizes"], expected["J"])
    explained = report_of("explain m messy.csv")
    assert report_of("explain m messy.csv --labels l.csv") == explained
    printed("report m messy.csv --labels l.csv --out page.html")


def test_predict_takes_the_names_of_rows(messy, printed, refusal_of):
    printed(f"{FIT} --model m")
    printed("predict m messy.csv --index-column code --labels l.csv")
    labels = pd.read_csv("l.csv", dtype={"code": str})
    assert labels["code"].tolist() == messy["code"].drop([2, 9]).tolist()
    refused = refusal_of("predict m messy.csv --index-column age --labels k.csv")
    assert "('age') is a feature of the fit, so it cannot name rows" in refused
