"""The compiled loop over rows in memory: its quadratic program, and what makes it end."""

import numpy as np
import pytest

from mmcnb.kernels import cutting_plane
from mmcnb.kernels import unchecked as kernels
from tests import reference
from tests.hinge.problems import two_groups
from tests.kernels.inputs import DTYPES

LIMITS = {"eta": 0.01, "norm2": 1e-6, "most_planes": 1000}


def sample(n=200, p=20, seed=0, weighted=False, dtype=np.float64):
    """Rows on landmarks, labels that are partly wrong, and no planes yet: arguments of the kernel."""
    rng = np.random.default_rng(seed)
    X, y = two_groups(n, seed, gap=3.0)
    landmarks = X[rng.permutation(n)[:p]]
    gram = np.exp(-((landmarks[:, None] - landmarks) ** 2).sum(axis=2) / 4)
    F = np.exp(-((X[:, None] - landmarks) ** 2).sum(axis=2) / 4).astype(dtype)
    shares = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    shares /= shares.sum()
    planes = np.zeros((1, 3 * p + 3))
    planes[0, p + 1] = np.inf
    labels = np.where(rng.random(n) < 0.04, -y, y).astype(np.int8)
    inverse = np.linalg.inv(gram + 1e-9 * np.eye(p))
    rows = {"F": F, "y": labels, "shares": shares, "mean": shares @ F.astype(float), "inverse": inverse}
    state = {"planes": planes, "members": np.zeros((1, n), np.int8), "signs": np.zeros(n, np.int8)}
    return rows | state


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("C", [1.01, 2.0, 10.0])
def test_multipliers_are_those_of_another_solver(seed, C):
    given, rng = sample(seed=seed), np.random.default_rng(seed)
    n, p = given["F"].shape
    count = int(rng.integers(1, 12))
    # Planes with rows drawn at random; the first has every row. No label changes, so they stay as they are.
    members = (rng.random((count, n)) < rng.random((count, 1))).astype(np.int8)
    members[0] = 1
    basics = reference._of_members(
        given["F"], given["y"], given["shares"], given["mean"], given["inverse"], members
    )
    s, centred, coefs = basics
    given["planes"] = np.column_stack([np.zeros((count, p + 1)), np.full(count, np.inf), s, centred, coefs])
    given |= {"members": members, "signs": given["y"].copy()}
    *_, multipliers, _, history, _ = kernels.sample_subproblem(**given, **LIMITS | {"C": C, "eta": 1e9})
    _, rho, xi, norm2, *_ = history[0]
    expected = reference.plane_qp(centred @ coefs.T, s, np.zeros(count), C)
    assert norm2 == pytest.approx(expected[0] @ centred @ coefs.T @ expected[0], rel=1e-7, abs=1e-12)
    assert (rho, xi) == (pytest.approx(expected[1], rel=1e-6, abs=1e-9), pytest.approx(expected[2], abs=1e-7))
    assert multipliers.min() >= 0
    assert multipliers.sum() <= C + 1e-8
    assert s @ multipliers >= 1 - 1e-8


@pytest.mark.parametrize("seed", range(40))
def test_programs_of_any_scale_are_solved(seed):
    rng, p = np.random.default_rng(seed), 20
    for _ in range(50):
        count, C = int(rng.integers(1, 25)), float(rng.choice([1.01, 1.3, 2.0, 10.0, 1000.0]))
        centred = rng.standard_normal(p) * 10 ** rng.uniform(-2, 1) + rng.standard_normal((count, p))
        centred *= 10 ** rng.uniform(-4, 1) * rng.uniform(0.05, 1, (count, 1))
        if seed % 3 == 0:  # planes that are nearly the same
            centred[count // 2 :] = centred[: count - count // 2] * (1 + 1e-9 * rng.random())
        s = np.r_[1, rng.random(count - 1)]
        given = sample(n=20, p=p, seed=seed) | LIMITS | {"C": C, "eta": 1e99, "norm2": 0.0}
        given |= {"inverse": np.eye(p), "signs": given["y"].copy(), "members": np.zeros((count, 20), np.int8)}
        planes = [np.zeros((count, p + 1)), np.full(count, np.inf), s, centred, centred]
        *_, multipliers, _, history, status = kernels.sample_subproblem(
            **given | {"planes": np.column_stack(planes)}
        )
        assert status == cutting_plane.CONVERGED
        expected = reference.plane_qp(centred @ centred.T, s, np.zeros(count), C)[0] @ centred
        least = 1e-9 * (centred**2).sum() / count
        assert history[0, 3] == pytest.approx(expected @ expected, rel=1e-6, abs=least)
        assert multipliers.sum() <= C * (1 + 1e-8)
        assert s @ multipliers >= 1 - 1e-8


def test_a_program_on_which_plain_correctors_go_in_circles_is_solved():
    gram = np.array(
        [
            [0.005896, 0.00164, 0.003715, 0.003693, 0.002247],
            [0.00164, 0.000923, 0.001499, 0.001455, 0.000365],
            [0.003715, 0.001499, 0.002811, 0.002749, 0.001157],
            [0.003693, 0.001455, 0.002749, 0.002808, 0.001211],
            [0.002247, 0.000365, 0.001157, 0.001211, 0.001328],
        ]
    )
    s, centred = np.array([1.0, 0.311, 0.6595, 0.707, 0.4945]), np.linalg.cholesky(gram + 1e-6 * np.eye(5))
    planes = [np.zeros((5, 6)), np.full(5, np.inf), s, centred, centred]
    given = sample(n=20, p=5) | LIMITS | {"C": 10.0, "eta": 1e9, "inverse": np.eye(5)}
    given |= {"planes": np.column_stack(planes), "members": np.zeros((5, 20), np.int8)}
    *_, history, status = kernels.sample_subproblem(**given | {"signs": given["y"].copy()})
    assert status == cutting_plane.CONVERGED
    expected = reference.plane_qp(centred @ centred.T, s, np.zeros(5), 10.0)[0] @ centred
    assert history[0, 3] == pytest.approx(expected @ expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1.01, 2.0])
