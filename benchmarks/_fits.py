"""Whole fits: larger than memory, beside k-means, and on a cluster."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts, store_once
from benchmarks._common import MNIST_PAIRS, Goal, Options, rows_of, temporary_folder
from benchmarks._compare import ERROR, KMEANS, SKMMC, clustering, fit, fitted
from benchmarks._journal import Journal
from benchmarks._parts import Tables
from benchmarks._passes import best_bare_scan, size, told
from benchmarks._statistics import over_seeds, ratio_to
from benchmarks._watch import fit_store
from mmcnb.samples import open_class_labels

MIB = 2**20
LARGE = {"rows": 2 * 10**7, "quick_rows": 10**5, "features": 32}
LIMIT = 1024  # MiB
MOST_SCANS, MOST_READS = 25, 6
GIVEN = {"a9a": 2.0, **dict.fromkeys(MNIST_PAIRS, 0.5), "usps-extended": 0.5}  # relative widths, as published
BOUNDS = {"a9a": (1.0, 4.0), **dict.fromkeys(MNIST_PAIRS, (0.5, 1.5)), "usps-extended": (0.1, 0.3)}
QUICK_NAMES, QUICK_ROWS = ("a9a", "mnist-1v7"), 5000
DASK = {"rows": 2 * 10**6, "quick_rows": 5 * 10**4, "features": 32}


# -- larger than memory ------------------------------------------------------------------------


def large(options: Options, journal: Journal) -> Tables:
    """``mmcnb fit`` of data larger than its memory, in a process that is watched."""
    n = size(LARGE, options)
    with temporary_folder(options) as folder:
        cells = [
            Cell(name, SKMMC, seed, partial(fitted_within_limit, str(folder), name, n, seed), part="large")
            for name in (("rings",) if options.smoke else ("rings", "blobs"))
            for seed in range(options.seeds or 1)
        ]
        frame = journal.rows(cells)
    counts = ("scans", "label_seconds", "reads", "sweeps", "gap")
    table = over_seeds(frame, ["dataset", "method"], ERROR, *counts)
    goals = []
    for row in table.itertuples():
        goals += [
            Goal(f"large: {row.dataset}, peak memory", float(row.peak_mib), LIMIT, "MiB"),
            Goal(f"large: {row.dataset}, fit", float(row.scans), MOST_SCANS, "bare scans"),
            Goal(
                f"large: {row.dataset}, reads of the rows",
                float(row.reads),
                MOST_READS + 2,
                "2 of them to begin",
            ),
        ]
    return {"engine-large": table}, goals


def fitted_within_limit(folder: str, name: str, n: int, seed: int) -> dict[str, Any]:
    """Compute a cell: the command on a store, and a bare scan of it."""
    store = store_once(folder, name, rows=n, features=LARGE["features"], random_state=0)
    measures, labels = fit_store(store, seed, f"{LIMIT}MiB")
    measures |= {"scans": measures["seconds"] / best_bare_scan(store, 3)}
    return facts(store) | measures | clustering(np.asarray(open_class_labels(store)), labels)


# -- beside k-means ----------------------------------------------------------------------------


def peers(options: Options, journal: Journal) -> Tables:
    """Time and error beside k-means, at the width of the papers and with the one that is chosen."""
    names = QUICK_NAMES[: 1 if options.smoke else None] if options.quick else tuple(GIVEN)
    frame = journal.rows([cell for name in names for cell in cells_of(name, options)])
    table = over_seeds(frame, ["dataset", "protocol", "method"], ERROR, "reads")
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    return {"engine-peers": table}, [goal for name in names for goal in goals_of(name, table)]


def cells_of(name: str, options: Options) -> list[Cell]:
    """k-means of ten starts, SKMMC by default and at the width of the papers, turn by turn."""
    rows = rows_of(name, options, QUICK_ROWS if options.quick else None)
    usual = 1 if options.quick or name == "usps-extended" else 3
    methods: tuple[tuple[str, dict[str, Any], str], ...] = (
        (KMEANS, {"n_init": 10}, LABEL_FREE),
        (SKMMC, {}, LABEL_FREE),
        (SKMMC, {"width": GIVEN[name]}, PAPER),
    )
    return [
        Cell(name, method, seed, partial(fitted, name, rows, method, seed, given), given, protocol, "peers")
        for seed in range(options.seeds or usual)
        for method, given, protocol in methods
    ]


def goals_of(name: str, table: pd.DataFrame) -> list[Goal]:
    """Time of both in units of k-means, and reads."""
    rows = table[(table["dataset"] == name) & (table["method"] == SKMMC)]
    given, auto = BOUNDS[name]
    goals = [
        Goal(
            f"peers: {name}, time " + ("at a given gamma" if row.protocol == PAPER else 'with gamma="auto"'),
            float(row[-1]),
            given if row.protocol == PAPER else auto,
            f"of {KMEANS}",
        )
        for row in rows.itertuples()
    ]
    reads = float(rows["reads"].max())
    return [*goals, Goal(f"peers: {name}, reads of the rows", reads, MOST_READS + 2)]


# -- on a cluster ------------------------------------------------------------------------------


def dask(options: Options, journal: Journal) -> Tables:
    """The same fit by threads and by worker processes."""
    n = size(DASK, options)
    with temporary_folder(options) as folder:
        cells = [
            Cell(
                "rings",
                SKMMC,
                seed,
                partial(fitted_by_workers, str(folder), n, workers, seed),
                given,
                part="dask",
            )
            for seed in range(options.seeds or 1)
            for workers in ((0, 2) if options.quick else (0, 1, 2))
            for given in ({"workers": workers},)
        ]
        frame = journal.rows(cells)
    by_threads = frame[frame["workers"] == 0].set_index("seed")
    same = frame["labels_digest"] == frame["seed"].map(by_threads["labels_digest"])
    table = told(frame.assign(same_labels=same)).drop(columns="labels_digest")
    table["of threads"] = table["seconds"] / table["seed"].map(by_threads["seconds"])
    equal = 100 * float(same.mean())
    goal = Goal("dask: runs whose labels equal those of threads", equal, 100, "%", at_least=True)
    return {"engine-dask": table}, [goal]


def fitted_by_workers(folder: str, n: int, workers: int, seed: int) -> dict[str, Any]:
    """Compute a cell: a fit by so many worker processes, or by threads where there are none."""
    from distributed import Client, LocalCluster

    store = store_once(folder, "rings", rows=n, features=DASK["features"], random_state=0)
    if not workers:
        return _second_fit(mmcnb.SparseKernelMMC(random_state=seed), store)
    share = {"n_workers": workers, "threads_per_worker": max(1, 2 // workers)}
    with LocalCluster(**share, dashboard_address=None) as cluster, Client(cluster) as client:
        return _second_fit(mmcnb.SparseKernelMMC(random_state=seed, engine=client), store)


def _second_fit(model: Any, store: str) -> dict[str, Any]:
    """Seconds of a second fit: in the first one workers load and compile the kernels."""
    times = []
    for _ in range(2):
        started = time.perf_counter()
        fit(model, store)
        times.append(time.perf_counter() - started)
    labels = np.asarray(model.labels_)
    measures = {"seconds": times[1], "compile_seconds": max(0.0, times[0] - times[1])}
    text = hashlib.sha256(labels.tobytes()).hexdigest()
    return (
        facts(store)
        | measures
        | clustering(np.asarray(open_class_labels(store)), labels)
        | {"labels_digest": text}
    )
