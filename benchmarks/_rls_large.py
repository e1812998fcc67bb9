"""Ten arcs that are larger than the memory of the fit: memory, reads and time, with k-means beside."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._cells import Cell, facts, written_once
from benchmarks._common import Goal, Options, temporary_folder
from benchmarks._compare import clustering
from benchmarks._journal import Journal
from benchmarks._parts import Tables
from benchmarks._passes import best_bare_scan
from benchmarks._peers import LEAST_SQUARES, MINIBATCH
from benchmarks._statistics import over_seeds
from benchmarks._watch import run_and_watch
from mmcnb.samples import open_class_labels, open_samples
from mmcnb.synthetic import write_synthetic

MOST_ROWS, QUICK_ROWS = 10**7, 2 * 10**5
FEATURES, CLUSTERS = 50, 10
MIB, LIMIT = 2**20, 1024
MOST_READS = 4 + 1  # and one more for the labels
LEAST_ARI = 0.95
STEP = 2**16
KMEANS, KMEANS_ROWS, LEAST_ROWS = "k-means, of a sample", 100_000, 1000


def large(options: Options, journal: Journal) -> Tables:
    """`UnsupervisedRLS` of a store in a process that is watched, and k-means of the same store."""
    n = min(QUICK_ROWS if options.quick else MOST_ROWS, options.rows or MOST_ROWS)
    with temporary_folder(options) as folder:
        cells = [
            Cell("arcs", method, 0, partial(compute, str(folder), n), part="large")
            for method, compute in (
                (LEAST_SQUARES, ours),
                (KMEANS, kmeans_of_a_sample),
                (MINIBATCH, minibatches),
            )
        ]
        frame = journal.rows(cells)
    table = over_seeds(frame, ["dataset", "method"], "ari", "scans", "label_seconds", "reads")
    goals = []
    for row in table[table["method"] == LEAST_SQUARES].itertuples():
        goals += [
            Goal("large: peak memory of the processes", float(row.peak_mib), LIMIT, "MiB"),
            Goal("large: reads of the rows, with the labels", float(row.reads), MOST_READS),
            Goal("large: ARI", float(row.ari), LEAST_ARI, at_least=True),
        ]
    return {"rls-large": table}, goals


def arcs(folder: str, n: int) -> str:
    """Path of the store."""
    return written_once(
        folder, f"arcs-{n}", lambda path: write_synthetic("arcs", path, n, FEATURES, n_clusters=CLUSTERS)
    )


@lru_cache(maxsize=1)
def _scan_seconds(store: str) -> float:
    return best_bare_scan(store, 1)


def ours(folder: str, n: int) -> dict[str, Any]:
    """Compute a cell: a fit and labels by a process whose memory is watched."""
    import zarr

    store = arcs(folder, n)
    labels = Path(store).with_suffix(".labels.zarr")
    module = [sys.executable, "-m", "benchmarks._fit_rls"]
    report, peak = run_and_watch([*module, store, str(labels), str(CLUSTERS), f"{LIMIT}MiB"])
    told = {name: report[name] for name in ("compile_seconds", "label_seconds", "reads")}
    told["peak_mib"] = peak / MIB
    return told | _found(store, np.asarray(zarr.open_array(str(labels), mode="r")[:]), report["fit_seconds"])


def kmeans_of_a_sample(folder: str, n: int) -> dict[str, Any]:
    """Compute a cell: k-means of ten starts on the first rows, which are shuffled; then the labels of all."""
    from sklearn.cluster import KMeans

    store = arcs(folder, n)
    samples = open_samples(store)
    started = time.perf_counter()
    few = min(n, KMEANS_ROWS, max(n // 10, LEAST_ROWS))
    model = KMeans(CLUSTERS, n_init=10, random_state=0).fit(samples.block(0, few))
    labels = np.concatenate([model.predict(block) for block in _blocks(samples)])
    return _found(store, labels, time.perf_counter() - started)


def minibatches(folder: str, n: int) -> dict[str, Any]:
    """Compute a cell: one pass of mini-batches, and one for the labels."""
    from sklearn.cluster import MiniBatchKMeans

    store = arcs(folder, n)
    samples = open_samples(store)
    started = time.perf_counter()
    model = MiniBatchKMeans(CLUSTERS, random_state=0)
    for block in _blocks(samples):
        model.partial_fit(block)
    labels = np.concatenate([model.predict(block) for block in _blocks(samples)])
    return _found(store, labels, time.perf_counter() - started)


def _blocks(samples: Any) -> Iterator[Any]:
    for start in range(0, samples.n_samples, STEP):
        yield samples.block(start, min(start + STEP, samples.n_samples))


def _found(store: str, labels: np.ndarray, seconds: float) -> dict[str, Any]:
    scans = {"seconds": seconds, "scans": seconds / _scan_seconds(store)}
    return facts(store) | scans | clustering(np.asarray(open_class_labels(store)), labels)
