"""Part ``repeats`` of ``choice``: each fit in a process of its own, with two seeds, and with one thread.

"another seed" and "one thread" are the adjusted Rand index between the labels of the first fit and those of
the same rows with another seed, or with one thread; 1 means the same clusters. "peak_mib" is the largest of
three processes, with Python and its libraries; seconds are those of the first fit, kernels compiled before.
Noise counts as a cluster, as in the other parts, and "labelled" is the share of the other rows.
"""

import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_mutual_info_score

from benchmarks import libraries
from benchmarks.methods import FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import MIB, run_and_watch, scored
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import MANY, Problem, problems, rows_of
from benchmarks.studies._choice_tables import RANKED
from benchmarks.studies.peers import installed, with_noise
from benchmarks.tables import Result
from mmcnb.datasets import SHAPES
from mmcnb.metrics import adjusted_rand_index

CLOTHES = Problem("fashion-mnist", "fashion-mnist", MANY)  # its files are not with those of the other sets
PROBLEMS = {one.name: one for one in (*problems(), CLOTHES)}
SETS = ("four-moons", "wdbc", "segment", "mnist", CLOTHES.name, "agnews-embedded", "mecs")
SMOKE_SETS, SMOKE_METHODS = ("wdbc",), (FRONT_DOOR, KMEANS)
MOST_ROWS = 5000
ANOTHER = 1000  # added to a seed
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "LOKY")}
MEASURES = ["ari", "ami", "labelled", "seconds", "peak_mib", "another seed", "one thread"]


@frame_of_runs
def grid(options: Options) -> Runs:
    """All methods that are installed on a few sets of each kind."""
    methods = options.pick(RANKED, RANKED, SMOKE_METHODS)
    settings = {"rows": min(options.rows or MOST_ROWS, MOST_ROWS)}
    for name, seed, method in product(
        options.pick(SETS, SETS, SMOKE_SETS), options.repeats(1), installed(methods)
    ):
        if not (method == libraries.EVOC and name in SHAPES):  # it needs four columns
            yield Run(name, method, seed, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Three fits, each in a process of its own, whose labels are compared."""
    fits: dict[str, tuple[int, dict[str, str]]] = {
        "first": (run.seed, {}),
        "another seed": (run.seed + ANOTHER, {}),
        "one thread": (run.seed, ONE_THREAD),
    }
    rows_of(PROBLEMS[run.dataset], run.settings["rows"], 0)  # a set that is not here ends the run
    found, labels, peak = dict[str, Any](), dict[str, np.ndarray](), 0
    with TemporaryDirectory() as folder:
        for name, (seed, environment) in fits.items():
            path = Path(folder) / f"{name}.npy"
            words = [run.dataset, run.method, seed, run.settings["rows"], path]
            command = [sys.executable, "-m", __name__, *map(str, words)]
            report, polled = run_and_watch(command, environment)
            peak, labels[name] = max(peak, polled), np.load(path)
            found = found or report
    same = {name: adjusted_rand_index(labels["first"], labels[name]) for name in list(fits)[1:]}
    return found | same | {"peak_mib": peak / MIB}


def tables(frame: pd.DataFrame) -> Result:
    """Means of each method, where sets weigh the same, and each set."""
    frame = frame[frame["status"] == "ok"]
    sets = frame.groupby(["method", "dataset"], sort=False)[MEASURES].mean()
    means = sets.groupby("method", sort=False).mean()
    means.insert(0, "sets", sets.groupby("method", sort=False).size())
    means = means.sort_values("ari", ascending=False)
    return Result({"choice-repeats": means.reset_index(), "choice-repeats-sets": sets.reset_index()}, [])


def main(words: Sequence[str]) -> None:
    """Fit one method to one problem, print its scores, and save its labels."""
    name, method, seed, rows, path = words
    data = rows_of(PROBLEMS[name], int(rows), 0)
    given = {"n_init": 10} if method == KMEANS else {}
    model = estimator(method, np.unique(data.y).size, random_state=int(seed), **given)
    if method in libraries.COMPILED:  # and other routines for other numbers of rows
        model.fit(data.X)
    found = scored(data, model, with_noise)
    found["ami"] = adjusted_mutual_info_score(data.y, model.labels_)
    np.save(path, model.labels_)
    print(json.dumps(found, default=float))


if __name__ == "__main__":
    main(sys.argv[1:])
