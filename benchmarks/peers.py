"""Least squares clusters beside scikit-learn's clusterers: k-means and its kin, spectral clustering, HDBSCAN.

``python -m benchmarks peers [--quick] [--seeds N]`` fits, turn by turn in the same run: `UnsupervisedRLS` and
`SparseKernelMMC`; k-means with ten starts (pairs: on all cores and on one, the faster counts);
MiniBatchKMeans; BisectingKMeans; k-means with ten starts of 300 Nyström features of the same kernel; spectral
clustering of 2,000 rows (ten nearest neighbours), extended to all by five nearest neighbours; and, on
optdigits alone, HDBSCAN, which finds its own number of clusters. All are at their defaults, but for the width
on extended USPS. Figures are means of the adjusted Rand index and medians of the seconds, kernels compiled
before; ratios are to k-means. On all 70,000 rows of MNIST k-means and Nyström k-means run for the first seed
alone. ``--quick`` takes three data sets of 3,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from benchmarks._cells import Cell
from benchmarks._common import Goal, Options, Result, size_of
from benchmarks._compare import ERROR, KMEANS
from benchmarks._journal import Journal
from benchmarks._peers import DENSITY, LEAST_SQUARES, METHODS, NYSTROEM, SPECTRAL, fitted
from benchmarks._statistics import over_seeds, ratio_to
from benchmarks._tasks import rows_of_task, tasks_of

SEEDS = 3
SLOW, SLOW_ROWS = (KMEANS, NYSTROEM), 65_000  # k-means of so many rows and ten clusters takes minutes
MNIST_RATIO, PAIR_RATIO = 0.1, 1.5


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
    frame = journal.rows(list(cells_of(options)))
    table = over_seeds(frame, ["dataset", "method"], "ari", "error", ERROR)
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    return Result({"peers": table}, goals_of(table))


def cells_of(options: Options) -> Iterator[Cell]:
    """All methods on each task, in their turns."""
    for task in tasks_of(options):
        rows = rows_of_task(task, options)
        slow = () if (rows or size_of(task.dataset) or 0) < SLOW_ROWS else SLOW
        for seed in range(options.seeds or (1 if options.quick else SEEDS)):
            for method in METHODS:
                left_out = (method in slow and seed > 0) or (method == DENSITY and task.name != "optdigits")
                if not left_out:
                    yield Cell(task.name, method, seed, partial(fitted, task.name, rows, method, seed))


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """ARI above that of spectral clustering everywhere; time on MNIST and its pairs."""
    goals = []
    for name, rows in table.groupby("dataset", sort=False):
        found = rows.set_index("method").reindex([LEAST_SQUARES, SPECTRAL])
        ari, bound = (float(value) for value in found["ari"])
        goals.append(Goal(f"{name}: ARI, above spectral", ari, round(bound, 4), at_least=True))
        most = MNIST_RATIO if name == "mnist" else PAIR_RATIO if "v" in str(name) else np.nan
        if np.isfinite(most):
            goals.append(Goal(f"{name}: time", float(found["of k-means"].iloc[0]), most, "of k-means"))
    return goals