def test_the_loop_equals_its_plain_twin(dtype, weighted, C):
    for seed in range(4):
        given = sample(seed=seed, weighted=weighted, dtype=dtype) | LIMITS | {"C": C, "eta": 1e-5}
        found, expected = kernels.sample_subproblem(**given), reference.sample_subproblem(**given)
        assert found[-1] == expected[-1]
        np.testing.assert_array_equal(found[2], expected[2])
        np.testing.assert_allclose(found[5][-1, 3:5], expected[5][-1, 3:5], rtol=1e-4)


def test_arguments_stay_as_they_are():
    given = sample() | LIMITS | {"C": 2.0}
    before = {name: np.copy(value) for name, value in given.items()}
    kernels.sample_subproblem(**given)
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


def test_planes_that_follow_the_labels_are_those_built_anew():
    given = sample(weighted=True) | LIMITS | {"C": 2.0}
    for _ in range(3):
        planes, members, signs, _, w, _, _ = kernels.sample_subproblem(**given)
        labels = np.where(given["F"] @ w[:-1] + w[-1] >= 0, 1, -1).astype(np.int8)
        given |= {"planes": planes, "members": members, "signs": signs, "y": labels}
    p = given["F"].shape[1]
    f = given["F"] @ planes[:, :p].T + planes[:, p]
    np.testing.assert_array_equal(members.T, signs[:, None] * f <= planes[:, p + 1])
    built = reference._of_members(
        given["F"], signs, given["shares"], given["mean"], given["inverse"], members
    )
    held = planes[:, p + 2], planes[:, p + 3 : 2 * p + 3], planes[:, 2 * p + 3 :]
    for one, other in zip(built, held, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(one).max())


def test_planes_that_were_found_need_no_more_of_their_kind():
    given = sample() | LIMITS | {"C": 2.0}
    planes, members, signs, *_, history, _ = kernels.sample_subproblem(**given)
    assert len(history) > 3
    state = {"planes": planes, "members": members, "signs": signs}
    *_, again, status = kernels.sample_subproblem(**given | state)
    assert (len(again), status) == (1, cutting_plane.CONVERGED)
    np.testing.assert_allclose(again[0, 1:4], history[-1, 1:4], rtol=1e-6)


def test_gap_at_the_end_is_within_eta():
    given = sample() | LIMITS | {"C": 3.5, "eta": 1e-4}
    *_, history, status = kernels.sample_subproblem(**given)
    assert status == cutting_plane.CONVERGED
    assert history[-1, 7] <= max(history[-1, 2], 0) + 1e-4 * history[-1, 1]


def test_labels_without_margin_are_degenerate():
    given = sample(n=40) | LIMITS | {"C": 2.0, "norm2": 1e3}
    *_, history, status = kernels.sample_subproblem(**given)
    assert (status, len(history)) == (cutting_plane.DEGENERATE, 1)


def test_a_program_without_a_solution_is_told():
    *_, history, status = kernels.sample_subproblem(**sample() | LIMITS | {"C": 0.5})
    assert (status, len(history)) == (cutting_plane.UNSOLVED, 0)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_lower_bound_that_no_longer_rises_stalls(sign):
    rising = [sign * 2.0 + 0.1 * step for step in range(cutting_plane.STALL_PLANES + 5)]
    for bounds in (
        rising,
        [*rising, *[rising[-1]] * cutting_plane.STALL_PLANES],
        [1.0] * (cutting_plane.STALL_PLANES + 1),
    ):
        for count in range(1, len(bounds) + 1):
            assert kernels.stalls(np.array(bounds[:count])) == reference.stalls(bounds[:count])
    assert kernels.stalls(np.array(bounds))


def test_planes_without_weight_are_dropped_but_not_the_first():
    idle, counted = np.zeros(4, np.int64), np.zeros(4)
    for _ in range(cutting_plane.IDLE_SOLVES):
        multipliers = np.array([0.0, 1.0, 1e-12, 0.0])
        stay, (expected, counted) = (
            kernels.count_idle(idle, multipliers, 2.0),
            reference.count_idle(counted, multipliers, 2.0),
        )
        np.testing.assert_array_equal(stay, expected)
        np.testing.assert_array_equal(idle, counted)
    assert stay.tolist() == [True, True, False, False]
