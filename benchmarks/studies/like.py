"""Clusters that keep their numbers after a new fit: how many do, and how many rows keep their label.

``python -m benchmarks like [--quick] [--seeds N]`` takes shapes, tables and digits, of
both halves. It fits nine tenths of the rows, and then, with ``like`` and without:

vanished  the same rows without those of the second largest cluster
seed      the same rows with another seed
more      all rows

Of the earlier rows that are in both fits, ``rows`` is the share that keep their label,
and ``plain`` that of the fit without ``like``. ``numbers`` is the share of clusters
whose number is kept. ``free`` says whether no row has the number of the cluster that
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

VANISHED, SEED, MORE = CASES = ("vanished", "seed", "more")
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
    """Each case on each set."""
    most = options.sized(ROWS, QUICK_ROWS)
    for name, seed, case in product(
        options.pick(SETS, SETS, SETS[:2]), options.repeats(3), CASES
    ):
        settings = {"rows": options.rows_of(name, most) or most}
        yield Run(name, FRONT_DOOR, seed, parameters={"case": case}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Fit the first rows, then fit again; ``free`` is of one case alone."""
    case = run.parameters["case"]
    X = rows_of_set(run.dataset, run.settings["rows"], run.seed).X
    X = X[np.random.default_rng(run.seed).permutation(X.shape[0])]
    old = X[: len(X) * 9 // 10]
    before = fitted(old, run.seed)
    labels = before.labels_
    sizes = np.array(before.report_["sizes"])
    found = {}
    inside = np.ones(len(old), bool)
    gone = int(np.argsort(sizes)[-2]) if case == VANISHED and sizes.size > 1 else None
    if gone is not None:
        inside = labels != gone
        sizes[gone] = 0
    rows = X if case == MORE else old[inside]
    given = rows, run.seed + 100 * (case == SEED)
    model = fitted(*given, like=before)
    plain = fitted(*given)
    m = int(inside.sum())
    if gone is not None:
        found["free"] = float(not (model.labels_ == gone).any())
    counts = np.array(model.report_["sizes"])[: sizes.size]
    return (
        facts(X)
        | found
        | {
            "clusters": np.unique(labels).size,
            "numbers": float(np.mean(counts[sizes > 0] > 0)),
            "rows": np.mean(model.labels_[:m] == labels[inside]),
            "plain": np.mean(plain.labels_[:m] == labels[inside]),
        }
    )


def fitted(X: Any, seed: int, **like: Any) -> Any:
    """The default, fitted."""
    return fit(mmcnb.MaximumMarginClustering(random_state=seed), X, **like)


def tables(frame: pd.DataFrame) -> Result:
    """Means by case and half, and of each set; goals of a fit of the same rows with another seed."""
    frame = frame[frame["status"] == OK].assign(half=frame["dataset"].map(half_of))
    frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *FIGURES])))
    by_half = frame.groupby(["case", "half"], sort=False)[FIGURES].mean().reset_index()
    by_set = frame.groupby(["dataset", "half", "case"], sort=False)[
        [*FIGURES, "clusters"]
    ].mean()
    same = by_half[by_half["case"] == SEED].set_index("half")
    goals = goals_of(same["numbers"], 1.0, "another seed, {}: numbers kept", "%", True)
    goals += goals_of(
        same["rows"], 0.95, "another seed, {}: rows that keep their label", "%", True
    )
    return Result(
        {"like": by_half, "like-sets": by_set.reset_index()}, goals, ("like",)
    )
