"""Each study at a tiny size: it runs, prints its tables, and writes them whole."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import ALL, STUDIES, main, run_study
from benchmarks.journal import Journal
from benchmarks.run import Options, Run, Section
from benchmarks.tables import Result
from mmcnb import InputError

real_data = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data"
    ),
]
# The studies of `all` are run by CI as the command that users have; of them one is enough here.
RUN = ("mnist", *(study for study in STUDIES if study not in ALL))
NO_DATA = ("growth", "limits", "startup", "tables", "no-structure", "like", "explain", "update")
LONG = ("scale", "growth", "explain", "choice", "number", "columns", "basis", "limits")


def marks(study):
    """The marks of the test of a study."""
    return [*(() if study in NO_DATA else real_data), *([pytest.mark.nightly] if study in LONG else ())]


@pytest.mark.parametrize("study", [pytest.param(study, marks=marks(study)) for study in RUN])
def test_a_study_writes_what_it_prints(study, tmp_path, capsys):
    assert main([study, "--smoke", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"== {study}: mmcnb " in printed
    assert "runs failed" not in printed
    tables = list(tmp_path.glob("*.csv"))
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in tables} == {
        f"{study}.jsonl",
        f"{study}.lock",
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


def made_up(compute, count=2):
    """A study of some runs, with a table of them."""
    runs = pd.DataFrame([Run("rings", "guess", seed) for seed in range(count)])
    return SimpleNamespace(
        grid=lambda options: runs, compute=compute, tables=lambda frame: Result({"counted": frame})
    )


def stopped(run):
    raise InputError("no luck.")


def guess(run):
    return {"error": 1 / (2 - run.seed)}


@pytest.fixture
def studies(monkeypatch):
    """Studies by name, to be filled by a test; `all` runs the first two."""
    known = {}
    monkeypatch.setattr("benchmarks.__main__.ALL", ("mnist", "adult"))
    monkeypatch.setattr("benchmarks.__main__.import_module", lambda module: known[module.rpartition(".")[2]])
    return known


def test_what_stops_a_study_does_not_stop_the_others(tmp_path, capsys, studies):
    studies |= {"mnist": made_up(stopped), "adult": made_up(guess, 3)}
    assert main(["all", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "error: mnist: no run could be computed: no luck." in printed.err.splitlines()
    assert "1 runs failed" in printed.out
    assert {path.name for path in tmp_path.iterdir()} == {
        *("counted.csv", "adult.jsonl", "adult.lock", "adult.parquet"),
        *("mnist.jsonl", "mnist.lock", "mnist.parquet"),
    }


def test_a_study_with_a_run_that_failed_ends_with_1(tmp_path, studies):
    studies["mnist"] = made_up(guess, 3)
    assert main(["mnist", "--out", str(tmp_path)]) == 1
    studies["mnist"] = made_up(guess, 2)
    assert main(["mnist", "--out", str(tmp_path / "other")]) == 0


def test_an_interrupt_is_told_and_ends_with_130(tmp_path, capsys, studies):
    def interrupted(run):
        raise KeyboardInterrupt

    studies["mnist"] = made_up(interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["mnist", "--out", str(tmp_path)])
    assert ended.value.code == 130
    assert "error: mnist: interrupted" in capsys.readouterr().err


def section(compute):
    return Section(*made_up(compute).__dict__.values())


def run_sections(tmp_path, sections, parts=(), **more):
    options = Options(tmp_path, parts=parts)
    with Journal("study", options, "of today") as journal:
        return run_study(SimpleNamespace(SECTIONS=sections, **more), options, journal)


def test_a_section_that_finds_nothing_does_not_stop_the_others(tmp_path, capsys):
    result = run_sections(tmp_path, {"bad": section(stopped), "good": section(guess)})
    assert result.tables["counted"]["part"].unique() == ["good"]
    assert "bad is left out: no run could be computed: no luck." in capsys.readouterr().err


def test_sections_that_all_find_nothing_say_why(tmp_path):
    sections = {"bad": section(stopped), "good": section(guess)}
    with pytest.raises(InputError, match=r"no luck\."):
        run_sections(tmp_path, sections, ("bad",))
    with pytest.raises(InputError, match="choose from bad, good"):
        run_sections(tmp_path, sections, ("ugly",))


def test_a_study_may_name_the_sections_that_run_where_none_are_asked_for(tmp_path):
    sections = {"bad": section(stopped), "good": section(guess)}
    usual = {"usual_sections": lambda options: ("good",)}
    assert set(run_sections(tmp_path, sections, **usual).tables["counted"]["part"]) == {"good"}
    with pytest.raises(InputError):
        run_sections(tmp_path, sections, ("bad",), **usual)


def test_runs_may_follow_from_results(tmp_path):
    def follow(frame, options):
        seeds = frame.loc[frame["error"] > 0.5, "seed"]
        return pd.DataFrame([Run("rings", "again", int(seed)) for seed in seeds], columns=Run._fields)

    followed = section(guess)._replace(follow=(follow, follow))
    with pytest.raises(ValueError, match="same identity"):
        run_sections(tmp_path, {"a": followed})
    table = run_sections(tmp_path, {"a": followed._replace(follow=(follow,))}).tables["counted"]
    assert list(zip(table["method"], table["seed"], strict=True)) == [
        ("guess", 0),
        ("guess", 1),
        ("again", 1),
    ]


@pytest.mark.parametrize("words", [["list"], []])
def test_the_list_names_every_study(words, capsys):
    assert main(words) == 0
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


@pytest.mark.parametrize("words", [["adult", "--seeds", "0"], ["adult", "--rows", "-1"]])
def test_bad_options_are_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err


def test_every_study_has_a_file():
    folder = Path(__file__).parents[2] / "benchmarks"
    files = {path.stem for path in folder.glob("studies/*.py") if not path.stem.startswith("_")}
    assert files == {study.replace("-", "_") for study in STUDIES}


def test_a_report_of_nothing_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(tmp_path) in told
