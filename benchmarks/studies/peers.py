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

from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from benchmarks import methods
from benchmarks.methods import DENSITY, HINGE, KMEANS, LEAST_SQUARES, NYSTROEM, SPECTRAL, estimator
from benchmarks.protocol import ERROR, MNIST_PAIRS, scored, size_of
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._tasks import load_task, parameters_of, tasks_of
from benchmarks.tables import Result, goals_of, over_seeds, ratio_to

METHODS = (KMEANS, LEAST_SQUARES, HINGE, methods.MINIBATCH, methods.BISECTING, NYSTROEM, SPECTRAL, DENSITY)
SLOW, SLOW_ROWS = (KMEANS, NYSTROEM), 65_000  # k-means of so many rows and ten clusters takes minutes
NYSTROEM_WIDTH = 0.55
MOST_TIME = {"mnist": 0.1, **dict.fromkeys(MNIST_PAIRS, 1.5)}  # of k-means


@frame_of_runs
def grid(options: Options, asked: Sequence[str] = METHODS) -> Runs:
    """All methods on each task (or some), in their turns."""
    for task, rows in tasks_of(options):
        slow = () if (rows or size_of(task.dataset) or 0) < SLOW_ROWS else SLOW
        for seed, method in product(options.repeats(3), asked):
            if not (method in slow and seed > 0) and (method != DENSITY or task.name == "optdigits"):
                yield Run(task.name, method, seed, settings={"rows": rows})


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to the rows of a task, without classes."""
    task, data = load_task(run.dataset, run.settings["rows"])
    if run.method == KMEANS and task.n_clusters == 2:
        return methods.faster_kmeans(data, run.seed, {"n_init": 10}) | {"k": 2}
    given = {"n_init": 10} if run.method == KMEANS else {}
    if run.method in (LEAST_SQUARES, HINGE, NYSTROEM):
        given = parameters_of(task, data.X, NYSTROEM_WIDTH if run.method == NYSTROEM else None)
    model = estimator(run.method, task.n_clusters, random_state=run.seed, **given)
    found = scored(data, model) | {"k": task.n_clusters}
    if not hasattr(model, "history_"):
        return found
    return found | {"objective": float(model.objective_), "reads": int(model.history_["reads"].iloc[-1])}


def tables(frame: pd.DataFrame) -> Result:
    """Means over the seeds; goals: ARI above that of spectral clustering, time on MNIST and its pairs."""
    table = over_seeds(frame, ["dataset", "method"], "ari", "error", ERROR)
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    ours, spectral = (table[table["method"] == one].set_index("dataset") for one in (LEAST_SQUARES, SPECTRAL))
    bounds = spectral["ari"].reindex(ours.index)
    goals = [
        *goals_of(ours["ari"], bounds, "{}: ARI, above spectral", at_least=True),
        *goals_of(ours["of k-means"], MOST_TIME, "{}: time", "of k-means"),
    ]
    return Result({"peers": table}, goals)
