"""Least squares clusters beside k-means, MiniBatchKMeans, Nyström k-means, and spectral clustering.

``python -m benchmarks peers [--quick] [--seeds N]`` fits, turn by turn in the same run: `UnsupervisedRLS`
and `SparseKernelMMC`; k-means with ten starts (pairs: on all cores and on one, the faster
counts); MiniBatchKMeans; k-means with ten starts of 300 Nyström features of the same kernel; and spectral
clustering of 2,000 rows (ten nearest neighbours), extended to all by five nearest neighbours. All are at
their defaults, but for the width on extended USPS. Figures are means of the adjusted Rand index and medians
of the seconds, kernels compiled before; ratios are to k-means. On all 70,000 rows of MNIST k-means and
Nyström k-means run for the first seed alone. ``--quick`` draws 5,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import Data, Goal, Options, Result, say
from benchmarks._compare import WARM_UP_ROWS, fit
from benchmarks._peers import ExtendedSpectral, NystroemKMeans, faster, measure
from benchmarks._tasks import TASKS, Task, least_squares, load_task, parameters_of

OURS, HINGE, KMEANS, SPECTRAL = "UnsupervisedRLS", "SparseKernelMMC", "k-means", "spectral, extended"
MINIBATCH, NYSTROEM = "MiniBatchKMeans", "Nyström k-means"
SLOW = (KMEANS, NYSTROEM)
SLOW_ROWS = 65_000  # k-means of so many rows and ten clusters takes minutes
SEEDS = 3
LANDMARKS = 300
MNIST_RATIO, PAIR_RATIO = 0.1, 1.5


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
    rows = []
    for task in TASKS:
        data = load_task(task, options)
        warm_up(task, data)
        for seed in range(options.seeds or SEEDS):
            say(f"{task.name}, {len(data.y):,} rows, seed {seed}")
            for method, make in methods(task, data, seed).items():
                if seed == 0 or method not in SLOW or len(data.y) < SLOW_ROWS:
                    rows.append(measure(task, data, method, make()) | {"seed": seed})
    fits = pd.DataFrame(rows)
    table = summary(fits)
    return Result({"peers-fits": fits, "peers": table}, goals_of(table), shown=("peers",))


def methods(task: Task, data: Data, seed: int) -> dict[str, Callable[[], Any]]:
    """Estimators not yet made, by name, in their turns."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    k, given = task.n_clusters, parameters_of(task, data.X)
    gamma = given.get("gamma", parameters_of(task._replace(width=0.55), data.X)["gamma"])
    kmeans = partial(KMeans, k, n_init=10, random_state=seed)
    found: dict[str, Callable[[], Any]] = {
        KMEANS: kmeans if k > 2 else partial(faster, kmeans),
        OURS: partial(least_squares, task, data.X, seed),
        MINIBATCH: partial(MiniBatchKMeans, k, random_state=seed),
        NYSTROEM: partial(NystroemKMeans, k, gamma, LANDMARKS, seed),
        SPECTRAL: partial(ExtendedSpectral, k, seed),
    }
    found[HINGE] = partial(mmcnb.SparseKernelMMC, k, random_state=seed, **given)
    return found


def warm_up(task: Task, data: Data) -> None:
    """Fit a few rows of the same type, fewer in the sample than in all, which compiles every kernel."""
    rows = data.X[:WARM_UP_ROWS]
    small = len(rows) // 2
    fit(mmcnb.UnsupervisedRLS(task.n_clusters, sample_size=small, random_state=0), rows)
    fit(mmcnb.SparseKernelMMC(task.n_clusters, sample_size=small, random_state=0), rows)


def summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Means of ARI and error, medians of seconds, ratios to k-means: one row a data set and method."""
    keys = ["dataset", "n", "d", "k", "method"]
    groups = fits.groupby(keys, sort=False)
    table = groups[["ari", "error"]].mean()
    table.insert(1, "ari's deviation", groups["ari"].std(ddof=0))
    table["seconds"] = groups["seconds"].median()
    table = table.reset_index()
    peer = table[table["method"] == KMEANS].set_index("dataset")["seconds"]
    table["of k-means"] = table["seconds"] / table["dataset"].map(peer)
    return table


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """ARI above that of spectral clustering everywhere; time on MNIST and its pairs."""
    goals = []
    for name, rows in table.groupby("dataset", sort=False):
        by_method = rows.set_index("method")
        ours, bound = by_method.loc[OURS], float(by_method.loc[SPECTRAL, "ari"])
        goals.append(Goal(f"{name}: ARI, above spectral", float(ours["ari"]), round(bound, 4), at_least=True))
        most = MNIST_RATIO if name == "mnist" else PAIR_RATIO if "v" in str(name) else np.nan
        if np.isfinite(most):
            goals.append(Goal(f"{name}: time", float(ours["of k-means"]), most, "of k-means"))
    return goals
