"""Laws of the hinge form for k clusters."""

import itertools

import numpy as np
import pytest

from mmcnb.features.rules import GivenLabels, Scores
from mmcnb.hinge.cccp import CCCPLimits, continuation
from mmcnb.hinge.cutting_plane import Objective, SweepBudget, WorkingSet
from mmcnb.hinge.multiclass import MarginPass, MulticlassTrainingSet, RunnerUpPass
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import given, ignore, make_planes, two_groups

ADAPTIVE = Objective("adaptive", 0.0, 0.0)


def groups(n, k, seed=0, d=3, gap=2.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return gap * rng.standard_normal((k, d))[labels] + rng.standard_normal((n, d)), labels


def planes_of(engine, X, k, weights=None, low=1, high=None):
    bounds = np.full(k, low), np.full(k, high or len(X) * 4)
    return WorkingSet(MulticlassTrainingSet(engine, open_samples(X), None, weights, True, bounds=bounds))


def solve(planes, labels, C, eta=1e-6, objective=ADAPTIVE):
    return planes.cutting_plane(labels, objective, C, eta, ignore, SweepBudget())


def centred(X):
    return X - X.mean(axis=0)


@pytest.mark.parametrize("kind", ["linear", "landmarks"])
@pytest.mark.parametrize("C", [1.01, 1.5, 2.0])
def test_two_clusters_have_twice_the_objective_of_the_two_cluster_form(engine, kind, C):
    X, y = two_groups(80, gap=4.0)
    pair, _ = make_planes(kind, engine, X)
    one = solve(pair, given(y), C)
    two = WorkingSet(
        MulticlassTrainingSet(
            engine,
            pair.training_set.features,
            pair.training_set.normalization,
            hold_labels=True,
            bounds=(np.ones(2, int), np.full(2, 80)),
        )
    )
    other = solve(two, GivenLabels((y > 0).astype(np.int64)), C)
    assert one.status == other.status == "converged"
    assert other.objective == pytest.approx(2 * one.objective, rel=1e-4)
    assert other.quadratic.rho == pytest.approx(2 * one.quadratic.rho, rel=1e-4)
    assert other.quadratic.norm2 == pytest.approx(2 * one.quadratic.norm2, rel=1e-4)
    w = one.hyperplane.coef
    np.testing.assert_allclose(other.hyperplane.coef, np.c_[-w, w], atol=1e-3 * np.abs(w).max())


@pytest.mark.parametrize(("k", "C"), [(2, 1.5), (3, 1.01), (3, 2.0), (4, 1.5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_of_the_problem_with_a_slack_for_each_row(engine, k, C, weighted):
    X, labels = groups(16, k)
    weights = np.random.default_rng(1).integers(1, 4, 16).astype(float) if weighted else None
    shares = np.full(16, 1 / 16) if weights is None else weights / weights.sum()
    Z = X - shares @ X
    solution = solve(planes_of(engine, X, k, weights), GivenLabels(labels), C, 1e-7)
    expected = reference.crammer_singer_norm2(Z @ Z.T, labels, k, C, shares)
    assert solution.quadratic.norm2 == pytest.approx(expected, rel=1e-4)
    assert -2 * solution.objective == pytest.approx(expected, rel=1e-4)  # J = -1/2 |W|²


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("eta", [0.1, 0.01])
@pytest.mark.parametrize("C", [1.5, 3.0, 10.0])
def test_the_gap_at_the_end_is_at_most_the_tolerance(engine, k, eta, C):
    X, labels = groups(200, k, d=6)
    solution = solve(planes_of(engine, X, k), GivenLabels(labels), C, eta)
    assert solution.status == "converged"
    assert -1e-7 <= solution.gap <= eta * (1 + 1e-6)
    f = solution.hyperplane.decide(X)
    _, margins = reference.rivals_of(f, labels)
    slack = np.maximum(0, solution.quadratic.rho - margins).mean()
    again = 0.5 * solution.quadratic.norm2 - solution.quadratic.rho + C * slack
    assert solution.primal == pytest.approx(again, rel=1e-9)


def test_the_first_plane_is_feasible_and_gives_the_sums_of_the_clusters(engine):
    for k, seed in itertools.product((2, 3, 5), range(5)):
        X, _ = groups(60, k, seed)
        labels = np.random.RandomState(seed).randint(k, size=60)
        labels[:k] = np.arange(k)
        planes = planes_of(engine, X, k)
        planes.relabel(GivenLabels(labels))
        assert planes.s.tolist() == [1.0]
        Z = centred(X)
        sums = np.array([Z[labels == h].sum(axis=0) for h in range(k)]) / 60
        np.testing.assert_allclose(planes.centred[0].reshape(k, -1), sums * k / (k - 1), atol=1e-12)
        quadratic = planes.solve(1.01, 0.0, "adaptive")  # raises where it is infeasible
        f = Z @ planes.hyperplane(quadratic.multipliers, 0.0).coef
        others = (f.sum(axis=1, keepdims=True) - f) / (k - 1)
        mean = (f - others)[np.arange(60), labels].mean()  # its margin is a mean over the rivals
        assert quadratic.rho == pytest.approx(mean, rel=1e-6)


def test_planes_signed_anew_are_those_found_under_the_new_labels(engine):
    X, labels = groups(100, 3)
    planes = planes_of(engine, X, 3)
    solve(planes, GivenLabels(labels), 3.0)
    other = GivenLabels(np.roll(labels, 1))
    planes.relabel(other)
    fresh = planes_of(engine, X, 3)
    for place, (scores, rho) in enumerate(planes.generators[1:], 1):
        fresh.relabel(other)
        fresh.add(fresh.find_most_violated(other, scores, rho))
        np.testing.assert_allclose(planes.centred[place], fresh.centred[1], atol=1e-12)
        assert planes.s[place] == pytest.approx(fresh.s[1])
        fresh = planes_of(engine, X, 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [1.5, 3.0])
def test_the_objective_never_rises_over_label_steps_of_free_sizes(engine, seed, C):
    X, _ = groups(150, 4, seed, gap=3.0)
    labels = GivenLabels(np.random.RandomState(seed).randint(4, size=150))
    planes = planes_of(engine, X, 4)
    ends = []
    for _ in range(6):
        solution = solve(planes, labels, C, 1e-4)
        ends.append((solution.objective, solution.primal))
        labels = GivenLabels(solution.hyperplane.label(X).astype(np.int64))
    for (_, primal), (objective, _) in itertools.pairwise(ends):
        assert objective <= primal + 1e-9


def test_the_continuation_holds_the_sizes_and_ends_at_the_best_labels_of_few_rows(engine):
    X = np.array([[0.0, 0.0], [0.1, 0.0], [3.0, 0.0], [3.0, 0.2], [0.0, 4.0], [0.2, 4.0]])
    planes = planes_of(engine, X, 3, low=2, high=2)
    K = centred(X) @ centred(X).T
    best = max(
        (labels for labels in set(itertools.permutations([0, 0, 1, 1, 2, 2]))),
        key=lambda labels: round(reference.crammer_singer_norm2(K, np.array(labels), 3, 1.2), 5),
    )
    start = GivenLabels(np.array([0, 0, 1, 1, 2, 2])[[0, 2, 1, 3, 4, 5]])
    state = continuation(planes, start, ADAPTIVE, (1.01, 1.2), 0.001, CCCPLimits(10), ignore)
    found = state.labels.y
    assert np.bincount(found).tolist() == [2, 2, 2]
    same = found[:, None] == found[None, :]
    assert np.array_equal(same, np.array(best)[:, None] == np.array(best)[None, :])
    np.testing.assert_array_equal(state.boundary.label(X), found)


def test_labels_that_cannot_be_separated_are_said_to_be_so(engine):
    X = np.random.default_rng(0).standard_normal((300, 2))
    labels = GivenLabels(np.arange(300) % 3)
    solution = solve(planes_of(engine, X, 3), labels, 50.0, 0.01, Objective("adaptive", 0.0, 2.0))
    assert solution.status == "degenerate"


def test_margins_and_sizes_of_scores(engine):
    X, _ = groups(5000, 4)
    rule = Scores(np.random.default_rng(0).standard_normal((3, 4)), np.arange(4) / 10)
    weights = np.random.default_rng(1).random(5000)
    hinge, sizes, first, _ = engine.run(MarginPass(weights, rule, 0.7), open_samples(X))
    f = rule.decide(X)
    labels = f.argmax(axis=1)
    _, margins = reference.rivals_of(f, labels)
    assert hinge == pytest.approx((weights * np.maximum(0, 0.7 - margins)).sum())
    np.testing.assert_allclose(sizes, np.bincount(labels, weights, 4))
    assert first.tolist() == [int(np.argmax(labels == h)) for h in range(4)]


def test_sums_of_blocks_add_up(engine):
    X, labels = groups(9000, 3)
    scores = Scores(np.random.default_rng(0).standard_normal((3, 3)), np.zeros(3))
    sweep = RunnerUpPass(None, GivenLabels(labels), [(scores, np.inf), (scores, 1.0)])
    whole = engine.run(sweep, open_samples(X))
    direct = sweep.block(X, 0, 9000)
    for one, other in zip(whole, direct, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9)
