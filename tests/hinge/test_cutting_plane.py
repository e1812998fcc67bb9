"""The loop over cutting planes for fixed labels: where it ends, and that it ends at the optimum."""

import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.hinge.cutting_plane import Objective, SweepBudget
from mmcnb.hinge.own_basis import OwnBasisWorkingSet
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import given, ignore, make_planes, two_groups

KINDS = ["exact", "all rows", "landmarks", "linear", "sample"]


def weights_of(n, weighted):
    """Sample weights, and the share of each row."""
    weights = (
        np.random.default_rng(3).integers(1, 4, n).astype(float) if weighted else None
    )
    return weights, np.full(n, 1 / n) if weights is None else weights / weights.sum()


def solve(
    planes, y, C, eta, threshold="adaptive", balance=0.0, record=ignore, sweeps=None
):
    form = Objective(threshold, balance, 1.0)
    return planes.cutting_plane(given(y), form, C, eta, record, SweepBudget(sweeps))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("threshold", "balance", "eta", "C"),
    [
        ("adaptive", 0.0, 0.1, 1.01),
        ("adaptive", 0.0, 1e-3, 4.3),
        ("adaptive", 0.05, 1e-3, 4.3),
        ("fixed", 0.0, 1e-3, 1.01),
        ("fixed", 0.0, 0.1, 4.3),
    ],
)
def test_gap_at_exit_is_within_eta_and_the_record_holds_it(
    engine, kind, threshold, balance, eta, C
):
    X, y = two_groups(60, gap=4.0)
    (planes, _), rows = make_planes(kind, engine, X), []
    solution = solve(planes, y, C, eta, threshold, balance, rows.append)
    assert solution.status == "converged"
    f = planes.training_set.decide(solution.hyperplane)
    quadratic = solution.quadratic
    true = reference.hinge_objective(
        f, y, quadratic.norm2, quadratic.rho, C, threshold=threshold
    )
    assert solution.primal == pytest.approx(true, rel=1e-9, abs=1e-12)
    assert solution.objective <= solution.primal + 1e-9
    assert solution.primal - solution.objective <= C * eta * quadratic.rho + 1e-9
    assert solution.gap <= eta + 1e-6
    assert f.mean() == pytest.approx(quadratic.beta, abs=1e-9)
    last = rows[-1]
    assert (last["C"], last["objective"], last["primal"]) == (
        C,
        solution.objective,
        solution.primal,
    )
    assert last["norm"] == pytest.approx(quadratic.norm2**0.5)
    assert last["rho"] == quadratic.rho
    assert last["changed"] == np.count_nonzero((f >= 0) != (y > 0))
    hinge = reference.hinge_objective(f, y, 0.0, quadratic.rho, 1.0, threshold="fixed")
    assert last["violation"] == pytest.approx(hinge - quadratic.xi, abs=1e-9)
    lower = [row["objective"] for row in rows]
    assert (np.diff(lower) >= -1e-7 * abs(lower[-1])).all()
    assert [row["planes"] for row in rows][:3] == [1, 2, 3][: len(rows)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("C", "weighted"), [(1.01, False), (1.7, True), (2.7, False)])
