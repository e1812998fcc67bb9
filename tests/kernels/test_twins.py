"""Every routine equals its plain twin on arguments made from its own description."""

import numpy as np
import pytest

from mmcnb import kernels
from mmcnb.kernels import unchecked
from tests.kernels.arguments import BY_ROWS, INTERNAL, TWINS, dense, good_arguments, routine_of, takes_of
from tests.kernels.inputs import DTYPES

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
QP_TOLERANCE = 1e-6  # of two solvers
ALL = [*((name, False) for name in (*kernels.__all__, *INTERNAL)), *((name, True) for name in BY_ROWS)]


def results(name, given):
    """What a routine returns, or the arrays that it writes to."""
    found = routine_of(name)(*given.values())
    if name == "size_multipliers":  # the twin knows the best sum of scores, not the multipliers
        labels = (given["scores"] - found).argmax(axis=1)
        return [given["scores"][np.arange(len(labels)), labels].sum()]
    takes = takes_of(name)
    written = [given[key] for key in takes if getattr(takes[key], "written", False)]
    return written or (found if isinstance(found, tuple) else [found])


def test_every_routine_has_a_twin():
    twins_of_csr = {name for name in unchecked.__all__ if "_csr" in name}
    assert sorted(TWINS) == sorted({*unchecked.__all__} - twins_of_csr)
    assert {name.replace("_csr", "") for name in twins_of_csr} == set(BY_ROWS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "sparse"), ALL)
def test_routines_equal_their_twins(name, sparse, dtype):
    for seed in range(5):
        given = good_arguments(name, seed, dtype, sparse)
        copies = [
            np.copy(value) if isinstance(value, np.ndarray) else dense(value) for value in given.values()
        ]
        expected, found = TWINS[name](*copies), results(name, given)
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            tolerance = max(TOLERANCE[dtype], QP_TOLERANCE * (name in ("sample_subproblem", "plane_qp")))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
