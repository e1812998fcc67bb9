"""Labels, margin and weights of kernels together: the laws of the loop under several kernels."""

import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.rules import GivenLabels, coin_flip
from mmcnb.hinge.cccp import CCCPLimits, continuation
from mmcnb.hinge.cutting_plane import Objective, SweepBudget, WorkingSet
from mmcnb.hinge.multiclass import MulticlassTrainingSet
from mmcnb.hinge.multiple_kernels import MultipleKernelWorkingSet
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.least_squares.objective import floor_bounds
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


def make(engine, X, kernels):
    parts = [embedding(X, kernel) for kernel in kernels]
    blocks = tuple(np.eye(part.shape[1]) for part in parts)
    training_set = TrainingSet(engine, open_samples(np.hstack(parts)), blocks, hold_labels=True)
    return MultipleKernelWorkingSet(training_set), parts


def solve(planes, y, C=3.0, eta=1e-3):
    return planes.cutting_plane(given(y), FORM, C, eta, ignore, SweepBudget())


def test_one_kernel_is_the_loop_of_one_kernel(engine):
    X, y = two_groups(60)
    planes, parts = make(engine, X, KERNELS[:1])
    alone = WorkingSet(TrainingSet(engine, open_samples(parts[0]), None, hold_labels=True))
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
    larger = WorkingSet(TrainingSet(engine, open_samples(2**0.25 * part), None, hold_labels=True))
    assert solve(twice, y).primal == pytest.approx(solve(larger, y).primal, rel=1e-3)
    np.testing.assert_allclose(twice.kernel_weights, [0.5**0.5] * 2, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises_over_the_rounds_at_one_C(engine, seed):
    X = rings(80, seed)
    planes, _ = make(engine, X, KERNELS)
    rows = []
    limits = CCCPLimits(20, 0, 0.05)
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


# -- more than two clusters ------------------------------------------------------------------


def three_groups(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return centres[labels] + 0.7 * rng.standard_normal((n, 2)), labels


def make_clusters(engine, X, kernels, kind=MultipleKernelWorkingSet, k=3):
    parts = [embedding(X, kernel) for kernel in kernels]
    bounds, blocks = floor_bounds(len(X), k, 0.1), tuple(np.eye(part.shape[1]) for part in parts)
    training_set = MulticlassTrainingSet(
        engine, open_samples(np.hstack(parts)), blocks, hold_labels=True, bounds=bounds
    )
    return kind(training_set), parts


def solve_clusters(planes, labels, form=FORM, C=3.0, eta=1e-3):
    return planes.cutting_plane(GivenLabels(labels), form, C, eta, ignore, SweepBudget())


@pytest.mark.parametrize("threshold", ["fixed", "adaptive"])
@pytest.mark.parametrize("seed", range(2))
def test_two_clusters_reach_the_objective_of_the_primal_with_a_slack_a_row(engine, threshold, seed):
    X, y = two_groups(24, seed=seed)
    planes, parts = make(engine, X, KERNELS[1:])
    form = Objective(threshold, 0.0, 2.0)
    found = planes.cutting_plane(given(y), form, 3.0, 1e-8, ignore, SweepBudget())
    # Of two scores W = (w, -w)/2 has the margin of w and half its |w|².
    smaller = [part / 2**0.5 for part in parts]
    rho = found.quadratic.rho
    slack = np.maximum(
        0, rho - y * (np.hstack(parts) @ found.hyperplane.coef + found.hyperplane.offset)
    ).mean()
    assert found.primal == pytest.approx(found.value(slack), abs=1e-9)
    objective, _ = reference.kernel_clusters_primal(smaller, (y > 0).astype(int), 3.0, threshold)
    assert found.primal == pytest.approx(objective, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("threshold", ["fixed", "adaptive"])
@pytest.mark.parametrize("seed", range(2))
def test_k_clusters_reach_the_objective_of_the_primal_with_a_slack_a_row(engine, threshold, seed):
    X, labels = three_groups(24, seed)
    planes, parts = make_clusters(engine, X, KERNELS[1:])
    form = Objective(threshold, 0.0, 2.0)
    found = solve_clusters(planes, labels, form, eta=1e-8)
    objective, weights = reference.kernel_clusters_primal(parts, labels, 3.0, threshold)
    assert found.primal == pytest.approx(objective, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(planes.kernel_weights, weights, atol=1e-3)


def test_k_clusters_under_one_kernel_are_those_of_the_loop_of_one_kernel(engine):
    X, labels = three_groups(60)
    several, _ = make_clusters(engine, X, KERNELS[:1])
    one, _ = make_clusters(engine, X, KERNELS[:1], WorkingSet)
    assert solve_clusters(several, labels, eta=1e-6).primal == pytest.approx(
        solve_clusters(one, labels, eta=1e-6).primal, rel=1e-5
    )


def test_the_mean_scores_of_k_clusters_are_equal(engine):
    X, labels = three_groups(60)
    planes, parts = make_clusters(engine, X, KERNELS)
    found = solve_clusters(planes, labels)
    means = found.hyperplane.decide(np.hstack(parts)).mean(axis=0)
    np.testing.assert_allclose(means, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_planes_over_the_same_rows_are_the_same_planes(engine, kind):
    if kind == "two":
        X, y = two_groups(60)
        planes, _ = make(engine, X, KERNELS)
        labels = given(y)
    else:
        X, y = three_groups(60)
        planes, _ = make_clusters(engine, X, KERNELS)
        labels = GivenLabels(y)
    planes.cutting_plane(labels, FORM, 3.0, 1e-3, ignore, SweepBudget())
    again = planes.over(planes.training_set.over(planes.training_set.features, None, hold_labels=True))
    planes.relabel(labels)
    again.relabel(labels)
    assert len(again.generators) == len(planes.generators) > 1
    np.testing.assert_array_equal(again.centred, planes.centred)
    np.testing.assert_array_equal(again.coefs, planes.coefs)


# -- the number of cutting planes ------------------------------------------------------------


def spread(parts, clusters):
    """The largest fourth root of Σ_k |Ψ_k|⁴ over all planes Ψ, squared."""
    fourth = sum((part**2).sum(axis=1) ** 2 for part in parts)
    return float(np.sqrt(fourth.max())) * (1 if clusters == 2 else 2)


@pytest.mark.parametrize("clusters", [2, 3])
@pytest.mark.parametrize(
    ("n", "C", "eta"), [(24, 3.0, 0.03), (96, 0.5, 0.3), (96, 3.0, 0.003), (96, 20.0, 0.03)]
)
def test_planes_are_at_most_a_multiple_of_C_over_the_squared_tolerance(engine, clusters, n, C, eta):
    """A plane that is violated by v raises the optimum, which is at most C, by min(v²/24 R, C v/2) or more.

    So there are at most 1 + C max(24 R/eta², 2/(C eta)) planes, for any number of rows and features: Lemma
    3.2 of Zhao, Kwok and Zhang, with R the square of the largest norm N of a plane, N(Ψ)⁴ = Σ_k |Ψ_k|⁴. The
    dual of the SOCP is s'λ - 1/2 N(Σ λ_p Ψ_p)². At its optimum a step h towards the new plane, which takes
    the share h/C of all other multipliers, has a slope of at least v. The square of a norm of fourth powers
    is 3-smooth, and the step is at most 2 h R^(1/2) long. So it gains h v - 6 R h² or more, which is largest
    at h = v/12 R, or at C if that is less.
    """
    if clusters == 2:
        X, y = two_groups(n)
        (planes, parts), labels = make(engine, X, KERNELS), given(y)
    else:
        X, y = three_groups(n)
        (planes, parts), labels = make_clusters(engine, X, KERNELS), GivenLabels(y)
    rows, R = [], spread(parts, clusters)
    found = planes.cutting_plane(labels, FORM, C, eta, rows.append, SweepBudget())
    assert found.status == "converged"
    values, violations = (np.array([row[name] for row in rows]) for name in ("objective", "violation"))
    least = np.minimum(violations**2 / (24 * R), C * violations / 2)[:-1]
    assert (violations[:-1] > eta).all()
    assert (np.diff(values) >= least - 1e-6 * C).all()
    assert values[-1] <= C * (1 + 1e-6)
    assert len(rows) <= 1 + C * max(24 * R / eta**2, 2 / (C * eta))
