"""Figures with curves over rows or a parameter, and with dots for each data set, as SVG or PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.report.summary import (
    FEWEST_SIZES,
    PAPER,
    PUBLISHED,
    YARDSTICKS,
    grows,
    is_share,
)
from benchmarks.report.tables import label
from benchmarks.tables import log_slope

# Colours that colour-blind readers can distinguish together with the markers, and that
# are dark enough for text on white; the page has them as variables.
COLOURS = (
    "#0072b2",
    "#b34700",
    "#00735c",
    "#a0458a",
    "#7a5c00",
    "#5b4fbf",
    "#8b1e3f",
    "#4a5560",
)
MARKERS = "osD^vP*X<>"
INK = "#1a1a1b"
GRID = "#d6d6d7"
FONT = 10
DPI = 140
CHARACTER = 0.55 * FONT / 72  # inches; about the mean width of a character
# inches; about the width of a figure on a phone
WIDTH = 4.6
HEIGHT = 3.3
# fill of the markers; the markers of other protocols are full
FILLS = {
    PAPER: "left",
    PUBLISHED: "none",
}
MOST_METHODS = 8  # largest number in one figure
WIDE_RANGE = 50.0  # ratio of values from which on an axis is logarithmic
LONG_NAME = 24  # number of characters above which a legend has one column
NAME_GAP = 0.07  # between names at the ends of lines; a fraction of the axes' height
STYLE = {
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "xtick.color",
            "ytick.color",
        ),
        INK,
    ),
    **{
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.titlelocation": "left",
        "grid.color": GRID,
    },
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True},
    **{"svg.fonttype": "none", "svg.hashsalt": "the same page of the same frames"},
    **dict.fromkeys(
        ("figure.constrained_layout.w_pad", "figure.constrained_layout.h_pad"), 0.1
    ),
}


class Panel(NamedTuple):
    """Contents of a figure.

    Parameters
    ----------
    caption : str
        Caption, which also describes the figure to readers who cannot see it.
    points : DataFrame
        One row per point, with the name of its line, its style (number of the colour
        and marker), the fill of its marker, x, y and sd.
    x_label, title : str
        Name of the horizontal axis; title above the figure, which names the vertical
        axis.
    log_x, log_y : bool, default=False
        Whether each axis is logarithmic.
    fitted : bool, default=False
        Whether the lines are least squares fits to the logarithms instead of joining
        the points. Only ``points`` in whose rows "grows" is true are fitted.
    names : sequence of str, default=()
        The data sets in a figure of dots, from top to bottom; ``y`` is the position in
        this list.
    """

    caption: str
    points: pd.DataFrame
    x_label: str
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    fitted: bool = False
    names: Sequence[str] = ()


def dots(rows: pd.DataFrame, metric: str) -> list[Panel]:
    """Draw dots for each data set: our methods by each protocol, published figures, and baselines."""
    rows = rows[rows["metric"] == metric].assign(
        published=rows["protocol"] == PUBLISHED
    )
    names = list(rows["name"].unique())
    # Published figures are last in the legend.
    rows = rows.sort_values(["published", "order", "rank", "protocol"], kind="stable")
    ours = rows.sort_values("order").groupby("method", sort=False)["ours"].first()
    yardsticks = ours.index.isin(YARDSTICKS)
    first = ours & (ours.cumsum() <= MOST_METHODS - yardsticks.sum())
    rows = rows[
        rows["method"].isin(ours.index[first | yardsticks])
        & (rows["ours"] | ~rows["published"])
    ]
    several = rows.loc[~rows["published"], "protocol"].nunique() > 1
    told = (", " + rows["protocol"]).where(rows["published"] | several, "")
    points = _points(rows.assign(line=rows["method"] + told), "method", metric)
    place, lines = points["line"].factorize()
    if len(lines) < 2:
        return []
    # The dots of a row are drawn one below the other, so that none hides another.
    shift = 0.8 * ((place + 0.5) / len(lines) - 0.5)
    fill = points["protocol"].map(FILLS).fillna("full")
    points = points.assign(
        x=points["y"], y=points["name"].map(names.index) + shift, sd=0.0, fill=fill
    )
    log_x = 0 < WIDE_RANGE * points["x"].min() < points["x"].max()
    return [
        Panel(
            f"{label(metric)} by data set.",
            points,
            _axis(metric),
            log_x=log_x,
            names=names,
        )
    ]


def curves(
    rows: pd.DataFrame,
    metric: str,
    x: str,
    x_label: str,
    lines: str,
    each: str,
    growth_from: Mapping[str, int] | None = None,
) -> Iterator[Panel]:
    """Draw the metric, and then the seconds, against rows or a parameter, for each protocol.

    Parameters
    ----------
    rows : DataFrame
        From `summarise`.
    metric : str
        Metric that is shown besides the seconds.
    x : {"n", "x"}
        Column on the horizontal axis.
    x_label : str
        Name of the horizontal axis.
    lines : str
        Column with one line for each value.
    each : str
        Column with separate figures for each value; "" for no such column.
    growth_from : mapping of str to int, default=None
        For a method, the number of rows from which its seconds are fitted, as in
        `View`.
    """
    rows = rows[rows[x].notna() & (rows["protocol"] != PUBLISHED)]
    rows = rows.assign(line=rows[lines], x=rows[x], fill="full").sort_values(
        "x", kind="stable"
    )
    for shown in dict.fromkeys((metric, "seconds")):
        seconds = shown == "seconds"
        points = _points(rows, "line", shown)
        for (protocol, *one), part in points.groupby(
            ["protocol", *filter(None, [each])], sort=False
        ):
            where = "".join(
                f" {'of' if each == 'method' else 'on'} {name}" for name in one
            )
            fitted = seconds and x == "n"
            fits = ""
            if fitted:
                part = part.assign(grows=grows(part, growth_from or {}))
                part["line"] = part["line"].map(_with_slopes(part))
                fits = (
                    " Lines are least squares fits to the logarithms, "
                    "with the slope and its 95 % interval."
                )
                if not part["grows"].all():
                    fits += (
                        " Points at which most of the time is spent on a sample of "
                        "fixed size are not fitted."
                    )
            caption = f"{label(shown)}{where} against {x_label}, {protocol}.{fits}"
            logs = {"log_x": part["x"].min() > 0, "log_y": seconds}
            yield Panel(
                caption,
                part,
                x_label,
                f"{_axis(shown)}, {protocol}",
                **logs,
                fitted=fitted,
            )


def _with_slopes(points: pd.DataFrame) -> dict[str, str]:
    """Return the names of lines, with the slope and the interval for fitted lines."""
    names = {}
    for name, line in points.groupby("line", sort=False):
        growing = line[line["grows"]]
        slope = log_slope(growing["x"], growing["y"])
        is_fitted = len(growing) >= FEWEST_SIZES and np.isfinite(slope.value)
        interval = f"{slope.value:.2f} ({slope.low:.2f} to {slope.high:.2f})"
        names[str(name)] = f"{name}: {interval}" if is_fitted else str(name)
    return names


def _points(rows: pd.DataFrame, styled: str, metric: str) -> pd.DataFrame:
    """Return the rows of a metric as points.

    The style of a point is the position of its method or line among all methods or
    lines.
    """
    styles = list(rows.sort_values("order", kind="stable")[styled].unique())
    rows = rows[rows["metric"] == metric]
    scale = 100 if is_share(metric) else 1
    return rows.assign(
        style=rows[styled].map(styles.index),
        y=scale * rows["mean"],
        sd=(scale * rows["sd"]).fillna(0),
    )


def _axis(metric: str) -> str:
    return label(metric) + (" (%)" if is_share(metric) else "")


def draw(panel: Panel, figure: Any) -> Any:
    """Draw a panel into a figure of Matplotlib, and return the axes."""
    axes = figure.add_subplot(xlabel=panel.x_label, title=panel.title)
    axes.set(
        xscale="log" if panel.log_x else "linear",
        yscale="log" if panel.log_y else "linear",
    )
    axes.grid(axis="x" if panel.names else "both", linewidth=0.6)
    ends = {}
    for name, points in panel.points.groupby("line", sort=False):
        x, y, sd = points[["x", "y", "sd"]].to_numpy(float).T
        style, fill = points[["style", "fill"]].iloc[0]
        colour = COLOURS[style % len(COLOURS)]
        ends[name] = _End(x[-1], y[-1], colour)
        growing = np.zeros(len(x), bool)
        if panel.fitted:
            growing = points["grows"].to_numpy(bool)
        fitted = growing.sum() >= FEWEST_SIZES
        marker = {
            "marker": MARKERS[style % len(MARKERS)],
            "fillstyle": fill,
            "markerfacecoloralt": "none",
        }
        line = {
            "linestyle": "none" if panel.names or panel.fitted else "-",
            "linewidth": 1.4,
            "elinewidth": 0.9,
        }
        axes.errorbar(
            x,
            y,
            sd,
            label=name,
            color=colour,
            clip_on=not panel.names,
            **marker,
            **line,
        )
        if fitted:
            slope, intercept = np.polyfit(np.log(x[growing]), np.log(y[growing]), 1)
            ends_of_line = x[growing][[0, -1]]
            axes.plot(
                ends_of_line,
                np.exp(intercept) * ends_of_line**slope,
                linewidth=1.1,
                color=colour,
            )
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            _plain_ticks(axis)
    if panel.names:
        _name_rows(axes, panel)
    else:
        axes.set_ylim(bottom=None if panel.log_y else 0)
        _name_ends(axes, ends)
    return axes


def _plain_ticks(axis: Any) -> None:
    """Write numbers as usual decimals, also between powers of ten if there are few of these."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    multiples = (1, 2, 5) if high < 50 * low else (1,)
    axis.set_major_locator(LogLocator(subs=multiples))
    axis.set_major_formatter(lambda value, _: brief(value))


