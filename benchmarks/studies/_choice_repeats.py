"""Part ``repeats`` of ``choice``: each method with ten seeds, and once more in one thread, in own processes.

With fits of more than a minute there are three seeds. Scores are means over the seeds,
and seconds their median, with kernels compiled before. "another seed" is the mean
adjusted Rand index between the labels of two seeds, "one thread" that between those of
the first seed in both processes; 1 means the same clusters. "peak_mib" is the larger of
both processes, with Python and its libraries. Noise counts as a cluster, as in the
other parts, and "labelled" is the share of the other rows.
"""

import json
import sys
from collections.abc import Sequence
from itertools import combinations, product
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

CLOTHES = Problem(
    "fashion-mnist", "fashion-mnist", MANY
)  # its files are not with those of the other sets
PROBLEMS = {one.name: one for one in (*problems(), CLOTHES)}
SETS = (
    "four-moons",
    "wdbc",
    "segment",
    "mnist",
    CLOTHES.name,
    "agnews",
    "agnews-embedded",
    "mecs",
)
SMOKE_SETS = ("wdbc",)
SMOKE_METHODS = (FRONT_DOOR, KMEANS)
MOST_ROWS = 5000
# seconds
SEEDS = 10
SEEDS_OF_LONG = 3
LONG = 60.0
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "LOKY")
}
MEASURES = [
    "seeds",
    "ari",
    "ami",
    "labelled",
    "seconds",
    "peak_mib",
    "another seed",
    "one thread",
]


@frame_of_runs
def grid(options: Options) -> Runs:
    """All methods that are installed on a few sets of each kind."""
    methods = options.pick(RANKED, RANKED, SMOKE_METHODS)
    seeds = max(2, len(options.repeats(SEEDS, 2)))
    settings = {"rows": min(options.rows or MOST_ROWS, MOST_ROWS), "seeds": seeds}
    for name, method in product(
        options.pick(SETS, SETS, SMOKE_SETS), installed(methods)
    ):
        if not (method == libraries.EVOC and name in SHAPES):  # it needs four columns
            yield Run(name, method, 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Fits with all seeds in one process, and with the first one in a process of one thread."""
    rows = run.settings["rows"]
    rows_of(PROBLEMS[run.dataset], rows, 0)  # a set that is not here ends the run
    with TemporaryDirectory() as folder:

        def fits(
            seeds: int, environment: dict[str, str]
        ) -> tuple[dict[str, Any], np.ndarray, int]:
            path = Path(folder) / "labels.npy"
            words = [run.dataset, run.method, run.seed, seeds, rows, path]
            command = [sys.executable, "-m", __name__, *map(str, words)]
            report, peak = run_and_watch(command, environment)
            return report, np.load(path), peak

        found, labels, peak = fits(run.settings["seeds"], {})
        _, (alone,), peak_alone = fits(1, ONE_THREAD)
    pairs = [adjusted_rand_index(*pair) for pair in combinations(labels, 2)]
    same = {
        "another seed": float(np.mean(pairs)),
        "one thread": adjusted_rand_index(labels[0], alone),
    }
    return found | same | {"peak_mib": max(peak, peak_alone) / MIB}


def tables(frame: pd.DataFrame) -> Result:
    """Means of each method, where sets weigh the same, and each set."""
    frame = frame[frame["status"] == "ok"]
    sets = frame.groupby(["method", "dataset"], sort=False)[MEASURES].mean()
    means = sets.groupby("method", sort=False).mean()
    means.insert(0, "sets", sets.groupby("method", sort=False).size())
    means = means.sort_values("ari", ascending=False)
    return Result(
        {
            "choice-repeats": means.reset_index(),
            "choice-repeats-sets": sets.reset_index(),
        },
        [],
    )


def main(words: Sequence[str]) -> None:
    """Fit one method to one problem with several seeds, print its scores, and save its labels."""
    name, method, first, seeds, rows, path = words
    data = rows_of(PROBLEMS[name], int(rows), 0)
    given = {"n_init": 10} if method == KMEANS else {}
    found = list[dict[str, Any]]()
    labels = list[np.ndarray]()
    for seed in range(int(first), int(first) + int(seeds)):
        if len(found) == SEEDS_OF_LONG and found[0]["seconds"] > LONG:
            break
        model = estimator(method, np.unique(data.y).size, random_state=seed, **given)
        if (
            method in libraries.COMPILED and not found
        ):  # and other routines for other numbers of rows
            model.fit(data.X)
        found.append(scored(data, model, with_noise))
        labels.append(model.labels_)
        found[-1]["ami"] = adjusted_mutual_info_score(data.y, model.labels_)
    np.save(path, labels)
    frame = pd.DataFrame(found)
    means = frame[["ari", "ami", "labelled"]].mean().to_dict() | {
        "seconds": frame["seconds"].median()
    }
    print(json.dumps(found[0] | means | {"seeds": len(found)}, default=float))


if __name__ == "__main__":
    main(sys.argv[1:])
