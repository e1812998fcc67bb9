"""Start of the program: seconds of ``import mmcnb`` and ``mmcnb --help``, warm.

``python -m benchmarks startup [--seeds N]`` runs each in a fresh interpreter, once to warm the disk cache and
once to be timed, five times. An interpreter that does nothing is timed beside them. Figures are medians of
the wall seconds of the whole process.
"""

import subprocess
import sys
from functools import partial

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


@frame_of_runs
def grid(options: Options) -> Runs:
    """The commands in turn."""
    for repeat in range(options.seeds or 5):
        yield from (Run("none", name, repeat) for name in COMMANDS)


def compute(run: Run) -> dict[str, float]:
    """Seconds of a process that was started once before."""
    command = [sys.executable, *COMMANDS[run.method]]
    start = partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)
    return turns({"seconds": start}, 1)


def tables(frame: pd.DataFrame) -> Result:
    """Median seconds of each command."""
    medians = frame.groupby("method", sort=False)["seconds"].median()
    return Result({"startup": medians.reset_index()}, goals_of(medians, BOUNDS, "{}", "s"))
