"""The quadratic program over cutting planes: its optimality conditions, and what it does not depend on."""

import numpy as np
import pytest

from mmcnb.hinge.qp import PlaneQPError, solve_planes
from tests import reference

# n / C is whole in none of these, so rho and beta are unique too.
CASES = [
    ("adaptive", 0.0, 1.7, 0),
    ("adaptive", 0.0, 9.1, 1),
    ("adaptive", 0.03, 3.3, 0),
    ("adaptive", 0.3, 1.7, 1),
    ("adaptive", 0.3, 9.1, 0),
    ("fixed", 0.0, 3.3, 1),
    ("fixed", 0.03, 9.1, 0),
    ("fixed", 0.3, 1.7, 0),
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
def test_solution_meets_the_optimality_conditions_and_is_that_of_another_solver(
    threshold, balance, C, seed
):
    P, s, t = random_planes(seed)
    solution = solve(P, s, t, C, balance, threshold)
    multipliers = solution.multipliers
    rho = solution.rho
    xi = solution.xi
    beta = solution.beta
    other, *values, solved = reference.plane_qp(
        P @ P.T, s, t, C, balance, threshold == "adaptive"
    )
    assert solved
    np.testing.assert_allclose((rho, xi, beta), values, atol=1e-5)
    w = multipliers @ P
    tolerance = 1e-6
    np.testing.assert_allclose(w, other @ P, atol=2e-5)
    assert solution.norm2 == pytest.approx(w @ w)
    assert (multipliers >= 0).all()
    assert multipliers.sum() <= C + tolerance
    assert abs(beta) <= balance * rho + tolerance
    assert xi >= -tolerance
    # No plane is violated by more than xi, and those with a multiplier are met exactly.
    room = xi - (rho * s - P @ w - beta * t)
    assert room.min() >= -tolerance
    np.testing.assert_allclose(multipliers * room, 0, atol=tolerance)
    assert xi * (C - multipliers.sum()) == pytest.approx(0, abs=tolerance)
    # beta stands at its bound, on the side of t'lambda, unless t'lambda is 0.
    u = abs(multipliers @ t)
    assert beta * (multipliers @ t) == pytest.approx(balance * rho * u, abs=tolerance)
    if threshold == "adaptive":
        due = multipliers @ s - balance * u - 1
        assert due >= -tolerance
        assert rho * due == pytest.approx(0, abs=tolerance)
        # Primal and dual values agree: J_CP = -1/2 |w|^2.
        assert rho - C * xi == pytest.approx(solution.norm2, abs=tolerance)
    else:
        assert rho == 1
        dual = multipliers @ s - balance * u - 0.5 * solution.norm2
        assert 0.5 * solution.norm2 + C * xi == pytest.approx(dual, abs=tolerance)


@pytest.mark.parametrize(("balance", "scale"), [(0.0, 1e-4), (0.1, 1e-2), (0.1, 1e3)])
def test_scaled_features_scale_the_solution_and_a_plane_given_twice_changes_nothing(
    balance, scale
):
    P, s, t = random_planes(3)
    unit = solve(P, s, t, 4.3, balance, "adaptive")
    twice = [scale * np.r_[P, P[-2:]], np.r_[s, s[-2:]], np.r_[t, t[-2:]]]
    scaled = solve(*twice, 4.3, balance, "adaptive")
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(scaled, name) / scale**2 == pytest.approx(
            getattr(unit, name), rel=1e-5, abs=1e-7
        )


def test_infeasible_planes_are_refused_and_planes_that_vanish_give_a_margin_of_nothing():
    # s = .3 < 1/C: no multipliers reach s'lambda = 1.
    with pytest.raises(PlaneQPError, match="no solution; lower balance or raise C"):
        solve_planes(
            np.ones((1, 1)), np.array([0.3]), np.zeros(1), 2.0, 0.0, "adaptive"
        )
    means = np.array([1.0, 0.5])
    solution = solve_planes(np.zeros((2, 2)), means, means, 2.0, 0.0, "adaptive")
    assert solution.norm2 == 0
    assert solution.rho == pytest.approx(0, abs=1e-6)
