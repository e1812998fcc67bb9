"""Growth: time, error and peak memory on two rings of 10⁴ to 10⁷ rows in a Zarr store.

``python -m benchmarks growth [--quick] [--rows N]`` writes rings with 32 features to a store and runs
``mmcnb fit`` on it within 512 MiB in a process of its own. The seconds are from its report, the peak resident
memory is that of the process and its children (Linux). k-means beside it is scikit-learn's MiniBatchKMeans,
given the same store a block at a time. ``--quick`` stops at 10⁶ rows.
"""

import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import MINIBATCH, SKMMC, estimator
from benchmarks.protocol import ERROR, facts, fit_store, store_clustering, store_once
from benchmarks.run import Options, Run, frame_of_runs
from benchmarks.tables import Goal, Result, goals_of, log_slope, over_seeds
from mmcnb.samples import open_samples

FEATURES = 32
MEMORY_LIMIT, SLACK = 512, 150  # MiB
MOST_ROWS, QUICK_ROWS, SMOKE_ROWS = 10**7, 10**6, 2000
MEMORY_ROWS = 10**6  # from here on the store is larger than what is left of the limit
WARM_UP_ROWS = 4096
PEER_ROWS = 2**15
MOST_SLOPE = 1.1


@frame_of_runs
def grid(options: Options) -> Iterator[Run]:
    """Ours and k-means on the same store, size by size."""
    for n, seed, method in product(sizes(options), options.repeats(1), (SKMMC, MINIBATCH)):
        yield Run("rings", method, seed, {"rows": n})


def sizes(options: Options) -> list[int]:
    """Numbers of rows: the largest, and tenths of it down to 10⁴ (or to one tenth of fewer rows)."""
    most = options.rows or (QUICK_ROWS if options.quick else MOST_ROWS)
    if options.smoke:
        most = max(most, SMOKE_ROWS)
    return [n for n in (most // 1000, most // 100, most // 10, most) if n >= min(10**4, most // 10)]


def compute(run: Run) -> dict[str, Any]:
    """``mmcnb fit`` in a process that is watched, or k-means of mini-batches."""
    compiled = {"compile_seconds": _warm_up(run.folder)} if run.method == SKMMC else {}
    store = _rings(run.folder, run.parameters["rows"], run.seed)
    found, labels = _fit(store) if run.method == SKMMC else _fit_by_blocks(store)
    return found | facts(store) | store_clustering(store, labels) | compiled


def _rings(folder: str, rows: int, seed: int = 0) -> str:
    return store_once(folder, "rings", rows=rows, features=FEATURES, random_state=seed)


@lru_cache(maxsize=1)
def _warm_up(folder: str) -> float:
    """Seconds of a first small fit, which compiles every kernel into the cache on disk."""
    store, started = _rings(folder, WARM_UP_ROWS), time.perf_counter()
    _fit(store)
    return time.perf_counter() - started


def _fit(store: str) -> tuple[dict[str, Any], np.ndarray]:
    measures, labels = fit_store(store, 0, f"{MEMORY_LIMIT}MiB")
    return {name: measures[name] for name in ("seconds", "label_seconds", "passes", "peak_mib")}, labels


def _fit_by_blocks(store: str) -> tuple[dict[str, Any], np.ndarray]:
    samples, peer = open_samples(store), estimator(MINIBATCH, n_init=10, random_state=0)
    blocks = [
        (start, min(start + PEER_ROWS, samples.n_samples)) for start in range(0, samples.n_samples, PEER_ROWS)
    ]
    started = time.perf_counter()
    for block in blocks:
        peer.partial_fit(samples.block(*block))
    fitted = time.perf_counter()
    labels = np.concatenate([peer.predict(samples.block(*block)) for block in blocks])
    return {"seconds": fitted - started, "label_seconds": time.perf_counter() - fitted}, labels


def tables(frame: pd.DataFrame, options: Options) -> Result:
    """Means of each size; goals: slope of time over all sizes and the last two, peak memory of large ones."""
    keys, told = ["dataset", "rows", "method"], ("label_seconds", "passes")
    table = over_seeds(frame, keys, ERROR, *told).drop(columns="rows")
    ours = table[table["method"] == SKMMC]
    goals = [
        Goal(f"rings: slope of time, {name}", log_slope(part["n"], part["seconds"]).value, MOST_SLOPE)
        for name, part in (("all sizes", ours), ("last step", ours.tail(2)))
    ]
    judged = ours[ours["n"] >= min(MEMORY_ROWS, ours["n"].max())].set_index("n")["peak_mib"]
    bounds = dict.fromkeys(judged.index, MEMORY_LIMIT + SLACK)
    goals += goals_of(judged, bounds, "rings, {:,} rows: peak memory", "MiB")
    return Result({"growth": table}, goals)
