"""
Can a few known labels help?
============================

Yes, if the rows can be grouped in several ways. In this example, two groupings are
equally good: each pair of columns has two groups. The known labels of a dozen rows
select the grouping that is meant.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

import mmcnb

random = np.random.default_rng(0)
left, right = random.integers(0, 2, size=(2, 800))  # two ways to split the rows
X = np.column_stack([6.0 * left, 4.5 * right]) + random.normal(size=(800, 2))

alone = mmcnb.MaximumMarginClustering(n_clusters=2, random_state=0).fit(X)
known = {int(row): int(right[row]) for row in random.choice(800, 24, replace=False)}
helped = mmcnb.MaximumMarginClustering(n_clusters=2, random_state=0).fit(
    X, partial_labels=known
)
for name, model in {"no labels": alone, "24 labels": helped}.items():
    print(
        f"{name}: index with the groups that are meant {adjusted_rand_score(right, model.labels_):.2f}"
    )

# %%
# Stars mark the rows with known labels.

rows = list(known)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (name, model) in zip(
    axes, {"no labels": alone, "24 labels": helped}.items(), strict=True
):
    ax.scatter(*X.T, c=model.labels_, cmap="coolwarm", s=6)
    ax.set(title=name, xticks=[], yticks=[])
axes[1].scatter(
    *X[rows].T,
    c=list(known.values()),
    cmap="coolwarm",
    marker="*",
    s=140,
    edgecolors="black",
)
plt.show()

# %% The labels select among the candidates and start one more candidate. In the report,
# ``broken`` is the share of the known labels that a candidate contradicts.

for row in helped.report_["candidates"]:
    print(f"{row['candidate']:<16} J {row['J']:.2f}, broken {row['broken']:.0%}")
