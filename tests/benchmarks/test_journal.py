"""The journal of a study: what is recorded is never computed twice, and nothing is half written."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.journal import COLUMNS, Journal, versions
from benchmarks.protocol import PAPER, NoData
from benchmarks.run import Options, Run
from mmcnb import InputError

ROOT = Path(__file__).parents[2]


class Counted:
    """A computation that counts how often it is made."""

    def __init__(self):
        self.calls = []

    def __call__(self, run):
        self.calls.append(run.seed)
        return guess(run)


def compute(run):
    return {"guess": guess, "broken": fail, "lost": no_data}[run.method](run)


def guess(run):
    return {"error": run.seed / 10}


def fail(run):
    raise RuntimeError("no\n  luck")


def no_data(run):
    raise NoData("get it there.")


def killed(run):
    os._exit(9)


def guesses(count, method="guess", **given):
    return [Run("rings", method, seed, **given) for seed in range(count)]


def results(runs, out, compute=compute, code="of today", **options):
    with Journal("study", Options(out, **options), code) as journal:
        return journal.results(pd.DataFrame(runs), compute)


def frame_of(out):
    return pd.read_parquet(out / "study.parquet")


# -- resuming --------------------------------------------------------------------------


def test_what_is_recorded_is_not_computed_again(tmp_path):
    counted = Counted()
    first = results(guesses(3), tmp_path, counted)
    again = results(guesses(5), tmp_path, counted)
    assert counted.calls == [0, 1, 2, 3, 4]
    pd.testing.assert_frame_equal(again.head(3), first)
    assert results(guesses(4)[::-2], tmp_path, counted)["error"].tolist() == [0.3, 0.1]
    # also what was not asked for
    assert sorted(frame_of(tmp_path)["seed"]) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_each_identity_is_a_run_whatever_the_order_and_type_of_its_parameters(tmp_path):
    counted = Counted()
    for other in (
        {},
        {"part": "b"},
        {"protocol": PAPER},
        {"parameters": {"C": 3.0, "width": 0.5}},
    ):
        results(guesses(1, **other), tmp_path, counted)
    results(
        guesses(1, parameters={"width": np.float64(0.5), "C": np.int64(3) * 1.0}),
        tmp_path,
        counted,
    )
    assert counted.calls == [0] * 4
    assert len(frame_of(tmp_path)) == 4
    with pytest.raises(ValueError, match="same identity"):
        results(guesses(1) * 2, tmp_path)


def test_a_torn_last_line_is_computed_again_and_nothing_else(tmp_path, capsys):
    results(guesses(3), tmp_path)
    path = tmp_path / "study.jsonl"
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end, calls in ((len(whole) - 1, [2]), (start + 1, [2]), (5, [0, 1, 2])):
        path.write_bytes(whole[:end])
        counted = Counted()
        results(guesses(3), tmp_path, counted)
        assert counted.calls == calls
        assert "incomplete" in capsys.readouterr().err
        assert len(path.read_bytes().splitlines()) == 4


@pytest.mark.parametrize(
    ("line", "damage"), [(2, "not json"), (3, "[1, 2]"), (3, '{"part": ""}')]
)
def test_a_damaged_line_is_told_with_its_number(tmp_path, line, damage):
    results(guesses(3), tmp_path)
    path = tmp_path / "study.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = damage
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        InputError,
        match=rf"^[^\n]*study\.jsonl, line {line}: [^\n]*delete the line[^\n]*$",
    ):
        Journal("study", Options(tmp_path), "of today")


@pytest.mark.parametrize(
    "header", [{"format": 1}, {"study": "other"}, {"scale": "quick"}, {"rows": 7}]
)
def test_a_journal_of_another_kind_is_refused(tmp_path, header):
    results(guesses(1), tmp_path)
    path = tmp_path / "study.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | header) + "\n" + rest)
    with pytest.raises(
        InputError, match=f"with {next(iter(header))} .*give another --out or delete it"
    ):
        Journal("study", Options(tmp_path), "of today")


# -- the same code and the same settings -----------------------------------------------


def test_runs_of_other_code_or_settings_are_computed_again_and_do_not_mix(
    tmp_path, capsys
):
    results(guesses(3), tmp_path, lambda run: {"error": 0.9}, code="of yesterday")
    counted = Counted()
    assert results(guesses(2), tmp_path, counted)["error"].tolist() == [0.0, 0.1]
    assert "2 recorded runs are of other code or settings" in capsys.readouterr().err
    assert frame_of(tmp_path)["value"].tolist() == [0.0, 0.1]
    codes = [
        json.loads(line)["code"]
        for line in (tmp_path / "study.jsonl").read_text().splitlines()[1:]
    ]
    assert codes == ["of yesterday"] * 3 + ["of today"] * 2
    results(guesses(2), tmp_path, counted)
    assert counted.calls == [0, 1]
    results(guesses(1, settings={"rows": 50}), tmp_path, counted)
    assert counted.calls == [0, 1, 0]
    assert frame_of(tmp_path)["value"].tolist() == [0.0, 0.1]


DIGESTS = """
import sys
from pathlib import Path
from benchmarks.journal import code_digest

