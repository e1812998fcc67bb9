"""Shared by the displays: new axes, colours and a legend of clusters, and text."""

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
    numbers = clusters if clusters.dtype.kind in "biu" else np.unique(clusters, return_inverse=True)[1]
    numbers = numbers.astype(int)
    most = numbers.max(initial=0)
    colors = colormaps["tab10"](numbers) if most < 10 else colormaps["turbo"](numbers / most)
    colors[numbers == -1] = 0.7, 0.7, 0.7, 1.0
    return np.asarray(colors)


def legend_entries(labels: np.ndarray, most: int = 20) -> list[str]:
    """The clusters and their shares of the rows drawn; the last entry may stand for all without one."""
    clusters, counts = np.unique(labels, return_counts=True)
    names = ["noise" if cluster == -1 else label_text(cluster) for cluster in clusters.tolist()]
    entries = [f"{name}: {count / labels.size:.1%}" for name, count in zip(names, counts, strict=True)]
    left = len(entries) - most + 1
    return entries if left < 2 else [*entries[: most - 1], f"{left:,} more"]


def add_legend(ax: Any, *entries: Any, **options: Any) -> Any:
    """A legend beside the axes."""
    return ax.legend(*entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, **options)


def label_text(value: Any) -> str:
    """Text for a figure: short, none of it mathematics, and with control characters spelled out."""
    text = plain(value, kept="")
    return (text if len(text) <= 30 else f"{text[:29]}…").replace("$", r"\$")
