"""The study of columns: its made tables, its sets and their numbers, what a run records, and its tables."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.libraries import UMAP_DENSITY
from benchmarks.methods import FRONT_DOOR, GOWER, KMEANS
from benchmarks.run import Options, Run
from benchmarks.studies import _columns_costs as costs
from benchmarks.studies import _columns_tables as tables
from benchmarks.studies import columns
from benchmarks.studies._columns_made import CLUSTERS, MIXED_NAMES, ROWS, UNIT_NAMES, made_table
from benchmarks.studies._columns_sets import (
    KINDS,
    METRES,
    MIXED,
    ONE_UNIT,
    REAL,
    SMOKE,
    UNITS,
    WINE,
    Set,
    numbers_of,
    rows_of,
    sets,
)
from data_loaders import names
from mmcnb import open_samples
from mmcnb.metrics import adjusted_rand_index

SETS = {one.name: one for one in sets()}
MADE = [*MIXED_NAMES, *UNIT_NAMES]


# Made tables


@pytest.mark.parametrize("name", MADE)
def test_no_column_of_a_made_table_tells_its_classes_alone(name):
    frame, y = made_table(name)
    k = y.max() + 1
    for title in frame:
        codes, values = pd.factorize(frame[title], sort=True)
        tree = DecisionTreeClassifier(max_leaf_nodes=k, random_state=0)  # k ranges, chosen by the classes
        ranges = tree.fit(codes[:, None], y).predict(codes[:, None])
        assert adjusted_rand_index(y, ranges) < 0.6, title
        if values.size <= 10:
            assert adjusted_rand_index(y, codes) < 0.6, title


@pytest.mark.parametrize("name", ["customers-1", "surveys-7", "soils-2"])
def test_a_made_table_follows_from_its_name_and_its_seed(name):
    frame, y = made_table(name, seed=1)
    again = made_table(name, seed=1)
    pd.testing.assert_frame_equal(frame, again[0])
    np.testing.assert_array_equal(y, again[1])
    other, other_y = made_table(name, seed=2)
    assert len(other) == len(frame)
    assert set(other_y) == set(y)
    assert not other.equals(frame)
    assert len(made_table(name, 50)[0]) == 50


def test_made_tables_are_of_all_sizes_and_of_all_kinds_of_columns():
    found = {name: made_table(name) for name in MADE}
    assert {y.max() + 1 for _, y in found.values()} == {*range(CLUSTERS[0], CLUSTERS[1] + 1)}
    assert all(ROWS[0] <= len(y) <= ROWS[1] for _, y in found.values())
    assert all(np.bincount(y).min() > 0.05 * len(y) for _, y in found.values())
    mixed = {name: found[name][0].dtypes for name in MIXED_NAMES}
    assert all(
        types.map(lambda one: one.kind == "b").any() and types.map(is_text).any() for types in mixed.values()
    )
    assert sum((types.map(lambda one: one.kind) == "M").any() for types in mixed.values()) >= 14
    assert all(
        (found[name][0].dtypes.map(lambda one: one.kind).isin(["i", "f"])).all() for name in UNIT_NAMES
    )
    assert min(found[name][0].skew(numeric_only=True).max() for name in MIXED_NAMES) > 1


def is_text(dtype):
    return dtype.kind == "O" or isinstance(dtype, pd.StringDtype)


# Sets


def test_each_kind_has_enough_sets_in_both_halves():
    kinds = pd.Series({one.name: one.kind for one in SETS.values()})
    counts = kinds.value_counts()
    assert set(counts.index) == set(KINDS)
    assert len(SETS) == len(sets())
    assert counts[MIXED] >= 24
    assert counts[UNITS] >= 12
    assert 20 <= counts[REAL] <= 32
    assert len(ONE_UNIT) >= 25
    assert {*ONE_UNIT, *(name for name in SETS if SETS[name].kind == REAL)} - {WINE} <= {
        *names(),
        *(name for name in ONE_UNIT if name.startswith("spectra")),
    }
    for kind in (MIXED, UNITS):
        halves = pd.Series([one.half for one in SETS.values() if one.kind == kind]).value_counts(
            normalize=True
        )
        assert halves.min() >= 0.4
    assert {(one.kind, one.half) for one in SETS.values()} == {
        (kind, half) for kind in KINDS for half in (TUNING, CONFIRMATION)
    }
    assert set(SMOKE) <= set(SETS)


@pytest.mark.parametrize("name", ["spectra-2", "metres valley-1", "metres two-moons", "two-moons", WINE])
def test_rows_follow_from_the_name_and_the_seed(name):
    rows_of.cache_clear()
    data = rows_of(SETS[name], 150, 3)
    rows_of.cache_clear()
    again = rows_of(SETS[name], 150, 3)
    np.testing.assert_array_equal(data.X, again.X)
    np.testing.assert_array_equal(data.y, again.y)
    assert len(data.X) == len(data.y) == 150
    assert data.y.min() == 0


def test_metres_are_of_one_unit_and_one_column_reaches_farther():
    for one in SETS.values():
        if one.kind == METRES:
            X = rows_of(one, 1000, 0).X
            assert X.shape == (1000, 2)
            assert np.ptp(X[:, 1]) > 1.5 * np.ptp(X[:, 0]) > 400


def test_numbers_of_a_frame_are_its_columns_with_one_for_each_value_of_text():
    frame, _ = made_table("customers-1")
    numbers = numbers_of(frame)
    texts = [name for name in frame if is_text(frame[name].dtype)]
    assert numbers.dtype == np.float64
    assert numbers.shape == (len(frame), frame.shape[1] - len(texts) + frame[texts].nunique().sum())
    last = [name for name in frame if name not in texts].index("joined")
    days = (frame["joined"].max() - frame["joined"].min()).total_seconds()
    assert np.ptp(numbers[:, last]) == days
    X = np.eye(3)
    assert numbers_of(X) is X


# Runs


def runs_of(section, path, **given):
    return [Run(**row) for row in columns.SECTIONS[section].grid(Options(path, **given)).to_dict("records")]


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr("benchmarks.studies.peers.find_spec", lambda module: module)


@pytest.mark.usefixtures("all_installed")
def test_no_run_is_asked_for_twice_and_flags_are_of_the_fits_of_the_sets(tmp_path):
    runs = runs_of("sets", tmp_path)
    identities = {run.identity for run in runs}
    assert len(identities) == len(runs)
    assert {run.dataset for run in runs} == set(SETS)
    ways = {(run.method, run.parameters.get("scale")) for run in runs}
    each = {(method, scale) for method in (FRONT_DOOR, KMEANS) for scale in costs.SCALES}
    assert ways == {*each, (UMAP_DENSITY, None), (GOWER, None)}
    assert {SETS[run.dataset].kind for run in runs if run.method == GOWER} == {MIXED}
    flags = runs_of("flags", tmp_path)
    assert {run.identity for run in flags} == {run.identity for run in runs if run.method == FRONT_DOOR}


def test_quick_runs_take_the_half_for_tuning_and_one_seed(tmp_path):
    runs = runs_of("sets", tmp_path, quick=True)
    assert {SETS[run.dataset].half for run in runs} == {TUNING}
    assert {run.seed for run in runs} == {0}
    smoke = runs_of("sets", tmp_path, quick=True, smoke=True, rows=200)
    assert {run.dataset for run in smoke} == set(SMOKE)


@pytest.mark.parametrize("scale", costs.SCALES)
@pytest.mark.parametrize("method", [FRONT_DOOR, KMEANS])
def test_a_run_takes_a_mixed_frame_with_each_scale(method, scale):
    one = SETS["customers-5"]
    found = columns.compute(
        Run(one.name, method, 0, {"scale": scale}, settings={"rows": 300, "set": list(one)})
    )
    data = rows_of(one, 300, 0)
    assert (found["n"], found["d"]) == numbers_of(data.X).shape
    assert -1 <= found["ari"] <= 1
    if method == FRONT_DOOR:
        assert found["trust"] in ("low", "medium", "high")
        assert found["flagged"] == len([name for name in found["columns"].split(", ") if name])
        assert scale != "auto" or found["ari"] > 0.8
    elif scale == "standard":
        assert found["ari"] > 0.8


def test_gower_takes_the_frame_as_it_is():
    one = Set("sensors-1", "sensors-1", MIXED)
    found = columns.compute(Run(one.name, GOWER, 0, settings={"rows": 300, "set": list(one)}))
    assert found["ari"] > 0.2
    assert found["n"] == 300


def test_units_of_a_store_are_those_of_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "BLOCK", 30)
    costs.write_units(tmp_path / "units.zarr", 50, 4)
    rows = open_samples(tmp_path / "units.zarr").block(0, 50)
    np.testing.assert_array_equal(rows, costs.block_of_units(0, 50, 4).X)
    deviations = rows.std(axis=0)
    assert deviations.max() > 1e4 * deviations.min()


def test_costs_compare_times_and_reads(tmp_path, monkeypatch):
    runs = runs_of("costs", tmp_path, quick=True, rows=300)
    assert {run.settings["rows"] for run in runs} == {300}
    assert [run.settings["rows"] for run in runs_of("costs", tmp_path, rows=10**7)] == [20_000, 10**7]
    frame = pd.DataFrame(
        [
            {"method": run.method, "status": "ok"} | costs.compute(run._replace(folder=str(tmp_path)))
            for run in runs
        ]
    )
    (table,) = costs.tables(frame).tables.values()
    assert table["equal reads"].all()
    np.testing.assert_allclose(table["ratio"], table["seconds"] / table["none_seconds"])


# Tables


def frame_of(rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "scale", "ari", "flagged"])
    return frame.assign(status="ok", seed=0)


ROWS_OF_TABLES = [
    ("magic", FRONT_DOOR, "none", 0.4, 0),
    ("magic", FRONT_DOOR, "standard", 0.5, 0),
    ("magic", FRONT_DOOR, "auto", 0.1, 2),
    ("magic", FRONT_DOOR, "auto", 0.2, 0),
    ("heart", FRONT_DOOR, "none", 0.1, 1),
    ("heart", FRONT_DOOR, "standard", 0.7, 1),
    ("heart", FRONT_DOOR, "auto", 0.9, 0),
    ("heart", KMEANS, "none", 0.3, np.nan),
    ("heart", UMAP_DENSITY, np.nan, 0.6, np.nan),
]


def test_means_are_over_seeds_and_then_over_sets():
    found = tables.tables_of_sets(frame_of(ROWS_OF_TABLES)).tables["columns"].set_index(["kind", "half"])
    row = found.loc[(REAL, TUNING)]
    assert row["sets"] == 2
    assert row["auto"] == pytest.approx((0.15 + 0.9) / 2)
    assert (row[f"{KMEANS}, none"], row[UMAP_DENSITY]) == (0.3, 0.6)
    assert found.loc[(REAL, tables.BOTH), "none"] == pytest.approx(0.25)


def test_changes_are_against_the_better_scale_and_name_the_sets_that_lose(monkeypatch):
    monkeypatch.setattr(tables, "MOST_CHANGES", 0)
    changes = tables.tables_of_sets(frame_of(ROWS_OF_TABLES)).tables["columns-changes"]
    assert changes["dataset"].tolist() == ["magic"]
    assert changes[tables.CHANGE].tolist() == pytest.approx([0.15 - 0.5])
    monkeypatch.setattr(tables, "MOST_CHANGES", 1)
    changes = tables.tables_of_sets(frame_of(ROWS_OF_TABLES)).tables["columns-changes"]
    assert changes["dataset"].tolist() == ["heart", "magic"]
    without = [row for row in ROWS_OF_TABLES if row[2] != "auto"]
    assert "columns-changes" not in tables.tables_of_sets(frame_of(without)).tables


def test_flags_are_counted_among_failed_and_good_partitions():
    ours = [row for row in ROWS_OF_TABLES if row[1] == FRONT_DOOR]
    counts = tables.tables_of_flags(frame_of(ours)).tables["columns-flags"]
    counts = counts.set_index(["kind", "scale", "partition"])
    assert counts.loc[("all", "auto", "failed"), ["runs", "flagged", "share"]].tolist() == [2, 1, 0.5]
    assert counts.loc[(REAL, "auto", "good"), ["runs", "flagged"]].tolist() == [1, 0]
    assert counts.loc[(REAL, "standard", "good"), ["runs", "flagged"]].tolist() == [1, 1]
    assert counts.loc[(REAL, "none", "failed"), ["runs", "flagged"]].tolist() == [1, 1]


def test_the_docstring_names_each_section():
    named = re.findall(r"^([a-z]+)  +\S", columns.__doc__, re.MULTILINE)
    assert named == list(columns.SECTIONS)
