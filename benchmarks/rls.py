"""Least squares clusters: the paper's tables, its count of steps, the defaults on digits, data beyond memory.

``python -m benchmarks rls [--quick] [--seeds N] [--part NAME ...]`` has four parts:

tables   Tables I and II of Pahikkala et al. on iris, two moons, 500 rows of USPS 1-4 and of 5-8, optdigits:
         stochastic and steepest descent and shaking as published (kernel not centred, no bound on sizes, one
         start) and mixed shaking (the best J of eight starts), the ridge and the width chosen by the classes
         over a grid, as there; `UnsupervisedRLS` by default, k-means and spectral clustering beside. The
         paper does not say which 500 rows and which moons it took; ours are a random draw, and noise of 0.05.
         USPS 1-4 is read as the labels of LIBSVM's files, where label 1 is the digit 0
steps    its Fig. 5: moves of steepest descent with shaking against rows, of optdigits
defaults `UnsupervisedRLS` without a parameter, but for the width on extended USPS: means over the seeds
large    10^7 x 50 in ten half circles, in a Zarr store, under 1 GiB: peak memory of the process tree, reads,
         time in multiples of a bare scan; k-means of a sample and MiniBatchKMeans beside

``--quick`` takes fewer rows, and fewer points of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from benchmarks._common import Goal, Options, Result, parts_of, say
from benchmarks._peers import measure
from benchmarks._rls_large import large
from benchmarks._rls_tables import steps, tables
from benchmarks._tasks import TASKS, least_squares, load_task

Part = tuple[dict[str, pd.DataFrame], list[Goal]]
SEEDS = 3


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
    frames: dict[str, pd.DataFrame] = {}
    goals: list[Goal] = []
    for name in parts_of(options, PARTS):
        found, reached = PARTS[name](options)
        frames |= found
        goals += reached
    return Result(frames, goals, shown=tuple(name for name in frames if not name.endswith("-fits")))


def defaults(options: Options) -> Part:
    """`UnsupervisedRLS` without a parameter, means over the seeds."""
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        data = load_task(task, options)
        say(f"defaults: {task.name}, {len(data.y):,} rows")
        estimators = [least_squares(task, data.X, seed) for seed in range(options.seeds or SEEDS)]
        rows += [
            measure(task, data, "UnsupervisedRLS", one) | {"seed": one.random_state} for one in estimators
        ]
    fits = pd.DataFrame(rows)
    keys = ["dataset", "n", "d", "k"]
    groups = fits.groupby(keys, sort=False)
    means = groups[["ari", "error", "seconds", "objective", "reads"]].mean()
    means.insert(1, "ari's deviation", groups["ari"].std(ddof=0))
    means.insert(0, "goal", ["error <= 2 %" if task.width else f"ari >= {task.least:g}" for task in TASKS])
    goals = []
    for task, (_, row) in zip(TASKS, means.iterrows(), strict=True):
        if task.width:
            goals.append(
                Goal(f"defaults: {task.name}, balanced error", 100 * row["error"], 100 * task.most, "%")
            )
        else:
            goals.append(Goal(f"defaults: {task.name}, ARI", row["ari"], task.least, at_least=True))
    return {"rls-defaults-fits": fits, "rls-defaults": means.reset_index()}, goals


PARTS: dict[str, Callable[[Options], Part]] = {
    "tables": tables,
    "steps": steps,
    "defaults": defaults,
    "large": large,
}
