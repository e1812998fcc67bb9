"""Start of the program: seconds of ``import mmcnb`` and ``mmcnb --help``, warm.

``python -m benchmarks startup [--seeds N]`` runs each in a fresh interpreter once to warm the disk cache and
then five times, with the start of an interpreter that does nothing beside them; figures are medians of the
wall seconds of the whole process.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pandas as pd

from benchmarks._common import Goal, Options, Result

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import mmcnb": ["-c", "import mmcnb"],
    "mmcnb --help": ["-m", "mmcnb", "--help"],
}
BOUND = 0.5


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    for words in COMMANDS.values():
        _seconds(words)
    rows = [
        {"command": name, "seed": repeat, "seconds": _seconds(words)}
        for repeat in range(options.seeds or 5)
        for name, words in COMMANDS.items()
    ]
    frame = pd.DataFrame(rows)
    medians = frame.groupby("command", sort=False)["seconds"].median().reset_index()
    goals = [
        Goal(row.command, row.seconds, BOUND, "s")
        for row in medians.itertuples()
        if row.command != "python -c pass"
    ]
    return Result({"startup-runs": frame, "startup": medians}, goals, shown=("startup",))


def _seconds(words: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started
