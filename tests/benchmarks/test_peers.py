"""The studies of peers and of the engine: each peer finds blobs, and what their tables and goals say."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks.libraries import MIXTURE
from benchmarks.methods import CUT, DENSITY, FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import LABEL_FREE
from benchmarks.studies import engine, peers
from mmcnb.datasets import make_block

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "method", [*(one for one in peers.METHODS if one != DENSITY), MIXTURE]
)
def test_every_peer_finds_blobs(method):
    X, y = make_block("blobs", 0, 200, 3, random_state=0)
    labels = estimator(method, 2, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, labels) == 1


def test_noise_is_a_cluster_of_its_own():
    scores = peers.with_noise(np.array([0, 0, 1, 1, 1]), np.array([0, 0, -1, -1, -1]))
    assert (scores["ari"], scores["error"], scores["labelled"], scores["clusters"]) == (
        1,
        0,
        0.4,
        1,
    )


# -- tables and goals ------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "equal"), [("aaa", 100), ("aab", 200 / 3)])
def test_workers_are_judged_by_the_labels_of_threads(labels, equal):
    frame = pd.DataFrame(
        {"workers": [0, 1, 2], "labels_digest": list(labels), "seconds": 1.0, "seed": 0}
    )
    frame = frame.assign(
        part="dask",
        protocol=LABEL_FREE,
        reason="",
        digest="x",
        status="ok",
        parameters="{}",
    )
    result = engine.dask_tables(frame)
    assert result.goals[0].figure == pytest.approx(equal)
    assert result.tables["engine-dask"]["of threads"].tolist() == [1, 1, 1]


def made_up(*rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "ari", "seconds"])
    facts = {
        "n": 9,
        "d": 2,
        "peak_mib": 1.0,
        "status": "ok",
        "labelled": 1.0,
        "clusters": 2,
    }
    return frame.assign(seed=0, balanced_error=0.1, **facts)


def test_the_default_is_judged_by_the_time_of_k_means_and_by_the_shapes_of_two_peers():
    frame = made_up(("mnist", FRONT_DOOR, 0.9, 30.0), ("mnist", KMEANS, 0.4, 100.0))
    (time,) = peers.tables_of_sets(frame).goals
    assert (time.figure, time.bound, time.reached) == (pytest.approx(0.3), 0.25, False)
    shapes = [
        ("two-rings", FRONT_DOOR, 1.0, 1.0),
        ("two-rolls", FRONT_DOOR, 0.5, 1.0),
        ("two-rings", CUT, 0.7, 1.0),
    ]
    (goal,) = peers.tables_of_shapes(made_up(*shapes)).goals
    assert (goal.figure, goal.bound, goal.reached) == (0.75, 0.7, True)
