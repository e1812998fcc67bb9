"""Labels, margin and weights of kernels together: the laws of the loop under several kernels."""

from itertools import pairwise

import numpy as np
import pytest

from mmcnb.engine import Kernel
from mmcnb.samples import open_samples
from mmcnb.solvers import (
    BasisPlanes,
    KernelPlanes,
    Objective,
    Problem,
    Rounds,
    SweepBudget,
    coin_flip,
    continuation,
    cutting_plane,
    metric_of,
)
from tests.solvers.problems import given, ignore, rings, two_groups

KERNELS = [Kernel("rbf", 0.5), Kernel("rbf", 8.0), Kernel("linear", 1.0)]
FORM = Objective("fixed", 0.0, 1.0)


def embedding(X, kernel):
    """The rows in coordinates in which the kernel, centred and of spread 1, is an inner product."""
    gram = kernel(X, X)
    z = gram @ metric_of(gram, 1e-12)
    z = z - z.mean(axis=0)
    return z / np.sqrt((z**2).sum() / len(X))


def make(engine, X, kernels):
    parts = [embedding(X, kernel) for kernel in kernels]
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    columns = [slice(start, stop) for start, stop in pairwise(ends)]
    problem = Problem(engine, open_samples(np.hstack(parts)), None, hold_labels=True)
    return KernelPlanes(problem, columns), parts


def solve(planes, y, C=3.0, eta=1e-3):
    labels = given(y)
    planes.resign(labels)
    return cutting_plane(planes, labels, FORM, C, eta, ignore, SweepBudget())


def test_one_kernel_is_the_loop_of_one_kernel(engine):
    X, y = two_groups(60)
    planes, parts = make(engine, X, KERNELS[:1])
    alone = BasisPlanes(Problem(engine, open_samples(parts[0]), None, hold_labels=True))
    several, one = solve(planes, y), solve(alone, y)
    assert several.primal == pytest.approx(one.primal, rel=1e-3)
    np.testing.assert_allclose(
        several.hyperplane.coef, one.hyperplane.coef, atol=0.02 * abs(one.hyperplane.coef).max()
    )


def test_the_loop_ends_within_its_tolerance_and_the_weights_have_norm_one(engine):
    X, y = two_groups(60)
    planes, parts = make(engine, X, KERNELS)
    found = solve(planes, y)
    assert found.status == "converged"
    assert -1e-6 <= found.gap <= 1e-3 + 1e-6
    assert np.linalg.norm(planes.kernel_weights) == pytest.approx(1.0)
    assert (planes.kernel_weights >= 0).all()
    v = [found.hyperplane.coef[one] for one in planes.columns]
    norm2 = sum(w @ w / weight for w, weight in zip(v, planes.kernel_weights, strict=True) if weight > 0)
    assert norm2 == pytest.approx(found.quadratic.norm2, rel=1e-6)
    f = np.hstack(parts) @ found.hyperplane.coef + found.hyperplane.offset
    slack = np.maximum(0, 1 - y * f).mean()
    assert found.primal == pytest.approx(0.5 * norm2 + 3.0 * slack, rel=1e-6)


def test_two_copies_of_a_kernel_are_one_that_is_larger_by_the_root_of_two(engine):
    X, y = two_groups(60)
    twice, _ = make(engine, X, [KERNELS[1]] * 2)
    (part,) = make(engine, X, [KERNELS[1]])[1]
    larger = BasisPlanes(Problem(engine, open_samples(2**0.25 * part), None, hold_labels=True))
    assert solve(twice, y).primal == pytest.approx(solve(larger, y).primal, rel=1e-3)
    np.testing.assert_allclose(twice.kernel_weights, [0.5**0.5] * 2, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises_over_the_rounds_at_one_C(engine, seed):
    X = rings(80, seed)
    planes, _ = make(engine, X, KERNELS)
    rows = []
    limits = Rounds(20, 0, 0.05)
    start = coin_flip(80, np.random.RandomState(seed))
    continuation(planes, start, FORM, (1.3, 2.0, 3.5), 1e-3, limits, rows.append)
    ends = {(row["C"], row["round"]): row["objective"] for row in rows}  # the last sweep of each round
    for (C, number), objective in ends.items():
        if (C, number + 1) in ends:
            assert ends[C, number + 1] <= objective + C * 1e-3  # what the tolerance leaves


def test_a_kernel_that_cannot_divide_the_rows_has_almost_no_weight(engine):
    X = rings(200)
    planes, _ = make(engine, X, KERNELS)
    solve(planes, np.where(np.arange(200) % 2, 1, -1), C=10.0)
    assert planes.kernel_weights[2] < 0.01  # no straight line parts two rings
    assert planes.kernel_weights[:2].min() > 0.1
