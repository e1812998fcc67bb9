"""Growth: time, error and peak memory on two rings of 10⁴ to 10⁷ rows in a Zarr store.

``python -m benchmarks growth [--quick] [--rows N]`` writes rings with 32 features to a store, runs
``mmcnb fit`` on it within 512 MiB in a process of its own, and takes the seconds from its report and the peak
resident memory of that process and its children from the kernel's count (Linux). k-means beside it is
scikit-learn's MiniBatchKMeans, given the same store a block at a time. ``--quick`` stops at 10⁶ rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr

from benchmarks._cells import Cell, facts, store_once
from benchmarks._common import Goal, Options, Result, temporary_folder
from benchmarks._compare import ERROR, SKMMC, clustering
from benchmarks._journal import Journal
from benchmarks._statistics import log_slope, over_seeds
from benchmarks._watch import run_and_watch
from mmcnb.samples import Samples, open_class_labels, open_samples

FEATURES = 32
MEMORY_LIMIT, SLACK = 512, 150  # MiB
MOST_ROWS, QUICK_ROWS, SMOKE_ROWS = 10**7, 10**6, 2000
MEMORY_ROWS = 10**6  # from here on the store is larger than what is left of the limit
WARM_UP_ROWS = 4096
PEER, PEER_ROWS = "MiniBatchKMeans", 2**15
MIB = 2**20


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
    with temporary_folder(options) as folder:
        frame = journal.rows(list(cells_of(options, str(folder))))
    told = ("label_seconds", "passes")
    table = over_seeds(frame, ["dataset", "rows", "method"], ERROR, *told).drop(columns="rows")
    return Result({"growth": table}, goals_of(table))


def cells_of(options: Options, folder: str) -> Iterator[Cell]:
    """Ours and k-means on the same store, size by size."""
    for n in sizes(options):
        for seed in range(options.seeds or 1):
            for method, compute in ((SKMMC, fitted_by_command), (PEER, fitted_by_blocks)):
                yield Cell("rings", method, seed, partial(compute, folder, n, seed), {"rows": n})


def sizes(options: Options) -> list[int]:
    """Numbers of rows: the largest, and tenths of it down to 10⁴ (or to one tenth of fewer rows)."""
    most = options.rows or (QUICK_ROWS if options.quick else MOST_ROWS)
    if options.smoke:
        most = max(most, SMOKE_ROWS)
    return [n for n in (most // 1000, most // 100, most // 10, most) if n >= min(10**4, most // 10)]


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """Slope of time over all sizes and over the last two, and peak memory of the large ones."""
    ours = table[table["method"] == SKMMC]
    last = ours.tail(2)
    judged = ours[ours["n"] >= min(MEMORY_ROWS, ours["n"].max())]
    return [
        Goal("rings: slope of time, all sizes", log_slope(ours["n"], ours["seconds"]).value, 1.1),
        Goal("rings: slope of time, last step", log_slope(last["n"], last["seconds"]).value, 1.1),
        *(
            Goal(f"rings, {row.n:,} rows: peak memory", row.peak_mib, MEMORY_LIMIT + SLACK, "MiB")
            for row in judged.itertuples()
        ),
    ]


def fitted_by_command(folder: str, n: int, seed: int) -> dict[str, Any]:
    """Compute a cell: ``mmcnb fit`` in a process that is watched."""
    compiled = _warm_up(folder)
    store = store_once(folder, "rings", rows=n, features=FEATURES, random_state=seed)
    report, found = _fit(store)
    return report | facts(store) | _clusters(store, found) | {"compile_seconds": compiled}


@lru_cache(maxsize=1)
def _warm_up(folder: str) -> float:
    """Seconds of a first small fit, which compiles every kernel into the cache on disk."""
    store = store_once(folder, "rings", rows=WARM_UP_ROWS, features=FEATURES, random_state=0)
    started = time.perf_counter()
    _fit(store)
    return time.perf_counter() - started


def _fit(store: str) -> tuple[dict[str, float], np.ndarray]:
    model, labels = Path(store).with_suffix(".model"), Path(store).with_suffix(".labels.zarr")
    words = ["fit", store, "--model", model, "--labels", labels, "--memory-limit", f"{MEMORY_LIMIT}MiB"]
    options = ["--random-state", "0", "--overwrite", "--json"]
    report, polled = run_and_watch([sys.executable, "-m", "mmcnb", *map(str, words), *options])
    told = {
        "seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "passes": report["passes"],
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
    }
    return told, np.asarray(zarr.open_array(labels, mode="r")[:])


def fitted_by_blocks(folder: str, n: int, seed: int) -> dict[str, Any]:
    """Compute a cell: k-means of mini-batches, given the store a block at a time."""
    from sklearn.cluster import MiniBatchKMeans

    store = store_once(folder, "rings", rows=n, features=FEATURES, random_state=seed)
    samples = open_samples(store)
    peer = MiniBatchKMeans(2, n_init=10, random_state=0)
    started = time.perf_counter()
    for block in _blocks(samples):
        peer.partial_fit(block)
    fitted = time.perf_counter()
    labels = np.concatenate([peer.predict(block) for block in _blocks(samples)])
    seconds = {"seconds": fitted - started, "label_seconds": time.perf_counter() - fitted}
    return seconds | facts(store) | _clusters(store, labels)


def _clusters(store: str, labels: np.ndarray) -> dict[str, float]:
    return clustering(np.asarray(open_class_labels(store)), labels)


def _blocks(samples: Samples) -> Iterator[Any]:
    for start in range(0, samples.n_samples, PEER_ROWS):
        yield samples.block(start, min(start + PEER_ROWS, samples.n_samples))
