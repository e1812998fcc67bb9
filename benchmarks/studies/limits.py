"""Peak memory of the default for twelve shapes of rows, and of all methods within 512 MiB.

``python -m benchmarks limits [--part shapes] [--quick] [--rows N]`` writes each shape
to a Zarr store and runs ``mmcnb fit`` on it, with labels, in a separate process. The
peak is the largest resident memory of this process and its children (Linux). If the
plan refuses a limit, there is no run, and "refused" is the smallest limit that the
message names. Kernels are compiled before the measurement. ``--quick`` uses a fiftieth
of the rows of each shape.

``--part papers`` fits the methods of the papers to 8,000,000 x 64 rows within 512 MiB,
twice, in separate processes: "cold" with an empty compile cache, and "warm" with a
cache that a small fit has filled.
"""

import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import zarr

import mmcnb
from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import (
    facts,
    fit_store,
    of_store,
    run_and_watch,
    write_rows,
    written_once,
)
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _limits_papers
from benchmarks.studies._made import texts
from benchmarks.tables import Goal, Result
from mmcnb.datasets import write_synthetic

LIMITS = (400, 512, 1024, 2048)  # MiB
MIB = 2**20
WORDS = 40
FEWEST_ROWS = 1000


class Shape(NamedTuple):
    """Numbers of rows, columns and clusters of a synthetic data set, and its function."""

    kind: str
    rows: int
    columns: int
    n_clusters: int


SHAPES = {
    "many rows": Shape("rings", 4_000_000, 32, 2),
    "two columns": Shape("moons", 4_000_000, 2, 2),
    "ten clusters": Shape("arcs", 2_000_000, 50, 10),
    "thirty clusters": Shape("arcs", 1_000_000, 32, 30),
    "blobs": Shape("blobs", 1_000_000, 100, 5),
    "wide": Shape("blobs", 200_000, 1000, 3),
    "very wide": Shape("blobs", 20_000, 10_000, 2),
    "few and wide": Shape("blobs", 1000, 20_000, 2),
    "sparse": Shape("texts", 1_000_000, 1000, 2),
    "wide, sparse": Shape("texts", 200_000, 100_000, 5),
    "very wide, sparse": Shape("texts", 2000, 300_000, 2),
    "sparse, ten clusters": Shape("texts", 500_000, 10_000, 10),
}
QUICK_PART = 50  # divides the number of rows


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each limit for each shape."""
    names = options.pick(tuple(SHAPES), tuple(SHAPES), ("many rows",))
    limits = options.pick(LIMITS, LIMITS, LIMITS[-1:])
    for seed, name, limit in product(options.repeats(1), names, limits):
        rows = options.sized(
            SHAPES[name].rows, max(FEWEST_ROWS, SHAPES[name].rows // QUICK_PART)
        )
        yield Run(
            name, FRONT_DOOR, seed, parameters={"limit": limit}, settings={"rows": rows}
        )


def compute(run: Run) -> dict[str, Any]:
    """Return the peak of a fit, or the smallest limit if this limit is refused."""
    shape = SHAPES[run.dataset]._replace(rows=run.settings["rows"])
    limit = run.parameters["limit"]
    store = written_once(
        run.folder, run.dataset.replace(" ", "-"), lambda path: write(shape, path)
    )
    return fit_within(store, shape.n_clusters, limit, run.seed)


def fit_within(store: str, n_clusters: int, limit: int, seed: int) -> dict[str, Any]:
    """Fit the default within a limit in MiB, in a separate process.

    The kernels are compiled before the measurement.
    """
    mmcnb.warmup(None)
    model = estimator(FRONT_DOOR, n_clusters, memory_limit=f"{limit}MiB")
    mmcnb.warmup(estimator(FRONT_DOOR, n_clusters))
    try:
        plan = model.plan(store)
    except mmcnb.errors.MemoryLimitError as error:
        return {
            "refused": str(error).rpartition("works is ")[2].rstrip("."),
            "seconds": np.nan,
        }
    words = ("--n-clusters", n_clusters, "--memory-limit", f"{limit}MiB")
    return fit_store(store, seed, *words) | {
        "planned_mib": plan.peak / MIB,
        "refused": "",
    }


def write(shape: Shape, path: Path) -> None:
    """Write a shape's rows to a store."""
    kind, rows, columns, k = shape
    if kind == "texts":
        write_rows(texts(rows, columns, k, WORDS), path)
    else:
        write_synthetic(kind, path, rows, columns, 0, n_clusters=k)


