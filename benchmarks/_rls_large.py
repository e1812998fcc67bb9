"""Ten arcs that are larger than the memory of the fit: memory, reads and time, with k-means beside."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import Goal, Options, say, temporary_folder
from benchmarks._passes import bare_scans, turns
from benchmarks._watch import run_and_watch
from mmcnb.samples import open_class_labels, open_samples
from mmcnb.synthetic import write_synthetic

SIZE = {"rows": 10**7, "quick_rows": 10**6}
FEATURES, CLUSTERS = 50, 10
MIB, LIMIT = 2**20, 1024
MOST_READS = 4 + 1  # and one more for the labels
LEAST_ARI = 0.95
STEP = 2**16
KMEANS_ROWS = 100_000


def large(options: Options) -> tuple[dict[str, pd.DataFrame], list[Goal]]:
    """`UnsupervisedRLS` of a store in a process that is watched, and k-means of the same store."""
    n = SIZE["quick_rows"] if options.quick else SIZE["rows"]
    n = min(n, options.rows) if options.rows else n
    with temporary_folder(options) as folder:
        store = folder / "arcs.zarr"
        say(f"large: writing {n:,} rows in {CLUSTERS} arcs")
        write_synthetic("arcs", store, n, FEATURES, n_clusters=CLUSTERS)
        say("large: a bare scan")
        scan = min(turns(bare_scans(str(store)), 1).values())
        y = np.asarray(open_class_labels(str(store)))
        say("large: the fit")
        rows = [_ours(store, y)]
        say("large: k-means")
        rows += [_kmeans_of_a_sample(store, y), _minibatches(store, y)]
    table = pd.DataFrame(rows)
    table.insert(0, "dataset", "arcs")
    table["scan seconds"], table["scans"] = scan, table["seconds"] / scan
    ours = table.iloc[0]
    goals = [
        Goal("large: peak memory of the processes", ours["peak MiB"], LIMIT, "MiB"),
        Goal("large: reads of the rows, with the labels", ours["reads"], MOST_READS),
        Goal("large: ARI", ours["ari"], LEAST_ARI, at_least=True),
    ]
    return {"rls-large": table}, goals


def _ours(store: Path, y: np.ndarray) -> dict[str, Any]:
    labels = store.with_suffix(".labels.zarr")
    module = [sys.executable, "-m", "benchmarks._fit_rls"]
    report, peak = run_and_watch([*module, str(store), str(labels), str(CLUSTERS), f"{LIMIT}MiB"])
    import zarr

    found = np.asarray(zarr.open_array(str(labels), mode="r")[:])
    return _row(y, found, "UnsupervisedRLS", f"memory_limit={LIMIT}MiB", report["fit_seconds"]) | {
        "label seconds": report["label_seconds"],
        "reads": report["reads"],
        "peak MiB": peak / MIB,
    }


def _kmeans_of_a_sample(store: Path, y: np.ndarray) -> dict[str, Any]:
    from sklearn.cluster import KMeans

    rows = min(KMEANS_ROWS, len(y))
    samples = open_samples(str(store))
    started = time.perf_counter()
    model = KMeans(CLUSTERS, n_init=10, random_state=0).fit(samples.block(0, rows))  # rows are shuffled
    found = np.concatenate([model.predict(block) for block in _blocks(samples)])
    return _row(y, found, "k-means of a sample", f"n_init=10, {rows:,} rows", time.perf_counter() - started)


def _minibatches(store: Path, y: np.ndarray) -> dict[str, Any]:
    from sklearn.cluster import MiniBatchKMeans

    samples = open_samples(str(store))
    started = time.perf_counter()
    model = MiniBatchKMeans(CLUSTERS, random_state=0)
    for block in _blocks(samples):
        model.partial_fit(block)
    found = np.concatenate([model.predict(block) for block in _blocks(samples)])
    return _row(y, found, "MiniBatchKMeans", "one pass", time.perf_counter() - started)


def _blocks(samples: Any) -> Any:
    return (
        samples.block(start, min(start + STEP, samples.n_samples))
        for start in range(0, samples.n_samples, STEP)
    )


def _row(y: np.ndarray, labels: np.ndarray, method: str, parameters: str, seconds: float) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    ari = float(adjusted_rand_score(y, labels))
    return {"n": len(y), "method": method, "parameters": parameters, "ari": ari, "seconds": seconds}
