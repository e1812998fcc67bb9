"""Figures: curves over rows or a parameter, and dots for each data set; SVG for the page, PNG for README."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.report.summary import PAPER, PUBLISHED, YARDSTICKS, View, is_ours, is_share, row_names
from benchmarks.report.tables import label

# Distinct for colour-blind readers together with the markers, and dark enough for text on white. On the page
# each is a variable of the style sheet, which has a lighter twin for dark screens.
COLOURS = ("#0072b2", "#b34700", "#00735c", "#a0458a", "#7a5c00", "#5b4fbf", "#8b1e3f", "#4a5560")
MARKERS = "osD^vP*X<>"
INK, GRID = "#1a1a1b", "#d6d6d7"
FONT, DPI = 10, 140
CHARACTER = 0.55 * FONT / 72  # inches, about the mean width of a character
WIDTH, HEIGHT = 4.4, 3.3  # inches; a phone shows them at about this size
FILLS = {PAPER: "left", PUBLISHED: "none"}  # of the markers; other protocols have full ones
MOST_METHODS = 8  # in one figure
WIDE_RANGE = 50.0  # values that differ by such a factor stand on a logarithmic axis


class Line(NamedTuple):
    """One method.

    Parameters
    ----------
    name : str
        For its label.
    x, y : sequence
        Points; for dots, ``x`` are the values and ``y`` the names of the rows.
    style : int
        Number of its colour and marker.
    sd : sequence of float, default=()
        Standard deviations of ``y``.
    fill : {"full", "left", "none"}, default="full"
        How its marker is filled.
    fit : tuple of float or None, default=None
        Slope and intercept in logarithms of a line to draw.
    """

    name: str
    x: Sequence[Any]
    y: Sequence[Any]
    style: int
    sd: Sequence[float] = ()
    fill: str = "full"
    fit: tuple[float, float] | None = None


class Panel(NamedTuple):
    """A figure and what it shows."""

    figure: Any
    caption: str


def dots_by_data_set(rows: pd.DataFrame, view: View, metric: str) -> list[Panel]:
    """Dots for each data set: ours by each protocol and as published, k-means and coin flips.

    Where a view names no method as ours, the first methods.
    """
    rows = rows[rows["metric"] == metric]
    rows = rows.assign(name=row_names(rows), published=rows["protocol"] == PUBLISHED)
    methods = list(rows.sort_values("order")["method"].unique())
    yardsticks = [name for name in methods if name in YARDSTICKS]
    ours = [name for name in methods if is_ours(name, view) or not view.ours]
    shown = [*ours[: MOST_METHODS - len(yardsticks)], *yardsticks]
    rows = rows[rows["method"].isin(shown) & (~rows["published"] | rows["method"].isin(ours))]
    styles = {name: place for place, name in enumerate(name for name in methods if name in shown)}
    several = rows[~rows["published"]]["protocol"].nunique() > 1
    drawn = []
    # Published figures come last in the legend.
    for (published, *_), part in rows.groupby(["published", "order", "rank", "protocol"]):
        method, protocol = part["method"].iloc[0], part["protocol"].iloc[0]
        name = f"{method}, {protocol}" if several or published else method
        fill = FILLS.get(protocol, "full")
        drawn.append(Line(name, _shown(part["mean"], metric), list(part["name"]), styles[method], fill=fill))
    if len(drawn) < 2:
        return []
    values = [value for line in drawn for value in line.x]
    log_x = min(values) > 0 and max(values) > WIDE_RANGE * min(values)
    figure = dots(drawn, list(rows["name"].unique()), _axis(metric), log_x)
    return [Panel(figure, f"{label(metric)} by data set.")]


def curves_over_rows(rows: pd.DataFrame, metric: str, fits: pd.DataFrame, name: str = "") -> list[Panel]:
    """The metric and the seconds against the number of rows, a figure for each protocol.

    Parameters
    ----------
    rows : DataFrame
        From `summarise`.
    metric : str
        What to show besides the seconds.
    fits : DataFrame
        From `slopes`, of the seconds.
    name : str, default=""
        The data set, where it is one.

    Returns
    -------
    list of Panel
        Those of the metric first.
    """
    rows = rows[rows["n"].notna() & (rows["protocol"] != PUBLISHED)]
    methods = list(rows.sort_values("order")["method"].unique())
    panels = []
    for each in dict.fromkeys((metric, "seconds")):
        for protocol, part in rows[rows["metric"] == each].groupby("protocol", sort=False):
            timed = fits[(fits["protocol"] == protocol) & (each == "seconds")]
            fitted = {fit.method: (fit.slope, fit.intercept) for fit in timed.itertuples()}
            drawn = _lines(part, methods, "n", each, fitted)
            figure = lines(drawn, "rows", f"{_axis(each)}, {protocol}", log_y=each == "seconds")
            where = f" of {name}" if name else ""
            slope = " Lines are least squares fits to the logarithms." if fitted else ""
            panels.append(Panel(figure, f"{label(each)} against rows{where}, {protocol}.{slope}"))
    return panels


def curves_over_parameter(rows: pd.DataFrame, sweep: str, metric: str) -> list[Panel]:
    """The metric and the seconds against the swept parameter.

    A figure for each method with a line for each data set; where there are several methods, the other way
    round.
    """
    panels = []
    points = rows[rows["x"].notna()]
    by, word = ("method", "of") if points["method"].nunique() == 1 else ("dataset", "on")
    for each in dict.fromkeys((metric, "seconds")):
        of_metric = points[points["metric"] == each]
        for (protocol, one), part in of_metric.groupby(["protocol", by], sort=False):
            if by == "method":
                part = part.assign(method=row_names(part))
            drawn = _lines(part, sorted(set(part["method"])), "x", each, {})
            figure = lines(drawn, sweep, _axis(each), log_y=each == "seconds", log_x=part["x"].min() > 0)
            panels.append(Panel(figure, f"{label(each)} {word} {one} against {sweep}, {protocol}."))
    return panels


def _lines(
    part: pd.DataFrame, methods: list[str], x: str, metric: str, fitted: dict[str, tuple[float, float]]
) -> list[Line]:
    """A line for each method that has a point; its style is its place among all of them."""
    drawn = []
    for style, method in enumerate(methods):
        points = part[part["method"] == method].sort_values(x)
        if len(points):
            y, sd = _shown(points["mean"], metric), _shown(points["sd"], metric)
            drawn.append(Line(method, list(points[x]), y, style, sd, fit=fitted.get(method)))
    return drawn


def _shown(values: pd.Series, metric: str) -> list[float]:
    return list(100 * values if is_share(metric) else values)


def _axis(metric: str) -> str:
    return label(metric) + (" (%)" if is_share(metric) else "")


def lines(drawn: Sequence[Line], x_label: str, y_label: str, log_y: bool, log_x: bool = True) -> Any:
    """Lines with their names at the right end.

    Parameters
    ----------
    drawn : sequence of Line
        What to draw.
    x_label, y_label : str
        Names of the axes.
    log_y, log_x : bool
        Whether an axis is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        Not yet rendered.
    """
    longest = max(len(line.name) for line in drawn)
    # Room for the names, in inches: about .55 of the font size a character.
    room = min(0.45 * WIDTH, 0.2 + longest * CHARACTER)
    figure, axes = _axes(WIDTH, HEIGHT, (0.62, 0.5, WIDTH - 0.72 - room, HEIGHT - 0.85))
    axes.set(xlabel=x_label, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    axes.set_title(y_label, loc="left")
    for line in drawn:
        _line(axes, line)
    axes.grid(color=GRID, linewidth=0.6)
    axes.minorticks_off()
    if log_x:
        _plain_ticks(axes.xaxis, *axes.get_xlim())
    if log_y:
        _plain_ticks(axes.yaxis, *axes.get_ylim())
    else:
        axes.set_ylim(bottom=0)
    _name_ends(axes, drawn)
    return figure


def dots(drawn: Sequence[Line], names: Sequence[str], x_label: str, log_x: bool = False) -> Any:
    """A row of dots for each name, with a legend above.

    Parameters
    ----------
    drawn : sequence of Line
        What to draw; ``y`` are of ``names``.
    names : sequence of str
        The rows, from above.
    x_label : str
        Name of the axis.
    log_x : bool, default=False
        Whether it is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        Not yet rendered.
    """
    left = 0.15 + max(len(name) for name in names) * CHARACTER
    width = max(WIDTH, left + 3.0)
    # Two columns of the legend where the longest name, its marker and the gaps fit in half of the width.
    columns = 2 if 0.5 + max(len(line.name) for line in drawn) * CHARACTER < width / 2 else 1
    legend = 0.15 + 0.21 * -(-len(drawn) // columns)
    height = 0.6 + max(0.28, 0.065 * len(drawn) + 0.06) * len(names)
    figure, axes = _axes(width, height + legend, (left, 0.5, width - left - 0.2, height - 0.55))
    # The dots of a row stand one below the other, so that none hides another.
    for line, shift in zip(drawn, (np.arange(len(drawn)) + 0.5) / len(drawn) - 0.5, strict=True):
        shown = [(x, names.index(y) + 0.8 * shift) for x, y in zip(line.x, line.y, strict=True)]
        x, y = zip(*shown, strict=True)
        axes.plot(x, y, linestyle="none", label=line.name, clip_on=False, **_marker(line))
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=x_label, xscale="log" if log_x else "linear")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    if not log_x:
        axes.set_xlim(left=0)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color=GRID, linewidth=0.6)
    legend_place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 1), "ncols": columns}
    figure.legend(**legend_place, handletextpad=0.2, frameon=False, labelcolor=INK, fontsize=FONT)
    return figure


def svg(figure: Any, description: str, prefix: str) -> str:
    """A figure as an inline SVG that takes its colours from the page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to render.
    description : str
        What a reader who cannot see it is told.
    prefix : str
        Put before every id, so that those of two figures differ.

    Returns
    -------
    str
        The element, without a declaration of XML.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = text.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    for number, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--series-{number})")
    head, _, rest = text.partition(">")
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(description)}">{rest}'


