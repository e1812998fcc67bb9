"""The graph kernel: clusters of any shape and size, beside the Gaussian kernel, without classes.

``python -m benchmarks graph [--quick] [--seeds N] [--part NAME ...]`` fits `MaximumMarginClustering`, on
which the goals are, and `UnsupervisedRLS` with each kernel, at their defaults and with three seeds, in six
sections. Two more fit `MaximumMarginClustering` to stores, once:

sets    data sets, among them digits and pairs of them
shapes  the shapes of `mmcnb.synthetic.SHAPES`, made anew for each seed
uneven  digits whose classes have the proportions 1:2:...:10, in an order drawn for each seed; beside them as
        many rows of classes of one size
floors  the least size of a cluster on the graph kernel, on even and uneven classes of the tuning half
filters the three filters of the graph kernel, on the tuning half
rows    10,000 rows of MNIST that were left out of the fit: how much their ARI is above that of the others
stores  MNIST in memory, and from a Zarr store within 512 MiB and 1 GiB, in a process of its own
growth  ten arcs in 50 columns, 10⁶ and 10⁷ rows in a store, within 1 GiB, beside a bare scan of the store

Tables have the mean and the worst of the seeds, and say in which half of ``halves.csv`` a set is. ``--quick``
takes 3,000 rows of the tuning half alone, and 10⁶ arcs.
"""

import time
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, GRAPH, estimator
from benchmarks.protocol import ERROR, Data, clustering, draw, load_once, rows_within, scored
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies._graph_stores import (
    compute_growth,
    compute_stores,
    grid_of_growth,
    grid_of_stores,
    tables_of_growth,
    tables_of_stores,
)
from benchmarks.studies._sets import (
    OURS,
    QUICK_ROWS,
    SETS,
    n_clusters_of,
    over_halves,
    over_sets,
    rows_of_set,
    sets_of,
    shapes_of,
    tuning,
)
from benchmarks.tables import Result, goals_of
from mmcnb import GraphKernel
from mmcnb.synthetic import SHAPES

FILTERS = ("root", "cut-off", "resolvent")
UNEVEN_SETS, EVEN, UNEVEN = ("pendigits", "optdigits", "mnist"), "even", "uneven"
FLOORS = (0.02, 0.1, 0.2, 0.3, 0.5)  # of n/k
EXTENDED, MOST_WORST_ERROR = "usps-extended", 0.015
LEFT_OUT, LEFT_OUT_OF = 10_000, 7  # one row of seven
LEAST_ARI = {"mnist": 0.88, "optdigits": 0.95, "pendigits": 0.80, "usps": 0.82}
MOST_ERROR = {"mnist-3v8": 0.02, "mnist-8v9": 0.018, "mnist-1v7": 0.01, "mnist-2v7": 0.015}
LEAST_SHAPES_ARI = 0.85
MOST_BEHIND = 0.05


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one set, without classes; a filter is that of the graph kernel."""
    data = rows_of_set(run.dataset, run.settings["rows"], run.seed)
    given = {"kernel": GraphKernel(**run.parameters)} if run.parameters else {}
    return scored(data, estimator(run.method, n_clusters_of(run.dataset), random_state=run.seed, **given))


# -- sets and shapes ---------------------------------------------------------------------------


@frame_of_runs
def grid_of_sets(options: Options) -> Runs:
    """All methods on each data set."""
    for (name, rows), seed, method in product(sets_of(options, (*SETS, EXTENDED)), options.repeats(3), OURS):
        yield Run(name, method, seed, settings={"rows": rows})


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Each set, and means over the halves; goals on the mean over the seeds."""
    table = over_sets(frame)
    ours = table[table["method"] == FRONT_DOOR].set_index("dataset")
    goals = [
        *goals_of(ours["ari"], LEAST_ARI, "sets: {}, ARI", at_least=True),
        *goals_of(ours[ERROR], MOST_ERROR, "sets: {}, balanced error", "%"),
        *goals_of(
            ours[f"worst {ERROR}"], {EXTENDED: MOST_WORST_ERROR}, "sets: {}, balanced error of a seed", "%"
        ),
    ]
    return Result({"graph-sets": table, "graph-sets-halves": over_halves(table)}, goals)


@frame_of_runs
def grid_of_shapes(options: Options) -> Runs:
    """All methods on each shape."""
    for (name, rows), seed, method in product(shapes_of(options), options.repeats(3), OURS):
        yield Run(name, method, seed, settings={"rows": rows})


def tables_of_shapes(frame: pd.DataFrame) -> Result:
    """Each shape, and means over the halves; the goals are on the means over all shapes and each half."""
    table = over_sets(frame)
    halves = over_halves(table)
    found = halves[halves["method"] == FRONT_DOOR].set_index("half")["ari"]
    mean = table.loc[table["method"] == FRONT_DOOR, "ari"].mean()
    goals = goals_of({"all": mean, **found}, LEAST_SHAPES_ARI, "shapes: mean ARI, {}", at_least=True)
    return Result({"graph-shapes": table, "graph-shapes-halves": halves}, goals)


# -- classes of uneven sizes -------------------------------------------------------------------


@frame_of_runs
def grid_of_uneven(options: Options) -> Runs:
    """All methods on each set and draw, with even sizes and with uneven ones."""
    for name, rows in sets_of(options, UNEVEN_SETS):
        if name in UNEVEN_SETS:
            for seed, sizes, method in product(options.repeats(3), (EVEN, UNEVEN), OURS):
                yield Run(name, method, seed, {"sizes": sizes}, settings={"rows": rows})


