"""Statistics over seeds, tables and goals of the studies that compare SKMMC with others, and their runs."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.methods import CPMMC, KMEANS, LGMMC, SKMMC
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, PAPER_WIDTHS, clustering, size_of
from benchmarks.run import Options, Run
from benchmarks.studies import adult, engine, eta, mnist, peers, small, usps
from benchmarks.studies._skmmc import (
    OWN_BASIS,
    WIDTHS_BETWEEN,
    excess_of,
    growth_goals,
    runs_of,
    slopes_of,
    table_of,
)
from benchmarks.tables import best, log_slope, over_seeds, ratio_to
from mmcnb.metrics import balanced_clustering_error

# Statistics


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_slope_of_a_power_is_its_exponent(power):
    n = np.array([10.0, 300.0, 2e4, 5e6])
    assert log_slope(n, 7 * n**power) == pytest.approx((power, power, power))


def test_the_interval_of_a_slope_holds_the_truth_as_often_as_it_says():
    rng, n = np.random.default_rng(0), np.logspace(2, 5, 6)
    found = [log_slope(n, n * np.exp(rng.normal(scale=0.3, size=6))) for _ in range(400)]
    held = np.mean([slope.low < 1 < slope.high for slope in found])
    assert 0.92 < held < 0.98


@pytest.mark.parametrize("sizes", [[], [100], [100, 100]])
def test_no_slope_is_told_of_a_single_size(sizes):
    assert np.isnan(log_slope(sizes, np.ones(len(sizes)))).all()


def test_two_sizes_have_a_slope_without_interval():
    slope = log_slope([10, 100], [1, 10])
    assert slope.value == pytest.approx(1)
    assert np.isnan([slope.low, slope.high]).all()


def frame(**columns):
    shared = {"n": 9, "d": 2, "status": "ok", "seconds": 1.0, "peak_mib": 50.0, "parameters": "{}"}
    return pd.DataFrame(shared | columns, index=range(len(next(iter(columns.values())))))


def test_means_leave_out_what_failed():
    runs = frame(method=["a", "a", "a", "b"], error=[0.1, 0.3, np.nan, 0.5], seconds=[1.0, 3.0, np.nan, 2.0])
    runs.loc[2, "status"] = "failed"
    table = over_seeds(runs, ["method"], "error").set_index("method")
    assert table.loc["a", ["error", "error sd", "runs", "seconds"]].tolist() == pytest.approx(
        [0.2, np.std([0.1, 0.3], ddof=1), 2, 2.0]
    )
    assert np.isnan(table.loc["b", "error sd"])


def test_the_best_of_a_group_is_its_least_and_never_what_is_missing():
    table = frame(method=["a", "a", "b"], error=[np.nan, 0.3, np.nan], width=[1, 2, 3])
    assert best(table, ["method"], "error")["width"].tolist() == [2, 3]


def test_ratios_are_to_the_peer_on_the_same_data():
    table = frame(dataset=["x", "y", "z"], seconds=[2.0, 3.0, 1.0])
    peer = frame(dataset=["y", "x"], seconds=[6.0, 1.0])
    assert ratio_to(table, peer).tolist() == pytest.approx([2.0, 0.5, np.nan], nan_ok=True)


def test_clusters_of_more_classes_have_no_balanced_error():
    y = np.arange(30) % 3
    assert clustering(y, y) == {"error": 0.0, "ari": 1.0}
    two, labels = y % 2, np.arange(30) // 15
    assert clustering(two, labels)[ERROR] == balanced_clustering_error(two, labels)


# Tables and goals


def sizes_frame(errors, seconds):
    """Runs of SKMMC and k-means at two sizes, label-free."""
    rows = [
        {
            "dataset": f"a{n}",
            "n": n,
            "method": method,
            ERROR: errors[method][k],
            "seconds": seconds[method][k],
        }
        for k, n in enumerate((3000, 30_000))
        for method in (SKMMC, KMEANS)
    ]
    return frame(**pd.DataFrame(rows).assign(protocol=LABEL_FREE).to_dict("list"))


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
    assert rows.loc[(PAPER, SKMMC), [ERROR, "of k-means"]].tolist() == pytest.approx([0.15, 2.0])
    assert rows.loc[(LABEL_FREE, SKMMC), "of k-means"] == 0.5


@pytest.mark.parametrize(("ours", "reached"), [((0.2, 0.3), True), ((0.2, 0.5), False)])
def test_goals_are_of_the_worst_size(ours, reached):
    table = table_of(
        sizes_frame({SKMMC: ours, KMEANS: (0.4, 0.4)}, {SKMMC: (1.0, 10.0), KMEANS: (1.0, 20.0)})
    )
    error, slope, time = growth_goals("adult", table)
    assert error.reached == reached
    assert error.figure == pytest.approx(100 * max(np.subtract(ours, 0.4)))
    assert (slope.figure, time.figure) == pytest.approx((1.0, 0.5))


def test_small_sizes_are_not_judged_and_a_lone_size_has_no_slope():
    runs = sizes_frame({SKMMC: (0.5, 0.5), KMEANS: (0.4, 0.4)}, {SKMMC: (1, 1), KMEANS: (1, 1)})
    small = table_of(runs.assign(n=[1000, 1000, 2000, 2000]))
    assert [goal.what for goal in growth_goals("adult", small)] == [
        "adult, label-free: slope of time",
        "adult, label-free: time at 2,000 rows",
    ]
    assert slopes_of(small[small["n"] == 1000]).empty
    assert excess_of(small)[1000] == pytest.approx(0.1)


# Runs


@pytest.mark.parametrize("options", [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200}])
@pytest.mark.parametrize(
    "grid",
    [adult.grid, engine.peers_grid, eta.grid, mnist.grid, peers.grid, small.grid, usps.grid],
    ids=["adult", "engine", "eta", "mnist", "peers", "small", "usps"],
)
def test_a_study_asks_for_no_run_twice(grid, options, tmp_path):
    frame = grid(Options(tmp_path, **options))
    assert list(frame.columns) == list(Run._fields)
    identities = [Run(**row).identity for row in frame.to_dict("records")]
    assert len(set(identities)) == len(identities) > 0
    assert set(frame["protocol"]) == ({LABEL_FREE} if grid is peers.grid else {LABEL_FREE, PAPER})


def test_the_papers_grid_is_the_papers(tmp_path):
    runs = list(runs_of("a9a", None, Options(tmp_path)))
    widths = {
        method: {run.parameters["width"] for run in runs if run.method == method and run.protocol == PAPER}
        for method in {run.method for run in runs if "width" in run.parameters}
    }
    of_paper = {key: set(PAPER_WIDTHS) for key in (SKMMC, OWN_BASIS)}
    assert widths == of_paper | {"SKMMC, widths between": set(WIDTHS_BETWEEN)}
    kmeans = [run for run in runs if run.method == KMEANS and run.protocol == PAPER]
    assert len(kmeans) == 20
    assert {run.parameters["n_init"] for run in kmeans} == {1}
    free = [run for run in runs if run.protocol == LABEL_FREE]
    assert {run.method: dict(run.parameters) for run in free} == {
        KMEANS: {"n_init": 10},
        CPMMC: {},
        SKMMC: {},
    }


def test_label_generation_has_a_kernel_matrix_on_few_rows_and_columns_on_more(tmp_path):
    def given(name, rows):
        runs = [run for run in runs_of(name, rows, Options(tmp_path)) if run.method == LGMMC]
        return {(run.protocol, run.parameters.get("kernel", "rbf")) for run in runs}

    linear = (PAPER, "linear")
    assert given("a9a", 1000) == {(LABEL_FREE, "rbf"), linear}
    assert given("a9a", 1001) == given("a9a", None) == {linear}
    assert given("usps-extended", None) == set()


def test_sizes_are_those_of_the_figures(tmp_path):
    names = adult.grid(Options(tmp_path))["dataset"].unique()
    assert [size_of(name) for name in names] == [1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696, 32561]
    assert usps.sizes(None) == [1000, 3000, 10_000, 30_000, 100_000, None]
    assert size_of(usps.NAME) == 266_079