def png(drawn: Sequence[Any], path: Path) -> None:
    """Write figures as one PNG on white, two in a row."""
    import matplotlib.image as images

    tiles = []
    for figure in drawn:
        figure.set_facecolor("white")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        buffer.seek(0)
        tiles.append(images.imread(buffer)[:, :, :3])
    rows = [tiles[at : at + 2] for at in range(0, len(tiles), 2)]
    heights = [max(tile.shape[0] for tile in row) for row in rows]
    whole = np.ones((sum(heights), max(sum(tile.shape[1] for tile in row) for row in rows), 3))
    for row, height, bottom in zip(rows, heights, np.cumsum(heights), strict=True):
        left = 0
        for tile in row:
            whole[bottom - height :, left:][: tile.shape[0], : tile.shape[1]] = tile
            left += tile.shape[1]
    images.imsave(path, whole, format="png")


def _axes(width: float, height: float, box: tuple[float, float, float, float]) -> tuple[Any, Any]:
    """A figure with axes at a place in inches."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style = dict.fromkeys(inks, INK) | {"font.size": FONT, "axes.titlesize": FONT, "axes.axisbelow": True}
    with mpl.rc_context(style | {"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(width, height))
        left, bottom, wide, high = box
        return figure, figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _marker(line: Line) -> dict[str, Any]:
    style = {"color": _colour(line), "marker": MARKERS[line.style % len(MARKERS)]}
    return style | {"markersize": 6, "fillstyle": line.fill, "markerfacecoloralt": "none"}


def _colour(line: Line) -> str:
    return COLOURS[line.style % len(COLOURS)]


def _line(axes: Any, line: Line) -> None:
    x, y = np.asarray(line.x, float), np.asarray(line.y, float)
    colour = _colour(line)
    if len(line.sd):
        axes.errorbar(x, y, np.nan_to_num(line.sd), fmt="none", ecolor=colour, elinewidth=0.9)
    axes.plot(x, y, linestyle="none" if line.fit else "-", linewidth=1.4, **_marker(line))
    if line.fit:
        slope, intercept = line.fit
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, np.exp(intercept) * ends**slope, linewidth=1.1, color=colour)


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """Numbers as people write them; between the powers of ten too where there are few of these."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: brief(value)))


