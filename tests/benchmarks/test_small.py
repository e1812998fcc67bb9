"""Study `small`: its runs are the papers' grid, and its tables say what a choice by the classes is worth."""

import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import run_study
from benchmarks.baselines import LinearLabelGenerationMMC
from benchmarks.journal import Journal
from benchmarks.methods import CUT, KMEANS, LGMMC, SKMMC, SKMMC2
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, Data, NoData
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.published import figure
from benchmarks.run import Options, Run
from benchmarks.studies import small
from benchmarks.studies.small import COINS, METHODS, as_published, coin_flips, label_free
from mmcnb.metrics import balanced_clustering_error

OPTIONS = Options(Path("results"))
QUICK = Options(Path("results"), quick=True)
SMOKE = Options(Path("results"), quick=True, seeds=1, rows=80, smoke=True)
FOUR = Data("four", np.eye(4), np.array([0, 1, 0, 1]))


@pytest.fixture
def two_blobs(monkeypatch):
    """Two blobs far apart, under every name."""
    random = np.random.default_rng(0)
    y = np.arange(60) % 3 // 2
    data = Data("blobs", random.normal(size=(60, 2)) + 20 * y[:, None], y)
    monkeypatch.setattr("benchmarks.run.load_once", lambda name, rows: data)
    return data


def runs_of(name, options, monkeypatch):
    monkeypatch.setattr(small, "SETS", (name,))
    monkeypatch.setattr(small, "QUICK_SETS", (name,))
    monkeypatch.setattr(small, "SMOKE_SETS", (name,))
    return [Run(**row) for row in small.grid(options).to_dict("records")]


def test_the_paper_s_sets_are_all_asked_for():
    assert len(small.SETS) == 15
    assert set(small.CHOSEN) | set(small.FREE) | set(small.QUICK_SETS) <= set(small.SETS)


@pytest.mark.parametrize("options", [OPTIONS, QUICK, SMOKE])
@pytest.mark.parametrize("name", ["heart", "german"])
def test_runs_differ_and_go_to_other_processes(name, options, monkeypatch):
    runs = runs_of(name, options, monkeypatch)
    assert len({run.identity for run in runs}) == len(runs)
    assert pickle.loads(pickle.dumps(runs))[-1].identity == runs[-1].identity
    assert pickle.loads(pickle.dumps(small.compute)) is small.compute


def test_the_grid_is_that_of_the_paper(monkeypatch):
    runs = [
        run for run in runs_of("heart", OPTIONS, monkeypatch) if run.method == SKMMC and run.protocol == PAPER
    ]
    assert {run.parameters["width"] for run in runs} == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert all(run.settings["bounds"] == tuple(range(21)) for run in runs)
    model = as_published(SKMMC, FOUR, 0, runs[0].parameters, 2)
    assert (model.C, model.eta, model.balance) == (10.0, 0.01, 0.5)


@pytest.mark.parametrize("name", ["heart", "german"])
def test_there_are_as_many_coin_flips_as_runs(name, monkeypatch):
    runs = runs_of(name, OPTIONS, monkeypatch)
    ours = [run for run in runs if run.method == SKMMC and run.protocol == PAPER]
    coins = {run.parameters["flips"] for run in runs if run.method == COINS}
    assert coins == {sum(len(run.settings["bounds"]) for run in ours)}


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_two_blobs_by_both_protocols(method, two_blobs):
    point = small.points_of("heart", method, OPTIONS)[-1]
    settings = {"rows": None, "bounds": small.bounds_of(method, SMOKE)}
    for run in (
        Run("heart", method, 0, settings=settings),
        Run("heart", method, 0, point, PAPER, settings=settings),
    ):
        row = small.compute(run)
        assert row[ERROR] == 0
        assert row["n"] == 60
        assert row["seconds"] >= 0
        assert row["cpu_seconds"] >= 0
        assert row.get("rounds", 0) >= 1 or method in (KMEANS, CUT)


def test_label_generation_is_linear_above_a_thousand_rows(monkeypatch):
    runs = [run for run in runs_of("spambase", OPTIONS, monkeypatch) if run.method == LGMMC]
    assert {run.protocol for run in runs} == {PAPER}
    models = [as_published(LGMMC, FOUR, 0, run.parameters) for run in runs]
    assert all(isinstance(model, LinearLabelGenerationMMC) for model in models)
    assert [model.C for model in models] == [0.01, 0.1, 1.0]


def test_the_second_form_has_a_fixed_threshold():
    given = {"width": 1.0, "starts": "mixed"}
    assert label_free(SKMMC2, 0).threshold == as_published(SKMMC2, FOUR, 0, given).threshold == "fixed"
    assert label_free(SKMMC, 0).threshold == as_published(SKMMC, FOUR, 0, given).threshold == "adaptive"


def test_a_search_keeps_the_run_of_least_error_and_other_seeds_start_otherwise(two_blobs, monkeypatch):
    wrong, asked = {0: 9, 10: 3, 20: 6}, []

    class Guess:
        def __init__(self, bound):
            self.bound = bound

        def fit(self, X):
            self.labels_ = two_blobs.y.copy()
            self.labels_[: wrong[self.bound]] ^= 1
            return self

    def guess(method, data, seed, point, bound):
        asked.append(seed)
        return Guess(bound)

    monkeypatch.setattr(small, "as_published", guess)
    settings = {"bounds": (0, 10, 20)}
    rows = [small.compute(Run("heart", CUT, seed, {}, PAPER, settings=settings)) for seed in (0, 1)]
    assert len(set(asked)) == 6
    labels = two_blobs.y.copy()
    labels[:3] ^= 1
    for row in rows:
        assert (row["found_l"], row["runs"]) == (10, 3)
        assert row[ERROR] == balanced_clustering_error(two_blobs.y, labels) < row["mean_error"]


