"""New fits with ``like``: how many clusters keep their numbers, and how many rows their labels.

``python -m benchmarks like [--quick] [--seeds N]`` uses shapes, tables and digits of
both halves. It fits nine tenths of the rows, and then fits, with ``like`` and without:

vanished  the same rows without the second largest cluster
seed      the same rows with another seed
more      all rows

``rows`` is the share of the rows of both fits that keep their label, and ``plain`` is
this share for the fit without ``like``. ``numbers`` is the share of the clusters that
keep their number. ``free`` says whether no row has the number of the cluster that
vanished.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.halves import half_of
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts, fit
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._sets import rows_of_set
from benchmarks.tables import Result, goals_of

VANISHED = "vanished"
SEED = "seed"
MORE = "more"
CASES = (VANISHED, SEED, MORE)
SETS = (
    "two-moons",
    "three-spirals",
    "three-densities",
    "three-rings",
    "seven-blobs",
    "four-sizes",
    "wdbc",
    "ionosphere",
    "segment",
    "waveform",
    "optdigits",
    "mnist",
    "pendigits",
    "usps",
)
ROWS = 5000
QUICK_ROWS = 1500
FIGURES = ["numbers", "rows", "plain", "free"]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each case on each data set."""
    most = options.sized(ROWS, QUICK_ROWS)
    names = options.pick(SETS, SETS, SETS[:2])
    for name, seed, case in product(names, options.repeats(3), CASES):
        yield Run(
            name,
            FRONT_DOOR,
            seed,
            parameters={"case": case},
            settings={"rows": options.rows_of(name, most) or most},
        )


def compute(run: Run) -> dict[str, Any]:
    """Fit the first rows, then fit again; only one case has ``free``."""
    case = run.parameters["case"]
    X = rows_of_set(run.dataset, run.settings["rows"], run.seed).X
    X = X[np.random.default_rng(run.seed).permutation(X.shape[0])]
    old = X[: len(X) * 9 // 10]
    before = fitted(old, run.seed)
    labels = before.labels_
    sizes = np.array(before.report_["sizes"])
    inside = np.ones(len(old), bool)
    vanished: int | None = None
    if case == VANISHED and sizes.size > 1:
        vanished = int(np.argsort(sizes)[-2])
        inside = labels != vanished
        sizes[vanished] = 0
    rows = X if case == MORE else old[inside]
    seed = run.seed + 100 if case == SEED else run.seed
    model = fitted(rows, seed, like=before)
    plain = fitted(rows, seed)
    m = int(inside.sum())
    counts = np.array(model.report_["sizes"])[: sizes.size]
    measures = facts(X) | {
        "clusters": np.unique(labels).size,
        "numbers": float(np.mean(counts[sizes > 0] > 0)),
        "rows": np.mean(model.labels_[:m] == labels[inside]),
        "plain": np.mean(plain.labels_[:m] == labels[inside]),
    }
    if vanished is not None:
        measures["free"] = float(not (model.labels_ == vanished).any())
    return measures


def fitted(X: Any, seed: int, **like: Any) -> Any:
    """Return the fitted default."""
    return fit(mmcnb.MaximumMarginClustering(random_state=seed), X, **like)


def tables(frame: pd.DataFrame) -> Result:
    """Return means by case and half, and the results for each data set, with goals for another seed.

    The goals are for the fit of the same rows with another seed.
    """
    frame = frame[frame["status"] == OK].assign(half=frame["dataset"].map(half_of))
    frame = frame.reindex(columns=frame.columns.union(FIGURES, sort=False))
    by_half = frame.groupby(["case", "half"], sort=False)[FIGURES].mean().reset_index()
    sets = frame.groupby(["dataset", "half", "case"], sort=False)
    by_set = sets[[*FIGURES, "clusters"]].mean().reset_index()
    same = by_half[by_half["case"] == SEED].set_index("half")
    title = "another seed, {}: "
    goals = goals_of(same["numbers"], 1.0, title + "numbers kept", "%", True)
    goals += goals_of(
        same["rows"], 0.95, title + "rows that keep their label", "%", True
    )
    return Result({"like": by_half, "like-sets": by_set}, goals, ("like",))