def compute_uneven(run: Run, **given: Any) -> dict[str, Any]:
    """Fit one method to one draw."""
    whole = load_once(run.dataset, run.settings["rows"])
    data = draw_of_sizes(whole, run.parameters["sizes"] == EVEN, run.seed)
    return scored(data, estimator(run.method, n_clusters_of(run.dataset), random_state=run.seed, **given))


def draw_of_sizes(data: Data, even: bool, random_state: int) -> Data:
    """Rows of k classes in the proportions 1:2:...:k, in a random order, or of equal classes.

    There are as many rows as the smallest class allows in any order. Equal classes have as many in all, but
    for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.protocol import Data
    >>> from benchmarks.studies.graph import draw_of_sizes
    >>> data = Data("two", np.zeros((40, 1)), np.repeat([0, 1], 20))
    >>> sorted(np.bincount(draw_of_sizes(data, False, 0).y).tolist())
    [10, 20]
    >>> np.bincount(draw_of_sizes(data, True, 0).y).tolist()
    [15, 15]
    """
    classes, counts = np.unique(data.y, return_counts=True)
    k, rng = len(classes), np.random.RandomState(random_state)
    unit = counts.min() // k
    sizes = unit * rng.permutation(np.arange(1, k + 1))
    if even:
        sizes[:] = unit * (k + 1) // 2
    members = [
        rng.permutation(np.flatnonzero(data.y == one))[:n] for one, n in zip(classes, sizes, strict=True)
    ]
    chosen = np.sort(np.concatenate(members))
    return Data(data.name, data.X[chosen], data.y[chosen])


def tables_of_uneven(frame: pd.DataFrame) -> Result:
    """Each set and kind of sizes; goals: uneven sizes cost little."""
    table = over_sets(frame, ["sizes"])
    ari = table.pivot(index="dataset", columns=["method", "sizes"], values="ari")
    behind = ari[FRONT_DOOR, EVEN] - ari[FRONT_DOOR, UNEVEN]
    return Result({"graph-uneven": table}, goals_of(behind, MOST_BEHIND, "uneven: {}, ARI behind even sizes"))


# -- the least size of a cluster ---------------------------------------------------------------


@frame_of_runs
def grid_of_floors(options: Options) -> Runs:
    """The graph kernel with each least share on each set and draw."""
    for name, rows in sets_of(options, tuning(UNEVEN_SETS)):
        if name in UNEVEN_SETS:
            for seed, sizes, floor in product(options.repeats(3), (EVEN, UNEVEN), FLOORS):
                yield Run(name, GRAPH, seed, {"sizes": sizes, "min_share": floor}, settings={"rows": rows})


def compute_floors(run: Run) -> dict[str, Any]:
    """Fit with one least share to one draw."""
    return compute_uneven(run, min_share=run.parameters["min_share"])


def tables_of_floors(frame: pd.DataFrame) -> Result:
    """Each set, kind of sizes and least share."""
    return Result({"graph-floors": over_sets(frame, ["sizes", "min_share"])})


# -- filters -----------------------------------------------------------------------------------


@frame_of_runs
def grid_of_filters(options: Options) -> Runs:
    """Each filter on each set and shape of the tuning half."""
    names = [*sets_of(options, tuning(SETS)), *shapes_of(options, tuning(tuple(SHAPES)))]
    for (name, rows), seed, one in product(names, options.repeats(3), FILTERS):
        yield Run(name, GRAPH, seed, {"filter": one}, settings={"rows": rows})


def tables_of_filters(frame: pd.DataFrame) -> Result:
    """Each set, and means over the data sets and over the shapes."""
    table = over_sets(frame, ["filter"])
    kinds = table["dataset"].isin(list(SHAPES)).map({True: "shapes", False: "data"})
    means = over_halves(table.assign(kind=kinds), "kind", "filter")
    return Result({"graph-filters": table, "graph-filters-means": means})


# -- new rows ----------------------------------------------------------------------------------


@frame_of_runs
def grid_of_rows(options: Options) -> Runs:
    """All methods on MNIST."""
    rows = rows_within("mnist", options.rows, QUICK_ROWS if options.quick else None)
    for seed, method in product(options.repeats(3), OURS):
        yield Run("mnist", method, seed, settings={"rows": rows})


def compute_rows(run: Run) -> dict[str, Any]:
    """Fit to most rows, and predict the others."""
    data = load_once(run.dataset, run.settings["rows"])
    fitted = len(data.y) - min(LEFT_OUT, len(data.y) // LEFT_OUT_OF)
    new = draw(data, skip=fitted)
    model = estimator(run.method, n_clusters_of(run.dataset), random_state=run.seed)
    found = scored(draw(data, rows=fitted), model)
    started = time.perf_counter()
    labels = model.predict(new.X)
    seconds = time.perf_counter() - started
    ari = clustering(new.y, labels)["ari"]
    return found | {"new_ari": ari, "new_above_fitted": ari - found["ari"], "label_seconds": seconds}


def tables_of_rows(frame: pd.DataFrame) -> Result:
    """ARI of the rows fitted, of those left out, and the difference."""
    return Result({"graph-rows": over_sets(frame, others=("new_ari", "new_above_fitted", "label_seconds"))})


SECTIONS = {
    "sets": Section(grid_of_sets, compute, tables_of_sets),
    "shapes": Section(grid_of_shapes, compute, tables_of_shapes),
    "uneven": Section(grid_of_uneven, compute_uneven, tables_of_uneven),
    "floors": Section(grid_of_floors, compute_floors, tables_of_floors),
    "filters": Section(grid_of_filters, compute, tables_of_filters),
    "rows": Section(grid_of_rows, compute_rows, tables_of_rows),
    "stores": Section(grid_of_stores, compute_stores, tables_of_stores),
    "growth": Section(grid_of_growth, compute_growth, tables_of_growth),
}
