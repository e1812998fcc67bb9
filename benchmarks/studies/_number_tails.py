"""Part ``tails`` of ``number``: how many of seven clusters with heavy tails are found in many rows."""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import zarr

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result
from mmcnb.metrics import adjusted_rand_index

SHARES = (0.3, 0.2, 0.2, 0.12, 0.1, 0.05, 0.03)  # fractions of the rows
SPREAD = 0.6  # standard deviation of the normal part of each column
DIRECTIONS = 2  # number of directions in which each cluster has tails
BLOCK = 50_000  # number of rows
STUDENT = "Student"
LOG_NORMAL = "log-normal"


class Size(NamedTuple):
    """Numbers of rows and columns, kind of tails, and degrees of freedom of Student's t."""

    rows: int
    columns: int
    tails: str
    freedom: int


SMALL = (
    Size(150_000, 40, STUDENT, 4),
    Size(150_000, 40, LOG_NORMAL, 0),
)
LARGE = Size(3_000_000, 300, STUDENT, 5)
QUICK = Size(30_000, 40, STUDENT, 4)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield 150,000 rows with ten seeds, and three million rows once."""
    sizes = options.pick(SMALL, (QUICK,), (QUICK,))
    for size, seed in product(sizes, options.repeats(10)):
        yield _run(size._replace(rows=min(size.rows, options.rows or size.rows)), seed)
    if options.scale == "full" and LARGE.rows <= (options.rows or LARGE.rows):
        yield _run(LARGE, 0)


def _run(size: Size, seed: int) -> Run:
    return Run("seven clusters", FRONT_DOOR, seed, parameters=size._asdict())


def compute(run: Run) -> dict[str, Any]:
    """Return the number of clusters, the number of clusters below 1 % of the rows, and ARI."""
    size = Size(**run.parameters)
    store = Path(run.folder) / f"tails-{size.rows}-{size.tails}-{run.seed}.zarr"
    y = write_tails(store, size, run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    measures = facts(store) | timed(model, store)
    shares = np.bincount(model.labels_) / y.size
    measures["ari"] = adjusted_rand_index(y, model.labels_)
    measures["clusters"] = model.n_clusters_
    measures["tiny"] = int(np.count_nonzero(shares < 0.01))
    measures["trust"] = model.report_["trust"]["level"]
    return measures


def write_tails(store: Path, size: Size, seed: int) -> np.ndarray:
    """Write seven clusters with tails to a store, block by block, and return the classes.

    Each cluster is a normal cloud, to which tails in two directions are added.
    """
    random = np.random.default_rng([size.rows, size.columns, size.freedom, seed])
    k = len(SHARES)
    centres = random.standard_normal((k, size.columns))
    directions = random.standard_normal((k, DIRECTIONS, size.columns))
    y = random.choice(k, size.rows, p=SHARES)
    rows = zarr.create_array(
        store,
        shape=(size.rows, size.columns),
        chunks=(BLOCK, size.columns),
        dtype="float32",
        compressors=None,
        overwrite=True,
    )
    for first in range(0, size.rows, BLOCK):
        classes = y[first : first + BLOCK]
        block = SPREAD * random.standard_normal(
            (classes.size, size.columns), np.float32
        )
        block += centres[classes].astype(np.float32)
        tails = _tails(random, size, classes.size)
        for c in range(k):
            inside = classes == c
            block[inside] += (tails[inside] @ directions[c]).astype(np.float32)
        rows[first : first + classes.size] = block
    return y


def _tails(random: np.random.Generator, size: Size, count: int) -> np.ndarray:
    """Draw the positions of rows along the directions of their cluster."""
    shape = (count, DIRECTIONS)
    if size.tails == LOG_NORMAL:
        return random.lognormal(size=shape)
    return random.standard_t(size.freedom, shape)


def tables(frame: pd.DataFrame) -> Result:
    """Return the numbers found, and means, by rows and tails."""
    frame = frame[frame["status"] == OK].copy()
    frame["found"] = frame["clusters"].astype(int).astype(str)
    figures = {
        "found": ", ".join,
        "tiny": "mean",
        "ari": "mean",
        "trust": ", ".join,
        "seconds": "median",
    }
    table = frame.groupby(["n", "d", "tails"], sort=False).agg(figures)
    return Result({"number-tails": table.reset_index()})
