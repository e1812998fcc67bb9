"""Shared by the displays: new axes, and a colour for each cluster."""

from typing import Any

import numpy as np


def new_axes(**figure: Any) -> Any:
    """Axes of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="compressed", **figure)[1]


def cluster_colors(clusters: np.ndarray) -> np.ndarray:
    """A colour for each cluster number, of shape (clusters, 4)."""
    from matplotlib import colormaps

    numbers = np.asarray(clusters, int)
    if numbers.size == 0 or numbers.max() < 10:
        return np.atleast_2d(colormaps["tab10"](numbers))
    return np.atleast_2d(colormaps["turbo"](numbers / numbers.max()))


def set_title(ax: Any, title: str, **style: Any) -> None:
    """Give axes a title that is broken into lines no wider than they are, so that none is cut.

    A letter is about half as wide as it is high.
    """
    from textwrap import fill

    from matplotlib.font_manager import FontProperties

    points = FontProperties(size=style.get("fontsize", "medium")).get_size_in_points()
    inches = ax.get_position().width * ax.figure.get_figwidth()
    width = max(8, int(0.9 * inches * 72 / (0.55 * points)))
    ax.set_title(fill(title, width), **{"fontsize": "medium", **style})
