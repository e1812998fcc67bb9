"""Statistics over cells: mean and deviation over seeds, ratios in the same run, slopes with intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

CONFIDENCE = 0.95


class Slope(NamedTuple):
    """Slope of a line through logarithms, with a 95 % confidence interval.

    Parameters
    ----------
    value : float
        The slope.
    low, high : float
        Ends of the interval; NaN with fewer than three points.
    """

    value: float
    low: float
    high: float


def log_slope(sizes: Any, values: Any) -> Slope:
    """Slope of log(values) against log(sizes) by least squares, with Student's interval.

    Parameters
    ----------
    sizes, values : array-like of shape (n_points,)
        Above 0.

    Returns
    -------
    Slope
        All NaN where there are not two different sizes.

    Examples
    --------
    >>> from benchmarks._statistics import log_slope
    >>> slope = log_slope([10, 100, 1000, 10000], [1, 11, 90, 1000])
    >>> round(slope.value, 2), slope.low < 1 < slope.high
    (0.99, True)
    """
    from scipy.stats import linregress, t

    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(values, float))
    if np.unique(x).size < 2:
        return Slope(np.nan, np.nan, np.nan)
    line = linregress(x, y)
    if x.size < 3:
        return Slope(float(line.slope), np.nan, np.nan)
    half = float(t.ppf((1 + CONFIDENCE) / 2, x.size - 2) * line.stderr)
    return Slope(float(line.slope), float(line.slope) - half, float(line.slope) + half)


def over_seeds(frame: pd.DataFrame, keys: Sequence[str], metric: str, *others: str) -> pd.DataFrame:
    """Mean and deviation of a metric over the seeds, median seconds, largest memory: one row a group.

    Parameters
    ----------
    frame : DataFrame
        One row a cell; cells that failed are left out.
    keys : sequence of str
        Columns that make a group.
    metric : str
        Column that is averaged.
    *others : str
        Columns of which the mean alone is wanted.

    Returns
    -------
    DataFrame
        Groups in the order in which they first come: the keys, n, d, ``metric``, ``metric`` and " sd" (of
        a sample: ddof=1, NaN for one run), runs, the others, seconds, peak_mib.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks._statistics import over_seeds
    >>> frame = pd.DataFrame({"method": "a", "error": [0.25, 0.75], "seconds": [1.0, 2.0], "status": "ok"})
    >>> over_seeds(frame.assign(n=9, d=2, peak_mib=50.0), ["method"], "error").iloc[0].to_dict()["error"]
    0.5
    """
    ran = frame[frame["status"] == "ok"]
    ran = ran.reindex(columns=list(dict.fromkeys([*ran.columns, metric, *others])))  # no cell may have one
    groups = ran.groupby(list(keys), sort=False, dropna=False)
    table = pd.DataFrame(
        {
            "n": groups["n"].first(),
            "d": groups["d"].first(),
            metric: groups[metric].mean(),
            f"{metric} sd": groups[metric].std(),
            "runs": groups[metric].count(),
            **{name: groups[name].mean() for name in others},
            "seconds": groups["seconds"].median(),
            "peak_mib": groups["peak_mib"].max(),
        }
    )
    return table.astype({"n": "Int64", "d": "Int64"}).reset_index()


def best(table: pd.DataFrame, keys: Sequence[str], metric: str, largest: bool = False) -> pd.DataFrame:
    """In each group the row of the least metric, the first of equals: what a choice by the classes gives.

    Where `largest` is True the row of the largest.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks._statistics import best
    >>> table = pd.DataFrame({"method": ["a", "a", "b"], "width": [1, 2, 1], "error": [0.5, 0.25, 0.5]})
    >>> best(table, ["method"], "error")["width"].tolist()
    [2, 1]
    """
    losses = (-table[metric] if largest else table[metric]).fillna(np.inf)
    rows = losses.groupby([table[key] for key in keys], sort=False).idxmin()
    return table.loc[rows].reset_index(drop=True)


def choices_of(frame: pd.DataFrame, keys: Sequence[str]) -> dict[str, str]:
    """Parameters without those that have one value in their group: what was chosen there, as JSON text.

    Parameters
    ----------
    frame : DataFrame
        With the column "parameters", JSON text.
    keys : sequence of str
        Columns that make a group.

    Returns
    -------
    dict
        From text to text; a group of a single text keeps it whole.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks._statistics import choices_of
    >>> texts = ['{"eta": 0.1, "width": 1}', '{"eta": 0.1, "width": 2}']
    >>> choices_of(pd.DataFrame({"method": "a", "parameters": texts}), ["method"])[texts[0]]
    '{"width": 1}'
    """
    found = {}
    for _, texts in frame.groupby(list(keys), sort=False)["parameters"]:
        given = {text: json.loads(text) for text in texts.unique()}
        held = set.intersection(*({*map(str, values.items())} for values in given.values()))
        for text, values in given.items():
            chosen = {name: value for name, value in values.items() if str((name, value)) not in held}
            found[text] = json.dumps(chosen) if chosen else text
    return found


def ratio_to(
    table: pd.DataFrame, peer: pd.DataFrame, key: str = "dataset", column: str = "seconds"
) -> pd.Series:
    """A column over that of a peer in the same run, group by group; NaN where the peer has none.

    Parameters
    ----------
    table : DataFrame
        Rows with ``key`` and ``column``.
    peer : DataFrame
        The same columns, one row a value of ``key``.
    key, column : str
        What is matched, and what is divided.

    Returns
    -------
    Series
        Aligned with the table.
    """
    return table[column] / table[key].map(peer.set_index(key)[column])
