"""
How do I cluster a table that does not fit in memory?
=====================================================

Write the table to a Zarr store in blocks, and set a memory limit. This example
generates 400,000 rows block by block, so they are never all in memory. A fit reads the
rows a few times in blocks, and writes the labels to disk block by block.
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

# %% The plan states the memory and the reads of the fit before it begins. A limit that
# is too small is refused, with a message that names the smallest limit that works. The
# limit applies to the whole process. This process runs all examples, so its limit is
# set above the memory that is already in use.

used = psutil.Process().memory_info().rss
model = mmcnb.SparseKernelMMC(memory_limit=used + 2**28, random_state=0)
print(model.plan(rows))
try:
    mmcnb.SparseKernelMMC(memory_limit="100MiB").plan(rows)
except mmcnb.InputError as refusal:
    print(refusal)

# %%
# The labels are written to a Zarr array, so they do not have to fit in memory either.

model.fit_model(rows, out=labels)
found = zarr.open_array(labels)[:]
print(
    f"{len(found):,} labels, error {balanced_clustering_error(open_class_labels(rows)[:], found):.1%}"
)

# %%
# The plot shows every hundredth row, coloured by its label in the Zarr array.

shown = zarr.open_array(rows / "X")[::100]
ClusterDisplay.from_predictions(shown, found[::100], s=3).ax_.set_aspect("equal")
plt.show()
folder.cleanup()
