"""Part ``mixed`` of ``columns``: peers on tables of numbers, flags and texts, with and without gaps."""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import mixed
from benchmarks.methods import FRONT_DOOR, GOWER, estimator
from benchmarks.protocol import Data, compile_seconds, load_once, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._columns_made import MIXED_NAMES, made_table
from benchmarks.studies._columns_sets import with_seconds
from benchmarks.studies.peers import installed, with_noise
from benchmarks.tables import Result

MOST_ROWS = 1000
SHARES = (0.0, 0.2)  # shares of gaps in every second column
# Columns of real tables in which numbers are codes.
CODES = {
    "heart": (1, 2, 5, 6, 8, 10, 12),
    "australian": (0, 3, 4, 5, 7, 8, 10, 11),
}
REAL = "real"
MEAN = "mean"
SMOKE = ("customers-1", "heart")


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all methods on each table, with and without gaps."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    names = (*MIXED_NAMES, *CODES)
    names = options.pick(names, (*MIXED_NAMES[::4], *CODES), SMOKE)
    methods = [FRONT_DOOR, GOWER, *installed(tuple(mixed.METHODS))]
    tries = product(names, SHARES, options.repeats(3), methods)
    for name, share, seed, method in tries:
        settings = {"rows": rows}
        yield Run(name, method, seed, {"gaps": share}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one table, with the number of its classes."""
    data = table_of(run.dataset, run.settings["rows"], run.seed)
    frame = with_gaps(data.X, run.parameters["gaps"], run.seed)
    n_clusters = int(np.unique(data.y).size)
    model = estimator(run.method, n_clusters, random_state=run.seed)
    numbers = mixed.mixed(frame).filled().numbers
    measures: dict[str, Any] = {"compile_seconds": compile_seconds(numbers, model)}
    X = with_seconds(frame) if run.method == FRONT_DOOR else frame
    measures |= timed(model, X)
    return measures | with_noise(data.y, np.asarray(model.labels_))


@lru_cache(maxsize=2)
def table_of(name: str, rows: int, seed: int) -> Data:
    """Return the frame of a table, and its classes; synthetic tables depend on the seed."""
    if name not in CODES:
        return Data(name, *made_table(name, rows, seed))
    data = load_once(name, rows)
    frame = pd.DataFrame(data.X).add_prefix("x")
    for position in CODES[name]:
        frame[f"x{position}"] = "code " + frame[f"x{position}"].astype(str)
    return Data(name, frame, np.unique(data.y, return_inverse=True)[1])


def with_gaps(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Return a frame in which a share of the cells of every second column, chosen at random, are gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._columns_peers import with_gaps
    >>> frame = pd.DataFrame({"a": [1.0] * 100, "b": ["x"] * 100})
    >>> with_gaps(frame, 0.2, 0).isna().sum().tolist()
    [20, 0]
    """
    if not share:
        return frame
    draw = np.random.RandomState(seed)
    columns = {}
    for position, name in enumerate(frame):
        column = frame[name]
        if position % 2 == 0:
            rows = draw.permutation(len(frame))[: round(share * len(frame))]
            is_gap = np.isin(np.arange(len(frame)), rows)
            column = column.mask(is_gap)
        columns[name] = column
    return pd.DataFrame(columns)


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean index by kind and share of gaps, and for each table.

    Each method has a column; the methods are sorted by their mean index, the best
    first.
    """
    frame = frame[frame["status"] == OK]
    families = frame["dataset"].str.rpartition("-")[0]
    kinds = families.where(~frame["dataset"].isin(CODES), REAL)
    frame = frame.assign(kind=kinds)
    made = frame[frame["kind"] != REAL].assign(kind="made")
    everything = frame.assign(kind="all")
    means = pd.concat([frame, made, everything]).pivot_table(
        "ari", ["kind", "gaps"], "method", "mean", sort=False
    )
    return Result(
        {"columns-mixed": means.reset_index(), "columns-mixed-sets": of_tables(frame)}
    )


def of_tables(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the index for each table and share of gaps, and their means.

    Real tables and the means are the last rows.
    """
    means = frame.groupby(["method", "gaps"], as_index=False)["ari"].mean()
    rows = pd.concat([frame, means.assign(dataset=MEAN)])
    index = rows.pivot_table("ari", ["dataset", "gaps"], "method", "mean")
    order = sorted(index.index, key=lambda key: (key[0] == MEAN, key[0] in CODES, key))
    best_first = index.loc[MEAN].mean().sort_values(ascending=False).index
    return index.loc[order, best_first].reset_index().rename_axis(columns=None)
