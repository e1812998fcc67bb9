"""
When should you not believe the clusters?
=========================================

When the report says that trust is low. A method returns as many clusters as it is asked
for, even if the rows are a single cloud. The trust in a fit depends on whether
partitions of other kinds agree, and on how large J of the best partition is.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import mmcnb

random = np.random.default_rng(0)
gaps = {0.0: "one cloud", 4.0: "two that overlap", 7.0: "two apart"}
models = {}
for gap, name in gaps.items():
    X = random.normal(size=(600, 2))
    X[:300, 0] += gap
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", mmcnb.ClusterWarning)
        models[name] = (
            X,
            mmcnb.MaximumMarginClustering(n_clusters=2, random_state=0).fit(X),
        )
    print(f"{name}: {models[name][1].report_['trust']['level']}")
    for warning in said:
        print("   ", warning.message)

# %% At the lowest level, the fit issues a warning, as it does here for the cloud. The
# colours in the plot do not show that these clusters are meaningless.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, (name, (X, model)) in zip(axes, models.items(), strict=True):
    ax.scatter(*X.T, c=model.labels_, cmap="coolwarm", s=6)
    ax.set(
        title=f"{name}: trust {model.report_['trust']['level']}", xticks=[], yticks=[]
    )
plt.show()

# %% Each row has probabilities: the share of each cluster among the votes of its
# nearest nodes, or the probabilities of a support vector machine. Near the boundary, the
# largest probability is small.

X, _ = models["two apart"]
X[:300, 0] -= 2.0
model = mmcnb.MaximumMarginClustering(n_clusters=2, random_state=0).fit(X)
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
points = ax.scatter(*X.T, c=model.predict_proba(X).max(axis=1), cmap="viridis", s=8)
figure.colorbar(points, label="largest probability")
plt.show()
