"""The small UCI sets of SKMMC's Tab. I to III: errors and CPU times of seven methods by both protocols.

``python -m benchmarks small [--quick] [--seeds N]`` takes k-means, normalised cut (scikit-learn's
`SpectralClustering`), IterSVR, CPMMC (linear), LG-MMC, SKMMC and SKMMCv2 (SKMMC with the threshold fixed at
1, App. B) on raw columns. Sets of which the files are not there are left out; LG-MMC takes up to
1,000 rows, and above 700 only sigma = .5.

label-free  what a user gets: defaults, k-means of ten starts, the cut of the graph of ten neighbours; means
            of three seeds
paper       the grids of the paper, and the least balanced error as the classes tell: sigma is .25, .5, 1, 2
            and 4 times the root mean squared distance of two rows, l is 0, 1, ..., 20, C = 10, eta = .01.
            k-means and IterSVR are means over runs as there (20, and 3); IterSVR and LG-MMC know how unequal
            the classes are. CPMMC, SKMMC and SKMMCv2 run at each point once from a coin flip and once from
            four mixed starts, of which the best by |w| is kept; CPMMC at C = 10 as published, the others by
            the continuation in C; SKMMC, on up to 500 rows, once more with all rows as its basis

A choice by the classes finds a low error where there is nothing to find: "coin flips" is the least error of
as many random labellings as SKMMC has runs on a set (mean of 20 such choices). A row that is not clearly
below it measures selection, and says so. ``--quick`` takes four sets, three widths, two values of l and one
seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cells import LABEL_FREE, OK, PAPER, Cell
from benchmarks._common import Goal, Options, Result, rows_of
from benchmarks._compare import CPMMC, ERROR, KMEANS, LGMMC, MOST_LGMMC_ROWS, PAPER_WIDTHS, SKMMC
from benchmarks._journal import Journal
from benchmarks._small_fits import (
    COIN_FLIP,
    COINS,
    CUT,
    EXACT,
    METHODS,
    MIXED,
    MOST_EXACT_ROWS,
    SKMMC2,
    SVR,
    coin_flips,
    described,
    fitted,
    searched,
)
from benchmarks._statistics import best, over_seeds
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.published import figure, published

SETS = tuple(dict.fromkeys(published().query("table == 'Tab. II' and paper == @SKMMC_PAPER")["dataset"]))
QUICK_SETS, SMOKE_SETS = ("echocardiogram", "spectf", "ionosphere", "house-votes"), ("ionosphere",)
BOUNDS, QUICK_BOUNDS, SMOKE_BOUNDS = tuple(range(21)), (0, 20), (0,)  # l
RUNS = {KMEANS: 20, SVR: 3}  # at each point of the paper's grid; of the others 1
FREE_RUNS = {LGMMC: 1}  # it draws nothing; of the others 3
MOST_SEARCHED_ROWS = 700  # of LG-MMC at all widths; above, one width takes minutes
CHOICES = 20  # of coin flips
FACTS = "facts"
CPU = "cpu_seconds"
PRINTED = {"n": "n_samples", "d": "n_features", "imbalance": "imbalance", "sparsity": "sparsity"}
NEEDED = (ERROR, "mean_error", CPU, "starts", "imbalance", "sparsity")
# Goals in per cent: chosen by the classes from coin flips, from the best starts, and without classes.
CHOSEN = {
    "echocardiogram": 16.0,
    "spectf": 22.5,
    "ionosphere": 23.0,
    "house-votes": 12.0,
    "breast": 3.0,
    "waveform-1v2": 6.0,
}
BEST_STARTS = {"spectf": 20.5, "ionosphere": 20.0}
FREE = {"house-votes": 12.0, "breast": 3.0, "waveform-1v2": 6.0, "ionosphere": 23.0}


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
    names = SMOKE_SETS if options.smoke else QUICK_SETS if options.quick else SETS
    frame = journal.rows([cell for name in names for cell in cells_of(name, options)])
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, *NEEDED])])  # where all cells failed
    frame = frame[frame["status"] == OK]
    figures = frame[frame["part"] != FACTS]
    settings = over_seeds(figures, ["dataset", "protocol", "method", "parameters", "starts"], ERROR, CPU)
    chosen = best(settings, ["dataset", "protocol", "method"], ERROR)
    tables = {
        "small-settings": settings,
        "small-table1": facts_table(frame[frame["part"] == FACTS]),
        "small-table2": wide_table(chosen, ERROR, " error"),
        "small-table3": wide_table(chosen, CPU, ""),
        "small-selection": selection_table(figures, chosen),
    }
    return Result(tables, goals_of(settings), shown=tuple(tables)[1:])


# -- cells -------------------------------------------------------------------------------------


def cells_of(name: str, options: Options) -> Iterator[Cell]:
    """All methods on one data set by both protocols, the coin flips, and the facts of Tab. I."""
    rows = rows_of(name, options)
    yield Cell(name, "", 0, partial(described, name, rows), part=FACTS)
    few = figure(SKMMC_PAPER, name, "", "n_samples", "Tab. I") <= MOST_LGMMC_ROWS
    for method in (method for method in METHODS if few or method != LGMMC):
        for seed in range(_runs(options, FREE_RUNS.get(method, 3))):
            yield Cell(name, method, seed, partial(fitted, name, rows, method, seed))
        for given in grid_of(name, method, options):
            for seed in range(_runs(options, RUNS.get(method, 1))):
                compute = partial(searched, name, rows, method, seed, given, bounds_of(method, options))
                yield Cell(name, method, seed, compute, given, PAPER)
    flips = len(grid_of(name, SKMMC, options)) * len(bounds_of(SKMMC, options))
    for seed in range(CHOICES):
        yield Cell(name, COINS, seed, partial(coin_flips, name, rows, flips, seed), {"flips": flips}, PAPER)


def _runs(options: Options, usual: int) -> int:
    return options.seeds or (1 if options.quick else usual)


def grid_of(name: str, method: str, options: Options) -> list[dict[str, Any]]:
    """Settings of the paper's protocol, but for l, which is searched at each."""
    if method == KMEANS:
        return [{}]
    starts: list[dict[str, Any]] = [{"starts": one} for one in (COIN_FLIP, MIXED)]
    if method == CPMMC:
        return starts
    place = slice(1, 3) if options.smoke else slice(3) if options.quick else slice(None)
    widths: list[dict[str, Any]] = [{"width": width} for width in list(PAPER_WIDTHS)[place]]
    rows = figure(SKMMC_PAPER, name, "", "n_samples", "Tab. I")
    if method == LGMMC and rows > MOST_SEARCHED_ROWS:
        return [{"width": 0.5}]
    if method not in (SKMMC, SKMMC2):
        return widths
    if method == SKMMC and rows <= MOST_EXACT_ROWS:
        starts.append({"starts": EXACT})
    return [width | start for width in widths for start in starts]


