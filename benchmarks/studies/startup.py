"""Start of the program: ``import mmcnb``, ``mmcnb --help``, and the compilation of the first fit.

``python -m benchmarks startup [--seeds N]`` runs each command in a new interpreter,
once to warm the disk cache and once to measure its time, and repeats this five times.
An interpreter that does nothing is measured as well. Figures are medians of the wall
time of the whole process. A first fit has an empty compile cache and runs once; its
figures are CPU seconds, because compilation keeps one core busy.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import pandas as pd

from benchmarks.protocol import turns
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result, goals_of

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import mmcnb": ["-c", "import mmcnb"],
    "mmcnb --help": ["-m", "mmcnb", "--help"],
}
BOUNDS = {"import mmcnb": 0.5, "mmcnb --help": 0.5}
FITS = ("MaximumMarginClustering", "SparseKernelMMC")
MOST_ABOVE_SECOND = 25.0
FIT_TWICE = """
import json, sys, time, warnings
import mmcnb
from mmcnb.datasets import make_block

warnings.simplefilter("ignore")
X, _ = make_block("blobs", 0, 3000, 10, random_state=0)
estimator = getattr(mmcnb, sys.argv[1])
n_clusters = [int(word) for word in sys.argv[2:]]
seconds = {}
for name in ("first", "second"):
    started = time.process_time()
    model = estimator(*n_clusters, random_state=0).fit(X)
    seconds[name] = time.process_time() - started
    seconds[name + "_compiling"] = model.report_["compile_seconds"]
print(json.dumps(seconds))
"""


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the commands in turn, and the compilation once."""
    for repeat in range(options.seeds or 5):
        yield from (Run("none", name, repeat) for name in COMMANDS)
    if not options.smoke:
        yield from (Run("blobs", name, 0) for name in FITS)


def compute(run: Run) -> dict[str, float]:
    """Measure the seconds of a process that was started once before, or of a process that compiles."""
    if run.method in COMMANDS:
        command = [sys.executable, *COMMANDS[run.method]]
        start = partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)
        return turns({"seconds": start}, 1)
    with tempfile.TemporaryDirectory() as cache:
        return fit_twice(cache, run.method)


def fit_twice(cache: str, method: str, n_clusters: int | None = None) -> dict[str, Any]:
    """Measure two equal fits in one process with a separate compile cache.

    Parameters
    ----------
    cache : str
        Folder of the compile cache; empty before a first start of the program.
    method : str
        Name of an estimator of `mmcnb`.
    n_clusters : int or None, default=None
        Number of clusters, passed as the first parameter if given.

    Returns
    -------
    dict
        Wall and CPU seconds of the process ("seconds", "cpu_seconds"), CPU seconds of
        both fits ("first_fit", "second_fit"), and the seconds that they spent on
        compilation.
    """
    number = [] if n_clusters is None else [str(n_clusters)]
    command = [sys.executable, "-c", FIT_TWICE, method, *number]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    before = os.times()
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    after = os.times()
    wall = time.perf_counter() - started
    cpu = sum(after[2:4]) - sum(before[2:4])  # CPU seconds of processes that have ended
    fits = json.loads(done.stdout)
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        **{f"{name}_fit": value for name, value in fits.items()},
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return median seconds of each command, and of the compilation.

    The compilation, and the difference between a first and a second fit, are in CPU
    seconds.
    """
    warm = frame[frame["method"].isin(COMMANDS)]
    medians = warm.groupby("method", sort=False)["seconds"].median()
    found = {"startup": medians.reset_index()}
    goals = goals_of(medians, BOUNDS, "{}", "s")
    cold = frame[~frame["method"].isin(COMMANDS)].set_index("method")
    if len(cold):
        above = cold["first_fit"] - cold["second_fit"]
        shown = cold[["cpu_seconds", "first_fit", "second_fit"]].assign(above=above)
        found["empty_cache"] = shown.reset_index()
        goals += goals_of(
            above, MOST_ABOVE_SECOND, "{}: first fit above the second", "CPU s"
        )
    return Result(found, goals)
