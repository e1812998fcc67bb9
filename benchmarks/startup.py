"""Start of the program: seconds of ``import mmcnb`` and ``mmcnb --help``, warm.

``python -m benchmarks startup [--seeds N]`` runs each in a fresh interpreter once to warm the disk cache and
once more, five times, with the start of an interpreter that does nothing beside them; figures are medians of
the wall seconds of the whole process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

from benchmarks._cells import Cell
from benchmarks._common import Goal, Options, Result
from benchmarks._journal import Journal

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import mmcnb": ["-c", "import mmcnb"],
    "mmcnb --help": ["-m", "mmcnb", "--help"],
}
BOUND = 0.5


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    cells = [
        Cell("none", name, repeat, partial(started, words))
        for repeat in range(options.seeds or 5)
        for name, words in COMMANDS.items()
    ]
    frame = journal.rows(cells)
    medians = frame.groupby("method", sort=False)["seconds"].median()
    goals = [Goal(name, medians[name], BOUND, "s") for name in list(COMMANDS)[1:]]
    return Result({"startup": medians.reset_index()}, goals)


def started(words: list[str]) -> dict[str, float]:
    """Compute a cell: seconds of a process, warm."""
    _seconds(words)
    return {"seconds": _seconds(words)}


def _seconds(words: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun
