"""Twenty blobs apart, their number unknown: how many are found among few and many rows."""

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
# least distance and spread of the centres, in deviations
CLUSTERS = 20
COLUMNS = 8
LEAST = 7.0
SPREAD = 3.0


@frame_of_runs
def grid(options: Options) -> Runs:
    """All sizes with five seeds."""
    sizes = ROWS if not options.quick else tuple(n for n in ROWS if n <= QUICK_ROWS)
    for n, seed in product(options.sizes_within(sizes), options.repeats(5, 5)):
        yield Run(f"{CLUSTERS} blobs", FRONT_DOOR, seed, parameters={"rows": n})


def compute(run: Run) -> dict[str, Any]:
    """The number found, and ARI of the partition and of its best layer."""
    data = blobs(run.parameters["rows"], CLUSTERS, COLUMNS, LEAST, SPREAD, run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    found = scored(data, model, clustering)
    layers = [model.predict(data.X, layer=i) for i in range(len(model.layers_))]
    found |= {"clusters": model.n_clusters_, "trust": model.report_["trust"]["level"]}
    return found | of_layers(data.y, [model.labels_, *layers], len(layers))


def tables(frame: pd.DataFrame) -> Result:
    """Each number of rows: the numbers found by the seeds, how often all blobs are, and means."""
    frame = frame[frame["status"] == OK].reindex(
        columns=[*{*frame.columns, "best layer"}]
    )
    groups = frame.assign(exact=frame["clusters"] == CLUSTERS).groupby("n", sort=False)
    table = groups.agg(
        found=("clusters", lambda numbers: ", ".join(map(str, numbers.astype(int)))),
        exact=("exact", "mean"),
        ari=("ari", "mean"),
        **{"best layer": ("best layer", "mean"), "trust": ("trust", ", ".join)},
        seconds=("seconds", "median"),
    )
    return Result({"number-blobs": table.reset_index()})
