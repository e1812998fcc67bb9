"""Study `small`: its cells are the papers' grid, and its tables say what a choice by the classes is worth."""

import os
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import benchmarks.small as small
from benchmarks._cells import LABEL_FREE, PAPER
from benchmarks._common import Data, Options, load_rows
from benchmarks._compare import ERROR, KMEANS, LGMMC, SKMMC
from benchmarks._journal import Journal
from benchmarks._small_fits import (
    COINS,
    CUT,
    METHODS,
    SKMMC2,
    as_published,
    coin_flips,
    described,
    fitted,
    label_free,
    searched,
)
from mmcnb.metrics import balanced_clustering_error

OPTIONS = Options(Path("results"))
SMOKE = Options(Path("results"), quick=True, seeds=1, rows=80, smoke=True)


@pytest.fixture
def two_blobs(monkeypatch):
    """Two blobs far apart, under every name."""
    random = np.random.default_rng(0)
    y = np.arange(60) % 3 // 2
    data = Data("blobs", random.normal(size=(60, 2)) + 20 * y[:, None], y)
    monkeypatch.setattr("benchmarks._small_fits.load_once", lambda name, rows: data)
    return data


def test_the_paper_s_sets_are_all_asked_for():
    assert len(small.SETS) == 15
    assert set(small.CHOSEN) | set(small.FREE) | set(small.QUICK_SETS) <= set(small.SETS)


@pytest.mark.parametrize("options", [OPTIONS, Options(Path("results"), quick=True), SMOKE])
@pytest.mark.parametrize("name", ["heart", "german"])
def test_cells_differ_and_go_to_other_processes(name, options):
    cells = list(small.cells_of(name, options))
    assert len({cell.identity for cell in cells}) == len(cells)
    assert pickle.loads(pickle.dumps(cells))[-1].identity == cells[-1].identity


def test_the_grid_is_that_of_the_paper():
    cells = [
        cell for cell in small.cells_of("heart", OPTIONS) if cell.method == SKMMC and cell.protocol == PAPER
    ]
    assert {cell.parameters["width"] for cell in cells} == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert all(cell.compute.args[-1] == tuple(range(21)) for cell in cells)
    model = as_published(SKMMC, np.eye(4), np.array([0, 1, 0, 1]), 0, cells[0].parameters, 2)
    assert (model.C, model.eta, model.balance) == (10.0, 0.01, 0.5)


@pytest.mark.parametrize("name", ["heart", "german"])
def test_there_are_as_many_coin_flips_as_runs(name):
    cells = list(small.cells_of(name, OPTIONS))
    ours = [cell for cell in cells if cell.method == SKMMC and cell.protocol == PAPER]
    coins = {cell.parameters["flips"] for cell in cells if cell.method == COINS}
    assert coins == {sum(len(cell.compute.args[-1]) for cell in ours)}


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_two_blobs_by_both_protocols(method, two_blobs):
    given, bounds = small.grid_of("heart", method, OPTIONS)[-1], small.bounds_of(method, SMOKE)
    rows = fitted("blobs", None, method, 0), searched("blobs", None, method, 0, given, bounds)
    for row in rows:
        assert row[ERROR] == 0
        assert row["n"] == 60
        assert row["seconds"] >= 0
        assert row["cpu_seconds"] >= 0


def test_the_second_form_has_a_fixed_threshold():
    given = {"width": 1.0, "starts": "mixed"}
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    assert label_free(SKMMC2, 0).threshold == as_published(SKMMC2, X, y, 0, given).threshold == "fixed"
    assert label_free(SKMMC, 0).threshold == as_published(SKMMC, X, y, 0, given).threshold == "adaptive"


def test_a_search_keeps_the_run_of_least_error_and_other_seeds_start_otherwise(two_blobs, monkeypatch):
    wrong, asked = {0: 9, 10: 3, 20: 6}, []

    class Guess:
        def __init__(self, bound):
            self.bound = bound

        def fit(self, X):
            self.labels_ = two_blobs.y.copy()
            self.labels_[: wrong[self.bound]] ^= 1
            return self

    def guess(method, X, y, seed, given, bound):
        asked.append(seed)
        return Guess(bound)

    monkeypatch.setattr("benchmarks._small_fits.as_published", guess)
    rows = [searched("blobs", None, CUT, seed, {}, (0, 10, 20)) for seed in (0, 1)]
    assert len(set(asked)) == 6
    labels = two_blobs.y.copy()
    labels[:3] ^= 1
    for row in rows:
        assert (row["found_l"], row["runs"]) == (10, 3)
        assert row[ERROR] == balanced_clustering_error(two_blobs.y, labels) < row["mean_error"]


def test_more_coin_flips_reach_a_lower_error(two_blobs):
    few, many = ([coin_flips("blobs", None, flips, seed)[ERROR] for seed in range(9)] for flips in (2, 200))
    assert np.mean(many) < np.mean(few) < 0.5
    assert coin_flips("blobs", None, 5, 3) == coin_flips("blobs", None, 5, 3)


def test_facts_are_shares(two_blobs):
    row = described("blobs", None)
    assert row["imbalance"] == pytest.approx(1 / 3)
    assert row["sparsity"] == 1


