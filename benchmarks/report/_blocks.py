"""Blocks of a section: figures, the reading under them, and tables, for each part of a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.report import _figures as figures
from benchmarks.report import _reading as reading
from benchmarks.report import _tables as tables
from benchmarks.report._frames import Study, is_share
from benchmarks.report._studies import COINS, FREE, KMEANS, PAPER, About, in_order, is_ours, primary, said
from benchmarks.report._summary import RESOURCES, slopes

MOST_METHODS = 8  # in one figure
SIZES = 3  # so many numbers of rows of one data set make a figure against rows
FILLS = {PAPER: "left", FREE: "full"}
WIDE_RANGE = 50.0  # figures that differ by such a factor stand on a logarithmic axis


class Panel(NamedTuple):
    """A figure and what it shows."""

    figure: Any
    caption: str


class Block(NamedTuple):
    """A part of a section."""

    title: str
    panels: list[Panel]
    reading: list[str]
    tables: list[tables.Table]


def blocks(study: Study, about: About, summary: pd.DataFrame, known: pd.DataFrame) -> list[Block]:
    """The blocks of a study, part by part.

    Parameters
    ----------
    study : Study
        What is on disk.
    about : About
        What is known of it.
    summary : DataFrame
        From `summarise`.
    known : DataFrame
        Published figures of its papers.

    Returns
    -------
    list of Block
        Empty where no cell was computed.
    """
    return [
        block
        for part, rows in summary.groupby("part", sort=True)
        for block in _of_part(str(part), rows, about.of_part(str(part)), known)
    ]


def _of_part(part: str, rows: pd.DataFrame, about: About, known: pd.DataFrame) -> Iterator[Block]:
    metric = primary([name for name in dict.fromkeys(rows["metric"]) if name not in RESOURCES], about)
    title = part[:1].upper() + part[1:]
    if set(rows["method"]) == {""}:
        yield Block(title, [], [], [tables.every_figure(rows, known, about, folded=False)])
        return
    every = [tables.every_figure(rows, known, about)]
    told = reading.comparisons(rows, known, about, metric)
    if about.by_rows and rows["n"].nunique() >= SIZES:
        pivots = [table for name in (metric, "seconds") for table in tables.pivots(rows, known, about, name)]
        panels, growth = against_rows(rows, about, metric)
        told += [*reading.largest(rows, about, metric), *reading.growth(growth, about)]
        yield Block(title, panels, told, [*pivots, *tables.growth_table(growth), *every])
        return
    if about.sweep and rows["x"].notna().any():
        panels = against_parameter(rows, about, metric)
        yield Block(title, panels, [*reading.swept(rows, about, metric)], every)
        return
    heads = tables.headline(rows, known, about, metric) if metric != "seconds" else []
    pivots = tables.pivots(rows, known, about, metric)
    yield Block(title, comparison(rows, known, about, metric), told, [*heads, *pivots, *every])
    for dataset, of_set in rows.groupby("dataset", sort=True):
        if of_set.groupby("method")["n"].nunique().max() >= SIZES:
            panels, growth = against_rows(of_set, about, metric)
            told = reading.growth(growth, about)
            yield Block(f"{dataset}: against the number of rows", panels, told, tables.growth_table(growth))


def comparison(rows: pd.DataFrame, known: pd.DataFrame, about: About, metric: str) -> list[Panel]:
    """Dots: ours by each protocol, as published, k-means and coin flips; a row a data set."""
    kept = rows[rows["metric"] == metric]
    kept = kept.loc[_drawn(kept, about)]
    if kept.empty:
        return []
    styles = _styles(kept, about)
    names = tables.rows_of(kept)
    drawn = []
    for (method, protocol), style in styles.items():
        of_method = kept[(kept["method"] == method) & (kept["protocol"] == protocol)]
        at = [name for name, use in zip(names, kept.index.isin(of_method.index), strict=True) if use]
        name = f"{method}, {protocol}" if kept["protocol"].nunique() > 1 else method
        drawn.append(
            figures.Line(name, _shown(of_method["mean"], metric), at, style, fill=FILLS.get(protocol, "full"))
        )
    printed = known[(known["metric"] == metric) & known["method"].isin(about.ours)]
    for method, of_method in printed.groupby("method", sort=False):
        table = pd.DataFrame({"dataset": kept["dataset"], "name": names}).drop_duplicates("name")
        table = table.merge(of_method, on="dataset")
        if len(table):
            style = next((style for (name, _), style in styles.items() if name == method), len(styles))
            values = _shown(table["value"], metric)
            drawn.append(
                figures.Line(f"{method}, published", values, list(table["name"]), style, fill="none")
            )
    if len(drawn) < 2:
        return []
    figure = figures.dots(drawn, list(dict.fromkeys(names)), _axis(metric), _wide(drawn))
    return [Panel(figure, f"{tables.label(metric)} by data set.")]


def against_rows(rows: pd.DataFrame, about: About, metric: str) -> tuple[list[Panel], pd.DataFrame]:
    """The metric and the seconds against the rows, a figure a protocol; and how the seconds grow."""
    rows = rows.dropna(subset="n")
    growth = slopes(rows[rows["metric"] == "seconds"])
    methods = in_order(rows["method"], about)
    panels = []
    for name in dict.fromkeys((metric, "seconds")):
        for protocol, part in rows[rows["metric"] == name].groupby("protocol", sort=False):
            timed = growth[(growth["protocol"] == protocol) & (name == "seconds")]
            fitted = {fit.method: (fit.slope, fit.intercept) for fit in timed.itertuples()}
            drawn = _lines(part, methods, "n", name, fitted)
            title = f"{_axis(name)}, {protocol}"
            caption = f"{tables.label(name)} against rows, {said(str(protocol))}."
            caption += " Lines are least squares fits through the logarithms." if fitted else ""
            panels.append(Panel(figures.lines(drawn, "rows", title, log_y=name == "seconds"), caption))
    return panels, growth


def against_parameter(rows: pd.DataFrame, about: About, metric: str) -> list[Panel]:
    """The metric and the seconds against the swept parameter.

    A figure a method with a line a data set, or, where methods are to be compared, the other way round.
    """
    panels = []
    points = rows[rows["x"].notna()]
    for name in dict.fromkeys((metric, "seconds")):
        of_metric = points[points["metric"] == name]
        by = "method" if points["method"].nunique() == 1 else "dataset"
        for (protocol, one), part in of_metric.groupby(["protocol", by], sort=False):
            if by == "method":
                part = part.assign(method=tables.rows_of(part))
            drawn = _lines(part, sorted(set(part["method"])), "x", name, {})
            figure = figures.lines(
                drawn, about.sweep, _axis(name), log_y=name == "seconds", log_x=bool(part["x"].min() > 0)
            )
            where = f"of {one}" if by == "method" else f"on {one}"
            caption = f"{tables.label(name)} {where} against {about.sweep}, {said(str(protocol))}."
            panels.append(Panel(figure, caption))
    return panels


def _lines(
    part: pd.DataFrame, methods: list[str], x: str, metric: str, fitted: dict[str, tuple[float, float]]
) -> list[figures.Line]:
    """A line for each method that has a point; its style is its place among all of them."""
    drawn = []
    for style, method in enumerate(methods):
        of_method = part[part["method"] == method].sort_values(x)
        if of_method.empty:
            continue
        drawn.append(
            figures.Line(
                method,
                list(of_method[x]),
                _shown(of_method["mean"], metric),
                style,
                sd=_shown(of_method["sd"], metric),
                fit=fitted.get(method),
            )
        )
    return drawn


def _drawn(kept: pd.DataFrame, about: About) -> list[bool]:
    """Ours and the yardsticks; where a study names none as ours, the first methods."""
    methods = in_order(kept["method"], about)
    yardsticks = [name for name in methods if name in (KMEANS, COINS)]
    ours = [name for name in methods if is_ours(name, about)] if about.ours else methods
    chosen = {*ours[: MOST_METHODS - len(yardsticks)], *yardsticks}
    return [method in chosen for method in kept["method"]]


def _styles(kept: pd.DataFrame, about: About) -> dict[tuple[str, str], int]:
    """A colour for each method, whatever the protocol."""
    methods = in_order(kept["method"], about)
    pairs = dict.fromkeys(zip(kept["method"], kept["protocol"], strict=True))
    return {
        (method, protocol): number
        for number, method in enumerate(methods)
        for name, protocol in pairs
        if name == method
    }


def _shown(values: pd.Series, metric: str) -> list[float]:
    return list(100 * values if is_share(metric) else values)


def _axis(metric: str) -> str:
    return tables.label(metric) + (" (%)" if is_share(metric) else "")


def _wide(drawn: list[figures.Line]) -> bool:
    values = [value for line in drawn for value in line.x]
    return bool(min(values) > 0 and max(values) > WIDE_RANGE * min(values))
