"""Map of a report: an inline SVG that shows rows as dots, with check boxes."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np

from mmcnb.errors import InputError, plain
from mmcnb.features.model import Model
from mmcnb.features.of_nodes import OutlierScores
from mmcnb.graph.layout import layout
from mmcnb.graph.neighbours import node_graph
from mmcnb.plotting._cluster_map import kernel_features, principal_plane
from mmcnb.plotting._rows import DrawnRows, draw_rows
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, to_dense
from mmcnb.samples.row_index import RowIndex

MOST_DOTS = 2000
MOST_GROUPS = 20  # maximum number of clusters with a check box of their own
WIDTH = 720
HEIGHT = 540
MARGIN = 12
RADIUS = 3.2
# Each colour has a contrast of at least 3 with the background of light and dark pages.
COLORS = (
    *("#2f7fc1", "#c8690c", "#2b9160", "#cf4a5c"),
    *("#8f62c9", "#94713f", "#bf4f99", "#1b8a98"),
)
GREY = "#7c7c7c"  # colour of noise and of small clusters


class PageRows(NamedTuple):
    """Rows that a page shows.

    Attributes
    ----------
    samples : Samples
        The rows.
    row_index : RowIndex or None
        Names and numbers of the rows, or None if the page must not show them.
    labels : ndarray or None
        Cluster of each row. If None, the estimator predicts the clusters.
    left_out : dict of {str: str} or None
        Columns of a table about the rows that do not explain the clusters, with the
        reasons; None if there is no such table.
    """

    samples: Samples
    row_index: RowIndex | None
    labels: Any = None
    left_out: Mapping[str, str] | None = None


class PageMap(NamedTuple):
    """CSS rules and HTML of the map on a report page."""

    style: str
    html: str


class Group(NamedTuple):
    """Dots that share a colour and a check box: a cluster, small clusters, or noise.

    Attributes
    ----------
    name : str
        CSS class of the dots.
    title : str
        Text of the check box.
    color : str
        Colour of the dots.
    shape : int
        Index of the marker shape.
    dots : ndarray of int64
        Indices of the dots in the group.
    """

    name: str
    title: str
    color: str
    shape: int
    dots: np.ndarray


def draw_map(estimator: Any, rows: PageRows) -> PageMap:
    """Return a map of up to 2,000 rows drawn at random.

    If the model has nodes, the map is a layout of the nearest-neighbour graph of the
    drawn rows, in which distances are measured as between the nodes. Otherwise, the map
    is the plane in which the kernel features of the rows vary most.
    """
    drawn = draw_rows(estimator, rows.samples, MOST_DOTS, 0)
    if rows.labels is None:
        labels = np.asarray(estimator.predict(drawn.samples))
    else:
        labels = np.asarray(rows.labels)[drawn.numbers]
    places, caption = _places(estimator.model_, drawn.samples)
    marks = {
        "gap": _have_gaps(drawn),
        "far": _are_far(estimator.model_, drawn.samples, labels),
    }
    groups = list(_groups(labels))
    titles = _titles(drawn.numbers, labels, rows.row_index)
    dots = _dots(_on_page(places), groups, marks, titles)
    n_rows = rows.samples.n_samples
    note = f"{labels.size:,} of {n_rows:,} rows. {caption}"
    style = "\n".join(_style(groups, marks))
    html = (
        f'<p class="note">{note}</p>\n<div class="map">\n'
        f"<fieldset><legend>Show</legend>\n{_switches(groups, marks, labels.size)}"
        f"</fieldset>\n{dots}</div>"
    )
    return PageMap(style, html)


def _places(model: Model, samples: Samples) -> tuple[np.ndarray, str]:
    """Return the coordinates of the rows on the map, and the caption of the map."""
    nodes = model.graph
    if nodes is not None:
        scaled = model.scaled(samples)
        rows = as_matrix(scaled.block(0, scaled.n_samples))
        try:
            graph = node_graph(rows, None, np.random.RandomState(0), axes=nodes.axes)
        except InputError:  # all rows are equal
            return np.zeros((samples.n_samples, 2)), "All of these rows are equal."
        places = layout(graph.edges()[0], 0, n_components=2)[graph.node_of]
        return places, (
            "Rows are close together on the map if they are linked in the graph of "
            "nearest neighbours. Long distances and directions have no meaning."
        )
    places, ratio = principal_plane(kernel_features(model, samples))
    return places, (
        f"The plane of largest variance, with {ratio[0]:.0%} of the variance along "
        f"the horizontal and {ratio[1]:.0%} along the vertical axis. Clusters that "
        "overlap here may be separate in other directions."
    )


def _on_page(places: np.ndarray) -> np.ndarray:
    """Scale coordinates to the size of the SVG, by the same factor along both axes."""
    low = places.min(axis=0)
    high = places.max(axis=0)
    space = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    scale = max(np.max((high - low) / space), np.finfo(float).tiny)
    across, up = ((places - (low + high) / 2) / scale).T
    return np.column_stack([WIDTH / 2 + across, HEIGHT / 2 - up])


def _have_gaps(drawn: DrawnRows) -> np.ndarray:
    """Return a boolean mask of the drawn rows that have missing values."""
    source = drawn.source
    if source.with_gaps is None:
        return np.zeros(drawn.numbers.size, bool)
    values = to_dense(as_matrix(source.with_gaps().gather(drawn.numbers)))
    return np.asarray(np.isnan(values).any(axis=1))


def _are_far(model: Model, samples: Samples, labels: np.ndarray) -> np.ndarray:
    """Return a boolean mask of rows that are noise or have large outlier scores.

    An outlier score is large if it exceeds the scores of 99 % of the rows of the fit.
    """
    is_noise = labels == -1
    if model.graph is None or not np.isfinite(model.graph.bound):
        return np.asarray(is_noise)
    features, _ = model.labelling(samples, of_nodes=True)
    columns = np.asarray(features.block(0, features.n_samples))
    scores = OutlierScores().decide(columns)
    return np.asarray(is_noise | (scores > model.graph.bound))


def _groups(labels: np.ndarray) -> Iterator[Group]:
    """Yield the groups into which the dots of the map are divided.

    Each of the largest clusters is a group. The other clusters together are a group,
    and so is noise.
    """
    clusters, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    is_noise = clusters == -1
    order = np.argsort(-counts, kind="stable")
    own = np.sort(order[~is_noise[order]][:MOST_GROUPS])
    for number, code in enumerate(own):
        yield Group(
            name=f"c{number}",
            title=f"cluster {clusters[code]}",
            color=COLORS[number % len(COLORS)],
            shape=number // len(COLORS),
            dots=np.flatnonzero(codes == code),
        )
    others = ~np.isin(codes, own)
    for name, title, dots in (
        ("other", "other clusters", others & ~is_noise[codes]),
        ("noise", "noise", is_noise[codes]),
    ):
        if dots.any():
            yield Group(name, title, GREY, 0, np.flatnonzero(dots))


def _titles(
    rows: np.ndarray, labels: np.ndarray, index: RowIndex | None
) -> list[str] | None:
    """Return a text for each row, with the number, name and cluster of the row.

    The result is None if ``index`` is None.
    """
    if index is None:
        return None
    titles = []
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        name = index.name_of(row)
        cluster = "noise" if label == -1 else f"cluster {label}"
        named = "" if name is None else f" ({name})"
        titles.append(f"row {row}{named}, {cluster}")
    return titles


def _dots(
    places: np.ndarray,
    groups: list[Group],
    marks: dict[str, np.ndarray],
    titles: list[str] | None,
) -> str:
    """Return the SVG of the dots, in which the largest groups are drawn first."""
    parts = []
    for group in sorted(groups, key=lambda group: -group.dots.size):
        parts.append(f'<g class="{group.name}">')
        # Marked dots are drawn last, so that other dots do not cover them.
        n_marks = np.sum(
            [is_marked[group.dots] for is_marked in marks.values()], axis=0
        )
        for dot in group.dots[np.argsort(n_marks, kind="stable")]:
            names = [name for name, is_marked in marks.items() if is_marked[dot]]
            classes = f' class="{" ".join(names)}"' if names else ""
            title = ""
            if titles is not None:
                title = f"<title>{escape(plain(titles[dot], kept=''))}</title>"
            tag, form = _shape(group.shape, *places[dot])
            parts.append(f"<{tag}{classes} {form}>{title}</{tag}>")
        parts.append("</g>")
    label = "Rows as dots, by cluster; similar rows are close to each other"
    parts.append("</svg>\n")
    return (
        f'<svg class="dots" role="img" aria-label="{label}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">\n'
    ) + "\n".join(parts)


def _shape(number: int, x: float, y: float) -> tuple[str, str]:
    """Return the SVG tag and attributes of a dot with marker shape ``number``."""
    r = RADIUS
    if number % 3 == 0:
        return "circle", f'cx="{x:.1f}" cy="{y:.1f}" r="{r}"'
    if number % 3 == 1:
        side = f'width="{1.8 * r:.1f}" height="{1.8 * r:.1f}"'
        return "rect", f'x="{x - 0.9 * r:.1f}" y="{y - 0.9 * r:.1f}" {side}'
    corner = f"M{x:.1f} {y - 1.2 * r:.1f}"
    return "path", f'd="{corner}l{1.2 * r:.1f} {2 * r:.1f}h{-2.4 * r:.1f}z"'


def _style(groups: list[Group], marks: dict[str, np.ndarray]) -> Iterator[str]:
    """Yield CSS rules that colour dots, and rules that hide unchecked groups."""
    for group in groups:
        yield f".{group.name} {{ fill: {group.color}; stroke: {group.color}; }}"
    yield "@media screen {"
    for name in [*(group.name for group in groups), *marks]:
        hidden = f".map:has(#show-{name}:not(:checked)) .dots .{name}"
        yield f"{hidden} {{ display: none; }}"
    yield "}"


def _switches(groups: list[Group], marks: dict[str, np.ndarray], n_dots: int) -> str:
    """Return HTML check boxes that show or hide the groups and the marked dots.

    Marks without any dot have no check box.
    """
    lines = ""
    for group in groups:
        tag, form = _shape(group.shape, 6, 6)
        sample = (
            f'<svg class="{group.name}" viewBox="0 0 12 12" aria-hidden="true">'
            f"<{tag} {form}></{tag}></svg>"
        )
        share = f"{group.dots.size / n_dots:.1%}"
        title = escape(plain(group.title, kept=""))
        lines += _switch(group.name, f"{sample} {title}: {share}")
    titles = {
        "gap": "rows with missing values (hollow)",
        "far": "noise and rows farther out than 99 % of the rows of the fit (outlined)",
    }
    for name, is_marked in marks.items():
        count = int(is_marked.sum())
        if count:
            lines += _switch(name, f"{titles[name]}: {count / n_dots:.1%}")
    return lines


def _switch(name: str, text: str) -> str:
    box = f'<input type="checkbox" id="show-{name}" checked autocomplete="off">'
    return f"<label>{box} {text}</label>\n"
