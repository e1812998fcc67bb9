"""Figures 1 and 2 of the SKMMC paper: error and time of all methods against the number of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER
from benchmarks._common import Goal
from benchmarks._compare import ERROR, KMEANS, SKMMC
from benchmarks._statistics import log_slope

LEAST_ROWS, MOST_SLOPE, MOST_RATIO = 3000, 1.1, 1.0


def slopes_of(table: pd.DataFrame) -> pd.DataFrame:
    """Slope of log(seconds) against log(n) for each protocol and method, with its interval.

    Parameters
    ----------
    table : DataFrame
        From `table_of`, one row a size.

    Returns
    -------
    DataFrame
        protocol, method, sizes, slope, low, high; methods of a single size are left out.
    """
    rows = []
    for (protocol, method), part in table.groupby(["protocol", "method"], sort=False):
        slope = log_slope(part["n"], part["seconds"])
        if np.isfinite(slope.value):
            rows.append(
                {
                    "protocol": protocol,
                    "method": method,
                    "sizes": len(part),
                    "slope": slope.value,
                    "low": slope.low,
                    "high": slope.high,
                }
            )
    return pd.DataFrame(rows, columns=["protocol", "method", "sizes", "slope", "low", "high"])


def goals_of(name: str, table: pd.DataFrame) -> list[Goal]:
    """Error below every other method's from 3,000 rows up, slope of time, time beside k-means at the end.

    Parameters
    ----------
    name : str
        Of the study.
    table : DataFrame
        From `table_of`, one row a size.

    Returns
    -------
    list of Goal
        Three for each protocol; fewer where there are too few sizes.
    """
    goals = []
    slopes = slopes_of(table).set_index(["protocol", "method"])["slope"]
    for protocol in (LABEL_FREE, PAPER):
        rows = table[table["protocol"] == protocol]
        above = 100 * excess_of(rows[rows["n"] >= LEAST_ROWS])
        if len(above):
            what = f"{name}, {protocol}: error above the best other method, worst of {len(above)} sizes"
            goals.append(Goal(what, above.max(), 0, "points"))
        if (protocol, SKMMC) in slopes:
            goals.append(Goal(f"{name}, {protocol}: slope of time", slopes[protocol, SKMMC], MOST_SLOPE))
        ours = rows[rows["method"] == SKMMC]
        if len(ours):
            last = ours.loc[ours["n"].idxmax()]
            what = f"{name}, {protocol}: time at {last['n']:,} rows"
            goals.append(Goal(what, last["of k-means"], MOST_RATIO, f"of {KMEANS}"))
    return goals


def excess_of(rows: pd.DataFrame) -> pd.Series:
    """Error of SKMMC less the least of all other methods, for each size of one protocol."""
    others = rows[~rows["method"].str.startswith(SKMMC)].groupby("n")[ERROR].min()
    return (rows[rows["method"] == SKMMC].set_index("n")[ERROR] - others).dropna()
