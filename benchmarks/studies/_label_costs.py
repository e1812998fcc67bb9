"""Part ``labels`` of ``scale``: a fitted default labels all rows of a large store.

The model has 20,000 nodes. Rows deep in a cluster are labelled without a vote. For "all
vote", the nodes vote on every row, of the first hundredth of the rows. "differ" is the
share of these rows whose label then differs, and "ari" is the index with the known
classes. "scans" is the time in units of a bare read of the store.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import best_bare_scan, load_rows, written_once
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result, goals_of
from mmcnb import open_samples
from mmcnb.stores import create_dense_store

CLUSTERS = 10
COLUMNS = 50
BLOCK = 2**17
ROWS = 10**8
QUICK_ROWS = 10**6
SMOKE_ROWS = 20_000
# Largest seconds for 10^8 rows on two cores.
MOST = {
    "arcs": 120.0,
    "digits": 300.0,
    "overlapping": 300.0,
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield three kinds of rows: clusters far apart, digits, and overlapping clusters."""
    rows = options.sized(ROWS, options.pick(QUICK_ROWS, QUICK_ROWS, SMOKE_ROWS))
    kinds = ("arcs", "overlapping") if options.smoke else tuple(MOST)
    for seed, kind in product(options.repeats(1), kinds):
        yield Run(kind, FRONT_DOOR, seed, settings={"rows": rows})


def blocks(kind: str, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows of a kind and their classes in blocks."""
    random = np.random.default_rng(0)
    if kind == "digits":
        from sklearn.decomposition import PCA

        digits = load_rows("mnist")
        known = PCA(COLUMNS, random_state=0).fit_transform(digits.X)
        spread = 0.1 * known.std(axis=0)
    centres = random.normal(size=(CLUSTERS, COLUMNS))
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        noise = random.normal(size=(size, COLUMNS))
        y = random.integers(CLUSTERS, size=size)
        if kind == "digits":
            chosen = random.integers(len(known), size=size)
            X = known[chosen] + spread * noise
            y = digits.y[chosen]
        elif kind == "arcs":
            angles = np.pi * random.random(size)
            X = 0.1 * noise + 9 * centres[y]
            X[:, 0] += 3 * np.cos(angles)
            X[:, 1] += 3 * np.sin(angles)
        else:
            X = 0.8 * centres[y] + noise
        yield X.astype(np.float32), y


def compute(run: Run) -> dict[str, Any]:
    """Measure a fit of the first rows, the labelling of all rows, and a bare read."""
    rows = run.settings["rows"]

    def write(path: Path) -> None:
        with create_dense_store(path, COLUMNS, "float32") as store:
            for block, _ in blocks(run.dataset, rows):
                store.append(block)

    store = written_once(run.folder, f"{run.dataset}-{rows}", write)
    some, y = next(blocks(run.dataset, rows))
    model = estimator(FRONT_DOOR, CLUSTERS, random_state=run.seed).fit(some)
    model.predict(some)  # compiles the routines
    out = Path(store).with_name("labels.zarr")
    shutil.rmtree(out, ignore_errors=True)
    started = time.perf_counter()
    model.predict(store, out=out)
    seconds = time.perf_counter() - started
    few = some[: max(rows // 100, 1000)]
    labels = model.predict(few)
    graph = model.model_.graph
    points = graph.axes(model.model_.scaled(open_samples(few)).block(0, len(few)))
    without_vote = float(np.mean(graph.clusters_without_vote(points) >= 0))
    model.model_ = replace(model.model_, graph=replace(graph, is_deep=None))
    started = time.perf_counter()
    all_voted = model.predict(few)
    voted = (time.perf_counter() - started) / len(few)
    scan = best_bare_scan(store, 3)
    return {
        "rows": rows,
        "seconds": seconds,
        "us_a_row": 1e6 * seconds / rows,
        "all vote, us": 1e6 * voted,
        "without a vote": without_vote,
        "differ": float(np.mean(all_voted != labels)),
        "ari": adjusted_rand_score(y[: len(few)], labels),
        "ari, all vote": adjusted_rand_score(y[: len(few)], all_voted),
        "scans": seconds / scan,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return a row for each kind; the goals for 10^8 rows are computed from the seconds per row."""
    columns = [
        "rows",
        "seconds",
        "us_a_row",
        "all vote, us",
        "without a vote",
        "differ",
    ]
    columns += ["ari", "ari, all vote", "scans"]
    found = (
        frame[frame["status"] == "ok"].groupby("dataset", sort=False)[columns].median()
    )
    goals = goals_of(100 * found["us_a_row"], MOST, "labels: {}, of 10^8 rows", "s")
    return Result({"scale-labels": found.reset_index()}, goals)
