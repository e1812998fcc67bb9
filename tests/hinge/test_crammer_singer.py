"""Laws of the hinge form for k clusters."""

import itertools

import numpy as np
import pytest

from mmcnb.features.rules import GivenLabels
from mmcnb.hinge.cccp import CCCPLimits, continuation
from mmcnb.hinge.cutting_plane import Objective, SweepBudget, WorkingSet
from mmcnb.hinge.multiclass import MulticlassTrainingSet
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import ignore

ADAPTIVE = Objective("adaptive", 0.0, 0.0)


def groups(n, k, seed=0, d=3, gap=2.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return gap * rng.standard_normal((k, d))[labels] + rng.standard_normal(
        (n, d)
    ), labels


def planes_of(engine, X, k, weights=None, low=1, high=None):
    bounds = np.full(k, low), np.full(k, high or len(X) * 4)
    return WorkingSet(
        MulticlassTrainingSet(
            engine, open_samples(X), None, weights, True, bounds=bounds
        )
    )


def solve(planes, labels, C, eta=1e-6, form=ADAPTIVE):
    return planes.cutting_plane(labels, form, C, eta, ignore, SweepBudget())


@pytest.mark.parametrize(
    ("k", "C", "weighted"),
    [(2, 1.5, False), (3, 1.01, True), (3, 2.0, False), (4, 1.5, True)],
)
def test_the_optimum_is_that_of_a_slack_for_each_row_under_any_labels_in_turn(
    engine, k, C, weighted
):
    X, labels = groups(16, k)
    weights = (
        np.random.default_rng(1).integers(1, 4, 16).astype(float) if weighted else None
    )
    shares = np.full(16, 1 / 16) if weights is None else weights / weights.sum()
    planes = planes_of(engine, X, k, weights)
    for y in (labels, np.r_[labels[:-2], labels[-3:-1]], labels):
        solution = solve(planes, GivenLabels(y), C, 1e-7)
        expected = reference.crammer_singer_norm2(X @ X.T, y, k, C, shares)
        f = solution.hyperplane.decide(X)
        quadratic = solution.quadratic
        slack = shares @ np.maximum(0, quadratic.rho - reference.rivals_of(f, y)[1])
        assert solution.status == "converged"
        assert -1e-7 <= solution.gap <= 1e-6
        assert solution.primal == pytest.approx(
            0.5 * quadratic.norm2 - quadratic.rho + C * slack, rel=1e-9
        )
        assert quadratic.norm2 == pytest.approx(expected, rel=1e-4)
        # J = -1/2 |W|²
        assert -2 * solution.objective == pytest.approx(expected, rel=1e-4)
        np.testing.assert_allclose(shares @ f, 0, atol=1e-9)


@pytest.mark.parametrize(("seed", "C"), [(0, 1.5), (1, 3.0)])
def test_the_objective_never_rises_over_label_steps_of_free_sizes(engine, seed, C):
    X, _ = groups(150, 4, seed, gap=3.0)
    labels = GivenLabels(np.random.RandomState(seed).randint(4, size=150))
    planes = planes_of(engine, X, 4)
    ends = []
    for _ in range(6):
        ends.append(solve(planes, labels, C, 1e-4))
        labels = GivenLabels(ends[-1].hyperplane.label(X).astype(np.int64))
    for before, after in itertools.pairwise(ends):
        assert after.objective <= before.primal + 1e-9


def test_the_continuation_holds_the_sizes_and_ends_at_the_best_labels_of_few_rows(
    engine,
):
    X = np.array(
        [[0.0, 0.0], [0.1, 0.0], [3.0, 0.0], [3.0, 0.2], [0.0, 4.0], [0.2, 4.0]]
    )
    best = max(
        set(itertools.permutations([0, 0, 1, 1, 2, 2])),
        key=lambda labels: round(
            reference.crammer_singer_norm2(X @ X.T, labels, 3, 1.2), 5
        ),
    )
    start = GivenLabels(np.array([0, 1, 0, 1, 2, 2]))
    planes = planes_of(engine, X, 3, low=2, high=2)
    state = continuation(
        planes, start, ADAPTIVE, (1.01, 1.2), CCCPLimits(10, eta=0.001), ignore
    )
    y = state.labels.y
    best = np.array(best)
    np.testing.assert_array_equal(y[:, None] == y, best[:, None] == best)
    np.testing.assert_array_equal(state.boundary.label(X), y)


def test_labels_that_cannot_be_separated_are_said_to_be_so(engine):
    X = np.random.default_rng(0).standard_normal((300, 2))
    labels = GivenLabels(np.arange(300) % 3)
    form = Objective("adaptive", 0.0, 2.0)
    assert (
        solve(planes_of(engine, X, 3), labels, 50.0, 0.01, form).status == "degenerate"
    )
