"""
Which genes mark my cell types?
===============================

Cluster the cells, and ask :meth:`explain <mmcnb.MaximumMarginClustering.explain>` for
the genes by which each cluster differs. The example generates 1,200 cells of four
types with 300 genes, twelve of which are markers.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

import mmcnb

random = np.random.default_rng(0)
markers = {
    "T cell": ["CD3D", "CD3E", "IL7R"],
    "monocyte": ["LYZ", "S100A8", "CD14"],
    "B cell": ["MS4A1", "CD79A", "CD19"],
    "NK cell": ["GNLY", "NKG7", "KLRD1"],
}
genes = [
    *np.concatenate([*markers.values()]),
    *(f"GENE{number}" for number in range(288)),
]
types = random.choice(list(markers), 1200, p=[0.4, 0.3, 0.2, 0.1])
rates = pd.DataFrame(
    random.lognormal(-1.0, 1.0, 300) * np.ones((4, 1)), [*markers], genes
)
for cell_type, own in markers.items():
    rates.loc[cell_type, own] += 12
depth = random.lognormal(0.0, 0.4, size=(1200, 1))
counts = random.poisson(depth * rates.loc[types]).astype("float32")
cells = anndata.AnnData(
    sp.csr_matrix(np.log1p(1000 * counts / counts.sum(axis=1, keepdims=True)))
)
cells.var_names = genes

# %% The counts are sparse, and the genes have names that the sentences can use. The
# values in the sentences are logarithms of counts per thousand, as in the matrix that
# was clustered.

model = mmcnb.MaximumMarginClustering(n_clusters=4, random_state=0).fit(cells)
explanation = model.explain(cells)
print(explanation)

# %% The frame shows three genes of each cluster, and how far their means differ from the
# means of all other cells.

top = explanation.columns.groupby("cluster").head(3)
print(
    top[["cluster", "column", "effect", "auc", "mean", "others_mean"]]
    .round(2)
    .to_string(index=False)
)
means = cells.to_df()[top["column"]].groupby(model.labels_).mean()

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
image = ax.imshow(means, cmap="Purples", aspect="auto")
ax.set(ylabel="cluster", yticks=range(4), xticks=range(len(top)))
ax.set_xticklabels(top["column"], rotation=60, ha="right")
figure.colorbar(image, label="mean of log counts")
plt.show()
