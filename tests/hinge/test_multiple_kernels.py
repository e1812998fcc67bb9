"""Labels, margin and weights of kernels together: the laws of the loop under several kernels."""

import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.rules import GivenLabels, coin_flip
from mmcnb.hinge.cccp import CCCPLimits, continuation
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from mmcnb.hinge.multiclass import MulticlassTrainingSet
from mmcnb.hinge.multiple_kernels import MultipleKernelWorkingSet
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import given, ignore, rings, two_groups

KERNELS = [Kernel("rbf", 0.5), Kernel("rbf", 8.0), Kernel("linear", 1.0)]
FORM = Objective("fixed", 0.0, 1.0)


def embedding(X, kernel):
    """The rows in coordinates in which the kernel, centred and of spread 1, is an inner product."""
    gram = kernel(X, X)
    z = gram @ normalization_of(gram, 1e-12)
    z = z - z.mean(axis=0)
    return z / np.sqrt((z**2).sum() / len(X))


def make(engine, clusters, n, kernels=KERNELS, seed=0):
    """Planes, labels for them, the clusters, and the rows in the coordinates of each kernel."""
    if clusters == 2:
        X, y = two_groups(n, seed)
        labels = given(y)
        y = (y > 0).astype(int)
    else:
        y = np.arange(n) % 3
        centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
        X = centres[y] + 0.7 * np.random.default_rng(seed).standard_normal((n, 2))
        labels = GivenLabels(y)
    return (
        make_planes(engine, X, clusters, kernels),
        labels,
        y,
        [embedding(X, one) for one in kernels],
    )


def make_planes(engine, X, clusters=2, kernels=KERNELS):
    parts = [embedding(X, kernel) for kernel in kernels]
    rows = (
        engine,
        open_samples(np.hstack(parts)),
        tuple(np.eye(part.shape[1]) for part in parts),
    )
    bounds = np.ones(clusters, int), np.full(clusters, len(X))
    if clusters == 2:
        return MultipleKernelWorkingSet(TrainingSet(*rows, hold_labels=True))
    return MultipleKernelWorkingSet(
        MulticlassTrainingSet(*rows, hold_labels=True, bounds=bounds)
    )


def solve(planes, labels, C=3.0, eta=1e-3, form=FORM, record=ignore):
    return planes.cutting_plane(labels, form, C, eta, record, SweepBudget())


@pytest.mark.parametrize(
    ("clusters", "threshold", "kernels"),
    [
        (2, "fixed", 2),
        (2, "adaptive", 2),
        (3, "fixed", 2),
        (3, "adaptive", 3),
        (3, "fixed", 1),
    ],
)
def test_clusters_reach_the_objective_of_the_primal_with_a_slack_a_row(
    engine, clusters, threshold, kernels
):
    planes, labels, y, parts = make(engine, clusters, 24, KERNELS[-kernels:])
    solution = solve(planes, labels, eta=1e-8, form=Objective(threshold, 0.0, 2.0))
    # Of two scores W = (w, -w)/2 has the margin of w and half its |w|².
    parts = [part / 2**0.5 for part in parts] if clusters == 2 else parts
    objective, weights = reference.kernel_clusters_primal(parts, y, 3.0, threshold)
    assert solution.primal == pytest.approx(objective, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(solution.quadratic.kernel_weights, weights, atol=1e-3)


def test_the_loop_ends_within_its_tolerance_and_its_values_are_those_of_the_hyperplane(
    engine,
):
    planes, labels, y, parts = make(engine, 2, 60)
    solution = solve(planes, labels)
    weights = solution.quadratic.kernel_weights
    assert solution.status == "converged"
    assert -1e-6 <= solution.gap <= 1e-3 + 1e-6
    assert np.linalg.norm(weights) == pytest.approx(1.0)
    assert (weights >= 0).all()
    v = np.split(
        solution.hyperplane.coef, np.cumsum([part.shape[1] for part in parts])[:-1]
    )
    norm2 = sum(
        w @ w / weight for w, weight in zip(v, weights, strict=True) if weight > 0
    )
    assert norm2 == pytest.approx(solution.quadratic.norm2, rel=1e-6)
    f = np.hstack(parts) @ solution.hyperplane.coef + solution.hyperplane.offset
    expected = reference.hinge_objective(
        f, 2 * y - 1, norm2, 1.0, 3.0, threshold="fixed"
    )
    assert solution.primal == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_the_objective_never_rises_over_the_rounds_at_one_C(engine, seed):
    planes = make_planes(engine, rings(60, seed))
    start = coin_flip(60, np.random.RandomState(seed))
    rows = []
    limits = CCCPLimits(20, eta=1e-3)
    continuation(planes, start, FORM, (1.3, 2.0, 3.5), limits, rows.append)
    # the last sweep of each round
    ends = {(row["C"], row["round"]): row["objective"] for row in rows}
    followed = [(C, number) for C, number in ends if (C, number + 1) in ends]
    assert followed
    for C, number in followed:
        # what the tolerance leaves
        assert ends[C, number + 1] <= ends[C, number] + C * 1e-3


def test_a_kernel_that_cannot_divide_the_rows_has_almost_no_weight(engine):
    labels = given(np.where(np.arange(120) % 2, 1, -1))
    weights = solve(
        make_planes(engine, rings(120)), labels, C=10.0, eta=0.01
    ).quadratic.kernel_weights
    assert weights[2] < 0.01  # no straight line parts two rings
    assert weights[:2].min() > 0.1
