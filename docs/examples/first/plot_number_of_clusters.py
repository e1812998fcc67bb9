"""
How many clusters are there?
============================

``n_clusters=None`` tries the numbers from 2 to ``max_clusters`` and takes the one whose best partition has
the largest J. That is evidence and not proof: the page :doc:`/choice` says what J is.
"""

import matplotlib.pyplot as plt
import pandas as pd

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.plotting import ClusterDisplay, SelectionDisplay

X, y = make_shape("seven-blobs", random_state=0)
model = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=0).fit(X)
print(model.n_clusters_, "clusters of", model.report_["sizes"], "rows")

# %%
# J says how much the clusters tell of the neighbour graph, and how wide the gap between them is.

SelectionDisplay.from_estimator(model)
plt.show()

# %%
# The report keeps the figures, so you can take another number. Here is the clustering that was taken.

ClusterDisplay.from_estimator(model, X)
plt.show()

# %%
# With many classes, or classes of several groups each, the number is often wrong by one or more. The
# figures of all numbers are in the report; if you know the number, give it.

print(pd.DataFrame(model.report_["numbers"]).round(2))
