"""What the studies measure with: goals, slopes, rises, peak memory, tables."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

from benchmarks._common import (
    Goal,
    Options,
    load,
    plain,
    temporary_folder,
    warn_if_busy,
    write_table,
)
from benchmarks._compare import mean_squared_distance
from benchmarks._watch import run_and_watch
from benchmarks.collapse import count_rises
from benchmarks.growth import QUICK_ROWS, sizes
from mmcnb.errors import InputError


def test_a_goal_is_reached_on_its_own_side_of_the_bound():
    assert Goal("error", 5.0, 5.0).reached
    assert not Goal("error", 5.1, 5.0).reached
    assert Goal("agreement", 5.1, 5.0, at_least=True).reached
    assert not Goal("agreement", 4.9, 5.0, at_least=True).reached
    assert not Goal("nothing measured", float("nan"), 5.0).reached
    assert not Goal("nothing measured", float("nan"), 5.0, at_least=True).reached


@pytest.mark.parametrize(("average", "told"), [(0.0, False), (1e6, True)])
def test_a_busy_machine_is_told(average, told, monkeypatch, capsys):
    monkeypatch.setattr("os.getloadavg", lambda: (average,) * 3, raising=False)
    warn_if_busy()
    assert ("busy" in capsys.readouterr().err) == told


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_squared_distance_is_that_of_all_ordered_pairs(layout, dtype):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(dtype)
    pairs = 2 * pdist(X, "sqeuclidean").sum() / 30**2
    assert mean_squared_distance(layout(X)) == pytest.approx(pairs, rel=1e-5)


def history(*rows):
    columns = ["stage", "start", "C", "round", "objective", "primal"]
    return pd.DataFrame(rows, columns=columns).assign(gamma=1.0)


def test_a_rise_within_one_C_and_start_is_counted():
    falls = [("sample", 0, 2.0, 0, -1.0, -0.5), ("sample", 0, 2.0, 1, -2.0, -1.5)]
    rise = ("sample", 0, 2.0, 2, -1.4, -1.2)
    assert count_rises(history(*falls)) == (1, 0)
    assert count_rises(history(*falls, rise)) == (2, 1)


def test_other_paths_and_earlier_sweeps_are_not_compared():
    end = ("sample", 0, 2.0, 0, -1.0, -0.9)
    assert count_rises(history(end, ("sample", 0, 3.0, 0, 5.0, 5.0))) == (0, 0)
    assert count_rises(history(end, ("sample", 1, 2.0, 1, 5.0, 5.0))) == (0, 0)
    assert count_rises(history(end, ("all rows", np.nan, 2.0, 0, 5.0, 5.0))) == (0, 0)
    sweeps = [("sample", 0, 2.0, 1, 5.0, 5.0), ("sample", 0, 2.0, 1, -1.0, -0.9)]
    assert count_rises(history(end, *sweeps)) == (1, 0)


def test_rounds_of_all_rows_are_compared_though_they_have_no_start():
    rows = [("all rows", np.nan, 2.0, 0, -1.0, -0.9), ("all rows", np.nan, 2.0, 1, -0.5, -0.4)]
    assert count_rises(history(*rows)) == (1, 1)


def test_sizes_end_at_the_largest_and_rise_tenfold(tmp_path):
    assert sizes(Options(tmp_path)) == [10**4, 10**5, 10**6, 10**7]
    assert sizes(Options(tmp_path, quick=True))[-1] == QUICK_ROWS
    assert sizes(Options(tmp_path, rows=2000)) == [200, 2000]


def test_rows_are_at_most_what_is_asked_for(tmp_path):
    assert len(load("rings", Options(tmp_path, rows=50)).y) == 50
    assert len(load("rings", Options(tmp_path, rows=50), most=20).y) == 20


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


def test_a_temporary_folder_is_removed_after_an_error(tmp_path):
    def fail(folder):
        (folder / "store").mkdir()
        raise OSError("no luck")

    with pytest.raises(OSError, match="no luck"), temporary_folder(Options(tmp_path)) as folder:
        fail(folder)
    assert list(tmp_path.iterdir()) == []


def test_errors_are_printed_in_per_cent():
    assert "12.5%" in plain(pd.DataFrame({"best error": [0.125], "seconds": [0.5]}))
