"""
How do I cluster a table that does not fit in memory?
=====================================================

Write it to a Zarr store in blocks, and set a limit. This example generates 400,000 rows
block by block, so they are never all in memory. A fit reads them a few times in blocks
and streams the labels to disk.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import psutil
import zarr

import mmcnb
from mmcnb.datasets import make_block
from mmcnb.metrics import balanced_clustering_error
from mmcnb.plotting import ClusterDisplay
from mmcnb.stores import create_dense_store, open_class_labels

folder = tempfile.TemporaryDirectory()
rows, labels = Path(folder.name) / "rows.zarr", Path(folder.name) / "labels.zarr"
with create_dense_store(rows, n_features=32, dtype="float32") as store:
    for start in range(0, 400_000, 50_000):
        store.append(*make_block("rings", start, start + 50_000, n_features=32))

# %% The plan states the memory and the reads of the fit, before any work. A limit that
# is too small is refused, with the least that works. The limit counts the whole
# process. This one runs the gallery, so it is set above the memory already in use.

used = psutil.Process().memory_info().rss
model = mmcnb.SparseKernelMMC(memory_limit=used + 2**28, random_state=0)
print(model.plan(rows))
try:
    mmcnb.SparseKernelMMC(memory_limit="100MiB").plan(rows)
except mmcnb.InputError as refusal:
    print(refusal)

# %%
# Labels go to a Zarr array, so they need no memory either.

model.fit_model(rows, out=labels)
found = zarr.open_array(labels)[:]
print(
    f"{len(found):,} labels, error {balanced_clustering_error(open_class_labels(rows)[:], found):.1%}"
)

# %%
# The plot shows every hundredth row, coloured by the label that was written.

shown = zarr.open_array(rows / "X")[::100]
ClusterDisplay.from_predictions(shown, found[::100], s=3).ax_.set_aspect("equal")
plt.show()
folder.cleanup()
