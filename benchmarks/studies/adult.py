"""Adult a1a to a9a (1,605 to 32,561 sparse rows), as in SKMMC's Fig. 1: error and time of all methods.

``python -m benchmarks adult [--quick] [--seeds N] [--part NAME ...]`` has two sections.
"sizes" fits k-means, linear CPMMC and LG-MMC, and SKMMC with its defaults and at each
width of the paper's grid, to the nine sizes with both protocols and three seeds. In the
paper's protocol, the parameters with the smallest mean balanced error are selected with
the classes; SKMMC starts from three random labellings of 2,000 rows, and eta is 0.1.
SKMMC with the basis and the settings of the paper has ten runs. Slopes are fitted to
the logarithms of time and number of rows. Up to the 32,561 rows of a9a, SKMMC spends
most of its time on a sample of fixed size, so a slope near 0 describes this sample and
not growth.

"replicated", which runs only if it is requested, measures growth beyond the sample: a9a
is repeated, with Gaussian noise of standard deviation 0.05 on its 123 columns, up to
10^6, 3 10^6 and 10^7 rows. Its error is therefore not the error on so many different
people. The rows are written block by block to a dense Zarr store (4.9 GB of float32;
extended USPS would take 27 GB), and SKMMC with its defaults is fitted to this store
within 1 GiB.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import SKMMC
from benchmarks.protocol import ERROR, fit_store, load_once, written_once
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies._skmmc import (
    compute,
    growth_goals,
    runs_of,
    slopes_of,
    table_of,
)
from benchmarks.tables import Result, over_seeds, slopes_over
from mmcnb.stores import create_dense_store

__all__ = ["compute", "grid", "tables"]

STARTS = {"init": "random", "n_init": 3, "eta": 0.1}
SIZES = tuple(f"a{k}a" for k in range(1, 10))
OWN_BASIS_RUNS = 10
LARGEST = "a9a"
REPLICATED = f"{LARGEST}, replicated"
REPLICATED_ROWS = (10**6, 3 * 10**6, 10**7)
QUICK_REPLICATED_ROWS = (50_000, 100_000, 200_000)
SMOKE_REPLICATED_ROWS = (400, 800)
NOISE = 0.05  # standard deviation of the noise on columns of 0 and 1
BLOCK = 2**16
LIMIT = "1GiB"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all methods at each size."""
    for name in options.pick(SIZES, SIZES, SIZES[:2]):
        rows = options.rows_of(name)
        yield from runs_of(
            name, rows, options, starts=STARTS, own_basis_runs=OWN_BASIS_RUNS
        )
        if rows is not None and rows == options.rows:
            # The sets are nested (a1a is a part of a2a), so the other sizes would be equally
            # large.
            break


def tables(frame: pd.DataFrame) -> Result:
    """Return errors, times, and their slopes."""
    table = table_of(frame)
    slopes = slopes_of(table)
    found = {"adult": table} | ({} if slopes.empty else {"adult-slopes": slopes})
    return Result(found, growth_goals("adult", table))


# -- at scale by replication -----------------------------------------------------------


@frame_of_runs
def grid_of_replicated(options: Options) -> Runs:
    """Yield SKMMC with its defaults within the limit at each size, the smallest first."""
    sizes = options.pick(REPLICATED_ROWS, QUICK_REPLICATED_ROWS, SMOKE_REPLICATED_ROWS)
    for rows in sizes:
        for seed in options.repeats(1):
            yield Run(
                REPLICATED,
                SKMMC,
                seed,
                parameters={"rows": rows, "memory_limit": LIMIT},
                settings={"noise": NOISE},
            )


def compute_replicated(run: Run) -> dict[str, Any]:
    """Write the rows to a store unless it exists, and fit it in a separate process."""
    rows = run.parameters["rows"]
    write = partial(write_replicated, rows=rows, noise=run.settings["noise"])
    store = written_once(run.folder, f"{LARGEST}-{rows}", write)
    load_once.cache_clear()
    words = ("--method", "sparse-kernel-mmc", "--memory-limit", LIMIT)
    return fit_store(store, run.seed, *words)


def write_replicated(path: Path, rows: int, noise: float) -> None:
    """Write the rows of a9a repeatedly with Gaussian noise, block by block.

    Each repetition of the data set has different noise; the first one has noise, too.
    """
    data = load_once(LARGEST)
    dense = data.X.toarray()
    random = np.random.default_rng(0)
    with create_dense_store(path, dense.shape[1], np.float32) as writer:
        for start in range(0, rows, BLOCK):
            places = np.arange(start, min(start + BLOCK, rows)) % len(dense)
            block = random.standard_normal((len(places), dense.shape[1]), np.float32)
            block *= np.float32(noise)
            block += dense[places]
            writer.append(block, y=data.y[places])


def tables_of_replicated(frame: pd.DataFrame) -> Result:
    """Return error, time and memory at each size, and the slope of the time."""
    keys = ["dataset", "method", "rows"]
    table = over_seeds(frame, keys, ERROR, "passes", "label_seconds")
    found = {"adult-replicated": table.drop(columns="rows")}
    slopes = slopes_over(table, ["dataset", "method"])
    if not slopes.empty:
        found["adult-replicated-slopes"] = slopes
    return Result(found)


SECTIONS = {
    "sizes": Section(grid, compute, tables),
    "replicated": Section(grid_of_replicated, compute_replicated, tables_of_replicated),
}


def usual_sections(options: Options) -> list[str]:
    """Return the sections that run by default; "replicated" only runs in a smoke run."""
    return [*SECTIONS] if options.smoke else ["sizes"]