print(code_digest("benchmarks.studies.eta"))
for name in sys.argv[1:]:
    with Path(name).open("a") as file:
        file.write("\\n# other")
    print(code_digest("benchmarks.studies.eta"))
"""


@pytest.mark.slow
def test_the_digest_is_of_the_library_and_of_the_study(tmp_path):
    for package in ("mmcnb", "benchmarks", "data_loaders"):
        shutil.copytree(
            ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    inside = [
        "mmcnb/kernels/pairwise.py",
        "benchmarks/protocol.py",
        "benchmarks/studies/eta.py",
    ]
    outside = ["benchmarks/studies/scale.py", "benchmarks/report/tables.py"]
    command = [sys.executable, "-c", DIGESTS, *outside, *inside]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert done[0] == done[1] == done[2]
    assert len(set(done)) == 1 + len(inside)


# -- several processes -----------------------------------------------------------------

STUDY = """
import sys, time
from pathlib import Path
import pandas as pd
from benchmarks.journal import Journal
from benchmarks.run import Options, Run

folder, start, stop, seconds, together = Path(sys.argv[1]), *map(float, sys.argv[2:])

def compute(run):
    with (folder / "calls").open("a") as calls:
        calls.write(f"{run.seed}\\n")
    time.sleep(seconds)
    return {"error": run.seed / 10}

runs = pd.DataFrame([Run("rings", "guess", seed) for seed in range(int(start), int(stop))])
with Journal("study", Options(folder), "of today") as journal:
    (folder / f"ready-{int(start)}").touch()
    while len(list(folder.glob("ready-*"))) < together:
        time.sleep(0.01)
    journal.results(runs, compute)
