"""Shared code of the SKMMC studies: their methods on one data set, and tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import protocol, tables
from benchmarks.methods import CPMMC, KMEANS, LGMMC, SKMMC, estimator, faster_kmeans
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, PAPER_WIDTHS
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.run import Options, Run, Runs
from benchmarks.tables import Goal, best, goals_of, over_seeds

BETWEEN = "SKMMC, widths between"
OWN_BASIS = "SKMMC, own basis"
WIDTHS_BETWEEN = (0.35, 0.71, 1.41)  # widths between the paper's
# Columns with equal values in one round of CCCP.
PATH = ["stage", "start", "gamma", "C", "round"]
AS_PUBLISHED: dict[str, Any] = {
    "threshold": "fixed",
    "continuation": False,
    "init": "random",
    "n_init": 1,
}
# The paper has neither samples nor other kinds of starts. A sample of this size
# contains all rows of an MNIST pair.
COIN_FLIPS: dict[str, Any] = {"init": "random", "n_init": 3, "sample_size": 16_000}
LINEAR_GRID = tuple(
    {"C": C, "balance": balance} for C in (2.0, 10.0) for balance in (0.0, 0.05)
)
# Algorithm 3 as printed, except for its start.
AS_PRINTED: dict[str, Any] = {
    "basis": "paper",
    "continuation": False,
    "eta": 1.0,
    "init": "k-means",
    "n_init": 1,
}
# Runs of k-means, each from one start.
PAPER_RUNS = 20
QUICK_RUNS = 3
MOST_LGMMC_ROWS = 1000
QUICK_LGMMC_ROWS = 500
MOST_LINEAR_ROWS = 40_000  # of LG-MMC with a linear kernel
LINEAR_LGMMC = tuple({"kernel": "linear", "C": C} for C in (0.01, 0.1, 1.0))
LEAST_ROWS = 3000
MOST_SLOPE = 1.1
MOST_RATIO = 1.0


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one data set.

    The settings are ``name`` and ``rows`` of the data, and ``fixed`` parameters in
    addition to the parameters of the run.

    Returns
    -------
    dict
        Facts of the data, measures, the result of `clustering` and, for our estimators,
        counts and the selected width.
    """
    data = run.data
    given = {**run.parameters, **run.settings.get("fixed", {})}
    if run.method == KMEANS:
        return faster_kmeans(data, run.seed, given)
    if run.method == LGMMC and run.protocol == PAPER:
        given["balance"] = protocol.known_balance(data.y)
    method = SKMMC if run.method in (BETWEEN, OWN_BASIS) else run.method
    model = estimator(
        method, random_state=run.seed, **protocol.with_gamma(given, data.X)
    )
    return protocol.scored(data, model) | _counts(model)


def _counts(model: Any) -> dict[str, float]:
    """Return the width found, and the numbers of basis vectors, reads, cuts, and rounds of CCCP."""
    counts: dict[str, float] = dict(rounds_of(model))
    history = getattr(model, "history_", None)
    if history is None or not counts:
        return counts
    counts |= protocol.sweeps_of(model) | {"cuts": len(history)}
    counts["cuts_a_round"] = counts["cuts"] / counts["rounds"]
    if model.model_.basis is None:  # a linear model
        return counts
    return counts | {
        "found_gamma": model.gamma_,
        "basis_vectors": len(model.model_.basis),
    }


def rounds_of(model: Any) -> dict[str, int]:
    """Return the rounds of a fit, counted as SKMMC's tables count iterations.

    An empty mapping is returned for a method without rounds.

    Rounds are those of CCCP, over all starts and values of C, or the rounds in which a
    baseline labels its rows again.
    """
    if type(model).__module__.startswith("benchmarks.baselines."):
        return {"rounds": model.n_iter_} if hasattr(model, "n_iter_") else {}
    history = getattr(model, "history_", None)
    if history is None or not {*PATH} <= set(history.columns):
        return {}
    return {"rounds": history.groupby(PATH, dropna=False).ngroups}


