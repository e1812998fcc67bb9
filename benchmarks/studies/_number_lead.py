"""Part ``lead`` of ``number``: the bonus of the layout, and which candidate is selected for heavy-tailed directions."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING, half_of
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._inner import layout_and_others
from benchmarks.studies._number_made import HeavyTailed, heavy_tailed
from benchmarks.tables import Result
from mmcnb.metrics import adjusted_rand_index

ROWS = 3000
QUICK_ROWS = 1500
NUMBERS = (6, 10, 16, 24, 32, 40)
RATIOS = (3.0, 10.0, 30.0, 100.0)
# The data sets use these values cyclically.
COLUMNS = (50, 100, 200, 300)
DEGREES = (3, 4, 5, 6, 8)
NOISES = (1.0, 1.3, 1.6)
SMOKE_SETS = 2


def sets() -> list[HeavyTailed]:
    """Return the data sets with all numbers of clusters and ratios of sizes.

    Examples
    --------
    >>> from benchmarks.studies._number_lead import sets
    >>> made = sets()
    >>> len(made), len({one.name for one in made})
    (24, 24)
    """
    return [
        HeavyTailed(
            n_clusters=n_clusters,
            columns=COLUMNS[(i // 2) % len(COLUMNS)],
            degrees=DEGREES[i % len(DEGREES)],
            ratio=ratio,
            noise=NOISES[i % len(NOISES)],
            by_row=i % 4 < 2,
        )
        for i, (n_clusters, ratio) in enumerate(product(NUMBERS, RATIOS))
    ]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the data sets of a scale."""
    made = sets()
    quick = [one for one in made if half_of(one.name) == TUNING]
    settings = {"rows": options.sized(ROWS, QUICK_ROWS)}
    for one, seed in product(
        options.pick(made, quick, quick[:SMOKE_SETS]), options.repeats(3)
    ):
        yield Run(one.name, FRONT_DOOR, seed, settings=settings | {"made": list(one)})


def compute(run: Run) -> dict[str, Any]:
    """Return J and the index of the layout and of the best other candidate, and which is selected."""
    data = heavy_tailed(
        HeavyTailed(*run.settings["made"]), run.settings["rows"], run.seed
    )
    candidates = layout_and_others(data.X, np.unique(data.y).size, run.seed)
    measures = facts(data.X) | {"candidate": candidates.picked.name}
    named = {
        "": candidates.picked,
        "layout ": candidates.layout,
        "other ": candidates.other,
    }
    for prefix, candidate in named.items():
        labels = candidate.labels[candidates.node_of]
        measures[f"{prefix}ari"] = adjusted_rand_index(data.y, labels)
        measures[f"{prefix}J"] = candidate.score.J
    measures["best ari"] = max(measures["layout ari"], measures["other ari"])
    return measures


def tables(frame: pd.DataFrame) -> Result:
    """Return means for each data set and each half."""
    frame = frame[frame["status"] == OK]
    figures = ["ari", "best ari", "layout ari", "other ari", "layout J", "other J"]
    frame = frame.assign(layout=frame["candidate"].str.startswith("layout"))
    groups = frame.groupby("dataset", sort=False)
    each = groups[["layout", *figures]].mean().reset_index()
    each.insert(1, "half", each["dataset"].map(half_of))
    halves = each.groupby("half", sort=False)
    means = halves[["layout", *figures]].mean()
    means.insert(0, "sets", halves.size())
    return Result({"number-lead": means.reset_index(), "number-lead-sets": each})
