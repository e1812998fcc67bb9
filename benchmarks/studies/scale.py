"""A hundred million rows on one machine, and the predicted time of a cluster for more rows.

``python -m benchmarks scale [--quick] [--rows N] [--part NAME ...]`` has four
sections:

machine  ``mmcnb fit`` of ten half circles in 50 columns within 1 GiB, with labels: the
         default, and `UnsupervisedRLS`, which needs no graph. Each fit is killed after
         a fraction of its planned time, and the same command resumes it
cluster  `UnsupervisedRLS` and `SparseKernelMMC` on a tenth and on a hundredth of these
         rows, with threads and with one, two and, on four cores, four Dask workers of
         one thread, which share the memory of the machine: seconds, and MiB that the
         workers send per pass. A model of the cost is fitted to the times with one
         worker, and predicts the times with two
beyond   up to 10^10 rows on up to 1,000 workers, computed from constants that are
         measured here: time, memory, and the part that takes longest. A fit by eight
         local processes, of rows that they generate, confirms the model
labels   a hundred million rows of three kinds, labelled by a fitted default: seconds,
         beside a vote on every row

The cost in the model has a constant part, the search on a sample, and a part that is
proportional to rows / workers. The model assumes that the storage serves all workers
equally fast, and that no worker is lost.
"""

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import zarr

import mmcnb
from benchmarks.methods import FRONT_DOOR, LEAST_SQUARES, SKMMC, estimator
from benchmarks.protocol import (
    best_bare_scan,
    blocks_of,
    clustering,
    compile_seconds,
    of_store,
    run_and_watch,
    sweeps_of,
    timed,
    written_once,
)
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _beyond, _label_costs
from benchmarks.studies._beyond import cost_model
from benchmarks.tables import Goal, Result, goals_of
from mmcnb.datasets import write_synthetic

ARCS = 10
COLUMNS = 50
ROWS = 10**8
QUICK_ROWS = 10**6
SMOKE_ROWS = 3000
LIMIT = "1GiB"
LIMIT_MIB = 1024
LEAST_ARI = 0.95
MOST_SCANS = {FRONT_DOOR: 60, LEAST_SQUARES: 12}
VERB = {FRONT_DOOR: "maximum-margin-clustering", LEAST_SQUARES: "unsupervised-rls"}
# Fraction of the planned time, which is too long, after which the first attempt is
# killed.
MIDDLE = 0.3
WARM_UP_ROWS = 5000
SCANS = 3
# fractions of the rows to which the model of the cost is fitted, and on which it is
# tested
SMALLER = (
    100,
    10,
)
# more workers than cores would share the cores
WORKERS = (
    0,
    1,
    2,
    *[4][: (os.cpu_count() or 1) >= 4],
)
MOST_OFF = 0.25  # largest error relative to the measured time with two workers
MIB = 2**20


def store_of(run: Run) -> str:
    """Return the rows, which are written once."""
    rows = run.parameters["rows"]

    def write(path: Path) -> None:
        write_synthetic("arcs", path, rows, COLUMNS, 0, n_clusters=ARCS)

    return written_once(run.folder, f"arcs-{rows}", write)


# -- one machine -----------------------------------------------------------------------


@frame_of_runs
def grid_of_machine(options: Options) -> Runs:
    """Yield the fits of all rows."""
    rows = options.rows or options.pick(ROWS, QUICK_ROWS, SMOKE_ROWS)
    for seed, method in product(options.repeats(1), (LEAST_SQUARES, FRONT_DOOR)):
        yield Run("arcs", method, seed, parameters={"rows": max(rows, SMOKE_ROWS)})


def machine(run: Run) -> dict[str, Any]:
    """Measure a fit that is killed and resumed, and a bare scan of the same rows."""
    store = store_of(run)
    folder = Path(run.folder)
    warm_up = next(blocks_of(store, min(run.parameters["rows"], WARM_UP_ROWS)))
    # compiled into the cache on disk
    compiled = compile_seconds(warm_up, estimator(run.method, ARCS))
    name = f"{VERB[run.method]}-{run.parameters['rows']}-{run.seed}"
    checkpoint = folder / f"{name}.checkpoint"
    labels = folder / f"{name}.labels.zarr"
    options = [
        "--method",
        VERB[run.method],
        "--n-clusters",
        ARCS,
        "--memory-limit",
        LIMIT,
    ]
    options += [
        "--random-state",
        run.seed,
        "--model",
        folder / f"{name}.model",
        "--labels",
        labels,
    ]
    options += ["--checkpoint", checkpoint, "--overwrite", "--json"]
    words = [sys.executable, "-m", "mmcnb", "fit", store, *map(str, options)]
    planned = estimator(run.method, ARCS, memory_limit=LIMIT).plan(store).seconds
    lost = killed_after(words, MIDDLE * planned)
    report, polled = run_and_watch(words)
    model = mmcnb.load(folder / f"{name}.model")
    seconds = report["fit_seconds"] + report["labels_seconds"]
    scan = best_bare_scan(store, SCANS)
    return of_store(store, zarr.open_array(str(labels), mode="r")[:], clustering) | {
        "fit_seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "killed_after": lost,
        "resumed": report["resumed"],
        # after the kill, and without labelling
        "reads": sweeps_of(model).get("reads", np.nan),
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
        "scan_seconds": scan,
        "scans": (seconds + lost) / scan,
        "compile_seconds": compiled,
    }


