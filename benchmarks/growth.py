"""Growth: time, error and peak memory on two rings of 10⁴ to 10⁷ rows in a Zarr store.

``python -m benchmarks growth [--quick] [--rows N]`` writes rings with 32 features to a store, runs
``mmcnb fit`` on it within 512 MiB in a process of its own, and takes the seconds from its report and the peak
resident memory of that process and its children from the kernel's count (Linux). k-means beside it is
scikit-learn's MiniBatchKMeans, given the same store a block at a time. ``--quick`` stops at 10⁶ rows.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr

import data_loaders
from benchmarks._common import Goal, Options, Result, say, slope, temporary_folder
from benchmarks._watch import run_and_watch
from mmcnb.metrics import balanced_clustering_error
from mmcnb.samples import Samples, open_class_labels, open_samples

FEATURES = 32
MEMORY_LIMIT, SLACK = 512, 150  # MiB
MOST_ROWS, QUICK_ROWS = 10**7, 10**6
MEMORY_ROWS = 10**6  # from here on the store is larger than what is left of the limit
PEER_ROWS = 2**15
MIB = 2**20


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
    rows: list[dict[str, Any]] = []
    with temporary_folder(options) as folder:
        compiled = _warm_up(folder)
        for n in sizes(options):
            for seed in range(options.seeds or 1):
                store = folder / "rings.zarr"
                say(f"rings, {n:,} rows, seed {seed}")
                data_loaders.write("rings", store, rows=n, features=FEATURES, random_state=seed)
                rows += [row | {"seed": seed} for row in (_ours(store), _peer(store))]
                shutil.rmtree(store)
    frame = pd.DataFrame(rows).assign(compile_seconds=compiled)
    keys = ["dataset", "n", "d", "method", "parameters"]
    table = frame.groupby(keys, sort=False).median(numeric_only=True).reset_index().drop(columns="seed")
    return Result({"growth-fits": frame, "growth": table}, _goals(table), shown=("growth",))


def sizes(options: Options) -> list[int]:
    """Numbers of rows: the largest, and tenths of it down to 10⁴ (or to one tenth of fewer rows)."""
    most = options.rows or (QUICK_ROWS if options.quick else MOST_ROWS)
    return [n for n in (most // 1000, most // 100, most // 10, most) if n >= min(10**4, most // 10)]


def _goals(table: pd.DataFrame) -> list[Goal]:
    ours = table[table["method"] == "mmcnb"]
    last = ours.tail(2)
    judged = ours[ours["n"] >= min(MEMORY_ROWS, ours["n"].max())]
    return [
        Goal("rings: slope of time, all sizes", slope(ours["n"], ours["seconds"]), 1.1),
        Goal("rings: slope of time, last step", slope(last["n"], last["seconds"]), 1.1),
        *(
            Goal(f"rings, {row.n:,} rows: peak memory", row.peak_mib, MEMORY_LIMIT + SLACK, "MiB")
            for row in judged.itertuples()
        ),
    ]


def _warm_up(folder: Path) -> float:
    """Seconds of a first small fit, which compiles every kernel into the cache on disk."""
    store = folder / "warm.zarr"
    data_loaders.write("rings", store, rows=4096, features=FEATURES)
    started = time.perf_counter()
    _ours(store)
    return time.perf_counter() - started


def _ours(store: Path) -> dict[str, Any]:
    model, labels = store.with_suffix(".model"), store.with_suffix(".labels.zarr")
    words = ["fit", store, "--model", model, "--labels", labels, "--memory-limit", f"{MEMORY_LIMIT}MiB"]
    options = ["--random-state", "0", "--overwrite", "--json"]
    report, polled = run_and_watch([sys.executable, "-m", "mmcnb", *map(str, words), *options])
    found = np.asarray(zarr.open_array(labels, mode="r")[:])
    y = np.asarray(open_class_labels(store))
    return {
        "dataset": "rings",
        "n": report["n_samples"],
        "d": report["n_features"],
        "method": "mmcnb",
        "parameters": f"memory_limit={MEMORY_LIMIT}MiB",
        "error": balanced_clustering_error(y, found),
        "seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "passes": report["passes"],
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
    }


def _peer(store: Path) -> dict[str, Any]:
    from sklearn.cluster import MiniBatchKMeans

    samples = open_samples(store)
    peer = MiniBatchKMeans(2, n_init=10, random_state=0)
    started = time.perf_counter()
    for block in _blocks(samples):
        peer.partial_fit(block)
    fitted = time.perf_counter()
    labels = np.concatenate([peer.predict(block) for block in _blocks(samples)])
    return {
        "dataset": "rings",
        "n": samples.n_samples,
        "d": samples.n_features,
        "method": "MiniBatchKMeans",
        "parameters": "partial_fit",
        "error": balanced_clustering_error(np.asarray(open_class_labels(store)), labels),
        "seconds": fitted - started,
        "label_seconds": time.perf_counter() - fitted,
    }


def _blocks(samples: Samples) -> Any:
    for start in range(0, samples.n_samples, PEER_ROWS):
        yield samples.block(start, min(start + PEER_ROWS, samples.n_samples))
