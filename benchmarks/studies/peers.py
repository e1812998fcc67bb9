"""Least squares clusters and the default beside clusterers of scikit-learn and of other libraries.

``python -m benchmarks peers [--quick] [--seeds N] [--part NAME ...]`` has three
sections, and in each all methods take turns in one run:

digits  `UnsupervisedRLS` and `SparseKernelMMC`; k-means with ten starts (for pairs, the
        faster of all cores and one core); MiniBatchKMeans; BisectingKMeans; k-means
        with ten starts of 300 Nyström features of the same kernel; spectral clustering
        of 2,000 rows (ten nearest neighbours), extended to all by five nearest
        neighbours; and, only on optdigits, HDBSCAN, which finds the number of clusters.
        All methods have their defaults, except for the width on extended USPS. Ratios
        are relative to k-means
sets    `MaximumMarginClustering` and `UnsupervisedRLS` on data sets, beside k-means
        with ten starts; Genie, GIc and Lumbermark; Leiden at the resolution that gives
        k communities of the graph of 15 nearest neighbours; EVoC, with the number of
        clusters; UMAP with the settings of its guide to clustering, followed by HDBSCAN
        or k-means; spectral clustering of the graph of ten nearest neighbours; a
        Gaussian mixture; HDBSCAN. UMAP, EVoC and k-means use all columns; the other
        methods use 50 principal axes if there are more columns
shapes  the methods of "sets" on the shapes of `mmcnb.datasets.SHAPES`, except EVoC,
        which needs four columns

Figures are means of the adjusted Rand index and medians of the seconds, after
compilation. Noise counts as a cluster, and "labelled" is the share of the other rows.
On data sets, deterministic methods run only for the first seed, and so do k-means and
Nyström k-means on all 70,000 rows of MNIST. Spectral clustering is fitted to at most
20,000 rows. A library that is not installed is left out, with a message; ``pip install
'mmcnb[peers]'`` installs all of them. ``--quick`` uses 3,000 rows of a few data sets of
the tuning half.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import libraries, methods, mixed
from benchmarks.methods import (
    CUT,
    DENSITY,
    HINGE,
    KMEANS,
    LEAST_SQUARES,
    NYSTROEM,
    SPECTRAL,
    estimator,
)
from benchmarks.protocol import ERROR, MNIST_PAIRS, clustering, scored, size_of
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _sets
from benchmarks.studies._tasks import load_task, parameters_of, tasks_of
from benchmarks.tables import Result, goals_of, over_seeds, ratio_to
from mmcnb.datasets import SHAPES

METHODS = (
    KMEANS,
    LEAST_SQUARES,
    HINGE,
    methods.MINIBATCH,
    methods.BISECTING,
    NYSTROEM,
    SPECTRAL,
    DENSITY,
)
# k-means of this many rows and ten clusters takes minutes
SLOW = (KMEANS, NYSTROEM)
SLOW_ROWS = 65_000
NYSTROEM_WIDTH = 0.55
MOST_TIME = {"mnist": 0.1, **dict.fromkeys(MNIST_PAIRS, 1.5)}  # relative to k-means
MOST_DEFAULT_TIME = {"mnist": 0.25}  # relative to k-means
LIBRARIES = tuple(
    method for method in libraries.METHODS if method not in libraries.OTHER_GINI
)
ON_SETS = (*_sets.OURS, KMEANS, *LIBRARIES, CUT, DENSITY)
ON_SHAPES = tuple(method for method in ON_SETS if method != libraries.EVOC)
MOST_ROWS = {CUT: 20_000}  # more rows take minutes
DRAW_NOTHING = (*libraries.DRAW_NOTHING, DENSITY)


# -- digits ----------------------------------------------------------------------------


@frame_of_runs
def grid(options: Options, asked: Sequence[str] = METHODS) -> Runs:
    """Yield all (or some) methods on each task, in turns."""
    for task, rows in tasks_of(options):
        is_large = (rows or size_of(task.dataset) or 0) >= SLOW_ROWS
        for seed, method in product(options.repeats(3), asked):
            is_repeated = is_large and method in SLOW and seed > 0
            is_out_of_place = method == DENSITY and task.name != "optdigits"
            if not (is_repeated or is_out_of_place):
                yield Run(task.name, method, seed, settings={"rows": rows})


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to the rows of a task, without the classes."""
    method = run.method
    task, data = load_task(run.dataset, run.settings["rows"])
    k = task.n_clusters
    if method == KMEANS and k == 2:
        return methods.faster_kmeans(data, run.seed, {"n_init": 10}) | {"k": 2}
    parameters: dict[str, Any] = {}
    if method == KMEANS:
        parameters = {"n_init": 10}
    elif method == NYSTROEM:
        parameters = parameters_of(task, data.X, NYSTROEM_WIDTH)
    elif method in (LEAST_SQUARES, HINGE):
        parameters = parameters_of(task, data.X, None)
    model = estimator(method, k, random_state=run.seed, **parameters)
    measures = scored(data, model) | {"k": k}
    if hasattr(model, "history_"):
        measures["objective"] = float(model.objective_)
        measures["reads"] = int(model.history_["reads"].iloc[-1])
    return measures


