from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcnb.engine.run import ThreadEngine
from mmcnb.features.rules import Hyperplane
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples import open_samples

IDENTITY = Hyperplane(np.ones(1), 0.0)


def problem_of(engine, f, weights=None):
    """Rows whose decision values are f."""
    return TrainingSet(engine, open_samples(np.asarray(f, np.float64)[:, None]), None, weights)


def threshold_of(training_set, f, least):
    """The shift that leaves each cluster its least share."""
    statistics = SimpleNamespace(positive=np.mean(f >= 0), changed=0.0)
    return training_set.label_step(None, IDENTITY, statistics, least).threshold


def share_below(f, q, weights=None):
    weights = np.ones(len(f)) if weights is None else weights
    return weights[np.asarray(f) < q].sum() / weights.sum()


@pytest.mark.parametrize("centre", [-50.0, -0.1, 0.0, 3.0, 1e6])
@pytest.mark.parametrize("share", [0.05, 0.25, 0.75, 0.95])
@pytest.mark.parametrize("weighted", [False, True])
def test_share_below_is_the_share_asked_for(engine, centre, share, weighted):
    rng = np.random.default_rng(0)
    f = centre + rng.standard_normal(1000)
    weights = rng.random(1000) + 0.5 if weighted else None
    heaviest = 1 / 1000 if weights is None else weights.max() / weights.sum()
    below = share_below(f, problem_of(engine, f, weights).quantile(IDENTITY, share), weights)
    assert below == pytest.approx(share, abs=heaviest + 1e-12)
    # The smaller side holds at least its due.
    assert min(below, 1 - below) >= min(share, 1 - share) - 1e-12


@given(
    values=st.lists(st.integers(-3, 3), min_size=2, max_size=5, unique=True),
    counts=st.lists(st.integers(1, 60), min_size=5, max_size=5),
    least=st.sampled_from([0.05, 0.2]),
)
def test_label_step_on_ties_keeps_two_clusters_and_the_least_share_where_one_can(values, counts, least):
    f = np.repeat(np.array(sorted(values)) + 0.25, counts[: len(values)])
    with ThreadEngine(1) as engine:
        training_set = problem_of(engine, f)
        q = threshold_of(training_set, f, least)
    below = share_below(f, q)
    assert 0 < below < 1
    possible = [share_below(f, value) for value in np.unique(f)[1:]]
    if any(least <= share <= 1 - least for share in possible):
        assert least - 1e-12 <= below <= 1 - least + 1e-12


@pytest.mark.parametrize("few", [-1.0, 1.0])
def test_two_values_of_which_one_is_rare_stay_two_clusters(engine, few):
    f = np.r_[np.full(98, -few / 2), np.full(2, few)]
    q = threshold_of(problem_of(engine, f), f, 0.05)
    assert 0 < share_below(f, q) < 1
