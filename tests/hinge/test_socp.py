import numpy as np
import pytest

from mmcnb.errors import InputError
from mmcnb.hinge.qp import PlaneQPError, solve_kernel_planes, solve_planes
from tests import reference

CASES = [
    (threshold, balance, C, seed)
    for threshold in ("fixed", "adaptive")
    for balance in (0.0, 0.1)
    for C in (1.7, 9.1)
    for seed in (0, 1)
]


def random_planes(seed, kernels=3, n=31, d=4, planes=9):
    """Planes of random rows under kernels, the first of all rows; means of their rows and signed rows."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, -1, 1)
    c = rng.random((planes, n)) < 0.6
    c[0] = True
    a = c * y / n
    features = [rng.standard_normal((n, d)) + rng.random() * y[:, None] for _ in range(kernels)]
    return [a @ (Z - Z.mean(axis=0)) for Z in features], c.mean(axis=1), a.sum(axis=1)


def solve(P, s, t, C, balance=0.0, threshold="fixed"):
    found = solve_kernel_planes([one @ one.T for one in P], s, t, C, balance, threshold)
    return found, found.kernel_weights


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_solution_is_that_of_the_primal_by_another_modelling(threshold, balance, C, seed):
    P, s, t = random_planes(seed)
    found, weights = solve(P, s, t, C, balance, threshold)
    objective, expected = reference.kernel_plane_primal(P, s, t, C, balance, threshold)
    rho = found.rho if threshold == "adaptive" else 0.0
    assert 0.5 * found.norm2 - rho + C * found.xi == pytest.approx(objective, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(weights, expected, atol=1e-3)


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_no_plane_is_violated_by_more_than_the_slack(threshold, balance, C, seed):
    P, s, t = random_planes(seed)
    found, weights = solve(P, s, t, C, balance, threshold)
    v = [weight * (found.multipliers @ one) for weight, one in zip(weights, P, strict=True)]
    values = sum(one @ w for one, w in zip(P, v, strict=True)) + found.beta * t
    assert (found.rho * s - values).max() <= found.xi + 1e-6
    assert found.multipliers.sum() <= C + 1e-6
    assert abs(found.beta) <= balance * found.rho + 1e-6
    assert np.linalg.norm(weights) == pytest.approx(1.0)
    squares = [w @ w / max(weight, 1e-12) for w, weight in zip(v, weights, strict=True)]
    assert found.norm2 == pytest.approx(sum(squares))


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_one_kernel_is_the_quadratic_program(threshold, balance, C, seed):
    P, s, t = random_planes(seed, kernels=1)
    found, weights = solve(P, s, t, C, balance, threshold)
    expected = solve_planes(P[0] @ P[0].T, s, t, C, balance, threshold)
    assert weights.tolist() == [1.0]
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=2e-5, abs=1e-6)


def test_two_copies_of_a_kernel_are_one_that_is_larger_by_the_root_of_two():
    (P,), s, t = random_planes(2, kernels=1)
    twice, weights = solve([P, P], s, t, 4.3)
    larger, _ = solve([2**0.25 * P], s, t, 4.3)
    np.testing.assert_allclose(weights, [0.5**0.5] * 2, atol=1e-9)
    assert twice.norm2 == pytest.approx(larger.norm2, rel=1e-5)
    np.testing.assert_allclose(twice.multipliers, larger.multipliers, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_scaling_all_kernels_scales_the_adaptive_solution(scale):
    P, s, t = random_planes(3)
    unit, weights = solve(P, s, t, 4.3, 0.1, "adaptive")
    scaled, scaled_weights = solve([scale * one for one in P], s, t, 4.3, 0.1, "adaptive")
    np.testing.assert_allclose(scaled_weights, weights, atol=1e-6)
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(scaled, name) / scale**2 == pytest.approx(getattr(unit, name), rel=1e-6, abs=1e-7)


def test_a_kernel_that_is_zero_has_no_weight():
    P, s, t = random_planes(4, kernels=2)
    _, weights = solve([P[0], 0 * P[1]], s, t, 4.3)
    assert weights.tolist() == [1.0, 0.0]


def test_what_cannot_be_solved_is_refused():
    P, s, t = random_planes(5)
    with pytest.raises(InputError, match=r"^the planes are zero under every kernel[^\n]*\.$"):
        solve([0 * one for one in P], s, t, 4.3)
    with pytest.raises(PlaneQPError, match="lower balance or raise C"):
        solve(P, s, t, 0.5, 0.0, "adaptive")  # s'λ can be no larger than C
