"""Every routine equals its plain twin, and writes to no other argument than it says."""

import numpy as np
import pytest

from mmcnb.kernels import unchecked
from mmcnb.samples import CSRBlock
from tests import reference
from tests.kernels.arguments import DTYPES, TWINS, good_arguments, routine_of, written


def copied(value):
    """Return a copy of an array or of a named tuple of arrays, and rows as an array."""
    if isinstance(value, CSRBlock):
        return reference.dense_rows(*value)
    if isinstance(value, tuple):
        return type(value)(*map(copied, value))
    return np.copy(value) if isinstance(value, np.ndarray) else value


def results(name, given):
    """The arrays that a routine writes to, and what it returns."""
    returned = routine_of(name)(*given.values())
    # the twin knows the best sum of scores, not the multipliers
    if name == "size_multipliers":
        labels = (given["scores"] - returned).argmax(axis=1)
        return [given["scores"][np.arange(len(labels)), labels].sum()]
    if "subproblem" in name:  # and here the optimum, not the planes on the way
        _, _, _, history, _ = returned
        return [history[-1, 3]]
    if name == "nystroem_map":  # signs of its columns are LAPACK's
        return [returned @ returned.T]
    returned = returned if isinstance(returned, tuple) else [returned]
    return [
        *(given[key] for key in written(name)),
        *(one for one in returned if one is not None),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", unchecked.__all__)
def test_routines_equal_their_twins(name, dtype):
    base = name.replace("_csr", "")
    for seed in range(6):
        given = good_arguments(base, seed, dtype, sparse=base != name)
        before = {key: copied(value) for key, value in given.items()}
        expected = TWINS[base](*before.values())
        found = results(base, given)
        for one, other in zip(
            found, expected if isinstance(expected, tuple) else [expected], strict=True
        ):
            tolerance = (
                1e-5
                if dtype == "float32"
                else 1e-6
                if "qp" in name or "subproblem" in name
                else 1e-10
            )
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        for key in set(given) - set(written(base)):
            np.testing.assert_equal(copied(given[key]), before[key])
