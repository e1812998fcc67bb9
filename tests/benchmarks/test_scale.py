"""The study of scale: the model of the cost, what it predicts, and the command that is killed."""

import sys
import time

import numpy as np
import pandas as pd
import pytest

from benchmarks.methods import FRONT_DOOR, LEAST_SQUARES
from benchmarks.run import Run
from benchmarks.studies import _label_costs, scale


def seconds_of(rows, workers):
    return 4.0 + 2e-6 * rows / max(workers, 1)


def frame_of(off=1.0):
    """Runs whose times follow the model, but for those with two workers, which take so many times as long."""
    runs = [(rows, workers) for rows in (10**6, 10**7) for workers in scale.WORKERS]
    seconds = [seconds_of(*one) * (off if one[1] == 2 else 1.0) for one in runs]
    rows, workers = zip(*runs, strict=True)
    given = {"rows": rows, "workers": workers, "seconds": seconds}
    return pd.DataFrame(given).assign(method=LEAST_SQUARES, status="ok", seed=0)


def test_the_cost_model_finds_both_parts():
    rows = np.array([10**6, 10**7])
    assert scale.cost_model(rows, 4.0 + 2e-6 * rows) == pytest.approx((4.0, 2e-6))
    assert scale.cost_model(rows, np.array([3.0, 2.0])) == (3.0, 0.0)  # noise makes nothing negative


@pytest.mark.parametrize("off", [1.0, 2.0])
def test_two_workers_are_predicted_and_more_rows_told(off):
    result = scale.tables_of_cluster(frame_of(off))
    model = result.tables["scale-model"].iloc[0]
    assert model["predicted"] == pytest.approx(seconds_of(10**7, 2))
    assert model["off"] == pytest.approx(abs(1 / off - 1))
    larger = result.tables["scale-larger"].set_index(["rows", "workers"])["hours"]
    assert larger[10**9, 100] == pytest.approx(seconds_of(10**9, 100) / 3600)
    assert [goal.reached for goal in result.goals] == [off == 1.0]


def test_a_command_is_killed_after_some_seconds():
    started = time.perf_counter()
    lost = scale.killed_after([sys.executable, "-c", "import time; time.sleep(600)"], 0.1)
    assert 0.1 <= lost <= time.perf_counter() - started < 60


def test_a_command_that_ends_by_itself_was_not_killed():
    assert scale.killed_after([sys.executable, "-c", "pass"], 60.0) == 0.0


@pytest.mark.slow
def test_labels_of_a_store_are_timed_beside_a_vote_on_each_row(tmp_path):
    run = Run("arcs", FRONT_DOOR, 0, settings={"rows": 5000}, folder=str(tmp_path))
    found = _label_costs.compute(run)
    assert found["ari"] == found["ari, all vote"] == 1
    assert found["differ"] == 0
    assert 0 < found["us_a_row"] == pytest.approx(1e6 * found["seconds"] / 5000)
    result = _label_costs.tables(pd.DataFrame([found]).assign(dataset="arcs", status="ok"))
    assert [goal.figure for goal in result.goals] == [pytest.approx(100 * found["us_a_row"])]
