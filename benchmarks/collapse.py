"""The continuation rule: no fit collapses or degenerates, and the objective never rises.

``python -m benchmarks collapse`` fits the UCI sets at five widths (sigma .25, .5, 1, 2 and 4 times the root
mean squared pairwise distance) from eight coin flips each, one start a fit, all rows in the sample. A fit is
collapsed when a cluster holds less than its least share, and degenerate when |w|² is below 1e-6 of the spread
of the rows in feature space or no larger than random labels give. How often the quantile step that keeps the
least share fired is counted. Within one C the objective of the planes after a round may not exceed the primal
value at the end of the round before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import Cell, facts, load_once
from benchmarks._common import UCI, Goal, Options, Result, rows_of
from benchmarks._compare import clustering, compile_seconds, gamma_of, mean_squared_distance, timed
from benchmarks._journal import Journal

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
STARTS = 8
DEGENERATE = 1e-6
ROUNDING = 1e-9
PATH = ["stage", "start", "gamma", "C"]
BAD = ["collapsed", "degenerate", "as_random"]
COUNTS = [*BAD, "quantile_steps", "rounds", "rises"]


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    frame = journal.rows(list(cells_of(options)))
    table = table_of(frame)
    total = table.iloc[-1]
    bad = int((frame[BAD].sum(axis=1) > 0).sum())
    goals = [
        Goal(f"collapsed or degenerate, of {len(frame)} fits", bad, 0),
        Goal(f"rises of the objective, of {int(total['rounds'])} rounds", int(total["rises"]), 0),
    ]
    return Result({"collapse": table}, goals)


def cells_of(options: Options) -> Iterator[Cell]:
    """One fit from one coin flip at one width."""
    for name in UCI[2:3] if options.smoke else UCI:
        rows = rows_of(name, options)
        for width in WIDTHS:
            for start in range(options.seeds or STARTS):
                compute = partial(started, name, rows, width, start)
                yield Cell(name, "SKMMC", start, compute, {"width": width})


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Counts of each data set, and of all."""
    frame = frame.assign(fits=1, with_quantile_step=frame["quantile_steps"] > 0)
    sums = ["fits", *COUNTS, "with_quantile_step"]
    table = frame.groupby(["dataset", "n", "d"], sort=False)[sums].sum().reset_index()
    total = pd.DataFrame([{"dataset": "all", **table[sums].sum()}])
    return pd.concat([table, total], ignore_index=True)


def started(name: str, rows: int | None, width: float, start: int) -> dict[str, Any]:
    """Compute a cell: one start, all rows in the sample."""
    data = load_once(name, rows)
    gamma = gamma_of(width, mean_squared_distance(data.X))
    estimator = mmcnb.SparseKernelMMC(
        gamma=gamma, init="random", n_init=1, sample_size=len(data.y), random_state=start
    )
    compiled = compile_seconds(data.X)
    measures = timed(estimator, data.X) | {"compile_seconds": compiled}
    found = facts(data.X) | measures | clustering(data.y, estimator.labels_)
    return found | _verdict(estimator, _spread(name, rows, gamma))


def _verdict(estimator: Any, spread: float) -> dict[str, Any]:
    report, n = estimator.report_, len(estimator.labels_)
    least = max(int(estimator.min_share / 2 * n), min(2, n // 4))
    rounds, rises = count_rises(estimator.history_)
    return {
        "least_cluster": int(min(np.bincount(estimator.labels_, minlength=2))),
        "least_share": least,
        "collapsed": int(min(np.bincount(estimator.labels_, minlength=2)) < least),
        "degenerate": int(report["w_norm"] ** 2 < DEGENERATE * spread),
        "as_random": int(not report["clusters_found"]),
        "quantile_steps": report["quantile_steps"],
        "rounds": rounds,
        "rises": rises,
    }


def count_rises(history: pd.DataFrame) -> tuple[int, int]:
    """Rounds that follow another at the same C, and how many of them ended above the one before.

    Parameters
    ----------
    history : DataFrame
        ``history_`` of an estimator, one row a sweep.

    Returns
    -------
    rounds, rises : int
        Rounds compared, and those whose objective exceeds the primal value of the round before.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.collapse import count_rises
    >>> path = dict(stage="sample", start=0, gamma=1.0, C=[2.0, 2.0, 3.0], round=[0, 1, 0])
    >>> count_rises(pd.DataFrame(path | dict(objective=[-3.0, -1.0, 0.0], primal=[-2.0, -1.0, 0.0])))
    (1, 1)
    """
    ends = history.groupby([*PATH, "round"], sort=False, dropna=False).tail(1)
    before = ends.groupby(PATH, sort=False, dropna=False)["primal"].shift()
    rises = ends["objective"] > before + ROUNDING * before.abs()
    return int(before.notna().sum()), int(rises.sum())


@lru_cache(maxsize=1)
def _spread(name: str, rows: int | None, gamma: float) -> float:
    """trace(K̃)/n of the Gaussian kernel: 1 less the mean of the kernel matrix."""
    from sklearn.metrics.pairwise import rbf_kernel

    return float(1 - rbf_kernel(load_once(name, rows).X, gamma=gamma).mean())
