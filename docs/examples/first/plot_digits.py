"""
Does it find the ten handwritten digits?
========================================

It finds most of them. The true digits are known here, but they are used only to measure
the error. k-means splits a digit if two ways of writing it are far apart.
:class:`mmcnb.MaximumMarginClustering` compares partitions and selects the one with the
widest gap between its clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import mmcnb

X, y = load_digits(return_X_y=True)
model = mmcnb.MaximumMarginClustering(n_clusters=10, random_state=0).fit(X)
peer = KMeans(10, n_init=10, random_state=0).fit(X)
print("adjusted Rand index, mmcnb:", round(adjusted_rand_score(y, model.labels_), 2))
print("adjusted Rand index, k-means:", round(adjusted_rand_score(y, peer.labels_), 2))

# %% The report lists all partitions that were compared, the best first, and says how far
# to trust the clusters.

for row in model.report_["candidates"]:
    print(f"{row['candidate']:<24} J {row['J']:.2f}")
print(model.report_["trust"])

# %%
# The mean image of each cluster shows its digit. A blurred mean image indicates a
# cluster that mixes two digits.

figure, axes = plt.subplots(2, 10, figsize=(10, 2.6), layout="constrained")
for row, (name, labels) in zip(
    axes, {"mmcnb": model.labels_, "k-means": peer.labels_}.items(), strict=True
):
    for cluster, ax in enumerate(row):
        members = labels == cluster
        digits = np.bincount(y[members])
        ax.imshow(X[members].mean(axis=0).reshape(8, 8), cmap="gray_r")
        ax.set(
            xticks=[],
            yticks=[],
            title=f"{digits.argmax()}: {digits.max() / digits.sum():.0%}",
        )
    row[0].set_ylabel(name)
plt.show()

# %%
# The model labels new rows without the rows of the fit.

print(model.predict(X[:10]), model.labels_[:10])
