"""The journal of a study: what is recorded is never computed twice, and nothing is half written."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

import benchmarks._journal as journals
from benchmarks._cells import LABEL_FREE, PAPER, Cell, measured
from benchmarks._common import NoData, Options
from benchmarks._compare import fitted
from benchmarks._journal import COLUMNS, Journal
from mmcnb.errors import InputError


class Counted:
    """Cells that count how often they are computed."""

    def __init__(self):
        self.calls = []

    def compute(self, seed):
        self.calls.append(seed)
        return {"error": seed / 10, "n": 9, "d": 2}

    def cells(self, count, **given):
        return [Cell("rings", "guess", seed, partial(self.compute, seed), **given) for seed in range(count)]


def fail(reason="no luck"):
    raise RuntimeError(reason)


REASON = f"RuntimeError: no luck (test_journal.py:{fail.__code__.co_firstlineno + 1})"


def run(cells, out, **options):
    with Journal("study", Options(out, **options)) as journal:
        return journal.rows(cells)


def frame_of(out):
    return pd.read_parquet(out / "study.parquet")


# Resuming


def test_what_is_recorded_is_not_computed_again(tmp_path):
    counted = Counted()
    first = run(counted.cells(3), tmp_path)
    again = run(counted.cells(5), tmp_path)
    assert counted.calls == [0, 1, 2, 3, 4]
    pd.testing.assert_frame_equal(again.head(3), first)
    assert again["error"].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_rows_are_in_the_order_of_the_cells_and_only_of_them(tmp_path):
    counted = Counted()
    run(counted.cells(4), tmp_path)
    asked = counted.cells(4)[::-2]
    assert run(asked, tmp_path)["seed"].tolist() == [cell.seed for cell in asked]
    assert set(frame_of(tmp_path)["seed"]) == {0, 1, 2, 3}, "what was not asked for stays in the frame"


@pytest.mark.parametrize(
    "other", [{"part": "b"}, {"protocol": PAPER}, {"parameters": {"C": 2.0}}, {"parameters": {"C": 3.0}}]
)
def test_another_identity_is_another_cell(tmp_path, other):
    counted = Counted()
    run(counted.cells(1), tmp_path)
    run(counted.cells(1, **other), tmp_path)
    assert counted.calls == [0, 0]


def test_the_order_and_the_type_of_parameters_are_no_part_of_the_identity(tmp_path):
    counted = Counted()
    run(counted.cells(1, parameters={"C": 2.0, "width": 0.5}), tmp_path)
    run(counted.cells(1, parameters={"width": np.float64(0.5), "C": np.float64(2)}), tmp_path)
    assert counted.calls == [0]


def test_two_cells_that_are_the_same_are_refused(tmp_path):
    with pytest.raises(ValueError, match="same identity"):
        run(Counted().cells(1) * 2, tmp_path)


def test_a_torn_last_line_is_computed_again_and_nothing_else(tmp_path, capsys):
    run(Counted().cells(3), tmp_path)
    path = tmp_path / "study.jsonl"
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end in (start + 1, (start + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        counted = Counted()
        run(counted.cells(3), tmp_path)
        assert counted.calls == [2]
        assert "torn" in capsys.readouterr().err
        assert len(path.read_bytes().splitlines()) == 4


def test_a_torn_header_begins_anew(tmp_path):
    (tmp_path / "study.jsonl").write_text('{"format": 1, "stu')
    assert len(run(Counted().cells(2), tmp_path)) == 2
    assert len((tmp_path / "study.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("line", [2, 3])
@pytest.mark.parametrize("damage", ["not json", "[1, 2]", '{"part": ""}'])
def test_a_damaged_line_is_told_with_its_number(tmp_path, line, damage):
    run(Counted().cells(3), tmp_path)
    path = tmp_path / "study.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = damage
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"study\.jsonl, line {line}: .*delete the line") as told:
        Journal("study", Options(tmp_path))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("format", 0), ("mmcnb", "0.0.1"), ("study", "other"), ("scale", "quick"), ("rows", 7)],
)
def test_a_journal_of_another_run_is_refused(tmp_path, name, value):
    run(Counted().cells(1), tmp_path)
    path = tmp_path / "study.jsonl"
    header, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | {name: value}), *rest]) + "\n")
    with pytest.raises(InputError, match=f"was written with {name} .*give another --out or delete it"):
        Journal("study", Options(tmp_path))


KILLED = """
import sys, time
from pathlib import Path
from functools import partial
from benchmarks._cells import Cell
from benchmarks._common import Options
from benchmarks._journal import Journal

def compute(seed):
    with Path(sys.argv[1], "calls").open("a") as calls:
        calls.write(f"{seed}\\n")
    time.sleep(0.05 if len(sys.argv) < 3 else 0)
    return {"error": seed / 10}

cells = [Cell("rings", "guess", seed, partial(compute, seed)) for seed in range(40)]
with Journal("study", Options(Path(sys.argv[1]))) as journal:
    journal.rows(cells)
