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