def tables(frame: pd.DataFrame) -> Result:
    """Return peaks beside limits and plans; the goal is for the largest peak relative to its limit."""
    kept = [
        "dataset",
        "limit",
        "n",
        "d",
        "refused",
        "planned_mib",
        "peak_mib",
        "seconds",
        "ari",
    ]
    table = frame.reindex(columns=kept)
    # otherwise, the limit of this process would apply
    table["peak_mib"] = table["peak_mib"].where(table["refused"] == "")
    table["of limit"] = table["peak_mib"] / table["limit"]
    taken = float(table["of limit"].max())
    return Result(
        {"limits": table}, [Goal("limits: largest peak, of its limit", taken, 1.0)]
    )


# -- the methods of the papers ---------------------------------------------------------

PAPER_LIMIT = 512  # MiB
PAPER_ROWS = 8_000_000
PAPER_COLUMNS = 64
CACHES = ("cold", "warm")


@frame_of_runs
def papers_grid(options: Options) -> Runs:
    """Yield each method, with compiled code in the cache and without."""
    rows = options.sized(PAPER_ROWS, PAPER_ROWS // QUICK_PART)
    names = tuple(_limits_papers.METHODS)
    for seed, cache, name in product(options.repeats(1), CACHES, names):
        yield Run(
            "rings",
            name,
            seed,
            parameters={"cache": cache},
            settings={"rows": rows, "limit": PAPER_LIMIT},
        )


def papers(run: Run) -> dict[str, Any]:
    """Return the plan and the peak of a method in a separate process."""
    rows = run.settings["rows"]
    store = written_once(
        run.folder,
        "rings",
        lambda path: write_synthetic("rings", path, rows, PAPER_COLUMNS, 0),
    )
    cache = Path(run.folder) / "caches" / run.method / run.parameters["cache"]
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    python = [sys.executable, "-m", _limits_papers.__name__]
    if run.parameters["cache"] == "warm":
        run_and_watch([*python, "warm-up", run.method], environment)
    labels = cache.with_suffix(".labels.zarr")
    words = [run.method, store, run.settings["limit"], run.seed, labels]
    report, peak = run_and_watch([*python, *map(str, words)], environment)
    report["peak_mib"] = np.nan if report["refused"] else peak / MIB
    if labels.exists():
        found = zarr.open_array(str(labels), mode="r")[:]
        report |= of_store(store, found)
        shutil.rmtree(labels)
    return facts(store) | report


def papers_tables(frame: pd.DataFrame) -> Result:
    """Return plans and peaks, with goals for the number of methods that fit and the largest peak."""
    kept = ["method", "cache", "n", "d", "refused", "planned_mib", "peak_mib", "ari"]
    table = frame.reindex(columns=[*kept, "seconds"])
    fits = (table["peak_mib"] <= PAPER_LIMIT) & (table["refused"] == "")
    goals = [
        Goal(f"limits: methods that do not fit, {cache}", float((~part).sum()), 0.0)
        for cache, part in fits.groupby(table["cache"])
    ]
    return Result({"papers": table}, goals)


SECTIONS = {
    "shapes": Section(grid, compute, tables),
    "papers": Section(papers_grid, papers, papers_tables),
}


def usual_sections(options: Options) -> tuple[str, ...]:
    """Return the shapes, because the methods of the papers take hours."""
    return ("shapes",)