def bounds_of(method: str, options: Options) -> tuple[int, ...]:
    """Values of l that are searched; none for a method without."""
    if method in (KMEANS, CUT, SVR, LGMMC):
        return ()
    return SMOKE_BOUNDS if options.smoke else QUICK_BOUNDS if options.quick else BOUNDS


# -- tables ------------------------------------------------------------------------------------


def facts_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Tab. I: rows, columns, imbalance and sparsity as we load the sets, beside the published ones."""
    table = frame[["dataset", *PRINTED]]
    for ours, printed in PRINTED.items():
        values = [figure(SKMMC_PAPER, name, "", printed, "Tab. I") for name in table["dataset"]]
        table = table.assign(**{f"published {ours}": values})
    return table.reset_index(drop=True)


def wide_table(chosen: pd.DataFrame, metric: str, suffix: str) -> pd.DataFrame:
    """Tab. II or III: a line for the published figures and one for each protocol, a column a method.

    Parameters
    ----------
    chosen : DataFrame
        One row for each data set, protocol and method.
    metric : str
        What stands in the cells.
    suffix : str
        Of the columns' names.

    Returns
    -------
    DataFrame
        dataset, protocol, and the methods; NaN where there is no figure.
    """
    published_metric = "seconds" if metric == CPU else metric
    lines = []
    for name, part in chosen.groupby("dataset", sort=False):
        known = {method: figure(SKMMC_PAPER, str(name), method, published_metric) for method in METHODS}
        lines.append({"dataset": name, "protocol": "published", **known})
        for protocol in (PAPER, LABEL_FREE):
            found = part[part["protocol"] == protocol].set_index("method")[metric]
            lines.append({"dataset": name, "protocol": protocol, **found.reindex(METHODS)})
    return pd.DataFrame(lines).rename(columns={method: f"{method}{suffix}" for method in METHODS})


def selection_table(figures: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """SKMMC's least error beside the least of as many coin flips: what the row measures.

    Parameters
    ----------
    figures : DataFrame
        One row a cell.
    chosen : DataFrame
        One row for each data set, protocol and method.

    Returns
    -------
    DataFrame
        The published error, ours by both protocols, the mean of SKMMC's runs of which the least is shown,
        k-means, the least of the coin flips with its deviation, and "measures": "clustering" where ours lies
        more than two deviations below it, else "selection".
    """
    errors = chosen.set_index(["dataset", "protocol", "method"])[ERROR]
    coins = figures[figures["method"] == COINS].groupby("dataset", sort=False)
    runs = figures[(figures["method"] == SKMMC) & (figures["protocol"] == PAPER)]
    means = runs.groupby("dataset")["mean_error"].mean()
    lines = []
    for name, luck in coins[ERROR]:
        ours, mean, sd = errors.get((name, PAPER, SKMMC), np.nan), luck.mean(), luck.std()
        lines.append(
            {
                "dataset": name,
                "flips": coins["flips"].first()[name],
                "published SKMMC error": figure(SKMMC_PAPER, str(name), SKMMC, ERROR),
                "SKMMC error": ours,
                "mean error of its runs": means.get(name, np.nan),
                "SKMMCv2 error": errors.get((name, PAPER, SKMMC2), np.nan),
                "label-free SKMMC error": errors.get((name, LABEL_FREE, SKMMC), np.nan),
                "label-free SKMMCv2 error": errors.get((name, LABEL_FREE, SKMMC2), np.nan),
                "k-means error": errors.get((name, LABEL_FREE, KMEANS), np.nan),
                "coin flips error": mean,
                "error's deviation": sd,
                "measures": "clustering" if ours < mean - 2 * sd else "selection",
            }
        )
    return pd.DataFrame(lines)


def goals_of(settings: pd.DataFrame) -> list[Goal]:
    """Errors by the classes, from coin flips and from the best starts, and of both forms without classes.

    Parameters
    ----------
    settings : DataFrame
        One row for each data set, protocol, method and setting: means over the seeds.

    Returns
    -------
    list of Goal
        Of the data sets that are there.
    """
    ours = settings[(settings["method"] == SKMMC) & (settings["protocol"] == PAPER)]
    free = settings[settings["protocol"] == LABEL_FREE]
    return [
        *_goals(ours[ours["starts"] == COIN_FLIP], CHOSEN, "classes known"),
        *_goals(ours, BEST_STARTS, "classes known, best starts"),
        *_goals(free[free["method"] == SKMMC], FREE, f"{SKMMC}, label-free"),
        *_goals(free[free["method"] == SKMMC2], FREE, f"{SKMMC2}, label-free"),
    ]


def _goals(settings: pd.DataFrame, bounds: dict[str, float], what: str) -> list[Goal]:
    """A goal for each data set: its least error over the settings, to a tenth of a per cent."""
    least = settings.groupby("dataset")[ERROR].min()
    return [
        Goal(f"{name}: {what}", round(100 * least[name], 1), most, "%")
        for name, most in bounds.items()
        if name in least
    ]
