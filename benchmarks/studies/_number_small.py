"""Part ``small`` of ``number``: which small clusters beside large ones are found, with and without noise."""

from itertools import product
from typing import Any

import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._number_made import SMALL_SHARES, found_small, small_clusters
from benchmarks.tables import Result
from mmcnb.metrics import adjusted_rand_index

# LEAST: smallest distance between two centres, in standard deviations.
ROWS = 100_000
QUICK_ROWS = 20_000
COLUMNS = 10
LEAST = 8.0
# NOISE: share of the rows. ENOUGH: recall and precision of a cluster that counts as
# found.
NOISE = 0.02
ENOUGH = 0.8
# The share of noise rows, and the parameter ``noise``.
WAYS = ((0.0, "none"), (NOISE, "none"), (NOISE, "auto"))

TITLES = tuple(f"{size:.2%}" for size in SMALL_SHARES)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield rows without noise, and rows with noise that is clustered or labelled."""
    settings = {"rows": options.sized(ROWS, QUICK_ROWS)}
    for seed, (share, noise) in product(options.repeats(3), WAYS):
        yield Run(
            "small clusters",
            FRONT_DOOR,
            seed,
            parameters={"noise rows": share, "noise": noise},
            settings=settings,
        )


def compute(run: Run) -> dict[str, Any]:
    """Return which small classes are found as clusters, and the number of clusters."""
    share = run.parameters["noise rows"]
    noise = run.parameters["noise"]
    data = small_clusters(run.settings["rows"], COLUMNS, LEAST, share, run.seed)
    model: Any = mmcnb.MaximumMarginClustering(
        n_clusters=None,
        noise=None if noise == "none" else noise,
        random_state=run.seed,
    )
    measures = facts(data.X) | timed(model, data.X)
    is_found = found_small(data.y, model.labels_, len(SMALL_SHARES), ENOUGH)
    measures |= zip(TITLES, map(float, is_found), strict=True)
    inside = data.y >= 0
    measures["ari"] = adjusted_rand_index(data.y[inside], model.labels_[inside])
    measures["clusters"] = model.n_clusters_
    measures["found"] = sum(is_found)
    return measures


def tables(frame: pd.DataFrame) -> Result:
    """Return how often each small cluster is found, and how many of the five are found."""
    frame = frame[frame["status"] == OK]
    figures = [*TITLES, "found", "clusters", "ari", "seconds"]
    table = frame.groupby(["n", "noise rows", "noise"], sort=False)[figures].mean()
    return Result({"number-small": table.reset_index()})
