"""Multiple kernel clustering: the paper's Tables 2 and 3 and Figures 1-3, and MNIST 0-4 from a store.

``python -m benchmarks mkc [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has four parts:

table2  Table 2 of Zhao, Kwok and Zhang on the data sets that can be had, and the thesis's Tab. 5-3: each
        kernel alone, MKC, k-means, normalised cut, IterSVR (of two clusters). By the paper's protocol each
        cluster takes its majority class, and the parameters are those of the highest accuracy over a grid, a
        part of the thesis's Tab. 5-2; k-means is the mean of 50 runs from random rows. Label-free are
        defaults, k-means of ten starts, spectral clustering of ten neighbours. The paper writes the
        Gaussian exp(-d²/(2 sigma)), without a square; both readings are in the grid of MKC, the printed one
        in those of its rivals. The grid of MKC has the threshold of 1 and the adaptive one, and for two
        clusters four coin flips at a large C. Columns are as in the files
table3  Table 3 and the thesis's Tab. 5-4: the model of a part of the rows labels the others
speed   Fig. 1: seconds beside the sum of those of each kernel alone; Fig. 2: against rows; Fig. 3: against
        kernels and against eta
mnist   Table 2's last line: parameters by the classes of 1,000 rows, then all 35,735; and the default from a
        Zarr store in a process that is watched: peak memory, time beside k-means

``--quick`` takes two data sets of 200 rows, a part of the grid, and shorter figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts
from benchmarks._common import Goal, Options, Result
from benchmarks._compare import timed
from benchmarks._journal import Journal
from benchmarks._mkc_data import (
    K1,
    K2,
    K3,
    METHODS,
    MKC,
    MNIST,
    MNIST_SAMPLE,
    TABLE2,
    TABLE3,
    THESIS_ONLY,
    load_set,
    rows_of_set,
    scores,
)
from benchmarks._mkc_fits import (
    ACCURACY,
    QUICK_ROWS,
    at_point,
    best_points,
    compile_kernels,
    default,
    free_cells,
    grid_of,
    rival_cells,
)
from benchmarks._mkc_large import mnist
from benchmarks._mkc_speed import speed
from benchmarks._parts import Tables, run_parts
from benchmarks._statistics import best, over_seeds
from benchmarks.published import MKC as MKC_PAPER
from benchmarks.published import THESIS, figure

SAMPLE = "MKC of a sample"
QUICK_SETS = ("ionosphere", "digits0689")
SLACK = 1.0  # per cent


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
    parts = {"table2": table2, "table3": table3, "speed": speed, "mnist": mnist}
    return run_parts(parts, options, journal)


# -- Table 2 -----------------------------------------------------------------------------------


def table2(options: Options, journal: Journal) -> Tables:
    """Accuracy and Rand index of all methods by both protocols, beside the published ones."""
    names = (*TABLE2, *THESIS_ONLY)
    if options.quick:
        names = QUICK_SETS[: 1 if options.smoke else None]
    grid = grid_of(names, options, journal)
    others = [cell for name in names for make in (free_cells, rival_cells) for cell in make(name, options)]
    chosen = chosen_of(pd.concat([grid, journal.rows(others)], ignore_index=True))
    table = beside_published(chosen)
    weights = chosen.loc[chosen["method"] == MKC, ["dataset", "protocol", "parameters", "weights"]]
    return {"mkc-table2": table, "mkc-table2-weights": weights}, goals_of(table)


def chosen_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, at the parameters of the highest mean accuracy; the earlier of equals.

    The weights of the kernels are those of the first seed.
    """
    keys = ["dataset", "protocol", "method"]
    settings = over_seeds(frame, [*keys, "parameters"], ACCURACY, "rand")
    weights = frame.groupby([*keys, "parameters"], sort=False)["weights"].first()
    return best(settings.join(weights, on=[*keys, "parameters"]), keys, ACCURACY, largest=True)


def beside_published(chosen: pd.DataFrame) -> pd.DataFrame:
    """One row for each data set and method: both protocols beside the published figures."""
    rows = [
        _beside(str(name), method, part[part["method"] == method])
        for name, part in chosen.groupby("dataset", sort=False)
        for method in METHODS
        if method in set(part["method"])
    ]
    return pd.DataFrame(rows)


