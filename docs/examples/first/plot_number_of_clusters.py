"""
How many clusters are there?
============================

If ``n_clusters`` is not given, the fit finds the number of clusters, and the report
gives the reason. The page :doc:`/how_many_clusters` explains the rule, and what it
cannot detect.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.plotting import ClusterDisplay

X, y = make_shape("seven-blobs", random_state=0)
model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
print(model.report_["number"]["reason"])

# %%
ClusterDisplay.from_estimator(model, X)
plt.show()

# %%
# The merge tree contains a partition for every number of clusters. SciPy can draw the
# tree.

dendrogram(model.linkage_, truncate_mode="lastp", p=30, no_labels=True)
plt.gca().set(yscale="log", ylim=model.linkage_[-30, 2] / 2, ylabel="1 / link")
plt.show()
print(model.layers_)

# %%
# For rows without structure, the fit finds one cluster.

rows = np.random.default_rng(0).normal(size=(500, 4))
alone = mmcnb.MaximumMarginClustering(random_state=0).fit(rows)
print(alone.n_clusters_, alone.report_["number"]["reason"])
