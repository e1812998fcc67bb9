import numpy as np
import pytest

from mmcnb.features.rules import Hyperplane
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from tests import reference
from tests.hinge.problems import given, ignore, make_planes, two_groups

KINDS = ["exact", "landmarks", "linear"]


def solve(engine, kind, X, y, C, eta, threshold="adaptive", balance=0.0, weights=None, record=ignore):
    planes, K = make_planes(kind, engine, X, weights=weights)
    objective = Objective(threshold, balance, 1.0)
    return planes.cutting_plane(given(y), objective, C, eta, record, SweepBudget()), planes, K


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("threshold", "balance"), [("adaptive", 0.0), ("adaptive", 0.05), ("fixed", 0.0)])
@pytest.mark.parametrize("eta", [0.1, 1e-3])
@pytest.mark.parametrize("C", [1.01, 4.3])
def test_gap_at_exit_is_within_eta(engine, kind, threshold, balance, eta, C):
    X, y = two_groups(60, gap=4.0)
    found, planes, _ = solve(engine, kind, X, y, C, eta, threshold, balance)
    assert found.status == "converged"
    f, quadratic = planes.training_set.decide(found.hyperplane), found.quadratic
    true = reference.hinge_objective(f, y, quadratic.norm2, quadratic.rho, C, threshold=threshold)
    assert found.primal == pytest.approx(true, rel=1e-9, abs=1e-12)
    assert found.objective <= found.primal + 1e-9
    assert found.primal - found.objective <= C * eta * quadratic.rho + 1e-9
    assert found.gap <= eta + 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1.01, 2.7])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_slack_optimum_is_the_n_slack_optimum(engine, kind, C, weighted):
    n = 23
    X, y = two_groups(n)
    weights = np.random.default_rng(3).integers(1, 4, n).astype(float) if weighted else None
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    found, _, K = solve(engine, kind, X, y, C, 1e-6, weights=weights)
    norm2 = reference.n_slack_norm2(K, y, C, shares)
    assert found.quadratic.norm2 == pytest.approx(norm2, rel=1e-4)
    # J_CP = -1/2 |w|^2 at the optimum.
    assert found.objective == pytest.approx(-0.5 * norm2, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_violation_is_the_largest_over_all_constraints(engine, seed, weighted):
    n = 8
    X, y = two_groups(n, seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, n).astype(float) + (np.arange(n) == 0) if weighted else None
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    planes, _ = make_planes("exact", engine, X, weights=weights)
    hyperplane, rho = Hyperplane(rng.standard_normal(n) / n, 0.1), 0.2
    _, sums, active = planes.training_set.most_violated(given(y), hyperplane, rho)
    f = planes.training_set.decide(hyperplane)
    assert sums.violation == pytest.approx(reference.largest_violation(f, y, rho, shares))
    np.testing.assert_array_equal(active, y * f <= rho)
    assert sums.active == pytest.approx(shares @ (y * f <= rho))
    assert sums.signed == pytest.approx((shares * y) @ (y * f <= rho))
    assert sums.positive == pytest.approx(shares @ (f >= 0))
    assert sums.changed / planes.training_set.total_weight == pytest.approx(shares @ ((f >= 0) != (y > 0)))
    assert sums.hinge == pytest.approx(reference.largest_violation(f, np.sign(f), rho, shares))


def test_lower_bound_never_falls_as_planes_are_added(engine):
    X, y = two_groups(60)
    rows = []
    solve(engine, "exact", X, y, 4.3, 1e-4, record=rows.append)
    lower = [row["objective"] for row in rows]
    assert len(lower) > 5
    assert (np.diff(lower) >= -1e-7 * abs(lower[-1])).all()


def test_record_names_what_each_sweep_found(engine):
    X, y = two_groups(60)
    rows = []
    found, planes, _ = solve(engine, "exact", X, y, 4.3, 0.01, record=rows.append)
    last = rows[-1]
    assert last["objective"] == found.objective
    assert last["primal"] == found.primal
    assert last["planes"] == len(planes.s)
    assert last["changed"] == found.statistics.changed
    assert last["norm"] == pytest.approx(found.quadratic.norm2**0.5)
    assert last["violation"] == pytest.approx(found.statistics.violation - found.quadratic.xi)


def test_labels_without_margin_are_degenerate(engine):
    # Each row twice, once with each label: nothing separates them.
    X, _ = two_groups(20)
    found, _, _ = solve(engine, "exact", np.r_[X, X], np.repeat([1, -1], 20), 3.0, 0.01)
    assert found.status == "degenerate"


def test_loop_ends_where_the_sweeps_are_spent(engine):
    X, y = two_groups(60)
    planes, _ = make_planes("exact", engine, X)
    rows, budget = [], SweepBudget(4)  # one of them makes the plane of all rows
    found = planes.cutting_plane(given(y), Objective("adaptive", 0.0, 1.0), 4.3, 1e-6, rows.append, budget)
    assert found.status == "sweeps"
    assert len(rows) == 3


def test_loop_stalls_where_the_working_set_takes_no_more_planes(engine):
    X, y = two_groups(60)
    planes, _ = make_planes("exact", engine, X)
    planes.max_planes, rows, budget = 3, [], SweepBudget()
    found = planes.cutting_plane(given(y), Objective("adaptive", 0.0, 1.0), 4.3, 1e-6, rows.append, budget)
    assert found.status == "stalled"
    assert len(rows) == 4  # three planes are added to that of all rows


def test_weights_are_repetitions(engine):
    X, y = two_groups(25)
    weights = np.random.default_rng(4).integers(0, 3, 25)
    repeated = np.repeat(np.arange(25), weights)
    one, _, _ = solve(engine, "linear", X, y, 3.3, 1e-5, weights=weights.astype(float))
    other, _, _ = solve(engine, "linear", X[repeated], y[repeated], 3.3, 1e-5)
    assert one.objective == pytest.approx(other.objective, rel=1e-6)
    np.testing.assert_allclose(one.hyperplane.coef, other.hyperplane.coef, atol=1e-5)
