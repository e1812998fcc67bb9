"""Draw the shapes in the plane as seven methods cluster them: python docs/_scripts/shapes_compared.py [FOLDER].

The script draws docs/pictures/shapes-1.png to shapes-3.png, and prints the mean
adjusted Rand index of each method and the shapes on which another method is ahead of
the default. It needs the extra `peers`.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from PIL import Image
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

import mmcnb
from benchmarks.libraries import CORE, GENIE, LEIDEN, LUMBERMARK
from benchmarks.methods import CUT, DENSITY, FRONT_DOOR, KMEANS, estimator
from mmcnb.datasets import SHAPES, make_shape
from mmcnb.metrics import adjusted_rand_index

CLASSES = "classes"
# under their titles
METHODS = {
    "mmcnb": FRONT_DOOR,
    "k-means": KMEANS,
    "HDBSCAN": DENSITY,
    "Leiden": LEIDEN,
    "Genie": GENIE,
    "Lumbermark": LUMBERMARK,
    "spectral": CUT,
}
PARAMETERS = {
    KMEANS: {"n_init": 10},
    DENSITY: {"min_cluster_size": CORE, "min_samples": CORE},
}
N_PICTURES = 3
N_ROWS = 1200
N_DRAWN = 600
AHEAD = 0.05
PANEL = 1.15  # inches
DPI = 100
# tab20 has each colour in a strong and a light form; here, the ten strong forms come
# first.
PALETTE = np.vstack([colormaps["tab20"].colors[::2], colormaps["tab20"].colors[1::2]])
NOISE_COLOR = (0.75, 0.75, 0.75)


def plane_shapes() -> list[str]:
    """Return the names of the shapes with two columns."""
    return [name for name, shape in SHAPES.items() if shape.n_features == 2]


def labellings(name: str) -> Iterator[tuple[str, np.ndarray, float]]:
    """Yield the title, the labels and the index of each method on a shape."""
    X, y = make_shape(name, N_ROWS, random_state=0)
    for title, method in METHODS.items():
        parameters = {"random_state": 0, **PARAMETERS.get(method, {})}
        model = estimator(method, SHAPES[name].n_clusters, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mmcnb.ClusterWarning)
            labels = np.asarray(model.fit(X).labels_)
        yield title, labels, float(adjusted_rand_index(y, labels))


def as_classes(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Number the clusters so that as many rows as possible have the number of their class.

    Other clusters get the next numbers, and noise keeps -1.
    """
    clusters = np.unique(labels[labels >= 0])
    is_cluster = labels >= 0
    if not clusters.size:
        return labels
    rows_shared = contingency_matrix(y[is_cluster], labels[is_cluster])
    found_classes = np.unique(y[is_cluster])
    class_places, cluster_places = linear_sum_assignment(rows_shared, maximize=True)
    number_of = dict(
        zip(
            clusters[cluster_places].tolist(),
            found_classes[class_places].tolist(),
            strict=True,
        )
    )
    unused = iter(range(y.max() + 1, y.max() + 1 + clusters.size))
    for cluster in clusters.tolist():
        if cluster not in number_of:
            number_of[cluster] = next(unused)
    return np.array([number_of.get(label, -1) for label in labels.tolist()])


def draw(names: list[str], indices: dict[str, dict[str, float]]) -> Figure:
    """Draw one row of panels for each shape, and record the indices of the methods."""
    titles = [CLASSES, *METHODS]
    figure, grid = plt.subplots(
        len(names),
        len(titles),
        figsize=(PANEL * len(titles), PANEL * len(names)),
        layout="constrained",
        gridspec_kw={"wspace": 0.0, "hspace": 0.0},
    )
    for ax, title in zip(grid[0], titles, strict=True):
        ax.set_title(title, fontsize=9)
    for axes, name in zip(grid, names, strict=True):
        X, y = make_shape(name, N_ROWS, random_state=0)
        found = list(labellings(name))
        indices[name] = {title: index for title, _, index in found}
        panel(axes[0], X, y)
        axes[0].set_ylabel(name.replace("-", "\n"), fontsize=7)
        best = max(round(index, 2) for _, _, index in found)
        for ax, (_, labels, index) in zip(axes[1:], found, strict=True):
            panel(ax, X, as_classes(y, labels))
            weight = "bold" if round(index, 2) == best else "normal"
            note = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8}
            ax.text(
                0.98,
                0.03,
                f"{index:.2f}",
                transform=ax.transAxes,
                ha="right",
                fontsize=8,
                weight=weight,
                bbox=note,
            )
    return figure


def panel(ax: Any, X: np.ndarray, labels: np.ndarray) -> None:
    """Draw some rows in the colours of their labels."""
    shown = slice(N_DRAWN)
    colors = PALETTE[labels[shown] % len(PALETTE)]
    colors[labels[shown] < 0] = NOISE_COLOR
    ax.scatter(*X[shown].T, s=2.5, c=colors, linewidths=0)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_color("0.8")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG file with a palette, which takes a third of the bytes."""
    figure.set_dpi(DPI)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
    # An octree keeps the colour of a rare cluster; median cuts merge it with another.
    picture = Image.fromarray(pixels).quantize(
        method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )
    picture.save(path, optimize=True)
    plt.close(figure)


def main(folder: Path) -> None:
    """Draw the pictures and print the indices.

    Parameters
    ----------
    folder : Path
        Folder of the pictures.
    """
    indices: dict[str, dict[str, float]] = {}
    parts = np.array_split(plane_shapes(), N_PICTURES)
    for number, names in enumerate(parts, start=1):
        save(draw(names.tolist(), indices), folder / f"shapes-{number}.png")
    table = pd.DataFrame(indices).T
    print(table.mean().sort_values(ascending=False).round(2).to_string())
    behind = table.max(axis=1) - table["mmcnb"]
    lost = table[behind > AHEAD].round(2)
    print(lost.to_string() if len(lost) else "mmcnb is not behind")


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parents[1] / "pictures"
    )
