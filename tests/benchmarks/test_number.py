"""The study of the number: made rows, matching of small clusters, layers, and tables of equal sets."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

from benchmarks.halves import CONFIRMATION, TUNING, half_of
from benchmarks.libraries import LEIDEN
from benchmarks.methods import FRONT_DOOR
from benchmarks.studies import _number_lead as lead
from benchmarks.studies import _number_made as made
from benchmarks.studies import _number_sets as sets
from benchmarks.studies import _number_tables as tables
from benchmarks.studies._choice_problems import MANY, TWO
from benchmarks.studies._choice_tables import BOTH
from mmcnb.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow


def test_blobs_are_of_equal_sizes_with_centres_apart_and_follow_from_the_seed():
    data = made.blobs(2000, 20, 8, 7.0, 3.0, 1)
    assert set(np.bincount(data.y)) == {100}
    np.testing.assert_array_equal(data.X, made.blobs(2000, 20, 8, 7.0, 3.0, 1).X)
    means = np.array([data.X[data.y == c].mean(axis=0) for c in range(20)])
    assert pdist(means).min() > 6.5
    assert np.std(data.X - means[data.y]) == pytest.approx(1, abs=0.02)
    assert (
        pdist(made.centres_apart(np.random.default_rng(0), 20, 8, 7.0, 3.0)).min() >= 7
    )


def test_a_small_cluster_is_found_by_enough_of_its_rows_and_few_others():
    y = np.repeat([0, 1, 2, 3, 9], [10, 10, 10, 10, 100])
    labels = y.copy()
    labels[:2] = 9  # 8 of 10 rows
    labels[10:13] = 9  # 7 of 10
    labels[np.flatnonzero(y == 9)[:3]] = 2  # 10 of 13
    labels[y == 3] = -1
    assert made.found_small(y, labels, 5, 0.8) == [True, False, False, False, False]
    assert made.found_small(y, np.zeros_like(y), 4, 0.8) == [False] * 4


def test_heavy_tailed_rows_have_length_1_uneven_sizes_and_tails():
    calm = made.HeavyTailed(4, 60, 1000, 8.0, 1.0, by_row=True)
    wild = calm._replace(degrees=3)
    data = made.heavy_tailed(wild, 4000, 1)
    np.testing.assert_array_equal(data.X, made.heavy_tailed(wild, 4000, 1).X)
    assert (data.X != made.heavy_tailed(wild, 4000, 2).X).any()
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    sizes = np.bincount(data.y)
    assert (np.diff(sizes) < 0).all()
    assert sizes[0] / sizes[-1] == pytest.approx(8, rel=0.2)
    cosines = []
    for one in (calm, wild):
        X, y = made.heavy_tailed(one, 4000, 1)[1:]
        means = np.array([X[y == c].mean(axis=0) for c in range(4)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        cosines.append((X * means[y]).sum(axis=1))
    assert cosines[1].min() < cosines[0].min() - 0.2


def test_heavy_tailed_sets_lie_in_both_halves():
    halves = {half_of(one.name) for one in lead.sets()}
    assert halves == {TUNING, CONFIRMATION}


def test_communities_are_of_rows_and_equal_rows_are_together():
    pytest.importorskip("igraph", reason="it is installed by mmcnb[peers] alone")
    data = made.blobs(300, 3, 4, 20.0, 20.0, 0)
    X = np.vstack([data.X, data.X[:30]])
    truth = np.append(data.y, data.y[:30])
    labels = sets.GraphCommunities(0).fit(X).labels_
    np.testing.assert_array_equal(labels[:30], labels[300:])
    assert all(len(set(truth[labels == c])) == 1 for c in set(labels))
    np.testing.assert_array_equal(
        sets.GraphCommunities(0).fit(csr_array(X)).labels_, labels
    )


def test_layers_are_counted_without_noise():
    y = np.array([0, 0, 1, 1, 2, 2])
    noisy = np.array([0, 0, 1, 1, -1, -1])
    layers = [np.zeros(6, int), noisy, y]
    assert sets.of_layers(y, layers, 2) == {"best layer": 1.0, "layers": "2, 3"}
    assert sets.of_layers(y, layers[:2], 1)["best layer"] == adjusted_rand_index(
        y, noisy
    )


# -- tables ----------------------------------------------------------------------------

ROWS = [
    ("heart", FRONT_DOOR, 2, 2, 0.4, 0.5, "high"),
    ("heart", FRONT_DOOR, 2, 4, 0.2, 0.5, "low"),
    ("heart", LEIDEN, 2, 8, 0.1, np.nan, np.nan),
    ("optdigits", FRONT_DOOR, 10, 10, 0.9, 0.9, "high"),
    ("optdigits", LEIDEN, 10, 10, 0.8, np.nan, np.nan),
    ("iris", FRONT_DOOR, 3, 2, 0.5, 0.7, "high"),
    ("two-moons", FRONT_DOOR, 2, 2, 1.0, 1.0, "high"),
]


def test_means_are_over_seeds_and_then_over_sets():
    frame = pd.DataFrame(
        ROWS,
        columns=["dataset", "method", "k", "clusters", "ari", "best layer", "trust"],
    )
    frame = frame.assign(
        status="ok", n=100, layers="3, 2", seconds=1.0, balanced_error=np.nan
    )
    result = tables.tables_of_sets(frame)
    kinds = result.tables["number"].set_index(["kind", "half", "method"])
    two = kinds.loc[TWO, TUNING, FRONT_DOOR]
    assert two[
        ["sets", "ari", "exact", "of the true number"]
    ].tolist() == pytest.approx([1, 0.3, 0.5, 1.5])
    real = kinds.loc[tables.REAL, BOTH, FRONT_DOOR]
    assert real["ari"] == pytest.approx((0.3 + 0.9 + 0.5) / 3)
    assert real["exact"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert kinds.loc[(MANY, CONFIRMATION, FRONT_DOOR), "best layer"] == pytest.approx(
        0.7
    )
    heart = result.tables["number-sets"].set_index("dataset").loc["heart"]
    assert heart[["found", "trust", f"{LEIDEN}, found"]].tolist() == [
        "2, 4",
        "high, low",
        "8",
    ]
    goals = {goal.what: goal.reached for goal in result.goals}
    assert goals[f"{tables.REAL}: ARI, above Leiden at resolution 1"]
