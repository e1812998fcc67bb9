"""The studies of peers and of single routines: each library finds blobs, and routines are timed in turns."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import random
from sklearn.metrics import adjusted_rand_score

from benchmarks.libraries import AXES, MIXTURE, PACKAGES, DenseClusterer
from benchmarks.methods import CUT, DENSITY, FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import LABEL_FREE
from benchmarks.studies import engine, peers
from mmcnb.datasets import make_block

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("method", [*(one for one in peers.METHODS if one != DENSITY), MIXTURE])
def test_every_peer_finds_blobs(method):
    X, y = make_block("blobs", 0, 200, 3, random_state=0)
    labels = estimator(method, 2, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, labels) == 1


@pytest.mark.parametrize("method", [DENSITY, *PACKAGES])
def test_every_library_labels_rows(method):
    module, _ = PACKAGES.get(method, ("sklearn", ""))
    pytest.importorskip(module, reason="it is installed by mmcnb[peers] alone")
    X, y = make_block("blobs", 0, 120, 5, random_state=0)
    labels = estimator(method, 2, random_state=0).fit(X).labels_
    assert peers.with_noise(y, labels)["labelled"] > 0.5


def test_noise_is_a_cluster_of_its_own():
    scores = peers.with_noise(np.array([0, 0, 1, 1, 1]), np.array([0, 0, -1, -1, -1]))
    assert (scores["ari"], scores["error"], scores["labelled"], scores["clusters"]) == (1, 0, 0.4, 1)


def test_rows_are_dense_and_of_few_columns_where_a_peer_needs_it():
    seen = []
    X = random(80, AXES + 10, 0.3, "csr", np.float32, np.random.default_rng(0))
    clusterer = DenseClusterer(lambda rows: seen.append(rows) or np.zeros(len(rows)), AXES)
    assert clusterer.fit(X).labels_.shape == (80,)
    clusterer.fit(X[:, :5])
    assert [rows.shape for rows in seen] == [(80, AXES), (80, 5)]
    np.testing.assert_array_equal(seen[1], X[:, :5].toarray())


# -- tables and goals --------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "equal"), [("aaa", 100), ("aab", 200 / 3)])
def test_workers_are_judged_by_the_labels_of_threads(labels, equal):
    frame = pd.DataFrame({"workers": [0, 1, 2], "labels_digest": list(labels), "seconds": 1.0, "seed": 0})
    frame = frame.assign(
        part="dask", protocol=LABEL_FREE, reason="", digest="x", status="ok", parameters="{}"
    )
    result = engine.dask_tables(frame)
    assert result.goals[0].figure == pytest.approx(equal)
    assert result.tables["engine-dask"]["of threads"].tolist() == [1, 1, 1]


def made_up(*rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "ari", "seconds"])
    facts = {"n": 9, "d": 2, "peak_mib": 1.0, "status": "ok", "labelled": 1.0, "clusters": 2}
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
