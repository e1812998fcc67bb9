"""The study of scale: the model of the cost, what it predicts, and the time of labels."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks.__main__ import run_study
from benchmarks.journal import Journal
from benchmarks.methods import FRONT_DOOR, LEAST_SQUARES
from benchmarks.protocol import Data
from benchmarks.run import Options, Run, Section
from benchmarks.studies import _label_costs, adult, scale
from mmcnb import open_samples
from mmcnb.stores import open_class_labels

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


def test_a_replicated_set_repeats_its_rows_with_noise(tmp_path, monkeypatch):
    few = Data("a9a", csr_array(np.eye(3, dtype=np.float32)), np.array([0, 1, 1]))
    monkeypatch.setattr(adult, "load_once", lambda name: few)
    monkeypatch.setattr(adult, "BLOCK", 4)  # Internal: several blocks of few rows
    adult.write_replicated(tmp_path / "rows.zarr", rows=10, noise=0.01)
    samples = open_samples(tmp_path / "rows.zarr")
    rows = samples.block(0, samples.n_samples)
    assert rows.shape == (10, 3)
    np.testing.assert_allclose(rows, np.eye(3)[np.arange(10) % 3], atol=0.1)
    assert np.unique(rows[:, 0]).size == 10
    classes = np.asarray(open_class_labels(tmp_path / "rows.zarr"))
    np.testing.assert_array_equal(classes, few.y[np.arange(10) % 3])


def test_an_interrupted_replicated_study_goes_on(tmp_path):
    """The journal has the sizes that were fitted; the others are computed."""
    computed = []

    def compute(run):
        computed.append(run.parameters["rows"])
        if len(computed) == 2:
            raise KeyboardInterrupt
        return {"n": run.parameters["rows"], "d": 2, "seconds": 1.0, "passes": 3}

    section = Section(adult.grid_of_replicated, compute, adult.tables_of_replicated)
    options = Options(tmp_path)
    with pytest.raises(KeyboardInterrupt), Journal("adult", options, "a") as journal:
        run_study(section, options, journal)
    with Journal("adult", options, "a") as journal:
        tables = run_study(section, options, journal).tables
    assert computed == [10**6, 3 * 10**6, 3 * 10**6, 10**7]
    assert tables["adult-replicated"]["n"].tolist() == [10**6, 3 * 10**6, 10**7]
