"""
Which of several views of the rows counts?
==========================================

Pass a kernel for each view, and the fit learns their weights. In this example, the
first two columns contain two rings, and sixteen other columns contain noise. Methods
that use all columns at once cut both rings in half.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.plotting import ClusterDisplay

rings, y = make_circles(600, noise=0.08, factor=0.3, random_state=0)
X = np.hstack([rings, np.random.RandomState(0).normal(size=(600, 16))])
left, right = slice(0, 2), slice(2, 18)

model = mmcnb.MultipleKernelClustering(
    kernels=["linear", "rbf", "linear", "rbf"],
    columns=[left, left, right, right],
    random_state=0,
).fit(X)
print("weights of the kernels:", model.kernel_weights_.round(2))
print(
    f"adjusted Rand index with the rings: {adjusted_rand_score(y, model.labels_):.2f}"
)
peer = KMeans(2, n_init=10, random_state=0).fit_predict(X)
print(f"k-means on all columns: {adjusted_rand_score(y, peer):.2f}")

# %%
# Nearly all of the weight is on the Gaussian kernel of the rings.

figure, (rows, noise, bars) = plt.subplots(
    1, 3, figsize=(11, 3.2), layout="constrained"
)
for ax, view in ((rows, (0, 1)), (noise, (2, 3))):
    ClusterDisplay.from_predictions(X, model.labels_, features=view, ax=ax, s=6)
    ax.set(aspect="equal", xticks=[], yticks=[])
pd.Series(model.kernel_weights_, model.kernel_names_).plot.barh(ax=bars)
plt.show()

# %% A wide margin does not prove that a view is relevant. With two columns of noise
# instead of sixteen, the noise gets most of the weight, so leave out views that you do
# not trust.

few = X[:, :4]
model.set_params(columns=[left, left, slice(2, 4), slice(2, 4)]).fit(few)
print("weights of the kernels:", model.kernel_weights_.round(2))
