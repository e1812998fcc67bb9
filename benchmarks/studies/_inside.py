"""Part ``inside`` of ``routines``: public routines called in a user's compiled function.

The arguments are taken from the example in the docstring of the routine. The compiled
function must return and write the same values as the routine.
"""

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import deepcopy
from doctest import DocTestParser
from typing import Any
from unittest.mock import patch

import numba  # noqa: TID251  a reader's own njit code
import numpy as np
import pandas as pd

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result, measures_of
from mmcnb import kernels
from mmcnb.kernels import unchecked

FEW = ("hinge_loss_sums", "plane_qp")
GOAL = "inside: public routines called inside a function that a reader compiles"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield one run per routine."""
    for name in options.pick(tuple(kernels.__all__), tuple(kernels.__all__), FEW):
        yield Run("its own example", name, 0)


def compute(run: Run) -> dict[str, Any]:
    """Compile a function that calls a routine, and compare its result with the routine's."""
    name = run.method
    given = arguments_of_example(name)
    routine = getattr(unchecked, name)
    alone = deepcopy(given)
    expected = routine(*alone)
    call = calling(routine)
    started = time.perf_counter()
    found = call(*given)
    compiled = time.perf_counter() - started
    np.testing.assert_equal((found, given), (expected, alone))
    return {"compile_seconds": compiled, "called": 1.0}


def calling(routine: Callable) -> Callable:
    """Return a user's function that calls a routine from compiled code."""

    @numba.njit
    def call(*arguments: Any) -> Any:
        return routine(*arguments)

    return call


def arguments_of_example(name: str) -> list[Any]:
    """Return the arguments of the first call of a routine in the example of its docstring."""
    calls: list[list[Any]] = []
    routine = getattr(unchecked, name)

    def record(*arguments: Any) -> Any:
        calls.append(deepcopy(list(arguments)))
        return routine(*arguments)

    names: dict[str, Any] = {}
    examples = DocTestParser().get_examples(getattr(kernels, name).__doc__)
    with (
        patch.object(kernels, name, record),
        patch.object(unchecked, name, record),
        redirect_stdout(io.StringIO()),
    ):
        for example in examples:
            exec(compile(example.source, name, "single"), names)
    return calls[0]


def tables(frame: pd.DataFrame) -> Result:
    """List the routines; the goal is the number of routines."""
    called = measures_of(frame)
    goal = Goal(GOAL, float(called["called"].sum()), 24, at_least=True)
    return Result({"routines-inside": called}, [goal])
