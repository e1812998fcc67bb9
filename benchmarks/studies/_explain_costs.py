"""Part ``costs`` of ``explain``: seconds, reads of the store, and peak memory of an explanation."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import (
    MIB,
    Data,
    bare_scans,
    run_and_watch,
    turns,
    write_rows,
    written_once,
)
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._made import texts
from benchmarks.tables import Goal, Result, goals_of
from mmcnb.datasets import make_block, write_synthetic

GIVEN = "labels given"
PREDICTED = "labels by the model"
GENES = "sparse genes"
MEMORY_LIMIT = 512  # MiB
ROWS = 10**7
QUICK_ROWS = 10**5
COLUMNS = 50
CLUSTERS = 5
FEW_ROWS = 20_000
CELLS = 20_000
QUICK_CELLS = 2000
N_GENES = 20_000
CELL_TYPES = 30
COUNTS = 1000
MOST_READS = 2
MOST_SCANS = 4.0
MOST_SCANS_BESIDE_PREDICT = 3.0
TURNS = 3


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield rows in a store, with and without labels, and sparse rows."""
    rows = options.rows or options.pick(ROWS, QUICK_ROWS, QUICK_ROWS)
    for method in (GIVEN, PREDICTED):
        yield Run("blobs", method, 0, settings={"rows": rows})
    cells = min(options.pick(CELLS, QUICK_CELLS, QUICK_CELLS), options.rows or CELLS)
    yield Run("counts", GENES, 0, settings={"rows": max(cells, 10 * CELL_TYPES)})


def compute(run: Run) -> dict[str, Any]:
    """Measure seconds and reads in this process, and the peak memory of the command in another."""
    rows = run.settings["rows"]
    store, few = rows_of(run)
    limit = f"{MEMORY_LIMIT}MiB"
    k = CELL_TYPES if run.method == GENES else CLUSTERS
    model = estimator(FRONT_DOOR, k, random_state=0, memory_limit=limit).fit(few)
    del model.labels_  # the labels of other rows
    path = Path(store).with_suffix(".model")
    model.save(path)
    labels = None if run.method == PREDICTED else f"{store}/y"
    explain = partial(model.explain, store, labels)
    ways: dict[str, Callable[[], object]] = {"explain": explain}
    if run.method == PREDICTED:
        ways["predict"] = partial(model.predict, store)
    if run.method != GENES:
        ways |= bare_scans(store)
    seconds = turns(ways, 1 if rows > FEW_ROWS * 100 else TURNS)
    command = [sys.executable, "-m", "mmcnb", "explain", str(path), store]
    command += ["--memory-limit", limit, "--json"]
    if labels is not None:
        command += ["--labels", labels]
    _, peak = run_and_watch(command)
    scans = [spent for name, spent in seconds.items() if name.startswith("bare")]
    return {
        "n": rows,
        "d": few.shape[1],
        "seconds": seconds["explain"],
        "predict_seconds": seconds.get("predict", 0.0),
        "scan_seconds": min(scans, default=np.nan),
        "reads": reads_of(explain),
        "peak_mib": peak / MIB,
    }


def rows_of(run: Run) -> tuple[str, Any]:
    """Return the store of a run, and some of its rows in memory."""
    rows = run.settings["rows"]
    if run.method == GENES:
        write = partial(write_genes, rows=rows)
        store = written_once(run.folder, f"counts-{rows}", write)
        return store, genes(min(rows, 2000)).X
    write = partial(
        write_synthetic,
        "blobs",
        n_samples=rows,
        n_features=COLUMNS,
        n_clusters=CLUSTERS,
    )
    store = written_once(run.folder, f"blobs-{rows}", write)
    count = min(rows, FEW_ROWS)
    few, _ = make_block("blobs", 0, count, COLUMNS, n_clusters=CLUSTERS, random_state=0)
    return store, few


def reads_of(work: Any) -> int:
    """Return how many times a call reads the rows, according to the log."""
    logger = logging.getLogger("mmcnb")
    messages = list[str]()
    handler = logging.Handler()
    level = logger.level
    handler.emit = lambda record: (  # type: ignore[method-assign]
        messages.append(record.getMessage())
    )
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        work()
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
    return sum(message.startswith("read ") for message in messages)


def genes(rows: int) -> Data:
    """Generate sparse counts of cells in thirty types."""
    return texts(rows, N_GENES, CELL_TYPES, COUNTS)


def write_genes(path: Path, rows: int) -> None:
    """Write sparse counts to a store."""
    write_rows(genes(rows), path)


def tables(frame: pd.DataFrame) -> Result:
    """Return seconds beyond those of `predict`, in units of a bare read.

    There are goals for seconds, reads and peak memory.
    """
    frame = frame[frame["status"] == OK]
    own = frame["seconds"] - frame["predict_seconds"]
    frame = frame.assign(**{"bare reads": own / frame["scan_seconds"]}).set_index(
        "method"
    )
    most = pd.Series({GIVEN: MOST_SCANS, PREDICTED: MOST_SCANS_BESIDE_PREDICT})
    goals: list[Goal] = goals_of(
        frame["peak_mib"], MEMORY_LIMIT, "explain, {}: peak memory", "MiB"
    )
    goals += goals_of(
        frame["bare reads"].dropna(),
        most,
        "explain, {}: seconds beyond predict, in bare reads",
    )
    goals += goals_of(
        frame["reads"],
        pd.Series({GIVEN: MOST_READS, GENES: MOST_READS}),
        "explain, {}: reads",
    )
    told = [
        "n",
        "d",
        "seconds",
        "predict_seconds",
        "scan_seconds",
        "bare reads",
        "reads",
        "peak_mib",
    ]
    return Result({"explain-costs": frame[told].reset_index()}, goals)
