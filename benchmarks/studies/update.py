"""New rows in a model: whether clusters keep their numbers and rows their labels, and a new cluster is found.

``python -m benchmarks update [--quick] [--seeds N]`` takes shapes, tables and digits,
of both halves. A fit of nine tenths of the rows, by the graph alone, is updated by the
others, in two cases:

same      new rows of the same kind
cluster   the same, with a twentieth of the new rows in a new cluster far from the others

``numbers`` is the share of clusters that keep their number, and ``rows`` that of
earlier rows that keep their label by ``predict``. ``found`` says whether the new
cluster has a number of its own, and ``searched`` whether the update has made new nodes.
The new cluster is as dense as the rows around one of the set.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.halves import half_of
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._sets import rows_of_set
from benchmarks.tables import Result, goals_of

CASES = ("same", "cluster")
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
SHARE = 0.05
FAR = 3.0
LEAST = 15
ENOUGH = 0.9


@frame_of_runs
def grid(options: Options) -> Runs:
    """Each case on each set."""
    rows = options.sized(ROWS, QUICK_ROWS)
    for name, seed, case in product(
        options.pick(SETS, SETS, SETS[:2]), options.repeats(3), CASES
    ):
        settings = {"rows": options.rows_of(name, rows) or rows}
        yield Run(name, FRONT_DOOR, seed, parameters={"case": case}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Fit the first rows, and update the model by the others."""
    X = rows_of_set(run.dataset, run.settings["rows"], run.seed).X
    random = np.random.default_rng(run.seed)
    X = X[random.permutation(X.shape[0])]
    old = X[: len(X) * 9 // 10]
    new = X[len(X) * 9 // 10 :]
    if run.parameters["case"] == "cluster":
        new = with_cluster(new, X, random)
    model: Any = mmcnb.MaximumMarginClustering(kernel="graph", random_state=run.seed)
    before = model.fit(old).labels_
    own = model.model_
    used = len(model.report_["sizes"])
    after = model.update(new).predict(old)
    sizes = model.report_["sizes"]
    count = count_of(len(new))
    largest = np.bincount(model.labels_[:count] + 1).argmax() - 1
    is_own = largest >= used and np.mean(model.labels_[:count] == largest) >= ENOUGH
    is_own &= (
        not (model.labels_[count:] == largest).any() and not (after == largest).any()
    )
    return facts(X) | {
        "clusters": used,
        "numbers": np.mean(np.array(sizes[:used]) > 0),
        "rows": np.mean(after == before),
        "found": float(is_own),
        "searched": float(model.model_ is not own),
    }


def with_cluster(
    new: np.ndarray, X: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """New rows, the first of which are rows near one of the set, moved far away from all.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies.update import with_cluster
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> rows = with_cluster(X[:400], X, np.random.default_rng(1))
    >>> int((np.linalg.norm(rows, axis=1) > 6).sum())
    20
    """
    count = count_of(len(new))
    new = new.copy()
    near = np.argsort(np.linalg.norm(X - X[random.integers(len(X))], axis=1))[:count]
    away = random.normal(size=X.shape[1]) * X.std(axis=0)
    away *= (
        FAR * np.linalg.norm(X - X.mean(axis=0), axis=1).max() / np.linalg.norm(away)
    )
    new[:count] = X[near] + away
    return new


def count_of(n_new: int) -> int:
    """Rows of the new cluster: a twentieth, and no fewer than make a cluster."""
    return max(LEAST, round(SHARE * n_new))


def tables(frame: pd.DataFrame) -> Result:
    """Means by case and half, and of each set; goals of both cases."""
    figures = ["numbers", "rows", "found", "searched"]
    frame = frame[frame["status"] == OK].assign(half=frame["dataset"].map(half_of))
    by_half = frame.groupby(["case", "half"], sort=False)[figures].mean().reset_index()
    by_set = frame.groupby(["dataset", "half", "case"], sort=False)[
        [*figures, "clusters"]
    ].mean()
    same, cluster = (
        by_half[by_half["case"] == case].set_index("half") for case in CASES
    )
    goals = goals_of(
        same["numbers"], 1.0, "new rows of the same kind, {}: numbers kept", "%", True
    )
    goals += goals_of(
        same["rows"],
        0.99,
        "new rows of the same kind, {}: rows that keep their label",
        "%",
        True,
    )
    goals += goals_of(cluster["found"], 0.99, "a new cluster, {}: found", "%", True)
    return Result(
        {"update": by_half, "update-sets": by_set.reset_index()}, goals, ("update",)
    )