"""


def study(folder, start, stop, seconds, together=1):
    words = map(str, (folder, start, stop, seconds, together))
    return subprocess.Popen(
        [sys.executable, "-c", STUDY, *words], cwd=ROOT, stderr=subprocess.DEVNULL
    )


@pytest.mark.slow
def test_two_processes_on_one_folder_lose_nothing(tmp_path):
    """Both open the folder before either has recorded anything."""
    processes = [study(tmp_path, start, start + 10, 0.02, 2) for start in (0, 10)]
    assert [process.wait(60) for process in processes] == [0, 0]
    lines = [
        json.loads(line) for line in (tmp_path / "study.jsonl").read_text().splitlines()
    ]
    assert [line.get("format") for line in lines] == [2] + [None] * 20
    assert (
        sorted(line["seed"] for line in lines[1:])
        == sorted(frame_of(tmp_path)["seed"])
        == [*range(20)]
    )


def test_what_another_process_records_meanwhile_is_not_computed(tmp_path):
    calls = []
    with Journal("study", Options(tmp_path), "of today") as other:

        def compute(run):
            calls.append(run.seed)
            if run.seed == 0:
                other.results(pd.DataFrame(guesses(3)[1:]), guess)
            return {"error": 0.5}

        table = results(guesses(4), tmp_path, compute)
    assert calls == [0, 3]
    assert table["error"].tolist() == [0.5, 0.1, 0.2, 0.5]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_study_that_is_killed_resumes(tmp_path):
    path = tmp_path / "study.jsonl"
    with study(tmp_path, 0, 40, 0.05) as process:
        while process.poll() is None and (
            not path.exists() or path.read_bytes().count(b"\n") < 6
        ):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    done = {
        json.loads(line)["seed"]
        for line in path.read_text().splitlines()[1:]
        if line.endswith("}")
    }
    assert 4 <= len(done) < 40
    assert study(tmp_path, 0, 40, 0).wait(60) == 0
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert set(calls) == set(range(40))
    assert all(calls.count(seed) == 1 for seed in done)
    assert len(calls) <= 41  # at most the run under way is computed again
    assert len(frame_of(tmp_path)) == 40


# -- failures --------------------------------------------------------------------------


def test_an_interrupted_study_has_its_frame_and_leaves_no_stores(tmp_path):
    folders = set()

    def interrupted(run):
        Path(run.folder, "store").mkdir(exist_ok=True)
        folders.add(Path(run.folder))
        if run.seed == 2:
            raise KeyboardInterrupt
        return guess(run)

    with pytest.raises(KeyboardInterrupt):
        results(guesses(4), tmp_path, interrupted)
    assert frame_of(tmp_path)["seed"].tolist() == [0, 1]
    assert all(tmp_path in folder.parents and not folder.exists() for folder in folders)


def test_a_failed_run_is_recorded_and_computed_again_only_when_asked_for(tmp_path):
    table = results([*guesses(1, "broken"), *guesses(1)], tmp_path)
    assert table["status"].tolist() == ["failed", "ok"]
    reason = (
        f"RuntimeError: no luck (test_journal.py:{fail.__code__.co_firstlineno + 1})"
    )
    told = frame_of(tmp_path).set_index("method").loc["broken"]
    assert (told["status"], told["reason"], told["metric"]) == ("failed", reason, "")
    counted = Counted()
    runs = [*guesses(1, "broken"), *guesses(1)]
    assert results(runs, tmp_path, counted)["reason"].tolist() == [reason, ""]
    assert results(runs, tmp_path, counted, retry=True)["status"].tolist() == [
        "ok",
        "ok",
    ]
    assert counted.calls == [0]
    assert results(runs, tmp_path, counted)["status"].tolist() == ["ok", "ok"]


def test_missing_data_are_told_once_and_not_recorded(tmp_path, capsys):
    with pytest.raises(InputError, match=r"no run could be computed: get it there\."):
        results(guesses(2, "lost"), tmp_path)
    assert list(tmp_path.iterdir()) == []
    table = results([*guesses(2, "lost"), *guesses(1)], tmp_path)
    assert table["status"].tolist() == ["failed", "failed", "ok"]
    assert capsys.readouterr().err.count("get it there.") == 2
    assert set(frame_of(tmp_path)["method"]) == {"guess"}


def test_a_frame_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    results(guesses(1), tmp_path)
    before = (tmp_path / "study.parquet").read_bytes()

    def half(self, path, **options):
        path.write_bytes(b"PAR1")
        raise OSError("disk full")

    # Internal: a disk that is full.
    monkeypatch.setattr(pd.DataFrame, "to_parquet", half)
    with pytest.raises(OSError, match="disk full"):
        results(guesses(2), tmp_path)
    assert (tmp_path / "study.parquet").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} - {"study.lock"} == {
        "study.jsonl",
        "study.parquet",
    }


# -- the frame and the processes that compute ------------------------------------------


def test_the_frame_is_tidy(tmp_path):
    measures = {
        "error": 0.5,
        "ari": np.float32(0.25),
        "kind": "text",
        "n": 9,
        "digest": "abc",
        "seconds": 2.0,
    }
    run = Run("rings", "guess", 1, {"C": 2.0}, PAPER, "a", {"rows": 9})
    table = results([run], tmp_path, lambda run: measures)
    assert (table["kind"][0], table["C"][0], table["seconds"][0]) == ("text", 2.0, 2.0)
    frame = frame_of(tmp_path)
    assert list(frame.columns) == COLUMNS
    assert dict(zip(frame["metric"], frame["value"], strict=True)) == {
        "error": 0.5,
        "ari": 0.25,
    }
    one = frame.iloc[0]
    identity = ["study", "a", "rings", PAPER, "guess", 1]
    assert (
        one[["study", "part", "dataset", "protocol", "method", "seed"]].tolist()
        == identity
    )
    assert json.loads(one["parameters"]) == {"C": 2.0}
    assert {**versions(), "jobs": 1}.items() <= json.loads(one["versions"]).items()
    assert (one["n"], one["digest"], one["status"], one["seconds"]) == (
        9,
        "abc",
        "ok",
        2.0,
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_jobs_give_what_one_process_gives_and_a_killed_one_ends_the_study(tmp_path):
    runs = [*guesses(3), *guesses(1, "broken")]
    one, two = (results(runs, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    rough = ["seconds", "peak_mib"]
    pd.testing.assert_frame_equal(one.drop(columns=rough), two.drop(columns=rough))
    with pytest.raises(InputError, match=r"was killed.*fewer --jobs"):
        results(guesses(5), tmp_path / "2", killed, jobs=2)
    assert set(results(guesses(3), tmp_path / "2", killed)["status"]) == {"ok"}