def fake(cell, error):
    if cell.compute.func is int:
        return cell
    found = {"n": 9, "d": 2, "seconds": 1.0, "cpu_seconds": 2.0, "peak_mib": 1.0}
    if cell.part == small.FACTS:
        return cell._replace(compute=partial(dict, found, imbalance=0.5, sparsity=0.9))
    return cell._replace(compute=partial(dict, found, mean_error=0.44, **{ERROR: error(cell)}))


def fake_run(tmp_path, monkeypatch, error, options=None):
    """The study with cells that compute nothing."""
    cells_of = small.cells_of
    monkeypatch.setattr(
        small, "cells_of", lambda name, given: [fake(cell, error) for cell in cells_of(name, given)]
    )
    options = options or Options(tmp_path, quick=True)
    with Journal("small", options) as journal:
        return small.run(options, journal)


def by_luck(cell):
    """Coin flips reach .4 to .42, ours .3 on one set and .41 on the others."""
    if cell.method == COINS:
        return 0.4 + 0.001 * cell.seed
    return 0.3 if cell.dataset == "spectf" and cell.method == SKMMC else 0.41


def test_an_error_that_coin_flips_reach_measures_selection(tmp_path, monkeypatch):
    table = fake_run(tmp_path, monkeypatch, by_luck).tables["small-selection"].set_index("dataset")
    assert table["measures"].to_dict() == {
        name: "clustering" if name == "spectf" else "selection" for name in small.QUICK_SETS
    }
    np.testing.assert_allclose(table["coin flips error"], 0.4095)
    np.testing.assert_allclose(table["mean error of its runs"], 0.44)


def test_published_figures_and_both_protocols_stand_together(tmp_path, monkeypatch):
    def error(cell):
        return 0.1 if cell.protocol == LABEL_FREE else 0.2 * cell.parameters.get("width", 1)

    tables = fake_run(tmp_path, monkeypatch, error).tables
    table = tables["small-table2"].set_index(["dataset", "protocol"])
    assert list(table.columns) == [f"{method} error" for method in METHODS]
    assert table.loc[("spectf", "published"), "SKMMC error"] == 0.1863
    assert table.loc[("spectf", PAPER), "SKMMC error"] == pytest.approx(0.05), "not the best width"
    assert (table.loc[(slice(None), LABEL_FREE), :] == 0.1).all(axis=None)
    times = tables["small-table3"].set_index(["dataset", "protocol"])
    assert times.loc[("spectf", "published"), LGMMC] == 1.39
    assert times.loc[("spectf", PAPER), LGMMC] == 2


def test_goals_stand_for_the_sets_that_are_there(tmp_path, monkeypatch):
    goals = fake_run(tmp_path, monkeypatch, lambda cell: 0.11).goals
    assert all(goal.figure == 11 for goal in goals)
    named = {goal.what.partition(":")[0] for goal in goals}
    assert named == set(small.QUICK_SETS)
    verdicts = {goal.what: goal.reached for goal in goals}
    assert verdicts["house-votes: classes known"]
    assert verdicts["house-votes: SKMMC, label-free"]


def test_a_method_that_fails_leaves_a_gap(tmp_path, monkeypatch):
    refusing = partial(int, "too many rows")
    cells_of = small.cells_of

    def some_refuse(name, given):
        cells = cells_of(name, given)
        return [cell._replace(compute=refusing) if cell.method == LGMMC else cell for cell in cells]

    monkeypatch.setattr(small, "cells_of", some_refuse)
    table = fake_run(tmp_path, monkeypatch, lambda cell: 0.2).tables["small-table2"]
    table = table[table["protocol"] != "published"]
    assert table[f"{LGMMC} error"].isna().all()
    assert table[f"{KMEANS} error"].notna().all()


def test_sets_that_are_not_there_are_left_out(tmp_path, monkeypatch):
    def error(cell):
        return 0.2

    cells_of = small.cells_of

    def some_lack(name, given):
        lacking = partial(load_rows, "no such set")
        return [
            cell._replace(compute=lacking) if name == "spectf" else fake(cell, error)
            for cell in cells_of(name, given)
        ]

    monkeypatch.setattr(small, "cells_of", some_lack)
    with Journal("small", Options(tmp_path, quick=True)) as journal:
        result = small.run(Options(tmp_path, quick=True), journal)
    there = set(small.QUICK_SETS) - {"spectf"}
    for table in result.tables.values():
        assert set(table["dataset"]) == there
    assert {goal.what.partition(":")[0] for goal in result.goals} == there


@pytest.mark.real_data
@pytest.mark.skipif("MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data")
def test_a_few_rows_of_a_real_set_go_through(tmp_path):
    options = replace(SMOKE, out=tmp_path)
    with Journal("small", options) as journal:
        tables = small.run(options, journal).tables
    table = tables["small-table2"]
    assert table["protocol"].tolist() == ["published", PAPER, LABEL_FREE]
    assert table.drop(columns=["dataset", "protocol"]).notna().all(axis=None)
    assert pd.read_parquet(tmp_path / "small.parquet")["status"].eq("ok").all()
    facts = tables["small-table1"].iloc[0]
    assert (facts["n"], facts["published n"], facts["d"], facts["published d"]) == (80, 351, 34, 34)
