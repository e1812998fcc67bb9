"""Figures: lines over rows or a parameter, and rows of dots; SVG for the page, PNG for the documents."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Distinct for colour-blind readers together with the markers, and dark enough for text on white. On the page
# each is a variable of the style sheet, which has a lighter twin for dark screens.
COLOURS = ("#0072b2", "#b34700", "#00735c", "#a0458a", "#7a5c00", "#5b4fbf", "#8b1e3f", "#4a5560")
MARKERS = "osD^vP*X<>"
INK, GRID = "#1a1a1b", "#d6d6d7"
FONT, DPI = 10, 140
WIDTH, HEIGHT = 4.4, 3.3  # inches; a phone shows them at about this size


class Line(NamedTuple):
    """One method.

    Parameters
    ----------
    name : str
        For its label.
    x, y : sequence of float
        Points; for rows of dots, ``x`` are the figures and ``y`` the names of the rows.
    style : int
        Number of its colour and marker.
    sd : sequence of float, default=()
        Standard deviations of ``y``.
    fill : {"full", "left", "none"}, default="full"
        How its marker is filled: measured without classes, measured by the paper's protocol, published.
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
    room = min(0.45 * WIDTH, 0.2 + longest * 0.55 * FONT / 72)
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
    left = 0.15 + max(len(name) for name in names) * 0.55 * FONT / 72
    width = max(WIDTH, left + 3.0)
    # Two columns of the legend where the longest name, its marker and the gaps fit in half of the width.
    columns = 2 if 0.5 + max(len(line.name) for line in drawn) * 0.55 * FONT / 72 < width / 2 else 1
    legend = 0.15 + 0.21 * -(-len(drawn) // columns)
    height = 0.6 + max(0.28, 0.065 * len(drawn) + 0.06) * len(names)
    figure, axes = _axes(width, height + legend, (left, 0.5, width - left - 0.2, height - 0.55))
    # The dots of a row stand one below the other, so that none hides another.
    for line, shift in zip(drawn, (np.arange(len(drawn)) + 0.5) / len(drawn) - 0.5, strict=True):
        shown = [(x, names.index(y) + 0.8 * shift) for x, y in zip(line.x, line.y, strict=True)]
        axes.plot(
            *zip(*shown, strict=True), linestyle="none", label=line.name, **_marker(line), clip_on=False
        )
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=x_label, xscale="log" if log_x else "linear")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    if not log_x:
        axes.set_xlim(left=0)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color=GRID, linewidth=0.6)
    figure.legend(
        loc="upper left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        handletextpad=0.2,
        labelcolor=INK,
        fontsize=FONT,
    )
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
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'{head} role="img" aria-label="{label}">{rest}'


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
    rows = [_side_by_side(tiles[at : at + 2]) for at in range(0, len(tiles), 2)]
    wide = max(row.shape[1] for row in rows)
    whole = np.concatenate([_filled(row, row.shape[0], wide) for row in rows])
    images.imsave(path, whole, format="png")


def _side_by_side(tiles: Sequence[np.ndarray]) -> np.ndarray:
    high = max(tile.shape[0] for tile in tiles)
    return np.concatenate([_filled(tile, high, tile.shape[1]) for tile in tiles], axis=1)


def _filled(tile: np.ndarray, high: int, wide: int) -> np.ndarray:
    """A picture with white below and to the right."""
    return np.pad(tile, ((0, high - tile.shape[0]), (0, wide - tile.shape[1]), (0, 0)), constant_values=1.0)


def _axes(width: float, height: float, box: tuple[float, float, float, float]) -> tuple[Any, Any]:
    """A figure with axes at a place in inches."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style = {
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height))
        left, bottom, wide, high = box
        return figure, figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _marker(line: Line) -> dict[str, Any]:
    colour = COLOURS[line.style % len(COLOURS)]
    return {
        "color": colour,
        "marker": MARKERS[line.style % len(MARKERS)],
        "markersize": 6,
        "fillstyle": line.fill,
        "markerfacecoloralt": "none",
    }


def _line(axes: Any, line: Line) -> None:
    x, y = np.asarray(line.x, float), np.asarray(line.y, float)
    if len(line.sd):
        axes.errorbar(
            x,
            y,
            np.nan_to_num(line.sd),
            fmt="none",
            ecolor=COLOURS[line.style % len(COLOURS)],
            elinewidth=0.9,
        )
    joined = "none" if line.fit else "-"
    axes.plot(x, y, linestyle=joined, linewidth=1.4, **_marker(line))
    if line.fit:
        slope, intercept = line.fit
        ends = np.array([x.min(), x.max()])
        axes.plot(
            ends, np.exp(intercept) * ends**slope, linewidth=1.1, color=COLOURS[line.style % len(COLOURS)]
        )


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """Numbers as people write them; between the powers of ten too where there are few of these."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: brief(value)))


def brief(value: float) -> str:
    """A number as short as can be.

    Examples
    --------
    >>> from benchmarks.report._figures import brief
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
        colour = COLOURS[line.style % len(COLOURS)]
        axes.annotate(
            line.name,
            xy=(line.x[-1], line.y[-1]),
            xycoords="data",
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            color=colour,
            fontsize=FONT,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 0,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places apart to at least ``gap``, in their order and, where there is room, between two bounds.

    Examples
    --------
    >>> from benchmarks.report._figures import spread
    >>> spread([1.0, 1.0, 9.0], 2.0, 0.0, 10.0)
    [1.0, 3.0, 9.0]
    """
    order = np.argsort(places, kind="stable")
    moved = [float(places[place]) for place in order]
    for at in range(1, len(moved)):
        moved[at] = max(moved[at], moved[at - 1] + gap)
    above = max(moved[-1] - high, 0.0)
    moved[-1] -= above
    for at in range(len(moved) - 2, -1, -1):
        moved[at] = min(moved[at], moved[at + 1] - gap)
    lift = max(low - moved[0], 0.0)
    result = [0.0] * len(moved)
    for place, value in zip(order, moved, strict=True):
        result[place] = value + lift
    return result
