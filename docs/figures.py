"""Pictures of the user guide: python docs/figures.py [FOLDER] draws them, by default into docs/pictures."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from shaking import ShakingDisplay
from sklearn.datasets import load_digits, make_circles

import mmcnb
from mmcnb.datasets import make_block
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay, LayersDisplay

DPI = 100


class Picture(NamedTuple):
    """A figure under the name that displays give it."""

    figure_: Any


def digits() -> ClusterMapDisplay:
    """Ten clusters of the handwritten digits that scikit-learn brings along."""
    X, _ = load_digits(return_X_y=True)
    model = mmcnb.UnsupervisedRLS(n_clusters=10, random_state=0).fit(X)
    return ClusterMapDisplay.from_estimator(model, X)


def layers_of_digits() -> LayersDisplay:
    """The merge tree of the handwritten digits."""
    X, _ = load_digits(return_X_y=True)
    return LayersDisplay.from_estimator(mmcnb.MaximumMarginClustering(random_state=0).fit(X))


def shaking() -> ShakingDisplay:
    """Local search on three Gaussians."""
    X, _ = make_block("blobs", 0, 300, 2, random_state=29, n_clusters=3)
    return ShakingDisplay.from_estimator(mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X), X)


def views() -> Picture:
    """Two rings that no straight line separates, noise beside them, and the weight of each kernel."""
    import matplotlib.pyplot as plt

    rings, _ = make_circles(600, noise=0.08, factor=0.3, random_state=0)
    X = np.hstack([rings, np.random.RandomState(0).normal(size=(600, 16))])
    left, right = slice(0, 2), slice(2, 18)
    model = mmcnb.MultipleKernelClustering(
        kernels=["linear", "rbf", "linear", "rbf"], columns=[left, left, right, right], random_state=0
    ).fit(X)
    _, (rows, noise, bars) = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for ax, view in ((rows, (0, 1)), (noise, (2, 3))):
        ClusterDisplay.from_predictions(X, model.labels_, features=view, ax=ax, s=6)
        ax.set(title=f"columns {view[0]} and {view[1]}", aspect="equal", xticks=[], yticks=[])
    pd.Series(model.kernel_weights_, model.kernel_names_).plot.barh(ax=bars)
    return Picture(bars.figure)


def main(folder: Path) -> None:
    """Draw every figure.

    Parameters
    ----------
    folder : Path
        Folder of the figures.
    """
    pictures = {"digits": digits, "layers-of-digits": layers_of_digits, "shaking": shaking, "views": views}
    for name, draw in pictures.items():
        draw().figure_.savefig(folder / f"{name}.png", dpi=DPI)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
