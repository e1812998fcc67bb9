"""MNIST 0-4: every kernel alone and together on all rows, and the default from a store, in linear storage."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts, written_once
from benchmarks._common import Goal, Options, temporary_folder
from benchmarks._journal import Journal
from benchmarks._mkc_data import (
    K1,
    K2,
    K3,
    KMEANS,
    MKC,
    MNIST,
    MNIST_SAMPLE,
    OURS,
    SETS,
    load_set,
    rows_of_set,
    scores,
)
from benchmarks._mkc_fits import ACCURACY, best_points, clustered, grid_of, kmeans_cells
from benchmarks._parts import Tables
from benchmarks._statistics import over_seeds
from benchmarks._watch import run_and_watch
from benchmarks.published import MKC as MKC_PAPER
from benchmarks.published import figure
from mmcnb.samples import create_dense_store

QUICK_ROWS = 400
MIB = 2**20
SLACK = 1.0  # per cent


def mnist(options: Options, journal: Journal) -> Tables:
    """Table 2's last line; the default from a store, its peak memory and its time beside k-means."""
    rows = rows_of_set(MNIST, options, QUICK_ROWS if options.quick else None)
    grid = grid_of([MNIST_SAMPLE], options, journal)
    cells = []
    for method in OURS:
        for given in best_points(grid, method).values():
            compute = partial(clustered, MNIST, rows, method, 0, given)
            cells.append(Cell(MNIST, method, 0, compute, given, PAPER, "mnist"))
    cells += kmeans_cells(MNIST, rows, options, "mnist")
    with temporary_folder(options) as folder:
        compute = partial(from_store, str(folder), rows)
        cells.append(Cell(MNIST, MKC, 0, compute, {}, LABEL_FREE, "mnist"))
        frame = journal.rows(cells)
    keys = ["dataset", "protocol", "method", "parameters"]
    table = over_seeds(frame, keys, ACCURACY, "rand")
    for metric in (ACCURACY, "rand"):
        known = [figure(MKC_PAPER, MNIST, method, metric) for method in table["method"]]
        table[f"published {metric}"] = np.where(table["protocol"] == PAPER, known, np.nan)
    weights = frame.loc[frame["method"] == MKC, ["dataset", "protocol", "parameters", "weights"]]
    return {"mkc-mnist": table, "mkc-mnist-weights": weights}, goals_of(table)


def from_store(folder: str, rows: int | None) -> dict[str, Any]:
    """Compute a cell: the default, fitted to a Zarr store by a process whose memory is watched."""
    import zarr

    data = load_set(MNIST, rows)
    store = written_once(folder, f"{MNIST}-{rows}", lambda path: _write(path, data.X, data.y))
    labels = Path(store).with_suffix(".labels.zarr")
    command = [sys.executable, "-m", "benchmarks._fit_mkc", store, str(labels)]
    report, peak = run_and_watch([*command, str(SETS[MNIST].n_clusters)])
    found = scores(data.y, np.asarray(zarr.open_array(str(labels), mode="r")[:]))
    weights = "; ".join(f"{name}: {weight:.2f}" for name, weight in report.pop("weights").items())
    return facts(store) | found | report | {"weights": weights, "peak_mib": peak / MIB}


def _write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with create_dense_store(path, X.shape[1], X.dtype) as writer:
        writer.append(X, y)


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """MKC within a point of what was published, and of the best of the kernels alone; its time."""
    rows = table.set_index(["protocol", "method"])
    accuracy = 100 * rows.loc[PAPER, ACCURACY].reindex(OURS)
    bounds = {
        "published": 100 * figure(MKC_PAPER, MNIST, MKC, ACCURACY),
        "best kernel alone": float(accuracy[[K1, K2, K3]].max()),
    }
    goals = [
        Goal(f"{MNIST}: MKC beside {what}", float(accuracy[MKC]), round(bound - SLACK, 2), "%", at_least=True)
        for what, bound in bounds.items()
    ]
    seconds = rows.loc[LABEL_FREE, "seconds"].reindex([MKC, KMEANS])
    ratio = float(seconds[MKC] / seconds[KMEANS])
    return [*goals, Goal(f"{MNIST}: seconds of MKC in those of KMeans(5, n_init=10)", ratio, 1.0)]
