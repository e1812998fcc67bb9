"""Draw ten clusters of MNIST by mmcnb and by k-means on a map: python docs/_scripts/mnist_map.py [FOLDER].

The script writes ``mnist-map.png``, by default to docs/pictures, and prints how well
both partitions agree with the digits. `data_loaders` finds or downloads MNIST; the map
is a t-SNE map of some of the rows.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

import mmcnb
from data_loaders import load
from mmcnb.plotting import ClusterDisplay

CLUSTERS, SEED = 10, 0
ROWS, AXES = 3000, 50  # number of rows on the map
DPI = 100


def main(folder: Path) -> None:
    """Cluster all rows with both methods, and draw some of the rows.

    Parameters
    ----------
    folder : Path
        Folder of the figure.
    """
    X, y = load("mnist")
    labels = mmcnb.MaximumMarginClustering(
        n_clusters=CLUSTERS, random_state=SEED
    ).fit_predict(X)
    peer = KMeans(CLUSTERS, n_init=10, random_state=SEED).fit_predict(X)
    colours = linear_sum_assignment(contingency_matrix(peer, labels), maximize=True)[1]
    answers = {"MaximumMarginClustering": labels, "KMeans": colours[peer]}
    shown = np.random.RandomState(SEED).permutation(len(X))[:ROWS]
    places = TSNE(random_state=SEED).fit_transform(
        PCA(AXES, random_state=SEED).fit_transform(X[shown])
    )
    figure, panels = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    for ax, (name, found) in zip(panels, answers.items(), strict=True):
        index = adjusted_rand_score(y, found)
        print(f"{name}: adjusted Rand index {index:.3f} on {len(X):,} rows")
        ClusterDisplay.from_predictions(
            places, found[shown], ax=ax, s=8
        ).legend_.remove()
        ax.set(
            title=f"{name}, adjusted Rand index {index:.2f}",
            aspect="equal",
            xticks=[],
            yticks=[],
        )
        ax.set(xlabel="", ylabel="")
    figure.savefig(folder / "mnist-map.png", dpi=DPI)


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parents[1] / "pictures"
    )
