"""Rounds over labels at rising C: the objective never rises, and what has converged is a fixed point."""

import itertools

import numpy as np
import pytest

from mmcnb.features.rules import GivenLabels, coin_flip, signs
from mmcnb.hinge.cccp import CCCPLimits, continuation, path_to
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from mmcnb.hinge.qp import PlaneQPError
from tests.hinge.problems import given, ignore, make_planes, rings, two_groups

N = 160
ADAPTIVE = Objective("adaptive", 0.0, 1.0)


def unequal(seed):
    rng = np.random.default_rng(seed)
    return np.r_[
        rng.standard_normal((N - 20, 2)), rng.standard_normal((20, 2)) * 0.3 + 5
    ]


DATA = {
    "blobs": lambda seed: two_groups(N, seed, gap=6.0)[0],
    "overlapping": lambda seed: two_groups(N, seed, gap=1.5)[0],
    "unequal": unequal,
    "noise": lambda seed: np.random.default_rng(seed).standard_normal((N, 4)),
    "rings": lambda seed: rings(N, seed),
}


def fit(
    engine,
    X,
    kind="landmarks",
    C=10.0,
    threshold="adaptive",
    balance=0.0,
    gamma=0.5,
    seed=0,
):
    planes, K = make_planes(kind, engine, X, gamma)
    start = coin_flip(len(X), np.random.RandomState(seed))
    if balance:  # and coin flips are degenerate there
        start = given(np.where(X[:, 0] > np.median(X[:, 0]), 1, -1))
    rows = []
    form = Objective(threshold, balance, float(np.trace(K) / len(K) - K.mean()))
    # a balance is infeasible below C = 1/(1 - balance)
    path = [step / (1 - balance) for step in path_to(C)]
    state = continuation(planes, start, form, path, CCCPLimits(), rows.append)
    return state, planes, rows


@pytest.mark.parametrize(
    ("data", "kind", "threshold", "balance"),
    [
        ("blobs", "landmarks", "fixed", 0.0),
        ("overlapping", "landmarks", "adaptive", 0.1),
        ("unequal", "sample", "adaptive", 0.1),
        ("noise", "exact", "adaptive", 0.1),
        ("rings", "linear", "fixed", 0.0),
        ("overlapping", "sample", "adaptive", 0.0),
        ("blobs", "exact", "adaptive", 0.0),
        ("unequal", "linear", "adaptive", 0.0),
    ],
)
def test_next_lower_bound_never_exceeds_the_true_primal_before_it(
    engine, data, kind, threshold, balance
):
    checked = 0
    for seed in range(3):
        state, _, rows = fit(
            engine, DATA[data](seed), kind, 6.0, threshold, balance, seed=seed
        )
        if state is None or state.quantile_steps:
            continue  # a quantile step leaves the block minimiser on purpose
        # the last sweep of each round
        ends = {(row["C"], row["round"]): row for row in rows}
        for (C, number), before in ends.items():
            if (C, number + 1) in ends:
                primal = before["primal"]
                assert ends[C, number + 1]["objective"] <= primal + 1e-7 * max(
                    1e-3, abs(primal)
                )
                checked += 1
    assert checked > 0


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    ("gamma", "kind"), [(0.05, "landmarks"), (0.5, "sample"), (3.0, "landmarks")]
)
def test_continuation_from_coin_flips_never_collapses(engine, data, gamma, kind):
    for seed in range(2):
        state, planes, _ = fit(engine, DATA[data](seed), kind, gamma=gamma, seed=seed)
        assert state.solution.quadratic.norm2 > 0
        f = planes.training_set.decide(
            state.solution.hyperplane.shifted(state.threshold)
        )
        assert 0.05 <= np.mean(f >= 0) <= 0.95


