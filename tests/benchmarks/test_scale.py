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
from benchmarks.studies import _beyond, _label_costs, adult, scale
from mmcnb import open_samples
from mmcnb.stores import open_class_labels

pytestmark = pytest.mark.slow


def seconds_of(rows, workers):
    return 4.0 + 2e-6 * rows / max(workers, 1)


@pytest.mark.parametrize("off", [1.0, 2.0])
def test_two_workers_are_predicted(off):
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
    assert [goal.reached for goal in result.goals] == [off == 1.0]
    assert scale.cost_model(np.array([10**6, 10**7]), np.array([3.0, 2.0])) == (
        3.0,
        0.0,
    )


MEASURES = ("client_seconds", "worker_seconds", "sent_bytes")


def measures_of_fit(number, rows, workers, tasks):
    """Return what a fit measures whose client needs 1 s and 1.5 ms a group."""
    measures = {
        "rows": rows,
        "workers": workers,
        "passes": 2,
        "tasks": tasks,
        "client_seconds": 1.0 + 1.5e-3 * tasks,
        "worker_seconds": 0.5 * workers + 1e-5 * rows,
        "sent_bytes": 1e6 + 4.0 * rows + 1e6 * (workers - 1),
        "broadcast_bytes": 1e6,
        "journal_bytes": 0,
        "client_mib": 400.0,
        "worker_mib": 300.0,
        "client graph": 1.0,
        "workers graph": 0.0,
    }
    return {f"{name}, {number}": value for name, value in measures.items()}


@pytest.mark.parametrize("off", [1.0, 2.0])
def test_more_workers_than_there_are_follow_the_model(off):
    """Larger tasks take less, and the fit by eight processes costs so many times as much."""
    small = measures_of_fit(0, 10**6, 1, 32) | measures_of_fit(1, 2 * 10**6, 1, 62)
    large = measures_of_fit(0, 10**7, 8, 306)
    large |= {f"{name}, 0": off * large[f"{name}, 0"] for name in MEASURES}
    opened = {"open_seconds": 1e-6, "open_bytes": 100.0, "record_bytes": 25.0}
    labelled = {"write_seconds": 1e-3, "read_back_seconds": 1e-3, "label_bytes": 2e4}
    sent = {"sent_groups": 80, "least_seconds": 1e-3, "most_seconds": 1e-3}
    runs = [
        {"dataset": "fit", "seed": 0} | small,
        {"dataset": "confirm", "seed": 0} | small,
        {"dataset": "confirm", "seed": 1} | large,
        {"dataset": "tasks", "size": 1, "group_seconds": 1.5e-3} | sent,
        {"dataset": "tasks", "size": 8, "group_seconds": 1.5e-3 - 7e-4} | sent,
        {"dataset": "opening"} | opened,
        {"dataset": "labels"} | labelled,
    ]
    result = _beyond.tables(pd.DataFrame(runs).assign(status="ok"))
    confirmed = result.tables["scale-beyond-confirmed"].set_index("figure")
    assert (confirmed["off"] < 0.01).sum() == (6 if off == 1.0 else 3)
    assert sum(goal.reached for goal in result.goals) == (7 if off == 1.0 else 4)
    larger = result.tables["scale-beyond"].set_index(["rows", "workers"])
    assert larger.loc[(10**10, 10), "longest"] == "workers"
    assert larger.loc[(10**10, 1000), "longest"] == "client, scheduler"
    client = larger["client, scheduler, min"]
    assert client[10**10, 1000] < 0.6 * client[10**10, 10]
    assert larger.loc[(10**10, 1000), "groups a task"] == 8
    assert (larger["read, TB"] == 1024 * larger.index.get_level_values(0) / 1e12).all()


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
