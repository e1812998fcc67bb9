"""The continuation rule: no fit collapses or degenerates, and the objective never rises.

``python -m benchmarks collapse`` fits the UCI sets at five widths (sigma .25, .5, 1, 2 and 4 times the root
mean squared pairwise distance) from eight coin flips each, one start a fit, all rows in the sample. A fit is
collapsed when a cluster holds less than its least share, and degenerate when |w|² is below 1e-6 of the spread
of the rows in feature space or no larger than random labels give. How often the quantile step that keeps the
least share fired is counted. Within one C the objective of the planes after a round may not exceed the primal
value at the end of the round before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import UCI, Data, Goal, Options, Result, load, say
from benchmarks._compare import fit, gamma_of, mean_squared_distance, warm_up
from mmcnb.metrics import balanced_clustering_error

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
STARTS = 8
DEGENERATE = 1e-6
ROUNDING = 1e-9
PATH = ["stage", "start", "gamma", "C"]
COUNTS = ["collapsed", "degenerate", "as random", "quantile steps", "rounds", "rises"]


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    frames = []
    for name in UCI:
        data = load(name, options)
        warm_up(data.X)
        say(f"{name}, {len(data.y):,} rows")
        frames.append(_fits(data, options.seeds or STARTS))
    frame = pd.concat(frames)
    table = frame.groupby(["dataset", "n", "d"], sort=False)[COUNTS].sum().reset_index()
    table.insert(3, "fits", frame.groupby("dataset", sort=False).size().to_numpy())
    table["with quantile step"] = (
        frame["quantile steps"].gt(0).groupby(frame["dataset"], sort=False).sum().to_numpy()
    )
    totals = frame[COUNTS].sum()
    bad = (frame[["collapsed", "degenerate", "as random"]].sum(axis=1) > 0).sum()
    goals = [
        Goal(f"collapsed or degenerate, of {len(frame)} fits", int(bad), 0),
        Goal(f"rises of the objective, of {int(totals['rounds'])} rounds", int(totals["rises"]), 0),
    ]
    total = pd.DataFrame(
        [{"dataset": "all", "fits": len(frame), **table[[*COUNTS, "with quantile step"]].sum()}]
    )
    return Result({"collapse-fits": frame, "collapse": pd.concat([table, total])}, goals, shown=("collapse",))


def _fits(data: Data, starts: int) -> pd.DataFrame:
    gamma0 = mean_squared_distance(data.X)
    rows = []
    for width in WIDTHS:
        gamma = gamma_of(width, gamma0)
        spread = _spread(data.X, gamma)
        for start in range(starts):
            estimator = mmcnb.SparseKernelMMC(
                gamma=gamma, init="random", n_init=1, sample_size=len(data.y), random_state=start
            )
            fit(estimator, data.X)
            rows.append(
                {
                    "dataset": data.name,
                    "n": len(data.y),
                    "d": data.X.shape[1],
                    "method": "mmcnb",
                    "parameters": f"width={width:g}",
                    "seed": start,
                    "error": balanced_clustering_error(data.y, estimator.labels_),
                    **_verdict(estimator, spread),
                }
            )
    return pd.DataFrame(rows)


def _verdict(estimator: Any, spread: float) -> dict[str, Any]:
    report, n = estimator.report_, len(estimator.labels_)
    least = max(int(estimator.min_share / 2 * n), min(2, n // 4))
    rounds, rises = count_rises(estimator.history_)
    return {
        "least cluster": int(min(np.bincount(estimator.labels_, minlength=2))),
        "least share": least,
        "collapsed": int(min(np.bincount(estimator.labels_, minlength=2)) < least),
        "degenerate": int(report["w_norm"] ** 2 < DEGENERATE * spread),
        "as random": int(not report["clusters_found"]),
        "quantile steps": report["quantile_steps"],
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


def _spread(X: np.ndarray, gamma: float) -> float:
    """trace(K̃)/n of the Gaussian kernel: 1 less the mean of the kernel matrix."""
    from sklearn.metrics.pairwise import rbf_kernel

    return float(1 - rbf_kernel(X, gamma=gamma).mean())