@pytest.mark.parametrize("data", ["blobs", "rings"])
def test_converged_labels_are_a_fixpoint(engine, data):
    state, planes, _ = fit(engine, DATA[data](0), "exact", gamma=2.0)
    assert state.status == "converged"
    y = signs(
        planes.training_set.decide(state.solution.hyperplane.shifted(state.threshold))
    )
    np.testing.assert_array_equal(state.labels.y, y)
    again = continuation(
        planes, GivenLabels(y), ADAPTIVE, (10.0,), CCCPLimits(), ignore
    )
    np.testing.assert_array_equal(again.labels.y, y)
    assert again.solution.quadratic.norm2 == pytest.approx(
        state.solution.quadratic.norm2, rel=0.05
    )


def test_labels_held_and_labels_derived_give_the_same_bits(engine):
    X = DATA["overlapping"](0)
    start = coin_flip(N, np.random.RandomState(0))
    ends = []
    for hold in (True, False):
        planes, _ = make_planes("landmarks", engine, X, hold_labels=hold)
        state = continuation(
            planes, start, ADAPTIVE, path_to(6.0), CCCPLimits(), ignore
        )
        ends.append(
            (state.solution.hyperplane.coef.tobytes(), state.solution.hyperplane.offset)
        )
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("data", "weighted"),
    [("blobs", True), ("overlapping", False), ("unequal", True), ("rings", False)],
)
def test_compiled_rounds_end_where_the_streamed_ones_do(engine, data, weighted):
    X = DATA[data](0)
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, N).astype(float) if weighted else None
    start = given(
        np.where(X[:, 0] + rng.standard_normal(N) / 2 > np.median(X[:, 0]), 1, -1)
    )
    ends = []
    rows = []
    for kind in ("landmarks", "sample"):
        planes, K = make_planes(kind, engine, X, weights=weights)
        form = Objective("adaptive", 0.0, float(np.trace(K) / N - K.mean()))
        limits = CCCPLimits(eta=1e-4)
        ends.append(continuation(planes, start, form, (1.01, 1.3), limits, rows.append))
    one, other = ends
    assert (one.status, one.quantile_steps) == (other.status, other.quantile_steps)
    np.testing.assert_array_equal(one.labels.y, other.labels.y)
    assert other.solution.primal == pytest.approx(one.solution.primal, rel=1e-3)
    assert len({tuple(row) for row in rows}) == 1  # the names of what they record


def test_a_program_without_a_solution_raises(engine):
    planes, _ = make_planes("sample", engine, DATA["blobs"](0))
    start = coin_flip(N, np.random.RandomState(0))
    with pytest.raises(PlaneQPError, match="has no solution; lower balance or raise C"):
        continuation(planes, start, ADAPTIVE, (0.5,), CCCPLimits(), ignore)


def test_path_rises_from_near_one_to_C():
    for C in (1.005, 1.5, 10.0, 25.0, 1000.0):
        path = path_to(C)
        assert path[0] == min(C, 1.01)
        assert path[-1] == C
        assert all(
            before < after <= 2 * before + 1e-9
            for before, after in itertools.pairwise(path)
        )


@pytest.mark.parametrize("eta", [0.5, 1e-12])
@pytest.mark.parametrize("sweeps", [1, 3, 40, None])
def test_what_ran_out_of_sweeps_or_stalled_is_not_called_converged(engine, eta, sweeps):
    planes, _ = make_planes("landmarks", engine, rings(N))
    labels = given(np.where(np.arange(N) % 2, 1, -1))
    rows = []
    form = Objective("adaptive", 0.0, 0.0)
    state = continuation(
        planes,
        labels,
        form,
        (1.01,),
        CCCPLimits(eta=eta),
        rows.append,
        SweepBudget(sweeps),
    )
    assert len(rows) <= (sweeps or np.inf)
    if state.status == "converged":
        assert state.solution.gap <= eta + 1e-9
        assert state.solution.statistics.changed == 0
    assert (sweeps, eta) != (1, 1e-12) or state.status == "sweeps"
    assert (sweeps, eta) != (None, 0.5) or state.status == "converged"
