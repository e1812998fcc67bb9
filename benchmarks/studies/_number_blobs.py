"""Part ``blobs`` of ``number``: how many of twenty separate blobs are found, by number of rows."""

from itertools import product
from typing import Any

import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import clustering, scored
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._number_made import blobs
from benchmarks.studies._number_sets import of_layers
from benchmarks.tables import Result

ROWS = (500, 2000, 20_000, 200_000)
QUICK_ROWS = 20_000
# LEAST and SPREAD: smallest distance and spread of the centres, in standard deviations
# of a blob.
CLUSTERS = 20
COLUMNS = 8
LEAST = 7.0
SPREAD = 3.0


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all sizes with five seeds."""
    quick_rows = tuple(n for n in ROWS if n <= QUICK_ROWS)
    sizes = options.sizes_within(options.pick(ROWS, quick_rows, quick_rows))
    for n, seed in product(sizes, options.repeats(5, 5)):
        yield Run(f"{CLUSTERS} blobs", FRONT_DOOR, seed, parameters={"rows": n})


def compute(run: Run) -> dict[str, Any]:
    """Return the number found, and ARI of the partition and of its best layer."""
    data = blobs(run.parameters["rows"], CLUSTERS, COLUMNS, LEAST, SPREAD, run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    measures = scored(data, model, clustering)
    measures["clusters"] = model.n_clusters_
    measures["trust"] = model.report_["trust"]["level"]
    n_layers = len(model.layers_)
    layers = [model.predict(data.X, layer=layer) for layer in range(n_layers)]
    return measures | of_layers(data.y, [model.labels_, *layers], n_layers)


def tables(frame: pd.DataFrame) -> Result:
    """Return, by rows, the numbers found, how often all blobs are found, and means."""
    frame = frame[frame["status"] == OK]
    frame = frame.reindex(columns=frame.columns.union(["best layer"], sort=False))
    frame["exact"] = frame["clusters"] == CLUSTERS
    frame["found"] = frame["clusters"].astype(int).astype(str)
    figures = {
        "found": ", ".join,
        "exact": "mean",
        "ari": "mean",
        "best layer": "mean",
        "trust": ", ".join,
        "seconds": "median",
    }
    table = frame.groupby("n", sort=False).agg(figures)
    return Result({"number-blobs": table.reset_index()})
