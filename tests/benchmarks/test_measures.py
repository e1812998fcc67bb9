"""What the studies measure with: goals, slopes, rises, peak memory, tables."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

from benchmarks.__main__ import warn_if_busy
from benchmarks.protocol import NoData, mean_squared_distance, run_and_watch, written_once
from benchmarks.run import Options, Run
from benchmarks.tables import Goal, goals_of, plain, verdicts, write_table
from mmcnb import InputError


def test_a_goal_is_reached_on_its_own_side_of_the_bound():
    assert Goal("error", 5.0, 5.0).reached
    assert not Goal("error", 5.1, 5.0).reached
    assert Goal("agreement", 5.1, 5.0, at_least=True).reached
    assert not Goal("agreement", 4.9, 5.0, at_least=True).reached
    assert not Goal("nothing measured", float("nan"), 5.0).reached
    assert not Goal("nothing measured", float("nan"), 5.0, at_least=True).reached


def test_goals_stand_for_the_figures_that_are_there():
    goals = goals_of({"a": 0.12, "b": 0.5}, {"a": 0.12, "b": 0.1, "c": 0.1}, "{}: error", "%")
    table = verdicts(goals)
    assert table["goal"].tolist() == ["a: error", "b: error"]
    assert table["bound"].tolist() == ["<= 12", "<= 10"]
    assert table["verdict"].tolist() == ["reached", "missed"]


@pytest.mark.parametrize(("average", "told"), [(0.0, False), (1e6, True)])
def test_a_busy_machine_is_told(average, told, monkeypatch, capsys):
    monkeypatch.setattr("psutil.getloadavg", lambda: (average,) * 3)
    warn_if_busy()
    assert ("busy" in capsys.readouterr().err) == told


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_squared_distance_is_that_of_all_ordered_pairs(layout, dtype):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(dtype)
    pairs = 2 * pdist(X, "sqeuclidean").sum() / 30**2
    assert mean_squared_distance(layout(X)) == pytest.approx(pairs, rel=1e-5)


def test_rows_are_at_most_what_is_asked_for(tmp_path):
    def load(options, most=None):
        return Run("rings", "guess", 0, settings={"rows": options.rows_of("rings", most)}).data

    assert len(load(Options(tmp_path, rows=50)).y) == 50
    assert len(load(Options(tmp_path, rows=50), most=20).y) == 20


def test_peak_memory_counts_children():
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory of a process tree is read from Linux's /proc")
    child = "import time; held = bytearray(100 * 2**20); time.sleep(0.3)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{}}')"
    report, peak = run_and_watch([sys.executable, "-c", parent])
    _, small = run_and_watch([sys.executable, "-c", "import time; time.sleep(0.3); print('{}')"])
    assert report == {}
    assert 100 * 2**20 < peak - small < 200 * 2**20


def test_a_command_that_fails_is_told(capfd):
    with pytest.raises(InputError, match="ended with code 3"):
        run_and_watch([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    write_table(pd.DataFrame({"a": [1]}), path)
    before = path.read_bytes()

    class Unwritable:
        def __str__(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_table(pd.DataFrame({"a": [Unwritable()]}), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_errors_are_printed_in_per_cent():
    assert "12.5%" in plain(pd.DataFrame({"best error": [0.125], "seconds": [0.5]}))


def test_the_last_store_is_kept_and_the_one_before_is_gone(tmp_path):
    written = []

    def write(path):
        path.mkdir()
        written.append(path)

    first = written_once(str(tmp_path), "first", write)
    assert written_once(str(tmp_path), "first", write) == first
    assert len(written) == 1
    written_once(str(tmp_path), "second", write)
    assert not written[0].exists()

    def fail(path):
        raise InputError("no such data.")

    with pytest.raises(NoData, match="no such data"):
        written_once(str(tmp_path), "third", fail)