def runs_of(
    name: str,
    rows: int | None,
    options: Options,
    seeds: int = 3,
    dataset: str | None = None,
    starts: Mapping[str, Any] = COIN_FLIPS,
    own_basis_runs: int | None = None,
) -> Runs:
    """Yield all methods on one data set, with both protocols, turn by turn.

    The methods are k-means, CPMMC, LG-MMC (up to 40,000 rows) and SKMMC.

    The label-free protocol is that of a user, with the defaults and k-means with ten
    starts. The paper's protocol has the published CPMMC on a grid, linear LG-MMC with
    three values of C, and SKMMC with five widths and C = 10, whose parameters are
    selected with the known classes, and k-means with one start, averaged over 20 runs.
    LG-MMC is told how unequal the classes are. SKMMC departs from the paper in three
    ways: C is raised from near 1, eta is 0.01 instead of 1, and of three random
    labellings of at most 16,000 rows, the one with the largest |w| is kept (``starts``
    changes this). Widths between the five, and the paper's basis with eta = 1 and one
    C, are separate runs.

    Parameters
    ----------
    name : str
        Name of the data set for `data_loaders.load`.
    rows : int or None
        Largest number of rows, which are drawn at random.
    options : Options
        Seeds and scale.
    seeds : int, default=3
        Number of seeds, unless the options set it.
    dataset : str or None, default=None
        Name in the tables; None for `name`.
    starts : mapping, default=COIN_FLIPS
        Parameters of SKMMC in the paper's protocol, in addition to the width.
    own_basis_runs : int or None, default=None
        Number of runs with the paper's basis, each with other rows; None for `seeds`,
        and 0 for no such runs.
    """
    settings = {"name": name, "rows": rows}
    widths, between = options.pick(
        (PAPER_WIDTHS, WIDTHS_BETWEEN), (PAPER_WIDTHS, ()), (PAPER_WIDTHS[1:3], ())
    )

    def run(method: str, by: str, seed: int, **parameters: Any) -> Run:
        return Run(
            dataset or name,
            method,
            seed,
            parameters=parameters,
            protocol=by,
            settings=settings,
        )

    for seed in options.repeats(seeds):
        yield run(KMEANS, LABEL_FREE, seed, n_init=10)
        yield from (run(method, LABEL_FREE, seed) for method in (CPMMC, SKMMC))
        for point in options.pick(LINEAR_GRID, LINEAR_GRID[::2], LINEAR_GRID[:1]):
            yield run(CPMMC, PAPER, seed, **point, **AS_PUBLISHED)
        yield from (run(SKMMC, PAPER, seed, width=width, **starts) for width in widths)
        yield from (
            run(BETWEEN, PAPER, seed, width=width, **starts) for width in between
        )
    own_seeds = () if own_basis_runs == 0 else options.repeats(own_basis_runs or seeds)
    for seed in own_seeds:
        yield from (
            run(OWN_BASIS, PAPER, seed, width=width, **AS_PRINTED) for width in widths
        )
    yield from (
        run(KMEANS, PAPER, seed, n_init=1)
        for seed in options.repeats(PAPER_RUNS, QUICK_RUNS)
    )
    few = options.pick(MOST_LGMMC_ROWS, QUICK_LGMMC_ROWS, QUICK_LGMMC_ROWS)
    n = rows or protocol.size_of(name) or np.inf
    if n <= few:
        yield run(LGMMC, LABEL_FREE, 0)
    if n <= MOST_LINEAR_ROWS:
        yield from (run(LGMMC, PAPER, 0, **point) for point in LINEAR_LGMMC)


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each data set, protocol and method.

    The row is for the parameters with the smallest mean balanced error.

    Returns
    -------
    DataFrame
        dataset, n, d, protocol, method, the selected parameters, balanced_error, its
        standard deviation over the seeds and the published figure, runs, median seconds
        and the published seconds, their ratio to k-means with ten starts, rounds (of
        CCCP, or as LG-MMC counts them) and the published iterations, and peak memory.
    """
    keys = ["dataset", "protocol", "method"]
    table = best(over_seeds(frame, [*keys, "parameters"], ERROR, "rounds"), keys, ERROR)
    peer = table[(table["method"] == KMEANS) & (table["protocol"] == LABEL_FREE)]
    table["of k-means"] = tables.ratio_to(table, peer)
    printed = {ERROR: ERROR, "seconds": "seconds", "rounds": "iterations"}
    published = {f"published {ours}": theirs for ours, theirs in printed.items()}
    table = tables.beside_published(table, SKMMC_PAPER, published)
    table["parameters"] = table["parameters"].map(tables.choices_of(frame, keys[1:]))
    columns = [
        "dataset",
        "n",
        "d",
        "protocol",
        "method",
        "parameters",
        ERROR,
        f"{ERROR} sd",
    ]
    columns += [
        f"published {ERROR}",
        "runs",
        "seconds",
        "published seconds",
        "of k-means",
    ]
    columns += ["rounds", "published rounds", "peak_mib"]
    return table[columns].dropna(axis=1, how="all")


# -- against the number of rows: Figures 1 and 2 of the SKMMC paper --------------------


def slopes_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the slope of log(seconds) against log(n), with its interval.

    Each protocol and method has one slope.
    """
    return tables.slopes_over(table, ["protocol", "method"])


def growth_goals(name: str, table: pd.DataFrame) -> list[Goal]:
    """Return goals for the error, the slope of time, and the time relative to k-means at the largest size.

    From 3,000 rows up the error should be below every other method's.

    Each protocol has three goals, or fewer if there are too few sizes.
    """
    goals: list[Goal] = []
    slopes = slopes_of(table).query("method == @SKMMC").set_index("protocol")["slope"]
    for by in (LABEL_FREE, PAPER):
        rows = table[table["protocol"] == by]
        title = f"{name}, {by}: "
        above = excess_of(rows[rows["n"] >= LEAST_ROWS])
        worst = {len(above): above.max()} if len(above) else {}
        last = (
            rows[rows["method"] == SKMMC].nlargest(1, "n").set_index("n")["of k-means"]
        )
        what = title + "error above the best other method, worst of {} sizes"
        goals += goals_of(worst, 0.0, what, "points")
        goals += goals_of(slopes, {by: MOST_SLOPE}, title + "slope of time")
        goals += goals_of(last, MOST_RATIO, title + "time at {:,} rows", "of k-means")
    return goals


def excess_of(rows: pd.DataFrame) -> pd.Series:
    """Return the error of SKMMC minus the smallest error of all other methods, for each size."""
    others = rows[~rows["method"].str.startswith(SKMMC)].groupby("n")[ERROR].min()
    return (rows[rows["method"] == SKMMC].set_index("n")[ERROR] - others).dropna()
