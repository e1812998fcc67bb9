"""Part ``starts`` of ``mkc``: whether the starts find rings and moons beside columns of noise."""

from typing import Any

import pandas as pd

import data_loaders
from benchmarks import protocol
from benchmarks.methods import MULTIPLE, estimator
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result

# Two of the columns have the shape, the others are noise.
FEATURES = {"rings": 64, "moons": 22}
ROWS = 20_000
QUICK_ROWS = 2000
SEEDS = 36
RIGHT = 0.99  # adjusted Rand index of a right fit


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield one fit with the defaults for each seed, which also determines the rows."""
    rows = options.pick(ROWS, QUICK_ROWS, QUICK_ROWS)
    for name, features in FEATURES.items():
        for seed in options.repeats(SEEDS, 3):
            settings = {"rows": rows, "features": features}
            yield Run(name, MULTIPLE, seed, part="starts", settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Fit the rows of a seed, and compare the labels with the classes."""
    X, y = data_loaders.load(run.dataset, random_state=run.seed, **run.settings)
    model = estimator(MULTIPLE, 2, random_state=run.seed)
    seconds = protocol.turns({"seconds": lambda: protocol.fit(model, X)}, 1)
    rand = float(protocol.adjusted_rand_index(y, model.labels_))
    warned = sum(
        "nearly the same objective" in sentence
        for sentence in model.report_["warnings"]
    )
    facts = protocol.facts(X) | seconds
    return facts | {"rand": rand, "wrong": int(rand < RIGHT), "warned": warned}


def tables(frame: pd.DataFrame) -> Result:
    """Count the wrong fits, and those of them that have a warning."""
    groups = frame.groupby("dataset", sort=False)
    table = groups.agg(
        fits=("wrong", "size"),
        wrong=("wrong", "sum"),
        warned=("warned", "sum"),
        least_rand=("rand", "min"),
        seconds=("seconds", "median"),
    ).reset_index()
    wrong = int(table["wrong"].sum())
    goal = Goal(f"rings and moons: wrong among {len(frame)} fits", wrong, 0)
    return Result({"mkc-starts": table}, [goal])
