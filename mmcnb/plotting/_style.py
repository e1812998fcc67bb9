"""Shared by the displays: new axes, points and a legend in the colours of clusters, and text."""

from typing import Any

import numpy as np

from mmcnb.errors import plain


def new_axes(**figure: Any) -> Any:
    """Axes of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="compressed", **figure)[1]


def cluster_colors(clusters: np.ndarray) -> np.ndarray:
    """Colours of shape (clusters, 4), by number or the order of names; noise is grey."""
    from matplotlib import colormaps

    clusters = np.asarray(clusters)
    numbers = (
        clusters
        if clusters.dtype.kind in "biu"
        else np.unique(clusters, return_inverse=True)[1]
    )
    numbers = numbers.astype(int)
    most = numbers.max(initial=0)
    colors = (
        colormaps["tab10"](numbers) if most < 10 else colormaps["turbo"](numbers / most)
    )
    colors[numbers == -1] = 0.7, 0.7, 0.7, 1.0
    return np.asarray(colors)


def legend_entries(labels: np.ndarray, most: int = 20) -> list[str]:
    """The clusters and their shares of the rows drawn; the last entry may stand for all without one."""
    clusters, counts = np.unique(labels, return_counts=True)
    names = [
        "noise" if cluster == -1 else label_text(cluster)
        for cluster in clusters.tolist()
    ]
    entries = [
        f"{name}: {count / labels.size:.1%}"
        for name, count in zip(names, counts, strict=True)
    ]
    left = len(entries) - most + 1
    return entries if left < 2 else [*entries[: most - 1], f"{left:,} more"]


def scatter_clusters(
    ax: Any,
    points: np.ndarray,
    labels: np.ndarray,
    title: str | None = None,
    **style: Any,
) -> tuple[Any, Any]:
    """Points in the colours of their clusters, and a legend beside the axes."""
    from matplotlib.colors import ListedColormap

    clusters, codes = np.unique(labels, return_inverse=True)
    size = float(np.clip(20_000 / max(1, codes.size), 4, 25))
    style = {
        "s": size,
        "cmap": ListedColormap(cluster_colors(clusters)),
        "linewidths": 0,
        **style,
    }
    scatter = ax.scatter(*points.T, c=codes, **style)
    entries = legend_entries(labels)
    handles = scatter.legend_elements(num=None)[0] if entries else []
    place: dict[str, Any] = {
        "loc": "upper left",
        "bbox_to_anchor": (1.01, 1.0),
        "frameon": False,
    }
    return scatter, ax.legend(handles[: len(entries)], entries, title=title, **place)


def label_text(value: Any) -> str:
    """Text for a figure: short, none of it mathematics, and with control characters spelled out."""
    text = plain(value, kept="")
    return (text if len(text) <= 30 else f"{text[:29]}…").replace("$", r"\$")
