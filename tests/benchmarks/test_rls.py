"""The study of least squares clusters: its searches, and how its tables choose."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.methods import CPMMC, estimator
from benchmarks.protocol import PAPER
from benchmarks.published import RLS, figure
from benchmarks.studies import rls
from benchmarks.studies._tasks import TASKS
from mmcnb.datasets import make_block
from mmcnb.hinge.sample_search import SearchConfig

pytestmark = pytest.mark.slow


def wide(**columns):
    given = {
        "status": "ok",
        "n": 9,
        "d": 2,
        "seconds": 1.0,
        "peak_mib": 1.0,
        "parameters": "{}",
        "seed": 0,
    }
    return pd.DataFrame(given | columns)


@pytest.mark.parametrize("method", rls.SEARCHES)
def test_a_search_keeps_every_cluster_and_depends_on_the_seed_alone(method):
    X = make_block("blobs", 0, 40, 3, random_state=0)[0].astype(float)
    K = X @ X.T + np.eye(40)
    R = rls.smoother(K, 0.1)
    np.testing.assert_allclose(R, K @ np.linalg.inv(K + 0.1 * np.eye(40)), atol=1e-10)
    labels = rls.searched(R, 3, method, 1).labels
    assert set(labels) == {0, 1, 2}
    np.testing.assert_array_equal(labels, rls.searched(R, 3, method, 1).labels)


def test_the_tables_take_the_point_of_largest_mean_and_tell_the_largest_run():
    points = ["a", "a", "b", "b"]
    scores = [1.0, 0.5, 0.875, 0.8125]
    frame = wide(
        dataset="iris", protocol=PAPER, method="UMC-RLS", parameters=points, ari=scores
    )
    row = rls.tables(frame).tables["rls-tables"].iloc[0]
    assert (row["parameters"], row["runs"], row["largest ari"]) == ("b", 2, 0.875)
    assert row["ari"] == pytest.approx(0.84375)
    assert row["published ari"] == figure(RLS, "iris", "UMC-RLS", "ari")


def test_defaults_are_judged_by_ari_and_with_a_bandwidth_by_the_error():
    names = list(TASKS)
    frame = wide(
        dataset=[names[0], names[-1]],
        ari=0.9,
        balanced_error=0.03,
        objective=1.0,
        reads=4,
    )
    goals = rls.tables_of_defaults(frame).goals
    assert [goal.bound for goal in goals] == [
        TASKS[names[0]].least,
        100 * TASKS[names[-1]].most,
    ]
    assert [goal.reached for goal in goals] == [True, False]


def test_more_than_two_clusters_start_from_least_squares_with_nearly_equal_sizes(
    monkeypatch,
):
    random = np.random.default_rng(0)
    classes = random.choice(3, 150, p=[0.6, 0.2, 0.2])
    X = random.standard_normal((150, 2)) + 4.0 * np.eye(3, 2)[classes]
    starts = []
    warm_start = SearchConfig.warm_start

    def recorded(config, number, labels, *rest):
        starts.append(labels)
        return warm_start(config, number, labels, *rest)

    # Internal: the history has no labels.
    monkeypatch.setattr(SearchConfig, "warm_start", recorded)
    parameters = rls._margin_at(0.1, 0.1, 150, 3)
    name = rls.ESTIMATORS[CPMMC]
    estimator(name, 3, random_state=0, **parameters).fit(X)
    assert len(starts) == 1
    sizes = np.bincount(starts[0], minlength=3)
    assert (np.abs(sizes - 50) <= 5).all()