def brief(value: float) -> str:
    """A number as short as can be.

    Examples
    --------
    >>> from benchmarks.report.figures import brief
    >>> [brief(value) for value in (0.1, 20, 20_000, 1e7)]
    ['0.1', '20', '20k', '10M']
    """
    for unit, word in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{word}"
    return f"{value:g}"


def _name_ends(axes: Any, drawn: Sequence[Line]) -> None:
    """Names to the right of the axes, moved apart where they would touch."""
    # All in shares of the axes, so that they hold at any resolution.
    to_share = axes.transData + axes.transAxes.inverted()
    ends = [to_share.transform((line.x[-1], line.y[-1]))[1] for line in drawn]
    high = axes.get_position().height * axes.figure.get_size_inches()[1] * 72
    for line, height in zip(drawn, spread(ends, 1.2 * FONT / high, 0.0, 1.0), strict=True):
        arrow = {"arrowstyle": "-", "color": _colour(line), "linewidth": 0.6, "relpos": (0, 0.5)}
        axes.annotate(
            line.name,
            xy=(line.x[-1], line.y[-1]),
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            color=_colour(line),
            fontsize=FONT,
            annotation_clip=False,
            arrowprops=arrow | {"shrinkA": 0, "shrinkB": 4},
        )


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart to at least ``gap``, in their order and, where there is room, between two bounds.

    Examples
    --------
    >>> from benchmarks.report.figures import spread
    >>> spread([1.0, 1.0, 9.0], 2.0, 0.0, 10.0)
    [1.0, 3.0, 9.0]
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(order))
    moved = np.maximum.accumulate(np.asarray(places, float)[order] - steps)
    moved = np.minimum(moved, high - steps[-1]) + steps
    result = np.empty_like(moved)
    result[order] = moved + max(low - moved[0], 0.0)
    return [float(place) for place in result]
