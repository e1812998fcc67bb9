"""Study `small`: the paper's grid, and what a choice by the classes is worth."""

import numpy as np
import pytest

from benchmarks.__main__ import run_study
from benchmarks.baselines import LinearLabelGenerationMMC
from benchmarks.journal import Journal
from benchmarks.methods import LGMMC, SKMMC, SKMMC2
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, Data
from benchmarks.run import Options, Run, Section
from benchmarks.studies import small
from benchmarks.studies.small import COINS, as_published, label_free

pytestmark = pytest.mark.slow
FOUR = Data("four", np.eye(4), np.array([0, 1, 0, 1]))


def test_the_grid_is_that_of_the_paper_with_as_many_coin_flips_as_runs(tmp_path):
    runs = [
        Run(**row)
        for row in small.grid(Options(tmp_path))
        .query("dataset == 'heart'")
        .to_dict("records")
    ]
    ours = [run for run in runs if run.method == SKMMC and run.protocol == PAPER]
    assert {run.parameters["width"] for run in ours} == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert all(run.settings["bounds"] == tuple(range(21)) for run in ours)
    coins = {run.parameters["flips"] for run in runs if run.method == COINS}
    assert coins == {21 * len(ours)}
    model = as_published(SKMMC, FOUR, 0, ours[0].parameters, 2)
    assert (model.C, model.eta, model.balance) == (10.0, 0.01, 0.5)
    given = {"width": 1.0, "starts": "mixed"}
    assert (
        label_free(SKMMC2, 0).threshold
        == as_published(SKMMC2, FOUR, 0, given).threshold
        == "fixed"
    )
    assert (
        label_free(SKMMC, 0).threshold
        == as_published(SKMMC, FOUR, 0, given).threshold
        == "adaptive"
    )
    # of more than a thousand rows
    linear = small.points_of("spambase", LGMMC, Options(tmp_path))
    assert isinstance(as_published(LGMMC, FOUR, 0, linear[0]), LinearLabelGenerationMMC)


def tables_of(tmp_path, error):
    """The tables of the study, with runs that fit nothing."""

    def compute(run):
        measures = {
            "n": 9,
            "d": 2,
            "seconds": 2.0,
            "cpu_seconds": 2.0,
            "peak_mib": 1.0,
            "rounds": 7,
        }
        if run.part == small.FACTS:
            return measures | {"imbalance": 0.5, "sparsity": 0.9}
        return measures | {"mean_error": 0.44, ERROR: error(run)}

    options = Options(tmp_path, quick=True)
    with Journal("small", options, "of today") as journal:
        return run_study(Section(small.grid, compute, small.tables), options, journal)


def test_an_error_that_coin_flips_reach_measures_selection(tmp_path):
    def by_luck(run):
        """Coin flips reach .4 to .42, ours .3 on one set and .41 on the others."""
        if run.method == COINS:
            return 0.4 + 0.001 * run.seed
        return 0.3 if run.dataset == "spectf" and run.method == SKMMC else 0.41

    table = tables_of(tmp_path, by_luck).tables["small-selection"].set_index("dataset")
    selection = dict.fromkeys(small.QUICK_SETS, "selection")
    assert table["measures"].to_dict() == selection | {"spectf": "clustering"}
    np.testing.assert_allclose(table["coin flips error"], 0.4095)
    np.testing.assert_allclose(table["mean error of its runs"], 0.44)


def test_published_figures_and_both_protocols_stand_together_and_failures_leave_gaps(
    tmp_path,
):
    def error(run):
        if run.method == LGMMC:
            raise ValueError("too many rows")
        return (
            0.1 if run.protocol == LABEL_FREE else 0.2 * run.parameters.get("width", 1)
        )

    result = tables_of(tmp_path, error)
    table = result.tables["small-table2"].set_index(["dataset", "protocol"])
    assert table.loc[("spectf", "published"), "SKMMC error"] == 0.1863
    assert table.loc[("spectf", PAPER), "SKMMC error"] == pytest.approx(0.05)
    assert (table.loc[(slice(None), LABEL_FREE), "SKMMC error"] == 0.1).all()
    assert table.loc[(slice(None), PAPER), f"{LGMMC} error"].isna().all()
    times = result.tables["small-table3"].set_index(["dataset", "protocol"])
    assert times.loc[("spectf", "published"), LGMMC] == 1.39
    assert times.loc[("spectf", PAPER), SKMMC] == 2
    rounds = result.tables["small-iterations"].set_index(["dataset", "protocol"])
    assert rounds.loc[("spectf", PAPER), SKMMC] == 7
    assert {goal.what.partition(":")[0] for goal in result.goals} == set(
        small.QUICK_SETS
    )


def test_halves_of_a_file_that_is_sorted_by_class_are_its_classes(monkeypatch):
    sorted_by_class = Data("sorted", np.eye(40), np.repeat([0, 1], 20))
    monkeypatch.setattr(Run, "data", sorted_by_class)
    measures = small.compute_order(Run("sorted", "", 0, {"width": 0.25}))
    assert (measures["order_error"], measures[ERROR]) == (0.0, 0.0)
    assert measures["rounds"] == 1


def test_the_basis_of_the_paper_runs_as_printed(tmp_path):
    runs = small.grid_of_basis(Options(tmp_path)).query("dataset == 'heart'")
    assert [point["width"] for point in runs["parameters"]] == [
        0.25,
        0.5,
        1.0,
        2.0,
        4.0,
    ]
    run = Run(**runs.iloc[0].to_dict())
    model = as_published(run.method, FOUR, 0, run.parameters, 2)
    assert (model.basis, model.C, model.eta, model.balance) == ("paper", 10.0, 1.0, 0.5)
    assert model.continuation is False
