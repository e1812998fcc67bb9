"""Part ``costs`` of ``columns``: the time of ``scale="auto"`` against None, and reads of the store."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import Data, facts, fit, sweeps_of, turns, written_once
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result
from mmcnb.datasets import make_block
from mmcnb.stores import create_dense_store

NONE = "none"
STANDARD = "standard"
AUTO = "auto"
SCALES = {NONE: None, STANDARD: STANDARD, AUTO: AUTO}
MEMORY = "in memory"
STORE = "in a store"
CLUSTERS = 5
TURNS = 3
BLOCK = 65_536
MEMORY_SHAPE = (20_000, 100)
STORE_COLUMNS = 50
STORE_ROWS = 10**6
QUICK_STORE_ROWS = 10**5
DECADES = 5  # range of the units, in powers of ten


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield rows in memory, and rows in a store."""
    rows, columns = MEMORY_SHAPE
    yield Run(
        "units",
        MEMORY,
        0,
        settings={"rows": min(rows, options.rows or rows), "columns": columns},
    )
    rows = options.rows or options.pick(STORE_ROWS, QUICK_STORE_ROWS, QUICK_STORE_ROWS)
    yield Run("units", STORE, 0, settings={"rows": rows, "columns": STORE_COLUMNS})


def compute(run: Run) -> dict[str, Any]:
    """Measure fits with "auto" and with None in turns; the first turn compiles."""
    rows = run.settings["rows"]
    columns = run.settings["columns"]
    X: Any
    if run.method == STORE:
        write = partial(write_units, rows=rows, columns=columns)
        X = written_once(run.folder, f"units-{rows}", write)
    else:
        X = block_of_units(0, rows, columns).X
    plain = estimator(FRONT_DOOR, CLUSTERS, scale=None, random_state=run.seed)
    auto = estimator(FRONT_DOOR, CLUSTERS, scale=AUTO, random_state=run.seed)
    seconds = turns({NONE: partial(fit, plain, X), AUTO: partial(fit, auto, X)}, TURNS)
    return facts(X) | {
        "seconds": seconds[AUTO],
        "none_seconds": seconds[NONE],
        "ratio": seconds[AUTO] / seconds[NONE],
        "reads": sweeps_of(auto).get("reads", np.nan),
        "none_reads": sweeps_of(plain).get("reads", np.nan),
    }


def block_of_units(start: int, stop: int, columns: int) -> Data:
    """Draw rows of blobs with columns in units of very different sizes.

    Every second column has a long tail.
    """
    X, y = make_block(
        "blobs", start, stop, columns, n_clusters=CLUSTERS, random_state=0
    )
    X[:, 1::2] = np.exp(X[:, 1::2] / 4)
    return Data("units", X * np.logspace(0, DECADES, columns, dtype=X.dtype), y)


def write_units(path: Path, rows: int, columns: int) -> None:
    """Write such rows to a store, block by block."""
    with create_dense_store(path, columns, "float32") as store:
        for start in range(0, rows, BLOCK):
            block = block_of_units(start, min(start + BLOCK, rows), columns)
            store.append(block.X, y=block.y)


def tables(frame: pd.DataFrame) -> Result:
    """Return the ratio of times, and whether both fits read their rows equally often."""
    frame = frame[frame["status"] == OK]
    frame = frame.assign(**{"equal reads": frame["reads"] == frame["none_reads"]})
    columns = [
        "method",
        "n",
        "d",
        "none_seconds",
        "seconds",
        "ratio",
        "none_reads",
        "reads",
        "equal reads",
    ]
    return Result({"columns-costs": frame[columns]})
