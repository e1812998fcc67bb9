"""The study of rows without structure: shares of false alarms, and the fit of the constants."""

import runpy
import shutil

import numpy as np
import pandas as pd
import pytest

from benchmarks.studies import _no_structure as clouds
from benchmarks.studies import _no_structure_constants as constants

pytestmark = pytest.mark.slow


def test_false_alarms_are_shares_and_a_high_trust_in_one_cluster_is_none():
    rows = [
        ("uniform, 100 x 2", 100, 2, 1, "high"),
        ("uniform, 300 x 2", 300, 2, 3, "high"),
    ]
    rows += [
        ("Laplace, 100 x 5", 100, 5, 2, "low"),
        ("Laplace, 300 x 5", 300, 5, 1, "low"),
    ]
    frame = pd.DataFrame(
        rows, columns=["dataset", "n", "d", "clusters", "trust"]
    ).assign(status="ok")
    result = clouds.tables(frame, "alarms")
    table = result.tables["alarms"].set_index(["by", "of"])
    assert table.loc[("", "all")].tolist() == [4, 0.5, 0.25]
    assert table.loc[("kind", "Laplace")].tolist() == [2, 0.5, 0]
    assert table.loc[("rows", "100"), clouds.MORE_THAN_ONE] == 0.5
    assert [goal.reached for goal in result.goals] == [False]


LOSS = np.array(
    [
        0.3,
        0.1,
        2.3,
        -0.1,
        -0.7,
        -0.5,
        -0.05,
        0.6,
        0,
        0.03,
        -0.06,
        -1.2,
        0.03,
        -0.02,
        0,
        0.03,
    ]
)
SPREAD = np.array([-2.9, 1.5, 0.2, -0.4, -0.4, 0.3])


def simulated(rows):
    """Partitions whose losses follow given formulas."""
    random = np.random.default_rng(0)
    n = np.exp(random.uniform(np.log(100), np.log(20_000), rows))
    k = np.exp(random.uniform(np.log(2), np.log(n / 6)))
    table = pd.DataFrame(
        {"n": n, "k": k, "H": np.log(k) * random.uniform(0.7, 1, rows)}
    )
    table["d"] = random.uniform(1.01, 40, rows)
    left = np.exp(constants.spread_features(table) @ SPREAD) * random.standard_normal(
        rows
    )
    return table.assign(L=np.exp(constants.loss_features(table) @ LOSS - left))


def test_the_fit_finds_the_formulas_that_losses_follow():
    table = simulated(20_000)
    loss, spread = constants.fitted(table)
    assert np.std(constants.loss_features(table) @ (loss - LOSS)) < 0.01
    assert np.std(constants.spread_features(table) @ (spread - SPREAD)) < 0.05
    z = constants.significance(table, LOSS, SPREAD)
    halved = constants.significance(table.assign(L=table["L"] / 2), LOSS, SPREAD)
    assert (halved > z).all()
    wide = (
        np.exp(constants.spread_features(table) @ SPREAD) * constants.SPREADS
        > constants.LEAST_SPREAD
    )
    assert z[wide].std() == pytest.approx(1 / constants.SPREADS, abs=0.05)


def test_fitted_constants_are_written_into_the_module(tmp_path):
    path = tmp_path / "no_structure.py"
    shutil.copy(constants.COEFFICIENTS_FILE, path)
    names = {"log L": list(constants.loss_table(simulated(5)))}
    names["spread"] = list(constants.spread_table(simulated(5)))
    rows = [
        (formula, name, number + 0.25)
        for formula in names
        for number, name in enumerate(names[formula])
    ]
    table = pd.DataFrame(rows, columns=["formula", "feature", "constant"])
    constants.write_coefficients(table, path)
    written = runpy.run_path(str(path))
    before = runpy.run_path(constants.COEFFICIENTS_FILE)
    assert list(written["LOG_LOSS"]) == list(before["LOG_LOSS"]) == names["log L"]
    assert list(written["LOG_SPREAD"].values()) == [0.25, 1.25, 2.25, 3.25, 4.25, 5.25]
    assert written["LOG_LINK"] == before["LOG_LINK"]
