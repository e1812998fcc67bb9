"""The graph kernel on stores: the same labels as in memory, and many rows, each within a memory limit.

Both sections run ``mmcnb fit`` in a process of its own, whose resident memory is watched.
"""

import hashlib
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import (
    best_bare_scan,
    blocks_of,
    clustering,
    compile_seconds,
    fit_store,
    load_once,
    rows_within,
    scored,
    write_rows,
    written_once,
)
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._sets import QUICK_ROWS, n_clusters_of
from benchmarks.tables import Goal, Result, goals_of, over_seeds
from mmcnb.synthetic import write_synthetic

IN_MEMORY, LIMITS = "in memory", ("512MiB", "1GiB")
MIB_OF = {"512MiB": 512, "1GiB": 1024}
ARCS, COLUMNS = 10, 50
MOST_ROWS, QUICK_GROWTH_ROWS, SMOKE_ROWS = 10**7, 10**6, 3000
GROWTH_LIMIT = "1GiB"
MOST_READS, MOST_SCANS, LEAST_GROWTH_ARI = 4, 30, 0.95
WARM_UP_ROWS, SCANS = 5000, 3


def digest_of(labels: Any) -> str:
    """A digest of labels: equal for equal ones.

    Examples
    --------
    >>> from benchmarks.studies._graph_stores import digest_of
    >>> digest_of([0, 1]) == digest_of([0, 1]) != digest_of([1, 0])
    True
    """
    return hashlib.sha256(np.asarray(labels, np.int64).tobytes()).hexdigest()[:16]


def clustering_and_digest(y: Any, labels: Any) -> dict[str, Any]:
    """Scores of labels, and their digest."""
    return clustering(y, labels) | {"labels": digest_of(labels)}


# -- the same labels from a store --------------------------------------------------------------


@frame_of_runs
def grid_of_stores(options: Options) -> Runs:
    """MNIST in memory, and from a store within each limit."""
    rows = rows_within("mnist", options.rows, QUICK_ROWS if options.quick else None)
    for seed, held in product(options.repeats(1), (IN_MEMORY, *LIMITS)):
        yield Run("mnist", FRONT_DOOR, seed, {"memory": held}, settings={"rows": rows})


def compute_stores(run: Run) -> dict[str, Any]:
    """Fit in memory, or by ``mmcnb fit`` within a limit."""
    data, k = load_once(run.dataset, run.settings["rows"]), n_clusters_of(run.dataset)
    model = estimator(FRONT_DOOR, k, random_state=run.seed)
    if run.parameters["memory"] == IN_MEMORY:
        return scored(data, model, clustering_and_digest)
    compiled = compile_seconds(data.X, model)  # into the cache on disk
    store = written_once(run.folder, f"mnist-{len(data.y)}", partial(write_rows, data))
    words = "--n-clusters", k, "--memory-limit", run.parameters["memory"]
    return fit_store(store, run.seed, *words, score=clustering_and_digest) | {"compile_seconds": compiled}


def tables_of_stores(frame: pd.DataFrame) -> Result:
    """Each way; goals: a store gives the labels of the rows in memory, within its limit."""
    frame = frame[frame["status"] == "ok"]
    inside = frame["memory"] == IN_MEMORY
    expected = frame[inside].set_index("seed")["labels"]
    same = frame[~inside].assign(same=frame["labels"] == frame["seed"].map(expected))
    by_limit = same.groupby("memory")
    goals = [
        *goals_of(
            by_limit["same"].mean(), 1, "stores: {}, fits with the labels of rows in memory", at_least=True
        ),
        *goals_of(by_limit["peak_mib"].max(), MIB_OF, "stores: {}, peak memory", "MiB"),
    ]
    return Result({"graph-stores": over_seeds(frame, ["dataset", "memory"], "ari", "label_seconds")}, goals)


# -- many rows ---------------------------------------------------------------------------------


@frame_of_runs
def grid_of_growth(options: Options) -> Runs:
    """Arcs of ten clusters, in tenfold numbers of rows."""
    most = min(options.pick(MOST_ROWS, QUICK_GROWTH_ROWS, SMOKE_ROWS), options.rows or MOST_ROWS)
    for rows, seed in product(sorted({max(most // 10, min(most, SMOKE_ROWS)), most}), options.repeats(1)):
        yield Run("arcs", FRONT_DOOR, seed, {"rows": rows})


def compute_growth(run: Run) -> dict[str, Any]:
    """``mmcnb fit`` within a limit, and a bare scan of the same store."""
    rows = run.parameters["rows"]

    def write(path: Any) -> None:
        write_synthetic("arcs", path, rows, COLUMNS, run.seed, n_clusters=ARCS)

    store = written_once(run.folder, f"arcs-{rows}-{run.seed}", write)
    warm_up = next(blocks_of(store, min(rows, WARM_UP_ROWS)))
    compiled = compile_seconds(warm_up, estimator(FRONT_DOOR, ARCS))  # into the cache on disk
    found = fit_store(store, 0, "--n-clusters", ARCS, "--memory-limit", GROWTH_LIMIT)
    scan, seconds = best_bare_scan(store, SCANS), found["seconds"] + found["label_seconds"]
    return found | {"scan_seconds": scan, "scans": seconds / scan, "compile_seconds": compiled}


def tables_of_growth(frame: pd.DataFrame) -> Result:
    """Each number of rows; goals on the largest: reads, time in bare scans, ARI and peak memory."""
    told = ("label_seconds", "reads", "scan_seconds", "scans")
    table = over_seeds(frame, ["dataset", "rows", "method"], "ari", *told).drop(columns="rows")
    largest = table.loc[table["n"].idxmax()]
    name = f"growth: {largest['n']:,} rows"
    goals = [
        Goal(f"{name}, reads of the store", largest["reads"], MOST_READS),
        Goal(f"{name}, time in bare scans", largest["scans"], MOST_SCANS),
        Goal(f"{name}, ARI", largest["ari"], LEAST_GROWTH_ARI, at_least=True),
        Goal(f"{name}, peak memory", largest["peak_mib"], MIB_OF[GROWTH_LIMIT], "MiB"),
    ]
    return Result({"graph-growth": table}, goals)
