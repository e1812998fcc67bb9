"""Part ``clubench`` of ``choice``: the ten data sets in the repository of CLUBench.

The environment variable CLUBENCH names the folder of a clone of
github.com/xiaofeng-github/CLUBench; its files do not belong to this project. Columns
are standardised, as in CLUBench, and each data set is clustered with the number of its
classes, by the default, by five conventional methods of CLUBench, and by five more
peers, all with fixed settings. The deep methods and subspace methods of CLUBench are
left out.
"""

import os
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import libraries
from benchmarks.methods import (
    AGGLOMERATIVE,
    BIRCH,
    CUT,
    FRONT_DOOR,
    KMEANS,
    estimator,
)
from benchmarks.protocol import Data, NoData, scored
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies.peers import installed, with_noise
from benchmarks.tables import Result

VARIABLE = "CLUBENCH"
SETS = (
    "echocardiogram",
    "zoo",
    "breast_tissue",
    "breast_cancer_coimbra",
    "parkinsons",
    "weather",
    "vehicle",
    "COIL20_CLIP",
    "Letter",
    "poker-hand",
)
SMALL_SETS = SETS[:6]
SMOKE_SETS = ("echocardiogram",)
METHODS = (
    FRONT_DOOR,
    KMEANS,
    libraries.MIXTURE,
    AGGLOMERATIVE,
    BIRCH,
    CUT,
    libraries.LEIDEN,
    libraries.GENIE,
    libraries.LUMBERMARK,
    libraries.EVOC,
    libraries.PLSCAN,
)
DRAWS_NOTHING = (AGGLOMERATIVE, BIRCH, *libraries.DRAW_NOTHING)
MOST_ROWS = 2000
MEAN = "mean"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all installed methods on each data set."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    sets = options.pick(SETS, SMALL_SETS, SMOKE_SETS)
    for name, method, seed in product(sets, installed(METHODS), options.repeats(3)):
        if method not in DRAWS_NOTHING or seed == 0:
            yield Run(name, method, seed, settings={"rows": rows})


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, with the number of its classes."""
    data = load(run.dataset, run.settings["rows"])
    n_clusters = int(np.unique(data.y).size)
    parameters: dict[str, Any] = {"random_state": run.seed}
    if run.method == KMEANS:
        parameters["n_init"] = 10
    model = estimator(run.method, n_clusters, **parameters)
    return scored(data, model, with_noise) | {"k": n_clusters}


@lru_cache(maxsize=1)
def load(name: str, rows: int) -> Data:
    """Return the standardised rows of a data set, or a sample of them, and its classes.

    Raises
    ------
    NoData
        If CLUBENCH is not set, or the clone does not contain the data set.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise NoData(
            f"set {VARIABLE} to the folder of a clone of github.com/xiaofeng-github/CLUBench."
        )
    path = Path(folder) / "CLUBench" / "datasets" / f"{name}.npz"
    if not path.is_file():
        raise NoData(f"{path} is missing; clone CLUBench again.")
    with np.load(path) as file:
        X = file["x"].astype(np.float32)
        y = np.unique(file["y"], return_inverse=True)[1]
    drawn = np.sort(np.random.RandomState(0).permutation(len(y))[:rows])
    X = X[drawn]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return Data(name, X, y[drawn])


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean index of each method and data set, with the best method first."""
    frame = frame[frame["status"] == OK]
    names = [name for name in SETS if name in set(frame["dataset"])]
    table = frame.pivot_table("ari", "method", "dataset", "mean")[names]
    table.insert(0, MEAN, table.mean(axis=1))
    table = table.sort_values(MEAN, ascending=False)
    return Result({"choice-clubench": table.reset_index().rename_axis(columns=None)})
