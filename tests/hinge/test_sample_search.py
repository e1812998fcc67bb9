"""The search for starts and bandwidths on a sample: which partition wins, and what is recorded."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.features.bandwidth import candidate_gammas
from mmcnb.features.kernel import Kernel
from mmcnb.hinge.cccp import CCCPLimits, path_to
from mmcnb.hinge.landmarks import margin_on_sample
from mmcnb.hinge.sample_search import (
    CLEAN_SCORE,
    SearchConfig,
    exact_features,
    landmark_features,
    search_sample,
)
from mmcnb.samples import open_samples
from tests.hinge.problems import ignore, rings

N = 100


@pytest.fixture(scope="module")
def X():
    return rings(N)


def search(n_init=4, **settings):
    return SearchConfig(
        path_to(10.0), CCCPLimits(30, 0, 0.05), 0, N, n_init=n_init, **settings
    )


def candidates(engine, X, make=exact_features):
    return [
        make(Kernel("rbf", gamma), engine, open_samples(X), X, None)
        for gamma in candidate_gammas(X)
    ]


def run(engine, some, config, record=ignore):
    return search_sample(
        engine,
        [lambda candidate=candidate: candidate for candidate in some],
        config,
        record,
    )


def test_trials_are_ranked_clean_ones_by_norm_then_others_by_score_and_beat_random_labels(
    engine, X
):
    rows = []
    some = candidates(engine, X)
    restarts = run(engine, some, search(), rows.append)
    assert {row["gamma"] for row in rows} == {
        candidate.kernel.gamma for candidate in some
    }
    assert {row["start"] for row in rows} == {0, 1, 2, 3}
    assert {row["stage"] for row in rows} == {"sample"}
    clean = [restart.leave_one_out <= CLEAN_SCORE for restart in restarts]
    assert clean == sorted(clean, reverse=True)
    norms = [restart.relative_norm2 for restart in restarts[: sum(clean)]]
    scores = [round(restart.leave_one_out, 9) for restart in restarts[sum(clean) :]]
    assert norms == sorted(norms, reverse=True)
    assert scores == sorted(scores)
    best = restarts[0]
    assert clean[0]
    assert (
        best.random_solution().quadratic.norm2
        < 0.1 * best.state.solution.quadratic.norm2
    )
    assert abs(best.labels @ np.where(np.arange(N) % 2, 1, -1)) == N


def test_more_starts_never_find_less(engine, X):
    some = candidates(engine, X)[:1]
    scores = [run(engine, some, search(n_init))[0].score for n_init in (1, 2, 4, 8)]
    assert (np.diff(scores) >= -1e-6 * max(scores)).all()


def test_the_start_wins_that_is_best_at_two_and_at_the_last_c(engine):
    rows = []
    X = np.random.RandomState(2).standard_normal((300, 3))
    some = candidates(engine, X, landmark_features)[:1]
    # Without a partition by least squares, which has to be clearly ahead.
    config = dataclasses.replace(search(8, init="random"), sample_size=300)
    (best,) = run(engine, some, config, rows.append)
    ends = (
        pd.DataFrame(rows).groupby(["start", "C"])["norm"].last().unstack("C").dropna()
    )
    judged = ends[2.0] * ends[10.0]
    assert len(ends) > 2
    assert best.start == judged.idxmax() != ends[10.0].idxmax()
    assert best.score == pytest.approx(judged.max())


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_rows_beyond_those_that_are_searched_refine_the_widest_margin(n_clusters):
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, n_clusters, 2200)
    X = rng.standard_normal((2200, 2)) + 12.0 * np.eye(3, 2)[clusters]
    rows = []
    model = margin_on_sample(X, None, n_clusters, "rbf", 0, rows.append)
    assert "all rows" in {row["stage"] for row in rows}
    features = model.features(open_samples(X))
    labels = model.rule.label(features.block(0, len(X)))
    assert adjusted_rand_score(clusters, labels) == 1


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_the_widest_margin_takes_the_bandwidth_that_is_given(n_clusters):
    clusters = np.arange(300) % n_clusters
    noise = np.random.default_rng(0).standard_normal((300, 2))
    X = noise + 12.0 * np.eye(3, 2)[clusters]
    rows = []
    model = margin_on_sample(X, None, n_clusters, "rbf", 0, rows.append, gamma=0.03)
    assert model.kernel.gamma == 0.03
    assert {row.get("gamma", 0.03) for row in rows} == {0.03}
    labels = model.rule.label(model.features(open_samples(X)).block(0, 300))
    assert adjusted_rand_score(clusters, labels) == 1
