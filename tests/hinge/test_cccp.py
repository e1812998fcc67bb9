import itertools
from dataclasses import replace

import numpy as np
import pytest

from mmcnb.features.rules import GivenLabels, coin_flip, signs
from mmcnb.hinge.cccp import CCCPLimits, continuation, path_to
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from mmcnb.hinge.qp import PlaneQPError
from tests.hinge.problems import given, ignore, make_planes, rings, two_groups

N = 240


def blobs(seed):
    return two_groups(N, seed, gap=6.0)[0]


def noise(seed):
    return np.random.default_rng(seed).standard_normal((N, 4))


def overlapping(seed):
    return two_groups(N, seed, gap=1.5)[0]


def unequal(seed):
    rng = np.random.default_rng(seed)
    return np.r_[rng.standard_normal((N - 20, 2)), rng.standard_normal((20, 2)) * 0.3 + 5]


DATA = {
    "blobs": blobs,
    "overlapping": overlapping,
    "unequal": unequal,
    "noise": noise,
    "rings": lambda s: rings(N, s),
}


def fit(engine, X, kind="landmarks", C=10.0, threshold="adaptive", balance=0.0, gamma=0.5, seed=0):
    planes, K = make_planes(kind, engine, X, gamma)
    start = coin_flip(len(X), np.random.RandomState(seed))
    if balance:  # and coin flips are degenerate there
        start = given(np.where(X[:, 0] > np.median(X[:, 0]), 1, -1))
    rows = []
    total_variance = float(np.trace(K) / len(K) - K.mean())
    state = continuation(
        planes,
        start,
        Objective(threshold, balance, total_variance),
        [step / (1 - balance) for step in path_to(C)],  # a balance is infeasible below C = 1/(1 - balance)
        0.01,
        CCCPLimits(30, 0, 0.05),
        rows.append,
    )
    return state, planes, rows


def rounds_of(rows):
    """The last sweep of each round, by C."""
    ends = {}
    for row in rows:
        ends.setdefault(row["C"], {})[row["round"]] = row
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", ["landmarks", "sample", "exact", "linear"])
@pytest.mark.parametrize(("threshold", "balance"), [("adaptive", 0.0), ("adaptive", 0.1), ("fixed", 0.0)])
def test_next_lower_bound_never_exceeds_the_true_primal_before_it(engine, data, kind, threshold, balance):
    checked = 0
    for seed in range(3):
        state, _, rows = fit(engine, DATA[data](seed), kind, 6.0, threshold, balance, seed=seed)
        if state is None or state.quantile_steps:
            continue  # a quantile step leaves the block minimiser on purpose
        for ends in rounds_of(rows).values():
            for number in range(1, len(ends)):
                before, after = ends[number - 1], ends[number]
                assert after["objective"] <= before["primal"] + 1e-7 * max(1e-3, abs(before["primal"]))
                checked += 1
    assert checked > 0


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("gamma", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("kind", ["landmarks", "sample"])
def test_continuation_from_coin_flips_never_collapses(engine, data, gamma, kind):
    for seed in range(4):
        state, planes, _ = fit(engine, DATA[data](seed), kind, gamma=gamma, seed=seed)
        assert state is not None
        assert state.solution.quadratic.norm2 > 0
        f = planes.training_set.decide(state.solution.hyperplane.shifted(state.threshold))
        assert 0.05 <= np.mean(f >= 0) <= 0.95


@pytest.mark.parametrize("data", ["blobs", "rings"])
def test_converged_labels_are_a_fixpoint(engine, data):
    state, planes, _ = fit(engine, DATA[data](0), "exact", gamma=2.0)
    assert state.status == "converged"
    y = signs(planes.training_set.decide(state.solution.hyperplane.shifted(state.threshold)))
    np.testing.assert_array_equal(state.labels.y, y)
    again = continuation(
        planes,
        GivenLabels(y),
        Objective("adaptive", 0.0, 1.0),
        (10.0,),
        0.01,
        CCCPLimits(30, 0, 0.05),
        lambda row: None,
    )
    np.testing.assert_array_equal(again.labels.y, y)
    assert again.solution.quadratic.norm2 == pytest.approx(state.solution.quadratic.norm2, rel=0.05)


@pytest.mark.parametrize("hold_labels", [False, True])
def test_labels_held_and_labels_derived_give_the_same_bits(engine, hold_labels):
    X, start = overlapping(0), coin_flip(N, np.random.RandomState(0))
    found = []
    for hold in (True, hold_labels):
        planes, _ = make_planes("landmarks", engine, X, hold_labels=hold)
        state = continuation(
            planes,
            start,
            Objective("adaptive", 0.0, 1.0),
            path_to(6.0),
            0.01,
            CCCPLimits(),
            lambda row: None,
        )
        found.append((state.solution.hyperplane.coef.tobytes(), state.solution.hyperplane.offset))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["landmarks", "sample"])
