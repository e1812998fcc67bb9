"""Whole fits: larger than memory, beside k-means, and on a cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import data_loaders
import mmcnb
from benchmarks._common import MNIST_PAIRS, Goal, Options, load, say, temporary_folder
from benchmarks._compare import OURS, compare, fit, summarise, warm_up
from benchmarks._passes import bare_scans, turns
from benchmarks._watch import run_and_watch
from mmcnb.metrics import balanced_clustering_error
from mmcnb.samples import open_class_labels

MIB = 2**20
LARGE = {"rows": 2 * 10**7, "quick_rows": 3 * 10**5, "features": 32}
LIMIT = 1024  # MiB
MOST_SCANS, MOST_READS = 25, 6
GIVEN = {"a9a": 2.0, **dict.fromkeys(MNIST_PAIRS, 0.5), "usps-extended": 0.5}  # relative widths, as published
BOUNDS = {"a9a": (1.0, 4.0), **dict.fromkeys(MNIST_PAIRS, (0.5, 1.5)), "usps-extended": (0.1, 0.3)}
DASK = {"rows": 2 * 10**6, "quick_rows": 2 * 10**5, "features": 32}


def large(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """``mmcnb fit`` of data larger than its memory, in a process that is watched."""
    rows, goals = [], []
    for name in ("rings", "blobs"):
        with temporary_folder(options) as folder:
            store = folder / f"{name}.zarr"
            n = _size(LARGE, options)
            say(f"large: {name}, {n:,} rows")
            data_loaders.write(name, store, rows=n, features=LARGE["features"], random_state=0)
            found = _fit_in_a_process(store)
            best = min(turns(bare_scans(str(store)), 3).values())
        row = found | {"dataset": name, "d": LARGE["features"], "scan_seconds": best}
        rows.append(row | {"scans": row["seconds"] / best})
        goals += [
            Goal(f"large: {name}, peak memory", row["peak_mib"], LIMIT, "MiB"),
            Goal(f"large: {name}, fit", rows[-1]["scans"], MOST_SCANS, "bare scans"),
            Goal(f"large: {name}, reads of the rows", row["reads"], MOST_READS + 2, "2 of them to begin"),
        ]
    return pd.DataFrame(rows), goals


def _fit_in_a_process(store: Path) -> dict[str, Any]:
    model, labels = store.with_suffix(".model"), store.with_suffix(".labels.zarr")
    words = ["fit", store, "--model", model, "--labels", labels, "--memory-limit", f"{LIMIT}MiB"]
    command = [sys.executable, "-m", "mmcnb", *map(str, words), "--random-state", "0", "--json"]
    report, polled = run_and_watch(command)
    import zarr

    found = np.asarray(zarr.open_array(str(labels), mode="r")[:])
    history = mmcnb.load(model).history_
    return {
        "n": report["n_samples"],
        "method": OURS,
        "parameters": f"memory_limit={LIMIT}MiB",
        "error": balanced_clustering_error(np.asarray(open_class_labels(str(store))), found),
        "seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
        "reads": int(history["reads"].iloc[-1]),
        "sweeps": int(history["sweeps"].iloc[-1]),
        "gap": report["gap"],
    }


def peers(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """Time and error beside k-means, at the width of the papers and with the one that is chosen."""
    frames, goals = [], []
    for name, width in GIVEN.items():
        data = load(name, options, LARGE["quick_rows"] // 10 if options.quick else None)
        warm_up(data.X)
        seeds = range(options.seeds or (1 if name == "usps-extended" else 3))
        frame = compare(data, seeds, widths=(width,))
        facts = summarise(frame).iloc[0]
        given, auto = BOUNDS[name]
        goals += [
            Goal(
                f"peers: {name}, time at a given gamma", facts["given gamma / k-means"], given, "of k-means"
            ),
            Goal(f'peers: {name}, time with gamma="auto"', facts["auto / k-means"], auto, "of k-means"),
        ]
        ours = frame[frame["method"] == OURS]
        goals.append(Goal(f"peers: {name}, reads of the rows", ours["reads"].max(), MOST_READS + 2))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), goals


def dask(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """The same fit by threads and by worker processes."""
    from distributed import Client, LocalCluster

    rows: list[dict[str, Any]] = []
    n = _size(DASK, options)
    with temporary_folder(options) as folder:
        store = str(folder / "rings.zarr")
        data_loaders.write("rings", store, rows=n, features=DASK["features"], random_state=0)
        labels = {}
        for workers in (0, 1, 2):
            say(f"dask: {n:,} rows, {workers or 'no'} workers")
            if workers == 0:
                model = mmcnb.SparseKernelMMC(random_state=0)
                seconds = _seconds_of_fit(model, store)
            else:
                options_of = {"n_workers": workers, "threads_per_worker": 2 // workers}
                with LocalCluster(**options_of, dashboard_address=None) as cluster, Client(cluster) as client:
                    model = mmcnb.SparseKernelMMC(random_state=0, engine=client)
                    seconds = _seconds_of_fit(model, store)
            labels[workers] = model.labels_
            same = bool(np.array_equal(model.labels_, labels[0]))
            rows.append(
                {
                    "dataset": "rings",
                    "n": n,
                    "d": DASK["features"],
                    "method": OURS,
                    "parameters": f"{workers} workers" if workers else "threads",
                    "seconds": seconds,
                    "labels_equal": same,
                }
            )
    frame = pd.DataFrame(rows)
    frame["ratio"] = frame["seconds"] / frame["seconds"].iloc[0]
    equal = 100.0 * frame["labels_equal"].mean()
    return frame, [Goal("dask: runs whose labels equal those of threads", equal, 100, "%", at_least=True)]


def _seconds_of_fit(model: Any, store: str) -> float:
    fit(model, store)  # workers load and compile the kernels
    started = time.perf_counter()
    fit(model, store)
    return time.perf_counter() - started


def _size(sizes: dict[str, int], options: Options) -> int:
    rows = sizes["quick_rows"] if options.quick else sizes["rows"]
    return min(rows, options.rows) if options.rows else rows
