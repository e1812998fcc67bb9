"""
How do I train an SVM on a rare class?
======================================

Keep all rare rows, and cluster the common ones. :class:`mmcnb.SupportClusterMachine` trains on a few
representatives of the clusters, and clusters again near the boundary. It needs labels: it is a classifier.
Try ``LinearSVC`` first if a straight boundary may do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC, LinearSVC

import mmcnb

X, y = make_circles((8000, 160), noise=0.2, factor=0.4, random_state=0)  # 1 is the rare, inner ring
new_X, new_y = make_circles((8000, 160), noise=0.2, factor=0.4, random_state=1)

model = mmcnb.SupportClusterMachine(n_clusters=40, random_state=0).fit(X, y)
# %%
# For comparison, ``SVC`` sees all rows, at the same bandwidth.

peers = {
    "SVC, all rows": SVC(gamma=model.gamma_, class_weight="balanced").fit(X, y),
    "LinearSVC": LinearSVC(class_weight="balanced").fit(X, y),
}
print(model.history_[["round", "representatives", "support_vectors", "miss_rate"]])
for name, fitted in {"SupportClusterMachine": model, **peers}.items():
    score = average_precision_score(new_y, fitted.decision_function(new_X))
    print(f"{name}: average precision on new rows {score:.2f}")

# %%
# Common rows are grey, rare ones orange, and the line is the boundary.

grid = np.stack(np.meshgrid(np.linspace(-2, 2, 150), np.linspace(-2, 2, 150)), axis=-1)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, (name, fitted) in zip(
    axes, {"SupportClusterMachine": model, "SVC, all rows": peers["SVC, all rows"]}.items(), strict=True
):
    ax.scatter(*X[y == 0].T, s=2, color="0.8")
    ax.scatter(*X[y == 1].T, s=4, color="tab:orange")
    values = fitted.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contour(grid[..., 0], grid[..., 1], values, levels=[0.0])
    ax.set(title=name, xticks=[], yticks=[], aspect="equal")
plt.show()
