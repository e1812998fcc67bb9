"""Least squares clusters: the paper's tables, its count of steps, the defaults on digits, data beyond memory.

``python -m benchmarks rls [--quick] [--seeds N] [--part NAME ...]`` has four parts:

tables   Tables I and II of Pahikkala et al. on iris, two moons, 500 rows of USPS 1-4 and of 5-8, optdigits.
         The paper's protocol: stochastic and steepest descent and shaking as published (kernel not centred,
         no bound on sizes, one start) and mixed shaking (the best J of eight starts), the ridge and the width
         chosen over a grid by the classes, as the mean of ten runs (mixed shaking: three); k-means of one
         start and spectral clustering. Label-free: `UnsupervisedRLS` by default, k-means of ten starts.
         The paper does not say which 500 rows and which moons it took; ours are a random draw, and noise of
         0.05. USPS 1-4 is read as the labels of LIBSVM's files, where label 1 is the digit 0
steps    its Fig. 5: moves of steepest descent with and without shaking against rows, of optdigits
defaults `UnsupervisedRLS` without a parameter, but for the width on extended USPS: means over the seeds
large    10^7 x 50 in ten half circles, in a Zarr store, under 1 GiB: peak memory of the process tree, reads,
         time in multiples of a bare scan; k-means of a sample and MiniBatchKMeans beside

``--quick`` takes fewer rows, and fewer points of the grid.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmarks._cells import Cell
from benchmarks._common import Goal, Options, Result
from benchmarks._compare import ERROR
from benchmarks._journal import Journal
from benchmarks._parts import Tables, run_parts
from benchmarks._peers import LEAST_SQUARES, fitted
from benchmarks._rls_large import large
from benchmarks._rls_tables import steps, tables
from benchmarks._statistics import over_seeds
from benchmarks._tasks import TASKS, rows_of_task, tasks_of

SEEDS = 3


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
    parts = {"tables": tables, "steps": steps, "defaults": defaults, "large": large}
    return run_parts(parts, options, journal)


def defaults(options: Options, journal: Journal) -> Tables:
    """`UnsupervisedRLS` without a parameter, means over the seeds."""
    cells = [
        Cell(
            task.name,
            LEAST_SQUARES,
            seed,
            partial(fitted, task.name, rows_of_task(task, options), LEAST_SQUARES, seed),
            part="defaults",
        )
        for task in tasks_of(options)
        for seed in range(options.seeds or (1 if options.quick else SEEDS))
    ]
    table = over_seeds(journal.rows(cells), ["dataset"], "ari", ERROR, "objective", "reads")
    return {"rls-defaults": table}, goals_of(table)


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """The adjusted Rand index of each task, or its balanced error."""
    goals = []
    means = table.set_index("dataset")
    for task in TASKS:
        if task.name in means.index and task.width:
            error = 100 * float(means.loc[task.name, ERROR])
            goals.append(Goal(f"defaults: {task.name}, balanced error", error, 100 * task.most, "%"))
        elif task.name in means.index:
            ari = float(means.loc[task.name, "ari"])
            goals.append(Goal(f"defaults: {task.name}, ARI", ari, task.least, at_least=True))
    return goals