"""


@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_study_that_is_killed_goes_on_where_it_was(tmp_path):
    path = tmp_path / "study.jsonl"
    with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stderr=subprocess.DEVNULL) as study:
        while study.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < 6):
            time.sleep(0.01)
        study.send_signal(signal.SIGKILL)
    recorded = {json.loads(line)["seed"] for line in path.read_text().splitlines()[1:] if line.endswith("}")}
    assert 4 <= len(recorded) < 40
    subprocess.run([sys.executable, "-c", KILLED, tmp_path, "fast"], check=True, stderr=subprocess.DEVNULL)
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert set(calls) == set(range(40))
    assert all(calls.count(seed) == 1 for seed in recorded)
    assert len(calls) <= 41, "at most the cell under way is computed again"
    assert len(frame_of(tmp_path)) == 40


def test_an_interrupted_study_has_its_frame(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    cells = [*Counted().cells(2), Cell("rings", "slow", 0, interrupt)]
    with pytest.raises(KeyboardInterrupt):
        run(cells, tmp_path)
    assert frame_of(tmp_path)["method"].tolist() == ["guess", "guess"]


# Failures


def test_a_cell_that_fails_is_recorded_and_the_others_go_on(tmp_path):
    counted = Counted()
    lines = partial(fail, "no\n  luck")
    rows = run([Cell("rings", "broken", 0, lines), *counted.cells(1)], tmp_path)
    assert rows["status"].tolist() == ["failed", "ok"]
    assert rows["reason"].tolist() == [REASON, ""]
    assert np.isnan(rows["error"][0])
    told = frame_of(tmp_path).set_index("method").loc["broken"]
    assert (told["status"], told["reason"], told["metric"]) == ("failed", REASON, "")
    assert np.isnan(told["value"])


def test_a_failed_cell_is_computed_again_only_when_asked_for(tmp_path):
    counted = Counted()
    run([Cell("rings", "guess", 0, fail), *counted.cells(2)[1:]], tmp_path)
    assert run(counted.cells(2), tmp_path)["status"].tolist() == ["failed", "ok"]
    assert counted.calls == [1]
    assert run(counted.cells(2), tmp_path, retry=True)["status"].tolist() == ["ok", "ok"]
    assert counted.calls == [1, 0]
    assert run(counted.cells(2), tmp_path)["status"].tolist() == ["ok", "ok"], "the last record counts"


def no_data():
    raise NoData("get it there.")


def test_data_that_cannot_be_had_are_told_once_and_not_recorded(tmp_path, capsys):
    lost = [Cell("lost", "guess", seed, no_data) for seed in range(2)]
    rows = run([*lost, *Counted().cells(1)], tmp_path)
    assert rows["status"].tolist() == ["failed", "failed", "ok"]
    assert capsys.readouterr().err.count("get it there.") == 1
    assert set(frame_of(tmp_path)["dataset"]) == {"rings"}


def test_a_study_without_any_data_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no cell could be computed: get it there\."):
        run([Cell("lost", "guess", 0, no_data)], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("found", [{"C": 1.0}, {"seed": 1}, {"status": "ok"}, {"labels": [0, 1]}])
def test_a_metric_that_cannot_be_a_column_fails_its_cell(tmp_path, found):
    rows = run([Cell("rings", "guess", 0, partial(dict, found), {"C": 2.0}), *Counted().cells(1)], tmp_path)
    assert rows["status"].tolist() == ["failed", "ok"]
    assert next(iter(found)) in rows["reason"][0]


# The frame


def test_the_frame_is_tidy(tmp_path):
    compute = partial(dict, error=0.5, ari=np.float32(0.25), kind="text", n=9, digest="abc", seconds=2.0)
    rows = run([Cell("rings", "guess", 1, compute, {"C": 2.0}, PAPER, "a")], tmp_path)
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
    run(Counted().cells(1), tmp_path)
    before = (tmp_path / "study.parquet").read_bytes()

    def half(self, path, **options):
        path.write_bytes(b"PAR1")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", half)
    with pytest.raises(OSError, match="disk full"):
        run(Counted().cells(2), tmp_path)
    assert (tmp_path / "study.parquet").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.jsonl", "study.parquet"]


def test_a_cell_is_measured_where_it_does_not_measure_itself():
    found = measured(nap)["found"]
    assert 0.02 <= found["seconds"] < 2
    assert found["peak_mib"] > 10 or not sys.platform.startswith("linux")
    assert measured(partial(dict, seconds=7.0, peak_mib=1.0))["found"] == {"seconds": 7.0, "peak_mib": 1.0}


def nap():
    time.sleep(0.02)
    return {}


# Processes


def test_a_process_that_is_killed_ends_the_study_in_one_sentence(tmp_path):
    done = Cell("rings", "guess", 0, partial(dict, error=0.5))
    with pytest.raises(InputError, match=r"was killed.*fewer --jobs"):
        run(
            [done, *(Cell("rings", "killed", seed, partial(os._exit, 9)) for seed in range(2))],
            tmp_path,
            jobs=2,
        )
    assert set(run([done], tmp_path)["status"]) == {"ok"}


def test_jobs_give_what_one_process_gives(tmp_path):
    cells = [
        Cell("rings", "k-means", seed, partial(fitted, "rings", 60, "k-means", seed, {"n_init": 1}))
        for seed in range(3)
    ]
    cells += [Cell("rings", "broken", 0, partial(int, "x"), protocol=LABEL_FREE)]
    one, two = (run(cells, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    rough = ["seconds", "compile_seconds", "peak_mib"]
    pd.testing.assert_frame_equal(one.drop(columns=rough), two.drop(columns=rough))
    assert two["status"].tolist() == ["ok", "ok", "ok", "failed"]
    assert json.loads(frame_of(tmp_path / "2")["versions"][0])["jobs"] == 2
