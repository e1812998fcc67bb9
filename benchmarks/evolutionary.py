"""Evolution of labels: its error beside the published one, shaking and k-means, and its time against rows.

``python -m benchmarks evolutionary [--quick] [--seeds N] [--part NAME ...]`` has three parts:

tables  Tables 1 and 2 of Gieseke et al. on four pairs of digits and ionosphere, and four pairs of MNIST.
        Label-free are `EvolutionaryMMC` (EvoMMC), the same with landmarks (FastEvoMMC), `UnsupervisedRLS`
        (mixed shaking) and k-means of ten starts. The paper's protocol knows the classes: a grid of three
        widths (sigma = 1, 3, 5 times the norm of the columns' ranges, gamma = 1/sigma²) and three ridges
        (alpha = 1/2n, 1/200n, 1/1000n), the kernel not centred, the bound of the balance by the sizes of the
        classes, and of ten runs the one of least error; EvoMMC has ten parents and offspring, FastEvoMMC one,
        and n/10 landmarks (MNIST: n/100). As there, EvoMMC is fitted to 1,000 rows of each MNIST pair (here
        three runs and one seed). Errors are shares of wrong rows, as published
pairs   the mean of Table 1 over all 45 pairs of digits, one seed
growth  its Fig. 1: seconds against rows, of a run and of a generation, with the fitness worked out anew in
        O(n²) beside

``--quick`` leaves out MNIST, and takes three sets, two pairs and a part of the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell
from benchmarks._common import MNIST_PAIRS, Goal, Options, Result, rows_of, sizes_within
from benchmarks._evolutionary_fits import EVO, FAST, KMEANS, NAIVE, SHAKING, fitted, grown, searched
from benchmarks._journal import Journal
from benchmarks._parts import Tables, run_parts
from benchmarks._statistics import best, log_slope, over_seeds
from benchmarks.published import EVO as EVO_PAPER
from benchmarks.published import figure

OPTDIGITS = "optdigits-tes"
SETS = (*(f"{OPTDIGITS}-{pair}" for pair in ("3v8", "1v7", "2v7", "8v9")), "ionosphere")
PAIRS = tuple(f"{OPTDIGITS}-{a}v{b}" for a, b in combinations(range(10), 2))
GRID = tuple({"width": width, "ridge": ridge} for width in (1.0, 3.0, 5.0) for ridge in (2.0, 200.0, 1000.0))
RUNS, QUICK_RUNS = 10, 3
SUBSET = 1000  # rows of an MNIST pair that the paper gives EvoMMC
SIZES, QUICK_SIZES = (250, 500, 1000, 2000, 4000), (100, 200, 400)
MOST_SLOPE = 1.2


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
    return run_parts({"tables": tables, "pairs": pairs, "growth": growth}, options, journal)


# -- errors ------------------------------------------------------------------------------------


def tables(options: Options, journal: Journal) -> Tables:
    """Tables 1 and 2: errors, seconds and generations beside the published ones."""
    names = (*SETS, *MNIST_PAIRS)
    if options.quick:
        names = SETS[-1:] if options.smoke else SETS[::2]
    cells = [cell for name in names for cell in cells_of(name, options, "tables", _seeds(name, options))]
    table = table_of(journal.rows(cells))
    for metric in ("error", "seconds", "generations"):
        table[f"published {metric}"] = [_published(row, metric) for row in table.itertuples()]
    return {"evolutionary": table.dropna(axis=1, how="all")}, goals_of(table)


def pairs(options: Options, journal: Journal) -> Tables:
    """The mean of the errors over the pairs of digits."""
    names = PAIRS[: 1 if options.smoke else 2] if options.quick else PAIRS
    cells = [cell for name in names for cell in cells_of(name, options, "pairs", 1)]
    table = mean_of(table_of(journal.rows(cells)))
    return {"evolutionary-pairs": table}, goals_of(table)


def _seeds(name: str, options: Options) -> int:
    return options.seeds or (1 if options.quick or name in MNIST_PAIRS else 3)


def cells_of(name: str, options: Options, part: str, seeds: int) -> Iterator[Cell]:
    """All methods on one data set, by both protocols.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    options : Options
        From the command line.
    part : str
        Part of the study.
    seeds : int
        Repeats.

    Yields
    ------
    Cell
        For `Journal.rows`.
    """
    grid = GRID[1:2] if options.smoke else GRID[1::3] if options.quick else GRID
    mnist = name in MNIST_PAIRS
    runs = QUICK_RUNS if options.quick or mnist else RUNS
    rows, few = rows_of(name, options), rows_of(name, options, SUBSET if mnist else None)
    for seed in range(seeds):
        for method in (KMEANS, EVO, FAST, SHAKING):
            yield Cell(name, method, seed, partial(fitted, name, rows, method, seed), part=part)
    share = 100 if mnist else 10  # rows a landmark
    for method, taken, points in ((KMEANS, rows, ({},)), (FAST, rows, grid), (EVO, few, grid)):
        for point in points:
            for seed in range(seeds):
                compute = partial(
                    searched, name, taken, method, point, share, range(runs * seed, runs * (seed + 1))
                )
                yield Cell(name, method, seed, compute, point, PAPER, part)


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds: of the defaults, and of the point of the grid that is best on average."""
    keys = ["dataset", "protocol", "method"]
    settings = over_seeds(frame, [*keys, "parameters"], "error", "mean_error", "generations")
    return best(settings, keys, "error").dropna(axis=1, how="all")


