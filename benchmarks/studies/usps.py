"""Extended USPS (1,000 to 266,079 rows x 676), as in SKMMC's Fig. 2: error and time of all methods, and a fit of a store.

``python -m benchmarks usps [--quick] [--seeds N]`` fits k-means, linear CPMMC and (up
to 40,000 rows) LG-MMC, and SKMMC with its defaults and at each width of the paper's
grid, to random samples of 1,000, 3,000, 10,000, 30,000 and 100,000 rows and to all
rows, with both protocols and two seeds. In the paper's protocol, the parameters with
the smallest mean balanced error are selected with the classes. The section "store" fits
SKMMC with its defaults to a Zarr store of the largest number of rows, within 1 GiB.
SKMMC with the paper's basis is fitted to at most 3,000 rows, because one fit of 10,000
rows takes a minute, and the time grows with the number of rows. ``--quick`` stops at
10,000 rows.
"""

from typing import Any

import pandas as pd

from benchmarks.methods import SKMMC
from benchmarks.protocol import fit_store, load_once, store_once
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies import _skmmc
from benchmarks.studies._skmmc import growth_goals, runs_of, slopes_of, table_of
from benchmarks.tables import Result

NAME = "usps-extended"
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
QUICK_ROWS = 10_000
MOST_OWN_BASIS_ROWS = 3000
SEEDS = 2
STORE = "store"
WITHIN = {"memory_limit": "1GiB"}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all methods at each size, then SKMMC on the store."""
    most = options.rows_of(NAME, QUICK_ROWS if options.quick else None)
    for rows in sizes(most):
        is_small = rows is not None and rows <= MOST_OWN_BASIS_ROWS
        yield from runs_of(
            NAME,
            rows,
            options,
            SEEDS,
            dataset_of(rows),
            own_basis_runs=None if is_small else 0,
        )
    for seed in options.repeats(SEEDS):
        yield Run(
            dataset_of(most),
            SKMMC,
            seed,
            parameters=WITHIN,
            part=STORE,
            settings={"rows": most},
        )


def compute(run: Run) -> dict[str, Any]:
    """Fit a method in memory, or SKMMC to a store in a separate process."""
    if run.part != STORE:
        return _skmmc.compute(run)
    # the fit reads the store from disk, so the array is not needed
    load_once.cache_clear()
    path = store_once(run.folder, NAME, rows=run.settings["rows"])
    return fit_store(
        path,
        run.seed,
        "--method",
        "sparse-kernel-mmc",
        "--memory-limit",
        WITHIN["memory_limit"],
    )


def sizes(most: int | None) -> list[int | None]:
    """Return numbers of rows: the paper's that are below the largest, then the largest.

    If all numbers of the paper are larger, half of the largest number comes first. None
    is all rows.

    Examples
    --------
    >>> from benchmarks.studies.usps import sizes
    >>> sizes(10_000), sizes(200)
    ([1000, 3000, 10000], [100, 200])
    """
    smaller = [size for size in SIZES if most is None or size < most]
    return [*(smaller or [max(1, (most or 0) // 2)]), most]


def dataset_of(rows: int | None) -> str:
    """Return the name in the tables."""
    return NAME if rows is None else f"{NAME} {rows}"


def tables(frame: pd.DataFrame) -> Result:
    """Return errors and times in memory, their slopes, and the fits of the store."""
    table, store = (
        table_of(frame[(frame["part"] == STORE) == stored]) for stored in (False, True)
    )
    found = {"usps": table, "usps-slopes": slopes_of(table), "usps-store": store}
    return Result(found, growth_goals("usps", table))
