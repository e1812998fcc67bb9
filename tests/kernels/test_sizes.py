import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmcnb
from mmcnb import kernels
from tests import reference


def partition_sample(scores, low, high, weights=None, start=None, rounds=5):
    n, k = scores.shape
    weights = np.ones(n) if weights is None else weights
    start = np.zeros(k) if start is None else start
    b = kernels.size_multipliers(scores, np.asarray(low), np.asarray(high), weights, start, rounds)
    return b, (scores - b).argmax(axis=1)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0, 1, 4]), st.booleans())
def test_the_partition_is_the_best_within_the_bounds(seed, k, slack, warm):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3 * k, 30))
    scores = rng.standard_normal((n, k)) + 2 * rng.standard_normal(k)
    counts = rng.multinomial(n - k, np.full(k, 1 / k)) + 1
    low, high = np.maximum(counts - slack, 1), counts + slack
    _, labels = partition_sample(scores, low, high, start=rng.standard_normal(k) if warm else None)
    sizes = np.bincount(labels, minlength=k)
    assert ((low <= sizes) & (sizes <= high)).all()
    best = reference.best_sizes_partition(scores, low, high)
    assert scores[np.arange(n), labels].sum() == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0, 1, 4]), st.sampled_from([0.0, 0.3, 3.0]))
def test_rows_moved_one_by_one_reach_the_best_from_any_multipliers(seed, k, slack, spread):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3 * k, 30))
    scores = rng.standard_normal((n, k)) + 2 * rng.standard_normal(k)
    counts = rng.multinomial(n - k, np.full(k, 1 / k)) + 1
    low, high = np.maximum(counts - slack, 1), counts + slack
    b, labels = partition_sample(scores, low, high, start=spread * rng.standard_normal(k), rounds=0)
    sizes = np.bincount(labels, minlength=k)
    assert ((low <= sizes) & (sizes <= high)).all()
    best = reference.best_sizes_partition(scores, low, high)
    assert scores[np.arange(n), labels].sum() == pytest.approx(best, rel=1e-9, abs=1e-9)
    given = low == high  # of these the multiplier may be anything
    assert (sizes[(b > 1e-9) & ~given] == high[(b > 1e-9) & ~given]).all()
    assert (sizes[(b < -1e-9) & ~given] == low[(b < -1e-9) & ~given]).all()


@given(st.integers(0, 10**6))
def test_multipliers_weigh_on_full_and_least_clusters_alone(seed):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((50, 4)) * [3, 1, 1, 0.2]
    low, high = np.array([5, 5, 5, 5]), np.array([15, 20, 25, 30])
    b, labels = partition_sample(scores, low, high)
    sizes = np.bincount(labels, minlength=4)
    assert (sizes[b > 1e-9] == high[b > 1e-9]).all()
    assert (sizes[b < -1e-9] == low[b < -1e-9]).all()


def test_sizes_that_fit_ask_for_nothing():
    scores = np.random.default_rng(0).standard_normal((30, 3))
    for rounds in (0, 5):
        start = np.array([1.0, -2.0, 0.5])
        b, labels = partition_sample(scores, [1, 1, 1], [30, 30, 30], start=start, rounds=rounds)
        assert b.tolist() == [0, 0, 0]
        sizes = np.bincount(labels)  # and at the bounds themselves
        b, _ = partition_sample(scores, sizes, sizes, start=start, rounds=rounds)
        assert b.tolist() == [0, 0, 0]


def test_multipliers_under_which_all_bounds_hold_come_back_as_they_are():
    scores = np.column_stack([[1.0, 3.0, 5.0, 7.0], np.zeros(4)])
    for start in ([3.1, 0.0], [4.9, 0.0]):  # all between 3 and 5 give two rows each
        b, _ = partition_sample(scores, [1, 1], [2, 3], start=np.array(start))
        assert b.tolist() == start


def test_of_equal_scores_the_first_cluster_takes_the_rows():
    b, labels = partition_sample(np.zeros((4, 3)), [4, 0, 0], [4, 4, 4])
    assert b.tolist() == [0, 0, 0]
    assert labels.tolist() == [0, 0, 0, 0]


def test_integer_weights_are_repetitions_up_to_one_row():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 200).astype(float)
    scores = rng.standard_normal((200, 3)) + np.array([2, 0, 0])
    share = weights.sum() / 3
    low, high = np.full(3, int(0.9 * share)), np.full(3, int(1.1 * share))
    _, labels = partition_sample(scores, low, high, weights)
    sizes = np.bincount(labels, weights, minlength=3)
    assert (sizes >= low - weights.max()).all()
    assert (sizes <= high + weights.max()).all()


def test_bounds_that_are_not_whole_are_refused():
    scores, ones, zeros = np.zeros((4, 2)), np.ones(4), np.zeros(2)
    with pytest.raises(mmcnb.InputError, match=r"^low "):
        kernels.size_multipliers(scores, np.array([0.5, 1.5]), np.array([3.5, 2.5]), ones, zeros)


def test_bounds_far_above_the_rows_take_no_time():
    scores = np.random.default_rng(0).standard_normal((40, 3)) + np.array([5.0, 0, 0])
    far = np.full(3, 2**40)
    b = kernels.size_multipliers(scores, np.array([0, 10, 10]), far, np.ones(40), np.full(3, 9.0), 0)
    assert np.bincount((scores - b).argmax(axis=1)).tolist() == [20, 10, 10]
    assert (b <= 0).all()


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_of_two_clusters_one_holds_the_rows_that_prefer_it_most_up_to_its_bound(seed, most, whole):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    weights = rng.integers(1, 4, n).astype(float) if whole else rng.uniform(0.1, 3.0, n)
    scores = np.column_stack([rng.standard_normal(n), np.zeros(n)])
    order = (-scores[:, 0]).argsort()
    reached, wide = weights[order].cumsum(), int(weights.sum()) + 1
    free = weights[scores[:, 0] > 0].sum()
    if most:  # as many as weigh no more
        bound = int(rng.integers(0, int(free) + 1))
        bounds, inside = ([0, 0], [bound, wide]), (reached <= bound + 1e-6).sum()
    else:  # as few as weigh enough
        bound = min(int(np.ceil(free)) + int(rng.integers(0, 5)), int(weights.sum()))
        bounds, inside = ([bound, 0], [wide, wide]), (reached < bound - 1e-6).sum() + 1
    for rounds in (1, 5):
        b, labels = partition_sample(scores, *bounds, weights, rounds=rounds)
        assert sorted(order[: min(inside, n)]) == np.flatnonzero(labels == 0).tolist()
        assert b[1] == 0


def test_equal_rows_stay_together():
    scores = np.repeat([[1.0, 0.0], [0.5, 0.0]], 10, axis=0)
    _, labels = partition_sample(scores, [5, 5], [15, 15])
    assert len(set(labels[:10])) == len(set(labels[10:])) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_end_as_well(odd):
    """With them the shortest paths may go in circles."""
    rng = np.random.default_rng(0)
    bounds = np.zeros(5, int), np.full(5, 2)
    for place in range(40):
        scores, start = rng.standard_normal((8, 5)), rng.standard_normal(5)
        for array in (start, scores):
            array.flat[place % array.size] = odd
            assert kernels.size_multipliers(scores, *bounds, np.ones(8), start, 3).shape == (5,)


@pytest.mark.filterwarnings("error")
def test_weights_whose_sum_overflows_are_no_warning():
    scores, bounds = np.eye(4), (np.zeros(4, int), np.full(4, 2))
    assert kernels.size_multipliers(scores, *bounds, np.full(4, 1e308), np.zeros(4)).shape == (4,)
