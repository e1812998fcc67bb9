"""Part ``costs`` of ``number``: time of a fit that finds the number of clusters, and of a fit with a given number."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import facts, fit
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_costs import BLOBS, DIGITS, TEXTS, rows_of
from benchmarks.tables import Result

ROWS = 20_000
TURNS = 5


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield blobs, digits and texts."""
    for name in options.pick(
        (BLOBS, DIGITS, TEXTS), (BLOBS, DIGITS, TEXTS), (BLOBS, TEXTS)
    ):
        settings = {
            "rows": options.sized(ROWS, ROWS),
            "turns": options.pick(TURNS, TURNS, 1),
        }
        yield Run(name, FRONT_DOOR, 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Run both fits in turns, after a first fit of each that compiles."""
    X = rows_of(run)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    found = fit(model, X).n_clusters_
    given = estimator(FRONT_DOOR, max(2, found), random_state=run.seed)
    fit(given, X)
    pairs = turns_of_two(
        partial(fit, model, X), partial(fit, given, X), run.settings["turns"]
    )
    medians = dict(
        zip(("seconds", "given_seconds"), np.median(pairs, axis=0), strict=True)
    )
    return (
        facts(X)
        | medians
        | {"clusters": found, "ratio": float(np.median(pairs[:, 0] / pairs[:, 1]))}
    )


def turns_of_two(
    one: Callable[[], object], other: Callable[[], object], turns: int
) -> np.ndarray:
    """Return the seconds of two functions that take turns.

    Returns
    -------
    ndarray of shape (turns, 2)
        One row per turn, so that the state of the machine is the same for both
        functions of a ratio.
    """
    seconds = np.empty((turns, 2))
    for turn in range(turns):
        for place, function in enumerate((one, other)):
            started = time.perf_counter()
            function()
            seconds[turn, place] = time.perf_counter() - started
    return seconds


def tables(frame: pd.DataFrame) -> Result:
    """Return the medians of the seconds, and of the ratios within a turn."""
    frame = frame[frame["status"] == OK]
    told = ["dataset", "n", "d", "clusters", "seconds", "given_seconds", "ratio"]
    return Result({"number-costs": frame[told]})
