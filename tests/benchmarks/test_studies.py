"""The command: studies run, print their tables and write them whole; what fails is one sentence."""

import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import ALL, STUDIES, main, module_of, run_study
from benchmarks.journal import Journal
from benchmarks.run import Options, Run, Section
from benchmarks.tables import Result
from mmcnb import InputError

pytestmark = pytest.mark.slow
SCALES = [{}, {"quick": True, "smoke": True, "rows": 200, "seeds": 1}]
# CI runs the studies of `all` by the command. One that needs no data is enough here,
# the others run at night.
NIGHTLY = [
    pytest.param(study, marks=[pytest.mark.nightly, pytest.mark.real_data])
    for study in STUDIES
    if study not in (*ALL, "startup")
]


@pytest.mark.parametrize("study", ["startup", *NIGHTLY])
def test_a_study_writes_what_it_prints(study, tmp_path, capsys):
    assert main([study, "--smoke", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"== {study}: mmcnb " in printed
    assert "runs failed" not in printed
    tables = list(tmp_path.glob("*.csv"))
    files = {f"{study}.jsonl", f"{study}.lock", f"{study}.parquet"}
    assert {path.name for path in tmp_path.iterdir()} == files | {
        path.name for path in tables
    }
    for path in tables:
        assert {"mmcnb", "numpy", "numba", "cores"} <= set(pd.read_csv(path).columns)
    frame = pd.read_parquet(tmp_path / f"{study}.parquet")
    assert set(frame["status"]) == {"ok"}
    assert np.isfinite(frame["seconds"]).all()


@pytest.mark.parametrize("study", STUDIES)
def test_no_run_is_asked_for_twice(study, tmp_path):
    module = import_module(module_of(study))
    sections = getattr(module, "SECTIONS", {"": module})
    for scale in SCALES:
        for section in sections.values():
            runs = [
                Run(**row)
                for row in section.grid(Options(tmp_path, **scale)).to_dict("records")
            ]
            assert len({run.identity for run in runs}) == len(runs) > 0


def made_up(compute, count=2):
    """A study of some runs, with a table of them."""
    runs = pd.DataFrame([Run("rings", "guess", seed) for seed in range(count)])
    return Section(
        lambda options: runs, compute, lambda frame: Result({"counted": frame})
    )


def stopped(run):
    raise InputError("no luck.")


def interrupted(run):
    raise KeyboardInterrupt


def guess(run):
    return {"error": 1 / (2 - run.seed)}


def test_what_stops_a_study_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    for study in ALL:
        monkeypatch.setitem(sys.modules, module_of(study), made_up(stopped))
    monkeypatch.setitem(sys.modules, module_of("adult"), made_up(guess, 3))
    assert main(["all", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert (
        "error: mnist: no run could be computed: no luck." in printed.err.splitlines()
    )
    assert "1 runs failed" in printed.out
    assert (tmp_path / "adult.parquet").exists()
    assert (tmp_path / "counted.csv").exists()
    assert set(pd.read_parquet(tmp_path / "mnist.parquet")["status"]) == {"failed"}


@pytest.mark.parametrize(
    ("compute", "count", "code"), [(guess, 2, 0), (guess, 3, 1), (interrupted, 1, 130)]
)
def test_the_exit_code_tells_how_a_study_ended(
    compute, count, code, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, module_of("mnist"), made_up(compute, count))
    words = ["mnist", "--out", str(tmp_path)]
    if code == 130:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 130
        assert "error: mnist: interrupted" in capsys.readouterr().err
    else:
        assert main(words) == code


def run_sections(tmp_path, sections, parts=(), **more):
    options = Options(tmp_path, parts=parts)
    with Journal("study", options, "of today") as journal:
        result = run_study(SimpleNamespace(SECTIONS=sections, **more), options, journal)
    return result.tables["counted"]


def test_sections_run_if_they_are_asked_for_and_one_that_finds_nothing_is_left_out(
    tmp_path, capsys
):
    sections = {"bad": made_up(stopped), "good": made_up(guess)}
    assert set(run_sections(tmp_path, sections)["part"]) == {"good"}
    assert (
        "bad is left out: no run could be computed: no luck." in capsys.readouterr().err
    )
    usual = {"usual_sections": lambda options: ("good",)}
    assert set(run_sections(tmp_path, sections, **usual)["part"]) == {"good"}
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match=r"no luck\."):
        run_sections(tmp_path, sections, ("bad",), **usual)
    with pytest.raises(InputError, match="choose from bad, good"):
        run_sections(tmp_path, sections, ("ugly",))


def test_runs_may_follow_from_results(tmp_path):
    def follow(frame, options):
        seeds = frame.loc[frame["error"] > 0.5, "seed"]
        return pd.DataFrame(
            [Run("rings", "again", int(seed)) for seed in seeds], columns=Run._fields
        )

    table = run_sections(tmp_path, {"a": made_up(guess)._replace(follow=(follow,))})
    assert table["method"].tolist() == ["guess", "guess", "again"]
    assert table["seed"].tolist() == [0, 1, 1]


def test_the_list_names_every_study(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["adlut"], "there is no study called 'adlut'; choose one of small, mnist"),
        (
            ["rls", "--part", "table"],
            "rls: there is no part called 'table'; choose from tables, steps",
        ),
        (["mnist"], "nowhere is not a folder; set MMCNB_DATA_DIR"),
        (["report"], "report: there is no frame of a study"),
        (["keep"], "keep: there is no frame (STUDY.parquet) of small, mnist"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MMCNB_DATA_DIR", str(tmp_path / "nowhere"))
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    (error,) = [line for line in lines if not line.startswith("benchmarks: ")]
    assert error.startswith("error: ")
    assert sentence in error
