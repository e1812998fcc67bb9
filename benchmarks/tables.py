"""Turn runs into tables: statistics over seeds, selections, ratios, slopes and goals."""

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
    """A figure and its bound, which is an upper bound unless ``at_least``."""

    what: str
    figure: float
    bound: float
    unit: str = ""
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether the figure satisfies the bound; False for NaN."""
        if self.at_least:
            return bool(self.figure >= self.bound)
        return bool(self.figure <= self.bound)


def goals_of(
    figures: Any, bounds: Any, what: str, unit: str = "", at_least: bool = False
) -> list[Goal]:
    """Return a goal for each figure with a bound; ``{}`` in ``what`` is its name.

    Parameters
    ----------
    figures : Series or mapping
        Figures by name. Rates in per cent or points are passed as fractions.
    bounds : Series, mapping or float
        Bounds by name, or one bound for all figures, in the unit of the figures.
    what : str
        The measured quantity.
    unit : str, default=""
        Unit to print; "%" and "points" convert fractions to per cent.
    at_least : bool, default=False
        Whether the bounds are lower bounds.

    Examples
    --------
    >>> from benchmarks.tables import goals_of
    >>> bounds = {"heart": 0.3, "breast": 0.1}
    >>> goals_of({"heart": 0.25, "liver": 0.5}, bounds, "{}: error", "%")
    [Goal(what='heart: error', figure=25.0, bound=30.0, unit='%', at_least=False)]
    """
    scale = 100 if unit in ("%", "points") else 1
    if isinstance(bounds, int | float):
        bounds = dict.fromkeys(figures.keys(), bounds)
    goals = []
    for name, bound in dict(bounds).items():
        if name in figures:
            goal = Goal(
                what=what.format(name),
                figure=round(scale * figures[name], 12),
                bound=round(scale * bound, 4),
                unit=unit,
                at_least=at_least,
            )
            goals.append(goal)
    return goals


def verdicts(goals: Sequence[Goal]) -> pd.DataFrame:
    """Return the goals as a table: goal, figure, bound, unit and verdict."""
    table = pd.DataFrame(goals).rename(columns={"what": "goal"})
    signs = table.pop("at_least").map({True: ">= ", False: "<= "})
    table["bound"] = signs + table["bound"].map("{:g}".format)
    return table.assign(
        verdict=["reached" if goal.reached else "missed" for goal in goals]
    )


class Result(NamedTuple):
    """The result of a section: tables by name, goals, and the tables to print (None: all)."""

    tables: dict[str, pd.DataFrame]
    goals: Sequence[Goal] = ()
    shown: tuple[str, ...] | None = None


# -- statistics ------------------------------------------------------------------------


class Slope(NamedTuple):
    """Slope of a line through logarithms, with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def log_slope(sizes: Any, values: Any) -> Slope:
    """Fit the slope of log(values) against log(sizes), with Student's interval.

    Without two different sizes, all values are NaN; with fewer than three points, the
    ends of the interval are NaN.

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
    slope = float(line.slope)
    # NaN for two points.
    half = float(t.ppf((1 + CONFIDENCE) / 2, x.size - 2) * line.stderr)
    return Slope(slope, slope - half, slope + half)


def slopes_over(
    table: pd.DataFrame, keys: Sequence[str], column: str = "seconds"
) -> pd.DataFrame:
    """Return the slope of a column against n for each group, with its interval.

    Groups of a single size are left out.

    Returns
    -------
    DataFrame
        The keys, the sizes, the slope, and the ends of its interval (low, high).
    """
    rows = []
    for group, part in table.groupby(list(keys), sort=False):
        slope = log_slope(part["n"], part[column])
        rows.append((*group, len(part), *slope))
    slopes = pd.DataFrame(rows, columns=[*keys, "sizes", "slope", "low", "high"])
    return slopes.dropna(subset="slope")


def over_seeds(
    frame: pd.DataFrame, keys: Sequence[str], metric: str, *others: str
) -> pd.DataFrame:
    """Summarise a metric over the seeds, in one row per group.

    Parameters
    ----------
    frame : DataFrame
        One row per run; failed runs are left out.
    keys : sequence of str
        Columns that make a group.
    metric : str
        Column that is averaged.
    *others : str
        Columns of which only the mean is computed.

    Returns
    -------
    DataFrame
        One row per group, in order of first appearance, with the keys, n, d,
        ``metric``, its sample standard deviation as ``metric`` + " sd" (NaN for one
        run), runs, the others, seconds and peak_mib.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.tables import over_seeds
    >>> frame = pd.DataFrame({"method": "a", "error": [0.25, 0.75]})
    >>> frame = frame.assign(seconds=1.0, status="ok", n=9, d=2, peak_mib=50.0)
    >>> over_seeds(frame, ["method"], "error")["error"].tolist()
    [0.5]
    """
    succeeded = frame[frame["status"] == "ok"]
    # No run may have a metric.
    columns = dict.fromkeys([*succeeded.columns, metric, *others])
    succeeded = succeeded.reindex(columns=list(columns))
    statistics = {
        "n": ("n", "first"),
        "d": ("d", "first"),
        metric: (metric, "mean"),
        f"{metric} sd": (metric, "std"),
        "runs": (metric, "count"),
        **{name: (name, "mean") for name in others},
        "seconds": ("seconds", "median"),
        "peak_mib": ("peak_mib", "max"),
    }
    groups = succeeded.groupby(list(keys), sort=False, dropna=False)
    table = groups.agg(**statistics)
    return table.astype({"n": "Int64", "d": "Int64"}).reset_index()


def best(
    table: pd.DataFrame, keys: Sequence[str], metric: str, largest: bool = False
) -> pd.DataFrame:
    """Return the row with the smallest (or largest) metric in each group.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.tables import best
    >>> table = pd.DataFrame({"method": ["a", "a", "b"], "width": [1, 2, 1]})
    >>> table["error"] = [0.5, 0.25, 0.5]
    >>> best(table, ["method"], "error")["width"].tolist()
    [2, 1]
    """
    losses = (-table[metric] if largest else table[metric]).fillna(np.inf)
    rows = losses.groupby([table[key] for key in keys], sort=False).idxmin()
    return table.loc[rows].reset_index(drop=True)


def choices_of(frame: pd.DataFrame, keys: Sequence[str]) -> dict[str, str]:
    """Return the parameters that differ within their group, as JSON text.

    Parameters
    ----------
    frame : DataFrame
        With the column "parameters", JSON text.
    keys : sequence of str
        Columns that make a group.

    Returns
    -------
    dict
        Maps each text to a text; the text of a group with a single text is unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.tables import choices_of
    >>> texts = ['{"eta": 0.1, "width": 1}', '{"eta": 0.1, "width": 2}']
    >>> frame = pd.DataFrame({"method": "a", "parameters": texts})
    >>> choices_of(frame, ["method"])[texts[0]]
    '{"width": 1}'
    """
    choices = {}
    for _, texts in frame.groupby(list(keys), sort=False)["parameters"]:
        for text, chosen in differing(texts.unique()).items():
            choices[text] = json.dumps(chosen) if chosen else text
    return choices


def differing(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each JSON text that differ between the texts."""
    parameters = {text: json.loads(text) for text in texts}
    # Values may be lists, which are not hashable.
    pairs = [{str(pair) for pair in each.items()} for each in parameters.values()]
    shared = set.intersection(*pairs)

    def without_shared(each: dict[str, Any]) -> dict[str, Any]:
        return {
            name: each[name] for name in each if str((name, each[name])) not in shared
        }

    return {text: without_shared(each) for text, each in parameters.items()}


