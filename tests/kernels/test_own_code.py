"""Every routine can be called inside a function that a user compiles."""

import numba  # noqa: TID251  a user's own njit code
import numpy as np
import pytest

from mmcnb import kernels
from mmcnb.hinge.qp import solve_kernel_planes
from mmcnb.kernels import unchecked
from mmcnb.samples import CSRBlock
from tests.hinge.test_socp import CASES, kernel_planes
from tests.kernels.arguments import good_arguments
from tests.kernels.test_twins import copied

pytestmark = pytest.mark.slow
STEPS = 200
GAP = 1e-13


def inside(name):
    """Return a user's function whose compiled code calls a routine."""
    routine = getattr(unchecked, name)

    @numba.njit
    def call(*arguments):
        return routine(*arguments)

    return call


def arguments_of(name):
    """Return what the unchecked routine takes, with the arrays of CSR rows apart."""
    base = name.replace("_csr", "")
    given = good_arguments(base, seed=2, sparse=base != name)
    first, *others = given.values()
    if not isinstance(first, CSRBlock):
        return [copied(value) for value in (first, *others)]
    if "kernel_block" in name:
        B = others.pop(0)
        basis = [np.ascontiguousarray(B.T)]
        if "rbf" in name:
            basis += [unchecked.squared_norms(B), unchecked.column_tiles(B)]
        others = [*basis, *others]
    return [*first[:3], *map(copied, others)]


@pytest.mark.parametrize("name", unchecked.__all__)
def test_each_routine_is_called_inside_compiled_code(name):
    outside = arguments_of(name)
    expected = getattr(unchecked, name)(*outside)
    given = arguments_of(name)
    call = inside(name)
    found = call(*given)
    assert call.nopython_signatures
    np.testing.assert_equal(found, expected)
    # What is written to is equal, too.
    np.testing.assert_equal(given, outside)


def test_at_least_24_routines_are_public_and_all_are_compiled():
    assert len(kernels.__all__) >= 24
    assert set(kernels.__all__) <= set(unchecked.__all__)


@numba.njit
def kernel_weights(grams, s, t, C, balance, adaptive):
    """Solve the cone program of several kernels from its public parts."""
    weights = np.full(len(grams), len(grams) ** -0.5)
    for _ in range(STEPS):
        gram = np.zeros(grams.shape[1:])
        for k in range(len(grams)):
            gram += weights[k] * grams[k]
        solution = unchecked.plane_qp(gram, s, t, C, balance, adaptive)
        weights, gap = unchecked.cone_step(grams, solution[0], weights)
        if gap <= GAP:
            break
    return weights, gap, solution[0] @ gram @ solution[0]


@pytest.mark.parametrize(("threshold", "balance", "C", "seed"), CASES)
def test_cone_steps_and_the_quadratic_program_solve_the_cone_program(
    threshold, balance, C, seed
):
    planes, s, t = kernel_planes(seed)
    grams = np.array([one @ one.T for one in planes])
    expected = solve_kernel_planes(grams, s, t, C, balance, threshold)
    adaptive = threshold == "adaptive"
    weights, gap, norm2 = kernel_weights(grams, s, t, C, balance, adaptive)
    assert gap <= GAP
    np.testing.assert_allclose(weights, expected.kernel_weights, atol=1e-5)
    assert norm2 == pytest.approx(expected.norm2, rel=1e-5)


def test_kernels_without_normal_vectors_get_equal_weights():
    weights, gap = kernels.cone_step(np.zeros((4, 2, 2)), np.ones(2), np.full(4, 0.5))
    assert weights.tolist() == [0.5] * 4
    assert gap == 0


@pytest.mark.parametrize("columns", [1, 2, 7, 100])
def test_tiles_made_inside_compiled_code_begin_at_a_line_of_the_cache(columns):
    tiles = inside("column_tiles")(np.ones((70, columns)))
    assert tiles.shape == (2, columns, 64)
    assert tiles.ctypes.data % 64 == 0
