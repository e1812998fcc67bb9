"""From runs to tables: statistics over seeds, choices, ratios, slopes and goals; how tables are published."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.journal import versions, whole_file
from benchmarks.protocol import PAPER
from benchmarks.published import figure
from benchmarks.run import Options

CONFIDENCE = 0.95


class Goal(NamedTuple):
    """A figure and the bound it should keep; the bound is an upper one unless ``at_least``."""

    what: str
    figure: float
    bound: float
    unit: str = ""
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether the figure keeps its bound; NaN does not."""
        return bool(
            self.figure >= self.bound if self.at_least else self.figure <= self.bound
        )


def goals_of(
    figures: Any, bounds: Any, what: str, unit: str = "", at_least: bool = False
) -> list[Goal]:
    """A goal for each figure that has a bound; ``{}`` in ``what`` stands for its name.

    Parameters
    ----------
    figures : Series or mapping
        By name. Rates in per cent or points are given as shares.
    bounds : Series, mapping or float
        By name, or one for all; in the unit of the figures.
    what : str
        The measured quantity.
    unit : str, default=""
        Unit for people; "%" and "points" turn shares into per cent.
    at_least : bool, default=False
        Whether the bounds are lower ones.

    Examples
    --------
    >>> from benchmarks.tables import goals_of
    >>> goals_of({"heart": 0.25, "liver": 0.5}, {"heart": 0.3, "breast": 0.1}, "{}: error", "%")
    [Goal(what='heart: error', figure=25.0, bound=30.0, unit='%', at_least=False)]
    """
    scale = 100 if unit in ("%", "points") else 1
    known = (
        dict.fromkeys(figures.keys(), bounds)
        if isinstance(bounds, int | float)
        else dict(bounds)
    )
    return [
        Goal(
            what.format(name),
            round(scale * figures[name], 12),
            round(scale * bound, 4),
            unit,
            at_least,
        )
        for name, bound in known.items()
        if name in figures
    ]


def verdicts(goals: Sequence[Goal]) -> pd.DataFrame:
    """The goals as a table: goal, figure, bound, unit, and whether it is reached or missed."""
    table = pd.DataFrame(goals).rename(columns={"what": "goal"})
    signs = table.pop("at_least").map({True: ">= ", False: "<= "})
    table["bound"] = signs + table["bound"].map("{:g}".format)
    return table.assign(
        verdict=["reached" if goal.reached else "missed" for goal in goals]
    )


class Result(NamedTuple):
    """Result of a section: tables by name, goals, and the tables that are printed (None: all)."""

    tables: dict[str, pd.DataFrame]
    goals: Sequence[Goal] = ()
    shown: tuple[str, ...] | None = None


# -- statistics ------------------------------------------------------------------------


