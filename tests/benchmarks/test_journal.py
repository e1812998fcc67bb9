"""The journal of a study: what is recorded is never computed twice, and nothing is half written."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import benchmarks.journal as journals
import mmcnb
from benchmarks.__main__ import STUDIES, module_of
from benchmarks.journal import COLUMNS, Journal, code_digest, sources_of
from benchmarks.protocol import PAPER, NoData
from benchmarks.run import Options, Run, measured
from benchmarks.studies import _skmmc
from mmcnb import InputError


class Counted:
    """A computation that counts how often it is made."""

    def __init__(self):
        self.calls = []

    def __call__(self, run):
        self.calls.append(run.seed)
        return {"error": run.seed / 10, "n": 9, "d": 2}


def compute(run):
    return {"guess": guess, "broken": fail, "lost": no_data}[run.method](run)


def guess(run):
    return {"error": run.seed / 10}


def fail(run):
    raise RuntimeError("no\n  luck")


def no_data(run):
    raise NoData("get it there.")


def guesses(count, method="guess", **given):
    return [Run("rings", method, seed, **given) for seed in range(count)]


REASON = f"RuntimeError: no luck (test_journal.py:{fail.__code__.co_firstlineno + 1})"


def results(runs, out, compute=compute, code="of today", **options):
    with Journal("study", Options(out, **options), code) as journal:
        return journal.results(pd.DataFrame(runs), compute)


def frame_of(out):
    return pd.read_parquet(out / "study.parquet")


def recorded(out):
    return [json.loads(line) for line in (out / "study.jsonl").read_text().splitlines()[1:]]


# Resuming


def test_what_is_recorded_is_not_computed_again(tmp_path):
    counted = Counted()
    first = results(guesses(3), tmp_path, counted)
    again = results(guesses(5), tmp_path, counted)
    assert counted.calls == [0, 1, 2, 3, 4]
    pd.testing.assert_frame_equal(again.head(3), first)
    assert again["error"].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_rows_are_in_the_order_of_the_runs_and_only_of_them(tmp_path):
    results(guesses(4), tmp_path)
    asked = guesses(4)[::-2]
    assert results(asked, tmp_path)["seed"].tolist() == [run.seed for run in asked]
    assert set(frame_of(tmp_path)["seed"]) == {0, 1, 2, 3}, "what was not asked for stays in the frame"


@pytest.mark.parametrize(
    "other", [{"part": "b"}, {"protocol": PAPER}, {"parameters": {"C": 2.0}}, {"parameters": {"C": 3.0}}]
)
def test_another_identity_is_another_run(tmp_path, other):
    counted = Counted()
    results(guesses(1), tmp_path, counted)
    results(guesses(1, **other), tmp_path, counted)
    assert counted.calls == [0, 0]
    assert len(frame_of(tmp_path)) == 2


def test_the_order_and_the_type_of_parameters_do_not_matter(tmp_path):
    counted = Counted()
    results(guesses(1, parameters={"C": 2.0, "width": 0.5}, settings={"bounds": [0]}), tmp_path, counted)
    same = {"width": np.float64(0.5), "C": np.float64(2)}
    results(guesses(1, parameters=same, settings={"bounds": (np.int64(0),)}), tmp_path, counted)
    assert counted.calls == [0]


def test_two_runs_that_are_the_same_are_refused(tmp_path):
    with pytest.raises(ValueError, match="same identity"):
        results(guesses(1) * 2, tmp_path)


def test_a_torn_last_line_is_computed_again_and_nothing_else(tmp_path, capsys):
    results(guesses(3), tmp_path)
    path = tmp_path / "study.jsonl"
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end in (start + 1, (start + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        counted = Counted()
        results(guesses(3), tmp_path, counted)
        assert counted.calls == [2]
        assert "torn" in capsys.readouterr().err
        assert len(path.read_bytes().splitlines()) == 4


def test_a_torn_header_begins_anew(tmp_path):
    (tmp_path / "study.jsonl").write_text('{"format": 2, "stu')
    assert len(results(guesses(2), tmp_path)) == 2
    assert len((tmp_path / "study.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("line", [2, 3])
@pytest.mark.parametrize("damage", ["not json", "[1, 2]", '{"part": ""}'])
def test_a_damaged_line_is_told_with_its_number(tmp_path, line, damage):
    results(guesses(3), tmp_path)
    path = tmp_path / "study.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = damage
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"study\.jsonl, line {line}: .*delete the line") as told:
        Journal("study", Options(tmp_path), "of today")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"), [("format", 1), ("study", "other"), ("scale", "quick"), ("rows", 7)]
)
def test_a_journal_of_another_kind_is_refused(tmp_path, name, value):
    results(guesses(1), tmp_path)
    path = tmp_path / "study.jsonl"
    header, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | {name: value}), *rest]) + "\n")
    with pytest.raises(InputError, match=f"was written with {name} .*give another --out or delete it"):
        Journal("study", Options(tmp_path), "of today")


# The same code and the same parameters


def test_runs_of_other_code_are_computed_again_and_stay_in_the_journal(tmp_path, capsys):
    results(guesses(3), tmp_path, lambda run: {"error": 0.9}, code="of yesterday")
    capsys.readouterr()
    counted = Counted()
    again = results(guesses(2), tmp_path, counted)
    assert counted.calls == [0, 1]
    assert again["error"].tolist() == [0.0, 0.1]
    told = [line for line in capsys.readouterr().err.splitlines() if "of other code" in line]
    assert len(told) == 1
    assert "2 recorded runs" in told[0]
    assert [record["code"] for record in recorded(tmp_path)] == ["of yesterday"] * 3 + ["of today"] * 2
    assert frame_of(tmp_path)["value"].tolist() == [0.0, 0.1], "the frame shows runs of other code"
    results(guesses(2), tmp_path, counted)
    assert counted.calls == [0, 1]
    assert "of other code" not in capsys.readouterr().err


@pytest.mark.parametrize("other", [{"rows": 60}, {"rows": 50, "fixed": {"C": 2.0}}, {}])
def test_a_run_with_other_settings_is_computed_again(tmp_path, other, capsys):
    counted = Counted()
    results(guesses(1, settings={"rows": 50}), tmp_path, counted)
    results(guesses(1, settings=other), tmp_path, counted)
    assert counted.calls == [0, 0]
    assert "1 recorded runs are of other code or settings" in capsys.readouterr().err
    assert len(frame_of(tmp_path)) == 1, "one run stands twice in the frame"


@pytest.mark.parametrize("study", STUDIES)
def test_the_code_of_a_study_is_what_computes_its_runs(study):
    module = module_of(study)
    sources = sources_of(module)
    assert module.rpartition(".")[2] in {path.stem for path in sources if path.parent.name == "studies"}
    names = {path.stem for path in sources if path.parent.name != "studies"}
    assert {"run", "protocol"} <= names
    assert not names & {"tables", "journal", "published", "report", "__main__"}


def test_the_digest_is_of_the_library_and_of_the_study(tmp_path, monkeypatch):
    def write(path, text):
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return code_digest("benchmarks.studies.one")

    monkeypatch.setattr(journals, "__file__", str(tmp_path / "benchmarks" / "journal.py"))
    monkeypatch.setattr(mmcnb, "__file__", str(tmp_path / "mmcnb" / "__init__.py"))
    write("mmcnb/kernels/rbf.py", "a = 1\n")
    write("benchmarks/helper.py", "b = 1\n")
    write("benchmarks/studies/two.py", "c = 1\n")
    first = write("benchmarks/studies/one.py", "def f():\n    from benchmarks import helper\n")
    assert write("benchmarks/studies/two.py", "c = 2\n") == first
    assert write("benchmarks/report/page.py", "d = 1\n") == first
    found = [
        write("mmcnb/kernels/rbf.py", "a = 2\n"),
        write("benchmarks/helper.py", "b = 2\n"),
        write("benchmarks/studies/one.py", "from benchmarks.helper import b\n"),
    ]
    assert len({first, *found}) == 4


# Several processes

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
    return subprocess.Popen([sys.executable, "-c", STUDY, *words], stderr=subprocess.DEVNULL)


def test_two_processes_on_one_folder_lose_nothing(tmp_path):
    """Both open the folder before either has recorded anything."""
    processes = [study(tmp_path, start, start + 10, 0.02, 2) for start in (0, 10)]
    assert [process.wait(60) for process in processes] == [0, 0]
    lines = [json.loads(line) for line in (tmp_path / "study.jsonl").read_text().splitlines()]
    assert [line.get("format") for line in lines] == [2] + [None] * 20
    assert sorted(line["seed"] for line in lines[1:]) == list(range(20))
    assert sorted(frame_of(tmp_path)["seed"]) == list(range(20))


def test_what_another_process_records_meanwhile_is_not_computed(tmp_path):
    calls = []
    with Journal("study", Options(tmp_path), "of today") as other:

        def compute(run):
            calls.append(run.seed)
            if run.seed == 0:
                other.results(pd.DataFrame(guesses(3)[1:]), guess)
            return {"error": 0.5}

        found = results(guesses(4), tmp_path, compute)
    assert calls == [0, 3]
    assert found["error"].tolist() == [0.5, 0.1, 0.2, 0.5]
    assert sorted(frame_of(tmp_path)["seed"]) == [0, 1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_study_that_is_killed_resumes(tmp_path):
    path = tmp_path / "study.jsonl"
    with study(tmp_path, 0, 40, 0.05) as killed:
        while killed.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < 6):
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    done = {json.loads(line)["seed"] for line in path.read_text().splitlines()[1:] if line.endswith("}")}
    assert 4 <= len(done) < 40
    assert study(tmp_path, 0, 40, 0).wait(60) == 0
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert set(calls) == set(range(40))
    assert all(calls.count(seed) == 1 for seed in done)
    assert len(calls) <= 41, "at most the run under way is computed again"
    assert len(frame_of(tmp_path)) == 40


def test_an_interrupted_study_has_its_frame(tmp_path):
    def interrupted(run):
        if run.seed == 2:
            raise KeyboardInterrupt
        return guess(run)

    with pytest.raises(KeyboardInterrupt):
        results(guesses(4), tmp_path, interrupted)
    assert frame_of(tmp_path)["seed"].tolist() == [0, 1]


# Failures


def test_a_run_that_fails_is_recorded_and_the_others_go_on(tmp_path):
    found = results([*guesses(1, "broken"), *guesses(1)], tmp_path)
    assert found["status"].tolist() == ["failed", "ok"]
    assert found["reason"].tolist() == [REASON, ""]
    assert np.isnan(found["error"][0])
    told = frame_of(tmp_path).set_index("method").loc["broken"]
    assert (told["status"], told["reason"], told["metric"]) == ("failed", REASON, "")
    assert np.isnan(told["value"])


def test_a_failed_run_is_computed_again_only_when_asked_for(tmp_path):
    def first_fails(run):
        return fail(run) if run.seed == 0 else guess(run)

    counted = Counted()
    results(guesses(2), tmp_path, first_fails)
    assert results(guesses(2), tmp_path, counted)["status"].tolist() == ["failed", "ok"]
    assert counted.calls == []
    assert results(guesses(2), tmp_path, counted, retry=True)["status"].tolist() == ["ok", "ok"]
    assert counted.calls == [0]
    assert results(guesses(2), tmp_path, counted)["status"].tolist() == ["ok", "ok"], "the last record counts"


def test_missing_data_are_told_once_and_not_recorded(tmp_path, capsys):
    found = results([*guesses(2, "lost"), *guesses(1)], tmp_path)
    assert found["status"].tolist() == ["failed", "failed", "ok"]
    assert capsys.readouterr().err.count("get it there.") == 1
    assert set(frame_of(tmp_path)["method"]) == {"guess"}


def test_a_study_without_any_data_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no run could be computed: get it there\."):
        results(guesses(1, "lost"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("found", [{"C": 1.0}, {"seed": 1}, {"status": "ok"}, {"labels": [0, 1]}])
def test_a_metric_that_cannot_be_a_column_fails_its_run(tmp_path, found):
    runs = [Run("rings", "guess", 0, {"C": 2.0}), Run("rings", "guess", 1)]
    rows = results(runs, tmp_path, lambda run: guess(run) if run.seed else found)
    assert rows["status"].tolist() == ["failed", "ok"]
    assert next(iter(found)) in rows["reason"][0]


# The frame


def test_the_frame_is_tidy(tmp_path):
    found = {"error": 0.5, "ari": np.float32(0.25), "kind": "text", "n": 9, "digest": "abc", "seconds": 2.0}
    run = Run("rings", "guess", 1, {"C": 2.0}, PAPER, "a", {"rows": 9})
    rows = results([run], tmp_path, lambda run: found)
    assert (rows["kind"][0], rows["C"][0], rows["seconds"][0]) == ("text", 2.0, 2.0)
    frame = frame_of(tmp_path)
    assert list(frame.columns) == COLUMNS
    assert dict(zip(frame["metric"], frame["value"], strict=True)) == {"error": 0.5, "ari": 0.25}
    one = frame.iloc[0]
    assert one[["study", "part", "dataset", "protocol", "method", "seed"]].tolist() == [
        *("study", "a", "rings", PAPER, "guess", 1)
    ]
    assert json.loads(one["parameters"]) == {"C": 2.0}
    assert {"mmcnb": journals.versions()["mmcnb"], "jobs": 1}.items() <= json.loads(one["versions"]).items()
    assert (one["n"], one["digest"], one["status"], one["seconds"]) == (9, "abc", "ok", 2.0)


def test_a_frame_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    results(guesses(1), tmp_path)
    before = (tmp_path / "study.parquet").read_bytes()

    def half(self, path, **options):
        path.write_bytes(b"PAR1")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", half)
    with pytest.raises(OSError, match="disk full"):
        results(guesses(2), tmp_path)
    assert (tmp_path / "study.parquet").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} - {"study.lock"} == {"study.jsonl", "study.parquet"}


def test_a_run_is_measured_where_it_does_not_measure_itself():
    found = measured(nap, Run("rings", "nap", 0))["found"]
    assert 0.02 <= found["seconds"] < 2
    assert found["peak_mib"] > 10 or not sys.platform.startswith("linux")
    given = {"seconds": 7.0, "peak_mib": 1.0}
    assert measured(lambda run: given, Run("rings", "nap", 0))["found"] == given


def nap(run):
    time.sleep(0.02)
    return {}


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_stores_are_written_below_out_and_are_gone_at_the_end(tmp_path, error):
    folders = set()

    def store(run):
        Path(run.folder, "store").mkdir(exist_ok=True)
        folders.add(Path(run.folder))
        if run.seed and error:
            raise error
        return guess(run)

    with pytest.raises(error) if error else nullcontext():
        results(guesses(2), tmp_path, store)
    assert all(tmp_path in folder.parents for folder in folders)
    assert not any(folder.exists() for folder in folders)


# Jobs


def killed(run):
    os._exit(9)


def test_a_process_that_is_killed_ends_the_study_in_one_sentence(tmp_path):
    results(guesses(1), tmp_path)
    with pytest.raises(InputError, match=r"was killed.*fewer --jobs"):
        results(guesses(3), tmp_path, killed, jobs=2)
    assert set(results(guesses(1), tmp_path, killed)["status"]) == {"ok"}


def test_jobs_give_what_one_process_gives(tmp_path):
    given = {"parameters": {"n_init": 1}, "settings": {"rows": 60}}
    runs = [*guesses(3, "k-means", **given), *guesses(1, "no such method", settings={"rows": 60})]
    one, two = (results(runs, tmp_path / str(jobs), _skmmc.compute, jobs=jobs) for jobs in (1, 2))
    rough = ["seconds", "compile_seconds", "peak_mib"]
    pd.testing.assert_frame_equal(one.drop(columns=rough), two.drop(columns=rough))
    assert two["status"].tolist() == ["ok", "ok", "ok", "failed"]
    assert json.loads(frame_of(tmp_path / "2")["versions"][0])["jobs"] == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.mkfifo(path),
        os.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("no"),
    ],
)
def test_a_journal_is_a_regular_file(make, tmp_path):
    make(tmp_path / "study.jsonl")
    with pytest.raises(InputError, match=r"study\.jsonl is no regular file: give another [^\n]*\.$"):
        Journal("study", Options(tmp_path), "of today")