def test_swapping_the_starting_labels_swaps_the_result(engine, kind):
    X, start = overlapping(1), coin_flip(N, np.random.RandomState(1))
    found = []
    for sign in (1, -1):
        planes, _ = make_planes(kind, engine, X)
        state = continuation(
            planes,
            given(sign * start.y),
            Objective("adaptive", 0.0, 1.0),
            path_to(6.0),
            0.01,
            CCCPLimits(),
            lambda row: None,
        )
        found.append(
            (sign * planes.training_set.decide(state.solution.hyperplane), state.solution.quadratic.norm2)
        )
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6)
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-6)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_rounds_end_where_the_streamed_ones_do(engine, data, weighted):
    X, rng = DATA[data](0), np.random.default_rng(0)
    weights = rng.integers(1, 4, N).astype(float) if weighted else None
    start, ends = given(np.where(X[:, 0] + rng.standard_normal(N) / 2 > np.median(X[:, 0]), 1, -1)), []
    for kind in ("landmarks", "sample"):
        (planes, K), rows = make_planes(kind, engine, X, weights=weights), []
        objective = Objective("adaptive", 0.0, float(np.trace(K) / N - K.mean()))
        given_limits = 1e-4, CCCPLimits(30, 0, 0.05), rows.append
        ends.append((continuation(planes, start, objective, (1.01, 1.3), *given_limits), planes, rows))
    (one, _, rows), (other, planes, compiled) = ends
    assert (one.status, one.quantile_steps) == (other.status, other.quantile_steps)
    np.testing.assert_array_equal(one.labels.y, other.labels.y)
    assert other.solution.primal == pytest.approx(one.solution.primal, rel=1e-3)
    assert list(compiled[-1]) == list(rows[-1])
    rounds = {C: [row["round"] for row in compiled if row["C"] == C] for C in (1.01, 1.3)}
    assert all(numbers[0] == 0 and set(np.diff(numbers)) <= {0, 1} for numbers in rounds.values())
    assert {row["C"] for row in compiled} == {row["C"] for row in rows}
    # Planes rebuilt elsewhere from what generated them are those that followed the labels.
    streamed, p = replace(planes.training_set, hold_labels=False), planes.training_set.mean.shape[0]
    fresh = planes.over(streamed)
    fresh.relabel(given(planes.signs))
    np.testing.assert_allclose(fresh.s, planes.planes[:, p + 2], atol=1e-9)
    np.testing.assert_allclose(fresh.centred, planes.planes[:, p + 3 : 2 * p + 3], atol=1e-9)


def test_a_program_without_a_solution_raises(engine):
    planes, _ = make_planes("sample", engine, blobs(0))
    start = coin_flip(N, np.random.RandomState(0))
    with pytest.raises(PlaneQPError, match="has no solution; lower balance or raise C"):
        continuation(planes, start, Objective("adaptive", 0.0, 1.0), (0.5,), 0.01, CCCPLimits(), ignore)


def test_path_rises_from_near_one_to_C():
    for C in (1.005, 1.5, 2.0, 10.0, 25.0, 1000.0):
        path = path_to(C)
        assert path[-1] == C
        assert (np.diff(path) > 0).all()
        assert path[0] == min(C, 1.01)
        assert all(after <= 2 * before + 1e-9 for before, after in itertools.pairwise(path))


def test_sweep_budget_bounds_the_sweeps(engine):
    for sweeps in (1, 5, 12):
        planes, _ = make_planes("landmarks", engine, overlapping(0))
        rows = []
        state = continuation(
            planes,
            coin_flip(N, np.random.RandomState(0)),
            Objective("adaptive", 0.0, 1.0),
            (10.0,),
            0.001,
            CCCPLimits(),
            rows.append,
            SweepBudget(sweeps),
        )
        assert state is not None
        assert len(rows) <= sweeps


@pytest.mark.parametrize("eta", [0.5, 1e-12])
@pytest.mark.parametrize("sweeps", [1, 3, 40, None])
def test_what_ran_out_of_sweeps_or_stalled_is_not_called_converged(engine, eta, sweeps):
    planes, _ = make_planes("landmarks", engine, rings(N))
    labels = given(np.where(np.arange(N) % 2, 1, -1))
    objective = Objective("adaptive", 0.0, 0.0)
    state = continuation(planes, labels, objective, (1.01,), eta, CCCPLimits(), ignore, SweepBudget(sweeps))
    if state.status == "converged":
        assert state.solution.gap <= eta + 1e-9
        assert state.solution.statistics.changed == 0
    assert (sweeps, eta) != (1, 1e-12) or state.status == "sweeps"
    assert (sweeps, eta) != (None, 0.5) or state.status == "converged"
