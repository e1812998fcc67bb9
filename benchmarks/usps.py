"""Extended USPS (266,079 x 676): error by default and at the best width, in memory and from Zarr, and time.

``python -m benchmarks usps [--quick] [--seeds N]`` fits k-means (ten starts, once), then the default and each
width of a grid, on a float32 array in memory and on its Zarr store; figures are medians over the seeds (two).
Time ratios are to k-means on the array. ``--quick`` draws 30,000 rows.
"""

from __future__ import annotations

import pandas as pd

import data_loaders
from benchmarks._common import Data, Goal, Options, Result, load, rows_of, temporary_folder
from benchmarks._compare import PEER, compare, mean_squared_distance, medians, summarise, warm_up

NAME = "usps-extended"
QUICK_ROWS = 30_000


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    seeds = range(options.seeds or 2)
    most = QUICK_ROWS if options.quick else None
    data = load(NAME, options, most)
    compiled, gamma0 = warm_up(data.X), mean_squared_distance(data.X)
    in_memory = compare(data, seeds, gamma0=gamma0, peer_seeds=1)
    y, peer = data.y, in_memory[in_memory["method"] == PEER]
    del data  # the store is to be read from disk with the memory of the array free
    with temporary_folder(options) as folder:
        store = str(folder / f"{NAME}.zarr")
        data_loaders.write(NAME, store, rows=rows_of(NAME, options, most))
        stored = Data(f"{NAME} (Zarr)", store, y)
        on_disk = compare(stored, seeds, gamma0=gamma0, peer_seeds=0)
    frame = pd.concat([in_memory, on_disk, peer.assign(dataset=stored.name)])
    frame = frame.assign(compile_seconds=compiled)
    facts = summarise(frame)
    goals = [goal for _, row in facts.iterrows() for goal in _goals(row)]
    tables = {"usps-fits": frame, "usps": medians(frame), "usps-summary": facts}
    return Result(tables, goals, shown=("usps", "usps-summary"))


def _goals(row: pd.Series) -> list[Goal]:
    name = row["dataset"]
    return [
        Goal(f"{name}: error by default", 100 * row["default error"], 15, "%"),
        Goal(f"{name}: error by default, the aim", 100 * row["default error"], 5, "%"),
        Goal(f"{name}: error at the best width", 100 * row["best error"], 2, "%"),
        Goal(f"{name}: time at a given gamma", row["given gamma / k-means"], 0.25, "of k-means"),
        Goal(f'{name}: time with gamma="auto"', row["auto / k-means"], 0.5, "of k-means"),
    ]
