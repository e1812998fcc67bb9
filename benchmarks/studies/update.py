"""New rows in a model: whether clusters keep their numbers and rows their labels, and a new cluster is found.

``python -m benchmarks update [--quick] [--seeds N]`` uses shapes, tables and digits of
both halves. A fit of nine tenths of the rows, with ``kernel="graph"``, is updated with
the other rows, in two cases:

same      new rows of the same kind
cluster   the same rows, except that a twentieth of them form a new cluster far from the
          others

``numbers`` is the share of the clusters that keep their number, and ``rows`` is the
share of the earlier rows that ``predict`` gives the same label as before. ``found``
says whether the new cluster has a number of its own, and ``searched`` whether the
update has added nodes. The new cluster is as dense as the neighbourhood of a row of the
data set.
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
    """Fit the first rows, and update the model with the others."""
    X = rows_of_set(run.dataset, run.settings["rows"], run.seed).X
    random = np.random.default_rng(run.seed)
    X = X[random.permutation(X.shape[0])]
    n_old = len(X) * 9 // 10
    old = X[:n_old]
    new = X[n_old:]
    if run.parameters["case"] == "cluster":
        new = with_cluster(new, X, random)
    model: Any = mmcnb.MaximumMarginClustering(kernel="graph", random_state=run.seed)
    before = model.fit(old).labels_
    first_model = model.model_
    n_clusters = len(model.report_["sizes"])
    after = model.update(new).predict(old)
    sizes = np.array(model.report_["sizes"][:n_clusters])
    return facts(X) | {
        "clusters": n_clusters,
        "numbers": np.mean(sizes > 0),
        "rows": np.mean(after == before),
        "found": float(is_new_cluster(model.labels_, after, n_clusters)),
        "searched": float(model.model_ is not first_model),
    }


def is_new_cluster(new: np.ndarray, old: np.ndarray, n_clusters: int) -> bool:
    """Return whether the first new rows have a cluster that did not exist before.

    Parameters
    ----------
    new, old : ndarray of int
        Labels of the new and of the earlier rows after the update.
    n_clusters : int
        Number of clusters before the update.
    """
    count = count_of(len(new))
    inside = new[:count]
    largest = np.bincount(inside + 1).argmax() - 1
    is_elsewhere = (new[count:] == largest).any() or (old == largest).any()
    is_enough = np.mean(inside == largest) >= ENOUGH
    return bool(largest >= n_clusters and is_enough and not is_elsewhere)


def with_cluster(
    new: np.ndarray, X: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return new rows, the first of which are a new cluster.

    The new cluster consists of rows near a row of the data set, moved far away from all
    rows.

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
    centre = X[random.integers(len(X))]
    near = np.argsort(np.linalg.norm(X - centre, axis=1))[:count]
    away = random.normal(size=X.shape[1]) * X.std(axis=0)
    reach = FAR * np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    away *= reach / np.linalg.norm(away)
    new = new.copy()
    new[:count] = X[near] + away
    return new


def count_of(n_new: int) -> int:
    """Return the number of rows of the new cluster: a twentieth, and enough for a cluster."""
    return max(LEAST, round(SHARE * n_new))


def tables(frame: pd.DataFrame) -> Result:
    """Return means by case and half, and the results for each data set, with goals for both cases."""
    figures = ["numbers", "rows", "found", "searched"]
    frame = frame[frame["status"] == OK].assign(half=frame["dataset"].map(half_of))
    by_half = frame.groupby(["case", "half"], sort=False)[figures].mean().reset_index()
    sets = frame.groupby(["dataset", "half", "case"], sort=False)
    by_set = sets[[*figures, "clusters"]].mean().reset_index()
    same = by_half[by_half["case"] == "same"].set_index("half")
    cluster = by_half[by_half["case"] == "cluster"].set_index("half")
    title = "new rows of the same kind, {}: "
    goals = goals_of(same["numbers"], 1.0, title + "numbers kept", "%", True)
    goals += goals_of(
        same["rows"], 0.99, title + "rows that keep their label", "%", True
    )
    goals += goals_of(cluster["found"], 0.99, "a new cluster, {}: found", "%", True)
    return Result({"update": by_half, "update-sets": by_set}, goals, ("update",))
