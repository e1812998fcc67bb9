"""Draw the figures of the user guide: python docs/_scripts/figures.py [FOLDER] writes them, by default to docs/pictures."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from layers import LayersDisplay
from shaking import ShakingDisplay
from sklearn.datasets import load_digits, load_wine, make_circles, make_moons

import mmcnb
from mmcnb.choice.persistence import Regions
from mmcnb.choice.structure import find_structure
from mmcnb.datasets import make_block
from mmcnb.graph.neighbours import node_graph
from mmcnb.metrics import balanced_clustering_error
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay

DPI = 100


class Picture(NamedTuple):
    """A figure, in the attribute ``figure_`` as in a display."""

    figure_: Any


def digits() -> ClusterMapDisplay:
    """Draw ten clusters of the handwritten digits in scikit-learn."""
    X, _ = load_digits(return_X_y=True)
    model = mmcnb.UnsupervisedRLS(n_clusters=10, random_state=0).fit(X)
    return ClusterMapDisplay.from_estimator(model, X)


def demo() -> Picture:
    """Draw the mean image of each of ten clusters, below its most frequent digit and the share of this digit."""
    import matplotlib.pyplot as plt
    from sklearn.cluster import KMeans

    X, y = load_digits(return_X_y=True)
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    methods = (
        KMeans(10, n_init=10, random_state=0),
        mmcnb.MaximumMarginClustering(10, random_state=0),
    )
    for part, method in zip(figure.subfigures(2), methods, strict=True):
        labels = method.fit(X).labels_
        error = balanced_clustering_error(y, labels)
        part.suptitle(
            f"{'k-means' if isinstance(method, KMeans) else 'mmcnb'}, balanced error {error:.1%}"
        )
        shares = pd.crosstab(labels, y, normalize="index")
        order = shares.idxmax(axis=1).sort_values(kind="stable")
        for ax, (cluster, digit) in zip(
            part.subplots(1, len(order)), order.items(), strict=True
        ):
            ax.imshow(X[labels == cluster].mean(axis=0).reshape(8, 8), cmap="gray_r")
            ax.set(
                title=f"{digit}: {shares.loc[cluster, digit]:.0%}", xticks=[], yticks=[]
            )
    return Picture(figure)


def explanation() -> Picture:
    """Draw how far the mean of each of three clusters of wines is from the mean of the other wines."""
    import matplotlib.pyplot as plt

    wines = load_wine(as_frame=True).data
    told = mmcnb.MaximumMarginClustering(3, random_state=0).fit(wines).explain(wines)
    effects = told.columns.pivot_table("effect", "cluster", "column")
    effects = effects[effects.abs().max().sort_values(ascending=False).index[:10]]
    figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
    image = ax.imshow(effects, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
    for (row, column), effect in np.ndenumerate(effects.to_numpy()):
        color = "white" if abs(effect) > 1.2 else "black"
        ax.text(column, row, f"{effect:+.1f}", ha="center", va="center", color=color)
    names = [
        name.removesuffix("_of_diluted_wines").replace("_", " ") for name in effects
    ]
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right")
    ax.set_yticks(range(3), [f"cluster {number}" for number in effects.index])
    figure.colorbar(image, label="deviations")
    return Picture(figure)


def rings() -> Picture:
    """Draw two rings that k-means cuts in half."""
    import matplotlib.pyplot as plt
    from sklearn.cluster import KMeans

    X, _ = make_block("rings", 0, 20_000, n_features=90)
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    model = mmcnb.MaximumMarginClustering(2, kernel="rbf", random_state=0)
    for ax, name, method in zip(
        panels, ("k-means", "mmcnb"), (KMeans(2, random_state=0), model), strict=True
    ):
        labels = method.fit(X).labels_[:4096]
        ClusterDisplay.from_predictions(X[:4096], labels, features=(0, 1), ax=ax)
        ax.set(title=name, aspect="equal", xticks=[], yticks=[])
    return Picture(figure)


def layers_of_digits() -> LayersDisplay:
    """Draw the merge tree of the handwritten digits."""
    X, _ = load_digits(return_X_y=True)
    return LayersDisplay.from_estimator(
        mmcnb.MaximumMarginClustering(random_state=0).fit(X)
    )


def density_of_moons() -> Picture:
    """Draw two moons of 20,000 rows in slices, and how far the density falls between the slices."""
    import matplotlib.pyplot as plt

    X, _ = make_moons(20_000, noise=0.08, random_state=0)
    graph = node_graph(X, None, np.random.RandomState(0))
    structure = find_structure(graph)
    slices = max(structure.partitions, key=lambda partition: partition.score).labels
    regions = Regions(graph, structure.d, slices)
    rows = graph.search.nodes
    figure, panels = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
    by_density, by_slice = panels
    points = by_density.scatter(*rows.T, s=1, c=regions.h, cmap="viridis")
    figure.colorbar(points, ax=by_density, label="logarithm of the density")
    by_density.set_title("The density does not fall along a moon")
    by_slice.scatter(*rows.T, s=1, c=slices, cmap="Pastel1")
    edges = graph.edges()[0].tocoo()
    for (first, second), boundary in regions.boundaries.items():
        is_here = (slices[edges.row] == first) & (slices[edges.col] == second)
        middles = (rows[edges.row[is_here]] + rows[edges.col[is_here]]) / 2
        falls = np.full(len(middles), boundary.persistence)
        points = by_slice.scatter(
            *middles.T, s=12, c=falls, cmap="plasma", vmin=0, vmax=2
        )
    figure.colorbar(points, ax=by_slice, label="persistence of a boundary")
    by_slice.set_title(f"{len(regions)} slices, and the boundaries between them")
    for ax in panels:
        ax.set(aspect="equal", xticks=[], yticks=[])
    return Picture(figure)


def shaking() -> ShakingDisplay:
    """Draw the local search on three Gaussians."""
    X, _ = make_block("blobs", 0, 300, 2, random_state=29, n_clusters=3)
    return ShakingDisplay.from_estimator(
        mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X), X
    )


def views() -> Picture:
    """Draw two rings that no straight line separates, columns of noise, and the weight of each kernel."""
    import matplotlib.pyplot as plt

    rings, _ = make_circles(600, noise=0.08, factor=0.3, random_state=0)
    X = np.hstack([rings, np.random.RandomState(0).normal(size=(600, 16))])
    left, right = slice(0, 2), slice(2, 18)
    model = mmcnb.MultipleKernelClustering(
        kernels=["linear", "rbf", "linear", "rbf"],
        columns=[left, left, right, right],
        random_state=0,
    ).fit(X)
    _, (rows, noise, bars) = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for ax, view in ((rows, (0, 1)), (noise, (2, 3))):
        ClusterDisplay.from_predictions(X, model.labels_, features=view, ax=ax, s=6)
        ax.set(aspect="equal", xticks=[], yticks=[])
    pd.Series(model.kernel_weights_, model.kernel_names_).plot.barh(ax=bars)
    return Picture(bars.figure)


def main(folder: Path) -> None:
    """Draw every figure.

    Parameters
    ----------
    folder : Path
        Folder of the figures.
    """
    for draw in (
        demo,
        density_of_moons,
        digits,
        explanation,
        layers_of_digits,
        rings,
        shaking,
        views,
    ):
        name = draw.__name__.replace("_", "-")
        draw().figure_.savefig(folder / f"{name}.png", dpi=DPI)


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parents[1] / "pictures"
    )
