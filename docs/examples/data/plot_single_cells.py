"""
How do I cluster single cells in AnnData?
=========================================

Normalise the counts, take logarithms, and let :func:`mmcnb.annotate` write the clusters
beside the cells. Sparse counts stay sparse. The example generates 1,200 cells of
four types, one of them rare, with 500 genes, 60 of which distinguish the types.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD

import mmcnb

random = np.random.default_rng(0)
types = random.choice(4, 1200, p=[0.4, 0.3, 0.2, 0.1])
rates = random.lognormal(-1.5, 1.0, size=500) * np.ones((4, 1))
for cell_type in range(4):
    rates[cell_type, 15 * cell_type : 15 * cell_type + 15] *= 10
depth = random.lognormal(0.0, 0.4, size=(1200, 1))
counts = sp.csr_matrix(random.poisson(depth * rates[types]).astype("float32"))

adata = anndata.AnnData(
    counts, obs=pd.DataFrame({"type": types}, index=[f"cell{i}" for i in range(1200)])
)
print(adata)
print(f"{counts.nnz / np.prod(counts.shape):.0%} of the entries are not zero")

# %% Cells differ in their number of molecules, so raw counts would separate cells with
# many molecules from cells with few.

per_cell = np.asarray(counts.sum(axis=1)).ravel()
adata.layers["lognorm"] = sp.csr_matrix(
    counts.multiply(1e3 / per_cell[:, None])
).log1p()
adata.obsm["X_pca"] = TruncatedSVD(20, random_state=0).fit_transform(
    adata.layers["lognorm"]
)

# %% One call writes the clusters to the column that scanpy users expect.
# ``element`` names the matrix to cluster.

mmcnb.annotate(adata, n_clusters=4, element="obsm/X_pca", random_state=0)
print(adata.obs.head())
print(adata.uns["mmcnb"]["trust"])

# %%
# The types are known here, and the rare type has a cluster of its own.

print(pd.crosstab(adata.obs["type"], adata.obs["mmcnb"]))

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, column in zip(axes, ["type", "mmcnb"], strict=True):
    ax.scatter(
        *adata.obsm["X_pca"][:, 1:3].T,
        c=adata.obs[column].astype(int),
        cmap="Set1",
        s=5,
    )
    ax.set(title=column, xticks=[], yticks=[])
plt.show()
