"""The program over cutting planes of several kernels: its optimum, and the weights of the kernels."""

import numpy as np
import pytest

from mmcnb.errors import InputError
from mmcnb.hinge.qp import PlaneQPError, solve_kernel_planes, solve_planes
from tests.hinge.test_qp import random_planes

CASES = [
    ("fixed", 0.0, 1.7, 0),
    ("fixed", 0.1, 9.1, 1),
    ("adaptive", 0.0, 9.1, 0),
    ("adaptive", 0.1, 1.7, 1),
]


def kernel_planes(seed, kernels=3):
    """The same random planes under several kernels; means of their rows and signed rows."""
    P, s, t = random_planes(seed, d=4 * kernels)
    rng = np.random.default_rng(seed)
    return [(0.5 + rng.random()) * part for part in np.split(P, kernels, axis=1)], s, t


def solve(P, s, t, C, balance=0.0, threshold="fixed"):
    return solve_kernel_planes([one @ one.T for one in P], s, t, C, balance, threshold)


@pytest.mark.parametrize("kernels", [1, 3])
@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_solution_is_that_of_the_weighted_kernel_and_its_weights_are_the_best(
    kernels, threshold, balance, C, seed
):
    """The dual is min over λ of max over |weights| <= 1: at the saddle, weights are as the λ'G_k λ."""
    P, s, t = kernel_planes(seed, kernels)
    solution = solve(P, s, t, C, balance, threshold)
    weights = solution.kernel_weights
    combined = sum(weight * one @ one.T for weight, one in zip(weights, P, strict=True))
    expected = solve_planes(combined, s, t, C, balance, threshold)
    for name in ("rho", "xi", "beta", "norm2"):
        assert getattr(solution, name) == pytest.approx(
            getattr(expected, name), rel=1e-9, abs=1e-12
        )
    w = [solution.multipliers @ one for one in P]
    lengths = np.array([one @ one for one in w])
    np.testing.assert_allclose(weights, lengths / np.linalg.norm(lengths), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_scaling_all_kernels_scales_the_adaptive_solution(scale):
    P, s, t = kernel_planes(3)
    unit = solve(P, s, t, 4.3, 0.1, "adaptive")
    scaled = solve([scale * one for one in P], s, t, 4.3, 0.1, "adaptive")
    np.testing.assert_allclose(scaled.kernel_weights, unit.kernel_weights, atol=2e-5)
    for name in ("rho", "xi", "beta", "norm2"):
        expected = pytest.approx(getattr(unit, name), rel=1e-6, abs=1e-7)
        assert getattr(scaled, name) / scale**2 == expected


def test_a_kernel_that_is_zero_has_no_weight_and_what_cannot_be_solved_is_refused():
    P, s, t = kernel_planes(4, kernels=2)
    assert solve([P[0], 0 * P[1]], s, t, 4.3).kernel_weights.tolist() == [1.0, 0.0]
    with pytest.raises(
        InputError, match=r"^the planes are zero under every kernel[^\n]*\.$"
    ):
        solve([0 * one for one in P], s, t, 4.3)
    with pytest.raises(PlaneQPError, match="lower balance or raise C"):
        solve(P, s, t, 0.5, 0.0, "adaptive")  # s'λ can be no larger than C
