"""The study of rows without structure: its clouds, shares of false alarms, and the fit of the constants."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.run import Options, Run
from benchmarks.studies import _no_structure as clouds
from benchmarks.studies import _no_structure_constants as constants
from benchmarks.studies import no_structure
from benchmarks.studies._no_structure import KINDS, Cloud, clouds_of, rows_of

SCALES = [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200}]


# Clouds


@pytest.mark.parametrize("kind", KINDS)
def test_a_cloud_follows_from_its_name_and_its_seed(kind):
    cloud = Cloud(kind, 50, 3)
    X = rows_of(cloud, 1)
    assert (X.shape, X.dtype) == ((50, 3), np.float32)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, rows_of(cloud, 1))
    assert not np.isin(X, rows_of(cloud, 2)).all()


def test_neighbouring_columns_of_correlated_rows_correlate_and_all_have_deviation_1():
    X = rows_of(Cloud("correlated Gaussian", 20_000, 6), 0)
    found = np.corrcoef(X.T)
    assert np.diag(found, 1) == pytest.approx(np.full(5, clouds.CORRELATION), abs=0.03)
    assert found[0, 5] == pytest.approx(clouds.CORRELATION**5, abs=0.03)
    assert X.std(axis=0) == pytest.approx(np.ones(6), abs=0.03)


def test_a_ball_is_filled_evenly():
    lengths = np.linalg.norm(rows_of(Cloud("uniform ball", 20_000, 4), 0), axis=1)
    assert lengths.max() <= 1
    assert (lengths < 0.5).mean() == pytest.approx(0.5**4, abs=0.01)


def test_a_hundred_clouds_have_all_kinds_and_shapes_and_few_are_large():
    every = clouds_of(Options("out"))
    assert len(set(every)) == len(every) == 100
    assert {cloud.kind for cloud in every} == set(KINDS)
    assert {cloud.columns for cloud in every} >= {2, 50}
    assert (min(cloud.rows for cloud in every), max(cloud.rows for cloud in every)) == (100, 100_000)
    assert sum(cloud.rows > 10_000 for cloud in every) == 4
    assert {cloud.half for cloud in every} == {TUNING, CONFIRMATION}


@pytest.mark.parametrize("section", no_structure.SECTIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_no_run_is_asked_for_twice_and_rows_are_within_the_bound(section, scale, tmp_path):
    grid = no_structure.SECTIONS[section].grid(Options(tmp_path, **scale))
    runs = [Run(**row) for row in grid.to_dict("records")]
    assert len({run.identity for run in runs}) == len(runs)
    most = scale.get("rows") or (1000 if scale else 100_000)
    assert max(Cloud(*run.settings["cloud"]).rows for run in runs) <= most
    fewest = Options(tmp_path, **scale | {"rows": 20})
    assert {Cloud(*one["cloud"]).rows for one in no_structure.SECTIONS[section].grid(fewest)["settings"]} == {
        20
    }


def test_false_alarms_are_shares_and_a_high_trust_in_one_cluster_is_none():
    rows = [("uniform, 100 x 2", 100, 2, 1, "high"), ("uniform, 300 x 2", 300, 2, 3, "high")]
    rows += [("Laplace, 100 x 5", 100, 5, 2, "low"), ("Laplace, 300 x 5", 300, 5, 1, "low")]
    frame = pd.DataFrame(rows, columns=["dataset", "n", "d", "clusters", "trust"]).assign(status="ok")
    result = clouds.tables(frame, "alarms")
    table = result.tables["alarms"].set_index(["by", "of"])
    assert table.loc[("", "all")].tolist() == [4, 0.5, 0.25]
    assert table.loc[("kind", "Laplace")].tolist() == [2, 0.5, 0]
    assert table.loc[("rows", "100"), clouds.MORE_THAN_ONE] == 0.5
    assert [goal.reached for goal in result.goals] == [False]


# Constants

LOSS = np.array([0.3, 0.1, 2.3, -0.1, -0.7, -0.5, -0.05, 0.6, 0, 0.03, -0.06, -1.2, 0.03, -0.02, 0, 0.03])
SPREAD = np.array([-2.9, 1.5, 0.2, -0.4, -0.4, 0.3])


def simulated(rows=20_000):
    """Partitions whose losses follow given formulas."""
    random = np.random.default_rng(0)
    n = np.exp(random.uniform(np.log(100), np.log(20_000), rows))
    k = np.exp(random.uniform(np.log(2), np.log(n / 6)))
    d = random.uniform(1.01, 40, rows)
    table = pd.DataFrame({"n": n, "k": k, "H": np.log(k) * random.uniform(0.7, 1, rows), "d": d})
    width = np.exp(constants.spread_features(table) @ SPREAD)
    left = width * random.standard_normal(rows)
    return table.assign(L=np.exp(constants.loss_features(table) @ LOSS - left))


def test_the_fit_finds_the_formulas_that_losses_follow():
    table = simulated()
    loss, spread = constants.fitted(table)
    off = constants.loss_features(table) @ (loss - LOSS)
    assert np.sqrt(np.mean(off**2)) < 0.01
    wrong = constants.spread_features(table) @ (spread - SPREAD)
    assert np.sqrt(np.mean(wrong**2)) < 0.05
    assert (loss.shape, spread.shape) == ((len(constants.LOSS),), (len(constants.SPREAD),))


def test_a_smaller_loss_is_more_significant_in_units_of_the_spread():
    table = simulated(1000)
    z = constants.significance(table, LOSS, SPREAD)
    wide = np.exp(constants.spread_features(table) @ SPREAD) * constants.SPREADS > constants.LEAST_SPREAD
    assert wide.any()
    assert z[wide].std() == pytest.approx(1 / constants.SPREADS, abs=0.05)
    half = table.assign(L=table["L"] / 2)
    assert (constants.significance(half, LOSS, SPREAD) > z).all()


def test_features_are_products_of_the_named_terms():
    table = pd.DataFrame({"n": [1000.0], "k": [5.0], "H": [1.5], "d": [4.0]})
    terms = {"1": 1.0, "i": 0.25, "u": np.log(200), "l": np.log(5), "H": 1.5}
    for name, value in zip(constants.LOSS, constants.loss_features(table)[0], strict=True):
        factors = re.findall(r"([1iulH])(²?)", name)
        assert value == pytest.approx(
            np.prod([terms[one] ** (2 if square else 1) for one, square in factors])
        )
    assert constants.spread_features(table)[0].tolist() == pytest.approx(
        [1, 0.25, np.log(1000), 0.25 * np.log(1000), 1.5, 1.5 / 4]
    )


def test_constants_are_of_one_half_and_both_halves_are_judged():
    shapes = ((kind, rows, columns) for kind in KINDS for rows in (100, 300) for columns in (2, 5))
    names = [Cloud(*shape).name for shape in shapes]
    parts = np.array_split(simulated(2400)[constants.PARTITION].to_numpy(), len(names))
    found = [json.dumps(part.tolist()) for part in parts]
    frame = pd.DataFrame({"dataset": names, "partitions": found}).assign(status="ok", seed=0)
    tables = constants.tables(frame).tables
    table = constants.partitions_of(frame)
    expected = constants.fitted(table[table["half"] == TUNING])
    np.testing.assert_array_equal(tables["no-structure-constants"]["constant"], np.concatenate(expected))
    judged = tables["no-structure-fit"]
    whole = judged[judged["by"] == ""].set_index("half")["sets"]
    assert whole.sum() == len(names)
    assert set(whole.index) == {TUNING, CONFIRMATION}


def test_the_docstring_names_each_section():
    named = re.findall(r"^([a-z]+)  +\S", no_structure.__doc__, re.MULTILINE)
    assert named == list(no_structure.SECTIONS)
