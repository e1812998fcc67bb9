"""MNIST 0-4: every kernel alone and together on all rows, and the default from a store, in linear storage."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import Data, Goal, Options, say, temporary_folder
from benchmarks._mkc_data import KMEANS, METHODS, MKC, MNIST, OURS, SETS, load_set, published, scores
from benchmarks._mkc_fits import (
    FREE,
    PAPER,
    at_point,
    best_point,
    best_rows,
    grid_fits,
    kmeans_fits,
    measure,
    rival_fits,
    weights_table,
)
from benchmarks._watch import run_and_watch
from mmcnb.samples import create_dense_store

SUBSET, QUICK_ROWS = 1000, 400
MIB = 2**20
SLACK = 1.0  # per cent
MEMORY = "default, from a store"


def mnist(options: Options) -> tuple[dict[str, pd.DataFrame], list[Goal]]:
    """Table 2's last line; the default from a store, its peak memory and its time beside k-means."""
    data = load_set(MNIST, options, QUICK_ROWS if options.quick else None)
    say(f"mnist: {len(data.y):,} rows")
    rows = [*by_classes(data, options), *rival_fits(data, PAPER, range(1))]
    rows += kmeans_fits(data, FREE, range(1))
    say("mnist: the default, from a store")
    stored = from_store(data, options)
    fits = pd.DataFrame([*rows, stored])
    best = best_rows(fits)
    best["n"] = best["n"].astype(int)
    order = best["method"].map({method: place for place, method in enumerate(METHODS)})
    best = best.iloc[np.argsort(order, kind="stable")]
    known = pd.DataFrame([published(MNIST, method) for method in best["method"]], index=best.index)
    table = best.drop(columns="weights").join(known.drop(columns="thesis accuracy"))
    frames = {"mkc-mnist-fits": fits, "mkc-mnist": table, "mkc-mnist-weights": weights_table(best)}
    return frames, goals_of(table)


def by_classes(data: Data, options: Options) -> list[dict[str, Any]]:
    """All rows, with landmarks, at the parameters that are best by the classes of a few rows."""
    few = load_set(MNIST, options, min(SUBSET, len(data.y)))
    found = grid_fits(few, 0)
    rows = []
    for method in OURS:
        point = best_point(found[method])
        say(f"mnist: {method} at {point}")
        rows.append(measure(data, PAPER, method, str(point), at_point(data, point, 0), 0))
    return rows


def from_store(data: Data, options: Options) -> dict[str, Any]:
    """The default, fitted to a Zarr store by a process whose memory is watched."""
    with temporary_folder(options) as folder:
        store, labels = folder / "mnist.zarr", folder / "labels.zarr"
        with create_dense_store(store, data.X.shape[1], data.X.dtype) as writer:
            writer.append(data.X, data.y)
        command = [sys.executable, "-m", "benchmarks._fit_mkc", str(store), str(labels)]
        report, peak = run_and_watch([*command, str(SETS[MNIST].n_clusters)])
        found = scores(data.y, stored_labels(labels))
    facts = {"dataset": MNIST, "n": len(data.y), "protocol": FREE, "method": MKC, "parameters": MEMORY}
    weights = "; ".join(f"{name}: {weight:.2f}" for name, weight in report["weights"].items())
    return facts | {
        "seed": 0,
        **found,
        "seconds": report["seconds"],
        "weights": weights,
        "peak MiB": peak / MIB,
    }


def stored_labels(path: Path) -> np.ndarray:
    """Labels that a fit has written."""
    import zarr

    return np.asarray(zarr.open_array(str(path), mode="r")[:])


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """MKC within a point of what was published, and of the best of the kernels alone."""
    rows = table.set_index(["protocol", "method"])
    ours = rows.loc[(PAPER, MKC), "accuracy"]
    single = max(rows.loc[(PAPER, method), "accuracy"] for method in OURS if method != MKC)
    bounds = {"published": rows.loc[(PAPER, MKC), "published accuracy"], "best kernel alone": single}
    goals = [
        Goal(f"{MNIST}: MKC beside {what}", ours, round(bound - SLACK, 2), "%", at_least=True)
        for what, bound in bounds.items()
    ]
    ratio = rows.loc[(FREE, MKC), "seconds"] / rows.loc[(FREE, KMEANS), "seconds"]
    return [*goals, Goal(f"{MNIST}: seconds of MKC in those of KMeans(5, n_init=10)", ratio, 1.0)]
