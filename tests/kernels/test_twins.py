"""Every public routine equals its plain twin on arguments made from its own description."""

import numpy as np
import pytest

from mmcnb import kernels
from tests.kernels.arguments import TWINS, good_arguments
from tests.kernels.inputs import DTYPES

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
QP_TOLERANCE = 1e-6  # of two solvers


def results(name, given):
    """What a routine returns, or the arrays that it writes to."""
    found = getattr(kernels, name)(**given)
    if name == "size_multipliers":  # the twin knows the best sum of scores, not the multipliers
        labels = (given["scores"] - found).argmax(axis=1)
        return [given["scores"][np.arange(len(labels)), labels].sum()]
    if name == "average_linkage":  # the twin finds the merges in the order of their heights
        merges, heights = found
        return [merges[heights.argsort()], np.sort(heights)]
    takes = getattr(kernels, name).takes
    written = [given[key] for key in takes if getattr(takes[key], "written", False)]
    return written or (found if isinstance(found, tuple) else [found])


def test_every_routine_has_a_twin():
    assert sorted(TWINS) == kernels.__all__


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", kernels.__all__)
def test_routines_equal_their_twins(name, dtype):
    for seed in range(5):
        given = good_arguments(name, seed, dtype)
        copies = {
            key: value.copy() if isinstance(value, np.ndarray) else value for key, value in given.items()
        }
        expected, found = TWINS[name](*copies.values()), results(name, given)
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            tolerance = max(TOLERANCE[dtype], QP_TOLERANCE * (name == "cccp_rounds"))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