def _beside(name: str, method: str, part: pd.DataFrame) -> dict[str, Any]:
    protocols = part.set_index("protocol").reindex([PAPER, LABEL_FREE])
    paper, free = protocols.loc[PAPER], protocols.loc[LABEL_FREE]
    return {
        "dataset": name,
        "n": part["n"].max(),
        "method": method,
        "published accuracy": figure(MKC_PAPER, name, method, ACCURACY),
        "thesis accuracy": figure(THESIS, name, method, ACCURACY),
        "accuracy": paper[ACCURACY],
        "accuracy sd": paper["accuracy sd"],
        "label-free accuracy": free[ACCURACY],
        "published rand": figure(MKC_PAPER, name, method, "rand"),
        "rand": paper["rand"],
        "label-free rand": free["rand"],
        "seconds": paper["seconds"],
        "parameters": paper["parameters"],
    }


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """MKC within a point of what was published, or of the thesis, and of the best of the kernels alone."""
    goals = []
    for name, part in table.groupby("dataset", sort=False):
        rows = part.set_index("method").reindex(METHODS)
        ours, alone = float(rows.loc[MKC, ACCURACY]), float(rows.loc[[K1, K2, K3], ACCURACY].max())
        known = rows.loc[MKC, ["published accuracy", "thesis accuracy"]].dropna()
        bounds = {"published": float(known.iloc[0])} if len(known) else {}
        goals += [
            Goal(f"{name}: MKC beside {what}", 100 * ours, round(100 * bound - SLACK, 2), "%", at_least=True)
            for what, bound in {**bounds, "best kernel alone": alone}.items()
        ]
    return goals


# -- Table 3 -----------------------------------------------------------------------------------


def table3(options: Options, journal: Journal) -> Tables:
    """The model of a part of the rows labels the others; by both protocols."""
    names = ("ringnorm", *(() if options.smoke else ("digits1v7-tra",))) if options.quick else tuple(TABLE3)
    points = best_points(grid_of(names, options, journal), MKC)
    cells = [cell for name in names for cell in labelling_cells(name, points.get(name), options)]
    keys, told = ["dataset", "protocol", "parameters"], ("rand", "learnt_accuracy", "other_rows")
    table = over_seeds(journal.rows(cells), keys, ACCURACY, *told)
    for paper, title in ((MKC_PAPER, "published"), (THESIS, "thesis")):
        table[f"{title} accuracy"] = [figure(paper, name, SAMPLE, ACCURACY) for name in table["dataset"]]
    goals = [
        Goal(
            f"{row.dataset}: model of {row.n:,} rows on all",
            100 * float(row.accuracy),
            round(100 * figure(MKC_PAPER, row.dataset, SAMPLE, ACCURACY) - SLACK, 2),
            "%",
            at_least=True,
        )
        for row in table.itertuples()
        if row.protocol == PAPER and np.isfinite(figure(MKC_PAPER, row.dataset, SAMPLE, ACCURACY))
    ]
    return {"mkc-table3": table}, goals


def labelling_cells(name: str, point: dict[str, str] | None, options: Options) -> Iterator[Cell]:
    """A model at the best point of the grid, where there is one, and one by default; named as published."""
    rows = rows_of_set(name, options, QUICK_ROWS if options.quick else None)
    others = rows_of_set(TABLE3[name], options)
    dataset = MNIST if name == MNIST_SAMPLE else name
    for given, protocol in ((point, PAPER), ({}, LABEL_FREE)):
        if given is not None:
            compute = partial(labelled, name, rows, others, given)
            yield Cell(dataset, SAMPLE, 0, compute, given, protocol, "table3")


def labelled(name: str, rows: int | None, others: int | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a cell: a model of some rows, and the accuracy of the labels that it gives to others."""
    learnt, other = load_set(name, rows), load_set(TABLE3[name], others)
    model = at_point(name, rows, seed=0, basis="exact", **given) if given else default(name, MKC, 0)
    compiled = compile_kernels(learnt)
    measures = timed(model, learnt.X) | {"compile_seconds": compiled}
    own = scores(learnt.y, model.labels_)["accuracy"]
    new = scores(other.y, model.predict(other.X)) | {"other_rows": len(other.y)}
    return facts(learnt.X) | measures | new | {"learnt_accuracy": own}
