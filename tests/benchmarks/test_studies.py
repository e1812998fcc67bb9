"""Each study at a tiny size: it runs, prints its tables, and writes them whole."""

import os
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.__main__ import STUDIES, main
from benchmarks._fit_scm import SCM, SVC, UNDER, UNDER_BALANCED
from benchmarks._scm_data import RARE
from benchmarks._tasks import TASKS

real_data = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data"
    ),
]
SMALL = {
    "adult": ["--sizes", "--seeds", "1", "--rows", "150"],
    "usps": ["--seeds", "1", "--rows", "100"],
    "mnist": ["--seeds", "1", "--rows", "60"],
    "collapse": ["--seeds", "1", "--rows", "60"],
    "basis": ["--seeds", "1", "--rows", "60"],
    "growth": ["--rows", "2000"],
    "startup": ["--seeds", "1"],
    "widths": ["--seeds", "1", "--rows", "60", "--quick"],
    "selection": ["--seeds", "1", "--rows", "60", "--quick"],
    "evolutionary": ["--seeds", "1", "--rows", "200", "--quick"],
    "rls": ["--seeds", "1", "--rows", "200", "--quick"],
    "mkc": ["--seeds", "1", "--rows", "60", "--quick"],
    "scm": [
        "--seeds",
        "1",
        "--rows",
        "400",
        "--quick",
        *(f"--part={part}" for part in ("rare", "grid", "effects")),
    ],
    "peers": ["--seeds", "1", "--rows", "200", "--quick"],
    "engine": [
        "--rows",
        "3000",
        "--seeds",
        "1",
        *(f"--part={part}" for part in ("scan", "product", "large")),
    ],
}
FEWER_SETS = {
    "benchmarks.usps.NAME": "usps-extended-test",
    "benchmarks.mnist.BOUNDS": {"mnist-1v7": 2},
    "benchmarks.collapse.UCI": ("heart", "breast"),
    "benchmarks.basis.SETS": ("heart",),
    "benchmarks.evolutionary.PUBLISHED": {"ionosphere": ((32.0, 17.94, 18.75), (14.18, 4.12), (3288, 10248))},
    "benchmarks._rls_tables.SETS": {"iris": 3},
    "benchmarks.rls.TASKS": (TASKS[0], TASKS[3]),
    "benchmarks.peers.TASKS": (TASKS[0], TASKS[3]),
    "benchmarks.mkc.QUICK_SETS": ("digits1v7", "digits0689"),
    "benchmarks._mkc_fits.EXPONENTS": (4,),
    "benchmarks._mkc_fits.DEGREES": (2,),
    "benchmarks._mkc_fits.FRACTIONS": (),
    "benchmarks._mkc_fits.SQUARED": (0.4,),
    "benchmarks._mkc_fits.SVR_WEIGHTS": (1.0,),
    "benchmarks._mkc_fits.CUT_FRACTIONS": (0.5,),
    "benchmarks._mkc_fits.RUNS": 2,
    "benchmarks._mkc_speed.TURNS": 1,
    "benchmarks.scm.METHODS": {RARE: (SCM, SVC, UNDER, UNDER_BALANCED)},
    "benchmarks._scm_effects.GAMMAS": (0.01,),
    "benchmarks._scm_effects.QUICK_CLUSTERS": (10,),
    "benchmarks._scm_effects.MOST_ROUNDS": 2,
    "benchmarks.selection.SETS": ("moons", "breast"),
    "benchmarks.widths.UCI": ("heart", "breast"),
    "benchmarks.widths.OPTDIGITS_PAIRS": ("optdigits-3v8",),
}
NEEDS_DATA = [study for study in STUDIES if study not in ("growth", "startup", "engine")]


@pytest.mark.parametrize(
    "study",
    [pytest.param(study, marks=real_data if study in NEEDS_DATA else ()) for study in STUDIES],
)
def test_a_study_writes_what_it_prints(study, tmp_path, capsys, monkeypatch):
    for name, sets in FEWER_SETS.items():
        monkeypatch.setattr(name, sets)
    assert main([study, *SMALL[study], "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert f"== {study}: mmcnb " in printed
    paths = sorted(tmp_path.iterdir())
    assert paths, "no table was written"
    pictures = [path for path in paths if path.suffix == ".png"]
    assert [path.stem for path in pictures] == (["engine"] if study == "engine" else [])
    for path in set(paths) - set(pictures):
        assert path.suffix == ".csv", f"{path.name} was left behind"
        frame = pd.read_csv(path)
        assert len(frame) > 0
        assert {"mmcnb", "numpy", "numba", "cores"} <= set(frame.columns)
    goals = tmp_path / f"{study}-goals.csv"
    if goals.exists():
        verdicts = pd.read_csv(goals)["verdict"]
        assert set(verdicts) <= {"reached", "missed"}
        assert printed.count("reached") + printed.count("missed") == len(verdicts)


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
    assert files == set(STUDIES)