def ratio_to(
    table: pd.DataFrame,
    peer: pd.DataFrame,
    key: str = "dataset",
    column: str = "seconds",
) -> pd.Series:
    """Divide a column by the peer's, matched by a key; NaN if the peer has no value."""
    return table[column] / table[key].map(peer.set_index(key)[column])


def beside_published(
    table: pd.DataFrame, paper: str, metrics: Mapping[str, str]
) -> pd.DataFrame:
    """Add columns of published metrics; NaN except in rows of the paper's protocol.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.published import RLS
    >>> from benchmarks.tables import beside_published
    >>> table = pd.DataFrame({"dataset": ["iris"], "method": ["UMC-RLS"]})
    >>> table["protocol"] = "paper"
    >>> beside_published(table, RLS, {"published ari": "ari"})["published ari"].tolist()
    [0.96]
    """

    columns: dict[str, list[float]] = {column: [] for column in metrics}
    for row in table.itertuples():
        for column, metric in metrics.items():
            value = np.nan
            if row.protocol == PAPER:
                value = figure(paper, row.dataset, row.method, metric)
            columns[column].append(value)
    return table.assign(**columns)


def measures_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return measures of the runs that succeeded, without most columns of their identity."""
    hidden = ["part", "protocol", "parameters", "status", "reason", "digest"]
    return frame[frame["status"] == "ok"].drop(columns=hidden)


# -- publishing ------------------------------------------------------------------------


def publish(study: str, result: Result, options: Options) -> None:
    """Print the tables and goals of a study, and write them as CSV."""
    facts = versions()
    facts_text = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"\n== {study}: {facts_text}")
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
    """Return a frame as text, with errors in per cent."""
    errors = [name for name in frame.columns if "error" in name]
    formats: dict[str, Any] = dict.fromkeys(errors, "{:.1%}".format)
    return frame.to_string(
        index=False, formatters=formats, float_format="{:.4g}".format, na_rep=""
    )


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV, atomically."""
    with whole_file(path) as aside:
        frame.to_csv(aside, index=False)
