"""Draw the merge tree of a fit with its layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mmcnb.plotting._style import new_axes


class LayersDisplay:
    """The merge tree of the clusters, cut at each layer.

    Parameters
    ----------
    linkage : ndarray of shape (c - 1, 4)
        SciPy's linkage matrix, such as `MaximumMarginClustering.linkage_`.
    layers : pandas.DataFrame
        ``n_clusters`` of each layer, and whether it is the selected one (``taken``).

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure of the axes.
    """

    def __init__(self, linkage: np.ndarray, layers: pd.DataFrame) -> None:
        self.linkage, self.layers = linkage, layers

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, **tree: Any
    ) -> LayersDisplay:
        """Draw the merge tree of a fit.

        Parameters
        ----------
        estimator : MaximumMarginClustering
            Fitted.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **tree
            Passed to SciPy's ``dendrogram``; ``p`` is the most leaves, 30.

        Returns
        -------
        LayersDisplay
        """
        return cls(estimator.linkage_, estimator.layers_).plot(ax=ax, **tree)

    def plot(self, *, ax: Any = None, **tree: Any) -> LayersDisplay:
        """Draw the tree, with a line for each layer that crosses one branch per cluster.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **tree
            Passed to SciPy's ``dendrogram``; ``p`` is the most leaves, 30.

        Returns
        -------
        LayersDisplay
        """
        from scipy.cluster.hierarchy import dendrogram

        self.ax_ = ax or new_axes()
        self.figure_ = self.ax_.figure
        heights, drawn = self.linkage[:, 2], tree.pop("p", 30)
        if len(heights):
            style = {
                "no_labels": True,
                "color_threshold": 0,
                "above_threshold_color": "0.5",
                **tree,
            }
            dendrogram(
                self.linkage, truncate_mode="lastp", p=drawn, ax=self.ax_, **style
            )
            low = heights[max(0, len(heights) - drawn + 1) :].min()
            self.ax_.set(yscale="log", ylim=(low / 2, heights[-1] * 1.5))
        for k, taken in zip(
            self.layers["n_clusters"], self.layers["taken"], strict=True
        ):
            # between the merge that leaves this number of clusters and the merge before
            # it
            if 1 < k < min(drawn, len(heights) + 2):
                # With one cluster per leaf, there is no earlier merge.
                below = heights[-k] if k <= len(heights) else low / 2
                height = np.sqrt(below * heights[1 - k])
                self.ax_.axhline(
                    height,
                    color="C0" if taken else "C1",
                    linestyle="-" if taken else "--",
                )
                at = {"xycoords": ("axes fraction", "data"), "va": "center"}
                self.ax_.annotate(f"{k} clusters", (1, height), **at)
        self.ax_.set_ylabel("1 / link")
        return self