def tables(frame: pd.DataFrame) -> Result:
    """Return means over the seeds, with goals for ARI, and for the time on MNIST and its pairs.

    The ARI should be above the ARI of spectral clustering.
    """
    table = over_seeds(frame, ["dataset", "method"], "ari", "error", ERROR)
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    ours = table[table["method"] == LEAST_SQUARES].set_index("dataset")
    spectral = table[table["method"] == SPECTRAL].set_index("dataset")
    bounds = spectral["ari"].reindex(ours.index)
    goals = goals_of(ours["ari"], bounds, "{}: ARI, above spectral", at_least=True)
    goals += goals_of(ours["of k-means"], MOST_TIME, "{}: time", "of k-means")
    return Result({"peers": table}, goals)


# -- sets and shapes -------------------------------------------------------------------


@frame_of_runs
def grid_of_sets(options: Options) -> Runs:
    """Yield all installed methods on each data set."""
    yield from _on(_sets.sets_of(options), ON_SETS, options)


@frame_of_runs
def grid_of_shapes(options: Options) -> Runs:
    """Yield all installed methods on each shape."""
    yield from _on(_sets.shapes_of(options), ON_SHAPES, options)


def _on(
    sets: Sequence[tuple[str, int | None]], asked: Sequence[str], options: Options
) -> Runs:
    runs = product(sets, options.repeats(3), installed(asked))
    for (name, rows), seed, method in runs:
        n = rows or size_of(name) or 0
        draws_nothing = method in DRAW_NOTHING and name not in SHAPES
        is_slow = method in SLOW and n >= SLOW_ROWS
        is_repeated = seed > 0 and (draws_nothing or is_slow)
        if n <= MOST_ROWS.get(method, n) and not is_repeated:
            yield Run(name, method, seed, settings={"rows": rows})


def installed(asked: Sequence[str]) -> list[str]:
    """Return the methods whose libraries are installed, and print how to install the others."""
    found = []
    for method in asked:
        reason = why_missing(method)
        if reason:
            print(f"benchmarks: {method} is left out: {reason}.", file=sys.stderr)
        else:
            found.append(method)
    return found


def why_missing(method: str) -> str:
    """Return why a method cannot run; "" if its library is installed."""
    packages = libraries.PACKAGES | mixed.PACKAGES
    module, package = packages.get(method, ("sklearn", ""))
    if find_spec(module) is not None:
        return ""
    return f"it needs {package}; pip install 'mmcnb[peers]'"


def compute_on_sets(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, without the classes."""
    data = _sets.rows_of_set(run.dataset, run.settings["rows"], run.seed)
    k = _sets.n_clusters_of(run.dataset)
    starts = {"n_init": 10} if run.method == KMEANS else {}
    model = estimator(run.method, k, random_state=run.seed, **starts)
    compiled = libraries.first_seconds(run.method)
    measures = scored(data, model, with_noise)
    if compiled:
        measures["compile_seconds"] = compiled
    return measures


def with_noise(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return `clustering` with noise (-1) as one cluster.

    The result also has the share of the other rows, and the number of their clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies.peers import with_noise
    >>> found = with_noise(np.array([0, 0, 1, 1]), np.array([0, 0, 1, -1]))
    >>> found["labelled"], found["clusters"], found["error"]
    (0.75, 2, 0.25)
    """
    inside = labels[labels >= 0]
    return clustering(y, labels) | {
        "labelled": inside.size / labels.size,
        "clusters": np.unique(inside).size,
    }


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Return each data set, and means over the halves, with a goal for the time of the default."""
    table = _sets.over_sets(frame, others=("labelled", "clusters"))
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    ours = table[table["method"] == methods.FRONT_DOOR].set_index("dataset")
    times = ours["of k-means"]
    goals = goals_of(times, MOST_DEFAULT_TIME, "sets: {}, time", "of k-means")
    halves = _sets.over_halves(table)
    return Result({"peers-sets": table, "peers-sets-halves": halves}, goals)


def tables_of_shapes(frame: pd.DataFrame) -> Result:
    """Return each shape, and means over the halves.

    The goals are that the mean ARI of the default is above that of two peers.
    """
    table = _sets.over_sets(frame, others=("labelled", "clusters"))
    means = table.groupby("method")["ari"].mean()
    default = means.get(methods.FRONT_DOOR, np.nan)
    peers = {peer: means[peer] for peer in (CUT, DENSITY) if peer in means}
    ours = dict.fromkeys(peers, default)
    goals = goals_of(ours, peers, "shapes: mean ARI, above {}", at_least=True)
    halves = _sets.over_halves(table)
    return Result({"peers-shapes": table, "peers-shapes-halves": halves}, goals)


SECTIONS = {
    "digits": Section(grid, compute, tables),
    "sets": Section(grid_of_sets, compute_on_sets, tables_of_sets),
    "shapes": Section(grid_of_shapes, compute_on_sets, tables_of_shapes),
}