def mean_of(table: pd.DataFrame) -> pd.DataFrame:
    """Mean errors over the data sets, beside the published ones where these are all pairs."""
    groups = table.groupby(["protocol", "method"], sort=False)
    means = groups[["n", "error", "seconds"]].mean().reset_index()
    means.insert(0, "dataset", f"{OPTDIGITS}, {groups.size().max()} pairs")
    return means.assign(**{"published error": [_published(row, "error") for row in means.itertuples()]})


def _published(row: Any, metric: str) -> float:
    """The figure for a row of the paper's protocol; NaN where there is none."""
    return figure(EVO_PAPER, row.dataset, row.method, metric) if row.protocol == PAPER else np.nan


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """By the classes, and shaking without classes: no more error than published."""
    goals = []
    for row in table.itertuples():
        bound = 100 * figure(
            EVO_PAPER, str(row.dataset), EVO if row.method == SHAKING else row.method, "error"
        )
        asked = (PAPER, EVO), (PAPER, FAST), (LABEL_FREE, SHAKING)
        if (row.protocol, row.method) in asked and np.isfinite(bound):
            what = f"{row.dataset}: {row.method}, {row.protocol}"
            goals.append(Goal(what, round(100 * float(row.error), 2), round(bound, 2), "%"))
    return goals


# -- seconds against rows ----------------------------------------------------------------------


def growth(options: Options, journal: Journal) -> Tables:
    """Fig. 1: seconds of a run and of a generation against rows."""
    sizes = QUICK_SIZES if options.quick else SIZES
    cells = [
        Cell("blobs", method, 0, partial(grown, n, method, options.quick), {"rows": n}, PAPER, "growth")
        for n in sizes_within(sizes, options)
        for method in (EVO, FAST, NAIVE)
    ]
    frame = journal.rows(cells)
    columns = ["n", "method", "seconds", "generations", "generation_seconds"]
    slopes = slopes_of(frame)
    judged = slopes[(slopes["of"] == "generation_seconds") & slopes["method"].isin([EVO, FAST])]
    goals = [
        Goal(f"slope of the seconds of a generation, {row.method}", float(row.slope), MOST_SLOPE)
        for row in judged.itertuples()
    ]
    found = {
        "evolutionary-growth": frame.loc[frame["status"] == "ok", columns],
        "evolutionary-slopes": slopes,
    }
    return {name: table for name, table in found.items() if len(table)}, goals


def slopes_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Slopes of the seconds of a run and of a generation against rows; methods of one size are left out."""
    rows = []
    for method, part in frame.groupby("method", sort=False):
        for name in ("seconds", "generation_seconds"):
            slope = log_slope(part["n"], part[name])
            if np.isfinite(slope.value):
                rows.append(
                    {"method": method, "of": name, "slope": slope.value, "low": slope.low, "high": slope.high}
                )
    return pd.DataFrame(rows, columns=["method", "of", "slope", "low", "high"])
