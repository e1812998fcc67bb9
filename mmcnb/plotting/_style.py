"""Axes, colours, points and legends that all displays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb.errors import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOISE_COLOR = (0.7, 0.7, 0.7, 1.0)
MOST_ENTRIES = 20  # maximum number of entries in a legend


def new_axes(**figure: Any) -> Axes:
    """Return the axes of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="compressed", **figure)[1]


def cluster_colors(clusters: np.ndarray) -> np.ndarray:
    """Return the RGBA colour of each cluster.

    The colour depends on the cluster number. Clusters with names are numbered in the
    sorted order of the names. Noise is grey.
    """
    from matplotlib import colormaps

    numbers = np.asarray(clusters)
    if numbers.dtype.kind not in "biu":
        _, numbers = np.unique(numbers, return_inverse=True)
    numbers = numbers.astype(int)
    highest = numbers.max(initial=0)
    if highest < 10:
        colors = colormaps["tab10"](numbers)
    else:
        colors = colormaps["turbo"](numbers / highest)
    colors[numbers == -1] = NOISE_COLOR
    return np.asarray(colors)


def legend_entries(labels: np.ndarray) -> list[str]:
    """Return a text for each cluster with its percentage of the rows.

    If there are more than 20 clusters, there are 20 texts, and the last text is the
    number of remaining clusters.
    """
    clusters, counts = np.unique(labels, return_counts=True)
    entries = []
    for cluster, count in zip(clusters.tolist(), counts, strict=True):
        name = "noise" if cluster == -1 else label_text(cluster)
        entries.append(f"{name}: {count / labels.size:.1%}")
    if len(entries) <= MOST_ENTRIES:
        return entries
    n_rest = len(entries) - MOST_ENTRIES + 1
    return [*entries[: MOST_ENTRIES - 1], f"{n_rest:,} more"]


def scatter_clusters(
    ax: Axes,
    points: np.ndarray,
    labels: np.ndarray,
    title: str | None = None,
    **style: Any,
) -> tuple[Any, Any]:
    """Draw points in the colours of their clusters, with a legend beside the axes.

    Return the collection of points and the legend.
    """
    from matplotlib.colors import ListedColormap

    clusters, codes = np.unique(labels, return_inverse=True)
    style.setdefault("s", float(np.clip(20_000 / max(1, codes.size), 4, 25)))
    style.setdefault("cmap", ListedColormap(cluster_colors(clusters)))
    style.setdefault("linewidths", 0)
    x, y = points.T
    scatter = ax.scatter(x, y, c=codes, **style)
    entries = legend_entries(labels)
    handles: list[Any] = []
    if entries:
        handles, _ = scatter.legend_elements(num=None)  # type: ignore[arg-type]
    legend = ax.legend(
        handles[: len(entries)],
        entries,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
    )
    return scatter, legend


def label_text(value: object) -> str:
    """Return a value as text for figures.

    The text is truncated to 30 characters, and ``$`` and control characters are
    escaped.
    """
    text = plain(value, kept="")
    if len(text) > 30:
        text = f"{text[:29]}…"
    return text.replace("$", r"\$")
