"""Small clusters beside large ones, without and with rows of noise: which of them are found."""

from typing import Any

import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._number_made import SMALL_SHARES, found_small, small_clusters
from benchmarks.tables import Result
from mmcnb.metrics import adjusted_rand_index

# least distance of two centres, in deviations
ROWS = 100_000
QUICK_ROWS = 20_000
COLUMNS = 10
LEAST = 8.0
# share of the rows; recall and precision of a cluster that is found
NOISE = 0.02
ENOUGH = 0.8
WAYS = (
    (0.0, None),
    (NOISE, None),
    (NOISE, "auto"),
)  # rows of noise, and whether they are looked for


@frame_of_runs
def grid(options: Options) -> Runs:
    """Without noise, and with noise that is clustered or labelled."""
    rows = options.sized(ROWS, QUICK_ROWS)
    for seed in options.repeats(3):
        for share, noise in WAYS:
            given = {"noise rows": share, "noise": noise or "none"}
            yield Run(
                "small clusters",
                FRONT_DOOR,
                seed,
                parameters=given,
                settings={"rows": rows},
            )


def compute(run: Run) -> dict[str, Any]:
    """Which small classes have a cluster of their own, and how many clusters there are."""
    share = run.parameters["noise rows"]
    noise = run.parameters["noise"]
    data = small_clusters(run.settings["rows"], COLUMNS, LEAST, share, run.seed)
    make: Any = mmcnb.MaximumMarginClustering
    model = make(
        n_clusters=None, noise=None if noise == "none" else noise, random_state=run.seed
    )
    found = facts(data.X) | timed(model, data.X)
    each = found_small(data.y, model.labels_, len(SMALL_SHARES), ENOUGH)
    found |= {
        f"{size:.2%}": float(one) for size, one in zip(SMALL_SHARES, each, strict=True)
    }
    inside = data.y >= 0
    scores = {"ari": adjusted_rand_index(data.y[inside], model.labels_[inside])}
    return found | scores | {"clusters": model.n_clusters_, "found": sum(each)}


def tables(frame: pd.DataFrame) -> Result:
    """Means over the seeds: how often each small cluster is found, and how many of the five."""
    frame = frame[frame["status"] == OK]
    figures = [
        *(f"{size:.2%}" for size in SMALL_SHARES),
        "found",
        "clusters",
        "ari",
        "seconds",
    ]
    table = frame.groupby(["n", "noise rows", "noise"], sort=False)[figures].mean()
    return Result({"number-small": table.reset_index()})
