"""Explanations of clusters: whether planted columns and rules are found, and what an explanation costs.

``python -m benchmarks explain [--quick] [--seeds N] [--rows N] [--part NAME ...]`` has
three sections:

planted  synthetic tables of 5 to 500 columns and 2 to 8 clusters; in each cluster, one
         to three columns are higher or lower than in the others. Columns have units of
         very different sizes, and half of them have a long tail. The labels are the
         true ones. A cluster counts as explained if its planted columns are among the
         first three columns in its table of columns
rules    twelve synthetic tables in which a cluster is a conjunction of conditions on
         two columns, numbers or categories, with 4 to 40 irrelevant columns and up to
         10 % wrong labels. A rule counts as found if it names the two columns; its
         coverage and precision are compared with those of the planted conjunction
costs    seconds, reads and peak memory within 512 MiB, for rows of 50 columns in a
         store, with labels and without, beside bare reads of the store and `predict`;
         and for 20,000 sparse rows of 20,000 columns in 30 clusters. The peak is that
         of ``mmcnb explain`` in a separate process. Run this section alone, on an idle
         machine
"""

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import fit
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _explain_costs, _explain_rules
from benchmarks.tables import Goal, Result

TABLES = 100
QUICK_TABLES = 20
# smallest and largest numbers of a table
COLUMNS = (5, 500)
CLUSTERS = (2, 8)
ROWS = (500, 5000)
# Number of columns of a cluster, and how far they are shifted, in standard deviations.
MOST_PLANTED = 3
SHIFTS = (2.0, 4.0)
FIRST = 3
LEAST_SHARE = 0.95


class Planted(NamedTuple):
    """A table, its clusters, and the columns in which each cluster differs."""

    X: np.ndarray
    y: np.ndarray
    columns: list[set[int]]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield one table per seed."""
    rows = min(ROWS[1], options.rows or ROWS[1])
    for seed in range(options.seeds or options.pick(TABLES, QUICK_TABLES, 2)):
        yield Run("planted", "explain", seed, settings={"rows": rows})


def planted(seed: int, most_rows: int) -> Planted:
    """Generate a table; clusters share columns if there are fewer than three for each.

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
    shares = random.dirichlet(np.full(k, 3.0))
    drawn = random.choice(k, n - 20 * k, p=shares)
    y = np.concatenate([np.arange(k).repeat(20), drawn])  # each cluster has 20 rows
    X = random.normal(size=(n, d))
    order = random.permutation(d)
    counts = random.integers(1, MOST_PLANTED + 1, k)
    if counts.sum() > d:
        counts = np.ones(k, int)
    ends = counts.cumsum()
    columns = []
    for cluster, part in enumerate(np.split(order[: ends[-1]], ends[:-1])):
        planted_columns = {int(column) for column in part}
        for column in planted_columns:
            sign = random.choice([-1, 1])
            X[y == cluster, column] += sign * random.uniform(*SHIFTS)
        columns.append(planted_columns)
    has_long_tail = random.random(d) < 0.5
    X[:, has_long_tail] = np.exp(X[:, has_long_tail])
    units = 10.0 ** random.uniform(-3, 6, d)
    return Planted(X * units, y, columns)


def compute(run: Run) -> dict[str, Any]:
    """Count the clusters whose planted columns are among the first three."""
    table = planted(run.seed, run.settings["rows"])
    d = table.X.shape[1]
    X = pd.DataFrame(table.X, columns=[f"x{column}" for column in range(d)])
    model = fit(mmcnb.KernelKMeans(2, kernel="linear", n_init=1, random_state=0), X)
    started = time.perf_counter()
    columns = model.explain(X, table.y).columns
    seconds = time.perf_counter() - started
    named = columns.groupby("cluster")["column"]
    is_explained = []
    for cluster, planted_columns in enumerate(table.columns):
        first = set(named.get_group(cluster)[:FIRST])
        expected = {f"x{column}" for column in planted_columns}
        is_explained.append(expected <= first)
    return {
        "n": len(X),
        "d": d,
        "clusters": len(is_explained),
        "explained": int(np.sum(is_explained)),
        "all": bool(np.all(is_explained)),
        "seconds": seconds,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return the shares of clusters and tables explained, by number of columns."""
    frame = frame[frame["status"] == OK]
    titles = ["to 10", "to 50", "to 200", "to 500"]
    width = pd.cut(frame["d"], [0, 10, 50, 200, 500], labels=titles)
    by_width = frame.assign(columns=width.astype(str))
    groups = pd.concat([by_width, frame.assign(columns="all")]).groupby("columns")
    table = groups.agg(
        tables=("d", "size"),
        clusters=("clusters", "sum"),
        explained=("explained", "sum"),
        whole=("all", "mean"),
    )
    table["share"] = table["explained"] / table["clusters"]
    goal = Goal(
        "explain: share of clusters explained",
        float(table["share"]["all"]),
        LEAST_SHARE,
        at_least=True,
    )
    order = [title for title in (*titles, "all") if title in table.index]
    return Result({"explain-planted": table.loc[order].reset_index()}, [goal])


SECTIONS = {
    "planted": Section(grid, compute, tables),
    "rules": Section(
        _explain_rules.grid, _explain_rules.compute, _explain_rules.tables
    ),
    "costs": Section(
        _explain_costs.grid, _explain_costs.compute, _explain_costs.tables
    ),
}