def killed_after(command: list[str], seconds: float) -> float:
    """Return the seconds after which a command was killed; 0 if it ended before."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return time.perf_counter() - started
    return 0.0


def tables_of_machine(frame: pd.DataFrame) -> Result:
    """Return a row for each fit, with goals for agreement, memory and bare scans."""
    frame = frame[frame["status"] == "ok"]
    columns = [
        "ari",
        "fit_seconds",
        "label_seconds",
        "killed_after",
        "resumed",
        "reads",
        "peak_mib",
    ]
    columns += ["scan_seconds", "scans"]
    table = frame.groupby(["method", "rows"], sort=False)[columns].mean(
        numeric_only=True
    )
    by_method = table.reset_index().set_index("method")
    goals = [
        *goals_of(
            by_method["ari"],
            LEAST_ARI,
            "machine: {}, agreement with the classes",
            at_least=True,
        ),
        *goals_of(by_method["peak_mib"], LIMIT_MIB, "machine: {}, peak memory", "MiB"),
        *goals_of(by_method["scans"], MOST_SCANS, "machine: {}, time in bare scans"),
    ]
    return Result({"scale-machine": table.reset_index()}, goals)


# -- a cluster -------------------------------------------------------------------------


@frame_of_runs
def grid_of_cluster(options: Options) -> Runs:
    """Yield two numbers of rows, with threads and with workers."""
    most = max(
        options.rows or options.pick(ROWS, QUICK_ROWS, 10 * SMOKE_ROWS), 10 * SMOKE_ROWS
    )
    methods = (LEAST_SQUARES, SKMMC)
    for seed, method, part, workers in product(
        options.repeats(1), methods, SMALLER, WORKERS
    ):
        clusters = 2 if method == SKMMC else ARCS
        parameters = {"rows": most // part, "workers": workers}
        yield Run(
            "arcs",
            method,
            seed,
            parameters=parameters,
            settings={"n_clusters": clusters},
        )


def cluster(run: Run) -> dict[str, Any]:
    """Measure the second fit by one thread, or by workers with one thread each.

    The routines are compiled in the first fit.
    """
    from distributed import Client, LocalCluster

    store = store_of(run)
    workers = run.parameters["workers"]
    model = estimator(run.method, run.settings["n_clusters"], random_state=run.seed)
    if not workers:
        model.set_params(n_jobs=1)
        seconds = [timed(model, store)["seconds"] for _ in range(2)]
        return of_store(store, np.asarray(model.labels_)) | {"seconds": seconds[1]}
    share: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": None,
    }
    # Dask's default is a share of the memory for each core
    share["memory_limit"] = psutil.virtual_memory().total // workers
    with LocalCluster(**share) as machines, Client(machines) as client:
        timed(model.set_params(engine=client), store)
        before = bytes_sent(client)
        second = timed(model, store)["seconds"]
        sent = (bytes_sent(client) - before) / MIB
        passes = sweeps_of(model)["reads"] + sweeps_of(model)["sweeps"]
        measures = {"seconds": second, "sent_mib": sent, "mib_a_pass": sent / passes}
        return of_store(store, np.asarray(model.labels_)) | measures


def bytes_sent(client: Any) -> int:
    """Return the bytes of results that the workers of a cluster have sent so far."""
    return sum(
        client.run(
            lambda dask_worker: dask_worker.transfer_outgoing_bytes_total
        ).values()
    )


def tables_of_cluster(frame: pd.DataFrame) -> Result:
    """Return seconds beside one thread, and the prediction for two workers.

    The goal is for the error of the prediction.
    """
    frame = frame[frame["status"] == "ok"]
    keys = ["method", "rows", "workers"]
    measures = [name for name in ("seconds", "sent_mib", "mib_a_pass") if name in frame]
    table = frame.groupby(keys, sort=False)[measures].median().reset_index()
    off: list[dict[str, Any]] = []
    goals: list[Goal] = []
    for method, part in table.groupby("method", sort=False):
        one = part[part["workers"] == 1].sort_values("rows")
        fixed, each = cost_model(one["rows"].to_numpy(), one["seconds"].to_numpy())
        two = part[(part["workers"] == 2) & (part["rows"] == part["rows"].max())].iloc[
            0
        ]
        predicted = fixed + each * two["rows"] / 2
        off.append(
            {
                "method": method,
                "fixed": fixed,
                "a million rows": 1e6 * each,
                "predicted": predicted,
            }
        )
        off[-1] |= {
            "measured": two["seconds"],
            "off": abs(predicted / two["seconds"] - 1),
        }
        goals.append(Goal(f"cluster: {method}, model off by", off[-1]["off"], MOST_OFF))
    parts = {
        "scale-cluster": table,
        "scale-model": pd.DataFrame(off),
    }
    return Result(parts, goals)


SECTIONS = {
    "machine": Section(grid_of_machine, machine, tables_of_machine),
    "cluster": Section(grid_of_cluster, cluster, tables_of_cluster),
    "beyond": Section(_beyond.grid, _beyond.compute, _beyond.tables),
    "labels": Section(_label_costs.grid, _label_costs.compute, _label_costs.tables),
}