class Slope(NamedTuple):
    """Slope of a line through logarithms, and the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float


def log_slope(sizes: Any, values: Any) -> Slope:
    """Slope of log(values) against log(sizes) by least squares, with Student's interval.

    All is NaN without two different sizes, and the ends with fewer than three points.

    Examples
    --------
    >>> from benchmarks.tables import log_slope
    >>> slope = log_slope([10, 100, 1000, 10000], [1, 11, 90, 1000])
    >>> round(slope.value, 2), slope.low < 1 < slope.high
    (0.99, True)
    """
    from scipy.stats import linregress, t

    x = np.log(np.asarray(sizes, float))
    y = np.log(np.asarray(values, float))
    if np.unique(x).size < 2:
        return Slope(np.nan, np.nan, np.nan)
    line = linregress(x, y)
    half = t.ppf((1 + CONFIDENCE) / 2, x.size - 2) * line.stderr  # NaN of two points
    return Slope(*map(float, (line.slope, line.slope - half, line.slope + half)))


def slopes_over(
    table: pd.DataFrame, keys: Sequence[str], column: str = "seconds"
) -> pd.DataFrame:
    """Slope of a column against n for each group, with its interval; groups of a single size are left out.

    Returns
    -------
    DataFrame
        The keys, sizes, slope, low, high.
    """
    rows = [
        (*group, len(part), *log_slope(part["n"], part[column]))
        for group, part in table.groupby(list(keys), sort=False)
    ]
    return pd.DataFrame(rows, columns=[*keys, "sizes", "slope", "low", "high"]).dropna(
        subset="slope"
    )


def over_seeds(
    frame: pd.DataFrame, keys: Sequence[str], metric: str, *others: str
) -> pd.DataFrame:
    """Mean and deviation of a metric over the seeds, median seconds, largest memory: one row a group.

    Parameters
    ----------
    frame : DataFrame
        One row a run; runs that failed are left out.
    keys : sequence of str
        Columns that make a group.
    metric : str
        Column that is averaged.
    *others : str
        Columns of which only the mean is wanted.

    Returns
    -------
    DataFrame
        Groups in the order in which they first come: the keys, n, d, ``metric``,
        ``metric`` and " sd" (of a sample: ddof=1, NaN for one run), runs, the others,
        seconds, peak_mib.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.tables import over_seeds
    >>> frame = pd.DataFrame({"method": "a", "error": [0.25, 0.75], "seconds": [1.0, 2.0], "status": "ok"})
    >>> over_seeds(frame.assign(n=9, d=2, peak_mib=50.0), ["method"], "error").iloc[0].to_dict()["error"]
    0.5
    """
    ran = frame[frame["status"] == "ok"]
    ran = ran.reindex(
        columns=list(dict.fromkeys([*ran.columns, metric, *others]))
    )  # no run may have one
    groups = ran.groupby(list(keys), sort=False, dropna=False)
    means = {name: (name, "mean") for name in others}
    last = {"seconds": ("seconds", "median"), "peak_mib": ("peak_mib", "max")}
    spread = {
        metric: (metric, "mean"),
        f"{metric} sd": (metric, "std"),
        "runs": (metric, "count"),
    }
    table = groups.agg(n=("n", "first"), d=("d", "first"), **spread, **means, **last)
    return table.astype({"n": "Int64", "d": "Int64"}).reset_index()


def best(
    table: pd.DataFrame, keys: Sequence[str], metric: str, largest: bool = False
) -> pd.DataFrame:
    """The row of the least (or largest) metric in each group, the first of equals: a choice by the classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.tables import best
    >>> table = pd.DataFrame({"method": ["a", "a", "b"], "width": [1, 2, 1], "error": [0.5, 0.25, 0.5]})
    >>> best(table, ["method"], "error")["width"].tolist()
    [2, 1]
    """
    losses = (-table[metric] if largest else table[metric]).fillna(np.inf)
    rows = losses.groupby([table[key] for key in keys], sort=False).idxmin()
    return table.loc[rows].reset_index(drop=True)


def choices_of(frame: pd.DataFrame, keys: Sequence[str]) -> dict[str, str]:
    """Parameters without those that have one value in their group: those chosen there, as JSON text.

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
    >>> from benchmarks.tables import choices_of
    >>> texts = ['{"eta": 0.1, "width": 1}', '{"eta": 0.1, "width": 2}']
    >>> choices_of(pd.DataFrame({"method": "a", "parameters": texts}), ["method"])[texts[0]]
    '{"width": 1}'
    """
    groups = frame.groupby(list(keys), sort=False)["parameters"]
    found = [pair for _, texts in groups for pair in differing(texts.unique()).items()]
    return {text: json.dumps(chosen) if chosen else text for text, chosen in found}


def differing(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each of the texts (JSON), the parameters that do not have one value in all of them."""
    given = {text: json.loads(text) for text in texts}
    held = set.intersection(*({*map(str, values.items())} for values in given.values()))
    return {
        text: {
            name: value
            for name, value in values.items()
            if str((name, value)) not in held
        }
        for text, values in given.items()
    }


def ratio_to(
    table: pd.DataFrame,
    peer: pd.DataFrame,
    key: str = "dataset",
    column: str = "seconds",
) -> pd.Series:
    """A column over that of a peer, matched by a key; NaN if the peer has none."""
    return table[column] / table[key].map(peer.set_index(key)[column])


def beside_published(
    table: pd.DataFrame, paper: str, metrics: Mapping[str, str]
) -> pd.DataFrame:
    """The table with new columns, each of a published metric; NaN but in rows of the paper's protocol.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.published import RLS
    >>> from benchmarks.tables import beside_published
    >>> table = pd.DataFrame({"dataset": ["iris"], "method": ["UMC-RLS"], "protocol": ["paper"]})
    >>> beside_published(table, RLS, {"published ari": "ari"})["published ari"].tolist()
    [0.96]
    """
    rows = list(table[["dataset", "method", "protocol"]].itertuples(index=False))
    found = {
        column: [
            figure(paper, row[0], row[1], metric) if row[2] == PAPER else np.nan
            for row in rows
        ]
        for column, metric in metrics.items()
    }
    return table.assign(**found)


def measures_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Measures of the runs that succeeded, without most of their identity."""
    hidden = ["part", "protocol", "parameters", "status", "reason", "digest"]
    return frame[frame["status"] == "ok"].drop(columns=hidden)


# -- publishing ------------------------------------------------------------------------


def publish(study: str, result: Result, options: Options) -> None:
    """Print the tables and goals of a study, and write them as CSV."""
    facts = versions()
    print(
        f"\n== {study}: {', '.join(f'{name} {value}' for name, value in facts.items())}"
    )
    for name, frame in result.tables.items():
        write_table(frame.assign(**facts), options.out / f"{name}.csv")
        if result.shown is None or name in result.shown:
            print(f"\n{name}\n{plain(frame)}")
    if result.goals:
        goals = verdicts(result.goals)
        write_table(goals.assign(**facts), options.out / f"{study}-goals.csv")
        print(f"\n{plain(goals)}")
        if options.quick or options.rows:
            print(
                "Fewer rows than the goals are set for: these verdicts are only a hint."
            )


def plain(frame: pd.DataFrame) -> str:
    """A frame as text for people, errors in per cent."""
    formats: dict[str, Any] = {
        name: "{:.1%}".format for name in frame.columns if "error" in name
    }
    return frame.to_string(
        index=False, formatters=formats, float_format="{:.4g}".format, na_rep=""
    )


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV, aside and then in its place."""
    with whole_file(path) as aside:
        frame.to_csv(aside, index=False)
