"""
What sets a cluster apart?
==========================

Clusters are numbers until somebody says what is in them. ``explain`` reads the rows
once more, in the units of the table, and returns a sentence for each cluster. ``mmcnb
explain MODEL TABLE`` prints the same sentences.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mmcnb
from mmcnb.plotting import ClusterDisplay

random = np.random.default_rng(0)
segment = random.integers(0, 3, 900)
cities = np.array(["Berlin", "Bonn", "Ulm"])
customers = pd.DataFrame(
    {
        "income_eur": np.exp(random.normal(10 + 0.9 * segment, 0.3)).round(),
        "age": random.normal(40 + 15 * (segment == 1), 4).round(),
        "orders": random.poisson(np.array([2, 6, 12])[segment]),
        "city": cities[
            np.where(random.random(900) < 0.8, segment, random.integers(0, 3, 900))
        ],
        "newsletter": random.random(900) < 0.2 + 0.6 * (segment == 2),
    }
)
model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0).fit(customers)
explanation = model.explain(customers)
print(explanation)

# %% A rule has at most three conditions, which can be used to filter the table:
# ``coverage`` is the share of the cluster that matches, ``precision`` the share of the
# matching rows that are in the cluster.

print(explanation.rules[["cluster", "rule", "coverage", "precision"]].to_string())

# %% The tree divides all rows by a few conditions. Each leaf names the most frequent cluster of
# its rows.

print(explanation.tree)

# %% A sentence names at most three columns, and only columns that differ clearly. The
# figures behind it are a frame. An ``auc`` of 1 means that each row of the cluster has
# a larger value than all other rows, and an ``auc`` of 0 that it has a smaller value.
# If ``near`` is 1 and ``auc`` is 0.5, the other rows are on both sides of the cluster.

columns = explanation.columns
print(
    columns[["cluster", "column", "effect", "auc", "near", "median", "others_median"]]
    .head(5)
    .to_string()
)

# %% Typical rows often describe a cluster better than its means, and rows at its edge
# show where the labels are uncertain.

found = explanation.rows
print(
    customers.join(
        found[found["kind"] == "typical"].set_index("row")["cluster"], how="right"
    )
)

# %%
# The plot shows the two columns that separate the clusters most.

ClusterDisplay.from_estimator(model, customers).ax_.set_xscale("log")

# %% This plot shows the effects: by how many standard deviations the mean of a cluster
# is above the mean of the other rows. ``model.write_report(customers, "page.html")``
# writes a page with these effects, the sentences, a map and the trust.

names = columns["column"] + " " + columns["category"]
effects = columns.assign(name=names.str.strip()).pivot_table(
    "effect", "name", "cluster"
)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
image = ax.imshow(effects, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
ax.set(
    xlabel="cluster",
    xticks=range(3),
    yticks=range(len(effects)),
    yticklabels=effects.index,
)
figure.colorbar(image, label="effect in deviations")
plt.show()
