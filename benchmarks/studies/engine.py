"""The engine in whole fits: within 1 GiB, beside k-means and other libraries, and with Dask.

``python -m benchmarks engine [--quick] [--part NAME ...]`` has four sections, in which
mmcnb and its peers take turns:

large  ``mmcnb fit`` of two rings and two blobs (32 columns) under 1 GiB: peak memory of
       the process tree, time in multiples of a bare scan, reads of the rows
peers  time and error beside k-means with ten starts: a9a, MNIST pairs, extended USPS
others the default, given the number of clusters, beside one start of FAISS and of
       SuperKMeans, MiniBatchKMeans, EVoC, and Leiden with its graph: a9a, an MNIST
       pair, all of MNIST, and blobs in 128 columns around 100 centres. Libraries that
       are not installed are left out
dask   a fit on 1 and 2 worker processes beside threads: time and labels

Ratios are ratios of medians. ``--quick`` uses small sizes.
"""

import hashlib
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks import libraries, protocol
from benchmarks.methods import FRONT_DOOR, KMEANS, MINIBATCH, SKMMC, estimator
from benchmarks.protocol import (
    ERROR,
    LABEL_FREE,
    MNIST_PAIRS,
    PAPER,
    Data,
    load_rows,
    scored,
)
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _skmmc
from benchmarks.studies.peers import installed
from benchmarks.tables import Goal, Result, goals_of, measures_of, over_seeds, ratio_to

FEATURES = 32
LARGE_ROWS = 2 * 10**7
QUICK_LARGE_ROWS = 10**5
DASK_ROWS = 2 * 10**6
QUICK_DASK_ROWS = 5 * 10**4
LIMIT = 1024  # MiB
# including two reads at the start
MOST_SCANS = 25
MOST_READS = 6 + 2
# relative widths, as published
GIVEN = {
    "a9a": 2.0,
    **dict.fromkeys(MNIST_PAIRS, 0.5),
    "usps-extended": 0.5,
}
# Largest ratio of the seconds of SKMMC to those of k-means: at the given width, and
# with the defaults.
TIMES = {"a9a": 1.0, **dict.fromkeys(MNIST_PAIRS, 0.5), "usps-extended": 0.1}
AUTO_TIMES = {"a9a": 4.0, **dict.fromkeys(MNIST_PAIRS, 1.5), "usps-extended": 0.3}
QUICK_NAMES = ("a9a", "mnist-1v7")
QUICK_ROWS = 5000
BLOBS = "blobs"
BLOB_ROWS = 50_000
BLOB_COLUMNS = 128
CENTRES = 100
OTHERS_ON = (*QUICK_NAMES, "mnist", BLOBS)
OTHERS = (
    FRONT_DOOR,
    KMEANS,
    MINIBATCH,
    *libraries.ENGINES,
    libraries.EVOC,
    libraries.LEIDEN,
)


# -- larger than memory ----------------------------------------------------------------


@frame_of_runs
def large_grid(options: Options) -> Runs:
    """Yield ``mmcnb fit`` of data larger than its memory limit."""
    rows = options.sized(LARGE_ROWS, QUICK_LARGE_ROWS)
    names = ("rings",) if options.smoke else ("rings", "blobs")
    for name, seed in product(names, options.repeats(1)):
        yield Run(name, SKMMC, seed, settings={"rows": rows})


def large(run: Run) -> dict[str, Any]:
    """Run the command on a store in a watched process, and measure a bare scan."""
    store = _store(run)
    found = protocol.fit_store(
        store,
        run.seed,
        "--method",
        "sparse-kernel-mmc",
        "--memory-limit",
        f"{LIMIT}MiB",
    )
    return found | {"scans": found["seconds"] / protocol.best_bare_scan(store, 3)}


def _store(run: Run) -> str:
    how = {"rows": run.settings["rows"], "features": FEATURES, "random_state": 0}
    return protocol.store_once(run.folder, run.dataset, **how)


def large_tables(frame: pd.DataFrame) -> Result:
    """Return time, memory and reads for each data set."""
    counts = ("scans", "label_seconds", "reads", "sweeps", "gap")
    table = over_seeds(frame, ["dataset", "method"], ERROR, *counts)
    rows = table.set_index("dataset")
    goals = [
        *goals_of(rows["peak_mib"], LIMIT, "large: {}, peak memory", "MiB"),
        *goals_of(rows["scans"], MOST_SCANS, "large: {}, fit", "bare scans"),
        *goals_of(
            rows["reads"],
            MOST_READS,
            "large: {}, reads of the rows",
            "2 of them to begin",
        ),
    ]
    return Result({"engine-large": table}, goals)


# -- beside k-means --------------------------------------------------------------------


@frame_of_runs
def peers_grid(options: Options) -> Runs:
    """Yield k-means with ten starts and SKMMC, turn by turn.

    SKMMC has its defaults, or the width of the papers.
    """
    for name in options.pick(tuple(GIVEN), QUICK_NAMES, QUICK_NAMES[:1]):
        settings = {
            "rows": options.rows_of(name, QUICK_ROWS if options.quick else None)
        }
        for seed in options.repeats(1 if name == "usps-extended" else 3):
            yield Run(name, KMEANS, seed, parameters={"n_init": 10}, settings=settings)
            yield Run(name, SKMMC, seed, settings=settings)
            yield Run(
                name,
                SKMMC,
                seed,
                parameters={"width": GIVEN[name]},
                protocol=PAPER,
                settings=settings,
            )