def test_more_coin_flips_reach_a_lower_error(two_blobs):
    y = two_blobs.y
    few, many = ([coin_flips(y, flips, seed) for seed in range(9)] for flips in (2, 200))
    assert np.mean(many) < np.mean(few) < 0.5
    found = small.compute(Run("heart", COINS, 3, {"flips": 5}, PAPER))
    assert found[ERROR] == coin_flips(y, 5, 3)


def test_facts_are_shares(two_blobs):
    row = small.compute(Run("heart", "", 0, part=small.FACTS))
    assert row["imbalance"] == pytest.approx(1 / 3)
    assert row["sparsity"] == 1


def found_of(run, error):
    found = {"n": 9, "d": 2, "seconds": 1.0, "cpu_seconds": 2.0, "peak_mib": 1.0, "rounds": 7}
    if run.part == small.FACTS:
        return found | {"imbalance": 0.5, "sparsity": 0.9}
    return found | {"mean_error": 0.44, ERROR: error(run)}


def fake_study(tmp_path, monkeypatch, error):
    """The study with runs that fit nothing."""
    monkeypatch.setattr(small, "compute", lambda run: found_of(run, error))
    options = Options(tmp_path, quick=True)
    with Journal("small", options, "of today") as journal:
        return run_study(small, options, journal)


def by_luck(run):
    """Coin flips reach .4 to .42, ours .3 on one set and .41 on the others."""
    if run.method == COINS:
        return 0.4 + 0.001 * run.seed
    return 0.3 if run.dataset == "spectf" and run.method == SKMMC else 0.41


def test_an_error_that_coin_flips_reach_measures_selection(tmp_path, monkeypatch):
    table = fake_study(tmp_path, monkeypatch, by_luck).tables["small-selection"].set_index("dataset")
    assert table["measures"].to_dict() == {
        name: "clustering" if name == "spectf" else "selection" for name in small.QUICK_SETS
    }
    np.testing.assert_allclose(table["coin flips error"], 0.4095)
    np.testing.assert_allclose(table["mean error of its runs"], 0.44)


def test_published_figures_and_both_protocols_stand_together(tmp_path, monkeypatch):
    def error(run):
        return 0.1 if run.protocol == LABEL_FREE else 0.2 * run.parameters.get("width", 1)

    tables = fake_study(tmp_path, monkeypatch, error).tables
    table = tables["small-table2"].set_index(["dataset", "protocol"])
    assert list(table.columns) == [f"{method} error" for method in METHODS]
    assert table.loc[("spectf", "published"), "SKMMC error"] == 0.1863
    assert table.loc[("spectf", PAPER), "SKMMC error"] == pytest.approx(0.05), "not the best width"
    assert (table.loc[(slice(None), LABEL_FREE), :] == 0.1).all(axis=None)
    times = tables["small-table3"].set_index(["dataset", "protocol"])
    assert times.loc[("spectf", "published"), LGMMC] == 1.39
    assert times.loc[("spectf", PAPER), LGMMC] == 2
    rounds = tables["small-iterations"].set_index(["dataset", "protocol"])
    assert rounds.loc[("spectf", "published"), SKMMC] == figure(SKMMC_PAPER, "spectf", SKMMC, "iterations")
    assert rounds.loc[("spectf", PAPER), SKMMC] == 7


def test_goals_stand_for_the_sets_that_are_there(tmp_path, monkeypatch):
    goals = fake_study(tmp_path, monkeypatch, lambda run: 0.11).goals
    assert all(goal.figure == 11 for goal in goals)
    named = {goal.what.partition(":")[0] for goal in goals}
    assert named == set(small.QUICK_SETS)
    verdicts = {goal.what: goal.reached for goal in goals}
    assert verdicts["house-votes: classes known"]
    assert verdicts["house-votes: SKMMC, label-free"]


def test_a_method_that_fails_leaves_a_gap(tmp_path, monkeypatch):
    def error(run):
        return int("too many rows") if run.method == LGMMC else 0.2

    table = fake_study(tmp_path, monkeypatch, error).tables["small-table2"]
    table = table[table["protocol"] != "published"]
    assert table[f"{LGMMC} error"].isna().all()
    assert table[f"{KMEANS} error"].notna().all()


def test_missing_sets_are_left_out(tmp_path, monkeypatch):
    def some_lack(run, error):
        if run.dataset == "spectf":
            raise NoData("no such set.")
        return found_of(run, error)

    monkeypatch.setattr(small, "compute", lambda run: some_lack(run, lambda run: 0.2))
    options = Options(tmp_path, quick=True)
    with Journal("small", options, "of today") as journal:
        result = run_study(small, options, journal)
    there = set(small.QUICK_SETS) - {"spectf"}
    for table in result.tables.values():
        assert set(table["dataset"]) == there
    assert {goal.what.partition(":")[0] for goal in result.goals} == there


@pytest.mark.real_data
@pytest.mark.skipif("MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data")
def test_a_few_rows_of_a_real_set_go_through(tmp_path):
    options = replace(SMOKE, out=tmp_path)
    with Journal("small", options, "of today") as journal:
        tables = run_study(small, options, journal).tables
    table = tables["small-table2"]
    assert table["protocol"].tolist() == ["published", PAPER, LABEL_FREE]
    assert table.drop(columns=["dataset", "protocol"]).notna().all(axis=None)
    assert pd.read_parquet(tmp_path / "small.parquet")["status"].eq("ok").all()
    facts = tables["small-table1"].iloc[0]
    assert (facts["n"], facts["published n"], facts["d"], facts["published d"]) == (80, 351, 34, 34)
