"""The program of the cutting planes, and the compiled loop over rows in memory."""

import numpy as np
import pytest

from mmcnb.kernels import unchecked as kernels
from tests import reference
from tests.hinge.problems import two_groups
from tests.kernels.arguments import no_planes

CONVERGED = 0
DEGENERATE = 2
UNSOLVED = 3
LIMITS = kernels.Limits(C=2.0, eta=0.01, norm2=1e-6, most_planes=1000)


def sample(seed=0, weighted=False, dtype=np.float64):
    """Return rows on landmarks, with labels that are partly wrong, and no planes."""
    rng = np.random.default_rng(seed)
    n = 80
    p = 20
    X, y = two_groups(n, seed, gap=3.0)
    landmarks = X[rng.permutation(n)[:p]]
    F = reference.rbf_kernel_block(X, landmarks, 0.25).astype(dtype)
    shares = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    shares /= shares.sum()
    gram = reference.rbf_kernel_block(landmarks, landmarks, 0.25)
    labels = np.where(rng.random(n) < 0.04, -y, y).astype(np.int8)
    rows = kernels.SampleRows(
        F=F,
        y=labels,
        shares=shares,
        mean=shares @ F.astype(float),
        inverse=np.linalg.inv(gram + 1e-9 * np.eye(p)),
    )
    return rows, no_planes(n, p)


def programs(seed):
    """Planes of any number and scale; some that are nearly the same."""
    rng = np.random.default_rng(seed)
    p = 20
    for _ in range(10):
        count = int(rng.integers(1, 25))
        C = float(rng.choice([1.01, 1.3, 2.0, 10.0, 1000.0]))
        centred = rng.standard_normal(p) * 10 ** rng.uniform(
            -2, 1
        ) + rng.standard_normal((count, p))
        centred *= 10 ** rng.uniform(-4, 1) * rng.uniform(0.05, 1, (count, 1))
        if seed % 3 == 0:
            centred[count // 2 :] = centred[: count - count // 2] * (
                1 + 1e-9 * rng.random()
            )
        yield centred, np.r_[1, rng.random(count - 1)], C
    gram = np.array(  # plain correctors go in circles there
        [
            [0.005896, 0.00164, 0.003715, 0.003693, 0.002247],
            [0.00164, 0.000923, 0.001499, 0.001455, 0.000365],
            [0.003715, 0.001499, 0.002811, 0.002749, 0.001157],
            [0.003693, 0.001455, 0.002749, 0.002808, 0.001211],
            [0.002247, 0.000365, 0.001157, 0.001211, 0.001328],
        ]
    )
    yield (
        np.linalg.cholesky(gram + 1e-6 * np.eye(5)),
        np.array([1.0, 0.311, 0.6595, 0.707, 0.4945]),
        10.0,
    )


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_any_scale_are_solved_as_by_another_solver(seed):
    for centred, s, C in programs(seed):
        given = centred @ centred.T, s, np.zeros(len(s)), C, 0.0, True
        multipliers, rho, xi, _, solved = kernels.plane_qp(*given)
        expected, other_rho, other_xi, *_ = reference.plane_qp(*given)
        least = 1e-9 * (centred**2).sum() / len(s)
        norm2 = (multipliers @ centred) @ (multipliers @ centred)
        assert solved
        assert norm2 == pytest.approx(
            (expected @ centred) @ (expected @ centred), rel=1e-6, abs=least
        )
        assert rho - C * xi == pytest.approx(
            other_rho - C * other_xi, rel=1e-5, abs=10 * C * least
        )
        assert multipliers.min() >= 0
        assert multipliers.sum() <= C * (1 + 1e-8)
        assert s @ multipliers >= 1 - 1e-8


@pytest.mark.parametrize(
    ("dtype", "weighted", "C"), [("float32", False, 1.01), ("float64", True, 3.5)]
)
def test_the_loop_ends_at_the_optimum_and_planes_that_were_found_need_no_more(
    dtype, weighted, C
):
    rows, start = sample(1, weighted, dtype)
    limits = LIMITS._replace(C=C, eta=1e-6)
    F = rows.F.astype(float)
    found = kernels.sample_subproblem(rows, start, limits)
    w = found.hyperplane
    last = kernels.Sweep(*found.history[-1])
    assert found.status == CONVERGED
    assert last.norm2 == pytest.approx(
        reference.n_slack_norm2(F @ rows.inverse @ F.T, rows.y, C, rows.shares),
        rel=1e-3,
    )
    assert last.lower == pytest.approx(last.norm2 / 2 - last.rho + C * max(0, last.xi))
    assert (np.diff(found.history[:, 4]) >= -1e-7 * abs(last.lower)).all()
    assert last.violation <= max(last.xi, 0) + 1e-6 * last.rho
    _, _, sums = reference.most_violated_constraint(
        F, rows.y, rows.shares, w[:-1], w[-1], last.rho
    )
    np.testing.assert_allclose(last[5:], sums[:6], atol=1e-9)
    again = kernels.sample_subproblem(rows, found.state, limits)
    assert (len(again.history), again.status) == (1, CONVERGED)
    np.testing.assert_allclose(again.history[0, 1:4], last[1:4], rtol=1e-6)


def test_planes_that_follow_the_labels_are_those_built_anew():
    rows, state = sample(weighted=True)
    p = 20
    for _ in range(3):
        found = kernels.sample_subproblem(rows, state, LIMITS)
        w = found.hyperplane
        labels = np.where(rows.F @ w[:-1] + w[-1] >= 0, 1, -1).astype(np.int8)
        state = found.state
        rows = rows._replace(y=labels)
    rows = rows._replace(y=np.r_[-labels[:30], labels[30:]])
    no_more = LIMITS._replace(eta=1e99)
    anew = np.zeros_like(state.planes)
    anew[:, : p + 2] = state.planes[:, : p + 2]
    fresh = kernels.SamplePlanes(
        anew, np.zeros_like(state.members), np.zeros_like(state.signs)
    )
    followed = kernels.sample_subproblem(rows, state, no_more).state
    built = kernels.sample_subproblem(rows, fresh, no_more).state
    assert len(state.planes) > 3
    np.testing.assert_array_equal(followed.members, built.members)
    np.testing.assert_allclose(
        followed.planes, built.planes, atol=1e-9 * np.abs(state.planes[1:]).max()
    )


@pytest.mark.parametrize(
    ("limits", "status", "sweeps"),
    [({"norm2": 1e3}, DEGENERATE, 1), ({"C": 0.5}, UNSOLVED, 0)],
)
def test_labels_without_margin_and_programs_without_a_solution_are_told(
    limits, status, sweeps
):
    found = kernels.sample_subproblem(*sample(), LIMITS._replace(**limits))
    assert (found.status, len(found.history)) == (status, sweeps)