def peers_tables(frame: pd.DataFrame) -> Result:
    """Return time and error beside k-means, and reads."""
    table = over_seeds(frame, ["dataset", "protocol", "method"], ERROR, "reads")
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    ours = table[table["method"] == SKMMC]
    times = ours.set_index(["protocol", "dataset"])["of k-means"]
    reads = ours.groupby("dataset")["reads"].max()
    title = 'peers: {}, time with gamma="auto"'
    goals = goals_of(times.get(LABEL_FREE, {}), AUTO_TIMES, title, "of k-means")
    title = "peers: {}, time at a given gamma"
    goals += goals_of(times.get(PAPER, {}), TIMES, title, "of k-means")
    goals += goals_of(reads, MOST_READS, "peers: {}, reads of the rows")
    return Result({"engine-peers": table}, goals)


# -- beside other libraries ------------------------------------------------------------


@frame_of_runs
def others_grid(options: Options) -> Runs:
    """Yield all installed methods, turn by turn."""
    for name in options.pick(OTHERS_ON, QUICK_NAMES, QUICK_NAMES[:1]):
        settings = {
            "rows": options.rows_of(name, QUICK_ROWS if options.quick else None)
        }
        for seed, method in product(options.repeats(3), installed(OTHERS)):
            yield Run(name, method, seed, settings=settings)


def others(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, with its number of clusters."""
    data = (
        blobs()
        if run.dataset == BLOBS
        else load_rows(run.dataset, run.settings["rows"])
    )
    k = np.unique(data.y).size
    given = {"n_init": 10} if run.method == KMEANS else {}
    compiled = libraries.first_seconds(run.method)
    found = scored(data, estimator(run.method, k, random_state=run.seed, **given))
    return found | {"k": k, "compile_seconds": compiled or found["compile_seconds"]}


@cache
def blobs() -> Data:
    """Draw blobs in 128 columns around 100 centres.

    The centres are as far apart as neighbours in embeddings often are.
    """
    random = np.random.default_rng(0)
    centres = random.normal(size=(CENTRES, BLOB_COLUMNS))
    y = random.integers(CENTRES, size=BLOB_ROWS)
    X = centres[y] + random.normal(size=(BLOB_ROWS, BLOB_COLUMNS))
    return Data(BLOBS, X.astype(np.float32), y)


def others_tables(frame: pd.DataFrame) -> Result:
    """Return time, relative to k-means with ten starts, and ARI."""
    table = over_seeds(frame, ["dataset", "method"], "ari", "error")
    table["of k-means"] = ratio_to(table, table[table["method"] == KMEANS])
    return Result({"engine-others": table}, [])


# -- on a cluster ----------------------------------------------------------------------


@frame_of_runs
def dask_grid(options: Options) -> Runs:
    """Yield the same fit by threads and by worker processes."""
    settings = {"rows": options.sized(DASK_ROWS, QUICK_DASK_ROWS)}
    for seed, workers in product(
        options.repeats(1), (0, 2) if options.quick else (0, 1, 2)
    ):
        yield Run(
            "rings", SKMMC, seed, parameters={"workers": workers}, settings=settings
        )


def dask(run: Run) -> dict[str, Any]:
    """Fit by worker processes, or by threads if their number is 0."""
    from distributed import Client, LocalCluster

    store = _store(run)
    workers = run.parameters["workers"]
    if not workers:
        return _second_fit(mmcnb.SparseKernelMMC(random_state=run.seed), store)
    share = {"n_workers": workers, "threads_per_worker": max(1, 2 // workers)}
    with (
        LocalCluster(**share, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        return _second_fit(
            mmcnb.SparseKernelMMC(random_state=run.seed, engine=client), store
        )


def _second_fit(model: Any, store: str) -> dict[str, Any]:
    """Measure a second fit, because workers load and compile the kernels in the first one."""
    first, second = (protocol.timed(model, store)["seconds"] for _ in range(2))
    labels = np.asarray(model.labels_)
    seconds = {"seconds": second, "compile_seconds": max(0.0, first - second)}
    digest = hashlib.sha256(labels.tobytes()).hexdigest()
    return protocol.of_store(store, labels) | seconds | {"labels_digest": digest}


def dask_tables(frame: pd.DataFrame) -> Result:
    """Return the time beside threads, and whether the labels are equal."""
    by_threads = frame[frame["workers"] == 0].set_index("seed")
    digests = frame["seed"].map(by_threads["labels_digest"])
    is_same = frame["labels_digest"] == digests
    table = measures_of(frame.assign(same_labels=is_same))
    table = table.drop(columns="labels_digest")
    table["of threads"] = ratio_to(table, by_threads.reset_index(), "seed")
    goal = Goal(
        "dask: runs whose labels equal those of threads",
        100 * float(is_same.mean()),
        100,
        unit="%",
        at_least=True,
    )
    return Result({"engine-dask": table}, [goal])


SECTIONS = {
    "large": Section(large_grid, large, large_tables),
    "peers": Section(peers_grid, _skmmc.compute, peers_tables),
    "others": Section(others_grid, others, others_tables),
    "dask": Section(dask_grid, dask, dask_tables),
}
