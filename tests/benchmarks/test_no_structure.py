"""The study of rows without structure: its clouds, shares of false alarms, and the fit of the constants."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.studies import _no_structure as clouds
from benchmarks.studies import _no_structure_constants as constants
from benchmarks.studies._no_structure import KINDS, Cloud, rows_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_a_cloud_follows_from_its_name_and_its_seed(kind):
    cloud = Cloud(kind, 50, 3)
    X = rows_of(cloud, 1)
    assert (X.shape, X.dtype) == ((50, 3), np.float32)
    np.testing.assert_array_equal(X, rows_of(cloud, 1))
    assert not np.isin(X, rows_of(cloud, 2)).all()


def test_neighbouring_columns_correlate_and_a_ball_is_filled_evenly():
    X = rows_of(Cloud("correlated Gaussian", 20_000, 6), 0)
    correlations = np.corrcoef(X.T)
    assert np.diag(correlations, 1) == pytest.approx(np.full(5, clouds.CORRELATION), abs=0.03)
    assert X.std(axis=0) == pytest.approx(np.ones(6), abs=0.03)
    lengths = np.linalg.norm(rows_of(Cloud("uniform ball", 20_000, 4), 0), axis=1)
    assert lengths.max() <= 1
    assert (lengths < 0.5).mean() == pytest.approx(0.5**4, abs=0.01)


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


LOSS = np.array([0.3, 0.1, 2.3, -0.1, -0.7, -0.5, -0.05, 0.6, 0, 0.03, -0.06, -1.2, 0.03, -0.02, 0, 0.03])
SPREAD = np.array([-2.9, 1.5, 0.2, -0.4, -0.4, 0.3])


def simulated(rows):
    """Partitions whose losses follow given formulas."""
    random = np.random.default_rng(0)
    n = np.exp(random.uniform(np.log(100), np.log(20_000), rows))
    k = np.exp(random.uniform(np.log(2), np.log(n / 6)))
    table = pd.DataFrame({"n": n, "k": k, "H": np.log(k) * random.uniform(0.7, 1, rows)})
    table["d"] = random.uniform(1.01, 40, rows)
    left = np.exp(constants.spread_features(table) @ SPREAD) * random.standard_normal(rows)
    return table.assign(L=np.exp(constants.loss_features(table) @ LOSS - left))


def test_the_fit_finds_the_formulas_that_losses_follow():
    table = simulated(20_000)
    loss, spread = constants.fitted(table)
    assert np.std(constants.loss_features(table) @ (loss - LOSS)) < 0.01
    assert np.std(constants.spread_features(table) @ (spread - SPREAD)) < 0.05
    z = constants.significance(table, LOSS, SPREAD)
    halved = constants.significance(table.assign(L=table["L"] / 2), LOSS, SPREAD)
    assert (halved > z).all()
    wide = np.exp(constants.spread_features(table) @ SPREAD) * constants.SPREADS > constants.LEAST_SPREAD
    assert z[wide].std() == pytest.approx(1 / constants.SPREADS, abs=0.05)


def test_constants_are_of_one_half_and_both_halves_are_judged():
    names = [Cloud(kind, rows, width).name for kind in KINDS for rows in (100, 300) for width in (2, 5)]
    parts = np.array_split(simulated(2400)[constants.PARTITION].to_numpy(), len(names))
    partitions = [json.dumps(part.tolist()) for part in parts]
    frame = pd.DataFrame({"dataset": names, "partitions": partitions}).assign(status="ok", seed=0)
    result = constants.tables(frame).tables
    table = constants.partitions_of(frame)
    expected = np.concatenate(constants.fitted(table[table["half"] == TUNING]))
    np.testing.assert_array_equal(result["no-structure-constants"]["constant"], expected)
    judged = result["no-structure-fit"].query("by == ''").set_index("half")["sets"]
    assert judged.sum() == len(names)
    assert set(judged.index) == {TUNING, CONFIRMATION}
