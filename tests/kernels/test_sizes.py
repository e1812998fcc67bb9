"""Multipliers of scores give the best partition with sizes within bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmcnb import kernels
from tests import reference


def partition_sample(scores, low, high, weights=None, start=None, rounds=5):
    n, k = scores.shape
    weights = np.ones(n) if weights is None else weights
    start = np.zeros(k) if start is None else start
    b = kernels.size_multipliers(
        scores, np.asarray(low), np.asarray(high), weights, start, rounds
    )
    return b, (scores - b).argmax(axis=1)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(2, 5),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([0.0, 0.3, 3.0]),
    st.sampled_from([0, 5]),  # without rounds, rows are moved one by one from the start
)
def test_the_partition_is_the_best_within_the_bounds_from_any_multipliers(
    seed, k, slack, spread, rounds
):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3 * k, 30))
    scores = rng.standard_normal((n, k)) + 2 * rng.standard_normal(k)
    counts = rng.multinomial(n - k, np.full(k, 1 / k)) + 1
    low = np.maximum(counts - slack, 1)
    high = counts + slack
    b, labels = partition_sample(
        scores, low, high, start=spread * rng.standard_normal(k), rounds=rounds
    )
    sizes = np.bincount(labels, minlength=k)
    assert ((low <= sizes) & (sizes <= high)).all()
    best = reference.best_sizes_partition(scores, low, high)
    assert scores[np.arange(n), labels].sum() == pytest.approx(best, rel=1e-9, abs=1e-9)
    free = low < high  # of the others the multiplier may be anything
    assert (sizes[(b > 1e-9) & free] == high[(b > 1e-9) & free]).all()
    assert (sizes[(b < -1e-9) & free] == low[(b < -1e-9) & free]).all()


def test_sizes_that_fit_ask_for_nothing_and_multipliers_that_suffice_come_back():
    scores = np.random.default_rng(0).standard_normal((30, 3))
    for rounds in (0, 5):
        start = np.array([1.0, -2.0, 0.5])
        b, labels = partition_sample(
            scores, [1, 1, 1], [30, 30, 30], start=start, rounds=rounds
        )
        assert b.tolist() == [0, 0, 0]
        sizes = np.bincount(labels)  # and at the bounds themselves
        b, _ = partition_sample(scores, sizes, sizes, start=start, rounds=rounds)
        assert b.tolist() == [0, 0, 0]
    scores = np.column_stack([[1.0, 3.0, 5.0, 7.0], np.zeros(4)])
    for start in ([3.1, 0.0], [4.9, 0.0]):  # all between 3 and 5 give two rows each
        b, _ = partition_sample(scores, [1, 1], [2, 3], start=np.array(start))
        assert b.tolist() == start


def test_weights_keep_the_bounds_up_to_one_row():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 200).astype(float)
    scores = rng.standard_normal((200, 3)) + np.array([2, 0, 0])
    share = weights.sum() / 3
    low = np.full(3, int(0.9 * share))
    high = np.full(3, int(1.1 * share))
    _, labels = partition_sample(scores, low, high, weights)
    sizes = np.bincount(labels, weights, minlength=3)
    assert (sizes >= low - weights.max()).all()
    assert (sizes <= high + weights.max()).all()


def test_bounds_far_above_the_rows_take_no_time():
    scores = np.random.default_rng(0).standard_normal((40, 3)) + np.array([5.0, 0, 0])
    b, labels = partition_sample(
        scores, [0, 10, 10], np.full(3, 2**40), start=np.full(3, 9.0), rounds=0
    )
    assert np.bincount(labels).tolist() == [20, 10, 10]
    assert (b <= 0).all()


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_of_two_clusters_one_holds_the_rows_that_prefer_it_most_up_to_its_bound(
    seed, most, whole
):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    weights = rng.integers(1, 4, n).astype(float) if whole else rng.uniform(0.1, 3.0, n)
    scores = np.column_stack([rng.standard_normal(n), np.zeros(n)])
    order = (-scores[:, 0]).argsort()
    reached = weights[order].cumsum()
    wide = int(weights.sum()) + 1
    free = weights[scores[:, 0] > 0].sum()
    if most:  # as many as weigh no more
        bound = int(rng.integers(0, int(free) + 1))
        bounds = ([0, 0], [bound, wide])
        inside = (reached <= bound + 1e-6).sum()
    else:  # as few as weigh enough
        bound = min(int(np.ceil(free)) + int(rng.integers(0, 5)), int(weights.sum()))
        bounds = ([bound, 0], [wide, wide])
        inside = (reached < bound - 1e-6).sum() + 1
    for rounds in (1, 5):
        b, labels = partition_sample(scores, *bounds, weights, rounds=rounds)
        assert sorted(order[: min(inside, n)]) == np.flatnonzero(labels == 0).tolist()
        assert b[1] == 0


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_or_overflow_end_as_well(odd):
    """With them the shortest paths may go in circles."""
    rng = np.random.default_rng(0)
    bounds = np.zeros(5, int), np.full(5, 2)
    for place in range(40):
        scores = rng.standard_normal((8, 5))
        start = rng.standard_normal(5)
        for array in (start, scores):
            array.flat[place % array.size] = odd
            assert partition_sample(scores, *bounds, start=start, rounds=3)[
                0
            ].shape == (5,)
    assert partition_sample(
        np.eye(4), np.zeros(4, int), np.full(4, 2), np.full(4, 1e308)
    )[0].shape == (4,)
