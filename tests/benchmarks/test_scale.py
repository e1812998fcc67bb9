"""The study of scale: the model of the cost, what it predicts, and the time of labels."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.methods import FRONT_DOOR, LEAST_SQUARES
from benchmarks.run import Run
from benchmarks.studies import _label_costs, scale

pytestmark = pytest.mark.slow


def seconds_of(rows, workers):
    return 4.0 + 2e-6 * rows / max(workers, 1)


@pytest.mark.parametrize("off", [1.0, 2.0])
def test_two_workers_are_predicted_and_more_rows_told(off):
    """Times follow the model, but for those with two workers, which take so many times as long."""
    runs = [(rows, workers) for rows in (10**6, 10**7) for workers in scale.WORKERS]
    frame = pd.DataFrame(runs, columns=["rows", "workers"]).assign(
        method=LEAST_SQUARES, status="ok", seed=0
    )
    frame["seconds"] = [
        seconds_of(*one) * (off if one[1] == 2 else 1.0) for one in runs
    ]
    result = scale.tables_of_cluster(frame)
    model = result.tables["scale-model"].iloc[0]
    assert model["predicted"] == pytest.approx(seconds_of(10**7, 2))
    assert model["off"] == pytest.approx(abs(1 / off - 1))
    larger = result.tables["scale-larger"].set_index(["rows", "workers"])["hours"]
    assert larger[10**9, 100] == pytest.approx(seconds_of(10**9, 100) / 3600)
    assert [goal.reached for goal in result.goals] == [off == 1.0]
    assert scale.cost_model(np.array([10**6, 10**7]), np.array([3.0, 2.0])) == (
        3.0,
        0.0,
    )


def test_labels_of_a_store_are_timed_beside_a_vote_on_each_row(tmp_path):
    run = Run("arcs", FRONT_DOOR, 0, settings={"rows": 5000}, folder=str(tmp_path))
    measures = _label_costs.compute(run)
    assert measures["ari"] == measures["ari, all vote"] == 1
    assert measures["differ"] == 0
    assert 0 < measures["us_a_row"] == pytest.approx(1e6 * measures["seconds"] / 5000)
