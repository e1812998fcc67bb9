"""Explanations of clusters: whether columns that were planted are named, and what an explanation costs.

``python -m benchmarks explain [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has
two sections:

planted  made tables of 5 to 500 columns and 2 to 8 clusters, in each of which one to three columns are higher
         or lower than in the others. Columns have units of many sizes, half of them a
         long tail. Labels are those of the making. A cluster counts as explained if its
         planted columns are the first ones of its table of columns, among three
costs    seconds, reads and peak memory within 512 MiB: of rows of 50 columns in a store, with labels and
         without, beside bare reads of the store and `predict`; and of 20,000 sparse
         rows of 20,000 columns in 30 clusters. The peak is of ``mmcnb explain`` in a
         process of its own. Run it alone, on an idle machine
"""

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import fit
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _explain_costs
from benchmarks.tables import Goal, Result

TABLES = 100
QUICK_TABLES = 20
# of a table, from and to
COLUMNS = (5, 500)
CLUSTERS = (2, 8)
ROWS = (500, 5000)
# columns of a cluster; how far they are moved, in deviations
MOST_PLANTED = 3
SHIFTS = (2.0, 4.0)
FIRST = 3
LEAST_SHARE = 0.95


class Planted(NamedTuple):
    """A table, its clusters, and the columns in which each differs."""

    X: np.ndarray
    y: np.ndarray
    columns: list[set[int]]


@frame_of_runs
def grid(options: Options) -> Runs:
    """A table a seed."""
    for seed in range(options.seeds or options.pick(TABLES, QUICK_TABLES, 2)):
        yield Run(
            "planted",
            "explain",
            seed,
            settings={"rows": min(ROWS[1], options.rows or ROWS[1])},
        )


def planted(seed: int, most_rows: int) -> Planted:
    """Make a table; clusters share columns if there are fewer than three for each.

    Examples
    --------
    >>> from benchmarks.studies.explain import planted
    >>> table = planted(0, 500)
    >>> table.X.shape[0] == table.y.size, len(table.columns) == len(set(table.y))
    (True, True)
    """
    random = np.random.default_rng(seed)
    d = int(np.exp(random.uniform(*np.log(COLUMNS))))
    k = int(random.integers(CLUSTERS[0], min(CLUSTERS[1], d) + 1))
    n = int(random.integers(min(ROWS[0], most_rows), most_rows + 1))
    y = np.r_[
        np.arange(k).repeat(20),
        random.choice(k, n - 20 * k, p=random.dirichlet(np.full(k, 3.0))),
    ]
    X = random.normal(size=(n, d))
    free = random.permutation(d)
    counts = random.integers(1, MOST_PLANTED + 1, k)
    counts = counts if counts.sum() <= d else np.ones(k, int)
    columns = [
        set(map(int, part))
        for part in np.split(free[: counts.sum()], counts.cumsum()[:-1])
    ]
    for cluster, own in enumerate(columns):
        for column in own:
            X[y == cluster, column] += random.choice([-1, 1]) * random.uniform(*SHIFTS)
    tailed = random.random(d) < 0.5
    X[:, tailed] = np.exp(X[:, tailed])
    return Planted(X * 10.0 ** random.uniform(-3, 6, d), y, columns)


def compute(run: Run) -> dict[str, Any]:
    """How many clusters have their planted columns among the first three."""
    table = planted(run.seed, run.settings["rows"])
    X = pd.DataFrame(
        table.X, columns=[f"x{column}" for column in range(table.X.shape[1])]
    )
    model = fit(mmcnb.KernelKMeans(2, kernel="linear", n_init=1, random_state=0), X)
    started = time.perf_counter()
    columns = model.explain(X, table.y).columns
    seconds = time.perf_counter() - started
    firsts = columns.groupby("cluster")["column"].agg(lambda own: set(own[:FIRST]))
    hits = [
        {f"x{column}" for column in own} <= firsts[k]
        for k, own in enumerate(table.columns)
    ]
    told = {
        "n": len(X),
        "d": X.shape[1],
        "clusters": len(hits),
        "explained": int(np.sum(hits)),
    }
    return told | {"all": bool(np.all(hits)), "seconds": seconds}


def tables(frame: pd.DataFrame) -> Result:
    """Shares of clusters and of tables that are explained, by the number of columns."""
    frame = frame[frame["status"] == OK]
    width = pd.cut(
        frame["d"], [0, 10, 50, 200, 500], labels=["to 10", "to 50", "to 200", "to 500"]
    )
    found = pd.concat(
        [frame.assign(columns=width.astype(str)), frame.assign(columns="all")]
    )
    found = found.groupby("columns").agg(
        tables=("d", "size"),
        clusters=("clusters", "sum"),
        explained=("explained", "sum"),
        whole=("all", "mean"),
    )
    found["share"] = found["explained"] / found["clusters"]
    order = [
        name
        for name in ("to 10", "to 50", "to 200", "to 500", "all")
        if name in found.index
    ]
    goal = Goal(
        "explain: share of clusters explained",
        float(found["share"]["all"]),
        LEAST_SHARE,
        at_least=True,
    )
    return Result({"explain-planted": found.loc[order].reset_index()}, [goal])


SECTIONS = {
    "planted": Section(grid, compute, tables),
    "costs": Section(
        _explain_costs.grid, _explain_costs.compute, _explain_costs.tables
    ),
}
