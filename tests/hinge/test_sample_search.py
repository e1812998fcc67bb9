import dataclasses

import numpy as np
import pandas as pd
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.features.bandwidth import candidate_gammas
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import total_variance_of
from mmcnb.hinge.cccp import CCCPLimits, path_to
from mmcnb.hinge.sample_search import (
    CLEAN_SCORE,
    SearchConfig,
    exact_features,
    landmark_features,
    search_sample,
)
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import rings


@pytest.fixture(scope="module")
def engine():
    with ThreadEngine(1) as engine:
        yield engine


@pytest.fixture(scope="module")
def X():
    return rings(200)


def search(n_init=4, seed=0):
    return SearchConfig(path_to(10.0), CCCPLimits(30, 0, 0.05), seed, 200, n_init=n_init)


def candidates(engine, X, make=exact_features):
    return [make(Kernel("rbf", gamma), engine, open_samples(X), X, None) for gamma in candidate_gammas(X)]


def made(some):
    return [lambda candidate=candidate: candidate for candidate in some]


def ignore(row):
    """A record that nobody keeps."""


@pytest.mark.parametrize("make", [exact_features, landmark_features])
def test_spread_is_the_trace_of_the_centred_kernel(engine, X, make):
    (candidate, *_) = candidates(engine, X[:40], make)
    K = reference.rbf_kernel_block(X[:40], X[:40], candidate.kernel.gamma)
    assert total_variance_of(candidate.z, candidate.weights) == pytest.approx(
        np.trace(reference.centred(K)) / 40, rel=1e-3
    )


def test_trials_are_ranked_clean_ones_by_norm_then_others_by_score(engine, X):
    restarts = search_sample(engine, made(candidates(engine, X)), search(), ignore)
    clean = [restart for restart in restarts if restart.leave_one_out <= CLEAN_SCORE]
    others = restarts[len(clean) :]
    assert clean
    assert restarts[: len(clean)] == clean
    norms, scores = (
        [restart.relative_norm2 for restart in clean],
        [restart.leave_one_out for restart in others],
    )
    assert norms == sorted(norms, reverse=True)
    assert np.round(scores, 9).tolist() == sorted(np.round(scores, 9))


def test_more_starts_never_find_less(engine, X):
    (candidate, *_) = candidates(engine, X)
    scores = [
        search_sample(engine, made([candidate]), search(n_init), ignore)[0].score for n_init in (1, 2, 4, 8)
    ]
    assert (np.diff(scores) >= -1e-6 * max(scores)).all()


def test_the_start_wins_that_is_best_at_two_and_at_the_last_c(engine):
    X = np.random.RandomState(2).standard_normal((300, 3))
    rows = []
    (candidate, *_) = candidates(engine, X, landmark_features)
    # Without a partition by least squares, which has to be clearly ahead.
    starts = dataclasses.replace(search(8), init="random")
    (best,) = search_sample(engine, made([candidate]), starts, rows.append)
    ends = pd.DataFrame(rows).groupby(["start", "C"])["norm"].last().unstack("C").dropna()
    judged = ends[2.0] * ends[10.0]
    assert len(ends) > 2
    assert best.start == judged.idxmax() != ends[10.0].idxmax()
    assert best.score == pytest.approx(judged.max())


def test_rings_beat_random_labels(engine, X):
    best = search_sample(engine, made(candidates(engine, X)), search(), ignore)[0]
    assert best.random_solution().quadratic.norm2 < 0.1 * best.state.solution.quadratic.norm2
    assert abs(best.labels @ np.where(np.arange(200) % 2, 1, -1)) == 200


def test_every_sweep_of_the_search_is_recorded_with_its_start_and_width(engine, X):
    rows = []
    some = candidates(engine, X)[:2]
    search_sample(engine, made(some), search(3), rows.append)
    assert {row["gamma"] for row in rows} == {candidate.kernel.gamma for candidate in some}
    assert {row["start"] for row in rows} == {0, 1, 2}
    assert {row["stage"] for row in rows} == {"sample"}
