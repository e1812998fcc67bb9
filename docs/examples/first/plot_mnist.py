"""
How does it compare with UMAP and HDBSCAN?
==========================================

Both find most of the digits of MNIST; :doc:`/comparison` names the command that measures them on all
70,000. Here are fewer: 10,000 if MMCNB_DATA_DIR names a folder with MNIST, and otherwise the
1,797 digits of scikit-learn. Without umap-learn, principal components take its place; the output says
so.
"""

import os
import time

import matplotlib.pyplot as plt
from sklearn.cluster import HDBSCAN, KMeans
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

try:
    from umap import UMAP

    reduce, name = UMAP(n_neighbors=30, min_dist=0.0, n_components=2, random_state=0, n_jobs=1), "UMAP"
except ImportError:
    reduce, name = PCA(30, random_state=0), "PCA"

# %%
# HDBSCAN finds its own number of clusters, and its noise counts as one; the others are told the number.

methods = {
    "mmcnb": lambda: mmcnb.MaximumMarginClustering(n_clusters=10, random_state=0).fit_predict(X),
    "k-means": lambda: KMeans(10, n_init=3, random_state=0).fit_predict(X),
    f"{name}, HDBSCAN": lambda: HDBSCAN(
        min_samples=10, min_cluster_size=len(X) // 140, copy=True
    ).fit_predict(reduce.fit_transform(X)),
}
found, index = {}, {}
for method, cluster in methods.items():
    began = time.process_time()
    found[method] = cluster()
    index[method] = adjusted_rand_score(y, found[method])
    print(f"{method}: {index[method]:.2f} in {time.process_time() - began:.0f} s of CPU")

# %%
# The plane has two principal components of some rows; digits that overlap here lie apart in other
# directions.

plane = PCA(2, random_state=0).fit_transform(X)[:2000]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (method, labels) in zip(axes, found.items(), strict=True):
    ax.scatter(*plane.T, c=labels[:2000], cmap="tab20", s=3)
    ax.set(title=f"{method}: {index[method]:.2f}", xticks=[], yticks=[])
plt.show()