def test_the_optimum_is_that_of_a_slack_for_each_row_under_any_labels_in_turn(
    engine, kind, C, weighted
):
    """Planes of other labels, rebuilt, lead to the same optimum as new ones."""
    n = 23
    (X, _), y = two_groups(n, gap=5.0), np.where(np.arange(n) % 2, 1, -1)
    weights, shares = weights_of(n, weighted)
    planes, K = make_planes(kind, engine, X, weights=weights)
    for labels in (y, np.r_[y[:-2], -y[-2:]], y):
        solution = solve(planes, labels, C, 1e-6)
        norm2 = reference.n_slack_norm2(K, labels, C, shares)
        assert solution.quadratic.norm2 == pytest.approx(norm2, rel=2e-4)
        # J_CP = -1/2 |w|^2 at the optimum.
        assert solution.objective == pytest.approx(-0.5 * norm2, rel=2e-4)
        fresh, _ = make_planes(kind, engine, X, weights=weights)
        w = solve(fresh, labels, C, 1e-6).hyperplane
        f, expected = (
            one.training_set.decide(h)
            for one, h in ((planes, solution.hyperplane), (fresh, w))
        )
        np.testing.assert_allclose(f, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_planes_rebuilt_under_their_labels_or_over_the_same_rows_need_no_more(
    engine, kind
):
    X, y = two_groups(60, gap=4.0)
    planes, _ = make_planes(kind, engine, X)
    solve(planes, y, 2.7, 1e-4)
    for again in (planes, planes.over(planes.training_set)):
        rows = []
        assert solve(again, y, 2.7, 1e-4, record=rows.append).status == "converged"
        assert len(rows) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_labels_without_margin_are_degenerate(engine, kind):
    # Each row twice, once with each label: nothing separates them.
    X, _ = two_groups(20)
    planes, _ = make_planes(kind, engine, np.repeat(X, 2, axis=0))
    assert solve(planes, np.tile([1, -1], 20), 3.0, 0.01).status == "degenerate"


def test_loop_ends_where_the_sweeps_are_spent_or_no_more_planes_may_be_added(engine):
    X, y = two_groups(60)
    planes, _ = make_planes("exact", engine, X)
    rows = []
    assert solve(planes, y, 4.3, 1e-6, record=rows.append, sweeps=4).status == "sweeps"
    assert len(rows) == 3  # another sweep makes the plane of all rows
    for kind in ("exact", "sample"):
        planes, _ = make_planes(kind, engine, X)
        planes.max_planes = 3
        rows = []
        assert solve(planes, y, 4.3, 1e-6, record=rows.append).status == "stalled"
        assert len(rows) == 4  # three planes are added to that of all rows


def test_a_plane_without_weight_in_three_solutions_is_dropped_but_the_first(
    engine, monkeypatch
):
    X, y = two_groups(60)
    planes, _ = make_planes("exact", engine, X)
    rows = []
    multipliers = []
    solve_planes = planes.solve

    def recorded(*arguments):
        solution = solve_planes(*arguments)
        multipliers.append(solution.multipliers)
        return solution

    # Internal: the history has the number of planes, but not their multipliers.
    monkeypatch.setattr(planes, "solve", recorded)
    assert solve(planes, y, 4.3, 1e-3, record=rows.append).status == "converged"
    idle = [0]
    for row, weights in zip(rows, multipliers, strict=True):
        assert row["planes"] == len(idle) == len(weights)
        idle = [
            0 if weight > 1e-9 * 4.3 else count + 1
            for count, weight in zip(idle, weights, strict=True)
        ]
        idle = [count for k, count in enumerate(idle) if k == 0 or count < 3]
        idle.append(0)
    assert rows[-1]["planes"] < len(rows)
    assert np.isinf(planes.generators[0].rho)


def test_the_loop_stalls_when_thirty_planes_do_not_raise_the_bound(engine):
    X, y = two_groups(60)
    # Estimated basis vectors express the planes only roughly.
    kernel = Kernel("rbf", 0.2)
    planes = OwnBasisWorkingSet(engine, open_samples(X), kernel, None, 0)
    rows = []
    assert solve(planes, y, 4.3, 1e-3, record=rows.append).status == "stalled"
    lower = np.array([row["objective"] for row in rows])
    gains = [lower[k] - lower[: k - 29].max() for k in range(30, len(lower))]
    is_small = np.array(gains) <= 1e-6 * np.abs(lower[30:])
    assert is_small[-1]
    assert not is_small[:-1].any()


@pytest.mark.parametrize("kind", ["exact", "sample"])
@pytest.mark.parametrize("threshold", ["adaptive", "fixed"])
def test_a_margin_is_none_below_a_millionth_of_the_variance(engine, kind, threshold):
    X, y = two_groups(60, gap=4.0)
    planes, _ = make_planes(kind, engine, X)
    norm2 = solve(planes, y, 4.3, 1e-3, threshold).quadratic.norm2
    ends = []
    for share in (0.99e-6, 1.01e-6):
        planes, _ = make_planes(kind, engine, X)
        form = Objective(threshold, 0.0, norm2 / share)
        end = planes.cutting_plane(given(y), form, 4.3, 1e-3, ignore, SweepBudget())
        ends.append(end.status)
    # The smallest |w| of a loop is that of its end.
    if threshold == "adaptive":
        assert ends == ["degenerate", "converged"]
    else:
        assert ends == ["converged", "converged"]
