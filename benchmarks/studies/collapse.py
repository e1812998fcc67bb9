"""The continuation in C: no fit collapses or degenerates, and the objective never rises.

``python -m benchmarks collapse`` fits the UCI sets at five bandwidths, from eight
random labellings each. Sigma is 0.25, 0.5, 1, 2 and 4 times the root mean squared
pairwise distance; a fit has one start, and all rows in the sample. A fit has collapsed
if a cluster is smaller than its minimum share. It is degenerate if |w|² is below 1e-6
of the total variance in feature space, or not larger than for random labels. The study
also counts how often the quantile step, which enforces the minimum share, was needed.
At a fixed C, the objective of the cutting planes after a round must not exceed the
primal value at the end of the previous round.
"""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import SKMMC, estimator
from benchmarks.protocol import PAPER_WIDTHS, UCI, load_once, scored, with_gamma
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result

STARTS = 8
DEGENERATE = 1e-6
ROUNDING = 1e-9
PATH = ["stage", "start", "gamma", "C"]
BAD = ["collapsed", "degenerate", "as_random"]
COUNTS = [*BAD, "quantile_steps", "rounds", "rises"]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield one fit from one random labelling at one bandwidth."""
    for name in options.pick(UCI, UCI, UCI[2:3]):
        rows = {"rows": options.rows_of(name)}
        for width, start in product(PAPER_WIDTHS, range(options.seeds or STARTS)):
            yield Run(name, SKMMC, start, parameters={"width": width}, settings=rows)


def compute(run: Run) -> dict[str, Any]:
    """Fit from one start, with all rows in the sample, and check the fit."""
    X = run.data.X
    given = with_gamma(run.parameters, X) | {
        "init": "random",
        "n_init": 1,
        "sample_size": len(X),
    }
    model = estimator(SKMMC, random_state=run.seed, **given)
    found = scored(run.data, model)
    report = model.report_
    least = max(int(model.min_share / 2 * len(X)), min(2, len(X) // 4))
    smallest = int(np.bincount(model.labels_, minlength=2).min())
    rounds, rises = count_rises(model.history_)
    variance = _total_variance(run.dataset, run.settings["rows"], given["gamma"])
    return found | {
        "least_cluster": smallest,
        "least_share": least,
        "collapsed": int(smallest < least),
        "degenerate": int(report["w_norm"] ** 2 < DEGENERATE * variance),
        "as_random": int(not report["clusters_found"]),
        "quantile_steps": report["quantile_steps"],
        "rounds": rounds,
        "rises": rises,
    }


def count_rises(history: pd.DataFrame) -> tuple[int, int]:
    """Return the number of rounds that follow another round at the same C, and how many of them rose.

    A round rises if its objective exceeds the primal value of the previous round.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies.collapse import count_rises
    >>> history = pd.DataFrame({"C": [2.0, 2.0, 3.0], "round": [0, 1, 0]})
    >>> history = history.assign(stage="sample", start=0, gamma=1.0)
    >>> values = {"objective": [-3.0, -1.0, 0.0], "primal": [-2.0, -1.0, 0.0]}
    >>> count_rises(history.assign(**values))
    (1, 1)
    """
    ends = history.groupby([*PATH, "round"], sort=False, dropna=False).tail(1)
    before = ends.groupby(PATH, sort=False, dropna=False)["primal"].shift()
    rises = ends["objective"] > before + ROUNDING * before.abs()
    return int(before.notna().sum()), int(rises.sum())


@lru_cache(maxsize=1)
def _total_variance(name: str, rows: int | None, gamma: float) -> float:
    """Return trace(K̃)/n of the Gaussian kernel, which is 1 minus the mean of the kernel matrix."""
    from sklearn.metrics.pairwise import rbf_kernel

    return float(1 - rbf_kernel(load_once(name, rows).X, gamma=gamma).mean())


def tables(frame: pd.DataFrame) -> Result:
    """Return counts for each data set, and for all."""
    told = frame.assign(fits=1, with_quantile_step=frame["quantile_steps"] > 0)
    sums = ["fits", *COUNTS, "with_quantile_step"]
    table = told.groupby(["dataset", "n", "d"], sort=False)[sums].sum().reset_index()
    total = table[sums].sum()
    table = pd.concat(
        [table, pd.DataFrame([{"dataset": "all", **total}])], ignore_index=True
    )
    bad = int((frame[BAD].sum(axis=1) > 0).sum())
    goals = [
        Goal(f"collapsed or degenerate, of {len(frame)} fits", bad, 0),
        Goal(
            f"rises of the objective, of {int(total['rounds'])} rounds",
            int(total["rises"]),
            0,
        ),
    ]
    return Result({"collapse": table}, goals)
