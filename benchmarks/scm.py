"""Support cluster machine: rare classes beside the whole SVC, samples of the rows and linear machines.

``python -m benchmarks scm [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has six parts:

rare     a9a with its positives thinned at random, seed 0, to one for 50 others; tested on the whole a9a.t
digits   the eight against the other digits of MNIST, 1:9, of 10,000 random rows; tested on MNIST's test part
rings    two wide rings that overlap, 10^6 rows in Zarr, one of a hundred of the inner ring; tested on 100,000
adult    a9a as it is, 1:3
grid     widths, C and weights of the rare class on the thinned a9a
effects  one machine on clusters in feature space, in input space and on random rows, by their number; SCM
         round by round. Both on the thinned a9a, the first on 20,000 rows of the rings too

Methods are SCM, the SVC on all rows, on a random under-sample (all rare rows, and as many others as make it
as large as what the last machine of SCM was trained on) without weights and with weights by which it stands
for all rows, Nystroem + SGDClassifier of 300 components and LinearSVC. "label-free" is SCM by default, C = 1
and balanced classes; machines with a kernel share the width that SCM finds. "paper" are the width, C and
weight that are best for the SVC on all rows in the part "grid", as the rows to test on tell. Each fit is a
process of its own, which is watched: peak_mib is its largest resident memory, Python, libraries and rows to
test on included. SCM reads the store, the others have the rows in memory. Seconds are those of the fit.

``--quick`` takes fewer rows, one seed, and the parts rare, rings and effects.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts
from benchmarks._common import Goal, Options, Result, parts_of, temporary_folder
from benchmarks._fit_scm import (
    LINEAR,
    NYSTROEM,
    OURS,
    SAMPLE,
    SCM,
    SCM_BOTH,
    SVC,
    UNDER,
    WEIGHTED,
    Fit,
)
from benchmarks._journal import Journal
from benchmarks._scm_data import ADULT, DIGITS, RARE, RINGS, size_to_train, write_task
from benchmarks._scm_effects import CHOSEN, grid_cells, grid_table, rounds_cells, spaces_cells
from benchmarks._watch import run_and_watch

MIB = 2**20
ALL = (SCM, SVC, UNDER, WEIGHTED, NYSTROEM, LINEAR)
TASKS = {"rare": RARE, "digits": DIGITS, "rings": RINGS, "adult": ADULT}
METHODS = dict.fromkeys((RARE, DIGITS, RINGS), ALL) | {
    ADULT: (SCM, SCM_BOTH, SVC, SAMPLE, UNDER, NYSTROEM, LINEAR)
}
SMOKE_METHODS = (SCM, SVC, WEIGHTED)
SEEDS = {RARE: 3, DIGITS: 1, RINGS: 1, ADULT: 1}
DETERMINISTIC = (SVC, LINEAR)  # but for the width
MOST_SVC_ROWS = 50_000
LEAST_PRECISION, MOST_TIME = 98.0, 25.0  # per cent of those of the SVC on all rows
PARTS = (*TASKS, "grid", "effects")
QUICK_PARTS, SMOKE_PARTS = ("rare", "rings", "effects"), ("rare", "grid", "effects")
FIGURES = ["balanced_accuracy", "roc_auc", "average_precision", "seconds", "support_vectors"]
FIGURES += ["rows_trained_on", "peak_mib"]


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    tables: dict[str, pd.DataFrame] = {}
    parts = parts_of(options, PARTS)
    if options.quick and not options.parts:
        parts = SMOKE_PARTS if options.smoke else QUICK_PARTS
    for part in parts:
        if part in TASKS:
            tables[f"scm-{part}"] = compared(part, options, journal)
        elif part == "grid":
            tables["scm-grid"] = grid_table(journal.rows(grid_cells(options)))
        else:
            tables["scm-spaces"] = means(journal.rows(spaces_cells(options)), "clusters")
            tables["scm-rounds"] = means(journal.rows(rounds_cells(options)), "rounds")
    return Result(tables, goals_of(tables["scm-rare"]) if "rare" in parts else [])


def compared(part: str, options: Options, journal: Journal) -> pd.DataFrame:
    """All methods on one set: by default, and with the thinned a9a also at the chosen parameters."""
    task = TASKS[part]
    seeds = range(options.seeds or (1 if options.quick else SEEDS[task]))
    points: list[dict[str, Any]] = [{}, CHOSEN] if task == RARE and not options.smoke else [{}]
    with temporary_folder(options) as folder:
        train, test = write_task(task, options, folder)
        stores = str(train), str(test)
        frames = []
        for point in points:
            ours = journal.rows([cell(part, stores, Fit(SCM, seed, **point), point) for seed in seeds])
            frames.append(ours)
            fits = [
                Fit(method, row.seed, **{"gamma": row.found_gamma} | point, rows=int(row.rows_trained_on))
                for row in ours[ours["status"] == "ok"].itertuples()
                for method in (SMOKE_METHODS if options.smoke else METHODS[task])
                if method != SCM
                and not (row.seed and method in DETERMINISTIC)
                and not (method == SVC and size_to_train(stores) > MOST_SVC_ROWS)
            ]
            if fits:
                frames.append(journal.rows([cell(part, stores, fit, point) for fit in fits]))
    return means(pd.concat(frames))


def cell(part: str, stores: tuple[str, str], fit: Fit, point: dict[str, Any]) -> Cell:
    """One fit in a process of its own."""
    if fit.method in OURS and not point:
        fit = fit._replace(gamma=None)
    compute = partial(watched, *stores, fit)
    return Cell(TASKS[part], fit.method, fit.seed, compute, point, PAPER if point else LABEL_FREE, part)


def watched(train: str, test: str, fit: Fit) -> dict[str, Any]:
    """Compute a cell."""
    command = [sys.executable, "-m", "benchmarks._fit_scm", train, test, json.dumps(fit)]
    report, peak = run_and_watch(command)
    return facts(train) | report | {"peak_mib": peak / MIB}


def means(frame: pd.DataFrame, *more: str) -> pd.DataFrame:
    """One row a method and point: means over the seeds."""
    keys = ["dataset", "protocol", "method", *more]
    groups = frame[frame["status"] == "ok"].groupby([*keys, "parameters"], sort=False)
    table = groups[["n", *(name for name in FIGURES if name in frame)]].mean()
    table.insert(1, "runs", groups.size())
    return table.reset_index()


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """SCM beside the whole SVC, and beside the better of the samples of its size, at the same parameters."""
    goals = []
    for protocol, rows in table.groupby("protocol", sort=False):
        by_method = rows.set_index("method")
        if not {SCM, SVC, WEIGHTED} <= set(by_method.index):
            continue
        ours, whole = by_method.loc[SCM], by_method.loc[SVC]
        sample = float(
            by_method.loc[by_method.index.intersection([UNDER, WEIGHTED]), "average_precision"].max()
        )
        share = {name: 100 * ours[name] / whole[name] for name in ("average_precision", "seconds")}
        name = f"rare, {protocol}"
        goals += [
            Goal(
                f"{name}: precision of SCM in that of the SVC",
                share["average_precision"],
                LEAST_PRECISION,
                "%",
                True,
            ),
            Goal(f"{name}: seconds of SCM in those of the SVC", share["seconds"], MOST_TIME, "%"),
            Goal(
                f"{name}: precision of SCM, bound: under-sample",
                float(ours["average_precision"]),
                sample,
                "",
                True,
            ),
        ]
    return goals
