"""Ctrl-C in Python or a notebook ends a call with KeyboardInterrupt, wherever it arrives."""

import json
import os
import subprocess
import sys

import pytest

from tests.compile_kernels import MODULES, compile_modules, dispatchers

# Interrupts a call that was compiled before, at moments over its whole length, and
# prints how each ended.
INTERRUPTED = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
import mmcnb

signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(4000, 4)) + 2 * (np.arange(4000) % 2)[:, None]
model = eval(f"mmcnb.{sys.argv[1]}")
model.fit(X)
call = getattr(model, sys.argv[2])
call(X)
start = time.monotonic()
call(X)
span = time.monotonic() - start
ends = []
for moment in np.random.default_rng(0).permutation(24) / 24:
    timer = threading.Timer(span * moment, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call(X)
        timer.join()
        time.sleep(0.1)
        ends.append("none")
    except BaseException as error:
        ends.append(type(error).__name__)
print(json.dumps(ends))
"""


def has_named_tuple(kind):
    """Return whether a type of numba is a named tuple, or a tuple with one in it."""
    parts = getattr(kind, "types", ())
    return hasattr(kind, "instance_class") or any(map(has_named_tuple, parts))


@pytest.mark.parametrize("module", MODULES)
def test_routines_that_python_calls_return_no_named_tuples(module):
    # Numba runs Python code to make a named tuple. If Ctrl-C raises there, it goes on
    # with a null pointer, and the process ends.
    compile_modules([module])
    for name, routine in dispatchers(module).items():
        if name.startswith("_") or routine.py_func.__module__ != module:
            continue
        for compiled in routine.overloads.values():
            assert not has_named_tuple(compiled.signature.return_type), name


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("MaximumMarginClustering(2, random_state=0, n_jobs=1)", "fit"),
        ("MaximumMarginClustering(random_state=0, n_jobs=2)", "fit"),
        ("MaximumMarginClustering(2, random_state=0, n_jobs=2)", "predict"),
        ("SparseKernelMMC(random_state=0, n_jobs=1)", "fit"),
        ("UnsupervisedRLS(2, random_state=0, n_jobs=1)", "fit"),
        ("MultipleKernelClustering(2, random_state=0, n_jobs=1)", "fit"),
    ],
)
def test_each_interrupt_is_a_keyboard_interrupt(model, method):
    script = [sys.executable, "-c", INTERRUPTED, model, method]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["KeyboardInterrupt"] * 24
