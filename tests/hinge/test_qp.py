import numpy as np
import pytest

from mmcnb.hinge.qp import PlaneQPError, solve_planes
from tests import reference

# n / C is whole in none of these, so rho and beta are unique too.
CASES = [
    (threshold, balance, C, seed)
    for threshold in ("adaptive", "fixed")
    for balance in (0.0, 0.03, 0.3)
    for C in (1.7, 3.3, 9.1)
    for seed in (0, 1)
]


def random_planes(seed, n=31, d=4, planes=9):
    """Planes of random rows, the first of all rows, with the means of their rows and signed rows."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, -1, 1)
    Z = rng.standard_normal((n, d)) + 0.6 * y[:, None]
    c = rng.random((planes, n)) < 0.6
    c[0] = True
    a = c * y / n
    return a @ (Z - Z.mean(axis=0)), c.mean(axis=1), a.sum(axis=1)


def solve(P, s, t, C, balance, threshold):
    return solve_planes(P @ P.T, s, t, C, balance, threshold)


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_solution_is_that_of_the_primal_by_another_solver(threshold, balance, C, seed):
    P, s, t = random_planes(seed)
    found = solve(P, s, t, C, balance, threshold)
    objective, primal = reference.plane_primal(P, s, t, C, balance, threshold)
    rho = found.rho if threshold == "adaptive" else 0.0
    assert 0.5 * found.norm2 - rho + C * found.xi == pytest.approx(objective, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(found.multipliers @ P, primal[:4], atol=2e-5)


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_multipliers_meet_the_optimality_conditions(threshold, balance, C, seed):
    P, s, t = random_planes(seed)
    found = solve(P, s, t, C, balance, threshold)
    multipliers, tolerance = found.multipliers, 1e-6
    w = multipliers @ P
    assert found.norm2 == pytest.approx(w @ w)
    assert (multipliers >= 0).all()
    assert multipliers.sum() <= C + tolerance
    assert abs(found.beta) <= balance * found.rho + tolerance
    assert found.xi >= -tolerance
    # No plane is violated by more than xi, and those with a multiplier are met exactly.
    room = found.xi - (found.rho * s - P @ w - found.beta * t)
    assert room.min() >= -tolerance
    np.testing.assert_allclose(multipliers * room, 0, atol=tolerance)
    assert found.xi * (C - multipliers.sum()) == pytest.approx(0, abs=tolerance)
    # beta stands at its bound, on the side of t'lambda, unless t'lambda is 0.
    u = abs(multipliers @ t)
    assert found.beta * (multipliers @ t) == pytest.approx(balance * found.rho * u, abs=tolerance)
    if threshold == "adaptive":
        due = multipliers @ s - balance * u - 1
        assert due >= -tolerance
        assert found.rho * due == pytest.approx(0, abs=tolerance)
        # Primal and dual values agree: J_CP = -1/2 |w|^2.
        assert found.rho - C * found.xi == pytest.approx(found.norm2, abs=tolerance)
    else:
        assert found.rho == 1
        dual = multipliers @ s - balance * u - 0.5 * found.norm2
        assert 0.5 * found.norm2 + C * found.xi == pytest.approx(dual, abs=tolerance)


@pytest.mark.parametrize("balance", [0.0, 0.1])
@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1e3])
def test_scaling_the_features_scales_the_solution(balance, scale):
    P, s, t = random_planes(3)
    unit, scaled = (solve(k * P, s, t, 4.3, balance, "adaptive") for k in (1.0, scale))
    np.testing.assert_allclose(scaled.multipliers, unit.multipliers, atol=1e-6)
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(scaled, name) / scale**2 == pytest.approx(getattr(unit, name), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("balance", [0.0, 0.1])
def test_a_plane_given_twice_changes_nothing(balance):
    P, s, t = random_planes(4)
    once = solve(P, s, t, 4.3, balance, "adaptive")
    twice = solve(np.r_[P, P[-2:]], np.r_[s, s[-2:]], np.r_[t, t[-2:]], 4.3, balance, "adaptive")
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(twice, name) == pytest.approx(getattr(once, name), rel=1e-5, abs=1e-7)


def test_adaptive_is_the_fixed_form_at_another_C():
    P, s, t = random_planes(5)
    adaptive = solve(P, s, t, 4.3, 0.0, "adaptive")
    fixed = solve(P, s, t, 4.3 / adaptive.rho, 0.0, "fixed")
    np.testing.assert_allclose(fixed.multipliers * adaptive.rho, adaptive.multipliers, atol=1e-5)


def test_objective_and_w_are_unique_where_beta_is_not():
    # n / C whole: rho and beta may be any value of an interval.
    P, s, t = random_planes(6, n=30)
    found = solve(P, s, t, 3.0, 0.1, "adaptive")
    objective, primal = reference.plane_primal(P, s, t, 3.0, 0.1)
    assert 0.5 * found.norm2 - found.rho + 3.0 * found.xi == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(found.multipliers @ P, primal[:4], atol=2e-5)


def test_infeasible_planes_are_refused():
    # s = .3 < 1/C: no multipliers reach s'lambda = 1.
    with pytest.raises(PlaneQPError, match="no solution"):
        solve_planes(np.ones((1, 1)), np.array([0.3]), np.zeros(1), 2.0, 0.0, "adaptive")


def test_planes_that_vanish_give_a_margin_of_nothing():
    means = np.array([1.0, 0.5])
    found = solve_planes(np.zeros((2, 2)), means, means, 2.0, 0.0, "adaptive")
    assert found.norm2 == 0
    assert found.rho == pytest.approx(0, abs=1e-6)