def brief(value: float) -> str:
    """Format a number with as few characters as possible.

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


def _name_rows(axes: Any, panel: Panel) -> None:
    """Write the names of data sets to the left of their dots, and the names of lines in a legend above."""
    n_rows = len(panel.names)
    axes.set_yticks(range(n_rows), panel.names)
    axes.set(ylim=(n_rows - 0.5, -0.5), xlim=(None if panel.log_x else 0, None))
    axes.tick_params(axis="y", length=0)
    for row in range(1, n_rows):
        axes.axhline(row - 0.5, color=GRID, linewidth=0.6)
    markers, lines = axes.get_legend_handles_labels()
    longest = max(map(len, lines))
    axes.figure.legend(
        [marker.lines[0] for marker in markers],
        lines,
        loc="outside upper left",
        handletextpad=0.2,
        frameon=False,
        ncols=1 if longest > LONG_NAME else 2,
    )


class _End(NamedTuple):
    """The last point of a line, and its colour."""

    x: float
    y: float
    colour: str


def _name_ends(axes: Any, ends: dict[str, _End]) -> None:
    """Write names to the right of the axes, moved apart if they would overlap."""
    # In fractions of the axes, so that the positions do not depend on the room that the
    # names take.
    to_share = axes.transData + axes.transAxes.inverted()
    shares = [to_share.transform((end.x, end.y))[1] for end in ends.values()]
    heights = spread(shares, NAME_GAP, 0.0, 1.0)
    for (name, end), height in zip(ends.items(), heights, strict=True):
        arrow = {
            "arrowstyle": "-",
            "color": end.colour,
            "linewidth": 0.6,
            "relpos": (0, 0.5),
            "shrinkA": 0,
            "shrinkB": 4,
        }
        axes.annotate(
            name,
            (end.x, end.y),
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            color=end.colour,
            annotation_clip=False,
            arrowprops=arrow,
        )


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions apart to a distance of at least ``gap``, in their order.

    If there is room, the positions stay between two bounds.

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
    return result.tolist()


def save(
    panels: Sequence[Panel], target: Any, columns: int = 1, **options: Any
) -> None:
    """Draw panels in rows, and save them with the given options of ``Figure.savefig``."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        width, height = np.max([_size(panel) for panel in panels], axis=0)
        size = (columns * width, rows * height)
        figure = Figure(figsize=size, layout="constrained")
        parts = figure.subfigures(rows, columns, squeeze=False)
        for panel, part in zip(panels, parts.flat, strict=False):
            draw(panel, part)
        figure.savefig(target, **options)


def _size(panel: Panel) -> tuple[float, float]:
    """Return the width and height in inches, including room for names, dots and a legend."""
    names = panel.names or panel.points["line"].unique()
    width = max(WIDTH, 3.2 + CHARACTER * max(map(len, names)))
    if not panel.names:
        return width, HEIGHT
    n_lines = panel.points["line"].nunique()
    row = max(0.28, 0.065 * n_lines + 0.06)
    return width, 0.8 + row * len(names) + 0.2 * n_lines


def svg(panel: Panel, prefix: str) -> str:
    """Draw a figure as an inline SVG in the colours of the page, with a prefix for its ids."""
    buffer = io.StringIO()
    save([panel], buffer, format="svg", transparent=True, metadata={"Date": None})
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
    return f'{head} role="img" aria-label="{escape(panel.caption)}">{rest}'


def png(panels: Sequence[Panel], path: Path) -> None:
    """Write figures to a PNG with a white background, two in each row."""
    save(panels, path, columns=2, format="png", dpi=DPI)
