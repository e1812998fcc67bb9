"""The label step: labels by sign, or by the quantile that leaves each cluster its least share."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmcnb.engine.run import ThreadEngine
from mmcnb.features.rules import Hyperplane
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples import open_samples


def quantile_step(f, least, weights=None):
    """Share of the weight below the threshold of the step, of rows whose decision values are f."""
    with ThreadEngine(1) as engine:
        training_set = TrainingSet(engine, open_samples(f[:, None]), None, weights)
        shares = (
            np.full(len(f), 1 / len(f)) if weights is None else weights / weights.sum()
        )
        statistics = SimpleNamespace(positive=shares @ (f >= 0), changed=0.0)
        step = training_set.label_step(
            None, Hyperplane(np.ones(1), 0.0), statistics, least
        )
    return shares[f < step.threshold].sum(), step.threshold


@pytest.mark.parametrize(
    ("centre", "share", "weighted"),
    [(-50.0, 0.05, True), (3.5, 0.25, False), (1e6, 0.4, True)],
)
def test_the_smaller_cluster_gets_its_least_share_and_hardly_more(
    centre, share, weighted
):
    rng = np.random.default_rng(0)
    f = centre + rng.standard_normal(1000)
    weights = rng.random(1000) + 0.5 if weighted else None
    below, _ = quantile_step(f, share, weights)
    assert share - 1e-12 <= min(below, 1 - below) <= share + 2.1e-3
    assert (below < 0.5) == (centre > 0)


def test_shares_that_suffice_leave_the_threshold_at_zero():
    f = np.random.default_rng(0).standard_normal(1000)
    assert quantile_step(f, 0.4) == (pytest.approx((f < 0).mean()), 0)


@settings(max_examples=40)
@given(
    values=st.lists(st.integers(-3, 3), min_size=2, max_size=5, unique=True),
    counts=st.lists(st.integers(1, 60), min_size=5, max_size=5),
    least=st.sampled_from([0.05, 0.2]),
)
def test_ties_keep_two_clusters_and_the_least_share_where_one_can(
    values, counts, least
):
    f = np.repeat(np.array(sorted(values)) + 0.25, counts[: len(values)])
    below, _ = quantile_step(f, least)
    assert 0 < below < 1
    possible = [(f < value).mean() for value in np.unique(f)[1:]]
    if any(least <= share <= 1 - least for share in possible):
        assert least - 1e-12 <= below <= 1 - least + 1e-12
