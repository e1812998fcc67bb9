"""
Does a Dask cluster give the same labels?
=========================================

Yes, bit for bit, with any number of workers. The workers of this cluster are threads of
this process. On several machines, pass the address of the scheduler to ``Client``, and
put the store under a path that all workers can read.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import mmcnb
from mmcnb.datasets import make_block, write_synthetic
from mmcnb.plotting import ClusterDisplay

folder = tempfile.TemporaryDirectory()
rows = Path(folder.name) / "rows.zarr"
write_synthetic("moons", rows, 60_000, n_features=2, random_state=0)

threads = mmcnb.SparseKernelMMC(random_state=0).fit(rows)
with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
    mmcnb.config(engine=client),
):
    workers = mmcnb.SparseKernelMMC(random_state=0).fit(rows)
    workers.predict(rows, out=Path(folder.name) / "labels.zarr")

print("same labels:", np.array_equal(threads.labels_, workers.labels_))
print("same objective, to the last bit:", threads.objective_ == workers.objective_)

# %% Little data is sent: the location of the rows, the basis once per fit, and a
# hyperplane once per sweep. The workers read the rows themselves.

print(workers.history_[["stage", "sweeps", "reads", "seconds"]].tail(3))

# %%
# A model that was fitted on a cluster does not need the cluster, and can label rows
# anywhere.

new, _ = make_block("moons", 60_000, 62_000, n_features=2)
ClusterDisplay.from_estimator(workers, new, s=4).ax_.set_aspect("equal")
plt.show()
folder.cleanup()
