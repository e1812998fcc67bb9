"""What tables print: means over seeds, the best of a grid, ratios, slopes and goals; and what is measured."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

import data_loaders
from benchmarks.halves import CONFIRMATION, TUNING, half_of, whole_of
from benchmarks.methods import CPMMC, KMEANS, LGMMC, SKMMC
from benchmarks.protocol import (
    ERROR,
    LABEL_FREE,
    PAPER,
    PAPER_WIDTHS,
    clustering,
    mean_squared_distance,
    run_and_watch,
)
from benchmarks.run import Options
from benchmarks.studies._skmmc import (
    OWN_BASIS,
    WIDTHS_BETWEEN,
    growth_goals,
    runs_of,
    table_of,
)
from benchmarks.tables import (
    Goal,
    best,
    goals_of,
    log_slope,
    over_seeds,
    plain,
    ratio_to,
    verdicts,
)
from mmcnb import InputError
from mmcnb.datasets import SHAPES
from mmcnb.metrics import balanced_clustering_error

# -- statistics ------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_the_slope_of_a_power_is_its_exponent(power):
    n = np.array([10.0, 300.0, 2e4, 5e6])
    assert log_slope(n, 7 * n**power) == pytest.approx((power, power, power))
    value, low, high = log_slope(n[:2], 7 * n[:2] ** power)
    assert value == pytest.approx(power)
    assert np.isnan([low, high]).all()
    assert np.isnan(log_slope([100, 100], [1, 2])).all()


def test_the_interval_of_a_slope_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    n = np.logspace(2, 5, 6)
    slopes = [
        log_slope(n, n * np.exp(rng.normal(scale=0.3, size=6))) for _ in range(400)
    ]
    assert 0.92 < np.mean([slope.low < 1 < slope.high for slope in slopes]) < 0.98


def frame(**columns):
    shared = {
        "n": 9,
        "d": 2,
        "status": "ok",
        "seconds": 1.0,
        "peak_mib": 50.0,
        "parameters": "{}",
    }
    return pd.DataFrame(
        shared | columns, index=range(len(next(iter(columns.values()))))
    )


def test_means_leave_out_what_failed():
    runs = frame(
        method=["a", "a", "a", "b"],
        error=[0.1, 0.3, 9.0, 0.5],
        seconds=[1.0, 3.0, 9.0, 2.0],
    )
    runs.loc[2, "status"] = "failed"
    table = over_seeds(runs, ["method"], "error").set_index("method")
    expected = [0.2, np.std([0.1, 0.3], ddof=1), 2, 2.0]
    assert table.loc[
        "a", ["error", "error sd", "runs", "seconds"]
    ].tolist() == pytest.approx(expected)
    assert np.isnan(table.loc["b", "error sd"])


def test_the_best_of_a_group_is_never_what_is_missing():
    table = frame(
        method=["a", "a", "a", "b"],
        error=[np.nan, 0.3, 0.2, np.nan],
        width=[1, 2, 3, 4],
    )
    assert best(table, ["method"], "error")["width"].tolist() == [3, 4]
    assert best(table, ["method"], "error", largest=True)["width"].tolist() == [2, 4]


def test_ratios_are_to_the_peer_on_the_same_data():
    table = frame(dataset=["x", "y", "z"], seconds=[2.0, 3.0, 1.0])
    peer = frame(dataset=["y", "x"], seconds=[6.0, 1.0])
    assert ratio_to(table, peer).tolist() == pytest.approx(
        [2.0, 0.5, np.nan], nan_ok=True
    )


def test_clusters_of_more_classes_have_no_balanced_error():
    y = np.arange(30) % 3
    labels = np.arange(30) // 15
    assert clustering(y, y) == {"error": 0.0, "ari": 1.0}
    assert clustering(y % 2, labels)[ERROR] == balanced_clustering_error(y % 2, labels)


def test_goals_stand_for_the_figures_that_are_there():
    assert not Goal("nothing measured", float("nan"), 5.0).reached
    assert Goal("agreement", 5.0, 5.0, at_least=True).reached
    assert not Goal("agreement", 4.9, 5.0, at_least=True).reached
    goals = goals_of(
        {"a": 0.12, "b": 0.5}, {"a": 0.12, "b": 0.1, "c": 0.1}, "{}: error", "%"
    )
    table = verdicts(goals)
    assert table["goal"].tolist() == ["a: error", "b: error"]
    assert table["bound"].tolist() == ["<= 12", "<= 10"]
    assert table["verdict"].tolist() == ["reached", "missed"]
    assert "12.5%" in plain(pd.DataFrame({"best error": [0.125], "seconds": [0.5]}))


# -- tables of several studies ---------------------------------------------------------


def test_the_table_takes_the_best_parameters_for_each_protocol():
    narrow, wide = (json.dumps({"n_init": 3, "width": width}) for width in (0.5, 1.0))
    runs = frame(
        dataset=["x"] * 5,
        protocol=[LABEL_FREE, LABEL_FREE, PAPER, PAPER, PAPER],
        method=[KMEANS, SKMMC, SKMMC, SKMMC, SKMMC],
        parameters=["{}", "{}", narrow, narrow, wide],
        **{ERROR: [0.4, 0.3, 0.1, 0.3, 0.15], "seconds": [2.0, 1.0, 1.0, 1.0, 4.0]},
    )
    rows = table_of(runs).set_index(["protocol", "method"])
    assert rows.loc[(PAPER, SKMMC), "parameters"] == '{"width": 1.0}'
    assert rows.loc[(PAPER, SKMMC), [ERROR, "of k-means"]].tolist() == pytest.approx(
        [0.15, 2.0]
    )
    assert rows.loc[(LABEL_FREE, SKMMC), "of k-means"] == 0.5


def test_goals_of_growth_are_of_the_worst_size():
    runs = frame(
        dataset=["small", "small", "large", "large"],
        method=[SKMMC, KMEANS] * 2,
        **{
            "n": [3000, 3000, 30_000, 30_000],
            ERROR: [0.2, 0.4, 0.5, 0.4],
            "seconds": [1.0, 1.0, 10.0, 20.0],
        },
    )
    error, slope, time = growth_goals(
        "adult", table_of(runs.assign(protocol=LABEL_FREE))
    )
    assert (error.figure, slope.figure, time.figure) == pytest.approx((10.0, 1.0, 0.5))
    assert not error.reached


def test_the_papers_grid_is_the_papers(tmp_path):
    runs = list(runs_of("a9a", None, Options(tmp_path)))
    paper = [run for run in runs if run.protocol == PAPER]
    widths = {}
    for run in paper:
        if "width" in run.parameters:
            widths.setdefault(run.method, set()).add(run.parameters["width"])
    of_paper = {SKMMC: set(PAPER_WIDTHS), OWN_BASIS: set(PAPER_WIDTHS)}
    assert widths == of_paper | {"SKMMC, widths between": set(WIDTHS_BETWEEN)}
    kmeans = [run for run in paper if run.method == KMEANS]
    assert len(kmeans) == 20
    assert {run.parameters["n_init"] for run in kmeans} == {1}
    assert {run.parameters["kernel"] for run in paper if run.method == LGMMC} == {
        "linear"
    }
    free = {
        run.method: dict(run.parameters) for run in runs if run.protocol == LABEL_FREE
    }
    assert free == {KMEANS: {"n_init": 10}, CPMMC: {}, SKMMC: {}}


# -- halves of the data sets -----------------------------------------------------------

MADE_OF = {
    "adult": ["a1a", "a9a", "a9a.t"],
    "mnist": ["mnist-train", "mnist-1v7"],
    "usps": ["usps-test", "usps-extended-test", "usps-train-0v1"],
    "agnews": ["agnews-embedded"],
    "moons": ["two-moons", "padded-moons"],
}


def test_a_set_is_in_one_half_with_all_that_is_made_of_its_rows():
    for whole, parts in MADE_OF.items():
        assert {whole_of(name) for name in parts} == {whole}
        assert {half_of(name) for name in parts} == {half_of(whole)}
    for names in (data_loaders.names(), SHAPES):
        assert {half_of(name) for name in names} == {TUNING, CONFIRMATION}


# -- measures --------------------------------------------------------------------------


def test_mean_squared_distance_is_that_of_all_ordered_pairs():
    X = np.random.default_rng(0).normal(size=(30, 4))
    pairs = 2 * pdist(X, "sqeuclidean").sum() / 30**2
    assert (
        mean_squared_distance(X)
        == mean_squared_distance(csr_matrix(X))
        == pytest.approx(pairs, rel=1e-5)
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="peak memory is read from Linux's /proc",
)
def test_peak_memory_counts_children_and_a_command_that_fails_is_told(capfd):
    child = "import time; held = bytearray(100 * 2**20); time.sleep(0.3)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{}}')"
    report, peak = run_and_watch([sys.executable, "-c", parent])
    _, small = run_and_watch(
        [sys.executable, "-c", "import time; time.sleep(0.3); print('{}')"]
    )
    assert report == {}
    assert 100 * 2**20 < peak - small < 200 * 2**20
    with pytest.raises(InputError, match="ended with code 3"):
        run_and_watch([sys.executable, "-c", "raise SystemExit(3)"])
