"""Each study at a tiny size: it runs, prints its tables, and writes them whole."""

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import ALL, STUDIES, main
from benchmarks._cells import Cell
from benchmarks._common import Result
from mmcnb.errors import InputError

real_data = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data"
    ),
]
# The studies of `all` are run by CI as the command that users have; of them one is enough here.
RUN = ("mnist", *(study for study in STUDIES if study not in ALL))
NO_DATA = ("growth", "startup")


@pytest.mark.parametrize(
    "study", [pytest.param(study, marks=() if study in NO_DATA else real_data) for study in RUN]
)
def test_a_study_writes_what_it_prints(study, tmp_path, capsys):
    assert main([study, "--smoke", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"== {study}: mmcnb " in printed
    assert "cells failed" not in printed
    tables = list(tmp_path.glob("*.csv"))
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in tables} == {
        f"{study}.jsonl",
        f"{study}.parquet",
    }
    for path in tables:
        frame = pd.read_csv(path)
        assert len(frame) > 0
        assert {"mmcnb", "numpy", "numba", "cores"} <= set(frame.columns)
    frame = pd.read_parquet(tmp_path / f"{study}.parquet")
    assert set(frame["status"]) == {"ok"}
    assert np.isfinite(frame["seconds"]).all()
    goals = tmp_path / f"{study}-goals.csv"
    if goals.exists():
        verdicts = pd.read_csv(goals)["verdict"]
        assert set(verdicts) <= {"reached", "missed"}
        assert printed.count("reached") + printed.count("missed") == len(verdicts)


def test_what_stops_a_study_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    def stopped(options, journal):
        raise InputError("no luck.")

    def counted(options, journal):
        rows = journal.rows(
            [Cell("rings", "guess", 0, partial(dict, error=0.5)), Cell("rings", "x", 0, partial(int, "x"))]
        )
        return Result({"counted": rows})

    studies = {"benchmarks.stopped": stopped, "benchmarks.counted": counted}
    monkeypatch.setattr("benchmarks.__main__.ALL", ("stopped", "counted"))
    monkeypatch.setattr("benchmarks.__main__.import_module", lambda name: SimpleNamespace(run=studies[name]))
    assert main(["all", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "error: stopped: no luck." in printed.err.splitlines()
    assert "1 cells failed" in printed.out
    assert {path.name for path in tmp_path.iterdir()} == {"counted.csv", "counted.jsonl", "counted.parquet"}


def test_a_study_with_a_cell_that_failed_ends_with_1(tmp_path, monkeypatch):
    cells = [Cell("rings", "guess", 0, partial(dict, error=0.5)), Cell("rings", "x", 0, partial(int, "x"))]
    monkeypatch.setattr("benchmarks.mnist.run", lambda options, journal: Result({"x": journal.rows(cells)}))
    assert main(["mnist", "--out", str(tmp_path)]) == 1
    cells.pop()
    assert main(["mnist", "--out", str(tmp_path / "other")]) == 0


def test_an_interrupt_is_told_and_ends_with_130(tmp_path, capsys, monkeypatch):
    def interrupted(options, journal):
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.mnist.run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["mnist", "--out", str(tmp_path)])
    assert ended.value.code == 130
    assert "error: mnist: interrupted" in capsys.readouterr().err


def test_the_list_names_every_study(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)
    assert all(len(line.split()) > 3 for line in lines), "a study does not say what it shows"


def test_an_unknown_study_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["adlut", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "'adlut'" in told
    assert all(study in told for study in STUDIES)
    assert not (tmp_path / "out").exists()


def test_an_unknown_part_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["rls", "--part", "table", "--out", str(tmp_path)]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("benchmarks: ")]
    assert told == [
        "error: rls: there is no part called 'table'; choose from tables, steps, defaults, large."
    ]


def test_missing_data_are_told_in_one_sentence(tmp_path, capsys, monkeypatch):
    missing = tmp_path / "nowhere"
    monkeypatch.setenv("MMCNB_DATA_DIR", str(missing))
    assert main(["mnist", "--out", str(tmp_path / "out")]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("benchmarks: ")]
    assert len(told) == 1
    assert told[0].startswith("error: mnist: ")
    assert str(missing) in told[0]
    assert "MMCNB_DATA_DIR" in told[0]


@pytest.mark.parametrize("words", [["adult", "--seeds", "0"], ["adult", "--rows", "-1"], ["--quick"]])
def test_bad_options_are_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err


def test_every_study_has_a_file():
    folder = Path(__file__).parents[2] / "benchmarks"
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert files - {"published"} == set(STUDIES)


def test_a_report_of_nothing_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(tmp_path) in told
