"""Support cluster machine: rare classes beside the whole SVC, samples of the rows and linear machines.

``python -m benchmarks scm [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has six parts:

rare     a9a with its positives thinned at random, seed 0, to one for 50 others; tested on the whole a9a.t
digits   the eight against the other digits of MNIST, 1:9, of 10,000 random rows; tested on MNIST's test part
rings    two wide rings that overlap, 10^6 rows in Zarr, one of a hundred of the inner ring; tested on 100,000
adult    a9a as it is, 1:3
grid     balanced machines on the thinned a9a at given widths and C, as the default width suits it badly
effects  one machine on clusters in feature space, in input space and on random rows, by their number; SCM
         round by round. Both on the thinned a9a, the first on 20,000 rows of the rings too

Methods are SCM by default, SCM with class_weight="balanced", the SVC on all rows, on a random under-sample
(all rare rows, and as many others as make it as large as what the last machine of SCM by default was trained
on), Nystroem + SGDClassifier of 300 components and LinearSVC. Machines with a kernel share the width that SCM
finds by itself and C = 1. Each fit is a process of its own, which is watched: "peak MiB" is its largest
resident memory, Python, libraries and rows to test on included. SCM reads the store, the others have the rows
in memory. Seconds are those of the fit. Figures are means over the seeds.

``--quick`` takes fewer rows and one seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import Goal, Options, Result, parts_of, say, temporary_folder
from benchmarks._fit_scm import (
    LINEAR,
    NYSTROEM,
    OURS,
    SAMPLE,
    SCM,
    SCM_BALANCED,
    SCM_BOTH,
    SVC,
    SVC_PLAIN,
    UNDER,
    UNDER_BALANCED,
)
from benchmarks._scm_data import ADULT, DIGITS, RARE, RINGS, write_task
from benchmarks._scm_effects import effects, grid
from benchmarks._watch import run_and_watch
from mmcnb.samples import open_samples

Part = tuple[dict[str, pd.DataFrame], list[Goal]]
MIB = 2**20
ALL = (SCM, SCM_BALANCED, SVC, SVC_PLAIN, UNDER, UNDER_BALANCED, NYSTROEM, LINEAR)
METHODS = dict.fromkeys((RARE, DIGITS, RINGS), ALL) | {
    ADULT: (SCM, SCM_BALANCED, SCM_BOTH, SVC, SVC_PLAIN, SAMPLE, UNDER, NYSTROEM, LINEAR)
}
SEEDS = {RARE: 3, DIGITS: 1, RINGS: 1, ADULT: 1}
DETERMINISTIC = (SVC, SVC_PLAIN, LINEAR)  # but for the width
MOST_SVC_ROWS = 50_000
LEAST_PRECISION, MOST_TIME = 98.0, 25.0  # per cent of those of the SVC on all rows
FIGURES = [
    "balanced accuracy",
    "ROC AUC",
    "average precision",
    "seconds",
    "support vectors",
    "rows trained on",
    "peak MiB",
]


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    frames: dict[str, pd.DataFrame] = {}
    goals: list[Goal] = []
    for name in parts_of(options, PARTS):
        found, reached = PARTS[name](options)
        frames |= found
        goals += reached
    return Result(frames, goals, shown=tuple(name for name in frames if not name.endswith("-fits")))


def compared(part: str, task: str, options: Options) -> Part:
    """All methods on one set; goals where positives were thinned."""
    with temporary_folder(options) as folder:
        train, test = write_task(task, options, folder)
        n = open_samples(str(train)).n_samples
        seeds = range(1 if options.quick else options.seeds or SEEDS[task])
        rows = [row for seed in seeds for row in fits(task, train, test, n, seed)]
    fitted = pd.DataFrame(rows)
    groups = fitted.groupby("method", sort=False)
    table = groups[FIGURES].mean()
    table.insert(0, "fits", groups["seconds"].count())
    table.insert(0, "n", n)
    table.insert(0, "dataset", task)
    table = table.reset_index()
    return {f"scm-{part}-fits": fitted, f"scm-{part}": table}, goals_of(table) if task == RARE else []


def fits(task: str, train: Path, test: Path, n: int, seed: int) -> list[dict[str, Any]]:
    """One fit of each method with one seed; SCM is first, as others take its width and its rows."""
    rows: list[dict[str, Any]] = []
    gamma, n_rows = "", "0"
    for method in METHODS[task]:
        if seed and method in DETERMINISTIC:
            continue
        facts = {"dataset": task, "n": n, "method": method, "seed": seed}
        if method in (SVC, SVC_PLAIN) and n > MOST_SVC_ROWS:
            rows.append(
                facts | dict.fromkeys(FIGURES, np.nan) | {"end": f"not run: over {MOST_SVC_ROWS:,} rows"}
            )
            continue
        say(f"{task}, {n:,} rows, seed {seed}: {method}")
        given = [] if method in OURS else [gamma, n_rows]
        command = [sys.executable, "-m", "benchmarks._fit_scm", str(train), str(test), method, str(seed)]
        report, peak = run_and_watch([*command, *given])
        if method == SCM:
            gamma, n_rows = repr(report["gamma"]), str(report["rows trained on"])
        rows.append(facts | report | {"peak MiB": peak / MIB})
    return rows


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """SCM by default beside the whole SVC, and beside the better of the samples of its size."""
    rows = table.set_index("method")
    ours, whole = rows.loc[SCM], rows.loc[SVC]
    precision = "average precision"
    sample = float(rows.loc[[UNDER, UNDER_BALANCED], precision].max())
    share = {name: 100 * ours[name] / whole[name] for name in (precision, "seconds")}
    return [
        Goal(
            "rare: average precision of SCM in that of the SVC", share[precision], LEAST_PRECISION, "%", True
        ),
        Goal("rare: seconds of SCM in those of the SVC", share["seconds"], MOST_TIME, "%"),
        Goal("rare: average precision of SCM, bound: under-sample", float(ours[precision]), sample, "", True),
    ]


PARTS: dict[str, Callable[[Options], Part]] = {
    "rare": partial(compared, "rare", RARE),
    "digits": partial(compared, "digits", DIGITS),
    "rings": partial(compared, "rings", RINGS),
    "adult": partial(compared, "adult", ADULT),
    "grid": grid,
    "effects": effects,
}
