"""
How does it compare with k-means and spectral clustering?
=========================================================

All three methods are given the number of digits. The example uses 10,000 digits of
MNIST if MMCNB_DATA_DIR names a folder with MNIST, and otherwise the 1,797 digits of
scikit-learn. :doc:`/comparison` has more methods, including UMAP.
"""

import os
import time

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import mmcnb

if os.environ.get("MMCNB_DATA_DIR"):
    from mmcnb.datasets import load

    X, y = load("mnist", rows=10_000)
else:
    X, y = load_digits(return_X_y=True)
print(f"{len(X):,} digits of {X.shape[1]} pixels")

# %% Spectral clustering also uses a graph of ten neighbours. It needs all rows at once,
# and cannot label new rows.

methods = {
    "mmcnb": lambda: mmcnb.MaximumMarginClustering(
        n_clusters=10, random_state=0
    ).fit_predict(X),
    "k-means": lambda: KMeans(10, n_init=3, random_state=0).fit_predict(X),
    "spectral": lambda: SpectralClustering(
        10, affinity="nearest_neighbors", random_state=0
    ).fit_predict(X),
}
found, index = {}, {}
for method, cluster in methods.items():
    began = time.process_time()
    found[method] = cluster()
    index[method] = adjusted_rand_score(y, found[method])
    print(
        f"{method}: {index[method]:.2f} in {time.process_time() - began:.0f} s of CPU"
    )

# %% The plot shows some of the rows on two principal components; digits that overlap
# here are separated in other directions.

plane = PCA(2, random_state=0).fit_transform(X)[:2000]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (method, labels) in zip(axes, found.items(), strict=True):
    ax.scatter(*plane.T, c=labels[:2000], cmap="tab20", s=3)
    ax.set(title=f"{method}: {index[method]:.2f}", xticks=[], yticks=[])
plt.show()
