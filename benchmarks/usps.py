"""Extended USPS, 1,000 to 266,079 rows x 676, SKMMC's Fig. 2: error and time of all methods; from Zarr too.

``python -m benchmarks usps [--quick] [--seeds N]`` fits random draws of 1,000, 3,000, 10,000, 30,000 and
100,000 rows and all of them by both protocols, twice with other seeds: k-means, linear CPMMC, and SKMMC by
default and at each width of the paper's grid. The methods of the paper's protocol stand at the parameters of
the least mean balanced error, as the classes tell. The part "store" is SKMMC by default on the Zarr store of
the most rows, within 1 GiB. ``--quick`` stops at 10,000 rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks._cells import Cell, facts, load_once, store_once
from benchmarks._common import Options, Result, rows_of, temporary_folder
from benchmarks._compare import SKMMC, cells_of, clustering, table_of
from benchmarks._journal import Journal
from benchmarks._scaling import goals_of, slopes_of
from benchmarks._watch import fit_store
from mmcnb.samples import open_class_labels

NAME = "usps-extended"
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
QUICK_ROWS = 10_000
SEEDS = 2
STORE = "store"
WITHIN: dict[str, Any] = {"memory_limit": "1GiB"}


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
    most = rows_of(NAME, options, QUICK_ROWS if options.quick else None)
    cells = []
    for rows in sizes(most):
        cells += cells_of(NAME, rows, options, SEEDS, dataset=dataset_of(rows))
    with temporary_folder(options) as folder:
        for seed in range(options.seeds or (1 if options.quick else SEEDS)):
            compute = partial(fitted_from_store, str(folder), most, seed)
            cells.append(Cell(dataset_of(most), SKMMC, seed, compute, WITHIN, part=STORE))
        frame = journal.rows(cells)
    table = table_of(frame[frame["part"] == ""])
    store = table_of(frame[frame["part"] == STORE])
    tables = {"usps": table, "usps-slopes": slopes_of(table), "usps-store": store}
    return Result(tables, goals_of("usps", table))


def sizes(most: int | None) -> list[int | None]:
    """Numbers of rows: the paper's below the most (or half of it), then the most; None is all rows.

    Examples
    --------
    >>> from benchmarks.usps import sizes
    >>> sizes(10_000), sizes(200)
    ([1000, 3000, 10000], [100, 200])
    """
    smaller = [size for size in SIZES if most is None or size < most]
    return [*(smaller or [max(1, (most or 0) // 2)]), most]


def dataset_of(rows: int | None) -> str:
    """Name for the tables."""
    return NAME if rows is None else f"{NAME} {rows}"


def fitted_from_store(folder: str, rows: int | None, seed: int) -> dict[str, Any]:
    """SKMMC by default on a Zarr store, which this process writes once, in a process of its own."""
    load_once.cache_clear()  # the store is read from disk with the memory of the array free
    path = store_once(folder, NAME, rows=rows)
    measures, labels = fit_store(path, seed, WITHIN["memory_limit"])
    return facts(path) | measures | clustering(np.asarray(open_class_labels(path)), labels)
