"""Growth of time, error and peak memory with the numbers of rows, columns and clusters.

``python -m benchmarks growth [--quick] [--rows N] [--part NAME ...]`` has three
sections:

rows      two rings with 32 columns in a Zarr store, of 10⁴ to 10⁷ rows: ``mmcnb fit``
          within 512 MiB in a separate process, by the default and by `SparseKernelMMC`.
          The seconds are those of the report, and the peak resident memory is that of
          the process and its children (Linux). For comparison, scikit-learn's
          MiniBatchKMeans is fitted to the same store, block by block
columns   10⁵ rows of ten half circles in 8 to 512 columns, by the default and by
          `UnsupervisedRLS`
clusters  10⁵ rows of 2 to 64 half circles in 50 columns, by the same methods

The number of clusters is given. ``--quick`` stops at 10⁶ rows.
"""

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.methods import (
    FRONT_DOOR,
    LEAST_SQUARES,
    MINIBATCH,
    SKMMC,
    estimator,
    fit_blocks,
)
from benchmarks.protocol import (
    ERROR,
    blocks_of,
    compile_seconds,
    fit_store,
    of_store,
    store_once,
    timed,
    written_once,
)
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.tables import Goal, Result, goals_of, log_slope, over_seeds
from mmcnb.datasets import write_synthetic

FEATURES = 32
MEMORY_LIMIT = 512  # MiB
MOST_ROWS = 10**7
QUICK_ROWS = 10**6
SMOKE_ROWS = 2000
MEMORY_ROWS = 10**6  # from this size on, the store is larger than the rest of the limit
PEER_ROWS = 2**15
MOST_SLOPE = 1.1
WIDE_ROWS = 10**5
# Values that are fixed while the other one grows.
USUAL = {"columns": 50, "clusters": 10}
SMALL_AND_LARGE = {
    "columns": [8, 16, 32, 64, 128, 256, 512],
    "clusters": [2, 4, 8, 16, 32, 64],
}
MOST_SLOPE_OF = {"columns": 1.0, "clusters": 0.5}
WORDS = {
    FRONT_DOOR: ("maximum-margin-clustering", "--n-clusters", 2),
    SKMMC: ("sparse-kernel-mmc",),
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield our methods and k-means on the same store, size by size."""
    for n, seed, method in product(
        sizes(options), options.repeats(1), (*WORDS, MINIBATCH)
    ):
        yield Run("rings", method, seed, parameters={"rows": n})


def sizes(options: Options) -> list[int]:
    """Return numbers of rows: the largest, and tenths of it down to 10⁴.

    If the largest number is below 10⁵, one tenth of it is used as well.
    """
    most = options.rows or (QUICK_ROWS if options.quick else MOST_ROWS)
    if options.smoke:
        most = max(most, SMOKE_ROWS)
    return [
        n
        for n in (most // 1000, most // 100, most // 10, most)
        if n >= min(10**4, most // 10)
    ]


def compute(run: Run) -> dict[str, Any]:
    """Run ``mmcnb fit`` in a watched process, or k-means with mini-batches."""
    how = {
        "rows": run.parameters["rows"],
        "features": FEATURES,
        "random_state": run.seed,
    }
    store = store_once(run.folder, "rings", **how)
    if run.method == MINIBATCH:
        return fit_blocks(
            estimator(MINIBATCH, n_init=10, random_state=0), store, PEER_ROWS
        )
    few = next(blocks_of(store, PEER_ROWS))
    # Compiled into the cache on disk.
    compiled = compile_seconds(few, estimator(run.method))
    words = ("--method", *WORDS[run.method], "--memory-limit", f"{MEMORY_LIMIT}MiB")
    found = fit_store(store, 0, *words)
    return found | {"compile_seconds": compiled}


def tables(frame: pd.DataFrame) -> Result:
    """Return means for each size, with goals for the slopes of time and for peak memory.

    Slopes are fitted to all sizes, and to the last two.
    """
    keys = ["dataset", "rows", "method"]
    told = ("label_seconds", "passes")
    table = over_seeds(frame, keys, ERROR, *told).drop(columns="rows")
    goals = [
        goal
        for method in WORDS
        for goal in _goals(method, table[table["method"] == method])
    ]
    return Result({"growth": table}, goals)


def _goals(method: str, ours: pd.DataFrame) -> list[Goal]:
    goals = []
    for name, part in (("all sizes", ours), ("last step", ours.tail(2))):
        slope = log_slope(part["n"], part["seconds"]).value
        goals.append(Goal(f"{method}: slope of time, {name}", slope, MOST_SLOPE))
    large = ours[ours["n"] >= min(MEMORY_ROWS, ours["n"].max())]
    peaks = large.set_index("n")["peak_mib"]
    goals += goals_of(peaks, MEMORY_LIMIT, f"{method}, {{:,}} rows: peak memory", "MiB")
    return goals


# -- columns and clusters --------------------------------------------------------------


def grid_of(what: str) -> Callable[[Options], pd.DataFrame]:
    """Return the grid in which the columns, or the clusters, grow."""

    @frame_of_runs
    def grid(options: Options) -> Runs:
        every = SMALL_AND_LARGE[what]
        sizes = options.pick(every, every, every[:2])
        settings = {"rows": options.sized(WIDE_ROWS, WIDE_ROWS)}
        methods = (FRONT_DOOR, LEAST_SQUARES)
        for seed, size, method in product(options.repeats(1), sizes, methods):
            parameters = USUAL | {what: size}
            yield Run("arcs", method, seed, parameters=parameters, settings=settings)

    return grid


def compute_sized(run: Run) -> dict[str, Any]:
    """Fit half circles in a store, with their number."""
    rows = run.settings["rows"]
    columns = run.parameters["columns"]
    clusters = run.parameters["clusters"]

    def write(path: Path) -> None:
        write_synthetic("arcs", path, rows, columns, 0, n_clusters=clusters)

    store = written_once(run.folder, f"arcs-{rows}-{columns}-{clusters}", write)
    model = estimator(run.method, clusters, random_state=run.seed)
    compiled = compile_seconds(next(blocks_of(store, PEER_ROWS)), model)
    measures = timed(model, store) | {"compile_seconds": compiled}
    return of_store(store, model.labels_) | measures


def tables_of(what: str) -> Callable[[pd.DataFrame], Result]:
    """Return the tables of a section in which the columns or the clusters grow.

    The goals are for the slopes of time.
    """

    def tables(frame: pd.DataFrame) -> Result:
        table = over_seeds(frame, ["method", what], "ari")
        slopes = {
            method: log_slope(part[what], part["seconds"]).value
            for method, part in table.groupby("method")
        }
        goals = goals_of(
            pd.Series(slopes), MOST_SLOPE_OF[what], f"{what}: {{}}, slope of time"
        )
        return Result({f"growth-{what}": table}, goals)

    return tables


SECTIONS: Mapping[str, Section] = {
    "rows": Section(grid, compute, tables),
    **{
        what: Section(grid_of(what), compute_sized, tables_of(what))
        for what in MOST_SLOPE_OF
    },
}
