"""Part ``repeats`` of ``choice``: each method with ten seeds, and once in one thread.

Both run in separate processes.

If a fit takes more than a minute, only three seeds are used. Scores are means and
seconds are medians over the seeds, after the kernels have been compiled. "another seed"
is the mean adjusted Rand index between the labels of two seeds, and "one thread" is the
index between the labels of the first seed in the two processes; 1 means the same
clusters. "peak_mib" is the larger peak of the two processes, including Python and its
libraries. Noise counts as a cluster, as in the other parts, and "labelled" is the share
of the rows that are not noise.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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

# This data set is not among the problems of the study.
CLOTHES = Problem("fashion-mnist", "fashion-mnist", MANY)
PROBLEMS = {problem.name: problem for problem in (*problems(), CLOTHES)}
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
# LONG is in seconds.
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
    """Yield all installed methods on a few data sets of each kind."""
    methods = options.pick(RANKED, RANKED, SMOKE_METHODS)
    seeds = max(2, len(options.repeats(SEEDS, 2)))
    settings = {"rows": min(options.rows or MOST_ROWS, MOST_ROWS), "seeds": seeds}
    for name, method in product(
        options.pick(SETS, SETS, SMOKE_SETS), installed(methods)
    ):
        if not (method == libraries.EVOC and name in SHAPES):  # EVoC needs four columns
            yield Run(name, method, 0, settings=settings)


class Fits(NamedTuple):
    """Scores and labels of fits with several seeds, and the peak memory in bytes."""

    scores: dict[str, Any]
    labels: np.ndarray
    peak: int


def fits(run: Run, seeds: int, environment: Mapping[str, str]) -> Fits:
    """Fit with several seeds in a separate process."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "labels.npy"
        words = [run.dataset, run.method, run.seed, seeds, run.settings["rows"], path]
        command = [sys.executable, "-m", __name__, *map(str, words)]
        scores, peak = run_and_watch(command, environment)
        return Fits(scores, np.load(path), peak)


def compute(run: Run) -> dict[str, Any]:
    """Fit with all seeds in one process, and with the first seed in a process with one thread."""
    # A missing data set ends the run.
    rows_of(PROBLEMS[run.dataset], run.settings["rows"], 0)
    several = fits(run, run.settings["seeds"], {})
    alone = fits(run, 1, ONE_THREAD)
    first = several.labels[0]
    indices = [adjusted_rand_index(*pair) for pair in combinations(several.labels, 2)]
    return several.scores | {
        "another seed": float(np.mean(indices)),
        "one thread": adjusted_rand_index(first, alone.labels[0]),
        "peak_mib": max(several.peak, alone.peak) / MIB,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return means for each method, in which data sets have equal weight, and for each data set."""
    frame = frame[frame["status"] == "ok"]
    sets = frame.groupby(["method", "dataset"], sort=False)[MEASURES].mean()
    groups = sets.groupby("method", sort=False)
    means = groups.mean()
    means.insert(0, "sets", groups.size())
    means = means.sort_values("ari", ascending=False).reset_index()
    return Result(
        {"choice-repeats": means, "choice-repeats-sets": sets.reset_index()}, []
    )


def main(words: Sequence[str]) -> None:
    """Fit one method with several seeds, print its scores, and save its labels."""
    name, method, first, seeds, rows, path = words
    data = rows_of(PROBLEMS[name], int(rows), 0)
    k = np.unique(data.y).size
    starts = {"n_init": 10} if method == KMEANS else {}
    scores: list[dict[str, Any]] = []
    labels: list[np.ndarray] = []
    for seed in range(int(first), int(first) + int(seeds)):
        if len(scores) == SEEDS_OF_LONG and scores[0]["seconds"] > LONG:
            break
        model = estimator(method, k, random_state=seed, **starts)
        if method in libraries.COMPILED and not scores:
            # EVoC compiles other routines for other numbers of rows.
            model.fit(data.X)
        measures = scored(data, model, with_noise)
        measures["ami"] = adjusted_mutual_info_score(data.y, model.labels_)
        scores.append(measures)
        labels.append(model.labels_)
    np.save(path, labels)
    frame = pd.DataFrame(scores)
    report = scores[0] | frame[["ari", "ami", "labelled"]].mean().to_dict()
    report["seconds"] = frame["seconds"].median()
    report["seeds"] = len(scores)
    print(json.dumps(report, default=float))


if __name__ == "__main__":
    main(sys.argv[1:])
